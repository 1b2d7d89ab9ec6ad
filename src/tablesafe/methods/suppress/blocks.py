"""Blocks of a subtable that is too large for one part: some codes in each direction, and every cell that these have.

A box, the shortest deviation in several dimensions, has its far corner as many steps away as there are dimensions, and
in a large subtable nearly everything is nearer than that. So cells are not taken by their distance. Some are taken from
each equation of a first cell; then every cell that stands in two equations of those taken, as a corner of a rectangle
does, and so on: in a product these are all combinations of the codes taken.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Integers
from tablesafe.work.compiled import compiled

CORNERS = 2
"""Equations in which a cell must stand together with cells that were taken."""


def blocks(parts: sparse.csr_array, group: Integers, most: int) -> Integers:
    """Cut every group of more than `most` cells; a number for each cell, other than before where its group was cut.

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
