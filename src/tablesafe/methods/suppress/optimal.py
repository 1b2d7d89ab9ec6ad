"""The least costly pattern: inequalities from the attacker's own programs, and a choice of cells that satisfies them.

The master problem chooses cells; the attacker's linear programs find what it leaves open and answer with capacity cuts
(Fischetti & Salazar). The relaxation comes first and gives a bound and a guide for the heuristic; the integer program
follows, and each of its answers is repaired into a safe pattern.
"""

from __future__ import annotations

from time import monotonic

import numpy as np

from tablesafe.equations import Floats, Integers
from tablesafe.methods.suppress.search import Search
from tablesafe.methods.suppress.separation import Separation
from tablesafe.solve.covering import Covering

STALLED = 4
WIDEST = 1
ROUNDS = 2
"""Programs per target that even an easy relaxation takes: most rounds ask about a part of the targets only."""
HOPEFUL = 0.75
"""Share of the best cost that the bound must reach in the first third of the time, or it would never come near."""
MOST = 0.5
"""Share of the time left that the relaxation may take."""


def optimise(search: Search, *, patience: int, insist: bool = False, rounds: float = ROUNDS) -> None:
    """Drive bound and pattern together until they meet or the time is over.

    Does nothing where the bound alone, which takes so many rounds of all targets, would take most of the time that is
    left, unless the user insists.
    """
    instance = search.instance
    candidates = np.flatnonzero(instance.live & ~instance.forced)
    variable = np.full(len(instance), -1, dtype=np.int64)
    variable[candidates] = np.arange(len(candidates))
    separation = Separation(instance, search.neighbourhoods, search.solver, variable)
    separation.effort = 1
    covering = Covering(instance.cost[candidates], search.solver.work)
    if not insist and separation.round_seconds() * rounds > search.left * MOST:
        return
    share = _relaxed(search, covering, separation, candidates, insist=insist)
    if share is None or search.late():
        return
    search.polish(search.build(share), patience=patience)
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
            search.polish(repaired, patience=patience)
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


def _relaxed(
    search: Search, covering: Covering, separation: Separation, candidates: Integers, *, insist: bool
) -> Floats | None:
    """Cut until the relaxation no longer rises, then look wider and cut again; returns its fractional pattern.

    None when the bound rises too slowly to be of use, unless the user insists.
    """
    early = search.until(search.left / 3)
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
        if not insist and early() and search.bound < search.best_cost * HOPEFUL:
            return None
        stalled = stalled + 1 if search.bound <= before * (1 + 2e-4) else 0
    return share
