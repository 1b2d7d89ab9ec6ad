"""Deviations: how cells move together without changing anything published, and the protocol of all that find them.

A target is protected by a deviation that moves its cell as far as it must get, within the room that each cell has in
the eyes of an attacker. There are three kinds of finders, for whole tables and for parts of them:

- hypercubes (`tablesafe.methods.suppress.hypercubes`), which take microseconds and find the short deviations only;
- flows (`tablesafe.methods.suppress.flow`), in tables that are networks;
- linear programs (`tablesafe.methods.suppress.linear_programs`), over the cells around the target.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask

NEGLIGIBLE = 1e-7
"""A move, in levels, that is noise of a solver."""
NOBODY: Integers = np.zeros(0, dtype=np.int64)
"""No target is served."""


@dataclass(frozen=True, slots=True, eq=False)
class Deviation:
    """Cells and by how much each moves, in units of the table; and the targets that rely on it."""

    cells: Integers = field(repr=False)
    amount: Floats = field(repr=False)
    served: Integers = field(default_factory=lambda: NOBODY)
    guarded: bool = False
    """Whether no single respondent can rule it out."""

    def whole(self, n: int) -> Floats:
        """By how much each of so many cells moves."""
        out = np.zeros(n)
        out[self.cells] = self.amount
        return out


class Room(NamedTuple):
    """How far each cell may rise and fall, in the eyes of somebody; one that may do neither stays as it is."""

    up: Floats
    down: Floats


class Wanted(NamedTuple):
    """A deviation that is looked for: it moves a cell one way (`sign`) by a level."""

    cell: int
    sign: int
    level: float
    price: Floats
    """What it costs to move each cell; infinite for one that must stay."""
    room: Room
    most: float = np.inf
    """What it may cost."""
    effort: int = 0
    """How wide to look, for finders that look around the cell; at 0, no further than takes next to no time."""
    first: Mask | None = None
    """Cells that are tried first, together with what is withheld already."""


class DeviationFinder(Protocol):
    """Finds the cheapest deviation that is wanted, or one that is cheap; None where there is none."""

    def cheapest(self, wanted: Wanted) -> Deviation | None:
        """The deviation; nobody relies on it yet."""
        ...
