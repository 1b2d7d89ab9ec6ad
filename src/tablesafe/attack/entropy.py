"""Maximum entropy: the table nearest to a prior one, in the sense of information, that fits all that is published.

Iterative proportional fitting goes to the same table, one equation at a time; Newton's method goes there at once, also
where totals are unknown and where cells have bounds. (Csiszár, "I-divergence geometry of probability distributions and
minimization problems", Annals of Probability 3, 1975.)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.attack.centres import climb
from tablesafe.attack.estimate import Guess
from tablesafe.attack.feasible_region import FeasibleRegion
from tablesafe.attack.view import View
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.solve.exact.nullspace import null_space
from tablesafe.work.budget import ENDLESS, Budget

LEAST = 0.5
"""What a cell that was empty in the prior table counts for, in units of the last decimal."""
STAGES = tuple(0.1**k for k in range(1, 10))
"""The weight of bounds and of totals relative to the size of the table, stage by stage."""
NEAR = 1e-4
"""Newton decrement at which a stage is done."""
TINY = 1e-100
"""The least distance from a bound."""
SPRING = 1e-9
"""Curvature of a total that has no bound and could not be left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaximumEntropy:
    """Guess the table nearest to a prior one among all that fit what is published: iterative proportional fitting.

    The prior table is last period's, or all cells alike. Entropy is that of the finest cells; totals follow from them.
    Values that may be negative are measured from their least; those without a least are fitted by least squares. A cell
    without a largest value gets a guess only from a prior value of its own.
    """

    name: ClassVar[str] = "maximum entropy"

    prior: Floats | None = field(
        default=None,
        repr=False,
        metadata={"help": "a value per cell, NaN where none is known; all alike when left out"},
    )

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """Climb from a point inside, with the weight of the bounds going to nothing."""
        room = view.room
        if not len(room):
            return Guess(view.filled(np.zeros(0)))
        given = self._given(view)
        total = view.system.table.is_total[view.system.cells[view.free]]
        x = _nearest(room, _prior(room, given), total, view.inside(budget), budget)
        found = np.where(np.isnan(given) & ~view.bounded[view.free], np.nan, x)
        return Guess(view.filled(found), note="" if self.prior is None else "from a prior table")

    def _given(self, view: View) -> Floats:
        """The prior values of the free cells, in the system's units; NaN where there is none."""
        table = view.system.table
        if self.prior is None:
            return np.full(int(view.free.sum()), np.nan)
        prior = np.asarray(self.prior, dtype=np.float64)
        if prior.shape != (len(table),):
            raise InvalidOption(
                f"MaximumEntropy.prior must have one value per cell ({len(table):,}), got shape {prior.shape}.",
                hint="NaN stands for a cell of which nothing is known.",
                about=("option", "MaximumEntropy", "prior"),
            )
        return prior[view.system.cells[view.free]] * 10.0**table.decimals


def _prior(room: FeasibleRegion, given: Floats) -> Floats:
    """The prior with one and the same value for all cells of a component where none is given: their mean middle."""
    total = np.bincount(room.component, weights=room.anchor, minlength=room.components)
    alike = (total / np.bincount(room.component, minlength=room.components))[room.component]
    return np.where(np.isfinite(given), given, alike)


def _nearest(room: FeasibleRegion, prior: Floats, total: Mask, start: Floats, budget: Budget) -> Floats:
    """The additive point nearest to the prior, from a point inside."""
    spare = total & ~_matters(room)
    left = np.flatnonzero(~spare)
    less = _without(room, spare)
    if less is None:
        spare, left, less = np.zeros_like(spare), np.arange(len(room)), room
    hill, x = _Entropy.of(less, prior[left], total[left]), start[left]
    if hill.walled.any() or hill.plain.any():
        for share in STAGES:
            x = climb(less, hill.at(share), x, done=NEAR, patient=False, budget=budget)
    else:
        x = climb(less, hill, x, done=NEAR * NEAR, patient=False, budget=budget)
    return _completed(room, x, left, spare)


def _matters(room: FeasibleRegion) -> Mask:
    """Cells with a bound that the equations and the bounds of the others do not imply."""
    slack = 1e-9 * np.maximum(1.0, np.abs(room.anchor))
    below = np.isfinite(room.prior_lower) & (room.lower <= room.prior_lower + slack)
    if (room.prior_lower >= 0).all():
        below &= room.prior_lower > 0  # a sum of what is not negative is not negative
    return np.asarray(below | (np.isfinite(room.prior_upper) & (room.upper >= room.prior_upper - slack)), np.bool_)


def _without(room: FeasibleRegion, spare: Mask) -> FeasibleRegion | None:
    """The room without totals that follow from the rest: the sums of equations in which they cancel."""
    if not spare.any():
        return room
    columns = room.matrix.tocsc()
    sums = null_space(sparse.csr_array(columns[:, np.flatnonzero(spare)].T.astype(np.int64)))
    if sums is None:
        return None
    moves = np.flatnonzero(sums.form >= 0)
    each = sparse.diags_array(1.0 / sums.divisor[moves]) @ sums.forms.astype(np.float64)[sums.form[moves]]
    combine, left = sparse.csr_array(each.T), np.flatnonzero(~spare)
    matrix = sparse.csr_array(combine @ columns[:, left].tocsr()[moves])
    matrix.eliminate_zeros()
    return FeasibleRegion(
        matrix, np.asarray(combine @ room.rhs[moves]), room.prior_lower[left], room.prior_upper[left], room.lower[left],
        room.upper[left],
    )  # fmt: skip


def _completed(room: FeasibleRegion, x: Floats, left: NDArray[np.intp], spare: Mask) -> Floats:
    """The point with the totals that were left out."""
    out = np.empty(len(room))
    out[left] = x
    if spare.any():
        columns = room.matrix.tocsc()
        theirs = columns[:, np.flatnonzero(spare)]
        missing = room.rhs - np.asarray(columns[:, left] @ x)
        square = sparse.csc_array(theirs.T @ theirs)
        from scipy.sparse.linalg import splu

        out[spare] = splu(square).solve(np.asarray(theirs.T @ missing))
    return out


@dataclass(frozen=True, eq=False)
class _Entropy:
    """Per cell `d − d · log(d / prior)` with `d` its distance from where it is measured, and walls at the other bounds.

    Divided by the weight of the walls, so that these keep their shape from stage to stage.
    """

    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    origin: Floats = field(repr=False)
    """Where each cell is measured from; −∞ for least squares."""
    prior: Floats = field(repr=False)
    plain: Mask = field(repr=False)
    """Cells without entropy of their own: totals."""
    low_wall: Mask = field(repr=False)
    """Cells with a lower bound, other than the origin, that matters."""
    high_wall: Mask = field(repr=False)
    """Cells with an upper bound that matters."""
    wall: Floats = field(repr=False)
    """The weight of the walls: the size of the component's largest cell, and less and less of it."""

    @property
    def walled(self) -> Mask:
        """Cells with a wall."""
        return self.low_wall | self.high_wall

    @classmethod
    def of(cls, room: FeasibleRegion, prior: Floats, total: Mask) -> Self:
        """Nothing is measured from above 0; what can be negative, from its least."""
        lower, upper = room.prior_lower, room.prior_upper
        origin = np.minimum(lower, 0.0)
        matters = _matters(room) | total
        walls = np.isfinite(lower) & matters & (total | (lower != origin)), np.isfinite(upper) & matters
        size = np.zeros(room.components)
        np.maximum.at(size, room.component, np.abs(room.anchor))
        scale = np.maximum(size, 1.0)[room.component]
        floor = np.where(np.isfinite(origin), origin + LEAST, -np.inf)
        return cls(lower, upper, origin, np.maximum(prior, floor), total, *walls, scale)

    def at(self, share: float) -> _Entropy:
        """The same with walls of less weight."""
        return replace(self, wall=self.wall * share)

    def slope(self, x: Floats) -> Floats:
        """The first derivatives."""
        counted, squared, loose = self._kinds
        out = np.zeros(len(x))
        origin, prior = self.origin[counted], self.prior[counted]
        out[counted] = -np.log(np.maximum(x[counted] - origin, TINY) / (prior - origin))
        out[squared] = (self.prior[squared] - x[squared]) / np.maximum(np.abs(self.prior[squared]), 1.0)
        out[loose] = SPRING * (self.prior[loose] - x[loose])
        out /= self.wall
        out[self.low_wall] += 1.0 / np.maximum((x - self.lower)[self.low_wall], TINY)
        out[self.high_wall] -= 1.0 / np.maximum((self.upper - x)[self.high_wall], TINY)
        return out

    def curvature(self, x: Floats) -> Floats:
        """The second derivatives, with the sign that makes them positive."""
        counted, squared, loose = self._kinds
        out = np.zeros(len(x))
        out[counted] = 1.0 / np.maximum(x[counted] - self.origin[counted], TINY)
        out[squared] = 1.0 / np.maximum(np.abs(self.prior[squared]), 1.0)
        out[loose] = SPRING
        out /= self.wall
        out[self.low_wall] += 1.0 / np.maximum((x - self.lower)[self.low_wall], TINY) ** 2
        out[self.high_wall] += 1.0 / np.maximum((self.upper - x)[self.high_wall], TINY) ** 2
        return out

    @property
    def _kinds(self) -> tuple[Mask, Mask, Mask]:
        """Cells with entropy, cells fitted by least squares, and totals that nothing holds."""
        measured = np.isfinite(self.origin)
        return ~self.plain & measured, ~self.plain & ~measured, self.plain & ~self.walled
