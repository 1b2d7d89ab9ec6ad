"""Exact points on the far faces of a polytope, without its vertices.

A vertex of a large dense part has coordinates with denominators of hundreds of digits. But what proves how far a form
can go is any point of the face where it ends, and a face has points on a grid. So the solver works in a polytope whose
rows are drawn in by a hair. There a vertex holds columns exactly at their bounds and has room in every row: its other
columns are rounded to the grid, and nothing is violated. Only some rows are let go to their true bounds and must meet
them exactly: those that the prices name, because the proof needs them there, and as many more as come cheaply, because
their own ends are then known too. For each of these, one column is solved for in whole numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.solve.exact.elimination import ROOM
from tablesafe.solve.exact.proof import Proof, forget, inside, put
from tablesafe.solve.exact.ranges import Ranges, note, settle
from tablesafe.solve.program import Solution, SolveStatus
from tablesafe.work.budget import ENDLESS, Budget
from tablesafe.work.compiled import compiled

if TYPE_CHECKING:
    from tablesafe.solve.exact.polytope import Polytope

HAIR = 1 / 64
"""How far the rows are drawn in, in units of the data; further where the data are large."""
LARGE = 2.0**30
"""Data beyond this are large."""
FINEST = 2.0**32
"""The finest grid."""
FINE = 16.0
"""The coarsest grid has so many steps within a hair, divided by what a row can add up."""
TURNS = 6
"""Times that the rows to be met may change before the search for a point is given up."""
MOST_HELD = 400
"""Rows that are met exactly at once."""
LARGEST_DETERMINANT = 2.0**16
"""Of rows that are met exactly: the denominator of their point."""
TOLERANCE = 1e-7
"""Looser than elsewhere: a hair is much more."""
_PRICED, _MET, _PIVOT = 1e-6, 1e-5, 1e-3
"""A price that counts; how near to its bound a row is met; the least pivot of an elimination in floats."""
_NONE = np.zeros(0, np.int64)
"""No rows."""


class GridPoint(NamedTuple):
    """The columns of a point that are not zero, in whole numbers over a denominator."""

    columns: Integers
    numbers: Integers
    denominator: int


class Faces:
    """Points on faces of a polytope, found by HiGHS inside of it and proved on a grid."""

    def __init__(self, polytope: Polytope, ranges: Ranges, proof: Proof, budget: Budget = ENDLESS) -> None:
        self.p, self.ranges, self.proof, self.budget = polytope, ranges, proof, budget
        self.k, self.rows = polytope.columns, polytope.rows
        self._true = polytope.lower[self.k :].copy(), polytope.upper[self.k :].copy()
        self._hair = HAIR * max(1.0, polytope.extent / LARGE)
        room = np.minimum(self._hair, (self._true[1] - self._true[0]) / 8.0)
        self._inner = self._true[0] + room, self._true[1] - room
        self.grid = int(2.0 ** np.floor(np.log2(min(FINEST, ROOM / 4.0 / (polytope.extent * polytope.reach)))))
        self.usable = bool((room > 0.0).all()) and self.grid >= FINE * polytope.reach / self._hair
        if self.usable:
            k = self.k
            lower, upper = np.r_[polytope.lower[:k], self._inner[0]], np.r_[polytope.upper[:k], self._inner[1]]
            self.model = polytope._replace(lower=lower, upper=upper).simplex(tolerance=TOLERANCE)

    def push(
        self, objective: Floats, side: int = -1, *, generous: bool = True, strict: bool = True
    ) -> GridPoint | None:
        """Learn what can be proved from a point where an objective is largest, and return the point.

        If the objective is that of one side, the point is sought where the side ends, and prices prove that it does.
        Who is `generous` looks for a point that closes many other sides as well; who is not `strict` takes for the end
        what a point and a limit that agree to eight digits say.
        """
        must, may = np.array([side // 2 - self.k] if side // 2 >= self.k else _NONE, dtype=np.int64), None
        held, point = must, None
        self._bound(held, self._true)
        for _ in range(TURNS):
            answer = self.model.maximise(objective, self.budget)
            if answer.status is not SolveStatus.OPTIMAL:
                break
            if side >= 0:
                must = np.union1d(must, np.flatnonzero(np.abs(answer.dual) > _PRICED))
            may = (self._stopped(answer.point) if generous else _NONE) if may is None else may
            may = self._within_reach(answer.point, must, may)
            wanted = np.union1d(must, may)
            if np.array_equal(wanted, held):
                point = self._learn(answer, must, may, side, strict)
                break
            self._bound(np.setdiff1d(wanted, held), self._true)
            self._bound(np.setdiff1d(held, wanted), self._inner)
            held = wanted
        self._bound(held, self._inner)
        return point

    def _bound(self, rows: Integers, bounds: tuple[Floats, Floats]) -> None:
        if rows.size:
            self.model.set_row_bounds(rows, bounds[0][rows], bounds[1][rows])

    def _stopped(self, point: Floats) -> Integers:
        """Rows at a drawn-in bound, behind which an open end may lie; the shortest first."""
        value, closed = self.rows @ point, self.ranges.closed[2 * self.k :]
        at_upper, at_lower = value >= self._inner[1] - _MET, value <= self._inner[0] + _MET
        rows = np.flatnonzero((at_upper & ~closed[::2]) | (at_lower & ~closed[1::2]))
        return rows[np.argsort(np.diff(self.rows.indptr)[rows], kind="stable")]

    def _within_reach(self, point: Floats, must: Integers, may: Integers) -> Integers:
        """The rows that can be met exactly together with those that must be met."""
        may = may[~np.isin(may, must)][:MOST_HELD]
        rows = np.concatenate([must, may])
        dense = self.rows[rows].tocsc()[:, np.flatnonzero(self._free(point))].toarray()
        taken = independent(np.ascontiguousarray(dense), len(must), LARGEST_DETERMINANT)[0]
        return rows[taken[taken >= len(must)]]

    def _free(self, point: Floats) -> Mask:
        """The columns that can give way a little in either direction."""
        return np.asarray(np.minimum(point - self.p.lower[: self.k], self.p.upper[: self.k] - point) > HAIR)

    def _learn(self, answer: Solution, must: Integers, may: Integers, side: int, strict: bool) -> GridPoint | None:
        """Prove a point near this one, where the rows to be met are, and what it shows."""
        point = self._on_the_grid(answer.point, must, may)
        if point is None:
            return None
        self.proof.columns[: len(point.columns)] = point.columns
        proved = put(self.p, self.proof, point.numbers, len(point.columns))
        proved = proved and inside(self.p, self.proof, point.denominator)
        if proved:
            note(self.p, self.proof, self.ranges, point.denominator)
        if proved and side >= 0:
            rows = np.flatnonzero(np.abs(answer.dual) > _PRICED)
            prices = answer.dual[rows]
            settle(self.p, self.proof, self.ranges, point.denominator, True, rows, prices, len(rows), side, strict)
        forget(self.proof)
        return point if proved else None

    def _on_the_grid(self, point: Floats, must: Integers, may: Integers) -> GridPoint | None:
        """Round to the grid, then change a few free columns so that every row to be met is exactly at its bound.

        The grid becomes finer by the determinant of the equations that are solved for this.
        """
        free, lower, upper = self._free(point), self.p.lower[: self.k], self.p.upper[: self.k]
        point = np.where(point - lower <= _MET, lower, np.where(upper - point <= _MET, upper, point))
        must, must_be = self._tight(point, must)
        may, may_be = self._tight(point, may)
        rows, bound = self.rows[np.concatenate([must, may])], np.concatenate([must_be, may_be])
        columns = np.flatnonzero(free)
        dense = np.ascontiguousarray(rows.tocsc()[:, columns].toarray())
        taken, pivot, determinant = independent(dense.copy(), len(must), LARGEST_DETERMINANT)
        factor = max(1, round(abs(determinant)))
        if float(np.abs(point).max(initial=0.0)) * self.grid * factor * self.p.reach >= ROOM:
            return None
        numbers, denominator = np.rint(point * self.grid).astype(np.int64) * factor, self.grid * factor
        whole, square, bound = rows[taken].astype(np.int64), dense[np.ix_(taken, pivot)], bound[taken]
        for _ in range(TURNS):
            rest = bound * denominator - np.asarray(whole @ numbers)
            if not rest.any():
                at = np.flatnonzero(numbers)
                return GridPoint(at, numbers[at], denominator)
            numbers[columns[pivot]] += np.rint(np.linalg.solve(square, rest.astype(np.float64))).astype(np.int64)
        return None

    def _tight(self, point: Floats, rows: Integers) -> tuple[Integers, Integers]:
        """The rows that are at one of their true bounds, and that bound."""
        value, low, high = self.rows[rows] @ point, self._true[0][rows], self._true[1][rows]
        bound = np.where(value - low < high - value, low, high)
        tight = np.abs(value - bound) <= _MET
        return rows[tight], bound[tight].astype(np.int64)


@compiled
def independent(matrix: Floats, first: int, most: float) -> tuple[Integers, Integers, float]:
    """Independent rows of a matrix of whole numbers, a column for each, and the determinant of that square.

    Entries of size 1 are preferred as pivots; other pivots only serve the first rows, as long as the determinant stays
    below a limit. The matrix is used up.
    """
    m, n = matrix.shape
    taken, pivot, count, determinant = np.empty(m, np.int64), np.empty(m, np.int64), 0, 1.0
    for r in range(m):
        best, cost = -1, np.inf
        for j in range(n):
            x = abs(matrix[r, j])
            if x > _PIVOT and max(x, 1.0 / x) < cost - 1e-6:
                best, cost = j, max(x, 1.0 / x)
        if best < 0 or (cost > 1.001 and (r >= first or abs(determinant * matrix[r, best]) > most)):
            continue
        taken[count], pivot[count] = r, best
        count += 1
        determinant *= matrix[r, best]
        for i in range(r + 1, m):
            if matrix[i, best] != 0.0:
                f = matrix[i, best] / matrix[r, best]
                for j in range(n):
                    matrix[i, j] -= f * matrix[r, j]
                matrix[i, best] = 0.0
    return taken[:count], pivot[:count], determinant
