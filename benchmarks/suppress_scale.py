"""Suppression of large hierarchical tables: seconds, memory, cost, and what the audit says of the pattern.

python benchmarks/suppress_scale.py 20k                  # two hierarchies, 20,000 cells
python benchmarks/suppress_scale.py 250k 1m --seed 2     # the bars: five minutes and 4 GB, thirty minutes and 12 GB
"""

from __future__ import annotations

import argparse
import json
import resource
from time import perf_counter, process_time

import numpy as np
import polars as pl

from tablesafe.audit.audit import audit
from tablesafe.hierarchy import Hierarchy
from tablesafe.methods.suppress.method import Algorithm, Suppress
from tablesafe.problem import Problem
from tablesafe.rules import PPercent, Threshold
from tablesafe.tabulate import tabulate

SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "5k": ((3, 4, 5), (3, 4, 5)),
    "20k": ((4, 5, 6), (4, 5, 6)),
    "60k": ((6, 6, 6), (6, 6, 6)),
    "250k": ((7, 8, 8), (7, 8, 8)),
    "5k4d": ((3, 2), (3, 2), (3, 2), (5,)),
    "20k4d": ((3, 3), (3, 3), (4, 2), (11,)),
    "100k4d": ((4, 4), (4, 4), (4, 4), (11,)),
    "1m": ((5, 5), (5, 5), (5, 5), (7, 4)),
}
"""How many parts a code of each level has, for each dimension."""


def tree(name: str, fans: tuple[int, ...]) -> Hierarchy:
    """A regular tree: every code of level i has `fans[i]` parts."""
    pairs, level = [], [name]
    for fan in fans:
        pairs += [(parent, f"{parent}.{i}") for parent in level for i in range(fan)]
        level = [f"{parent}.{i}" for parent in level for i in range(fan)]
    return Hierarchy.from_pairs(pairs)


def magnitude_table(name: str, seed: int, *, firms: float = 12.0) -> Problem:
    """Skewed firms in a hierarchical table: cells with a few, some of them dominated by one; a few cells are empty."""
    random = np.random.default_rng(seed)
    dimensions = {d: tree(d, fans) for d, fans in zip("abcdef", SHAPES[name], strict=False)}
    leaves = [np.flatnonzero(~h.is_total) for h in dimensions.values()]
    popularity = [random.lognormal(0.0, 0.5, len(own)) for own in leaves]
    weight = popularity[0]
    for other in popularity[1:]:
        weight = np.multiply.outer(weight, other)
    mean = firms * weight.ravel() / weight.mean()
    count = random.poisson(random.gamma(1.5, mean / 1.5)) + (random.random(mean.size) < 0.6)
    cell = np.repeat(np.arange(mean.size), count)
    place = np.unravel_index(cell, weight.shape)
    frame = pl.DataFrame(
        {
            d: pl.Series(h.codes, dtype=pl.String).gather(own[at].astype(np.uint32))
            for (d, h), own, at in zip(dimensions.items(), leaves, place, strict=True)
        }
        | {
            "firm": np.arange(len(cell)),
            "turnover": np.ceil(random.lognormal(4.0, 1.2, len(cell))),
        }
    )
    table = tabulate(frame, dimensions=dimensions, value="turnover", respondent="firm", largest=3)
    return Problem(table, rules=[Threshold(n=3), PPercent(p=10)])


def measure(name: str, seed: int, algorithm: Algorithm, time_limit_s: float) -> dict[str, object]:
    """One row of the table."""
    problem = magnitude_table(name, seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = perf_counter(), process_time()
    release = Suppress(algorithm=algorithm, time_limit_s=time_limit_s).protect(problem)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    begin = process_time()
    findings = audit(problem, release, exact=False)
    complementary = release.suppressed & ~problem.sensitivity.mask
    return {
        "table": name,
        "cells": len(problem.table),
        "sensitive": len(problem.sensitive),
        "algorithm": algorithm,
        "seconds": round(wall, 1),
        "cpu_seconds": round(cpu, 1),
        "tabulate_gb": round(before / 1e6, 2),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "complementary": int(complementary.sum()),
        "value": float(problem.table.value[complementary].sum()),
        "open": len(findings.open),
        "audit_seconds": round(process_time() - begin, 1),
    }


def main() -> None:
    """Print JSON and a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=["20k"], choices=list(SHAPES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--algorithm", default="modular")
    parser.add_argument("--time-limit-s", type=float, default=60.0)
    options = parser.parse_args()
    rows = [measure(name, options.seed, options.algorithm, options.time_limit_s) for name in options.tables]
    print(json.dumps(rows))
    columns = list(rows[0])
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(row[column]) for column in columns) + " |")


if __name__ == "__main__":
    main()
