"""Controlled tabular adjustment: the method and its options."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import ClassVar, Literal, get_args

import numpy as np

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidOption, InvalidProblem, Setting, SolverFailure, Words, joined
from tablesafe.core.options import require_choice, require_number, require_whole
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss.frames import quality_tables
from tablesafe.loss.statistics import statistics as statistics_of
from tablesafe.methods.abilities import TOLD, Outcome, as_told, told_by
from tablesafe.methods.adjust.capacities import Relaxation, explanation, relaxed_capacities
from tablesafe.methods.adjust.costs import column_of, cost_of
from tablesafe.methods.adjust.direction_search import TOLERANCE, Search
from tablesafe.methods.adjust.directions import DirectionsName, find
from tablesafe.methods.adjust.distances import Measured, least_largest, least_squared
from tablesafe.methods.adjust.instance import Allowance, Instance, Way, finer
from tablesafe.methods.adjust.interrupt import until_interrupted
from tablesafe.methods.adjust.keeping import refined
from tablesafe.methods.adjust.means import LARGE, Means
from tablesafe.methods.adjust.publish import published
from tablesafe.methods.adjust.relaxed import Relaxed, Simulations, simulated
from tablesafe.methods.adjust.repair import NoChange
from tablesafe.methods.adjust.statistics import Keep
from tablesafe.methods.adjust.tabu.options import Tabu
from tablesafe.methods.adjust.whole import rounded
from tablesafe.solve.program import Solution, SolveStatus
from tablesafe.work.budget import Budget
from tablesafe.work.run import Run

FixedName = Literal["none", "top", "totals"]
DistanceName = Literal["sum", "squares", "largest"]
FIRST_SHARE = 0.3
"""The share of the time for the least change, when it is only where the search for another begins."""


@told_by("progress")
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
    distance: DistanceName = field(
        default="sum",
        metadata={
            "help": "what is made least: the sum of all changes times their costs, of their squares, or the largest"
        },
    )
    directions: DirectionsName = field(
        default="optimal",
        metadata={
            "help": "which sensitive cells rise: optimal, search, blocks, alternating, random (best of tries), up, down"
        },
    )
    zeros: bool = field(default=False, metadata={"help": "cells of value zero may be changed too"})
    capacity_percent: float | None = field(
        default=None,
        metadata={"help": "largest change of a cell that is not sensitive, in percent of its value", "example": 20.0},
    )
    capacity: str | Floats | None = field(
        default=None,
        metadata={
            "help": "largest change of a cell that is not sensitive: a column, of standard errors for example",
            "example": "standard_error",
        },
    )
    capacity_times: float = field(
        default=2.0, metadata={"help": "how many times the column `capacity` a cell may change"}
    )
    relax_capacity: bool = field(
        default=False,
        metadata={"help": "raise capacities, as few and as little as can be, when nothing else is possible"},
    )
    most_times_level: float | None = field(
        default=None,
        metadata={
            "help": "largest change of a sensitive cell, in multiples of its level: 1 is exactly at it; default any",
            "example": 2.0,
        },
    )
    fixed: FixedName = field(
        default="none", metadata={"help": "totals that keep their value: none, top (parts of nothing) or all totals"}
    )
    fixed_cells: str | Floats | None = field(
        default=None,
        metadata={"help": "cells that keep their value: a column that is not 0 there", "example": "published_before"},
    )
    announce_percent: float | None = field(
        default=None,
        metadata={"help": "largest change that the public is told, in percent of the published value", "example": 50.0},
    )
    decimals: int | None = field(
        default=None,
        metadata={"help": "decimals of the adjusted values, at least the table's own; default the same", "example": 2},
    )
    keep: Keep | None = field(
        default=None,
        metadata={"help": "statistics to keep: mean, variance, correlation, slope", "example": {"variance": 0.05}},
    )
    tabu: Tabu | None = field(
        default=None,
        metadata={"help": "search for the smallest of another measure than the cost", "example": {"correlation": 1.0}},
    )
    relaxed: Relaxed | None = field(
        default=None,
        metadata={
            "help": "sensitive cells move by a random part of their levels; the best of many releases is taken",
            "example": {"share_percent": 50.0, "releases": 20},
        },
    )
    tries: int = field(default=100, metadata={"help": "how many random directions to try"})
    time_limit_s: float = field(default=60.0, metadata={"help": "stop improving after this many seconds"})
    seed: int = field(default=0, metadata={"help": "seed of the random choices; equal seed, equal release"})
    told: Run | None = field(default=None, repr=False, compare=False, metadata=TOLD)

    def __post_init__(self) -> None:
        require_choice(self, "directions", get_args(DirectionsName))
        require_choice(self, "fixed", get_args(FixedName))
        require_choice(self, "distance", get_args(DistanceName))
        require_number(self, "capacity_times", at_least=0)
        if self.distance != "sum" and (self.keep is not None or self.tabu is not None):
            raise InvalidOption(
                f"Adjust.distance is {self.distance!r}, which cannot be combined with keep or tabu.",
                hint="leave distance out, or keep and tabu.",
                about=("option", "Adjust", "distance"),
            )
        if self.most_times_level is not None:
            require_number(self, "most_times_level", at_least=1)
        require_number(self, "time_limit_s", above=0)
        require_whole(self, "tries", at_least=1)
        require_whole(self, "seed", at_least=0)
        if self.decimals is not None:
            require_whole(self, "decimals", at_least=0)
        if self.capacity_percent is not None:
            require_number(self, "capacity_percent", at_least=0)
        if self.announce_percent is not None:
            require_number(self, "announce_percent", above=0)

    def limits(self, problem: Problem) -> Allowance:
        """What these options allow to move."""
        amounts = None if self.capacity is None else column_of(problem, self.capacity, "Adjust.capacity")
        chosen = None if self.fixed_cells is None else column_of(problem, self.fixed_cells, "Adjust.fixed_cells") != 0
        return Allowance(
            zeros=self.zeros,
            capacity=None if self.capacity_percent is None else self.capacity_percent / 100,
            window=None if self.announce_percent is None else self.announce_percent / 100,
            fixed=self.fixed,
            amounts=None if amounts is None else self.capacity_times * amounts,
            times=self.most_times_level,
            chosen=chosen,
        )

    def relaxation(self, problem: Problem) -> Relaxation:
        """Say which capacities leave no room and would be raised by `relax_capacity`, and how far. Confidential."""
        problem = finer(problem, self.decimals)
        limits, random = self.limits(problem), np.random.default_rng(self.seed)
        try:
            return relaxed_capacities(
                problem, cost_of(problem, self.cost), limits, self.directions, random,
                budget=Budget(self.time_limit_s / 3),
            )  # fmt: skip
        except NoChange as failure:
            raise explanation(problem, limits, problem.sensitive[failure.targets], proved=failure.proved) from None

    def outcome(self, problem: Problem, run: Run | None = None) -> Outcome:
        """The release, how far its values are from the true ones, and what else there was to choose from."""
        tables = {}
        if self.relaxed is None:
            release = self.protect(problem, run)
        else:
            simulations = self.simulate(problem, run)
            release, tables["releases.csv"] = simulations.picked(), simulations.frame()
        over = next((part.over for part in (self.keep, self.tabu, self.relaxed) if part is not None), "sensitive")
        responses = () if self.keep is None else self.keep.responses
        tables["statistics.csv"] = statistics_of(problem, release, over=over, responses=responses)
        tables |= quality_tables(problem, release)
        if self.relax_capacity:
            tables["raised_capacities.csv"] = self.relaxation(problem).frame()
        return Outcome(release, tables)

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Find the directions and the changes; every promise is checked in whole numbers before it is returned."""
        if self.relaxed is not None:
            return self.simulate(problem, run).picked()
        return self._release(problem, as_told(self, run))

    def simulate(self, problem: Problem, run: Run | None = None) -> Simulations:
        """Draw many releases with relaxed protection, to compare and to choose from."""
        relaxed, run = Relaxed() if self.relaxed is None else self.relaxed, as_told(self, run)
        each = replace(self, relaxed=relaxed, time_limit_s=self.time_limit_s / relaxed.releases)
        return simulated(problem, relaxed, lambda random: each._drawn(problem, run, random), seed=self.seed)

    def _drawn(self, problem: Problem, run: Run, draw: np.random.Generator) -> Release:
        """A release with relaxed protection; where no cell may go beyond its level and nothing is feasible, all may."""
        try:
            return self._release(problem, run, copy.deepcopy(draw))
        except InvalidProblem:
            return self._release(problem, run, draw, capped=False)

    def _release(
        self, problem: Problem, run: Run, draw: np.random.Generator | None = None, *, capped: bool = True
    ) -> Release:
        told, whole = monotonic(), run.within(self.time_limit_s)
        first = whole.child(self._first_share * self.time_limit_s)
        problem = finer(problem, self.decimals)
        limits, start = self.limits(problem), None
        if self.relax_capacity and limits.capped:
            relaxation = self.relaxation(problem)
            limits, start = replace(limits, raised=relaxation.raised()), relaxation.way
        instance = Instance.of(problem, cost_of(problem, self.cost), limits)
        if draw is not None and self.relaxed is not None:
            instance = self.relaxed.loosened(instance, draw, capped=capped)
        means = Means.none(instance) if self.keep is None else self.keep.with_means(problem, instance)
        instance = means.instance
        stuck = ~(instance.can_rise | instance.can_fall)
        if stuck.any():
            raise explanation(problem, limits, instance.cells[instance.targets[stuck]], proved=True)
        random = draw or np.random.default_rng(self.seed)
        alike = self.distance == "sum" and draw is None  # costs of other distances, and draws, do not compare
        search = Search(
            instance,
            first,
            random,
            report=run.progress if alike else None,
            means=means,
        )
        moves = np.zeros(len(instance.cells), np.int64)
        if instance.targets.size:
            moves = self._moves(problem, search, means, start)
        if instance.targets.size and (self.keep is not None or self.tabu is not None):
            rest = first if search.stopped else whole
            moves = refined(problem, means, moves, keep=self.keep, tabu=self.tabu, seed=self.seed, budget=rest)
        if not instance.holds(moves):
            raise SolverFailure("The answer failed our own check.", hint="try other directions or another seed.")
        solution = _solution(search, moves, monotonic() - told)
        if self.distance != "sum" and instance.targets.size:
            search.budget = first if search.stopped else whole
            measured = self._measured(search, moves)
            moves, unit = measured.moves, 10.0**problem.table.decimals if self.distance == "squares" else 1.0
            solution = _judged(measured.objective / unit, measured.bound / unit, monotonic() - told)
            if not instance.holds(moves):
                raise SolverFailure("The answer failed our own check.", hint="try other directions or another seed.")
        if run.progress is not None:
            run.progress(solution.objective, solution.bound)
        if solution.warning and alike and self.keep is None and self.tabu is None:
            warnings.warn(solution.warning, stacklevel=4)  # other aims may be worth any cost
        return published(problem, instance, moves, limits, method=self.name, solution=solution)

    @property
    def _first_share(self) -> float:
        """The share of the time for the least change."""
        only_first = (
            self.distance != "sum" or self.tabu is not None or (self.keep is not None and self.keep.beyond_mean)
        )
        return FIRST_SHARE if only_first else 1.0

    def _find(self, problem: Problem, search: Search, start: Way | None) -> None:
        """Fill the search; an interrupt before there is anything to keep is the last one already."""
        try:
            find(problem, search, self.directions, tries=self.tries, start=start)
        except KeyboardInterrupt:
            search.stopped = search.best is None
            raise

    def _moves(self, problem: Problem, search: Search, means: Means, start: Way | None) -> Integers:
        try:
            with until_interrupted(search):
                self._find(problem, search, start)
        except NoChange as failure:
            cells = search.instance.cells[search.instance.targets[failure.targets]]
            if self.keep is not None and self.keep.mean:
                raise self.keep.mean_in_the_way(problem, cells, proved=failure.proved) from None
            raise explanation(problem, self.limits(problem), cells, proved=failure.proved) from None
        moves: Integers | None = None
        with until_interrupted(search):
            moves = self._whole(search, means)
        return self._whole(search, means) if moves is None else moves

    def _measured(self, search: Search, moves: Integers) -> Measured:
        """The same by another distance, from the directions of the least sum."""
        choosing = self.directions in {"optimal", "search", "blocks"}
        if self.distance == "squares":
            return least_squared(search, moves, flip=choosing)
        return least_largest(search, moves, choose=self.directions == "optimal", again=_whole_again)

    def _whole(self, search: Search, means: Means) -> Integers:
        """The best answer in whole numbers; `optimal` also looks for a better whole one while there is time.

        Not where the search for something else only begins there, nor of a large table: an integer program over
        thousands of whole numbers does not always end when it is told to.
        """
        assert search.best is not None
        best = search.best
        search.reserved = 0.0
        if search.long and not search.deep:
            if search.kept is None or search.cost < search.instance.price(search.kept) * (1 - TOLERANCE):
                search.keep(search.whole_by_lattice())
            if search.kept is not None:
                return search.kept
        moves = means.rounded(best.way, best.change.moves, budget=search.last_seconds())
        large = moves is not None and len(search.instance.cells) > LARGE
        exact = self.directions == "optimal" and self._first_share == 1.0 and not large
        if moves is None or (exact and search.instance.price(moves) > search.bound * (1 + TOLERANCE)):
            moves = search.whole(moves)
        if moves is None:
            moves = search.whole_by_regions()
        if moves is None:
            zeros: Words = "" if self.zeros else (", allow cells of value zero (", Setting("zeros", True), ")")
            raise SolverFailure(
                "The changes could not be made whole so that everything adds up.",
                hint=joined("", ["raise time_limit_s", zeros, ", or fix fewer cells."]),
            )
        return moves


def _whole_again(search: Search) -> Integers | None:
    """The least change within narrower bounds, in whole numbers; directions are flipped while it helps."""
    search.flip(time_limit_s=search.left / 3)
    assert search.best is not None
    best = search.best
    return rounded(search.instance, best.way, best.change.moves, budget=search.last_seconds())


def _solution(search: Search, moves: Integers, seconds: float) -> Solution:
    return _judged(search.instance.price(moves), search.bound, seconds)


def _judged(objective: float, bound: float, seconds: float) -> Solution:
    closed = objective <= bound * (1 + TOLERANCE) + 1e-12
    return Solution(
        status=SolveStatus.OPTIMAL if closed else SolveStatus.FEASIBLE,
        objective=objective,
        bound=min(bound, objective),
        seconds=seconds,
    )
