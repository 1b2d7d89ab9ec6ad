"""The same records in every kind of file and frame give the same table."""

from __future__ import annotations

import gzip
import random
import stat
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from tablesafe.core.errors import InvalidFile, InvalidOption, TablesafeError
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table
from tablesafe.tabulate import tabulate

REGIONS = Hierarchy.from_pairs([("Total", "Öst"), ("Total", "Väst"), ("Öst", "01"), ("Öst", "02"), ("Väst", "03")])
ROWS: list[dict[str, Any]] = [
    {
        "region": random.Random(i).choice(["01", "02", "03"]),
        "size": random.Random(-i).choice(["1", "2", "10"]),
        "firm": f"Bäcker {i % 17}",
        "group": [None, "Žižka – Söhne", "B;C"][i % 3],
        "turnover": round(random.Random(i).uniform(-5, 900), 2),
        "weight": round(random.Random(i).uniform(1, 3), 1),
    }
    for i in range(120)
]
WINDOWS_ROWS = [{**row, "group": (row["group"] or "").replace("Žižka", "Žiška") or None} for row in ROWS]
FRAME = pl.DataFrame(ROWS)


def csv_text(rows: list[dict[str, Any]], delimiter: str = ",", comma: bool = False, newline: str = "\n") -> str:
    def entry(value: Any) -> str:
        if value is None:
            return ""
        text = str(value).replace(".", ",") if comma and isinstance(value, float) else str(value)
        return f'"{text}"' if delimiter in text else text

    lines = [delimiter.join(rows[0])] + [delimiter.join(map(entry, row.values())) for row in rows]
    return newline.join(lines) + newline


def table_of(source: Any, **options: Any) -> Table:
    given: dict[str, Any] = {
        "dimensions": {"region": REGIONS, "size": None},
        "value": "turnover",
        "respondent": "firm",
        "holding": "group",
        "weight": "weight",
    }
    return tabulate(source, **{**given, **options})


def assert_same(one: Table, other: Table, *, names: bool = True) -> None:
    assert list(one.dimensions) == list(other.dimensions)
    assert [h.codes for h in one.dimensions.values()] == [h.codes for h in other.dimensions.values()]
    assert np.array_equal(one.codes, other.codes)
    assert (one.decimals, one.exact) == (other.decimals, other.exact)
    assert np.array_equal(one.integers, other.integers)
    for mine, theirs in ((one.count, other.count), (one.holdings, other.holdings)):
        assert (mine is None) == (theirs is None)
        assert mine is None or theirs is None or np.array_equal(mine, theirs)
    assert set(one.columns) == set(other.columns)
    for name in one.columns:
        assert np.array_equal(one.columns[name], other.columns[name])
    assert one.contributors is not None
    assert other.contributors is not None
    assert np.array_equal(one.contributors.amount, other.contributors.amount)
    if names:
        assert np.array_equal(one.contributors.identity, other.contributors.identity)
        assert np.array_equal(np.asarray(one.contributors.names), np.asarray(other.contributors.names))


FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "plain": ("r.csv", lambda: csv_text(ROWS).encode()),
    "byte-order mark": ("r.csv", lambda: csv_text(ROWS).encode("utf-8-sig")),
    "semicolons and decimal commas": ("r.csv", lambda: csv_text(ROWS, ";", comma=True).encode()),
    "decimal commas in quotes": ("r.csv", lambda: csv_text(ROWS, ",", comma=True).encode()),
    "tabs": ("r.tsv", lambda: csv_text(ROWS, "\t").encode()),
    "Windows line ends": ("r.csv", lambda: csv_text(ROWS, newline="\r\n").encode()),
    "empty lines": ("r.csv", lambda: csv_text(ROWS).replace("\n", "\n\n").encode()),
    "UTF-16": ("r.txt", lambda: csv_text(ROWS, ";").encode("utf-16")),
    "gzip": ("r.csv.gz", lambda: gzip.compress(csv_text(ROWS).encode())),
}


@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_text_file(kind: str, tmp_path: Path) -> None:
    name, content = FILES[kind]
    (tmp_path / name).write_bytes(content())
    assert_same(table_of(tmp_path / name), table_of(FRAME))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_windows_1252(suffix: str, tmp_path: Path) -> None:
    path, content = tmp_path / f"r{suffix}", csv_text(WINDOWS_ROWS, ";").encode("cp1252")
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    assert_same(table_of(path), table_of(pl.DataFrame(WINDOWS_ROWS)))


def test_a_byte_beyond_the_first_chunk_decides_the_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("tablesafe.tabulate.csvfile"), "CHUNK", 7)
    for encoding in ("utf-8", "cp1252"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes("region,v\nAAAAAAAAAAAAAAA,1\nÖÄÜ,2\n".encode(encoding))
        table = tabulate(path, dimensions=["region"], value="v")
        assert table.dimensions["region"].leaves == ("AAAAAAAAAAAAAAA", "ÖÄÜ")


def test_parquet(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "r.parquet")
    assert_same(table_of(tmp_path / "r.parquet"), table_of(FRAME))
    assert_same(table_of(str(tmp_path / "r.parquet")), table_of(FRAME))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_many_files(kind: str, tmp_path: Path) -> None:
    """A pattern, a list and a folder; the files may have their columns in different orders."""
    for i in range(4):
        part = FRAME[i * 30 : (i + 1) * 30]
        part = part.select(reversed(part.columns)) if i % 2 else part
        part.write_csv(tmp_path / f"p{i}.csv") if kind == "csv" else part.write_parquet(tmp_path / f"p{i}.parquet")
    whole = table_of(FRAME)
    assert_same(table_of(tmp_path), whole)
    assert_same(table_of(str(tmp_path / "p*")), whole)
    assert_same(table_of(sorted(tmp_path.iterdir())), whole)


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas with an index": lambda: pd.DataFrame(ROWS, index=range(50, 170)),
    "pandas of mixed objects": lambda: pd.DataFrame(ROWS).assign(
        size=[int(r["size"]) if i % 2 else r["size"] for i, r in enumerate(ROWS)]
    ),
    "pandas with categories": lambda: pd.DataFrame(ROWS).astype({"region": "category", "group": "category"}),
    "pandas with floats as codes": lambda: pd.DataFrame(ROWS).assign(size=[float(r["size"]) for r in ROWS]),
    "polars": lambda: FRAME,
    "polars, lazy": lambda: FRAME.lazy(),
    "polars with categories": lambda: FRAME.cast({"region": pl.Categorical, "group": pl.Categorical}),
    "polars with whole codes": lambda: FRAME.cast({"size": pl.Int8}),
    "polars with decimals": lambda: FRAME.cast({"turnover": pl.Decimal(10, 2), "weight": pl.Decimal(5, 1)}),
    "polars with short floats": lambda: FRAME.cast({"turnover": pl.Float32, "weight": pl.Float32}),
    "polars with more columns": lambda: FRAME.with_columns(
        Turnover=pl.lit("x"), rows=pl.lit([1, 2]), records=pl.lit(1), large=pl.lit(1).cast(pl.Int128)
    ),
    "arrow": lambda: FRAME.to_arrow(),
    "arrow dataset": lambda: pads.dataset(FRAME.to_arrow()),
    "arrow batches": lambda: pa.RecordBatchReader.from_batches(FRAME.to_arrow().schema, FRAME.to_arrow().to_batches()),
    "dict": lambda: FRAME.to_dict(as_series=False),
    "list of rows": lambda: ROWS,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame(kind: str) -> None:
    assert_same(table_of(FRAMES[kind]()), table_of(FRAME))


def test_names_that_only_sql_would_stumble_over() -> None:
    rows = {'a "b"': ["x", "y"], "select": ["p", "q"], "count(*)": [1, 2], "Ä b": ["f", "g"], "row": ["h", None]}
    table = tabulate(
        pl.DataFrame(rows), dimensions=['a "b"', "select"], value="count(*)", respondent="Ä b", holding="row",
        where="\"Ä b\" <> '' AND \"a \"\"b\"\"\" IN ('x', 'y')",
    )  # fmt: skip
    assert table.value[table.index()] == 3


def test_columns_that_differ_in_case_only() -> None:
    table = tabulate(
        pl.DataFrame({"a": ["x", "y"], "A": [1, 2], "v": [5, 6], "V": [70, 80]}), dimensions=["a"], value="V"
    )
    assert table.value.tolist() == [150, 70, 80]


def test_larger_than_memory(tmp_path: Path) -> None:
    """A memory limit far below the data: DuckDB goes to disk, the table is the same, the folder is gone."""
    n = 400_000
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "a": rng.integers(0, 30, n).astype(str),
            "firm": pl.Series(rng.integers(0, n, n)).cast(pl.String) + " a name of some length",
            "group": pl.Series(rng.integers(0, n // 3, n)).cast(pl.String) + " another name of some length",
            "v": rng.integers(0, 10**6, n) / 100,
        }
    )
    frame.write_parquet(tmp_path / "big.parquet")
    options: dict[str, Any] = {"dimensions": ["a"], "value": "v", "respondent": "firm", "holding": "group"}
    private = tmp_path / "private"
    private.mkdir()
    small = tabulate(tmp_path / "big.parquet", memory_limit="60MB", threads=1, temporary=private, **options)
    assert_same(small, tabulate(frame, **options))
    assert list(private.iterdir()) == []


def test_the_folder_is_private_and_gone_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def stop(*_: Any, **__: Any) -> None:
        seen.extend(stat.S_IMODE(folder.stat().st_mode) for folder in tmp_path.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("tablesafe.tabulate.run"), "survey", stop)
    with pytest.raises(KeyboardInterrupt):
        table_of(FRAME, temporary=tmp_path)
    assert seen == [0o700]
    assert list(tmp_path.iterdir()) == []


def test_a_filter_cannot_read_other_files(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    for source in (FRAME, _written(tmp_path / "r.csv"), _written(tmp_path / "r.parquet")):
        with pytest.raises(InvalidOption, match="cannot be used"):
            table_of(source, where=f"size IN (SELECT a FROM read_csv('{tmp_path}/secret.csv'))")


def _written(path: Path) -> Path:
    FRAME.write_parquet(path) if path.suffix == ".parquet" else FRAME.write_csv(path)
    return path


BROKEN: dict[str, tuple[str, bytes, str]] = {
    "empty": ("r.csv", b"", "r.csv is empty"),
    "blank": ("r.csv", b" \n\n", "r.csv is empty"),
    "header only": ("r.csv", b"region,v\n", "header line but no rows"),
    "not text": ("r.csv", b"PK\x03\x04\x00\x00\x08", "not a text file"),
    "not Parquet": ("r.parquet", b"region,v\nN,1\n", "not a Parquet file"),
    "half a gzip": ("r.csv.gz", gzip.compress(b"region,v\nN,1\n")[:-8], "cannot be read"),
    "no gzip": ("r.csv.gz", b"region,v\nN,1\n", "cannot be read"),
    "a line too long": ("r.csv", b"region,v\nN,1\nS,2,3\n", r"r\.csv, line 3, cannot be read"),
    "a line too short": ("r.csv", b"region,v\nN,1\nS\n", r"r\.csv, line 3, cannot be read"),
    "an open quote": ("r.csv", b'region,v\nN,1\n"S,2\n', r"r\.csv, line 3, cannot be read"),
    "two columns of one name": ("r.csv", b"region,v,v\nN,1,2\n", "two columns named 'v'"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files(kind: str, tmp_path: Path) -> None:
    name, content, message = BROKEN[kind]
    (tmp_path / name).write_bytes(content)
    for where in (None, "v > 0"):
        with pytest.raises(InvalidFile, match=message):
            tabulate(tmp_path / name, dimensions=["region"], value="v", where=where)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for source in (tmp_path / "no.csv", tmp_path / "no.parquet", str(tmp_path / "no*.csv"), tmp_path):
        with pytest.raises(InvalidFile):
            tabulate(source, dimensions=["region"], value="v")


def test_what_is_no_table() -> None:
    for source in (5, object(), [1, 2], None):
        with pytest.raises(TablesafeError):
            tabulate(source, dimensions=["region"], value="v")


def test_unreadable_file(tmp_path: Path) -> None:
    path = _written(tmp_path / "r.csv")
    path.chmod(0)
    try:
        path.open("rb").close()
    except PermissionError:
        with pytest.raises(InvalidFile):
            table_of(path)
    else:
        pytest.skip("this user may read every file")
