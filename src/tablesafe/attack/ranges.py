"""The range of every unknown cell within bounds of which nobody knows whether the truth lies in them."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tablesafe.attack.optima import vertex
from tablesafe.audit.furthest import FurthestMove
from tablesafe.audit.intervals import Intervals, exact_intervals
from tablesafe.audit.system import System, snapped
from tablesafe.core.equations import Floats
from tablesafe.core.errors import SolverFailure
from tablesafe.solve.program import Program

NOISE = 1e-9
"""By how much bounds may cross, relative to their size, before they contradict each other: both were divided."""


class Empty(Exception):
    """No table lies within the bounds."""


def ranges(system: System, lower: Floats, upper: Floats) -> Intervals:
    """The least and the greatest value of each unknown within other bounds, in units; `Empty` if there is none.

    Where the truth lies within the bounds the exact search is used. Otherwise the intruder's guess was wrong, and two
    linear programs per cell tell what it would believe.
    """
    lower, upper = np.maximum(snapped(lower), system.lower), np.minimum(snapped(upper), system.upper)
    crossed = np.flatnonzero(lower > upper)
    if bool((lower[crossed] - upper[crossed] > NOISE * np.maximum(1.0, np.abs(upper[crossed]))).any()):
        raise Empty
    lower[crossed] = upper[crossed]
    if bool(((lower <= system.truth) & (system.truth <= upper)).all()):
        return exact_intervals(system.within(lower, upper))
    return _by_programs(system, lower, upper)


def _by_programs(system: System, lower: Floats, upper: Floats) -> Intervals:
    """From one table within the bounds, as far as each cell can go."""
    matrix, rhs = sparse.csr_array(system.matrix), system.rhs.astype(np.float64)
    try:
        start = vertex(Program.equations(matrix, rhs, lower, upper))
    except SolverFailure:
        raise Empty from None
    below, above = np.minimum(lower - start, 0.0), np.maximum(upper - start, 0.0)
    finite = np.abs(np.concatenate([below, above]))
    scale = max(float(np.max(finite[np.isfinite(finite)], initial=1.0)) / 2.0**20, 1.0)
    program = FurthestMove(matrix, below, above, scale=scale)
    ends = np.empty((2, len(system)))
    for cell in range(len(system)):
        for side, sign in enumerate((-1, 1)):
            found = program.of(cell, sign)
            ends[side, cell] = sign * np.inf if found is None else start[cell] + found[cell]
    return Intervals(ends[0], ends[1])
