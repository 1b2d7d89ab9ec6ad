"""From a solver's floats to a table that adds up exactly: whole moves near the fractional ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.solve.least_change import whole_moves
from tablesafe.work.budget import Budget

FRACTIONAL = 1e-5
"""A move this far from a whole number is a fraction."""
WINDOWS = (1.0, 2.0, 8.0, 64.0)
"""How far whole moves may be from the fractional ones; wider when nothing adds up within."""
PART = 2.0
"""Each stage may take the time left, divided by this."""


def rounded(
    instance: Instance, way: Way, moves: Floats, *, budget: Budget, most: float = np.inf, sums: Floats | None = None,
    stages: int | None = None,
) -> Integers | None:  # fmt: skip
    """Whole moves in the same directions, within all bounds, that add up exactly; None when none were found.

    In two dimensions the solver's answer is whole already. Beyond, a few cells are not: first only those are set to
    the whole number below or above, then their neighbours may give way, then all; `stages` says how many of these are
    tried, `most` how long one may take. `sums` is what the moves add up to in each equation, where that is not 0.
    """
    box = instance.box(way)
    lower, upper = box.rise_least - box.fall_most, box.rise_most - box.fall_least
    near = np.clip(np.rint(moves), lower, upper).astype(np.int64)
    exact = instance.matrix.astype(np.int64)
    residual: Integers = np.asarray(exact @ near)
    if sums is not None:
        residual = residual - np.rint(sums).astype(np.int64)
    if not residual.any():
        return near
    for cells, window in islice(_stages(instance, np.abs(moves - near) > FRACTIONAL, residual), stages):
        if budget.over:
            break
        found = _nearby(instance, near, cells, lower, upper, window, residual, min(budget.left, most) / PART)
        if found is not None:
            return found
    return None


def _stages(instance: Instance, fractional: Mask, residual: Integers) -> Iterator[tuple[Mask, float]]:
    """Which cells may give way, and how far: ever more of them."""
    rows = sparse.csr_array(abs(instance.matrix))
    yield fractional, 1.0
    cells = fractional
    for _ in range(2):
        touched = (rows @ cells.astype(np.float64) > 0) | (residual != 0)
        cells = cells | (rows.T @ touched.astype(np.float64) > 0)
        yield cells, 1.0
    for window in WINDOWS:
        yield np.ones(len(cells), np.bool_), window


def _nearby(
    instance: Instance, near: Integers, cells: Mask, lower: Floats, upper: Floats, window: float,
    residual: Integers, time_limit_s: float,
) -> Integers | None:  # fmt: skip
    """Whole moves within a window of `near` in some cells; a move does not change its sign, so costs are linear."""
    still, moving = np.flatnonzero(cells & (near == 0)), np.flatnonzero(cells & (near != 0))
    sign = np.sign(near[moving]).astype(np.float64)
    columns = np.concatenate([moving, still, still])
    turn = np.concatenate([np.ones(len(moving) + len(still)), -np.ones(len(still))])
    cost = instance.cost[columns] * np.concatenate([sign, np.ones(2 * len(still))])
    back, ahead = np.maximum(lower - near, -window), np.minimum(upper - near, window)
    least = np.where(sign > 0, np.maximum(back[moving], -near[moving]), back[moving])
    most = np.where(sign < 0, np.minimum(ahead[moving], -near[moving]), ahead[moving])
    least = np.concatenate([least, np.zeros(2 * len(still))])
    most = np.concatenate([most, np.maximum(ahead[still], 0.0), np.maximum(-back[still], 0.0)])
    matrix = sparse.csc_array(instance.matrix[:, columns] @ sparse.diags_array(turn))
    step = whole_moves(matrix, -residual, cost, least, most, time_limit_s=time_limit_s)
    if step is None:
        return None
    found = near.copy()
    np.add.at(found, columns, step * turn.astype(np.int64))
    return found
