"""Adjustments true to the statistics: what each formulation keeps and costs, and what running sums save a tabu search.

Cox & Kelly's 4×9 table with the printed figures beside ours; then the same steps judged by running sums and by adding
all cells up anew, in the same run.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numba import njit

import tablesafe as ts
from tablesafe.equations import Floats, Integers
from tablesafe.methods.adjust.costs import cost_of
from tablesafe.methods.adjust.instance import Instance, Limits
from tablesafe.methods.adjust.measures import Relation
from tablesafe.methods.adjust.tabu import kernel
from tablesafe.methods.adjust.tabu.cycles import Cycles
from tablesafe.methods.adjust.tabu.search import data_of
from tablesafe.rules.sensitivity import Sensitivity

DATA = Path(__file__).resolve().parent.parent / "tests" / "papers" / "data" / "cox_kelly_4x9"
COLUMNS = (
    "min_sum_abs", "lp_variance", "lp_correlation", "lp_regression", "tabu_variance", "tabu_correlation", "tabu_slope",
)  # fmt: skip


def cox_kelly() -> ts.Problem:
    """The table of the paper, its adjusted tables as columns."""
    frame = pl.read_csv(DATA / "cells.csv").with_columns(
        pl.col("row", "col").cast(pl.String), pl.col("protection").fill_null(0)
    )
    sizes = {"row": 5, "col": 10}
    dimensions = {d: ts.Hierarchy.from_pairs([(str(n), str(i)) for i in range(1, n)]) for d, n in sizes.items()}
    table = ts.Table.from_cells(frame, dimensions=dimensions, columns=["sensitive", "protection", *COLUMNS])
    mask = np.asarray(table.columns["sensitive"]) > 0
    return ts.Problem(table, sensitivity=Sensitivity.of(mask, np.asarray(table.columns["protection"])))


def show(name: str, problem: ts.Problem, values: np.ndarray, seconds: float | None = None) -> None:
    """One line: the three statistics over the sensitive cells, and how much was changed."""
    cells, truth = problem.sensitive, problem.table.value
    r = Relation.of(truth[cells], np.asarray(values)[cells])
    took = "" if seconds is None else f"{seconds:8.2f} s CPU"
    total = np.abs(values - truth).sum()
    print(f"{name:<42}{r.correlation:8.4f}{r.slope:8.4f}{r.variance_ratio:8.4f}{total:12,.0f}{took}")


def formulations(problem: ts.Problem) -> None:
    """The printed tables, then ours."""
    print(f"{'':<42}{'corr':>8}{'slope':>8}{'ratio':>8}{'changed':>12}")
    for column in COLUMNS:
        show(f"printed {column}", problem, np.asarray(problem.table.columns[column]))
    only: dict[str, Any] = {"distance": 0.0, "correlation": 0.0, "slope": 0.0, "variance": 0.0}
    methods = {
        "least change, zeros move": ts.Adjust(cost="constant", zeros=True),
        "least change, mean kept": ts.Adjust(cost="constant", keep=ts.Keep()),
        "variance best": half(ts.Keep(variance="best")),
        "slope best": half(ts.Keep(slope="best")),
        "correlation best": half(ts.Keep(correlation="best")),
        "all three best": half(ts.Keep(variance="best", slope="best", correlation="best")),
        "within the printed lp_variance": half(ts.Keep(variance=0.0625, slope=0.075, correlation=0.0448)),
        "L(y) largest": half(ts.Keep(correlation="best", formulation="linear")),
        "|L(y)| least": half(ts.Keep(slope="best", formulation="linear")),
        "tabu, all three": half(ts.Keep(), ts.Tabu(**(only | {"correlation": 1, "slope": 1, "variance": 1}))),
        "tabu, correlation": half(ts.Keep(), ts.Tabu(**(only | {"correlation": 1.0}))),
    }
    for name, method in methods.items():
        begin = time.process_time()
        release = method.protect(problem)
        show(name, problem, release.values, time.process_time() - begin)


def half(keep: ts.Keep, tabu: ts.Tabu | None = None) -> ts.Adjust:
    """The paper's capacities: changes up to half of the value."""
    return ts.Adjust(cost="constant", capacity_percent=50, directions="alternating", keep=keep, tabu=tabu)


@njit(cache=True)
def by_running_sums(data: kernel.Data, state: kernel.State, chosen: Integers, lengths: Integers) -> Floats:
    """The measure after each step, from what the step touches."""
    values, now = np.zeros(len(chosen)), kernel.measure(data, state)
    for k in range(len(chosen)):
        first, last = data.start[chosen[k]], data.start[chosen[k] + 1]
        cells, steps = data.cell[first:last], data.coefficient[first:last]
        values[k] = now + kernel.gain(data, state, cells, steps, last - first, lengths[k])
    return values


@njit(cache=True)
def anew(data: kernel.Data, state: kernel.State, chosen: Integers, lengths: Integers) -> Floats:
    """The measure after each step, from all cells."""
    values = np.zeros(len(chosen))
    for k in range(len(chosen)):
        for z in range(data.start[chosen[k]], data.start[chosen[k] + 1]):
            state.moves[data.cell[z]] += lengths[k] * data.coefficient[z]
        values[k] = kernel.refresh(data, state)
        for z in range(data.start[chosen[k]], data.start[chosen[k] + 1]):
            state.moves[data.cell[z]] -= lengths[k] * data.coefficient[z]
    return values


def evaluation(problem: ts.Problem, steps: int) -> None:
    """Judge the same steps by running sums and by adding all cells up anew."""
    instance = Instance.of(problem, cost_of(problem, "constant"), Limits(zeros=True))
    random = np.random.default_rng(0)
    cycles = Cycles.of(instance, random)
    assert cycles is not None
    data = data_of(problem, instance, ts.Tabu(over="all"), cycles)
    state = kernel.state_of(data, random.integers(-9, 10, len(instance.cells)))
    chosen, lengths = random.integers(len(cycles), size=steps), random.integers(1, 50, steps)
    found = []
    for judge in (by_running_sums, anew):
        judge(data, state, chosen[:1], lengths[:1])  # compiles
        begin = time.process_time()
        values = judge(data, state, chosen, lengths)
        found.append((time.process_time() - begin, values))
        kernel.refresh(data, state)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9)
    fast, slow = found[0][0], found[1][0]
    print(
        f"{len(problem.table):,} cells, {steps:,} steps: running sums {fast:.3f} s, "
        f"added up anew {slow:.3f} s CPU: {slow / fast:.0f} times"
    )


def main() -> None:
    """Run both parts; JJ files named on the command line are judged too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="JJ files for the second part")
    parser.add_argument("--steps", type=int, default=5000)
    options = parser.parse_args()
    problem = cox_kelly()
    formulations(problem)
    for each in (problem, *(ts.read_jj(file) for file in options.files)):
        evaluation(each, options.steps)


if __name__ == "__main__":
    main()
