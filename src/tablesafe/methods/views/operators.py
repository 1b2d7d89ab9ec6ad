"""What two views of a cube say about a third: the matrix operators, in arrays, with or without withheld entries.

In slice j of two views with rows `a[j]` and `b[j]` the hidden part is a table with these row and column sums, so its
entry (i, k) is at most min(a[j,i], b[j,k]) and at least a[j,i] + b[j,k] − total[j], and both are reached (Roehrig,
Padman, Krishnan & Duncan, the operators for cell maxima and minima). Slices do not restrict each other, so the bounds
of a sum over slices are the sums of the bounds.

A withheld entry is an interval instead of a number. Let A[i] in [l, u] and B[k] in [l', u'] and the total in [s, S],
where [s, S] is what both sides, and a published total, allow. Then the entry is at most
min(u[i], S − Σ l[others], u'[k], S − Σ l'[others]); and at least the smallest, over totals t in [s, S], of
max(0, l[i] + l'[k] − t, l'[k] − Σ u[others], l[i] − Σ u'[others], t − Σ u[others] − Σ u'[others]).
Given t, the two sides can be chosen each for itself, which is why these bounds are reached as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask

CHUNK = 1 << 20
"""Entries of slices that are worked on at once: enough to be fast, few enough to stay in memory."""


@dataclass(frozen=True, eq=False)
class Interval:
    """What the public knows about the entries of a view: `lower <= entry <= upper`."""

    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)

    @classmethod
    def of(cls, values: Floats, withheld: Mask | None = None) -> Self:
        """Published entries are known, withheld ones only not negative."""
        values = np.asarray(values, dtype=np.float64)
        if withheld is None:
            return cls(values, values)
        return cls(np.where(withheld, 0.0, values), np.where(withheld, np.inf, values))

    def collapsed(self, group: Integers, count: int) -> Self:
        """Columns added up by group: what is known about the sums."""
        lower, upper = np.zeros((len(self.lower), count)), np.zeros((len(self.lower), count))
        np.add.at(lower.T, group, self.lower.T)
        np.add.at(upper.T, group, self.upper.T)
        return type(self)(lower, upper)


def cell_maxima(a: Floats, b: Floats) -> Floats:
    """Σⱼ min(a[j,i], b[j,k]) for every hidden cell (i, k)."""
    return _published(a, b)[1]


def cell_minima(a: Floats, b: Floats) -> Floats:
    """Σⱼ max(a[j,i] − Σ_{p≠k} b[j,p], 0) for every hidden cell (i, k)."""
    return _published(a, b)[0]


def _published(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    one = np.zeros(len(a), dtype=np.int64)
    lower, upper = sums_of_slices(Interval.of(a), Interval.of(b), one, 1)
    return lower[0], upper[0]


def sums_of_slices(
    a: Interval, b: Interval, group: Integers, count: int, total: Interval | None = None
) -> tuple[Floats, Floats]:
    """The bounds of every hidden cell (group, i, k): sums over the slices of the group.

    `total` is what is published about the total of each slice, beyond what the two views say themselves.
    """
    slices, rows, columns = len(a.lower), a.lower.shape[1], b.lower.shape[1]
    lower, upper = np.zeros((count, rows, columns)), np.zeros((count, rows, columns))
    known = bool((a.lower == a.upper).all() and (b.lower == b.upper).all())
    step = max(1, CHUNK // max(1, rows * columns))
    for first in range(0, slices, step):
        span = slice(first, first + step)
        if known:
            low, high = _known_slices(a.lower[span], b.lower[span])
        else:
            low, high = slice_bounds(
                Interval(a.lower[span], a.upper[span]),
                Interval(b.lower[span], b.upper[span]),
                None if total is None else Interval(total.lower[span], total.upper[span]),
            )
        _add(lower, low, group[span])
        _add(upper, high, group[span])
    return lower, upper


def _add(sums: Floats, parts: Floats, group: Integers) -> None:
    if len(sums) == 1:
        sums[0] += parts.sum(axis=0)
    else:
        np.add.at(sums, group, parts)


def _known_slices(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    upper = np.minimum(a[:, :, None], b[:, None, :])
    rest = b - b.sum(axis=1, keepdims=True)
    lower = a[:, :, None] + rest[:, None, :]
    np.maximum(lower, 0.0, out=lower)
    return lower, upper


def slice_bounds(a: Interval, b: Interval, total: Interval | None = None) -> tuple[Floats, Floats]:
    """The bounds of every entry (j, i, k) of the slices, when the entries of the views are intervals."""
    least = np.maximum(a.lower.sum(axis=1), b.lower.sum(axis=1))
    most = np.minimum(a.upper.sum(axis=1), b.upper.sum(axis=1))
    if total is not None:
        least, most = np.maximum(least, total.lower), np.minimum(most, total.upper)
    upper = np.minimum(_highest(a, most)[:, :, None], _highest(b, most)[:, None, :])
    return _lowest_entries(a, b, least, most), upper


def _highest(side: Interval, most: Floats) -> Floats:
    """The most an entry of a view can be, given the others' least and the largest total."""
    others = side.lower.sum(axis=1, keepdims=True) - side.lower
    return np.asarray(np.minimum(side.upper, most[:, None] - others), np.float64)


def _others(upper: Floats) -> Floats:
    """The sum of the other entries of each row, infinite when one of them is."""
    endless = np.isinf(upper)
    finite = np.where(endless, 0.0, upper)
    count = endless.sum(axis=1, keepdims=True) - endless
    return np.where(count > 0, np.inf, finite.sum(axis=1, keepdims=True) - finite)


def _lowest_entries(a: Interval, b: Interval, least: Floats, most: Floats) -> Floats:
    """The smallest over t in [least, most] of the largest of: falling − t, two constants, t − rising, and 0."""
    beyond_a, beyond_b = _others(a.upper)[:, :, None], _others(b.upper)[:, None, :]
    low_a, low_b = a.lower[:, :, None], b.lower[:, None, :]
    falling = low_a + low_b
    rising = beyond_a + beyond_b
    with np.errstate(invalid="ignore"):
        best = np.clip((falling + rising) / 2, least[:, None, None], most[:, None, None])
    endless = np.isinf(best)  # then the total has no end either, and what falls with it falls below zero
    best = np.where(endless, 0.0, best)
    lowest = np.maximum(np.where(endless, 0.0, falling - best), np.where(endless, 0.0, best - rising))
    np.maximum(lowest, low_b - beyond_a, out=lowest)
    np.maximum(lowest, low_a - beyond_b, out=lowest)
    return np.maximum(lowest, 0.0)
