"""What an attacker knows, as linear equations over the cells it does not know.

All numbers are in units of `10**-decimals` of the table, so everything that comes from the table is a whole number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidRelease
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table

MOST_FREE = 20_000
"""Unseen cells that may move at the same time."""


@dataclass(frozen=True, eq=False)
class System:
    """`matrix @ x = rhs` and `lower <= x <= upper` over the unknown cells; the truth is one solution."""

    table: Table = field(repr=False)
    cells: NDArray[np.intp] = field(repr=False)
    """The table's cell behind each unknown."""
    rows: NDArray[np.intp] = field(repr=False)
    """The table's equation behind each row."""
    matrix: sparse.csr_array = field(repr=False)
    rhs: Integers = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    truth: Integers = field(repr=False)

    @classmethod
    def of(cls, problem: Problem, release: Release) -> Self:
        """The outsider's view of a release: the equations, what is published, and the prior bounds on the rest."""
        table = problem.table
        if len(release.values) != len(table):
            raise InvalidRelease(f"The release has {len(release.values):,} cells, the table {len(table):,}.")
        unit = 10.0**table.decimals
        truth = table.integers
        lower = np.maximum(release.lower, problem.lower) * unit
        upper = np.minimum(release.upper, problem.upper) * unit
        known = release.lower == release.upper
        lower[known] = upper[known] = np.rint(release.lower[known] * unit)
        lower, upper = snapped(lower), snapped(upper)
        outside = np.flatnonzero((truth < lower) | (truth > upper))
        if outside.size:
            raise InvalidRelease(
                f"The release says something false about cell {table.describe(int(outside[0]))}: "
                f"its true value lies outside the interval that the release implies."
            )
        unknown = np.flatnonzero(lower < upper)
        return cls.over(table, unknown, lower[unknown], upper[unknown])

    @classmethod
    def over(cls, table: Table, unknown: NDArray[np.intp], lower: Floats, upper: Floats) -> Self:
        """The system in which exactly the cells `unknown` are unknown, within the given bounds (in units)."""
        columns = table.equations.tocsc()[:, unknown].tocsr()
        rows = np.flatnonzero(np.diff(columns.indptr))
        matrix = columns[rows]
        truth = table.integers[unknown]
        rhs = np.asarray(matrix.astype(np.int64) @ truth)
        return cls(table, unknown, rows, matrix, rhs, lower, upper, truth)

    def __len__(self) -> int:
        return len(self.cells)

    def within(self, lower: Floats, upper: Floats) -> Self:
        """The same equations with other bounds: what an attacker knows who knows more."""
        return replace(self, lower=lower, upper=upper)


def snapped(bounds: Floats) -> Floats:
    """Bounds that are whole up to the noise of scaling by a power of ten, made whole."""
    nearest = np.rint(bounds)
    with np.errstate(invalid="ignore"):
        close = np.abs(bounds - nearest) <= 1e-9 * np.maximum(1.0, np.abs(bounds))
    return np.where(close, nearest, bounds)


def is_large(system: System) -> bool:
    """Whether a system has more unseen cells than can be looked at all at once."""
    return system.table.unseen is not None and int(system.table.unseen[system.cells].sum()) > MOST_FREE
