"""Small-count rounding: the method and its options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tablesafe.errors import InvalidOption
from tablesafe.methods.round.counts import Counts
from tablesafe.methods.small_counts.bounds import Reader
from tablesafe.methods.small_counts.finer import Finer
from tablesafe.methods.small_counts.rounding import round_small
from tablesafe.methods.small_counts.units import Structure, Units
from tablesafe.problem import Problem
from tablesafe.release import Release, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallCounts:
    """Round every published count below `limit` to 0 or to the limit; change nothing that need not change.

    Only inner cells that small published counts are made of are changed, each to 0 or the limit, so that all totals are
    sums of what is published below them, and so that they stay as near to the truth as can be. Counts of the limit or
    more are exact unless changed cells are part of them. Where inner cells are withheld by design, only those that make
    a published count small are changed. In a table that leaves out empty cells, a published 0 tells that somebody is
    there: tabulate with `zeros` to hide that too.
    """

    name: ClassVar[str] = "small_counts"

    limit: int = field(default=3, metadata={"help": "published counts below this become 0 or this"})
    passes: int = field(default=40, metadata={"help": "most passes of improvement over the changed cells"})
    seed: int = field(default=0, metadata={"help": "seed of the choices; equal seed, equal release"})

    def __post_init__(self) -> None:
        if isinstance(self.limit, bool) or not isinstance(self.limit, int | np.integer) or self.limit <= 1:
            raise InvalidOption(
                f"SmallCounts.limit must be a whole number of 2 or more, got {self.limit!r}.\n\n"
                f"Hint: 3 and 5 are usual; with a limit of 1 no count is small."
            )
        for name in ("passes", "seed"):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
                raise InvalidOption(f"SmallCounts.{name} must be a whole number of 0 or more, got {given!r}.")

    def protect(self, problem: Problem) -> Release:
        """Round the small counts, and state what a reader may conclude about the true ones."""
        limit = int(self.limit)
        counts = Counts.of(problem, limit)
        structure = Structure.of(problem.table)
        if structure is None:
            finer = Finer.of(problem)
            return finer.back(self.protect(finer.problem), limit)
        units = Units.of(structure, ~counts.hidden)
        values = round_small(units, counts.value, counts.frozen, limit=limit, passes=int(self.passes), seed=self.seed)
        lower, upper = Reader(units, values, counts.frozen, limit, counts.occupied).concludes()
        status = np.where(values == counts.value, Status.PUBLISHED, Status.CHANGED).astype(np.uint8)
        status[counts.hidden] = Status.GIVEN
        status[problem.withheld] = Status.BY_DESIGN
        return Release(problem.table, np.where(counts.hidden, np.nan, values), lower, upper, status, self.name)
