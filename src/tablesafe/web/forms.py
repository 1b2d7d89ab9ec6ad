"""Forms from declarations: the dataclass of a rule, a method or a job section says which fields its form has.

The same dataclasses are read by the command line, the job file and the reference, so that an option exists in all of
them or in none. A form edits plain values, as they stand in a TOML file: what is not set is not there.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tablesafe.core.errors import InvalidOption
from tablesafe.core.sensitivity import Rule
from tablesafe.job.decode import default_of, is_required, is_writable, options
from tablesafe.job.model import CHOICES
from tablesafe.job.toml import read_toml, toml_value
from tablesafe.methods import METHODS, Method
from tablesafe.rules import RULES

Widget = Literal[
    "text", "amount", "number", "whole", "switch", "perhaps", "choice", "list", "lines", "numbers", "file", "files",
    "toml", "rule", "rules", "method", "table",
]  # fmt: skip
"""How a field is asked for: `amount` is a number or a column, `perhaps` is yes, no or not said."""
YES, NO = "yes", "no"
_PLAIN: dict[Any, Widget] = {bool: "switch", int: "whole", float: "number", str: "text", Rule: "rule", Method: "method"}
_LISTS: dict[Any, Widget] = {str: "list", int: "numbers", float: "numbers", Rule: "rules"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One field of a form."""

    name: str
    help: str
    widget: Widget
    required: bool
    default: Any
    """What holds when nothing is set, as a plain value; None where that is nothing."""
    example: str
    choices: tuple[str, ...] = ()
    slider: tuple[float, float, float] | None = None
    """From, to and step, where the declaration names them."""
    inside: type[Any] | None = None
    """The dataclass whose fields a table inside this one has."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of one dataclass: a title, what it is for, and its fields."""

    name: str
    summary: str
    about: tuple[str, ...]
    entries: tuple[Entry, ...]


def form_of(kind: type[Any], name: str = "") -> Form:
    """The form of a dataclass."""
    declared: Any = kind
    return _form(declared, name)


@cache
def _form(kind: Any, name: str) -> Form:
    hints = get_type_hints(kind)
    text = inspect.cleandoc(kind.__doc__ or "")
    summary, _, about = text.partition("\n\n")
    entries = tuple(_entry(hints[key], spec) for key, spec in options(kind).items())
    paragraphs = tuple(" ".join(each.split()) for each in about.split("\n\n") if each.strip())
    return Form(name, " ".join(summary.split()), paragraphs, entries)


def rule_forms() -> dict[str, Form]:
    """The form of every rule, by its name in the job file."""
    return {name: form_of(kind, name) for name, kind in RULES.items()}


def method_forms() -> dict[str, Form]:
    """The form of every method, by its name in the job file."""
    return {name: form_of(kind, name) for name, kind in METHODS.items()}


def _entry(hint: Any, spec: dataclasses.Field[Any]) -> Entry:
    kinds = _writable(hint)
    widget = _widget(kinds, optional=type(None) in get_args(hint), spec=spec)
    inside = kinds[0] if widget == "table" else None
    return Entry(
        name=spec.name,
        help=str(spec.metadata.get("help", "")),
        widget=widget,
        required=is_required(spec),
        default=None if is_required(spec) else _plain(default_of(spec)),
        example=_example(spec),
        choices=tuple(map(str, get_args(kinds[0]))) if widget == "choice" else (YES, NO) if widget == "perhaps" else (),
        slider=spec.metadata.get("slider"),
        inside=inside,
    )


def _writable(hint: Any) -> tuple[Any, ...]:
    """What may stand in a job file of all that a field may hold."""
    if get_origin(hint) in {Union, types.UnionType}:
        return tuple(kind for kind in get_args(hint) if is_writable(kind))
    return (hint,)


def _widget(kinds: tuple[Any, ...], *, optional: bool, spec: dataclasses.Field[Any]) -> Widget:
    kind, origin = kinds[0], get_origin(kinds[0])
    if spec.metadata.get("file") and kinds == (str, tuple[str, ...]):
        return "files"
    if len(kinds) > 1:
        return "amount" if set(kinds) == {float, str} else "toml"
    if spec.metadata.get("file"):
        return "file"
    if kind is bool and optional:
        return "perhaps"
    if origin is Literal:
        return "choice"
    if origin is tuple:
        return _list_widget(get_args(kind), spec)
    if dataclasses.is_dataclass(kind) and kind not in CHOICES:
        return "table"
    return _PLAIN.get(kind, "toml")


def _list_widget(inner: tuple[Any, ...], spec: dataclasses.Field[Any]) -> Widget:
    if len(inner) != 2 or inner[1] is not Ellipsis:
        return "toml"
    example = spec.metadata.get("example")
    if inner[0] is str and isinstance(example, tuple) and any("=" in str(text) for text in example):
        return "lines"
    return _LISTS.get(inner[0], "toml")


def _plain(value: Any) -> Any:
    """A default as a form shows it; nothing where it is empty or a table."""
    if dataclasses.is_dataclass(value) or value is None or value == () or value == {} or value == "":
        return None
    return list(value) if isinstance(value, tuple) else value


def _example(spec: dataclasses.Field[Any]) -> str:
    example = spec.metadata.get("example")
    if example is None:
        return ""
    if isinstance(example, str):
        return example
    if isinstance(example, tuple) and all(isinstance(item, (str, int, float)) for item in example):
        return ", ".join(str(item) for item in example)
    return toml_value(example)


# -- what is shown at first, and in which words --------------------------------------------------------------------


AT_FIRST = 5
"""Options of a form that are shown before any other."""
BASIC: dict[str, tuple[str, ...]] = {
    "suppress": ("algorithm", "cost", "time_limit_s", "previous", "seed"),
    "adjust": ("cost", "directions", "capacity_percent", "time_limit_s", "seed"),
}
"""The options of methods that most people need, where these are not the first ones."""
UNITS = {"_s": "seconds", "_percent": "percent", "_mb": "megabytes", "_hours": "hours"}


def basic(name: str, entries: Sequence[Entry], said: Mapping[str, Any]) -> list[Entry]:
    """The options that are shown at first: those that most need, what must be given, and whatever is set already."""
    if len(entries) <= AT_FIRST + 1:
        return list(entries)
    usual = BASIC.get(name) or tuple(entry.name for entry in entries[:AT_FIRST])
    return [entry for entry in entries if entry.required or entry.name in usual or entry.name in said]


def spoken(name: str) -> str:
    """A key as people say it, with its unit: `time_limit_s` is "time limit, in seconds"."""
    for ending, unit in UNITS.items():
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ').capitalize()}, in {unit}"
    return name.replace("_", " ").capitalize() if "_" in name else name


def offered(entry: Entry) -> list[str]:
    """The words that the help of an option names: `problem (its own cost), unit, value, or a column`."""
    words = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", "", entry.help.partition(":")[2] or entry.help)
    found = [part.strip().removeprefix("or ").strip() for part in words.split(",")]
    return [part for part in found if re.fullmatch(r"[a-z_]+", part)]


# -- between what a person writes and what a job file holds --------------------------------------------------------


def written(entry: Entry, value: Any) -> str:
    """A plain value as the text of its field."""
    if value is None:
        return ""
    match entry.widget:
        case "numbers" | "list":
            return ", ".join(map(_number_text, value)) if isinstance(value, list) else str(value)
        case "lines":
            return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
        case "toml":
            return value if isinstance(value, str) else toml_value(value)
        case "perhaps":
            return YES if value else NO
        case _:
            return _number_text(value)


def _number_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e15 and value == int(value) else str(value)


def read(entry: Entry, text: str) -> Any:
    """The plain value of a field's text; None when it is empty. Text that is no number stays text.

    Nothing is refused here: the check of the whole job says what is wrong, in the same words as on the command line.
    """
    text = text.strip()
    if not text:
        return None
    match entry.widget:
        case "whole" | "number" | "amount":
            return _number(text)
        case "numbers":
            return [_number(part.strip()) for part in text.split(",") if part.strip()]
        case "list":
            return _toml(text) if text.startswith("[") else [part.strip() for part in text.split(",") if part.strip()]
        case "lines":
            return [line.strip() for line in text.splitlines() if line.strip()]
        case "perhaps":
            return text == YES
        case "toml":
            return _toml(text)
        case _:
            return text


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _toml(text: str) -> Any:
    """A value as TOML writes it; anything else is text, so that a column needs no quotes."""
    try:
        return read_toml(f"value = {text}")["value"]
    except (RecursionError, ValueError):
        return text


def put(data: dict[str, Any], path: tuple[str | int, ...], value: Any) -> None:
    """Set a value inside plain data, or take it out when it is None; tables that are not there are made."""
    at: Any = data
    for key in path[:-1]:
        at = at.setdefault(key, {}) if isinstance(key, str) else at[key]
    last = path[-1]
    if value is not None:
        at[last] = value
    elif isinstance(last, str):
        at.pop(last, None)
    else:
        del at[last]


def get(data: Mapping[str, Any], path: tuple[str | int, ...]) -> Any:
    """A value inside plain data; None where there is none."""
    at: Any = data
    for key in path:
        try:
            at = at[key]
        except (KeyError, IndexError, TypeError):
            return None
    return at


def named_class(kind: Literal["rule", "method"], name: str) -> type[Any]:
    """The dataclass of a rule or method by its name."""
    registry: Mapping[str, type[Any]] = RULES if kind == "rule" else METHODS
    if name not in registry:
        raise InvalidOption(f"There is no {kind} {name!r}: there are {', '.join(map(repr, registry))}.")
    return registry[name]
