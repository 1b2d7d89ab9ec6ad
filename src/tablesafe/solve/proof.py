"""Proofs in whole numbers: that a point lies in a polytope, and that nothing in it lies beyond.

A solver's floats are guesses. A vertex of a table has coordinates with a small common denominator, and so have the
prices that prove it optimal. Multiplied out, everything is an integer, and both claims are checked without a tolerance:

* the point satisfies every bound, so the form reaches its value there;
* by weak duality, prices `y` prove that no point exceeds `sum(max(r·lower, r·upper))` over all forms, where `r` is `y` for a
  row and `objective − rowsᵀ y` for a column.

When both numbers are equal, the optimum is known exactly. Every integer here stays below 2^62, or the proof fails.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tablesafe.equations import Floats, Integers, Mask
from tablesafe.solve.polytope import Polytope

ROOM = 2.0**62
LARGEST_DENOMINATOR = 1 << 20
LARGEST_PRICE = 2.0**50
_TRIED = 4096
_NEAR = 1e-6
_LISTED, _REDUCED = range(2)


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
    count: NDArray[np.int64]

    @classmethod
    def over(cls, polytope: Polytope) -> Proof:
        """Clean scratch space."""
        k, forms = polytope.columns, polytope.forms
        return cls(
            np.zeros(forms, np.int64), np.zeros(forms, np.int64), np.zeros(forms, np.bool_),
            np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k, np.bool_),
            np.zeros(k, np.int64), np.zeros(k), np.zeros(2, np.int64),
        )  # fmt: skip


@njit(cache=True)
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


@njit(cache=True)
def locate(p: Polytope, w: Proof, count: int) -> int:
    """Make the point given by `w.columns` and `w.values` exact, and list every form that is not zero there.

    Returns its common denominator, or 0 when there is no small one. Call `forget` before the next point.
    """
    k = len(p.column_start) - 1
    common = common_denominator(w.values, count)
    for i in range(count):
        x = np.rint(w.values[i] * common)
        if common == 0 or abs(x) * p.reach >= ROOM:
            return 0
        if x != 0.0:
            q = w.columns[i]
            _list(w, q, np.int64(x))
            for z in range(p.column_start[q], p.column_start[q + 1]):
                _list(w, k + p.column_row[z], np.int64(p.column_value[z]) * np.int64(x))
    return common


@njit(cache=True)
def _list(w: Proof, form: int, by: int) -> None:
    if not w.is_listed[form]:
        w.is_listed[form] = True
        w.listed[w.count[_LISTED]] = form
        w.count[_LISTED] += 1
    w.numerator[form] += by


@njit(cache=True)
def forget(w: Proof) -> None:
    """Clear the last point."""
    for i in range(w.count[_LISTED]):
        w.numerator[w.listed[i]] = 0
        w.is_listed[w.listed[i]] = False
    w.count[_LISTED] = 0


@njit(cache=True)
def inside(p: Polytope, w: Proof, denominator: int) -> bool:
    """Whether the located point satisfies every bound, exactly. What is not listed is zero, and the truth is inside."""
    for i in range(w.count[_LISTED]):
        form = w.listed[i]
        x = w.numerator[form]
        if p.upper[form] < np.inf and _beyond(x, p.upper[form], denominator):
            return False
        if p.lower[form] > -np.inf and _beyond(-x, -p.lower[form], denominator):
            return False
    return True


@njit(cache=True)
def _beyond(numerator: int, bound: float, denominator: int) -> bool:
    return abs(bound) * denominator >= ROOM or numerator > np.int64(bound) * denominator


@njit(cache=True)
def endless(p: Polytope, w: Proof, form: int, sign: int) -> bool:
    """Whether the located point is a direction without end that takes `sign * form` along."""
    for i in range(w.count[_LISTED]):
        f = w.listed[i]
        if (w.numerator[f] > 0 and p.upper[f] < np.inf) or (w.numerator[f] < 0 and p.lower[f] > -np.inf):
            return False
    return sign * w.numerator[form] > 0


@njit(cache=True)
def limit(p: Polytope, w: Proof, rows: Integers, prices: Floats, count: int, form: int, sign: int) -> tuple[int, int]:
    """What the prices of some rows prove: no point has `sign * form` above this fraction. Denominator 0: nothing."""
    common = common_denominator(prices, count)
    if common == 0:
        return 0, 0
    k, total, size = len(p.column_start) - 1, 0, 0.0
    if form < k:
        _reduce(w, form, sign * common)
    else:
        for z in range(p.row_start[form - k], p.row_start[form - k + 1]):
            _reduce(w, p.row_column[z], sign * common * np.int64(p.row_value[z]))
    for i in range(count):
        y = np.int64(np.rint(prices[i] * common))
        if abs(prices[i]) * common * p.reach >= LARGEST_PRICE:
            size = np.inf
        elif y != 0:
            for z in range(p.row_start[rows[i]], p.row_start[rows[i] + 1]):
                _reduce(w, p.row_column[z], -y * np.int64(p.row_value[z]))
            total, size = _add(p, k + rows[i], y, total, size)
    for i in range(w.count[_REDUCED]):
        q = w.reduced_list[i]
        if w.reduced[q] != 0:
            total, size = _add(p, q, w.reduced[q], total, size)
        w.reduced[q] = 0
        w.in_reduced[q] = False
    w.count[_REDUCED] = 0
    return (total, common) if size < ROOM else (0, 0)


@njit(cache=True)
def _reduce(w: Proof, column: int, by: int) -> None:
    if not w.in_reduced[column]:
        w.in_reduced[column] = True
        w.reduced_list[w.count[_REDUCED]] = column
        w.count[_REDUCED] += 1
    w.reduced[column] += by


@njit(cache=True)
def _add(p: Polytope, form: int, r: int, total: int, size: float) -> tuple[int, float]:
    """Add the most that `r * form` can be; an unbounded form makes the size infinite."""
    bound = p.upper[form] if r > 0 else p.lower[form]
    size += abs(r * bound)
    if size < ROOM:
        total += r * np.int64(bound)
    return total, size


@njit(cache=True)
def equal(a: int, b: int, c: int, d: int) -> bool:
    """Whether `a / b == c / d`, for positive denominators, without overflow."""
    return abs(float(a)) * d < ROOM and abs(float(c)) * b < ROOM and a * d == c * b
