"""A pattern for tables with many sensitive cells: safe at once, then cheaper for as long as there is time.

Hypercubes protect everything in a second, at several times the value. Exact problems of subtables suggest what a good
pattern withholds; programs that move many targets together prove most of it, and find what is missing; hypercubes close
the rest. The same again, with the pattern itself as the suggestion, finds what is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from tablesafe.audit.doubts import Listed
from tablesafe.audit.exact import ExactLimits, ExactMove, exact_nearby, row_sums
from tablesafe.audit.respondent_knowledge import Guard
from tablesafe.audit.together import in_fractions
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.methods.suppress.branch_and_cut.exact import BranchAndCut
from tablesafe.methods.suppress.branch_and_cut.targets import Targets
from tablesafe.methods.suppress.condensed import Condensed
from tablesafe.methods.suppress.deviations import Deviation
from tablesafe.methods.suppress.hypercube_method import HypercubeMethod
from tablesafe.methods.suppress.incumbent import Incumbent
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.lower_bound import lower_bound
from tablesafe.methods.suppress.pattern import Pattern
from tablesafe.methods.suppress.simultaneous import Convincing, Together, TogetherForAll, levels
from tablesafe.methods.suppress.single_targets import OneByOne, Parts
from tablesafe.methods.suppress.top_down import Subtables, from_the_top
from tablesafe.solve.hypercubes import Hypercubes
from tablesafe.work.budget import Budget

LEAST_S = 1e-3
"""Seconds for each target without which programs do not get far enough to be better than hypercubes."""
SUGGESTING = 0.6
"""Share of the time for suggestions."""
SUGGESTING_EARLY = 0.2
"""The same where every respondent has to be convinced: that takes longer."""
TOGETHER = 0.15
"""Share of what is left then for programs that move many targets; what they leave is asked one by one."""
BOUNDING = 0.2
"""Share of what is left after a first pattern, for a bound."""
BOUNDING_EARLY = 0.05
"""Share of all that is left, for a bound before the pattern that convinces every respondent."""
CLEANING = 0.05
"""Share of the time for second thoughts about the hypercubes that close what programs have left open."""
SPARED = 1e-5
"""Share of the room of a cell that programs leave for what makes their deviations exact."""
WITNESSING = 0.5
"""Share of the time for exact deviations that goes to finding them; the rest is for making them exact."""
GAINS = 0.99
"""Share of its cost below which a pattern made anew must be, for another to be worth while."""


def first_pattern(instance: Instance, cubes: Hypercubes, cleaned: Budget | None = None) -> tuple[Mask, Integers]:
    """What hypercubes withhold, and the targets that none of them protects; cleaned up as far as a budget reaches."""
    held = HypercubeMethod(instance, cubes)
    held.protect_all(lambda: False)
    if cleaned is not None:
        held.clean_up(lambda: cleaned.over, lambda cost: None)
    return held.pattern, np.flatnonzero(np.isin(instance.cell, held.failed))


def convincing_patterns(
    instance: Instance, cubes: Hypercubes, guard: Guard, cleaned: Callable[[], Budget]
) -> Iterator[tuple[Mask, Integers]]:
    """A pattern that convinces every respondent as far as hypercubes can, at a price; then what is left of it.

    The second is the first without what outsiders do not need, as far as a budget reaches: most of it still convinces
    everybody, and it is far cheaper. With both come the targets that no hypercube protects.
    """
    held = HypercubeMethod(instance, cubes, guard)
    held.protect_all(lambda: False)
    left = np.flatnonzero(np.isin(instance.cell, held.failed))
    yield held.pattern, left
    budget = cleaned()
    held.clean_up(lambda: budget.over, lambda cost: None)
    yield held.pattern, left


def by_many_at_once(
    instance: Instance, budget: Budget, random: np.random.Generator
) -> Iterator[tuple[Mask, list[ExactMove]]]:
    """Patterns without hypercubes, each made of the one before and cheaper, as long as that gains.

    With each come the deviations that protect its targets, for the audit. There is none where a target stays open. They
    are for tables in which a program for a single target takes so long that there is no time for one each
    (hier16: 1.6 s for each of 448 targets, all of them together in 5 s).
    """
    condensed, best, again = _with_less_room(Condensed.of(instance)), np.inf, False
    suggested = np.zeros(len(condensed), dtype=np.bool_)
    while True:
        pattern = Pattern(condensed.instance)
        together = Together(pattern, suggested, budget, random)
        together.protect(only=again)
        if len(together.reach.open):
            return
        withheld = condensed.members(pattern.withheld) | instance.forced
        cost = instance.pattern_cost(withheld)
        if cost < best:
            yield withheld, _deviations(instance, condensed, pattern)
        if cost > best * GAINS:
            return
        best, suggested, again = cost, pattern.withheld.copy(), True


def moves_within(instance: Instance, pattern: Mask, budget: Budget) -> list[ExactMove]:
    """Exact deviations within a safe pattern, few that protect many, as far as a budget reaches: for an audit to check.

    They are worth looking for where an audit would take long, since no simple fractions say what its programs find.
    """
    spared = _sparing(instance)
    spared = replace(spared, level=spared.level * (1 + SPARED))
    cells = np.flatnonzero((pattern | instance.forced) & instance.live)
    part = spared.only(cells, forced=np.ones_like(pattern))
    looking = Incumbent(part, budget=budget.child(WITNESSING * budget.left), report=lambda cost, bound: None)
    limits, found = ExactLimits.within(instance.down, instance.up), list[ExactMove]()
    for move in BranchAndCut(looking).witnesses(np.ones(len(part), dtype=np.bool_)):
        if budget.over:
            break
        whole = np.zeros(len(instance))
        whole[cells[move.cells]] = move.amount
        exact = _made_exact(instance, whole, limits)
        if exact is not None:
            found.append(exact)
    return found


def _with_less_room(condensed: Condensed) -> Condensed:
    """The same with a little less room than there is, where that is enough: what is then made exact still has some."""
    return replace(condensed, instance=_sparing(condensed.instance))


def _sparing(own: Instance) -> Instance:
    """An instance with a little less room than there is, where that is enough."""
    rise, fall = (each * (1 + SPARED) for each in levels(own))
    up, down = (
        np.maximum(room * (1 - SPARED), np.minimum(room, need)) for room, need in ((own.up, rise), (own.down, fall))
    )
    return replace(own, up=up, down=down)


def _made_exact(instance: Instance, move: Floats, limits: ExactLimits) -> ExactMove | None:
    """A solver's move in fractions, whether they are simple or not; None where that cannot be done."""
    exact = in_fractions(move)
    if exact is None or row_sums(instance.rows, exact.whole(len(instance))).any():
        exact = exact_nearby(instance.rows, move, limits)
    return exact


def improved(
    incumbent: Incumbent,
    dimensions: Sequence[Hierarchy],
    cubes: Hypercubes,
    random: np.random.Generator,
    budget: Budget,
    executor: Executor | None = None,
) -> list[ExactMove]:
    """Look for cheaper patterns than the incumbent's until a budget is over; each is safe.

    Given are the deviations that protect the targets of the best one, for the audit.
    """
    instance, found = incumbent.instance, list[ExactMove]()
    if budget.left < LEAST_S * len(instance.level):
        return found
    rise, fall = levels(instance)
    subtables = Subtables(instance, dimensions, cubes)
    some = budget.child(SUGGESTING * budget.left)
    suggested = from_the_top(instance, subtables, rise, fall, some, executor)
    targets = incumbent.exactly or Targets(instance.cell, instance.sign, instance.level)
    turn, condensed, took = 0, Condensed.of(instance), 0.0
    while budget.left > took:  # half a pattern is worth nothing
        before, begin = incumbent.best_cost, budget.left
        pattern = Pattern(condensed.instance)
        Together(pattern, condensed.whole(suggested), budget, random).protect(only=turn > 0)
        safe = completed(instance, condensed, pattern, cubes)
        if safe is not None:
            if instance.pattern_cost(safe) < incumbent.best_cost:
                found = _deviations(instance, condensed, pattern)
            incumbent.offer_pattern(safe, instance.pattern_cost(safe))
        took = begin - budget.left
        if turn == 0:
            some = budget.child(BOUNDING * budget.left)
            incumbent.prove(min(lower_bound(instance, targets, subtables, some), incumbent.best_cost))
        if incumbent.best is None or (turn and incumbent.best_cost > before * GAINS):
            break
        suggested, turn = incumbent.best, turn + 1
    return found


def prove_early(incumbent: Incumbent, dimensions: Sequence[Hierarchy], cubes: Hypercubes, budget: Budget) -> None:
    """A bound for all that follows, in a small share of a budget."""
    instance = incumbent.instance
    targets = incumbent.exactly or Targets(instance.cell, instance.sign, instance.level)
    subtables = Subtables(instance, dimensions, cubes)
    incumbent.prove(lower_bound(instance, targets, subtables, budget.child(BOUNDING_EARLY * budget.left)))


def improved_for_all(
    incumbent: Incumbent,
    listed: Listed,
    guard: Guard | None,
    dimensions: Sequence[Hierarchy],
    cubes: Hypercubes,
    random: np.random.Generator,
    budget: Budget,
    executor: Executor | None = None,
) -> list[ExactMove]:
    """Look for a pattern that convinces every respondent and costs less than the incumbent's, until a budget is over.

    What programs leave open in that time, hypercubes close. Given with it are the deviations that convince respondents,
    for the audit.
    """
    instance = incumbent.instance
    if budget.left < LEAST_S * len(instance.level):
        return []
    rise, fall = levels(instance)
    subtables = Subtables(instance, dimensions, cubes)
    some = budget.child(SUGGESTING_EARLY * budget.left)
    suggested = from_the_top(instance, subtables, rise, fall, some, executor)
    condensed = Condensed.of(instance)
    own = condensed.instance
    pattern = Convincing(own, listed.take(condensed.first), own.forced)
    wanted, cleaned = condensed.whole(suggested), budget.child()
    batches = budget.child(TOGETHER * budget.left)
    together = TogetherForAll(pattern, wanted, batches, random)
    together.protect()
    OneByOne(pattern, Parts(condensed, cubes), wanted, budget.child((1 - CLEANING) * budget.left), random).protect()
    withheld = condensed.members(pattern.withheld) | instance.forced
    moves = _exact(condensed, together.found)
    open_ = np.isin(condensed.number[instance.cell], pattern.open)
    if open_.any():
        rest = HypercubeMethod(instance.withholding(withheld).asking(np.flatnonzero(open_)), cubes, guard)
        rest.protect_all(lambda: False)
        rest.clean_up(lambda: cleaned.over, lambda cost: None)
        withheld |= rest.pattern
        moves += _in_whole_units(rest.deviations)
    if instance.pattern_cost(withheld) < incumbent.best_cost:
        incumbent.offer_pattern(withheld, instance.pattern_cost(withheld))
    return moves


def _in_whole_units(deviations: Iterable[Deviation]) -> list[ExactMove]:
    """Those of some deviations of hypercubes that are whole, as nearly all are."""
    whole = [each for each in deviations if (each.amount == np.rint(each.amount)).all()]
    return [ExactMove(np.sort(each.cells), each.amount[np.argsort(each.cells)].astype(np.int64)) for each in whole]


def _deviations(instance: Instance, condensed: Condensed, pattern: Pattern) -> list[ExactMove]:
    """The deviations that a pattern keeps, as moves of the whole table."""
    limits = ExactLimits.within(instance.down, instance.up)
    found = []
    for deviation in pattern.deviations:
        move = deviation.whole(len(condensed.instance))[condensed.number]
        exact = _made_exact(instance, move, limits)
        if exact is not None:
            found.append(exact)
    return found


def _exact(condensed: Condensed, moves: Iterable[Floats]) -> list[ExactMove]:
    """Moves of the condensed table as moves of the whole one, in fractions; without those that have no simple ones."""
    read = (in_fractions(move[condensed.number]) for move in moves)
    return [move for move in read if move is not None]


def completed(instance: Instance, condensed: Condensed, pattern: Pattern, cubes: Hypercubes) -> Mask | None:
    """The pattern with hypercubes for the targets that are open in it; None where some have none."""
    withheld = condensed.members(pattern.withheld) | instance.forced
    rises, falls = condensed.members(pattern.rises), condensed.members(pattern.falls)
    open_ = np.where(instance.sign > 0, ~rises[instance.cell], ~falls[instance.cell])
    if not open_.any():
        return withheld
    rest = replace(
        instance,
        forced=withheld,
        cost=np.where(withheld, 0.0, instance.cost),
        cell=instance.cell[open_],
        sign=instance.sign[open_],
        level=instance.level[open_],
    )
    held, failed = first_pattern(rest, cubes)
    return None if len(failed) else held
