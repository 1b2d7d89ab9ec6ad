"""An attacker that shares no code with tablesafe: slow, simple, and independent.

`naive` solves a fresh linear program for every bound. `exact` needs no solver at all: it goes through all vertices of
the polytope in fractions, so it is right by construction, for a handful of cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import inf, isinf

import numpy as np
from scipy.optimize import linprog

Matrix = Sequence[Sequence[int]]


def naive(matrix: np.ndarray, rhs: np.ndarray, lower: np.ndarray, upper: np.ndarray, cell: int) -> tuple[float, float]:
    """The interval of one cell, by two linear programs from scratch."""
    ends = []
    for sign in (1.0, -1.0):
        cost = np.zeros(len(lower))
        cost[cell] = sign
        found = linprog(cost, A_eq=matrix, b_eq=rhs, bounds=np.column_stack([lower, upper]), method="highs")
        if found.status == 3:
            ends.append(-sign * inf)
        else:
            assert found.status == 0, found.message
            ends.append(float(found.x[cell]))
    return ends[0], ends[1]


def exact(
    matrix: Matrix, rhs: Sequence[int], lower: Sequence[float], upper: Sequence[float]
) -> list[tuple[Fraction | float, Fraction | float]]:
    """The interval of every cell, from all vertices.

    An infinite bound is replaced by two very large ones in turn; what grows with them has no end.
    """
    near, far = (_box(matrix, rhs, lower, upper, Fraction(10) ** k) for k in (30, 33))
    return [
        (low if low == low_far else -inf, high if high == high_far else inf)
        for (low, high), (low_far, high_far) in zip(near, far, strict=True)
    ]


def _box(
    matrix: Matrix, rhs: Sequence[int], lower: Sequence[float], upper: Sequence[float], large: Fraction
) -> list[tuple[Fraction, Fraction]]:
    low = [-large if isinf(x) else Fraction(str(x)) for x in lower]
    high = [large if isinf(x) else Fraction(str(x)) for x in upper]
    points = list(_vertices(_independent(matrix, rhs), low, high))
    assert points, "the polytope is empty"
    return [(min(p[j] for p in points), max(p[j] for p in points)) for j in range(len(low))]


def _vertices(rows: list[list[Fraction]], low: list[Fraction], high: list[Fraction]) -> Iterator[list[Fraction]]:
    """Put all but as many cells as there are equations at a bound, solve for the others, keep what is feasible."""
    n = len(low)
    for fixed in combinations(range(n), n - len(rows)):
        basic = [j for j in range(n) if j not in fixed]
        for ends in product(*({low[j], high[j]} for j in fixed)):
            at = dict(zip(fixed, ends, strict=True))
            reduced = [[row[j] for j in basic] + [row[n] - sum(row[j] * x for j, x in at.items())] for row in rows]
            solved = _solve(reduced)
            if solved is None:
                break  # singular, whatever the bounds
            point = [at[j] if j in at else solved[basic.index(j)] for j in range(n)]
            if all(a <= x <= b for a, x, b in zip(low, point, high, strict=True)):
                yield point


def _independent(matrix: Matrix, rhs: Sequence[int]) -> list[list[Fraction]]:
    """The equations without those that follow from others, with their right-hand sides."""
    kept: list[list[Fraction]] = []
    reduced: list[list[Fraction]] = []
    for coefficients, right in zip(matrix, rhs, strict=True):
        row = [Fraction(int(c)) for c in coefficients] + [Fraction(int(right))]
        rest = row[:]
        for other in reduced:
            lead = next(j for j, c in enumerate(other) if c)
            rest = [a - rest[lead] / other[lead] * b for a, b in zip(rest, other, strict=True)]
        if any(rest):
            reduced.append(rest)
            kept.append(row)
    return kept


def _solve(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """Solve a square system; None when it is singular."""
    rows = [row[:] for row in rows]
    n = len(rows)
    for i in range(n):
        pivot = next((r for r in range(i, n) if rows[r][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [a / rows[i][i] for a in rows[i]]
        for r in range(n):
            if r != i and rows[r][i]:
                rows[r] = [a - rows[r][i] * b for a, b in zip(rows[r], rows[i], strict=True)]
    return [row[n] for row in rows]
