"""`python docs/reproduce/linked.py folder`: adjust the two linked tables of Dandekar & Cox at all five costs.

They are not in this repository and take minutes each: what comes out is kept in `linked_tables.csv`, for the page.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts
from tablesafe.methods.adjust.costs import MEASURES

KEPT = Path(__file__).with_name("linked_tables.csv")
INSTANCES = ("two5in6", "nine5d")


def measured(name: str, problem: ts.Problem, cost: str) -> dict[str, Any]:
    """How many of the cells keep within so many percent of their value, at one cost."""
    begin = process_time()
    experiment = ts.experiments.costs(problem, costs=[cost])
    percent = experiment.qualities[cost].loss.percent
    release = experiment.releases[cost]
    assert release.solution is not None
    return {
        "table": name, "cost": cost, "cells": len(problem.table), "sensitive": int(problem.sensitivity.mask.sum()),
        "unchanged": int((percent == 0).sum()), "within 1 percent": int((percent < 1).sum()),
        "within 5 percent": int((percent < 5).sum()), "within 10 percent": int((percent < 10).sum()),
        **experiment.frame().drop("start").row(0, named=True),
        "objective": release.solution.objective, "bound": release.solution.bound,
        "cpu seconds": round(process_time() - begin, 1),
        "protected": bool(_moved(problem, release).all()),
    }  # fmt: skip


def _moved(problem: ts.Problem, release: ts.Release) -> Any:
    """Whether each sensitive cell is as far away as it must be."""
    s, moves = problem.sensitivity, release.values - problem.table.value
    far = np.where(moves > 0, moves >= s.upper, -moves >= s.lower)
    return far[s.mask]


def main() -> None:
    """Adjust both tables at every cost, and keep the figures."""
    rows = []
    for name in INSTANCES:
        problem = ts.read_jj(Path(sys.argv[1]) / f"{name}.jj")
        for cost in MEASURES:
            rows.append(measured(name, problem, cost))
            print(rows[-1], flush=True)
    pl.DataFrame(rows).write_csv(KEPT)


if __name__ == "__main__":
    main()
