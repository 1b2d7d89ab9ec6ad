"""The least costly safe pattern by going through all of them, with an attacker that shares no code with tablesafe."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from oracle.suppression import open_cells
from tablesafe.core.problem import Problem


def best_pattern(problem: Problem, cost: np.ndarray, units: list[list[int]]) -> float | None:
    """The least cost of a safe pattern; cells of a unit are withheld together. None when none is safe.

    Patterns are gone through from the cheapest on. Withholding more never helps the attacker, so a pattern that is open
    is first made as large as it can be while it stays open: all patterns within it are open too.
    """
    base = problem.sensitivity.mask | problem.suppressed | problem.withheld
    price = [float(cost[unit].sum()) for unit in units]

    def safe(chosen: int) -> bool:
        hidden = base.copy()
        for at, unit in enumerate(units):
            if chosen >> at & 1:
                hidden[unit] = True
        return not open_cells(problem, hidden)

    everything = (1 << len(units)) - 1
    if not safe(everything):
        return None
    patterns = sorted(
        (sum(price[at] for at in some), sum(1 << at for at in some))
        for size in range(len(units) + 1)
        for some in combinations(range(len(units)), size)
    )
    largest_open: list[int] = []
    for total, chosen in patterns:
        if any(chosen & ~known == 0 for known in largest_open):
            continue
        if safe(chosen):
            return total
        for at in range(len(units)):
            if not chosen >> at & 1 and not safe(chosen | 1 << at):
                chosen |= 1 << at
        largest_open.append(chosen)
    raise AssertionError("withholding everything is safe")
