"""The least costly pattern: inequalities from the attacker's own programs, and a choice of cells that satisfies them.

The master problem chooses cells; the attacker's linear programs find what it leaves open and answer with capacity cuts
(Fischetti & Salazar). The relaxation comes first and gives a bound, a guide for the heuristic, and reduced costs: cells
that no better pattern can use are left out of everything that follows. The integer program comes last, and each of its
answers is repaired into a safe pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

import numpy as np

from tablesafe.equations import Floats, Integers
from tablesafe.methods.suppress.narrowed import narrowed
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
FEWER = 0.6
FEW = 0.75
"""Share of the cells to choose from below which it is worth starting again with these alone: at once, and at the end of
the relaxation."""
ROUGHLY, EXACTLY = 2e-3, 1e-9
"""Gap at which the solver of the integer program may stop: where its answer will be cut off, and where it counts."""
POLISHING = 0.2
A_MOMENT = 0.3
"""Share of the time of the bound that goes into making a pattern of its relaxation; seconds that it has in any case."""


@dataclass(frozen=True, slots=True)
class _Master:
    """The cells to choose from, the cuts so far, and who looks for more."""

    search: Search
    candidates: Integers
    covering: Covering
    separation: Separation

    @classmethod
    def of(cls, search: Search, covering: Covering | None = None) -> _Master:
        instance = search.instance
        candidates = np.flatnonzero(instance.live & ~instance.forced)
        variable = np.full(len(instance), -1, dtype=np.int64)
        variable[candidates] = np.arange(len(candidates))
        separation = Separation(instance, search.neighbourhoods, search.solver, variable)
        separation.effort = 1
        return cls(search, candidates, covering or Covering(instance.cost[candidates], search.solver.work), separation)

    def useful(self) -> Integers:
        """The variables that a better pattern may use, and those of the best one."""
        assert self.search.best is not None
        return np.flatnonzero(self.covering.useful(self.search.best_cost) | self.search.best[self.candidates])


def affordable(search: Search, rounds: float) -> bool:
    """Whether so many rounds of all targets leave most of the time for other things."""
    limit = search.left * MOST / rounds
    return _Master.of(search).separation.round_seconds(limit) <= limit


def optimise(
    search: Search, *, patience: int, insist: bool = False, rounds: float = ROUNDS, soon: bool = False
) -> None:
    """Drive bound and pattern together until they meet or the time is over.

    Does nothing where the bound alone, which takes so many rounds of all targets, would take most of the time that is
    left, unless the user insists. `soon` says that they will meet soon: then the bound comes first, else the pattern.
    """
    if insist or affordable(search, rounds):
        _pursue(_Master.of(search), patience=patience, insist=insist, soon=soon)


def _pursue(master: _Master, *, patience: int, insist: bool, soon: bool) -> None:
    """Cut, make a pattern, leave out what no better pattern uses, and again; then choose."""
    search, polishing = master.search, _polishing(master.search, soon=soon)
    share = _relaxed(master, insist=insist, soon=soon)
    if share is None or search.late():
        return
    search.polish(search.build(share), patience=patience, seconds=polishing())
    if search.late() or search.closed():
        return
    useful = master.useful()
    if not soon or len(useful) > FEW * len(master.candidates):
        _choose(master, patience=patience, soon=soon)
        return
    left = search.instance.forced & search.instance.live
    left[master.candidates[useful]] = True
    part = narrowed(search, np.flatnonzero(left), proving=True)
    _pursue(_Master.of(part, master.covering.among(useful)), patience=patience, insist=insist, soon=True)


def _polishing(search: Search, *, soon: bool) -> Callable[[], float]:
    """How long a pattern may be made better: as long as it helps, or for a share of the time since now."""
    begin = search.solver.work.spent
    return lambda: max(A_MOMENT, POLISHING * (search.solver.work.spent - begin)) if soon else np.inf


def _choose(master: _Master, *, patience: int, soon: bool) -> None:
    """Solve the integer program, cut its answer off where it leaves something open, and again."""
    search, covering, candidates = master.search, master.covering, master.candidates
    cost, polishing = search.instance.cost[candidates], _polishing(search, soon=soon)
    roughly = True
    while not (search.late() or search.closed()):
        search.prove(whole_bound(covering.relax()[0], cost))
        gap = _gap(search) if roughly else EXACTLY
        choice = covering.choose(
            time_limit_s=search.deadline - monotonic(),
            start=_start(search, candidates),
            gap=gap,
            best=search.best_cost,
        )
        if choice is None:
            return
        search.prove(whole_bound(choice.bound, cost))
        share = search.instance.forced.astype(np.float64)
        share[candidates] = choice.x
        cuts, left_open = master.separation.violated(share, whole=True, stop=search.late)
        if search.late():
            return
        repaired = search.build(share)
        search.offer(repaired)
        if repaired.cost <= search.best_cost * 1.03:
            search.polish(repaired, patience=patience, seconds=polishing())
        if not left_open and choice.proved and gap == EXACTLY:
            return
        if not covering.add(cuts):
            if gap == EXACTLY:
                return
            roughly = False  # nothing is left to cut off: now the answer itself counts


def _gap(search: Search) -> float:
    """Solve the first masters roughly: their answers will be cut off anyway."""
    return ROUGHLY if search.bound < search.best_cost * (1 - 5e-3) else EXACTLY


def whole_bound(bound: float, cost: Floats) -> float:
    """A bound on a sum of whole costs may be rounded up."""
    whole = bool((cost == np.rint(cost)).all()) and cost.sum() < 2**50
    return float(np.ceil(bound - 1e-6)) + 0.0 if whole else bound  # not −0


def _start(search: Search, candidates: Integers) -> Floats | None:
    return None if search.best is None else search.best[candidates].astype(np.float64)


def _relaxed(master: _Master, *, insist: bool, soon: bool) -> Floats | None:
    """Cut until the relaxation no longer rises; returns its fractional pattern.

    With `soon` it ends before, where so many cells turn out to be of no use that it is better to start again without
    them. None when the bound rises too slowly to be of use, unless the user insists.
    """
    search, covering, separation = master.search, master.covering, master.separation
    early = search.until(search.left / 3)
    share = search.instance.forced.astype(np.float64)
    stalled = 0
    while not search.late():
        if covering.cuts:
            before = search.bound
            bound, share[master.candidates] = covering.relax()
            search.prove(bound)
            stalled = stalled + 1 if search.bound <= before * (1 + 2e-4) else 0
            if not insist and early() and search.bound < search.best_cost * HOPEFUL:
                return None
            if stalled >= STALLED or (soon and len(master.useful()) <= FEWER * len(master.candidates)):
                break
        cuts, _ = separation.violated(share, whole=False, stop=search.late)
        if not covering.add(cuts):
            break
    return share
