"""The workbook: what is in it, read back; nothing that could run; colours, outline, legend."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from report_cases import Case, guarded, made, magnitude

import tablesafe as ts
from tablesafe.report.cells import Kind
from tablesafe.report.layout import Layout
from tablesafe.report.sheet import write_sheet

fastexcel = pytest.importorskip("fastexcel")
pytest.importorskip("xlsxwriter")


def sheets(path: Path) -> dict[str, pl.DataFrame]:
    book = fastexcel.read_excel(path)
    return {name: book.load_sheet(name, header_row=None).to_polars() for name in book.sheet_names}


def parts(path: Path, pattern: str) -> str:
    with zipfile.ZipFile(path) as file:
        return "\n".join(file.read(name).decode() for name in file.namelist() if re.search(pattern, name))


@pytest.mark.parametrize("internal", [False, True])
def test_the_workbook_shows_what_the_layout_shows(case: Case, internal: bool, written: Callable[..., Path]) -> None:
    path = written(case, ".xlsx", internal=internal)
    found = sheets(path)
    assert list(found)[-1] == "legend"
    layout = Layout.internal(case.problem, case.release, case.findings) if internal else Layout.public(case.release)
    text = " ".join(str(value) for value in found["legend"].to_numpy().ravel().tolist())
    for kind, number in layout.counts().items():
        assert kind.word in text
        assert str(number) in text
    assert ("Internal" in text) == internal


def test_values_come_back_where_they_belong(written: Callable[..., Path]) -> None:
    case = made("suppress")
    frame = next(iter(sheets(written(case, ".xlsx", internal=False)).values()))
    rows = {str(row[0]).split(" ")[0]: row[1:] for row in frame.iter_rows()}
    layout = Layout.public(case.release)
    window = layout.window()
    for i, code in enumerate(layout.rows.codes):
        got = [str(value) for value in rows[str(code)][: len(layout.columns)]]
        wanted = window.text[i]
        assert [g if w == "×" else float(g) for g, w in zip(got, wanted, strict=True)] == [
            w if w == "×" else float(w.replace(",", "")) for w in wanted
        ]


@pytest.mark.parametrize("internal", [False, True])
def test_nothing_in_it_can_run(internal: bool, written: Callable[..., Path]) -> None:
    """Codes such as =C, +A3, -B1 and @B2, and a label =SUM(1), are text."""
    path = written(made("suppress"), ".xlsx", internal=internal)
    assert "<f>" not in parts(path, r"worksheets/sheet")
    assert "=C =SUM(1)" in parts(path, "sharedStrings")
    assert not parts(path, r"vba|externalLink")
    assert "hyperlink" not in parts(path, r"worksheets")


def test_the_hierarchy_is_an_outline_and_headings_stay(written: Callable[..., Path]) -> None:
    sheet = parts(written(made("suppress"), ".xlsx", internal=True), r"worksheets/sheet1\.")
    levels = [int(level) for level in re.findall(r'<row [^>]*outlineLevel="(\d)"', sheet)]
    assert levels.count(1) == 3
    assert levels.count(2) == 7
    assert 'state="frozen"' in sheet
    assert 'summaryBelow="0"' in sheet


def test_statuses_have_their_colours(written: Callable[..., Path]) -> None:
    styles = parts(written(made("suppress"), ".xlsx", internal=True), r"styles\.xml")
    for kind in (Kind.SENSITIVE, Kind.COMPLEMENTARY):
        assert f"FF{kind.colour[1:]}" in styles


def test_a_sheet_per_slice_with_names_that_excel_takes(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "a": ["x", "y"] * 2,
            "b": ["p", "p", "q", "q"],
            "c": ["[1]/*very long code that goes on and on*/:1", "[1]/*very long code that goes on and on*/:2"] * 2,
            "value": [1, 2, 3, 4],
        }
    )
    table = ts.Table.from_cells(frame, dimensions={"a": None, "b": None, "c": None}, missing_totals="compute")
    layout = Layout.internal(table, rows="a", columns="b")
    write_sheet(layout, tmp_path / "t.xlsx", title="T")
    names = list(sheets(tmp_path / "t.xlsx"))
    assert len(names) == 4
    assert len({name.lower() for name in names}) == 4
    assert all(len(name) <= 31 for name in names)


def test_what_does_not_fit_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablesafe.report import sheet
    from tablesafe.report.excerpt import Space

    monkeypatch.setattr(sheet, "WORKBOOK", Space(cells=50, rows=50, columns=3, slices=2))
    notes = write_sheet(Layout.internal(guarded(magnitude(4))), tmp_path / "t.xlsx")
    assert notes
    text = " ".join(str(value) for value in sheets(tmp_path / "t.xlsx")["legend"].to_numpy().ravel().tolist())
    assert all(note in text for note in notes)


def test_equal_tables_give_equal_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_sheet(Layout.internal(guarded(magnitude())), tmp_path / f"{name}.xlsx")
    assert (tmp_path / "one.xlsx").read_bytes() == (tmp_path / "two.xlsx").read_bytes()
