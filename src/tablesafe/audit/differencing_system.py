"""What all equations of several tables give away together, beyond single differences: parts, and sums of parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.differencing_judged import Failed, count_of
from tablesafe.audit.disclosures import Disclosure, Kind
from tablesafe.audit.findings import Findings
from tablesafe.audit.overlap import Overlap
from tablesafe.audit.subtracting import Subtractions
from tablesafe.audit.sums import ConstantSums, SumSearch, constant_sums
from tablesafe.audit.system import System
from tablesafe.audit.unions import spelled_out
from tablesafe.equations import Integers

SEARCH = SumSearch(max_terms=6, max_chain=3, max_sums=20_000)
"""Sums looked for besides the differences of levels."""
EXPLAIN_S = 10.0
"""Seconds for spelling out how parts, and how sums, follow: each takes a linear program."""


def alone(given: Subtractions) -> list[int]:
    """The parts that are sets by themselves."""
    one = np.flatnonzero(np.diff(given.sets.indptr) == 1)
    return [int(part) for part in given.sets.indices[given.sets.indptr[one]]]


def open_parts(overlap: Overlap, findings: Findings, at: Integers, told: Sequence[int]) -> list[Disclosure]:
    """Single parts that all equations together bound too closely, beyond what one difference tells."""
    part_of = {cell: i for i, cell in enumerate(at[: overlap.members.shape[1]].tolist())}
    seen = set(told)
    table, levels = findings.problem.table, findings.problem.sensitivity
    found, deadline = [], perf_counter() + EXPLAIN_S
    for i in np.flatnonzero(~findings.protected).tolist():
        cell = int(findings.cells[i])
        if cell in part_of and part_of[cell] not in seen:
            why = findings.explain(cell) if perf_counter() < deadline else None
            because = "all equations together" if why is None else _reworded(why.text, overlap)
            found.append(
                Disclosure(
                    Kind.PART, overlap.part(part_of[cell]), because, float(findings.lower[i]),
                    float(findings.upper[i]), count_of(table, cell), levels.why(cell), overlap.names,
                    (part_of[cell],),
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
    def of(cls, findings: Findings, overlap: Overlap, at: Integers, told: sparse.csr_array) -> Sums:
        parts, system = overlap.members.shape[1], findings.system
        found = constant_sums(system, search=SEARCH)
        part = np.full(len(findings.problem.table), -1, dtype=np.int64)
        part[at[:parts]] = np.arange(parts)
        of_unknown = part[system.cells]
        only = np.bincount(_rows(found.cells), of_unknown[found.cells.indices] < 0, len(found)) == 0
        some = found.cells[np.flatnonzero(only)]
        sets = sparse.csr_array((some.data, of_unknown[some.indices], some.indptr), shape=(some.shape[0], parts))
        common = sparse.coo_array(sets.astype(np.int32) @ told.astype(np.int32).T)
        holds = np.bincount(common.row[common.data == np.diff(told.indptr)[common.col]], minlength=sets.shape[0]) > 0
        new = np.flatnonzero(~holds)
        numbers = sparse.csr_array(
            (np.ones(len(new), np.int32), (np.arange(len(new)), np.flatnonzero(only)[new])),
            shape=(len(new), len(found)),
        )
        return cls(Subtractions(sets[new], numbers), found, system)

    def told(self, overlap: Overlap, failed: Failed) -> list[Disclosure]:
        """One disclosure for each sum that fails a rule."""
        out, deadline = [], perf_counter() + EXPLAIN_S
        for i, cell in enumerate(failed.cells.tolist()):
            number = int(failed.given.terms.indices[i])
            weights = self.found.combination_of(number) if perf_counter() < deadline else {}
            rows = {int(self.system.rows[row]): weight for row, weight in weights.items()}
            span = slice(self.found.cells.indptr[number], self.found.cells.indptr[number + 1])
            cells = self.system.cells[self.found.cells.indices[span]].tolist()
            because = _reworded(spelled_out(self.system.table, cells, rows), overlap) if rows else "several equations"
            value = float(failed.table.value[cell])
            out.append(
                Disclosure(
                    Kind.SUM, failed.given.what(i, overlap), because, value, value, count_of(failed.table, cell),
                    failed.judged.why(cell), overlap.names, failed.given.parts(i),
                )
            )  # fmt: skip
        return out


def _rows(matrix: sparse.csr_array) -> NDArray[np.intp]:
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _reworded(text: str, overlap: Overlap) -> str:
    """An explanation with the names of published cells instead of the numbers of sets."""

    def named(match: re.Match[str]) -> str:
        number = int(match[2])
        return f"[{overlap.part(number)}]" if match[1] == "part" else overlap.describe(number)

    return re.sub(r"'(part|set) (\d+)'", named, text)
