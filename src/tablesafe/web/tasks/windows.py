"""Tasks: windows of a table, as the browser draws them. They run in the worker process of a session.

A view is plain data and says all there is to know, so that nothing is lost when a worker is started anew:
`of` (`{"run": NAME}` or `{"job": TEXT}`), `rows`, `columns`, `filters`, `truth` (show true values), `opened` (`start`,
`all` or `none`), `turned` (lines folded otherwise, by axis), and `against` (runs whose differences are marked).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.language import THOUSANDS, Language, language
from tablesafe.report.axis import Axis
from tablesafe.report.cells import KINDS, NUMBER, Kind, OfficeCells, derives
from tablesafe.report.layout import Layout, Window
from tablesafe.web.child import Desk
from tablesafe.web.desk import problem_of, result_of

MOST_LINES = 400
"""Lines of one window, whatever a browser asks for."""
MOST_COPIED = 200_000
"""Cells that are copied at a time."""
NUMERAL = re.compile(rf"[-−]?\d[\d,.{THOUSANDS}]*")
"""A number as people read it, in any language."""
OPEN_AT_FIRST = 120
"""A hierarchy is unfolded level by level as long as no more lines than these show."""
KEPT = 6
"""Layouts that are kept for the next window."""
LONGEST_S = 10.0
"""Seconds for what an attacker derives of one cell."""
ASK = "Click on it, or go there with the arrow keys, for what an attacker derives"
"""What is said of a cell of which more can be found out."""
TOO_LONG = 'What an attacker derives takes long to find: set cells to "all" in the audit of the method, and run again'
View = Mapping[str, Any]


def window(desk: Desk, view: View, span: Sequence[int]) -> dict[str, Any]:
    """The headings and cells of a window (first and last line down, first and last across), and how many there are."""
    layout = layout_of(desk, view)
    down, across = _shown(layout, view, "row"), _shown(layout, view, "column")
    first, left = (min(max(int(at), 0), max(len(lines) - 1, 0)) for at, lines in ((span[0], down), (span[2], across)))
    last, right = min(int(span[1]), first + MOST_LINES), min(int(span[3]), left + MOST_LINES)
    part = layout.window(down[first:last], across[left:right])
    text = part.truth if view.get("truth") else part.text
    differs, told = _differing(desk, view, layout), _Told.of(desk, view, part)
    rows = _heads(layout.rows, part.rows, view, "row")
    for i, row in enumerate(rows):
        row["cells"] = [
            (
                text[i][j],
                kind.css + (" ts-differs" if differs is not None and differs[part.cell[i, j]] else ""),
                "" if text[i][j] == kind.sign else kind.sign,
                *told.at(i, j),
                int(part.cell[i, j]),
            )
            for j, kind in enumerate(part.kind[i])
        ]
    return {
        "first": first, "left": left, "rows": rows, "heads": _heads(layout.columns, part.columns, view, "column"),
        "corner": " / ".join(filter(None, (layout.rows.name, layout.columns.name))),
        "count": [len(down), len(across)],
    }  # fmt: skip


def as_text(desk: Desk, view: View) -> tuple[str, int, int]:
    """The whole view as lines with tabs, for a spreadsheet; how many lines these are, and how many there would be.

    Of a very large view they are the first.
    """
    layout = layout_of(desk, view)
    down, across = _shown(layout, view, "row"), _shown(layout, view, "column")
    part = layout.window(down[: max(1, MOST_COPIED // max(len(across), 1))], across)
    text = part.truth if view.get("truth") else part.text
    corner = " / ".join(filter(None, (layout.rows.name, layout.columns.name)))
    speech = language(desk.language)
    lines = [[corner, *(layout.columns.heading(line) for line in part.columns.tolist())]]
    for i, line in enumerate(part.rows.tolist()):
        lines.append([layout.rows.heading(line), *(plain(cell, speech) for cell in text[i])])
    return "\n".join("\t".join(line) for line in lines), len(lines) - 1, len(down)


def plain(text: str, speech: Language) -> str:
    """A number without what stands between its thousands, as spreadsheets read it; any other text as it is."""
    if not NUMERAL.fullmatch(text):
        return text
    return text.replace(speech.number(","), "")


@dataclass(frozen=True, slots=True)
class _Told:
    """What is said of the cells of a window, with what was found on request."""

    part: Window
    may_be_asked: Mask
    found: Mapping[int, str]
    truth: bool
    ask: str

    @classmethod
    def of(cls, desk: Desk, view: View, part: Window) -> Self:
        """The cells of a window; of runs only can more be asked."""
        cells, shown = np.maximum(part.cell, 0), part.layout.view
        asked = np.zeros(part.cell.shape, dtype=np.bool_)
        if isinstance(shown, OfficeCells) and "run" in view["of"] and part.cell.size:
            asked = shown.may_be_asked(cells) & (part.cell >= 0)
        found = _found(desk, view["of"].get("run", ""))
        return cls(part, asked, found, shows_truth(view), language(desk.language).say(ASK))

    def at(self, i: int, j: int) -> tuple[str, int]:
        """What to say of a cell, and its number if more can be found out about it, else −1."""
        words = self.part.hover(i, j, truth=self.truth)
        if not self.may_be_asked[i, j]:
            return words, -1
        cell = int(self.part.cell[i, j])
        return (f"{words}\n{self.found[cell]}", -1) if cell in self.found else (f"{words}\n{self.ask}", cell)


def shows_truth(view: View) -> bool:
    """Whether true values are asked for; before there is a release, there is nothing else to show."""
    return bool(view.get("truth")) or "run" not in view["of"]


def derived(desk: Desk, run: str, cell: int, truth: bool = False) -> str:
    """What an attacker derives of a cell that is withheld to protect others, and all else that is said of it."""
    from tablesafe.report.derived import derive

    layout, findings = whole_of(desk, {"run": run}), result_of(desk, run).findings
    shown, one = layout.view, np.array([cell], dtype=np.int64)
    if not isinstance(shown, OfficeCells) or not 0 <= cell < len(layout.table) or not shown.may_be_asked(one)[0]:
        return ""
    kept = _found(desk, run)
    if cell not in kept:
        ends = derive(findings, one, LONGEST_S)
        speech = shown.language
        told = speech.say(TOO_LONG)
        if ends is not None:
            told = derives(float(ends[0][0]), float(ends[1][0]), shown.decimals, speech)
        kept[cell] = told
    return "\n".join((layout.describe(cell), *shown.facts(cell, truth=truth), kept[cell]))


def _found(desk: Desk, run: str) -> dict[int, str]:
    """What was found on request about cells of a run, in the language of who asks."""
    every: dict[tuple[str, str], dict[int, str]] = desk.loaded.setdefault("derived", {})
    return every.setdefault((run, desk.language), {})


def about(desk: Desk, view: View) -> dict[str, Any]:
    """What can be chosen for a view: its dimensions, the codes of those held, and how many cells are of which kind."""
    layout = layout_of(desk, view)
    names = list(layout.table.dimensions)
    kinds = [(kind.word, kind.sign, kind.css, kind.meaning, number) for kind, number in layout.counts().items()]
    return {
        "dimensions": names,
        "rows": layout.rows.name,
        "columns": layout.columns.name,
        "filters": dict(layout.filters),
        "choices": {name: _choices(layout.choices(name)) for name in layout.filters},
        "kinds": kinds,
        "cells": len(layout.table),
    }


def layout_of(desk: Desk, view: View) -> Layout:
    """The layout of a view; a few are kept."""
    asked = [view.get(name) for name in ("of", "rows", "columns", "filters")]
    key = json.dumps([desk.language, *asked], sort_keys=True)
    kept: dict[str, Layout] = desk.loaded.setdefault("layouts", {})
    if key not in kept:
        whole = whole_of(desk, view["of"])
        names = whole.table.dimensions
        rows, columns = (view.get(axis) if view.get(axis) in names else None for axis in ("rows", "columns"))
        if rows is not None and rows == columns:
            columns = None
        held = {name: code for name, code in (view.get("filters") or {}).items() if name in whole.filters or rows}
        kept[key] = _laid(whole, rows, columns, held)
        while len(kept) > KEPT:
            kept.pop(next(iter(kept)))
    return kept[key]


def _laid(whole: Layout, rows: str | None, columns: str | None, held: Mapping[str, str]) -> Layout:
    down = whole.rows.name if rows is None else rows
    across = columns or (whole.columns.name if whole.columns.name != down else whole.rows.name)
    held = {name: code for name, code in held.items() if name not in (down, across) and name in whole.table.dimensions}
    return whole.at(rows=rows, columns=columns, filters=held)


def whole_of(desk: Desk, of: Mapping[str, str]) -> Layout:
    """The table of a run or of a job, laid out as it comes."""
    kept: dict[str, Layout] = desk.loaded.setdefault("whole layouts", {})
    key, speech = json.dumps([desk.language, dict(of)], sort_keys=True), language(desk.language)
    if key not in kept:
        if "run" in of:
            found = result_of(desk, of["run"])
            kept[key] = Layout.internal(found.problem, found.release, found.findings, language=speech)
        else:
            kept[key] = Layout.internal(problem_of(desk, of["job"]), language=speech)
        while len(kept) > KEPT:
            kept.pop(next(iter(kept)))
    return kept[key]


def _choices(axis: Axis) -> list[tuple[str, str]]:
    """Codes with their headings, indented by level."""
    return [(str(axis.codes[i]), "  " * int(axis.depth[i]) + axis.heading(i)) for i in range(len(axis))]


def opened_at_first(axis: Axis) -> Mask:
    """Unfold level by level as long as not too many lines show; the top always."""
    sizes = np.cumsum(np.bincount(axis.depth))
    level = int(np.searchsorted(sizes, OPEN_AT_FIRST, side="right"))
    opened: Mask = axis.depth < max(level - 1, 1)
    return opened


def _opened(axis: Axis, view: View, name: str) -> Mask:
    match view.get("opened", "start"):
        case "all":
            opened = np.ones(len(axis), dtype=np.bool_)
        case "none":
            opened = np.zeros(len(axis), dtype=np.bool_)
        case _:
            opened = opened_at_first(axis)
    turned = [line for line in (view.get("turned") or {}).get(name, ()) if 0 <= line < len(axis)]
    opened[turned] = ~opened[turned]
    return opened


def _shown(layout: Layout, view: View, name: str) -> Integers:
    """The lines that show: those that are unfolded, or, with `only`, those that hold a cell of some kind."""
    axis = layout.rows if name == "row" else layout.columns
    if view.get("only"):
        kinds = [NUMBER[kind] for kind in kinds_of(str(view["only"]))]
        return np.flatnonzero(layout.holding(kinds, across=name == "column")).astype(np.int64)
    return axis.visible(_opened(axis, view, name))


def place(desk: Desk, view: View, cell: int) -> dict[str, Any]:
    """How to show a cell: where the other dimensions are held, all unfolded, and its line down and across."""
    layout = layout_of(desk, view)
    table = layout.table
    held = {
        name: tree.codes[int(table.codes[cell, number])]
        for number, (name, tree) in enumerate(table.dimensions.items())
        if name in layout.filters
    }
    changed = {"filters": {**(view.get("filters") or {}), **held}, "opened": "all", "turned": {}, "only": ""}
    found = layout_of(desk, {**view, **changed}).place(cell)
    return {"view": changed, "at": found}


SHOWN: dict[str, tuple[Kind, ...]] = {
    "withheld": (
        Kind.SENSITIVE, Kind.COMPLEMENTARY, Kind.GIVEN, Kind.WITHHELD, Kind.INTERVAL, Kind.POSSIBLY, Kind.OPEN,
    ),
}  # fmt: skip
"""Filters that are more than a kind."""


def kinds_of(name: str) -> tuple[Kind, ...]:
    """The kinds that a filter lets through: one by its word, or all that are withheld."""
    return SHOWN.get(name) or tuple(kind for kind in KINDS if kind.word == name)


def _heads(axis: Axis, lines: Integers, view: View, name: str) -> list[dict[str, Any]]:
    below, opened = axis.has_children, _opened(axis, view, name)
    return [
        {
            "text": axis.heading(line),
            "title": axis.heading(line),
            "depth": int(axis.depth[line]),
            "fold": ("open" if opened[line] else "closed") if below[line] else "",
            "key": line,
        }
        for line in lines.tolist()
    ]


def _differing(desk: Desk, view: View, layout: Layout) -> Mask | None:
    """Cells that another release shows otherwise; with a last entry that is never, for lines without a cell."""
    if not view.get("against"):
        return None
    here = result_of(desk, view["of"]["run"]).release
    found = np.zeros(len(layout.table) + 1, dtype=np.bool_)
    for name in view["against"]:
        other = result_of(desk, name).release
        if len(other.values) == len(here.values):
            same = (here.values == other.values) | (np.isnan(here.values) & np.isnan(other.values))
            found[:-1] |= ~same | (here.status != other.status)
    return found
