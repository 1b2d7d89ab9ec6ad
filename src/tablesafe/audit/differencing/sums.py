"""What all equations of several tables give away together, beyond single differences: parts, and sums of parts.

Sets of parts as cells of their own: tabulated from the records, and judged by the rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.differencing.disclosures import Disclosure, Kind
from tablesafe.audit.differencing.overlap import Overlap, hashes
from tablesafe.audit.differencing.subtractions import Subtractions
from tablesafe.audit.findings import Findings
from tablesafe.audit.insiders import Insiders
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.merging import Groups, counts_add_up, merged
from tablesafe.audit.sums import ConstantSums, SumSearch, constant_sums
from tablesafe.audit.system import System
from tablesafe.audit.unions import spelled_out
from tablesafe.core.equations import Floats, Integers, Mask
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


# -- sums of parts -----------------------------------------------------------------------------------------------------


SEARCH = SumSearch(max_terms=6, max_chain=3, max_sums=20_000)
"""Sums looked for besides the differences of levels."""
MOST_EXACT = 5_000
"""Unknown numbers up to which every one of them gets its exact interval before sums are looked for."""
EXPLAIN_S = 10.0
"""Seconds for spelling out how parts, and how sums, follow: each takes a linear program."""


def bounded(
    overlap: Overlap, findings: Findings, at: Integers, visible: Mask, known: sparse.csr_array
) -> list[Disclosure]:
    """Parts and withheld cells that all equations together bound too closely, beyond what one difference tells."""
    parts = overlap.members.shape[1]
    number = np.full(len(findings.problem.table), -1, dtype=np.int64)
    number[at] = np.arange(len(at))
    failed = np.flatnonzero(~findings.protected)
    failed = failed[np.argsort(number[findings.cells[failed]], kind="stable")]  # parts first
    own = number[findings.cells[failed]]
    hidden = (own >= 0) & ~np.concatenate([np.zeros(parts, np.bool_), visible])[own]
    failed, own = failed[hidden], own[hidden]
    sets = sparse.csr_array(sparse.vstack([sparse.eye_array(parts, dtype=np.int8), overlap.members]))[own]
    new = new_sets(sparse.csr_array(sets), known)
    table, levels = findings.problem.table, findings.problem.sensitivity
    found, deadline = [], perf_counter() + EXPLAIN_S
    for i, cell, k in zip(failed[new].tolist(), findings.cells[failed[new]].tolist(), own[new].tolist(), strict=True):
        why = findings.explain(cell) if perf_counter() < deadline else None
        because = "all equations together" if why is None else _reworded(why.text, overlap)
        inside = (k,) if k < parts else tuple(_row(overlap.members, k - parts))
        found.append(
            Disclosure(
                Kind.PART, overlap.part(k) if k < parts else overlap.describe(k - parts), because,
                float(findings.lower[i]), float(findings.upper[i]), count_of(table, cell), levels.why(cell),
                overlap.names, inside,
            )
        )  # fmt: skip
    return found


def to_respondents(overlap: Overlap, problem: Problem, inside: Insiders, at: Integers) -> list[Disclosure]:
    """Parts and withheld cells that a respondent bounds too closely, knowing what it contributes itself."""
    parts, table, levels = overlap.members.shape[1], problem.table, problem.sensitivity
    number = np.full(len(table), -1, dtype=np.int64)
    number[at] = np.arange(len(at))
    found = []
    for each in sorted(inside.found, key=lambda insider: int(number[insider.cell])):
        k = int(number[each.cell])
        found.append(
            Disclosure(
                Kind.RESPONDENT, overlap.part(k) if k < parts else overlap.describe(k - parts),
                f"of what {each.role} knows itself", each.lower, each.upper, count_of(table, each.cell),
                levels.why(each.cell), overlap.names, (k,) if k < parts else tuple(_row(overlap.members, k - parts)),
                each.certain,
            )
        )  # fmt: skip
    return found


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of parts that are the same in all tables that agree with what is published, and that are not told yet."""

    given: Subtractions
    """Their terms are their numbers among the constant sums."""
    found: ConstantSums
    system: System

    @classmethod
    def of(
        cls,
        system: System,
        overlap: Overlap,
        at: Integers,
        known: sparse.csr_array,
        intervals: tuple[Floats, Floats] | None = None,
    ) -> Sums:
        """Look for them; `known` holds the sets that are told already, `intervals` those of the system's unknowns.

        A sum that holds such a set is looked at without it: rules are subadditive, so if the whole fails, one of the
        two does.
        """
        parts = overlap.members.shape[1]
        number = np.full(len(system.table), -1, dtype=np.int64)
        number[at] = np.arange(len(at))
        over_parts, bounds = _over_parts(system, number, parts, intervals)
        found = constant_sums(over_parts, lower=bounds[0], upper=bounds[1], search=SEARCH)
        of_unknown = number[over_parts.cells]
        sets = sparse.csr_array(
            (found.cells.data, of_unknown[found.cells.indices], found.cells.indptr), shape=(len(found), parts)
        )
        sets = _without_known(sets, known)
        left = np.flatnonzero(np.diff(sets.indptr))
        left = left[new_sets(sets[left], known)]
        numbers = sparse.csr_array(
            (np.ones(len(left), np.int32), (np.arange(len(left)), left)), shape=(len(left), len(found))
        )
        return cls(Subtractions(sets[left], numbers), found, over_parts)

    @property
    def words(self) -> str:
        """How many, and whether there may be more."""
        more = " (a limit of the search was met, so there may be more)" if self.found.cut else ""
        return f"{len(self.given):,} further sums{more}"

    def told(self, overlap: Overlap, failed: Failed) -> list[Disclosure]:
        """One disclosure for each sum that fails a rule."""
        out, deadline = [], perf_counter() + EXPLAIN_S
        for i, cell in enumerate(failed.cells.tolist()):
            value = float(failed.table.value[cell])
            out.append(
                Disclosure(
                    Kind.SUM, failed.given.what(i, overlap), self.because(failed.given, i, overlap, deadline), value,
                    value, count_of(failed.table, cell), failed.judged.why(cell), overlap.names, failed.given.parts(i),
                )
            )  # fmt: skip
        return out

    def because(self, given: Subtractions, i: int, overlap: Overlap, deadline: float) -> str:
        """How a sum follows; after the deadline only that it does."""
        number = int(given.terms.indices[i])
        weights = self.found.combination_of(number) if perf_counter() < deadline else {}
        rows = {int(self.system.rows[row]): weight for row, weight in weights.items()}
        span = slice(self.found.cells.indptr[number], self.found.cells.indptr[number + 1])
        cells = self.system.cells[self.found.cells.indices[span]].tolist()
        text = _reworded(spelled_out(self.system.table, cells, rows), overlap) if rows else "several equations"
        return text if len(cells) == len(given.parts(i)) else f"{text}, of which the rest is known"


def _over_parts(
    system: System, number: Integers, parts: int, intervals: tuple[Floats, Floats] | None
) -> tuple[System, tuple[Floats | None, Floats | None]]:
    """The equations between parts alone, and the parts' exact intervals where these can be had.

    A withheld cell is only a name for a sum of parts, unless everything together leaves it one value: then it is known.
    """
    lower: Floats | None = None
    upper: Floats | None = None
    own = np.flatnonzero((number[system.cells] >= 0) & (number[system.cells] < parts))
    hidden = np.zeros(len(system.table), dtype=np.bool_)
    hidden[system.cells] = True
    if intervals is None and len(system) <= MOST_EXACT:
        found = exact_intervals(system)
        intervals = found.lower, found.upper
    if intervals is not None:
        hidden[system.cells[intervals[0] == intervals[1]]] = False
        lower, upper = intervals[0][own], intervals[1][own]
    whole = System.over(system.table, system.cells[own], system.lower[own], system.upper[own])
    kept = np.flatnonzero(~hidden[system.table.totals[whole.rows]])
    return replace(whole, rows=whole.rows[kept], matrix=whole.matrix[kept], rhs=whole.rhs[kept]), (lower, upper)


def _without_known(sets: sparse.csr_array, known: sparse.csr_array) -> sparse.csr_array:
    """Sets without the known sets inside them, the largest first."""
    size = np.diff(known.indptr)
    while sets.shape[0] and known.shape[0]:
        common = sparse.coo_array(sets.astype(np.int32) @ known.astype(np.int32).T)
        inside = common.data == size[common.col]
        row, col = common.row[inside], common.col[inside]
        if not row.size:
            break
        order = np.lexsort((-size[col], row))
        row, first = np.unique(row[order], return_index=True)
        chosen = sparse.csr_array(
            (np.ones(len(row), np.int32), (row, col[order][first])), shape=(sets.shape[0], known.shape[0])
        )
        sets = sparse.csr_array(sets.astype(np.int32) - chosen @ known.astype(np.int32))
        sets.eliminate_zeros()
    return sets.astype(np.int8)


def new_sets(sets: sparse.csr_array, known: sparse.csr_array) -> NDArray[np.intp]:
    """The first of equal sets, none that is known."""
    before = np.unique(hashes(known), axis=0)
    _, first = np.unique(np.concatenate([before, hashes(sets)]), axis=0, return_index=True)
    return np.sort(first[first >= len(before)] - len(before))


def _row(matrix: sparse.csr_array, row: int) -> list[int]:
    return [int(part) for part in matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]]


def _reworded(text: str, overlap: Overlap) -> str:
    """An explanation with the names of published cells instead of the numbers of sets."""

    def named(match: re.Match[str]) -> str:
        number = int(match[2])
        return f"[{overlap.part(number)}]" if match[1] == "part" else overlap.describe(number)

    return re.sub(r"'(part|set) (\d+)'", named, text)
