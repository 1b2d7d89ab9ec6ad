"""From a pattern that protects every cell to one that the audit finds safe, in the time that there is.

Repair is aimed (`repair`); where that does not end, more is withheld all around (`widen_and_thin`). What must be done
for a safe pattern at all is done, within a limit of its own; what only makes it better ends with the budget. Every safe
pattern is kept, so that there is one to fall back on when time is over, or when the user stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from tablesafe.audit.audit import Audit
from tablesafe.audit.exact import ExactMove
from tablesafe.audit.proved import Proved, Settled
from tablesafe.audit.respondent_knowledge import Lists
from tablesafe.audit.system import System
from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import Interrupted, SolverFailure
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.methods.suppress.instance import Instance, reported_zeros
from tablesafe.methods.suppress.null_vectors import published_by_null_vectors, unbounded
from tablesafe.methods.suppress.repair import repaired
from tablesafe.methods.suppress.responses import closed
from tablesafe.methods.suppress.widen_and_thin import Judge, judge_of, published_again, thinned, widened
from tablesafe.solve.hypercubes import Hypercubes
from tablesafe.work.budget import Budget, worked
from tablesafe.work.budget import necessary as necessary_work
from tablesafe.work.run import Attackers, Run
from tablesafe.work.stopping import heed

AFTER_STOP_S = 0.3
"""Seconds for a safe pattern when the user stops before there is one."""
SMALL, PER_CELL_S, PER_UNSEEN_S = 10_000, 5e-3, 2e-4
"""Cells up to which a first safe pattern is there within twice the limit, and what each further one, and each unseen
cell, may take."""
LEAST_S = 6.0
"""Seconds that a first safe pattern may take in any case, beside twice the limit."""
SUMS_S = 1.5e-4
"""Seconds for each cell that a last look at sums takes."""
PROPOSING, ENOUGH = 0.25, 2.0
"""Share of the time left for a proposal of null vectors, and how many times as long as it took to make the last pattern
safe there must be: the audit of what they leave takes longer."""
NOT_PROVED = "Respondents and coalitions were not all looked at: the pattern is not proved to be safe."
DEARER = "A cheaper pattern was found, but there was no time to make it safe from everybody."
NOTHING_LEFT = (
    "It ended before a pattern was proved to be safe: nothing is published but zeros, which is safe and coarse."
)
NOT_THINNED = "Repair added cells that may not all be needed: there was no time to look at them again."


def beyond_s(table: Table) -> float:
    """Seconds that a large table may take beside what all may."""
    return PER_CELL_S * max(0, table.seen - SMALL) + PER_UNSEEN_S * (len(table) - table.seen)


def necessary(budget: Budget, seconds: float, table: Table) -> Budget:
    """What a first safe pattern may take, where the limit is too short for one, or the user stops before there is."""
    limit = necessary_work(1.9 * seconds + LEAST_S + beyond_s(table))
    limit.hurry(budget, AFTER_STOP_S)
    return limit


def _ending_with(budget: Budget) -> Budget:
    """What a better safe pattern may take: it is broken off when the user stops, for there is one to fall back on."""
    limit = budget.child()
    limit.hurry(budget, 0.0)
    return limit


@dataclass(eq=False)
class Securing:
    """Makes patterns safe, and keeps the least costly one that is."""

    problem: Problem = field(repr=False)
    instance: Instance = field(repr=False)
    run: Run
    """Who works, and whom a pattern must withstand; what is proved is kept for whoever audits it next."""
    budget: Budget
    """For what makes a safe pattern better."""
    limit: Budget
    """For what a first one takes."""
    cubes: Hypercubes | None = field(default=None, repr=False)
    group: Integers | None = field(default=None, repr=False)
    told: Callable[[float], None] = field(default=lambda cost: None, repr=False)
    """Hears what each safe pattern costs that is better than those before."""
    best: Mask | None = field(default=None, repr=False)
    cost: float = inf
    given: Mask | None = field(default=None, repr=False)
    """The pattern that was made safe last."""
    origin: Mask | None = field(default=None, repr=False)
    """The pattern that the best one was made of."""
    because: dict[str, Mask] = field(default_factory=dict, repr=False)
    """What was added to it for respondents and for sums."""
    took: float = 0.0
    """Seconds that it took to make the last pattern safe."""
    _proofs: tuple[Problem, Proved, Settled] | None = field(default=None, init=False, repr=False)
    """By which the best one is safe."""

    def __post_init__(self) -> None:
        if self.run.audits is None:
            self.run = replace(self.run, audits={})

    @property
    def attackers(self) -> Attackers:
        """Whom a pattern must withstand."""
        return self.run.attackers

    @property
    def examined(self) -> tuple[str, ...]:
        """Who is examined beside the outsider."""
        respondents = self.attackers.insiders and Lists.of(self.problem.table) is not None
        return ("respondents",) * respondents + ("sums",) * (self.attackers.unions and bool(self.problem.rules))

    def secure(self, pattern: Mask, *, within: Budget | None = None, last: bool = False, presume: bool = True) -> Mask:
        """The best safe pattern, once this one is made safe too, if there is time for that; the `last` is thinned.

        `within` is that time, where it is not what the search has; a first safe pattern has its own. Unless there is
        time not to, it may `presume` that respondents learn what they were not soon seen not to.
        """
        budget = self.limit if self.best is None else _ending_with(self.budget) if within is None else within
        if self.best is not None and (budget.over or self._again(pattern)):
            return self.best
        self.given, added, begin = pattern, dict[str, Mask](), worked()
        with heed(self.budget, budget):
            try:
                safe = self._safe(pattern, budget, added, presume)
                if safe is not None and last and not (safe == pattern).all() and self.cubes is None:
                    safe = self._thinned(safe)
            except (KeyboardInterrupt, Interrupted):
                if not budget.overdue:
                    raise
                safe = None
        self.took = worked() - begin
        if safe is not None and (self.best is None or self.instance.pattern_cost(safe) < self.cost):
            self._keep(safe)
            self.origin, self.because = pattern, added
            self._proofs = self._all.memory()
        elif self._proofs is not None:
            self._all.recall(self._proofs)
        return self.kept()

    def kept(self) -> Mask:
        """The best safe pattern; where there is none yet the coarsest, which takes no time to prove.

        It publishes nothing but zeros: that is safe wherever all may be withheld.
        """
        if self.best is None:
            everything = self.instance.live | self.instance.forced | reported_zeros(self.problem)
            release = Release.from_suppression(self.problem, everything & ~self.problem.frozen)
            if not System.of(self.problem, release).tells_nothing:
                raise Interrupted("Stopped before a safe pattern was found; nothing was written.")
            self._keep(everything)
            self.budget.give_up(NOTHING_LEFT)
            return everything
        return self.best

    def published_again(self) -> Mask:
        """The best safe pattern without what is not needed, as far as the time reaches.

        Where nobody knows bounds, null vectors propose what that is; what sums and audit have against it is repaired.
        """
        pattern = self.kept()
        if self.group is None and self.budget.left > ENOUGH * self.took and unbounded(self.problem, self.instance):
            some = self.budget.child(PROPOSING * self.budget.left)
            with heed(self.budget):
                proposed = published_by_null_vectors(
                    self.problem, self.instance, pattern, some, respondents=self.attackers.insiders
                )
            pattern = self.secure(proposed, presume=False)
        spare = self.budget.child(max(self.budget.left - SUMS_S * len(self.problem.table), 0.0))
        if spare.over or self.group is not None:
            return pattern
        with heed(self.budget):
            better = published_again(
                self._all, self.instance, pattern, spare, self.budget, self._mended, lambda cost: self.told(cost)
            )
        self._keep(better)
        self._proofs = self._all.memory()
        return better

    def _keep(self, pattern: Mask) -> None:
        self.best, self.cost = pattern, self.instance.pattern_cost(pattern)
        self.told(self.cost)

    def _mended(self, pattern: Mask) -> Mask | None:
        """A pattern with what makes it safe; None where there is no time, or repair does not think of everybody."""
        if self._single is not self._all:
            return None
        try:
            safe, late = repaired(self._all, self.instance, pattern, cubes=self.cubes, budget=self.budget)
        except SolverFailure:
            return None
        return None if late else safe

    def suggest(self, moves: Iterable[ExactMove]) -> None:
        """Tell the audits of deviations by which the next pattern is said to be safe; they check them."""
        moves = tuple(moves)
        for session in {id(each): each for each in (self._single, self._all)}.values():
            session.suggest(moves)

    def _again(self, pattern: Mask) -> bool:
        """Whether nothing is new about a pattern of hypercubes: of these, what repair adds is not thinned."""
        seen = [each for each in (self.given, self.best) if each is not None]
        return self.cubes is not None and any(bool((pattern == each).all()) for each in seen)

    def _safe(self, pattern: Mask, budget: Budget, added: dict[str, Mask], presume: bool) -> Mask | None:
        """The pattern with what it takes to make it safe, of whole groups; None where the user stopped before that."""
        while True:
            safe = self._repaired(pattern, budget, added, presume)
            if safe is None or self.group is None or (closed(safe, self.group) == pattern).all():
                return safe if self.group is None or safe is None else pattern
            pattern = closed(safe, self.group)

    def _repaired(self, pattern: Mask, budget: Budget, added: dict[str, Mask], presume: bool) -> Mask | None:
        """Aimed repair thinks of single insiders; coalitions, and who knows that values are whole, come after it."""
        asked = self.attackers
        try:
            safe, late = repaired(
                self._single, self.instance, pattern, cubes=self.cubes, budget=budget, because=added, presume=presume
            )
        except SolverFailure:
            safe, late = widened(self.problem, self.instance, pattern, judge_of(self._all, budget), budget)
        if not late and (asked.coalition > 1 or asked.integers):
            safe, late = widened(self.problem, self.instance, safe, judge_of(self._all, budget), budget)
        if late:
            if self.best is not None and not self.budget.stopped and self.instance.pattern_cost(safe) < self.cost:
                self.budget.give_up(DEARER)
            if self.budget.stopped or self.best is not None:
                return None
            self.budget.give_up(NOT_PROVED)
        return safe

    def cleaned(self, safe: Mask) -> Mask:
        """A safe pattern that somebody made without what is not needed, cell by cell while there is time."""
        judge = judge_of(self._all, self.budget)
        return thinned(self.instance, self.instance.forced, safe, judge, self.budget, audits=4 * len(safe))

    def _thinned(self, safe: Mask) -> Mask:
        """The safe pattern without what repair has made needless; whole groups are not taken apart."""
        if self.group is not None:
            return safe
        return thinned(self.instance, self.instance.forced, safe, judge_of(self._all, self.budget), self.budget)

    @cached_property
    def _single(self) -> Audit:
        """The audit for aimed repair, kept: it thinks of single insiders."""
        return self._audit(replace(self.attackers, coalition=1, integers=None))

    @cached_property
    def _all(self) -> Audit:
        """The audit that a pattern has to pass; the same where nobody else is asked about."""
        return self._audit(self.attackers)

    def _audit(self, attackers: Attackers) -> Audit:
        """An audit that goes on where an earlier one of the same run has ended."""
        return Audit.going_on(self.problem, replace(self.run, attackers=attackers))

    def judge(self, budget: Budget, *, unions: bool = True) -> Judge:
        """The audit that a pattern has to pass; without `unions` for respondents alone."""
        if unions or not self.attackers.unions:
            return judge_of(self._all, budget)
        return judge_of(self._audit(replace(self.attackers, unions=False)), budget)
