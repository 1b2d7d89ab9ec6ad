"""Point estimates from the shape of what is possible: corners, centres and middles. Each is a frozen dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tablesafe.attack.centres import deep_point, steepness
from tablesafe.attack.estimate import Guess
from tablesafe.attack.optima import NearestPoint, vertex
from tablesafe.attack.view import View
from tablesafe.solve.interior import Predictor
from tablesafe.solve.program import Program
from tablesafe.work.budget import ENDLESS, Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticCentre:
    """Guess the additive table with the largest product of distances to what the intruder knows as bounds.

    What an interior-point solver finds when it is given nothing to minimise. Cells without a largest value have no
    centre, and get no guess. (Dandekar, "Protecting Sensitive Tabular Data by Complementary Cell Suppression: Myth &
    Reality", Table 3.)
    """

    name: ClassVar[str] = "analytic centre"

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """Start where every cell keeps the same share of its interval on either side, then climb."""
        return Guess(view.where_bounded(view.centre(budget)))


@dataclass(frozen=True, slots=True, kw_only=True)
class InteriorPoint:
    """Guess where an interior-point solver stops that begins outside and is given nothing to minimise.

    It stops as soon as all sums hold, at a point that depends on where it began: Mehrotra's start, as in the solver PCx
    of Dandekar's paper. Cells without a largest value get no guess.
    """

    name: ClassVar[str] = "interior point"

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """The predictor–corrector method with a null objective."""
        room = view.room
        if not len(room):
            return Guess(view.filled(np.zeros(0)))
        program = Predictor(room.matrix, room.rhs, room.prior_lower, room.prior_upper)
        return Guess(view.where_bounded(program.least(np.zeros(len(room)), budget=budget)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedValue:
    """Guess what is published, where values were changed and not withheld: the guess that costs no thought."""

    name: ClassVar[str] = "published value"
    needs_changes: ClassVar[bool] = True
    """It guesses nothing where every published value is the truth."""

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """The values of the release; none where it shows none."""
        shown = np.full(len(view.system), np.nan)
        if view.source is not None:
            problem, release = view.source
            shown = release.values[view.system.cells] * 10.0**problem.table.decimals
        return Guess(np.where(view.free, shown, view.lower))


@dataclass(frozen=True, slots=True, kw_only=True)
class Midpoint:
    """Guess the middle of each cell's exact interval; the guesses need not add up.

    Where the bounds that an intruder starts from lie symmetrically about the truth, the middle *is* the truth. (Cox,
    "Vulnerability of Complementary Cell Suppression to Intruder Attack".)
    """

    name: ClassVar[str] = "midpoint"

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """The middle of each exact interval."""
        return Guess(view.where_bounded(view.room.anchor))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveMidpoint:
    """Guess the additive table that takes the least change from the middles of all intervals.

    The centroid program of Dandekar: estimate = centroid + y⁺ − y⁻ with the least sum of the changes. There may be
    several such tables; this is one of them. Cells without a largest value get no guess.
    """

    name: ClassVar[str] = "additive midpoint"

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """One linear program."""
        room = view.room
        if not len(room):
            return Guess(view.filled(np.zeros(0)))
        ranged = np.isfinite(room.lower) & np.isfinite(room.upper)
        program = NearestPoint(room.matrix, room.rhs, room.lower, room.upper, ranged.astype(np.float64))
        return Guess(view.where_bounded(program.to(room.anchor, budget=budget)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplexVertex:
    """Guess the first table that the simplex method finds when it is given nothing to minimise.

    A corner of what is possible: many cells at their bounds, which makes it a poor guess but the cheapest.
    """

    name: ClassVar[str] = "simplex vertex"

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """A vertex of the polytope, by a null objective."""
        room = view.room
        if not len(room):
            return Guess(view.filled(np.zeros(0)))
        program = Program.equations(room.matrix, room.rhs, room.prior_lower, room.prior_upper)
        return Guess(view.filled(vertex(program, budget=budget)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChebyshevCentre:
    """Guess the centre of a largest ball that fits between the bounds, in the dimension that the equations leave.

    Each component has its ball. A component with one tight cell may hold many balls of the same size: the guess is a
    centre amid theirs. Cells without a largest value get no guess.
    """

    name: ClassVar[str] = "chebyshev centre"

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """The centre of a largest ball, by one linear program."""
        room = view.room
        if not len(room):
            return Guess(view.filled(np.zeros(0)))
        return Guess(view.where_bounded(deep_point(room, steepness(room, budget=budget), budget=budget)))
