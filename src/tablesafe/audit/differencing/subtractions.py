"""Differences of published cells of different tables that are sums of parts, and so cells themselves.

A cell of one table without all cells of another table that lie inside it; and the cells of another table that cover
it, without it. What remains is then cleared of every published cell inside it: if the whole fails a rule, then so
does the published cell or what remains without it (the rules are subadditive), so that the smallest remainder tells
all. All cells of a level are looked at together, as products of sparse matrices.

How many contribute to a set of parts, when only the numbers of contributors of cells are known.

Numbers of contributors cannot be subtracted: whoever contributes to a cell and to a part of it is counted in both,
and may be all that the rest consists of. What can be said are bounds. A set has no fewer contributors than any cell
inside it (published or not, the office knows them all), and no fewer than a cell has more than all the cells that
were taken away from it. It has no more than any cell around it. Where nobody contributes to two cells of a table,
which its own sums show, numbers of those cells add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.differencing.overlap import Overlap, hashes
from tablesafe.audit.merging import counts_add_up
from tablesafe.core.equations import Integers, Mask

MOST_TERMS = 8
"""Cells spelled out in an explanation before the rest is only counted."""
ROUNDS = 4
"""How often what remains is cleared; each round removes all that a level of a table shows."""


@dataclass(frozen=True, eq=False)
class Subtractions:
    """Sets of parts that follow by subtraction, one per row."""

    sets: sparse.csr_array = field(repr=False)
    """Ones at the parts of each set."""
    terms: sparse.csr_array = field(repr=False)
    """The published cells that give it: 1 for those added, −1 for those taken away."""

    @classmethod
    def of(cls, overlap: Overlap, visible: Mask) -> Self:
        """What is published as it is."""
        cells = np.flatnonzero(visible)
        n = overlap.members.shape[0]
        own = sparse.csr_array((np.ones(len(cells), np.int32), (np.arange(len(cells)), cells)), shape=(len(cells), n))
        return cls(overlap.members[cells], own)

    def __len__(self) -> int:
        return int(self.sets.shape[0])

    def take(self, some: NDArray[np.intp] | Mask) -> Self:
        """Some of them."""
        return type(self)(self.sets[some], self.terms[some])

    def parts(self, number: int) -> tuple[int, ...]:
        """The parts of a set."""
        return tuple(self.sets.indices[self.sets.indptr[number] : self.sets.indptr[number + 1]].tolist())

    def what(self, number: int, overlap: Overlap) -> str:
        """The units of a set, in the user's codes."""
        parts = self.parts(number)
        first = overlap.part(parts[0])
        return first if len(parts) == 1 else f"{len(parts):,} parts, such as {first}"

    def text(self, number: int, overlap: Overlap) -> str:
        """How a set follows, in the user's codes."""
        span = slice(self.terms.indptr[number], self.terms.indptr[number + 1])
        cells, signs = self.terms.indices[span], self.terms.data[span]
        order = np.lexsort((cells, signs < 0))
        shown = [f"{'−' if signs[i] < 0 else '+'} {overlap.describe(int(cells[i]))}" for i in order[:MOST_TERMS]]
        more = f" … ({len(order) - MOST_TERMS:,} cells more)" if len(order) > MOST_TERMS else ""
        return " ".join(shown).removeprefix("+ ") + more


def subtractions(overlap: Overlap, visible: Mask) -> Subtractions:
    """What visible cells and levels of other tables leave of each other, cleared of what is shown, each set once."""
    families = list(overlap.families(visible))
    found = [_nothing(overlap)]
    for family in families:
        others = np.flatnonzero(visible & (overlap.owner != overlap.owner[family[0]]))
        if others.size:
            found += [_inside(overlap, others, family), _around(overlap, others, family)]
    sets = sparse.csr_array(sparse.vstack([each.sets for each in found], format="csr"))
    terms = sparse.csr_array(sparse.vstack([each.terms for each in found], format="csr"))
    every = Subtractions(sets, terms)
    every = every.take(_new_and_short(every, overlap, visible))
    for _ in range(ROUNDS):
        entries = every.sets.nnz
        for family in families:
            every = _cleared(every, overlap, family)
        every = every.take(_new_and_short(every, overlap, visible))
        if every.sets.nnz == entries:
            break
    return every


def _cleared(every: Subtractions, overlap: Overlap, family: NDArray[np.intp]) -> Subtractions:
    """The sets without the members of a family that lie inside them; none that is empty then."""
    members = overlap.members[family].astype(np.int32)
    common = sparse.coo_array(every.sets.astype(np.int32) @ members.T)
    whole = common.data == overlap.size[family][common.col]
    if not whole.any():
        return every
    taken = sparse.csr_array(
        (np.ones(int(whole.sum()), np.int32), (common.row[whole], common.col[whole])), shape=common.shape
    )
    sets = sparse.csr_array(every.sets - taken @ members)
    sets.eliminate_zeros()
    away = sparse.csr_array((taken.data, family[taken.indices], taken.indptr), shape=every.terms.shape)
    terms = sparse.csr_array(every.terms - away)
    terms.eliminate_zeros()
    left = np.flatnonzero(np.diff(sets.indptr))
    return Subtractions(sets[left].astype(np.int8), terms[left])


def _inside(overlap: Overlap, cells: NDArray[np.intp], family: NDArray[np.intp]) -> Subtractions:
    """Cells without the members of a family that lie inside them."""
    common = _common(overlap, cells, family)
    whole = common.data == overlap.size[family][common.col]
    taken = sparse.csr_array(
        (np.ones(int(whole.sum()), np.int32), (common.row[whole], common.col[whole])), shape=common.shape
    )
    return _difference(overlap, cells, family, taken, +1)


def _around(overlap: Overlap, cells: NDArray[np.intp], family: NDArray[np.intp]) -> Subtractions:
    """The members of a family that together cover a cell, without it."""
    common = _common(overlap, cells, family)
    covered = np.bincount(common.row, common.data, len(cells)) == overlap.size[cells]
    touched = covered[common.row]
    taken = sparse.csr_array(
        (np.ones(int(touched.sum()), np.int32), (common.row[touched], common.col[touched])), shape=common.shape
    )
    return _difference(overlap, cells, family, taken, -1)


def _common(overlap: Overlap, cells: NDArray[np.intp], family: NDArray[np.intp]) -> sparse.coo_array:
    """How many parts each cell has in common with each member of a family."""
    both = overlap.members[cells].astype(np.int32) @ overlap.members[family].astype(np.int32).T
    return sparse.coo_array(both)


def _difference(
    overlap: Overlap, cells: NDArray[np.intp], family: NDArray[np.intp], taken: sparse.csr_array, sign: int
) -> Subtractions:
    """Cells less the members taken (or the other way round), where something is taken and something remains."""
    some = np.flatnonzero(np.diff(taken.indptr))
    some = some[_tightest(overlap, cells[some], taken[some], sign)]
    taken = sparse.csr_array(taken[some])
    members = overlap.members.astype(np.int32)
    sets = sparse.csr_array((members[cells[some]] - taken @ members[family]) * sign)
    sets.eliminate_zeros()
    left = np.flatnonzero(np.diff(sets.indptr))
    n = overlap.members.shape[0]
    own = sparse.csr_array((np.ones(len(some), np.int32), (np.arange(len(some)), cells[some])), shape=(len(some), n))
    away = sparse.csr_array((taken.data, family[taken.indices], taken.indptr), shape=(len(some), n))
    terms = sparse.csr_array((own - away) * sign)
    return Subtractions(sets[left].astype(np.int8), terms[left].astype(np.int32))


def _tightest(overlap: Overlap, cells: NDArray[np.intp], taken: sparse.csr_array, sign: int) -> NDArray[np.intp]:
    """Of the cells of one table that meet the same members, the smallest (the largest, where the members are around).

    The others differ from it by cells of their own table, of which they would be cleared anyway.
    """
    order = np.argsort(sign * overlap.size[cells], kind="stable")
    keys = np.column_stack([overlap.owner[cells], hashes(taken)])[order]
    return np.sort(order[np.unique(keys, axis=0, return_index=True)[1]])


def _new_and_short(every: Subtractions, overlap: Overlap, visible: Mask) -> NDArray[np.intp]:
    """The first of equal sets by the number of terms; none that is published as it is."""
    if not len(every):
        return np.zeros(0, np.intp)
    order = np.argsort(np.diff(every.terms.indptr), kind="stable")
    shown = np.unique(hashes(overlap.members[np.flatnonzero(visible)]), axis=0)
    both = np.concatenate([shown, hashes(every.sets)[order]])
    _, first = np.unique(both, axis=0, return_index=True)
    return order[np.sort(first[first >= len(shown)]) - len(shown)]


def _nothing(overlap: Overlap) -> Subtractions:
    cells, parts = overlap.members.shape
    return Subtractions(sparse.csr_array((0, parts), dtype=np.int8), sparse.csr_array((0, cells), dtype=np.int32))


# -- who contributes to a difference -----------------------------------------------------------------------------------


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
