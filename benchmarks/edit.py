"""Noise, swapping and imputation of records: CPU seconds, and how many times faster than a loop over the records.

python benchmarks/edit.py [records]        # default 1,000,000
"""

from __future__ import annotations

import random
import resource
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from time import process_time

import numpy as np
import polars as pl

from tablesafe.methods.impute.method import BlankAndImpute
from tablesafe.methods.noise.method import Noise
from tablesafe.methods.swap.method import Swap

LOOPED = 10_000
"""Records that the loops are timed on."""
RATE = 0.1


def census(records: int, seed: int = 1) -> pl.DataFrame:
    """Persons in households in municipalities of very different size, with an income and a firm."""
    draw = np.random.default_rng(seed)
    size = draw.choice(np.arange(1, 7), p=[0.35, 0.3, 0.15, 0.12, 0.06, 0.02], size=records)
    household = np.repeat(np.arange(records), size)[:records]
    areas = max(20, records // 2_000)
    share = np.minimum(draw.pareto(1.1, areas) + 0.05, 20)
    area = draw.choice(areas, p=share / share.sum(), size=int(household.max()) + 1)[household]
    often = 1 / np.arange(1, 13) ** 1.3
    return pl.DataFrame(
        {
            "household": household,
            "region": np.char.add("R", (area % 7).astype(str)),
            "municipality": np.char.add("M", area.astype(str)),
            "age": draw.choice(
                ["0-14", "15-24", "25-44", "45-64", "65+"], p=[0.17, 0.12, 0.27, 0.26, 0.18], size=records
            ),
            "sex": draw.choice(["f", "m"], size=records),
            "job": np.char.add("o", draw.choice(12, p=often / often.sum(), size=records).astype(str)),
            "income": np.rint(np.exp(draw.normal(10, 0.6, records))).astype(np.int64),
            "firm": draw.integers(0, records // 20 + 1, records),
        }
    )


METHODS: dict[str, Noise | Swap | BlankAndImpute] = {
    "noise": Noise(columns=("income",), respondent="firm"),
    "swap": Swap(
        geography=("region", "municipality"), match=("age", "sex"), key=("age", "sex", "job"), rate=RATE
    ),
    "swap households": Swap(
        geography=("region", "municipality"), match=("sex",), key=("age", "job"), rate=RATE, household="household"
    ),
    "impute, hot deck": BlankAndImpute(
        columns=("job",), geography=("region", "municipality"), classes=("age", "sex"), rate=RATE
    ),
    "impute, nearest": BlankAndImpute(
        columns=("job",), geography=("municipality",), classes=("age", "sex"), donor="nearest", near=("income",),
        rate=RATE,
    ),
    "impute, model": BlankAndImpute(
        columns=("job", "income"), amounts=("income",), geography=("municipality",), method="model",
        predictors=("age", "sex", "region"), rate=RATE,
    ),
}  # fmt: skip


def noise_by_loop(records: pl.DataFrame) -> None:
    """The same noise, record by record."""
    draw = random.Random(1)
    factor: dict[int, float] = {}
    out = []
    for row in records.iter_rows(named=True):
        if row["firm"] not in factor:
            factor[row["firm"]] = 1 + draw.choice([-1, 1]) * draw.uniform(0.05, 0.15)
        out.append(round(row["income"] * factor[row["firm"]]))


def swap_by_loop(records: pl.DataFrame) -> None:
    """Risky records first, then others, each with the first free partner of its class elsewhere."""
    draw = random.Random(1)
    rows = list(records.iter_rows(named=True))
    alike = Counter((row["municipality"], row["age"], row["sex"], row["job"]) for row in rows)
    left = {area: round(RATE * n) for area, n in Counter(row["municipality"] for row in rows).items()}
    classes = defaultdict(list)
    for i, row in enumerate(rows):
        classes[row["age"], row["sex"]].append(i)
    for members in classes.values():
        draw.shuffle(members)
    partner: dict[int, int] = {}

    def risk(i: int) -> tuple[int, float]:
        row = rows[i]
        return min(alike[row["municipality"], row["age"], row["sex"], row["job"]], 3), draw.random()

    for i in sorted(range(len(rows)), key=risk):
        area = rows[i]["municipality"]
        if i in partner or not left[area]:
            continue
        for j in classes[rows[i]["age"], rows[i]["sex"]]:
            other = rows[j]["municipality"]
            if j not in partner and other != area and left[other]:
                partner[i], partner[j] = j, i
                left[area] -= 1
                left[other] -= 1
                break


LOOPS: dict[str, Callable[[pl.DataFrame], None]] = {"noise": noise_by_loop, "swap": swap_by_loop}


def measured(edit: Callable[[pl.DataFrame], object], records: pl.DataFrame) -> float:
    """CPU seconds of one run."""
    begin = process_time()
    edit(records)
    return process_time() - begin


def main(records: int) -> None:
    """Print a line per method."""
    small, large = census(min(LOOPED, records)), census(records)
    for name, method in METHODS.items():
        quick = measured(method.edit, small)  # compiles, too
        quick, seconds = min(quick, measured(method.edit, small)), measured(method.edit, large)
        line = f"{name:18} {records:>10,} records {seconds:7.2f} s"
        if name in LOOPS:
            line += f"   {measured(LOOPS[name], small) / quick:6.1f} × as fast as a loop"
        print(line)
    print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
