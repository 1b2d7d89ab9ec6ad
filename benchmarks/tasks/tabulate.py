"""Tabulation by three hierarchies with the three largest holdings of every cell: ours, plain polars, plain pandas.

The plain ways are one group-by per combination of levels, from an aggregate by leaf cell. All must come to the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import polars as pl

from benchmarks.instances.records import LEVELS, codes
from benchmarks.registry import Case, Outcome, program
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.tabulate import tabulate

TASK, WARM, LARGEST = "tabulate", "records_1k", 3


def result(cells: float, value: float, count: float, holdings: float, largest: float) -> Outcome:
    """The sums by which the ways are compared."""
    sums = {"count": count, "holdings": holdings, "value": round(value, 2), "largest": round(largest, 2)}
    return Outcome(measures={"cells": int(cells), "sums": sums})


@program(TASK, "tablesafe", "tablesafe", warm=WARM)
def ours(case: Case) -> Outcome:
    """In this process, through DuckDB."""
    dimensions = {name: Hierarchy.from_prefixes(codes(name), lengths=(4,)) for name in LEVELS}
    table = tabulate(
        case.folder / "records.parquet", dimensions=dimensions, value="turnover", respondent="firm", holding="group",
        largest=LARGEST,
    )  # fmt: skip
    assert table.count is not None
    assert table.holdings is not None
    largest = float(table.largest(LARGEST).sum())
    shown = (table.count > 0) | (table.value != 0)
    return result(shown.sum(), float(table.value.sum()), int(table.count.sum()), int(table.holdings.sum()), largest)


def margins() -> Iterator[list[str]]:
    """Every combination of levels: a dimension is left out, at its groups, or at its leaves."""
    for chosen in itertools.product(*[(None, f"{name} group", name) for name in LEVELS]):
        yield [column for column in chosen if column is not None]


@program(TASK, "polars", "naive", warm=WARM)
def with_polars(case: Case) -> Outcome:
    """One group-by per margin."""
    groups = [f"{name} group" for name in LEVELS]
    leaf = (
        pl.scan_parquet(case.folder / "records.parquet")
        .with_columns(who=pl.coalesce("group", "firm"), cents=(pl.col("turnover") * 100).round().cast(pl.Int64))
        .with_columns([pl.col(name).str.head(4).alias(f"{name} group") for name in LEVELS])
        .with_columns(pl.col(*LEVELS, *groups).cast(pl.Categorical))
        .group_by(*LEVELS, *groups, "who", "firm")
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
    value, largest = float(whole["value"].sum()) / 100, float(whole["largest"].list.sum().sum()) / 100
    return result(whole.height, value, int(whole["count"].sum()), int(whole["holdings"].sum()), largest)


@program(TASK, "pandas", "naive", warm=WARM)
def with_pandas(case: Case) -> Outcome:
    """The same in pandas."""
    import pandas as pd

    records = pd.read_parquet(case.folder / "records.parquet")
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
        tops.append(merged.sort_values("cents", ascending=False).groupby(names, sort=False).head(LARGEST))
        tables.append(cells.join(leaf.groupby(names, sort=False)["firm"].nunique()).reset_index())
    whole, top = pd.concat(tables), pd.concat(tops)
    value, largest = int(whole["sum"].sum()) / 100, int(top["cents"].sum()) / 100
    return result(len(whole), value, int(whole["firm"].sum()), int(whole["count"].sum()), largest)
