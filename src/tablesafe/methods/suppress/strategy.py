"""What is tried, in which order, with how much of the time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import SolverFailure
from tablesafe.methods.suppress.branch_and_cut.exact import BranchAndCut
from tablesafe.methods.suppress.construct_merge_solve import combine
from tablesafe.methods.suppress.incumbent import Stop
from tablesafe.methods.suppress.large_neighbourhood_search import clean_up
from tablesafe.methods.suppress.many_targets import by_many_at_once
from tablesafe.methods.suppress.regions import improved_in_regions
from tablesafe.methods.suppress.search import Search, Unfinished

CLEANING = 0.5
"""Share of the time for publishing again what is not needed."""
AT_FIRST = 4
"""Rounds of all targets for which there must be time, or a first pattern is made of boxes alone."""
AT_LEAST = 0.05
"""Share of the targets that may have no box where a pattern of boxes is only there to fall back on (h_50k: 2% have
none; it is there after 3 s, and one of programs after 25)."""
SAMPLED = 16
"""Targets that show how long a round of all of them takes."""
SOME, EASILY = 3, 10
"""Targets that show it where there is so many times the time that is needed."""
PROVING = 0.6
"""Share of the time left that goes to the bound before the pattern alone is improved, and after that."""
IN_REGIONS = 0.5
"""Share of the time left for choosing the pattern anew region by region, where the whole is too much."""
NEARLY_CLOSED = 0.98
"""Share of the cost from which on the bound keeps the time: there is little to gain but the proof (h_10k)."""
CLOSE, A_MOMENT = 0.9, 0.3
"""Share of the cost below which a bound is far from it: then a better pattern comes first, for as long as the bound
took or for some seconds, since a poor one is what makes proofs slow. A bound that took less has as long again first: in
small tables it is proved by then."""
AT_ONCE, AT_ONCE_S = 0.1, 1.2
"""Share of the time for a proof, or a pattern that comes of it, before a first one is made in any case, and safe; and
the most that this takes: with limits of 18 s and more the search then goes the same way."""
MANY = 400
"""Targets from which on a first pattern is made safe before it is improved."""
QUICK = 1_500
"""Tries in vain after which improvement by flows gives up: they take a fifth of the time of linear programs."""


def first_pattern(search: Search) -> None:
    """One sensitive cell after another: by boxes, and, where there is the time, by programs; then second thoughts."""
    boxes = None if search.by_flows else search.build_of_boxes()
    quick = search.build_of_boxes(rarely=AT_LEAST) if boxes is None and not search.by_flows else boxes
    if quick is not None:
        search.keep(quick.pattern.withheld, quick.pattern.cost)
    affordable = search.by_flows or _affordable(search)
    if boxes is not None and not affordable:
        search.settle(boxes)
        search.offer(boxes, tried=False)
    elif affordable or quick is not None or search.group is not None or not _by_many_at_once(search):
        _by_programs(search)


def _by_many_at_once(search: Search, *, once: bool = False) -> bool:
    """Patterns of programs that move many targets at once, which have some time even if there is none; if there are.

    The first is enough where a relaxation follows: it makes better ones of it sooner.
    """
    found = False
    for pattern, moves in by_many_at_once(search.instance, search.at_least(), search.random):
        search.offer_pattern(pattern, search.instance.pattern_cost(pattern))
        search.moves, search.moved, search.slow, found = moves, pattern, True, True
        if once:
            break
    return found


def _affordable(search: Search) -> bool:
    """Whether some rounds of linear programs for all targets fit into the time."""
    work, nobody = search.solver.work, search.nobody()
    targets = len(search.instance.level)
    before, asked = work.spent, 0
    for target in np.linspace(0, targets - 1, min(targets, SAMPLED)).astype(np.int64).tolist():
        nobody.cheapest(target, 1)
        asked += 1
        each = (work.spent - before) / asked
        if asked >= SOME and each * targets * AT_FIRST * EASILY <= search.left:
            return True
        if each * asked * targets * AT_FIRST > 2 * search.left * SAMPLED:
            break
    return (work.spent - before) * targets / max(asked, 1) * AT_FIRST <= search.left


def _by_programs(search: Search) -> None:
    """Target by target; then publish again what is not needed."""
    engine = search.build(grace=True)
    search.offer(engine)
    if len(engine.pattern.complementary):
        clean_up(engine, search.until(search.left * CLEANING))
        search.offer(engine)
    else:
        search.prove(0.0)


Secure = Callable[[Mask], object]
"""Makes a pattern safe, and keeps it."""


def find(search: Search, *, prove: bool, insist: bool, secure: Secure) -> None:
    """A good pattern, better the more time there is; with `prove` also a bound on every pattern.

    Branch and cut comes first where a bound is wanted: it ends when the bound is reached. Where it takes long, it and
    the search for better patterns take turns, each with what the other has found; that search knows of no cells that
    are withheld together. Where that takes long, a first pattern is made safe before it is improved, to fall back on.
    """
    if not prove:
        first_pattern(search)
        if not search.settled():
            _secured(search, secure)
            _improved(search, None, insist=False)
        return
    exact = search.exact = BranchAndCut(search)
    together = search.group is not None
    if not _proved(search, exact, insist=insist or together, secure=secure) and not together:
        _improved(search, exact, insist=insist)


def go_on(search: Search, *, insist: bool) -> None:
    """Go on where a search has ended for want of time: there is more of it than was thought."""
    if search.group is None:
        _improved(search, search.exact, insist=insist)
    elif search.exact is not None:
        search.exact.advance(search.late)


def _secured(search: Search, secure: Secure) -> None:
    """Make the best pattern so far safe, where there are so many targets that it takes a while."""
    if len(search.instance.level) > MANY and search.group is None and search.best is not None and not search.late():
        secure(search.best)


def _proved(search: Search, exact: BranchAndCut, *, insist: bool, secure: Secure) -> bool:
    """Branch and cut, and a pattern of boxes where that has none at once; whether all is done.

    Boxes protect what the sensitive cells do not protect among themselves. What is proved at once needs no pattern to
    fall back on.
    """
    together = search.group is not None
    begin, stop = search.budget.spent, _enough(search, insist)
    try:
        exact.cut(search.until(min(search.left * AT_ONCE, AT_ONCE_S)))
        cells = exact.begin(stop)
        if search.best is None and len(cells) and not search.late():
            boxes = search.build_of_boxes(cells)
            if boxes is not None:
                exact.offer(boxes.pattern.withheld)
            elif not (together or search.by_flows or _affordable(search)):
                quickest = search.of_hypercubes(cells)
                if quickest is None:
                    _by_many_at_once(search, once=True)
                else:
                    exact.offer(quickest)
        early = search.best is not None
        if not search.settled():
            _secured(search, secure)
        exact.cut(stop)
        if not (early or search.settled()):
            _secured(search, secure)
        spent = search.budget.spent - begin
        if _far(search) and spent < A_MOMENT:
            exact.advance(_earlier(stop, search.until(spent)))
        if _far(search):
            spent = max(spent, A_MOMENT)
            _polished(search, exact.shares, spent / 2)
            if not search.settled():
                combine(search, seconds=spent / 2)
        if not together and exact.in_one_piece and not (search.settled() or stop()):
            improved_in_regions(search, exact.shares, seconds=search.left * IN_REGIONS)
        exact.advance(stop)
    except SolverFailure:
        if search.best is None:
            first_pattern(search)
        raise
    if search.best is None:
        first_pattern(search)
    return search.settled() or search.late()


def _improved(search: Search, exact: BranchAndCut | None, *, insist: bool) -> None:
    """Improve the pattern, and its bound, in turns, until nothing helps or the time is over."""
    while not (search.late() or search.settled()):
        before = search.best_cost, search.bound
        shares = None if exact is None else exact.shares
        better = improved_in_regions(search, shares, seconds=search.left * IN_REGIONS)
        if not better:
            _polished(search, search.best, search.left / 2)
        combine(search, seconds=search.left / 2)
        if exact is not None and not search.settled():
            exact.advance(_enough(search, insist))
        if exact is None and search.best_cost >= before[0] * (1 - 1e-9):
            return


def _polished(search: Search, guide: Floats | Mask | None, seconds: float) -> None:
    """Improve a pattern that is made anew after a guide, where there is time for that."""
    if not search.slow:
        try:
            search.polish(search.build(guide), patience=_patience(search), seconds=seconds)
        except Unfinished:
            search.slow = True


def _far(search: Search) -> bool:
    """Whether a better pattern is worth more than a better bound."""
    return search.best is not None and search.group is None and search.bound < CLOSE * search.best_cost


def _enough(search: Search, insist: bool) -> Stop:
    """When the bound has had its share of the time: with nearly nothing left to gain, or while choices are made part by
    part, it has all of it."""
    share = search.until(search.left * PROVING)

    def promising() -> bool:
        return search.exact is not None and search.exact.choosing and search.bound >= CLOSE * search.best_cost

    def enough() -> bool:
        near = insist or search.bound >= NEARLY_CLOSED * search.best_cost or promising()
        return search.late() or search.settled() or (share() and not near)

    return enough


def _earlier(one: Stop, other: Stop) -> Stop:
    """A clock that rings when one of two does."""
    return lambda: one() or other()


def _patience(search: Search) -> int:
    """Tries in vain after which improvement gives up."""
    targets = len(search.instance.level)
    return 160 + 2 * targets if not search.by_flows else max(160 + 2 * targets, min(QUICK, 160 + 16 * targets))
