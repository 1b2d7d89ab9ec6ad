"""The release of an adjusted table: what is shown, and what it says about the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tablesafe.core.equations import Integers
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.methods.adjust.instance import Allowance, Instance, room
from tablesafe.solve.program import Solution


def published(
    problem: Problem, instance: Instance, moves: Integers, limits: Allowance, *, method: str, solution: Solution
) -> Release:
    """Publish the moved values; cells withheld before or by design stay withheld."""
    table = problem.table
    unit = 10.0**table.decimals
    integers = table.integers.copy()
    integers[instance.cells] += moves
    values = integers / unit
    hidden = problem.withheld | problem.suppressed
    up, down = room(problem, limits)
    could = (up > 0) | (down > 0) | hidden
    lower, upper = problem.lower, problem.upper
    if limits.window is not None:
        width = limits.window * np.abs(values)
        # the truth is inside already; the minimum and maximum only undo the last bit of rounding
        lower = np.where(hidden, lower, np.maximum(lower, np.minimum(values - width, table.value)))
        upper = np.where(hidden, upper, np.minimum(upper, np.maximum(values + width, table.value)))
    status = np.where(integers != table.integers, Status.CHANGED, Status.PUBLISHED).astype(np.uint8)
    status[problem.suppressed] = Status.GIVEN
    status[problem.withheld] = Status.BY_DESIGN
    return Release(
        table,
        np.where(hidden, np.nan, values),
        np.where(could, lower, table.value),
        np.where(could, upper, table.value),
        status,
        method,
        solution,
        private_bounds=problem.bounds_differ,
    )


def guessed(problem: Problem, release: Release, *, percent: float) -> Release:
    """The release as an intruder reads it who guesses that no cell was changed by more than `percent` of what it shows.

    For the audit: what could be derived if the guess were right. Where it is wrong the interval reaches to the truth,
    so that the intruder is given every guess that helps, and none that misleads.
    """
    if not percent > 0:
        raise InvalidOption(f"A guess must be above 0 percent, got {percent!r}.")
    could = (release.lower < release.upper) & ~release.suppressed
    width, truth = percent / 100 * np.abs(release.values), problem.table.value
    lower = np.maximum(release.lower, np.minimum(release.values - width, truth))
    upper = np.minimum(release.upper, np.maximum(release.values + width, truth))
    return replace(release, lower=np.where(could, lower, release.lower), upper=np.where(could, upper, release.upper))
