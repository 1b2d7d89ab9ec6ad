"""What changed in a table when its records did: by level of detail, and what a small count is still worth."""

from __future__ import annotations

import numpy as np
import polars as pl

from tablesafe.core.equations import Integers
from tablesafe.core.errors import InvalidRelease
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table

SMALL = 10
"""Counts up to this are told one by one."""


def distances(problem: Problem, release: Release) -> pl.DataFrame:
    """How far the published cells are from the true ones: a row per combination of levels, the totals first.

    The mean absolute change is over all published cells of the level, the mean percent over those that are not zero,
    the changed share is the sum of changes over the sum of values. The Hellinger distance compares both as
    distributions over the cells, from 0 (equal) to 1 (nothing in common); it is missing where values are negative.
    """
    table = problem.table
    if len(release.values) != len(table):
        raise InvalidRelease(f"The release has {len(release.values):,} cells, the table {len(table):,}.")
    levels = _levels(table)
    whole = pl.DataFrame({**levels, "true": table.value, "published": release.values})
    size, change = pl.col("true").abs(), (pl.col("published") - pl.col("true")).abs()
    p, q = pl.col("true") / pl.col("true").sum(), pl.col("published") / pl.col("published").sum()
    hellinger = ((p.sqrt() - q.sqrt()) ** 2).sum().mul(0.5).sqrt()
    return (
        whole.filter(pl.col("published").is_not_nan())
        .group_by(list(levels))
        .agg(
            pl.len().alias("cells"),
            (change > 0).sum().alias("cells changed"),
            ((pl.col("published") == 0) & (size > 0)).sum().alias("became zero"),
            ((pl.col("published") != 0) & (size == 0)).sum().alias("were zero"),
            change.mean().alias("mean absolute change"),
            change.max().alias("largest change"),
            (100 * change / size).filter(size > 0).mean().fill_null(0.0).alias("mean percent change"),
            (100 * change.sum() / size.sum()).fill_nan(0.0).alias("percent of the values changed"),
            hellinger.fill_nan(None).alias("Hellinger distance"),
        )
        .sort(list(levels))
    )


def worth_of_counts(problem: Problem, release: Release, there: Integers) -> pl.DataFrame:
    """What a small count is worth to an intruder, where `there` says how many of its records are really in each cell.

    A row per published count: the share of its records that are there, and the share of its cells that are right.
    """
    shown = ~release.suppressed
    value = np.where(shown, release.values, 0.0).astype(np.int64)
    frame = pl.DataFrame(
        {
            "count": np.minimum(value, SMALL + 1)[shown], "records": value[shown], "there": there[shown],
            "right": (value == problem.table.integers)[shown],
        }
    )  # fmt: skip
    named = pl.when(pl.col("count") > SMALL).then(pl.lit(f"over {SMALL}")).otherwise(pl.col("count").cast(pl.String))
    share = pl.when(pl.col("records").sum() > 0).then(pl.col("there").sum() / pl.col("records").sum())
    return (
        frame.group_by("count")
        .agg(
            pl.len().alias("cells"),
            pl.col("right").mean().alias("share of cells that are right"),
            share.alias("share of records that are there"),
        )
        .sort("count")
        .with_columns(named.alias("published count"))
        .select("published count", "cells", "share of cells that are right", "share of records that are there")
    )


def _levels(table: Table) -> dict[str, pl.Series]:
    if not table.dimensions:
        return {"level": pl.Series(np.where(table.is_total, "total", "inner"), dtype=pl.String)}
    return {
        f"{name} level": pl.Series(hierarchy.depth).gather(table.codes[:, d].astype(np.uint32))
        for d, (name, hierarchy) in enumerate(table.dimensions.items())
    }
