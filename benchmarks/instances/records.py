"""Records to be tabulated: firms with several records each, half of them in holdings; and two plain dimensions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.registry import Made, instance

LEVELS = {"nace": (20, 20), "region": (20, 10), "size": (3, 3)}
"""Groups, and leaves per group, of each dimension; a grand total on top."""
STAYS = (0.7, 0.6, 0.8)
"""Share of a firm's records that are at its home code of each dimension."""
SIZES = {"1k": 1_000, "10k": 10_000, "30k": 30_000, "100k": 100_000, "300k": 300_000, "1m": 1_000_000,
         "3m": 3_000_000, "10m": 10_000_000, "30m": 30_000_000}  # fmt: skip
SEED = 1


def codes(dimension: str) -> list[str]:
    """The leaves of a dimension; the first four characters are their group."""
    groups, leaves = LEVELS[dimension]
    return [f"{dimension[0].upper()}{g:03d}.{leaf:02d}" for g in range(groups) for leaf in range(leaves)]


def hierarchical(records: int, folder: Path) -> Made:
    """Records of firms near home, amounts in cents, as a Parquet file."""
    random = np.random.default_rng(SEED)
    firms = max(records // 5, 1)
    firm = random.integers(0, firms, records)
    columns: dict[str, Any] = {
        "firm": "F" + pl.Series(firm).cast(pl.String).str.zfill(8),
        "group": _holdings(random, firms).gather(firm.astype(np.uint32)),
    }
    for (dimension, (groups, leaves)), stay in zip(LEVELS.items(), STAYS, strict=True):
        home = random.integers(0, groups * leaves, firms)
        leaf = np.where(random.random(records) < stay, home[firm], random.integers(0, groups * leaves, records))
        columns[dimension] = pl.Series(codes(dimension)).gather(leaf.astype(np.uint32))
    columns["turnover"] = np.round(np.exp(random.normal(6, 2, records)), 2)
    pl.DataFrame(columns).write_parquet(folder / "records.parquet")
    return Made(facts={"records": records})


def _holdings(random: np.random.Generator, firms: int) -> pl.Series:
    """The holding of each firm; half of them have none."""
    holding = "G" + pl.Series(random.integers(0, max(firms // 3, 1), firms)).cast(pl.String).str.zfill(7)
    return holding.set(pl.Series(random.random(firms) < 0.5), None)


def flat(records: int, folder: Path) -> Made:
    """One record per firm in 40 × 25 cells, skewed, as a CSV file: what a research output looks like."""
    random = np.random.default_rng(SEED)
    rows, columns = (random.choice(n, records, p=random.dirichlet(np.full(n, 0.6))) for n in (40, 25))
    frame = pl.DataFrame(
        {
            "row": pl.Series([f"r{i:02d}" for i in range(40)]).gather(rows.astype(np.uint32)),
            "column": pl.Series([f"c{i:02d}" for i in range(25)]).gather(columns.astype(np.uint32)),
            "firm": np.arange(records),
            "amount": np.ceil(random.lognormal(5, 1.8, records)),
        }
    )
    frame.write_csv(folder / "records.csv")
    return Made(facts={"records": records})


for _word, _records in SIZES.items():
    _about = "records of firms and holdings by three hierarchies, up to 1.2 million cells"
    instance(f"records_{_word}", _about, _records, partial(hierarchical, _records))
for _word in ("1k", "100k", "1m"):
    instance(f"flat_{_word}", "records by two plain dimensions, 40 × 25", SIZES[_word], partial(flat, SIZES[_word]))
