"""The cell key method on a million cells: changes looked up at once and cell by cell, and the whole way from records.

CPU seconds; the ratio compares both ways within one run.
"""

from __future__ import annotations

import argparse
import bisect
import time

import numpy as np
import polars as pl

import tablesafe as ts


def looked_up(table: ts.PerturbationTable, counts: np.ndarray, keys: np.ndarray) -> None:
    """All cells at once, against a loop over cells that looks each up in the row of its count."""
    last = len(table) - 1
    start = time.process_time()
    at_once = table.changes(np.minimum(counts, last), keys)
    fast = time.process_time() - start
    rows = [slice(int(a), int(b)) for a, b in zip(table.start[:-1], table.start[1:], strict=True)]
    ends = [table.upper[row].tolist() for row in rows]
    changes = [table.change[row].tolist() for row in rows]
    start = time.process_time()
    one_by_one = np.empty(len(counts))
    for cell in range(len(counts)):
        row = min(int(counts[cell]), last)
        one_by_one[cell] = changes[row][bisect.bisect_right(ends[row], float(keys[cell]))]
    slow = time.process_time() - start
    assert (at_once == one_by_one).all()
    print(f"{len(counts):,} cells looked up: {fast:.2f} s; one by one {slow:.2f} s; ratio {slow / fast:.0f}")


def from_records(n: int) -> None:
    """Records tabulated, their keys drawn and added up, every cell perturbed."""
    random = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "person": np.arange(n),
            "place": random.integers(0, 2000, n).astype(str),
            "age": random.integers(0, 100, n).astype(str),
            "sex": random.choice(["m", "f"], n),
            "rkey": np.round(random.random(n), 8),
        }
    )
    start = time.process_time()
    table = ts.tabulate(frame, dimensions=["place", "age", "sex"], largest=0)
    problem = ts.Problem(table)
    tabulated = time.process_time() - start
    print(f"{n:,} records in {len(table):,} cells: tabulated in {tabulated:.1f} s")
    for name, method in (
        ("keys of a column", ts.CellKey(key="rkey", smallest=3)),
        ("keys drawn by a seed", ts.CellKey(identifier="person", seed=1, smallest=3)),
    ):
        start = time.process_time()
        release = ts.protect(problem, method)
        seconds = time.process_time() - start
        print(f"  {name}: {seconds:.1f} s, {seconds / tabulated:.1f} times the tabulation")
    print(f"  {ts.noise_measures(problem, release)}")


def designed() -> None:
    """Perturbation tables of several sizes, and how exactly they keep mean and variance."""
    for maximum in (5, 10, 20, 50):
        start = time.process_time()
        table = ts.design_perturbation(maximum_change=maximum, variance=maximum**2 / 8, smallest=3)
        seconds = time.process_time() - start
        found = table.constraints()
        off = max(abs(found["mean"].to_numpy()).max(), abs(found["variance"][-1] - maximum**2 / 8))
        print(f"designed with changes up to {maximum}: {seconds:.2f} s, off by at most {off:.0e}")


def main() -> None:
    """Run all three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--records", type=int, default=2_000_000)
    given = parser.parse_args()
    random = np.random.default_rng(0)
    table = ts.design_perturbation(maximum_change=5, variance=3, smallest=3, stay=0.5)
    looked_up(table, random.geometric(0.1, given.cells) - 1, random.random(given.cells))
    designed()
    from_records(given.records)


if __name__ == "__main__":
    main()
