"""What a pattern must allow: how far cells must be able to move, and in whose eyes.

Everybody sees the release. A respondent knows its own contributions besides, so that fewer deviations convince it: its
question is the same with less room. A sum that the release gives away is a cell of its own that must move; it is asked
about while all its parts are withheld.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask

SHORT = 1e-9
"""A level is reached when no larger share of it is missing, and cuts ask for so much less: they cut off nothing that
counts as safe."""
EVERYBODY = -1
"""The number of a view that is nobody's own."""


@dataclass(frozen=True, eq=False)
class View:
    """What somebody knows beyond the release: less room for some (ascending) cells."""

    cells: Integers
    up: Floats
    down: Floats
    unless: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Cells that are only asked about together: when one of them is published, nothing is asked."""

    def within(self, cells: Integers) -> tuple[Integers, Integers]:
        """Which of some cells it knows something about: their places there, and in the view."""
        at = np.searchsorted(self.cells, cells)
        at[at == len(self.cells)] = 0
        here = np.flatnonzero(self.cells[at] == cells) if len(self.cells) else np.zeros(0, dtype=np.int64)
        return here, at[here]

    def rooms(self, cells: Integers, up: Floats, down: Floats) -> tuple[Floats, Floats]:
        """The rooms of some cells as they are seen from here."""
        if not len(self.cells):
            return up, down
        here, at = self.within(cells)
        if len(here):
            up, down = up.copy(), down.copy()
            up[here] = np.minimum(up[here], self.up[at])
            down[here] = np.minimum(down[here], self.down[at])
        return up, down

    def allows(self, cells: Integers, amount: Floats) -> bool:
        """Whether a deviation cannot be ruled out from here."""
        here, at = self.within(cells)
        by = amount[here]
        return bool(((by <= self.up[at] * (1 + SHORT)) & (-by <= self.down[at] * (1 + SHORT))).all())


NOTHING = View(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
"""What an outsider knows beyond the table."""


@dataclass(frozen=True, eq=False)
class Targets:
    """How far cells must be able to move: up (`sign` 1), down (−1), or from one end to the other (0), in units."""

    cell: Integers
    sign: NDArray[np.int8]
    level: Floats
    views: tuple[View, ...] = ()
    seen_from: Integers | None = None
    """The number of the view that each is asked from, −1 for what everybody sees; None: all are."""

    def __len__(self) -> int:
        return len(self.cell)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    @property
    def view(self) -> Integers:
        """The number of the view that each is asked from."""
        return np.full(len(self), EVERYBODY, dtype=np.int64) if self.seen_from is None else self.seen_from

    def view_of(self, at: int) -> View:
        """What is known to those from whom one must be protected."""
        number = EVERYBODY if self.seen_from is None else int(self.seen_from[at])
        return NOTHING if number == EVERYBODY else self.views[number]

    def take(self, which: Integers) -> Targets:
        """Some of them."""
        seen = None if self.seen_from is None else self.seen_from[which]
        return Targets(self.cell[which], self.sign[which], self.level[which], self.views, seen)

    def and_also(self, others: Targets) -> Targets:
        """These and others."""
        theirs = np.where(others.view == EVERYBODY, EVERYBODY, others.view + len(self.views))
        return Targets(
            np.concatenate([self.cell, others.cell]),
            np.concatenate([self.sign, others.sign]),
            np.concatenate([self.level, others.level]),
            self.views + others.views,
            np.concatenate([self.view, theirs]),
        )

    @cached_property
    def enough(self) -> Floats:
        """The levels less what may be missing."""
        return self.level * (1 - SHORT) - np.minimum(1e-6 * self.level, 1e-7)

    def settled_by(
        self, which: Integers, asked: int, cells: Integers, amount: Floats, moved: Floats, back: float = 0.0
    ) -> Mask:
        """Which of some targets a deviation protects that was found for the target `asked`.

        `moved` is how far it moves each of them. What convinces somebody convinces everybody; somebody else must be
        unable to rule it out. Those who believe it believe its reverse too, `back` times as far.
        """
        along, enough = self.sign[which] * moved, self.enough[which]  # more than nothing
        if self.seen_from is None:
            return np.asarray((along if not back else np.maximum(along, along * -back)) >= enough)
        settled: Mask = np.asarray(along >= enough)
        reverse: Mask = np.asarray(along * -back >= enough)
        view, own = self.seen_from[which], int(self.seen_from[asked])
        for number in np.unique(view[settled]).tolist():
            if number not in {EVERYBODY, own} and not self.views[number].allows(cells, amount):
                settled &= view != number
        return np.asarray(settled | (reverse & ((view == EVERYBODY) | (view == own))))
