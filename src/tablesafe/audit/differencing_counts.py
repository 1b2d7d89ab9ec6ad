"""How many contribute to a set of parts, when only the numbers of contributors of cells are known.

Numbers of contributors cannot be subtracted: whoever contributes to a cell and to a part of it is counted in both, and
may be all that the rest consists of. What can be said are bounds. A set has no fewer contributors than any cell inside
it (published or not, the office knows them all), and no fewer than a cell has more than all the cells that were taken
away from it. It has no more than any cell around it. Where nobody contributes to two cells of a table, which its own
sums show, numbers of those cells add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from tablesafe.audit.merging import counts_add_up
from tablesafe.audit.overlap import Overlap
from tablesafe.core.equations import Integers, Mask

FAR = np.iinfo(np.int64).max // 4
"""More contributors than anything has."""


@dataclass(frozen=True, eq=False)
class Contributing:
    """Bounds on the number of contributors of sets of parts."""

    overlap: Overlap = field(repr=False)
    count: Integers = field(repr=False)
    """Per cell of all tables."""
    additive: bool
    """Whether contributors are what the values count, so that numbers of them are exact differences."""
    separate: tuple[Mask, ...] = field(repr=False)
    """For each table in which nobody contributes to two cells: its smallest cells."""

    @classmethod
    def of(cls, overlap: Overlap, count: Integers, *, additive: bool) -> Contributing:
        """What the numbers of all cells say."""
        separate = []
        for at, table in enumerate(overlap.tables):
            if not counts_add_up(table):
                continue
            own = np.flatnonzero(overlap.owner == at)
            smallest = np.zeros(len(overlap.owner), dtype=np.bool_)
            smallest[own[~table.is_total[overlap.number[own]]]] = True
            if int(np.asarray(overlap.members[np.flatnonzero(smallest)].sum(axis=0)).max(initial=0)) <= 1:
                separate.append(smallest)
        return cls(overlap, count, additive, tuple(separate))

    def bounds(
        self, sets: sparse.csr_array, value: Integers, terms: sparse.csr_array | None = None
    ) -> tuple[Integers, Integers]:
        """The fewest and the most contributors of each set; `terms` say of which cells it is a difference, if any.

        A set whose value is not zero has somebody. One of value zero, in which nobody is known, has nobody to protect.
        """
        if self.additive:
            return value, value
        members, size, width = self.overlap.members.astype(np.int32), self.overlap.size, np.diff(sets.indptr)
        common = sparse.coo_array(sets.astype(np.int32) @ members.T)
        inside, around = common.data == size[common.col], common.data == width[common.row]
        fewest = np.zeros(sets.shape[0], dtype=np.int64)
        np.maximum.at(fewest, common.row[inside], self.count[common.col[inside]])
        most = self._by_part(sets)
        np.minimum.at(most, common.row[around], self.count[common.col[around]])
        for smallest in self.separate:
            own = inside & smallest[common.col]
            added = _summed(common.row[own], self.count[common.col[own]], len(fewest))
            covered = _summed(common.row[own], size[common.col[own]], len(fewest)) == width
            fewest = np.maximum(fewest, added)
            most = np.where(covered, np.minimum(most, added), most)
        if terms is not None:
            fewest = np.maximum(fewest, self._left(terms))
        fewest = np.maximum(fewest, (value != 0).astype(np.int64))
        nobody = (value == 0) & (fewest == 0)
        return fewest, np.where(nobody, 0, np.maximum(most, fewest))

    def _by_part(self, sets: sparse.csr_array) -> Integers:
        """No more than the smallest cells around its parts have together."""
        entries = sparse.coo_array(self.overlap.members)
        part = np.full(sets.shape[1], FAR, dtype=np.int64)
        np.minimum.at(part, entries.col, self.count[entries.row])
        return np.asarray(sets.astype(np.int64) @ np.minimum(part, FAR // max(1, sets.shape[1])))

    def _left(self, terms: sparse.csr_array) -> Integers:
        """The most that a cell which is added has more than all the cells that are taken away have together."""
        row = np.repeat(np.arange(terms.shape[0]), np.diff(terms.indptr))
        plus, here = terms.data > 0, self.count[terms.indices]
        largest = np.zeros(terms.shape[0], dtype=np.int64)
        np.maximum.at(largest, row[plus], here[plus])
        return np.maximum(largest - _summed(row[~plus], here[~plus], terms.shape[0]), 0)


def _summed(row: Integers, values: Integers, n: int) -> Integers:
    out = np.zeros(n, dtype=np.int64)
    np.add.at(out, row, values)
    return out
