"""A look at the columns of a file of any size: DuckDB scans it, nothing is read whole."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tablesafe.io.frames import EXCEL_ENDINGS, read_frame
from tablesafe.io.jj import read_jj
from tablesafe.tabulate.sources import Column, Connection, Records, one_row, open_records, seal, session

MOST_COLUMNS = 400
"""Columns that are looked at."""
EXAMPLES = 8
LONGEST = 60
"""Letters of an example that are shown."""


def survey(path: Path, *, delimiter: str | None = None, sheet: str | None = None) -> list[dict[str, Any]]:
    """Every column: name, kind ("text", "numbers", "whole numbers"), rows, distinct and empty entries, a few examples.

    Files that describe cells one by one (JJ, .tab, .asc) have no columns of the user's making: the answer is empty.
    """
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix in {"jj", "tab", "asc"}:
        _require_readable(path, suffix)
        return []
    source: Any = path
    if path.suffix.lower() in EXCEL_ENDINGS:
        source = read_frame(path, sheet=sheet).frame
    with session(None, None, tempfile.gettempdir()) as (connection, private):
        records = open_records(connection, source, private, delimiter=delimiter, wanted=lambda name: True)
        if records.paths:
            seal(connection, records)
        return [_column(connection, records, name) for name in list(records.columns)[:MOST_COLUMNS]]


def _require_readable(path: Path, suffix: str) -> None:
    if suffix == "jj":
        read_jj(path)


def _column(connection: Connection, records: Records, name: str) -> dict[str, Any]:
    column = records.columns[name]
    text = f"nullif(trim(CAST({column.sql} AS VARCHAR)), '')"
    number = _number(column, text)
    rows, filled, distinct, numbers, whole = one_row(
        connection,
        f"SELECT count(*), count(t), count(DISTINCT t), count(n), count(*) FILTER (n = floor(n)) "
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
        "examples": [str(row[0])[:LONGEST] for row in examples],
    }


def _number(column: Column, text: str) -> str:
    """A column as numbers; text with decimal commas too."""
    if column.type != "VARCHAR":
        return f"TRY_CAST({column.sql} AS DOUBLE)"
    return f"TRY_CAST(replace({text}, ',', '.') AS DOUBLE)"
