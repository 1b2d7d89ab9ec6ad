"""Tasks: windows of a table, as the browser draws them. They run in the worker process of a session.

A view is plain data and says all there is to know, so that nothing is lost when a worker is started anew:
`of` (`{"run": NAME}` or `{"job": TEXT}`), `rows`, `columns`, `filters`, `truth` (show true values), `opened` (`start`,
`all` or `none`), `turned` (lines folded otherwise, by axis), and `against` (runs whose differences are marked).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tablesafe.equations import Integers, Mask
from tablesafe.report.axis import Axis
from tablesafe.report.layout import Layout
from tablesafe.web.child import Desk
from tablesafe.web.desk import problem_of, result_of

MOST_LINES = 400
"""Lines of one window, whatever a browser asks for."""
OPEN_AT_FIRST = 120
"""A hierarchy is unfolded level by level as long as no more lines than these show."""
KEPT = 6
"""Layouts that are kept for the next window."""
View = Mapping[str, Any]


def window(desk: Desk, view: View, span: Sequence[int]) -> dict[str, Any]:
    """The headings and cells of a window (first and last line down, first and last across), and how many there are."""
    layout = layout_of(desk, view)
    down, across = _shown(layout.rows, view, "row"), _shown(layout.columns, view, "column")
    first, left = (min(max(int(at), 0), max(len(lines) - 1, 0)) for at, lines in ((span[0], down), (span[2], across)))
    last, right = min(int(span[1]), first + MOST_LINES), min(int(span[3]), left + MOST_LINES)
    part = layout.window(down[first:last], across[left:right])
    text = part.truth if view.get("truth") else part.text
    differs = _differing(desk, view, layout)
    rows = _heads(layout.rows, part.rows, view, "row")
    for i, row in enumerate(rows):
        row["cells"] = [
            (
                text[i][j],
                kind.css + (" ts-differs" if differs is not None and differs[part.cell[i, j]] else ""),
                "" if text[i][j] == kind.sign else kind.sign,
                part.hover(i, j),
            )
            for j, kind in enumerate(part.kind[i])
        ]
    return {
        "first": first, "left": left, "rows": rows, "heads": _heads(layout.columns, part.columns, view, "column"),
        "corner": " / ".join(filter(None, (layout.rows.name, layout.columns.name))),
        "count": [len(down), len(across)],
    }  # fmt: skip


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
    key = json.dumps([view.get(name) for name in ("of", "rows", "columns", "filters")], sort_keys=True)
    kept: dict[str, Layout] = desk.loaded.setdefault("layouts", {})
    if key not in kept:
        whole = _whole(desk, view["of"])
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


def _whole(desk: Desk, of: Mapping[str, str]) -> Layout:
    """The table of a run or of a job, laid out as it comes."""
    kept: dict[str, Layout] = desk.loaded.setdefault("whole layouts", {})
    key = json.dumps(of, sort_keys=True)
    if key not in kept:
        if "run" in of:
            found = result_of(desk, of["run"])
            kept[key] = Layout.internal(found.problem, found.release, found.findings)
        else:
            kept[key] = Layout.internal(problem_of(desk, of["job"]))
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


def _shown(axis: Axis, view: View, name: str) -> Integers:
    return axis.visible(_opened(axis, view, name))


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
