"""Change the units that small published counts are made of, until no published count is small."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidProblem
from tablesafe.methods.small_counts.choice import Choice
from tablesafe.methods.small_counts.units import Units

FROZEN = 1_000
"""How much more the squared error of a frozen total counts than that of another cell."""


@dataclass(frozen=True, eq=False)
class Rounded:
    """The rounded counts of all cells, and how they came about. Confidential, but for those that are published."""

    values: Integers = field(repr=False)
    true: Integers = field(repr=False)
    """The true count of each unit, at its representative."""
    changed: Mask = field(repr=False)
    """The units (by representative) that were changed."""
    up: Mask = field(repr=False)
    """Those of them that became the limit."""
    reason: Integers = field(repr=False)
    """Per changed unit the published count that was small; −1 for others."""


def round_small(units: Units, counts: Integers, frozen: Mask, *, limit: int, passes: int, seed: int) -> Rounded:
    """Round until no published count is small: again and again where a change makes others small.

    A published count is small when it is above 0 and below the limit. Only units below the limit are in small counts,
    and once all of a count's units are rounded it is a multiple of the limit: so this ends.
    """
    _refuse_small_frozen(units, counts, frozen, limit)
    random = np.random.default_rng(seed)
    value = units.totals(counts)
    weight = np.where(units.published, np.where(frozen, FROZEN, 1), 0)
    chosen, up = np.zeros(len(counts), dtype=np.bool_), np.zeros(len(counts), dtype=np.bool_)
    reason = np.full(len(counts), -1)
    sums = counts
    while (small := units.published & (sums > 0) & (sums < limit)).any():
        known = chosen
        inside = units.structure.down(small.astype(np.int64)) > 0
        chosen = chosen | (inside & units.first & (value > 0) & (value < limit))
        new = chosen & ~known
        reason[new] = units.structure.some_above(small)[new]
        at, start, cell = units.members(chosen)
        choice = Choice(value[at], start, cell, weight, limit)
        up[at] = choice.choose(up[at], known[at], passes=passes, random=random)
        sums = units.structure.up(np.where(chosen, limit * up, value))
    _refuse_moved_frozen(units, counts, sums, frozen)
    return Rounded(sums, value, chosen, chosen & up, reason)


def _refuse_small_frozen(units: Units, counts: Integers, frozen: Mask, limit: int) -> None:
    small = np.flatnonzero(frozen & units.published & (counts > 0) & (counts < limit))
    if small.size:
        more = f" (and {small.size - 1:,} more)" if small.size > 1 else ""
        raise InvalidProblem(
            f"Cell {units.structure.table.describe(int(small[0]))} is frozen to be published as it is, but below the "
            f"limit of {limit}{more}.\n\nHint: unfreeze it, or lower the limit."
        )


def _refuse_moved_frozen(units: Units, counts: Integers, sums: Integers, frozen: Mask) -> None:
    moved = np.flatnonzero(frozen & units.published & (sums != counts))
    if moved.size:
        more = f" (and {moved.size - 1:,} more)" if moved.size > 1 else ""
        raise InvalidProblem(
            f"Total {units.structure.table.describe(int(moved[0]))} is frozen, but no way was found to keep it while "
            f"the small counts below it change{more}.\n\nHint: unfreeze it; its error will be small all the same."
        )
