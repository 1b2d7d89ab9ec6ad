"""How much of last period's pattern is still there: users of a series want the same cells to be published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tablesafe.core.equations import Mask
from tablesafe.core.errors import InvalidRelease
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release


@dataclass(frozen=True, slots=True)
class Stability:
    """Cells that are not sensitive: withheld last time and this time, and what became of them."""

    before: int
    """Withheld last time, and not sensitive now: what could be published, or kept."""
    kept: int
    """Of these, withheld again."""
    new: int
    """Withheld now to protect others, but not last time."""

    @property
    def dropped(self) -> int:
        """Withheld last time, published now."""
        return self.before - self.kept

    @property
    def share_kept(self) -> float:
        """The share of last period's complementary cells that is kept; 1 when there were none."""
        return self.kept / self.before if self.before else 1.0

    @property
    def similarity(self) -> float:
        """Cells withheld in both periods, as a share of those withheld in either (Jaccard)."""
        either = self.before + self.new
        return self.kept / either if either else 1.0

    def __str__(self) -> str:
        return (
            f"Of {self.before:,} complementary cells of last period {self.kept:,} are kept ({self.share_kept:.0%}), "
            f"{self.dropped:,} published again; {self.new:,} are new."
        )


def stability(problem: Problem, release: Release, previous: Mask) -> Stability:
    """Compare the complementary cells of a release with last period's pattern, a boolean per cell of this table."""
    previous = np.asarray(previous)
    if previous.shape != (len(problem.table),) or previous.dtype != np.bool_:
        raise InvalidRelease(
            f"Last period's pattern is one boolean per cell ({len(problem.table):,}); got {previous.dtype} of shape "
            f"{previous.shape}.",
            hint="ts.read_pattern(file, problem, complete=False) makes one from a file.",
        )
    open_to_choice = ~(problem.sensitivity.mask | problem.withheld)
    before, now = previous & open_to_choice, release.suppressed & open_to_choice
    return Stability(int(before.sum()), int((before & now).sum()), int((now & ~before).sum()))
