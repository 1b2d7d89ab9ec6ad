"""The units of a table: groups of inner cells that no published count tells apart. They are what is changed.

Where every inner cell is published, each is a unit of its own. Where inner cells are withheld by design, those that are
part of exactly the same published counts act as one: to change them apart would change more than needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tablesafe.core.equations import Floats, Integers, Mask, cell_keys
from tablesafe.core.errors import InvalidProblem, InvalidTable
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table
from tablesafe.work.compiled import compiled

HASH = 20260229
"""Seed of the numbers by which sets of cells are told apart; it has no part in the result."""


@dataclass(frozen=True, eq=False)
class Structure:
    """How every cell is a sum of inner cells: one equation per total, from the inner cells up."""

    table: Table = field(repr=False)
    parts: sparse.csr_array = field(repr=False)
    """Row by row the parts of each total; inner cells have none."""
    inner: Mask = field(repr=False)

    @classmethod
    def of(cls, table: Table) -> Self | None:
        """The structure of a table; None when its inner cells do not determine all its totals, as in linked tables."""
        n = len(table)
        first = np.full(n, -1, dtype=np.int64)
        rows = np.arange(len(table.totals))[::-1]
        first[table.totals[rows]] = rows
        totals = np.flatnonzero(first >= 0)
        chosen = sparse.coo_array(table.equations[first[totals]])
        part = chosen.col != totals[chosen.row]
        row, column, sign = totals[chosen.row[part]], chosen.col[part], chosen.data[part]
        if (sign < 0).any():
            total = int(row[np.flatnonzero(sign < 0)[0]])
            raise InvalidTable(
                f"Small-count rounding needs totals that are sums of counts, but {table.describe(total)} is a "
                f"difference.",
                hint="leave differences out of the table, or use ts.Round.",
            )
        parts = sparse.csr_array((np.ones(len(row), np.int64), (row, column)), shape=(n, n))
        loops = connected_components(parts, connection="strong", return_labels=False) < n
        structure = cls(table, parts, first < 0)
        return None if loops or not structure._determines_all() else structure

    def up(self, values: NDArray[Any]) -> NDArray[Any]:
        """Each cell's sum over its inner cells."""
        own = np.where(self.inner, values, 0)
        sums = own
        while True:
            new = np.where(self.inner, own, self.parts @ sums)
            if (new == sums).all():
                return new
            sums = new

    def down(self, values: NDArray[Any]) -> NDArray[Any]:
        """Each cell's sum over itself and all the totals that it is part of."""
        above = sparse.csr_array(self.parts.T)
        sums = values
        while True:
            new = values + above @ sums
            if (new == sums).all():
                return np.asarray(new)
            sums = new

    def some_above(self, marked: Mask) -> Integers:
        """Per cell a marked one that it is part of, or itself; −1 where there is none."""
        entries = sparse.coo_array(self.parts)
        total, part = entries.row, entries.col
        found = np.where(marked, np.arange(len(marked)), -1)
        while True:
            new = found.copy()
            np.maximum.at(new, part, found[total])
            if (new == found).all():
                return found
            found = new

    def least_above(self, values: Integers) -> Integers:
        """Per cell the least value of itself and all the totals that it is part of."""
        entries = sparse.coo_array(self.parts)
        found = values
        while True:
            new = found.copy()
            np.minimum.at(new, entries.col, found[entries.row])
            if (new == found).all():
                return found
            found = new

    def _determines_all(self) -> bool:
        """Whether every equation holds whatever the inner cells are: tried with large random numbers."""
        random = np.random.default_rng(HASH).integers(0, 2**40, len(self.inner))
        return not np.asarray(self.table.equations.astype(np.int64) @ self.up(random)).any()


@dataclass(frozen=True, eq=False)
class Units:
    """The units, and which unit each inner cell belongs to; a unit is named by the first of its cells."""

    structure: Structure = field(repr=False)
    published: Mask = field(repr=False)
    first: Mask = field(repr=False)
    """The inner cells that stand for their unit."""
    representative: Integers = field(repr=False)
    """Per inner cell the one that stands for its unit; per total itself."""

    @classmethod
    def of(cls, structure: Structure, published: Mask) -> Self:
        """Group the inner cells by the published counts that they are part of."""
        n, inner = len(published), structure.inner
        own = np.arange(n)
        if published[inner].all():
            return cls(structure, published, inner, own)
        marks = np.random.default_rng(HASH).integers(1, 2**62, size=(n, 2))
        with np.errstate(over="ignore"):
            seen = np.column_stack([structure.down(np.where(published, mark, 0)) for mark in marks.T])
        cells = np.flatnonzero(inner)
        _, first, group = np.unique(seen[cells], axis=0, return_index=True, return_inverse=True)
        own[cells] = cells[first[group.ravel()]]
        return cls(structure, published, inner & (own == np.arange(n)), own)

    def totals(self, values: Integers) -> Integers:
        """Per representative the sum over its unit; 0 elsewhere."""
        inner = self.structure.inner
        sums = np.zeros(len(values), dtype=np.int64)
        np.add.at(sums, self.representative[inner], values[inner])
        return sums

    def whole(self) -> Mask:
        """Which cells consist of whole units: all published ones do."""
        marks = np.random.default_rng(HASH).integers(1, 2**62, len(self.first))
        with np.errstate(over="ignore"):
            return np.asarray(self.structure.up(marks) == self.structure.up(self.totals(marks)))

    def of_cells(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Per cell the units that are wholly part of it, and those of which anything is: for small tables."""
        inner = np.flatnonzero(self.structure.inner)
        _, unit = np.unique(self.representative[inner], return_inverse=True)
        one = np.zeros((len(self.first), len(inner)), dtype=np.int64)
        one[inner, np.arange(len(inner))] = 1
        member = np.column_stack([self.structure.up(column) for column in one.T])
        held = member @ (unit[:, None] == np.arange(unit.max() + 1))
        return sparse.csr_array((held == np.bincount(unit)) * 1.0), sparse.csr_array((held > 0) * 1.0)

    def members(self, chosen: Mask) -> tuple[Integers, Integers, NDArray[np.int32]]:
        """The chosen units (by representative), and for each the published cells with it, in ascending order.

        Four bytes per pair of unit and cell, and nothing larger beside it.
        """
        parts, units = self.structure.parts, np.flatnonzero(chosen)
        number = np.full(len(chosen), -1, dtype=np.int64)
        number[units] = np.arange(len(units))
        start, part = parts.indptr.astype(np.int64), parts.indices
        length = np.zeros(len(units) + 1, dtype=np.int64)
        _visit(start, part, self.published, number, length[1:], np.zeros(0, np.int32), False)
        begin = np.cumsum(length)
        cells = np.empty(begin[-1], dtype=np.int32)
        _visit(start, part, self.published, number, begin[:-1].copy(), cells, True)
        return units, begin, cells


@compiled
def _visit(
    start: Integers, part: Integers, published: Mask, number: Integers, place: Integers, cells: Integers, fill: bool
) -> None:
    """Go from each published cell down to its inner cells; count the pairs, or write them down."""
    n = len(published)
    stack = np.empty(n, np.int64)
    for cell in range(n):
        if not published[cell]:
            continue
        stack[0] = cell
        height = 1
        while height > 0:
            height -= 1
            here = stack[height]
            unit = number[here]
            if unit >= 0:
                if fill:
                    cells[place[unit]] = cell
                place[unit] += 1
            for at in range(start[here], start[here + 1]):
                stack[height] = part[at]
                height += 1


# Linked tables: the counts below all of them, from the records that they were made of.
#
# Margins that share totals can only be changed together where they are sums of the same finer counts. These are the
# cells of the table of all dimensions, none of which is published unless a margin shows it.


MOST = 300_000
"""Cells of the table of all dimensions up to which the empty ones are among them."""


@dataclass(frozen=True, eq=False)
class Finer:
    """The problem of the finer table, and where each cell of the linked one is in it; −1 for empty ones."""

    given: Problem = field(repr=False)
    problem: Problem = field(repr=False)
    place: Integers = field(repr=False)

    @classmethod
    def of(cls, given: Problem, *, zeros: bool) -> Self:
        """Tabulate all dimensions together; refuses tables that were not made from records here.

        With `zeros` empty cells are among them, as a reader does not know which they are; in tables of many
        dimensions there is no room for them.
        """
        origin = given.table.origin
        if origin is None or origin.options.get("margins") is None:
            raise InvalidProblem(
                "Small-count rounding changes inner cells and adds them up, but the inner cells of this table do not "
                "determine all of its totals: it is linked from several tables.",
                hint="make the linked table by tabulate with margins=, or tabulate all its dimensions as one table "
                "and withhold by design what is not published.",
            )
        every = float(np.prod([float(len(hierarchy)) for hierarchy in given.table.dimensions.values()]))
        finer = origin.table(margins=None, zeros=zeros and every <= MOST)
        place = _place(given.table, finer)

        def carried(mask: Mask, elsewhere: bool) -> Mask:
            out = np.full(len(finer), elsewhere)
            out[place[place >= 0]] = mask[place >= 0]
            return out

        problem = Problem(
            finer,
            frozen=carried(given.frozen, False),
            suppressed=carried(given.suppressed, False),
            withheld=carried(given.withheld, True),
        )
        return cls(given, problem, place)

    def back(self, release: Release, limit: int) -> Release:
        """The release of the linked table; an empty cell shows 0 like others that became 0."""
        there, given = self.place >= 0, self.given
        hidden = given.suppressed | given.withheld
        status = np.where(there, release.status[self.place], Status.PUBLISHED).astype(np.uint8)
        status[hidden] = Status.GIVEN
        status[given.withheld] = Status.BY_DESIGN
        values = np.where(there, release.values[self.place], 0.0)
        lower, upper = self._bounds(release.lower, release.upper, limit)
        return Release(
            given.table,
            np.where(hidden, np.nan, values),
            lower,
            upper,
            status,
            release.method,
            judged=None if release.judged is None else self._bounds(*release.judged, limit),
        )

    def _bounds(self, lower: Floats, upper: Floats, limit: int) -> tuple[Floats, Floats]:
        """The bounds of the linked table's cells; an empty cell may be anything below the limit for all one sees."""
        there = self.place >= 0
        empty = np.where(self.given.frozen, 0.0, limit - 1.0)
        return np.where(there, lower[self.place], 0.0), np.where(there, upper[self.place], empty)


def _place(table: Table, finer: Table) -> Integers:
    """Where each cell of a table is in a finer one with the same dimensions; −1 where it is not."""
    columns = []
    for d, (name, hierarchy) in enumerate(table.dimensions.items()):
        other = finer.dimensions[name]
        position = {code: at for at, code in enumerate(other.codes)}
        known = np.array([position.get(code, -1) for code in hierarchy.codes], dtype=np.int32)
        columns.append(known[table.codes[:, d]])
    codes = np.column_stack(columns).astype(np.int32)
    order = [list(finer.dimensions).index(name) for name in table.dimensions]
    sizes = [len(hierarchy) for hierarchy in finer.dimensions.values()]
    both = cell_keys(np.concatenate([finer.codes, codes[:, np.argsort(order)]]), sizes)
    keys, wanted = both[: len(finer)], both[len(finer) :]
    sort = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys[sort], wanted), len(keys) - 1)
    found = sort[at]
    return np.where((keys[found] == wanted) & (codes >= 0).all(axis=1), found, -1)
