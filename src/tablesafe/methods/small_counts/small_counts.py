"""Small-count rounding: the options. What they ask for is done by `tablesafe.methods.small_counts.to_limit`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss.frames import rounding_tables
from tablesafe.methods.abilities import Outcome
from tablesafe.work.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallCounts:
    """Round every published count below `limit` to 0 or to the limit; change nothing that need not change.

    Only inner cells that small published counts are made of are changed, each to 0 or the limit, so that all totals are
    sums of what is published below them, and so that they stay as near to the truth as can be. Counts of the limit or
    more are exact unless changed cells are part of them. Where inner cells are withheld by design, only those that make
    a published count small are changed. In a table that leaves out empty cells, a published 0 tells that somebody is
    there: tabulate with `zeros` to hide that too.

    The release states what follows for a reader who knows the limit and this method, but not how it chooses between 0
    and the limit: every table that could have become this one, whichever way each cell had gone. That is exact where
    all inner cells are shown, and in small tables where they are not. Large tables with inner cells not shown state
    bounds that may be wider than what a reader can find out; the audit then judges by a reader who even knows which
    inner cells were changed and which way, so that it is never too lenient, and may call cells open that are not.
    """

    name: ClassVar[str] = "small_counts"
    needs_records: ClassVar[bool] = True
    for_every_cell: ClassVar[bool] = True
    """It protects without any rule."""

    limit: int = field(default=3, metadata={"help": "published counts below this become 0 or this"})
    passes: int = field(default=40, metadata={"help": "most passes of improvement over the changed cells"})
    seed: int = field(default=0, metadata={"help": "seed of the choices; equal seed, equal release"})

    def __post_init__(self) -> None:
        if isinstance(self.limit, bool) or not isinstance(self.limit, int | np.integer) or self.limit <= 1:
            raise InvalidOption(
                f"SmallCounts.limit must be a whole number of 2 or more, got {self.limit!r}.",
                hint="3 and 5 are usual; with a limit of 1 no count is small.",
                about=("option", "SmallCounts", "limit"),
            )
        for name in ("passes", "seed"):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
                raise InvalidOption(f"SmallCounts.{name} must be a whole number of 0 or more, got {given!r}.")

    def outcome(self, problem: Problem, run: Run | None = None) -> Outcome:
        """The release, and how far its counts are from the true ones."""
        release = self.protect(problem, run)
        return Outcome(release, rounding_tables(problem, release))

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Round the small counts, and state what a reader may conclude about the true ones."""
        from tablesafe.methods.small_counts.to_limit import SmallCountRounding

        return SmallCountRounding(self).release(problem)
