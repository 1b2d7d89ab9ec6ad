"""Which field caused an error that only the work itself found: the message names it in the user's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tablesafe.io.frames import EXCEL_ENDINGS
from tablesafe.rules import RULES

Path = tuple[str | int, ...]
COLUMNS = ("respondent", "holding", "weight", "frequency", "request", "count", "holdings", "status",
           "structural_zero")  # fmt: skip


def culprit(draft: Mapping[str, Any], message: str, otherwise: Path = ("source", "file")) -> Path:
    """The key of the job that a message is about; the data file, or what else is given, when it names nothing."""
    for path, words in _named(draft):
        if any(word and word in message for word in words):
            return path
    return otherwise


def _named(draft: Mapping[str, Any]) -> Iterator[tuple[Path, list[str]]]:
    """What each key would be called in a message, the most particular first."""
    source, dimensions = draft.get("source", {}), draft.get("dimensions", {})
    if str(source.get("file", "")).lower().endswith(EXCEL_ENDINGS):
        yield ("source", "sheet"), ["sheets: ", "has no sheet ", f"Sheet {source.get('sheet')!r}"]
    if source.get("where"):
        yield ("source", "where"), ["'where'", "where =", str(source["where"])]
    for name, dimension in dimensions.items():
        given = dimension if isinstance(dimension, Mapping) else {}
        for key in ("hierarchy", "labels"):
            if given.get(key) and given[key] != source.get("file"):
                yield ("dimensions", name, key), [str(given[key])]
        if given.get("equations"):
            yield ("dimensions", name, "equations"), [f"dimension {name!r}, equation"]
        yield ("dimensions", name, "missing"), [f"The code of {name!r} is missing"]
    for i, rule in enumerate(draft.get("rules", [])):
        if isinstance(rule, Mapping) and hasattr(RULES.get(str(rule.get("rule"))), "measure"):
            yield ("rules", i), ["largest contributors of each cell"]
    apriori = draft.get("problem", {}).get("apriori")
    yield ("problem", "apriori"), [str(apriori or "")]
    method = draft.get("method", {})
    yield from ((("method", key), [f".{key} must", f"'{key}'"]) for key in method if key != "name")
    if str(method.get("name", "")):
        yield ("method", "name"), [_title(str(method["name"]))]
    for name in dimensions:
        yield ("dimensions", name), [f"{name!r}"]
    for key in COLUMNS:
        if source.get(key):
            yield ("source", key), [f"column {source[key]!r}"]
    for i, name in enumerate(_several(draft.get("response", {}).get("value"))):
        yield ("response", "value", i), [f"{name!r}"]


def _title(method: str) -> str:
    """How a message names a method: by its class."""
    from tablesafe.methods import METHODS

    return f"{METHODS[method].__name__} " if method in METHODS else ""


def _several(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [str(value)] if value else []
