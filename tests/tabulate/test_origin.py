"""A table made from records knows how, so that it can be made again from changed ones."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.core.errors import InvalidOption

FRAME = pl.DataFrame(
    {
        "region": ["a", "b", "a", "c", "b"],
        "firm": ["x", "y", "x", "z", "w"],
        "sales": [1, 2, 3, 4, 5],
        "year": [1, 1, 1, 1, 2],
    }
)


def test_records_are_those_that_count_with_every_column_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "firms.csv"
    FRAME.write_csv(path)
    for source in (FRAME, FRAME.to_pandas(), FRAME.lazy(), path):
        table = ts.tabulate(source, dimensions=["region"], value="sales", where="year = 1")
        assert table.origin is not None
        records = table.origin.records()
        assert records.columns == FRAME.columns
        assert records["firm"].to_list() == ["x", "y", "x", "z"]
        assert records["sales"].cast(pl.Int64).to_list() == [1, 2, 3, 4]


def test_the_same_records_make_the_same_table_again() -> None:
    table = ts.tabulate(FRAME, dimensions=["region"], value="sales", respondent="firm", where="year = 1")
    assert table.origin is not None
    again = table.origin.table(table.origin.records())
    assert again.value.tolist() == table.value.tolist()
    assert again.count is not None
    assert table.count is not None
    assert again.count.tolist() == table.count.tolist()


def test_other_options_make_another_table() -> None:
    table = ts.tabulate(FRAME, dimensions=["region"], value="sales")
    assert table.origin is not None
    counted = table.origin.table(value=None)
    assert counted.value.max() == 5
    with pytest.raises(InvalidOption, match="no option 'valeu'"):
        table.origin.table(valeu=None)


def test_records_do_not_travel_with_a_table() -> None:
    table = ts.tabulate(FRAME, dimensions=["region"], value="sales")
    assert b"sales" in pickle.dumps(table)
    assert pickle.loads(pickle.dumps(table)).origin is None
    assert np.array_equal(pickle.loads(pickle.dumps(table)).integers, table.integers)


def test_an_ibis_table_gives_its_records() -> None:
    ibis = pytest.importorskip("ibis")
    table = ts.tabulate(ibis.memtable(FRAME), dimensions=["region"], value="sales", where={"region": ["a", "b"]})
    assert table.origin is not None
    assert sorted(table.origin.records()["sales"].to_list()) == [1, 2, 3, 5]


def test_a_table_of_cells_has_no_origin() -> None:
    cells = pl.DataFrame({"region": ["a", "b", "Total"], "value": [1, 2, 3]})
    assert ts.Table.from_cells(cells, dimensions=["region"]).origin is None
