"""The cell key method: changes looked up at once and cell by cell, tables designed, and the whole way from records."""

from __future__ import annotations

import bisect
from functools import partial

import numpy as np
import polars as pl

import tablesafe as ts
from benchmarks.clock import Stopwatch
from benchmarks.registry import Case, Outcome, program

LOOKUP, DESIGN, RECORDS = "cell key lookup", "cell key design", "cell key"
MAXIMA = (5, 10, 20, 50)


def _table() -> ts.PerturbationTable:
    return ts.design_perturbation(maximum_change=5, variance=3, smallest=3, stay=0.5)


def _summed(changes: np.ndarray) -> dict[str, object]:
    """What both ways must come to."""
    return {"note": f"changes add up to {int(changes.sum()):,}, {int(np.count_nonzero(changes)):,} counts changed"}


@program(LOOKUP, "tablesafe", "tablesafe", warm="keys_1k")
def at_once(case: Case) -> Outcome:
    """All cells at once."""
    table, counts, keys = _table(), case.made.facts["counts"], case.made.facts["keys"]
    watch = Stopwatch()
    changes = table.changes(np.minimum(counts, len(table) - 1), keys)
    return Outcome(cpu_s=watch.cpu_s, wall_s=watch.wall_s, measures=_summed(changes))


@program(LOOKUP, "one by one", "naive")
def one_by_one(case: Case) -> Outcome:
    """A loop over cells that looks each up in the row of its count."""
    table, counts, keys = _table(), case.made.facts["counts"], case.made.facts["keys"]
    rows = [slice(int(a), int(b)) for a, b in zip(table.start[:-1], table.start[1:], strict=True)]
    ends = [table.upper[row].tolist() for row in rows]
    changes = [table.change[row].tolist() for row in rows]
    last, found = len(table) - 1, np.empty(len(counts))
    watch = Stopwatch()
    for cell in range(len(counts)):
        row = min(int(counts[cell]), last)
        found[cell] = changes[row][bisect.bisect_right(ends[row], float(keys[cell]))]
    return Outcome(cpu_s=watch.cpu_s, wall_s=watch.wall_s, measures=_summed(found))


def designed(case: Case, maximum: int) -> Outcome:
    """A perturbation table, and how exactly it keeps mean and variance."""
    variance = maximum**2 / 8
    table = ts.design_perturbation(maximum_change=maximum, variance=variance, smallest=3)
    found = table.constraints()
    off = max(abs(found["mean"].to_numpy()).max(), abs(found["variance"][-1] - variance))
    return Outcome(measures={"note": f"mean and variance off by at most {off:.0e}"})


for _maximum in MAXIMA:
    program(DESIGN, f"tablesafe, changes to {_maximum}", "tablesafe", warm="keys_1k")(
        partial(designed, maximum=_maximum)
    )


def from_records(case: Case, method: ts.CellKey | None) -> Outcome:
    """Records tabulated; their keys drawn or read and added up, every cell perturbed."""
    frame = pl.read_parquet(case.folder / "persons.parquet")
    table = ts.tabulate(frame, dimensions=["place", "age", "sex"], largest=0)
    problem = ts.Problem(table)
    if method is None:
        return Outcome(measures={"cells": len(table), "note": "not protected"})
    release = ts.protect(problem, method)
    changed = int(np.count_nonzero(release.values - table.value))
    return Outcome(measures={"cells": len(table), "note": f"{changed:,} counts changed"})


_COLUMN, _DRAWN = ts.CellKey(key="rkey", smallest=3), ts.CellKey(identifier="person", seed=1, smallest=3)
program(RECORDS, "tablesafe, keys of a column", "tablesafe", warm="persons_1k")(partial(from_records, method=_COLUMN))
program(RECORDS, "tablesafe, keys drawn", "tablesafe", warm="persons_1k")(partial(from_records, method=_DRAWN))
program(RECORDS, "tabulation alone", "naive", warm="persons_1k")(partial(from_records, method=None))
