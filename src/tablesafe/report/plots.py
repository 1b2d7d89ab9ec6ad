"""Plots, drawn without any global state: each function builds a figure of its own and returns it.

Colours are those of Okabe and Ito, told apart by readers with any kind of colour vision; every line also has its own
dash pattern, so that a black-and-white print can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tablesafe.equations import Floats
from tablesafe.errors import InvalidOption, MissingExtra
from tablesafe.files import whole_file
from tablesafe.rules.explorer import TRIANGLE, Polygon, describe, safe_region
from tablesafe.rules.sensitivity import Rule

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)), (0, (4, 1, 1, 1, 1, 1)))
FORMATS = ("svg", "png", "pdf")
INK, FAINT = "#222222", "#777777"


def sensitivity_regions(
    rules: Sequence[Rule] | Mapping[str, Rule],
    path: str | Path | None = None,
    *,
    title: str = "Which cells are sensitive?",
    width_inches: float = 7.2,
) -> Any:
    """Draw the regions that rules call sensitive, over the shares of the two largest contributors; return the figure.

    Every cell is a point of the triangle: how much of it the largest contributor holds, and how much the second. A rule
    calls sensitive what lies on the tinted side of its line; a cell on the line is safe. A mapping gives the rules
    names of its own for the legend. `path` writes it, as SVG, PNG or PDF by its suffix.
    """
    named = dict(rules) if isinstance(rules, Mapping) else {describe(rule): rule for rule in rules}
    if not named:
        raise InvalidOption("There is no rule to plot.\n\nHint: sensitivity_regions([PPercent(p=10)]).")
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
    figure.legend(
        loc="outside lower center", ncols=columns, frameon=False, fontsize=9.5, handlelength=3.4, labelcolor=INK
    )
    if path is not None:
        save(figure, path)
    return figure


def save(figure: Any, path: str | Path) -> None:
    """Write a figure, whole or not at all, in the format of the path's suffix; equal figures give equal files."""
    suffix = Path(path).suffix.lower().lstrip(".")
    if suffix not in FORMATS:
        raise InvalidOption(
            f"A plot cannot be written as {Path(path).name!r}.\n\n"
            f"Hint: end the name in {', '.join(f'.{name}' for name in FORMATS)}."
        )
    from matplotlib import rc_context

    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
    with rc_context({"svg.hashsalt": "tablesafe", "svg.fonttype": "path"}), whole_file(path) as temporary:
        figure.savefig(temporary, format=suffix, dpi=160, metadata=dated)


def new_figure(width: float, height: float) -> Any:
    """An empty figure of so many inches, tied to no display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("Plots", "plots") from error
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


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
    axes.plot(*border.T, color=colour, linestyle=dash, linewidth=2.4, label=name, zorder=6, solid_capstyle="butt")


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

    axes.set_title(title, loc="left", fontsize=13, color=INK, pad=24)
    note = "A rule calls sensitive what is tinted, beyond its line; a cell on the line is safe."
    axes.annotate(note, (0.0, 1.03), xycoords="axes fraction", color=FAINT, fontsize=9)
    axes.set_xlabel("Share of the largest contributor in the cell", fontsize=10.5, color=INK)
    axes.set_ylabel("Share of the second largest", fontsize=10.5, color=INK)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 0.52)
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set_xticks(np.linspace(0, 1, 11))
    axes.set_yticks(np.linspace(0, 0.5, 6))
    axes.tick_params(colors=INK, labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E4E4E4", linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.annotate("both equal", (0.215, 0.24), rotation=45, rotation_mode="anchor", color=FAINT, fontsize=9)
    axes.annotate("only two contributors", (0.705, 0.32), rotation=-45, rotation_mode="anchor", color=FAINT, fontsize=9)


def _points(polygon: Polygon) -> Floats:
    return np.array([[float(first), float(second)] for first, second in polygon]).reshape(-1, 2)


def _closed(corners: Floats) -> Floats:
    return np.concatenate([corners, corners[:1]])
