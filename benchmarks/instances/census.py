"""Persons: in households and municipalities to be edited; with record keys to be counted; cells to be looked up."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.registry import Made, instance

SIZES = {"1k": 1_000, "10k": 10_000, "100k": 100_000, "1m": 1_000_000, "2m": 2_000_000}
SEED = 1


def households(records: int, folder: Path) -> Made:
    """Persons in households in municipalities of very different size, with an income and a firm."""
    draw = np.random.default_rng(SEED)
    size = draw.choice(np.arange(1, 7), p=[0.35, 0.3, 0.15, 0.12, 0.06, 0.02], size=records)
    household = np.repeat(np.arange(records), size)[:records]
    areas = max(20, records // 2_000)
    share = np.minimum(draw.pareto(1.1, areas) + 0.05, 20)
    area = draw.choice(areas, p=share / share.sum(), size=int(household.max()) + 1)[household]
    often = 1 / np.arange(1, 13) ** 1.3
    ages, shares = ["0-14", "15-24", "25-44", "45-64", "65+"], [0.17, 0.12, 0.27, 0.26, 0.18]
    pl.DataFrame(
        {
            "household": household,
            "region": np.char.add("R", (area % 7).astype(str)),
            "municipality": np.char.add("M", area.astype(str)),
            "age": draw.choice(ages, p=shares, size=records),
            "sex": draw.choice(["f", "m"], size=records),
            "job": np.char.add("o", draw.choice(12, p=often / often.sum(), size=records).astype(str)),
            "income": np.rint(np.exp(draw.normal(10, 0.6, records))).astype(np.int64),
            "firm": draw.integers(0, records // 20 + 1, records),
        }
    ).write_parquet(folder / "census.parquet")
    return Made(facts={"records": records})


def persons(records: int, folder: Path) -> Made:
    """Persons by place, age and sex, each with a record key."""
    random = np.random.default_rng(SEED)
    pl.DataFrame(
        {
            "person": np.arange(records),
            "place": random.integers(0, max(records // 1_000, 5), records).astype(str),
            "age": random.integers(0, 100, records).astype(str),
            "sex": random.choice(["m", "f"], records),
            "rkey": np.round(random.random(records), 8),
        }
    ).write_parquet(folder / "persons.parquet")
    return Made(facts={"records": records})


def cells(count: int, folder: Path) -> Made:
    """Counts with their cell keys."""
    random = np.random.default_rng(0)
    return Made(facts={"size": count, "counts": random.geometric(0.1, count) - 1, "keys": random.random(count)})


for _word, _records in SIZES.items():
    instance(f"census_{_word}", "persons in households and municipalities", _records, partial(households, _records))
    instance(f"persons_{_word}", "persons with record keys", _records, partial(persons, _records))
    instance(f"keys_{_word}", "counts with cell keys", _records, partial(cells, _records))
