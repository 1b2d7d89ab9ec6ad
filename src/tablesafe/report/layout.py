"""A table laid out for eyes: one dimension down, one across, the others held at one code each.

The report, the web app and notebooks all show tables through this one class. Everything underneath is arrays; only the
cells of a window are ever turned into text, so that a million cells can be scrolled.

    from tablesafe.report.layout import Layout

    layout = Layout.public(release)                        # what the release says; nothing confidential is read
    layout = Layout.internal(problem, release, findings)   # the office's view; release and findings may be left out
    layout = Layout.internal(table)                        # a table before there are any rules

    layout.rows, layout.columns      an `Axis` each: codes, labels, depth, parent, end, has_children; arrays by line
    layout.filters                   {dimension: code} of every other dimension; by default its total
    layout.choices("month")          the codes that a filter, or an axis, can take, as an `Axis`
    layout.shape                     lines down, lines across
    layout.at(rows="nace", columns="size", filters={"region": "North"})     the same cells, laid out otherwise
    layout.occupied                  which lines down show any cell at these filters

    layout.rows.visible(opened)      the lines that show when the lines in the mask `opened` are unfolded
    layout.rows.to_depth(1)          the lines of the first levels

    window = layout.window(range(200, 260), range(12))         rows and columns: ranges, slices or arrays of lines
    window.cell                      2-D array of cell numbers, −1 where the table has no cell
    window.text[i][j]                what the public sees of it: value, interval, × where withheld, empty without a cell
    window.truth[i][j]               the true value; always empty in a public layout
    window.kind[i][j]                a `Kind`: .word, .sign, .css, .meaning, .colour, .ink
    window.hover(i, j)               what to say when somebody points at it, lines joined by line breaks

    layout.cells(rows, columns)      cell numbers of arrays of lines, −1 for none (broadcast; no loop over cells)
    layout.find({"nace": ["A", "B"], "region": ["North", "North"]})    cell numbers by codes, others at their total
    layout.place(cell)               the line down and across where a cell stands, None when the filters hide it
    layout.describe(cell)            a cell in the user's words, with labels
    layout.counts()                  how many cells of the table (not only those laid out) are of which `Kind`

A table with one dimension has a single column; a table of named cells has one line per cell. A code that is part of
several totals stands once, under the lowest of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, Mask, cell_keys
from tablesafe.core.errors import InvalidOption, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.language import ENGLISH, Language
from tablesafe.core.linking import RESPONSE
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.files.read import did_you_mean
from tablesafe.report.axis import Axis
from tablesafe.report.cells import KINDS, NUMBER, Cells, Kind, OfficeCells, PublicCells

if TYPE_CHECKING:
    from tablesafe.audit.findings import Findings

Lines = range | slice | Sequence[int] | NDArray[np.integer]
"""Some lines of an axis."""


@dataclass(frozen=True, eq=False)
class Window:
    """Some lines of a layout, ready to be shown."""

    layout: Layout = field(repr=False)
    rows: Integers = field(repr=False)
    columns: Integers = field(repr=False)
    cell: Integers = field(repr=False)
    """Two-dimensional: the number of each cell, −1 where there is none."""

    @cached_property
    def text(self) -> list[list[str]]:
        """What the public sees of each cell."""
        return self._spread(self.layout.view.texts)

    @cached_property
    def truth(self) -> list[list[str]]:
        """The true values; empty texts in a public layout."""
        return self._spread(self.layout.view.truths)

    @cached_property
    def kind(self) -> list[list[Kind]]:
        """How each cell is shown."""
        there = self.cell >= 0
        number = np.where(there, self.layout.view.kind[np.maximum(self.cell, 0)] if there.any() else 0, len(KINDS) - 1)
        return [[KINDS[k] for k in line] for line in number.tolist()]

    def hover(self, row: int, column: int, *, truth: bool = True) -> str:
        """What to say of a cell of the window when somebody points at it; without `truth` not its true value."""
        cell = int(self.cell[row, column])
        if cell < 0:
            return ""
        facts = self.layout.view.facts(cell, truth=truth)
        return "\n".join((self.layout.describe(cell), *facts)) if facts else ""

    def _spread(self, texts: Any) -> list[list[str]]:
        there = self.cell >= 0
        flat = np.full(self.cell.size, "", dtype=object)
        flat[there.ravel()] = texts(self.cell[there])
        spread: list[list[str]] = flat.reshape(self.cell.shape).tolist()
        return spread


@dataclass(frozen=True, eq=False)
class Layout:
    """Where every cell of a table stands, and what eyes see of it."""

    table: Table = field(repr=False)
    view: Cells = field(repr=False)
    """What is shown of each cell; its `internal` says whether any of it is confidential."""
    rows: Axis
    columns: Axis
    filters: Mapping[str, str] = field(default_factory=dict)
    """The code at which each other dimension is held."""

    @classmethod
    def public(
        cls, release: Release, *, rows: str | None = None, columns: str | None = None,
        filters: Mapping[str, str] | None = None, intervals: bool = False, language: Language = ENGLISH,
    ) -> Self:  # fmt: skip
        """Lay out what a release says; with `intervals` also what it announces for each changed value."""
        return cls._of(release.table, PublicCells(release, intervals, language), rows, columns, filters or {})

    @classmethod
    def internal(
        cls, problem: Problem | Table, release: Release | None = None, findings: Findings | None = None, *,
        rows: str | None = None, columns: str | None = None, filters: Mapping[str, str] | None = None,
        language: Language = ENGLISH,
    ) -> Self:  # fmt: skip
        """Lay out what the office knows: true values, and as much of rules, release and audit as there is."""
        whole = Problem(problem) if isinstance(problem, Table) else problem
        return cls._of(whole.table, OfficeCells(whole, release, findings, language), rows, columns, filters or {})

    @classmethod
    def _of(cls, table: Table, view: Cells, rows: str | None, columns: str | None, filters: Mapping[str, str]) -> Self:
        names = list(table.dimensions)
        for name in (*filters, *filter(None, (rows, columns))):
            if name not in names:
                hint = did_you_mean(name, names) or f"its dimensions are {', '.join(map(repr, names))}."
                raise InvalidOption(f"The table has no dimension {name!r}.", hint=hint)
        if not names:
            codes = table.code_columns()["cell"].to_numpy().astype(object)
            return cls(table, view, Axis.flat("cell", codes), _single(table))
        down, across = _chosen(table, rows, columns)
        across_axis = _single(table) if across is None else Axis.of(across, table.dimensions[across])
        held = {
            name: _held(name, tree, filters.get(name))
            for name, tree in table.dimensions.items()
            if name not in (down, across)
        }
        return cls(table, view, Axis.of(down, table.dimensions[down]), across_axis, held)

    # -- geometry ----------------------------------------------------------------------------------------------------

    @property
    def is_internal(self) -> bool:
        """Whether any of it is confidential."""
        return self.view.internal

    @property
    def shape(self) -> tuple[int, int]:
        """Lines down and lines across."""
        return len(self.rows), len(self.columns)

    def at(
        self, *, rows: str | None = None, columns: str | None = None, filters: Mapping[str, str] | None = None
    ) -> Self:
        """The same cells laid out otherwise: other dimensions down and across, or held at other codes.

        To exchange the two, name both. Filters that are not named stay as they are.
        """
        down, across = rows or self.rows.name, columns or self.columns.name or None
        if rows == self.columns.name and columns is None:
            across = self.rows.name
        if columns == self.rows.name and rows is None:
            down = self.columns.name
        kept = {name: code for name, code in {**self.filters, **(filters or {})}.items() if name not in (down, across)}
        if not self.table.dimensions:
            return self
        if (down, across or "") != (self.rows.name, self.columns.name) or set(kept) != set(self.filters):
            return self._of(self.table, self.view, down, across, kept)
        held = {name: _held(name, self.table.dimensions[name], code) for name, code in kept.items()}
        return self if held == self.filters else replace(self, filters=held)

    def shown_as(self, view: Cells) -> Self:
        """The same lines with another view of the cells: another release of the same table, for example."""
        return replace(self, view=view)

    def choices(self, dimension: str) -> Axis:
        """The codes of a dimension, in the order of its tree."""
        return Axis.of(dimension, self.table.dimensions[dimension])

    @cached_property
    def _slice(self) -> tuple[Integers, Integers]:
        """The places of the cells at these filters, sorted, and the cells."""
        names, codes = list(self.table.dimensions), self.table.codes
        here = np.ones(len(self.table), dtype=np.bool_)
        for name, code in self.filters.items():
            here &= codes[:, names.index(name)] == self.table.dimensions[name].position(code)
        cells = np.flatnonzero(here)
        place = self._line(self.rows, cells) * len(self.columns) + self._line(self.columns, cells)
        order = np.argsort(place, kind="stable")
        return place[order], cells[order]

    def _line(self, axis: Axis, cells: Integers) -> Integers:
        names = list(self.table.dimensions)
        if axis.name in names:
            return axis.line_of(self.table.codes[cells, names.index(axis.name)])
        return cells if axis is self.rows else np.zeros(len(cells), dtype=np.int64)

    @cached_property
    def occupied(self) -> Mask:
        """Which lines down show any cell at these filters."""
        place, cells = self._slice
        shown = np.not_equal(self.view.kind[cells], NUMBER[Kind.ABSENT])
        mask = np.zeros(len(self.rows), dtype=np.bool_)
        mask[place[shown] // max(1, len(self.columns))] = True
        return mask

    def holding(self, kinds: Sequence[int], *, across: bool) -> Mask:
        """Which lines, down or across, show a cell of some kinds (by number) at these filters."""
        place, cells = self._slice
        width = max(1, len(self.columns))
        there = place[np.isin(self.view.kind[cells], kinds)]
        mask = np.zeros(width if across else len(self.rows), dtype=np.bool_)
        mask[there % width if across else there // width] = True
        return mask

    def cells(self, rows: Any, columns: Any) -> Integers:
        """The cell at each pair of lines, −1 where the table has none; arrays broadcast against each other."""
        place, cells = self._slice
        wanted = np.asarray(rows, dtype=np.int64) * len(self.columns) + np.asarray(columns, dtype=np.int64)
        if not len(place):
            return np.full(wanted.shape, -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(place, wanted), len(place) - 1)
        return np.where(place[at] == wanted, cells[at], -1)

    def window(self, rows: Lines | None = None, columns: Lines | None = None) -> Window:
        """Some lines, ready to be shown; all of them when nothing is named."""
        down, across = _lines(rows, len(self.rows)), _lines(columns, len(self.columns))
        return Window(self, down, across, self.cells(down[:, None], across[None, :]))

    def find(self, codes: Mapping[str, Sequence[str]]) -> Integers:
        """The cells with these codes, −1 where there is none; a dimension that is left out stands at its total."""
        wanted = self._positions(codes)
        sizes = [len(tree) for tree in self.table.dimensions.values()]
        together = cell_keys(np.concatenate([self.table.codes, np.maximum(wanted, 0)]), sizes)
        keys, asked = together[: len(self.table)], together[len(self.table) :]
        order = np.argsort(keys, kind="stable")
        if not len(order):
            return np.full(len(asked), -1, dtype=np.int64)
        at = order[np.minimum(np.searchsorted(keys[order], asked), len(order) - 1)]
        return np.where((keys[at] == asked) & (wanted >= 0).all(axis=1), at, -1)

    def _positions(self, codes: Mapping[str, Sequence[str]]) -> NDArray[np.int32]:
        if not self.table.dimensions:
            raise InvalidTable("A table of named cells has no codes to find a cell by.")
        n = max((len(each) for each in codes.values()), default=1)
        columns = []
        for name, tree in self.table.dimensions.items():
            if name in codes:
                columns.append(tree.positions(pl.Series(list(codes[name]), dtype=pl.String)))
            else:
                columns.append(np.full(n, tree.position(_held(name, tree, None)), dtype=np.int32))
        return np.column_stack(columns)

    def place(self, cell: int) -> tuple[int, int] | None:
        """The lines down and across where a cell stands; None when the filters hide it."""
        one = np.array([cell], dtype=np.int64)
        row, column = int(self._line(self.rows, one)[0]), int(self._line(self.columns, one)[0])
        return (row, column) if int(self.cells(row, column)) == cell else None

    # -- words -------------------------------------------------------------------------------------------------------

    def describe(self, cell: int) -> str:
        """A cell in the user's words: its codes, with labels."""
        if self.table.names is not None:
            return str(self.table.names[cell])
        parts = []
        for (name, tree), position in zip(self.table.dimensions.items(), self.table.codes[cell].tolist(), strict=True):
            code = tree.codes[position]
            label = tree.labels.get(code, "")
            parts.append(f"{name} {code}" + (f" {label}" if label and label != code else ""))
        return " · ".join(parts)

    def counts(self) -> dict[Kind, int]:
        """How many cells of the whole table are of which kind; those that are not part of what is shown left out."""
        found = np.bincount(self.view.kind, minlength=len(KINDS)).tolist()
        return {kind: number for kind, number in zip(KINDS, found, strict=True) if number and kind is not Kind.ABSENT}


def _single(table: Table) -> Axis:
    """The only column of a table with one dimension: it is called by the response."""
    return Axis.flat("", np.array([table.response], dtype=object))


def _chosen(table: Table, rows: str | None, columns: str | None) -> tuple[str, str | None]:
    """The dimensions down and across: by default the longest down, and the responses or the shortest across."""
    if rows is not None and rows == columns:
        raise InvalidOption(f"Dimension {rows!r} cannot stand both down and across.")
    sizes = {name: len(tree) for name, tree in table.dimensions.items()}
    if len(sizes) == 1:
        return next(iter(sizes)), None
    free = [name for name in sizes if name not in (rows, columns)]
    if columns is None:
        shortest = min(free, key=lambda name: sizes[name] if sizes[name] > 1 else len(table) + 1)
        columns = RESPONSE if RESPONSE in free else shortest
        if rows is None and len(free) > 1 and columns == max(free, key=lambda name: sizes[name]):
            columns = free[-1]
        free.remove(columns)
    if rows is None:
        rows = max(free, key=lambda name: sizes[name])
    return rows, columns


def _held(name: str, tree: Hierarchy, code: str | None) -> str:
    """The code that a dimension is held at: the one asked for, else its total or the first code above the others."""
    if code is not None:
        return tree.codes[tree.position(code)]
    return tree.total or tree.roots[0]


def _lines(lines: Lines | None, n: int) -> Integers:
    if lines is None:
        return np.arange(n, dtype=np.int64)
    if isinstance(lines, slice):
        lines = range(*lines.indices(n))
    chosen = np.asarray(lines, dtype=np.int64)
    if chosen.size and (int(chosen.min()) < 0 or int(chosen.max()) >= n):
        raise InvalidOption(f"There are {n:,} lines; a window asked for number {int(chosen.max()) + 1:,}.")
    return chosen
