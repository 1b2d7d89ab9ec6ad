"""Sensitivity regions: which shares of the two largest contributors rules call sensitive. Shows rule parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidInput, InvalidOption
from tablesafe.core.sensitivity import Rule
from tablesafe.report.plots.plot import Plot
from tablesafe.report.plots.style import COLOURS, DASHES, FAINT, INK, WIDTH, head, legend_below, look, new_figure
from tablesafe.rules.explorer import TRIANGLE, Polygon, describe, safe_region


@look()
def sensitivity_regions(
    rules: Sequence[Rule] | Mapping[str, Rule],
    *,
    title: str = "Which cells are sensitive?",
    width_inches: float = WIDTH,
) -> Plot:
    """Draw the regions that rules call sensitive, over the shares of the two largest contributors.

    Every cell is a point of the triangle: how much of it the largest contributor holds, and how much the second. A rule
    calls sensitive what lies on the tinted side of its line; a cell on the line is safe. A mapping gives the rules
    names of its own for the legend. It shows the parameters of the rules: internal only.
    """
    named = dict(rules) if isinstance(rules, Mapping) else {describe(rule): rule for rule in rules}
    if not named:
        raise InvalidOption("There is no rule to plot.", hint="sensitivity_regions([PPercent(p=10)]).")
    if len(named) > len(COLOURS):
        raise InvalidOption(f"At most {len(COLOURS)} rules can be told apart in one plot, got {len(named)}.")
    regions = {name: safe_region(rule) for name, rule in named.items()}
    columns = 2 if max(map(len, named)) < 40 else 1
    figure = new_figure(width_inches, 0.66 * width_inches + 0.2 * -(-len(named) // columns))
    axes = figure.add_subplot()
    axes.add_patch(_outline(_points(TRIANGLE)))
    for i, (name, region) in enumerate(regions.items()):
        _draw_region(axes, region, name, COLOURS[i], DASHES[i % len(DASHES)], tint=0.2 / len(named) ** 0.5)
    _label(axes, title)
    legend_below(figure, columns)
    return Plot(
        figure,
        "Triangle of the shares that the largest and the second largest contributor hold of a cell; tinted where a "
        f"rule calls the cell sensitive. Rules: {'; '.join(named)}.",
    )


def drawable(rules: Iterable[Rule]) -> list[Rule]:
    """The rules that are regions of the triangle, as many of them as can be told apart."""
    found = []
    for rule in rules:
        with suppress(InvalidInput):
            safe_region(rule)
            found.append(rule)
    return found[: len(COLOURS)]


def _outline(corners: Floats) -> Any:
    from matplotlib.patches import Polygon as Patch

    return Patch(corners, closed=True, fill=False, edgecolor=INK, linewidth=1.2, zorder=5, joinstyle="round")


def _draw_region(axes: Any, safe: Polygon, name: str, colour: str, dash: Any, tint: float) -> None:
    """Tint what is sensitive (the triangle without the safe part), and draw the line between the two."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    hole = _points(safe)
    around, inside = _closed(_points(TRIANGLE)), _closed(hole)[::-1]
    ring = Outline.make_compound_path(Outline(around, closed=True), Outline(inside, closed=True))
    axes.add_patch(PathPatch(ring, facecolor=colour, alpha=tint, edgecolor="none", zorder=2))
    border = _border(hole)
    axes.plot(*border.T, color=colour, linestyle=dash, linewidth=2.4, label=name, zorder=6)


def _border(safe: Floats) -> Floats:
    """The sides of the safe part that are no sides of the triangle, broken by NaN."""
    nexts = np.roll(safe, -1, axis=0)
    middle = (safe + nexts) / 2
    first, second = middle.T
    inner = (second > 1e-12) & (first - second > 1e-12) & (1 - first - second > 1e-12)
    gap = np.full_like(safe, np.nan)
    sides: Floats = np.stack([safe, nexts, gap], axis=1)[inner]
    return sides.reshape(-1, 2)


def _label(axes: Any, title: str) -> None:
    from matplotlib.ticker import PercentFormatter

    head(axes, title, "A rule calls sensitive what is tinted, beyond its line; a cell on the line is safe.")
    axes.set_xlabel("Share of the largest contributor in the cell")
    axes.set_ylabel("Share of the second largest")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 0.52)
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set_xticks(np.linspace(0, 1, 11))
    axes.set_yticks(np.linspace(0, 0.5, 6))
    axes.grid(zorder=0)
    axes.annotate("both equal", (0.215, 0.24), rotation=45, rotation_mode="anchor", color=FAINT)
    axes.annotate("only two contributors", (0.705, 0.32), rotation=-45, rotation_mode="anchor", color=FAINT)


def _points(polygon: Polygon) -> Floats:
    return np.array([[float(first), float(second)] for first, second in polygon]).reshape(-1, 2)


def _closed(corners: Floats) -> Floats:
    return np.concatenate([corners, corners[:1]])
