"""The same records give the same table through DuckDB's SQL and through Ibis; Ibis on Spark: `test_spark.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from engines import (
    DIMENSIONS,
    NAMELESS,
    PLANS,
    assert_a_function_filters,
    assert_nameless_records_agree,
    assert_same,
    assert_the_plan_agrees,
    records,
)

from tablesafe.core.errors import InvalidHierarchy, InvalidOption, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.tabulate import tabulate

ibis = pytest.importorskip("ibis", reason="ibis is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def ibis_table(parquet: Path) -> Any:
    return ibis.duckdb.connect().read_parquet(str(parquet))


@pytest.mark.parametrize("plan", PLANS)
def test_engines_agree(plan: str, ibis_table: Any, parquet: Path) -> None:
    assert_the_plan_agrees(plan, ibis_table, parquet)


@pytest.mark.parametrize("plan", NAMELESS)
def test_engines_agree_where_records_have_no_names(plan: str, ibis_table: Any, parquet: Path) -> None:
    assert_nameless_records_agree(plan, ibis_table, parquet)


def test_a_function_of_the_table_filters(ibis_table: Any, parquet: Path) -> None:
    assert_a_function_filters(ibis_table, parquet)


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
