"""What is known so far about the range of every form of a polytope, and how each proved point or price adds to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from tablesafe.equations import Floats, Integers, Mask
from tablesafe.solve import local
from tablesafe.solve.local import OPTIMAL, UNBOUNDED, Search
from tablesafe.solve.polytope import Polytope
from tablesafe.solve.proof import Proof, endless, equal, forget, inside, limit, locate

_ACTIVE = 0


class Ranges(NamedTuple):
    """Per side of each form (side 2f is the upper end of form f, 2f + 1 the lower): as an exact fraction.

    Lower ends are held with their sign turned, so that every side asks "how far up?".
    """

    closed: Mask
    """Whether the end is known exactly."""
    numerator: Integers
    """The furthest point seen; where closed, the end itself."""
    denominator: Integers
    """0 where the form is unbounded."""

    @classmethod
    def of(cls, polytope: Polytope) -> Ranges:
        """What the truth alone shows: it closes every side that has no room."""
        sides = 2 * polytope.forms
        bound = np.column_stack([polytope.upper, -polytope.lower]).ravel()
        return cls(bound == 0.0, np.zeros(sides, np.int64), np.ones(sides, np.int64))

    def take(self, forms: Integers) -> Ranges:
        """The ranges of some forms, as a copy."""
        sides = np.column_stack([2 * forms, 2 * forms + 1]).ravel()
        return Ranges(self.closed[sides], self.numerator[sides], self.denominator[sides])

    def put(self, forms: Integers, part: Ranges) -> None:
        """Write back what was found about some forms."""
        sides = np.column_stack([2 * forms, 2 * forms + 1]).ravel()
        for whole, own in zip(self, part, strict=True):
            whole[sides] = own


@njit(cache=True)
def room(p: Polytope, side: int) -> float:
    """The bound on a side, turned so that it asks "how far up?"."""
    return p.upper[side // 2] if side % 2 == 0 else -p.lower[side // 2]


@njit(cache=True)
def close(ranges: Ranges, side: int, numerator: int, denominator: int) -> None:
    """The end is known."""
    ranges.closed[side] = True
    ranges.numerator[side], ranges.denominator[side] = numerator, denominator


@njit(cache=True)
def note(p: Polytope, w: Proof, ranges: Ranges, denominator: int) -> None:
    """A point was proved to lie inside: it shows how far every form can go at least, and closes what it takes to its bound."""
    for i in range(w.count[0]):
        form = w.listed[i]
        x = w.numerator[form]
        side = 2 * form if x > 0 else 2 * form + 1
        x = abs(x)
        if x == 0 or ranges.closed[side]:
            continue
        bound = room(p, side)
        if bound < np.inf and x == np.int64(bound) * denominator:
            close(ranges, side, np.int64(bound), 1)
        elif float(x) / denominator > ranges.numerator[side] / ranges.denominator[side]:
            ranges.numerator[side], ranges.denominator[side] = x, denominator


@njit(cache=True)
def judge(p: Polytope, w: Proof, ranges: Ranges, count: int, rows: Integers, prices: Floats, priced: int, side: int) -> bool:
    """Try to prove that the point in `w.columns`, `w.values` is inside and that the prices let nothing lie beyond it.

    Returns whether the point was proved to be inside. Closes the side when the prices are proved too.
    """
    form, sign = side // 2, 1 - 2 * (side % 2)
    denominator = locate(p, w, count)
    good = denominator > 0 and inside(p, w, denominator)
    if good:
        note(p, w, ranges, denominator)
        if not ranges.closed[side]:
            top, bottom = limit(p, w, rows, prices, priced, form, sign)
            x = sign * w.numerator[form]
            if bottom > 0 and equal(x, denominator, top, bottom):
                close(ranges, side, x, denominator)
    forget(w)
    return good


@njit(cache=True)
def run_away(p: Polytope, w: Proof, ranges: Ranges, count: int, side: int) -> None:
    """Try to prove that the direction in `w.columns`, `w.values` has no end; whatever it takes along is unbounded."""
    if locate(p, w, count) > 0 and endless(p, w, side // 2, 1 - 2 * (side % 2)):
        for i in range(w.count[0]):
            x = w.numerator[w.listed[i]]
            if x != 0:
                close(ranges, 2 * w.listed[i] + (1 if x < 0 else 0), 1, 0)
    forget(w)


@njit(cache=True)
def sweep(
    p: Polytope, s: Search, w: Proof, ranges: Ranges, sides: Integers, first: int, stop: int, budget: Floats, patience: int
) -> int:
    """Find the ends of some sides, each from the truth, skipping what others have closed already.

    Stops early, and returns where, when of the last `patience` searches three in four ran out of their budget.
    """
    tried, lost = 0, 0
    for i in range(first, stop):
        side = sides[i]
        if ranges.closed[side]:
            continue
        form, sign = side // 2, 1.0 - 2.0 * (side % 2)
        ended = local.maximise(p, s, form, sign, np.inf, budget[i])
        count = local.here(p, s, w.columns, w.values)
        judge(p, w, ranges, count, s.active, s.dual, s.count[_ACTIVE] if ended == OPTIMAL else 0, side)
        if ended == UNBOUNDED:
            run_away(p, w, ranges, local.ray(s, w.columns, w.values), side)
        local.clear(p, s)
        tried += 1
        lost += not ranges.closed[side]
        if tried == patience:
            if 4 * lost > 3 * tried:
                return i + 1
            tried, lost = 0, 0
    return stop
