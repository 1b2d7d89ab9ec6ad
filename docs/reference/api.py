"""The page of every public name: signature, what it does, its options with their help, and what can be asked of it."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from types import FunctionType
from typing import Any, get_args, get_type_hints

import tablesafe
from reference.pages import NOTE
from tablesafe.audit.certificate import Certificate
from tablesafe.batch_jobs.files import BatchResult
from tablesafe.pipeline.result import Result
from tablesafe.solve.program import Solution

GROUPS = {
    "Tables and hierarchies": ("core.hierarchy", "core.table", "core.linking", "tabulate"),
    "Rules": ("rules",),
    "Problems and releases": ("core.problem", "core.release", "core.posterior", "core.mechanism"),
    "Methods": ("methods", "linked_views"),
    "Audit and proof": ("audit", "Audit", "verify"),
    "Attacks": ("attack",),
    "Loss and quality": ("loss", "quality", "experiments"),
    "Files": ("io", "tauargus", "batch_jobs"),
    "Plots and pages": ("report", "plots", "notebook"),
    "Jobs and runs": ("job", "pipeline", "work.run"),
    "Errors": ("core.errors",),
}
"""Where a name is listed: by the module it lives in, or a package above it."""
WIDTH = 100


def api_reference() -> str:
    """Every public name, in Markdown."""
    lines = [
        NOTE, "", "# Python API", "",
        "```python", "import tablesafe as ts", "```", "",
        "Every public name, made from the code. Arrays are NumPy and have one entry per cell; frames that go in may be",
        "polars, pandas, Arrow or anything else that speaks Arrow, frames that come out are polars. Options are",
        "keyword-only fields of frozen dataclasses; command line, job file and web app are derived from them.",
    ]  # fmt: skip
    for title, names in _grouped().items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += _entry(name, getattr(tablesafe, name))
    lines += ["", "## What comes back", "", "Classes that the functions above return; nobody makes them by hand."]
    for thing in _returned():
        lines += ["", f"### {thing.__name__}", "", _text(thing), *_fields(thing), *_members(thing)]
    return "\n".join(lines) + "\n"


def _grouped() -> dict[str, list[str]]:
    """The names by group; functions before classes, each in alphabetical order."""
    found: dict[str, list[str]] = {title: [] for title in GROUPS}
    for name in [*tablesafe.__all__, *tablesafe._MODULES]:
        found[_group(name)].append(name)
    return {title: sorted(names, key=lambda n: (n[0].isupper(), n)) for title, names in found.items() if names}


def _group(name: str) -> str:
    home = tablesafe._MODULES.get(name) or tablesafe._HOME[name]
    home = home.removeprefix("tablesafe.")
    for title, parts in GROUPS.items():
        if any(home == part or home.startswith(f"{part}.") for part in parts):
            return title
    raise LookupError(f"{name} lives in {home!r}, which no group of the reference names: add it to GROUPS.")


def _returned() -> list[type[Any]]:
    """Classes that public functions return and that have no public name, and what these lead to, by name."""
    public = [getattr(tablesafe, name) for name in tablesafe.__all__]
    queue = [thing for thing in public if not isinstance(thing, type)]
    queue += [thing.protect for thing in public if hasattr(thing, "protect")]
    found: dict[str, type[Any]] = {kind.__name__: kind for kind in (Certificate, Solution, Result, BatchResult)}
    while queue:
        for kind in _results(queue.pop()):
            if kind.__module__.startswith("tablesafe") and kind not in public and kind.__name__ not in found:
                found[kind.__name__] = kind
                queue += [m for n, m in vars(kind).items() if isinstance(m, FunctionType) and not n.startswith("_")]
                queue += [m.fget for n, m in vars(kind).items() if isinstance(m, property) and not n.startswith("_")]
    return [found[name] for name in sorted(found)]


def _results(function: Any) -> Iterator[type[Any]]:
    """The classes that a function says it returns."""
    try:
        hint = get_type_hints(function).get("return")
    except NameError:  # a name that is there for type checkers only
        return
    for kind in (hint, *get_args(hint)):
        if isinstance(kind, type):
            yield kind


def _entry(name: str, thing: Any) -> Iterator[str]:
    yield from ("", f"### {name}", "")
    if inspect.ismodule(thing):
        yield from (_text(thing), *_functions(thing))
    elif isinstance(thing, type) and issubclass(thing, enum.Enum):
        yield from (_text(thing), "", "| name | value |", "|---|---|")
        yield from (f"| `{member.name}` | `{member.value}` |" for member in thing)
    elif isinstance(thing, type):
        yield from (*_code(name, thing), "", _text(thing), *_fields(thing), *_members(thing))
    else:
        yield from (*_code(name, thing), "", _text(thing))


def _code(name: str, thing: Any) -> Iterator[str]:
    if isinstance(thing, type) and issubclass(thing, Exception):
        yield from ("```python", f"ts.{name}", "```")
        return
    yield from ("```python", f"ts.{name}{_signature(thing)}", "```")


def _signature(thing: Any) -> str:
    """The signature on one line, or one parameter a line where it is long."""
    signature = inspect.signature(thing)
    parameters = [p for p in signature.parameters.values() if p.name not in {"self", "cls"}]
    plain = _plain(signature.replace(parameters=parameters))
    if len(str(plain)) <= WIDTH:
        return str(plain)
    back = "" if plain.return_annotation is inspect.Signature.empty else f" -> {plain.return_annotation!r}"
    parts: list[str] = []
    star = False
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parts, star = [*parts, "*"], True
        parts.append(str(_plain_parameter(parameter)))
    return "(\n" + "".join(f"    {part},\n" for part in parts) + ")" + back


def _plain(signature: inspect.Signature) -> inspect.Signature:
    """Annotations as they stand in the code, and no return type where it says nothing."""
    back = signature.return_annotation
    shown = inspect.Signature.empty if back in {inspect.Signature.empty, "None", None} else Raw(str(back))
    parameters = [_plain_parameter(p) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=shown)


def _plain_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    """Defaults that have no name of their own, such as new lists or functions, are dots."""
    default, kind = parameter.default, parameter.annotation
    if default is not inspect.Parameter.empty and not re.fullmatch(r"[^<>]*", repr(default)):
        default = Raw("...")
    return parameter.replace(default=default, annotation=Raw(kind) if isinstance(kind, str) else kind)


@dataclasses.dataclass(frozen=True)
class Raw:
    """Text that shows itself without quotes."""

    text: str

    def __repr__(self) -> str:
        return re.sub(r"\s+", " ", self.text)


def _fields(cls: type[Any]) -> Iterator[str]:
    """The fields of a dataclass: what each is and, where it is an option, its help."""
    if not dataclasses.is_dataclass(cls):
        return
    shown = [spec for spec in dataclasses.fields(cls) if not spec.name.startswith("_")]
    if not shown:
        return
    helped = any("help" in spec.metadata for spec in shown)
    yield from ("", "| field | type | meaning |", "|---|---|---|") if helped else ("", "| field | type |", "|---|---|")
    for spec in shown:
        kind = re.sub(r"\s+", " ", str(spec.type if isinstance(spec.type, str) else getattr(spec.type, "__name__", "")))
        row = [f"`{spec.name}`", f"`{kind}`", *([spec.metadata.get("help", "")] if helped else [])]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _members(cls: type[Any]) -> Iterator[str]:
    """Its public methods and properties, in the order of the code, each with its docstring's first paragraph."""
    lines = []
    for name, member in _declared(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(member, (property, cached_property)):
            get = member.fget if isinstance(member, property) else member.func
            lines.append(f"- `.{name}`: {_first(get)}")
        elif isinstance(member, (classmethod, staticmethod)):
            lines.append(f"- `ts.{cls.__name__}.{name}{_short(getattr(cls, name))}`: {_first(member.__func__)}")
        elif isinstance(member, FunctionType):
            lines.append(f"- `.{name}{_short(member)}`: {_first(member)}")
    if lines:
        yield from ("", *lines)


def _declared(cls: type[Any]) -> dict[str, Any]:
    """What the class and the classes of ours that it is made from declare."""
    found: dict[str, Any] = {}
    for owner in reversed(cls.__mro__):
        if owner.__module__.startswith("tablesafe"):
            found |= vars(owner)
    return found


def _functions(module: Any) -> Iterator[str]:
    for name in getattr(module, "__all__", ()):
        thing = getattr(module, name)
        yield from ("", f"#### {module.__name__.rpartition('.')[2]}.{name}", "", "```python")
        yield from (f"ts.{module.__name__.rpartition('.')[2]}.{name}{_signature(thing)}", "```", "", _text(thing))


def _short(thing: Any) -> str:
    """The parameters by their names alone, with `=…` where they may be left out; those after `*` by keyword only."""
    names: list[str] = []
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in names:
            names.append("*")
        if parameter.name not in {"self", "cls"}:
            stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
            optional = parameter.default is not inspect.Parameter.empty
            names.append(f"{stars}{parameter.name}{'=…' if optional else ''}")
    return f"({', '.join(names)})"


def _text(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")


def _first(thing: Any) -> str:
    return _text(thing).split("\n\n")[0].replace("\n", " ")
