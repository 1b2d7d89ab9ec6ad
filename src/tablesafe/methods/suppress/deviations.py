"""The linear programs of suppression, each over the neighbourhood of one sensitive cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tablesafe.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.neighbourhood import spans
from tablesafe.solve.covering import Cut
from tablesafe.solve.small import SmallSolver, columns_of

FAR = 1e4
"""No deviation needs to be larger than this many times the protection level."""
NEGLIGIBLE = 1e-7
GRID = 55_440
"""Prices of ±1 matrices are fractions with small denominators: multiples of one in 55,440."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A way to move: cells and by how much, in units of the table."""

    cells: Integers
    amount: Floats


def cheapest_deviation(
    instance: Instance, solver: SmallSolver, target: int, cells: Integers, cost: Floats
) -> Deviation | None:
    """Move a target as far as it must, at the least cost of the cells that move with it.

    `cost` is per cell of `cells`. A cell pays in proportion to the share of the move that it carries: the tightest
    linear measure below the price of withholding it (Kelly, Golden & Assad).
    """
    level, at = instance.level[target], int(np.searchsorted(cells, instance.cell[target]))
    room = np.concatenate([instance.up[cells], instance.down[cells]]) / level
    usable = room > 0
    moving = at if instance.sign[target] > 0 else at + len(cells)
    usable[at if instance.sign[target] < 0 else at + len(cells)] = False
    if not usable[moving] or room[moving] < 1:
        return None
    prices = np.concatenate([cost, cost]) / np.maximum(np.minimum(room, 1.0), 1e-9)
    upper = np.minimum(room, FAR)
    lower = np.zeros_like(upper)
    lower[moving] = upper[moving] = 1.0
    kept = np.flatnonzero(usable)
    member = np.where(kept < len(cells), kept, kept - len(cells))
    direction = np.where(kept < len(cells), 1.0, -1.0)
    entries, length = spans(instance.columns, cells[member])
    rows, local = np.unique(instance.columns.indices[entries], return_inverse=True)
    start = np.concatenate([[0], np.cumsum(length)])
    values = instance.columns.data[entries] * np.repeat(direction, length)
    highest = float(prices[kept].max(initial=0.0)) or 1.0
    answer = solver.minimise(
        prices[kept] / highest, lower[kept], upper[kept], columns_of(start, local, values, len(rows))
    )
    if answer is None:
        return None
    amount = np.bincount(member, weights=answer.x * direction, minlength=len(cells))
    used = np.abs(amount) > NEGLIGIBLE
    return Deviation(cells[used], amount[used] * level)


def largest_move(
    instance: Instance,
    solver: SmallSolver,
    target: int,
    cells: Integers,
    share: Floats,
    *,
    limit: float = FAR,
    least: float = 0.0,
    withheld: Mask | None = None,
) -> tuple[float, Floats, NDArray[np.intp], Floats] | None:
    """How far a target can move, in units of its level, when each cell may move by `share` of its room.

    `limit` caps the room of a cell at that many levels, and `least` lets every cell move by that many: both make better
    cuts, and must not decide whether a cell is protected. With `withheld`, equations in which a withheld cell outside
    `cells` stands are left out, so that their prices prove something about all withheld cells. Returns the move, the
    deviation, the equations and their prices.
    """
    level, at = instance.level[target], int(np.searchsorted(cells, instance.cell[target]))
    up, down = instance.up[cells] / level, instance.down[cells] / level
    above = np.maximum(np.minimum(up, limit) * share, least * np.minimum(up, 1.0))
    below = np.maximum(np.minimum(down, limit) * share, least * np.minimum(down, 1.0))
    sign = int(instance.sign[target])
    above[at], below[at] = (min(up[at], 1.0), 0.0) if sign > 0 else (0.0, min(down[at], 1.0))
    entries, length = spans(instance.columns, cells)
    rows, local = np.unique(instance.columns.indices[entries], return_inverse=True)
    cost = np.zeros(len(cells))
    cost[at] = -sign
    start = np.concatenate([[0], np.cumsum(length)])
    answer = solver.minimise(cost, -below, above, columns_of(start, local, instance.columns.data[entries], len(rows)))
    if answer is None:
        return None
    return -answer.objective, answer.x, rows, answer.prices


def capacity_cut(
    instance: Instance, target: int, rows: NDArray[np.intp], prices: Floats, variable: Integers
) -> Cut | None:
    """The inequality that prices of equations prove about every pattern that protects a target.

    For any prices λ, a move of the target is at most Σ |rc| · room over the withheld cells, with rc the reduced costs.
    Coefficients are cut down to what is needed (Fischetti & Salazar), withheld cells go to the right-hand side.
    """
    on_grid = np.round(prices * GRID)
    exact = bool((np.abs(on_grid - prices * GRID) < 1e-3).all())
    weight = on_grid if exact else prices * GRID
    entries, length = spans(instance.rows, rows)
    cells, place = np.unique(instance.rows.indices[entries], return_inverse=True)
    terms = np.repeat(weight, length) * instance.rows.data[entries]
    reduced = np.bincount(place, weights=terms).astype(np.float64)
    here = int(np.searchsorted(cells, instance.cell[target]))
    sign = int(instance.sign[target])
    if here < len(cells) and cells[here] == instance.cell[target]:
        reduced[here] += sign * GRID
    reduced = reduced / GRID
    live = instance.live[cells]
    room = np.where(reduced > 0, instance.up[cells], instance.down[cells]) / instance.level[target]
    carried = np.where(live & (reduced != 0), np.abs(reduced) * room, 0.0)
    forced = instance.forced[cells]
    needed = 1.0 - float(carried[forced].sum())
    if needed <= 1e-9:
        return None
    useful = ~forced & (carried > 0)
    return Cut(variable[cells[useful]], np.minimum(carried[useful] / needed, 1.0))


def _closed_rows(instance: Instance, rows: NDArray[np.intp], cells: Integers, withheld: Mask) -> Mask:
    """Equations in which no withheld cell stands outside `cells`."""
    entries, length = spans(instance.rows, rows)
    members = instance.rows.indices[entries]
    position = np.minimum(np.searchsorted(cells, members), len(cells) - 1)
    outside = withheld[members] & (cells[position] != members)
    per_row = np.bincount(np.repeat(np.arange(len(rows)), length), weights=outside, minlength=len(rows))
    return np.asarray(per_row == 0)


def _only(
    usable: Mask, entries: Integers, local: NDArray[np.intp], length: Integers
) -> tuple[Integers, NDArray[np.intp], Integers]:
    """The entries of the usable equations, renumbered."""
    kept = usable[local]
    column = np.repeat(np.arange(len(length)), length)[kept]
    return entries[kept], (np.cumsum(usable) - 1)[local[kept]], np.bincount(column, minlength=len(length))
