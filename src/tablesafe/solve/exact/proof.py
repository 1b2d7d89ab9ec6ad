"""Proofs in whole numbers: that a point lies in a polytope, and that nothing in it lies beyond.

A solver's floats are guesses. A vertex of a table has coordinates with a small common denominator, and so have the
prices that prove it optimal. Multiplied out, everything is an integer, and both claims are checked without a tolerance:

* the point satisfies every bound, so the form reaches its value there;
* by weak duality, prices `y` prove that no point exceeds `sum(max(r·lower, r·upper))` over all forms, where `r` is `y`
  for a row and `objective − rowsᵀ y` for a column.

When both numbers are equal, the optimum is known exactly. A vertex of a large part may have a denominator too large for
that. Then the point is drawn towards the truth by a hair and put on a fine grid, and so are the prices: both proofs
hold as before, and the optimum is known to lie between two numbers that agree to eight digits. Every integer stays
below 2^62, or the proof fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.solve.exact.elimination import ROOM
from tablesafe.work.compiled import compiled

if TYPE_CHECKING:
    from tablesafe.solve.exact.polytope import Polytope

LARGEST_DENOMINATOR, LARGEST_PRICE = 1 << 20, 2.0**50
"""Of the fractions in a proof: with these, sums of products stay within 64 bits."""
FINEST = 2.0**40
"""The finest grid."""
HAIR = 1e-9
"""The least share of the way that an inexact point is drawn towards the truth."""
_TRIED, _NEAR = 4096, 1e-6
"""Denominators that are tried for one number, and how near to a whole number it must then be."""
_LISTED = 0
"""Where the scratch keeps how many entries are listed."""


class Proof(NamedTuple):
    """Scratch space for proofs; `numerator` holds the last point, over the forms in `listed`."""

    numerator: Integers
    listed: Integers
    is_listed: Mask
    reduced: Integers
    reduced_list: Integers
    in_reduced: Mask
    columns: Integers
    """For the caller: which columns it wants to talk about, and their values."""
    values: Floats
    sizes: Integers

    @classmethod
    def over(cls, polytope: Polytope) -> Proof:
        """Clean scratch space."""
        k, forms = polytope.columns, polytope.forms
        return cls(
            np.zeros(forms, np.int64), np.zeros(forms, np.int64), np.zeros(forms, np.bool_),
            np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k, np.bool_),
            np.zeros(k, np.int64), np.zeros(k), np.zeros(1, np.int64),
        )  # fmt: skip


@compiled
def common_denominator(values: Floats, count: int) -> int:
    """A number that makes all the values whole, as far as floats can tell; 0 when there is no small one."""
    common = 1
    for i in range(count):
        x = values[i] * common
        near = _NEAR * max(1.0, abs(x) * 1e-7)
        if abs(x - np.rint(x)) <= near:
            continue
        factor = 0
        for q in range(2, _TRIED):
            if abs(x * q - np.rint(x * q)) <= near:
                factor = q
                break
        if factor == 0 or common * factor > LARGEST_DENOMINATOR:
            return 0
        common *= factor
    return common


@compiled
def grid(p: Polytope, size: float) -> int:
    """A power of two by which numbers up to `size` can be multiplied and added up along a row."""
    return int(2.0 ** np.floor(np.log2(min(FINEST, ROOM / 4.0 / max(1.0, size * p.reach)))))


@compiled
def locate(p: Polytope, w: Proof, count: int, exact: bool) -> int:
    """Put the point given by `w.columns` and `w.values` on a grid, and list every form that is not zero there.

    The grid is that of its common denominator, or, if not `exact`, a fine one, with the point drawn towards the truth.
    Returns the denominator, or 0 when there is no small one. Call `forget` before the next point.
    """
    common, share = common_denominator(w.values, count), 1.0
    if not exact:
        largest = 0.0
        for i in range(count):
            largest = max(largest, abs(w.values[i]))
        common = grid(p, largest)
        if common == 0:
            return 0
        share = 1.0 - max(HAIR, 2.0 * p.reach / common)
    numbers = np.empty(count, np.int64)
    for i in range(count):
        x = np.rint(w.values[i] * share * common)
        if common == 0 or abs(x) * p.reach >= ROOM:
            return 0
        numbers[i] = int(x)
    put(p, w, numbers, count)
    return common


@compiled
def put(p: Polytope, w: Proof, numbers: Integers, count: int) -> bool:
    """List every form that is not zero at the point with these numbers in `w.columns`; false when they are too large.

    Call `forget` before the next point.
    """
    k, n = len(p.column_start) - 1, 0
    numerator, listed, is_listed = w.numerator, w.listed, w.is_listed
    for i in range(count):
        if abs(float(numbers[i])) * p.reach >= ROOM:
            w.sizes[_LISTED] = n
            return False
        if numbers[i] != 0:
            q = w.columns[i]
            n = _collect(numerator, listed, is_listed, n, q, numbers[i])
            for z in range(p.column_start[q], p.column_start[q + 1]):
                by = int(p.column_value[z]) * numbers[i]
                n = _collect(numerator, listed, is_listed, n, k + p.column_row[z], by)
    w.sizes[_LISTED] = n
    return True


@compiled
def _collect(numbers: Integers, listed: Integers, is_listed: Mask, n: int, at: int, by: int) -> int:
    """Add to one number; returns how many are listed. Takes arrays, not the scratch space: it must be inlined."""
    if not is_listed[at]:
        is_listed[at] = True
        listed[n] = at
        n += 1
    numbers[at] += by
    return n


@compiled
def forget(w: Proof) -> None:
    """Clear the last point."""
    for i in range(w.sizes[_LISTED]):
        w.numerator[w.listed[i]] = 0
        w.is_listed[w.listed[i]] = False
    w.sizes[_LISTED] = 0


@compiled
def inside(p: Polytope, w: Proof, denominator: int) -> bool:
    """Whether the located point satisfies every bound, exactly. What is not listed is zero, and the truth is inside."""
    for i in range(w.sizes[_LISTED]):
        form = w.listed[i]
        x = w.numerator[form]
        if p.upper[form] < np.inf and _beyond(x, p.upper[form], denominator):
            return False
        if p.lower[form] > -np.inf and _beyond(-x, -p.lower[form], denominator):
            return False
    return True


@compiled
def _beyond(numerator: int, bound: float, denominator: int) -> bool:
    return abs(bound) * denominator >= ROOM or numerator > int(bound) * denominator


@compiled
def endless(p: Polytope, w: Proof, form: int, sign: int) -> bool:
    """Whether the located point is a direction without end that takes `sign * form` along."""
    for i in range(w.sizes[_LISTED]):
        f = w.listed[i]
        if (w.numerator[f] > 0 and p.upper[f] < np.inf) or (w.numerator[f] < 0 and p.lower[f] > -np.inf):
            return False
    return bool(sign * w.numerator[form] > 0)


@compiled
def limit(
    p: Polytope, w: Proof, rows: Integers, prices: Floats, count: int, form: int, sign: int, exact: bool
) -> tuple[int, int]:
    """What the prices of some rows prove: no point has `sign * form` above this fraction. Denominator 0: nothing.

    The prices are taken at their common denominator, or, if not `exact`, on a fine grid.
    """
    common = common_denominator(prices, count) if exact else grid(p, p.extent)
    if common == 0:
        return 0, 0
    k, total, size, n = len(p.column_start) - 1, 0, 0.0, 0
    reduced, listed, is_listed = w.reduced, w.reduced_list, w.in_reduced
    begin, end = (0, 1) if form < k else (p.row_start[form - k], p.row_start[form - k + 1])
    for z in range(begin, end):
        column, cost = (form, sign) if form < k else (p.row_column[z], sign * int(p.row_value[z]))
        n = _collect(reduced, listed, is_listed, n, column, cost * common)
    for i in range(count):
        y = int(np.rint(prices[i] * common))
        if abs(prices[i]) * common * p.reach >= LARGEST_PRICE:
            size = np.inf
        elif y != 0:
            for z in range(p.row_start[rows[i]], p.row_start[rows[i] + 1]):
                n = _collect(reduced, listed, is_listed, n, p.row_column[z], -y * int(p.row_value[z]))
            total, size = _add(p.lower, p.upper, k + rows[i], y, total, size)
    for i in range(n):
        q = listed[i]
        if reduced[q] != 0:
            total, size = _add(p.lower, p.upper, int(q), int(reduced[q]), total, size)
        reduced[q], is_listed[q] = 0, False
    return (total, common) if size < ROOM else (0, 0)


@compiled
def _add(lower: Floats, upper: Floats, form: int, r: int, total: int, size: float) -> tuple[int, float]:
    """Add the most that `r * form` can be; an unbounded form makes the size infinite."""
    bound = upper[form] if r > 0 else lower[form]
    size += abs(r * bound)
    if size < ROOM:
        total += r * int(bound)
    return total, size


@compiled
def equal(a: int, b: int, c: int, d: int) -> bool:
    """Whether `a / b == c / d`, for positive denominators, without overflow."""
    return abs(float(a)) * d < ROOM and abs(float(c)) * b < ROOM and a * d == c * b
