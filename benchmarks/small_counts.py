"""Small-count rounding of a hypercube: time, memory and errors, beside rounding the small inner cells one by one.

python benchmarks/small_counts.py                                   # 1.2 million cells, eight dimensions
python benchmarks/small_counts.py --shape 300 400 --mean 2 --limit 5
python benchmarks/small_counts.py --margins 3                       # publish only margins of up to three dimensions

Inner counts are negative binomial: many small ones, a few large. `nearest` sends each small inner cell to the nearer of
0 and the limit, `random` sends it up with probability count ÷ limit; both are then added up, as ours is.
The release is audited for an attacker who knows that counts are whole. Seconds are CPU seconds without compilation;
memory is the peak of the whole process.
"""

from __future__ import annotations

import argparse
import resource
from dataclasses import replace
from time import process_time
from typing import Any

import numpy as np
import polars as pl

from tablesafe.audit.audit import audit
from tablesafe.hierarchy import Hierarchy
from tablesafe.methods.round.counts import summed_up
from tablesafe.methods.small_counts.method import SmallCounts
from tablesafe.problem import Problem
from tablesafe.rules.counts import Threshold
from tablesafe.table import Table

Array = np.ndarray[Any, Any]


def cube(shape: tuple[int, ...], mean: float, seed: int) -> Table:
    """A hypercube with all its totals."""
    random = np.random.default_rng(seed)
    counts = random.poisson(random.gamma(0.5, 2 * mean, shape))
    names = [f"d{d}" for d in range(len(shape))]
    trees = {name: Hierarchy.flat([str(code) for code in range(size)]) for name, size in zip(names, shape, strict=True)}
    places = np.indices(shape).reshape(len(shape), -1)
    columns = {name: places[d].astype(str) for d, name in enumerate(names)}
    frame = pl.DataFrame(columns | {"value": counts.ravel().astype(float)})
    return Table.from_cells(frame, dimensions=trees, missing_totals="compute")


def shown_margins(table: Table, most: int | None) -> Array:
    """Which cells are published: all, or those that break down by at most so many dimensions."""
    depth = np.column_stack([tree.depth[table.codes[:, d]] for d, tree in enumerate(table.dimensions.values())])
    return (depth > 0).sum(axis=1) <= (depth.shape[1] if most is None else most)


def one_by_one(table: Table, limit: int, up: Array) -> Array:
    """Small inner cells at 0 or the limit, and all totals from them."""
    small = ~table.is_total & (table.integers > 0) & (table.integers < limit)
    sums = summed_up(table, np.where(small, limit * up, table.integers))
    assert sums is not None
    return sums


def errors(table: Table, values: Array, shown: Array, word: str, seconds: float) -> dict[str, Any]:
    """A row of the printed table."""
    off = np.abs(values - table.value)[shown]
    totals = np.abs(values - table.value)[shown & table.is_total]
    return {
        "way": word,
        "seconds": round(seconds, 1),
        "changed": int((off > 0).sum()),
        "mean error": round(float(off.mean()), 3),
        "of totals": round(float(totals.mean()), 3),
        "largest": int(off.max()),
        "squared": int((off**2).sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs="+", default=[10, 8, 6, 5, 4, 4, 3, 2])
    parser.add_argument("--mean", type=float, default=3.0)
    parser.add_argument("--limit", type=int, default=3)
    parser.add_argument("--margins", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    SmallCounts().protect(Problem(cube((3, 3), 2.0, 0)))  # compiles
    table = cube(tuple(options.shape), options.mean, options.seed)
    table = replace(table, count=table.integers)
    shown = shown_margins(table, options.margins)
    print(f"{len(table):,} cells, {int(shown.sum()):,} published, {int((~table.is_total).sum()):,} inner")
    begin = process_time()
    problem = Problem(table, withheld=~shown)
    release = SmallCounts(limit=options.limit, seed=options.seed).protect(problem)
    spent = process_time() - begin
    assert not ((release.values[shown] > 0) & (release.values[shown] < options.limit)).any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    begin = process_time()
    findings = audit(problem.replace(sensitivity=Threshold(n=options.limit)(table)), release, insiders=False)
    print(f"{findings.text(shown=0)}\naudited in {process_time() - begin:.1f} s")
    rows = [errors(table, np.nan_to_num(release.values), shown, "small counts", spent)]
    chance = np.random.default_rng(options.seed).random(len(table))
    for word, up in (
        ("nearest", 2 * table.integers >= options.limit),
        ("random", chance * options.limit < table.integers),
    ):
        begin = process_time()
        values = one_by_one(table, options.limit, up)
        rows.append(errors(table, values, shown, word, process_time() - begin))
    with pl.Config(tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True, tbl_width_chars=120):
        print(pl.DataFrame(rows))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
