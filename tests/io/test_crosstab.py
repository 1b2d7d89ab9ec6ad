"""Sheets as they arrive: what is understood of them, and what is said where it is in doubt."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tablesafe.cli.app import call
from tablesafe.core.errors import InvalidFile, InvalidOption, InvalidTable, TablesafeError
from tablesafe.io import crosstab
from tablesafe.io.crosstab import Understood, is_crosstab, read_crosstab
from tablesafe.io.frames import read_frame
from tablesafe.io.layout import Crosstab, corners
from tablesafe.job.load import load_job
from tablesafe.job.model import Source
from tablesafe.job.remedies import remedies, settings
from tablesafe.job.toml import read_toml
from tablesafe.pipeline.tables import build_table

PRINTED = [
    ["Table 7: turnover", None, None, None, None],
    ["in 1 000 EUR", None, None, None, None],
    [None, None, None, None, None],
    [None, "food", None, "wood", None],
    ["Region", "2019", "2020", "2019", "2020"],
    ["North", "1", "2", "3", "4"],
    ["South", "5", "6", "-", "8"],
    [None, None, None, None, None],
    ["Total", "6", "8", "3", "12"],
    ["1) Source: the register", None, None, None, None],
]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Understood]:
    """Sheets without a workbook: what a reader of workbooks would hand over."""

    def understood(*sheets: list[list[str | None]], **how: Any) -> Understood:
        grids = [(f"T{number}", np.array(rows, dtype=object)) for number, rows in enumerate(sheets, 1)]
        monkeypatch.setattr(crosstab, "load_grid", lambda path, sheet: grids)
        return read_crosstab("book.xlsx", **how)

    return understood


def cells(found: Understood) -> dict[tuple[str, ...], float]:
    return {tuple(row[:-1]): row[-1] for row in found.frame.iter_rows()}


def test_headings_in_two_rows_notes_dashes_and_years(read: Callable[..., Understood]) -> None:
    found = read(PRINTED)
    assert found.dimensions == ("Region", "columns", "columns 2")
    assert len(cells(found)) == 12
    assert cells(found)["North", "food", "2020"] == 2
    assert cells(found)["South", "wood", "2019"] == 0
    assert cells(found)["Total", "wood", "2020"] == 12
    told = str(found)
    assert "12 cells in B6:E9" in told
    assert "A1 'Table 7: turnover'; A2 'in 1 000 EUR'; A10 '1) Source: the register'" in told
    assert "1 cells with a dash are 0" in told
    assert str(found.rows.where(0)) == "cell B6 of sheet 'T1' of book.xlsx"


def test_blank_labels_are_the_same_as_above_or_the_total_of_a_group(read: Callable[..., Understood]) -> None:
    found = read(
        [
            ["region", "sex", "a", "b", "all"],
            ["North", None, "4", "6", "10"],
            [None, "men", "1", "2", "3"],
            [None, "women", "3", "4", "7"],
            ["South", None, "1", "x", "1"],
            [None, "men", "1", None, "1"],
        ]
    )
    assert found.dimensions == ("region", "sex", "columns")
    assert cells(found)["North", "women", "b"] == 4
    assert cells(found)["North", "Total", "all"] == 10
    assert ("South", "Total", "b") not in cells(found)
    assert "2 cells are empty or hold a mark" in str(found)


def test_the_total_of_a_group_is_called_as_the_sheet_calls_it(read: Callable[..., Understood]) -> None:
    found = read(
        [
            [None, "Männer", None, "Insgesamt"],
            ["Land", "jung", "alt", None],
            ["Nord", "1", "2", "3"],
            ["Insgesamt", "1", "2", "3"],
        ]
    )
    assert cells(found)["Nord", "Insgesamt", "Total"] == 3
    again = read(
        [
            [None, "Männer", None, None, "Alle"],
            ["Land", "jung", "alt", "Insgesamt", None],
            ["Nord", "1", "2", "3", "3"],
        ]
    )
    assert cells(again)["Nord", "Alle", "Insgesamt"] == 3


def test_one_heading_over_all_columns_is_no_dimension_and_names_beside_headings_are_taken(
    read: Callable[..., Understood],
) -> None:
    found = read(
        [
            [None, "Turnover", None],
            ["Size", "small", "large"],
            ["Region", None, None],
            ["North", "1 234", "2 000,5"],
            ["South", "3", "4"],
        ]
    )
    assert found.dimensions == ("Region", "Size")
    assert "said of all numbers: Turnover" in str(found)
    assert cells(found)["North", "small"] == 1234
    assert cells(found)["North", "large"] == 2000.5


def test_a_list_of_one_column_of_numbers_has_the_dimensions_of_its_labels(read: Callable[..., Understood]) -> None:
    assert cells(read([["region", "turnover"], ["North", "1"], ["South", "2"]])) == {("North",): 1, ("South",): 2}


def test_several_sheets_are_one_table_with_a_dimension_more(read: Callable[..., Understood]) -> None:
    cover: list[list[str | None]] = [["Contents", None], ["nothing here", None]]
    found = read(PRINTED, cover, PRINTED, sheet="*")
    assert found.dimensions == ("sheet", "Region", "columns", "columns 2")
    assert set(found.frame["sheet"]) == {"T1", "T3"}
    assert str(found.rows.where(12)) == "cell B6 of sheet 'T3' of book.xlsx"
    other = [["land", "a", "b"], ["x", "1", "2"]]
    with pytest.raises(InvalidFile, match=r"Sheet 'T2' of .* has the dimensions land, columns, but sheet 'T1'"):
        read(PRINTED, other, sheet="*")


def test_what_is_said_goes_before_what_is_found_out(read: Callable[..., Understood]) -> None:
    codes = [["year", "10", "20"], ["1", "5", "6"], ["2", "7", "8"]]
    found = read(codes, header_rows=1, label_columns=1)
    assert cells(found) == {("1", "10"): 5, ("1", "20"): 6, ("2", "10"): 7, ("2", "20"): 8}
    inside = read([["9", *row] for row in PRINTED], area="B4:F9")
    assert cells(inside) == cells(read(PRINTED))
    assert "left out as notes: A1 '9'" in str(inside)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (["South", "5", "many", "7", "8"], "sheet 'T1', cell C7: 'many' is no number"),
        ([None, "5", "6", "7", "8"], "sheet 'T1', cell A7: a label is missing"),
        (["North", "5", "6", "7", "8"], "two numbers have the same codes .* cell B6 of sheet 'T1' and cell B7"),
    ],
)
def test_what_is_wrong_is_told_with_its_sheet_and_cell(
    read: Callable[..., Understood], row: list[str | None], said: str
) -> None:
    with pytest.raises(InvalidFile, match=said):
        read([*PRINTED[:6], row, *PRINTED[7:]])


def test_a_sheet_without_numbers_or_headings_is_refused(read: Callable[..., Understood]) -> None:
    with pytest.raises(InvalidFile, match="no number stands in it"):
        read([["a", "b"], ["c", "d"]])
    with pytest.raises(InvalidFile, match="no row of headings"):
        read([["a", "1"], ["b", "2"]])
    with pytest.raises(InvalidFile, match="nothing stands in"):
        read(PRINTED, area="X90:Z99")


@pytest.mark.parametrize("area", ["A4", "A0:B3", "4:7", "A4:H30:K1"])
def test_an_area_is_written_as_spreadsheets_write_it(area: str) -> None:
    with pytest.raises(InvalidOption, match="no area of a sheet"):
        corners(area)


def test_an_area_is_two_corners_in_any_order() -> None:
    assert corners("$C$5:aa2") == (1, 2, 4, 26)


@pytest.mark.parametrize("seed", range(20))
def test_any_sheet_is_understood_or_refused_in_words(read: Callable[..., Understood], seed: int) -> None:
    """Nothing of a sheet that was spoilt at random makes another error than one in words."""
    random = np.random.default_rng(seed)
    rows = [list(row) for row in PRINTED]
    for _ in range(6):
        row, column = random.integers(0, len(rows)), random.integers(0, 5)
        rows[row][column] = [None, "", "7", "x", "2020", "nan", "inf", "text", "-"][random.integers(0, 9)]
    with suppress(TablesafeError):
        assert read(rows).frame["value"].is_finite().all()


@pytest.fixture
def book(tmp_path: Path) -> Path:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("fastexcel")
    path = tmp_path / "printed.xlsx"
    workbook = xlsxwriter.Workbook(str(path))
    sheet = workbook.add_worksheet("Tab 1")
    sheet.write("B2", "Turnover")
    sheet.merge_range("C4:D4", "food")
    sheet.merge_range("E4:F4", "wood")
    for column, size in enumerate(["small", "large", "small", "large"], 2):
        sheet.write(4, column, size)
    sheet.write("B5", "region")
    for row, (name, *values) in enumerate(
        [("North", 1, 40, 70, 80), ("South", 50, 60, 20, 8), ("West", 9, 9, 9, 9)], 5
    ):
        sheet.write(row, 1, name)
        for column, value in enumerate(values, 2):
            sheet.write(row, column, value)
    workbook.close()
    return path


def test_a_workbook_from_a_look_to_a_job_that_runs(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["look", str(book)]) == 0
    assert "Sheet 'Tab 1' of printed.xlsx: 12 cells in C6:F8." in capsys.readouterr().out
    assert is_crosstab(book)
    job = book.with_name("job.toml")
    assert call(["init", str(book), "-o", str(job)]) == 0
    assert "12 cells in C6:F8" in capsys.readouterr().out
    draft = load_job(job)
    assert (draft.source.layout, draft.source.holds, draft.source.missing_totals) == ("crosstab", "cells", "compute")
    table = build_table(draft)
    assert len(table) == 4 * 3 * 3
    assert table.value[table.index(region="West", **{"columns": "food", "columns 2": "large"})] == 9
    assert table.value.max() == 365


def test_keys_of_a_crosstab_need_it_and_a_crosstab_holds_cells() -> None:
    with pytest.raises(InvalidOption, match="'area' needs layout"):
        Source(file="a.xlsx", area="A1:B2")
    with pytest.raises(InvalidOption, match="holds cells"):
        Source(file="a.xlsx", layout="crosstab", kind="records")
    with pytest.raises(InvalidOption, match="'header_rows' must be 1 or more"):
        Source(file="a.xlsx", layout="crosstab", header_rows=0)
    with pytest.raises(InvalidOption, match="only these are read as crosstabs"):
        read_frame("a.parquet", layout=Crosstab())


GERMAN = """Tabelle 7: Umsatz in 1 000 EUR;;;;
;Lebensmittel;;Holz;
Land;klein;groß;klein;groß
Bayern;1,5;40;1.270,5;80
Thüringen;50;60;-;8
;;;;
Insgesamt;51,5;100;1.270,5;88
1) Quelle: Register;;;;
"""


def test_a_printed_table_as_csv_is_read_as_a_sheet_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gedruckt.csv"
    path.write_text(GERMAN, encoding="utf-8")
    assert is_crosstab(path)
    found = read_crosstab(path)
    assert found.dimensions == ("Land", "columns", "columns 2")
    assert cells(found)["Bayern", "Lebensmittel", "klein"] == 1.5
    assert cells(found)["Bayern", "Holz", "klein"] == 1270.5
    assert cells(found)["Thüringen", "Holz", "klein"] == 0
    assert str(found).startswith("gedruckt.csv: 12 cells in B4:E7.")
    roles = [[role for _, role in row] for row in found.excerpt]
    assert roles[0] == ["note"] * 5
    assert roles[1] == ["heading"] * 5
    assert roles[3] == ["label", *["number"] * 4]
    job = tmp_path / "job.toml"
    assert call(["init", str(path), "-o", str(job)]) == 0
    assert "12 cells" in capsys.readouterr().out
    assert len(build_table(load_job(job))) == 3 * 3 * 3


def test_a_word_among_the_numbers_of_a_text_file_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(GERMAN.replace("50;60", "50;viel"), encoding="utf-8")
    with pytest.raises(InvalidFile, match=r"t\.csv, line 5: 'viel' is no number"):
        read_crosstab(path)


@pytest.mark.parametrize(
    "text", ["region;size;turnover\nN;1;3\n", "A;1;3\nB;2;5\n", "a;b;c;\nN;1;3;\n", "", "one\n", ";;\n"]
)
def test_lists_are_no_printed_tables(tmp_path: Path, text: str) -> None:
    path = tmp_path / "list.csv"
    path.write_text(text, encoding="utf-8")
    assert not is_crosstab(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            ",north,north,Total\na,1,2,3\nb,4,5,9\nTotal,5,7,12\n",
            "rows 'a', columns 'north'.*line 2, column 2.*column 3",
        ),
        (",north,south,Total\na,1,2,3\na,4,5,9\nTotal,5,7,12\n", "rows 'a', columns 'north'.*line 2, column 2.*line 3"),
        ("Turnover,,,\n,north,north,Total\na,1,2,3\nTotal,1,2,3\n", "rows 'a', columns 'north'.*line 3"),
    ],
)
def test_a_printed_table_that_has_a_cell_twice_is_told_by_its_codes(
    tmp_path: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    assert is_crosstab(tmp_path / "t.csv")
    with pytest.raises(InvalidFile, match=f"two numbers have the same codes .{told}"):
        read_crosstab(tmp_path / "t.csv")
    capsys.readouterr()
    assert call(["init", str(tmp_path / "t.csv")]) != 0
    assert "two numbers have the same codes" in capsys.readouterr().err


RULES = '[[rules]]\nrule = "zero_cells"\nrange_absolute = 1.0\n'
WITHHELD = ";Mining;Food;Total\nNorth;c;1250;1830\nSouth;0;2410;2410\nTotal;c;3660;4240\n"


@pytest.mark.parametrize(("name", "text", "told"), [
    ("printed.csv", WITHHELD, "printed.csv holds marks instead of numbers, in B2 (c), B4 (c), so its sums"),
    ("list.csv", "region;turnover\nNorth;c\nSouth;5\nTotal;9\n", "list.csv, line 2 has 'c', which stands for a number"),
])  # fmt: skip
def test_numbers_that_somebody_withheld_are_asked_for(tmp_path: Path, name: str, text: str, told: str) -> None:
    """Whatever else would make the sums right would not make the table one that can be protected."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    how = 'layout = "crosstab"\n' if name == "printed.csv" else ""
    value, *dimensions = ("value", "rows", "columns") if how else ("turnover", "region")
    job = f'[source]\nfile = "{name}"\nkind = "cells"\n{how}[response]\nvalue = "{value}"\n'
    (tmp_path / "job.toml").write_text(job + "".join(f"[dimensions.{each}]\n" for each in dimensions) + RULES)
    with pytest.raises(InvalidTable) as raised:
        build_table(load_job(tmp_path / "job.toml"))
    assert told in raised.value.message
    assert "take the table with its true values" in raised.value.hint
    draft = read_toml((tmp_path / "job.toml").read_text())
    assert remedies(draft, raised.value.about, settings(raised.value.advice)) == ()
