"""Densities: what an intruder's solutions say about cells, one small histogram per cell. For the office only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.attack.estimate import INTERVALS, Density, Estimate
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption
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


@dataclass(frozen=True, slots=True)
class CellDensity:
    """What the solutions of an attack say about one cell: plain numbers, in the table's unit. Confidential."""

    attack: str
    cell: str
    """The cell, in the user's words."""
    lower: float
    upper: float
    """The exact range of the cell."""
    counts: tuple[int, ...]
    """Solutions in each of the equal intervals of the range."""
    truth: float
    band: tuple[float, float]
    """The protection interval."""
    guess: float

    @property
    def edges(self) -> Floats:
        """The ends of the intervals."""
        return np.linspace(self.lower, self.upper, INTERVALS + 1)

    @property
    def disclosed(self) -> bool:
        """Whether the guess lies inside the protection interval."""
        return self.band[0] < self.guess < self.band[1] or self.guess == self.truth

    def __str__(self) -> str:
        """What the histogram shows, for those who cannot see it."""
        total, edges = sum(self.counts), self.edges
        fullest = int(np.argmax(self.counts))
        return (
            f"{self.cell}: {count_of(total, 'solution')} of the {self.attack} between {plain(self.lower)} and "
            f"{plain(self.upper)}; most of them, {self.counts[fullest] / max(total, 1):.0%}, from "
            f"{plain(float(edges[fullest]))} to {plain(float(edges[fullest + 1]))}. The true value is "
            f"{plain(self.truth)}, to be hidden from {plain(self.band[0])} to {plain(self.band[1])}; the guess "
            f"{plain(self.guess)} is {'inside' if self.disclosed else 'outside'}."
        )


def cell_densities(estimate: Estimate, most: int) -> tuple[list[CellDensity], int]:
    """The densities of the sensitive cells in most danger, at most so many, and how many have one. Confidential."""
    if estimate.density is None:
        raise InvalidOption(
            f"The attack {estimate.attack!r} has one solution only: there is no density to plot.",
            hint="plot VertexMean(), InteriorMean(), RandomCentroid() or HitAndRun().",
        )
    every = _in_danger(estimate, estimate.density)
    cells = every[:most]
    density = estimate.density.take(np.searchsorted(estimate.unknown, cells))
    return [_of_cell(estimate, density, i, cell) for i, cell in enumerate(cells.tolist())], len(every)


def _of_cell(estimate: Estimate, density: Density, i: int, cell: int) -> CellDensity:
    table, levels = estimate.problem.table, estimate.problem.sensitivity
    truth = float(table.value[cell])
    return CellDensity(
        estimate.attack,
        table.describe(cell).strip("()'"),
        float(density.lower[i]),
        float(density.upper[i]),
        tuple(density.counts[i].tolist()),
        truth,
        (truth - float(levels.lower[cell]), truth + float(levels.upper[cell])),
        float(estimate.values[cell]),
    )


@look()
def densities(estimate: Estimate, *, most: int = 24, title: str = "", width_inches: float = 9.6) -> Plot:
    """Draw how the solutions of an attack are spread over the range of each sensitive cell.

    Bars count solutions in ten equal intervals of the exact range; the band is the protection interval, the line the
    true value, the dot the guess. The cells in most danger come first, `most` of them. It shows true values: internal
    only.
    """
    if most < 1:
        raise InvalidOption(f"'most' must be 1 or more, got {most}.")
    cells, every = cell_densities(estimate, most)
    rows = max(1, -(-len(cells) // ACROSS))
    figure = new_figure(width_inches, 1.35 + 1.55 * rows)
    shown = "" if len(cells) == every else f": the {len(cells)} of {every:,} in most danger"
    heading = title or f"Where the {estimate.attack} puts the sensitive cells{shown}"
    figure.suptitle(heading, x=0.01, ha="left", color=INK, fontsize=12.5)
    if not cells:
        figure.text(0.5, 0.4, "No sensitive cell has a range to be guessed in.", ha="center", color=FAINT)
    for i, each in enumerate(cells):
        axes = figure.add_subplot(rows, min(ACROSS, len(cells)), i + 1)
        _draw(axes, each)
        axes.set_title(shortened(each.cell, 34), fontsize=7.5, pad=4)
    if cells:
        _explain(figure)
    return Plot(
        figure,
        f"Histograms of the solutions of the {estimate.attack} for {count_of(len(cells), 'sensitive cell')} of "
        f"{every:,}, each with the true value, the protection interval and the guess.",
    )


@look()
def cell_density(found: CellDensity, *, width_inches: float = 4.8) -> Plot:
    """Draw the density of one cell alone, with words for those who cannot see it. Internal only."""
    figure = new_figure(width_inches, 0.62 * width_inches)
    axes = figure.add_subplot()
    _draw(axes, found)
    axes.set_title(shortened(found.cell, int(11 * width_inches)), fontsize=10, pad=6)
    axes.tick_params(labelsize=8)
    _explain(figure)
    return Plot(figure, str(found))


def _explain(figure: Any) -> None:
    """What is what, below the plots."""
    handles, words = figure.axes[0].get_legend_handles_labels()
    across = "Across: from the least to the most that the cell can be"
    figure.legend(
        handles, words, loc="outside lower center", ncols=4, title=across, title_fontsize=9, columnspacing=1.2
    )
    figure.supylabel("Solutions", fontsize=10, color=INK)


def _in_danger(estimate: Estimate, density: Density) -> NDArray[np.intp]:
    """The sensitive cells with a density, nearest guess first."""
    order = np.argsort(np.nan_to_num(estimate.distance, nan=np.inf), kind="stable")
    cells = estimate.cells[order]
    ranged = estimate.unknown[np.asarray(density.solutions) > 0]
    return cells[np.isin(cells, ranged)]


def _draw(axes: Any, found: CellDensity) -> None:
    edges, counts = found.edges, np.array(found.counts)
    axes.bar(
        edges[:-1], counts, width=np.diff(edges), align="edge", color=SKY, edgecolor="white", linewidth=0.6,
        label="solutions",
    )  # fmt: skip
    axes.axvspan(*found.band, facecolor=ORANGE, alpha=0.2, linewidth=0, label="protection interval")
    axes.axvline(found.truth, color=ORANGE, linewidth=1.5, label="true value")
    axes.plot(
        [found.guess], [0.06 * counts.max(initial=1)], "o", color=INK, markeredgecolor="white", markersize=5, zorder=5,
        linestyle="none", clip_on=False, label="guess",
    )  # fmt: skip
    axes.set_xlim(edges[0], edges[INTERVALS])
    axes.set_xticks([edges[0], edges[INTERVALS]], [plain(float(edges[0])), plain(float(edges[INTERVALS]))])
    axes.get_xticklabels()[0].set_ha("left")
    axes.get_xticklabels()[1].set_ha("right")
    axes.yaxis.get_major_locator().set_params(integer=True, nbins=3)
    axes.tick_params(colors=FAINT, labelsize=6.5, length=2)
