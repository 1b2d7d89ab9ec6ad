"""Which of the counts that must change go up to the limit and which go to zero: so that published totals stay right.

The sum of squared errors of all published counts is made small: first unit by unit, each choosing what the errors of
those before it call for, then by changing single units and by exchanging one that went up for one that did not. In
spirit that of Langsrud & Heldal, "An Algorithm for Small Count Rounding of Tabular Data" (Privacy in Statistical
Databases, 2018), who choose greedily too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidProblem, and_more
from tablesafe.methods.small_counts.units import Units
from tablesafe.work.compiled import compiled

Places = NDArray[np.int32]

TRIES = 4
"""Cells of a unit in which a partner for an exchange is looked for, in each pass."""
PARTNERS = 32
"""Units among which the partner is the one that would lose least."""
WORTHWHILE = 0.001
"""Share of the squared errors that a pass must remove for another one to follow."""
WORK = 3e8
"""Pairs of unit and cell that all passes together may look at, so that a million cells take half a minute."""
STARTS = 10
"""Orders in which the units of a small table are tried."""
AGAIN = 1e6
"""Pairs of unit and cell up to which there is another order."""
CROWD = 2_000
"""Cells with more units than this offer no partners: partners share smaller cells too."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Units to be changed, the published cells that each is part of, and which of them go up."""

    value: Integers = field(repr=False)
    """The true count of each unit."""
    start: Integers = field(repr=False)
    cell: Places = field(repr=False)
    """The cells of unit i are `cell[start[i] : start[i + 1]]`."""
    weight: Integers = field(repr=False)
    """How much the squared error of each cell counts."""
    limit: int

    def choose(self, up: Mask, known: Mask, *, passes: int, random: np.random.Generator) -> Mask:
        """Which units go up; `up` holds for the units that were chosen before (`known`) and may change again.

        The order of the units decides much, so that small tables are tried in several orders.
        """
        starts = int(np.clip(AGAIN / max(len(self.cell), 1), 1, STARTS))
        crowds = self._crowds()
        tried = [self._from(up.copy(), known, passes, random, crowds) for _ in range(starts)]
        return min(tried, key=self.error)

    def _from(
        self, up: Mask, known: Mask, passes: int, random: np.random.Generator, crowds: tuple[Integers, Places]
    ) -> Mask:
        """A choice made in a random order, and improved."""
        error = np.zeros(len(self.weight), dtype=np.int64)
        old, new = np.flatnonzero(known), random.permutation(np.flatnonzero(~known))
        _settle(old, up, error, self.value, self.start, self.cell, self.weight, self.limit, False)
        _settle(new, up, error, self.value, self.start, self.cell, self.weight, self.limit, True)
        before = self._squared(error)
        for _ in range(min(passes, 1 + int(WORK / max(len(self.cell), 1)))):
            order, lot = random.permutation(len(up)), int(random.integers(2**31))
            _flip(order, up, error, self.start, self.cell, self.weight, self.limit)
            _exchange(order, up, error, self.start, self.cell, self.weight, self.limit, *crowds, lot)
            after = self._squared(error)
            if after >= (1 - WORTHWHILE) * before:
                break
            before = after
        return up

    def error(self, up: Mask) -> int:
        """The sum of squared errors of the published cells, weighted."""
        change = np.repeat(self.limit * up - self.value, np.diff(self.start))
        return self._squared(np.bincount(self.cell, weights=change, minlength=len(self.weight)).astype(np.int64))

    def _squared(self, error: Integers) -> int:
        return int((self.weight * error**2).sum())

    def _crowds(self) -> tuple[Integers, Places]:
        """The units of each cell that is not too large."""
        size = np.bincount(self.cell, minlength=len(self.weight))
        size[size > CROWD] = 0
        begin = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
        unit = np.empty(begin[-1], dtype=np.int32)
        _fill(self.start, self.cell, begin, begin[:-1].copy(), unit)
        return begin, unit


@compiled
def _fill(start: Integers, cell: Places, begin: Integers, place: Integers, unit: Places) -> None:
    for i in range(len(start) - 1):
        for at in range(start[i], start[i + 1]):
            c = cell[at]
            if begin[c + 1] > begin[c]:
                unit[place[c]] = i
                place[c] += 1


@compiled
def _settle(
    order: Integers, up: Mask, error: Integers, value: Integers, start: Integers, cell: Places, weight: Integers,
    limit: int, choose: bool,
) -> None:  # fmt: skip
    """Add units to the errors one by one; with `choose` each goes where the errors so far call for."""
    for i in order:
        if choose:
            gain = 0
            for at in range(start[i], start[i + 1]):
                gain += weight[cell[at]] * (limit + 2 * (error[cell[at]] - value[i]))
            up[i] = gain < 0
        change = (limit if up[i] else 0) - value[i]
        for at in range(start[i], start[i + 1]):
            error[cell[at]] += change


@compiled
def _flip(
    order: Integers, up: Mask, error: Integers, start: Integers, cell: Places, weight: Integers, limit: int
) -> None:
    """Change every unit that is better off the other way."""
    for i in order:
        step = -limit if up[i] else limit
        if _gain(i, step, error, start, cell, weight) < 0:
            _move(i, step, up, error, start, cell)


@compiled
def _exchange(
    order: Integers, up: Mask, error: Integers, start: Integers, cell: Places, weight: Integers, limit: int,
    begin: Integers, unit: Places, lot: int,
) -> None:  # fmt: skip
    """Exchange units that went different ways where that is better."""
    gains = np.empty(len(up), np.int64)
    for i in range(len(up)):
        gains[i] = _gain(i, -limit if up[i] else limit, error, start, cell, weight)
    for i in order:
        step = -limit if up[i] else limit
        gains[i] = _gain(i, step, error, start, cell, weight)
        for _ in range(TRIES):
            lot = (lot * 1103515245 + 12345) % 2147483648
            c = cell[start[i] + (lot >> 8) % (start[i + 1] - start[i])]
            j = _partner(i, up, gains, begin[c], begin[c + 1], unit, lot >> 4)
            if j < 0:
                continue
            gains[j] = _gain(j, -step, error, start, cell, weight)
            if gains[i] + gains[j] < 2 * limit * limit * _common(i, j, start, cell, weight):
                _move(i, step, up, error, start, cell)
                _move(j, -step, up, error, start, cell)
                gains[i] = _gain(i, -step, error, start, cell, weight)
                gains[j] = _gain(j, step, error, start, cell, weight)
                break


@compiled
def _partner(i: int, up: Mask, gains: Integers, begin: int, end: int, unit: Places, lot: int) -> int:
    """Of some units of a cell that went the other way, the one that would lose least as far as is known; −1 if none."""
    best, size = -1, end - begin
    for k in range(min(size, PARTNERS)):
        j = unit[begin + (lot + k) % size]
        if up[j] != up[i] and (best < 0 or gains[j] < gains[best]):
            best = j
    return best


@compiled
def _gain(i: int, step: int, error: Integers, start: Integers, cell: Places, weight: Integers) -> int:
    """What the squared errors grow by when unit i changes by a step."""
    gain = 0
    for at in range(start[i], start[i + 1]):
        gain += weight[cell[at]] * (2 * error[cell[at]] + step)
    return gain * step


@compiled
def _common(i: int, j: int, start: Integers, cell: Places, weight: Integers) -> int:
    """The weight of the cells that two units share."""
    total, a, b = 0, start[i], start[j]
    while a < start[i + 1] and b < start[j + 1]:
        if cell[a] == cell[b]:
            total += weight[cell[a]]
            a += 1
            b += 1
        elif cell[a] < cell[b]:
            a += 1
        else:
            b += 1
    return total


@compiled
def _move(i: int, step: int, up: Mask, error: Integers, start: Integers, cell: Places) -> None:
    up[i] = step > 0
    for at in range(start[i], start[i + 1]):
        error[cell[at]] += step


# Change the units that small published counts are made of, until no published count is small.


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
        raise InvalidProblem(
            f"Cell {units.structure.table.describe(int(small[0]))} is frozen to be published as it is, but below the "
            f"limit of {limit}{and_more(small.size)}.",
            hint="unfreeze it, or lower the limit.",
        )


def _refuse_moved_frozen(units: Units, counts: Integers, sums: Integers, frozen: Mask) -> None:
    moved = np.flatnonzero(frozen & units.published & (sums != counts))
    if moved.size:
        raise InvalidProblem(
            f"Total {units.structure.table.describe(int(moved[0]))} is frozen, but no way was found to keep it while "
            f"the small counts below it change{and_more(moved.size)}.",
            hint="unfreeze it; its error will be small all the same.",
        )
