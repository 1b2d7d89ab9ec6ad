"""The risk–utility frontier: what releases cost their users against what they leave open. For the office only."""

from __future__ import annotations

from typing import Any

import numpy as np

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption
from tablesafe.report.frontier import Frontier, Measures
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

CROWDED = 0.7
"""Where the least is more than this part of the most, an axis does not begin at nothing."""
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
def frontier(
    found: Frontier | Measures, *, title: str = "What does protection cost?", width_inches: float = WIDTH
) -> Plot:
    """Draw releases by what they cost their users and what they leave open, the efficient ones joined by a line.

    `ts.frontier` measures them. Filled marks are efficient: no other release loses less at no more risk. It compares
    with the truth: internal only.
    """
    found = found.measures if isinstance(found, Frontier) else found
    n, names = len(found), found.names
    if n > MOST:
        raise InvalidOption(f"At most {MOST} releases can be told apart in one plot, got {n}.")
    loss, risk, efficient = found.loss, found.risk, found.efficient
    top = _top(risk)
    drawn = np.minimum(risk, top)
    columns = 1 if max(map(len, names), default=0) > 44 else 2
    figure = new_figure(width_inches, 0.56 * width_inches + 0.19 * -(-n // columns))
    axes = figure.add_subplot()
    _line(axes, loss[efficient], drawn[efficient], upwards=found.by_risk == "room")
    for i, name in enumerate(names):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(
            [loss[i]], [drawn[i]], linestyle="none", marker=MARKERS[i % len(MARKERS)], markersize=11 - 5 * i / n,
            color=colour, markerfacecolor=colour if efficient[i] else "white", markeredgewidth=1.6, zorder=4,
            clip_on=False, label=shortened(name, 60),
        )  # fmt: skip
    _axes(axes, found, loss, drawn)
    better = "up" if found.by_risk == "room" else "down"
    endless = " Room without an end is drawn at the top." if np.isinf(risk).any() else ""
    head(
        axes,
        title,
        f"Filled: efficient; hollow: another release is at least as good in both. Better: left and {better}.{endless}",
    )
    legend_below(figure, columns)
    best = ", ".join(name for name, good in zip(names, efficient.tolist(), strict=True) if good)
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


def _axes(axes: Any, found: Measures, loss: Floats, risk: Floats) -> None:
    axes.set_xlabel(_LOSS[found.by_loss])
    axes.set_ylabel(_RISK[found.by_risk])
    percents(axes.xaxis)
    (thousands if found.by_risk == "room" else percents)(axes.yaxis)
    axes.set_xlim(*_span(loss))
    axes.set_ylim(*_span(risk))
    axes.grid(zorder=0)


def _span(values: Floats) -> tuple[float, float]:
    """From nothing to a little more than the most; where all lie close together, only around them."""
    low, high = float(np.min(values, initial=np.inf)), float(np.max(values, initial=0.0))
    if CROWDED * high < low < np.inf:
        space = max(0.25 * (high - low), 0.02 * high)
        return low - space, high + space
    return -0.04 * (high or 1.0), 1.08 * (high or 1.0)
