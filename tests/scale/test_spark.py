"""A job whose records Spark adds up: the same table, the same pattern and the same certificate as on one machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from engines import (
    NAMELESS,
    PLANS,
    assert_a_function_filters,
    assert_nameless_records_agree,
    assert_the_plan_agrees,
)
from firms_job import firms

from tablesafe.core.errors import InvalidFile, InvalidOption, InvalidTable
from tablesafe.core.table import Table
from tablesafe.pipeline import run
from tablesafe.tabulate import tabulate
from tablesafe.tabulate.spark import in_spark_words, spark_session

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("ibis", reason="ibis is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("there is no Java for Spark", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore")

Outputs = Callable[[Path], dict[str, bytes]]


QUICK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Spark interprets its plans as they are: to write, compile and revise a program takes longer than a few records do."""


@pytest.fixture(scope="module", autouse=True)
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Spark of two cores, as tablesafe starts it, for all tests of this file; its Java compiles without haste."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
            patch.setenv(variable, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        with spark_session("local[2]", tmp_path_factory.mktemp("private")) as session:
            for name, value in QUICK.items():
                session.conf.set(name, value)
            yield session


@pytest.fixture
def ibis_table(spark: Any, parquet: Path) -> Iterator[Any]:
    """The records through Ibis on Spark, with what an office's own Spark has set: Spark's own defaults."""
    import ibis

    changed = ("spark.sql.caseSensitive", "spark.sql.session.timeZone")
    before = {name: spark.conf.get(name) for name in changed}
    for name in changed:
        spark.conf.unset(name)
    yield ibis.pyspark.connect(spark).read_parquet(str(parquet))
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_job_gives_the_same_files_as_here(write_job: Callable[..., Path], outputs: Outputs, ending: str) -> None:
    here = write_job("here", ending=ending)
    there = write_job("spark", 'engine = "spark"', ending=ending)
    assert run(here).safe
    assert run(there).safe
    assert outputs(there) == outputs(here)


def test_what_spark_puts_on_disk_is_encrypted_and_private(spark: Any) -> None:
    settings = dict(spark.sparkContext.getConf().getAll())
    assert settings["spark.io.encryption.enabled"] == "true"
    assert settings["spark.ui.enabled"] == "false"
    assert "private" in settings["spark.local.dir"]


def with_commas(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("turnover").cast(pl.String).str.replace(".", ",", literal=True))


def with_marks(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("region").fill_null("NA"), pl.format("{} ", "firm").alias("firm"))


def with_line_breaks(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.format('a\n"{}", b', "firm").alias("firm"))


WRITTEN = {"decimal commas": (";", with_commas), "marks": (",", with_marks), "line breaks": (",", with_line_breaks)}


@pytest.mark.parametrize("case", WRITTEN)
def test_text_is_read_as_everywhere_else(tmp_path: Path, case: str) -> None:
    delimiter, change = WRITTEN[case]
    path = tmp_path / "firms.csv"
    change(firms()).write_csv(path, separator=delimiter)
    options: dict[str, Any] = {
        "dimensions": ["nace", "region"], "value": "turnover", "respondent": "firm", "holding": "group",
        "empty": ["NA"], "missing": "drop", "where": "year = 2024 AND (nace LIKE 'A%' OR nace IN ('B1', 'C2'))",
    }  # fmt: skip
    here, there = tabulate(path, **options), tabulate(path, engine="spark", **options)
    assert here.cells().equals(there.cells())
    assert here.contributors is not None
    assert there.contributors is not None
    assert (here.contributors.amount == there.contributors.amount).all()
    assert list(here.contributors.names) == list(there.contributors.names)


def hard() -> pl.DataFrame:
    """Records in which everything is there that two engines might take in two ways."""
    rng = np.random.default_rng(8)
    n = 240
    firm = np.where(np.arange(n) % 3, 1000 + np.arange(n), rng.integers(0, 20, n))  # most are in one cell only
    return pl.DataFrame(
        {
            "code": rng.choice(["01", "02", "1", "10", " 2"], n),
            "size": [None if i % 31 == 0 else float(i % 4) for i in range(n)],
            "sector": rng.choice(["n1", "n2"], n),
            "firm": [f"f{i}" for i in firm],
            "group": [
                None if i % 4 == 0 else f"g{(i + j) % 9}" for i, j in zip(firm, rng.random(n) < 0.2, strict=True)
            ],
            "turnover": rng.choice([-30.5, -7.25, 2.675, 7.25, 7.25, 30.5, 1005.015], n),
            "export": rng.choice([0.1, 0.7, 16.3], n),
            "w": np.round(rng.uniform(1, 4, n), 1),
            "asked": rng.integers(0, 3, n),
            "note": rng.choice(["NA", " x", "y"], n),
        }
    )


def in_two_files(folder: Path, ending: str) -> list[Path]:
    """The records in two files, the second with its columns in another order."""
    frame = hard()
    paths = [folder / f"{i}.{ending}" for i in range(2)]
    for path, part in zip(paths, (frame[:100], frame[100:].select(reversed(frame.columns))), strict=True):
        if ending == "csv":
            part.with_columns(pl.col("group").fill_null("NA")).write_csv(path)
        else:
            part.with_columns(pl.col("export").cast(pl.Float32)).write_parquet(path)
    return paths


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_hard_records_give_the_same_table(tmp_path: Path, ending: str) -> None:
    """Ties between contributors, amounts below zero, halves, codes that look like numbers, blanks, weights."""
    paths = in_two_files(tmp_path, ending)
    options: dict[str, Any] = {
        "dimensions": ["code", "size", "sector"], "value": ["turnover", "export"], "respondent": "firm",
        "holding": "group", "weight": "w", "request": "asked", "columns": ["export"], "empty": ["NA"],
        "missing": {"size": "unknown", "code": "error", "sector": "error"}, "largest": 1,
        "where": "code <> '02' AND (turnover < 30 OR w >= 2.5) AND (note IS NOT NULL OR w < 3) AND "
                 "(note <> 'x' OR w < 2)",
    }  # fmt: skip
    here, there = (tabulate(list(map(str, paths)), engine=engine, **options) for engine in ("duckdb", "spark"))
    assert_same(here, there)


def assert_same(here: Table, there: Table) -> None:
    """Check that two tables are the same to the last bit, contributors and all."""
    assert here.decimals == there.decimals
    assert here.cells().equals(there.cells())
    assert here.count is not None
    assert here.holdings is not None
    assert (here.count == there.count).all()
    assert (here.holdings == there.holdings).all()
    assert set(here.columns) == set(there.columns)
    assert all((here.columns[name] == there.columns[name]).all() for name in here.columns)
    one, other = here.contributors, there.contributors
    assert one is not None
    assert other is not None
    assert (one.amount == other.amount).all()
    assert (one.weighted is None) == (other.weighted is None)
    assert one.weighted is None or (one.weighted == other.weighted).all()
    assert one.names is not None
    assert other.names is not None
    assert (np.append(one.names, "")[one.identity] == np.append(other.names, "")[other.identity]).all()


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "firms.csv"
    path.write_text("x,v\na,1\nb,many\n")
    with pytest.raises(InvalidTable, match=r"(?s)Column 'v' of firms\.csv should hold numbers.*Hint"):
        tabulate(path, dimensions=["x"], value="v", engine="spark")
    path.write_text("x,v\na,1\n,2\n")
    with pytest.raises(InvalidTable, match=r"records of firms\.csv"):
        tabulate(path, dimensions=["x"], value="v", engine="spark")
    path.write_text("x,v\na,1\nb,2,3,4\n")
    with pytest.raises(InvalidFile, match=r"firms\.csv cannot be read by Spark"):
        tabulate(path, dimensions=["x"], value="v", engine="spark")
    with pytest.raises(InvalidOption, match="reads files"):
        tabulate(pl.DataFrame({"x": ["a"], "v": [1]}), dimensions=["x"], value="v", engine="spark")


@pytest.mark.parametrize(
    "where",
    ["x IN (SELECT y FROM csv.`/etc/passwd`)", "reflect('java.lang.System', 'exit', 1)", "java_method('a', 'b')", "(("],
)
def test_a_filter_looks_nowhere_else(where: str) -> None:
    with pytest.raises(InvalidOption, match="cannot be used"):
        in_spark_words(where)


@pytest.mark.parametrize("where", ["v > 1 AND x IN (SELECT 'a')", "reflect('java.lang.Math', 'random') > 0"])
def test_a_filter_reaches_spark_only_in_its_own_words(tmp_path: Path, where: str) -> None:
    path = tmp_path / "firms.csv"
    path.write_text("x,v\na,1\nb,2\n")
    with pytest.raises(InvalidOption, match="cannot be used"):
        tabulate(path, dimensions=["x"], value="v", engine="spark", where=where)


def test_a_filter_means_the_same_on_spark(tmp_path: Path) -> None:
    """Quotes are for names, backslashes are letters: Spark itself would read both otherwise."""
    path = tmp_path / "firms.csv"
    path.write_text("x,v\na\\b,1\nab,2\nx,4\nc,8\n")
    for where in ("\"x\" = 'ab'", "x LIKE 'a%' AND v // 2 = 1", "x = 'a\\b'", "x != 'x' AND v::DOUBLE > 1"):
        here, there = (tabulate(path, dimensions=["x"], value="v", engine=e, where=where) for e in ("duckdb", "spark"))
        assert here.cells().equals(there.cells()), where


@pytest.mark.parametrize("where", ["CAST(x AS INTEGER) > 3", "v / (v - v) > 1 OR CAST(x AS DOUBLE) > 1"])
def test_a_value_that_spark_cannot_use_is_not_written_down(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], where: str
) -> None:
    """Neither in the message, nor in what Spark itself logs."""
    path = tmp_path / "firms.csv"
    path.write_text("x,v\nAcme-98765,1\nb,2\n")
    with pytest.raises(InvalidFile, match=r"firms\.csv cannot be read by Spark") as told:
        tabulate(path, dimensions=["x"], value="v", engine="spark", where=where)
    said = "".join(capfd.readouterr())
    assert "Acme" not in said + str(told.value)


def test_hints_speak_the_words_of_the_job_file(write_job: Callable[..., Path]) -> None:
    job = write_job("spark", 'engine = "spark"')
    job.write_text(job.read_text().replace('missing = "drop"', 'missing = "error"'))
    with pytest.raises(InvalidTable, match=r'missing = "drop" in \[dimensions\.region\]'):
        run(job)


@pytest.mark.parametrize("plan", PLANS)
def test_ibis_on_spark_agrees(plan: str, ibis_table: Any, parquet: Path) -> None:
    assert_the_plan_agrees(plan, ibis_table, parquet)


@pytest.mark.parametrize("plan", NAMELESS)
def test_ibis_on_spark_agrees_where_records_have_no_names(plan: str, ibis_table: Any, parquet: Path) -> None:
    assert_nameless_records_agree(plan, ibis_table, parquet)


def test_a_function_of_the_table_filters_on_spark(ibis_table: Any, parquet: Path) -> None:
    assert_a_function_filters(ibis_table, parquet)
