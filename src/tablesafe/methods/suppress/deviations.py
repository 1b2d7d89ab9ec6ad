"""The linear programs of suppression, each over the neighbourhood of one sensitive cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.local import Localities
from tablesafe.solve.highs import Model
from tablesafe.solve.program import Columns

FAR = 1e4
"""No deviation needs to be larger than this many times the protection level."""
NEGLIGIBLE = 1e-7


Prices = Callable[[int, Integers], Floats]
"""What some cells cost when they help a sensitive cell."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A way to move: cells and by how much, in units of the table."""

    cells: Integers
    amount: Floats


def cheapest_deviation(
    instance: Instance, localities: Localities, solver: Model, target: int, cells: Integers, prices: Prices
) -> Deviation | None:
    """Move a target as far as it must, at the least cost of the cells that move with it.

    A cell pays in proportion to the share of the move that it carries: the tightest linear measure below the price of
    withholding it (Kelly, Golden & Assad). Every cell is two variables, up and down, that start at 0: so a deviation
    does not use what it does not need.
    """
    local = localities.around(cells, int(instance.cell[target]))
    if local is None:
        return None
    asked = _asked(instance, target, local.cells, prices)
    if asked is None:
        return None
    n = len(local.cells)
    columns = Columns(
        np.concatenate([local.start, local.start[-1] + local.start[1:]]),
        np.tile(local.index, 2),
        np.concatenate([local.value, -local.value]),
        len(local.rows),
    )
    answer = solver.minimise(*asked, columns)
    if answer is None:
        return None
    return _deviation(local.cells, answer.point[:n] - answer.point[n:], float(instance.level[target]))


def _asked(instance: Instance, target: int, cells: Integers, prices: Prices) -> tuple[Floats, Floats, Floats] | None:
    """Costs and bounds of the moves up and down of some cells, in levels; None for a target that has no room."""
    n, cell = len(cells), int(instance.cell[target])
    room = np.concatenate([instance.up[cells], instance.down[cells]]) / instance.level[target]
    at = int(np.searchsorted(cells, cell))
    moving, resting = (at, at + n) if instance.sign[target] > 0 else (at + n, at)
    if room[moving] < 1:
        return None
    price = np.where(room > 0, np.tile(prices(cell, cells), 2) / np.clip(room, 1e-9, 1.0), 0.0)
    upper = np.minimum(room, FAR)
    lower = np.zeros(2 * n)
    price[moving] = price[resting] = upper[resting] = 0.0
    lower[moving] = upper[moving] = 1.0
    return price / (float(price.max(initial=0.0)) or 1.0), lower, upper


def _deviation(cells: Integers, amount: Floats, level: float) -> Deviation:
    used = np.abs(amount) > NEGLIGIBLE
    return Deviation(cells[used], amount[used] * level)


@dataclass(frozen=True, slots=True)
class Move:
    """How far a target can move in units of its level, the deviation in these units, the equations and their prices."""

    reach: float
    cells: Integers
    amount: Floats
    rows: Integers
    prices: Floats


def largest_move(
    instance: Instance,
    localities: Localities,
    solver: Model,
    target: int,
    cells: Integers,
    share: Floats,
    *,
    limit: float = FAR,
    least: float = 0.0,
    everything: bool = False,
) -> Move | None:
    """How far a target can move when each cell (of the table) may move by `share` of its room.

    `limit` caps the room of a cell at that many levels, and `least` lets every cell move by that many: both make better
    cuts, and must not decide whether a cell is protected. `everything` keeps also what cannot move: its equations may
    have a price.
    """
    level, cell = instance.level[target], int(instance.cell[target])
    local = localities.all_of(cells, cell) if everything else localities.around(cells, cell)
    if local is None:
        return None
    part = share[local.cells]
    up, down = instance.up[local.cells] / level, instance.down[local.cells] / level
    above = np.maximum(np.minimum(up, limit) * part, least * np.minimum(up, 1.0))
    below = np.maximum(np.minimum(down, limit) * part, least * np.minimum(down, 1.0))
    at, sign = int(np.searchsorted(local.cells, cell)), int(instance.sign[target])
    above[at], below[at] = (min(up[at], 1.0), 0.0) if sign > 0 else (0.0, min(down[at], 1.0))
    cost = np.zeros(len(local.cells))
    cost[at] = -sign
    answer = solver.minimise(cost, -below, above, Columns(local.start, local.index, local.value, len(local.rows)))
    if answer is None:
        return None
    return Move(-answer.objective, local.cells, answer.point, local.rows, answer.dual)
