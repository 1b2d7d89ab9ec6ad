"""What it costs to withhold a cell: the measures that offices use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tablesafe.equations import Floats
from tablesafe.errors import InvalidOption, InvalidProblem
from tablesafe.files import did_you_mean
from tablesafe.problem import Problem


def _count(problem: Problem) -> Floats:
    if problem.table.count is None:
        raise InvalidOption(
            "Cost 'count' needs the number of contributors of each cell, which the table does not have."
        )
    return problem.table.count.astype(np.float64)


MEASURES: dict[str, Callable[[Problem], Floats]] = {
    "problem": lambda problem: problem.cost,
    "unit": lambda problem: np.ones(len(problem.table)),
    "value": lambda problem: np.abs(problem.table.value),
    "count": _count,
    "log": lambda problem: np.log1p(np.abs(problem.table.value)),
    "inverse": lambda problem: 1.0 / (1.0 + np.abs(problem.table.value)),
    "log_over_value": lambda problem: np.log1p(np.abs(problem.table.value)) / (1.0 + np.abs(problem.table.value)),
}
"""`problem` is the problem's own cost: the value, unless the user gave another. The last two steer to large cells."""


def cost_of(problem: Problem, cost: str | Floats, power: float) -> Floats:
    """The cost of each cell: a named measure, a column of the table, or an array; raised to `power` (Box–Cox λ)."""
    if isinstance(cost, str):
        if cost in MEASURES:
            costs = MEASURES[cost](problem)
        elif cost in problem.table.columns:
            costs = np.asarray(problem.table.columns[cost], dtype=np.float64)
        else:
            names = [*MEASURES, *problem.table.columns]
            hint = did_you_mean(cost, names) or f"the choices are {', '.join(map(repr, names))}."
            raise InvalidOption(f"Suppress.cost is {cost!r}, which is neither a measure nor a column.\n\nHint: {hint}")
    else:
        costs = np.asarray(cost, dtype=np.float64)
    if costs.shape != (len(problem.table),):
        raise InvalidProblem(f"There are {costs.size:,} costs, but the table has {len(problem.table):,} cells.")
    bad = np.flatnonzero(~np.isfinite(costs) | (costs < 0))
    if bad.size:
        raise InvalidProblem(
            f"The cost of cell {problem.table.describe(int(bad[0]))} is negative or not a number.\n\n"
            f"Hint: costs must be 0 or more."
        )
    return _transformed(costs, power)


def _transformed(costs: Floats, power: float) -> Floats:
    """Box–Cox: `cost**λ`, and `log(1 + cost)` for λ = 0. Nothing is quite free, or it would be withheld in vain."""
    costs = np.log1p(costs) if power == 0 else costs**power
    positive = costs[costs > 0]
    least = float(positive.min()) * 1e-3 if positive.size else 1.0
    return np.maximum(costs, least)
