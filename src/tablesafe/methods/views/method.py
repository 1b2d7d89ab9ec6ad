"""Suppression of the cells of published views, so that no confidential margin can be derived."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Literal

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.suppress import Suppress
from tablesafe.methods.views.fitting import (
    Fitted,
    checked,
    fitted,
    random_release,
    view_costs,
    without_given_away,
)
from tablesafe.methods.views.greedy import close_all, drop_redundant, withhold_in_order
from tablesafe.methods.views.instance import TwoViews
from tablesafe.methods.views.program import cheapest, refined_big_m, suppression_program, upper_terms
from tablesafe.methods.views.state import OPEN, Data, State, cost, data_of, seed_of, state_of
from tablesafe.methods.views.suppress_views import SuppressViews
from tablesafe.methods.views.tabu import tabu_search
from tablesafe.solve.program import Solution, SolveStatus
from tablesafe.work.budget import Budget
from tablesafe.work.run import Run

PROVABLE = 20_000
"""Terms of the integer program up to which `auto` tries to prove an optimum."""
START = 400
"""Steps of tabu search before the integer program; without one there are more."""
STEPS_PER_ENTRY = 60
"""Further steps of tabu search for each entry that is withheld, where nothing is proved afterwards."""
INTERRUPTED = "Interrupted: the best pattern so far is checked and kept."


class ViewSuppression:
    """One way to withhold cells of views, and how it is run."""

    def __init__(self, options: SuppressViews, run: Run) -> None:
        self.options, self.run = options, run

    def release(self, problem: Problem) -> Release:
        """A pattern that is proved to be safe."""
        begin, run = monotonic(), self.run
        budget = run.within(self.options.time_limit_s)
        prices = view_costs(problem, self.options.cost, self.options.weights)
        fit = fitted(problem, prices, balance=float(len(prices)) if self.options.cost == "balanced" else 0.0)
        if fit is None:
            return self._general(problem, prices, budget)
        data = data_of(fit.views)
        state, bound = self._search(problem, fit, data)
        objective = fit.views.cost_of(state.held_a, state.held_b)
        pattern = fit.pattern(state.held_a, state.held_b, len(problem.table))
        closed = objective <= bound * (1 + 1e-9) + 1e-9
        _tell(run, objective, bound)
        solution = Solution(
            status=SolveStatus.OPTIMAL if closed else SolveStatus.FEASIBLE,
            objective=objective,
            bound=min(bound, objective),
            seconds=monotonic() - begin,
        )
        return checked(problem, Release.from_suppression(problem, pattern, method=self.options.name, solution=solution))

    def _search(self, problem: Problem, fit: Fitted, data: Data) -> tuple[State, float]:
        """Find a pattern; with what no pattern costs less than."""
        state = state_of(data, fit.views.forced_a, fit.views.forced_b)
        if self.options.algorithm == "random":
            _at_random(problem, fit.views, data, state, self.options.seed)
            return state, 0.0
        _greedily(problem, fit.views, data, state)
        return (state, 0.0) if self.options.algorithm == "greedy" else self._improved(fit.views, data, state)

    def _improved(self, views: TwoViews, data: Data, state: State) -> tuple[State, float]:
        """A better pattern, and a bound where that can be proved; an interrupt keeps what was found until then."""
        prove = self.options.algorithm == "optimal" or (self.options.algorithm == "auto" and _terms(views) <= PROVABLE)
        held = int(state.held_a.sum() + state.held_b.sum())
        steps = self.options.steps or START + (0 if prove else STEPS_PER_ENTRY * held)
        run = self.run
        whole = run.within(self.options.time_limit_s)
        limit = whole.left
        try:
            _tell(run, cost(data, state))
            tabu_search(
                data, state, seed=seed_of(self.options.seed), steps=steps, report=partial(_tell, run),
                budget=whole.child(limit / 4) if prove else whole,
            )  # fmt: skip
            if not prove:
                return state, 0.0
            return self._proved(views, data, state, max(whole.left, limit / 4))
        except KeyboardInterrupt:
            warnings.warn(INTERRUPTED, stacklevel=3)
            return state, 0.0

    def _proved(self, views: TwoViews, data: Data, state: State, seconds: float) -> tuple[State, float]:
        """Solve the integer program from the pattern found so far: the better of the two, and the program's bound."""
        if not (len(views.low) or len(views.up)):
            return state, 0.0
        refined = refined_big_m(views)
        least = float(max(refined.lower.max(), refined.upper.max()))
        if 0 < self.options.big_m < least:
            raise InvalidOption(
                f"SuppressViews.big_m must be 0, or at least {least:g} for these views, got {self.options.big_m!r}.",
                about=("option", "SuppressViews", "big_m"),
            )
        pattern = suppression_program(views, self.options.big_m or None)
        start = pattern.start(state.held_a, state.held_b)
        now = cost(data, state)
        answer = cheapest(
            pattern.program,
            budget=self.run.within(seconds),
            start=start,
            report=lambda found, bound: _tell(self.run, min(found, now), bound),
        )
        if answer.interrupted:
            warnings.warn(INTERRUPTED, stacklevel=4)
        bound = answer.bound if np.isfinite(answer.bound) else 0.0
        return _better(views, data, state, pattern.read(answer.point) if answer.found else None), bound

    def _general(self, problem: Problem, cost: Floats, budget: Budget) -> Release:
        """Problems of another kind: the general suppression method."""
        if self.options.algorithm == "random":
            return checked(problem, random_release(problem, self.options.seed, self.options.name))
        algorithm: Literal["auto", "optimal", "sequential"] = "auto"
        if self.options.algorithm in {"greedy", "optimal"}:
            algorithm = "sequential" if self.options.algorithm == "greedy" else "optimal"
        seconds = max(budget.left, 0.1)
        method = Suppress(algorithm=algorithm, cost=cost, zeros=True, time_limit_s=seconds, seed=self.options.seed)
        found = without_given_away(problem, method.protect(problem, self.run))
        return checked(problem, replace(found, method=self.options.name))


def _tell(run: Run, cost: float, bound: float = 0.0) -> None:
    """Report what is known now."""
    if run.progress is not None:
        run.progress(cost, min(max(bound, 0.0), cost))


def _terms(views: TwoViews) -> int:
    """How large the integer program is: parts of slices in open bounds."""
    return len(upper_terms(views)) + len(views.low) * len(views.a)


def _greedily(problem: Problem, views: TwoViews, data: Data, state: State) -> None:
    never = np.zeros(views.a.shape, np.int64), np.zeros(views.b.shape, np.int64)
    if not close_all(data, state, *never, 0, seed_of(0), 0.0):
        _refuse(problem, views, data)
    price = np.concatenate([views.cost_a.ravel(), views.cost_b.ravel()])
    drop_redundant(data, state, np.argsort(-price, kind="stable"))


def _at_random(problem: Problem, views: TwoViews, data: Data, state: State, seed: int) -> None:
    """Withhold entries in random order until nothing is open, then publish in random order what is not needed."""
    random = np.random.default_rng(seed)
    entries = views.a.size + views.b.size
    if not withhold_in_order(data, state, random.permutation(entries)):
        _refuse(problem, views, data)
    drop_redundant(data, state, random.permutation(entries))


def _refuse(problem: Problem, views: TwoViews, data: Data) -> None:
    """Say which confidential cell stays open when all that may be withheld is."""
    state = state_of(data, views.forced_a | views.live_a, views.forced_b | views.live_b)
    low, up = state.low > views.low.need, (state.endless == 0) & (state.up < views.up.need)
    cell = views.low.cell[low][0] if low.any() else views.up.cell[up][0]
    raise InvalidProblem(
        f"Confidential cell {problem.table.describe(int(cell))} cannot be protected: even if every cell that may be "
        f"withheld were, it could not be {'smaller' if low.any() else 'larger'} by as much as asked.",
        hint="unfreeze cells of the published views, or widen its tolerable bounds.",
    )


def _better(views: TwoViews, data: Data, state: State, found: tuple[Mask, Mask] | None) -> State:
    """The pattern of the integer program, without what it does not need, if it is safe and costs less; else the old."""
    if found is None:
        return state
    other = state_of(data, *found)
    if other.sums[OPEN] > 0:  # within the solver's tolerance only; the bound holds all the same
        return state
    drop_redundant(data, other, np.arange(found[0].size + found[1].size))
    cheaper = views.cost_of(other.held_a, other.held_b) < views.cost_of(state.held_a, state.held_b)
    return other if cheaper else state
