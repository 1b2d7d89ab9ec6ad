"""A job whose records Spark adds up: the same table, the same pattern and the same certificate as on one machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from firms_job import firms

from tablesafe.errors import InvalidFile, InvalidOption, InvalidTable
from tablesafe.pipeline import run
from tablesafe.tabulate import tabulate
from tablesafe.tabulate.spark import in_spark_words, spark_session

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("ibis", reason="ibis is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("there is no Java for Spark", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore")

Outputs = Callable[[Path], dict[str, bytes]]


@pytest.fixture(scope="module", autouse=True)
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Spark of two cores, as tablesafe starts it, for all tests of this file."""
    with spark_session("local[2]", tmp_path_factory.mktemp("private")) as session:
        session.conf.set("spark.sql.shuffle.partitions", "2")
        yield session


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


def test_hints_speak_the_words_of_the_job_file(write_job: Callable[..., Path]) -> None:
    job = write_job("spark", 'engine = "spark"')
    job.write_text(job.read_text().replace('missing = "drop"', 'missing = "error"'))
    with pytest.raises(InvalidTable, match=r'missing = "drop" in \[dimensions\.region\]'):
        run(job)
