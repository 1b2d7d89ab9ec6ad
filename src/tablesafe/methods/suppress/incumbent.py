"""The best pattern so far, the bound on every pattern, and the clock: what all searches for a pattern share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tablesafe.core.equations import Integers, Mask
from tablesafe.methods.suppress.branch_and_cut.targets import Targets
from tablesafe.methods.suppress.instance import Instance
from tablesafe.work.budget import Budget

Report = Callable[[float, float], None]
Stop = Callable[[], bool]


class Incumbent:
    """The best pattern of an instance and its proven bound.

    A search for it ends when its budget is over. What it solves is counted there, so that it ends at the same point on
    any machine that is not much slower than the work counts.
    """

    def __init__(
        self,
        instance: Instance,
        *,
        budget: Budget,
        report: Report,
        exactly: Targets | None = None,
        group: Integers | None = None,
    ) -> None:
        self.instance, self.budget, self.report = instance, budget, report
        self.exactly = exactly
        """What is asked of each cell, where the instance asks for more."""
        self.group = group
        """Equal numbers for cells that are withheld together."""
        self.best: Mask | None = None
        self.best_cost = np.inf
        self.bound = 0.0

    @property
    def left(self) -> float:
        """Seconds of work that are left."""
        return self.budget.work_left

    def late(self) -> bool:
        """Whether the time is over."""
        return self.budget.over

    def until(self, seconds: float) -> Stop:
        """A clock that rings after so much work, or when the time is over."""
        return self.budget.until(seconds)

    def offer_pattern(self, pattern: Mask, cost: float) -> None:
        """Keep a pattern if it is the best so far."""
        if self.best is None or cost < self.best_cost - 1e-9:
            self.keep(pattern.copy(), cost)

    def keep(self, pattern: Mask, cost: float) -> None:
        """Take a pattern as the best so far."""
        self.best, self.best_cost = pattern, cost
        self.report(self.best_cost, self.bound)

    def prove(self, bound: float) -> None:
        """Raise the proven bound."""
        if bound > self.bound:
            self.bound = bound
            if self.best is not None:
                self.report(self.best_cost, self.bound)

    def prove_elsewhere(self, bound: float) -> None:
        """Raise the bound by what was proved of patterns that must do more than the best one here, and tell nobody.

        What such patterns cost at least may be more than this one costs: told together, the bound would be false.
        """
        self.bound = max(self.bound, bound)

    def closed(self) -> bool:
        """Whether the best pattern is proven to be the least costly."""
        return self.best is not None and self.best_cost <= self.bound * (1 + 1e-9) + 1e-9
