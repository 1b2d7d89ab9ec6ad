"""Publish an interval for every withheld cell: the method and its options."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.options import require_choice, require_number, require_whole
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.statuses import Scheme
from tablesafe.files.read import LARGEST_EXACT
from tablesafe.methods.abilities import Files
from tablesafe.methods.suppress import Suppress
from tablesafe.work.run import Run

Kind = Literal["exact", "grid", "asymmetric"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishIntervals:
    """Withhold cells as suppression does, and publish an interval for each of them in the place of its value.

    `exact` publishes what an intruder could compute: all that the pattern tells, at a glance. Where the bounds that
    intruders start from lie symmetrically about the truth, the middle of such an interval is the truth: check_intervals
    says so. `grid` rounds those intervals outwards to multiples of a number. `asymmetric` publishes narrower ones, as
    wide as protection takes, whose ends are drawn at random: the middle is right on average, and not the truth. Among
    small whole numbers a middle may still be right by coincidence, which nobody can tell; `decimals` avoids even that.

    Whatever is published, the audit puts all intervals into one system: they may not take away each other's protection.
    """

    name: ClassVar[str] = "intervals"

    kind: Kind = field(default="exact", metadata={"help": "the intervals: exact, grid or asymmetric"})
    grid: float | None = field(
        default=None, metadata={"help": "what the ends of grid intervals are multiples of", "example": 100.0}
    )
    spread: float = field(
        default=3.0, metadata={"help": "asymmetric ends lie up to this many times further away than protection takes"}
    )
    least_percent: float = field(
        default=5.0, metadata={"help": "asymmetric ends are at least this far away, in percent of the value"}
    )
    decimals: int | None = field(
        default=None,
        metadata={"help": "decimals of asymmetric ends, at least those of the values; default the same", "example": 2},
    )
    suppress: Suppress = field(default_factory=Suppress, metadata={"help": "how to find the cells to withhold"})
    pattern: str | Mask | None = field(
        default=None,
        repr=False,
        metadata={
            "help": "file with a pattern made elsewhere, which is then taken: CSV, .tab or JJ",
            "example": "pattern.csv",
            "file": True,
        },
    )
    scheme: Scheme | None = field(
        default=None,
        metadata={
            "help": "the vocabulary of the statuses in that file; when not given, they must leave no doubt",
            "example": "sdmx-conf",
        },
    )
    seed: int | None = field(
        default=None,
        repr=False,
        metadata={
            "help": "secret number behind asymmetric ends: the same for every release of a table, or their mean tells",
            "example": 8_316_204_957,
        },
    )

    def __post_init__(self) -> None:
        require_choice(self, "kind", get_args(Kind))
        require_number(self, "spread", above=1)
        require_number(self, "least_percent", above=0, at_most=100)
        if self.decimals is not None:
            require_whole(self, "decimals", at_least=0)
        if self.seed is not None:
            require_whole(self, "seed", at_least=0)
        elif self.kind == "asymmetric":
            raise InvalidOption(
                (
                    "PublishIntervals.seed must be given for ",
                    Setting("kind", "asymmetric"),
                    ".",
                ),
                hint="take a large number of your own, keep it secret, and use it again for the same table.",
                about=("option", "PublishIntervals", "seed"),
            )
        if self.grid is not None:
            require_number(self, "grid", above=0)
        if (self.grid is not None) != (self.kind == "grid"):
            raise InvalidOption(
                (
                    "PublishIntervals.grid goes with ",
                    Setting("kind", "grid"),
                    "; got ",
                    Setting("grid", self.grid),
                    " and ",
                    Setting("kind", self.kind),
                    ".",
                ),
                hint="for example PublishIntervals(kind='grid', grid=100).",
                about=("option", "PublishIntervals", "grid"),
            )

    def reading(self, files: Files) -> PublishIntervals:
        """The method with the pattern that its options name."""
        given = self.pattern
        found = files.pattern(given, scheme=self.scheme) if isinstance(given, str) else given
        return replace(self, pattern=found, suppress=self.suppress.reading(files))

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Withhold, then publish an interval for each withheld cell; cells withheld by design get none."""
        pattern = self._pattern(problem, run)
        release = self._asymmetric(problem, pattern) if self.kind == "asymmetric" else self._derived(problem, pattern)
        told = release.suppressed & ~problem.withheld & np.isfinite(release.upper)
        return replace(release, method=self.name, intervals=told)

    def _pattern(self, problem: Problem, run: Run | None) -> Release:
        if self.pattern is None:
            return self.suppress.protect(problem, run)
        if isinstance(self.pattern, str):
            raise InvalidOption(
                f"The pattern in {self.pattern!r} was not read yet.",
                hint="from Python, give the pattern itself: PublishIntervals(pattern=release.suppressed).",
            )
        return Release.from_suppression(problem, self.pattern, method=self.name)

    def _asymmetric(self, problem: Problem, pattern: Release) -> Release:
        """Narrower intervals with random ends, in steps as fine as asked for."""
        from tablesafe.methods.intervals.draw import Reach, drawn

        self._check_decimals(problem)
        room = Reach.of(problem, pattern, self.least_percent / 100, self.decimals)
        return drawn(problem, pattern, room, self.spread, self._random(problem))

    def _check_decimals(self, problem: Problem) -> None:
        table, more = problem.table, 0 if self.decimals is None else self.decimals - problem.table.decimals
        if more < 0 or float(np.abs(table.integers).max(initial=0)) * 10.0**more > LARGEST_EXACT / 8:
            raise InvalidOption(
                f"PublishIntervals.decimals is {self.decimals}: the values have {table.decimals}, and none may have so "
                f"many that they cannot be added exactly.",
                hint=f"leave it out, or give a little more than {table.decimals}.",
                about=("option", "PublishIntervals", "decimals"),
            )

    def _random(self, problem: Problem) -> np.random.Generator:
        """From the seed and the values together: who guesses the seed alone cannot repeat the draws."""
        assert self.seed is not None
        digest = hashlib.sha256(np.ascontiguousarray(problem.table.integers).tobytes()).digest()
        return np.random.default_rng([self.seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])

    def _derived(self, problem: Problem, pattern: Release) -> Release:
        """What can be computed anyway, as it is or rounded outwards."""
        from tablesafe.audit.intervals import exact_intervals
        from tablesafe.audit.system import System

        system, unit = System.of(problem, pattern), 10.0**problem.table.decimals
        shown = np.flatnonzero(~problem.withheld[system.cells])
        found, cells = exact_intervals(system, shown), system.cells[shown]
        lower, upper = pattern.lower.copy(), pattern.upper.copy()
        lower[cells], upper[cells] = found.lower / unit, found.upper / unit
        if self.grid is not None:
            lower[cells], upper[cells] = _down(lower[cells], self.grid), -_down(-upper[cells], self.grid)
        return replace(pattern, lower=lower, upper=upper)


def _down(ends: Floats, grid: float) -> Floats:
    """The multiple of the grid at or below each end; one that is a multiple up to the noise of floats stays."""
    steps = ends / grid
    near = np.rint(steps)
    with np.errstate(invalid="ignore"):
        same = np.abs(steps - near) <= 1e-9 * np.maximum(1.0, np.abs(near))
    return np.where(same, near, np.floor(steps)) * grid
