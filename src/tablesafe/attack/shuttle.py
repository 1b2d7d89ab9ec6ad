"""Bounds by alternating sums: what each published margin says about its parts, handed back and forth until it ends.

The shuttle algorithm (Buzzigoli & Giusti 1999; Dobra & Fienberg, "The Generalized Shuttle Algorithm", 2008): the lower
bounds of all other parts leave the rest of a margin as an upper bound of a part, their upper bounds leave a lower one.
It needs no linear program and is soon done by hand; where several margins tie the same cells together it ends before
the exact interval is reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import polars as pl

from tablesafe.attack.estimate import Guess
from tablesafe.attack.view import NEVER_NARROWER, View
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.solve.propagate import propagate
from tablesafe.work.budget import ENDLESS, Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuttle:
    """Guess the middle of what alternating sums of the published margins leave, without any linear program.

    The note says how far that is from the exact intervals. Cells without a largest value get no guess.
    """

    name: ClassVar[str] = "shuttle"

    whole: bool = field(default=True, metadata={"help": "bounds are rounded to the table's last decimal, inwards"})

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """The middle of each interval of the shuttle algorithm."""
        lower, upper = self._ends(view.system)
        with np.errstate(invalid="ignore"):
            middle = np.where(np.isfinite(lower) & np.isfinite(upper), (lower + upper) / 2, np.nan)
        equal = _equal(lower, view.lower) & _equal(upper, view.upper)
        note = f"{int(equal.sum()):,} of {len(equal):,} intervals are exact"
        return Guess(np.where(view.free, middle, view.lower), note=note)

    def bounds(self, problem: Problem, release: Release) -> pl.DataFrame:
        """A row per unknown cell: what the shuttle says it is between, the exact interval, and the gap of the widths.

        The gap is a share of the exact width; null where one of them has no end. It tells nothing of the true values.
        """
        view = View.of(problem, release)
        lower, upper = self._ends(view.system)
        unit, cells = 10.0**problem.table.decimals, view.system.cells
        exact = view.upper - view.lower
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.where(exact > NEVER_NARROWER, (upper - lower) / exact - 1.0, np.where(upper > lower, np.inf, 0.0))
        codes = {name: column.gather(cells.astype(np.uint32)) for name, column in problem.table.code_columns().items()}
        return pl.DataFrame(
            {
                **(codes or {"cell": cells}),
                "shuttle lower": lower / unit,
                "shuttle upper": upper / unit,
                "exact lower": view.lower / unit,
                "exact upper": view.upper / unit,
                "gap": pl.Series(np.where(np.isfinite(gap), gap, np.nan), nan_to_null=True),
            }
        )

    def _ends(self, system: System) -> tuple[Floats, Floats]:
        """The bounds when nothing more comes of it; counted from the truth, so that all sums are of small numbers."""
        truth = system.truth.astype(np.float64)
        lower, upper = system.lower - truth, system.upper - truth
        if self.whole:
            lower, upper = np.ceil(lower - NEVER_NARROWER), np.floor(upper + NEVER_NARROWER)
        lower, upper = propagate(system.matrix, lower, upper)
        return lower + truth, upper + truth


def _equal(one: Floats, other: Floats) -> Mask:
    return np.asarray(np.isclose(one, other, rtol=0.0, atol=0.5) | (one == other), dtype=np.bool_)
