"""The risk–utility frontier: what releases cost their users against what they leave open. For the office only."""

from __future__ import annotations

from typing import Any

import numpy as np

from tablesafe.errors import InvalidOption
from tablesafe.report.frontier import Frontier
from tablesafe.report.plots.plot import Plot
from tablesafe.report.plots.style import (
    COLOURS,
    FAINT,
    MARKERS,
    WIDTH,
    count_of,
    head,
    legend_below,
    look,
    new_figure,
    percents,
    shortened,
    thousands,
)

MOST = len(COLOURS) * len(MARKERS)
_LOSS = {
    "value": "Loss: part of the table's value withheld or moved",
    "cells": "Loss: part of the cells withheld or changed",
}
_RISK = {
    "guessed": "Risk: sensitive cells that an attack\nguesses within their protection",
    "open": "Risk: sensitive cells that\nthe audit finds open",
    "room": "Protection: least room of a sensitive\ncell, in protection levels",
}


@look()
def frontier(found: Frontier, *, title: str = "What does protection cost?", width_inches: float = WIDTH) -> Plot:
    """Draw releases by what they cost their users and what they leave open, the efficient ones joined by a line.

    `ts.frontier` measures them. Filled marks are efficient: no other release loses less at no more risk. It compares
    with the truth: internal only.
    """
    n = len(found.measured)
    if n > MOST:
        raise InvalidOption(f"At most {MOST} releases can be told apart in one plot, got {n}.")
    loss, risk, efficient = found.loss, found.risk, found.efficient
    top = _top(risk)
    drawn = np.minimum(risk, top)
    columns = 1 if max(len(each.name) for each in found.measured) > 44 else 2
    figure = new_figure(width_inches, 0.56 * width_inches + 0.19 * -(-n // columns))
    axes = figure.add_subplot()
    _line(axes, loss[efficient], drawn[efficient], upwards=found.by_risk == "room")
    for i, each in enumerate(found.measured):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(
            [loss[i]], [drawn[i]], linestyle="none", marker=MARKERS[i % len(MARKERS)], markersize=11 - 5 * i / n,
            color=colour, markerfacecolor=colour if efficient[i] else "white", markeredgewidth=1.6, zorder=4,
            clip_on=False, label=shortened(each.name, 60),
        )  # fmt: skip
    _axes(axes, found, float(np.max(loss, initial=0.0)), top)
    better = "up" if found.by_risk == "room" else "down"
    endless = " Room without an end is drawn at the top." if np.isinf(risk).any() else ""
    head(
        axes,
        title,
        f"Filled: efficient; hollow: another release is at least as good in both. Better: left and {better}.{endless}",
    )
    legend_below(figure, columns)
    best = ", ".join(each.name for each, good in zip(found.measured, efficient.tolist(), strict=True) if good)
    return Plot(figure, f"Loss against risk of {count_of(n, 'release')} of one table. Efficient: {best}.")


def _top(risk: Any) -> float:
    finite = risk[np.isfinite(risk)]
    return (
        float(finite.max()) * 1.15 + 1e-9
        if finite.size and np.isinf(risk).any()
        else float(np.max(finite, initial=1.0))
    )


def _line(axes: Any, loss: Any, risk: Any, *, upwards: bool) -> None:
    """What the efficient releases reach between them, as stairs."""
    order = np.lexsort((risk if upwards else -risk, loss))
    where = "steps-post"
    axes.plot(loss[order], risk[order], drawstyle=where, color=FAINT, linewidth=1.2, linestyle=(0, (4, 2)), zorder=2)


def _axes(axes: Any, found: Frontier, most_loss: float, top: float) -> None:
    axes.set_xlabel(_LOSS[found.by_loss])
    axes.set_ylabel(_RISK[found.by_risk])
    percents(axes.xaxis)
    (thousands if found.by_risk == "room" else percents)(axes.yaxis)
    axes.set_xlim(-0.03 * (most_loss or 1.0), 1.08 * (most_loss or 1.0))
    axes.set_ylim(-0.04 * (top or 1.0), 1.08 * (top or 1.0))
    axes.grid(zorder=0)
