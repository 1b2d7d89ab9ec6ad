"""A rounding that adds up at any size and in any time: the inner cells are rounded, and the sums follow."""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Integers
from tablesafe.methods.round.annealing import Wish, annealed, lattice
from tablesafe.methods.round.grid import Grid
from tablesafe.work.budget import Budget

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
