"""Boxes: the shortest deviations of a table without hierarchies, found without a linear program.

In d dimensions a box has 2^d corners, two codes in each direction, and neighbours move against each other. The cheapest
one around a target is looked for corner by corner, and a box that costs too much already is given up: where programs
take a second, because everything is near everything, this takes a thousandth of it. (GHMITER's hypercubes; here prices
count what is withheld already, and every box is checked against the equations.)
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.work.budget import Budget
from tablesafe.work.compiled import compiled

DIRECTIONS = 8
"""The most equations of a target; a box has two to the power of that many corners."""
LOOKS = 10_000_000
"""Cells looked at, before the cheapest box so far is taken."""
EXACT = 1e-9
"""A sum of moves further from zero breaks its equation."""


class System(NamedTuple):
    """Equations by row and by cell, and how far each cell may rise and fall; one that cannot do either stays fixed."""

    row_start: Integers
    row_cell: Integers
    cell_start: Integers
    cell_row: Integers
    cell_sign: Floats
    up: Floats
    down: Floats

    @classmethod
    def of(cls, rows: sparse.csr_array, up: Floats, down: Floats) -> Self:
        """Read a sparse matrix both ways."""
        columns = rows.tocsc()
        row_start, row_cell = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
        cell_start, cell_row = columns.indptr.astype(np.int64), columns.indices.astype(np.int64)
        return cls(row_start, row_cell, cell_start, cell_row, columns.data.astype(np.float64), up, down)


class Space(NamedTuple):
    """Space for one search at a time; stamps are larger with each use, so that nothing has to be wiped."""

    near: Integers
    entry_of: Integers
    """For cells that share an equation with another cell: a stamp, and where that equation stands among its own."""
    met: Integers
    sum: Floats
    """For equations of a box: a stamp, and what its corners add up to."""
    stamp: Integers

    @classmethod
    def over(cls, system: System) -> Self:
        """Clean space for a system."""
        n, m = len(system.up), len(system.row_start) - 1
        return cls(
            np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(m, np.int64), np.zeros(m), np.zeros(1, np.int64)
        )


def cheapest_box(
    system: System, space: Space, cell: int, sign: int, level: float, price: Floats, work: Budget | None = None
) -> tuple[Integers, Floats] | None:
    """The cells of the cheapest box that moves a target by its level, and by how much each moves; None without one.

    `price` is what it costs to move each cell; infinite for one that must stay.
    """
    lines = int(system.cell_start[cell + 1] - system.cell_start[cell])
    if not 0 < lines <= DIRECTIONS or level > (system.up[cell] if sign > 0 else system.down[cell]):
        return None
    partner, count, length = _partners(system, cell, price, lines)
    if not count.all():
        return None
    corner, amount, corners = _search(system, space, cell, float(sign), level, price, partner, count, LOOKS // length)
    if work is not None:
        work.box(corners * length)
    order = np.argsort(corner)
    return (corner[order], amount[order] * level) if len(corner) else None


@compiled
def _partners(s: System, cell: int, price: Floats, lines: int) -> tuple[Integers, Integers, int]:
    """For each equation of a cell the others that may move, the cheapest first; how many; how long all of them are."""
    longest, first, every = 0, s.cell_start[cell], 0
    for i in range(lines):
        r = s.cell_row[first + i]
        longest = max(longest, s.row_start[r + 1] - s.row_start[r])
        every += s.row_start[r + 1] - s.row_start[r]
    partner, count = np.empty((lines, longest), np.int64), np.zeros(lines, np.int64)
    for i in range(lines):
        r = s.cell_row[first + i]
        row = s.row_cell[s.row_start[r] : s.row_start[r + 1]]
        for z in np.argsort(price[row], kind="mergesort"):
            if row[z] != cell and price[row[z]] < np.inf:
                partner[i, count[i]] = row[z]
                count[i] += 1
    return partner, count, every


@compiled
def _search(
    s: System, w: Space, cell: int, sign: float, level: float, price: Floats, partner: Integers, count: Integers,
    most: int,
) -> tuple[Integers, Floats, int]:  # fmt: skip
    """Depth first over the directions: one partner in each, the cheapest first; ends after so many corners."""
    lines = len(count)
    corner, amount = np.empty(1 << lines, np.int64), np.empty(1 << lines)
    best_corner, best_amount, best = np.empty(0, np.int64), np.empty(0), np.inf
    corner[0], amount[0] = cell, sign
    least = np.zeros(lines + 1)
    for i in range(lines - 1, -1, -1):
        least[i] = least[i + 1] + price[partner[i, 0]]
    spent, at = np.zeros(lines + 1), np.zeros(lines + 1, np.int64)
    depth, corners = 0, 0
    while depth >= 0:
        if depth == lines:
            if _balanced(s, w, corner, amount):
                best, best_corner, best_amount = spent[depth], corner.copy(), amount.copy()
            depth -= 1
            continue
        more = at[depth] < count[depth] and corners < most
        if not more or spent[depth] + price[partner[depth, at[depth]]] + least[depth + 1] >= best:
            at[depth] = 0
            depth -= 1
            continue
        p = partner[depth, at[depth]]
        at[depth] += 1
        corners += 1 << depth
        extra = _extended(s, w, corner, amount, depth, p, level, price, best - spent[depth] - least[depth + 1])
        if extra < np.inf:
            spent[depth + 1] = spent[depth] + extra
            depth += 1
    return best_corner, best_amount, corners


@compiled
def _fits(s: System, c: int, amount: float, level: float, lines: int) -> bool:
    """Whether a cell has the room, and as many equations as a corner has neighbours."""
    has_room = (s.up[c] if amount > 0 else s.down[c]) >= abs(amount) * level
    return bool(has_room and s.cell_start[c + 1] - s.cell_start[c] == lines)


@compiled
def _extended(
    s: System, w: Space, corner: Integers, amount: Floats, depth: int, p: int, level: float, price: Floats, most: float
) -> float:
    """Shift the corners so far along one more direction, the first of them to p; what that costs, or infinity."""
    half, lines = 1 << depth, s.cell_start[corner[0] + 1] - s.cell_start[corner[0]]
    if not _meets(s, w, corner[0], amount[0], p, -1, corner, amount, half):
        return np.inf
    cost = float(price[corner[half]])
    if not _fits(s, corner[half], amount[half], level, lines) or cost >= most:
        return np.inf
    for m in range(1, half):
        low = m & -m
        if not _meets(s, w, corner[m], amount[m], corner[half + m - low], corner[m - low], corner, amount, half + m):
            return np.inf
        c = corner[half + m]
        if price[c] == np.inf or not _fits(s, c, amount[half + m], level, lines):
            return np.inf
        cost += price[c]
        if cost >= most:
            return np.inf
    return cost


@compiled
def _meets(
    s: System, w: Space, a: int, move: float, b: int, base: int, corner: Integers, amount: Floats, k: int
) -> bool:
    """Write down the corner next to a and to b, or b itself where there is no base, and how a's move moves it."""
    w.stamp[0] += 1
    for z in range(s.cell_start[a], s.cell_start[a + 1]):
        r = s.cell_row[z]
        for y in range(s.row_start[r], s.row_start[r + 1]):
            w.near[s.row_cell[y]], w.entry_of[s.row_cell[y]] = w.stamp[0], z
    found = -1
    if base < 0:
        if w.near[b] == w.stamp[0]:
            found = b
    else:
        for z in range(s.cell_start[b], s.cell_start[b + 1]):
            r = s.cell_row[z]
            for y in range(s.row_start[r], s.row_start[r + 1]):
                c = s.row_cell[y]
                if w.near[c] == w.stamp[0] and c != base and c != a and c != b:
                    found = c
    if found < 0:
        return False
    row, own = s.cell_row[w.entry_of[found]], s.cell_sign[w.entry_of[found]]
    for z in range(s.cell_start[found], s.cell_start[found + 1]):
        if s.cell_row[z] == row:
            corner[k], amount[k] = found, -move * own / s.cell_sign[z]
            return True
    return False


@compiled
def _balanced(s: System, w: Space, corner: Integers, amount: Floats) -> bool:
    """Whether the corners are different cells that add up to nothing in every equation."""
    w.stamp[0] += 1
    for c in corner:
        if w.near[c] == w.stamp[0]:
            return False
        w.near[c] = w.stamp[0]
    for turn in range(2):
        for k in range(len(corner)):
            for z in range(s.cell_start[corner[k]], s.cell_start[corner[k] + 1]):
                r = s.cell_row[z]
                if turn == 0:
                    if w.met[r] != w.stamp[0]:
                        w.met[r], w.sum[r] = w.stamp[0], 0.0
                    w.sum[r] += s.cell_sign[z] * amount[k]
                elif abs(w.sum[r]) > EXACT:
                    return False
    return True
