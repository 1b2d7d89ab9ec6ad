"""What a unit of change costs in each cell: the measures of Dandekar & Cox, a column, or an array."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.files.read import did_you_mean

FREE = 1e-3
"""What a cell costs that costs nothing, beside the cheapest that does: so that it is not changed in vain."""

MEASURES: dict[str, Callable[[Floats], Floats]] = {
    "constant": np.ones_like,
    "log": np.log1p,
    "value": lambda value: value,
    "inverse": lambda value: 1.0 / (1.0 + value),
    "log_over_value": lambda value: np.log1p(value) / (1.0 + value),
}
"""Of absolute values. Towards the end of the list changes go to the large cells, where they are small in percent."""


def cost_of(problem: Problem, cost: str | Floats) -> Floats:
    """The cost of a change by 1 in each cell; next to nothing where nobody sees it (withheld cells)."""
    costs = _given(problem, cost)
    if costs.shape != (len(problem.table),):
        raise InvalidProblem(f"There are {costs.size:,} costs, but the table has {len(problem.table):,} cells.")
    bad = np.flatnonzero(~np.isfinite(costs) | (costs < 0))
    if bad.size:
        raise InvalidProblem(
            f"The cost of cell {problem.table.describe(int(bad[0]))} is negative or not a number.",
            hint="costs must be 0 or more.",
        )
    costs = np.where(problem.withheld | problem.suppressed, 0.0, costs)
    positive = costs[costs > 0]
    return np.maximum(costs, float(positive.min()) * FREE if positive.size else 1.0)


def _given(problem: Problem, cost: str | Floats) -> Floats:
    if not isinstance(cost, str):
        return np.asarray(cost, dtype=np.float64)
    if cost in MEASURES:
        return MEASURES[cost](np.abs(problem.table.value))
    if cost in problem.table.columns:
        return np.asarray(problem.table.columns[cost], dtype=np.float64)
    names = [*MEASURES, *problem.table.columns]
    hint = did_you_mean(cost, names) or f"the choices are {', '.join(map(repr, names))}."
    raise InvalidOption(
        f"Adjust.cost is {cost!r}, which is neither a measure nor a column.",
        hint=hint,
        about=("option", "Adjust", "cost"),
    )


def column_of(problem: Problem, column: str | Floats, option: str) -> Floats:
    """A number per cell: an array, or a column of the table by its name."""
    table = problem.table
    if isinstance(column, str):
        if column not in table.columns:
            names = list(table.columns)
            hint = did_you_mean(column, names) or (
                f"the columns are {', '.join(map(repr, names))}." if names else "the table was made without columns."
            )
            raise InvalidOption(f"{option} is {column!r}, which is no column of the table.", hint=hint)
        column = table.columns[column]
    numbers = np.asarray(column, dtype=np.float64)
    if numbers.shape != (len(table),):
        raise InvalidOption(f"{option} has {numbers.size:,} entries, but the table has {len(table):,} cells.")
    if (numbers < 0).any():
        cell = int(np.flatnonzero(numbers < 0)[0])
        raise InvalidOption(f"{option} is negative at cell {table.describe(cell)}.", hint="it must be 0 or more.")
    return numbers
