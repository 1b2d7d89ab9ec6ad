"""Where each cell of a table stands in a picture: one dimension down, the others across, in tree order."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.files.read import did_you_mean
from tablesafe.loss import loss
from tablesafe.report.axis import Axis
from tablesafe.report.cells import KINDS, NUMBER, Kind, OfficeCells, PublicCells
from tablesafe.report.plots.plot import Plot
from tablesafe.report.plots.style import BLUE, INK, ORANGE, WIDTH, head, look, new_figure, plain, shortened

if TYPE_CHECKING:
    from tablesafe.audit.findings import Findings


FINEST = (600, 900)
"""Most places down and across; where there are more lines, several share a place."""
INDENT = "\u00a0" * 3
"""Spaces that a page does not draw together."""


@dataclass(frozen=True, eq=False)
class Side:
    """One side of the picture: its lines, each with a name, how deep it lies, and the group that it belongs to."""

    heading: str
    names: tuple[str, ...] = field(repr=False)
    depth: NDArray[np.int32] = field(repr=False)
    group: Integers = field(repr=False)
    """The number of the group of lines, rising; of one group only where there is one dimension."""
    groups: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.depth)

    def ticks(self, most: int) -> Integers:
        """The lines to name: all, or as many levels from the top as fit, or every so many."""
        if len(self) <= most:
            return np.arange(len(self))
        for level in range(int(self.depth.max(initial=0)), -1, -1):
            chosen = np.flatnonzero(self.depth <= level)
            if len(chosen) <= most and (len(chosen) > 3 or level > 0):
                return _apart(chosen, len(self) / most)
        return np.arange(0, len(self), ceil(len(self) / most))


@dataclass(frozen=True, eq=False)
class Grid:
    """The line down and the line across of every cell."""

    rows: Side
    columns: Side
    row: Integers = field(repr=False)
    column: Integers = field(repr=False)

    @classmethod
    def of(cls, table: Table, rows: str | None = None) -> Self:
        """Lay a table out: `rows` stands down, by default the longest dimension; lines without a cell are left out."""
        if not table.dimensions:
            return cls._of_names(len(table))
        names = list(table.dimensions)
        if rows is not None and rows not in names:
            raise InvalidOption(
                f"The table has no dimension {rows!r}.",
                hint=f"{did_you_mean(rows, names) or 'its dimensions are ' + ', '.join(map(repr, names)) + '.'}",
            )
        down = rows or max(names, key=lambda name: len(table.dimensions[name]))
        across = sorted((name for name in names if name != down), key=lambda name: len(table.dimensions[name]))
        row, row_side = _side(table, [down])
        column, column_side = _side(table, across)
        return cls(row_side, column_side, row, column)

    @classmethod
    def _of_names(cls, n: int) -> Self:
        """Cells without dimensions, in their order, line by line."""
        width = max(1, ceil(sqrt(1.6 * n)))
        height = max(1, ceil(n / width))
        at = np.arange(n, dtype=np.int64)
        plain = [
            Side(words, (), np.zeros(lines, np.int32), np.zeros(lines, np.int64))
            for words, lines in (("Cells in their order, line by line", height), ("", width))
        ]
        return cls(plain[0], plain[1], at // width, at % width)

    @property
    def shape(self) -> tuple[int, int]:
        """Places down and across."""
        return min(len(self.rows), FINEST[0]), min(len(self.columns), FINEST[1])

    @property
    def shared(self) -> bool:
        """Whether several lines share a place."""
        return self.shape != (len(self.rows), len(self.columns))

    def greatest(self, values: Floats) -> Floats:
        """A picture of the greatest value at each place; NaN where there is no cell."""
        down, across = self.shape
        place = (self.row * down // len(self.rows)) * across + self.column * across // len(self.columns)
        picture = np.full(down * across, -np.inf)
        np.maximum.at(picture, place, values)
        return np.where(np.isneginf(picture), np.nan, picture).reshape(down, across)


def _side(table: Table, names: list[str]) -> tuple[Integers, Side]:
    """The line of every cell along some dimensions, the first of them outermost."""
    every = list(table.dimensions)
    axes = [Axis.of(name, table.dimensions[name]) for name in names]
    place = np.zeros(len(table), dtype=np.int64)
    for axis in axes:
        place = place * len(axis) + axis.line_of(table.codes[:, every.index(axis.name)])
    used, line = np.unique(place, return_inverse=True)
    if not axes:
        return line, Side("", (table.response,), np.zeros(1, np.int32), np.zeros(1, np.int64))
    inner, outer = axes[-1], axes[:-1]
    depth = inner.depth[used % len(inner)]
    texts = [INDENT * level + inner.heading(at) for at, level in enumerate(inner.depth.tolist())]
    shown = pl.Series(texts, dtype=pl.String).gather((used % len(inner)).astype(np.uint32)).to_list()
    found, group = np.unique(used // len(inner), return_inverse=True)
    words = tuple(_words(int(at), outer) for at in found) if outer and len(found) <= FINEST[1] else ()
    return line, Side(" × ".join(axis.name for axis in axes), tuple(shown), depth, group.astype(np.int64), words)


def _words(place: int, axes: list[Axis]) -> str:
    """The codes that a group of lines stands for."""
    parts = []
    for axis in reversed(axes):
        place, at = divmod(place, len(axis))
        parts.append(axis.heading(at))
    return ", ".join(reversed(parts))


def _apart(chosen: Integers, distance: float) -> Integers:
    """Those that keep their distance from the one before."""
    kept: list[int] = []
    for at in chosen.tolist():
        if not kept or at - kept[-1] >= distance:
            kept.append(at)
    return np.array(kept, dtype=np.int64)


# A heat map of a whole table: every cell by its status, or by how much it was changed.


By = Literal["status", "change"]
COLOURS: dict[Kind, str] = {
    Kind.ABSENT: "#FFFFFF",
    Kind.PUBLISHED: "#E9EDF0",
    Kind.MAY_DIFFER: "#F0E442",
    Kind.CHANGED: "#F0E442",
    Kind.BY_DESIGN: "#ABABAB",
    Kind.INTERVAL: "#009E73",
    Kind.WITHHELD: "#0072B2",
    Kind.COMPLEMENTARY: "#56B4E9",
    Kind.GIVEN: "#CC79A7",
    Kind.SENSITIVE_SHOWN: "#E69F00",
    Kind.SENSITIVE: "#D55E00",
    Kind.POSSIBLY: "#7F5F00",
    Kind.OPEN: "#000000",
}
"""From what matters least to what matters most: where cells share a place, the last of these is seen."""
RANK = np.array([list(COLOURS).index(kind) for kind in KINDS], dtype=np.float64)
SIGNED = 700
"""Up to so many cells each has the sign of its status in it, so that no colour need be told apart."""
LINES = 0.15
"""Inches that a line with a name takes."""
LARGEST_INCHES = 10.5
"""Height up to which a picture grows for the names of its rows."""


@look()
def heat_map(
    release: Release,
    problem: Problem | None = None,
    findings: Findings | None = None,
    *,
    by: By = "status",
    rows: str | None = None,
    title: str = "",
    width_inches: float = WIDTH,
) -> Plot:
    """Draw every cell of a table as a small square: by its status, or by how much it was changed.

    The longest dimension (or `rows`) stands down, all others across, in the order of their hierarchies. Of a release
    alone it shows what the public sees: that may be published. With the problem it shows why cells are withheld, with
    findings also which are open, and `by="change"` compares with the truth: these are internal only. Where there are
    more cells than fit, several share a place, and what matters most is seen.
    """
    if by not in {"status", "change"}:
        raise InvalidOption(f"heat_map's by must be 'status' or 'change', got {by!r}.")
    if by == "change" and problem is None:
        raise InvalidOption(
            "Changes cannot be seen without the problem.", hint="heat_map(release, problem, by='change')."
        )
    grid = Grid.of(release.table, rows)
    figure = new_figure(width_inches, _height(grid, width_inches))
    axes = figure.add_subplot()
    if by == "change":
        assert problem is not None
        told = _changes(figure, axes, grid, problem, release)
    else:
        told = _statuses(figure, axes, grid, release, problem, findings)
    _name(axes, grid, width_inches)
    size = f"{len(release.table):,} cells, {len(grid.rows):,} lines by {len(grid.columns):,}"
    default = "How was each cell changed?" if by == "change" else "What became of each cell?"
    head(axes, title or default, "" if grid.columns.groups else f"{size}.")
    if grid.columns.groups:
        figure.suptitle(title or default, x=0.01, ha="left", color=INK, fontsize=12.5)
        axes.set_title("")
    return Plot(figure, f"Heat map of {size}: {told}.", internal=problem is not None or findings is not None)


def _height(grid: Grid, width: float) -> float:
    lines = len(grid.rows)
    named = LINES * lines + 1.6
    return min(max(named, 2.6), max(0.75 * width, min(named, LARGEST_INCHES))) if grid.rows.names else 0.8 * width


def _statuses(
    figure: Any, axes: Any, grid: Grid, release: Release, problem: Problem | None, findings: Findings | None
) -> str:
    """Draw the statuses, and say in words how many there are of each."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    view = PublicCells(release) if problem is None else OfficeCells(problem, release, findings)
    kind = view.kind
    picture = grid.greatest(RANK[kind])
    palette = ListedColormap(list(COLOURS.values()))
    _draw(axes, np.nan_to_num(picture, nan=0.0), cmap=palette, vmin=-0.5, vmax=len(COLOURS) - 0.5)
    numbers = np.bincount(kind, minlength=len(KINDS))
    there = [each for each in COLOURS if numbers[NUMBER[each]] and each is not Kind.ABSENT]
    signed = len(kind) <= SIGNED
    if signed:
        _signs(axes, grid, [KINDS[each].sign for each in kind.tolist()], [KINDS[each] is Kind.OPEN for each in kind])
    handles = [
        Patch(facecolor=COLOURS[each], edgecolor="#888888", linewidth=0.4, label=_legend(each, numbers, signed))
        for each in there
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(3, len(handles)), handlelength=1.2)
    return ", ".join(f"{int(numbers[NUMBER[each]]):,} {each.word}" for each in there)


def _legend(kind: Kind, numbers: Any, signed: bool) -> str:
    sign = f" ({kind.sign})" if signed and kind.sign else ""
    return f"{kind.word}{sign}: {int(numbers[NUMBER[kind]]):,}"


def _changes(figure: Any, axes: Any, grid: Grid, problem: Problem, release: Release) -> str:
    """Draw the changes in percent, and say in words how many there are."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Patch

    found = loss(problem, release)
    signed = np.sign(found.change) * found.percent
    picture = _farther(grid, np.nan_to_num(signed, nan=0.0, posinf=1e300, neginf=-1e300))
    hidden = grid.greatest(np.where(np.isnan(found.percent), -1.0, 1.0)) < 0
    most = _limit(found.percent)
    shades = LinearSegmentedColormap.from_list("changes", ["#003B5C", BLUE, "#F4F4F4", ORANGE, "#5A2800"])
    drawn = _draw(
        axes, np.where(hidden, np.nan, picture), cmap=shades.with_extremes(bad="#FFFFFF"), vmin=-most, vmax=most
    )
    _draw(axes, np.where(hidden, 1.0, np.nan), cmap=_one("#8C8C8C"), vmin=0, vmax=1)
    if len(signed) <= SIGNED:
        signs = np.where(np.isnan(signed), "×", np.where(signed > 0, "+", np.where(signed < 0, "−", "")))
        _signs(axes, grid, signs.tolist(), (np.abs(np.nan_to_num(signed)) > most / 3).tolist())
    beyond = bool((found.percent[~np.isnan(found.percent)] > most).any())
    bar = figure.colorbar(drawn, ax=axes, extend="both" if beyond else "neither", fraction=0.04, pad=0.02)
    bar.set_label("Change in percent")
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_formatter(lambda at, _: f"{'+' if at > 0 else '−' if at < 0 else ''}{plain(abs(at))}")
    if found.missing.any():
        handles = [Patch(facecolor="#8C8C8C", label=f"withheld: {found.withheld:,}")]
        figure.legend(handles=handles, loc="outside lower center", handlelength=1.2)
    return f"{found.changed:,} changed, by {found.average_percent:.2f} percent on average, {found.withheld:,} withheld"


def _farther(grid: Grid, values: Floats) -> Floats:
    """A picture of the value farthest from zero at each place."""
    high, low = grid.greatest(values), -grid.greatest(-values)
    return np.where(high >= -low, high, low)


def _limit(percent: Floats) -> float:
    """The change at which the colours end: beyond nearly all of them."""
    there = percent[np.isfinite(percent) & (percent > 0)]
    if not there.size:
        return 1.0
    reach = float(np.quantile(there, 0.95))
    scale = 10.0 ** np.floor(np.log10(reach))
    return float(scale * min(step for step in (1, 2, 3, 5, 10) if step * scale >= reach * (1 - 1e-9)))


def _one(colour: str) -> Any:
    from matplotlib.colors import ListedColormap

    return ListedColormap([colour]).with_extremes(bad=(1, 1, 1, 0))


def _draw(axes: Any, picture: Floats, **looks: Any) -> Any:
    return axes.imshow(picture, aspect="auto", interpolation="nearest", interpolation_stage="rgba", **looks)


def _signs(axes: Any, grid: Grid, signs: list[str], light: list[bool]) -> None:
    for row, column, sign, white in zip(grid.row.tolist(), grid.column.tolist(), signs, light, strict=True):
        if sign:
            axes.text(column, row, sign, ha="center", va="center", fontsize=6, color="white" if white else INK)


def _name(axes: Any, grid: Grid, width: float) -> None:
    """Name the lines, as many as fit, and draw borders between groups."""
    down, across = grid.shape
    inches = axes.figure.get_figheight() - 1.2
    longest = _ticks(axes.yaxis, axes.set_yticks, grid.rows, down, int(inches / 0.135), 34)
    axes.tick_params(axis="y", length=0, labelsize=7, pad=4.1 * longest + 3)
    for label in axes.get_yticklabels():
        label.set_ha("left")
    longest = _ticks(axes.xaxis, axes.set_xticks, grid.columns, across, int((width - 2.2) / 0.16), 22)
    axes.tick_params(axis="x", rotation=90 if longest > 2 else 0, length=0, labelsize=7)
    axes.set_ylabel(grid.rows.heading)
    shared = "\nSeveral cells share a place: what matters most is seen." if grid.shared else ""
    axes.set_xlabel(grid.columns.heading + shared)
    axes.spines[:].set_visible(False)
    if grid.columns.groups:
        _group(axes, grid.columns, across, width)


def _ticks(axis: Any, place: Any, side: Side, places: int, most: int, letters: int) -> int:
    """Name lines; says how many letters the longest name has."""
    if not side.names:
        axis.set_visible(bool(side.heading))
        place([])
        return 0
    chosen = side.ticks(max(2, most))
    bare = side.names if axis.axis_name == "y" else tuple(name.strip() for name in side.names)
    names = [shortened(bare[at], letters) for at in chosen.tolist()]
    place(chosen * places / len(side) + (places / len(side) - 1) / 2, names)
    return max(map(len, names))


def _group(axes: Any, side: Side, places: int, width: float) -> None:
    """Borders between groups of columns, and their names above."""
    starts = np.append(np.flatnonzero(np.diff(side.group, prepend=-1)), len(side))
    ends = starts * places / len(side) - 0.5
    for border in ends[1:-1]:
        axes.axvline(border, color=INK, linewidth=0.8)
    room = max(3, int((width - 2.2) / len(side.groups) / 0.075))
    if len(side.groups) > 30:
        return
    for left, right, words in zip(ends[:-1], ends[1:], side.groups, strict=True):
        axes.annotate(
            shortened(words, room), ((left + right) / 2, 1.0), (0, 4), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", va="bottom", fontsize=7.5, color=INK,
        )  # fmt: skip
