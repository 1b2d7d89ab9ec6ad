"""JSON-stat 2, as Eurostat and many offices serve tables on the web: in and out.

Values stand in one list, or under their positions, for every combination of codes in the order of `id`, the last of
them running fastest. `status` does the same with one word for each cell or for all; `child` says which codes are
parts of which. (JSON-stat Format 2.0.)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.errors import InvalidFile
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.files.read import Source, read_text
from tablesafe.files.write import write_text
from tablesafe.io.dataset import STATUS, Dataset

WITHHELD = "c"
LARGEST = 50_000_000
"""Combinations of codes that are laid out at most."""
LARGEST_FLOAT = sys.float_info.max
SHOWN = 60
"""Letters of a wrong entry that are shown."""


def read_jsonstat(path: str | Path) -> Dataset:
    """Read a dataset of JSON-stat 2, or the first of a collection."""
    path = Path(path)
    try:
        document = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InvalidFile(
            f"{path.name}, line {error.lineno}: this is no JSON: {error.msg}.", hint="is the file complete?"
        ) from error
    except (ValueError, RecursionError) as error:  # a whole number of thousands of digits, brackets without end
        raise InvalidFile(
            f"{path.name} cannot be read as JSON: it holds a number of thousands of digits, or brackets without end.",
            hint="is the file damaged?",
        ) from error
    try:
        return _dataset(_found(document, path.name), path.name)
    except UnicodeEncodeError as error:  # JSON can write half of a letter
        raise InvalidFile(f"{path.name} holds a letter that is none.", hint="is the file damaged?") from error


def write_jsonstat(dataset: Dataset, path: str | Path) -> None:
    """Write a dataset as JSON-stat 2; withheld values are null, with the status `c`."""
    write_text(path, json.dumps(jsonstat(dataset), ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")


def jsonstat(dataset: Dataset) -> dict[str, Any]:
    """A dataset as the object that JSON-stat 2 describes."""
    names = list(dataset.dimensions)
    place = dataset.positions()
    order = np.argsort(place, kind="stable")
    values = dataset.rows.frame[dataset.value].to_list()
    sizes = [len(dataset.codes[name]) for name in names]
    whole = len(place) == int(np.prod(sizes, dtype=np.int64))
    at = place.tolist()
    hidden = {str(at[i]): WITHHELD for i in order.tolist() if values[i] is None}
    shown = [_number(values[i]) for i in order] if whole else {str(at[i]): _number(values[i]) for i in order.tolist()}
    out: dict[str, Any] = {
        "version": "2.0",
        "class": "dataset",
        "label": dataset.title or f"{dataset.value} by {', '.join(names)}",
        "id": names,
        "size": sizes,
        "dimension": {name: _dimension(dataset, name) for name in names},
        "value": shown,
    }
    if hidden:
        out["status"] = hidden
    if dataset.notes:
        out["note"] = list(dataset.notes)
    if dataset.unit:
        out["extension"] = {"unit": dataset.unit}
    return out


def _number(value: float | None) -> float | int | None:
    return int(value) if value is not None and value == int(value) else value


def _dimension(dataset: Dataset, name: str) -> dict[str, Any]:
    codes, labels, hierarchy = dataset.codes[name], dataset.labels.get(name, {}), dataset.dimensions[name]
    category: dict[str, Any] = {"index": list(codes)}
    if labels:
        category["label"] = {code: labels.get(code, code) for code in codes}
    equations = [] if hierarchy is None else hierarchy.as_equations()
    if equations and all(sign > 0 for equation in equations for sign in equation.signs):
        category["child"] = {equation.total: list(equation.parts) for equation in equations}
    return {"label": dataset.names.get(name, name), "category": category}


def _found(document: Any, file: str) -> Mapping[str, Any]:
    """The dataset of a response: itself, embedded in a collection, or a bundle of the older kind."""
    if isinstance(document, dict) and document.get("class") == "collection":
        items = document.get("link", {}).get("item", []) if isinstance(document.get("link"), dict) else []
        document = next((item for item in items if isinstance(item, dict) and "value" in item), None)
    if isinstance(document, dict) and "value" in document and "id" in document and "dimension" in document:
        return document
    raise InvalidFile(
        f"{file} holds no dataset of JSON-stat 2.",
        hint="it has 'class': 'dataset' with 'id', 'size', 'dimension' and 'value'; older versions are not read.",
    )


def _dataset(document: Mapping[str, Any], file: str) -> Dataset:
    listed, dimensions = document["id"], document["dimension"]
    if not isinstance(listed, list) or not isinstance(dimensions, dict):
        raise InvalidFile(
            f"{file} does not tell its dimensions.", hint="'id' is a list of their names, 'dimension' describes each."
        )
    names = [str(name) for name in listed]
    missing = next((name for name in names if not isinstance(dimensions.get(name), dict)), None)
    if missing is not None or not names:
        raise InvalidFile(f"{file} does not describe its dimension {missing!r}.", hint="is the file complete?")
    categories = {name: _category(file, name, dimensions[name].get("category", {})) for name in names}
    codes = {name: _codes(file, name, categories[name]) for name in names}
    sizes = [len(codes[name]) for name in names]
    if document.get("size", sizes) != sizes:
        raise InvalidFile(
            f"{file} says its dimensions have {document['size']} codes, but they have {sizes}.",
            hint="is the file complete?",
        )
    many = int(np.prod(sizes, dtype=np.int64))
    if many > LARGEST:
        raise InvalidFile(f"{file} lays out {many:,} cells, more than can be held.", hint="take a part of it.")
    values = _laid_out(file, "value", document["value"], many)
    status = _laid_out(file, "status", document.get("status", {}), many)
    sparse = isinstance(document["value"], dict)
    there = np.array([v is not None or s is not None for v, s in zip(values, status, strict=True)]) | (not sparse)
    at = np.flatnonzero(there)
    index = np.unravel_index(at, sizes)
    columns: dict[str, Any] = {
        name: pl.Series(list(codes[name])).gather(own.astype(np.uint32)) for name, own in zip(names, index, strict=True)
    }
    columns["value"] = pl.Series([_finite(file, values[i]) for i in at.tolist()], dtype=pl.Float64)
    columns[STATUS] = pl.Series([None if status[i] is None else str(status[i]) for i in at.tolist()], dtype=pl.String)
    extension = document.get("extension")
    note = document.get("note", [])
    return Dataset(
        rows=Source(pl.DataFrame(columns), file),
        dimensions={name: _hierarchy(file, name, categories[name]) for name in names},
        codes=codes,
        labels={
            name: {str(k): str(v) for k, v in categories[name]["label"].items()}
            for name in names
            if isinstance(categories[name].get("label"), dict)
        },
        status=STATUS,
        title=str(document.get("label", "")),
        unit=str(extension.get("unit", "")) if isinstance(extension, dict) else "",
        notes=tuple(map(str, note if isinstance(note, list) else [note])),
        names={name: str(dimensions[name]["label"]) for name in names if "label" in dimensions[name]},
    )


def _category(file: str, name: str, given: Any) -> Mapping[str, Any]:
    if isinstance(given, dict):
        return given
    raise InvalidFile(f"{file} has no codes for dimension {name!r}.", hint="'category' holds its 'index'.")


def _codes(file: str, name: str, category: Mapping[str, Any]) -> list[str]:
    index = category.get("index")
    if isinstance(index, list):
        codes = [str(code) for code in index]
    elif isinstance(index, dict) and all(type(position) is int for position in index.values()):
        codes = [str(code) for code, _ in sorted(index.items(), key=lambda item: item[1])]
    elif isinstance(category.get("label"), dict) and len(category["label"]) == 1:
        codes = [str(code) for code in category["label"]]
    else:
        raise InvalidFile(f"{file} has no codes for dimension {name!r}.", hint="'category' needs an 'index'.")
    if len(set(codes)) < len(codes):
        raise InvalidFile(f"{file} has a code twice in dimension {name!r}.", hint="codes must differ.")
    return codes


def _laid_out(file: str, key: str, given: Any, many: int) -> list[Any]:
    """One entry for each combination of codes: from a list, from positions, or the same for all."""
    if isinstance(given, list):
        if len(given) == many:
            return given
        if key == "status" and len(given) == 1:
            return given * many
        raise InvalidFile(f"{file} has {len(given):,} entries of '{key}' for {many:,} cells.", hint="is it complete?")
    if isinstance(given, dict):
        out: list[Any] = [None] * many
        for position, entry in given.items():
            plain = position.isdecimal() and len(position) <= len(str(many)) and str(int(position)) == position
            if not plain or int(position) >= many:
                raise InvalidFile(f"{file} has '{key}' at {position!r}, but {many:,} cells.", hint="is it complete?")
            out[int(position)] = entry
        return out
    return [given] * many


def _finite(file: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= LARGEST_FLOAT:
        told = repr(value)
        raise InvalidFile(
            f"{file} has the value {told if len(told) <= SHOWN else told[:SHOWN] + '…'}, which is no number.",
            hint="withheld values are null.",
        )
    return float(value)


def _hierarchy(file: str, name: str, category: Mapping[str, Any]) -> Hierarchy | None:
    child = category.get("child")
    if not isinstance(child, dict) or not child:
        return None
    wrong = next((parent for parent, parts in child.items() if not isinstance(parts, list)), None)
    if wrong is not None:
        raise InvalidFile(f"{file} does not list the parts of {wrong!r} in 'child' of {name!r}.", hint="is it damaged?")
    pairs: Sequence[tuple[str, str]] = [(str(parent), str(part)) for parent, parts in child.items() for part in parts]
    return Hierarchy.from_pairs(pairs, name=f"{file}, 'child' of {name}")
