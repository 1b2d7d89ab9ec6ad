"""What is tried, in which order, with how much of the time."""

from __future__ import annotations

from tablesafe.methods.suppress.optimal import affordable, optimise
from tablesafe.methods.suppress.restricted import combine
from tablesafe.methods.suppress.search import Search
from tablesafe.methods.suppress.sequential import clean_up

MUCH_BETTER = 0.6
"""Share of the cost of a first pattern below which one that was made in the other way is taken instead."""
CLEANING = 0.5
"""Share of the time for publishing again what is not needed."""
AT_FIRST = 2
"""Rounds of all targets that leave time enough for a first pattern by programs."""
EASY = 10
"""Rounds of all targets that leave time enough to go for a proof at once, without a better pattern to start from."""
QUICK = 1_500
"""Tries in vain after which improvement by flows gives up: they take a fifth of the time of linear programs."""


def first_pattern(search: Search) -> None:
    """One sensitive cell after another: by boxes, and, where there is the time, by programs; then second thoughts."""
    boxes = None if search.by_flows else search.build_of_boxes()
    if boxes is not None:
        search.keep(search.instance.forced | boxes.used, boxes.cost)
    if boxes is None or affordable(search, AT_FIRST):
        _by_programs(search)
    else:
        search.settle(boxes)
        search.offer(search.witnesses_of(boxes))


def _by_programs(search: Search) -> None:
    """In two ways; then publish again what is not needed."""
    sparing = None if search.by_flows else search.build_sparing()
    if sparing is not None and sparing.cost < search.best_cost:
        search.keep(search.instance.forced | sparing.used, sparing.cost)
    witnesses = search.build()
    if sparing is not None and sparing.cost < MUCH_BETTER * witnesses.cost:
        search.reconsidered(sparing)
        witnesses = search.witnesses_of(sparing)
    search.offer(witnesses)
    if len(witnesses.complementary):
        clean_up(witnesses, search.until(search.left * CLEANING))
        search.offer(witnesses)
    else:
        search.prove(0.0)


def find(search: Search, *, prove: bool, insist: bool) -> None:
    """A good pattern, better the more time there is; with `prove` also a bound on every pattern.

    A bound takes one linear program per sensitive cell and round: where that is too much for the time, it is left out,
    unless the user insists.
    """
    targets = len(search.instance.level)
    patience = 160 + 2 * targets if not search.by_flows else max(160 + 2 * targets, min(QUICK, 160 + 16 * targets))
    first_pattern(search)
    if search.closed():
        return
    soon = prove and affordable(search, EASY)
    if not soon:
        combine(search, seconds=search.left * (0.7 if prove else 0.95), patience=patience // 8)
    if prove:
        optimise(search, patience=patience // 8, insist=insist, soon=soon or insist)
    while not (search.late() or search.closed()):
        before = search.best_cost
        search.polish(search.build(search.best), patience=patience)
        combine(search, seconds=search.left / 2, patience=patience // 8)
        if search.best_cost >= before * (1 - 1e-9):
            return
