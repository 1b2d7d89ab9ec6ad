"""A look at the columns of a file: the same for every format, and never the whole file in memory."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tablesafe.core.errors import InvalidFile, TablesafeError
from tablesafe.web.desk import EXAMPLES, LONGEST, survey

FRAME = pl.DataFrame(
    {
        "region": ["north", "south", "north", None, "north"],
        "firm": ["a", "b", "c", "d", "x" * 500],
        "turnover": [1, 2, 3, 4, 5],
        "share": [0.5, 1.5, 2.0, None, 0.25],
    }
)
EXPECTED = {
    "region": ("text", 2, 1, ["north", "south"]),
    "firm": ("text", 5, 0, ["a", "b", "c", "d", "x" * LONGEST]),
    "turnover": ("whole numbers", 5, 0, ["1", "2", "3", "4", "5"]),
    "share": ("numbers", 4, 1, None),
}


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx"])
def test_columns_look_the_same_in_every_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"firms{suffix}"
    {".csv": FRAME.write_csv, ".parquet": FRAME.write_parquet, ".xlsx": FRAME.write_excel}[suffix](path)  # type: ignore[operator]
    found = {column["name"]: column for column in survey(path)}
    assert list(found) == list(EXPECTED)
    for name, (kind, distinct, empty, examples) in EXPECTED.items():
        column = found[name]
        assert (column["kind"], column["rows"], column["distinct"], column["empty"]) == (kind, 5, distinct, empty)
        assert examples is None or column["examples"] == examples


def test_decimal_commas_and_odd_names(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text('a\'b;"c""d";e; §0\n1,5;x;;1\n2,5;y;;2\n', encoding="utf-8")
    found = survey(path)
    assert [column["name"] for column in found] == ["a'b", 'c"d', "e", "§0"]
    assert [column["kind"] for column in found] == ["numbers", "text", "text", "whole numbers"]
    assert found[2]["empty"] == 2


def test_only_a_few_examples_the_most_frequent_first(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_text("x,y\n" + "".join(f"c{i % 50},1\n" for i in range(500)) + "often,1\n" * 20)
    [column, _] = survey(path)
    assert len(column["examples"]) == EXAMPLES
    assert column["examples"][0] == "often"
    assert column["distinct"] == 51


@pytest.mark.parametrize(("name", "data"), [("a.csv", b""), ("a.parquet", b"not"), ("a.xlsx", b"PK"), ("a.jj", b"x")])
def test_a_file_that_is_none_is_an_error_in_the_users_words(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(TablesafeError) as told:
        survey(tmp_path / name)
    assert isinstance(told.value, InvalidFile)
    assert name in str(told.value)
