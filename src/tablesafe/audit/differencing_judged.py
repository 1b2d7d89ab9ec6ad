"""Sets of parts as cells of their own: tabulated from the records, and judged by the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from tablesafe.audit.disclosures import Disclosure, Kind
from tablesafe.audit.merging import Groups, counts_add_up, merged
from tablesafe.audit.overlap import Overlap
from tablesafe.audit.subtracting import Subtractions
from tablesafe.core.equations import Integers
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Rule, Sensitivity
from tablesafe.core.table import Table
from tablesafe.tabulate.run import tabulate

PART = "part of tablesafe"
"""The column of the records that holds the number of their part."""


def sets_tabulated(records: pl.DataFrame, sets: sparse.csr_array, options: Mapping[str, Any]) -> tuple[Table, Integers]:
    """The parts and some sets of parts as one table, made from the records, and the cell of each part and each set."""
    parts, n = sets.shape[1], sets.shape[0]
    entries = sparse.coo_array(sets)
    equations = sparse.csr_array(
        (
            np.concatenate([entries.data.astype(np.int8), np.full(n, -1, np.int8)]),
            (np.concatenate([entries.row, np.arange(n)]), np.concatenate([entries.col, parts + np.arange(n)])),
        ),
        shape=(n, parts + n),
    )
    codes = (*(f"part {i}" for i in range(parts)), *(f"set {i}" for i in range(n)))
    tree = Hierarchy(codes, equations, np.arange(parts, parts + n, dtype=np.int32), name="the parts")
    named = records.with_columns(pl.format("part {}", PART).alias(PART))
    table = tabulate(named, dimensions={PART: tree}, **options)
    at = np.full(parts + n, -1, dtype=np.int64)
    at[table.codes[:, 0]] = np.arange(len(table))
    return table, at


@dataclass(frozen=True, eq=False)
class Failed:
    """Differences that fail a rule, with their exact values and contributors."""

    given: Subtractions
    table: Table
    cells: Integers
    judged: Sensitivity

    def told(self, overlap: Overlap) -> list[Disclosure]:
        """One disclosure each, the smallest first."""
        order = np.argsort(np.diff(self.given.sets.indptr), kind="stable")
        return [self._told(i, overlap) for i in order.tolist()]

    def _told(self, i: int, overlap: Overlap) -> Disclosure:
        cell, terms = int(self.cells[i]), self.given.terms
        cells = terms.indices[terms.indptr[i] : terms.indptr[i + 1]]
        value, owners = float(self.table.value[cell]), np.unique(overlap.owner[cells])
        return Disclosure(
            Kind.DIFFERENCE, self.given.what(i, overlap), self.given.text(i, overlap), value, value,
            count_of(self.table, cell), self.judged.why(cell), tuple(overlap.names[j] for j in owners),
            self.given.parts(i),
        )  # fmt: skip


def count_of(table: Table, cell: int) -> int | None:
    return None if table.count is None else int(table.count[cell])


def judged_sets(
    records: pl.DataFrame, given: Subtractions, problem: Problem, at: Integers, options: Mapping[str, Any]
) -> Failed:
    """Apply the rules to every difference: to what the parts alone tell, and, where that may fail, to the records."""
    parts, table = given.sets.shape[1], problem.table
    wide = sparse.csr_array(
        (given.sets.data, at[given.sets.indices], given.sets.indptr), shape=(len(given), len(table))
    )
    none = sparse.csr_array(wide.shape, dtype=np.int8)
    separate = np.full(len(given), counts_add_up(table), dtype=np.bool_)
    groups = Groups(wide, np.full(len(given), -1, dtype=np.intp), none, separate)
    possible = _found(problem.rules, merged(table, groups, cautious=True)).mask
    some = given.take(np.flatnonzero(possible))
    exact, cells = sets_tabulated(records, some.sets, options)
    judged = _found(problem.rules, exact)
    failed = np.flatnonzero(judged.mask[cells[parts:]])
    return Failed(some.take(failed), exact, cells[parts:][failed], judged)


def _found(rules: Sequence[Rule], table: Table) -> Sensitivity:
    return reduce(lambda one, other: one | other, [rule(table) for rule in rules], Sensitivity.none(len(table)))
