"""Cells and releases as CSV, Parquet and Excel: whole, readable again, without formulas, and without secrets."""

from __future__ import annotations

import builtins
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tablesafe.audit.audit import audit
from tablesafe.core.errors import InvalidFile, InvalidInput, InvalidOption, MissingExtra
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.frames import (
    guarded,
    office_view,
    read_excel,
    read_frame,
    unguarded,
    write_cells,
    write_frame,
    write_release,
)
from tablesafe.io.patterns import read_pattern
from tablesafe.verify import verify

ENDINGS = [".csv", ".parquet", ".xlsx"]
SECRET = 8675309.25


def problem_and_release() -> tuple[Problem, Release]:
    codes = ["Total", "=cmd()", "-5", "@at", "plain"]
    values = [SECRET + 1000.25 + 30.0 + 40.0, SECRET, 1000.25, 30.0, 40.0]
    table = Table.from_cells({"code": codes, "turnover": values}, dimensions=["code"], value="turnover")
    mask = np.array([False, True, False, False, False])
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 3.5, 4.5, reason="p%"))
    return problem, Release.from_suppression(problem, np.array([False, True, True, False, False]))


def all_bytes(path: Path) -> bytes:
    """The contents of a file; of a workbook, of all its parts."""
    if path.suffix != ".xlsx":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return b"\n".join(archive.read(name) for name in archive.namelist())


@pytest.mark.parametrize("ending", ENDINGS)
def test_cells_read_back(tmp_path: Path, ending: str) -> None:
    problem, _ = problem_and_release()
    path = tmp_path / f"cells{ending}"
    write_cells(problem.table, path)
    source = read_frame(path)
    back = Table.from_cells(source, dimensions=["code"], value="turnover")
    assert back.cells().equals(problem.table.cells())


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_release_holds_what_may_be_published_and_nothing_else(tmp_path: Path, ending: str) -> None:
    problem, release = problem_and_release()
    path = tmp_path / f"release{ending}"
    write_release(release, path, problem=problem)
    source = read_frame(path)
    assert source.frame.columns == ["code", "turnover", "status"]
    assert source.text("status").to_list() == ["published", "confidential", "confidential", "published", "published"]
    numbers = source.numbers("turnover", missing=-1.0)
    assert numbers[1:].tolist() == [-1, -1, 30, 40]
    content = all_bytes(path)
    for secret in (str(SECRET), "1000.25", "p%", "sensitive", "complementary"):
        assert secret.encode() not in content, secret
    assert np.float64(SECRET).tobytes() not in content


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_office_sees_everything(tmp_path: Path, ending: str) -> None:
    problem, release = problem_and_release()
    path = tmp_path / f"office{ending}"
    write_release(release, path, problem=problem, confidential=True)
    source = read_frame(path)
    assert source.numbers("turnover")[1] == SECRET
    assert source.text("status").to_list() == ["published", "sensitive", "complementary", "published", "published"]
    assert source.text("reason").fill_null("").to_list() == ["", "p%", "", "", ""]
    assert source.numbers("upper level")[1] == 4.5
    assert "published" in office_view(release).columns


def test_equal_tables_give_equal_workbooks(tmp_path: Path) -> None:
    _, release = problem_and_release()
    for name in ("one.xlsx", "two.xlsx"):
        write_release(release, tmp_path / name)
    assert all_bytes(tmp_path / "one.xlsx") == all_bytes(tmp_path / "two.xlsx")


def test_a_workbook_has_no_formulas_and_a_colour_per_status(tmp_path: Path) -> None:
    _, release = problem_and_release()
    path = tmp_path / "release.xlsx"
    write_release(release, path, confidential=True)
    content = all_bytes(path)
    assert b"<f>" not in content
    assert read_excel(path).frame["code"].to_list() == ["Total", "=cmd()", "-5", "@at", "plain"]
    assert b"FFF4B6B6" in content
    assert b"FFBBD3F2" in content


def test_formulas_in_a_csv_are_guarded_unless_told_otherwise(tmp_path: Path) -> None:
    _, release = problem_and_release()
    write_release(release, tmp_path / "guarded.csv")
    codes = read_frame(tmp_path / "guarded.csv").frame["code"].to_list()
    assert codes == ["Total", "'=cmd()", "'-5", "'@at", "plain"]
    assert unguarded(read_frame(tmp_path / "guarded.csv").frame)["code"].to_list() == release.frame()["code"].to_list()
    write_release(release, tmp_path / "plain.csv", guard_formulas=False)
    assert read_frame(tmp_path / "plain.csv").frame["code"].to_list()[1] == "=cmd()"
    assert guarded(pl.DataFrame({"n": [-1.0], "t": ["+1"]})).rows() == [(-1.0, "'+1")]


def test_a_code_that_looks_guarded_is_told_from_one_that_is(tmp_path: Path) -> None:
    """Else the pattern, and the verifier, would take one cell of a release for another."""
    codes = ["@", "'@", "''@", "'plain"]
    frame = pl.DataFrame({"code": [*codes, "Total"], "value": [10.0, 20.0, 30.0, 40.0, 100.0]})
    table = Table.from_cells(frame, dimensions=["code"])
    names = table.code_columns()["code"].to_list()
    problem = Problem(table, sensitivity=Sensitivity.of(np.isin(names, ["'@", "''@"]), 1.0))
    release = Release.from_suppression(problem, problem.sensitivity.mask)
    path = tmp_path / "release.csv"
    write_release(release, path)
    assert set(unguarded(read_frame(path).frame)["code"]) == {*codes, "Total"}
    assert (read_pattern(path, problem) == release.suppressed).all()
    certificate = audit(problem, release).certificate
    assert certificate is not None
    certificate.save(tmp_path / "certificate.json")
    assert verify(tmp_path / "certificate.json", release=path).release_checked


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    problem, _ = problem_and_release()
    with pytest.raises(InvalidOption, match=r"'.doc'"):
        write_cells(problem.table, tmp_path / "cells.doc")
    kept = tmp_path / "cells.csv"
    kept.write_text("before")
    broken = pl.DataFrame({"a": [[1, 2]]})
    with pytest.raises(Exception, match="nested"):
        write_frame(broken, kept)
    assert kept.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["cells.csv"]


def test_a_workbook_with_several_sheets_needs_a_name(tmp_path: Path) -> None:
    import xlsxwriter

    path = tmp_path / "two.xlsx"
    workbook = xlsxwriter.Workbook(str(path))
    for name in ("first", "second"):
        sheet = workbook.add_worksheet(name)
        sheet.write_row(0, 0, ["code", "value"])
        sheet.write_row(1, 0, [name, 5])
    workbook.add_worksheet("bare")
    workbook.close()
    with pytest.raises(InvalidFile, match="3 sheets: 'first', 'second', 'bare'"):
        read_excel(path)
    assert read_frame(path, sheet="second").frame["code"].to_list() == ["second"]
    with pytest.raises(InvalidFile, match="no sheet 'third'"):
        read_excel(path, sheet="third")
    with pytest.raises(InvalidFile, match="'bare'"):
        read_excel(path, sheet="bare")


@pytest.mark.parametrize("ending", [*ENDINGS, ".xls"])
def test_damaged_files_are_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"damaged{ending}"
    with pytest.raises(InvalidFile, match="no file"):
        read_frame(path)
    path.write_bytes(b"\x00\x01\x02 not what the ending says")
    with pytest.raises(InvalidInput, match="damaged"):
        read_frame(path)
    path.write_bytes(b"")
    with pytest.raises(InvalidInput):
        read_frame(path)


def test_excel_without_its_libraries_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, release = problem_and_release()
    write_release(release, tmp_path / "there.xlsx")
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name in {"fastexcel", "xlsxwriter"}:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"tablesafe\[excel\]"):
        read_excel(tmp_path / "there.xlsx")
    with pytest.raises(MissingExtra, match=r"tablesafe\[excel\]"):
        write_release(release, tmp_path / "new.xlsx")
    assert not (tmp_path / "new.xlsx").exists()
