"""Intervals against protection: what an attacker derives about every sensitive cell, beside what is required."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.findings import Findings
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption
from tablesafe.report.margins import Ends, Unit
from tablesafe.report.plots.plot import Plot
from tablesafe.report.plots.style import (
    BLUE,
    FAINT,
    INK,
    ORANGE,
    PALE,
    WIDTH,
    count_of,
    head,
    legend_below,
    look,
    new_figure,
    plain,
    shortened,
)

NAMED = 30
"""Up to so many cells each has a line with its name; beyond, all of them are one band."""
COLUMNS = 500
"""Places side by side in a band: where there are more cells, a place shows the tightest of its cells."""
FURTHEST = {"level": 100.0, "percent": 1000.0}
"""Where an axis ends at the latest: what reaches further is drawn at its edge."""
_AXIS = {
    "level": "Distance from the true value, in protection levels",
    "percent": "Distance from the true value, in percent of it",
}


@look()
def intervals(
    findings: Findings,
    *,
    unit: Unit = "auto",
    title: str = "How far is each sensitive cell hidden?",
    width_inches: float = WIDTH,
) -> Plot:
    """Draw what an attacker can derive about every sensitive cell against what the rules require.

    Every cell has its true value at 0 and its interval around it, the cells with the least room first. The unit is the
    protection level of each cell, or percent of its value; "auto" takes levels where there are any. Up to thirty cells
    are drawn one by one with their names, more as a band. Ends without a bound are drawn at the edge. It shows
    protection levels: internal only.
    """
    if unit not in {"auto", "level", "percent"}:
        raise InvalidOption(f"intervals' unit must be 'auto', 'level' or 'percent', got {unit!r}.")
    ends = Ends.of(findings, unit)
    if not len(ends):
        figure = _nothing(title, width_inches)
    elif len(ends) <= NAMED:
        figure = _lines(ends, findings, title, width_inches)
    else:
        figure = _band(ends, findings, title, width_inches)
    return Plot(figure, _in_words(ends))


def _in_words(ends: Ends) -> str:
    if not len(ends):
        return "There is no sensitive cell, so there is no interval to show."
    room = ends.room[np.isfinite(ends.room)]
    least = f" The least room is {plain(float(room.min()))} times what is required." if room.size else ""
    return (
        f"Intervals that an attacker can derive for {count_of(len(ends), 'sensitive cell')}, around the true value, "
        f"against the protection required: {int(ends.protected.sum()):,} are protected, "
        f"{int((~ends.protected).sum()):,} are open.{least}"
    )


def _furthest(ends: Ends) -> float:
    """Where the axis ends: beyond nearly all ends."""
    every = np.concatenate([ends.below, ends.above])
    finite = every[np.isfinite(every)]
    need = float(np.max([ends.required_below, ends.required_above], initial=0.0))
    reach = max(float(np.quantile(finite, 0.98)) if finite.size else 1.0, 1.5 * need, 1.5)
    return min(reach * 1.15, max(FURTHEST[ends.unit], 1.5 * need))


def _nothing(title: str, width: float) -> Any:
    figure = new_figure(width, 2.0)
    axes = figure.add_subplot()
    head(axes, title)
    axes.set_axis_off()
    axes.text(0.5, 0.5, "There is no sensitive cell.", ha="center", color=FAINT, transform=axes.transAxes)
    return figure


def _note(ends: Ends, findings: Findings, more: str = "") -> str:
    open_ones = int((~ends.protected).sum())
    verdict = f"{count_of(len(ends), 'sensitive cell')}: " + (
        "all protected" if not open_ones else f"{open_ones:,} open"
    )
    inexact = "" if findings.exact else "\nIntervals reach at least as far as drawn: they were not made exact."
    return f"{verdict}.{more}{inexact}"


def _lines(ends: Ends, findings: Findings, title: str, width: float) -> Any:
    """A line per cell, with its name."""
    figure = new_figure(width, 1.7 + 0.235 * len(ends))
    axes, edge, place = figure.add_subplot(), _furthest(ends), np.arange(len(ends))
    axes.barh(
        place, ends.required_above + ends.required_below, left=-ends.required_below, height=0.72, color=PALE,
        label="must be inside the interval", zorder=2,
    )  # fmt: skip
    below, above = -np.minimum(ends.below, edge), np.minimum(ends.above, edge)
    for mask, colour, marker, words in (
        (ends.protected, BLUE, "|", "interval, protected"),
        (~ends.protected, ORANGE, "x", "interval, open"),
    ):
        if mask.any():
            axes.hlines(place[mask], below[mask], above[mask], colors=colour, linewidth=2, zorder=4)
            inside = np.concatenate([ends.below[mask] <= edge, ends.above[mask] <= edge])
            tips = np.concatenate([below[mask], above[mask]]), np.tile(place[mask], 2)
            axes.plot(
                tips[0][inside], tips[1][inside], linestyle="none", marker=marker, color=colour, markersize=7,
                markeredgewidth=2, label=words, zorder=5,
            )  # fmt: skip
    _beyond(axes, ends, place, edge)
    axes.plot(np.zeros(len(ends)), place, ".", color=INK, markersize=5, zorder=6, label="true value")
    names = [shortened(findings.problem.table.describe(int(cell)).strip("()'"), 44) for cell in ends.cells]
    axes.set_yticks(place, names)
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.set_ylim(len(ends) - 0.4, -0.6)
    _scaled(axes.xaxis, axes.set_xscale, ends, edge)
    axes.set_xlim(-edge * 1.02, edge * 1.02)
    axes.set_xlabel(_AXIS[ends.unit])
    axes.grid(axis="x", zorder=0)
    axes.spines["left"].set_visible(False)
    head(axes, title, _note(ends, findings))
    legend_below(figure, 2)
    return figure


def _beyond(axes: Any, ends: Ends, place: NDArray[Any], edge: float) -> None:
    """Arrow heads where an interval goes on beyond the edge."""
    outside = {"<": (ends.below > edge, -edge), ">": (ends.above > edge, edge)}
    label: str | None = "goes on, or has no end"
    for marker, (far, at) in outside.items():
        if far.any():
            axes.plot(
                np.full(far.sum(), at),
                place[far],
                marker,
                color=BLUE,
                markersize=5,
                clip_on=False,
                zorder=6,
                label=label,
            )
            label = None


def _band(ends: Ends, findings: Findings, title: str, width: float) -> Any:
    """All cells side by side as one band, the least room at the left."""
    figure = new_figure(width, 0.62 * width)
    axes, edge = figure.add_subplot(), _furthest(ends)
    starts = np.linspace(0, len(ends), min(len(ends), COLUMNS) + 1).astype(np.intp)[:-1]
    below, above = np.minimum.reduceat(ends.below, starts), np.minimum.reduceat(ends.above, starts)
    need_below = np.maximum.reduceat(ends.required_below, starts)
    need_above = np.maximum.reduceat(ends.required_above, starts)
    borders = np.append(starts, len(ends))

    def area(low: Floats, high: Floats, **looks: Any) -> None:
        axes.fill_between(borders, np.append(low, low[-1]), np.append(high, high[-1]), step="post", **looks)

    area(-np.minimum(below, edge), np.minimum(above, edge), color="#A6CBE3", linewidth=0, label="interval", zorder=2)
    area(-need_below, need_above, facecolor="none", edgecolor=INK, linewidth=0, hatch="////", alpha=0.35, zorder=3,
         label="must be inside the interval")  # fmt: skip
    for side in (-np.minimum(below, edge), np.minimum(above, edge)):
        axes.stairs(side, borders, baseline=None, color=BLUE, linewidth=0.9, zorder=4)
    opened = int((~ends.protected).sum())
    if opened:
        axes.axvspan(0, opened, color=ORANGE, alpha=0.25, linewidth=0, zorder=1, label=f"{opened:,} open")
        axes.axvline(opened, color=ORANGE, linewidth=1.2, linestyle=(0, (4, 2)), zorder=5)
    axes.axhline(0, color=INK, linewidth=0.8, zorder=5, label="true value")
    _scaled(axes.yaxis, axes.set_yscale, ends, edge)
    axes.set_ylim(-edge * 1.02, edge * 1.02)
    axes.set_xlim(0, len(ends))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("Sensitive cells, the one with the least room first")
    axes.set_ylabel(_AXIS[ends.unit].replace(", in", ",\nin"))
    axes.grid(axis="y", zorder=0)
    more = (
        f" Each place shows the tightest of about {len(ends) / len(starts):.0f} cells."
        if len(starts) < len(ends)
        else ""
    )
    edge_note = (
        " What reaches the edge goes on, or has no end." if max(ends.below.max(), ends.above.max()) > edge else ""
    )
    head(axes, title, _note(ends, findings, more + edge_note))
    legend_below(figure, 4)
    return figure


def _scaled(axis: Any, set_scale: Any, ends: Ends, edge: float) -> None:
    """A scale that is even up to what is required and by powers beyond, with plain numbers."""
    near = 1.0 if ends.unit == "level" else 10.0
    if edge > 6 * near:
        set_scale("symlog", linthresh=near, linscale=0.8)
    unit = " %" if ends.unit == "percent" else ""
    axis.set_major_formatter(lambda at, _: f"{'+' if at > 0 else '−' if at < 0 else ''}{plain(abs(at))}{unit}")
