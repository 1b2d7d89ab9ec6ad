"""The problem of a job that is being edited: its table is read once, the rules are judged each time."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tablesafe.core.errors import InvalidJob
from tablesafe.core.problem import Problem
from tablesafe.io.frames import read_frame
from tablesafe.io.jj import read_jj
from tablesafe.io.layout import EXCEL_ENDINGS, Crosstab
from tablesafe.job import Job
from tablesafe.job.checks import input_files
from tablesafe.job.decode import Fault
from tablesafe.job.toml import read_toml
from tablesafe.pipeline import build_problem, build_table
from tablesafe.pipeline.columns import extra_columns
from tablesafe.rules.needs import contributors_needed
from tablesafe.tabulate.sources import Column, Connection, Records, one_row, open_records, quoted, seal, session
from tablesafe.web.child import Desk
from tablesafe.web.drafts import JOB_FILE

if TYPE_CHECKING:
    from tablesafe.core.problem import Problem
    from tablesafe.core.table import Table
    from tablesafe.job import Job
    from tablesafe.pipeline import Result


RULES = ("rules",)
"""The key of a job that says what is sensitive."""


def preview(desk: Desk, job: Job) -> Problem:
    """The problem of a job; the last one, and the last table, are kept."""
    job = replace(job, run=replace(job.run, executor="here"))
    if desk.loaded.get("problem key") != (key := _key(job, job.rules, job.problem)):
        table = None if job.source.holds == "problem" else _table(desk, job)
        desk.loaded["problem"] = build_problem(job, table=table)
        desk.loaded["problem key"] = key
    found: Problem = desk.loaded["problem"]
    return found


def _table(desk: Desk, job: Job) -> Any:
    key = _key(job, contributors_needed(job.rules), extra_columns(job))
    if desk.loaded.get("table key") != key:
        desk.loaded.pop("problem key", None)
        desk.loaded["table"] = build_table(job)
        desk.loaded["table key"] = key
    return desk.loaded["table"]


def _key(job: Job, *more: Any) -> str:
    """What a table depends on: the parts of the job that say where it comes from, and the files themselves."""
    stamps = []
    for _, name in input_files(job):
        about = job.resolve(name).stat()
        stamps.append((name, about.st_mtime_ns, about.st_size, about.st_ino))
    return repr((job.source, job.dimensions, job.response, job.tables, job.run, stamps, more))


# A look at the columns of a file of any size: DuckDB scans it, nothing is read whole.


MOST_COLUMNS = 400
"""Columns that are looked at."""
EXAMPLES = 8
"""Entries of a column that are shown, the most frequent ones."""
LONGEST = 60
"""Letters of an example that are shown."""


def survey(
    path: Path,
    *,
    delimiter: str | None = None,
    sheet: str | None = None,
    layout: Crosstab | None = None,
    empty: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Every column: name, kind ("text", "numbers", "whole numbers"), rows, distinct, empty and negative entries, a few
    examples. The texts of `empty` stand for nothing.

    Files that describe cells one by one (JJ, .tab, .asc) have no columns of the user's making: the answer is empty.
    """
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix in {"jj", "tab", "asc"}:
        _require_readable(path, suffix)
        return []
    source: Any = path
    if layout is not None or path.suffix.lower() in EXCEL_ENDINGS:
        source = read_frame(path, sheet=sheet, delimiter=delimiter, layout=layout).frame
    with session(None, None, tempfile.gettempdir()) as (connection, private):
        records = open_records(connection, source, private, delimiter=delimiter, wanted=lambda name: True)
        if records.paths:
            seal(connection, records)
        return [_column(connection, records, name, empty) for name in list(records.columns)[:MOST_COLUMNS]]


def _require_readable(path: Path, suffix: str) -> None:
    if suffix == "jj":
        read_jj(path)


def _column(connection: Connection, records: Records, name: str, empty: Sequence[str]) -> dict[str, Any]:
    column = records.columns[name]
    text = f"nullif(trim(CAST({column.sql} AS VARCHAR)), '')"
    for nothing in empty:
        text = f"nullif({text}, {quoted(nothing)})"
    number = _number(column, text)
    rows, filled, distinct, numbers, whole, negative = one_row(
        connection,
        f"SELECT count(*), count(t), count(DISTINCT t), count(n), count(*) FILTER (n = floor(n)), "
        f"count(*) FILTER (n < 0) "
        f"FROM (SELECT {text} AS t, {number} AS n FROM {records.relation})",
    )
    numeric = filled > 0 and numbers == filled
    if numeric and whole == numbers and column.type in {"DOUBLE", "FLOAT"}:  # as spreadsheets hold whole numbers
        text = f"CAST(TRY_CAST({column.sql} AS HUGEINT) AS VARCHAR)"
    examples = connection.sql(
        f"SELECT t FROM (SELECT {text} AS t FROM {records.relation}) WHERE t IS NOT NULL "
        f"GROUP BY t ORDER BY count(*) DESC, t LIMIT {EXAMPLES}"
    ).fetchall()
    return {
        "name": name,
        "kind": "text" if not numeric else "whole numbers" if whole == numbers else "numbers",
        "rows": rows,
        "distinct": distinct,
        "empty": rows - filled,
        "negative": negative if numeric else 0,
        "examples": [str(row[0])[:LONGEST] for row in examples],
    }


def _number(column: Column, text: str) -> str:
    """A column as numbers; text with decimal commas too."""
    if column.type != "VARCHAR":
        return f"TRY_CAST({column.sql} AS DOUBLE)"
    return f"TRY_CAST(replace({text}, ',', '.') AS DOUBLE)"


# Tasks on data that is being looked at. They run in the worker process of a session, never in the server.


KEPT_RESULTS = 4
"""Finished runs that a worker keeps in memory to show and compare."""


def columns(desk: Desk, name: str, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every column of a file: name, kind, how many rows, distinct and empty entries, a few examples."""
    from tablesafe.web.desk import survey

    layout = layout_of(options) if options.get("layout") == CROSSTAB else None
    return survey(
        desk.folder / name, delimiter=options.get("delimiter"), sheet=options.get("sheet"), layout=layout,
        empty=options.get("empty") or (),
    )  # fmt: skip


CROSSTAB = "crosstab"
READING = ("delimiter", "sheet", "layout", "area", "header_rows", "label_columns", "empty")
"""Keys of the source that say how its file is read."""


def layout_of(options: Mapping[str, Any]) -> Crosstab:
    """How a sheet is laid out, as far as it is said."""
    rows, labels = options.get("header_rows"), options.get("label_columns")
    return Crosstab(area=options.get("area"), header_rows=rows, label_columns=labels)


def understood(desk: Desk, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What is understood of a printed table: in lines, and at the beginning of the sheet cell by cell."""
    from tablesafe.io.crosstab import understand

    found = understand(desk.folder / name, options.get("sheet"), layout_of(options), options.get("delimiter"))
    return {"lines": found.lines, "excerpt": found.excerpt}


def suggest(desk: Desk, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A first draft of a job for a file, from a look at its columns, as `tablesafe init` makes one."""
    from tablesafe.io.frames import read_as_found
    from tablesafe.job.draft import draft_text
    from tablesafe.job.model import Source

    path = desk.folder / name
    if Source(file=name).holds == "problem":
        return {"source": {"file": name}}
    asked = None if options.get("layout") is None else options["layout"] == CROSSTAB
    source, found = read_as_found(
        path, sheet=options.get("sheet"), delimiter=options.get("delimiter"), crosstab=asked, said=layout_of(options)
    )
    dimensions = None if found is None else found.dimensions
    text, _ = draft_text(path.absolute(), source, desk.folder.absolute(), crosstab=dimensions)
    draft = {key: value for key, value in tomllib.loads(text).items() if value != {}}  # parts of which nothing is set
    for key in READING:
        if options.get(key):
            draft["source"][key] = options[key]
    return draft


def table(desk: Desk, job: str) -> dict[str, Any]:
    """The table of a job in numbers; it is kept for what is asked next."""
    return facts_of(problem_of(desk, job))


def sensitivity(desk: Desk, job: str) -> dict[str, Any]:
    """How many cells the rules of a job call sensitive, in all and by level; the table is not read again."""
    return facts_of(problem_of(desk, job))


def facts_of(problem: Problem) -> dict[str, Any]:
    """A problem in numbers."""
    found = problem.table
    return {
        "cells": len(found),
        "equations": int(found.equations.shape[0]),
        "dimensions": {name: len(tree.codes) for name, tree in found.dimensions.items()},
        "sensitive": len(problem.sensitive),
        "frozen": int(problem.frozen.sum()),
        "suppressed": int(problem.suppressed.sum()),
        "rules": [str(rule) for rule in problem.rules],
    }


def job_of(desk: Desk, text: str) -> Job:
    """The job that a text describes, in the folder of the workspace.

    One without rules can be looked at too: whoever has nothing but a printed table says by hand what is sensitive.
    """
    from tablesafe.job import parse_job
    from tablesafe.job.load import examine

    path = desk.folder / JOB_FILE
    try:
        return parse_job(text, path)
    except InvalidJob as error:
        if tuple(error.about) != RULES:
            raise
        job, faults = examine(read_toml(text), path, {})
        if job is None or not lacks_only_rules(faults):
            raise
        return job


def lacks_only_rules(faults: Sequence[Fault]) -> bool:
    """Whether nothing is wrong with a job but that it does not say yet what is sensitive."""
    return [tuple(fault.path) for fault in faults] == [RULES]


def problem_of(desk: Desk, text: str) -> Problem:
    """The problem of a job. Its table is kept as long as the files and keys it comes from stay the same."""
    from tablesafe.web.desk import preview

    return preview(desk, job_of(desk, text))


def kept_at(run: Path) -> Path:
    """Where the result of a run is kept: beside its folder, in which files lie under names that others chose."""
    return run.with_name(f"{run.name}.frozen")


def result_of(desk: Desk, run: str) -> Result:
    """The result of a finished run, by the name of its folder; a few are kept."""
    kept: dict[str, Result] = desk.loaded.setdefault("results", {})
    if run not in kept:
        from tablesafe.files.serialization import thaw

        found: Result = thaw(kept_at(desk.folder / "runs" / Path(run).name).read_bytes())
        kept[run] = found
        while len(kept) > KEPT_RESULTS:
            kept.pop(next(iter(kept)))
    return kept[run]


def table_of(desk: Desk, text: str) -> Table:
    """The table of a job."""
    return problem_of(desk, text).table
