"""Controlled rounding beside the plain way: one integer program of HiGHS over the whole table.

python benchmarks/round.py                         # 2-D flat, two hierarchies (10,000 to 150,000 cells), 3-D
python benchmarks/round.py h_150k h_500k --seconds 60 --skip-plain
python benchmarks/round.py 4d_1m --seconds 120 --skip-plain

CPU seconds are those of this process. The gap is that between the distance and what is proven that none is below.
"""

from __future__ import annotations

import argparse
import json
import resource
import warnings
from time import process_time
from typing import Any

import highspy
import numpy as np

from tablesafe.equations import roll_up
from tablesafe.hierarchy import Hierarchy
from tablesafe.methods.round.method import Round
from tablesafe.problem import Problem
from tablesafe.table import Table

SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "2d_10k": ((100,), (100,)),
    "2d_150k": ((390,), (390,)),
    "h1_150k": ((350,), (35, 12)),
    "h_10k": ((4, 5, 4), (4, 5, 4)),
    "h_150k": ((6, 8, 7), (6, 8, 7)),
    "h_500k": ((20, 20, 20), (10, 5)),
    "3d_1k": ((9,), (9,), (9,)),
    "3d_5k": ((16,), (16,), (16,)),
    "3dh_120k": ((6, 7), (6, 7), (6, 7)),
    "4d_1m": ((5, 5), (5, 5), (5, 5), (7, 4)),
}
"""How many parts a code of each level has, for each dimension."""
USUAL = ("2d_10k", "h1_150k", "h_10k", "h_150k", "3d_1k")
Row = dict[str, object]


def tree(name: str, fans: tuple[int, ...]) -> Hierarchy:
    """A regular tree: every code of level i has `fans[i]` parts."""
    pairs, level = [], [name]
    for fan in fans:
        pairs += [(parent, f"{parent}.{i}") for parent in level for i in range(fan)]
        level = [f"{parent}.{i}" for parent in level for i in range(fan)]
    return Hierarchy.from_pairs(pairs)


def counts(name: str, seed: int, mean: float) -> Table:
    """Persons in a hierarchical table: a few in most cells, none in many, hundreds in some."""
    random = np.random.default_rng(seed)
    dimensions = {d: tree(d, fans) for d, fans in zip("abcdef", SHAPES[name], strict=False)}
    leaves = [np.flatnonzero(~h.is_total) for h in dimensions.values()]
    codes = np.stack([axis.ravel() for axis in np.meshgrid(*leaves, indexing="ij")], axis=1).astype(np.int32)
    weight = np.ones(1)
    for own in leaves:
        weight = np.multiply.outer(weight, random.lognormal(0.0, 0.7, len(own)))
    rate = mean * weight.ravel() / weight.mean()
    value = random.poisson(random.gamma(1.5, rate / 1.5))
    codes, columns = roll_up(codes, list(dimensions.values()), {"value": value})
    return Table.from_codes(codes, columns["value"].astype(float), dimensions)


def ours(table: Table, base: int, seconds: float) -> Row:
    """One run of our own."""
    begin = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = Round(base=base, time_limit_s=seconds).protect(Problem(table))
    spent = process_time() - begin
    assert release.solution is not None
    values = release.values.astype(np.int64)
    wide = release.upper - release.values - (base - 1)
    return {
        "program": "tablesafe",
        "seconds": round(spent, 2),
        "status": str(release.solution.status),
        "distance": release.solution.objective,
        "bound": release.solution.bound,
        "gap": f"{release.solution.gap:.4%}",
        "adds_up": not (table.equations.astype(np.int64) @ values).any(),
        "beyond": int((wide > 0).sum()),
        "furthest": int(wide.max() // base),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }


def plain(table: Table, base: int, seconds: float) -> Row:
    """The whole table as one integer program: a column for every count that is no multiple, a row for every sum."""
    above = table.integers % base
    moving = np.flatnonzero(above)
    matrix = table.equations.tocsc()[:, moving].tocsr()
    program: Any = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_, program.offset_ = (base - 2.0 * above[moving]), float(above.sum())
    program.col_lower_, program.col_upper_ = np.zeros(len(moving)), np.ones(len(moving))
    missing = -(table.equations.astype(np.int64) @ (table.integers - above)) // base
    program.row_lower_ = program.row_upper_ = missing.astype(np.float64)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data.astype(np.float64)
    program.integrality_ = [highspy.HighsVarType.kInteger] * len(moving)
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (("output_flag", False), ("threads", 1), ("time_limit", seconds)):
        solver.setOptionValue(option, value)
    solver.passModel(program)
    begin = process_time()
    solver.run()
    info = solver.getInfo()
    found = info.primal_solution_status == 2
    return {
        "program": "one program (HiGHS)",
        "seconds": round(process_time() - begin, 2),
        "status": solver.modelStatusToString(solver.getModelStatus()),
        "distance": info.objective_function_value if found else "",
        "bound": info.mip_dual_bound,
        "gap": f"{1 - info.mip_dual_bound / info.objective_function_value:.4%}" if found else "",
    }


def main() -> None:
    """Print a Markdown table per table, and all rows as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(USUAL), choices=list(SHAPES), help="tables to round")
    parser.add_argument("--base", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mean", type=float, default=3.0, help="mean of an inner cell")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of each run")
    parser.add_argument("--skip-plain", action="store_true", help="only our own")
    given = parser.parse_args()
    rows: list[Row] = []
    for name in given.names:
        table = counts(name, given.seed, given.mean)
        print(f"\n{name}: {len(table):,} cells, base {given.base}\n", flush=True)
        found = [ours(table, given.base, given.seconds)]
        if not given.skip_plain:
            found.append(plain(table, given.base, given.seconds))
            found[0]["ratio"] = round(float(str(found[1]["seconds"])) / max(float(str(found[0]["seconds"])), 0.01), 2)
        columns = list(found[0])
        print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
        for row in found:
            print("| " + " | ".join(str(row.get(column, "")) for column in columns) + " |", flush=True)
        rows += [{"table": name, "cells": len(table), **row} for row in found]
    print("\n" + json.dumps(rows))


if __name__ == "__main__":
    main()
