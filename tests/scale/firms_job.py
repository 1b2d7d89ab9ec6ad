"""The records and the job that are the same in every place."""

from __future__ import annotations

import numpy as np
import polars as pl

JOB = """
title = "Turnover"

[source]
file = "{file}"
respondent = "firm"
holding = "group"
where = "year = 2024 AND turnover > 0"

[dimensions.nace]
kind = "prefixes"
lengths = [1, 2]

[dimensions.region]
missing = "drop"

[response]
value = "turnover"

[[rules]]
rule = "p_percent"
p = 10

[[rules]]
rule = "threshold"
n = 3

[method]
name = "suppress"
algorithm = "modular"
time_limit_s = 1

[attack]
attacks = []

[output]
release = ["public/table.csv"]

[run]
{run}
"""


def firms() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    n = 700
    firm = rng.integers(0, 260, n)
    region = [None if i % 97 == 0 else f"R{j}" for i, j in enumerate(rng.integers(0, 9, n))]
    return pl.DataFrame(
        {
            "nace": rng.choice([f"{a}{b}" for a in "ABC" for b in range(1, 5)], n),
            "region": region,
            "firm": [f"f{i:03d}" for i in firm],
            "group": [f"g{i % 40}" if i % 3 else None for i in firm],
            "turnover": rng.lognormal(5, 1.4, n).round(2),
            "year": rng.choice([2023, 2024], n),
        }
    )
