"""The analytic centre of an optimal face: where an interior-point method that keeps to the central path ends.

With less and less weight on the distances to the bounds, the point of largest `Σ log distance − cost · x / weight`
moves towards the least cost, and in the end to the centre of all points of least cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tablesafe.attack.newton import Barrier, climb
from tablesafe.attack.room import Room
from tablesafe.core.equations import Floats
from tablesafe.work.budget import ENDLESS, Budget

FASTER = 0.1
"""How much of the weight is left from one stage to the next."""
NEAR = 1e-2
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


def face_centre(room: Room, cost: Floats, centre: Floats, *, budget: Budget = ENDLESS) -> Floats:
    """The centre of the points of least cost, from the centre of all points; there must be a least cost."""
    barrier = Barrier.of(room)
    bounds = float(np.isfinite(barrier.lower).sum() + np.isfinite(barrier.upper).sum())
    weight = max(float(np.max(np.abs(cost) * _room_of(barrier, centre), initial=0.0)), 1e-12)
    least = END * weight / bounds
    x = centre
    while weight > least:
        weight *= FASTER
        x = climb(room, _Tilted(barrier, cost / weight), x, done=NEAR, budget=budget)
    return x


def _room_of(barrier: Barrier, x: Floats) -> Floats:
    """How far each cell is from its nearest bound."""
    near = np.minimum(x - barrier.lower, barrier.upper - x)
    return np.where(np.isfinite(near), near, 0.0)
