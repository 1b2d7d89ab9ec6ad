"""An interval for every withheld cell: what the options of `PublishIntervals` ask for."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.files.read import LARGEST_EXACT
from tablesafe.methods.intervals.draw import Reach, drawn
from tablesafe.methods.intervals.publish_intervals import PublishIntervals
from tablesafe.work.run import Run


class Publication:
    """One way to publish intervals, and how it is run."""

    def __init__(self, options: PublishIntervals, run: Run | None) -> None:
        self.options, self.run = options, run

    def release(self, problem: Problem) -> Release:
        """Withhold, then find an interval for each withheld cell."""
        pattern, drawing = self._pattern(problem), self.options.kind == "asymmetric"
        release = self._asymmetric(problem, pattern) if drawing else self._derived(problem, pattern)
        told = release.suppressed & ~problem.withheld & np.isfinite(release.upper)
        return replace(release, method=self.options.name, intervals=told)

    def _pattern(self, problem: Problem) -> Release:
        given = self.options.pattern
        if given is None:
            return self.options.suppress.protect(problem, self.run)
        if isinstance(given, str):
            raise InvalidOption(
                f"The pattern in {given!r} was not read yet.",
                hint="from Python, give the pattern itself: PublishIntervals(pattern=release.suppressed).",
            )
        return Release.from_suppression(problem, given, method=self.options.name)

    def _asymmetric(self, problem: Problem, pattern: Release) -> Release:
        """Narrower intervals with random ends, in steps as fine as asked for."""
        self._check_decimals(problem)
        room = Reach.of(problem, pattern, self.options.least_percent / 100, self.options.decimals)
        return drawn(problem, pattern, room, self.options.spread, self._random(problem))

    def _check_decimals(self, problem: Problem) -> None:
        table, decimals = problem.table, self.options.decimals
        more = 0 if decimals is None else decimals - table.decimals
        if more < 0 or float(np.abs(table.integers).max(initial=0)) * 10.0**more > LARGEST_EXACT / 8:
            raise InvalidOption(
                f"PublishIntervals.decimals is {decimals}: the values have {table.decimals}, and none may have so many "
                f"that they cannot be added exactly.",
                hint=f"leave it out, or give a little more than {table.decimals}.",
                about=("option", "PublishIntervals", "decimals"),
            )

    def _random(self, problem: Problem) -> np.random.Generator:
        """From the seed and the values together: who guesses the seed alone cannot repeat the draws."""
        assert self.options.seed is not None
        digest = hashlib.sha256(np.ascontiguousarray(problem.table.integers).tobytes()).digest()
        return np.random.default_rng([self.options.seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])

    def _derived(self, problem: Problem, pattern: Release) -> Release:
        """What can be computed anyway, as it is or rounded outwards."""
        system, unit = System.of(problem, pattern), 10.0**problem.table.decimals
        shown = np.flatnonzero(~problem.withheld[system.cells])
        found, cells = exact_intervals(system, shown), system.cells[shown]
        lower, upper = pattern.lower.copy(), pattern.upper.copy()
        lower[cells], upper[cells] = found.lower / unit, found.upper / unit
        grid = self.options.grid
        if grid is not None:
            lower[cells], upper[cells] = _down(lower[cells], grid), -_down(-upper[cells], grid)
        return replace(pattern, lower=lower, upper=upper)


def _down(ends: Floats, grid: float) -> Floats:
    """The multiple of the grid at or below each end; one that is a multiple up to the noise of floats stays."""
    steps = ends / grid
    near = np.rint(steps)
    with np.errstate(invalid="ignore"):
        same = np.abs(steps - near) <= 1e-9 * np.maximum(1.0, np.abs(near))
    return np.where(same, near, np.floor(steps)) * grid
