"""Tables that add up, whatever is done to their inner cells: a search among them by annealing.

Every cell is a sum of a few deciding ones. A move takes one of them a step up or down, or two of them in opposite
directions, with all their sums; so there is an answer at any time, at any size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.round.grid import Grid
from tablesafe.solve.exact.nullspace import null_space
from tablesafe.work.budget import Budget
from tablesafe.work.compiled import compiled

PARTNERS = 4
"""How many cells of a sum are tried as the other end of a move."""
MOST_ENTRIES = 80_000_000
"""Entries of the forms, of the cells in those that decide them, beyond which there are none: memory is the limit."""
EFFORT, FEWEST, MOST = 3e8, 40, 2000
"""Entries of the forms looked at in all; between so few and so many sweeps over all deciding cells."""
COLD = 0.9
"""The part of the time or of the sweeps after which only improvements are taken."""
NEVER = 1e18
"""What a move costs that must not be made."""
SAMPLE = 500
"""Moves that show what a move usually does."""
HOT = 0.03
"""At first, moves that worsen the table by so much of what a move usually does are taken now and then."""
FIRM = 100.0
"""How much more it costs to leave a frozen cell's value than another one's window."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """Every cell as a whole combination of the deciding ones: `forms @ x[cell] == x` for every table that adds up."""

    forms: sparse.csc_array = field(repr=False)
    cell: Integers = field(repr=False)

    def table(self, deciding: Integers) -> Integers:
        """All cells from the deciding ones."""
        return np.asarray(self.forms @ deciding)


def lattice(matrix: sparse.csr_array, totals: Integers) -> Lattice | None:
    """The deciding cells of a table: its inner cells, or else the coordinates of all solutions; None if neither do."""
    return _of_inner_cells(matrix, totals) or _of_solutions(matrix)


def _of_inner_cells(matrix: sparse.csr_array, totals: Integers) -> Lattice | None:
    """Totals as sums of inner cells, when every equation follows from one breakdown of each total."""
    n = matrix.shape[1]
    rows = np.arange(len(totals))[::-1]
    first = np.full(n, -1, dtype=np.int64)
    first[totals[rows]] = rows
    above, inner = np.flatnonzero(first >= 0), np.flatnonzero(first < 0)
    entries = sparse.coo_array(sparse.csr_array(matrix[first[above]]))
    part = entries.col != above[entries.row]
    if not (np.abs(entries.data[~part]) == 1).all():
        return None
    sign = np.zeros(len(above), dtype=np.int64)
    sign[entries.row[~part]] = -entries.data[~part]
    data = (entries.data * sign[entries.row])[part]
    down = sparse.csr_array((data, (above[entries.row[part]], entries.col[part])), shape=(n, n))
    own = sparse.csr_array((np.ones(len(inner), np.int64), (inner, np.arange(len(inner)))), shape=(n, len(inner)))
    forms = own
    for _ in range(n):
        new = sparse.csr_array(own + down @ forms)
        if new.nnz > MOST_ENTRIES:
            return None
        if (new != forms).nnz == 0:
            break
        forms = new
    if abs(sparse.csr_array(matrix) @ forms).sum():
        return None
    return Lattice(forms.tocsc(), inner)


def _of_solutions(matrix: sparse.csr_array) -> Lattice | None:
    """The coordinates of the solutions, when each is a cell and all cells are whole combinations of them."""
    space = null_space(matrix)
    if space is None or not (np.abs(space.divisor) == 1).all():
        return None
    at = np.flatnonzero((space.form >= 0) & (space.form < space.dimension))
    _, first = np.unique(space.form[at], return_index=True)
    if len(first) < space.dimension:
        return None
    cell = at[first]
    moves = space.form >= 0
    forms = sparse.csr_array(space.forms[np.where(moves, space.form, 0)]).astype(np.int64)
    row = np.repeat(np.arange(forms.shape[0]), np.diff(forms.indptr))
    forms.data = forms.data * np.where(moves, space.divisor, 0)[row] * space.divisor[cell][forms.indices]
    forms.eliminate_zeros()
    return Lattice(forms.tocsc(), cell)


@dataclass(frozen=True, eq=False)
class Wish:
    """Where every cell wants to be, in its own units: near `target`, within `low` to `high`, and what leaving costs."""

    low: Integers
    high: Integers
    target: Floats
    weight: Floats
    """Cost per unit of distance, or of squared distance."""
    squared: bool
    beyond: float
    """Cost of the first unit outside `low` to `high`; that of more grows with the square."""
    frozen: Mask
    """Cells for which leaving costs a hundred times as much."""


def annealed(
    lattice: Lattice, matrix: sparse.csr_array, start: Integers, wish: Wish, budget: Budget, *, seed: int = 0
) -> Integers:
    """A table near the wish, by moves that may also worsen it at first, ever less: cold when the time is up."""
    rows, columns = sparse.csr_array(matrix), sparse.csr_array(matrix).tocsc()
    forms, n = lattice.forms, len(start)
    coordinate = np.full(n, -1, dtype=np.int64)
    coordinate[lattice.cell] = np.arange(len(lattice.cell))
    random = np.random.default_rng(seed)
    x = start.copy()
    beyond = np.where(wish.frozen, FIRM, 1.0) * wish.beyond
    worse = _changes(
        forms.indptr, forms.indices, forms.data, x, wish.low, wish.high, wish.target, wish.weight, wish.squared, beyond,
        random.permutation(len(lattice.cell))[:SAMPLE],
    )  # fmt: skip
    hot = HOT * float(np.median(worse)) if len(worse) else 0.0
    sweeps, given = int(np.clip(EFFORT / max(forms.nnz, 1), FEWEST, MOST)), budget.left
    for sweep in range(sweeps):
        if budget.over:
            break
        gone = max(sweep / sweeps, 1.0 - budget.left / given if np.isfinite(given) else 0.0)
        heat = hot * (1.0 - gone / COLD) ** 2 if gone < COLD else 0.0
        moved = _sweep(
            forms.indptr, forms.indices, forms.data, rows.indptr, rows.indices, columns.indptr, columns.indices,
            coordinate, lattice.cell, x, wish.low, wish.high, wish.target, wish.weight, wish.squared, beyond,
            wish.frozen, random.permutation(len(lattice.cell)), heat, random,
        )  # fmt: skip
        if heat == 0.0 and not moved:
            break
    return x


@compiled
def _sweep(
    start: Any, index: Any, times: Any, row_start: Any, row_cell: Any, cell_start: Any, cell_row: Any,
    coordinate: Any, cell: Any, x: Any, low: Any, high: Any, target: Any, weight: Any, squared: bool, beyond: Any,
    frozen: Any, order: Any, heat: float, random: Any,
) -> Any:  # fmt: skip
    """Try one move of every deciding cell; how many were made."""
    moved = 0
    for j in order:
        i = cell[j]
        if frozen[i]:
            continue
        s = 1 if x[i] < high[i] else -1
        if x[i] > low[i] and x[i] < high[i] and random.random() < 0.5:
            s = -1
        if low[i] == high[i] and x[i] == low[i]:
            s = 1 if random.random() < 0.5 else -1
        one = _change(start, index, times, x, low, high, target, weight, squared, beyond, j, s)
        if one < NEVER and _taken(one, heat, random):
            _move(start, index, times, x, j, s)
            moved += one != 0.0
            continue
        if cell_start[i] == cell_start[i + 1]:
            continue
        row = cell_row[cell_start[i] + int(random.random() * (cell_start[i + 1] - cell_start[i]))]
        _move(start, index, times, x, j, s)
        both = False
        for _ in range(PARTNERS):
            width = row_start[row + 1] - row_start[row]
            other = coordinate[row_cell[row_start[row] + int(random.random() * width)]]
            if other < 0 or other == j or frozen[cell[other]]:
                continue
            two = _pair(start, index, times, x, low, high, target, weight, squared, beyond, j, s, other)
            if two < NEVER and _taken(two, heat, random):
                _move(start, index, times, x, other, -s)
                moved += two != 0.0
                both = True
                break
        if not both:
            _move(start, index, times, x, j, -s)
    return moved


@compiled
def _taken(change: float, heat: float, random: Any) -> bool:
    return (
        change < 0.0
        or (change == 0.0 and random.random() < 0.5)
        or (heat > 0.0 and change > 0.0 and random.random() < np.exp(-change / heat))
    )


@compiled
def _price(v: Any, i: Any, low: Any, high: Any, target: Any, weight: Any, squared: bool, beyond: Any) -> float:
    off = abs(v - target[i])
    price = weight[i] * (off * off if squared else off)
    outside = max(low[i] - v, v - high[i], 0)
    return float(price + beyond[i] * outside * outside)


@compiled
def _change(
    start: Any, index: Any, times: Any, x: Any, low: Any, high: Any, target: Any, weight: Any, squared: bool,
    beyond: Any, j: Any, s: Any,
) -> float:  # fmt: skip
    """What moving one deciding cell changes; never below zero."""
    change = 0.0
    for e in range(start[j], start[j + 1]):
        i = index[e]
        new = x[i] + s * times[e]
        if new < 0:
            return NEVER
        change += _price(new, i, low, high, target, weight, squared, beyond)
        change -= _price(x[i], i, low, high, target, weight, squared, beyond)
    return change


@compiled
def _changes(
    start: Any, index: Any, times: Any, x: Any, low: Any, high: Any, target: Any, weight: Any, squared: bool,
    beyond: Any, order: Any,
) -> Any:  # fmt: skip
    """By how much single moves worsen the table, those that do."""
    worse = np.empty(2 * len(order))
    n = 0
    for j in order:
        for s in (-1, 1):
            change = _change(start, index, times, x, low, high, target, weight, squared, beyond, j, s)
            if 0.0 < change < NEVER:
                worse[n] = change
                n += 1
    return worse[:n]


@compiled
def _pair(
    start: Any, index: Any, times: Any, x: Any, low: Any, high: Any, target: Any, weight: Any, squared: bool,
    beyond: Any, j: Any, s: Any, other: Any,
) -> float:  # fmt: skip
    """What the two moves together change, after the first of them was made: cells of both return to where they were."""
    change = 0.0
    for e in range(start[j], start[j + 1]):
        i = index[e]
        change += _price(x[i], i, low, high, target, weight, squared, beyond)
        change -= _price(x[i] - s * times[e], i, low, high, target, weight, squared, beyond)
    for e in range(start[other], start[other + 1]):
        i = index[e]
        change += _price(x[i] - s * times[e], i, low, high, target, weight, squared, beyond)
        change -= _price(x[i], i, low, high, target, weight, squared, beyond)
        x[i] -= s * times[e]
    allowed = True
    for e in range(start[j], start[j + 1]):
        i = index[e]
        allowed &= x[i] >= 0
    for e in range(start[other], start[other + 1]):
        i = index[e]
        allowed &= x[i] >= 0
    for e in range(start[other], start[other + 1]):
        x[index[e]] += s * times[e]
    return change if allowed else NEVER


@compiled
def _move(start: Any, index: Any, times: Any, x: Any, j: Any, s: Any) -> None:
    for e in range(start[j], start[j + 1]):
        x[index[e]] += s * times[e]


# A rounding that adds up at any size and in any time: the inner cells are rounded, and the sums follow.


DEAR = 2.0
"""A step beyond the neighbours costs so many times the distance of a step."""


def added_up(grid: Grid, budget: Budget, *, seed: int = 0) -> Integers | None:
    """A rounding with few steps beyond the neighbours; None where no cells decide all others or frozen ones forbid it.

    With different bases the inner cells become multiples of the coarsest, so that every sum is one, too.
    """
    base = int(grid.step.max(initial=1))
    found = lattice(grid.counts.table.equations.astype(np.int64), grid.counts.table.totals)
    if found is None:
        return None
    value = grid.counts.value
    low, target = value // base, value / base
    high = np.where(grid.counts.frozen, low, -(-value // base))
    part = np.where(high > low, target - low, 0.0)[found.cell]  # carried on from cell to cell, so that no sum drifts
    up = np.diff(np.floor(np.cumsum(part) + 0.5), prepend=0.0).astype(np.int64)
    start = found.table(low[found.cell] + np.minimum(up, (high - low)[found.cell]))
    if (start < 0).any():  # cells that are differences of others
        start = found.table(low[found.cell])
        if (start < 0).any():
            return None
    squared = grid.distance == "squared"
    weight = np.full(len(value), float(base)) ** (2 if squared else 1)
    weight = weight / np.maximum(value, 1) if grid.distance == "relative" else weight
    weight = np.where(grid.hidden, 0.0, weight)
    wish = Wish(
        np.where(grid.hidden, 0, low), np.where(grid.hidden, 2**60, high), target, weight, squared,
        DEAR * float(np.max(weight, initial=1.0)), grid.counts.frozen,
    )  # fmt: skip
    found_steps = annealed(found, grid.counts.table.equations, start, wish, budget, seed=seed)
    steps = found_steps * (base // grid.step)
    return steps if grid.adds_up(steps) else None
