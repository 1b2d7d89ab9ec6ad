"""Mehrotra's predictor–corrector method: a linear program from an infeasible start, through the interior.

The answer is the interior point at which the method stops, not a corner: where many points are best, it stops amid
them, at a place that depends on where it began. Solvers of the 1990s such as PCx worked so. (Mehrotra, "On the
implementation of a primal-dual interior point method", SIAM Journal on Optimization 2, 1992; Czyzyk, Mehrotra, Wagner &
Wright, "PCx: an interior-point code for linear programming", 1999.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import SolverFailure
from tablesafe.work.budget import ENDLESS, Budget

STEPS = 200
"""Newton steps at most; without an answer by then there is none."""
DONE = 1e-8
"""Relative infeasibility and relative gap at which the method stops."""
CLOSE = 1e-5
"""What is still an answer when rounding errors end the steps."""
SHARE = 0.9
"""How much of the way to the boundary a step goes."""
DENSE = 300
"""Equations up to which a dense factor is used."""
LOOSE = 1e6
"""How freely a column without any bound moves, relative to the largest other."""


class _Point(NamedTuple):
    """Distances to the lower and upper bounds, their prices, and the prices of the rows."""

    x: Floats
    w: Floats
    y: Floats
    s: Floats
    v: Floats


@dataclass(frozen=True, eq=False)
class Predictor:
    """The programs over `matrix @ x = rhs` and `lower <= x <= upper` with independent rows and any objective."""

    matrix: sparse.csr_array = field(repr=False)
    rhs: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)

    def least(self, cost: Floats, *, budget: Budget = ENDLESS) -> Floats:
        """The interior point at which the method stops; there must be a least cost."""
        below, above = np.isfinite(self.lower), np.isfinite(self.upper)
        turned = ~below & above  # measured downwards from the only bound
        sign = np.where(turned, -1.0, 1.0)
        origin = np.where(below, self.lower, np.where(above, self.upper, 0.0))
        matrix = sparse.csr_array(self.matrix @ sparse.diags_array(sign))
        rhs = self.rhs - np.asarray(self.matrix @ origin)
        size = max(float(np.abs(rhs).max(initial=0.0)), 1.0)
        width = np.where(below & above, self.upper - self.lower, np.inf) / size
        found = _solved(matrix, rhs / size, width, ~(below | above), sign * cost, budget)
        return np.clip(origin + sign * found * size, self.lower, self.upper)


def _solved(matrix: sparse.csr_array, rhs: Floats, width: Floats, free: Mask, cost: Floats, budget: Budget) -> Floats:
    """The least of `cost @ x` with `matrix @ x = rhs` and `0 <= x <= width`; free columns have no bounds."""
    if free.all():  # no bound, no interior: the shortest solution, where the method would begin
        return np.asarray(matrix.T @ _factored(sparse.csr_array(matrix @ matrix.T))(rhs))
    boxed = np.isfinite(width)
    point = _start(matrix, rhs, width, free, cost)
    for _ in range(STEPS):
        budget.check()
        rows, columns, box = _residuals(point, matrix, rhs, width, cost, boxed)
        if _far(point, rhs, width, cost, rows, columns, box, boxed) < DONE:
            return point.x
        step = _step(point, matrix, rows, columns, box, boxed, free)
        if step is None:
            break
        point = step
    rows, columns, box = _residuals(point, matrix, rhs, width, cost, boxed)
    if _far(point, rhs, width, cost, rows, columns, box, boxed) > CLOSE:
        raise SolverFailure("The predictor–corrector method stopped without an answer.")
    return point.x


def _start(matrix: sparse.csr_array, rhs: Floats, width: Floats, free: Mask, cost: Floats) -> _Point:
    """Mehrotra's start: the shortest solution of the equations, shifted until all is well inside."""
    boxed, bound = np.isfinite(width), ~free
    solve = _factored(sparse.csr_array(matrix @ matrix.T))
    x, y = matrix.T @ solve(rhs), solve(np.asarray(matrix @ cost))
    slope = cost - matrix.T @ y
    w = np.where(boxed, width - x, np.inf)
    s, v = np.where(boxed, np.maximum(slope, 0.0), slope) * bound, np.where(boxed, np.maximum(-slope, 0.0), 0.0)
    into = max(-1.5 * float(np.min(x[bound], initial=0.0)), -1.5 * float(np.min(w, initial=0.0)), 0.0)
    up = max(-1.5 * float(np.min(s, initial=0.0)), 0.0)
    x, w, s, v = x + into * bound, w + into, (s + up) * bound, (v + up) * boxed
    if max(float(s.max(initial=0.0)), float(v.max(initial=0.0))) <= 1e-12:
        s, v = bound.astype(np.float64), boxed.astype(np.float64)
    spread = float(x @ s + w[boxed] @ v[boxed])
    extents, prices = float(x[bound].sum() + w[boxed].sum()), float(s.sum() + v.sum())
    more, dearer = max(0.5 * spread / prices, 1e-3), max(0.5 * spread / max(extents, 1e-12), 1e-3)
    return _Point(x + more * bound, w + more, y, s + dearer * bound, v + dearer * boxed)


def _residuals(
    p: _Point, matrix: sparse.csr_array, rhs: Floats, width: Floats, cost: Floats, boxed: Mask
) -> tuple[Floats, Floats, Floats]:
    """What is missing in the equations, in the prices, and between the two bounds of a column."""
    box = np.zeros(len(cost))
    box[boxed] = width[boxed] - p.x[boxed] - p.w[boxed]
    return rhs - np.asarray(matrix @ p.x), cost - matrix.T @ p.y - p.s + p.v, box


def _far(
    p: _Point, rhs: Floats, width: Floats, cost: Floats, rows: Floats, columns: Floats, box: Floats, boxed: Mask
) -> float:
    """How far from an answer: the largest of the relative infeasibilities and the relative gap."""
    primal = float(cost @ p.x)
    dual = float(rhs @ p.y - width[boxed] @ p.v[boxed])
    return max(
        float(np.linalg.norm(rows) + np.linalg.norm(box)) / (1.0 + float(np.linalg.norm(rhs))),
        float(np.linalg.norm(columns)) / (1.0 + float(np.linalg.norm(cost))),
        abs(primal - dual) / (1.0 + abs(dual)),
    )


def _step(
    p: _Point, matrix: sparse.csr_array, rows: Floats, columns: Floats, box: Floats, boxed: Mask, free: Mask
) -> _Point | None:
    """Predict, correct, and go most of the way to the boundary; None when rounding errors leave no step."""
    pull = np.zeros(len(p.x))
    pull[~free] = p.s[~free] / p.x[~free]
    pull[boxed] += p.v[boxed] / p.w[boxed]
    pull[free] = float(np.min(pull[~free], initial=1.0)) / LOOSE
    ease = 1.0 / pull
    try:
        solve = _factored(sparse.csr_array(matrix @ sparse.diags_array(ease) @ matrix.T))
    except (RuntimeError, np.linalg.LinAlgError, ValueError):
        return None

    def towards(low: Floats, high: Floats) -> _Point:
        slope = columns.copy()
        slope[~free] -= low[~free] / p.x[~free]
        slope[boxed] += (high[boxed] - p.v[boxed] * box[boxed]) / p.w[boxed]
        dy = solve(rows + np.asarray(matrix @ (ease * slope)))
        dx = ease * (matrix.T @ dy - slope)
        dw, ds, dv = np.zeros_like(dx), np.zeros_like(dx), np.zeros_like(dx)
        dw[boxed] = box[boxed] - dx[boxed]
        ds[~free] = (low[~free] - p.s[~free] * dx[~free]) / p.x[~free]
        dv[boxed] = (high[boxed] - p.v[boxed] * dw[boxed]) / p.w[boxed]
        return _Point(dx, dw, dy, ds, dv)

    w = np.where(boxed, p.w, 0.0)
    pairs = float((~free).sum() + boxed.sum())
    apart = float(p.x @ p.s + w @ p.v) / pairs
    first = towards(-p.x * p.s, -w * p.v)
    ahead, dearer = _reach(p, first, free, boxed, 1.0)
    nearer = float(
        (p.x + ahead * first.x) @ (p.s + dearer * first.s) + (w + ahead * first.w) @ (p.v + dearer * first.v)
    )
    aim = (nearer / pairs / apart) ** 3 * apart
    d = towards(aim - p.x * p.s - first.x * first.s, aim - w * p.v - first.w * first.v)
    if not all(np.isfinite(part).all() for part in d):
        return None
    ahead, dearer = _reach(p, d, free, boxed, SHARE)
    return _Point(p.x + ahead * d.x, p.w + ahead * d.w, p.y + dearer * d.y, p.s + dearer * d.s, p.v + dearer * d.v)


def _reach(p: _Point, d: _Point, free: Mask, boxed: Mask, share: float) -> tuple[float, float]:
    """How far the distances and the prices may go, at most a whole step."""
    primal = min(_ratio(p.x[~free], d.x[~free]), _ratio(p.w[boxed], d.w[boxed]))
    dual = min(_ratio(p.s[~free], d.s[~free]), _ratio(p.v[boxed], d.v[boxed]))
    return min(1.0, share * primal), min(1.0, share * dual)


def _ratio(size: Floats, change: Floats) -> float:
    falling = change < 0
    return float(np.min(-size[falling] / change[falling], initial=np.inf))


def _factored(square: sparse.csr_array) -> Callable[[Floats], Floats]:
    """Solve with a symmetric positive definite matrix."""
    if square.shape[0] == 0:
        return lambda rhs: rhs
    if square.shape[0] <= DENSE:
        from scipy.linalg import cho_factor, cho_solve

        factor = cho_factor(square.toarray())
        return lambda rhs: np.asarray(cho_solve(factor, rhs))
    from scipy.sparse.linalg import splu

    factors = splu(sparse.csc_array(square), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    return lambda rhs: np.asarray(factors.solve(rhs))
