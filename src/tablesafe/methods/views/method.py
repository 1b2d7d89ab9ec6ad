"""Suppression of the cells of published views, so that no confidential margin can be derived: method and options."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import ClassVar, Literal

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.abilities import TOLD, as_told, told_by
from tablesafe.methods.suppress import Suppress
from tablesafe.methods.views.fitting import (
    COSTS,
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
from tablesafe.methods.views.tabu import tabu_search
from tablesafe.solve.program import Solution, SolveStatus
from tablesafe.work.budget import Budget
from tablesafe.work.run import Run

ALGORITHMS = ("auto", "optimal", "greedy", "tabu", "random")
PROVABLE = 20_000
"""Terms of the integer program up to which `auto` tries to prove an optimum."""
START = 400
"""Steps of tabu search before the integer program; without one there are more."""
STEPS_PER_ENTRY = 60
INTERRUPTED = "Interrupted: the best pattern so far is checked and kept."


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
        begin, run = monotonic(), as_told(self, run)
        budget = run.within(self.time_limit_s)
        prices = view_costs(problem, self.cost, self.weights)
        fit = fitted(problem, prices, balance=float(len(prices)) if self.cost == "balanced" else 0.0)
        if fit is None:
            return self._general(problem, prices, budget, run)
        data = data_of(fit.views)
        state, bound = self._search(problem, fit, data, run)
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
        return checked(problem, Release.from_suppression(problem, pattern, method=self.name, solution=solution))

    def _search(self, problem: Problem, fit: Fitted, data: Data, run: Run) -> tuple[State, float]:
        """Find a pattern; with what no pattern costs less than."""
        state = state_of(data, fit.views.forced_a, fit.views.forced_b)
        if self.algorithm == "random":
            _at_random(problem, fit.views, data, state, self.seed)
            return state, 0.0
        _greedily(problem, fit.views, data, state)
        return (state, 0.0) if self.algorithm == "greedy" else self._improved(fit.views, data, state, run)

    def _improved(self, views: TwoViews, data: Data, state: State, run: Run) -> tuple[State, float]:
        """A better pattern, and a bound where that can be proved; an interrupt keeps what was found until then."""
        prove = self.algorithm == "optimal" or (self.algorithm == "auto" and _terms(views) <= PROVABLE)
        held = int(state.held_a.sum() + state.held_b.sum())
        steps = self.steps or START + (0 if prove else STEPS_PER_ENTRY * held)
        whole = run.within(self.time_limit_s)
        limit = whole.left
        try:
            _tell(run, cost(data, state))
            tabu_search(
                data, state, seed=seed_of(self.seed), steps=steps, report=partial(_tell, run),
                budget=whole.child(limit / 4) if prove else whole,
            )  # fmt: skip
            if not prove:
                return state, 0.0
            return self._proved(views, data, state, max(whole.left, limit / 4), run)
        except KeyboardInterrupt:
            warnings.warn(INTERRUPTED, stacklevel=3)
            return state, 0.0

    def _proved(self, views: TwoViews, data: Data, state: State, seconds: float, run: Run) -> tuple[State, float]:
        """Solve the integer program from the pattern found so far: the better of the two, and the program's bound."""
        if not (len(views.low) or len(views.up)):
            return state, 0.0
        refined = refined_big_m(views)
        least = float(max(refined.lower.max(), refined.upper.max()))
        if 0 < self.big_m < least:
            raise InvalidOption(
                f"SuppressViews.big_m must be 0, or at least {least:g} for these views, got {self.big_m!r}.",
                about=("option", "SuppressViews", "big_m"),
            )
        pattern = suppression_program(views, self.big_m or None)
        start = pattern.start(state.held_a, state.held_b)
        now = cost(data, state)
        answer = cheapest(
            pattern.program,
            budget=run.within(seconds),
            start=start,
            report=lambda found, bound: _tell(run, min(found, now), bound),
        )
        if answer.interrupted:
            warnings.warn(INTERRUPTED, stacklevel=4)
        bound = answer.bound if np.isfinite(answer.bound) else 0.0
        return _better(views, data, state, pattern.read(answer.point) if answer.found else None), bound

    def _general(self, problem: Problem, cost: Floats, budget: Budget, run: Run) -> Release:
        """Problems of another kind: the general suppression method."""
        if self.algorithm == "random":
            return checked(problem, random_release(problem, self.seed, self.name))
        algorithm: Literal["auto", "optimal", "sequential"] = "auto"
        if self.algorithm in {"greedy", "optimal"}:
            algorithm = "sequential" if self.algorithm == "greedy" else "optimal"
        seconds = max(budget.left, 0.1)
        method = Suppress(algorithm=algorithm, cost=cost, zeros=True, time_limit_s=seconds, seed=self.seed)
        found = without_given_away(problem, method.protect(problem, run))
        return checked(problem, replace(found, method=self.name))


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
