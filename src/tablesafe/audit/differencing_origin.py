"""Finished tables that know the records they were made from: their contributors can be had, and need no guess."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from tablesafe.audit.disclosures import Published
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.tabulate.origin import Origin

SAME = ("value", "respondent", "holding", "weight", "where", "delimiter")
"""Options of `tabulate` that tables must have in common to be compared record by record."""
UNUSUAL = ("equations", "shadow", "request", "empty")
"""Options with which it is not done."""


def as_records(source: Mapping[str, Table | Release]) -> tuple[Any, list[Published], dict[str, Any]] | None:
    """The records of tables, what each publishes of them, and how they are added up; None where that is not known."""
    tables = {name: each.table if isinstance(each, Release) else each for name, each in source.items()}
    origins = [table.origin for table in tables.values()]
    first = origins[0]
    if not isinstance(first, Origin) or not all(isinstance(each, Origin) and _alike(first, each) for each in origins):
        return None
    if not _plain(first):
        return None
    published = [_published(name, tables[name], each) for name, each in source.items()]
    options = {name: first.options[name] for name in ("value", "respondent", "holding", "weight")}
    largest = max(int(each.options["largest"]) for each in origins if each is not None)
    return first.source, published, {**options, "largest": largest}


def _plain(origin: Origin) -> bool:
    """Whether the records are a file or a frame that is added up in the ordinary way."""
    options = origin.options
    if isinstance(origin.source, str | Path):
        own = Path(origin.source).is_file()
    else:
        own = isinstance(origin.source, pl.DataFrame) or type(origin.source).__module__.startswith("pandas")
    one_value = options["value"] is None or isinstance(options["value"], str)
    return bool(own and one_value and options["delimiter"] is None and not any(options[name] for name in UNUSUAL))


def _alike(one: Origin, other: Origin) -> bool:
    """Whether two tables count the same records in the same way."""
    return _same_source(one.source, other.source) and all(one.options[name] == other.options[name] for name in SAME)


def _same_source(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, str | Path) and isinstance(other, str | Path):
        return Path(one) == Path(other)
    return type(one) is type(other) and hasattr(one, "equals") and bool(one.equals(other))


def _published(name: str, table: Table, each: Table | Release) -> Published:
    assert isinstance(table.origin, Origin)
    options = table.origin.options
    shown = each if isinstance(each, Release) else _everything(table)
    return Published(
        name=name, dimensions=dict(table.dimensions), where=options["where"], margins=options["margins"],
        column_of=options["column_of"], missing=options["missing"], total=options["total"], withheld=shown,
    )  # fmt: skip


def _everything(table: Table) -> Release:
    problem = Problem(table)
    return Release.from_suppression(problem, problem.withheld)
