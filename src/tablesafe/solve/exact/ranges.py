"""What is known so far about the range of every form of a polytope, and how each proved point or price adds to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.solve.exact import simplex as local
from tablesafe.solve.exact.proof import Proof, endless, equal, forget, inside, limit, locate
from tablesafe.solve.exact.simplex import OPTIMAL, UNBOUNDED, Search
from tablesafe.work.compiled import compiled

if TYPE_CHECKING:
    from tablesafe.solve.exact.polytope import Polytope

AGREE = 1e-8
"""How well a point and a limit must agree, relative to their size, where exact fractions are out of reach."""
UNIT = 1e-2
"""And never worse than this, in units of the data."""
_ACTIVE = 0
"""Where the state of the simplex keeps how many bounds are active."""


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

    def copy(self) -> Ranges:
        """The same, to be changed."""
        return Ranges(self.closed.copy(), self.numerator.copy(), self.denominator.copy())

    def put_sides(self, forms: Integers, part: Ranges, sides: Integers) -> None:
        """Write back what was found about some sides of a part over these forms."""
        at = 2 * forms[sides // 2] + sides % 2
        for whole, own in zip(self, part, strict=True):
            whole[at] = own[sides]


@compiled
def close(ranges: Ranges, side: int, numerator: int, denominator: int) -> None:
    """The end is known."""
    ranges.closed[side] = True
    ranges.numerator[side], ranges.denominator[side] = numerator, denominator


@compiled
def note(p: Polytope, w: Proof, ranges: Ranges, denominator: int) -> None:
    """A point was proved to lie inside: every form can go at least so far; what it takes to its bound, it closes."""
    closed, top, bottom, lower, upper = ranges.closed, ranges.numerator, ranges.denominator, p.lower, p.upper
    for i in range(w.sizes[0]):
        form = w.listed[i]
        x = w.numerator[form]
        side = 2 * form if x > 0 else 2 * form + 1
        bound = upper[form] if x > 0 else -lower[form]
        x = abs(x)
        if x == 0 or closed[side]:
            continue
        if bound < np.inf and x == int(bound) * denominator:
            closed[side], top[side], bottom[side] = True, int(bound), 1
        elif float(x) / denominator > top[side] / bottom[side]:
            top[side], bottom[side] = x, denominator


@compiled
def judge(
    p: Polytope, w: Proof, ranges: Ranges, count: int, rows: Integers, prices: Floats, priced: int, side: int
) -> None:
    """Learn what can be proved of a point, in `w.columns` and `w.values`, and of prices that should make it optimal.

    If `priced` is negative there are no prices.
    """
    denominator, exact = prove_point(p, w, count)
    if denominator > 0:
        note(p, w, ranges, denominator)
        if priced >= 0:
            settle(p, w, ranges, denominator, exact, rows, prices, priced, side)
    forget(w)


@compiled
def prove_point(p: Polytope, w: Proof, count: int) -> tuple[int, bool]:
    """Locate a point that is inside, exactly or nearly; returns its denominator (0 when both fail) and which it was."""
    exact = True
    for _ in range(2):
        denominator = locate(p, w, count, exact)
        if denominator > 0 and inside(p, w, denominator):
            return denominator, exact
        forget(w)
        exact = False
    return 0, False


@compiled
def settle(
    p: Polytope, w: Proof, ranges: Ranges, denominator: int, exact: bool,
    rows: Integers, prices: Floats, priced: int, side: int, strict: bool = False,
) -> None:  # fmt: skip
    """Close a side if prices prove that the point located goes as far as possible; `strict`: to the last digit."""
    if ranges.closed[side]:
        return
    form, sign = side // 2, 1 - 2 * (side % 2)
    x = sign * w.numerator[form]
    top, bottom = limit(p, w, rows, prices, priced, form, sign, True)
    if bottom > 0 and equal(x, denominator, top, bottom):
        close(ranges, side, x, denominator)
    elif strict:
        return
    elif not exact and _agree(x, denominator, top, bottom):
        close(ranges, side, top, bottom)
    else:
        top, bottom = limit(p, w, rows, prices, priced, form, sign, False)
        if _agree(x, denominator, top, bottom):
            close(ranges, side, top, bottom)


@compiled
def _agree(a: int, b: int, c: int, d: int) -> bool:
    """Whether `a / b`, which is reached, and `c / d`, which nothing exceeds, are as good as equal."""
    return d > 0 and c / d - a / b <= min(AGREE * max(1.0, abs(c / d)), UNIT)


@compiled
def run_away(p: Polytope, w: Proof, ranges: Ranges, count: int, side: int) -> None:
    """Try to prove that the direction in `w.columns`, `w.values` has no end; whatever it takes along is unbounded."""
    if locate(p, w, count, True) > 0 and endless(p, w, side // 2, 1 - 2 * (side % 2)):
        for i in range(w.sizes[0]):
            x = w.numerator[w.listed[i]]
            if x != 0:
                close(ranges, 2 * w.listed[i] + (1 if x < 0 else 0), 1, 0)
    forget(w)


@compiled
def sweep(
    p: Polytope,
    s: Search,
    w: Proof,
    ranges: Ranges,
    sides: Integers,
    first: int,
    stop: int,
    budget: Floats,
    patience: int,
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
        judge(p, w, ranges, count, s.active, s.dual, s.sizes[_ACTIVE] if ended == OPTIMAL else -1, side)
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
