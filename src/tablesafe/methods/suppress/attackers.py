"""What the audit finds open to insiders and by sums, asked of every pattern from then on.

What a respondent must not learn is a target in which cells have less room, a sum that the release gives away is a cell
of its own that must move: both are as true of every other pattern as of the one that was audited. So a search that
takes them among its targets, and has its patterns judged, proves bounds against all these attackers. What cannot be
asked as a target (that values are whole, what the audit sees by exact arithmetic only) is met by this: of the cells
that such a pattern publishes, one is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from tablesafe.audit.findings import Findings
from tablesafe.audit.insiders import Insider, Question, Questions
from tablesafe.audit.system import System
from tablesafe.audit.unions import Union
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import SolverFailure
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.suppress.branch_and_cut.attacker import Attacker
from tablesafe.methods.suppress.branch_and_cut.cuts import Variables
from tablesafe.methods.suppress.branch_and_cut.exact import BranchAndCut, Objection
from tablesafe.methods.suppress.branch_and_cut.separation import Separation
from tablesafe.methods.suppress.branch_and_cut.targets import Targets, View
from tablesafe.methods.suppress.incumbent import Incumbent
from tablesafe.methods.suppress.instance import UNBOUNDED, Instance
from tablesafe.methods.suppress.levels import something
from tablesafe.methods.suppress.search import Search
from tablesafe.methods.suppress.widen_and_thin import Judge, unexamined
from tablesafe.rules.counts import Threshold
from tablesafe.rules.linear import PQ, Dominance, PPercent
from tablesafe.solve.program import Price
from tablesafe.work.budget import Budget

REACHING = 0.3
"""Share of the time for finding out what no pattern can hide: a program over the whole table for each question."""
NEARLY, PROMPTLY = 0.9, 0.1
"""Share of the cost that the bound must have reached, and share of the time after which it need not be nearer before
the next attackers are asked about as well."""
AUDITS = 12
"""Audits to find out which cells are really needed, where a pattern cannot be argued against otherwise."""


class Objections:
    """Judges patterns by the audit, and says what to ask besides."""

    def __init__(self, problem: Problem, instance: Instance, judge: Judge, coalition: int, budget: Budget) -> None:
        self._problem, self._judge, self._coalition, self._budget = problem, judge, coalition, budget
        self.instance = instance
        """The instance with a cell for each sum that was asked about."""
        self._questions: Questions | None = None
        self._asked: set[Hashable] = set()
        self._hopeless: set[Hashable] = set()
        self.audits = 0
        self.nearly: Mask | None = None
        """The last pattern that there was something against; it had all that had been asked before."""
        self.attainable = False
        """Whether some pattern is known that there is nothing against: then all that is asked can be fulfilled."""
        self._additive = all(type(rule) in {Threshold, PPercent, PQ, Dominance} for rule in problem.rules) and not bool(
            problem.table.may_be_negative.any()
        )

    def __call__(self, pattern: Mask) -> Objection | None:
        """What there is against a pattern; what no pattern would help against does not count."""
        findings, nothing = self._audited(pattern), np.zeros(0, dtype=np.int64)
        if not findings.failing:
            return None
        self.nearly = pattern
        targets = self._new(findings)
        if len(targets):
            return Objection(self.instance, targets, nothing)
        if not self._left(findings):
            return None
        if self._budget.over or unexamined(findings):
            self._budget.stop()  # not proved is not safe, but says nothing about other patterns
            return Objection(self.instance, targets, nothing)
        return Objection(self.instance, targets, self._needed(pattern))

    def _audited(self, pattern: Mask) -> Findings:
        self.audits += 1
        return self._judge(pattern)

    def _new(self, findings: Findings) -> Targets:
        """What was not asked before, and what some pattern can fulfil."""
        found = _insiders(findings)
        keys: list[Hashable] = []
        parts = []
        for insider in found:
            key = _key(insider)
            if key not in self._asked | self._hopeless:
                part = self._of_question(self._question(insider))
                parts.append(part)
                keys += [key] * len(part)
        for union in _unions(findings):
            if union.cells not in self._asked | self._hopeless:
                part = self._of_sum(union)
                parts.append(part)
                keys += [union.cells] * len(part)
        targets = Targets(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int8), np.zeros(0))
        for part in parts:
            targets = targets.and_also(part)
        unreachable = self._unreachable(targets)
        if unreachable is None:
            self._budget.stop()
            return targets.take(np.zeros(0, dtype=np.int64))
        hopeless = set(unreachable)
        self._hopeless |= {keys[at] for at in hopeless}
        self._asked |= set(keys)
        return targets.take(np.array([at for at in targets if at not in hopeless], dtype=np.int64))

    def _left(self, findings: Findings) -> bool:
        """Whether something is open that can be closed."""
        if bool((~findings.protected).any()) or unexamined(findings):
            return True
        keys = [_key(insider) for insider in _insiders(findings)] + [union.cells for union in _unions(findings)]
        return any(key not in self._hopeless for key in keys)

    def _question(self, insider: Insider) -> Question:
        if self._questions is None:
            everything = (self.instance.live | self.instance.forced)[: len(self._problem.table)]
            system = System.of(self._problem, Release.from_suppression(self._problem, everything))
            self._questions = Questions(self._problem, system, self._coalition)
        return self._questions.of(insider)

    def _of_question(self, asked: Question) -> Targets:
        """What an insider must not learn, as targets."""
        view = View(asked.cells.astype(np.int64), asked.up, asked.down)
        width = something(self.instance) if asked.bare else asked.sliding
        demands = [(1, asked.upper), (-1, asked.lower)]
        if width > asked.upper + asked.lower:
            demands.append((0, width))
        some = [(sign, level) for sign, level in demands if level > 0]
        k = len(some)
        return Targets(
            np.full(k, asked.cell, dtype=np.int64),
            np.array([sign for sign, _ in some], dtype=np.int8),
            np.array([level for _, level in some], dtype=np.float64),
            (view,),
            np.zeros(k, dtype=np.int64),
        )

    def _of_sum(self, union: Union) -> Targets:
        """A sum that must not be given away: a cell more, which must move while all that it adds up is withheld.

        By rules under which parts that pass make a sum that passes, what is left of a sum fails when a part of it is
        published: then it must move in any case.
        """
        instance, n = self.instance, len(self.instance)
        members = np.array(union.cells, dtype=np.int64)
        row = sparse.csr_array(
            (np.append(np.ones(len(members)), -1.0), (np.zeros(len(members) + 1, int), np.append(members, n))),
            shape=(1, n + 1),
        )
        old = sparse.csr_array((instance.rows.data, instance.rows.indices, instance.rows.indptr))
        old.resize((instance.rows.shape[0], n + 1))
        rows = sparse.csr_array(sparse.vstack([old, row], format="csr"))
        self.instance = Instance(
            rows,
            sparse.csc_array(rows),
            np.append(instance.cost, 0.0),
            np.append(instance.forced, True),
            np.append(instance.live, True),
            np.append(instance.up, UNBOUNDED),
            np.append(instance.down, UNBOUNDED),
            instance.cell,
            instance.sign,
            instance.level,
        )
        chosen = members[~instance.forced[members]]
        alone = len(members) - len(chosen) == 1 and len(chosen) == 1
        always = alone or (self._additive and union.certain)
        nothing = np.zeros(0, dtype=np.int64)
        return Targets(
            np.array([n], dtype=np.int64),
            np.zeros(1, dtype=np.int8),
            np.array([something(instance)]),
            (View(nothing, np.zeros(0), np.zeros(0), unless=nothing if always else chosen),),
            np.zeros(1, dtype=np.int64),
        )

    def _unreachable(self, targets: Targets) -> list[int] | None:
        """Targets that stay open when everything is withheld that may be; None where there is no time to find out."""
        if self.attainable or not len(targets):
            return []
        instance = self.instance
        variables = Variables.of(instance, None)
        everything = np.ones(len(variables.cost))
        attacker = Attacker(instance, self._budget)
        allowed = self._budget.child(REACHING * self._budget.left)
        separation = Separation(instance, targets, variables, attacker, lambda: allowed.over)
        seen = separation.look(variables.shares(instance.forced, everything), everything, everything)
        return None if allowed.over else seen.open

    def _needed(self, pattern: Mask) -> Integers:
        """Cells of which one must be withheld besides: as few as some audits show."""
        n = len(self._problem.table)
        instance, held = self.instance, pattern.copy()
        rest = np.flatnonzero(instance.live[:n] & ~instance.forced[:n] & ~pattern)
        waiting = [rest[np.argsort(-instance.cost[rest], kind="stable")]]
        for _ in range(AUDITS):
            if not waiting or self._budget.over:
                break
            chunk = waiting.pop()
            wider = held.copy()
            wider[chunk] = True
            if len(chunk) < len(rest) and self._left(self._audited(wider)):
                held = wider
            elif len(chunk) > 1:
                half = len(chunk) // 2
                waiting += [chunk[half:], chunk[:half]]
        return np.flatnonzero(instance.live[:n] & ~instance.forced[:n] & ~held)


@dataclass(frozen=True, eq=False)
class Stage:
    """The best pattern against outsiders and some further attackers, and the bound on all such patterns."""

    attacker: str
    pattern: Mask
    cost: float
    bound: float
    nearly: Mask | None = None
    """A cheaper one that was not seen to be safe from all of them, and lacks little of it."""

    @property
    def proved(self) -> bool:
        """Whether no pattern costs less."""
        return self.cost <= self.bound * (1 + 1e-9) + 1e-9


def prices_of(stages: Sequence[Stage], cost: Floats, given: Mask) -> tuple[Price, ...]:
    """What each attacker adds, in the user's costs."""
    told, before, proved = [], (0, 0.0), True
    for stage in stages if len(stages) > 1 else ():
        own = stage.pattern & ~given
        now = int(own.sum()), float(cost[own].sum())
        proved &= stage.proved
        told.append(Price(attacker=stage.attacker, cells=now[0] - before[0], cost=now[1] - before[1], proved=proved))
        before = now
    return tuple(told)


def as_repaired(found: Mask, safe: Mask, because: Mapping[str, Mask | None], instance: Instance) -> list[Stage]:
    """What a pattern withholds for outsiders, and what repair has added for others: nothing of it is proved."""
    nothing = np.zeros_like(safe)
    added = {who: nothing if cells is None else cells & ~found for who, cells in because.items()}
    pattern, stages = safe & ~np.any([nothing, *added.values()], axis=0), []
    for who in ("outsiders", *added):
        pattern = pattern | (safe & added.get(who, nothing))
        stages.append(Stage(who, pattern, instance.pattern_cost(pattern & ~instance.forced), 0.0))
    return stages


def against_all(
    problem: Problem,
    search: Search,
    exact: BranchAndCut,
    safe: Mask,
    judges: Mapping[str, Judge],
    *,
    coalition: int,
    budget: Budget,
) -> list[Stage]:
    """The least costly patterns against one attacker more at a time, the last of them against all.

    `judges` audit for the first, the first two, … of these attackers; `safe` is a pattern that passes them all.
    """
    assert search.best is not None
    instance = search.instance
    stages = [Stage("outsiders", search.best, search.best_cost, search.bound)]
    for left, (name, judge) in zip(range(len(judges), 0, -1), judges.items(), strict=True):
        own, last = budget.child(budget.seconds_left / left), stages[-1]
        objections = Objections(problem, instance, judge, coalition, own)
        incumbent = Incumbent(instance, budget=own, report=_aside(search) if left > 1 else search.report)
        incumbent.prove(last.bound)
        against = objections(safe)
        objections.attainable = against is None
        objection = objections(last.pattern)
        if objection is None:
            stages.append(Stage(name, last.pattern, last.cost, last.bound))
            continue
        if objections.attainable:
            incumbent.keep(safe, instance.pattern_cost(safe & ~instance.forced))
        search_on = BranchAndCut(incumbent, judge=objections, known=exact)
        try:
            for more in (objection, against):
                if more is not None:
                    search_on.ask_also(more)
            search_on.advance(_enough(incumbent, own) if left > 1 else incumbent.late)
        except SolverFailure as failure:
            budget.give_up(f"The bound against {name} was not improved further ({failure}).")
        found = safe if incumbent.best is None else incumbent.best
        cost = instance.pattern_cost(found & ~instance.forced)
        nearly = objections.nearly
        if nearly is not None and instance.pattern_cost(nearly & ~instance.forced) >= cost:
            nearly = None
        stages.append(Stage(name, found, cost, min(incumbent.bound, cost), nearly))
        exact = search_on
    return stages


def _enough(incumbent: Incumbent, budget: Budget) -> Callable[[], bool]:
    """A clock that rings when those who come after need the time more than the bound against those who came before."""
    least = (1 - PROMPTLY) * budget.work_left
    return lambda: (
        incumbent.late()
        or (budget.left < least and incumbent.best is not None and incumbent.bound >= NEARLY * incumbent.best_cost)
    )


def _aside(search: Search) -> Callable[[float, float], None]:
    """Tell bounds only: a pattern that is not safe from everybody is no answer yet."""
    return lambda cost, bound: search.report(np.inf, bound)


def _insiders(findings: Findings) -> list[Insider]:
    every: Iterable[Insider] = () if findings.insiders is None else findings.insiders.every
    return [insider for insider in every if insider.certain or findings.possibly == "open"]


def _unions(findings: Findings) -> list[Union]:
    every: Iterable[Union] = () if findings.unions is None else findings.unions.failed
    return [union for union in every if union.certain or findings.possibly == "open"]


def _key(insider: Insider) -> Hashable:
    return insider.cell, insider.members, insider.certain
