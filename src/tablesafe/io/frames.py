"""Cells and releases as CSV, Parquet and Excel.

A release on file holds what may be published and nothing else: the codes, the values (empty where withheld) and whether
a cell is published or confidential. `confidential=True` writes the office's own view instead, with every value, the
reason and, in Excel, a colour per status.

Spreadsheets run text that begins with `=`, `+`, `-` or `@` as a formula. In Excel files codes are always written as
text, so nothing can run. A CSV file has no types: a release on file, which strangers open in spreadsheets, has an
apostrophe before such codes, which spreadsheets hide. Our own readers take it off; `guard_formulas=False` leaves it out
for programs that do not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.errors import InvalidFile, InvalidOption, MissingExtra
from tablesafe.core.language import text
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table
from tablesafe.files.read import Source, read_source
from tablesafe.files.write import whole_file
from tablesafe.io.crosstab import Understood, is_crosstab, understand
from tablesafe.io.dataset import Dataset
from tablesafe.io.formats import format_of
from tablesafe.io.layout import EXCEL_ENDINGS, TEXT_ENDINGS, Crosstab
from tablesafe.io.workbook import load_sheet

COLOURS: dict[str, str] = {
    "published": "#FFFFFF",
    "confidential": "#D9D9D9",
    Status.SENSITIVE.word: "#F4B6B6",
    Status.COMPLEMENTARY.word: "#BBD3F2",
    Status.GIVEN.word: "#D9CCE8",
    Status.BY_DESIGN.word: "#D9D9D9",
    Status.CHANGED.word: "#FCE8B2",
}
EXCEL_ROWS = 1_048_575
"""Rows of a sheet of Excel, without its first line."""
EXCEL_TEXT = 32_767
"""Letters of one cell of a sheet: of longer texts nothing would be there."""
_FORMULA = r"^'*[=+\-@\t\r]"
"""What a spreadsheet would run; and what looks like that guarded, which needs a guard to be told from it."""


def read_frame(
    path: str | Path, *, sheet: str | None = None, delimiter: str | None = None, layout: Crosstab | None = None
) -> Source:
    """Read a file as rows and columns, by its ending; CSV columns stay text until asked for as numbers.

    With a `layout`, a sheet of a workbook, or a CSV file, has codes down its side and across its top.
    """
    path = Path(path)
    if layout is not None:
        _require_sheet(path)
        return understand(path, sheet, layout, delimiter).rows
    if path.suffix.lower() in EXCEL_ENDINGS:
        return read_excel(path, sheet=sheet)
    if (own := format_of(path)) is not None:
        found = own.read(path)
        return found.rows if isinstance(found, Dataset) else found
    return read_source(path, delimiter=delimiter)


def read_as_found(
    path: Path, *, sheet: str | None = None, delimiter: str | None = None, crosstab: bool | None = None,
    said: Crosstab | None = None,
) -> tuple[Source, Understood | None]:  # fmt: skip
    """The rows of a file as they are found in it; of a crosstab also what was understood of it.

    Whether it is one is looked at, unless `crosstab` tells.
    """
    if crosstab is None:
        crosstab = path.suffix.lower() in (*EXCEL_ENDINGS, *TEXT_ENDINGS) and is_crosstab(path, sheet)
    if not crosstab:
        return read_frame(path, sheet=sheet, delimiter=delimiter), None
    _require_sheet(path)
    found = understand(path, sheet, said or Crosstab(), delimiter)
    return found.rows, found


def _require_sheet(path: Path) -> None:
    if path.suffix.lower() not in (*EXCEL_ENDINGS, *TEXT_ENDINGS):
        raise InvalidOption(
            f"{path.name} is no workbook and no CSV file: only these are read as crosstabs.",
            hint="leave the layout out, or give an Excel or CSV file.",
            about=("source", "layout"),
        )


def read_excel(path: str | Path, *, sheet: str | None = None) -> Source:
    """Read one sheet of a workbook, by default its only one; the first row names the columns."""
    path = Path(path)
    frame, chosen = load_sheet(path, sheet)
    if frame.height == 0:
        raise InvalidFile(
            text("Sheet {chosen!r} of {name} has no rows below its names.", chosen=chosen, name=path.name),
            hint="the first row names the columns.",
        )
    return Source(frame, path.name, first_line=2)


def write_cells(table: Table, path: str | Path, *, guard_formulas: bool = False) -> None:
    """Write every cell of a table with its codes, value and count. Confidential."""
    write_frame(table.cells(), path, guard_formulas=guard_formulas)


def write_release(
    release: Release,
    path: str | Path,
    *,
    problem: Problem | None = None,
    confidential: bool = False,
    labels: bool = False,
    intervals: bool = False,
    guard_formulas: bool = True,
) -> None:
    """Write a release: what may be published and nothing else, or with `confidential` the office's own view of it.

    The office's view needs no `problem`, but with one it says which rules made a cell sensitive.
    """
    if (own := format_of(path)) is not None:
        own.write(Dataset.of_release(release, problem=problem, confidential=confidential), Path(path))
        return
    frame = office_view(release, problem) if confidential else release.frame(labels=labels, intervals=intervals)
    write_frame(frame, path, colour=release.status_heading, guard_formulas=guard_formulas)


def office_view(release: Release, problem: Problem | None = None) -> pl.DataFrame:
    """Every cell with its true value, what is published of it, its status and the reasons. Confidential."""
    table = release.table
    words, seen = np.array([status.word for status in Status]), release.table.seen
    columns: dict[str, Any] = dict(table.cells().to_dict())
    columns["published"] = pl.Series(release.values[:seen], nan_to_null=True)
    columns[release.status_heading] = pl.Series(words[release.status[:seen]], dtype=pl.String)
    if problem is not None:
        columns["reason"] = _reasons(problem)[:seen]
        columns["lower level"] = problem.sensitivity.lower[:seen]
        columns["upper level"] = problem.sensitivity.upper[:seen]
        columns["cost"] = problem.cost[:seen]
    return pl.DataFrame(columns)


def write_frame(
    frame: pl.DataFrame,
    path: str | Path,
    *,
    colour: str | None = None,
    guard_formulas: bool = False,
    colours: Mapping[str, str] = COLOURS,
) -> None:
    """Write a frame as its ending says: `.csv`, `.parquet` or `.xlsx`; `colour` names the column that colours rows."""
    path = Path(path)
    ending = path.suffix.lower()
    with whole_file(path) as temporary:
        if ending == ".csv":
            (guarded(frame) if guard_formulas else frame).write_csv(temporary)
        elif ending in {".parquet", ".pq"}:
            frame.write_parquet(temporary)
        elif ending == ".xlsx":
            _write_excel(frame, temporary, colour, colours)
        else:
            raise InvalidOption(f"{path.name} ends in {ending!r}.", hint=".csv, .parquet and .xlsx are written.")


def guarded(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with an apostrophe before text that a spreadsheet would run as a formula."""
    text = pl.col(pl.String)
    names = {name: "'" + name for name in frame.columns if re.match(_FORMULA, name)}
    guarded = frame.with_columns(pl.when(text.str.contains(_FORMULA)).then("'" + text).otherwise(text).name.keep())
    return guarded.rename(names)


def unguarded(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame without the apostrophes that keep spreadsheets from running its codes."""
    text = pl.col(pl.String)
    names = {name: name[1:] for name in frame.columns if name.startswith("'") and re.match(_FORMULA, name[1:])}
    bare = text.str.slice(1)
    guard = text.str.starts_with("'") & bare.str.contains(_FORMULA)
    return frame.with_columns(pl.when(guard).then(bare).otherwise(text).name.keep()).rename(names)


def _reasons(problem: Problem) -> pl.Series:
    """The names of the rules that flagged each cell."""
    sensitivity = problem.sensitivity
    patterns, which = np.unique(np.where(sensitivity.mask, sensitivity.reason, 0), return_inverse=True)
    names = [
        ", ".join(name for j, name in enumerate(sensitivity.reasons) if int(pattern) >> j & 1) for pattern in patterns
    ]
    return pl.Series(names, dtype=pl.String).gather(which.astype(np.uint32))


def _longest(column: pl.Series) -> str:
    """The longest text of a column, if it holds text."""
    if column.dtype != pl.String or not column.len():
        return ""
    return str(column[int(column.str.len_chars().fill_null(0).arg_max() or 0)] or "")


def _write_excel(frame: pl.DataFrame, path: Path, colour: str | None, colours: Mapping[str, str]) -> None:
    try:
        import xlsxwriter
    except ImportError:
        raise MissingExtra("Writing Excel files", "excel") from None
    if frame.height > EXCEL_ROWS:
        raise InvalidOption(
            f"{frame.height:,} rows are more than an Excel sheet holds.", hint="write .csv or .parquet."
        )
    longest = max((len(text) for name in frame.columns for text in (name, _longest(frame[name]))), default=0)
    if longest > EXCEL_TEXT:
        raise InvalidOption(
            f"A text of {longest:,} letters is longer than an Excel cell holds.", hint="write .csv or .parquet."
        )
    as_text = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    workbook = xlsxwriter.Workbook(str(path), {**as_text, "in_memory": True})  # no temporary files with cells in them
    try:
        workbook.set_properties({"created": datetime(2000, 1, 1)})  # equal tables, equal files
        sheet = workbook.add_worksheet("cells")
        bold = workbook.add_format({"bold": True, "bottom": 1})
        formats = {word: workbook.add_format({"bg_color": shade}) for word, shade in colours.items()}
        sheet.freeze_panes(1, 0)
        for column, name in enumerate(frame.columns):
            sheet.set_column(column, column, min(40, max(10, len(name) + 2)))
            sheet.write_string(0, column, name, bold)
        words = frame[colour].to_list() if colour in frame.columns else [None] * frame.height
        for row, (values, word) in enumerate(zip(frame.iter_rows(), words, strict=True), start=1):
            shade = formats.get(str(word)) if word != "published" else None
            for column, value in enumerate(values):
                if isinstance(value, str) or (isinstance(value, float) and math.isinf(value)):
                    sheet.write_string(row, column, str(value), shade)  # no number of Excel is infinite
                elif value is None:
                    sheet.write_blank(row, column, None, shade)
                else:
                    sheet.write_number(row, column, value, shade)
    finally:
        workbook.close()
