"""Two judges of a release: our audit, and linear programs of another library that share no code with it."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from benchmarks.registry import Row

if TYPE_CHECKING:
    from tablesafe.core.problem import Problem
    from tablesafe.core.release import Release

SLACK = 1e-6
SAMPLE = 60
"""Sensitive cells that the programs look at."""


def judged(problem: Problem, release: Release, seconds: float, keep: Callable[[Row], None] | None = None) -> Row:
    """What a release withholds and changes, and what both judges find open.

    `keep` gets what is known after each step, the longest last: a judge that does not come to an end loses no figure.
    """
    from tablesafe.audit.audit import audit
    from tablesafe.loss import loss

    lost = loss(problem, release)
    outsider = audit(problem, release, exact=False, insiders=False, unions=False, certify=False)
    row: Row = {
        "withheld": lost.withheld,
        "complementary": lost.withheld_complementary,
        "withheld_value": lost.withheld_value,
        "complementary_value": lost.withheld_value - _sensitive_value(problem, release),
        "changed": lost.changed,
        "open_by_audit": len({opening.cell for opening in outsider.open}),
    }
    found, asked = open_by_programs(problem, release, seconds)
    row |= {"open_by_programs": found, "programs_asked": asked, "sampled": asked < len(problem.sensitive)}
    if problem.table.contributors is None:
        return row
    if keep is not None:
        keep(row | {"note": "respondents: not judged in time"})
    everyone = audit(problem, release, exact=False, certify=False)
    return row | {"open_to_respondents": len({opening.cell for opening in everyone.open})}


def _sensitive_value(problem: Problem, release: Release) -> float:
    return float(np.abs(problem.table.value[problem.sensitivity.mask & release.suppressed]).sum())


def open_by_programs(problem: Problem, release: Release, seconds: float) -> tuple[int, int]:
    """How many sensitive cells two fresh programs each find open, and how many cells were asked about.

    Straight from the definition: the least and the greatest value of the cell over all tables that fulfil the
    equations and lie within what the release and the prior knowledge say. A sample where there are many, or where the
    programs are slow.
    """
    judged = release.as_judged
    low, high = np.maximum(judged.lower, problem.lower), np.minimum(judged.upper, problem.upper)
    free = np.flatnonzero(low < high)
    matrix = sparse.csr_array(problem.table.equations).astype(np.float64)
    known = np.where(low < high, 0.0, low)
    rhs, matrix = -(matrix @ known), sparse.csr_array(sparse.csc_array(matrix)[:, free])
    rows = np.diff(matrix.indptr) > 0
    matrix, rhs = matrix[rows], rhs[rows]
    bounds = np.column_stack([low[free], high[free]])
    cells = np.random.default_rng(1).permutation(problem.sensitive)[:SAMPLE]
    begin, found, asked = perf_counter(), 0, 0
    for cell in np.sort(cells).tolist():
        left = seconds - (perf_counter() - begin)
        interval = _interval(matrix, rhs, bounds, free, cell, float(known[cell]), left) if left > 0 else None
        if interval is None:
            break
        asked += 1
        found += is_open(problem, cell, interval)
    return found, asked


def _interval(
    matrix: sparse.csr_array,
    rhs: np.ndarray,
    bounds: np.ndarray,
    free: np.ndarray,
    cell: int,
    known: float,
    seconds: float,
) -> tuple[float, float] | None:
    """The least and the greatest value of a cell, by two fresh programs; None when they are not done in time."""
    place = np.searchsorted(free, cell)
    if place == len(free) or free[place] != cell:
        return known, known
    cost = np.zeros(len(free))
    cost[place] = 1.0
    ends = []
    for sign in (1.0, -1.0):
        limit = {"time_limit": seconds}
        answer = linprog(sign * cost, A_eq=matrix, b_eq=rhs, bounds=bounds, method="highs", options=limit)
        if answer.status == 1:
            return None
        if answer.status not in {0, 3}:
            raise RuntimeError(f"the independent program failed: {answer.message}")
        ends.append(-sign * np.inf if answer.status == 3 else sign * float(answer.fun))
    return ends[0], ends[1]


def is_open(problem: Problem, cell: int, interval: tuple[float, float]) -> bool:
    """Whether an interval does not reach as far as the protection levels of a cell ask; without any, is one point."""
    low, high = interval
    levels, value = problem.sensitivity, float(problem.table.value[cell])
    slack = SLACK * max(1.0, abs(value))
    lower, upper, sliding = (float(each[cell]) for each in (levels.lower, levels.upper, levels.sliding))
    if lower == upper == sliding == 0:
        return high - low <= slack
    return low > value - lower + slack or high < value + upper - slack or high - low < sliding - slack
