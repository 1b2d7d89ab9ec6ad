"""How a large table falls into subtables, found from its equations alone.

Cells that are parts of one equation stand in one subtable, and so do those linked through others: in a product of
hierarchies these are the children of one code in each dimension, as HiTaS takes them. Linked tables, files without
dimensions and structures that are no tree are cut the same way; there subtables may be larger. One that is very large
is cut further, into blocks: some codes in each direction, and every cell that these have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.instance import Instance
from tablesafe.solve.neighbourhood import rings, spans
from tablesafe.work.compiled import compiled

LARGEST = 1_300
"""Inner cells of a subtable beyond which it is cut into blocks."""
CORNERS = 2
"""Equations in which a cell of a block must stand together with cells that were taken."""
DEEPEST = 64
"""Levels after which equations that go round in a circle are given up."""


@dataclass(frozen=True, eq=False)
class Subtables:
    """For each cell the subtable it is an inner cell of, numbered from the top down."""

    number: Integers = field(repr=False)
    depth: Integers = field(repr=False)
    """For each cell how many steps its subtable stands below the top."""
    parts: sparse.csr_array = field(repr=False)
    """One for each part of each equation."""
    total: Integers = field(repr=False)
    """For each equation its total; −1 where it has none."""
    cut: Mask = field(repr=False)
    """Cells whose subtable was so large that it was cut into blocks."""

    @cached_property
    def _equations(self) -> sparse.csc_array:
        """For each cell the equations of which it is a part."""
        return sparse.csc_array(self.parts)

    @cached_property
    def _members(self) -> tuple[Integers, Integers]:
        """The inner cells of all subtables, one after the other, and where each subtable begins."""
        return np.argsort(self.number, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(self.number))])

    def around(self, cells: Integers) -> Integers:
        """The whole subtables in which some cells stand, and those of which they are totals, with their margins."""
        own: Mask = np.zeros(len(self.number) + 1, dtype=np.bool_)
        own[cells] = True
        below = self.parts.indices[spans(self.parts.indptr, np.flatnonzero(own[self.total]))[0]]
        return self._boxes(np.union1d(cells, below))

    def _boxes(self, cells: Integers) -> Integers:
        """The inner cells of the subtables of some cells, and every total all of whose parts are among them."""
        order, start = self._members
        inside: Mask = np.zeros(len(self.number), dtype=np.bool_)
        fresh = order[spans(start, np.unique(self.number[cells]))[0]]
        while fresh.size:
            inside[fresh] = True
            rows = np.unique(self._equations.indices[spans(self._equations.indptr, fresh)[0]])
            rows = rows[(self.total[rows] >= 0) & ~inside[self.total[rows]]]
            whole = self.parts[rows] @ inside.astype(np.int64) == np.diff(self.parts.indptr)[rows]
            fresh = np.unique(self.total[rows[whole]])
        return np.flatnonzero(inside)

    @classmethod
    def of(cls, rows: sparse.csr_array) -> Self:
        """Cut a system: the total of an equation is the cell with the coefficient −1, all others are its parts."""
        m, n = rows.shape
        row = np.repeat(np.arange(m), np.diff(rows.indptr))
        total = np.full(m, -1, dtype=np.int64)
        negative = np.flatnonzero(rows.data < 0)[::-1]
        total[row[negative]] = rows.indices[negative]
        part = rows.indices != total[row]
        row, cell = row[part], rows.indices[part].astype(np.int64)
        parts = sparse.csr_array((np.ones(len(row), np.int64), (row, cell)), shape=(m, n))
        links = sparse.coo_array((np.ones(len(row), np.int8), (row, m + cell)), shape=(m + n, m + n))
        whole = csgraph.connected_components(links, directed=False)[1][m:].astype(np.int64)
        group = blocks(parts, whole, LARGEST)
        below = total[row] >= 0
        depth = _depths(total[row][below], cell[below], n)
        highest = np.full(int(group.max(initial=0)) + 1, DEEPEST, dtype=np.int64)
        np.minimum.at(highest, group, depth)
        first = np.full(len(highest), n, dtype=np.int64)
        np.minimum.at(first, group, np.arange(n))
        rank = np.empty(len(highest), dtype=np.int64)
        rank[np.lexsort((first, highest))] = np.arange(len(highest))
        return cls(rank[group], highest[group], parts, total, np.bincount(whole)[whole] > LARGEST)

    def batches(self, cells: Integers, size: int, room: int) -> list[Integers]:
        """Positions of cells (several may be the same), subtable by subtable from the top, at most `size` together.

        Subtables of one depth share a batch as long as they have no more than `room` inner cells in all, never those of
        different depth; one with too many of the cells is cut.
        """
        order = np.lexsort((cells, self.number[cells]))
        number, first = np.unique(self.number[cells][order], return_index=True)
        inner, depth = np.bincount(self.number)[number].tolist(), self.depth[cells[order[first]]].tolist()
        batches: list[Integers] = []
        filled, level = room, -1
        for i, own in enumerate(np.split(order, first[1:]) if len(order) else []):
            pieces = [own[begin : begin + size] for begin in range(0, len(own), size)]
            if depth[i] == level and filled + inner[i] <= room and len(batches[-1]) + len(own) <= size:
                batches[-1] = np.concatenate([batches[-1], own])
                filled += inner[i]
            else:
                batches += pieces
                filled, level = inner[i], depth[i]
        return batches


def _depths(total: Integers, part: Integers, n: int) -> Integers:
    """The longest way down to each cell from a cell that is part of nothing."""
    depth = np.zeros(n, dtype=np.int64)
    for _ in range(DEEPEST):
        deeper = depth.copy()
        np.maximum.at(deeper, part, depth[total] + 1)
        if (deeper == depth).all():
            break
        depth = np.minimum(deeper, DEEPEST)
    return depth


def waves(batches: list[Integers], depth: list[int], most: int) -> list[list[int]]:
    """Which batches are worked on at the same time: of one depth, at most so many, as far from each other as can be."""
    out: list[list[int]] = []
    for level in sorted(set(depth)):
        own = [i for i in range(len(batches)) if depth[i] == level]
        turns = -(-len(own) // most)
        out += [own[turn::turns] for turn in range(turns)]
    return out


def region(instance: Instance, cells: Integers, cost: Floats, most: int) -> Integers:
    """The cells around some cells, ring by ring, ascending; of a ring that is too large, the cheapest."""
    inside: Mask = np.zeros(len(instance), dtype=np.bool_)
    inside[cells] = True
    size = int(inside.sum())
    if size < most:
        for ring, _ in rings(instance.rows, instance.columns, cells, instance.live):
            if size + len(ring) > most:
                ring = ring[np.argsort(cost[ring], kind="stable")[: most - size]]
            inside[ring] = True
            size += len(ring)
            if size >= most:
                break
    return np.flatnonzero(inside)


# -- blocks of a subtable that is too large for one part ---------------------------------------------------------------


def blocks(parts: sparse.csr_array, group: Integers, most: int) -> Integers:
    """Cut every group of more than `most` cells; a number for each cell, other than before where its group was cut.

    A box, the shortest deviation in several dimensions, has its far corner as many steps away as there are dimensions,
    and in a large subtable nearly everything is nearer than that. So cells are not taken by their distance. Some are
    taken from each equation of a first cell; then every cell that stands in two equations of those taken, as a corner
    of a rectangle does, and so on: in a product these are all combinations of the codes taken.
    `parts` has a row for each equation, with one for each of its parts.
    """
    large = np.bincount(group)[group] > most
    columns = sparse.csc_array(parts)
    number, cells = group.copy(), np.flatnonzero(large)
    if cells.size:
        rows = parts.indptr.astype(np.int64), parts.indices.astype(np.int64)
        by_cell = columns.indptr.astype(np.int64), columns.indices.astype(np.int64)
        _cut(*rows, *by_cell, cells[np.argsort(group[cells], kind="stable")], most, int(group.max()) + 1, number)
    return number


@compiled
def _cut(
    row_start: Integers, row_cell: Integers, cell_start: Integers, cell_row: Integers, cells: Integers, most: int,
    first: int, number: Integers,
) -> None:  # fmt: skip
    """Number the cells anew, block by block, each around the first cell that has no number yet."""
    free = np.zeros(len(number), np.bool_)
    for c in cells:
        free[c] = True
    met, together = np.zeros(len(row_start) - 1, np.bool_), np.zeros(len(number), np.int64)
    taken, touched, rows = np.empty(most, np.int64), np.empty(len(cells), np.int64), np.empty(len(met), np.int64)
    for seed in cells:
        if not free[seed]:
            continue
        taken[0], size, seen, known, done = seed, 1, 0, 0, 0
        free[seed] = False
        lines = cell_row[cell_start[seed] : cell_start[seed + 1]]
        length = np.array([row_start[r + 1] - row_start[r] for r in lines])
        left, room = len(lines), float(most)
        for i in np.argsort(length, kind="mergesort"):
            share = max(2, int(room ** (1.0 / left) + 1e-9))
            chunks = -(-length[i] // share)
            start = row_start[lines[i]]
            own = 0
            while row_cell[start + own] != seed:
                own += 1
            chunk = own * chunks // length[i]
            added = 1
            for j in range(length[i]):
                c = row_cell[start + j]
                if j * chunks // length[i] == chunk and free[c] and size < most:
                    taken[size] = c
                    free[c] = False
                    size += 1
                    added += 1
            room, left = room / added, left - 1
        while done < size:
            for z in range(cell_start[taken[done]], cell_start[taken[done] + 1]):
                r = cell_row[z]
                if met[r]:
                    continue
                met[r] = True
                rows[known] = r
                known += 1
                for y in range(row_start[r], row_start[r + 1]):
                    c = row_cell[y]
                    if not free[c]:
                        continue
                    if together[c] == 0:
                        touched[seen] = c
                        seen += 1
                    together[c] += 1
                    if together[c] >= CORNERS and size < most:
                        taken[size] = c
                        free[c] = False
                        size += 1
            done += 1
        for i in range(size):
            number[taken[i]] = first
        for i in range(seen):
            together[touched[i]] = 0
        for i in range(known):
            met[rows[i]] = False
        first += 1
