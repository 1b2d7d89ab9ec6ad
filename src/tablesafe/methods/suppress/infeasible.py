"""Why a sensitive cell cannot be protected, and what to unfreeze."""

from __future__ import annotations

import numpy as np

from tablesafe.equations import Floats
from tablesafe.errors import InvalidProblem
from tablesafe.methods.suppress.deviations import cheapest_deviation
from tablesafe.methods.suppress.instance import Instance
from tablesafe.problem import Problem
from tablesafe.solve.small import SmallSolver


def explanation(problem: Problem, cost: Floats, cell: int, sign: int, *, margin: float) -> InvalidProblem:
    """The error that names the cell, the side, and the fewest frozen cells that would have to be withheld too."""
    table = problem.table
    side = "rise" if sign > 0 else "fall"
    head = (
        f"Sensitive cell {table.describe(cell)} cannot be protected: nothing that may be withheld lets it {side} "
        f"far enough."
    )
    unfrozen = problem.replace(frozen=np.zeros(len(table), dtype=np.bool_))
    instance = Instance.of(unfrozen, cost, margin=margin)
    target = np.flatnonzero((instance.cell == cell) & (instance.sign == sign))
    cells = np.flatnonzero(instance.live)
    price = np.where(problem.frozen[cells] | (problem.table.integers[cells] == 0), 1.0, 0.0)
    found = None
    if target.size and cell in cells:
        found = cheapest_deviation(instance, SmallSolver(), int(target[0]), cells, price)
    if found is None:
        return InvalidProblem(
            f"{head} Even if every cell were withheld, the attacker's bounds leave it no room.\n\n"
            f"Hint: lower its protection levels, or widen the prior bounds of the cells around it."
        )
    blocking = [int(c) for c in found.cells if problem.frozen[c]]
    zeros = [int(c) for c in found.cells if not problem.frozen[c] and problem.table.integers[c] == 0]
    names = ", ".join(table.describe(c) for c in blocking[:6]) or ", ".join(table.describe(c) for c in zeros[:6])
    what = "frozen" if blocking else "of value zero"
    remedy = "unfreeze these cells" if blocking else "allow cells of value zero (zeros=True)"
    return InvalidProblem(
        f"{head} In the way: {names}{' …' if len(blocking or zeros) > 6 else ''} ({what}).\n\n"
        f"Hint: {remedy}, or waive {table.describe(cell)}."
    )
