"""What was done to the values: percent changes by class, and accuracy by the size of cells. For the office only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tablesafe.core.errors import InvalidOption
from tablesafe.loss.quality import Quality
from tablesafe.report.plots.plot import Plot
from tablesafe.report.plots.style import (
    COLOURS,
    HATCHES,
    INK,
    WIDTH,
    head,
    legend_below,
    look,
    new_figure,
    shortened,
    thousands,
)


@look()
def percent_changes(
    qualities: Quality | Mapping[str, Quality],
    *,
    title: str = "By how much were cells changed?",
    width_inches: float = WIDTH,
) -> Plot:
    """Draw how many cells changed by how many percent: a group of bars per class, a bar per release.

    The classes are those of `ts.quality` (`classes=` sets others). A mapping compares several releases of one table, of
    different costs for example, as Dandekar & Cox (2002) do. It compares with the truth: internal only.
    """
    named = _named(qualities)
    spread = {name: quality.distribution() for name, quality in named.items()}
    words = next(iter(spread.values()))["percent change"].to_list()
    if any(frame["percent change"].to_list() != words for frame in spread.values()):
        raise InvalidOption("Releases can be compared only when their classes are the same.")
    heights = {name: frame["cells"].to_list() for name, frame in spread.items()}
    note = "Published cells, by how many percent of their true value they were changed."
    figure, axes = _bars(words, heights, width_inches, title, note)
    axes.set_xlabel("Change in percent of the true value")
    axes.set_ylabel("Cells")
    told = "; ".join(f"{name + ': ' if name else ''}{_in_words(quality)}" for name, quality in named.items())
    return Plot(figure, f"Bars: number of published cells by percent change. {told}.")


@look()
def accuracy_by_size(
    qualities: Quality | Mapping[str, Quality],
    *,
    title: str = "How accurate are cells of which size?",
    width_inches: float = WIDTH,
) -> Plot:
    """Draw the average percent change by the size of the true value. It compares with the truth: internal only."""
    named = _named(qualities)
    frames = {name: dict(q.by_size().select("size", "average percent change").iter_rows()) for name, q in named.items()}
    words = sorted({word for frame in frames.values() for word in frame}, key=_first_number)
    heights = {name: [frame.get(word) or 0.0 for word in words] for name, frame in frames.items()}
    note = "Average percent change of all published cells of that size, unchanged ones among them."
    figure, axes = _bars(words, heights, width_inches, title, note)
    axes.set_xlabel("True value")
    axes.set_ylabel("Average change in percent")
    return Plot(figure, f"Bars: average percent change of published cells by the size of the true value. {note}")


def _in_words(quality: Quality) -> str:
    loss = quality.loss
    shown = int((loss.meant & ~loss.missing).sum())
    return f"{loss.changed:,} of {shown:,} cells changed, by {loss.average_percent:.2f} percent on average"


def _first_number(words: str) -> float:
    return float(words.split(" to ")[0].replace(",", ""))


def _named(qualities: Quality | Mapping[str, Quality]) -> dict[str, Quality]:
    named = {"": qualities} if isinstance(qualities, Quality) else dict(qualities)
    if not named:
        raise InvalidOption("There is no release to plot.")
    if len(named) > len(COLOURS):
        raise InvalidOption(f"At most {len(COLOURS)} releases can be told apart in one plot, got {len(named)}.")
    return named


def _bars(words: list[str], heights: Mapping[str, list[float]], width: float, title: str, note: str) -> tuple[Any, Any]:
    """A group of bars per word, a bar per name."""
    figure = new_figure(width, 0.58 * width)
    axes = figure.add_subplot()
    place, each = np.arange(len(words)), 0.82 / len(heights)
    for i, (name, tall) in enumerate(heights.items()):
        bars = axes.bar(
            place + (i - (len(heights) - 1) / 2) * each, tall, each, color=COLOURS[i], hatch=HATCHES[i],
            edgecolor="white", linewidth=0.6, zorder=3, label=shortened(name, 40) or None,
        )  # fmt: skip
        if len(heights) == 1:
            axes.bar_label(bars, fmt="{:,.4g}", fontsize=8, color=INK, padding=2)
    head(axes, title, note)
    axes.set_xticks(place, words, rotation=30, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", length=0)
    thousands(axes.yaxis)
    axes.grid(axis="y", zorder=0)
    axes.set_xlim(-0.6, len(words) - 0.4)
    if len(heights) > 1:
        legend_below(figure, min(len(heights), 3))
    return figure, axes
