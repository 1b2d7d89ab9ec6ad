"""The least costly pattern: inequalities from the attacker's own programs, and a choice of cells that satisfies them.

The master problem chooses cells; the attacker's linear programs find what it leaves open and answer with capacity cuts
(Fischetti & Salazar). The relaxation comes first and gives a bound and a guide for the heuristic; the integer program
follows, and each of its answers is repaired into a safe pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

import numpy as np

from tablesafe.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.neighbourhood import Neighbourhoods
from tablesafe.methods.suppress.separation import Separation
from tablesafe.methods.suppress.sequential import clean_up, improve, protect_all
from tablesafe.methods.suppress.witnesses import Witnesses
from tablesafe.solve.covering import Covering
from tablesafe.solve.small import SmallSolver

STALLED = 4
WIDEST = 1


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern, what it costs, and what any pattern must cost."""

    pattern: Mask
    cost: float
    bound: float


Report = Callable[[float, float], None]


class Search:
    """Everything a search for a pattern needs: the instance, the clock, the seed, and the best pattern so far."""

    def __init__(self, instance: Instance, *, deadline: float, seed: int, report: Report) -> None:
        self.instance = instance
        self.neighbourhoods = Neighbourhoods(instance)
        self.solver = SmallSolver()
        self.deadline = deadline
        self.random = np.random.default_rng(seed)
        self.best: Mask | None = None
        self.best_cost = np.inf
        self.bound = 0.0
        self._report = report

    def late(self) -> bool:
        """Whether the time is over."""
        return monotonic() > self.deadline

    def until(self, seconds: float) -> Callable[[], bool]:
        """A clock that rings after some seconds, or when the time is over."""
        end = min(self.deadline, monotonic() + seconds)
        return lambda: monotonic() > end

    def offer(self, witnesses: Witnesses) -> None:
        """Keep a pattern if it is the best so far."""
        if witnesses.cost < self.best_cost - 1e-9 or self.best is None:
            self.best, self.best_cost = witnesses.pattern, max(witnesses.cost, 0.0)
            self._report(self.best_cost, self.bound)

    def prove(self, bound: float) -> None:
        """Raise the proven bound."""
        if bound > self.bound:
            self.bound = bound
            self._report(self.best_cost, self.bound)

    def closed(self) -> bool:
        """Whether the best pattern is proven to be the least costly."""
        return self.best is not None and self.best_cost <= self.bound * (1 + 1e-9) + 1e-9

    def build(self, guide: Floats | Mask | None = None) -> Witnesses:
        """A safe pattern, one sensitive cell after another; `guide` are shares that a cell should cost less for."""
        cost = self.instance.cost
        if guide is not None:
            cost = cost * np.where(guide > 0.999, 1e-6, 1.001 - guide)
        witnesses = Witnesses(self.instance, self.neighbourhoods, self.solver)
        protect_all(witnesses, cost)
        return witnesses

    def polish(self, witnesses: Witnesses, *, patience: int, seconds: float = np.inf) -> None:
        """Clean up and improve a pattern, and keep it if it is good."""
        stop = self.until(seconds) if np.isfinite(seconds) else self.late
        self.offer(witnesses)
        clean_up(witnesses, stop)
        self.offer(witnesses)
        improve(witnesses, self.random, stop, patience=patience)
        self.offer(witnesses)


def optimise(search: Search, *, patience: int) -> None:
    """Drive bound and pattern together until they meet or the time is over."""
    instance = search.instance
    candidates = np.flatnonzero(instance.live & ~instance.forced)
    variable = np.full(len(instance), -1, dtype=np.int64)
    variable[candidates] = np.arange(len(candidates))
    separation = Separation(instance, search.neighbourhoods, search.solver, variable)
    covering = Covering(instance.cost[candidates])
    share = _relaxed(search, covering, separation, candidates)
    if search.late():
        return
    search.polish(search.build(share), patience=patience // 8)
    while not (search.late() or search.closed()):
        choice = covering.choose(
            time_limit_s=search.deadline - monotonic(), start=_start(search, candidates), gap=_gap(search)
        )
        if choice is None:
            return
        search.prove(_whole(choice.bound, instance.cost[candidates]))
        share = instance.forced.astype(np.float64)
        share[candidates] = choice.x
        cuts, left_open = separation.violated(share, whole=True, stop=search.late)
        if search.late():
            return
        repaired = search.build(share)
        search.offer(repaired)
        if repaired.cost <= search.best_cost * 1.03:
            search.polish(repaired, patience=patience // 8)
        if not left_open and choice.proved:
            search.prove(choice.objective)
            return
        if not covering.add(cuts):
            return


def _gap(search: Search) -> float:
    """Solve the first masters roughly: their answers will be cut off anyway."""
    return 2e-3 if search.bound < search.best_cost * (1 - 5e-3) else 1e-7


def _whole(bound: float, cost: Floats) -> float:
    """A bound on a sum of whole costs may be rounded up."""
    return float(np.ceil(bound - 1e-6)) if bool((cost == np.rint(cost)).all()) and cost.sum() < 2**50 else bound


def _start(search: Search, candidates: Integers) -> Floats | None:
    return None if search.best is None else search.best[candidates].astype(np.float64)


def _relaxed(search: Search, covering: Covering, separation: Separation, candidates: Integers) -> Floats:
    """Cut until the relaxation no longer rises, then look wider and cut again; returns its fractional pattern."""
    share = search.instance.forced.astype(np.float64)
    stalled = 0
    while not search.late():
        cuts, _ = separation.violated(share, whole=False, stop=search.late)
        if not covering.add(cuts) or stalled >= STALLED:
            if separation.effort == WIDEST:
                break
            separation.effort, stalled = separation.effort + 1, 0
            continue
        before = search.bound
        bound, x = covering.relax()
        search.prove(bound)
        share[candidates] = x
        stalled = stalled + 1 if search.bound <= before * (1 + 2e-4) else 0
    return share
