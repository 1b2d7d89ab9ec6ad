"""What the intruder works with: the cells that can still be more than one number, and the equations between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.equations import Floats, Mask
from tablesafe.problem import Problem
from tablesafe.release import Release
from tablesafe.solve.elimination import echelon

NEVER_NARROWER = 1e-6
"""Units of width below which an interval is a point: what comes from a table is whole."""


@dataclass(frozen=True, eq=False)
class View:
    """The intruder's system, with the exact interval of every unknown cell; in units of `10**-decimals`."""

    system: System = field(repr=False)
    lower: Floats = field(repr=False)
    """The exact ends of what each unknown cell can be."""
    upper: Floats = field(repr=False)

    @classmethod
    def of(cls, problem: Problem, release: Release) -> Self:
        """What anyone who sees the release can work out before guessing."""
        system = System.of(problem, release)
        found = exact_intervals(system, np.arange(len(system)))
        return cls(system, found.lower, found.upper)

    @cached_property
    def free(self) -> Mask:
        """Which unknown cells can be more than one number; the others are known after all."""
        return self.upper - self.lower > NEVER_NARROWER

    @cached_property
    def bounded(self) -> Mask:
        """Which unknown cells have both a least and a largest value."""
        return np.isfinite(self.lower) & np.isfinite(self.upper)

    @cached_property
    def room(self) -> Room:
        """The free cells alone."""
        free, system = self.free, self.system
        fixed = np.where(free, 0.0, self.lower)
        matrix = system.matrix.tocsc()[:, np.flatnonzero(free)].tocsr()
        rhs = system.rhs - np.asarray(system.matrix.astype(np.float64) @ fixed)
        rows = np.flatnonzero(np.diff(matrix.indptr))
        matrix, rhs = matrix[rows], rhs[rows]
        kept = _independent(matrix)
        return Room(
            sparse.csr_array(matrix[kept]).astype(np.float64), rhs[kept], system.lower[free], system.upper[free],
            self.lower[free], self.upper[free],
        )  # fmt: skip

    def filled(self, free_values: Floats) -> Floats:
        """All unknown cells: the given values of the free ones, and those that are known after all."""
        values = self.lower.copy()
        values[self.free] = free_values
        return values


@dataclass(frozen=True, eq=False)
class Room:
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
    def anchor(self) -> Floats:
        """A point near the middle of each cell's interval, at its finite end, or 0; not additive."""
        lower, upper = np.isfinite(self.lower), np.isfinite(self.upper)
        below, above = np.where(lower, self.lower, 0.0), np.where(upper, self.upper, 0.0)
        return np.where(lower & upper, below + (above - below) / 2, below + above)


def _independent(matrix: sparse.csr_array) -> NDArray[np.intp]:
    """Rows that say everything the others say too."""
    found = echelon(sparse.csr_array(matrix), most=200 * matrix.nnz + 1_000_000)
    if not found.fits:
        return np.arange(matrix.shape[0])
    return np.sort(found.pivot_row).astype(np.intp)
