"""What the intruder works with: the exact interval of every unknown cell, and the room that is left between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self, cast

import numpy as np
from scipy import sparse

from tablesafe.attack.centres import analytic_centre, deep_point
from tablesafe.attack.feasible_region import FeasibleRegion, independent
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.solve.propagate import propagate
from tablesafe.work.budget import ENDLESS, Budget

MANY = 2_000
"""Unknown cells from which on a release with changed values is looked at through bounds that may be too wide.

Hardly a cell of it is known, one system ties all of them together, and what is announced bounds them well already.
"""
NEVER_NARROWER = 1e-6
"""Units of width below which an interval is a point: what comes from a table is whole."""


@dataclass(frozen=True, eq=False)
class View:
    """The intruder's system, with the exact interval of every unknown cell; in units of `10**-decimals`."""

    system: System = field(repr=False)
    lower: Floats = field(repr=False)
    """The ends of what each unknown cell can be: exact, but for large releases with changed values."""
    upper: Floats = field(repr=False)
    sensitive: Mask = field(repr=False)
    """Which unknown cells are sensitive: not known to the intruder, but guesses of these are what counts."""
    source: tuple[Problem, Release] | None = field(default=None, repr=False)
    """What the view was made from, for attacks that need to know more of the office's ways."""
    _inside: Floats | None = field(default=None, init=False, repr=False)
    _centre: Floats | None = field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, problem: Problem, release: Release, system: System | None = None, budget: Budget = ENDLESS) -> Self:
        """What anyone who sees the release can work out before guessing; an error if there is no time for that.

        `system` is that of an audit of this release, if there was one: what it worked out is not worked out again.
        """
        system = System.of(problem, release) if system is None or release.judged is not None else system
        changed = bool((release.status == Status.CHANGED).any())
        lower, upper = _outer_bounds(system) if changed and len(system) > MANY else _exact_bounds(system, budget)
        return cls(system, lower, upper, problem.sensitivity.mask[system.cells], (problem, release))

    @cached_property
    def free(self) -> Mask:
        """Which unknown cells can be more than one number; the others are known after all."""
        return self.upper - self.lower > NEVER_NARROWER

    @cached_property
    def bounded(self) -> Mask:
        """Which unknown cells have both a least and a largest value."""
        return np.isfinite(self.lower) & np.isfinite(self.upper)

    @cached_property
    def room(self) -> FeasibleRegion:
        """The free cells alone."""
        free, system = self.free, self.system
        fixed = np.where(free, 0.0, self.lower)
        matrix = system.matrix.tocsc()[:, np.flatnonzero(free)].tocsr()
        rhs = system.rhs - np.asarray(system.matrix.astype(np.float64) @ fixed)
        rows = np.flatnonzero(np.diff(matrix.indptr))
        matrix, rhs = matrix[rows], rhs[rows]
        kept = independent(matrix)
        return FeasibleRegion(
            sparse.csr_array(matrix[kept]).astype(np.float64), rhs[kept], system.lower[free], system.upper[free],
            self.lower[free], self.upper[free],
        )  # fmt: skip

    def inside(self, budget: Budget = ENDLESS) -> Floats:
        """An additive point of the room in which every cell keeps about the same share of its interval on either side.

        Strictly inside all bounds: where methods that go through the interior begin. Found once.
        """
        if self._inside is None:
            room = self.room
            width = room.upper - room.lower
            finite = np.isfinite(width)
            weight = np.where(finite, width, np.max(width[finite], initial=1.0))
            found = deep_point(room, weight, budget=budget) if len(room) else np.zeros(0)
            object.__setattr__(self, "_inside", found)
        return cast(Floats, self._inside)

    def centre(self, budget: Budget = ENDLESS) -> Floats:
        """The analytic centre of the room; found once."""
        if self._centre is None:
            found = analytic_centre(self.room, self.inside(budget), budget=budget) if len(self.room) else np.zeros(0)
            object.__setattr__(self, "_centre", found)
        return cast(Floats, self._centre)

    def filled(self, free_values: Floats) -> Floats:
        """All unknown cells: the given values of the free ones, and those that are known after all."""
        values = self.lower.copy()
        values[self.free] = free_values
        return values

    def where_bounded(self, free_values: Floats) -> Floats:
        """The same, with no answer for cells that have no least or no largest value."""
        return np.where(self.bounded, self.filled(free_values), np.nan)


def _exact_bounds(system: System, budget: Budget) -> tuple[Floats, Floats]:
    found = exact_intervals(system, np.arange(len(system)), budget=budget)
    return found.lower, found.upper


def _outer_bounds(system: System) -> tuple[Floats, Floats]:
    """What each equation by itself says about its cells, until no more comes of it."""
    truth = system.truth.astype(np.float64)
    lower, upper = propagate(system.matrix, np.floor(system.lower - truth), np.ceil(system.upper - truth))
    return lower + truth, upper + truth
