"""Rounding of small counts to 0 or the limit: what `SmallCounts` asks for, and what a reader may conclude from it."""

from __future__ import annotations

import numpy as np

from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.methods.round.counts import Counts
from tablesafe.methods.small_counts.conclusions import Reader, informed
from tablesafe.methods.small_counts.rounding import round_small
from tablesafe.methods.small_counts.small_counts import SmallCounts
from tablesafe.methods.small_counts.units import Finer, Structure, Units


class SmallCountRounding:
    """One way to round small counts."""

    def __init__(self, options: SmallCounts) -> None:
        self.options, self.limit = options, int(options.limit)

    def release(self, problem: Problem) -> Release:
        """The counts of a table; where its own cells do not determine it, of one with finer cells."""
        occupied = Counts.of(problem, self.limit).occupied
        if Structure.of(problem.table) is None:
            finer = Finer.of(problem, zeros=not occupied)
            return finer.back(self._release(finer.problem, occupied), self.limit)
        return self._release(problem, occupied)

    def _release(self, problem: Problem, occupied: bool) -> Release:
        """Round a table whose inner cells determine it; `occupied` when readers know that no cell shown is empty."""
        limit, passes, structure = self.limit, int(self.options.passes), Structure.of(problem.table)
        assert structure is not None
        counts = Counts.of(problem, limit)
        units = Units.of(structure, ~counts.hidden)
        rounded = round_small(units, counts.value, counts.frozen, limit=limit, passes=passes, seed=self.options.seed)
        values = rounded.values
        reader = Reader(units, values, counts.frozen, limit, occupied)
        lower, upper = reader.concludes()
        status = np.where(values == counts.value, Status.PUBLISHED, Status.CHANGED).astype(np.uint8)
        status[counts.hidden] = Status.GIVEN
        status[problem.withheld] = Status.BY_DESIGN
        return Release(
            problem.table,
            np.where(counts.hidden, np.nan, values),
            lower,
            upper,
            status,
            self.options.name,
            judged=None if reader.is_exact else informed(reader, rounded, (lower, upper)),
        )
