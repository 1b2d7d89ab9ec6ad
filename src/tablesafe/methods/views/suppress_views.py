"""Linked views: margins of a cube that are published, and confidential ones that they may give away.

Here are the options of the method that withholds cells of them; what it does is in `tablesafe.methods.views.method`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.abilities import TOLD, as_told, told_by
from tablesafe.work.run import Run

ALGORITHMS = ("auto", "optimal", "greedy", "tabu", "random")
COSTS = ("unit", "value", "weighted", "balanced")


@told_by("progress")
@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressViews:
    """Withhold cells of published views so that the confidential views cannot be derived from them.

    Made for two views that share dimensions, whose cube never appears: the effect of each entry is then known in closed
    form. `optimal` solves an integer program and proves its answer, `greedy` takes what closes most per cost, `tabu`
    improves that, `random` is a baseline, `auto` takes tabu and, if the problem is not too large, proves the optimum.
    Other problems (three views, published totals, prior bounds) go to the general suppression method, which also may
    withhold cells of value zero here. No cell is withheld that the other view's sums give away, and every pattern is
    checked before it is returned.
    """

    name: ClassVar[str] = "views"
    needs_records: ClassVar[bool] = True

    algorithm: Literal["auto", "optimal", "greedy", "tabu", "random"] = field(
        default="auto", metadata={"help": "auto, optimal, greedy, tabu or random"}
    )
    cost: Literal["unit", "value", "weighted", "balanced"] = field(
        default="unit",
        metadata={
            "help": "what is least: the number of cells, their value, their cost in the problem (weighted), or the "
            "largest number in one view and then the number in all (balanced)"
        },
    )
    weights: tuple[float, ...] = field(
        default=(), metadata={"help": "a weight per published view, by which the costs of its cells are multiplied"}
    )
    steps: int = field(
        default=0, metadata={"help": "steps of tabu search at most; 0 takes some hundred, and more for large patterns"}
    )
    big_m: float = field(
        default=0.0, metadata={"help": "M of the integer program; 0 takes the smallest safe M from the operators"}
    )
    time_limit_s: float = field(default=60.0, metadata={"help": "stop improving after this many seconds"})
    seed: int = field(default=0, metadata={"help": "seed of the random choices; equal seed, equal pattern"})
    told: Run | None = field(default=None, repr=False, compare=False, metadata=TOLD)

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise InvalidOption(
                f"SuppressViews.algorithm must be one of {', '.join(ALGORITHMS)}, got {self.algorithm!r}.",
                about=("option", "SuppressViews", "algorithm"),
            )
        if self.cost not in COSTS:
            raise InvalidOption(
                f"SuppressViews.cost must be one of {', '.join(COSTS)}, got {self.cost!r}.",
                about=("option", "SuppressViews", "cost"),
            )
        if not all(0 <= weight < np.inf for weight in self.weights):
            raise InvalidOption(
                f"SuppressViews.weights must be numbers of 0 or more, got {self.weights!r}.",
                about=("option", "SuppressViews", "weights"),
            )
        if self.steps < 0:
            raise InvalidOption(
                f"SuppressViews.steps must be 0 or more, got {self.steps!r}.",
                about=("option", "SuppressViews", "steps"),
            )
        if not 0 <= self.big_m < np.inf:
            raise InvalidOption(
                f"SuppressViews.big_m must be 0 or more, got {self.big_m!r}.",
                about=("option", "SuppressViews", "big_m"),
            )
        if not self.time_limit_s > 0:
            raise InvalidOption(
                f"SuppressViews.time_limit_s must be more than 0, got {self.time_limit_s!r}.",
                about=("option", "SuppressViews", "time_limit_s"),
            )

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Find a pattern, and prove that it is safe before it is returned."""
        from tablesafe.methods.views.method import ViewSuppression

        return ViewSuppression(self, as_told(self, run)).release(problem)
