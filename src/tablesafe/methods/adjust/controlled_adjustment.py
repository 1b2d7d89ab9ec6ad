"""Controlled tabular adjustment: what the options of `Adjust` ask for, from the directions to whole numbers."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from time import monotonic

import numpy as np

from tablesafe.core.equations import Integers
from tablesafe.core.errors import InvalidProblem, Setting, SolverFailure, Words, joined
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss.frames import quality_tables
from tablesafe.loss.statistics import statistics as statistics_of
from tablesafe.methods.abilities import Outcome
from tablesafe.methods.adjust.adjust import Adjust
from tablesafe.methods.adjust.aims import Relaxed
from tablesafe.methods.adjust.capacities import Relaxation, explanation, relaxed_capacities
from tablesafe.methods.adjust.costs import column_of, cost_of
from tablesafe.methods.adjust.direction_search import TOLERANCE, Search
from tablesafe.methods.adjust.directions import find
from tablesafe.methods.adjust.distances import Measured, least_largest, least_squared
from tablesafe.methods.adjust.instance import Allowance, Instance, Way, finer
from tablesafe.methods.adjust.interrupt import until_interrupted
from tablesafe.methods.adjust.keeping import refined
from tablesafe.methods.adjust.means import LARGE, Means
from tablesafe.methods.adjust.publish import published
from tablesafe.methods.adjust.relaxed import Simulations, simulated
from tablesafe.methods.adjust.repair import NoChange
from tablesafe.methods.adjust.whole import rounded
from tablesafe.solve.program import Solution, SolveStatus
from tablesafe.work.budget import Budget
from tablesafe.work.run import Run

FIRST_SHARE = 0.3
"""The share of the time for the least change, when it is only where the search for another begins."""


class Adjustment:
    """One way to adjust, and how it is run."""

    def __init__(self, options: Adjust, run: Run) -> None:
        self.options, self.run = options, run

    def limits(self, problem: Problem) -> Allowance:
        """What these options allow to move."""
        options = self.options
        amounts = None if options.capacity is None else column_of(problem, options.capacity, "Adjust.capacity")
        chosen = (
            None if options.fixed_cells is None else column_of(problem, options.fixed_cells, "Adjust.fixed_cells") != 0
        )
        return Allowance(
            zeros=options.zeros,
            capacity=None if options.capacity_percent is None else options.capacity_percent / 100,
            window=None if options.announce_percent is None else options.announce_percent / 100,
            fixed=options.fixed,
            amounts=None if amounts is None else options.capacity_times * amounts,
            times=options.most_times_level,
            chosen=chosen,
        )

    def relaxation(self, problem: Problem) -> Relaxation:
        """Which capacities leave no room, and how far they would be raised."""
        options = self.options
        problem = finer(problem, options.decimals)
        limits, random = self.limits(problem), np.random.default_rng(options.seed)
        try:
            return relaxed_capacities(
                problem, cost_of(problem, options.cost), limits, options.directions, random,
                budget=Budget(options.time_limit_s / 3),
            )  # fmt: skip
        except NoChange as failure:
            raise explanation(problem, limits, problem.sensitive[failure.targets], proved=failure.proved) from None

    def outcome(self, problem: Problem) -> Outcome:
        """The release, how far its values are from the true ones, and what else there was to choose from."""
        options = self.options
        tables = {}
        if options.relaxed is None:
            release = self.release(problem)
        else:
            simulations = self.simulations(problem)
            release, tables["releases.csv"] = simulations.picked(), simulations.frame()
        over = next(
            (part.over for part in (options.keep, options.tabu, options.relaxed) if part is not None),
            "sensitive",
        )
        responses = () if options.keep is None else options.keep.responses
        tables["statistics.csv"] = statistics_of(problem, release, over=over, responses=responses)
        tables |= quality_tables(problem, release)
        if options.relax_capacity:
            tables["raised_capacities.csv"] = self.relaxation(problem).frame()
        return Outcome(release, tables)

    def release(self, problem: Problem) -> Release:
        """The changes, or one of many drawn; every promise is checked in whole numbers."""
        return self._release(problem) if self.options.relaxed is None else self.simulations(problem).picked()

    def simulations(self, problem: Problem) -> Simulations:
        """Many releases with relaxed protection."""
        options = self.options
        relaxed = Relaxed() if options.relaxed is None else options.relaxed
        each = replace(options, relaxed=relaxed, time_limit_s=options.time_limit_s / relaxed.releases)
        one = Adjustment(each, self.run)
        return simulated(problem, relaxed, lambda random: one._drawn(problem, random), seed=options.seed)

    def _drawn(self, problem: Problem, draw: np.random.Generator) -> Release:
        """A release with relaxed protection; where no cell may go beyond its level and nothing is feasible, all may."""
        try:
            return self._release(problem, copy.deepcopy(draw))
        except InvalidProblem:
            return self._release(problem, draw, capped=False)

    def _release(self, problem: Problem, draw: np.random.Generator | None = None, *, capped: bool = True) -> Release:
        options, run = self.options, self.run
        told, whole = monotonic(), run.within(options.time_limit_s)
        first = whole.child(self._first_share * options.time_limit_s)
        problem = finer(problem, options.decimals)
        limits, start = self.limits(problem), None
        if options.relax_capacity and limits.capped:
            relaxation = self.relaxation(problem)
            limits, start = replace(limits, raised=relaxation.raised()), relaxation.way
        instance = Instance.of(problem, cost_of(problem, options.cost), limits)
        if draw is not None and options.relaxed is not None:
            instance = options.relaxed.loosened(instance, draw, capped=capped)
        means = Means.none(instance) if options.keep is None else options.keep.with_means(problem, instance)
        instance = means.instance
        stuck = ~(instance.can_rise | instance.can_fall)
        if stuck.any():
            raise explanation(problem, limits, instance.cells[instance.targets[stuck]], proved=True)
        random = draw or np.random.default_rng(options.seed)
        alike = options.distance == "sum" and draw is None  # costs of other distances, and draws, do not compare
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
        if instance.targets.size and (options.keep is not None or options.tabu is not None):
            rest = first if search.stopped else whole
            moves = refined(
                problem,
                means,
                moves,
                keep=options.keep,
                tabu=options.tabu,
                seed=options.seed,
                budget=rest,
            )
        if not instance.holds(moves):
            raise SolverFailure("The answer failed our own check.", hint="try other directions or another seed.")
        solution = _solution(search, moves, monotonic() - told)
        if options.distance != "sum" and instance.targets.size:
            search.budget = first if search.stopped else whole
            measured = self._measured(search, moves)
            moves, unit = measured.moves, 10.0**problem.table.decimals if options.distance == "squares" else 1.0
            solution = _judged(measured.objective / unit, measured.bound / unit, monotonic() - told)
            if not instance.holds(moves):
                raise SolverFailure("The answer failed our own check.", hint="try other directions or another seed.")
        if run.progress is not None:
            run.progress(solution.objective, solution.bound)
        if solution.warning and alike and options.keep is None and options.tabu is None:
            warnings.warn(solution.warning, stacklevel=5)  # other aims may be worth any cost
        return published(problem, instance, moves, limits, method=options.name, solution=solution)

    @property
    def _first_share(self) -> float:
        """The share of the time for the least change."""
        options = self.options
        only_first = (
            options.distance != "sum"
            or options.tabu is not None
            or (options.keep is not None and options.keep.beyond_mean)
        )
        return FIRST_SHARE if only_first else 1.0

    def _find(self, problem: Problem, search: Search, start: Way | None) -> None:
        """Fill the search; an interrupt before there is anything to keep is the last one already."""
        try:
            find(problem, search, self.options.directions, tries=self.options.tries, start=start)
        except KeyboardInterrupt:
            search.stopped = search.best is None
            raise

    def _moves(self, problem: Problem, search: Search, means: Means, start: Way | None) -> Integers:
        options = self.options
        try:
            with until_interrupted(search):
                self._find(problem, search, start)
        except NoChange as failure:
            cells = search.instance.cells[search.instance.targets[failure.targets]]
            if options.keep is not None and options.keep.mean:
                raise options.keep.mean_in_the_way(problem, cells, proved=failure.proved) from None
            raise explanation(problem, self.limits(problem), cells, proved=failure.proved) from None
        moves: Integers | None = None
        with until_interrupted(search):
            moves = self._whole(search, means)
        return self._whole(search, means) if moves is None else moves

    def _measured(self, search: Search, moves: Integers) -> Measured:
        """The same by another distance, from the directions of the least sum."""
        options = self.options
        choosing = options.directions in {"optimal", "search", "blocks"}
        if options.distance == "squares":
            return least_squared(search, moves, flip=choosing)
        return least_largest(search, moves, choose=options.directions == "optimal", again=_whole_again)

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
        exact = self.options.directions == "optimal" and self._first_share == 1.0 and not large
        if moves is None or (exact and search.instance.price(moves) > search.bound * (1 + TOLERANCE)):
            moves = search.whole(moves)
        if moves is None:
            moves = search.whole_by_regions()
        if moves is None:
            zeros: Words = "" if self.options.zeros else (", allow cells of value zero (", Setting("zeros", True), ")")
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
