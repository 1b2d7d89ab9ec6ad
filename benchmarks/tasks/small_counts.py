"""Small counts: ours, beside rounding the small inner cells one by one and adding up."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.registry import Case, Outcome, program
from tablesafe.core.equations import Floats
from tablesafe.core.problem import Problem
from tablesafe.methods.round.counts import summed_up
from tablesafe.methods.small_counts import SmallCounts

TASK, WARM, LIMIT = "small counts", "cube_3d_200", 3


def errors(problem: Problem, values: Floats) -> dict[str, Any]:
    """How far the published counts are from the truth."""
    off = np.abs(values - problem.table.value)
    note = f"mean error {off.mean():.3f}, of totals {off[problem.table.is_total].mean():.3f}, largest {off.max():.0f}"
    return {"objective": float((off**2).sum()), "note": note}


@program(TASK, "tablesafe", "tablesafe", warm=WARM)
def ours(case: Case) -> Outcome:
    """Only inner cells that make a published count small change."""
    problem = case.made.table_problem
    release = SmallCounts(limit=LIMIT).protect(problem)
    return Outcome(release=release, measures=errors(problem, np.nan_to_num(release.values)))


def one_by_one(case: Case, *, chance: bool) -> Outcome:
    """Each small inner cell to the nearer of 0 and the limit, or up with probability count ÷ limit; then added up."""
    problem = case.made.table_problem
    table = problem.table
    draw = np.random.default_rng(0).random(len(table)) * LIMIT < table.integers
    up = draw if chance else 2 * table.integers >= LIMIT
    small = ~table.is_total & (table.integers > 0) & (table.integers < LIMIT)
    values = summed_up(table, np.where(small, LIMIT * up, table.integers))
    assert values is not None
    changed = int((values != table.integers).sum())
    return Outcome(measures=errors(problem, values.astype(np.float64)) | {"changed": changed})


program(TASK, "each to the nearest", "naive", warm=WARM)(partial(one_by_one, chance=False))
program(TASK, "each by chance", "naive", warm=WARM)(partial(one_by_one, chance=True))
