"""Point estimates: one guess per unknown cell. Each attack is a frozen dataclass; `ATTACKS` names them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from tablesafe.attack.inside import deep_point, steepness
from tablesafe.attack.newton import analytic_centre
from tablesafe.attack.view import View
from tablesafe.equations import Floats
from tablesafe.solve.vertex import vertex


class Attack(Protocol):
    """A way to guess: its options are its fields."""

    name: ClassVar[str]

    def guess(self, view: View) -> Floats:
        """A value for every unknown cell, in the system's units; NaN where the attack has no answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticCentre:
    """Guess the additive table with the largest product of distances to what the intruder knows as bounds.

    What an interior-point solver finds when it is given nothing to minimise. Cells without a largest value have no
    centre, and get no guess. (Dandekar, "Protecting Sensitive Tabular Data by Complementary Cell Suppression: Myth &
    Reality", Table 3.)
    """

    name: ClassVar[str] = "analytic centre"

    def guess(self, view: View) -> Floats:
        """Start where every cell keeps the same share of its interval on either side, then climb."""
        room = view.room
        if not len(room):
            return view.filled(np.zeros(0))
        width = room.upper - room.lower
        finite = np.isfinite(width)
        start = deep_point(room, np.where(finite, width, np.max(width[finite], initial=1.0)))
        return _where_bounded(view, view.filled(analytic_centre(room, start)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Midpoint:
    """Guess the middle of each cell's exact interval; the guesses need not add up.

    Where the bounds that an intruder starts from lie symmetrically about the truth, the middle *is* the truth. (Cox,
    "Vulnerability of Complementary Cell Suppression to Intruder Attack".)
    """

    name: ClassVar[str] = "midpoint"

    def guess(self, view: View) -> Floats:
        """The middle of each exact interval."""
        with np.errstate(invalid="ignore"):
            return _where_bounded(view, view.lower + (view.upper - view.lower) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplexVertex:
    """Guess the first table that the simplex method finds when it is given nothing to minimise.

    A corner of what is possible: many cells at their bounds, which makes it a poor guess but the cheapest.
    """

    name: ClassVar[str] = "simplex vertex"

    def guess(self, view: View) -> Floats:
        """A vertex of the polytope, by a null objective."""
        room = view.room
        if not len(room):
            return view.filled(np.zeros(0))
        found = vertex(np.zeros(len(room)), room.matrix, room.rhs, room.rhs, room.prior_lower, room.prior_upper)
        return view.filled(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChebyshevCentre:
    """Guess the centre of a largest ball that fits between the bounds, in the dimension that the equations leave.

    Each component has its ball. A component with one tight cell may hold many balls of the same size: the guess is a
    centre amid theirs. Cells without a largest value get no guess.
    """

    name: ClassVar[str] = "chebyshev centre"

    def guess(self, view: View) -> Floats:
        """The centre of a largest ball, by one linear program."""
        room = view.room
        if not len(room):
            return view.filled(np.zeros(0))
        return _where_bounded(view, view.filled(deep_point(room, steepness(room))))


ATTACKS: dict[str, type[Attack]] = {
    attack.name: attack for attack in (AnalyticCentre, ChebyshevCentre, Midpoint, SimplexVertex)
}
"""Every attack by its name."""


def _where_bounded(view: View, guess: Floats) -> Floats:
    return np.where(view.bounded, guess, np.nan)
