"""The audit against fresh linear programs: exact intervals of every withheld cell, CPU seconds, in one run.

python benchmarks/audit.py                 # 10,000 and 100,000 cells
python benchmarks/audit.py 1000000         # a million cells, 100,000 of them withheld
"""

from __future__ import annotations

import json
import resource
import sys
from time import process_time

import numpy as np
from scipy.optimize import linprog

from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.equations import cell_keys, roll_up
from tablesafe.hierarchy import Hierarchy
from tablesafe.problem import Problem
from tablesafe.release import Release
from tablesafe.table import Table

SAMPLE = 20


def tree(name: str, fans: tuple[int, ...]) -> Hierarchy:
    """A regular tree: every code of level i has `fans[i]` parts."""
    pairs, level = [], [name]
    for fan in fans:
        pairs += [(parent, f"{parent}.{i}") for parent in level for i in range(fan)]
        level = [f"{parent}.{i}" for parent in level for i in range(fan)]
    return Hierarchy.from_pairs(pairs)


def instance(cells: int, seed: int) -> tuple[Problem, Release]:
    """Three hierarchical dimensions, a seventh of the cells withheld, and no equation withholds one cell alone."""
    fans = {10_000: ((4, 4), (3, 5), (4, 5)), 100_000: ((5, 8), (5, 8), (5, 8)), 1_000_000: ((6, 14), (8, 12), (8, 12))}
    dimensions = {name: tree(name, fan) for name, fan in zip("abc", fans[cells], strict=True)}
    random = np.random.default_rng(seed)
    leaves = [np.flatnonzero(~h.is_total) for h in dimensions.values()]
    grid = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
    values = np.ceil(random.lognormal(5, 2, len(grid))).astype(np.int64)
    codes, sums = roll_up(grid, list(dimensions.values()), {"value": values})
    table = Table.from_codes(codes, sums["value"].astype(float), dimensions)
    withheld = _cubes(codes, dimensions, random, int(0.14 * len(table) / 8))
    problem = Problem(table)
    return problem, Release.from_suppression(problem, withheld)


def _cubes(codes: np.ndarray, dimensions: dict[str, Hierarchy], random: np.random.Generator, count: int) -> np.ndarray:
    """Withhold the corners of random cubes: two leaves of one parent in every dimension, so that no cell is alone."""
    picked = []
    for hierarchy in dimensions.values():
        low = [parts for _, parts, _ in hierarchy._members() if not hierarchy.is_total[parts].any()]
        pairs = [random.choice(low[i], 2, replace=False) for i in random.integers(0, len(low), count)]
        picked.append(np.array(pairs))
    sizes = [len(hierarchy) for hierarchy in dimensions.values()]
    corners = np.array(
        [[a[:, i], b[:, j], c[:, k]] for a, b, c in [picked] for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    )
    wanted = corners.transpose(0, 2, 1).reshape(-1, 3).astype(np.int32)
    return np.isin(cell_keys(codes, sizes), cell_keys(wanted, sizes))


def naive_seconds(system: System, lower: np.ndarray, upper: np.ndarray, seed: int) -> tuple[float, int]:
    """CPU seconds of one fresh program per bound, on a sample of bounds, and how many of them disagree."""
    random = np.random.default_rng(seed)
    matrix, rhs = system.matrix.astype(np.float64), system.rhs.astype(np.float64)
    limits = np.column_stack([system.lower, system.upper])
    wrong, begin = 0, process_time()
    for cell in random.choice(len(system), SAMPLE, replace=False).tolist():
        cost = np.zeros(len(system))
        cost[cell] = 1.0
        for sign, ours in ((1, lower[cell]), (-1, upper[cell])):
            answer = linprog(sign * cost, A_eq=matrix, b_eq=rhs, bounds=limits, method="highs")
            theirs = -sign * np.inf if answer.status == 3 else sign * answer.fun
            wrong += not (theirs == ours or abs(theirs - ours) <= 1e-6 * max(1.0, abs(ours)))
    return (process_time() - begin) / (2 * SAMPLE), wrong


def measure(cells: int, seed: int = 1) -> dict[str, object]:
    """One row of the table."""
    problem, release = instance(cells, seed)
    system = System.of(problem, release)
    begin = process_time()
    found = exact_intervals(system)
    ours = process_time() - begin
    row: dict[str, object] = {
        "cells": len(problem.table),
        "withheld": len(system),
        "seconds": round(ours, 3),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }
    if cells <= 100_000:
        each, wrong = naive_seconds(system, found.lower, found.upper, seed)
        row |= {
            "naive_seconds": round(each * 2 * len(system), 1),
            "ratio": round(each * 2 * len(system) / ours),
            "wrong": wrong,
        }
    return row


def main() -> None:
    """Print JSON and a Markdown table."""
    exact_intervals(System.of(*instance(10_000, 0)))  # compile
    rows = [measure(size) for size in (map(int, sys.argv[1:]) if sys.argv[1:] else (10_000, 100_000))]
    print(json.dumps(rows))
    columns = list(dict.fromkeys(key for row in rows for key in row))
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(row.get(column, "–")) for column in columns) + " |")


if __name__ == "__main__":
    main()
