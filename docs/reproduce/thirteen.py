"""`python docs/reproduce/thirteen.py folder`: keep the statistics of the 13 × 13 × 13 table, each within 30 seconds.

It is not in this repository (`hier13x13x13a` of the CSPLIB, of the structure that Cox & Kelly describe) and takes
minutes: what comes out is kept in `thirteen.csv`, for the page.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts
from tablesafe.loss.statistics import Relation
from tablesafe.work import budget

KEPT = Path(__file__).with_name("thirteen.csv")
SECONDS = 30.0
LINEAR: dict[str, ts.Keep | None] = {
    "min_sum_abs": None,
    "variance": ts.Keep(variance="best"),
    "correlation": ts.Keep(correlation="best"),
    "regression": ts.Keep(slope="best"),
}
TABU = {
    "min_sum_abs": ts.Tabu(distance=1.0, correlation=0.0, slope=0.0, variance=0.0),
    "variance": ts.Tabu(correlation=0.0, slope=0.0),
    "correlation": ts.Tabu(slope=0.0, variance=0.0),
    "regression": ts.Tabu(correlation=0.0, variance=0.0),
}


def measured(problem: ts.Problem, by: str, aim: str) -> dict[str, Any]:
    """The three statistics over the sensitive cells."""
    method = ts.Adjust(
        cost="constant", time_limit_s=SECONDS, keep=LINEAR[aim] if by == "lp" else None,
        tabu=TABU[aim] if by == "tabu" else None,
    )  # fmt: skip
    begin = process_time()
    release = ts.protect(problem, method)
    s, cells = problem.sensitivity, problem.sensitive
    moves = release.values - problem.table.value
    relation = Relation.of(problem.table.value[cells], release.values[cells])
    return {
        "by": by, "aim": aim, "correlation": relation.correlation, "slope": relation.slope,
        "variance ratio": relation.variance_ratio, "sum of changes": float(np.abs(moves).sum()),
        "protected": bool(np.where(moves > 0, moves >= s.upper, -moves >= s.lower)[cells].all()),
        "cpu seconds": round(process_time() - begin, 1),
    }  # fmt: skip


def main() -> None:
    """Every aim by linear programs and by tabu search, and keep the figures."""
    budget.PATIENCE = 100.0  # the processor's clock alone: a busy machine changes nothing
    problem = ts.read_jj(Path(sys.argv[1]) / "hier13x13x13a.jj")
    rows = []
    for by in ("lp", "tabu"):
        for aim in LINEAR:
            rows.append(measured(problem, by, aim))
            print(rows[-1], flush=True)
    pl.DataFrame(rows).write_csv(KEPT)


if __name__ == "__main__":
    main()
