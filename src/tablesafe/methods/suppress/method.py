"""Complementary cell suppression: the method and its options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import ClassVar, Literal

from tablesafe.equations import Floats, Mask
from tablesafe.errors import InvalidOption
from tablesafe.methods.suppress.costs import cost_of
from tablesafe.methods.suppress.infeasible import explanation
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.optimal import Search, optimise
from tablesafe.methods.suppress.repair import repaired
from tablesafe.methods.suppress.witnesses import CannotProtect
from tablesafe.problem import Problem
from tablesafe.release import Release
from tablesafe.solve.program import Solution, SolveStatus

ALGORITHMS = ("auto", "optimal", "sequential")
LARGE = 12_000
"""Cells beyond which `auto` does not try to prove an optimum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppress:
    """Withhold further cells, as few or as cheap as can be, so that no sensitive cell can be derived.

    A pattern is safe when each sensitive cell can rise and fall by its protection levels in tables that agree with all
    that is published. `sequential` protects one cell after another and then improves the pattern; `optimal` also
    proves how far it is from the best; `auto` picks by size. Either way the pattern is audited over the whole system
    of linked tables and repaired until nothing is open.
    """

    name: ClassVar[str] = "suppress"

    algorithm: Literal["auto", "optimal", "sequential"] = field(
        default="auto", metadata={"help": "auto, optimal or sequential"}
    )
    cost: str | Floats = field(
        default="problem",
        metadata={"help": "what a cell costs: problem, unit, value, count, log, inverse, log_over_value, or a column"},
    )
    power: float = field(
        default=1.0, metadata={"help": "Box–Cox λ: costs are raised to this power, 0 means log(1+cost)"}
    )
    margin: float = field(default=0.0, metadata={"help": "further protection, as a share of the levels"})
    zeros: bool = field(default=False, metadata={"help": "cells of value zero may be withheld too"})
    time_limit_s: float = field(default=60.0, metadata={"help": "stop improving after this many seconds"})
    seed: int = field(default=0, metadata={"help": "seed of the random choices; equal seed, equal pattern"})
    progress: Callable[[float, float], None] | None = field(
        default=None, repr=False, compare=False, metadata={"help": "called with cost and proven bound", "hidden": True}
    )

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise InvalidOption(f"Suppress.algorithm must be one of {', '.join(ALGORITHMS)}, got {self.algorithm!r}.")
        if not self.time_limit_s > 0:
            raise InvalidOption(f"Suppress.time_limit_s must be more than 0, got {self.time_limit_s!r}.")
        if not 0 <= self.margin <= 10:
            raise InvalidOption(f"Suppress.margin must be in [0, 10], got {self.margin!r}.")

    def protect(self, problem: Problem) -> Release:
        """Find a pattern, and prove that it is safe before it is returned."""
        begin = monotonic()
        cost = cost_of(problem, self.cost, self.power)
        instance = Instance.of(problem, cost, margin=self.margin, zeros=self.zeros)
        search = Search(instance, deadline=begin + self.time_limit_s, seed=self.seed, report=self.progress or _silent)
        try:
            pattern = repaired(problem, search, self._found(search))
        except CannotProtect as failure:
            target = failure.target
            cell, sign = int(instance.cell[target]), int(instance.sign[target])
            raise explanation(problem, cost, cell, sign, margin=self.margin) from None
        return Release.from_suppression(
            problem, pattern, method=self.name, solution=_solution(search, pattern, monotonic() - begin)
        )

    def _found(self, search: Search) -> Mask:
        """The best pattern; an interrupt keeps what was found until then."""
        try:
            self._search(search)
        except KeyboardInterrupt:
            if search.best is None:
                raise
        assert search.best is not None
        return search.best

    def _search(self, search: Search) -> None:
        patience = 160 + 2 * len(search.instance.level)
        witnesses = search.build()
        if not len(witnesses.complementary):
            search.offer(witnesses)
            search.prove(0.0)
            return
        large = len(search.instance) > LARGE
        if self.algorithm == "sequential" or (self.algorithm == "auto" and large):
            search.polish(witnesses, patience=patience)
            return
        search.polish(witnesses, patience=patience // 8, seconds=self.time_limit_s / 6)
        optimise(search, patience=patience)
        if not search.closed():
            search.polish(search.build(search.best), patience=patience)


def _silent(cost: float, bound: float) -> None:
    """Tell nobody."""


def _solution(search: Search, pattern: Mask, seconds: float) -> Solution:
    objective = search.instance.pattern_cost(pattern)
    closed = objective <= search.bound * (1 + 1e-9) + 1e-9
    return Solution(
        status=SolveStatus.OPTIMAL if closed else SolveStatus.FEASIBLE,
        objective=objective,
        bound=min(float(search.bound), objective),
        seconds=seconds,
    )
