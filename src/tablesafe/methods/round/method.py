"""Rounding of counts to a base: the method and its options."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from tablesafe.equations import Floats, Integers
from tablesafe.errors import InvalidOption, InvalidProblem
from tablesafe.methods.round.controlled import round_controlled
from tablesafe.methods.round.counts import Counts, summed_up
from tablesafe.problem import Problem
from tablesafe.release import Release, Status
from tablesafe.solve.program import Solution

METHODS = ("controlled", "random", "conventional")
DISTANCES = ("absolute", "squared", "relative")
MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Round every count to a multiple of `base`.

    `controlled` keeps every sum and puts each count on one of its two neighbours, multiples unchanged, as near to the
    truth as can be; where three or more dimensions admit no such rounding, as few cells as possible go further, and a
    warning says which. `random` goes up or down by chance so that the expected value is the count itself;
    `conventional` takes the nearest multiple, half upwards. These two do not add up unless `additive` replaces the
    totals by the sums of the rounded inner cells. The release states for each value the window that the public knows.
    """

    name: ClassVar[str] = "round"

    base: int = field(default=5, metadata={"help": "counts become multiples of this"})
    method: Literal["controlled", "random", "conventional"] = field(
        default="controlled", metadata={"help": "controlled, random or conventional"}
    )
    distance: Literal["absolute", "squared", "relative"] = field(
        default="absolute", metadata={"help": "what controlled rounding minimises: absolute, squared or relative"}
    )
    additive: bool = field(
        default=False, metadata={"help": "random and conventional: totals are the sums of the rounded inner cells"}
    )
    time_limit_s: float = field(default=60.0, metadata={"help": "stop improving after this many seconds"})
    seed: int = field(default=0, metadata={"help": "seed of random rounding; equal seed, equal release"})

    def __post_init__(self) -> None:
        if isinstance(self.base, bool) or not isinstance(self.base, int | np.integer) or self.base <= 1:
            raise InvalidOption(
                f"Round.base must be a whole number of 2 or more, got {self.base!r}.\n\n"
                f"Hint: 3, 5 and 10 are usual; a base of 1 would leave every count as it is."
            )
        if self.method not in METHODS:
            raise InvalidOption(f"Round.method must be one of {', '.join(METHODS)}, got {self.method!r}.")
        if self.distance not in DISTANCES:
            raise InvalidOption(f"Round.distance must be one of {', '.join(DISTANCES)}, got {self.distance!r}.")
        if not self.time_limit_s > 0:
            raise InvalidOption(f"Round.time_limit_s must be more than 0, got {self.time_limit_s!r}.")

    def protect(self, problem: Problem) -> Release:
        """Round, and state the window around each published value."""
        counts = Counts.of(problem, int(self.base))
        if self.method == "controlled":
            rounded = round_controlled(counts, self.distance, self.time_limit_s)
            _tell_beyond(counts, rounded.beyond)
            reach = (rounded.beyond + 1) * counts.base - 1
            return _release(problem, counts, rounded.values, reach, reach, rounded.solution)
        values = self._single(counts)
        below, above = self._reach(counts)
        if self.additive:
            values, below, above = _added_up(counts, values, below, above)
        return _release(problem, counts, values, below, above, None)

    def _single(self, counts: Counts) -> Integers:
        """Each cell on its own: by chance, or to the nearest multiple."""
        if self.method == "random":
            up = np.random.default_rng(self.seed).random(len(counts.value)) * counts.base < counts.above
        else:
            up = 2 * counts.above >= counts.base
        return np.where(counts.frozen, counts.value, counts.floor + up * counts.base)

    def _reach(self, counts: Counts) -> tuple[Integers, Integers]:
        """How far below and above a published multiple the count may lie."""
        n, base = len(counts.value), counts.base
        if self.method == "random":
            return np.full(n, base - 1), np.full(n, base - 1)
        return np.full(n, base // 2), np.full(n, (base - 1) // 2)


def _added_up(
    counts: Counts, values: Integers, below: Integers, above: Integers
) -> tuple[Integers, Integers, Integers]:
    """Totals as sums of the rounded inner cells; the errors of the parts add up too."""
    sums = summed_up(counts.table, values)
    if sums is None or (counts.frozen & (sums != counts.value)).any():
        raise InvalidProblem(
            "The totals cannot be replaced by sums of rounded inner cells: the inner cells do not determine them, or "
            "some totals are frozen.\n\nHint: use method='controlled', or additive=False."
        )
    exact = counts.frozen & ~counts.table.is_total
    reach = summed_up(counts.table, np.where(exact, 0, np.maximum(below, above)), absolute=True)
    assert reach is not None
    return sums, reach, reach


def _release(
    problem: Problem, counts: Counts, values: Integers, below: Integers, above: Integers, solution: Solution | None
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
    )


def _tell_beyond(counts: Counts, beyond: Integers) -> None:
    """Say which cells had to leave their neighbours."""
    cells = np.flatnonzero(beyond)
    if cells.size:
        names = ", ".join(counts.table.describe(int(cell)) for cell in cells[:MOST_NAMED])
        more = f" and {cells.size - MOST_NAMED:,} more" if cells.size > MOST_NAMED else ""
        warnings.warn(
            f"No rounding to multiples of {counts.base} was found that adds up with every count on one of its two "
            f"neighbours: {names}{more} went further, by up to {int(beyond.max())} × {counts.base}; "
            "their windows are wider.",
            stacklevel=3,
        )
