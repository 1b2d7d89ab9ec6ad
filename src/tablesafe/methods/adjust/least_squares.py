"""Systems `A D Aᵀ x = b` with a diagonal D that varies: factorised where A is small, else by conjugate gradients.

The factors of a table of three dimensions fill up: at 10,000 cells one takes seconds, at 100,000 it does not fit. The
products with A and Aᵀ cost next to nothing at any size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.work.budget import ENDLESS, Budget
from tablesafe.work.compiled import compiled

FEW_ROWS = 2_000
"""Equations up to which the matrix is factorised."""
SMALLEST_PIVOT = 1e-13
"""Added to the diagonal of the normal equations, so that dependent equations do no harm."""
MOST = 4_000
"""Steps of conjugate gradients before an answer is taken as it is."""

Solve = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Normal:
    """One matrix A, by rows and by columns."""

    a: sparse.csc_array = field(repr=False)

    @property
    def exact(self) -> bool:
        """Whether systems are solved as exactly as floats allow."""
        return int(self.a.shape[0]) <= FEW_ROWS

    def at(self, diagonal: Floats, tolerance: float) -> Solve | None:
        """What solves `A D Aᵀ x = b`, by iterations up to a residual of `tolerance`; None if it is singular."""
        return self._factorised(diagonal) if self.exact else self._iterated(diagonal, tolerance)

    def _factorised(self, diagonal: Floats) -> Solve | None:
        normal = sparse.csc_array(self.a @ sparse.diags_array(diagonal) @ self.a.T)
        try:
            factor = splu(
                sparse.csc_array(normal + SMALLEST_PIVOT * sparse.eye_array(self.a.shape[0])), diag_pivot_thresh=0.0
            )
        except RuntimeError:
            return None
        return lambda right: np.asarray(factor.solve(right))

    def _iterated(self, diagonal: Floats, tolerance: float) -> Solve:
        rows, columns = self._by_rows, self.a
        inverse = 1.0 / np.maximum(_diagonal(rows.indptr, rows.indices, rows.data, diagonal), np.finfo(np.float64).tiny)

        def solve(right: Floats) -> Floats:
            return _gradients(
                rows.indptr, rows.indices, rows.data, columns.indptr, columns.indices, columns.data,
                diagonal, inverse, right, tolerance, MOST,
            )  # fmt: skip

        return solve

    @cached_property
    def _by_rows(self) -> sparse.csr_array:
        return sparse.csr_array(self.a)


@compiled
def _diagonal(start: Integers, column: Integers, entry: Floats, diagonal: Floats) -> Floats:
    """The diagonal of `A D Aᵀ`."""
    found = np.zeros(len(start) - 1)
    for i in range(len(found)):
        for k in range(start[i], start[i + 1]):
            found[i] += entry[k] * entry[k] * diagonal[column[k]]
    return found


@compiled
def _times(start: Integers, other: Integers, entry: Floats, x: Floats, out: Floats) -> None:
    """A sparse matrix by lines times a vector, one thread: the lines are short."""
    for i in range(len(out)):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += entry[k] * x[other[k]]
        out[i] = total


@compiled
def _gradients(
    row_start: Integers, row_column: Integers, row_entry: Floats, column_start: Integers, column_row: Integers,
    column_entry: Floats, diagonal: Floats, inverse: Floats, right: Floats, tolerance: float, most: int,
) -> Floats:  # fmt: skip
    """Conjugate gradients with the diagonal as preconditioner, until no residual is above the tolerance."""
    count = len(right)
    x, residual, product, between = np.zeros(count), right.copy(), np.empty(count), np.empty(len(diagonal))
    ahead = residual * inverse
    worth = 0.0
    for i in range(count):
        worth += residual[i] * ahead[i]
    for _ in range(most):
        if worth <= 0.0 or np.abs(residual).max() <= tolerance:
            break
        _times(column_start, column_row, column_entry, ahead, between)
        for j in range(len(diagonal)):
            between[j] *= diagonal[j]
        _times(row_start, row_column, row_entry, between, product)
        curve = 0.0
        for i in range(count):
            curve += ahead[i] * product[i]
        if curve <= 0.0:
            break
        far, after = worth / curve, 0.0
        for i in range(count):
            x[i] += far * ahead[i]
            residual[i] -= far * product[i]
            after += residual[i] * residual[i] * inverse[i]
        for i in range(count):
            ahead[i] = residual[i] * inverse[i] + after / worth * ahead[i]
        worth = after
    return x


# The change of least squares that keeps a table adding up: a convex program of its own, by an interior point method.
#
# `min Σ wᵢ yᵢ² / 2` with `A y = 0` and `lower ≤ y ≤ upper`. One variable per cell and one system of normal equations a
# step; the weights may span many orders of magnitude.

STEPS = 120
"""Interior-point steps at most."""
CLOSE, ITERATED = 1e-9, 1e-6
"""Gap and residuals, relative, at which the answer is good; and where systems are solved by iterations."""
BESIDE, FINEST = 0.03, 1e-10
"""How exactly such systems are solved: beside the residual of the equations, and at most."""
NEARLY = 0.995
"""How far towards the nearest bound a step goes."""
TINY = 1e-13
"""The least distance from a bound: nothing is divided by zero."""
NOTHING = 1e-6
"""What the squares come to, of numbers of about 1, that are as good as none."""
STILL = 4
"""Steps that change nothing before the answer is taken as it is."""
PROGRESS, PATIENT, CENTRED = 0.9, 5, 0.2
"""By how much the gap must become smaller, within how many steps; and the share of it that is aimed at after that."""


@dataclass(frozen=True, eq=False)
class Squares:
    """The moves, and what each equation's last unit is worth."""

    moves: Floats = field(repr=False)
    prices: Floats = field(repr=False)


def least_squares(
    matrix: sparse.csc_array, weight: Floats, lower: Floats, upper: Floats, *, budget: Budget = ENDLESS
) -> Squares | None:
    """The least sum of weighted squares within the bounds; None when no point was found in the time.

    The rows of the matrix must be independent. Cells with equal bounds are known; the others need room.
    """
    known = upper - lower <= 0
    free = np.flatnonzero(~known)
    size = max(float(np.max(np.abs(np.where(np.isfinite(lower), lower, 0.0)[known]), initial=0.0)), 1.0)
    moves = np.where(known, lower, 0.0)
    rows = sparse.csr_array(matrix[:, free])
    used = np.flatnonzero(np.diff(rows.indptr))
    target = -np.asarray(matrix @ moves)
    if np.abs(np.delete(target, used)).max(initial=0.0) > CLOSE * size:
        return None
    found = _interior(sparse.csc_array(rows[used]), weight[free], lower[free], upper[free], target[used], budget)
    if found is None:
        return None
    moves[free] = found.moves
    prices = np.zeros(matrix.shape[0])
    prices[used] = found.prices
    return Squares(moves, prices)


@dataclass(eq=False)
class _Interior:
    """A point inside the bounds with its multipliers, on its way to the best one (Mehrotra's predictor-corrector)."""

    a: sparse.csc_array
    normal: Normal
    w: Floats
    lo: Floats
    hi: Floats
    b: Floats
    low: Mask
    high: Mask
    y: Floats
    prices: Floats
    zl: Floats
    zu: Floats
    worth: float = np.inf
    still: int = 0
    """Steps in a row that changed next to nothing."""
    least: float = np.inf
    vain: int = 0
    """The least gap so far, and steps since then."""

    @classmethod
    def of(cls, a: sparse.csc_array, w: Floats, lower: Floats, upper: Floats, b: Floats) -> Self:
        """Begin in the middle; bounds that are infinite have no multiplier."""
        low, high = np.isfinite(lower), np.isfinite(upper)
        lo, hi = np.where(low, lower, 0.0), np.where(high, upper, 0.0)
        y = np.where(low & high, (lo + hi) / 2, np.where(low, lo + 1.0, np.where(high, hi - 1.0, 0.0)))
        sides = low.astype(np.float64), high.astype(np.float64)
        return cls(a, Normal(a), w, lo, hi, b, low, high, y, np.zeros(len(b)), *sides)

    def advance(self) -> bool | None:
        """Take one step; True when the point is the best already, None when there is no way on."""
        sl, su = np.maximum(self.y - self.lo, TINY), np.maximum(self.hi - self.y, TINY)
        sl, su = np.where(self.low, sl, 1.0), np.where(self.high, su, 1.0)
        gap, sides = _sum(self.zl, sl) + _sum(self.zu, su), max(int(self.low.sum() + self.high.sum()), 1)
        dual = self.w * self.y - self.a.T @ self.prices - self.zl + self.zu
        primal = np.asarray(self.a @ self.y) - self.b
        if self._close(gap, dual, primal):
            return True
        diagonal = self.w + self.zl / sl + self.zu / su
        solve = self.normal.at(1.0 / diagonal, max(BESIDE * _size(primal), FINEST))
        if solve is None:
            return None
        system = _Newton(self, solve, diagonal, dual, primal, sl, su)
        ahead = system.step(-self.zl * sl, -self.zu * su)
        far = system.farthest(ahead)
        left = _sum((self.zl + far * ahead.zl)[self.low], (sl + far * ahead.y)[self.low])
        left += _sum((self.zu + far * ahead.zu)[self.high], (su - far * ahead.y)[self.high])
        centre = gap / sides * (left / gap) ** 3 if gap > 0 else 0.0
        curved = 1.0
        self.least, self.vain = (gap, 0) if gap < PROGRESS * self.least else (self.least, self.vain + 1)
        if self.vain >= PATIENT:  # corrections that go too far can turn in a circle
            centre, curved = CENTRED * gap / sides, 0.0
        step = system.step(
            np.where(self.low, centre - self.zl * sl - curved * ahead.zl * ahead.y, 0.0),
            np.where(self.high, centre - self.zu * su + curved * ahead.zu * ahead.y, 0.0),
        )
        far = NEARLY * system.farthest(step)
        self.y, self.prices = self.y + far * step.y, self.prices + far * step.prices
        self.zl, self.zu = self.zl + far * step.zl, self.zu + far * step.zu
        return False

    def _close(self, gap: float, dual: Floats, primal: Floats) -> bool:
        """Whether the point is the best: by its gap, or because steps within the equations change nothing any more.

        Where equations hold a cell at its bound there is no room inside, and the gap never closes.
        """
        steepest, worth = float(np.abs(self.w * self.y).max(initial=1.0)), _sum(self.w, self.y**2) / 2
        close = CLOSE if self.normal.exact else ITERATED
        exact = _size(primal) < close and _size(dual) < close * steepest
        self.still = self.still + 1 if exact and abs(worth - self.worth) <= close * max(worth, NOTHING) else 0
        self.worth = worth
        return exact and (gap < close * max(NOTHING, worth) or self.still >= STILL)


@dataclass(frozen=True, eq=False)
class _Step:
    y: Floats
    prices: Floats
    zl: Floats
    zu: Floats


@dataclass(frozen=True, eq=False)
class _Newton:
    """The linear system of one step, for predictor and corrector."""

    at: _Interior
    solve: Solve
    diagonal: Floats
    dual: Floats
    primal: Floats
    sl: Floats
    su: Floats

    def step(self, tl: Floats, tu: Floats) -> _Step:
        """Where to go so that bounds and multipliers come to these products."""
        at = self.at
        right = -self.dual + tl / self.sl - tu / self.su
        prices = self.solve(-self.primal - np.asarray(at.a @ (right / self.diagonal)))
        y = (right + at.a.T @ prices) / self.diagonal
        zl, zu = (tl - at.zl * y) / self.sl, (tu + at.zu * y) / self.su
        return _Step(y, prices, np.where(at.low, zl, 0.0), np.where(at.high, zu, 0.0))

    def farthest(self, step: _Step) -> float:
        """How far one can go before a bound or a multiplier is gone; at most 1, and what `NEARLY` takes back."""
        at = self.at
        pairs = (
            (self.sl, step.y, at.low),
            (self.su, -step.y, at.high),
            (at.zl, step.zl, at.low),
            (at.zu, step.zu, at.high),
        )
        far = 1.0 / NEARLY
        for slack, move, used in pairs:
            falling = used & (move < 0)
            far = min(far, float((-slack[falling] / move[falling]).min(initial=np.inf)))
        return far


def _interior(
    a: sparse.csc_array, weight: Floats, lower: Floats, upper: Floats, target: Floats, budget: Budget
) -> Squares | None:
    """Scale to about 1, and step until the best point is reached."""
    if not len(target):
        return Squares(np.clip(0.0, lower, upper), np.zeros(0))
    forced = np.maximum(np.maximum(lower, -upper), 0.0)  # how far a cell moves at least: rooms may be far larger
    scale = max(_size(target), _size(forced), 1.0)
    price = float(np.exp(np.mean(np.log(weight))))
    point = _Interior.of(a, weight / price, lower / scale, upper / scale, target / scale)
    for _ in range(STEPS):
        done = point.advance()
        if done:
            return Squares(np.clip(point.y * scale, lower, upper), point.prices * scale * price)
        if done is None or budget.over or not np.isfinite(point.y).all():
            return None
    return None


def _size(numbers: Floats) -> float:
    return float(np.abs(numbers).max(initial=0.0))


def _sum(one: Floats, other: Floats) -> float:
    """The sum of products by one thread: a library's threads would wait for each other longer than they work."""
    return float((one * other).sum())
