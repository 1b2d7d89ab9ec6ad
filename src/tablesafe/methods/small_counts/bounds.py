"""What a reader may conclude about the true counts from a table in which small counts were rounded.

The reader knows the limit b, and the method: a unit of 1 to b − 1 that is part of a small published count became 0 or
b, every other unit stayed as it is, and published counts are sums of units. So

- a unit that shows 0 is at most b − 1, one that shows b is at least 1, and any other is what it shows;
- a unit was changed only if some published count with it consists of changed units and zeros, hence is a multiple of b;
- the rounded counts themselves add up exactly: that bounds those which are not shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.small_counts.histories import Histories
from tablesafe.methods.small_counts.units import Units
from tablesafe.solve.propagate import propagate

FEW = 150
"""Units times cells up to which all tables that could have become a table with cells not shown are gone through."""
MANY = 2_000
"""Cells not shown up to which the bounds on their rounded counts are exact; beyond, only each equation is used."""
NOISE = 1e-6


@dataclass(frozen=True, eq=False)
class Reader:
    """What the public sees: the rounded counts of the published cells, and which of these are known to be true."""

    units: Units = field(repr=False)
    values: Integers = field(repr=False)
    """The rounded counts of all cells; only those of published cells are used."""
    known: Mask = field(repr=False)
    """Cells that are announced to be published as they are."""
    limit: int
    occupied: bool
    """Whether it is known that no published cell is empty, because empty ones are left out."""

    def concludes(self) -> tuple[Floats, Floats]:
        """The least and the most that each cell can be; 0 and infinity where nothing can be concluded."""
        return self._by_counts() if self._all_shown or not self.is_exact else self._by_all_histories()

    @property
    def is_exact(self) -> bool:
        """Whether some table that could have become this one reaches every bound."""
        return self._all_shown or int(self.units.first.sum()) * len(self.values) <= FEW

    @property
    def _all_shown(self) -> bool:
        return bool(self.units.published[self.units.structure.inner].all())

    def _by_all_histories(self) -> tuple[Floats, Floats]:
        """By all the tables that could have become this one."""
        units = self.units
        shown = np.flatnonzero(units.published)
        whole, touched = units.of_cells()
        histories = Histories(whole[shown], self.values[shown], self.known[shown], self.limit, self.occupied)
        return histories.ends(whole, touched, self._by_counts())

    def _by_counts(self) -> tuple[Floats, Floats]:
        """By numbers of units: exact where all inner cells are shown, elsewhere perhaps wider than what can be."""
        low, high = self.rounded()
        whole = self.units.whole()
        lower, upper = self._true(low, high, *self._of_units(low, high, whole))
        if self.occupied:
            lower = np.where(self.units.published, np.maximum(lower, 1.0), lower)
        exact = self.units.published & self.known
        lower = np.where(exact, self.values, np.where(whole, lower, 0.0)) + 0.0  # no negative zero
        upper = np.where(exact, self.values, np.where(whole, upper, np.inf))
        if self._all_shown:
            up = self.units.structure.up
            lower, upper = np.maximum(lower, up(lower)), np.minimum(upper, up(upper))
        return lower, upper

    def rounded(self) -> tuple[Floats, Floats]:
        """The least and the most that the rounded count of each cell can be: those shown are what they are."""
        table, hidden = self.units.structure.table, ~self.units.published
        low = np.where(hidden, 0.0, self.values)
        high = np.where(hidden, np.inf, self.values)
        if not hidden.any():
            return low, high
        low, high = propagate(table.equations, low, high)
        unknown = np.flatnonzero(low < high)
        if 0 < len(unknown) <= MANY:
            system = System.over(replace(table, integers=self.values), unknown, low[unknown], high[unknown])
            found = exact_intervals(system)
            low[unknown] = np.maximum(low[unknown], np.ceil(found.lower - NOISE))
            high[unknown] = np.minimum(high[unknown], np.floor(found.upper + NOISE))
        return low, high

    def _of_units(self, low: Floats, high: Floats, whole: Mask) -> tuple[Floats, Floats]:
        """The same for the units, at their representatives: by the cells that are a single unit."""
        first, up = self.units.first, self.units.structure.up
        least, most = np.zeros(len(low)), high.copy()
        single = whole & (up(first.astype(np.int64)) == 1)
        unit = up(np.where(first, np.arange(len(low)), 0))[single]
        np.maximum.at(least, unit, low[single])
        np.minimum.at(most, unit, high[single])
        return least, most

    def _true(self, low: Floats, high: Floats, least: Floats, most: Floats) -> tuple[Floats, Floats]:
        """The bounds on the true counts of cells, from those on the rounded counts of cells and of units."""
        b, first, up = self.limit, self.units.first, self.units.structure.up
        parts = up(first.astype(np.int64))
        changeable = self._changeable(parts, least, most)
        fixed = up(np.where(first, least, 0.0))
        raised = changeable & (least <= b) & (b <= most)
        sure, free = up((raised & (least > 0)).astype(np.int64)), up((raised & (least == 0)).astype(np.int64))
        zeros = up((changeable & (least == 0)).astype(np.int64))

        def lowered(rounded: Floats) -> Floats:
            """The least true count behind a rounded one: as many units as possible went up from 1."""
            ups = sure + np.minimum(free, np.floor((rounded - fixed) / b))
            ups -= (ups == parts) & (rounded != b * parts) & (low == high)
            return np.asarray(rounded - (b - 1) * ups)

        step = fixed + b * np.ceil((low - fixed) / b)
        lower = np.where(step <= high, np.minimum(lowered(low), lowered(step)), lowered(low))
        raisable = np.minimum(sure + free, (low > 0) & (low <= b) & (b <= high))
        lower = np.where(parts == 1, np.where(raisable > 0, 1.0, low), lower)
        upper = high + (b - 1) * (zeros - ((zeros == parts) & (high > 0)))
        return lower, np.where(low == 0, np.maximum(upper, (b - 1) * zeros), upper)

    def _changeable(self, parts: Integers, least: Floats, most: Floats) -> Mask:
        """Units that may have been changed: part of a published count all of whose units can be 0 or the limit."""
        b, structure, first = self.limit, self.units.structure, self.units.first
        able = first & ((least == 0) | ((least <= b) & (b <= most)))
        shown = self.units.published & (self.values % b == 0) & (self.values <= b * parts)
        trigger = shown & (structure.up(able.astype(np.int64)) == parts)
        return first & ~self.known & (structure.down(trigger.astype(np.int64)) > 0)
