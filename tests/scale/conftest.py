"""One small job, to be run in every place where jobs run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tablesafe.solve import executor

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

Write = Callable[..., Path]


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


@pytest.fixture
def write_job(tmp_path: Path) -> Write:
    """Write the job into a folder of its own, with other keys in [run]; from CSV or from Parquet."""

    def write(name: str, run: str = "", ending: str = "csv") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        data = folder / f"firms.{ending}"
        if ending == "csv":
            firms().write_csv(data)
        else:
            firms().write_parquet(data)
        (folder / "job.toml").write_text(JOB.format(file=data.name, run=run), encoding="utf-8")
        return folder / "job.toml"

    return write


@pytest.fixture
def everything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let also the work on a small table leave this process."""
    monkeypatch.setattr(executor, "SENT_S", 0.0)


OUTPUTS = ("public/table.csv", "internal/cells.csv", "internal/certificate.json.gz", "internal/findings.json")


@pytest.fixture(scope="session")
def outputs() -> Callable[[Path], dict[str, bytes]]:
    """What a run has written that must be the same everywhere, byte for byte."""
    return lambda job: {name: (job.parent / name).read_bytes() for name in OUTPUTS}
