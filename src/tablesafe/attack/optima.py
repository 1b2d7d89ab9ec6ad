"""The linear programs of an intruder over what a release allows: a vertex, vertices in many directions, nearest points.

All are over `matrix @ x = rhs` within bounds, which must have a point.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats
from tablesafe.core.errors import SolverFailure
from tablesafe.solve.highs import DUAL, PRECISE, PRIMAL, SIMPLEX, Model
from tablesafe.solve.program import Program, Scale, Solution, SolveStatus
from tablesafe.work.budget import ENDLESS, Budget


def vertex(program: Program, *, budget: Budget = ENDLESS) -> Floats:
    """A vertex of least cost; anything else is a failure of the solver."""
    return _least(Model(program, solver="simplex", **PRECISE).solve(budget))


def _least(solution: Solution) -> Floats:
    if not solution.found:
        raise SolverFailure(f"The solver found no vertex: it calls the program {solution.status}.")
    return solution.point


class Vertices:
    """The vertices of one polytope in many directions.

    Each question starts from the last vertex: only the objective changes, so the primal simplex needs a few pivots.
    """

    def __init__(
        self, matrix: sparse.csr_array, rhs: Floats, lower: Floats, upper: Floats, *, budget: Budget = ENDLESS
    ) -> None:
        self._model = Model(
            Program.equations(matrix, rhs, lower, upper), simplex_strategy=DUAL, later=PRIMAL, **SIMPLEX, **PRECISE
        )
        self._asked, self._budget = np.zeros(0, np.intp), budget
        self.first = self._vertex()
        """The vertex found when there is nothing to minimise."""

    def least(self, columns: NDArray[np.intp], sign: float) -> Floats | None:
        """A vertex in which `sign` times the sum of some columns is least; None when there is no least."""
        self._model.set_costs(self._asked, np.zeros(len(self._asked)))
        self._asked = columns
        self._model.set_costs(columns, np.full(len(columns), sign))
        return self._vertex()

    def _vertex(self) -> Floats | None:
        solution = self._model.solve(self._budget)
        return None if solution.status is SolveStatus.UNBOUNDED else _least(solution)


class NearestPoint:
    """The additive point that takes the least change from one that does not add up, at a `cost` per unit of change.

    `estimate = point + above − below`, both at least 0, with the least weighted sum of the two. From one point to the
    next only right-hand sides and bounds change, so the dual simplex goes on from the last basis.
    """

    def __init__(self, matrix: sparse.csr_array, rhs: Floats, lower: Floats, upper: Floats, cost: Floats) -> None:
        self._matrix, self._rhs, self._lower, self._upper = matrix, rhs, lower, upper
        both = sparse.csr_array(sparse.hstack([matrix, -matrix], format="csr"))
        self._rows, self._columns = np.arange(both.shape[0]), np.arange(both.shape[1])
        none = np.zeros(both.shape[1])
        self._model = Model(
            Program.equations(both, np.zeros(both.shape[0]), none, none, cost=np.concatenate([cost, cost])),
            scale=Scale(Scale.bounds(rhs, lower, upper), Scale.costs(cost)),
            simplex_strategy=DUAL, primal_feasibility_tolerance=PRECISE["primal_feasibility_tolerance"], **SIMPLEX,
        )  # fmt: skip

    def to(self, point: Floats, *, budget: Budget = ENDLESS) -> Floats:
        """The additive point within the bounds that takes the least change from a point within the bounds."""
        missing = self._rhs - np.asarray(self._matrix @ point)
        room = np.maximum(np.concatenate([self._upper - point, point - self._lower]), 0.0)
        self._model.set_row_bounds(self._rows, missing, missing)
        self._model.set_bounds(self._columns, np.zeros(len(room)), room)
        change, n = _least(self._model.solve(budget)), len(point)
        return np.clip(point + change[:n] - change[n:], self._lower, self._upper)
