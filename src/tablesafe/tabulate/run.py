"""Tabulate records: look at them once, group them by leaf cell and contributor, and add up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

from tablesafe.core.errors import InvalidOption, MissingExtra
from tablesafe.core.hierarchy import TOTAL, Hierarchy
from tablesafe.core.table import Negative, Table
from tablesafe.files.native import library_of
from tablesafe.tabulate.axes import make_axes
from tablesafe.tabulate.build import Cells, add_up
from tablesafe.tabulate.columns import scales
from tablesafe.tabulate.counted import FEWEST_COUNTED, could_be_counted, refuse_with_frequency, warn_of_counts
from tablesafe.tabulate.leaves import aggregate
from tablesafe.tabulate.origin import Origin
from tablesafe.tabulate.plan import ERROR, Engine, Equations, Plan, Progress, Where, make_plan
from tablesafe.tabulate.scan import Scan, make_scan, words
from tablesafe.tabulate.sources import open_records, quoted, seal, session
from tablesafe.tabulate.survey import is_counted, survey


def tabulate(
    source: Any,
    *,
    dimensions: Mapping[str, Hierarchy | None] | Sequence[str],
    value: str | Sequence[str] | None = None,
    respondent: str | None = None,
    holding: str | None = None,
    weight: str | None = None,
    frequency: str | None = None,
    largest: int = 3,
    where: Where = None,
    margins: Iterable[Sequence[str]] | None = None,
    missing: str | Mapping[str, str] = ERROR,
    equations: Equations | None = None,
    shadow: str | None = None,
    cost: str | None = None,
    columns: Sequence[str] = (),
    request: str | None = None,
    zeros: bool = False,
    total: str | Mapping[str, str] = TOTAL,
    column_of: Mapping[str, str] | None = None,
    empty: Sequence[str] = (),
    negative: Negative = "auto",
    cube: Literal["tie", "ignore"] = "tie",
    delimiter: str | None = None,
    engine: Engine = "auto",
    spark: str | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    temporary: str | Path | None = None,
    progress: Progress | None = None,
) -> Table:
    """Add up records into every cell of a table, with the count and the largest contributors of each cell.

    `source` is a CSV or Parquet file (or a list, a pattern or a folder of files), a pandas, polars or Arrow frame, or
    an Ibis table, which its own engine (a database, Spark) aggregates. Files may be larger than memory. With
    `engine="spark"` Spark reads the files: the session that is active, or one at the address `spark`.

    `dimensions` maps columns to hierarchies; records carry codes of leaves. A dimension without a hierarchy is flat:
    its codes add up to `total`. `column_of` gives the column of a dimension that is named otherwise. `margins` lists
    the wanted tables, each by its dimensions, as one linked table; without it every combination is there. `missing`
    says, for all dimensions or for each, what to do with records without a code: `"error"`, `"drop"`, or the code
    that they get, which joins the hierarchy below its total if need be. `empty` lists texts, such as `NA`, that stand
    for nothing. With `zeros` empty combinations are cells.

    `value` names the column to add up; without it, records are counted. Several columns make one table with a
    dimension `response`, tied together by `equations`; a total that they name and `value` does not is computed. With
    a `weight` values are weighted sums. `columns` are further columns to add up; `cost` becomes the column `cost`. Sums
    are exact: values are added as whole numbers of their smallest decimal unit.

    `count` is the number of distinct respondents (of records, without `respondent`), never weighted. Contributors are
    respondents, or holdings where `holding` is given; a respondent without a holding stands alone. The `largest` of
    each cell are kept by the absolute value of what they reported, ties by name. A `shadow` variable takes the place
    of the value in this, with its total in the column `shadow`. A `request` column holds a number per record, 0 for
    none; the table's column of that name holds that of each cell's largest contributor.

    `negative` says whether contributions may be negative, so that an attacker cannot take a cell to be at least what it
    knows of it: `"auto"` when a record is, `"possible"` for profits and balances whatever these records show, `"never"`
    to refuse negative records. Counts of records are never negative.

    A `frequency` column says how many respondents each row stands for, as in data that are counted already: `count` is
    then its sum, and so is the table without a `value`; a value is the sum over the row's respondents, and a weight
    holds for each of them. Rows of 0 count nobody. Who they are, and how much each reported, nobody knows: the largest
    contributors are not kept, and rules that look at them cannot be judged.

    `where` keeps some records: an SQL condition (`"year = 2024"`), codes by column (`{"region": ["NO", "SE"]}`), or,
    for an Ibis table, a function of it (and no SQL). Text of a CSV file counts as numbers there if every entry of the
    column is one.

    Margins of the same records are margins of one cross-classification, which nobody sees but which ties them
    together. Where that matters its cells are tabulated as unseen cells (see `Table.unseen`): never published, but
    looked at by every audit. With `cube="ignore"` they are not, and the audit says so.
    """
    options = {name: given for name, given in locals().items() if name not in {"source", "progress"}}
    refuse_with_frequency(
        frequency, [("respondent", respondent), ("holding", holding), ("request", request), ("shadow", shadow)]
    )
    plan = make_plan(
        dimensions=dimensions, column_of=column_of, value=value, equations=equations, respondent=respondent,
        holding=holding, weight=weight, frequency=frequency, largest=largest, where=where, margins=margins,
        missing=missing, shadow=shadow, cost=cost, columns=columns, request=request, zeros=zeros, total=total,
        empty=empty, negative=negative, cube=cube,
    )  # fmt: skip
    if engine not in get_args(Engine):
        raise InvalidOption(f"engine must be 'auto', 'duckdb', 'ibis' or 'spark', got {engine!r}.")
    report = progress or _ignore
    with session(memory_limit, threads, temporary) as (connection, private):
        if engine == "spark" and not _is_ibis(source):
            cells = _through_spark(connection, source, plan, private, delimiter, spark, report)
        elif engine == "ibis" or _is_ibis(source):
            cells = _through_ibis(connection, source, plan, report)
        else:
            report("Opening the records", 0, None)
            records = open_records(connection, source, private, delimiter=delimiter, wanted=_wanted(plan))
            seal(connection, records)
            cells = _through_duckdb(make_scan(connection, records, plan), report)
    report("Building the table", 0, None)
    origin = Origin(source, options, plan, tabulate)
    return replace(cells.joined(), origin=origin, library=library_of(source))


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


def _through_spark(
    connection: Any, source: Any, plan: Plan, private: Path, delimiter: str | None, master: str | None,
    progress: Progress,
) -> Cells:  # fmt: skip
    """Have Spark read and group the records; what it finds wrong with them is said of the file."""
    from tablesafe.tabulate.spark import read_on_spark, reading, spark_session

    progress("Starting Spark", 0, None)
    with spark_session(master, private) as session:
        records, name = read_on_spark(session, source, plan, private, delimiter)
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
