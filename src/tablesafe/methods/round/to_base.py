"""Rounding of counts to a base: what the options of `Round` ask for, and the windows that follow for a reader."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.mechanism import Mechanism, Transition
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.methods.round.bases import bases_of
from tablesafe.methods.round.controlled import Rounded, round_controlled
from tablesafe.methods.round.counts import Counts
from tablesafe.methods.round.dependent_rounding import round_unbiased
from tablesafe.methods.round.grid import Grid
from tablesafe.methods.round.random import round_singly
from tablesafe.methods.round.round import Round
from tablesafe.solve.program import Solution
from tablesafe.work.run import Run

MOST_NAMED = 3
"""Cells named in a warning."""


class Rounding:
    """One way to round, and how it is run."""

    def __init__(self, options: Round, run: Run) -> None:
        self.options, self.run = options, run

    def release(self, problem: Problem) -> Release:
        """The rounded counts, with the window around each."""
        options = self.options
        unit = 10**problem.table.decimals if options.amounts else 1
        if unit > 1:
            return self._in_units(problem, unit)
        counts = Counts.of(problem, bases_of(problem.table, int(options.base), options.bases))
        if options.method == "controlled":
            return self._controlled(problem, counts)
        single = round_singly(counts, options.method, additive=options.additive, seed=options.seed)
        release = _release(problem, counts, single.values, single.below, single.above, None, single.mechanism)
        return replace(release, judged=single.judged)

    def _controlled(self, problem: Problem, counts: Counts) -> Release:
        options, run = self.options, self.run
        grid, seconds = Grid.of(counts, options.distance), run.seconds(options.time_limit_s)
        if options.unbiased:
            rounded = round_unbiased(grid, seconds, options.seed)
        else:
            rounded = round_controlled(grid, seconds, run.progress)
        _tell_beyond(counts, rounded)
        reach = (rounded.beyond + 1) * counts.base - 1
        below = np.minimum(reach, rounded.values - 1) if counts.occupied else reach  # no true zeros are shown
        chances = _chances(counts) if rounded.by_chance else None
        return _release(problem, counts, rounded.values, below, reach, rounded.solution, chances)

    def _in_units(self, problem: Problem, unit: int) -> Release:
        """Round values with decimals as whole numbers of their smallest unit."""
        levels = problem.sensitivity
        levels = replace(levels, lower=levels.lower * unit, upper=levels.upper * unit, sliding=levels.sliding * unit)
        whole = Problem(
            replace(problem.table, decimals=0), sensitivity=levels,
            lower=problem.lower * unit, upper=problem.upper * unit, cost=problem.cost,
            frozen=problem.frozen, suppressed=problem.suppressed, withheld=problem.withheld,
        )  # fmt: skip
        counts = Counts.of(whole, unit * bases_of(problem.table, int(self.options.base), self.options.bases))
        found = self._controlled(whole, counts)
        return replace(
            found, table=problem.table, values=found.values / unit, lower=found.lower / unit, upper=found.upper / unit
        )


def _chances(counts: Counts) -> Mechanism:
    """Unbiased rounding of a cell, seen by itself, has the chances of random rounding."""
    bases, which = np.unique(counts.base, return_inverse=True)
    transitions = tuple(Transition.random_rounding(int(base)) for base in bases)
    return Mechanism(transitions, np.where(counts.frozen | counts.hidden, -1, which))


def _release(
    problem: Problem,
    counts: Counts,
    values: Integers,
    below: Integers,
    above: Integers,
    solution: Solution | None,
    mechanism: Mechanism | None = None,
) -> Release:
    """Publish the rounded values with their windows; frozen cells as they are, hidden ones not at all."""
    hidden, frozen = counts.hidden, counts.frozen
    shown: Floats = np.where(hidden, np.nan, values.astype(np.float64))
    low = np.maximum(np.where(frozen, values, values - below), 0)
    high = np.where(frozen, values, values + above)
    status = np.where(values == counts.value, Status.PUBLISHED, Status.CHANGED).astype(np.uint8)
    status[hidden] = Status.GIVEN
    status[problem.withheld] = Status.BY_DESIGN
    return Release(
        problem.table,
        shown,
        np.where(hidden, problem.lower, low),
        np.where(hidden, problem.upper, high),
        status,
        Round.name,
        solution,
        mechanism=mechanism,
    )


def _tell_beyond(counts: Counts, rounded: Rounded) -> None:
    """Say which cells had to leave their neighbours, and whether that is proven."""
    cells = np.flatnonzero(rounded.beyond)
    if cells.size:
        names = ", ".join(
            f"{counts.table.describe(int(cell))} by {rounded.beyond[cell]} × {counts.base[cell]}"
            for cell in cells[:MOST_NAMED]
        )
        more = f" and {cells.size - MOST_NAMED:,} more" if cells.size > MOST_NAMED else ""
        warnings.warn(
            f"No rounding {'exists' if rounded.proven else 'was found'} that adds up with every count on one of its "
            f"two neighbours: {names}{more} went further; their windows are wider.",
            stacklevel=6,
        )
