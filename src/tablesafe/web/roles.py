"""What each column of the source is used for: one word per column, kept in the keys of the job."""

from __future__ import annotations

from typing import Any

NOTHING, DIMENSION, VALUE = "not used", "dimension", "value"
RECORDS = {
    "respondent": "respondent", "holding": "holding", "weight": "weight",
    "frequency": "number of respondents of a row", "request": "asks for protection",
}  # fmt: skip
CELLS = {
    "count": "number of contributors", "holdings": "number of holdings", "status": "status",
    "structural_zero": "structural zero",
}  # fmt: skip
SEVERAL = {"contributions": "largest contribution", "contributors": "who contributed it"}
SHADOW = "ranks contributors"


def roles_of(draft: dict[str, Any]) -> list[str]:
    """The words to choose from; for records and for cells they differ."""
    cells = draft.get("source", {}).get("kind") == "cells"
    own = [*CELLS.values(), *SEVERAL.values()] if cells else [*RECORDS.values(), SHADOW]
    used = [role_of(draft, name) for name in _named(draft)]
    return list(dict.fromkeys([NOTHING, DIMENSION, VALUE, *own, *used]))


def _named(draft: dict[str, Any]) -> list[str]:
    source = draft.get("source", {})
    single = [source[key] for key in (*RECORDS, *CELLS) if isinstance(source.get(key), str)]
    several = [name for key in SEVERAL for name in _list(source.get(key))]
    shadow = draft.get("response", {}).get("shadow")
    return [*single, *several, *([shadow] if isinstance(shadow, str) else [])]


def used_columns(draft: dict[str, Any]) -> list[str]:
    """The columns that something is made of already."""
    return [*_dimension_columns(draft).values(), *_list(draft.get("response", {}).get("value")), *_named(draft)]


def role_of(draft: dict[str, Any], column: str) -> str:
    """What a column is used for."""
    source, response = draft.get("source", {}), draft.get("response", {})
    if column in _dimension_columns(draft).values():
        return DIMENSION
    if column in _list(response.get("value")):
        return VALUE
    for key, word in {**RECORDS, **CELLS}.items():
        if source.get(key) == column:
            return word
    for key, word in SEVERAL.items():
        if column in _list(source.get(key)):
            return word
    return SHADOW if response.get("shadow") == column else NOTHING


def set_role(draft: dict[str, Any], column: str, role: str) -> None:
    """Use a column for something else; a role that only one column can have moves to it.

    A title that was guessed from values and dimensions goes on naming them: it is printed above the release.
    """
    values, dimensions = _title(draft)
    _clear(draft, column)
    source, response = draft.setdefault("source", {}), draft.setdefault("response", {})
    if role == DIMENSION:
        draft.setdefault("dimensions", {})[column] = {}
    elif role == VALUE:
        response["value"] = [*_list(response.get("value")), column]
    elif role == SHADOW:
        response["shadow"] = column
    for key, word in {**RECORDS, **CELLS}.items():
        if word == role:
            source[key] = column
    for key, word in SEVERAL.items():
        if word == role:
            source[key] = [*_list(source.get(key)), column]
    if not response:
        draft.pop("response")
    title, now = str(draft.get("title") or ""), _title(draft)
    if dimensions and now[1] and title.endswith(dimensions):
        head = title.removesuffix(dimensions)
        draft["title"] = (now[0] if head == values else head) + now[1]


def _title(draft: dict[str, Any]) -> tuple[str, str]:
    """What a first job calls its table, in two parts: its values, and by which dimensions; empty where it has none."""
    values, dimensions = _list(draft.get("response", {}).get("value")), list(draft.get("dimensions", {}))
    return " and ".join(values) or "Records", " by " + " and ".join(dimensions) if dimensions else ""


def _clear(draft: dict[str, Any], column: str) -> None:
    for name, used in _dimension_columns(draft).items():
        if used == column:
            del draft["dimensions"][name]
    source, response = draft.get("source", {}), draft.get("response", {})
    for table, keys in ((source, (*RECORDS, *CELLS, *SEVERAL)), (response, ("value", "shadow"))):
        for key in keys:
            if table.get(key) == column:
                del table[key]
            elif isinstance(table.get(key), list) and column in table[key]:
                table[key] = [name for name in table[key] if name != column]
                if not table[key]:
                    del table[key]


def _dimension_columns(draft: dict[str, Any]) -> dict[str, str]:
    found = draft.get("dimensions", {})
    return {name: (each.get("column") if isinstance(each, dict) else None) or name for name, each in found.items()}


def _list(value: Any) -> list[str]:
    return list(value) if isinstance(value, list) else [value] if isinstance(value, str) else []
