"""Plots of what an adjustment did: percent changes by class, and accuracy by the size of cells. Confidential."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tablesafe.errors import InvalidOption
from tablesafe.quality import Quality
from tablesafe.report.plots import COLOURS, FAINT, INK, new_figure, save

HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++")
"""Bars are told apart in black and white too."""


def percent_changes(
    qualities: Quality | Mapping[str, Quality],
    path: str | Path | None = None,
    *,
    title: str = "By how much were cells changed?",
    width_inches: float = 7.2,
) -> Any:
    """Draw how many cells changed by how many percent, a group of bars per class, a bar per release; return the figure.

    A mapping compares several releases of one table, of different costs for example. `path` writes the figure, as SVG,
    PNG or PDF by its suffix.
    """
    named = _named(qualities)
    spread = {name: quality.distribution() for name, quality in named.items()}
    words = next(iter(spread.values()))["percent change"].to_list()
    if any(frame["percent change"].to_list() != words for frame in spread.values()):
        raise InvalidOption("Releases can be compared only when their classes are the same.")
    figure, axes = _bars(
        words, {name: frame["cells"].to_list() for name, frame in spread.items()}, width_inches, title,
        "Cells, as many as changed by so many percent of their true value.",
    )  # fmt: skip
    axes.set_xlabel("Percent change", fontsize=10.5, color=INK)
    axes.set_ylabel("Cells", fontsize=10.5, color=INK)
    return _done(figure, path)


def accuracy_by_size(
    qualities: Quality | Mapping[str, Quality],
    path: str | Path | None = None,
    *,
    title: str = "How accurate are cells of which size?",
    width_inches: float = 7.2,
) -> Any:
    """Draw the average percent change by the size of the true value; return the figure."""
    named = _named(qualities)
    frames = {name: dict(q.by_size().select("size", "average percent change").iter_rows()) for name, q in named.items()}
    words = list(dict.fromkeys(word for frame in frames.values() for word in frame))
    figure, axes = _bars(
        words, {name: [frame.get(word, 0.0) for word in words] for name, frame in frames.items()}, width_inches, title,
        "Average percent change of all cells of that size, unchanged ones among them.",
    )  # fmt: skip
    axes.set_xlabel("True value", fontsize=10.5, color=INK)
    axes.set_ylabel("Average percent change", fontsize=10.5, color=INK)
    return _done(figure, path)


def _named(qualities: Quality | Mapping[str, Quality]) -> dict[str, Quality]:
    named = {"": qualities} if isinstance(qualities, Quality) else dict(qualities)
    if not named:
        raise InvalidOption("There is no release to plot.")
    if len(named) > len(COLOURS):
        raise InvalidOption(f"At most {len(COLOURS)} releases can be told apart in one plot, got {len(named)}.")
    return named


def _bars(words: list[str], heights: Mapping[str, list[float]], width: float, title: str, note: str) -> tuple[Any, Any]:
    """A group of bars per word, a bar per name."""
    figure = new_figure(width, 0.56 * width)
    axes = figure.add_subplot()
    place, each = np.arange(len(words)), 0.8 / len(heights)
    for i, (name, tall) in enumerate(heights.items()):
        bars = axes.bar(
            place + (i - (len(heights) - 1) / 2) * each, tall, each, color=COLOURS[i], label=name or None,
            hatch=HATCHES[i], edgecolor="white", linewidth=0.6, zorder=3,
        )  # fmt: skip
        if len(heights) == 1:
            axes.bar_label(bars, fmt="{:,.4g}", fontsize=8, color=INK, padding=2)
    axes.set_title(title, loc="left", fontsize=13, color=INK, pad=24)
    axes.annotate(note, (0.0, 1.03), xycoords="axes fraction", color=FAINT, fontsize=9)
    axes.set_xticks(place, words, rotation=30, ha="right", fontsize=8.5)
    axes.tick_params(colors=INK, labelsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    if len(heights) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(heights), 4), frameon=False, fontsize=9.5)
    return figure, axes


def _done(figure: Any, path: str | Path | None) -> Any:
    if path is not None:
        save(figure, path)
    return figure
