"""Whole numbers of swaps: areas that are left with too few get them from pairs that are taken apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Integers
from tablesafe.methods.microdata.numbering import in_order, paired, rank_within
from tablesafe.methods.swap.pairing import NOBODY, Pairs
from tablesafe.methods.swap.search import Search

ROUNDS = 12
"""Rounds in vain before areas are left without the swaps that they lack."""
MOST_ROUNDS = 200
SPARE = 8
"""How many times as many units as an area lacks swaps may ask."""

Units = NDArray[np.intp]


def even_out(search: Search, pairs: Pairs, random: np.random.Generator) -> None:
    """Bring every area between its floor and its ceiling, as far as there are partners.

    Other areas may go up to their ceilings. Where one area lacks two, two like units of it take the partners of a like
    pair from elsewhere. Where it lacks one, its unit takes one partner, and the area of the other lacks one instead:
    there may be more to choose from.
    """
    fewest, vain, best = np.iinfo(np.int64).max, 0, pairs.partner.copy()
    for _ in range(MOST_ROUNDS):
        asking = _asking(search, pairs, random, _open_up(search, pairs), SPARE)
        for profile in range(len(search.profiles)):
            search.pair_all(pairs, random, asking, profile, search.usable)
        for classes in search.profiles:
            _two_by_two(search, pairs, random, classes)
        lacking = int(_open_up(search, pairs).sum())
        vain += 1
        if lacking < fewest:
            fewest, vain, best = lacking, 0, pairs.partner.copy()
        if not lacking or vain > ROUNDS:
            break
        for classes in search.profiles:
            _one_by_one(search, pairs, random, classes)
    pairs.partner[:] = best
    _open_up(search, pairs)


def _open_up(search: Search, pairs: Pairs) -> Integers:
    """Let every area go up to its ceiling; how many swaps does each lack to its floor?"""
    done = pairs.done()
    pairs.left[:] = np.maximum(search.targets.ceiling - done, 0)
    return np.asarray(np.maximum(search.targets.floor - done, 0))


def _asking(search: Search, pairs: Pairs, random: np.random.Generator, lacking: Integers, times: int) -> Units:
    """Units without a partner in areas that lack swaps, at random, no more than so many times what is lacking."""
    free = np.flatnonzero((lacking > 0)[search.area] & (pairs.partner == NOBODY))
    free = random.permutation(free)
    return free[rank_within(search.area[free]) < times * lacking[search.area[free]]]


def _movable(search: Search, pairs: Pairs, random: np.random.Generator, classes: Integers) -> tuple[Units, Units]:
    """Pairs of one class that may be taken apart, in random order."""
    x = np.flatnonzero(pairs.partner > np.arange(len(pairs.partner)))
    x = random.permutation(x)
    y = pairs.partner[x]
    fits = classes[x] == classes[y]
    turn = random.random(len(x)) < 0.5
    return np.where(turn, x, y)[fits], np.where(turn, y, x)[fits]


def _dealt(askers: Integers, offers: Integers) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Give each asker (by its class) an offer of its class, none twice: places among the askers and the offers."""
    order = in_order(offers)
    at = np.searchsorted(offers[order], askers) + rank_within(askers)
    here = at < len(offers)
    here[here] = offers[order[at[here]]] == askers[here]
    return np.flatnonzero(here), order[at[here]]


def _two_by_two(search: Search, pairs: Pairs, random: np.random.Generator, classes: Integers) -> None:
    """Two like units of an area that lacks two take the partners of a pair that lives elsewhere."""
    lacking = _open_up(search, pairs)
    asking = _asking(search, pairs, random, np.where(lacking > 1, lacking, 0), 1)
    if not asking.size:
        return
    kind = paired(classes[asking], search.area[asking])
    asking = asking[in_order(kind)]
    kind = np.sort(kind)
    first = np.flatnonzero((rank_within(kind)[:-1] % 2 == 0) & (kind[:-1] == kind[1:]))
    a, b = asking[first], asking[first + 1]
    x, y = _movable(search, pairs, random, classes)
    elsewhere = (lacking[search.area[x]] == 0) & (lacking[search.area[y]] == 0)
    x, y = x[elsewhere], y[elsewhere]
    mixed = random.permutation(len(a))
    a, b = a[mixed], b[mixed]
    who, what = _dealt(classes[a], classes[x])
    a, b, x, y = a[who], b[who], x[what], y[what]
    fits = search.apart(a, x) & search.apart(b, y)
    _join(pairs, a[fits], x[fits])
    _join(pairs, b[fits], y[fits])


def _one_by_one(search: Search, pairs: Pairs, random: np.random.Generator, classes: Integers) -> None:
    """A unit of an area that lacks swaps takes the partner of a like unit elsewhere, whose area then lacks one."""
    asking = _asking(search, pairs, random, _open_up(search, pairs), 1)
    x, y = _movable(search, pairs, random, classes)
    spare = search.risky[y] == len(search.levels)  # whoever is at risk keeps its swap
    x, y = x[spare], y[spare]
    who, what = _dealt(classes[asking], classes[x])
    u, x, y = asking[who], x[what], y[what]
    fits = search.apart(u, x)
    pairs.partner[y[fits]] = NOBODY
    _join(pairs, u[fits], x[fits])


def _join(pairs: Pairs, one: Units, other: Units) -> None:
    pairs.partner[one], pairs.partner[other] = other, one
