"""What it costs to withhold a cell: the measures that offices use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, InvalidProblem, Setting
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.files.read import did_you_mean


def _count(problem: Problem) -> Floats:
    if problem.table.count is None:
        raise InvalidOption(
            "Suppress.cost is 'count', but the table does not have the number of contributors of each cell.",
            hint=(
                "name the column that holds it (",
                Setting("count", None),
                "), or take another cost.",
            ),
            about=("option", "Suppress", "cost"),
        )
    return problem.table.count.astype(np.float64)


def _distance(problem: Problem) -> Floats:
    """How far each cell is from the nearest sensitive one: steps along the codes of each dimension, added up.

    Codes count in the order of their hierarchies; a total is as far as its parts are on average, and a step more for
    each level. In a table without dimensions, the steps are sums from cell to cell.
    """
    table, cells = problem.table, problem.sensitive
    if not cells.size:
        return np.ones(len(table))
    if table.names is not None:
        return _steps(problem)
    places = np.hstack([_places(h)[table.codes[:, d]] for d, h in enumerate(table.dimensions.values())])
    from scipy.spatial import cKDTree

    far, _ = cKDTree(places[cells]).query(places, p=1)
    return np.asarray(np.maximum(far, 1.0))


def _places(hierarchy: Hierarchy) -> Floats:
    """Where each code stands: half the number of its first and of its last leaf, and its level."""
    leaves = sparse.csr_array(hierarchy.leaf_matrix)
    first, last = (ends.reduceat(leaves.indices, leaves.indptr[:-1]) for ends in (np.minimum, np.maximum))
    return np.column_stack([first / 2, last / 2, hierarchy.depth]).astype(np.float64)


def _steps(problem: Problem) -> Floats:
    """How many sums lie between each cell and the nearest sensitive one; one more than any where no sum leads."""
    rows = sparse.csr_array(abs(problem.table.equations)).astype(np.int32)
    columns = sparse.csr_array(rows.T)
    reached = problem.sensitivity.mask.copy()
    steps = np.where(reached, 1.0, np.inf)
    for step in range(1, len(reached) + 1):
        new = (columns @ (rows @ reached.astype(np.int32)) > 0) & ~reached
        if not new.any():
            break
        steps[new] = step
        reached |= new
    known = np.isfinite(steps)
    return np.where(known, steps, steps[known].max() + 1)


MEASURES: dict[str, Callable[[Problem], Floats]] = {
    "problem": lambda problem: problem.cost,
    "unit": lambda problem: np.ones(len(problem.table)),
    "value": lambda problem: np.abs(problem.table.value),
    "count": _count,
    "log": lambda problem: np.log1p(np.abs(problem.table.value)),
    "distance": _distance,
    "inverse": lambda problem: 1.0 / (1.0 + np.abs(problem.table.value)),
    "log_over_value": lambda problem: np.log1p(np.abs(problem.table.value)) / (1.0 + np.abs(problem.table.value)),
}
"""`problem` is the problem's own cost: the value, unless the user gave another. The last two steer to large cells."""


def cost_of(problem: Problem, cost: str | Floats, power: float) -> Floats:
    """The cost of each cell: a named measure, a column of the table, or an array; raised to `power` (Box–Cox λ)."""
    if isinstance(cost, str) and cost in MEASURES:
        return _transformed(MEASURES[cost](problem), power)
    costs = per_cell(problem, cost, "cost", words=tuple(MEASURES))
    bad = np.flatnonzero(costs < 0)
    if bad.size:
        raise InvalidProblem(
            f"The cost of cell {problem.table.describe(int(bad[0]))} is negative: {costs[bad[0]]:g}.",
            hint="costs must be 0 or more.",
        )
    return _transformed(costs, power)


def per_cell(problem: Problem, given: str | Floats, option: str, *, words: tuple[str, ...] = ()) -> Floats:
    """One finite number per cell, from a column of the table or from an array; `words` are what else it may be."""
    if isinstance(given, str) and given not in problem.table.columns:
        names = [*words, *problem.table.columns]
        hint = did_you_mean(given, names) or (
            f"the choices are {', '.join(map(repr, names))}." if names else "the table has no further columns."
        )
        what = "neither a measure nor a column" if words else "no column of the table"
        raise InvalidOption(f"Suppress.{option} is {given!r}, which is {what}.", hint=hint)
    try:
        numbers = np.asarray(problem.table.columns[given] if isinstance(given, str) else given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidOption(f"Suppress.{option} must be numbers, one per cell; got {given!r}.") from None
    if numbers.shape != (len(problem.table),):
        raise InvalidProblem(
            f"Suppress.{option} has {numbers.size:,} entries, but the table has {len(problem.table):,} cells."
        )
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise InvalidProblem(f"The {option} of cell {problem.table.describe(int(bad[0]))} is not a number.")
    return numbers


def _transformed(costs: Floats, power: float) -> Floats:
    """Box–Cox: `cost**λ`, and `log(1 + cost)` for λ = 0."""
    return np.log1p(costs) if power == 0 else costs**power


def never_free(costs: Floats, eligible: Mask) -> tuple[Floats, float]:
    """Costs to search by: nothing is quite free, or it would be withheld in vain; how much that can add to a pattern.

    All that is free is together no dearer than half of the cheapest of the rest.
    """
    positive, free = costs[costs > 0], costs <= 0
    many = int((free & eligible).sum())
    least = float(positive.min()) * min(1e-3, 0.5 / max(many, 1)) if positive.size else 1.0
    return np.where(free, least, costs), least * many
