"""The same records give the same table through DuckDB's SQL, through Ibis on DuckDB, and through Ibis on Spark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tablesafe.core.errors import InvalidHierarchy, InvalidOption, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table
from tablesafe.tabulate import tabulate

ibis = pytest.importorskip("ibis", reason="ibis is not installed")

# Spark and pandas warn about each other; none of it is ours.
pytestmark = pytest.mark.filterwarnings("ignore")

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


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "records.parquet"
    records().write_parquet(path)
    return path


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One small Spark in this process for all tests of this file."""
    pyspark = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java for Spark")
    session = (
        pyspark.SparkSession.builder.master("local[1]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(params=["duckdb", "pyspark"])
def ibis_table(request: pytest.FixtureRequest, parquet: Path) -> Any:
    if request.param == "duckdb":
        return ibis.duckdb.connect().read_parquet(str(parquet))
    return ibis.pyspark.connect(request.getfixturevalue("spark")).read_parquet(str(parquet))


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


@pytest.mark.parametrize("plan", PLANS)
def test_engines_agree(plan: str, ibis_table: Any, parquet: Path) -> None:
    ours = tabulate(parquet, dimensions=DIMENSIONS, **PLANS[plan])
    assert_same(ours, tabulate(ibis_table, dimensions=DIMENSIONS, **PLANS[plan]))


@pytest.mark.parametrize("plan", NAMELESS)
def test_engines_agree_where_records_have_no_names(plan: str, ibis_table: Any, parquet: Path) -> None:
    """A database has no order, so records are numbered by cell there; all the rest is the same."""
    ours = tabulate(parquet, dimensions=DIMENSIONS, **NAMELESS[plan])
    theirs = tabulate(ibis_table, dimensions=DIMENSIONS, **NAMELESS[plan])
    assert_same(ours, theirs, names=False)
    kept = theirs.contributors
    assert kept is not None
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in kept.identity), "nobody stands twice in a cell"


def test_a_function_of_the_table_filters(ibis_table: Any, parquet: Path) -> None:
    options: dict[str, Any] = {"dimensions": DIMENSIONS, "value": "home", "respondent": "firm", "missing": "drop"}
    ours = tabulate(parquet, where="year = 2024 AND export > 3", **options)
    theirs = tabulate(ibis_table, where=lambda t: (t.year == 2024) & (t.export > 3), **options)
    assert_same(ours, theirs)


def test_codes_written_in_two_ways_are_one() -> None:
    """The engine groups by what is written; here both are the same leaf, and a respondent in both is one."""
    frame = pl.DataFrame(
        {"x": ["A", "A ", "A", " B"], "f": ["u", "u ", "v", "w"], "g": ["p", "p", None, "q"], "v": [1, 2, 4, 8]}
    )
    for holding in ("g", None):
        options: dict[str, Any] = {"dimensions": ["x"], "value": "v", "respondent": "f", "holding": holding}
        assert_same(tabulate(frame, **options), tabulate(frame, engine="ibis", **options))


def test_a_respondent_of_two_small_holdings_is_counted_once() -> None:
    """Neither holding is kept by name, and each lives in one cell: the respondent is one all the same."""
    frame = pl.DataFrame(
        {"x": ["A", "A", "A", "B", "B"], "f": ["u", "v", "w", "u", "z"], "g": ["p", "r", "r", "q", "s"],
         "v": [1, 50, 40, 2, 60]}
    )  # fmt: skip
    options: dict[str, Any] = {"dimensions": ["x"], "value": "v", "respondent": "f", "holding": "g", "largest": 1}
    ours, theirs = tabulate(frame, **options), tabulate(frame, engine="ibis", **options)
    assert_same(ours, theirs)
    assert sorted(np.asarray(theirs.count).tolist()) == [2, 3, 4]


@pytest.mark.parametrize("source", [records, lambda: records().to_pandas(), lambda: records().to_arrow()])
def test_frames_through_ibis(source: Callable[[], Any]) -> None:
    options: dict[str, Any] = {"dimensions": DIMENSIONS, "value": "home", "respondent": "firm", "missing": "drop"}
    assert_same(tabulate(records(), **options), tabulate(source(), engine="ibis", **options))


def test_files_through_ibis(parquet: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"dimensions": DIMENSIONS, "value": "home", "respondent": "firm", "missing": "drop"}
    assert_same(tabulate(parquet, **options), tabulate(parquet, engine="ibis", **options))
    (tmp_path / "r.csv").write_text("a,b\n")
    with pytest.raises(InvalidOption, match="reads Parquet files"):
        tabulate(tmp_path / "r.csv", engine="ibis", **options)


def test_only_what_the_table_needs_leaves_the_engine() -> None:
    """Of contributors that live in one leaf cell only the largest are sent; the others are one row per cell."""
    from tablesafe.tabulate.columns import Scale
    from tablesafe.tabulate.expression import leaf_expression
    from tablesafe.tabulate.plan import make_plan
    from tablesafe.tabulate.records_and_columns import Columns, Records

    frame = pl.DataFrame({"x": [str(i % 7) for i in range(5000)], "f": [str(i) for i in range(5000)], "v": range(5000)})
    frame = pl.concat([frame, pl.DataFrame({"x": ["0", "1"], "f": ["both", "both"], "v": [1, 1]})])
    plan = make_plan(Records(frame), Columns(value="v", respondent="f"), dimensions=["x"])
    units = dict.fromkeys(plan.measures, Scale(0, True, 0))
    sent = leaf_expression(ibis.memtable(frame), plan, units).to_pyarrow()
    assert sent.num_rows == 7 * (3 + 1) + 2
    assert sum(sent["m0"].to_pylist()) == frame["v"].sum()


BAD: dict[str, tuple[dict[str, list[Any]], dict[str, Any], str]] = {
    "no column": ({"x": ["a"], "w": [1]}, {}, "no column 'v'"),
    "text": ({"x": ["a"], "v": ["1"]}, {}, "holds string, not numbers.*cast"),
    "empty": ({"x": ["a", "a"], "v": [1.0, None]}, {}, "'v' is empty in 1 records"),
    "NaN": ({"x": ["a"], "v": [float("nan")]}, {}, "'v' is not a number below"),
    "infinite": ({"x": ["a"], "v": [float("inf")]}, {}, "'v' is not a number below"),
    "huge": ({"x": ["a"], "v": [1e300]}, {}, "'v' is not a number below"),
    "weight": ({"x": ["a"], "v": [1], "w": [-1]}, {"weight": "w"}, "'w' is a weight and negative"),
    "request": ({"x": ["a"], "v": [1], "q": [0.5]}, {"request": "q"}, "'q' is a request and no whole number"),
    "no code": ({"x": ["a", " "], "v": [1, 2]}, {}, "'x' is missing in 1 records"),
    "nobody": ({"x": ["a"], "v": [1], "f": [""]}, {"respondent": "f"}, "respondent is missing"),
    "nothing": ({"x": ["a"], "v": [1]}, {"where": {"x": "b"}}, "no records, or none that pass"),
    "equation": (
        {"x": ["a"], "v": [3], "a": [1], "b": [1]},
        {"value": ["v", "a", "b"], "equations": "v = a + b"},
        "does not hold in 1 records",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_messages(case: str) -> None:
    columns, options, message = BAD[case]
    with pytest.raises(InvalidTable, match=f"(?s){message}"):
        tabulate(pl.DataFrame(columns), engine="ibis", **{"dimensions": ["x"], "value": "v", **options})


def test_sql_is_no_filter_of_an_ibis_table(parquet: Path) -> None:
    with pytest.raises(InvalidOption, match="pass a function"):
        tabulate(ibis.duckdb.connect().read_parquet(str(parquet)), dimensions=["region"], where="year = 2024")


def test_unknown_codes() -> None:
    with pytest.raises(InvalidHierarchy, match="'z' of 'x' at the Ibis table"):
        tabulate(
            ibis.memtable({"x": ["z"], "v": [1]}), dimensions={"x": Hierarchy.flat(["a", "b"], name="h")}, value="v"
        )
