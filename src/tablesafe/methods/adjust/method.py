"""Controlled tabular adjustment: the method and its options."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import ClassVar, Literal, get_args

import numpy as np

from tablesafe.equations import Floats, Integers
from tablesafe.errors import SolverFailure
from tablesafe.methods.adjust.costs import cost_of
from tablesafe.methods.adjust.directions import alternating, drawn, leaning, uniform
from tablesafe.methods.adjust.infeasible import explanation
from tablesafe.methods.adjust.instance import Instance, Limits, finer
from tablesafe.methods.adjust.publish import published
from tablesafe.methods.adjust.search import TOLERANCE, NoChange, Search
from tablesafe.methods.adjust.whole import rounded
from tablesafe.problem import Problem
from tablesafe.release import Release
from tablesafe.rules.options import require_choice, require_number, require_whole
from tablesafe.solve.program import Solution, SolveStatus

DirectionsName = Literal["optimal", "search", "alternating", "random", "up", "down"]
FixedName = Literal["none", "top", "totals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjust:
    """Publish every cell: sensitive values move to a safe distance, the others as little as possible, all sums hold.

    Minimises the cost of all changes. Each sensitive cell rises by at least its upper protection level or falls by at
    least its lower one (Dandekar & Cox, "Synthetic Tabular Data", 2002); the directions are chosen by `directions`.
    Values stay whole numbers of the table's own decimals, or of more if asked for, and add up exactly.

    What the release says about the truth: a cell that could have been changed lies within the attacker's prior bounds,
    or, with `announce_percent`, within that percentage of its published value; then no cell is changed further. A cell
    that could not (frozen, fixed, an exempt zero) is taken as known: the audit assumes an attacker who knows which.
    """

    name: ClassVar[str] = "adjust"

    cost: str | Floats = field(
        default="value",
        metadata={"help": "what a change by 1 costs: constant, log, value, inverse, log_over_value, or a column"},
    )
    directions: DirectionsName = field(
        default="optimal",
        metadata={"help": "which sensitive cells rise: optimal, search, alternating, random (best of tries), up, down"},
    )
    zeros: bool = field(default=False, metadata={"help": "cells of value zero may be changed too"})
    capacity_percent: float | None = field(
        default=None,
        metadata={"help": "largest change of a cell that is not sensitive, in percent of its value", "example": 20.0},
    )
    fixed: FixedName = field(
        default="none", metadata={"help": "totals that keep their value: none, top (parts of nothing) or all totals"}
    )
    announce_percent: float | None = field(
        default=None,
        metadata={"help": "largest change that the public is told, in percent of the published value", "example": 50.0},
    )
    decimals: int | None = field(
        default=None,
        metadata={"help": "decimals of the adjusted values, at least the table's own; default the same", "example": 2},
    )
    tries: int = field(default=100, metadata={"help": "how many random directions to try"})
    time_limit_s: float = field(default=60.0, metadata={"help": "stop improving after this many seconds"})
    seed: int = field(default=0, metadata={"help": "seed of the random choices; equal seed, equal release"})

    def __post_init__(self) -> None:
        require_choice(self, "directions", get_args(DirectionsName))
        require_choice(self, "fixed", get_args(FixedName))
        require_number(self, "time_limit_s", above=0)
        require_whole(self, "tries", at_least=1)
        require_whole(self, "seed", at_least=0)
        if self.decimals is not None:
            require_whole(self, "decimals", at_least=0)
        if self.capacity_percent is not None:
            require_number(self, "capacity_percent", at_least=0)
        if self.announce_percent is not None:
            require_number(self, "announce_percent", above=0)

    @property
    def limits(self) -> Limits:
        """What these options allow to move."""
        return Limits(
            zeros=self.zeros,
            capacity=None if self.capacity_percent is None else self.capacity_percent / 100,
            window=None if self.announce_percent is None else self.announce_percent / 100,
            fixed=self.fixed,
        )

    def protect(self, problem: Problem) -> Release:
        """Find the directions and the changes; every promise is checked in whole numbers before it is returned."""
        begin = monotonic()
        problem = finer(problem, self.decimals)
        instance = Instance.of(problem, cost_of(problem, self.cost), self.limits)
        stuck = ~(instance.can_rise | instance.can_fall)
        if stuck.any():
            raise explanation(problem, self.limits, instance.cells[instance.targets[stuck]], proved=True)
        search = Search(instance, begin + self.time_limit_s, np.random.default_rng(self.seed))
        moves = self._moves(problem, search) if instance.targets.size else np.zeros(len(instance.cells), np.int64)
        if not instance.holds(moves):
            raise SolverFailure("The answer failed our own check.\n\nHint: try other directions or another seed.")
        solution = _solution(search, moves, monotonic() - begin)
        return published(problem, instance, moves, self.limits, method=self.name, solution=solution)

    def _moves(self, problem: Problem, search: Search) -> Integers:
        try:
            self._search(problem, search)
        except NoChange as failure:
            cells = search.instance.cells[search.instance.targets[failure.targets]]
            raise explanation(problem, self.limits, cells, proved=failure.proved) from None
        return self._whole(search)

    def _search(self, problem: Problem, search: Search) -> None:
        instance = search.instance
        if self.directions in {"up", "down"}:
            search.offer(uniform(instance, 1 if self.directions == "up" else -1))
        else:
            search.offer(alternating(problem, instance))
        if self.directions == "random":
            search.best = None
            for _ in range(self.tries):
                search.offer(drawn(instance, search.random))
                if search.left <= 0:
                    break
        search.relax()
        if self.directions in {"search", "optimal"}:
            assert search.lean is not None
            for way in (leaning(instance, search.lean), uniform(instance, 1), uniform(instance, -1)):
                if search.left > 0:
                    search.offer(way)
            self._improve(search)

    def _improve(self, search: Search) -> None:
        """Flip, free blocks, and, for `optimal`, let one program over all directions take it from there."""
        targets, optimal = len(search.instance.targets), self.directions == "optimal"
        share = 0.4 if optimal else 1.0
        deadline, search.deadline = search.deadline, monotonic() + search.left * share
        search.flip(time_limit_s=search.left / 4)
        search.free_blocks(patience=2 + targets // 16 if optimal else 4 + targets // 8)
        search.deadline = deadline
        if optimal and search.left > 0 and not search.closed():
            search.optimise()

    def _whole(self, search: Search) -> Integers:
        """The best answer in whole numbers; `optimal` also looks for a better whole one while there is time."""
        assert search.best is not None
        best = search.best
        moves = rounded(search.instance, best.way, best.change.moves, left=lambda: max(search.left, 5.0))
        exact = self.directions == "optimal"
        if moves is None or (exact and search.instance.price(moves) > search.bound * (1 + TOLERANCE)):
            moves = search.whole(moves)
        if moves is None:
            raise SolverFailure(
                "The changes could not be made whole so that everything adds up.\n\n"
                "Hint: raise time_limit_s, allow cells of value zero (zeros=True), or fix fewer cells."
            )
        return moves


def _solution(search: Search, moves: Integers, seconds: float) -> Solution:
    objective = search.instance.price(moves)
    closed = objective <= search.bound * (1 + TOLERANCE) + 1e-12
    return Solution(
        status=SolveStatus.OPTIMAL if closed else SolveStatus.FEASIBLE,
        objective=objective,
        bound=min(search.bound, objective),
        seconds=seconds,
    )
