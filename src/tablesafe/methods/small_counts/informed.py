"""What a reader could conclude who knows too much: which units were changed, which way, and why.

In large tables with cells not shown, the bounds that a release states may be wider than what a clever reader can
conclude. So the audit judges by these instead: they are no wider. Confidential, as they tell what was changed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.small_counts.bounds import Reader
from tablesafe.methods.small_counts.choice import Places
from tablesafe.methods.small_counts.rounding import Rounded
from tablesafe.methods.small_counts.units import Units


def informed(reader: Reader, rounded: Rounded, stated: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The bounds of each cell, inside those stated.

    The rounded table may be the true one. Or the units that went up were 1 each and the others 0, or those changed for
    the same reason had together as much as a small count can have. What is part of a unit may be all of it.
    """
    b, units = reader.limit, reader.units
    whole, structure = units.whole(), units.structure
    single = whole & (structure.up(units.first.astype(np.int64)) == 1)
    own = structure.up(np.where(units.first & rounded.changed, 1, 0)) > 0
    low, high = replace(reader, units=replace(units, published=units.published | (single & own))).rounded()
    unit, start, cell = replace(units, published=whole).members(rounded.changed)
    at = np.repeat(unit, np.diff(start))
    ups, most = _changed(rounded, unit, at, cell, b)
    least, less = _least(units, rounded, ups, b)
    further = np.zeros(len(ups), np.int64)
    np.maximum.at(further, cell, less[at])
    lower = low - b * ups + structure.up(least) - further
    upper = np.maximum(high, high - b * ups + most)
    parted = _parted(units, rounded, b)
    lower, upper = np.where(whole, lower, parted[0]), np.where(whole, upper, parted[1])
    exact = units.published & reader.known
    lower, upper = np.where(exact, reader.values, lower), np.where(exact, reader.values, upper)
    return np.maximum(stated[0], lower), np.minimum(stated[1], upper)


def _least(units: Units, rounded: Rounded, ups: Integers, limit: int) -> tuple[Integers, Integers]:
    """The least of each changed unit: 1 if it went up, else 0; and by how much one of those not so low can go further.

    Where a count that was not small would then have been, its units are what they are, but for one at a time.
    """
    unchanged, true = rounded.values - limit * ups, units.structure.up(rounded.true)
    close = units.published & (unchanged > 0) & (unchanged + ups < limit)
    spare = units.structure.least_above(np.where(close, true - limit, np.iinfo(np.int64).max))
    tied = rounded.changed & (units.structure.down(close.astype(np.int64)) > 0)
    low = np.where(rounded.changed, rounded.up, 0)
    return np.where(tied, rounded.true, low), np.where(tied, np.minimum(rounded.true - low, spare), 0)


def _parted(units: Units, rounded: Rounded, limit: int) -> tuple[Floats, Floats]:
    """Bounds of cells that are not made of whole units: from units that are as they were, or as they became."""
    n, whole = len(rounded.values), units.whole()
    if whole.all():
        return np.zeros(n), np.zeros(n)
    became = np.where(rounded.changed, limit * rounded.up, rounded.true)
    inner, start, cell = replace(units, published=~whole).members(units.structure.inner)
    pair, held = np.unique(cell.astype(np.int64) * n + units.representative[np.repeat(inner, np.diff(start))],
                           return_counts=True)  # fmt: skip
    place, unit = pair // n, pair % n
    size = np.bincount(units.representative[units.structure.inner], minlength=n)
    full = held == size[unit]
    least = np.bincount(place, weights=full * np.minimum(became, rounded.true)[unit], minlength=n)
    most = np.bincount(place, weights=np.maximum(became, rounded.true)[unit], minlength=n)
    return least.astype(np.float64), most.astype(np.float64)


def _changed(rounded: Rounded, unit: Integers, at: Integers, cell: Places, limit: int) -> tuple[Integers, Integers]:
    """Per cell how many of its units went up, and the most that its changed units can have been together.

    `unit` lists the changed units; `at` and `cell` all pairs of such a unit and a cell with it.
    """
    n = len(rounded.values)
    went = rounded.up[at]
    ups = np.bincount(cell, weights=went, minlength=n)
    key, pair = np.unique(cell.astype(np.int64) * n + rounded.reason[at], return_inverse=True)
    inside = np.bincount(pair.ravel(), weights=went, minlength=len(key))
    every = np.bincount(rounded.reason[unit], weights=rounded.up[unit], minlength=n)
    room = limit - 1 - (every[key % n] - inside)
    return ups.astype(np.int64), np.bincount(key // n, weights=room, minlength=n).astype(np.int64)
