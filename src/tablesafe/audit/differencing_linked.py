"""Finished tables as one system: parts that nobody publishes, and every published cell a sum of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from tablesafe.audit.integers import integer_intervals
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidTable, OutOfTime
from tablesafe.core.table import Table
from tablesafe.solve.highs import whole_point
from tablesafe.solve.program import SolveStatus
from tablesafe.work.budget import Budget

SECONDS = 60.0
"""Time for a first table of parts that agrees with all that is published."""


@dataclass(frozen=True, eq=False)
class Linked:
    """The system over parts and cells, numbered in this order, and the interval of each of its unknown numbers."""

    system: System = field(repr=False)
    parts: Integers = field(repr=False)
    """Parts that agree with all that is published. They need not be the true ones."""
    intervals: tuple[Floats, Floats] = field(repr=False)

    @property
    def at(self) -> Integers:
        """The number of each part and cell in the system's table."""
        return np.arange(len(self.system.table))

    @classmethod
    def of(cls, members: sparse.csr_array, lower: Floats, upper: Floats, decimals: int, *, whole: bool) -> Linked:
        """Build the system from the bounds of all cells, in units; with `whole`, attackers know that values are."""
        start = _some_parts(members, lower, upper)
        cells, parts = members.shape
        matrix = sparse.csr_array(sparse.hstack([members, -sparse.eye_array(cells, dtype=np.int8)])).astype(np.int8)
        values = np.concatenate([start, np.asarray(members.astype(np.int64) @ start)])
        names = [*(f"part {i}" for i in range(parts)), *(f"set {i}" for i in range(cells))]
        table = Table(
            values, decimals, matrix, np.arange(parts, parts + cells), names=np.array(names, dtype=object),
            codes=np.zeros((len(values), 0), np.int32),
        )  # fmt: skip
        open_cells = np.flatnonzero(lower < upper)
        unknown = np.concatenate([np.arange(parts), parts + open_cells])
        system = System.over(
            table, unknown, np.concatenate([np.zeros(parts), np.maximum(lower[open_cells], 0.0)]),
            np.concatenate([np.full(parts, np.inf), upper[open_cells]]),
        )  # fmt: skip
        found = exact_intervals(system)
        intervals = (found.lower, found.upper)
        if whole:
            sharper = integer_intervals(system, start=intervals, time_limit_s=SECONDS)
            intervals = (sharper.lower, sharper.upper)
        return cls(system, start, intervals)


def _some_parts(members: sparse.csr_array, lower: Floats, upper: Floats) -> Integers:
    """Whole parts that agree with everything published; any will do, as intervals do not depend on it."""
    cells, parts = members.shape
    open_cells = np.flatnonzero(lower < upper)
    slack = sparse.csr_array(
        (-np.ones(len(open_cells), np.int8), (open_cells, np.arange(len(open_cells)))), shape=(cells, len(open_cells))
    )
    floor = np.maximum(np.where(np.isfinite(lower), np.ceil(lower), 0.0), 0.0)
    most = np.concatenate([np.full(parts, np.inf), np.floor(upper[open_cells]) - floor[open_cells]])
    matrix = sparse.csr_array(sparse.hstack([members, slack]))
    status, answer = whole_point(matrix, floor.astype(np.int64), most, budget=Budget(SECONDS))
    if status is SolveStatus.INFEASIBLE:
        raise InvalidTable(
            "The tables contradict each other: no units can be counted as all of them say.\n\n"
            "Hint: were they made from the same records, and does the correspondence hold?"
        )
    if answer is None:
        raise OutOfTime(f"No units that all tables count as they do were found in {SECONDS:g} s.")
    return answer[:parts]
