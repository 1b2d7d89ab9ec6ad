"""A core installation has no library of Arrow: records in CSV and frames of polars go through without it."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl

from tablesafe.tabulate.sources import frame_of

BLOCKED = """
import importlib.machinery, sys
finder, found = importlib.machinery.PathFinder, importlib.machinery.PathFinder.find_spec
finder.find_spec = classmethod(
    lambda cls, name, path=None, target=None: None if name.split(".")[0] == "pyarrow" else found(name, path, target)
)
import polars as pl
import tablesafe as ts
from tablesafe.core.errors import MissingExtra
from tablesafe.cli.app import call

assert call(["init", "firms.csv", "-o", "job.toml"]) == 0
assert call(["run", "job.toml"]) == 0
records = pl.read_csv("firms.csv")
table = ts.tabulate(records, dimensions={"nace": None, "region": None}, value="turnover", respondent="firm")
problem = ts.Problem(table, rules=[ts.Threshold(n=3)])
release = ts.protect(problem, "suppress")
assert release.to_pandas().shape == release.frame().shape
records.write_parquet("firms.parquet")
try:
    ts.tabulate("firms.parquet", dimensions={"nace": None}, value="turnover")
except MissingExtra as error:
    print(error)
assert not any(name.split(".")[0] == "pyarrow" for name in sys.modules)
"""
"""Everything that a core installation promises, where pyarrow cannot be imported."""


def test_a_job_on_csv_needs_no_arrow_and_parquet_asks_for_it_by_name(tmp_path: Path) -> None:
    lines = [f"f{i},{'ABC'[i % 3]},{'NS'[i % 2]},{100 + i * i % 97}" for i in range(60)]
    (tmp_path / "firms.csv").write_text("firm,nace,region,turnover\n" + "\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", BLOCKED], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Reading Parquet files needs an optional dependency." in done.stdout
    assert "tablesafe[arrow]" in done.stdout
    assert "leaked" not in done.stderr
    assert (tmp_path / "public" / "release.csv").exists()


def test_what_comes_out_of_the_database_is_exact() -> None:
    with duckdb.connect() as database:
        found = frame_of(
            database,
            "SELECT * FROM (VALUES (1, 0.10::DECIMAL(20, 2), 'x', DATE '2020-02-03', 170141183460469231731::HUGEINT), "
            "(NULL, NULL, NULL, NULL, NULL)) t(whole, amount, code, day, huge) ORDER BY whole",
        )
    assert found.schema["day"] == pl.Date
    assert found.row(0) == (1, Decimal("0.10"), "x", found["day"][0], Decimal("170141183460469231731"))
    assert found.row(1) == (None,) * 5
