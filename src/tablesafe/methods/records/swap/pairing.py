"""Pairs of like units in different areas, as many in each area as it may swap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table
from tablesafe.methods.records.behind import Microdata, in_order, paired
from tablesafe.work.compiled import compiled

NOBODY, OUT = -1, -2
"""A unit without a partner, and one that must not have one."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The state of a swap, changed in place: who swaps with whom, and how many swaps each area has left."""

    area: Integers = field(repr=False)
    partner: Integers = field(repr=False)
    left: Integers = field(repr=False)
    """Swaps left, by area."""

    @classmethod
    def start(cls, area: Integers, usable: Mask, left: Integers) -> Pairs:
        """Nobody has a partner yet."""
        return cls(area, np.where(usable, NOBODY, OUT).astype(np.int64), left.copy())

    @property
    def swapped(self) -> Mask:
        """The units that have a partner."""
        return np.greater_equal(self.partner, 0)

    def done(self) -> Integers:
        """Swapped units by area."""
        return np.bincount(self.area[self.swapped], minlength=len(self.left))

    def match(
        self, random: np.random.Generator, asking: NDArray[np.intp], group: Integers, place: Integers, donor: Mask
    ) -> None:
        """Give a partner to each unit that asks, in turn: of its group, in another place, one of the donors.

        An area that has no swaps left neither asks nor gives.
        """
        asking = asking[(self.partner[asking] == NOBODY) & (self.left[self.area[asking]] > 0)]
        donors = np.flatnonzero(donor & (self.partner == NOBODY) & (self.left[self.area] > 0))
        if not asking.size or not donors.size:
            return
        asked = np.zeros(int(group.max(initial=0)) + 1, dtype=np.bool_)
        asked[group[asking]] = True
        donors = random.permutation(donors[asked[group[donors]]])
        donors = donors[in_order(group[donors])]
        start = np.searchsorted(group[donors], np.arange(len(asked) + 1))
        corner, in_corner = _corners(asking, donors, group, place)
        by_area = donors[in_order(self.area[donors])]
        of_area = np.searchsorted(self.area[by_area], np.arange(len(self.left) + 1))
        offered = np.zeros(len(group), dtype=np.bool_)
        offered[donors] = True
        _match(
            asking, group, corner, place, self.area, self.partner, self.left, offered, donors, start[:-1].copy(),
            start[1:].copy(), by_area, of_area, np.diff(start), in_corner, random.random(len(asking)),
        )  # fmt: skip

    def undo(self, units: NDArray[np.intp]) -> None:
        """Take the partners of some units away, and theirs."""
        both = np.unique(np.concatenate([units, self.partner[units]]))
        self.partner[both] = NOBODY
        np.add.at(self.left, self.area[both], 1)


def _corners(
    asking: NDArray[np.intp], donors: NDArray[np.intp], group: Integers, place: Integers
) -> tuple[Integers, Integers]:
    """The corner of each unit concerned: its group in its place; and how many donors each corner has."""
    units = np.concatenate([asking, donors])
    number = paired(group[units], place[units])
    corner = np.zeros(len(group), dtype=np.int64)
    corner[units] = number
    return corner, np.bincount(number[len(asking) :], minlength=int(number.max(initial=0)) + 1)


@compiled
def _match(
    asking: Any, group: Any, corner: Any, place: Any, area: Any, partner: Any, left: Any, offered: Any, member: Any,
    start: Any, end: Any, by_area: Any, of_area: Any, in_group: Any, in_corner: Any, chance: Any,
) -> None:  # fmt: skip
    """Each unit looks through its group from a random place on; members that are taken are dropped on the way.

    `in_group` and `in_corner` (a group's members in one place) count who is still to be had, so that nobody looks in
    vain.
    """
    for turn in range(len(asking)):
        unit = asking[turn]
        if partner[unit] != -1 or left[area[unit]] <= 0:
            continue
        g = group[unit]
        if in_group[g] - in_corner[corner[unit]] <= 0:
            continue
        at = start[g] + int(chance[turn] * (end[g] - start[g]))
        while True:
            if at >= end[g]:
                at = start[g]
            other = member[at]
            if partner[other] != -1 or left[area[other]] <= 0:
                end[g] -= 1
                member[at] = member[end[g]]
                member[end[g]] = other
            elif place[other] == place[unit]:
                at += 1
            else:
                break
        partner[unit], partner[other] = other, unit
        for one in (unit, other):
            if offered[one]:
                in_group[group[one]] -= 1
                in_corner[corner[one]] -= 1
                offered[one] = False
            left[area[one]] -= 1
            if left[area[one]] == 0:
                for i in range(of_area[area[one]], of_area[area[one] + 1]):
                    gone = by_area[i]
                    if offered[gone]:
                        in_group[group[gone]] -= 1
                        in_corner[corner[gone]] -= 1
                        offered[gone] = False


# Cells whose borders no swap crosses: everyone in them has only partners in them.


def never_left(table: Table, microdata: Microdata, moving: Sequence[str], alike: Integers) -> Mask:
    """The cells that no record can leave or come into when records of one class exchange the moving columns."""
    out = np.ones(len(table), dtype=np.bool_)
    origin = microdata.origin
    assert origin is not None
    for d, (name, hierarchy) in enumerate(table.dimensions.items()):
        if origin.plan.column_of.get(name) in moving:
            out &= _closed(hierarchy, microdata.positions(name), alike)[table.codes[:, d]]
    return out


def _closed(hierarchy: Hierarchy, at: NDArray[np.int32], alike: Integers) -> Mask:
    """The codes that hold all records of a class or none, whichever class it is: the total does always."""
    there = at > NOBODY
    leaf = np.cumsum(~hierarchy.is_total) - 1
    inner = int((~hierarchy.is_total).sum())
    classes = int(alike.max(initial=-1)) + 1
    held = sparse.csr_array((np.ones(int(there.sum())), (leaf[at[there]], alike[there])), shape=(inner, classes))
    counted = (sparse.csr_array(hierarchy.leaf_matrix) @ held).tocoo()
    some = (counted.data > 0) & (counted.data < np.bincount(alike[there], minlength=classes)[counted.col])
    out = np.ones(len(hierarchy), dtype=np.bool_)
    out[counted.row[some]] = False
    return out
