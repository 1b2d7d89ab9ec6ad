"""Small linear programs, thousands of them: one solver in memory, a new model per call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.solve.solver import new_solver
from tablesafe.work.budget import Budget

FEASIBILITY = 1e-7
LARGE = 20_000
"""Entries beyond which an interior point, and the vertex next to it, are found sooner than by pivots."""
NO_LIMIT = 2**31 - 1
BY_COLUMNS = int(highspy.MatrixFormat.kColwise)
MINIMISE = int(highspy.ObjSense.kMinimize)


@dataclass(frozen=True, slots=True)
class Answer:
    """An optimal point of a small program, and the prices of its rows."""

    x: Floats
    prices: Floats
    objective: float


@dataclass(frozen=True, slots=True)
class Columns:
    """The constraint matrix of a small program, column by column, over rows numbered from 0."""

    start: NDArray[np.int32]
    index: NDArray[np.int32]
    value: Floats
    rows: int


class SmallSolver:
    """Minimise over `A x = 0` and bounds; keeps nothing from one program to the next."""

    def __init__(self, work: Budget | None = None) -> None:
        self._highs: Any = new_solver(presolve="off", solver="simplex")
        self.work = Budget() if work is None else work
        """Where the programs are counted."""

    def minimise(
        self,
        cost: Floats,
        lower: Floats,
        upper: Floats,
        columns: Columns,
        *,
        most: float = np.inf,
        pivots: int = NO_LIMIT,
    ) -> Answer | None:
        """The minimum over `A x = 0`, `lower ≤ x ≤ upper`; None when there is none or the answer fails our check.

        A program whose minimum is seen to lie above `most`, or that takes more than `pivots` steps, is given up.
        """
        self._highs.setOptionValue("objective_bound", most)
        self._highs.setOptionValue("simplex_iteration_limit", pivots)
        self._highs.setOptionValue("solver", "ipm" if len(columns.value) > LARGE else "simplex")
        n, zeros = len(cost), np.zeros(columns.rows)
        self._highs.passModel(
            n, columns.rows, len(columns.value), BY_COLUMNS, MINIMISE, 0.0,
            cost, lower, upper, zeros, zeros, columns.start, columns.index, columns.value, np.zeros(n, dtype=np.int32),
        )  # fmt: skip
        self._highs.run()
        info = self._highs.getInfo()
        self.work.program(len(columns.value), info.simplex_iteration_count, info.ipm_iteration_count)
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._highs.getSolution()
        x = np.asarray(solution.col_value)
        if not feasible(x, lower, upper, columns):
            return None
        return Answer(x, np.asarray(solution.row_dual), float(self._highs.getInfo().objective_function_value))


def feasible(x: Floats, lower: Floats, upper: Floats, columns: Columns) -> bool:
    """Never trust a status alone: check the point against the equations and the bounds."""
    if ((x < lower - FEASIBILITY) | (x > upper + FEASIBILITY)).any():
        return False
    terms = columns.value * np.repeat(x, np.diff(columns.start))
    residual = np.bincount(columns.index, weights=terms, minlength=columns.rows)
    scale = np.bincount(columns.index, weights=np.abs(terms), minlength=columns.rows)
    return bool((np.abs(residual) <= FEASIBILITY * np.maximum(1.0, scale)).all())


def columns_of(start: Integers, index: NDArray[Any], value: Floats, rows: int) -> Columns:
    """Pack a column-wise matrix the way the solver wants it."""
    return Columns(start.astype(np.int32), index.astype(np.int32), value.astype(np.float64), rows)
