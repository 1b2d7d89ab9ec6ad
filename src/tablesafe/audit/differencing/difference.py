"""Differencing: what several published tables give away together that none of them gives away alone.

Tables that differ by a few units (persons from 16 and persons from 18; districts and grid squares; with and without a
branch) tell those few units apart. All tables together are one linked system: its inner cells, the parts, are never
published, and every published cell is a sum of them. What follows by subtraction is judged like a published cell.

Finished tables that know the records they were made from: their contributors can be had, and need no guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from tablesafe.audit.differencing.disclosures import Differences, Published
from tablesafe.audit.differencing.finished import from_tables
from tablesafe.audit.differencing.records import from_records
from tablesafe.core.errors import InvalidOption
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Rule
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


# -- differences -------------------------------------------------------------------------------------------------------


def difference(
    source: Any,
    tables: Sequence[Published] | None = None,
    *,
    rules: Sequence[Rule],
    value: str | None = None,
    respondent: str | None = None,
    holding: str | None = None,
    weight: str | None = None,
    largest: int = 5,
    dimensions: Mapping[str, Hierarchy] | None = None,
    correspondence: Mapping[str, Any] | None = None,
    integers: bool | None = None,
) -> Differences:
    """Find what several tables give away together: what subtracting them from each other leaves, and more.

    With records as `source` (a file or a frame), `tables` lists what is published of them: `Published(name=...,
    dimensions=..., where=...)`. Every difference is judged by the `rules` with its own contributors; `value`,
    `respondent`, `holding`, `weight` and `largest` are those of `tabulate`.

    Without records, `source` holds the tables themselves: a mapping from names to tables or releases, all of the same
    response. `dimensions` gives hierarchies that hold the codes of all of them, with the parts that none shows, such as
    `16+ = 18+ + 16-17`; `correspondence` does so for overlapping areas: a frame with one row per smallest area and a
    column for each way to divide the country. Tables that `tabulate` made from the same records are judged with their
    contributors. Of others only the numbers of contributors are known, so the rules can count only, and these numbers
    cannot be subtracted: what is derived and may have too few contributors is *possibly* open, and then not safe.
    With `integers` (by default for counts) the attacker knows that values are whole numbers.
    """
    if not rules:
        raise InvalidOption("difference needs rules to judge what it finds.", hint="rules=[ts.Threshold(n=3)]")
    if isinstance(source, Mapping) and source and all(isinstance(each, Table | Release) for each in source.values()):
        if tables is not None or value is not None or respondent is not None:
            raise InvalidOption("tables=, value= and respondent= go with records, but the source is finished tables.")
        known = None if dimensions or correspondence or len(source) < 2 else as_records(source)
        if known is not None:
            records, published, added = known
            return from_records(records, published, rules, added, integers)
        return from_tables(source, rules, dimensions or {}, correspondence or {}, integers)
    if isinstance(source, Table | Release):
        raise InvalidOption(
            f"difference takes records, or several tables by name; the source is one {type(source).__name__.lower()}.",
            hint="ts.difference({'first': one, 'second': other}, rules=[...])",
        )
    if not tables:
        raise InvalidOption(
            "Which tables are published of these records?",
            hint="tables=[ts.Published(name='16+', dimensions=['region'], where='age >= 16'), ...]",
        )
    if dimensions or correspondence:
        raise InvalidOption(
            "dimensions= and correspondence= go with finished tables; records say themselves what they are."
        )
    options = {
        "value": value, "respondent": respondent, "holding": holding, "weight": weight, "largest": largest,
    }  # fmt: skip
    return from_records(source, tables, rules, options, integers)
