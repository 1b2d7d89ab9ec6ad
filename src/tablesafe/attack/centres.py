"""The highest additive point of a sum of concave functions, one per cell, by Newton's method.

With the logarithms of the distances to the bounds it is the analytic centre of the intruder's polytope: the point where
the product of all distances is largest, which interior-point solvers approach when nothing is to be minimised. (Boyd &
Vandenberghe, Convex Optimization, 8.5.3.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.attack.feasible_region import FeasibleRegion
from tablesafe.attack.optima import vertex
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import SolverFailure
from tablesafe.solve.highs import INTERIOR, PRECISE, Model
from tablesafe.solve.program import Program
from tablesafe.work.budget import ENDLESS, Budget

STEPS, HASTY = 300, 60
"""Newton steps towards a centre at most, of who is patient and of who is not."""
DONE = 1e-9
"""Newton decrement at which a component has reached its centre."""
NEAR = 1e-3
"""Newton decrement below which whole steps are taken: too near for a search along the step to tell."""
HALVINGS = 30
"""Times that a step is halved before it is given up."""


class Hill(Protocol):
    """A sum of concave functions, one per cell, defined strictly between bounds."""

    @property
    def lower(self) -> Floats:
        """Where each function begins."""
        ...

    @property
    def upper(self) -> Floats:
        """Where each function ends."""
        ...

    def slope(self, x: Floats) -> Floats:
        """The first derivatives."""
        ...

    def curvature(self, x: Floats) -> Floats:
        """The second derivatives, with the sign that makes them positive."""
        ...


def analytic_centre(room: FeasibleRegion, start: Floats, *, budget: Budget = ENDLESS) -> Floats:
    """Climb from a point strictly inside to where the product of all distances to the bounds is largest."""
    return climb(room, Barrier.of(room), start, budget=budget)


def climb(
    room: FeasibleRegion,
    hill: Hill,
    start: Floats,
    *,
    done: float = DONE,
    patient: bool = True,
    budget: Budget = ENDLESS,
) -> Floats:
    """Climb from a point strictly inside; each component takes steps of its own length until it has arrived.

    Who is not patient takes fewer steps, and goes on from wherever they lead.
    """
    x = start.copy()
    for _ in range(STEPS if patient else HASTY):
        budget.check()
        try:
            step, decrement = _newton_step(room, hill, x)
        except RuntimeError:  # rounding errors leave no step
            break
        moving, most = decrement > done, _most(room, hill, x, step)
        if not moving.any():
            return x + np.minimum(most, 1.0)[room.component] * step
        length = np.where(moving, _step_length(room, hill, x, step, most), 0.0)
        near = moving & (decrement < NEAR)
        length[near] = np.minimum(most[near], 1.0)
        x = x + length[room.component] * step
    if not patient:
        return x
    raise SolverFailure("Newton's method did not arrive.")


@dataclass(frozen=True, eq=False)
class Barrier:
    """The logarithms of the distances to the attacker's prior bounds.

    A component in which some cell has no end has no centre: such cells are held back by a weak spring, so that the
    others still have one.
    """

    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    endless: Mask = field(repr=False)
    rest: Floats = field(repr=False)
    stiffness: float

    @classmethod
    def of(cls, room: FeasibleRegion) -> Barrier:
        """The barrier of the prior bounds."""
        endless = ~(np.isfinite(room.lower) & np.isfinite(room.upper))
        finite = np.abs(np.concatenate([room.lower, room.upper, room.rhs]))
        size = float(np.max(finite[np.isfinite(finite)], initial=1.0))
        return cls(room.prior_lower, room.prior_upper, endless, room.anchor, 1.0 / size**2)

    def slope(self, x: Floats) -> Floats:
        """The first derivatives; infinite bounds drop out by themselves."""
        return (
            1.0 / (x - self.lower) - 1.0 / (self.upper - x) - np.where(self.endless, x - self.rest, 0) * self.stiffness
        )

    def curvature(self, x: Floats) -> Floats:
        """The second derivatives, with the sign that makes them positive."""
        return 1.0 / (x - self.lower) ** 2 + 1.0 / (self.upper - x) ** 2 + self.endless * self.stiffness


def _newton_step(room: FeasibleRegion, hill: Hill, x: Floats) -> tuple[Floats, Floats]:
    """The step that Newton's method proposes, and its length in its own norm, per component.

    Cells are measured by their distance to the bounds, which keeps the equations solvable at any size of values.
    """
    scale = 1.0 / np.sqrt(hill.curvature(x))
    slope = scale * hill.slope(x)
    matrix = sparse.csr_array(room.matrix @ sparse.diags_array(scale))
    size = 1.0 / np.sqrt(np.asarray(matrix.power(2).sum(axis=1)))
    matrix = sparse.csr_array(sparse.diags_array(size) @ matrix)
    missing = size * (room.rhs - np.asarray(room.matrix @ x))
    step = slope
    if matrix.shape[0]:
        from scipy.sparse.linalg import splu

        factors = splu(sparse.csc_array(matrix @ matrix.T), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        for _ in range(2):  # the second time refines the first
            step = step + matrix.T @ factors.solve(missing - np.asarray(matrix @ step))
    decrement = np.sqrt(np.bincount(room.component, weights=step**2, minlength=room.components))
    return scale * step, decrement


def _most(room: FeasibleRegion, hill: Hill, x: Floats, step: Floats) -> Floats:
    """How far each component may go along its step and still be inside."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(step < 0, (hill.lower - x) / step, (hill.upper - x) / step)
    most = np.full(room.components, 8.0)
    np.minimum.at(most, room.component, np.where(step == 0, np.inf, 0.99 * ratio))
    return most


def _step_length(room: FeasibleRegion, hill: Hill, x: Floats, step: Floats, most: Floats) -> Floats:
    """How far each component goes along its step: to its highest point, by halving, inside the bounds."""
    low, high = np.zeros(room.components), most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rise = hill.slope(x + middle[room.component] * step) * step
        rising = np.bincount(room.component, weights=rise, minlength=room.components) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return high


# A point as far inside as can be: every cell at least `reach · weight` from either end of its interval.


BLOCK = 256
"""Right-hand sides solved at once."""
DENSE = 4_000
"""Equations up to which a dense factor is used."""


def deep_point(room: FeasibleRegion, weight: Floats, *, budget: Budget = ENDLESS) -> Floats:
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


def _side(room: FeasibleRegion, cells: NDArray[np.intp], weight: Floats) -> sparse.csr_array:
    """`x + weight · reach`, one row per cell."""
    n, k = len(room), len(cells)
    row = np.arange(k)
    data = np.concatenate([np.ones(k), weight[cells]])
    column = np.concatenate([cells, n + room.component[cells]])
    return sparse.csr_array((data, (np.concatenate([row, row]), column)), shape=(k, n + room.components))


def _most_reach(room: FeasibleRegion, weight: Floats) -> Floats:
    """No reach exceeds half of the narrowest interval; 1 where all intervals are endless."""
    most = np.full(room.components, np.inf)
    np.minimum.at(most, room.component, (room.upper - room.lower) / (2 * weight))
    return np.where(np.isfinite(most), most, 1.0)


def steepness(room: FeasibleRegion, *, budget: Budget = ENDLESS) -> Floats:
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
        from scipy.linalg import cho_factor, cho_solve

        factor = cho_factor(square.toarray())
        return lambda rhs: np.asarray(cho_solve(factor, rhs))
    from scipy.sparse.linalg import splu

    factors = splu(sparse.csc_array(square), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    return lambda rhs: np.asarray(factors.solve(rhs))


# The analytic centre of an optimal face: where an interior-point method that keeps to the central path ends.
#
# With less and less weight on the distances to the bounds, the point of largest `Σ log distance − cost · x / weight`
# moves towards the least cost, and in the end to the centre of all points of least cost.


FASTER = 0.1
"""How much of the weight is left from one stage to the next."""
NEAR_THE_FACE = 1e-2
"""Newton decrement at which a stage is done."""
END = 1e-7
"""How far from the least cost the path may end, relative to how far it began."""


@dataclass(frozen=True, eq=False)
class _Tilted:
    """The distances to the bounds, and a pull downhill."""

    barrier: Barrier = field(repr=False)
    cost: Floats = field(repr=False)

    @property
    def lower(self) -> Floats:
        """The bounds of the barrier."""
        return self.barrier.lower

    @property
    def upper(self) -> Floats:
        """The bounds of the barrier."""
        return self.barrier.upper

    def slope(self, x: Floats) -> Floats:
        """The first derivatives."""
        return self.barrier.slope(x) - self.cost

    def curvature(self, x: Floats) -> Floats:
        """The second derivatives: the pull has none."""
        return self.barrier.curvature(x)


def face_centre(room: FeasibleRegion, cost: Floats, centre: Floats, *, budget: Budget = ENDLESS) -> Floats:
    """The centre of the points of least cost, from the centre of all points; there must be a least cost."""
    barrier = Barrier.of(room)
    bounds = float(np.isfinite(barrier.lower).sum() + np.isfinite(barrier.upper).sum())
    weight = max(float(np.max(np.abs(cost) * _room_of(barrier, centre), initial=0.0)), 1e-12)
    least = END * weight / bounds
    x = centre
    while weight > least:
        weight *= FASTER
        x = climb(room, _Tilted(barrier, cost / weight), x, done=NEAR_THE_FACE, budget=budget)
    return x


def _room_of(barrier: Barrier, x: Floats) -> Floats:
    """How far each cell is from its nearest bound."""
    near = np.minimum(x - barrier.lower, barrier.upper - x)
    return np.where(np.isfinite(near), near, 0.0)
