"""What every kind of rounding needs first: whole counts, and which cells keep the value they have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidProblem, and_more
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.methods.counting import whole_counts


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts to be rounded to a base: the multiple at or below each, and how far above it the count lies."""

    table: Table = field(repr=False)
    base: Integers = field(repr=False)
    """What each cell becomes a multiple of."""
    value: Integers = field(repr=False)
    frozen: Mask = field(repr=False)
    """Cells that are published as they are."""
    hidden: Mask = field(repr=False)
    """Cells that are not published at all."""

    @classmethod
    def of(cls, problem: Problem, base: int | Integers) -> Self:
        """The counts of a problem; refuses negative numbers and fractions."""
        table = problem.table
        value = whole_counts(
            table,
            "Rounding",
            if_negative="use Suppress or Adjust for tables with negative values.",
            if_fraction="take the unweighted counts, or express the values in a smaller unit.",
        )
        bases = np.broadcast_to(np.asarray(base, dtype=np.int64), len(table))
        return cls(table, bases, value, problem.frozen, problem.suppressed | problem.withheld)

    @property
    def floor(self) -> Integers:
        """The multiple of the base at or below each count."""
        return self.value - self.above

    @property
    def above(self) -> Integers:
        """How far each count lies above that multiple; 0 for a multiple."""
        return self.value % self.base

    @property
    def occupied(self) -> bool:
        """Whether a cell that is shown is known not to be empty."""
        return self.table.leaves_out_empty(~self.hidden)

    def require_multiples_where_frozen(self) -> None:
        """Refuse frozen cells that cannot stand in a rounded table that adds up."""
        wrong = np.flatnonzero(self.frozen & (self.above > 0))
        if wrong.size:
            raise InvalidProblem(
                f"Cell {self.table.describe(int(wrong[0]))} is frozen to be published as it is, but is no multiple of "
                f"{self.base[wrong[0]]}{and_more(wrong.size)}: a rounded table could not add up.",
                hint="unfreeze it, or choose another base.",
            )


def parts_of_totals(table: Table) -> tuple[NDArray[np.intp], sparse.csr_array]:
    """The cells that are totals, and the parts of each, with their signs, by the first equation that gives it."""
    rows = np.arange(len(table.totals))[::-1]
    first = np.full(len(table), -1, dtype=np.int64)
    first[table.totals[rows]] = rows
    totals = np.flatnonzero(first >= 0)
    chosen = sparse.csr_array(table.equations[first[totals]]).astype(np.int64)
    own = sparse.csr_array((np.ones(len(totals), np.int64), (np.arange(len(totals)), totals)), shape=chosen.shape)
    return totals, sparse.csr_array(chosen + own)


def summed_up(table: Table, values: Integers, *, absolute: bool = False) -> Integers | None:
    """Every total as the sum of its parts, from the inner cells up; None when the inner cells do not determine it.

    With `absolute` parts that are subtracted are added too: how far the parts' errors can add up.
    """
    totals, parts = parts_of_totals(table)
    parts = abs(parts) if absolute else parts
    sums = values.copy()
    for _ in range(len(table)):
        new = np.asarray(parts @ sums)
        if (new == sums[totals]).all():
            break
        sums[totals] = new
    if absolute:
        return sums
    return None if np.asarray(table.equations.astype(np.int64) @ sums).any() else sums
