"""Working Paper 22: three dimensions protected by a sequence of networks, slice by slice."""

from __future__ import annotations

from tablesafe.core.equations import Floats
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.suppress.costs import cost_of, never_free
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.slices import by_slices
from tablesafe.work.budget import Budget


def slices(problem: Problem, *, cost: str | Floats = "problem", time_limit_s: float = 60.0) -> Release:
    """Withhold what a sequence of two-dimensional networks asks for, and nothing more: the pattern may not be safe.

    Three-dimensional suppression as in Working Paper 22, for those who want to see with `ts.audit` what it leaves open.
    `ts.Suppress(algorithm="slices")` begins with this pattern and closes what the audit finds.
    """
    priced, _ = never_free(cost_of(problem, cost, 1.0), ~problem.frozen)
    instance = Instance.of(problem, priced, zeros=False)
    return Release.from_suppression(problem, by_slices(problem.table, instance, Budget(time_limit_s)), method="slices")
