"""Plots of what an intruder's solutions say about cells: one small histogram per cell. For the office only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tablesafe.attack.density import INTERVALS, Density
from tablesafe.attack.estimate import Estimate
from tablesafe.errors import InvalidOption
from tablesafe.report.plots import COLOURS, FAINT, INK, new_figure, save

ACROSS = 4
"""Histograms side by side."""


def densities(
    estimate: Estimate, path: str | Path | None = None, *, most: int = 24, title: str = "", width_inches: float = 9.6
) -> Any:
    """Draw how the solutions of an attack are spread over the range of each sensitive cell; return the figure.

    Bars count solutions in ten equal intervals of the exact range; the band is the protection interval, the line the
    true value, the dot the guess. The cells in most danger come first, `most` of them. `path` writes it, as SVG, PNG or
    PDF by its suffix. It shows true values: keep it in the office.
    """
    if estimate.density is None:
        raise InvalidOption(
            f"The attack {estimate.attack!r} has one solution only: there is no density to plot.\n\n"
            f"Hint: plot VertexMean(), InteriorMean(), RandomCentroid() or HitAndRun()."
        )
    cells = _in_danger(estimate)[:most]
    rows = max(1, -(-len(cells) // ACROSS))
    figure = new_figure(width_inches, 0.9 + 1.75 * rows)
    figure.suptitle(title or f"Where {estimate.attack} puts the sensitive cells", x=0.01, ha="left", color=INK)
    if not len(cells):
        figure.text(0.5, 0.4, "No sensitive cell can be more than one number.", ha="center", color=FAINT)
    density = estimate.density.take(np.searchsorted(estimate.unknown, cells))
    for i, cell in enumerate(cells.tolist()):
        _draw(figure.add_subplot(rows, ACROSS, i + 1), estimate, density, i, cell)
    if path is not None:
        save(figure, path)
    return figure


def _in_danger(estimate: Estimate) -> Any:
    """The sensitive cells with a density, nearest guess first."""
    order = np.argsort(np.nan_to_num(estimate.distance, nan=np.inf), kind="stable")
    cells = estimate.cells[order]
    shown = np.isin(cells, estimate.unknown[np.asarray(estimate.density.solutions) > 0]) if estimate.density else cells
    return cells[shown]


def _draw(axes: Any, estimate: Estimate, density: Density, i: int, cell: int) -> None:
    table, sensitivity = estimate.problem.table, estimate.problem.sensitivity
    edges, counts, truth = density.edges[i], density.counts[i], float(table.value[cell])
    axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=COLOURS[5], edgecolor="white", linewidth=0.6)
    band = truth - float(sensitivity.lower[cell]), truth + float(sensitivity.upper[cell])
    axes.axvspan(*band, color=COLOURS[1], alpha=0.18, linewidth=0)
    axes.axvline(truth, color=COLOURS[1], linewidth=1.4)
    axes.plot([float(estimate.values[cell])], [0.06 * counts.max(initial=1)], "o", color=INK, markersize=4, zorder=5)
    axes.set_title(table.describe(cell), fontsize=7.5, color=INK, loc="left")
    axes.set_xlim(edges[0], edges[INTERVALS])
    axes.set_xticks([edges[0], edges[INTERVALS]])
    axes.ticklabel_format(style="plain", axis="x", useOffset=False)
    axes.tick_params(colors=FAINT, labelsize=6.5, length=2)
    axes.spines[["top", "right"]].set_visible(False)
