"""Rounding of counts to a base: the options. What they ask for is done by `tablesafe.methods.round.to_base`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss.frames import rounding_tables
from tablesafe.methods.abilities import TOLD, Outcome, as_told, told_by
from tablesafe.methods.round.bases import Bases, require_bases
from tablesafe.work.run import Run

METHODS = ("controlled", "random", "conventional")
DISTANCES = ("absolute", "squared", "relative")


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
        from tablesafe.methods.round.to_base import Rounding

        return Rounding(self, as_told(self, run)).release(problem)
