"""The part of a system around a cell: who stands near it, from equation to equation, and the linear program over them.

What a cell can do while all that is far away stays as it is, it can do; so searches for deviations, and proofs that a
cell can move, look near it first. Cells are gathered equation by equation, and the work depends on the surroundings and
not on the size of the table. A cell that stands alone in an equation cannot move and is pruned, with all that hangs on
it; the dearest cells are left out as long as the target can still move.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.solve.boxes import System
from tablesafe.work.compiled import compiled

FAR = 1e4
"""No cell needs to move further than this many times the protection level."""


def spans(pointers: NDArray[Any], which: NDArray[Any]) -> tuple[Integers, Integers]:
    """Positions of the entries of some rows (or columns) of a compressed matrix, and how many each has."""
    start = pointers[which].astype(np.int64)
    length = pointers[which + 1] - start
    begin = np.cumsum(length) - length
    return np.repeat(start - begin, length) + np.arange(int(length.sum())), length


def rings(
    rows: sparse.csr_array, columns: sparse.csc_array, cells: Integers, among: Mask | None = None
) -> Iterator[tuple[Integers, Integers]]:
    """The cells that share an equation with some cells, then those that share one with these, and so on to the end.

    Each ring is ascending, with the number of equations by which every cell of it was met. Only cells `among` some are
    gone to. Equations are given by row and by column.
    """
    inside: Mask = np.zeros(rows.shape[1], dtype=np.bool_)
    met: Mask = np.zeros(rows.shape[0], dtype=np.bool_)
    ring = np.unique(cells)
    inside[ring] = True
    while ring.size:
        new = np.unique(columns.indices[spans(columns.indptr, ring)[0]])
        new = new[~met[new]]
        met[new] = True
        ring, times = np.unique(rows.indices[spans(rows.indptr, new)[0]], return_counts=True)
        fresh = ~inside[ring] if among is None else among[ring] & ~inside[ring]
        ring, times = ring[fresh].astype(np.int64), times[fresh]
        inside[ring] = True
        if ring.size:
            yield ring, times


# -- the program around a target ---------------------------------------------------------------------------------------


class Scratch(NamedTuple):
    """Space for one search at a time; clean between searches."""

    cell_at: Integers
    """Where a cell stands among those gathered; −1 elsewhere."""
    row_at: Integers
    touched: Integers
    """How many equations of a cell were met."""
    cells: Integers
    rows: Integers
    price: Floats
    """Of the cells gathered, in their order; so are the next two."""
    alive: Mask
    members: Integers
    """Of the rows gathered: how many cells alive."""
    stack: Integers

    @classmethod
    def over(cls, system: System) -> Self:
        """Clean space for a system."""
        n, m = len(system.up), len(system.row_start) - 1
        return cls(
            np.full(n, -1), np.full(m, -1), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(m, np.int64),
            np.zeros(n), np.zeros(n, np.bool_), np.zeros(m, np.int64), np.zeros(m + 1, np.int64),
        )  # fmt: skip


class Effort(NamedTuple):
    """How wide to look: steps from cell to cell, cells to gather, cells to put into the program."""

    steps: int
    cells: int
    size: int


class LocalProgram(NamedTuple):
    """Minimise `price @ x` over `A x = 0` and the bounds; column j moves cell `cells[member[j]]` by `way[j]`."""

    cells: Integers
    """The target's own cell comes first."""
    start: NDArray[np.int32]
    row: NDArray[np.int32]
    value: Floats
    price: Floats
    lower: Floats
    upper: Floats
    member: Integers
    way: Floats
    rows: int


def around(
    system: System, scratch: Scratch, cell: int, sign: int, level: float, price: Floats, effort: Effort
) -> LocalProgram | None:
    """The program that moves a cell by its level, up or down; None when it plainly cannot move.

    `price` is what it costs to move each cell by a whole level; infinite for one that must stay.
    """
    room = system.up[cell] if sign > 0 else system.down[cell]
    if room < level:
        return None
    cells, rows = gather(system, scratch, cell, level, price, effort.steps, effort.cells)
    left = choose(system, scratch, cells, rows, effort.size)
    program = None
    if left:
        program = LocalProgram(*assemble(system, scratch, cells, rows, left, level, sign, price))
    clear(scratch, cells, rows)
    return program


@compiled
def gather(s: System, w: Scratch, target: int, level: float, price: Floats, steps: int, most: int) -> tuple[int, int]:
    """Collect the cells around a target, nearest first, and their rows; returns how many."""
    cells, rows, first = 1, 0, 0
    w.cells[0], w.cell_at[target], w.price[0] = target, 0, 0.0
    for _ in range(steps):
        last = cells
        for i in range(first, last):
            c = w.cells[i]
            for z in range(s.cell_start[c], s.cell_start[c + 1]):
                r = s.cell_row[z]
                if w.row_at[r] >= 0:
                    continue
                w.row_at[r], w.rows[rows] = rows, r
                rows += 1
                for y in range(s.row_start[r], s.row_start[r + 1]):
                    o = s.row_cell[y]
                    if w.cell_at[o] < 0 and price[o] < np.inf and s.up[o] + s.down[o] > 0.0:
                        cells = _take(s, w, cells, o, level, price)
            if cells > most:
                break
        if cells > most or cells == last:
            break
        first = last
    for i in range(first, cells):
        c = w.cells[i]
        for z in range(s.cell_start[c], s.cell_start[c + 1]):
            r = s.cell_row[z]
            if w.row_at[r] < 0:
                w.row_at[r], w.rows[rows] = rows, r
                rows += 1
    return _close(s, w, cells, rows, level, price), rows


@compiled
def _take(s: System, w: Scratch, cells: int, c: int, level: float, price: Floats) -> int:
    """Add a cell; one with little room is dear, because others must move besides."""
    room = max(s.up[c], s.down[c])
    w.cell_at[c], w.cells[cells] = cells, c
    w.price[cells] = price[c] if room >= level else price[c] * level / room
    return cells + 1


@compiled
def _close(s: System, w: Scratch, cells: int, rows: int, level: float, price: Floats) -> int:
    """Add the cells of which every equation was met: the far corners of boxes whose other corners are there."""
    for i in range(rows):
        for y in range(s.row_start[w.rows[i]], s.row_start[w.rows[i] + 1]):
            c = s.row_cell[y]
            if w.cell_at[c] < 0 and price[c] < np.inf and s.up[c] + s.down[c] > 0.0:
                w.touched[c] += 1
                if w.touched[c] == s.cell_start[c + 1] - s.cell_start[c]:
                    cells = _take(s, w, cells, c, level, price)
    for i in range(rows):
        for y in range(s.row_start[w.rows[i]], s.row_start[w.rows[i] + 1]):
            w.touched[s.row_cell[y]] = 0
    return cells


@compiled
def prune(s: System, w: Scratch, cells: int, rows: int, dearest: float) -> int:
    """Keep alive what costs at most `dearest` and is alone in no equation; returns how many, 0 if not the target."""
    left = 0
    for i in range(rows):
        w.members[i] = 0
    for i in range(cells):
        w.alive[i] = w.price[i] <= dearest
        if w.alive[i]:
            left += 1
            for z in range(s.cell_start[w.cells[i]], s.cell_start[w.cells[i] + 1]):
                w.members[w.row_at[s.cell_row[z]]] += 1
    top = 0
    for i in range(rows):
        if w.members[i] == 1:
            w.stack[top] = i
            top += 1
    while top > 0:
        top -= 1
        i = w.stack[top]
        if w.members[i] != 1:
            continue
        for y in range(s.row_start[w.rows[i]], s.row_start[w.rows[i] + 1]):
            at = w.cell_at[s.row_cell[y]]
            if at < 0 or not w.alive[at]:
                continue
            if at == 0:
                return 0
            w.alive[at] = False
            left -= 1
            for z in range(s.cell_start[w.cells[at]], s.cell_start[w.cells[at] + 1]):
                j = w.row_at[s.cell_row[z]]
                w.members[j] -= 1
                if w.members[j] == 1:
                    w.stack[top] = j
                    top += 1
            break
    return left


@compiled
def choose(s: System, w: Scratch, cells: int, rows: int, size: int) -> int:
    """Keep alive as many cells as fit, the dearest left out; where too few fit, the fewest that let the target move."""
    left = prune(s, w, cells, rows, np.inf)
    if left <= size:
        return left
    prices = np.sort(w.price[:cells][w.alive[:cells]])
    low, high, fits, moves = 0, left - 1, -1, left - 1
    while low <= high:
        middle = (low + high) // 2
        left = prune(s, w, cells, rows, prices[middle])
        if left == 0:
            low = middle + 1
        elif left <= size:
            fits, low = middle, middle + 1
        else:
            moves, high = middle, middle - 1
    return prune(s, w, cells, rows, prices[fits if fits >= 0 else moves])


@compiled
def assemble(s: System, w: Scratch, cells: int, rows: int, left: int, level: float, sign: int, price: Floats) -> Any:
    """Write the program over the cells alive, in units of the level: one column per cell and direction."""
    chosen, entries, k = np.empty(left, np.int64), 0, 0
    for i in range(cells):
        if w.alive[i]:
            chosen[k] = w.cells[i]
            entries += s.cell_start[chosen[k] + 1] - s.cell_start[chosen[k]]
            k += 1
    row_of, used = np.full(rows, -1, np.int32), 0
    start, index, value = np.zeros(2 * left + 1, np.int32), np.empty(2 * entries, np.int32), np.empty(2 * entries)
    cost, lower, upper = np.empty(2 * left), np.zeros(2 * left), np.empty(2 * left)
    member, way = np.empty(2 * left, np.int64), np.empty(2 * left)
    k, e = 0, 0
    for j in range(left):
        c = chosen[j]
        for turn in (1, -1):
            room = min((s.up[c] if turn > 0 else s.down[c]) / level, FAR)
            if room <= 0.0 or (j == 0 and turn != sign):
                continue
            member[k], way[k] = j, turn
            if j == 0:
                cost[k], lower[k], upper[k] = 0.0, 1.0, 1.0
            else:
                cost[k], upper[k] = price[c] / max(min(room, 1.0), 1e-9), room
            for z in range(s.cell_start[c], s.cell_start[c + 1]):
                r = w.row_at[s.cell_row[z]]
                if row_of[r] < 0:
                    row_of[r] = used
                    used += 1
                index[e], value[e] = row_of[r], turn * s.cell_sign[z]
                e += 1
            k += 1
            start[k] = e
    return chosen, start[: k + 1], index[:e], value[:e], cost[:k], lower[:k], upper[:k], member[:k], way[:k], used


@compiled
def clear(w: Scratch, cells: int, rows: int) -> None:
    """Leave the space as it was."""
    for i in range(cells):
        w.cell_at[w.cells[i]] = -1
    for i in range(rows):
        w.row_at[w.rows[i]] = -1
