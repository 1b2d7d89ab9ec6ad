"""The highest additive point of a sum of concave functions, one per cell, by Newton's method.

With the logarithms of the distances to the bounds it is the analytic centre of the intruder's polytope: the point where
the product of all distances is largest, which interior-point solvers approach when nothing is to be minimised. (Boyd &
Vandenberghe, Convex Optimization, 8.5.3.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from tablesafe.attack.room import Room
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import SolverFailure
from tablesafe.work.budget import ENDLESS, Budget

STEPS = 300
HASTY = 60
DONE = 1e-9
"""Newton decrement at which a component has reached its centre."""
NEAR = 1e-3
"""Newton decrement below which whole steps are taken: too near for a search along the step to tell."""
HALVINGS = 30


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


def analytic_centre(room: Room, start: Floats, *, budget: Budget = ENDLESS) -> Floats:
    """Climb from a point strictly inside to where the product of all distances to the bounds is largest."""
    return climb(room, Barrier.of(room), start, budget=budget)


def climb(
    room: Room, hill: Hill, start: Floats, *, done: float = DONE, patient: bool = True, budget: Budget = ENDLESS
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


def _newton_step(room: Room, hill: Hill, x: Floats) -> tuple[Floats, Floats]:
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
        factors = splu(sparse.csc_array(matrix @ matrix.T), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        for _ in range(2):  # the second time refines the first
            step = step + matrix.T @ factors.solve(missing - np.asarray(matrix @ step))
    decrement = np.sqrt(np.bincount(room.component, weights=step**2, minlength=room.components))
    return scale * step, decrement


def _most(room: Room, hill: Hill, x: Floats, step: Floats) -> Floats:
    """How far each component may go along its step and still be inside."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(step < 0, (hill.lower - x) / step, (hill.upper - x) / step)
    most = np.full(room.components, 8.0)
    np.minimum.at(most, room.component, np.where(step == 0, np.inf, 0.99 * ratio))
    return most


def _step_length(room: Room, hill: Hill, x: Floats, step: Floats, most: Floats) -> Floats:
    """How far each component goes along its step: to its highest point, by halving, inside the bounds."""
    low, high = np.zeros(room.components), most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rise = hill.slope(x + middle[room.component] * step) * step
        rising = np.bincount(room.component, weights=rise, minlength=room.components) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return high
