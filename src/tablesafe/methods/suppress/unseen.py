"""Which unseen cells of linked tables a pattern has to look after."""

from __future__ import annotations

import numpy as np

from tablesafe.audit.outsiders import LEAST_WIDTH
from tablesafe.audit.protection import protection
from tablesafe.audit.system import System, snapped
from tablesafe.core.problem import Problem


def looked_after(problem: Problem) -> Problem:
    """The problem without the sensitive unseen cells that stay hidden when everything shown is published.

    What is withheld only widens an interval, so these are protected by any pattern; in most cubes that is nearly all
    of them. The audit still judges every one.
    """
    table, levels = problem.table, problem.sensitivity
    if table.unseen is None or not bool((levels.mask & table.unseen).any()):
        return problem
    if problem.unjudged:  # of very many, those are judged that do not stay hidden
        return problem
    unknown, unit = np.flatnonzero(table.unseen), 10.0**table.decimals
    lower, upper = snapped(problem.lower[unknown] * unit), snapped(problem.upper[unknown] * unit)
    system = System.over(table, unknown, lower, upper)
    at = np.flatnonzero(levels.mask[unknown])
    cells = unknown[at]
    value = table.integers[cells].astype(np.float64)
    down, up, wide = (level[cells] * unit for level in (levels.lower, levels.upper, levels.sliding))
    wide = np.where((down == 0) & (up == 0) & (wide == 0), LEAST_WIDTH, wide)
    seen = protection(system, at, value - down, value + up, wide)
    hidden = np.zeros(len(table), dtype=np.bool_)
    hidden[cells[seen.protected]] = True
    return problem.replace(sensitivity=levels.where(~hidden))
