"""When aimed repair does not end: withhold more and more around what is open, then take back what was too much.

Insiders and derivable sums have no deviation that proves a cell protected once and for all: withholding one cell can
open another. But what is withheld never comes back, so this ends; and each thing taken back is audited again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy import sparse

from tablesafe.audit.audit import Audit
from tablesafe.audit.findings import Findings
from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidProblem, Setting, Words, and_more, joined
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.suppress.instance import Instance, zeros_kept
from tablesafe.work.budget import ENDLESS, Budget

AUDITS = 100
"""Audits spent at most on publishing again what is not needed."""
GROWTH = 8
"""One in so many of the cells around what is open is withheld first, then twice, four times as many."""
FIRST, LEAST, UNCHECKED = 0.03, 0.002, 6
"""Share of what is withheld, by cost, that is published at once at first, and at least; and how often that is done
before sums are looked for."""
TRIAL, TRIAL_S = 0.1, 2.0
"""Share of the time, and seconds, for a try."""
COARSE = (
    "The time was too short for anything but a coarse pattern: every cell is withheld that may be. "
    "It was not looked at whether fewer would do."
)

Judge = Callable[[Mask], Findings]
"""Audits a pattern, as hard as the user asks for."""


def judge_of(session: Audit, budget: Budget = ENDLESS, *, presume: bool = False) -> Judge:
    """The audit of patterns, in the time that there is: what it proved of one it knows of the next."""
    problem = session.problem
    return lambda pattern: session.judge(
        Release.from_suppression(problem, pattern), exact=False, certify=False, budget=budget, presume=presume
    )


def widened(problem: Problem, instance: Instance, pattern: Mask, judge: Judge, budget: Budget) -> tuple[Mask, bool]:
    """A pattern that the audit finds safe, with the given one in it; an error when even withholding all is not.

    When the budget is over before that, everything is withheld that may be, unless all that is known to be open is what
    there was no time to look at; the second of the two says that it was not proved to be safe.
    """
    given = pattern
    rows = sparse.csr_array(abs(problem.table.equations)).astype(np.float64)
    columns = sparse.csr_array(rows.T)
    many = 1
    while True:
        findings = judge(pattern)
        if not findings.open and findings.sums_late:
            return pattern, True
        if not findings.open:
            return thinned(instance, given, pattern, judge, budget), False
        if unexamined(findings):
            return pattern, True
        if budget.over:
            budget.give_up(COARSE)
            return given | instance.live, True
        around = np.zeros(len(pattern), dtype=np.bool_)
        around[_open_cells(findings)] = True
        candidates = np.zeros(0, dtype=np.int64)
        while not candidates.size:
            wider = around | (columns @ (rows @ around) > 0)
            if (wider == around).all():
                raise _hopeless(problem, instance, findings)
            around = wider
            candidates = np.flatnonzero(around & instance.live & ~pattern)
        cheapest = candidates[np.argsort(instance.cost[candidates], kind="stable")]
        pattern = pattern.copy()
        pattern[cheapest[: max(1, many * len(cheapest) // GROWTH)]] = True
        many *= 2


def _open_cells(findings: Findings) -> Integers:
    """The open cells, and the parts of open sums."""
    unions = () if findings.unions is None else findings.unions.failed
    parts = [int(cell) for union in unions if union.certain for cell in union.cells]
    return np.unique([*(opening.cell for opening in findings.open), *parts]).astype(np.int64)


def unexamined(findings: Findings) -> bool:
    """Whether all that an audit has against a pattern is that not every respondent or coalition was looked at."""
    insiders = findings.insiders
    left = set() if insiders is None else {*insiders.late, *insiders.unsearched}
    return bool(left) and {each.cell for each in findings.failing} <= left and bool(np.all(findings.protected))


def thinned(
    instance: Instance, given: Mask, pattern: Mask, judge: Judge, budget: Budget, *, audits: int = AUDITS
) -> Mask:
    """The pattern without what can be published again, the most costly first, many at a time while that works.

    Nothing of `given` is touched, and nothing more becomes possibly open. It ends with the budget; an interrupt keeps
    the pattern, which is safe, without what was taken back until then.
    """
    cost = instance.cost
    added = np.flatnonzero(pattern & ~given)
    before: frozenset[tuple[int, str, str]] | None = None
    waiting = [added[np.argsort(-cost[added], kind="stable")]]
    for _ in range(audits):
        if not waiting or budget.over:
            break
        chunk = waiting.pop()
        fewer = pattern.copy()
        fewer[chunk] = False
        try:
            found = judge(fewer)
            safe = not found.open and not found.sums_late
            if safe and _left_possible(found):
                before = _left_possible(judge(pattern)) if before is None else before
                safe = _left_possible(found) <= before
        except KeyboardInterrupt:
            warnings.warn("Interrupted: the safe pattern so far is kept.", stacklevel=2)
            break
        if safe:
            pattern = fewer
        elif len(chunk) > 1:
            half = len(chunk) // 2
            waiting += [chunk[half:], chunk[:half]]
    return pattern


def published_again(
    session: Audit,
    instance: Instance,
    pattern: Mask,
    budget: Budget,
    last: Budget,
    mended: Callable[[Mask], Mask | None],
    told: Callable[[float], None],
) -> Mask:
    """The pattern without what can be published again, for tables with so many sensitive cells that audits take long.

    Many cells are published at once, the most costly first. Whoever is open then, or was not looked at in time, gets
    all back that its tables in the old pattern change: with that it is as safe as before, and all others were just
    seen to be. Sums that can be derived are looked for now and then, for that takes as long as all the rest; where
    some fail, the pattern is `mended`, if that can be done in time and pays. It ends with the budget; the `last` look
    at sums may take longer. Once that is over too, what was not looked at for sums is given up. What each better
    pattern costs is `told`.
    """
    safe, checked, size, unchecked = pattern, pattern, FIRST, 0
    proofs = session.memory()
    tried = np.zeros(len(pattern), dtype=np.bool_)
    while True:
        left = np.flatnonzero(safe & ~instance.forced & ~tried)
        left = left[np.argsort(-instance.cost[left], kind="stable")]
        enough = budget.over or not left.size
        if unchecked and (enough or unchecked >= UNCHECKED):
            found = None if last.over else judge_of(session, last, presume=True)(safe)
            if found is None or found.failing or found.sums_late:
                fixed = None if last.over else mended(safe)
                if fixed is None or instance.pattern_cost(fixed) >= instance.pattern_cost(checked):
                    session.recall(proofs)
                    fixed, size = checked, max(size / 4, LEAST)
                safe = fixed
            checked, proofs, unchecked = safe, session.memory(), 0
            told(instance.pattern_cost(checked))
        if enough:
            session.recall(proofs)
            return checked
        some = left[: max(int(np.searchsorted(np.cumsum(instance.cost[left]), size * instance.cost[left].sum())), 1)]
        tried[some] = True
        fewer = safe.copy()
        fewer[some] = False
        failing = _tried(session, fewer, budget)
        if failing.size:
            fewer |= safe & session.relied_on(failing)
        size = size * 1.5 if 3 * int(fewer[some].sum()) < len(some) else max(size / 1.5, LEAST)
        safe, unchecked = fewer, unchecked + 1


def _tried(session: Audit, pattern: Mask, budget: Budget) -> Integers:
    """The cells that are open in a pattern, or not seen to be protected in some seconds."""
    within = budget.child(max(TRIAL * budget.left, TRIAL_S))
    release = Release.from_suppression(session.problem, pattern)
    found = session.judge(release, exact=False, certify=False, budget=within, trial=True)
    late = () if found.insiders is None else found.insiders.late
    return np.unique([*(each.cell for each in found.failing), *late]).astype(np.int64)


def _left_possible(findings: Findings) -> frozenset[tuple[int, str, str]]:
    """What is possibly open, and counts."""
    found = [opening for opening in findings.failing if not opening.certain]
    return frozenset((opening.cell, opening.name, opening.because) for opening in found)


def _hopeless(problem: Problem, instance: Instance, findings: Findings) -> InvalidProblem:
    opening = findings.open[0]
    ways: list[Words] = ["unfreeze cells around it"] if bool(problem.frozen.any()) else []
    ways += [("allow cells of value zero (", Setting("zeros", True), ")")] if zeros_kept(problem, instance) else []
    ways += [f"merge it with a neighbour (see ts.redesign), or waive {opening.name}."]
    return InvalidProblem(
        f"Even if everything is withheld that may be, this stays open: {opening}{and_more(len(findings.open))}.",
        hint=joined(", ", ways),
        about=("cells", int(opening.cell)),
    )
