"""What respondents know of the cells they contribute to, so that deviations can be chosen which none can rule out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.problem import Problem


@dataclass(frozen=True, eq=False)
class Guard:
    """Cells that one respondent knows alone, and how far any respondent can believe each cell to fall.

    A deviation that moves none of the former (but the cell it protects) and takes no other cell further down than the
    latter convinces every single respondent.
    """

    alone: Mask = field(repr=False)
    down: Floats = field(repr=False)

    @classmethod
    def of(cls, problem: Problem) -> Self | None:
        """Read counts and contributors; None when the table has neither, or no cell has only a few."""
        alone, floor = known_to_one(problem), largest(problem)
        if not alone.any() and not floor.any():
            return None
        unit = 10.0**problem.table.decimals
        value = problem.table.integers.astype(np.float64)
        return cls(alone, np.maximum(np.minimum(value - problem.lower * unit, np.abs(value) - floor), 0.0))

    def take(self, cells: Integers) -> Guard:
        """The guard of some cells."""
        return Guard(self.alone[cells], self.down[cells])


def known_to_one(problem: Problem) -> Mask:
    """Cells that a single respondent or holding knows because it is all there is."""
    table = problem.table
    alone = np.zeros(len(table), dtype=np.bool_)
    for count in (table.count, table.holdings):
        if count is not None:
            alone |= count == 1
    return alone


def largest(problem: Problem) -> Floats:
    """What the largest contributor adds to each cell, in units of the table."""
    contributors = problem.table.contributors
    if contributors is None:
        return np.zeros(len(problem.table))
    added = contributors.amount if contributors.weighted is None else contributors.weighted
    return np.asarray(np.abs(added[:, 0]) * 10.0**problem.table.decimals)
