"""Unbiased controlled rounding: by chance, every sum kept, and the expected value of every cell is its count.

Cox, "A constructive procedure for unbiased controlled rounding", JASA 82 (1987), moves a table along closed paths of
cells that are not yet rounded, up or down with chances that leave every expected value as it is, until a cell arrives
at a neighbour. Here the paths are any moves that keep all sums: the same in two dimensions, and defined in all others.
Where no move is left while cells are still in between (two hierarchies, three and more dimensions), the rest is rounded
together, each cell up with its own chance unless the sums forbid it.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from time import monotonic

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.round.controlled import Rounded, round_controlled
from tablesafe.methods.round.dependent_rounding import THERE, walk
from tablesafe.methods.round.grid import Grid
from tablesafe.work.budget import Budget

WALK = 0.4
"""The part of the time for moves by chance; the rest is for what they leave."""


def round_unbiased(grid: Grid, time_limit_s: float, seed: int) -> Rounded:
    """Draw a rounding; where chance alone does not finish it, say so and round the rest with the same chances."""
    begin = monotonic()
    grid.counts.require_multiples_where_frozen()
    random = np.random.default_rng(seed)
    drawn = _walked(grid, random, Budget(WALK * time_limit_s))
    steps = np.where(grid.hidden, grid.low, np.floor(drawn + THERE)).astype(np.int64)
    between = (drawn - steps > THERE) & ~grid.hidden
    if not between.any() and not grid.hidden.any() and grid.adds_up(steps):
        return Rounded(steps * grid.step, grid.beyond(steps), None, proven=False, by_chance=True)
    if between.any():
        warnings.warn(
            f"{int(between.sum()):,} of {int((grid.high > grid.low).sum()):,} cells could not be rounded one by one "
            "so that every sum holds; they were rounded together: their expected values are only nearly the counts.",
            stacklevel=5,
        )
    rest = round_controlled(
        _pulled(grid, drawn, steps, between, random), max(time_limit_s - (monotonic() - begin), 0.1)
    )
    return Rounded(rest.values, rest.beyond, None, rest.proven)


def _pulled(grid: Grid, drawn: Floats, steps: Integers, between: Mask, random: np.random.Generator) -> Grid:
    """What chance decided stays as far as can be; cells in between go up when their part of a step exceeds a threshold.

    Thresholds are random, so that every cell goes up with its own chance unless the sums forbid it.
    """
    pull = np.where(between, random.random(len(drawn)) - (drawn - steps), np.where(drawn > grid.low, -1.0, 1.0))
    return replace(grid, pull=pull)


def _walked(grid: Grid, random: np.random.Generator, budget: Budget) -> Floats:
    """Where chance takes every cell from its count, in steps; the walk itself is in whole counts, so it is exact."""
    low, high = (grid.low * grid.step).astype(np.float64), (grid.high * grid.step).astype(np.float64)
    low[grid.hidden], high[grid.hidden] = 0.0, np.inf
    equations = sparse.csr_array(grid.counts.table.equations).astype(np.int64)
    return walk(equations, grid.counts.value.astype(np.float64), low, high, random, budget) / grid.step
