"""Controlled tabular adjustment: the options. `controlled_adjustment`, beside them, does what they ask for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption
from tablesafe.core.options import require_choice, require_number, require_whole
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.abilities import TOLD, Outcome, as_told, told_by
from tablesafe.methods.adjust.aims import DirectionsName, Keep, Relaxed, Tabu
from tablesafe.work.run import Run

if TYPE_CHECKING:
    from tablesafe.methods.adjust.capacities import Relaxation
    from tablesafe.methods.adjust.controlled_adjustment import Adjustment
    from tablesafe.methods.adjust.instance import Allowance
    from tablesafe.methods.adjust.relaxed import Simulations

FixedName = Literal["none", "top", "totals"]
DistanceName = Literal["sum", "squares", "largest"]


@told_by("progress")
@dataclass(frozen=True, slots=True, kw_only=True)
class Adjust:
    """Publish every cell: sensitive values move to a safe distance, the others as little as possible, all sums hold.

    Minimises the cost of all changes. Each sensitive cell rises by at least its upper protection level or falls by at
    least its lower one (Dandekar & Cox, "Synthetic Tabular Data", 2002); the directions are chosen by `directions`.
    Values stay whole numbers of the table's own decimals, or of more if asked for, and add up exactly.

    What the release says about the truth: a cell that could have been changed lies within the attacker's prior bounds,
    or, with `announce_percent`, within that percentage of its published value; then no cell is changed further. A cell
    that could not (frozen, fixed, an exempt zero) is taken as known: the audit assumes an attacker who knows which.
    """

    name: ClassVar[str] = "adjust"

    cost: str | Floats = field(
        default="value",
        metadata={"help": "what a change by 1 costs: constant, log, value, inverse, log_over_value, or a column"},
    )
    distance: DistanceName = field(
        default="sum",
        metadata={
            "help": "what is made least: the sum of all changes times their costs, of their squares, or the largest"
        },
    )
    directions: DirectionsName = field(
        default="optimal",
        metadata={
            "help": "which sensitive cells rise: optimal, search, blocks, alternating, random (best of tries), up, down"
        },
    )
    zeros: bool = field(default=False, metadata={"help": "cells of value zero may be changed too"})
    capacity_percent: float | None = field(
        default=None,
        metadata={"help": "largest change of a cell that is not sensitive, in percent of its value", "example": 20.0},
    )
    capacity: str | Floats | None = field(
        default=None,
        metadata={
            "help": "largest change of a cell that is not sensitive: a column, of standard errors for example",
            "example": "standard_error",
        },
    )
    capacity_times: float = field(
        default=2.0, metadata={"help": "how many times the column `capacity` a cell may change"}
    )
    relax_capacity: bool = field(
        default=False,
        metadata={"help": "raise capacities, as few and as little as can be, when nothing else is possible"},
    )
    most_times_level: float | None = field(
        default=None,
        metadata={
            "help": "largest change of a sensitive cell, in multiples of its level: 1 is exactly at it; default any",
            "example": 2.0,
        },
    )
    fixed: FixedName = field(
        default="none", metadata={"help": "totals that keep their value: none, top (parts of nothing) or all totals"}
    )
    fixed_cells: str | Floats | None = field(
        default=None,
        metadata={"help": "cells that keep their value: a column that is not 0 there", "example": "published_before"},
    )
    announce_percent: float | None = field(
        default=None,
        metadata={"help": "largest change that the public is told, in percent of the published value", "example": 50.0},
    )
    decimals: int | None = field(
        default=None,
        metadata={"help": "decimals of the adjusted values, at least the table's own; default the same", "example": 2},
    )
    keep: Keep | None = field(
        default=None,
        metadata={"help": "statistics to keep: mean, variance, correlation, slope", "example": {"variance": 0.05}},
    )
    tabu: Tabu | None = field(
        default=None,
        metadata={"help": "search for the smallest of another measure than the cost", "example": {"correlation": 1.0}},
    )
    relaxed: Relaxed | None = field(
        default=None,
        metadata={
            "help": "sensitive cells move by a random part of their levels; the best of many releases is taken",
            "example": {"share_percent": 50.0, "releases": 20},
        },
    )
    tries: int = field(default=100, metadata={"help": "how many random directions to try"})
    time_limit_s: float = field(default=60.0, metadata={"help": "stop improving after this many seconds"})
    seed: int = field(default=0, metadata={"help": "seed of the random choices; equal seed, equal release"})
    told: Run | None = field(default=None, repr=False, compare=False, metadata=TOLD)

    def __post_init__(self) -> None:
        require_choice(self, "directions", get_args(DirectionsName))
        require_choice(self, "fixed", get_args(FixedName))
        require_choice(self, "distance", get_args(DistanceName))
        require_number(self, "capacity_times", at_least=0)
        if self.distance != "sum" and (self.keep is not None or self.tabu is not None):
            raise InvalidOption(
                f"Adjust.distance is {self.distance!r}, which cannot be combined with keep or tabu.",
                hint="leave distance out, or keep and tabu.",
                about=("option", "Adjust", "distance"),
            )
        if self.most_times_level is not None:
            require_number(self, "most_times_level", at_least=1)
        require_number(self, "time_limit_s", above=0)
        require_whole(self, "tries", at_least=1)
        require_whole(self, "seed", at_least=0)
        if self.decimals is not None:
            require_whole(self, "decimals", at_least=0)
        if self.capacity_percent is not None:
            require_number(self, "capacity_percent", at_least=0)
        if self.announce_percent is not None:
            require_number(self, "announce_percent", above=0)

    def limits(self, problem: Problem) -> Allowance:
        """What these options allow to move."""
        return self._adjustment(None).limits(problem)

    def relaxation(self, problem: Problem) -> Relaxation:
        """Say which capacities leave no room and would be raised by `relax_capacity`, and how far. Confidential."""
        return self._adjustment(None).relaxation(problem)

    def outcome(self, problem: Problem, run: Run | None = None) -> Outcome:
        """The release, how far its values are from the true ones, and what else there was to choose from."""
        return self._adjustment(run).outcome(problem)

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Find the directions and the changes; every promise is checked in whole numbers before it is returned."""
        return self._adjustment(run).release(problem)

    def simulate(self, problem: Problem, run: Run | None = None) -> Simulations:
        """Draw many releases with relaxed protection, to compare and to choose from."""
        return self._adjustment(run).simulations(problem)

    def _adjustment(self, run: Run | None) -> Adjustment:
        from tablesafe.methods.adjust.controlled_adjustment import Adjustment

        return Adjustment(self, as_told(self, run))
