"""Tabulate records: look at them once, group them by leaf cell and contributor, and add up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack

from tablesafe.core.errors import MissingExtra
from tablesafe.core.hierarchy import TOTAL, Hierarchy
from tablesafe.core.table import Table
from tablesafe.files.native import library_of
from tablesafe.tabulate.axes import make_axes
from tablesafe.tabulate.build import Cells, add_up
from tablesafe.tabulate.columns import scales
from tablesafe.tabulate.counted import FEWEST_COUNTED, could_be_counted, warn_of_counts
from tablesafe.tabulate.leaves import aggregate
from tablesafe.tabulate.origin import Origin
from tablesafe.tabulate.plan import ERROR, Plan, Progress, make_plan
from tablesafe.tabulate.records_and_columns import Columns, Records, ShortForm, by_name, gathered
from tablesafe.tabulate.scan import Scan, make_scan, words
from tablesafe.tabulate.sources import open_records, quoted, seal, session
from tablesafe.tabulate.survey import is_counted, survey


def tabulate(
    source: Any,
    *,
    dimensions: Mapping[str, Hierarchy | None] | Sequence[str],
    columns: Columns | Sequence[str] = (),
    largest: int = 3,
    margins: Iterable[Sequence[str]] | None = None,
    missing: str | Mapping[str, str] = ERROR,
    zeros: bool = False,
    total: str | Mapping[str, str] = TOTAL,
    column_of: Mapping[str, str] | None = None,
    cube: Literal["tie", "ignore"] = "tie",
    progress: Progress | None = None,
    **short: Unpack[ShortForm],
) -> Table:
    """Add up records into every cell of a table, with the count and the largest contributors of each cell.

    The records are a `ts.Records`: a file or frame, which of its records count (`where`), and how it is read. What
    their columns are is a `ts.Columns`: `value`, `respondent`, `holding`, `weight` and so on. The fields of both can be
    given here as keywords, in short: `ts.tabulate("firms.csv", dimensions=…, value="turnover", respondent="firm")`;
    `columns` is then a list of further columns to add up. Sums are exact: values are added as whole numbers of their
    smallest decimal unit.

    `dimensions` maps columns to hierarchies; records carry codes of leaves. A dimension without a hierarchy is flat:
    its codes add up to `total`. `column_of` gives the column of a dimension that is named otherwise. `margins` lists
    the wanted tables, each by its dimensions, as one linked table; without it every combination is there. `missing`
    says, for all dimensions or for each, what to do with records without a code: `"error"`, `"drop"`, or the code
    that they get, which joins the hierarchy below its total if need be. With `zeros` empty combinations are cells.

    `count` is the number of distinct respondents (of records, without `respondent`), never weighted. The `largest`
    contributors of each cell are kept, by the absolute value of what they reported, ties by name. Where contributions
    may be `negative`, an attacker cannot take a cell to be at least what it knows of it; counts of records never are.

    With a `frequency` column, `count` is its sum, and so is the table without a `value`; a value is the sum over the
    row's respondents, and a weight holds for each of them. Rows of 0 count nobody.

    As a condition of SQL, `where` takes text of a CSV file for numbers if every entry of the column is one; an Ibis
    table takes codes by column (`{"region": ["NO", "SE"]}`) or a function of it, and no SQL. With `engine="spark"`
    Spark reads the files: the session that is active, or one at the address `spark`.

    Margins of the same records are margins of one cross-classification, which nobody sees but which ties them
    together. Where that matters its cells are tabulated as unseen cells (see `Table.unseen`): never published, but
    looked at by every audit. With `cube="ignore"` they are not, and the audit says so.
    """
    records, described = gathered(source, columns, short)
    layout: dict[str, Any] = {
        "dimensions": dimensions, "largest": largest, "margins": margins, "missing": missing, "zeros": zeros,
        "total": total, "column_of": column_of, "cube": cube,
    }  # fmt: skip
    plan = make_plan(records, described, **layout)
    report = progress or _ignore
    source, engine = records.source, records.engine
    with session(records.memory_limit, records.threads, records.temporary) as (connection, private):
        if engine == "spark" and not _is_ibis(source):
            cells = _through_spark(connection, records, plan, private, report)
        elif engine == "ibis" or _is_ibis(source):
            cells = _through_ibis(connection, source, plan, report)
        else:
            report("Opening the records", 0, None)
            found = open_records(connection, source, private, delimiter=records.delimiter, wanted=_wanted(plan))
            seal(connection, found)
            cells = _through_duckdb(make_scan(connection, found, plan), report)
    report("Building the table", 0, None)
    origin = Origin(source, layout | by_name(records, described), plan, tabulate)
    made = replace(cells.joined(), origin=origin, library=library_of(source))
    if described.value is not None or described.weight is not None:
        return made
    return replace(made, empty="shown" if zeros else "left out")


def _through_duckdb(scan: Scan, progress: Progress) -> Cells:
    plan = scan.plan
    progress("Looking at the records", 0, None)
    found = survey(scan)
    axes = make_axes(plan, found.codes, found.missing, _locate(scan))
    units = scales(plan, found.extents, None if plan.weight is None else found.extents[plan.weight])
    progress("Grouping the records", 0, None)
    leaves = aggregate(scan, axes, units)
    if found.records >= FEWEST_COUNTED and len(leaves.cells()) == found.records:
        for column in could_be_counted(plan, scan.records.columns):
            if is_counted(scan, column):
                warn_of_counts(column, found.records, scan.records.name)
                break
    return add_up(leaves, axes, units, found.negative, scan.records.name, progress)


def _ignore(message: str, done: int, total: int | None) -> None:
    """Report nothing."""


def _wanted(plan: Plan) -> Any:
    named = words(plan.where) if isinstance(plan.where, str) else set()
    return lambda column: column in plan.columns or column.casefold() in named or bool(could_be_counted(plan, [column]))


def _locate(scan: Scan) -> Any:
    def where(dimension: int, code: str) -> str:
        found = scan.first(f"d{dimension} = {quoted(code)}", "NULL")
        return scan.records.name if found is None else found[0]

    return where


def _is_ibis(source: Any) -> bool:
    return type(source).__module__.split(".")[0] == "ibis"


def _through_spark(connection: Any, asked: Records, plan: Plan, private: Path, progress: Progress) -> Cells:
    """Have Spark read and group the records; what it finds wrong with them is said of the file."""
    from tablesafe.tabulate.spark import read_on_spark, reading, spark_session

    progress("Starting Spark", 0, None)
    with spark_session(asked.spark, private) as session:
        records, name = read_on_spark(session, asked.source, plan, private, asked.delimiter)
        filtered = replace(plan, where=None) if isinstance(plan.where, str) else plan
        with reading(name):
            return _through_ibis(connection, records, filtered, progress, name)


def _through_ibis(connection: Any, source: Any, plan: Plan, progress: Progress, name: str = "") -> Cells:
    try:
        from tablesafe.tabulate import expression
    except ImportError as error:
        raise MissingExtra("Tabulating an Ibis table", "ibis") from error
    progress("Looking at the records", 0, None)
    records = expression.as_ibis(source)
    name = name or expression.SOURCE
    found = expression.survey(records, plan, name)
    axes = make_axes(plan, found.codes, found.missing, lambda dimension, code: name)
    units = scales(plan, found.extents, None if plan.weight is None else found.extents[plan.weight])
    progress("Grouping the records", 0, None)
    leaves = expression.aggregate(connection, records, plan, axes, units)
    if found.records >= FEWEST_COUNTED and len(leaves.cells()) == found.records:
        for column in could_be_counted(plan, records.columns):
            if expression.is_counted(records, plan, column):
                warn_of_counts(column, found.records, name)
                break
    return add_up(leaves, axes, units, found.negative, name, progress)
