"""Capacities that leave no room are raised, step by step: which ones, and how far, is reported."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats
from tablesafe.core.problem import Problem
from tablesafe.methods.adjust.instance import Instance, Limits, Way, capacity, whole_up
from tablesafe.methods.adjust.interrupt import until_interrupted
from tablesafe.methods.adjust.repair import NoChange
from tablesafe.methods.adjust.search import Search
from tablesafe.methods.adjust.strategy import DirectionsName, first
from tablesafe.solve.adjustment import Box, LeastChange, Scale

FLIPS = 100
"""Directions that are turned round, at most, so that less has to be raised."""
LITTLE = 1e-6


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The capacities that had to be raised, in whole units of the table; empty when all hold."""

    problem: Problem = field(repr=False)
    cells: NDArray[np.intp] = field(repr=False)
    before: Floats = field(repr=False)
    after: Floats = field(repr=False)
    way: Way = field(repr=False)
    """Directions that are feasible with these capacities."""

    def frame(self) -> pl.DataFrame:
        """A row per raised capacity: the cell, its value, what it was allowed to move, and what it is now. Secret."""
        table, unit = self.problem.table, 10.0**self.problem.table.decimals
        where = {name: codes.gather(self.cells.astype(np.uint32)) for name, codes in table.code_columns().items()}
        return pl.DataFrame(
            {**where, "value": table.value[self.cells], "capacity": self.before / unit, "raised to": self.after / unit}
        )

    def raised(self) -> Floats:
        """The capacities that now hold, for all cells; 0 where none was raised."""
        amounts = np.zeros(len(self.problem.table))
        amounts[self.cells] = self.after
        return amounts

    def __str__(self) -> str:
        if not self.cells.size:
            return "All capacities hold."
        most = float(np.max(self.after - self.before)) / 10.0**self.problem.table.decimals
        worst = self.problem.table.describe(int(self.cells[np.argmax(self.after - self.before)]))
        return f"{len(self.cells):,} capacities were raised, by at most {most:,.10g} ({worst})."


def relaxed_capacities(
    problem: Problem, cost: Floats, limits: Limits, directions: DirectionsName, random: np.random.Generator, *,
    deadline: float,
) -> Relaxation:  # fmt: skip
    """Raise as few capacities, and as little, as the directions found allow; none where all can hold.

    What a cell moves beyond its capacity is a column of its own that costs; directions are turned round while that
    makes it less. Raises NoChange when no capacities at all would not be enough.
    """
    wide = Instance.of(problem, cost, replace(limits, raised=np.full(len(problem.table), np.inf)))
    if not (wide.can_rise | wide.can_fall).all():
        raise NoChange(np.flatnonzero(~(wide.can_rise | wide.can_fall)), proved=True)
    share = capacity(problem, limits)[wide.cells]
    rise, fall = share.copy(), share.copy()
    rise[wide.targets] = np.maximum(share[wide.targets], wide.above)
    fall[wide.targets] = np.maximum(share[wide.targets], wide.below)
    search = Search(_with_excess(wide, rise, fall), deadline, random)
    search.offer(first(problem, wide, directions, random))
    with until_interrupted(search):
        search.flip(time_limit_s=search.left, most=FLIPS, enough=LITTLE)
    assert search.best is not None
    way = search.best.way
    moves = _least_excess(wide, way, rise, fall)
    own = np.where(moves > 0, rise, fall)
    over = np.flatnonzero(np.abs(moves) > own + LITTLE)
    return Relaxation(problem, wide.cells[over], own[over], whole_up(np.abs(moves[over])) + 1.0, way)


def _with_excess(instance: Instance, rise: Floats, fall: Floats) -> Instance:
    """The same problem with two columns a cell: up to its capacity next to nothing, beyond it dear for its size.

    Targets have one column only, without a capacity: a second one could move against the first.
    """
    i = instance
    up, down, dear = np.minimum(i.up, rise), np.minimum(i.down, fall), _dear(rise)
    up[i.targets], down[i.targets] = i.up[i.targets], i.down[i.targets]
    return Instance(
        np.concatenate([i.cells, i.cells]),
        sparse.csc_array(sparse.hstack([i.matrix, i.matrix])),
        np.concatenate([np.full(len(dear), LITTLE * float(dear.min(initial=1.0))), dear]),
        np.concatenate([up, _rest(i.up, up)]),
        np.concatenate([down, _rest(i.down, down)]),
        i.targets, i.above, i.below,
    )  # fmt: skip


def _least_excess(instance: Instance, way: Way, rise: Floats, fall: Floats) -> Floats:
    """Moves in these directions that exceed the capacities by as little as can be, each beside its own size."""
    i, n, box, dear = instance, len(instance.cells), instance.box(way), _dear(rise)
    up, down = np.minimum(box.rise_most, rise), np.minimum(box.fall_most, fall)
    pair = Box(
        np.concatenate([box.rise_least, np.zeros(n)]), np.concatenate([up, _rest(box.rise_most, up)]),
        np.concatenate([box.fall_least, np.zeros(n)]), np.concatenate([down, _rest(box.fall_most, down)]),
    )  # fmt: skip
    cost = np.concatenate([np.full(n, LITTLE * float(dear.min(initial=1.0))), dear])
    columns = sparse.csc_array(sparse.hstack([i.rows, i.rows]))
    change = LeastChange(columns, cost, cost, Scale.of(dear, np.concatenate([i.above, i.below]))).solve(pair)
    if change is None:
        raise NoChange(np.arange(len(i.targets)), proved=False)
    return np.asarray(change.moves[:n] + change.moves[n:])


def _dear(capacity: Floats) -> Floats:
    """What a unit beyond its capacity costs in each cell."""
    return np.asarray(1.0 / np.maximum(np.where(np.isfinite(capacity), capacity, 1.0), 1.0))


def _rest(all: Floats, part: Floats) -> Floats:
    return np.where(np.isinf(all), np.where(np.isinf(part), 0.0, np.inf), all - np.where(np.isinf(all), 0.0, part))
