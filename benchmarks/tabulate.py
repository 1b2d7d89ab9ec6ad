"""Tabulate millions of records by three hierarchies, with the three largest holdings of every cell.

Each way runs in a process of its own on the same Parquet file, so that its peak memory is its own: tablesafe, and the
same table in plain polars and in plain pandas (one group-by per combination of levels, from an aggregate by leaf cell).
All ways must come to the same counts and sums. Printed are CPU seconds, seconds, peak memory and their ratios, as JSON
and as a Markdown table.

    python benchmarks/tabulate.py --records 3000000
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LARGEST = 3
LEVELS = {"nace": (20, 20), "region": (20, 10), "size": (3, 3)}
"""Groups, and leaves per group, of each dimension; a grand total on top."""


def write_records(path: Path, records: int, seed: int) -> None:
    """Firms with several records each, most of them near home, half of them in holdings; amounts in cents."""
    import numpy as np
    import polars as pl

    random = np.random.default_rng(seed)
    firms = max(records // 5, 1)
    firm = random.integers(0, firms, records)
    columns: dict[str, Any] = {
        "firm": "F" + pl.Series(firm).cast(pl.String).str.zfill(8),
        "group": _holdings(random, firms).gather(firm.astype(np.uint32)),
    }
    for (dimension, (groups, leaves)), stay in zip(LEVELS.items(), (0.7, 0.6, 0.8), strict=True):
        home = random.integers(0, groups * leaves, firms)
        leaf = np.where(random.random(records) < stay, home[firm], random.integers(0, groups * leaves, records))
        columns[dimension] = pl.Series(codes(dimension)).gather(leaf.astype(np.uint32))
    columns["turnover"] = np.round(np.exp(random.normal(6, 2, records)), 2)
    pl.DataFrame(columns).write_parquet(path)


def _holdings(random: Any, firms: int) -> Any:
    """The holding of each firm; half of them have none."""
    import polars as pl

    holding = "G" + pl.Series(random.integers(0, max(firms // 3, 1), firms)).cast(pl.String).str.zfill(7)
    return holding.set(pl.Series(random.random(firms) < 0.5), None)


def codes(dimension: str) -> list[str]:
    """The leaves of a dimension; the first four characters are their group."""
    groups, leaves = LEVELS[dimension]
    return [f"{dimension[0].upper()}{g:03d}.{leaf:02d}" for g in range(groups) for leaf in range(leaves)]


def with_tablesafe(path: Path) -> dict[str, Any]:
    from tablesafe.hierarchy import Hierarchy
    from tablesafe.tabulate import tabulate

    dimensions = {name: Hierarchy.from_prefixes(codes(name), lengths=(4,)) for name in LEVELS}
    table = tabulate(path, dimensions=dimensions, value="turnover", respondent="firm", holding="group", largest=LARGEST)
    assert table.count is not None
    assert table.holdings is not None
    return {
        "cells": len(table),
        "value": round(float(table.value.sum()), 2),
        "count": int(table.count.sum()),
        "holdings": int(table.holdings.sum()),
        "largest": round(float(table.largest(LARGEST).sum()), 2),
    }


def margins() -> Iterator[list[str]]:
    """Every combination of levels: a dimension is left out, at its groups, or at its leaves."""
    for chosen in itertools.product(*[(None, f"{name} group", name) for name in LEVELS]):
        yield [column for column in chosen if column is not None]


def with_polars(path: Path) -> dict[str, Any]:
    import polars as pl

    leaf = (
        pl.scan_parquet(path)
        .with_columns(who=pl.coalesce("group", "firm"), cents=(pl.col("turnover") * 100).round().cast(pl.Int64))
        .with_columns([pl.col(name).str.head(4).alias(f"{name} group") for name in LEVELS])
        .with_columns(pl.col(*LEVELS, *[f"{name} group" for name in LEVELS]).cast(pl.Categorical))
        .group_by(*LEVELS, *[f"{name} group" for name in LEVELS], "who", "firm")
        .agg(pl.col("cents").sum())
        .collect()
    )
    tables = []
    for margin in margins():
        keys: list[Any] = margin or [pl.lit(0).alias("all")]
        merged = leaf.group_by(*keys, "who").agg(pl.col("cents").sum())
        names = margin or ["all"]
        cells = merged.group_by(names).agg(
            pl.col("cents").sum().alias("value"),
            pl.len().alias("holdings"),
            pl.col("cents").top_k(LARGEST).alias("largest"),
            pl.col("who").top_k_by("cents", LARGEST),
        )
        counts = leaf.group_by(keys).agg(pl.col("firm").n_unique().alias("count"))
        tables.append(cells.join(counts, on=names))
    whole = pl.concat(tables, how="diagonal")
    return {
        "cells": whole.height,
        "value": whole["value"].sum() / 100,
        "count": whole["count"].sum(),
        "holdings": whole["holdings"].sum(),
        "largest": whole["largest"].list.sum().sum() / 100,
    }


def with_pandas(path: Path) -> dict[str, Any]:
    import pandas as pd

    records = pd.read_parquet(path)
    records["who"] = records["group"].fillna(records["firm"]).astype("category").cat.codes
    records["firm"] = records["firm"].astype("category").cat.codes
    records["cents"] = (records["turnover"] * 100).round().astype("int64")
    for name in LEVELS:
        records[f"{name} group"] = records[name].str[:4].astype("category").cat.codes
        records[name] = records[name].astype("category").cat.codes
    groups = [f"{name} group" for name in LEVELS]
    leaf = records.groupby([*LEVELS, *groups, "who", "firm"], sort=False)["cents"].sum().reset_index()
    del records
    leaf["all"] = 0
    tables, tops = [], []
    for margin in margins():
        names = margin or ["all"]
        merged = leaf.groupby([*names, "who"], sort=False)["cents"].sum().reset_index()
        cells = merged.groupby(names, sort=False)["cents"].agg(["sum", "count"])
        largest = merged.sort_values("cents", ascending=False).groupby(names, sort=False).head(LARGEST)
        counts = leaf.groupby(names, sort=False)["firm"].nunique()
        tables.append(cells.join(counts).reset_index())
        tops.append(largest)
    whole, top = pd.concat(tables), pd.concat(tops)
    return {
        "cells": len(whole),
        "value": int(whole["sum"].sum()) / 100,
        "count": int(whole["firm"].sum()),
        "holdings": int(whole["count"].sum()),
        "largest": int(top["cents"].sum()) / 100,
    }


WAYS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "tablesafe": with_tablesafe,
    "polars": with_polars,
    "pandas": with_pandas,
}


def measure(way: str, path: Path) -> dict[str, Any]:
    """Run one way in this process."""
    begin = time.perf_counter()
    result = WAYS[way](path)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "way": way,
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "wall_s": round(time.perf_counter() - begin, 2),
        "peak_gb": round(usage.ru_maxrss / 1e6, 2),
        "result": result,
    }


def compare(path: Path, ways: list[str]) -> list[dict[str, Any]]:
    """Run each way in a process of its own, and check that all come to the same."""
    runs = []
    for way in ways:
        command = [sys.executable, __file__, "--way", way, "--file", str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout))
    for run in runs[1:]:
        for key, value in runs[0]["result"].items():
            if abs(value - run["result"][key]) > 1e-9 * abs(value):
                raise SystemExit(f"{run['way']} has {key} {run['result'][key]}, {runs[0]['way']} has {value}")
    return runs


def markdown(records: int, runs: list[dict[str, Any]]) -> str:
    """The runs as a table, each with its ratio to the first."""
    first = runs[0]
    lines = [
        f"{records:,} records, {first['result']['cells']:,} cells, {LARGEST} largest holdings per cell",
        "",
        "| way | CPU seconds | ratio | seconds | peak memory | ratio |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['way']} | {r['cpu_s']} | {r['cpu_s'] / first['cpu_s']:.1f} | {r['wall_s']} | {r['peak_gb']} GB | "
        f"{r['peak_gb'] / first['peak_gb']:.1f} |"
        for r in runs
    ]
    return "\n".join(lines)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--file", type=Path, help="records made before; otherwise they are made anew")
    parser.add_argument("--way", choices=list(WAYS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.way, options.file)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "records.parquet"
        if not path.exists():
            write_records(path, options.records, options.seed)
        runs = compare(path, options.ways)
    print(json.dumps({"records": options.records, "seed": options.seed, "runs": runs}, indent=2))
    print()
    print(markdown(options.records, runs))


if __name__ == "__main__":
    main()
