"""Unseen cells of which nobody knows who contributes: how many of them a release gives away.

No rule can be applied to them, so that each which can be worked out may be that of a single respondent.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from tablesafe.audit.integers import integer_intervals
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.proofs import Group
from tablesafe.audit.system import System
from tablesafe.core.equations import Mask
from tablesafe.core.errors import OutOfTime
from tablesafe.core.problem import Problem
from tablesafe.work.budget import Budget

MOST_ASKED = 2_000
"""Unseen cells that are asked about one by one."""


def worked_out(problem: Problem, system: System, groups: Sequence[Group], *, whole: bool, budget: Budget) -> int | None:
    """How many unseen cells that no rule judged can be worked out exactly; None where that could not be looked at.

    Empty cells are no secret, and neither is a cell that holds all of a shown one that is not sensitive. A witness of
    `groups` that moves a cell shows that it is hidden.
    """
    table = problem.table
    if table.unseen is None or table.judged or not (problem.rules or len(problem.sensitive)):
        return 0
    asked = system.unseen & (system.truth != 0) & ~_all_of_a_shown_one(problem)[system.cells]
    if table.count is not None and bool((table.count == table.integers).all()):
        asked &= _few(problem)[system.cells]
    for move in (move for group in groups for move in group.moves):
        asked[move.cells] = False
    at = np.flatnonzero(asked)
    if len(at) > MOST_ASKED:
        return None
    try:
        found = exact_intervals(system, at, budget=budget)
    except OutOfTime:
        return None
    lower, upper = found.lower, found.upper
    if whole and len(at):
        limit = budget.left
        sharper = integer_intervals(system, at, start=(lower, upper), time_limit_s=None if limit == inf else limit)
        if not bool(sharper.proven.all()):
            return None
        lower, upper = sharper.lower, sharper.upper
    return int((lower == upper).sum())


def _all_of_a_shown_one(problem: Problem) -> Mask:
    """Unseen cells beside which a shown total holds nothing: whoever may see the total may see them."""
    table = problem.table
    assert table.unseen is not None
    entries = table.equations.tocoo()
    total, part = table.totals[entries.row], entries.col
    same = table.unseen[part] & ~table.unseen[total] & (table.integers[part] == table.integers[total])
    same &= ~problem.sensitivity.mask[total] & ~table.may_be_negative[total]
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[part[same]] = True
    return mask


def _few(problem: Problem) -> Mask:
    """Of a table of counts, the cells that some rule flags: there a value that is known says how many contribute."""
    flagged = problem.sensitivity.mask.copy()
    for rule in problem.rules:
        flagged |= rule(problem.table).mask
    return flagged if problem.rules else np.ones(len(flagged), dtype=np.bool_)
