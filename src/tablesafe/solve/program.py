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


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """How good an answer is: its objective, the best proven bound, and how long it took."""

    status: SolveStatus
    objective: float
    bound: float
    seconds: float

    @property
    def gap(self) -> float:
        """Distance between objective and bound, relative to the objective."""
        if self.objective == self.bound:
            return 0.0
        return abs(self.objective - self.bound) / max(abs(self.objective), 1e-12)
