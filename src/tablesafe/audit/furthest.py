"""How far an unknown cell can move from the truth while every sum holds: one program, asked for many cells.

The truth is the origin, so there is always a point. The linear program is for who knows bounds only; the integer
program for who knows that values are whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import SolverFailure
from tablesafe.solve.highs import DUAL, PRIMAL, SIMPLEX, Model
from tablesafe.solve.program import Program, Scale, Solution, SolveStatus
from tablesafe.work.budget import ENDLESS, Budget

LARGEST = 2.0**40
"""Beyond this a float solver cannot tell whole numbers from others."""


class FurthestMove:
    """`matrix @ x = 0` and `lower <= x <= upper`: the objective varies, and the bounds of a few columns.

    When only the objective changes the last point stays feasible, and the primal simplex needs a few pivots; when
    bounds change too, it repairs the last basis first.
    """

    def __init__(self, matrix: sparse.csr_array, lower: Floats, upper: Floats, *, scale: float = 1.0) -> None:
        """`scale` units are 1 in the solver, whose tolerances are made for numbers between 1 and a million."""
        self._lower, self._upper = lower, upper
        program = Program.equations(sparse.csr_array(matrix), np.zeros(matrix.shape[0]), lower, upper)
        self._model = Model(program, scale=Scale(scale), simplex_strategy=DUAL, later=PRIMAL, **SIMPLEX)
        self._asked = np.zeros(1, np.intp)

    def of(
        self, column: int, sign: int, columns: NDArray[np.intp] | None = None, lower: Floats | None = None,
        upper: Floats | None = None, *, budget: Budget = ENDLESS,
    ) -> Floats | None:  # fmt: skip
        """A point in which `sign` times one column is largest, with other bounds on some columns; None without end."""
        self._model.set_costs(self._asked, np.zeros(1))
        self._asked = np.array([column])
        self._model.set_costs(self._asked, np.array([-float(sign)]))
        if columns is not None and lower is not None and upper is not None:
            self._model.set_bounds(columns, lower, upper)
        try:
            solution = self._model.solve(budget)
        finally:
            if columns is not None:
                self._model.set_bounds(columns, self._lower[columns], self._upper[columns])
        if not solution.found and solution.status is not SolveStatus.UNBOUNDED:
            raise SolverFailure(f"The solver calls a program {solution.status} that the truth fulfils.")
        return solution.point if solution.found else None


@dataclass(frozen=True, slots=True)
class Furthest:
    """The best point found, if any, and a value that no point exceeds."""

    point: Integers | None
    bound: float


class FurthestWholeMove:
    """The same with whole x."""

    def __init__(self, matrix: sparse.csr_array, lower: Floats, upper: Floats) -> None:
        n = matrix.shape[1]
        program = Program.equations(
            sparse.csr_array(matrix), np.zeros(matrix.shape[0]), lower, upper, integer=np.ones(n, np.bool_)
        )
        self._model = Model(program, mip_rel_gap=0.0, mip_abs_gap=0.999, mip_feasibility_tolerance=1e-9)

    def narrow(self, columns: NDArray[np.intp], lower: Floats, upper: Floats) -> None:
        """Replace the bounds of some columns."""
        self._model.set_bounds(columns, lower, upper)

    def of(self, column: int, sign: int, budget: Budget) -> Furthest:
        """The largest value of `sign * x[column]`: a point that reaches it, checked in whole numbers, and a bound.

        When the two agree the value is exact. The bound is the solver's, rounded down to a whole number.
        """
        point, solution = self._asked(np.array([column]), sign, budget)
        if solution.status is SolveStatus.UNBOUNDED:
            return Furthest(None, np.inf)
        program = self._model.program
        limit = float(program.upper[column] if sign > 0 else -program.lower[column])
        bound = min(float(np.floor(1e-6 - solution.bound)), limit) if abs(solution.bound) < LARGEST else limit
        return Furthest(point, bound)

    def together(self, columns: NDArray[np.intp], sign: int, budget: Budget) -> Integers | None:
        """A point that takes many columns as far as they can go together; no single one need be at its end."""
        return self._asked(columns, sign, budget)[0]

    def _asked(self, columns: NDArray[np.intp], sign: int, budget: Budget) -> tuple[Integers | None, Solution]:
        self._model.set_costs(columns, np.full(len(columns), -float(sign)))
        solution = self._model.solve(budget, anytime=True)
        self._model.set_costs(columns, np.zeros(len(columns)))
        if solution.interrupted:
            raise KeyboardInterrupt
        inside = bool((np.abs(solution.point) < LARGEST).all())
        return self._model.program.whole(solution.point) if inside else None, solution
