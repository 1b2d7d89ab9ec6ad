"""Who swaps with whom: those at risk first, across the borders of the level at which they are; then as the rate asks.

The method is that of Shlomo, Tudor & Groom, "Data swapping for protecting census tables" (2010), as in the R package
recordSwapping: a unit that is too rare in an area of some level swaps with a like unit of another area of that level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, Mask
from tablesafe.methods.microdata.numbering import paired, shuffled
from tablesafe.methods.microdata.strata import Targets
from tablesafe.methods.swap.pairing import Pairs


@dataclass(frozen=True, eq=False)
class Search:
    """What a swap is made from: places at every level, classes of like units by profile, and who is at risk."""

    levels: tuple[Integers, ...] = field(repr=False)
    profiles: tuple[Integers, ...] = field(repr=False)
    """Classes of units that may swap, the strictest first."""
    risky: Integers = field(repr=False)
    """The coarsest level at which each unit is at risk; the number of levels for none."""
    alike: Integers = field(repr=False)
    """How many are like it there: the fewer, the sooner it is swapped."""
    usable: Mask = field(repr=False)
    targets: Targets = field(repr=False)
    all_at_risk: bool

    @property
    def area(self) -> Integers:
        """The finest area of each unit."""
        return self.levels[-1]

    def start(self) -> Pairs:
        """Nobody has a partner; each area has as many swaps as were drawn for it."""
        return Pairs.start(self.area, self.usable, self.targets.drawn)

    def run(self, pairs: Pairs, random: np.random.Generator) -> None:
        """Pair units until every area has its number or nobody is left who fits."""
        at_risk = self.risky < len(self.levels)
        if self.all_at_risk:
            pairs.left[:] = self.targets.units - pairs.done()
        for level in range(len(self.levels)):
            turn = np.flatnonzero(self.risky == level)
            turn = turn[shuffled(random, self.alike[turn])]
            for profile in range(len(self.profiles)):
                self.pair(pairs, random, turn, level, profile, at_risk)
                self.pair(pairs, random, turn, level, profile, self.usable)
        if self.all_at_risk:
            pairs.left[:] = np.maximum(self.targets.drawn - pairs.done(), 0)
        most = int(pairs.left.max(initial=0))
        turn = shuffled(random, most - pairs.left[self.area])  # who has most to swap asks while there is most to choose
        for profile in range(len(self.profiles)):
            self.pair_all(pairs, random, turn, profile, self.usable)

    def pair(
        self, pairs: Pairs, random: np.random.Generator, turn: NDArray[np.intp], level: int, profile: int, donor: Mask
    ) -> None:
        """Pair across the areas of a level, within the area above where that can be done.

        A donor that is at risk at a coarser level crosses the border of that level, and no pair is made without.
        """
        for border in range(level, -1, -1):
            fits = donor & (self.risky >= level if border == level else self.risky == border)
            if not turn.size or not fits.any():
                continue
            if border:
                pairs.match(random, turn, self._within[border, profile], self.levels[border], fits)
            pairs.match(random, turn, self.profiles[profile], self.levels[border], fits)

    def pair_all(
        self, pairs: Pairs, random: np.random.Generator, turn: NDArray[np.intp], profile: int, donor: Mask
    ) -> None:
        """Pair units across the borders that their own risk asks to cross; those at no risk, across the finest."""
        finest = len(self.levels) - 1
        own = np.minimum(self.risky[turn], finest)
        for level in range(finest + 1):
            self.pair(pairs, random, turn[own == level], level, profile, donor)

    def apart(self, one: NDArray[np.intp], other: NDArray[np.intp]) -> Mask:
        """Whether units live on different sides of the borders that their risk asks to cross."""
        level = np.minimum(np.minimum(self.risky[one], self.risky[other]), len(self.levels) - 1)
        places = np.stack([place[np.concatenate([one, other])] for place in self.levels])
        at = np.arange(len(one))
        return np.asarray(places[level, at] != places[level, at + len(one)])

    @cached_property
    def _within(self) -> dict[tuple[int, int], Integers]:
        """Like units of one area of the level above, by level and profile."""
        out: dict[tuple[int, int], Integers] = {}
        for level in range(1, len(self.levels)):
            above = self.levels[level - 1]
            for number, profile in enumerate(self.profiles):
                out[level, number] = paired(profile, above)
        return out


def changes_of(pairs: Pairs, first: NDArray[np.intp], unit: Integers) -> NDArray[np.intp]:
    """The record from which each record takes its area: one of its unit's partner, or itself."""
    out = np.arange(len(unit), dtype=np.intp)
    moved = pairs.partner[unit] >= 0
    out[moved] = first[pairs.partner[unit[moved]]]
    return out


def by_profile(pairs: Pairs, profiles: Sequence[Integers]) -> list[int]:
    """How many units swap with one that is alike by each profile, and by none before it."""
    at = np.flatnonzero(pairs.swapped)
    other = pairs.partner[at]
    out, rest = [], np.ones(len(at), dtype=np.bool_)
    for profile in profiles:
        same = rest & (profile[at] == profile[other])
        out.append(int(same.sum()))
        rest &= ~same
    return out
