"""The analytic centre of the intruder's polytope, by Newton's method.

The centre is the additive point where the product of all distances to the bounds is largest: the point that
interior-point solvers approach when nothing is to be minimised. (Boyd & Vandenberghe, Convex Optimization, 8.5.3.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from tablesafe.attack.view import Room
from tablesafe.equations import Floats, Mask
from tablesafe.errors import SolverFailure

STEPS = 300
DONE = 1e-9
"""Newton decrement at which a component has reached its centre."""
HALVINGS = 30


def analytic_centre(room: Room, start: Floats) -> Floats:
    """Climb from a point strictly inside; each component takes steps of its own length until it has arrived."""
    barrier = Barrier.of(room)
    x = start.copy()
    for _ in range(STEPS):
        step, decrement = _newton_step(room, barrier, x)
        moving = decrement > DONE
        if not moving.any():
            return x + step
        length = np.where(moving, _step_length(room, barrier, x, step), 0.0)
        length[moving & (decrement < 0.1)] = 1.0
        x = x + length[room.component] * step
    raise SolverFailure(f"Newton's method did not reach the analytic centre in {STEPS} steps.")


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
    def of(cls, room: Room) -> Barrier:
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


def _newton_step(room: Room, barrier: Barrier, x: Floats) -> tuple[Floats, Floats]:
    """The step that Newton's method proposes, and its length in its own norm, per component.

    Cells are measured by their distance to the bounds, which keeps the equations solvable at any size of values.
    """
    scale = 1.0 / np.sqrt(barrier.curvature(x))
    slope = scale * barrier.slope(x)
    matrix = sparse.csr_array(room.matrix @ sparse.diags_array(scale))
    size = 1.0 / np.sqrt(np.asarray(matrix.power(2).sum(axis=1)))
    matrix = sparse.csr_array(sparse.diags_array(size) @ matrix)
    missing = size * (room.rhs - np.asarray(room.matrix @ x))
    step = slope
    if matrix.shape[0]:
        factors = splu(sparse.csc_array(matrix @ matrix.T), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        for _ in range(2):  # the second time refines the first
            step = step + matrix.T @ factors.solve(missing - np.asarray(matrix @ step))
    decrement = np.sqrt(np.bincount(room.component, weights=step**2, minlength=room.components))
    return scale * step, decrement


def _step_length(room: Room, barrier: Barrier, x: Floats, step: Floats) -> Floats:
    """How far each component goes along its step: to its highest point, by halving, inside the bounds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(step < 0, (barrier.lower - x) / step, (barrier.upper - x) / step)
    most = np.full(room.components, 8.0)
    np.minimum.at(most, room.component, np.where(step == 0, np.inf, 0.99 * ratio))
    low, high = np.zeros(room.components), most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rise = barrier.slope(x + middle[room.component] * step) * step
        rising = np.bincount(room.component, weights=rise, minlength=room.components) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return high
