"""What a solver reported, in our own words: a time limit is not an optimum."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SolveStatus(StrEnum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    """A checked answer with a gap: stopped by time, by the user, or by a node limit."""
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    FAILED = "failed"


FAR = 10.0
"""An answer that costs so many times its proven bound is said to be far from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """How good an answer is: its objective, the best proven bound, and how long it took."""

    status: SolveStatus
    objective: float
    bound: float
    seconds: float
    notes: tuple[str, ...] = ()
    """What there was no time for, in sentences for the user."""

    @property
    def gap(self) -> float:
        """Distance between objective and bound, relative to the objective."""
        if self.objective == self.bound:
            return 0.0
        return abs(self.objective - self.bound) / max(abs(self.objective), 1e-12)

    @property
    def warning(self) -> str:
        """What everybody who sees the answer must be told about it; empty when it is near its bound, or none is proven.

        Console, report and files say it in these words.
        """
        if not 0 < self.bound < self.objective / FAR < float("inf"):
            return ""
        times = (
            f"{self.objective / self.bound:,.0f} times" if self.objective < 1e6 * self.bound else "millions of times"
        )
        return (
            f"The answer may be far from the best: it costs {self.objective:.4g}, {times} the {self.bound:.4g} that "
            f"every answer is proven to cost. Look at what it changed, raise time_limit_s, or choose another cost."
        )
