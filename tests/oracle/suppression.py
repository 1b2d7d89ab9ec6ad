"""Small tables to suppress in, and an attacker of patterns that shares no code with the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from scipy.optimize import linprog

from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table

TREE = [("T", "A"), ("T", "B"), ("A", "a1"), ("A", "a2"), ("B", "b1"), ("B", "b2")]


def intervals(problem: Problem, hidden: np.ndarray) -> dict[int, tuple[float, float]]:
    """What an outsider derives of each sensitive cell when some cells are hidden, by fresh linear programs."""
    table, cells = problem.table, np.flatnonzero(hidden)
    matrix = table.equations[:, cells].toarray().astype(float)
    matrix = matrix if len(matrix) else np.zeros((1, len(cells)))
    rhs = matrix @ table.value[cells]
    bounds = [(None if np.isinf(a) else a, None if np.isinf(b) else b) for a, b in zip(
        problem.lower[cells], problem.upper[cells], strict=True)]  # fmt: skip
    found = {}
    for cell in problem.sensitive.tolist():
        if not hidden[cell]:
            found[cell] = (table.value[cell], table.value[cell])
            continue
        ends = []
        for sign in (1.0, -1.0):
            cost = np.where(cells == cell, sign, 0.0)
            answer = linprog(cost, A_eq=matrix, b_eq=rhs, bounds=bounds, method="highs")
            ends.append(-sign * np.inf if answer.status == 3 else float(answer.x[cells == cell][0]))
        found[cell] = (ends[0], ends[1])
    return found


def open_cells(problem: Problem, release: Release | np.ndarray) -> list[int]:
    """Sensitive cells of which an outsider comes too close: one side, or the whole interval."""
    hidden = release.suppressed if isinstance(release, Release) else release
    levels, value = problem.sensitivity, problem.table.value
    found = []
    for cell, (low, high) in intervals(problem, hidden).items():
        slack = 1e-6 * max(1.0, abs(value[cell]))
        bare = levels.lower[cell] == levels.upper[cell] == levels.sliding[cell] == 0
        width = max(levels.sliding[cell], 3 * slack if bare else 0.0)
        if (
            low > value[cell] - levels.lower[cell] + slack
            or high < value[cell] + levels.upper[cell] - slack
            or high - low < width - slack
        ):
            found.append(cell)
    return found


def grid(values: Sequence[Sequence[float]], **columns: Mapping[tuple[str, str], float]) -> Table:
    """A flat table of rows a, b, c, … and columns x, y, z, … with its totals, called T; further columns by codes."""
    inner = {("abcdef"[i], "xyzuvw"[j]): v for i, row in enumerate(values) for j, v in enumerate(row)}
    rows, across = sorted({r for r, _ in inner}), list(dict.fromkeys(c for _, c in inner))
    cells = [(r, c) for r in ("T", *rows) for c in ("T", *across)]
    sums = [sum(v for (r, c), v in inner.items() if a in ("T", r) and b in ("T", c)) for a, b in cells]
    data = {"r": [r for r, _ in cells], "c": [c for _, c in cells], "value": sums}
    data |= {name: [given.get(cell, 0.0) for cell in cells] for name, given in columns.items()}
    return Table.from_cells(pl.DataFrame(data), dimensions={"r": None, "c": None}, total="T", columns=list(columns))


def product(sizes: Sequence[Hierarchy], random: np.random.Generator, *, most: int = 60) -> Table:
    """A table over hierarchies, its leaves drawn at random."""
    from tablesafe.core.equations import roll_up

    leaves = [np.flatnonzero(~hierarchy.is_total) for hierarchy in sizes]
    codes = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, len(sizes)).astype(np.int32)
    all_codes, sums = roll_up(codes, list(sizes), {"value": random.integers(0, most, len(codes))})
    dimensions = {f"d{i}": hierarchy for i, hierarchy in enumerate(sizes)}
    return Table.from_codes(all_codes, sums["value"].astype(float), dimensions)
