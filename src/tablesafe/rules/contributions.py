"""What the largest contributors add to each cell, and what remains of the cell without them.

**Sampling weights.** `Contributors.amount` is what a contributor reported, `Contributors.weighted` what it adds to the
published, weighted total. What an attacker can do with its own amount depends on what it knows of the weights:

- `published`: it knows the weights, subtracts its own weighted amount, and divides what it finds by the weight of the
  other. All contributions count weighted. This is the most cautious reading, and the default.
- `unpublished`: it knows only what it reported itself. The weighted total minus the unweighted amounts remains: the
  weights themselves protect.
- `expanded`: τ-ARGUS's convention. A weight of w stands for w contributors with that amount each; the largest are those
  of the expanded list, the last of them perhaps in part. Of 100 with weight 4 and 10 with weight 7 the two largest
  are 100 and 100, and 270 of 470 remains.

Tables made from records keep those who reported the most and those who add the most. A list made elsewhere may hold
only the former; where weights vary widely, it must be longer for `published` to see somebody small who adds more.

**Negative contributions.** A loss reveals as much as a gain, so contributions count by their absolute value, as offices
do (Handbook on Statistical Disclosure Control, ch. 4). With `absolute` the remainder is also measured in absolute
values. Of those who are not among the contributors kept only the sum is known; its absolute value is the least that
they can add up to, so the rule errs on the side of caution, and is exact when all contributors are kept. Where
contributors of one sign exceed the value without a known counterpart, and neither records nor the office say that
others may have reported the opposite, nothing counts as remaining. With `value` the absolute value of the cell is taken
instead, and less remains.

**Shadow variables.** Where the table was made with one (it has the column `shadow`), contributors are ranked by it, so
its totals take the place of the values, and protection levels are carried over as shares.

**Noise.** Amounts and values are made whole numbers of a common decimal unit, where amounts within 1e-12 of one are
one, so that sums such as 0.1 + 0.2 are exact. Only where no such unit exists (weights like 3.7142857…) floats are
used as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tablesafe.core.equations import MOST_DECIMALS, Floats, Mask, to_integers
from tablesafe.core.errors import InvalidTable
from tablesafe.core.table import Contributors, Table
from tablesafe.files.read import LARGEST_EXACT

SamplingWeights = Literal["published", "unpublished", "expanded"]
Negative = Literal["absolute", "value"]

NOISE = 1e-12
"""Differences below this part of a cell are the noise of floating-point sums."""
SHADOW = "shadow"
"""The column with the totals of the variable that contributors are ranked by, where that is not the value."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """The contributions of the first places, and what all others add: none is negative."""

    largest: Floats = field(repr=False)
    """One row per cell; from the largest down, in units."""
    rest: Floats = field(repr=False)
    scale: float
    """How many units make 1."""
    whole: bool
    """Whether every number here is a whole number of units."""

    def share(self, units: Floats) -> Floats:
        """An amount as a share of all contributions to each cell; 0 where there are none."""
        total: Floats = self.largest.sum(axis=1) + self.rest
        shares: Floats = np.divide(units, total, out=np.zeros_like(total), where=total > 0)
        return shares


@dataclass(frozen=True, eq=False)
class _Kept:
    """The contributors kept, in units: what they reported, what they add to the total, and what the others add."""

    reported: Floats
    """Absolute amounts, without weights."""
    added: Floats
    """With sign and weight."""
    unseen: Floats
    """What those who are not kept add together, with sign."""


def contributions(
    table: Table,
    places: int,
    *,
    sampling_weights: SamplingWeights = "published",
    negative: Negative = "absolute",
    waived: Mask | None = None,
) -> Contributions:
    """What the `places` largest contributors add to each cell, and what remains.

    `waived` marks contributors (per cell and place) that need no protection: the largest of the others then stands
    first, as the one to protect, and those who waived follow it as possible attackers.
    """
    table.largest(places)  # refuses a table that keeps too few
    contributors = table.contributors
    assert contributors is not None
    _refuse_not_finite(table, contributors)
    decimals = _common_decimals(table, contributors)
    kept = _in_units(table, contributors, decimals)
    weighted = contributors.weighted is not None
    published = weighted and sampling_weights == "published"
    total = np.abs(table.integers * _unit_factor(table, decimals))
    if negative == "absolute":
        total = _absolute_total(kept, table.signed)
    size = np.abs(kept.added) if published else kept.reported
    if waived is not None:
        kept, size = _target_first(kept, size, waived, _most_of_others(kept, size, contributors))
    elif published:
        size = -np.sort(-size, axis=1)
    if weighted and sampling_weights == "expanded":
        size = _expanded(kept, places)
    largest = size[:, :places]
    rest = np.maximum(total - largest.sum(axis=1), 0.0)
    whole = decimals is not None and table.exact and not (weighted and sampling_weights == "expanded")
    return Contributions(largest, rest, 10.0 ** (table.decimals if decimals is None else decimals), whole)


def shadowed(table: Table) -> Table:
    """The table with the totals of its shadow variable as values; without one, the table itself."""
    if SHADOW not in table.columns or table.contributors is None:
        return table
    integers, decimals, exact = to_integers(np.asarray(table.columns[SHADOW], dtype=np.float64))
    return replace(table, integers=integers, decimals=decimals, exact=exact, response=SHADOW, signed=None, empty=None)


def _refuse_not_finite(table: Table, contributors: Contributors) -> None:
    good = np.isfinite(contributors.amount)
    if contributors.weighted is not None:
        good &= np.isfinite(contributors.weighted)
    if not good.all():
        cell = int(np.flatnonzero(~good.all(axis=1))[0])
        raise InvalidTable(f"A contribution to cell {table.describe(cell)} is infinite or not a number.")


def _common_decimals(table: Table, contributors: Contributors) -> int | None:
    """As many decimals as make the table's values and all contributions whole, or None."""
    arrays = [contributors.amount] + ([] if contributors.weighted is None else [contributors.weighted])
    size = np.abs(table.value)
    for array in arrays:
        size = np.maximum(size, np.abs(array).max(axis=1, initial=0.0))
    room = LARGEST_EXACT / 8 / max(float(size.max(initial=0.0)), 1e-300)
    for decimals in range(table.decimals, max(table.decimals, MOST_DECIMALS) + 1):
        factor = 10.0**decimals
        if factor > room:
            return None
        noise = NOISE * factor * size[:, None]
        if all(bool((np.abs(array * factor - np.rint(array * factor)) <= noise).all()) for array in arrays):
            return decimals
    return None


def _unit_factor(table: Table, decimals: int | None) -> float:
    return 1.0 if decimals is None else 10.0 ** (decimals - table.decimals)


def _in_units(table: Table, contributors: Contributors, decimals: int | None) -> _Kept:
    factor = 10.0 ** (table.decimals if decimals is None else decimals)
    reported = np.abs(contributors.amount) * factor
    added = (contributors.amount if contributors.weighted is None else contributors.weighted) * factor
    if decimals is not None:
        reported, added = np.rint(reported), np.rint(added)
    unseen = table.integers * _unit_factor(table, decimals) - added.sum(axis=1)
    return _Kept(reported, added, unseen)


def _absolute_total(kept: _Kept, signed: Mask | None) -> Floats:
    """The least that the absolute contributions to each cell can add up to, given the contributors kept."""
    gains, losses = (kept.added > 0).any(axis=1), (kept.added < 0).any(axis=1)
    contradicted = np.where(kept.unseen < 0, gains & ~losses, losses & ~gains)
    if signed is not None:
        contradicted &= ~signed
    seen: Floats = np.abs(kept.added).sum(axis=1)
    return seen + np.where(contradicted, 0.0, np.abs(kept.unseen))


def _most_of_others(kept: _Kept, size: Floats, contributors: Contributors) -> Floats:
    """The most that one who is not kept can add: no more than all of them together, or than the last who is certain."""
    hidden: Floats = np.abs(kept.unseen)
    if contributors.weighted is not None and contributors.sure is None:
        return hidden  # of those who reported the most: others may add more
    last = -np.sort(-size, axis=1)[:, contributors.certain - 1]
    return np.asarray(np.minimum(hidden, last))


def _target_first(kept: _Kept, size: Floats, waived: Mask, most: Floats) -> tuple[_Kept, Floats]:
    """Put the largest contributor that did not waive first, the others after it from the largest down.

    One who is not kept adds `most` at most. Where that is more than any of those has who are kept and did not waive,
    the one to protect is taken to be among the others, and as large as it can be.
    """
    ghost = np.where(most > np.where(waived, 0.0, size).max(axis=1, initial=0.0), most, 0.0)
    everyone = waived.all(axis=1) | (ghost > 0)
    size = np.column_stack([size, ghost])
    reported = np.column_stack([kept.reported, ghost])
    added = np.column_stack([kept.added, np.copysign(ghost, kept.unseen)])
    eligible = np.where(np.column_stack([waived, ~everyone]), -1.0, size)
    target = eligible.argmax(axis=1)[:, None]
    rank = -size
    np.put_along_axis(rank, target, -np.inf, axis=1)
    order = np.argsort(rank, axis=1, kind="stable")

    def sort(array: Floats) -> Floats:
        return np.take_along_axis(array, order, axis=1)

    return _Kept(sort(reported), sort(added), kept.unseen - added[:, -1]), sort(size)


def _expanded(kept: _Kept, places: int) -> Floats:
    """The first places of the list in which each contributor stands as often as its weight says."""
    weight = np.divide(np.abs(kept.added), kept.reported, out=np.zeros_like(kept.added), where=kept.reported > 0)
    end = np.cumsum(weight, axis=1)
    start = end - weight
    part = [np.clip(np.minimum(end, place + 1) - np.maximum(start, place), 0.0, 1.0) for place in range(places)]
    return np.column_stack([(kept.reported * share).sum(axis=1) for share in part])
