"""Frames of pandas, polars, Arrow and DuckDB go in alike; what comes out goes into all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tablesafe as ts
from tablesafe.core.sensitivity import Sensitivity


def _pandas(frame: pl.DataFrame, kind: str) -> Any:
    """The frame in one of the many shapes that pandas has."""
    plain = frame.to_pandas()
    text = [name for name, kind_of in frame.schema.items() if kind_of == pl.String]
    match kind:
        case "categorical":
            return plain.astype(dict.fromkeys(text, "category"))
        case "object":
            return plain.astype(dict.fromkeys(text, object))
        case "nullable":
            return plain.convert_dtypes()
        case "arrow types":
            return frame.to_pandas(use_pyarrow_extension_array=True)
        case "text index":
            return plain.set_axis([f"row {i}" for i in range(len(plain))])
        case "named index":
            return plain.set_index(text[0])
        case "two indices":
            return plain.set_index(list(plain.columns[:2]))
        case "filtered":
            return pd.concat([plain, plain]).iloc[len(plain) :]
        case _:
            return plain


def _dictionary(frame: pl.DataFrame) -> pa.Table:
    """Text as Arrow's dictionaries."""
    table = frame.to_arrow()
    is_text = [pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in table.schema.types]
    columns = [
        column.dictionary_encode() if text else column for column, text in zip(table.columns, is_text, strict=True)
    ]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


class Capsule:
    """Something that only speaks Arrow's PyCapsule interface."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


KINDS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "polars lazy": lambda frame: frame.lazy(),
    "polars categorical": lambda frame: frame.with_columns(pl.col(pl.String).cast(pl.Categorical)),
    "arrow": lambda frame: frame.to_arrow(),
    "arrow dictionary": _dictionary,
    "arrow batch": lambda frame: frame.to_arrow().combine_chunks().to_batches()[0],
    "arrow reader": lambda frame: frame.to_arrow().to_reader(),
    "duckdb": lambda frame: duckdb.sql("SELECT * FROM frame"),
    "capsule": Capsule,
    **{
        f"pandas {kind}": lambda frame, kind=kind: _pandas(frame, kind)  # type: ignore[misc]
        for kind in (
            "plain", "categorical", "object", "nullable", "arrow types", "text index", "named index", "two indices",
            "filtered",
        )
    },
}  # fmt: skip
RECORDS = pl.DataFrame(
    {
        "region": ["N", "N", "S", "S", "S"],
        "sex": ["m", "f", "m", "f", "m"],
        "firm": list("abcda"),
        "v": [10, 20, 30, 4, 5],
    }
)
CELLS = pl.DataFrame({"region": ["T", "N", "S"], "v": [30.5, 10.25, 20.25], "n": [3, 1, 2], "c": [1.5, 2.5, 3.5]})
TREE = ts.Hierarchy.flat(["N", "S"], total="T")


@pytest.mark.parametrize("kind", KINDS)
def test_every_frame_goes_in(kind: str) -> None:
    made = KINDS[kind]
    options: dict[str, Any] = {"dimensions": {"region": None, "sex": None}, "value": "v", "respondent": "firm"}
    tabulated, usual = ts.tabulate(made(RECORDS), **options), ts.tabulate(RECORDS, **options)
    assert tabulated.cells().equals(usual.cells())
    table = ts.Table.from_cells(made(CELLS), dimensions={"region": TREE}, value="v", count="n", columns=["c"])
    assert table.value.tolist() == [30.5, 10.25, 20.25]
    assert table.columns["c"].tolist() == [1.5, 2.5, 3.5]
    pairs = pl.DataFrame({"parent": ["T", "T", "N"], "child": ["N", "S", "x"], "more": [1, 2, 3]})
    assert ts.Hierarchy.from_pairs(made(pairs)) == ts.Hierarchy.from_pairs([("T", "N"), ("T", "S"), ("N", "x")])
    levels = pl.DataFrame({"big": ["A", "A", "B"], "small": ["N", "S", "E"]})
    assert ts.Hierarchy.from_levels(made(levels)) == ts.Hierarchy.from_levels(levels)
    problem = ts.Problem(table)
    pattern = pl.DataFrame({"region": ["T", "N", "S"], "suppressed": [0, 1, 1]})
    assert ts.read_pattern(made(pattern), problem).tolist() == [False, True, True]
    known = pl.DataFrame({"region": ["N"], "cost": [7.0]})
    assert ts.apply_cells(problem, made(known)).cost.tolist() == [30.5, 7.0, 20.25]


@pytest.mark.parametrize(
    "made",
    [pl.Series, pd.Series, lambda x: pd.Series(x).convert_dtypes(), pa.array, np.ndarray.tolist],
    ids=["polars", "pandas", "nullable", "arrow", "list"],
)
def test_columns_of_every_library_are_costs_and_masks(made: Callable[[Any], Any]) -> None:
    table = ts.Table.from_cells(CELLS, dimensions={"region": TREE}, value="v")
    cost, mask = np.array([3.0, 1.0, 2.0]), np.array([False, True, True])
    problem = ts.Problem(
        table, cost=made(cost), suppressed=made(mask), sensitivity=Sensitivity.of(made(mask), made(cost))
    )
    assert problem.cost.tolist() == cost.tolist()
    assert problem.suppressed.tolist() == mask.tolist()
    assert ts.Release.from_suppression(problem, made(mask)).suppressed.tolist() == mask.tolist()


def test_a_grouped_pandas_frame_goes_in_as_it_is() -> None:
    grouped = RECORDS.to_pandas().groupby(["region", "sex"])["v"].sum()
    table = ts.Table.from_cells(grouped, dimensions=["region", "sex"], value="v", missing_totals="compute")
    assert table.value[table.index()] == 69
    assert ts.tabulate(grouped, dimensions={"region": None, "sex": None}, value="v").value.sum() == table.value.sum()


def test_what_comes_out_goes_into_every_library() -> None:
    table = ts.Table.from_cells(CELLS, dimensions={"region": TREE}, value="v", count="n")
    problem = ts.Problem(table, sensitivity=Sensitivity.of(np.array([False, True, True]), 1.0))
    release = ts.Release.from_suppression(problem, problem.sensitivity.mask)
    findings = ts.audit(problem, release)
    for thing, frame in ((table, table.cells()), (release, release.frame()), (findings, findings.frame())):
        assert pl.DataFrame(thing).equals(frame)
        assert pa.table(thing).equals(frame.to_arrow().cast(pa.table(thing).schema))
        assert len(pd.DataFrame.from_arrow(thing)) == frame.height
        assert duckdb.sql("SELECT count(*) FROM thing").fetchall() == [(frame.height,)]
        assert list(frame.to_pandas().columns) == frame.columns
    assert "10.25" not in str(pa.table(release))


NATIVE: dict[str, tuple[Callable[[pl.DataFrame], Any], type]] = {
    "polars": (lambda frame: frame, pl.DataFrame),
    "pandas": (lambda frame: frame.to_pandas(), pd.DataFrame),
    "pyarrow": (lambda frame: frame.to_arrow(), pa.Table),
}


@pytest.mark.parametrize("library", NATIVE)
def test_frames_come_back_in_the_library_they_came_in(library: str) -> None:
    made, kind = NATIVE[library]
    tables = [
        ts.Table.from_cells(made(CELLS), dimensions={"region": TREE}, value="v"),
        ts.tabulate(made(RECORDS), dimensions={"region": None, "sex": None}, value="v"),
    ]
    for table in [*tables, ts.link([tables[1]])]:
        mask = np.arange(len(table)) > 0
        problem = ts.Problem(table, sensitivity=Sensitivity.of(mask, 1.0))
        release = ts.Release.from_suppression(problem, mask)
        for thing, frame in ((table, table.cells()), (release, release.frame()), (ts.audit(problem, release), None)):
            assert isinstance(thing.to_native(), kind)
            assert isinstance(thing.to_pandas(), pd.DataFrame)
            if frame is not None:
                back = pl.DataFrame(thing.to_native()).with_columns(pl.col(pl.Enum, pl.Categorical).cast(pl.String))
                assert back.equals(frame)


def test_codes_are_ordered_as_in_the_hierarchy() -> None:
    """Not as in the alphabet, in which total and parts get mixed up."""
    tree = ts.Hierarchy.from_pairs([("Total", "South"), ("Total", "Alps"), ("Alps", "Zermatt"), ("Alps", "Bern")])
    records = pd.DataFrame({"place": ["Bern", "Zermatt", "South"], "v": [1, 2, 3]})
    table = ts.tabulate(records, dimensions={"place": tree}, value="v")
    release = ts.Release.from_suppression(ts.Problem(table), np.zeros(len(table), np.bool_))
    for frame in (release.to_pandas(), table.to_native()):
        assert list(frame["place"].cat.categories) == list(tree.codes)
        assert list(frame.sort_values("place", ascending=False)["place"]) == list(tree.codes)[::-1]
    again = ts.Table.from_cells(table.to_native(), dimensions={"place": tree}, value="v")
    assert again.value.tolist() == table.value.tolist()


def test_a_crosstab_of_pandas_goes_in_as_it_is() -> None:
    records = RECORDS.to_pandas()
    wide = pd.crosstab(records["region"], records["sex"], values=records["v"], aggfunc="sum", margins=True)
    table = ts.Table.from_frame(wide)
    usual = ts.tabulate(records, dimensions={"region": None, "sex": None}, value="v")
    assert list(table.dimensions) == ["region", "sex"]
    for region, sex in (("N", "m"), ("S", "f"), ("All", "m"), ("N", "All"), ("All", "All")):
        there = {"region": region.replace("All", "Total"), "sex": sex.replace("All", "Total")}
        assert table.value[table.index(region=region, sex=sex)] == usual.value[usual.index(**there)]
    assert isinstance(table.to_native(), pd.DataFrame)
    deep = records.assign(year=[1, 2, 1, 2, 1]).pivot_table(
        index="region", columns=["year", "sex"], values="v", aggfunc="sum"
    )
    cube = ts.Table.from_frame(deep, missing_totals="compute", value="turnover")
    assert list(cube.dimensions) == ["region", "year", "sex"]
    assert cube.value[cube.index()] == 69


def test_a_wide_frame_of_any_library_goes_in() -> None:
    wide = pl.DataFrame({"region": ["T", "N", "S"], "m": [45, 10, 35], "f": [24, 20, 4], "Total": [69, 30, 39]})
    for frame in (wide, wide.lazy(), wide.to_arrow(), wide.to_pandas(), wide.to_pandas().set_index("region")):
        table = ts.Table.from_frame(frame, rows="region", columns="sex", dimensions={"region": TREE})
        assert table.value[table.index(region="S", sex="f")] == 4
        assert table.dimensions["region"] == TREE
    with pytest.raises(ts.TablesafeError, match="'place'"):
        ts.Table.from_frame(wide, rows="place", columns="sex")
    with pytest.raises(ts.TablesafeError, match="across its top"):
        ts.Table.from_frame(wide, rows="region")
    with pytest.raises(ts.TablesafeError, match="no name"):
        ts.Table.from_frame(wide.to_pandas())
    with pytest.raises(ts.TablesafeError, match="no dimension 'age'"):
        ts.Table.from_frame(wide, rows="region", columns="sex", dimensions={"age": None})
    with pytest.raises(ts.TablesafeError, match="named twice"):
        ts.Table.from_frame(wide, rows="region", columns="region")


def test_pairs_that_are_no_pairs_are_refused() -> None:
    with pytest.raises(ts.TablesafeError, match="one column only"):
        ts.Hierarchy.from_pairs(pl.DataFrame({"a": ["x"]}))
    with pytest.raises(ts.TablesafeError, match="missing at row 2"):
        ts.Hierarchy.from_pairs(pl.DataFrame({"a": ["x", "x"], "b": ["y", None]}))
