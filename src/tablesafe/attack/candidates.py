"""Tables that an intruder thinks possible: whole numbers that add up and agree with the release, drawn at random.

A walk from table to table: the directions are differences of tables at which some cell is as small or as large as can
be, divided by their common factor, and each step lands on any of the whole tables along its line, all equally likely.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tablesafe.attack.optima import vertex
from tablesafe.attack.reconstruction import seen
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import SolverFailure
from tablesafe.core.release import Release
from tablesafe.solve.program import Program

CORNERS = 200
"""Tables at the ends of some cell that are looked for at most."""
STEPS = 25
"""Steps between two tables that are kept."""


def candidate_tables(release: Release, count: int, *, seed: int = 0) -> Floats:
    """Draw `count` additive tables in whole units that agree with a release: one row per table, one column per cell.

    The walk needs no truth. Where its corners leave no direction there is one table only.
    """
    system, random = seen(release), np.random.default_rng(seed)
    corners = _corners(system, random)
    unit = 10.0**release.table.decimals
    out = np.tile(release.table.value, (count, 1))
    if len(corners):
        out[:, system.cells] = _walk(system, corners, count, random) / unit
    return out


def _corners(system: System, random: np.random.Generator) -> Integers:
    """Whole tables in which a weighted sum of some cells is as small as can be, with random weights."""
    matrix, rhs = sparse.csr_array(system.matrix), system.rhs.astype(np.float64)
    found: list[Integers] = []
    for _ in range(min(CORNERS, 4 * len(system))):
        cost = random.standard_normal(len(system))
        cost[np.isinf(system.upper) & (cost < 0)] *= -1.0  # a sum that falls for ever has no least
        cost[np.isinf(system.lower)] = 0.0
        try:
            point = vertex(Program.equations(matrix, rhs, system.lower, system.upper, cost=cost))
        except SolverFailure:
            continue
        whole = np.rint(point).astype(np.int64)
        inside = bool(((whole >= system.lower) & (whole <= system.upper)).all())
        if inside and not (np.asarray(system.matrix.astype(np.int64) @ whole) - system.rhs).any():
            found.append(whole)
    return np.unique(np.array(found, dtype=np.int64).reshape(-1, len(system)), axis=0)


def _walk(system: System, corners: Integers, count: int, random: np.random.Generator) -> Integers:
    """Tables met on a walk that starts at a corner."""
    at = corners[random.integers(len(corners))].copy()
    kept = np.empty((count, len(system)), dtype=np.int64)
    for number in range(count * STEPS):
        one, other = random.integers(len(corners), size=2)
        step = corners[one] - corners[other]
        factor = int(np.gcd.reduce(step)) if len(step) else 0
        if factor:
            at = at + _length(system, at, step // factor, random) * (step // factor)
        if (number + 1) % STEPS == 0:
            kept[number // STEPS] = at
    return kept


def _length(system: System, at: Integers, step: Integers, random: np.random.Generator) -> int:
    """How many steps to go along a line, back or forth: any number that stays within the bounds, equally likely."""
    moves = step != 0
    to_upper, to_lower = (system.upper - at)[moves] / step[moves], (system.lower - at)[moves] / step[moves]
    forth = np.floor(np.maximum(to_upper, to_lower).min() + 1e-9)
    back = np.ceil(np.minimum(to_upper, to_lower).max() - 1e-9)
    if not np.isfinite(forth - back):
        return 0
    return int(random.integers(int(back), int(forth) + 1))
