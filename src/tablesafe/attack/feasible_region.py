"""The cells that can still be more than one number, the equations between them, and how they move together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tablesafe.core.equations import Floats, Mask
from tablesafe.solve.exact.elimination import echelon
from tablesafe.solve.exact.nullspace import NullSpace, null_space


@dataclass(frozen=True, eq=False)
class FeasibleRegion:
    """`matrix @ x = rhs` with independent rows over cells that all can move, within prior bounds and exact ends."""

    matrix: sparse.csr_array = field(repr=False)
    rhs: Floats = field(repr=False)
    prior_lower: Floats = field(repr=False)
    prior_upper: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)

    def __len__(self) -> int:
        return len(self.lower)

    @cached_property
    def component(self) -> NDArray[np.intp]:
        """Which component each cell belongs to: cells of different components move independently."""
        n = len(self)
        links = sparse.block_array([[sparse.csr_array((n, n)), self.matrix.T], [self.matrix, None]], format="csr")
        _, label = connected_components(links, directed=False)
        return np.asarray(np.unique(label[:n], return_inverse=True)[1], dtype=np.intp)

    @property
    def components(self) -> int:
        """How many components there are."""
        return int(self.component.max(initial=-1)) + 1

    @cached_property
    def endless(self) -> Mask:
        """Which cells belong to a component in which some cell has no least or no largest value."""
        open_ended = ~(np.isfinite(self.lower) & np.isfinite(self.upper))
        count = np.bincount(self.component, weights=open_ended, minlength=self.components)
        return np.asarray(count[self.component] > 0)

    @cached_property
    def columns(self) -> sparse.csc_array:
        """The matrix by column."""
        return sparse.csc_array(self.matrix)

    def members(self) -> list[NDArray[np.intp]]:
        """The cells of each component, the smallest component first."""
        order = np.argsort(self.component, kind="stable")
        size = np.bincount(self.component, minlength=self.components)
        parts = np.split(order, np.cumsum(size)[:-1])
        return [parts[i] for i in np.argsort(size, kind="stable").tolist()] if len(self) else []

    def part(self, cells: NDArray[np.intp]) -> FeasibleRegion:
        """Whole components alone."""
        matrix = self.columns[:, cells]
        rows = np.unique(matrix.indices)
        return FeasibleRegion(
            sparse.csr_array(matrix.tocsr()[rows]), self.rhs[rows], self.prior_lower[cells], self.prior_upper[cells],
            self.lower[cells], self.upper[cells],
        )  # fmt: skip

    @cached_property
    def space(self) -> NullSpace | None:
        """How the cells can move; None when that has no sparse description."""
        return null_space(sparse.csr_array(self.matrix.astype(np.int64)))

    @cached_property
    def twins(self) -> NDArray[np.intp]:
        """For each cell the first cell that moves in step with it, the same way or the other."""
        if self.space is None:
            return np.arange(len(self))
        _, first, group = np.unique(self.space.form, return_index=True, return_inverse=True)
        return first[group].astype(np.intp)

    @cached_property
    def anchor(self) -> Floats:
        """A point near the middle of each cell's interval, at its finite end, or 0; not additive."""
        lower, upper = np.isfinite(self.lower), np.isfinite(self.upper)
        below, above = np.where(lower, self.lower, 0.0), np.where(upper, self.upper, 0.0)
        return np.where(lower & upper, below + (above - below) / 2, below + above)


def independent(matrix: sparse.csr_array) -> NDArray[np.intp]:
    """Rows that say everything the others say too."""
    found = echelon(sparse.csr_array(matrix), most=200 * matrix.nnz + 1_000_000)
    if not found.fits:
        return np.arange(matrix.shape[0])
    return np.sort(found.pivot_row).astype(np.intp)
