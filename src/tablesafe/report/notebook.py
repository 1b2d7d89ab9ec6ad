"""What objects look like in a notebook: small tables with colours by status, of bounded size.

A release shows what may be published and nothing else; everything else that shows true values says that it is
confidential, for a notebook keeps what it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.equations import Integers
from tablesafe.report.cells import Kind
from tablesafe.report.layout import Layout
from tablesafe.report.plots.style import count_of, shortened

LINES, COLUMNS, LETTERS = 15, 8, 40
"""Most lines, columns and letters of a name that are shown."""
LAST = 3
"""How many of the lines are the last ones, where some in the middle are left out."""
CONFIDENTIAL = "Confidential: true values"
_CSS = (
    ".tsnb{font:12px/1.45 system-ui,sans-serif;max-width:100%;overflow-x:auto}"
    ".tsnb p{margin:.2em 0}"
    ".tsnb table{font:inherit;font-variant-numeric:tabular-nums;border-collapse:collapse;margin:.3em 0}"
    ".tsnb th,.tsnb td{padding:1px 7px;border:1px solid rgba(128,128,128,.35);text-align:right;white-space:nowrap}"
    ".tsnb th{font-weight:600;background:rgba(128,128,128,.14)}.tsnb th.n,.tsnb td.n{text-align:left}"
    ".tsnb .c{color:#fff;background:#9A3E00;border-radius:3px;padding:0 5px;margin-left:.5em}"
    ".tsnb .k{display:inline-block;border:1px solid rgba(128,128,128,.5);padding:0 5px;margin-right:.6em}"
    ".tsnb i{font-style:normal;font-weight:700;font-size:.8em;margin-left:4px}"
)


def html(thing: Any) -> str:
    """An object as HTML, of bounded size whatever its own."""
    return _WAYS[type(thing).__name__](thing)


# -- tables laid out for eyes ------------------------------------------------------------------------------------------


def _table(table: Any) -> str:
    return _page(f"Table of {_size(table)}", _grid(Layout.internal(table)), secret=CONFIDENTIAL)


def _problem(problem: Any) -> str:
    words = f"Problem: {count_of(len(problem.sensitive), 'sensitive cell')} of {problem.table.seen:,}"
    rules = (
        _line("Rules: " + "; ".join(shortened(repr(rule), 90) for rule in problem.rules[:6])) if problem.rules else ""
    )
    return _page(words, rules + _grid(Layout.internal(problem)), secret="Confidential: true values, rules")


def _release(release: Any) -> str:
    hidden = int(release.suppressed.sum())
    words = f"Release of {_size(release.table)}: {hidden:,} show no value"
    return _page(words, _grid(Layout.public(release)))


def _findings(findings: Any) -> str:
    first, *rest = findings.text(shown=8).splitlines()
    below = (pl.col("value") - pl.col("from")) / (pl.col("value") - pl.col("required from"))
    above = (pl.col("to") - pl.col("value")) / (pl.col("required to") - pl.col("value"))
    frame = findings.frame().sort("protected", pl.min_horizontal(below, above).fill_nan(None), nulls_last=True)
    lines = "".join(_line(line.strip()) for line in rest[:12])
    return _page(first, lines + _frame(frame), secret=CONFIDENTIAL)


def _grid(layout: Layout) -> str:
    """The first lines of a layout with colours by status, and what is left out."""
    rows, columns = _some(np.flatnonzero(layout.occupied), LINES), _some(np.arange(len(layout.columns)), COLUMNS)
    window = layout.window(rows, columns)
    head = "".join(f"<th>{_text(layout.columns.heading(int(at)))}</th>" for at in columns)
    gap_row, gap_column = _gap(rows), _gap(columns)
    body = []
    for i, line in enumerate(rows.tolist()):
        indent = 0.9 * int(layout.rows.depth[line])
        cells = [
            _cell(text, kind, layout.is_internal) for text, kind in zip(window.text[i], window.kind[i], strict=True)
        ]
        if gap_column is not None:
            cells.insert(gap_column, "<td>…</td>")
        name = f'<th class="n" style="padding-left:{0.6 + indent:.1f}em">{_text(layout.rows.heading(line))}</th>'
        body.append(f"<tr>{name}{''.join(cells)}</tr>")
    if gap_row is not None:
        body.insert(gap_row, f'<tr><th class="n">…</th><td colspan="{len(columns) + 1}"></td></tr>')
    if gap_column is not None:
        parts = head.split("</th>")
        head = "</th>".join([*parts[:gap_column], "<th>…", *parts[gap_column:]])
    corner = _text(" / ".join(filter(None, (layout.rows.name, layout.columns.name))))
    table = f'<table><tr><th class="n">{corner}</th>{head}</tr>{"".join(body)}</table>'
    return _held(layout) + table + _left_out(layout, len(rows), len(columns)) + _legend(layout, not layout.is_internal)


def _cell(text: str, kind: Kind, internal: bool) -> str:
    if kind in {Kind.PUBLISHED, Kind.ABSENT}:
        return f"<td>{escape(text)}</td>"
    sign = f"<i>{kind.sign}</i>" if internal and kind.sign and kind.sign != text else ""
    style = f"background:{kind.colour};color:{'#FFFFFF' if kind is Kind.OPEN else '#1A1A1A'}"
    return f'<td style="{style}" title="{escape(kind.word)}">{escape(text)}{sign}</td>'


def _legend(layout: Layout, released: bool) -> str:
    """What the colours mean, with how many cells of the whole table there are of each."""
    shown = [
        f'<span class="k" style="background:{kind.colour};color:{"#FFFFFF" if kind is Kind.OPEN else "#1A1A1A"}">'
        f"{escape(kind.sign)} {escape(kind.word)} {number:,}</span>"
        for kind, number in layout.counts().items()
        if released or kind is not Kind.PUBLISHED
    ]
    return f"<p>{''.join(shown)}</p>" if shown else ""


def _held(layout: Layout) -> str:
    if not layout.filters:
        return ""
    return _line("At " + ", ".join(f"{name} = {code}" for name, code in list(layout.filters.items())[:8]))


def _left_out(layout: Layout, rows: int, columns: int) -> str:
    lines = int(layout.occupied.sum())
    if rows == lines and columns == len(layout.columns):
        return ""
    return _line(f"{rows:,} of {lines:,} lines, {columns:,} of {len(layout.columns):,} columns")


def _some(lines: Integers, most: int) -> Integers:
    """All lines, or the first and the last of them."""
    return lines if len(lines) <= most else np.concatenate([lines[: most - LAST], lines[-LAST:]])


def _gap(lines: Integers) -> int | None:
    """Where lines are left out in the middle."""
    gaps = np.flatnonzero(np.diff(lines) > 1)
    here = len(lines) - LAST
    return here if here - 1 in gaps and len(lines) in {LINES, COLUMNS} else None


# -- numbers and frames ------------------------------------------------------------------------------------------------


def _sensitivity(sensitivity: Any) -> str:
    mask = sensitivity.mask
    by_rule = {
        name: int(((sensitivity.reason >> np.uint32(j)) & 1)[mask].sum()) for j, name in enumerate(sensitivity.reasons)
    }
    frame = pl.DataFrame({"rule": list(by_rule), "sensitive cells": list(by_rule.values())})
    words = f"Sensitivity: {count_of(int(mask.sum()), 'sensitive cell')} of {len(mask):,}"
    return _page(words, _frame(frame), secret="Confidential: what is sensitive")


def _hierarchy(tree: Any) -> str:
    from tablesafe.report.axis import Axis

    axis = Axis.of("", tree)
    shown = _some(np.arange(len(axis)), LINES)
    lines = [_tree_line(axis.heading(at), int(axis.depth[at])) for at in shown.tolist()]
    if len(shown) < len(axis):
        lines.insert(LINES - LAST, '<tr><td class="n">…</td></tr>')
    levels = int(axis.depth.max(initial=0)) + 1
    return _page(
        f"Hierarchy of {count_of(len(axis), 'code')} in {count_of(levels, 'level')}", f"<table>{''.join(lines)}</table>"
    )


def _tree_line(name: str, depth: int) -> str:
    return f'<tr><td class="n" style="padding-left:{0.6 + 0.9 * depth:.1f}em">{_text(name)}</td></tr>'


def _result(result: Any) -> str:
    written = "; ".join(escape(path.name) for path in result.files[:12])
    words = f"Result: {result.verdict.word}, {'release written' if result.published else 'release not written'}"
    lines = "".join(map(_line, result.verdict.lines))
    return _page(words, lines + f"<p>{written}</p>" + _grid(Layout.public(result.release)))


def _with_frame(name: str, words: Callable[[Any], str], frame: Callable[[Any], pl.DataFrame]) -> Callable[[Any], str]:
    """A way to show what consists of a sentence and a frame."""

    def way(thing: Any) -> str:
        first, *rest = words(thing).splitlines() or [""]
        title = f"{name}: {first}" if first else name
        return _page(title, "".join(map(_line, rest[:6])) + _frame(frame(thing)), secret=CONFIDENTIAL)

    return way


def _frame(frame: pl.DataFrame) -> str:
    """The first rows and columns of a frame."""
    part = frame[:LINES, : COLUMNS + 6]
    head = "".join(f"<th>{_text(name)}</th>" for name in part.columns)
    body = "".join(f"<tr>{''.join(map(_entry, row))}</tr>" for row in part.iter_rows())
    more = "" if part.height == frame.height else _line(f"{part.height:,} of {frame.height:,} rows")
    return f"<table><tr>{head}</tr>{body}</table>{more}"


def _entry(value: object) -> str:
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if value is None:
        return "<td></td>"
    if isinstance(value, (int, float)):
        return f"<td>{_number(value)}</td>"
    return f'<td class="n">{_text(str(value))}</td>'


def _number(value: float) -> str:
    if not isfinite(value):
        return "" if value != value else "∞" if value > 0 else "−∞"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.10g}" if value == round(value) else f"{value:,.6g}"


# -- the page ----------------------------------------------------------------------------------------------------------


def _page(title: str, body: str, *, secret: str = "") -> str:
    mark = f'<span class="c">{escape(secret)}</span>' if secret else ""
    return f'<div class="tsnb"><style>{_CSS}</style><p><b>{escape(shortened(title, 300))}</b>{mark}</p>{body}</div>'


def _line(text: str) -> str:
    return f"<p>{escape(shortened(text, 300))}</p>"


def _text(text: str) -> str:
    return escape(shortened(text, LETTERS))


def _size(table: Any) -> str:
    names = _listed(f"{name} ({len(tree):,})" for name, tree in table.dimensions.items())
    return count_of(table.seen, "cell") + (f" by {names}" if names else "")


def _listed(words: Iterable[str]) -> str:
    every = list(words)
    return ", ".join(shortened(word, LETTERS) for word in every[:8]) + (" …" if len(every) > 8 else "")


_WAYS: dict[str, Callable[[Any], str]] = {
    "Table": _table,
    "Problem": _problem,
    "Release": _release,
    "Findings": _findings,
    "Sensitivity": _sensitivity,
    "Hierarchy": _hierarchy,
    "Result": _result,
    "Scores": _with_frame("Scores", lambda scores: scores.headline, lambda scores: scores.frame()),
    "Estimate": _with_frame("Estimate", str, lambda estimate: estimate.frame()),
    "Proposals": _with_frame("Proposals", lambda found: f"{len(found):,} steps", lambda found: found.frame()),
    "Loss": _with_frame("Loss", str, lambda loss: loss.frame()),
    "Quality": _with_frame("Quality", str, lambda quality: quality.distribution()),
    "Frontier": _with_frame(
        "Frontier", lambda found: f"{count_of(len(found.measured), 'release')} compared", lambda found: found.frame()
    ),
    "Posterior": _with_frame("Posterior", lambda found: "", lambda found: found.frame()),
}
