"""A clock that counts work instead of time, so that a search that stops by it stops at the same point everywhere."""

from __future__ import annotations

from dataclasses import dataclass

PER_PROGRAM = 4e-4
PER_ENTRY = 1.5e-7
PER_STEP = 1.8e-7
PER_PIVOT_AND_ENTRY = 2e-9
PER_PAIR_OF_PIVOTS = 7.5e-9
"""Seconds on a machine of 2024, fitted to 27,000 programs: the more pivots, the longer each takes."""
PER_PIVOT = 8e-6
"""The same for programs that go on from their last answer."""
PER_HOT = 2.5e-4
PER_PIVOT_AND_ROW = 3e-8
"""The same for programs of which only the objective or a few bounds change."""
PER_FLOW = 2e-4
PER_ARC = 6e-8
"""The same for minimum-cost flows."""
PER_BOX = 1e-4
PER_LOOK = 2.5e-9
"""The same for boxes, by the cells looked at."""


@dataclass(slots=True)
class Work:
    """Seconds that the work so far would have taken on a quiet machine."""

    spent: float = 0.0

    def program(self, entries: int, pivots: int, steps: int = 0) -> None:
        """Count one linear program, by its pivots and by its interior-point steps."""
        pivots, steps = max(pivots, 0), max(steps, 0)
        by_pivots = (PER_PIVOT_AND_ENTRY * entries + PER_PAIR_OF_PIVOTS * pivots) * pivots
        self.spent += PER_PROGRAM + (PER_ENTRY + PER_STEP * steps) * entries + by_pivots

    def hot(self, rows: int, pivots: int) -> None:
        """Count a program that is kept in memory and goes on from its last answer."""
        self.spent += PER_HOT + (PER_PIVOT + PER_PIVOT_AND_ROW * rows) * max(pivots, 0)

    def integer(self, rows: int, pivots: int) -> None:
        """Count an integer program, by all pivots of its relaxations."""
        self.spent += 10 * PER_PROGRAM + (PER_PIVOT + PER_PIVOT_AND_ROW * rows) * max(pivots, 0)

    def flow(self, arcs: int) -> None:
        """Count one minimum-cost flow."""
        self.spent += PER_FLOW + PER_ARC * arcs

    def box(self, looks: int) -> None:
        """Count one search for a box."""
        self.spent += PER_BOX + PER_LOOK * looks
