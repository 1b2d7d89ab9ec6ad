"""A job's `where` is one condition on its records; it reads no other file, writes none, and changes no setting."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fuzz.targets import RECORDS
from tablesafe.core.errors import InvalidOption
from tablesafe.tabulate import tabulate
from tablesafe.tabulate.sources import session

ESCAPES = [
    "1=1; COPY (SELECT 1) TO 'out.csv'",
    "1=1)); COPY (SELECT 1) TO 'out.csv'; SELECT * FROM (SELECT 1 WHERE (1=1",
    "1=1)); COPY (SELECT 1) TO '{input}'; SELECT * FROM (SELECT 1 WHERE (1=1",
    "1=1)); ATTACH 'out.db'; SELECT * FROM (SELECT 1 WHERE (1=1",
    "1=1)); INSTALL httpfs; LOAD httpfs; SELECT * FROM (SELECT 1 WHERE (1=1",
    "1=1)); SET enable_external_access = true; SELECT * FROM (SELECT 1 WHERE (1=1",
    "1=1)); PRAGMA enable_logging; SELECT * FROM (SELECT 1 WHERE (1=1",
    "1=1)); EXPORT DATABASE 'out'; SELECT * FROM (SELECT 1 WHERE (1=1",
    "1=1)) UNION ALL SELECT * FROM (SELECT 1 WHERE (1=1",
    "turnover < (SELECT secret FROM read_csv('secret.csv'))",
    "turnover < (SELECT count(*) FROM 'secret.csv')",
    "turnover < (SELECT count(*) FROM read_text('/etc/passwd'))",
    "turnover < (SELECT count(*) FROM read_blob('secret.csv'))",
    "turnover < (SELECT count(*) FROM glob('*'))",
    "turnover < (SELECT count(*) FROM read_csv('https://example.org/x.csv'))",
    "turnover < (SELECT count(*) FROM local)",
    "getenv('HOME') <> ''",
    "1=1 /*",
    "",
    "'",
    "$1 = 1",
    "? = 1",
    "error('x')",
    "1=1)\n--",
]
SECRET = "secret\n987654321\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "records.csv").write_text(RECORDS, encoding="utf-8")
    (tmp_path / "secret.csv").write_text(SECRET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "frame", "parquet"])
@pytest.mark.parametrize("where", ESCAPES)
def test_a_condition_cannot_leave_its_brackets(folder: Path, where: str, kind: str) -> None:
    local = pl.DataFrame({"a": [1]})
    source: object = folder / "records.csv"
    if kind == "frame":
        source = pl.read_csv(folder / "records.csv")
    if kind == "parquet":
        source = folder / "records.parquet"
        pl.read_csv(folder / "records.csv").write_parquet(folder / "records.parquet")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InvalidOption, match="filter") as refused:
        tabulate(
            source, dimensions=["region"], value="turnover", where=where.replace("{input}", str(folder / "records.csv"))
        )
    assert "987654321" not in str(refused.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert local.height == 1


def test_a_plain_condition_works(folder: Path) -> None:
    """Brackets, comments, quotes and subqueries over values are still there."""
    for where in ("turnover > 0", "(region = 'NO1') OR (region IN ('SO1'))", "region LIKE '%O1' -- the first",
                  "turnover / 0 IS NULL OR true", "turnover > (SELECT 5)"):  # fmt: skip
        assert len(tabulate(folder / "records.csv", dimensions=["region"], value="turnover", where=where)) > 1


def test_the_database_is_shut_off_from_the_start(folder: Path) -> None:
    with session(None, None, None) as (connection, _):
        for name in ("autoinstall_known_extensions", "autoload_known_extensions", "python_enable_replacements"):
            assert connection.sql(f"SELECT current_setting('{name}')").fetchall() == [(False,)]
