"""What a job file's errors say: what a key allows, what stands there instead, and how it is named in the file."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from tablesafe.core.errors import About, Setting, TablesafeError
from tablesafe.core.language import Text, text
from tablesafe.files.read import did_you_mean
from tablesafe.job.toml import KeyPath, toml_value
from tablesafe.rules import RULES

_WORDS: dict[Any, tuple[str, Any]] = {
    str: ("text in quotes", "turnover"),
    int: ("a whole number", 3),
    float: ("a number", 10.0),
    bool: ("true or false", None),
}


def section(path: KeyPath) -> str:
    """Name a table as it is written in the file: `[source]`, `[dimensions.region]`, `[[rules]] no. 2`."""
    if not path:
        return "The job"
    if isinstance(path[-1], int):
        return f"[[{_dotted(path[:-1])}]] no. {path[-1] + 1}"
    return f"[{_dotted(path)}]"


def _dotted(path: KeyPath) -> str:
    return ".".join(str(key) for key in path if not isinstance(key, int))


def key_name(path: KeyPath) -> Text | str:
    """Name a key, or an element of a list, in an error."""
    if isinstance(path[-1], int):
        return text("Element {number} of {name!r}", number=path[-1] + 1, name=path[-2])
    return repr(path[-1])


def unknown_key(where: str, key: str, known: Sequence[str]) -> str:
    """What to say about a key that does not exist."""
    hint = did_you_mean(key, list(known)) or f"it may have {', '.join(known) or 'no keys at all'}."
    return f"{where} has no key {key!r}: {hint}"


def missing_key(where: str, spec: dataclasses.Field[Any], kind: Any) -> str:
    """What to say about a key that must be there."""
    if dataclasses.is_dataclass(kind):
        return f"{where} has no [{spec.name}] table ({spec.metadata.get('help', '')})."
    example = spec.metadata.get("example")
    shown = f", such as {spec.name} = {toml_value(example)}" if example is not None else ""
    return f"{where} needs the key {spec.name!r} ({spec.metadata.get('help', expected(kind, None))}){shown}."


def expected(kind: Any, example: Any) -> Text | str:
    """Say in words what a type allows, with an example."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return either(expected(k, None) for k in inner if k is not type(None) and get_origin(k) is not np.ndarray)
    if origin is Literal:
        return text("one of {several}", several=", ".join(toml_value(option) for option in inner))
    if origin is tuple:
        items = example if isinstance(example, tuple) and example else (_WORDS.get(inner[0], ("", "…"))[1],)
        several = text("text in quotes or a list of it") if inner[0] is str else text("a list")
        return text("{words}, such as {example}", words=several, example=toml_value(items))
    if origin in {dict, Mapping} or dataclasses.is_dataclass(kind):
        return text("a table of keys and values")
    words, usual = _WORDS.get(kind, (getattr(kind, "__name__", str(kind)), None))
    shown = example if type(example) is kind and example != "" else usual
    return (
        text(words)
        if shown is None
        else text("{words}, such as {example}", words=text(words), example=toml_value(shown))
    )


def either(several: Iterable[Text | str]) -> Text:
    """One of several."""
    first, *others = several
    return text("{one} or {other}", one=first, other=either(others)) if others else text("{one}", one=first)


def got(value: Any) -> Text | str:
    """Say in words what stands there instead."""
    if isinstance(value, bool):
        return toml_value(value)
    if isinstance(value, str):
        return text("text {value}", value=toml_value(value))
    if isinstance(value, (int, float)):
        return text("the number {value}", value=str(value))
    if isinstance(value, Mapping):
        return text("a table")
    if isinstance(value, list):
        return text("a list of {many}", many=len(value))
    return f"{type(value).__name__} {value}"


def brief(error: TablesafeError) -> Text:
    """An error's message, its hint in the same sentence."""
    told, hint = error.words
    return text("{told} Hint: {hint}", told=told, hint=hint) if hint.template else told


def as_key(setting: Setting) -> str:
    """An option as a key of a job file; its section too, where a reader would look for it."""
    name, value = setting.name, setting.value
    if value is None:
        return repr(name)
    if value is ...:
        return f"{name} = …" + (f" in {SECTIONS[name]}" if name in SECTIONS else "")
    where = f" in [dimensions.{setting.of}]" if setting.of else ""
    return f"{name} = {toml_value(value)}{where}"


SECTIONS = {
    "where": "[source]",
    "empty": "[source]",
    "delimiter": "[source]",
    "memory_limit": "[run]",
    "engine": "[run]",
}
"""Where a key stands that is not in the section of what went wrong."""
COLUMNS = (
    "respondent", "holding", "weight", "frequency", "request", "count", "holdings", "status", "structural_zero",
)  # fmt: skip
"""Keys of `[source]` that name a column."""


def key_of(draft: Mapping[str, Any], about: About, otherwise: KeyPath = ("source", "file")) -> KeyPath:
    """The key of a job that an error is about; the data file, or what else is given, when it is about none."""
    match about:
        case ("dimension", str(name), str(key)) if key in _table(draft, "dimensions", name) or key == "missing":
            return ("dimensions", name, key)
        case ("dimension", str(name), *_) if name in draft.get("dimensions", {}):
            return ("dimensions", name)
        case ("column", str(name)):
            return next(_naming(draft, name), otherwise)
        case ("file", str(name)):
            return next(_reading(draft, name), otherwise)
        case ("option", _, str(name)) if name in draft.get("method", {}):
            return ("method", name)
        case ("method",) | ("cells", *_):
            return ("method", "name")
        case ("contributors",):
            rules = enumerate(draft.get("rules", []))
            return next((("rules", i) for i, rule in rules if _compares(rule)), otherwise)
        case ("counts",):
            rules = enumerate(draft.get("rules", []))
            return next((("rules", i) for i, rule in rules if not _compares(rule)), otherwise)
        case (str(section), *_) if section in draft:
            return about
        case _:
            return otherwise


def _table(draft: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    found: Any = draft
    for key in path:
        found = found.get(key, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def _naming(draft: Mapping[str, Any], column: str) -> Iterator[KeyPath]:
    """The keys that name a column."""
    for name in draft.get("dimensions", {}):
        if _table(draft, "dimensions", name).get("column", str(name)) == column:
            yield ("dimensions", name)
    yield from (("source", key) for key in COLUMNS if _table(draft, "source").get(key) == column)
    values = _table(draft, "response").get("value")
    several = values if isinstance(values, list) else [values]
    yield from (("response", "value", i) for i, value in enumerate(several) if value == column)


def _reading(draft: Mapping[str, Any], name: str) -> Iterator[KeyPath]:
    """The keys that name a file, the data file last."""
    for dimension in draft.get("dimensions", {}):
        given = _table(draft, "dimensions", dimension)
        yield from (("dimensions", dimension, key) for key in ("hierarchy", "labels") if _is_file(given.get(key), name))
    known = _table(draft, "problem").get("apriori")
    if _is_file(known, name):
        yield ("problem", "apriori")
    elif isinstance(known, list):
        yield from (("problem", "apriori", i) for i, file in enumerate(known) if _is_file(file, name))


def _is_file(given: Any, name: str) -> bool:
    return isinstance(given, str) and given.replace("\\", "/").rpartition("/")[2] == name


def _compares(rule: Any) -> bool:
    """Whether a rule looks at contributions."""
    return isinstance(rule, Mapping) and hasattr(RULES.get(str(rule.get("rule"))), "measure")
