"""A point as far inside as can be: every cell at least `reach · weight` from either end of its interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import splu

from tablesafe.attack.optima import vertex
from tablesafe.attack.room import Room
from tablesafe.core.equations import Floats
from tablesafe.solve.highs import INTERIOR, PRECISE, Model
from tablesafe.solve.program import Program
from tablesafe.work.budget import ENDLESS, Budget

BLOCK = 256
"""Right-hand sides solved at once."""
DENSE = 4_000
"""Equations up to which a dense factor is used."""


def deep_point(room: Room, weight: Floats, *, budget: Budget = ENDLESS) -> Floats:
    """The additive point with the largest reach, component by component, all in one linear program.

    The unknowns are the distances from each cell's anchor and one reach per component.
    """
    n, parts = len(room), room.components
    below, above = room.lower - room.anchor, room.upper - room.anchor
    low, high = np.flatnonzero(np.isfinite(below)), np.flatnonzero(np.isfinite(above))
    rhs = room.rhs - np.asarray(room.matrix @ room.anchor)
    none = sparse.csr_array((room.matrix.shape[0], parts))
    matrix = sparse.vstack(
        [
            sparse.hstack([room.matrix, none]),
            _side(room, low, -weight),
            _side(room, high, weight),
        ],
        format="csr",
    )
    row_lower = np.concatenate([rhs, below[low], np.full(len(high), -np.inf)])
    row_upper = np.concatenate([rhs, np.full(len(low), np.inf), above[high]])
    column_lower, column_upper = np.full(n + parts, -np.inf), np.full(n + parts, np.inf)
    column_lower[n:], column_upper[n:] = 0.0, _most_reach(room, weight)
    cost = np.concatenate([np.zeros(n), -np.ones(parts)])
    program = Program(cost, sparse.csr_array(matrix), row_lower, row_upper, column_lower, column_upper)
    return room.anchor + _amid(program, budget)[:n]


def _amid(program: Program, budget: Budget) -> Floats:
    """A point amid all of least cost where there are many, by an interior-point method; should it fail, a vertex.

    Much faster than a vertex where many bounds meet.
    """
    model = Model(program, **INTERIOR, **PRECISE)
    model.run(budget)
    solution = model.solution()
    return solution.point if solution.found else vertex(program, budget=budget)


def _side(room: Room, cells: NDArray[np.intp], weight: Floats) -> sparse.csr_array:
    """`x + weight · reach`, one row per cell."""
    n, k = len(room), len(cells)
    row = np.arange(k)
    data = np.concatenate([np.ones(k), weight[cells]])
    column = np.concatenate([cells, n + room.component[cells]])
    return sparse.csr_array((data, (np.concatenate([row, row]), column)), shape=(k, n + room.components))


def _most_reach(room: Room, weight: Floats) -> Floats:
    """No reach exceeds half of the narrowest interval; 1 where all intervals are endless."""
    most = np.full(room.components, np.inf)
    np.minimum.at(most, room.component, (room.upper - room.lower) / (2 * weight))
    return np.where(np.isfinite(most), most, 1.0)


def steepness(room: Room, *, budget: Budget = ENDLESS) -> Floats:
    """How far each cell changes along a unit step straight towards its bound, within the equations.

    The length of the unit vector of a cell after projection on the directions that keep every sum: the norm that makes
    `reach` the radius of a ball in the polytope's own dimension.
    """
    steep = np.ones(len(room))
    for cells in room.members():
        part = room.part(cells).matrix
        if part.shape[0]:
            steep[cells] = np.sqrt(np.clip(1.0 - _taken(part, budget), 1e-12, 1.0))
    return steep


def _taken(matrix: sparse.csr_array, budget: Budget) -> Floats:
    """How much of each cell's unit vector, squared, the equations take away."""
    n = matrix.shape[1]
    solve = _solver_of_squares(matrix)
    columns = matrix.tocsc()
    taken = np.empty(n)
    for start in range(0, n, BLOCK):
        budget.check()
        part = columns[:, start : start + BLOCK].toarray()
        taken[start : start + BLOCK] = np.einsum("ij,ij->j", part, solve(part))
    return taken


def _solver_of_squares(matrix: sparse.csr_array) -> Callable[[Floats], Floats]:
    """Solve with `matrix @ matrix.T`: by a dense factor where that fits, far faster for many right-hand sides."""
    square = matrix @ matrix.T
    if matrix.shape[0] <= DENSE:
        factor = cho_factor(square.toarray())
        return lambda rhs: np.asarray(cho_solve(factor, rhs))
    factors = splu(sparse.csc_array(square), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    return lambda rhs: np.asarray(factors.solve(rhs))
