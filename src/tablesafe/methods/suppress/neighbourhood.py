"""The part of a table around a cell: what a cheap deviation is likely to need, and the linear program over it.

Cells are gathered equation by equation, so the work depends on the surroundings and not on the size of the table. A
cell that stands alone in an equation cannot move and is pruned, with all that hangs on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.deviations import FAR
from tablesafe.methods.suppress.instance import Instance
from tablesafe.solve.boxes import System
from tablesafe.work.compiled import compiled

REACH = 3
"""Steps from cell to equation to cell: a cycle of a hierarchical table, and the next level up."""
CROWD = 600
"""Cells beyond which only the cheapest of a neighbourhood are looked at."""
REMEMBERED = 20_000_000
"""Cells in all remembered neighbourhoods."""


class Neighbourhoods:
    """The cells around a cell in the graph of cells and equations; what is near is remembered."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self.localities = Localities(instance)
        self._near: dict[tuple[int, int], Integers] = {}
        self._held = 0
        self._columns = (instance.columns.indptr.astype(np.int64), instance.columns.indices.astype(np.int64))
        self._rows = (instance.rows.indptr.astype(np.int64), instance.rows.indices.astype(np.int64))
        self._seen_cell = np.zeros(len(instance), dtype=np.int64)
        self._seen_row = np.zeros(instance.rows.shape[0], dtype=np.int64)
        self._turn = 0

    def ball(self, cell: int, steps: int) -> Integers:
        """The cells that may be withheld within some steps of a cell, ascending; the cell itself among them."""
        return np.sort(self._spread(cell, steps, len(self._instance))[0])

    def nearest(self, cell: int, crowd: int) -> Integers:
        """The cells nearest to a cell, in order, about so many."""
        return self._spread(cell, 2 * REACH, crowd)[0]

    def near(self, cell: int, *, effort: int) -> Integers:
        """Where to look first; more with every `effort`, in the end everything."""
        if effort >= 4:
            return np.flatnonzero(self._instance.live)
        key = (cell, effort)
        found = self._near.get(key)
        if found is None:
            crowd = CROWD * 4**effort
            wide, own = self._spread(cell, REACH + 2 * effort, crowd)
            found = np.sort(wide if len(wide) <= crowd else self._cheapest(wide, own, crowd))
            if self._held + len(found) > REMEMBERED:
                self._near.clear()
                self._held = 0
            self._near[key] = found
            self._held += len(found)
        return found

    def _cheapest(self, cells: Integers, own: int, crowd: int) -> Integers:
        """The cells in the cell's own equations, which come first, and the cheapest others."""
        others = cells[own:]
        room = max(crowd - own, 0)
        if room == 0:
            return cells[:own]
        cheap = np.argpartition(self._instance.cost[others], room - 1)[:room]
        return np.concatenate([cells[:own], others[cheap]])

    def _spread(self, cell: int, steps: int, crowd: int) -> tuple[Integers, int]:
        self._turn += 1
        return _spread(
            *self._columns, *self._rows, self._instance.live, cell, steps, crowd,
            self._seen_cell, self._seen_row, self._turn,
        )  # fmt: skip


@compiled
def _spread(
    column_start: Integers, column_row: Integers, row_start: Integers, row_column: Integers, live: Mask, cell: int,
    steps: int, crowd: int, seen_cell: Integers, seen_row: Integers, turn: int,
) -> tuple[Integers, int]:  # fmt: skip
    """Cells in the order they are reached, whole steps, until there are more than `crowd`; how many the first step has.

    `turn` marks what was seen this time, so that nothing has to be wiped.
    """
    found = np.empty(1024, np.int64)
    found[0] = cell
    size, begin, own = 1, 0, 1
    seen_cell[cell] = turn
    for step in range(steps):
        end = size
        for k in range(begin, end):
            for z in range(column_start[found[k]], column_start[found[k] + 1]):
                r = column_row[z]
                if seen_row[r] == turn:
                    continue
                seen_row[r] = turn
                for y in range(row_start[r], row_start[r + 1]):
                    c = row_column[y]
                    if seen_cell[c] != turn and live[c]:
                        seen_cell[c] = turn
                        if size == len(found):
                            found = np.concatenate((found, np.empty(len(found), np.int64)))
                        found[size] = c
                        size += 1
        if step == 0:
            own = size
        if size == end or size > crowd:
            break
        begin = end
    return found[:size].copy(), own


# -- a few cells and the equations among them --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Local:
    """The cells that can move when all others stand still, and the equations that tie them together."""

    cells: Integers
    rows: Integers
    start: NDArray[np.int32]
    """Column-wise entries of the equations over the cells, rows numbered from 0."""
    index: NDArray[np.int32]
    value: Floats


def spans(pointers: NDArray[Any], which: NDArray[Any]) -> tuple[Integers, Integers]:
    """Positions of the entries of some rows (or columns) of a compressed matrix, and how many each has."""
    start = pointers[which].astype(np.int64)
    length = pointers[which + 1] - start
    begin = np.cumsum(length) - length
    return np.repeat(start - begin, length) + np.arange(int(length.sum())), length


class Localities:
    """Cuts small systems out of a large one; holds the scratch space that this takes."""

    def __init__(self, instance: Instance) -> None:
        columns = instance.columns
        self._start = columns.indptr.astype(np.int64)
        self._row = columns.indices.astype(np.int64)
        self._value = columns.data.astype(np.float64)
        self._left = np.zeros(columns.shape[0], dtype=np.int64)
        self._mixed = np.zeros(columns.shape[0], dtype=np.int64)
        self._number = np.full(columns.shape[0], -1, dtype=np.int64)

    def around(self, cells: Integers, target: int) -> Local | None:
        """The part of some (ascending) cells that can move with a target; None when the target cannot.

        A cell that is alone in an equation stands still, so it goes, and with it perhaps the next.
        """
        return self._cut_out(cells, target, True)

    def all_of(self, cells: Integers, target: int) -> Local:
        """All of some (ascending) cells, the target among them, and all their equations."""
        local = self._cut_out(cells, target, False)
        assert local is not None
        return local

    def _cut_out(self, cells: Integers, target: int, peel: bool) -> Local | None:
        kept, rows, start, index, value = _peel(
            self._start, self._row, self._value, cells, self._left, self._mixed, self._number, peel
        )
        some = cells[kept]
        at = np.searchsorted(some, target)
        if at == len(some) or some[at] != target:
            return None
        return Local(some, rows, start, index, value)


@compiled
def _peel(
    start: Integers,
    row: Integers,
    value: Floats,
    cells: Integers,
    left: Integers,
    mixed: Integers,
    number: Integers,
    peel: bool,
) -> tuple[NDArray[np.bool_], Integers, NDArray[np.int32], NDArray[np.int32], Floats]:
    """Drop cells that are alone in an equation until none is; `left` and `mixed` are zero before and after.

    `mixed` is the exclusive or of the positions of the cells left in an equation: with one left, its position.
    """
    n = len(cells)
    entries = 0
    for k in range(n):
        for z in range(start[cells[k]], start[cells[k] + 1]):
            left[row[z]] += 1
            mixed[row[z]] ^= k
            entries += 1
    kept = np.ones(n, np.bool_)
    lonely = np.empty(entries, np.int64)
    waiting = 0
    for k in range(n):
        for z in range(start[cells[k]], start[cells[k] + 1]):
            if peel and left[row[z]] == 1:
                lonely[waiting] = row[z]
                waiting += 1
    while waiting:
        waiting -= 1
        r = lonely[waiting]
        if left[r] != 1:
            continue
        k = mixed[r]
        kept[k] = False
        for z in range(start[cells[k]], start[cells[k] + 1]):
            left[row[z]] -= 1
            mixed[row[z]] ^= k
            if left[row[z]] == 1:
                lonely[waiting] = row[z]
                waiting += 1
    size = 0
    for k in range(n):
        if kept[k]:
            size += start[cells[k] + 1] - start[cells[k]]
    rows = np.empty(size, np.int64)
    local_start = np.zeros(kept.sum() + 1, np.int32)
    index, entry = np.empty(size, np.int32), np.empty(size, np.float64)
    used, column, at = 0, 0, 0
    for k in range(n):
        if kept[k]:
            for z in range(start[cells[k]], start[cells[k] + 1]):
                if number[row[z]] < 0:
                    number[row[z]] = used
                    rows[used] = row[z]
                    used += 1
                index[at], entry[at] = number[row[z]], value[z]
                at += 1
            column += 1
            local_start[column] = at
        for z in range(start[cells[k]], start[cells[k] + 1]):
            left[row[z]] = mixed[row[z]] = 0
    for u in range(used):
        number[rows[u]] = -1
    return kept, rows[:used].copy(), local_start, index, entry


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
