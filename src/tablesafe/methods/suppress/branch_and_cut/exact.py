"""Drive bound and pattern together until they meet: relaxation, cuts, patterns, and the choice among what is left.

Targets that the sensitive cells protect among themselves are dropped before anything else. The relaxation is cut until
nothing more is found; a safe pattern is made of it; reduced costs take out what no better pattern uses; what is left
falls apart and is chosen from exactly. A choice that leaves targets open is cut off, repaired, and made again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import SolverFailure
from tablesafe.methods.suppress.branch_and_cut.attacker import Attacker
from tablesafe.methods.suppress.branch_and_cut.cuts import Variables, bridgeless, covers
from tablesafe.methods.suppress.branch_and_cut.pattern import Repair, cleaned
from tablesafe.methods.suppress.branch_and_cut.separation import Seen, Separation, Targets
from tablesafe.methods.suppress.search import Search
from tablesafe.methods.suppress.witnesses import CannotProtect
from tablesafe.solve.covering import NODES, Covering, Cut

STALLED = 6
RISES = 2e-4
"""Rounds without a rise of the bound, by this share, after which cutting ends."""
AFTERWARDS = 5
"""Rounds of cutting after a choice was cut off."""


class BranchAndCut:
    """One search for the least costly pattern; everything found is handed to the search at once."""

    def __init__(self, search: Search) -> None:
        instance = search.instance
        self._search, self._instance = search, instance
        targets = search.exactly or Targets(instance.cell, instance.sign, instance.level)
        self._variables = Variables.of(instance, search.group)
        self._attacker = Attacker(instance, search.solver.work)
        self._stop: Callable[[], bool] = search.late
        self._separation = Separation(instance, targets, self._variables, self._attacker, self._late)
        self._covering = Covering(self._variables.cost, search.solver.work)
        self._capacities: list[Cut] = []
        self._begun = self._rooted = False

    def _late(self) -> bool:
        return self._stop()

    @property
    def _best(self) -> float:
        return self._search.best_cost

    def cut(self, stop: Callable[[], bool]) -> None:
        """Cut the relaxation until nothing more is found, and make a first pattern of it."""
        self._stop = stop
        if not self._begun and self._without_self_protected() == 0:
            self._search.offer_exact(self._instance.forced, 0.0)
            self._search.prove(0.0)
        if not self._done() and not self._rooted:
            self._rooted = self._root()

    def advance(self, stop: Callable[[], bool]) -> None:
        """Go on from where it stands until the bound meets the best pattern, or a clock rings."""
        self.cut(stop)
        if self._rooted and not self._done():
            self._finish()

    @property
    def shares(self) -> Floats:
        """How much of each cell the relaxation wants withheld."""
        return self._shares(self._covering.point)

    def _without_self_protected(self) -> int:
        """Drop the targets that need nothing further; the cuts of the others are the first. Says how many are left."""
        x = np.zeros(len(self._variables.cost))
        seen = self._look(x)
        if self._late():
            return len(self._separation.targets)
        self._separation.only(np.array(seen.open, dtype=np.int64))
        self._add(seen.cuts)
        self._begun = True
        return len(seen.open)

    def _cannot(self, at: int) -> None:
        """Say that a target cannot be protected, in the instance's own numbers."""
        instance, targets = self._instance, self._separation.targets
        own = instance.cell == targets.cell[at]
        side = own & (instance.sign == targets.sign[at])
        raise CannotProtect(int(np.flatnonzero(side if side.any() else own)[0]))

    def _add(self, cuts: list[Cut]) -> int:
        before = len(self._covering.cuts)
        added = self._covering.add(cuts)
        self._capacities += [
            cut for cut in self._covering.cuts[before:] if cut.least == 1.0 and (cut.coefficients < 1 - 1e-9).any()
        ]
        return added

    def _look(self, x: Floats) -> Seen:
        """Ask about all targets; raise for one that not even withholding everything would protect."""
        seen = self._separation.look(self._shares(x), x, self._covering.high)
        if self._search.best is None:
            for at, cut in zip(seen.whose, seen.cuts, strict=True):
                if float(cut.coefficients.sum()) < 1 - 1e-6:
                    self._cannot(at)
        return seen

    def _shares(self, x: Floats) -> Floats:
        return self._variables.shares(self._instance.forced, x)

    def _relaxed(self) -> Floats:
        """Solve the relaxation; note its bound and fix what it decides."""
        x = self._covering.relax(max(self._search.budget.seconds_left, 0.05))
        if self._search.best is None and not np.isfinite(self._covering.proved):
            raise SolverFailure("The cuts of the suppression problem contradict each other.")
        self._prove(self._covering.proved)
        self._covering.fix(self._best)
        return x

    def _prove(self, bound: float) -> None:
        """A bound on every pattern better than the best one."""
        bound = self._covering.up(bound)
        if np.isfinite(self._best) and bound > self._best - self._covering.slack(self._best):
            bound = self._best
        self._search.prove(min(bound, self._best))

    def _done(self) -> bool:
        return self._late() or self._search.closed()

    def _root(self) -> bool:
        """Cut until nothing more is found or the bound no longer rises; whether there is more to do."""
        last, stalled = -1.0, 0
        while True:
            x = self._relaxed()
            if self._done():
                return False
            bound = self._covering.proved
            stalled = stalled + 1 if bound <= last * (1 + RISES) else 0
            last = max(last, bound)
            seen = self._look(x)
            added = self._add(seen.cuts)
            if added and stalled < STALLED:
                continue
            if self._late():
                return False
            self._pattern(self._shares(x))
            if self._done():
                return False
            self._covering.fix(self._best)
            added += self._strengthened(x)
            if not added or stalled >= STALLED:
                return True

    def _strengthened(self, x: Floats) -> int:
        """Add violated cuts of the other kinds; says how many."""
        high = self._covering.high
        cuts = bridgeless(self._attacker, self._variables, self._shares(x), x, high)
        return self._add(cuts + covers(self._capacities, x, high))

    def _pattern(self, shares: Floats, which: Integers | None = None) -> None:
        """Make a safe pattern of a fractional one, and hand it over if it is the best."""
        instance, targets, late = self._instance, self._separation.targets, self._late
        among = shares > 1e-7
        if self._search.best is not None:
            among |= self._search.best
        repair = Repair(instance, self._variables, targets, self._search.solver.work, shares, among)
        everyone = np.arange(len(targets))
        if not repair.all(everyone if which is None else which, late):
            return
        pattern = repair.pattern
        if which is None:
            pattern = cleaned(instance, self._variables, targets, self._attacker, self._covering, repair, late)
        self.offer(pattern)

    def offer(self, pattern: Mask) -> None:
        """Hand over a safe pattern, with all cells that are withheld together."""
        chosen = self._variables.of_cell[pattern]
        x = np.zeros(len(self._variables.cost))
        x[chosen[chosen >= 0]] = 1.0
        self._search.offer_exact(self._shares(x) > 0.5, float(self._variables.cost @ x))

    def _finish(self) -> None:
        """Choose exactly among what is left; cut off and repair what the choice leaves open, and again."""
        search, covering, nodes = self._search, self._covering, NODES
        while not self._done():
            x = self._relaxed()
            if self._done():
                return
            choice = covering.choose(
                best=self._best, nodes=nodes, seconds=search.budget.seconds_left / 4, stop=self._late
            )
            self._prove(choice.bound)
            if self._done() or choice.x is None:
                if choice.x is None and not self._done():
                    nodes *= 4
                    continue
                return
            seen = self._look(choice.x)
            if self._late():
                return
            if not seen.open:
                self.offer(self._shares(choice.x) > 0.5)
                self._prove(choice.bound)
                nodes *= 8
                continue
            added = self._add(seen.cuts)
            shares = np.where(self._shares(choice.x) > 0.5, 1.0, np.minimum(self._shares(x), 0.99))
            self._pattern(shares, np.array(seen.open))
            if not added:
                nodes *= 4
            for _ in range(AFTERWARDS):
                if self._done():
                    return
                x = self._relaxed()
                if not self._add(self._look(x).cuts) and not self._strengthened(x):
                    break
