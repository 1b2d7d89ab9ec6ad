"""Capacities that leave no room are raised, step by step: which ones, and how far, is reported."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.equations import Floats
from tablesafe.methods.adjust.directions import alternating
from tablesafe.methods.adjust.instance import Instance, Limits, capacity, whole_up
from tablesafe.methods.adjust.repair import NoChange, repaired
from tablesafe.problem import Problem
from tablesafe.solve.adjustment import Box, LeastChange, Scale

STEPS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, np.inf)
"""By how much all capacities are multiplied, in turn, until something is feasible; then only those needed are."""
LITTLE = 1e-6


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The capacities that had to be raised, in whole units of the table; empty when all hold."""

    problem: Problem = field(repr=False)
    step: float
    """The first multiple of all capacities at which directions were found."""
    cells: NDArray[np.intp] = field(repr=False)
    before: Floats = field(repr=False)
    after: Floats = field(repr=False)

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
    problem: Problem, cost: Floats, limits: Limits, random: np.random.Generator, *, deadline: float
) -> Relaxation:
    """Raise all capacities in steps until directions are found; of these, keep raised what must be, as little as can.

    Raises NoChange when no capacities at all would not be enough.
    """
    most = capacity(problem, limits)
    for step in STEPS:
        wide = replace(limits, raised=np.where(np.isfinite(most), np.maximum(most, 1.0) * step, np.inf))
        instance = Instance.of(problem, cost, limits if step == 1 else wide)
        try:
            if not (instance.can_rise | instance.can_fall).all():
                raise NoChange(np.arange(0), proved=True)
            way = repaired(instance, alternating(problem, instance), random, deadline=deadline)
        except NoChange:
            if np.isinf(step):
                raise
            continue
        if step == 1:
            return Relaxation(problem, step, np.zeros(0, np.intp), np.zeros(0), np.zeros(0))
        box, cells = instance.box(way), instance.cells
        moves = np.abs(_least_excess(instance, most[cells], box))
        own = np.maximum(most[cells], np.maximum(box.rise_least, box.fall_least))
        over = np.flatnonzero(moves > own + LITTLE)
        return Relaxation(problem, step, cells[over], own[over], whole_up(moves[over]) + 1.0)
    raise AssertionError("the last step has no capacities")


def _least_excess(instance: Instance, most: Floats, box: Box) -> Floats:
    """Moves in these directions that exceed the capacities by as little as can be, each beside its own size."""
    i, n = instance, len(instance.cells)
    inside = Box(
        box.rise_least, np.maximum(np.minimum(box.rise_most, most), box.rise_least),
        box.fall_least, np.maximum(np.minimum(box.fall_most, most), box.fall_least),
    )  # fmt: skip
    pair = Box(
        np.concatenate([inside.rise_least, np.zeros(n)]),
        np.concatenate([inside.rise_most, np.maximum(box.rise_most - inside.rise_most, 0.0)]),
        np.concatenate([inside.fall_least, np.zeros(n)]),
        np.concatenate([inside.fall_most, np.maximum(box.fall_most - inside.fall_most, 0.0)]),
    )
    cost = np.concatenate([np.full(n, LITTLE), 1.0 / np.maximum(np.where(np.isfinite(most), most, 1.0), 1.0)])
    columns = sparse.csc_array(sparse.hstack([i.rows, i.rows]))
    change = LeastChange(columns, cost, cost, Scale.of(cost, np.concatenate([i.above, i.below]))).solve(pair)
    if change is None:
        raise NoChange(np.arange(len(i.targets)), proved=False)
    return np.asarray(change.moves[:n] + change.moves[n:])
