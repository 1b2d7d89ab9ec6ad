"""The progress of a long optimisation: the best answer and the proven bound over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tablesafe.core.equations import Floats
from tablesafe.report.plots.plot import Plot
from tablesafe.report.plots.style import (
    BLUE,
    FAINT,
    ORANGE,
    WIDTH,
    head,
    legend_below,
    look,
    new_figure,
    plain,
    thousands,
)
from tablesafe.report.progress import Trace


@look()
def progress(
    trace: Trace, *, title: str = "How did the search come along?", unit: str = "", width_inches: float = WIDTH
) -> Plot:
    """Draw the cost of the best answer so far and the proven bound, over the seconds of a search.

    `unit` says what costs are counted in. Costs are sums of withheld or changed values: internal only.
    """
    seconds, cost, bound = trace.columns()
    figure = new_figure(width_inches, 0.52 * width_inches)
    axes = figure.add_subplot()
    end = float(seconds[-1]) if len(seconds) else 1.0
    told = _told(seconds, cost, bound)
    if np.isnan(cost).all():
        head(axes, title)
        axes.set_axis_off()
        axes.text(0.5, 0.5, "There is no answer yet.", ha="center", color=FAINT, transform=axes.transAxes)
        return Plot(figure, told)
    proven = bool((bound > 0).any())
    if proven:
        axes.fill_between(seconds, bound, cost, step="post", color=BLUE, alpha=0.12, linewidth=0, label="gap")
    _steps(axes, seconds, cost, color=BLUE, marker="o", label="best answer so far")
    if proven:
        _steps(
            axes,
            seconds,
            bound,
            color=ORANGE,
            linestyle=(0, (5, 2)),
            marker="s",
            label="proven bound: no answer costs less",
        )
    axes.set_xlabel("Seconds since the start")
    axes.set_ylabel(f"Cost{f' ({unit})' if unit else ''}")
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    axes.set_xlim(0, end * 1.03 or 1.0)
    axes.set_ylim(*_range(cost, bound, proven))
    axes.grid(zorder=0)
    head(axes, title, told)
    legend_below(figure, 3)
    return Plot(figure, f"{title} {told}")


def _steps(axes: Any, seconds: Floats, values: Floats, **looks: Any) -> None:
    """A line that stays until something better comes, with a mark where it does."""
    better = np.flatnonzero(np.diff(values, prepend=np.nan) != 0).tolist()
    few = better if len(better) <= 60 else better[-1:]
    axes.plot(seconds, values, drawstyle="steps-post", linewidth=1.8, markersize=4, markevery=few, zorder=3, **looks)


def _range(cost: Floats, bound: Floats, proven: bool) -> tuple[float, float]:
    """From below the bound to above the first answer; nothing to see is left out."""
    high = float(np.nanmax(cost))
    low = float(np.nanmin(bound[bound > 0])) if proven else float(np.nanmin(cost))
    if low < 0.4 * high:
        low = 0.0
    space = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return (low - space if low else 0.0), high + space


def _told(seconds: Floats, cost: Floats, bound: Floats) -> str:
    if not len(seconds) or np.isnan(cost).all():
        return "There is no answer yet."
    last, proof = float(cost[-1]), float(bound[-1])
    if not proof > 0:
        return f"Cost {plain(last)} after {seconds[-1]:,.1f} seconds; no bound was proven."
    gap = max(0.0, 100 * (last - proof) / abs(last)) if last else 0.0
    end = "proven optimal" if gap < 1e-6 else f"at most {gap:.2g} percent above the optimum"
    return f"Cost {plain(last)} after {seconds[-1]:,.1f} seconds, {end}."
