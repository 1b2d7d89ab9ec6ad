"""Records and tables that every engine must agree on, and what it means that it agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table
from tablesafe.tabulate import tabulate

N = 400
REGIONS = Hierarchy.from_equations("T = P + Q; P = a + b; Q = c + d; T = R + S; R = a + d; S = b + c")


def records() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    firm = rng.integers(0, 60, N)
    return pl.DataFrame(
        {
            "region": rng.choice(list("abcd"), N),
            "size": [None if i % 29 == 0 else int(i % 5) for i in rng.integers(0, 100, N)],
            "firm": [f"f{i}" for i in firm],
            "group": [
                None if i % 4 == 0 else f"g{(i + j) % 11}" for i, j in zip(firm, rng.random(N) < 0.1, strict=True)
            ],
            "home": np.round(rng.normal(20, 30, N), 2),
            "export": rng.integers(0, 40, N).astype(float),
            "w": np.round(rng.uniform(1, 9, N), 1),
            "odd": rng.uniform(1, 9, N),
            "asked": rng.integers(0, 3, N),
            "year": rng.choice([2023, 2024], N),
        }
    )


DIMENSIONS: dict[str, Hierarchy | None] = {"region": REGIONS, "size": None}
PLANS: dict[str, dict[str, Any]] = {
    "holdings, weights and requests": {
        "value": "home", "respondent": "firm", "holding": "group", "weight": "w", "request": "asked",
        "columns": ["export"], "missing": {"size": "?"},
    },
    "respondents, odd weights": {"value": "home", "respondent": "firm", "weight": "odd", "missing": "drop"},
    "several responses": {
        "value": ["home", "export"], "equations": "all = home + export", "respondent": "firm", "holding": "group",
        "missing": "drop", "where": {"year": "2024"}, "largest": 2,
    },
    "counts": {"value": None, "respondent": "firm", "missing": {"size": "?"}, "where": {"region": ["a", "c"]}},
    "margins and a shadow": {
        "value": "export", "shadow": "home", "respondent": "firm", "missing": "drop", "margins": [["region"], ["size"]],
    },
    "no contributors": {"value": "home", "respondent": "firm", "holding": "group", "missing": "drop", "largest": 0},
}  # fmt: skip
NAMELESS: dict[str, dict[str, Any]] = {
    "records": {"value": "home", "missing": "drop"},
    "records and holdings": {"value": "home", "holding": "group", "missing": "drop"},
}


def assert_same(one: Table, other: Table, *, names: bool = True) -> None:
    assert [h.codes for h in one.dimensions.values()] == [h.codes for h in other.dimensions.values()]
    assert np.array_equal(one.codes, other.codes)
    assert (one.decimals, one.exact) == (other.decimals, other.exact)
    assert np.array_equal(one.integers, other.integers)
    assert np.array_equal(np.asarray(one.count), np.asarray(other.count))
    assert (one.holdings is None) == (other.holdings is None)
    assert one.holdings is None or np.array_equal(one.holdings, np.asarray(other.holdings))
    assert set(one.columns) == set(other.columns)
    for column in one.columns:
        assert np.array_equal(one.columns[column], other.columns[column]), column
    mine, theirs = one.contributors, other.contributors
    assert (mine is None) == (theirs is None)
    if mine is None or theirs is None:
        return
    assert np.array_equal(mine.amount, theirs.amount)
    if names:
        assert np.array_equal(np.asarray(mine.names), np.asarray(theirs.names))
        assert np.array_equal(mine.identity, theirs.identity)
        assert (mine.weighted is None) == (theirs.weighted is None)
        assert mine.weighted is None or np.array_equal(mine.weighted, np.asarray(theirs.weighted))


def assert_the_plan_agrees(plan: str, theirs: Any, parquet: Path) -> None:
    """An engine makes the same table of the same records."""
    ours = tabulate(parquet, dimensions=DIMENSIONS, **PLANS[plan])
    assert_same(ours, tabulate(theirs, dimensions=DIMENSIONS, **PLANS[plan]))


def assert_nameless_records_agree(plan: str, theirs: Any, parquet: Path) -> None:
    """A database has no order, so records are numbered by cell there; all the rest is the same."""
    ours = tabulate(parquet, dimensions=DIMENSIONS, **NAMELESS[plan])
    made = tabulate(theirs, dimensions=DIMENSIONS, **NAMELESS[plan])
    assert_same(ours, made, names=False)
    kept = made.contributors
    assert kept is not None
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in kept.identity), "nobody stands twice in a cell"


def assert_a_function_filters(theirs: Any, parquet: Path) -> None:
    """A function of the engine's table filters as the same condition in SQL does."""
    options: dict[str, Any] = {"dimensions": DIMENSIONS, "value": "home", "respondent": "firm", "missing": "drop"}
    ours = tabulate(parquet, where="year = 2024 AND export > 3", **options)
    assert_same(ours, tabulate(theirs, where=lambda t: (t.year == 2024) & (t.export > 3), **options))
