"""A table as an Excel workbook: colours and signs by status, the hierarchy as an outline, a legend.

Codes and labels are always written as text: nothing that begins with `=`, `+`, `-` or `@` can run as a formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from tablesafe.core.errors import MissingExtra
from tablesafe.files.write import whole_file
from tablesafe.report.cells import KINDS, WITHHELD_TEXT, Kind, OfficeCells, PublicCells
from tablesafe.report.excerpt import WORKBOOK, Excerpt, Slice
from tablesafe.report.layout import Layout

EXCEL_LEVELS = 7
"""Deeper outlines are not possible in Excel."""
MOST_NOTES = 2_000
"""Cells that get a note with what is known of them: more would make the file heavy."""
FORBIDDEN = str.maketrans(dict.fromkeys("[]:*?/\\'", " "))
MOST_LETTERS = 31
"""Of the name of a sheet."""
LONGEST_TEXT = 32_767
"""Letters that a cell holds."""
INTERNAL = "Internal: contains confidential values. Do not publish."


def write_sheet(
    layout: Layout, path: str | Path, *, title: str = "", verdict: Sequence[str] = (), private: bool = False
) -> tuple[str, ...]:
    """Write a layout as a workbook, a sheet per slice; what does not fit is said in the legend, and returned.

    The legend also repeats the `verdict`, its word and its lines.
    """
    try:
        import xlsxwriter
    except ImportError:
        raise MissingExtra("Writing Excel files", "excel") from None
    excerpt = Excerpt.of(layout, WORKBOOK)
    as_text = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with whole_file(path, private=private) as temporary:
        book = xlsxwriter.Workbook(str(temporary), {**as_text, "in_memory": True})  # no temporary files with cells
        try:
            book.set_properties({"created": datetime(2000, 1, 1), "title": title[:255]})  # equal tables, equal files
            writing = _Writing(book, layout)
            names = {"legend"}
            for each in excerpt.slices:
                writing.slice(each, _sheet_name(each, names))
            writing.legend(title, verdict, excerpt)
        finally:
            book.close()
    return excerpt.notes


class _Writing:
    """One workbook while it is written: its formats, and the notes that are left."""

    def __init__(self, book: Any, layout: Layout) -> None:
        self.book = book
        self.notes = MOST_NOTES
        view = layout.view
        decimals = view.decimals if isinstance(view, (OfficeCells, PublicCells)) else 0
        number = "#,##0" + ("." + "0" * decimals if decimals else "")
        self.bold = book.add_format({"bold": True})
        self.head = book.add_format(
            {"bold": True, "bottom": 2, "bg_color": "#E9EEF2", "text_wrap": True, "valign": "bottom"}
        )
        self.head_number = book.add_format(
            {"bold": True, "bottom": 2, "bg_color": "#E9EEF2", "text_wrap": True, "align": "right", "valign": "bottom"}
        )
        self.secret = book.add_format({"bold": True, "font_color": "#FFFFFF", "bg_color": Kind.OPEN.colour})
        self.wrap = book.add_format({"text_wrap": True, "valign": "top"})
        self.indents = [book.add_format({"indent": depth}) for depth in range(16)]
        self.kinds: dict[tuple[Kind, bool], Any] = {}
        for kind in KINDS:
            for bold in (False, True):
                look: dict[str, Any] = {"num_format": number, "align": "right", "bold": bold or kind is Kind.OPEN}
                if kind not in (Kind.PUBLISHED, Kind.ABSENT):
                    look["bg_color"] = kind.colour
                if kind is Kind.OPEN:
                    look["font_color"] = kind.ink
                if kind.sign and kind.sign != WITHHELD_TEXT:
                    look["num_format"] = f'{number} "{kind.sign}"'
                self.kinds[kind, bold] = book.add_format(look)

    def slice(self, each: Slice, name: str) -> None:
        """One slice on a sheet of its own: a line per code, folded from the second level where it is long."""
        sheet, layout, window = self.book.add_worksheet(name), each.layout, each.window
        sheet.outline_settings(True, False, True, False)
        row = self._top(sheet, layout, each)
        for j, line in enumerate(window.columns.tolist()):
            sheet.write_string(row, j + 1, layout.columns.heading(line)[:LONGEST_TEXT], self.head_number)
        sheet.write_string(row, 0, layout.rows.name, self.head)
        sheet.freeze_panes(row + 1, 1)
        sheet.set_column(
            0, 0, min(60, 4 + max((len(layout.rows.heading(r)) for r in window.rows[:500].tolist()), default=8))
        )
        sheet.set_column(1, max(1, len(window.columns)), 14)
        sheet.repeat_rows(row)
        sheet.set_landscape()
        sheet.fit_to_pages(1, 0)
        self._lines(sheet, each, row + 1)

    def _top(self, sheet: Any, layout: Layout, each: Slice) -> int:
        """What stands above the table; the row of its headings."""
        row = 0
        if layout.is_internal:
            sheet.write_string(row, 0, INTERNAL, self.secret)
            row += 1
        if each.name:
            sheet.write_string(row, 0, each.name[:LONGEST_TEXT], self.bold)
            row += 1
        return row

    def _lines(self, sheet: Any, each: Slice, first: int) -> None:
        layout, window = each.layout, each.window
        depth, children, opened = each.depth, each.has_children, each.open_depth
        values = _values(each)
        for i, line in enumerate(window.rows.tolist()):
            at, deep = first + i, depth[i]
            outline = {
                "level": min(deep, EXCEL_LEVELS), "hidden": deep > opened, "collapsed": children[i] and deep >= opened,
            }  # fmt: skip
            sheet.set_row(at, None, None, outline)
            sheet.write_string(at, 0, layout.rows.heading(line)[:LONGEST_TEXT], self.indents[min(deep, 15)])
            for j, kind in enumerate(window.kind[i]):
                self._cell(sheet, (at, j + 1), each, (i, j), kind, float(values[i, j]), children[i])

    def _cell(
        self, sheet: Any, at: tuple[int, int], each: Slice, place: tuple[int, int], kind: Kind, value: float, bold: bool
    ) -> None:
        look = self.kinds[kind, bold]
        if np.isfinite(value):
            sheet.write_number(*at, value, look)
        elif kind is not Kind.ABSENT:
            sheet.write_string(*at, each.window.text[place[0]][place[1]], look)
        if kind not in (Kind.PUBLISHED, Kind.ABSENT, Kind.WITHHELD, Kind.MAY_DIFFER) and self.notes > 0:
            self.notes -= 1
            sheet.write_comment(*at, each.window.hover(*place), {"author": "", "x_scale": 2.2, "y_scale": 1.6})

    def legend(self, title: str, verdict: Sequence[str], excerpt: Excerpt) -> None:
        """The verdict, what the colours and signs mean, and what the workbook leaves out."""
        sheet, layout = self.book.add_worksheet("legend"), excerpt.slices[0].layout
        sheet.set_column(0, 0, 22)
        sheet.set_column(1, 1, 10)
        sheet.set_column(2, 2, 70)
        row = 0
        if layout.is_internal:
            sheet.write_string(row, 0, INTERNAL, self.secret)
            row += 1
        if title:
            sheet.write_string(row, 0, title[:LONGEST_TEXT], self.bold)
            row += 2
        for line in verdict:
            sheet.write_string(row, 0, line[:LONGEST_TEXT])
            row += 1
        row += 1 if verdict else 0
        for column, name in enumerate(("status", "cells", "meaning")):
            sheet.write_string(row, column, name, self.head)
        for kind, number in layout.counts().items():
            row += 1
            sheet.write_string(
                row, 0, f"{kind.word} ({kind.sign})" if kind.sign else kind.word, self.kinds[kind, False]
            )
            sheet.write_number(row, 1, number)
            sheet.write_string(row, 2, kind.meaning, self.wrap)
        row += 2
        for note in excerpt.notes or ("The table is here as a whole.",):
            sheet.write_string(row, 0, note)
            row += 1


def _values(each: Slice) -> Any:
    """Numbers of the cells: what is published; in the office the true value of what is withheld. NaN for text."""
    window, view = each.window, each.layout.view
    there, cells = window.cell >= 0, np.maximum(window.cell, 0)
    if isinstance(view, PublicCells):
        values = view.release.values
    else:
        assert isinstance(view, OfficeCells)
        truth = view.problem.table.value
        values = truth if view.release is None else np.where(view.release.suppressed, truth, view.release.values)
    return np.where(there, values[cells] if len(values) else np.nan, np.nan)


def _sheet_name(each: Slice, taken: set[str]) -> str:
    """A name that Excel takes, and that no other sheet has."""
    words = " ".join(str(code) for code in each.filters.values()) or "table"
    plain = " ".join(words.translate(FORBIDDEN).split())[:MOST_LETTERS].strip() or "table"
    name, number = plain, 1
    while name.lower() in {other.lower() for other in taken} or name.lower() == "history":
        number += 1
        name = f"{plain[: MOST_LETTERS - len(str(number)) - 1]} {number}"
    taken.add(name)
    return name
