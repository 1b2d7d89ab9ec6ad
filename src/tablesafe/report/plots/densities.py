"""Densities: what an intruder's solutions say about cells, one small histogram per cell. For the office only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.attack.density import INTERVALS, Density
from tablesafe.attack.estimate import Estimate
from tablesafe.errors import InvalidOption
from tablesafe.report.plots.plot import Plot
from tablesafe.report.plots.style import (
    FAINT,
    INK,
    ORANGE,
    SKY,
    count_of,
    look,
    new_figure,
    plain,
    shortened,
)

ACROSS = 4
"""Histograms side by side."""


@look()
def densities(estimate: Estimate, *, most: int = 24, title: str = "", width_inches: float = 9.6) -> Plot:
    """Draw how the solutions of an attack are spread over the range of each sensitive cell.

    Bars count solutions in ten equal intervals of the exact range; the band is the protection interval, the line the
    true value, the dot the guess. The cells in most danger come first, `most` of them. It shows true values: internal
    only.
    """
    if estimate.density is None:
        raise InvalidOption(
            f"The attack {estimate.attack!r} has one solution only: there is no density to plot.\n\n"
            f"Hint: plot VertexMean(), InteriorMean(), RandomCentroid() or HitAndRun()."
        )
    if most < 1:
        raise InvalidOption(f"'most' must be 1 or more, got {most}.")
    every = _in_danger(estimate, estimate.density)
    cells = every[:most]
    rows = max(1, -(-len(cells) // ACROSS))
    figure = new_figure(width_inches, 1.35 + 1.55 * rows)
    shown = "" if len(cells) == len(every) else f": the {len(cells)} of {len(every):,} in most danger"
    heading = title or f"Where the {estimate.attack} puts the sensitive cells{shown}"
    figure.suptitle(heading, x=0.01, ha="left", color=INK, fontsize=12.5)
    if not len(cells):
        figure.text(0.5, 0.4, "No sensitive cell has a range to be guessed in.", ha="center", color=FAINT)
    density = estimate.density.take(np.searchsorted(estimate.unknown, cells))
    for i, cell in enumerate(cells.tolist()):
        _draw(figure.add_subplot(rows, min(ACROSS, len(cells)), i + 1), estimate, density, i, cell)
    if len(cells):
        handles, words = figure.axes[0].get_legend_handles_labels()
        across = "Across: from the least to the most that the cell can be"
        figure.legend(handles, words, loc="outside lower center", ncols=4, title=across, title_fontsize=9)
        figure.supylabel("Solutions", fontsize=10, color=INK)
    return Plot(
        figure,
        f"Histograms of the solutions of the {estimate.attack} for {count_of(len(cells), 'sensitive cell')} of "
        f"{len(every):,}, each with the true value, the protection interval and the guess.",
    )


def _in_danger(estimate: Estimate, density: Density) -> NDArray[np.intp]:
    """The sensitive cells with a density, nearest guess first."""
    order = np.argsort(np.nan_to_num(estimate.distance, nan=np.inf), kind="stable")
    cells = estimate.cells[order]
    ranged = estimate.unknown[np.asarray(density.solutions) > 0]
    return cells[np.isin(cells, ranged)]


def _draw(axes: Any, estimate: Estimate, density: Density, i: int, cell: int) -> None:
    table, sensitivity = estimate.problem.table, estimate.problem.sensitivity
    edges, counts, truth = density.edges[i], density.counts[i], float(table.value[cell])
    axes.bar(
        edges[:-1], counts, width=np.diff(edges), align="edge", color=SKY, edgecolor="white", linewidth=0.6,
        label="solutions",
    )  # fmt: skip
    band = truth - float(sensitivity.lower[cell]), truth + float(sensitivity.upper[cell])
    axes.axvspan(*band, facecolor=ORANGE, alpha=0.2, linewidth=0, label="protection interval")
    axes.axvline(truth, color=ORANGE, linewidth=1.5, label="true value")
    guess = float(estimate.values[cell])
    axes.plot(
        [guess], [0.06 * counts.max(initial=1)], "o", color=INK, markeredgecolor="white", markersize=5, zorder=5,
        linestyle="none", clip_on=False, label="guess",
    )  # fmt: skip
    axes.set_title(shortened(table.describe(cell).strip("()'"), 34), fontsize=7.5, pad=4)
    axes.set_xlim(edges[0], edges[INTERVALS])
    axes.set_xticks([edges[0], edges[INTERVALS]], [plain(float(edges[0])), plain(float(edges[INTERVALS]))])
    axes.get_xticklabels()[0].set_ha("left")
    axes.get_xticklabels()[1].set_ha("right")
    axes.yaxis.get_major_locator().set_params(integer=True, nbins=3)
    axes.tick_params(colors=FAINT, labelsize=6.5, length=2)
