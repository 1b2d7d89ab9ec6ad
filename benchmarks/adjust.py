"""Controlled tabular adjustment: papers, reference instances, and large tables, with CPU seconds and memory.

python benchmarks/adjust.py papers                         # Tables 6 and 7 of Dandekar & Cox beside the printed figures
python benchmarks/adjust.py reference path/to/instances    # the CSPLIB instances against their reference values
python benchmarks/adjust.py large [cells [seconds [2|3]]]  # fixed directions, then local search; default 100,000 300 2
"""

from __future__ import annotations

import csv
import resource
import sys
from pathlib import Path
from time import process_time

import numpy as np
import polars as pl

from tablesafe.hierarchy import Hierarchy
from tablesafe.io.jj import read_jj
from tablesafe.methods.adjust.costs import MEASURES
from tablesafe.methods.adjust.method import Adjust
from tablesafe.methods.adjust.strategy import DirectionsName
from tablesafe.problem import Problem
from tablesafe.quality import Quality, compared, quality
from tablesafe.release import Release, Status
from tablesafe.rules.sensitivity import Sensitivity
from tablesafe.table import Table

DATA = Path(__file__).parent.parent / "tests" / "papers" / "data" / "dandekar_10x6x4" / "cells.csv"
PRINTED_BEST_OF_100 = 3058


def dandekar() -> Problem:
    """Table 1 of Dandekar & Cox (2002)."""
    frame = pl.read_csv(DATA).with_columns(pl.col("col", "row", "level").cast(pl.String))
    sizes = {"col": 10, "row": 6, "level": 4}
    dimensions = {d: Hierarchy.from_pairs([(str(n), str(i)) for i in range(1, n)]) for d, n in sizes.items()}
    columns = ["sensitive", "protection", "synthetic_value_2002"]
    table = Table.from_cells(frame, dimensions=dimensions, columns=columns)
    levels = np.asarray(table.columns["protection"])
    return Problem(table, sensitivity=Sensitivity.of(table.columns["sensitive"] > 0, levels))


def papers() -> None:
    """Table 6: percent changes by cost, alternating and optimal; Table 7: 100 random directions at constant cost."""
    problem = dandekar()
    values = np.asarray(problem.table.columns["synthetic_value_2002"], dtype=np.float64)
    status = np.where(values == problem.table.value, Status.PUBLISHED, Status.CHANGED).astype(np.uint8)
    printed = Release(problem.table, values, problem.lower, problem.upper, status, "printed")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, float_precision=2):
        for directions in ("alternating", "optimal"):
            releases = {cost: Adjust(cost=cost, directions=directions).protect(problem) for cost in MEASURES}
            print(f"Table 6, directions = {directions}")
            print(compared({"printed (value)": quality(problem, printed)} | _qualities(problem, releases)))
    found = []
    for seed in range(100):
        solution = Adjust(cost="constant", directions="random", tries=1, seed=seed).protect(problem).solution
        assert solution is not None
        found.append(solution.objective)
    optimum = Adjust(cost="constant").protect(problem).solution
    assert optimum is not None
    low, middle, high = np.quantile(found, [0, 0.5, 1])
    print(f"Table 7, constant cost, 100 random directions: best {low:,.0f} (printed {PRINTED_BEST_OF_100:,}), ", end="")
    print(f"median {middle:,.0f}, worst {high:,.0f}; optimum {optimum.objective:,.0f} ({optimum.status})")


def _qualities(problem: Problem, releases: dict[str, Release]) -> dict[str, Quality]:
    return {cost: quality(problem, release) for cost, release in releases.items()}


def reference(folder: Path) -> None:
    """Every instance: all up as a linear program, and either direction in 60 seconds, with what is proved."""
    with (folder / "jj" / "cta_reference.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        problem = read_jj(folder / "jj" / f"{row['instance']}.jj")
        cost = 1.0 / np.maximum(problem.table.value, 1.0)
        asked: list[tuple[DirectionsName, str]] = [
            ("up", "lp_all_up_cost_1_over_value"),
            ("optimal", "milp_two_sided_incumbent"),
        ]
        for directions, column in asked:
            begin = process_time()
            method = Adjust(cost=cost, zeros=True, decimals=3, directions=directions, time_limit_s=60)
            solution = method.protect(problem).solution
            assert solution is not None
            told = f"{solution.objective:.9g} (reference {row[column] or 'none'}), {solution.status}"
            print(f"{row['instance']:14} {directions:8} {told}, gap {solution.gap:.2%}, {process_time() - begin:.1f} s")


def tree(name: str, leaves: int, fan: int = 6) -> Hierarchy:
    """A tree in which every total has `fan` parts, or what is left of them."""
    pairs, level, depth = [], [f"{name}{k}" for k in range(leaves)], 0
    while len(level) > 1:
        depth += 1
        above = [f"{name}.{depth}.{k // fan}" if len(level) > fan else name for k in range(len(level))]
        pairs += list(zip(above, level, strict=True))
        level = list(dict.fromkeys(above))
    return Hierarchy.from_pairs(pairs)


def table(cells: int, ways: int, seed: int = 0) -> Problem:
    """Hierarchies in two or three dimensions, a fifth of the inner cells empty, a tenth of all cells sensitive."""
    random, side = np.random.default_rng(seed), int((cells / 1.25**ways * (1.2 if ways == 2 else 1.1)) ** (1 / ways))
    value = np.where(random.random(side**ways) < 0.2, 0, np.rint(np.exp(random.normal(4, 2, side**ways))))
    at = np.flatnonzero(value)
    names = "abc"[:ways]
    codes = {d: pl.Series([f"{d}{k}" for k in range(side)]) for d in names}
    places = np.unravel_index(at, (side,) * ways)
    frame = pl.DataFrame(
        {d: codes[d].gather(place.astype(np.uint32)) for d, place in zip(names, places, strict=True)}
        | {"value": value[at].astype(np.int64)}
    )
    made = Table.from_cells(frame, dimensions={d: tree(d, side) for d in names}, missing_totals="compute")
    inner = (~made.is_total & (made.value > 0)).astype(np.float64)
    mask = random.random(len(made)) < inner / inner.sum() * 0.1 * len(made)
    level = np.ceil(0.1 * made.value)
    return Problem(made, sensitivity=Sensitivity.of(mask, np.minimum(level, made.value), level))


def large(cells: int, seconds: float, ways: int) -> None:
    """Fixed directions, and what a local search makes of them."""
    problem = table(cells, ways)
    print(f"{ways} dimensions, {len(problem.table):,} cells, {len(problem.sensitive):,} sensitive")
    asked: tuple[DirectionsName, ...] = ("alternating", "search") if cells <= 300_000 else ("alternating",)
    for cost in ("value", "constant"):
        before = None
        for directions in asked:
            begin = process_time()
            solution = Adjust(cost=cost, directions=directions, time_limit_s=seconds).protect(problem).solution
            assert solution is not None
            better = "" if before is None else f", {1 - solution.objective / before:.1%} better"
            before = solution.objective
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            told = f"{solution.objective:.6g}{better}, gap {solution.gap:.1%}"
            print(f"{cost:9} {directions:12} {told}, {process_time() - begin:.1f} s CPU, {memory:.1f} GB", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["papers"]:
            papers()
        case ["reference", folder]:
            reference(Path(folder))
        case ["large", *rest]:
            cells, seconds, ways = (*map(int, rest), *(100_000, 300, 2)[len(rest) :])
            large(cells, seconds, ways)
        case _:
            print(__doc__)
