"""The same suppression problem with fewer cells and fewer equations.

A total with one part that is not zero equals it: both move together or not at all, so they are one cell here, withheld
together at the cost of both. In fine tables of microdata that is a fifth of all. And of the equations that a cell of
several dimensions is the total of, one is enough where the others follow from those of its parts; programs with all of
them are degenerate throughout.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tablesafe.core.equations import Integers, Mask
from tablesafe.methods.suppress.instance import Instance

DEEPEST = 100
"""Steps from a total to its finest parts; more of them go in a circle."""


@dataclass(frozen=True, eq=False)
class Condensed:
    """A smaller instance, and the cell of it that each cell of the larger one belongs to."""

    instance: Instance
    number: Integers = field(repr=False)

    @classmethod
    def of(cls, instance: Instance) -> Self:
        """Make one cell of all that are equal, and leave out equations that follow from others."""
        matrix = sparse.csr_array(instance.rows @ sparse.diags_array(instance.live.astype(np.float64)))
        matrix.eliminate_zeros()
        matrix = sparse.csr_array(matrix[independent(matrix)])
        number = np.arange(len(instance))
        while True:
            twos = matrix[np.flatnonzero(np.diff(matrix.indptr) == 2)]
            pairs, signs = twos.indices.reshape(-1, 2), twos.data.reshape(-1, 2)
            pairs = pairs[signs.sum(axis=1) == 0]
            if not len(pairs):
                break
            n = matrix.shape[1]
            graph = sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
            classes, of = connected_components(graph, directed=False)
            merged = sparse.coo_array((np.ones(n), (np.arange(n), of)), shape=(n, classes))
            matrix = sparse.csr_array(matrix @ merged.tocsr())
            matrix.eliminate_zeros()
            matrix = sparse.csr_array(matrix[np.flatnonzero(np.diff(matrix.indptr))])
            number = of[number]
        return cls(_merged(instance, matrix, number), number)

    def __len__(self) -> int:
        return len(self.instance)

    @cached_property
    def first(self) -> Integers:
        """One member of each cell of the smaller instance."""
        return np.asarray(np.unique(self.number, return_index=True)[1])

    def whole(self, cells: Mask) -> Mask:
        """The cells of the smaller instance of which all members are among these."""
        every = np.ones(len(self), dtype=np.bool_)
        np.logical_and.at(every, self.number, cells)
        return every

    def members(self, cells: Mask) -> Mask:
        """All members of some cells of the smaller instance."""
        return np.asarray(cells[self.number])


def _merged(instance: Instance, matrix: sparse.csr_array, number: Integers) -> Instance:
    n = matrix.shape[1]
    cost, room = np.zeros(n), np.full((2, n), np.inf)
    both = np.ones((2, n), dtype=np.bool_)
    np.add.at(cost, number, instance.cost)
    for own, of in zip((*room, *both), (instance.up, instance.down, instance.forced, instance.live), strict=True):
        (np.minimum if own.dtype == np.float64 else np.logical_and).at(own, number, of)
    return replace(
        instance, rows=matrix, columns=sparse.csc_array(matrix), cost=cost, up=room[0], down=room[1], forced=both[0],
        live=both[1], cell=np.asarray(number[instance.cell], dtype=np.int64),
    )  # fmt: skip


def independent(matrix: sparse.csr_array) -> Integers:
    """The equations without those that follow from the ones kept: one for each total, and what that does not imply.

    Cells that are no total say by one equation for each total what all cells are; a further equation that this makes
    zero says nothing new.
    """
    kept, total = _one_for_each_total(matrix)
    parts = _in_parts(matrix[kept], total)
    if parts is None:
        return np.arange(matrix.shape[0])
    others = np.setdiff1d(np.arange(matrix.shape[0]), kept)
    left = sparse.csr_array(matrix[others] @ parts)
    left.eliminate_zeros()
    return np.sort(np.concatenate([kept, others[np.diff(left.indptr) > 0]]))


def finest_parts(matrix: sparse.csr_array) -> sparse.csr_array | None:
    """Each cell as a sum of cells that are no total; None where totals are each other's parts in a circle."""
    kept, total = _one_for_each_total(matrix)
    return _in_parts(matrix[kept], total)


def _one_for_each_total(matrix: sparse.csr_array) -> tuple[Integers, Integers]:
    """The shortest equation of each total, and that total."""
    length = np.diff(matrix.indptr)
    row = np.repeat(np.arange(matrix.shape[0]), length)
    minus = matrix.data < 0
    single = np.bincount(row[minus], minlength=matrix.shape[0]) == 1
    total = np.full(matrix.shape[0], -1)
    total[row[minus]] = matrix.indices[minus]
    ruled = np.flatnonzero(single & (matrix.data == np.where(minus, -1, 1)).all())
    order = ruled[np.lexsort((length[ruled], total[ruled]))]
    kept = order[np.unique(total[order], return_index=True)[1]]
    return kept, total[kept]


def _in_parts(rows: sparse.csr_array, total: Integers) -> sparse.csr_array | None:
    """Each cell as a sum of those that are no total; None where totals are each other's parts in a circle."""
    n = rows.shape[1]
    entry = sparse.coo_array(rows)
    own = entry.data > 0
    down = sparse.csr_array((np.ones(int(own.sum())), (total[entry.row[own]], entry.col[own])), shape=(n, n))
    finest = np.ones(n)
    finest[total] = 0.0
    out = sparse.csr_array(sparse.diags_array(finest))
    step = out
    for _ in range(DEEPEST):
        step = sparse.csr_array(down @ step)
        step.eliminate_zeros()
        if not step.nnz:
            return out
        out = sparse.csr_array(out + step)
    return None
