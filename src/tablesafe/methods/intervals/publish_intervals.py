"""An interval for every withheld cell: the options. What they ask for is done by `methods.intervals.publication`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

from tablesafe.core.equations import Mask
from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.options import require_choice, require_number, require_whole
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.statuses import Scheme
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
        from tablesafe.methods.intervals.publication import Publication

        return Publication(self, run).release(problem)
