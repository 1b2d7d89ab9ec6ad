"""Complementary cell suppression: exact where it can be, fast where it must be, safe always.

The options stand here; how it is done is loaded when a table is protected.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.options import require_choice, require_number, require_whole
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.statuses import Scheme
from tablesafe.methods.abilities import TOLD, Files, as_told, told_by
from tablesafe.work.run import Run

Algorithm = Literal["auto", "optimal", "sequential", "modular", "network", "slices"]
Unprotectable = Literal["error", "withhold totals", "merge"]


@told_by("insiders", "unions", "possibly", "coalition", "integers", "executor", "progress")
@dataclass(frozen=True, slots=True, kw_only=True)
class Suppress:
    """Withhold further cells, as few or as cheap as can be, so that no sensitive cell can be derived.

    A pattern is safe when each sensitive cell can rise and fall by its protection levels in tables that agree with all
    that is published. `sequential` protects one cell after another and then improves the pattern; `optimal` also
    proves how far it is from the best; `network` is `sequential` for tables of two dimensions with at most one
    hierarchy, where flows take the place of linear programs; `modular` works subtable by subtable from the top, in
    parallel, for tables of a hundred thousand cells and more; `slices` is how three dimensions were protected before
    linear programs (Working Paper 22), and warns of what that left open; `auto` picks by size. Either way the pattern
    is audited over the whole system of linked tables and repaired until nothing is open.
    """

    name: ClassVar[str] = "suppress"
    whole_run: ClassVar[bool] = True

    algorithm: Algorithm = field(
        default="auto", metadata={"help": "auto, optimal, sequential, modular, network or slices"}
    )
    cost: str | Floats = field(
        default="problem",
        metadata={
            "help": "what a cell costs: problem (its own cost, by default its value), unit, value, count, log, "
            "distance (from the nearest sensitive cell), inverse (1/(1+value)), log_over_value, or a column"
        },
    )
    power: float = field(
        default=1.0, metadata={"help": "Box–Cox λ: costs are raised to this power, 0 means log(1+cost)"}
    )
    prefer: str | Floats | None = field(
        default=None,
        metadata={
            "help": "column with degrees of preference: each degree halves the cost of withholding a cell, each "
            "negative one doubles it",
            "example": "preference",
        },
    )
    keep: str | Mask | None = field(
        default=None,
        metadata={
            "help": "file with a pattern somebody made: it is audited and repaired, what it withholds stays withheld",
            "example": "pattern.csv",
            "file": True,
        },
    )
    clean_up: bool = field(
        default=False,
        metadata={
            "help": "publish again what the pattern `keep` withholds needlessly, the dearest first; the office's own "
            "choices (cells suppressed in the problem) stay"
        },
    )
    previous: str | Mask | None = field(
        default=None,
        metadata={
            "help": "file with last period's pattern: its cells are preferred, and how many are kept is reported",
            "example": "last.csv",
            "file": True,
        },
    )
    scheme: Scheme | None = field(
        default=None,
        metadata={
            "help": "the vocabulary of the statuses in these files; when not given, they must leave no doubt",
            "example": "sdmx-conf",
        },
    )
    previous_discount: float = field(
        default=0.5, metadata={"help": "by which share of its cost a cell is cheaper that was withheld last period"}
    )
    same_pattern: bool = field(
        default=False,
        metadata={"help": "withhold the same cells in every response variable; else what is best in each"},
    )
    margin: float = field(
        default=0.0, metadata={"help": "further protection where there is room, as a share of the levels"}
    )
    zeros: bool = field(default=False, metadata={"help": "cells of value zero may be withheld too"})
    randomise: float = field(
        default=0.0,
        metadata={
            "help": "disturb costs at random by up to this share (1e-6 only breaks ties), so that nobody who knows the "
            "algorithm can retrace its choices; needs a seed of your own, kept secret"
        },
    )
    unprotectable: Unprotectable = field(
        default="error",
        metadata={
            "help": "a cell that nothing protects while frozen cells and zeros are published: error; withhold totals, "
            "the fewest of these that give it away; or merge, in a job: its code with one beside it. Both are told"
        },
    )
    time_limit_s: float = field(
        default=60.0,
        metadata={
            "help": "end after this many seconds, with repair and audit; where that is too short for a first safe "
            "pattern, as soon as there is one"
        },
    )
    seed: int = field(default=0, metadata={"help": "seed of the random choices; equal seed, equal pattern"})
    told: Run | None = field(default=None, repr=False, compare=False, metadata=TOLD)

    def __post_init__(self) -> None:
        require_choice(self, "algorithm", get_args(Algorithm))
        require_choice(self, "unprotectable", get_args(Unprotectable))
        require_number(self, "time_limit_s", above=0)
        require_number(self, "power", at_least=0, at_most=10)
        require_number(self, "margin", at_least=0, at_most=10)
        require_number(self, "previous_discount", at_least=0, at_most=0.999)
        require_number(self, "randomise", at_least=0, at_most=1)
        require_whole(self, "seed", at_least=0)
        if self.clean_up and self.keep is None:
            raise InvalidOption("Suppress.clean_up needs a pattern to clean up.", hint="give one with keep.")
        if self.randomise > 0 and self.seed == 0:
            raise InvalidOption(
                "Suppress.randomise needs a seed that nobody can guess, and the default 0 is known to all.",
                hint="set seed to a number of your own, and keep it secret.",
                about=("option", "Suppress", "randomise"),
            )

    def reading(self, files: Files) -> Suppress:
        """The method with the patterns that its options name."""
        keep, previous, scheme = self.keep, self.previous, self.scheme
        if isinstance(keep, str):
            keep = files.pattern(keep, scheme=scheme, complete=False)
        if isinstance(previous, str):
            previous = files.pattern(previous, scheme=scheme, complete=False, ignore_unknown=True)
        return replace(self, keep=keep, previous=previous)

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Find a pattern, and prove that it is safe before it is returned."""
        from tablesafe.methods.suppress.method import Suppression

        return Suppression(self, as_told(self, run)).release(problem)
