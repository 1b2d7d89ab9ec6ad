"""Rounding of counts to a base: the method and its options."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.mechanism import Mechanism, Transition
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.loss.frames import rounding_tables
from tablesafe.methods.abilities import TOLD, Outcome, as_told, told_by
from tablesafe.methods.round.controlled import Rounded, round_controlled
from tablesafe.methods.round.counts import Counts
from tablesafe.methods.round.dependent_rounding import round_unbiased
from tablesafe.methods.round.grid import Bases, Grid, bases_of, require_bases
from tablesafe.methods.round.random import round_singly
from tablesafe.solve.program import Solution
from tablesafe.work.run import Run

METHODS = ("controlled", "random", "conventional")
DISTANCES = ("absolute", "squared", "relative")
MOST_NAMED = 3


@told_by("progress")
@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Round every count to a multiple of `base`.

    `controlled` keeps every sum and puts each count on one of its two neighbours, multiples unchanged, as near to the
    truth as can be; where three or more dimensions admit no such rounding, as few cells as possible go further, and a
    warning says which. `random` goes up or down by chance so that the expected value is the count itself;
    `conventional` takes the nearest multiple, half upwards. These two do not add up unless `additive` replaces the
    totals by the sums of the rounded inner cells. The release states for each value the window that the public knows.

    `bases` rounds some levels more coarsely: `{"region": (100, 10)}` the total of all regions to 100 and what lies
    below it to 10, `{"region": {"NO03": 20}}` one code to 20. A cell takes the largest base that its codes ask for.
    With `amounts` values with decimals are rounded to multiples of the base too, in numbers of their smallest unit.
    With `unbiased` controlled rounding is drawn by chance, so that the expected value of every cell is its count.
    """

    name: ClassVar[str] = "round"
    for_every_cell: ClassVar[bool] = True
    """It protects without any rule."""

    base: int = field(default=5, metadata={"help": "counts become multiples of this"})
    method: Literal["controlled", "random", "conventional"] = field(
        default="controlled", metadata={"help": "controlled, random or conventional"}
    )
    bases: Bases | None = field(
        default=None,
        metadata={
            "help": "coarser bases: per dimension, those of its levels from the top, or of some codes",
            "example": {"region": (100, 10)},
        },
    )
    distance: Literal["absolute", "squared", "relative"] = field(
        default="absolute", metadata={"help": "what controlled rounding minimises: absolute, squared or relative"}
    )
    unbiased: bool = field(
        default=False, metadata={"help": "controlled: by chance, so that the expected value of each cell is its count"}
    )
    additive: bool = field(
        default=False, metadata={"help": "random and conventional: totals are the sums of the rounded inner cells"}
    )
    amounts: bool = field(
        default=False,
        metadata={"help": "controlled: values with decimals are rounded to multiples of the base too, not refused"},
    )
    time_limit_s: float = field(default=60.0, metadata={"help": "stop improving after this many seconds"})
    seed: int = field(
        default=0, metadata={"help": "seed of random and of unbiased rounding; equal seed, equal release"}
    )
    told: Run | None = field(default=None, repr=False, compare=False, metadata=TOLD)

    def __post_init__(self) -> None:
        if isinstance(self.base, bool) or not isinstance(self.base, int | np.integer) or self.base <= 1:
            raise InvalidOption(
                f"Round.base must be a whole number of 2 or more, got {self.base!r}.",
                hint="3, 5 and 10 are usual; a base of 1 would leave every count as it is.",
                about=("option", "Round", "base"),
            )
        if self.method not in METHODS:
            raise InvalidOption(
                f"Round.method must be one of {', '.join(METHODS)}, got {self.method!r}.",
                about=("option", "Round", "method"),
            )
        if self.distance not in DISTANCES:
            raise InvalidOption(
                f"Round.distance must be one of {', '.join(DISTANCES)}, got {self.distance!r}.",
                about=("option", "Round", "distance"),
            )
        if self.bases is not None:
            require_bases(self.bases, int(self.base))
        if self.unbiased and self.method != "controlled":
            raise InvalidOption(
                (
                    "Round.unbiased is for ",
                    Setting("method", "controlled"),
                    ", got ",
                    Setting("method", self.method),
                    ".",
                ),
                hint="random rounding is unbiased as it is, conventional rounding never.",
                about=("option", "Round", "unbiased"),
            )
        if self.amounts and (self.method != "controlled" or self.unbiased):
            raise InvalidOption(
                "Round.amounts is for controlled rounding that is not drawn by chance.",
                hint="the other ways round counts.",
                about=("option", "Round", "amounts"),
            )
        if not self.time_limit_s > 0:
            raise InvalidOption(
                f"Round.time_limit_s must be more than 0, got {self.time_limit_s!r}.",
                about=("option", "Round", "time_limit_s"),
            )

    def outcome(self, problem: Problem, run: Run | None = None) -> Outcome:
        """The release, and how far its counts are from the true ones."""
        release = self.protect(problem, run)
        return Outcome(release, rounding_tables(problem, release))

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Round, and state the window around each published value."""
        unit = 10**problem.table.decimals if self.amounts else 1
        if unit > 1:
            return _in_units(self, problem, unit, as_told(self, run))
        counts = Counts.of(problem, bases_of(problem.table, int(self.base), self.bases))
        if self.method == "controlled":
            return self._controlled(problem, counts, as_told(self, run))
        single = round_singly(counts, self.method, additive=self.additive, seed=self.seed)
        release = _release(problem, counts, single.values, single.below, single.above, None, single.mechanism)
        return replace(release, judged=single.judged)

    def _controlled(self, problem: Problem, counts: Counts, run: Run) -> Release:
        grid, seconds = Grid.of(counts, self.distance), run.seconds(self.time_limit_s)
        rounded = (
            round_unbiased(grid, seconds, self.seed) if self.unbiased else round_controlled(grid, seconds, run.progress)
        )
        _tell_beyond(counts, rounded)
        reach = (rounded.beyond + 1) * counts.base - 1
        below = np.minimum(reach, rounded.values - 1) if counts.occupied else reach  # no true zeros are shown
        chances = _chances(counts) if rounded.by_chance else None
        return _release(problem, counts, rounded.values, below, reach, rounded.solution, chances)


def _in_units(method: Round, problem: Problem, unit: int, run: Run) -> Release:
    """Round values with decimals as whole numbers of their smallest unit."""
    levels = problem.sensitivity
    levels = replace(levels, lower=levels.lower * unit, upper=levels.upper * unit, sliding=levels.sliding * unit)
    whole = Problem(
        replace(problem.table, decimals=0), sensitivity=levels,
        lower=problem.lower * unit, upper=problem.upper * unit, cost=problem.cost,
        frozen=problem.frozen, suppressed=problem.suppressed, withheld=problem.withheld,
    )  # fmt: skip
    counts = Counts.of(whole, unit * bases_of(problem.table, int(method.base), method.bases))
    found = method._controlled(whole, counts, run)
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
            stacklevel=4,
        )
