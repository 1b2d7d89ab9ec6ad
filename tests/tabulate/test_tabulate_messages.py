"""Every complaint about records says what is wrong, in which file and on which line, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tablesafe.core.errors import InvalidFile, InvalidHierarchy, InvalidInput, InvalidOption, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.tabulate import tabulate
from tablesafe.tabulate.scan import Scan

FLAT = Hierarchy.flat(["N", "S"], name="regions.hrc")
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "text": ("region,v\nN,1\nS,abc\n", {}, r"'v' should hold numbers, but r\.csv, line 3 has 'abc'"),
    "text after empty lines": ("region,v\nN,1\n\n\nS,abc\n", {}, r"r\.csv, line 5 has 'abc'"),
    "text after a break in quotes": ('region,v\n"N\n",1\nS,abc\n', {}, r"r\.csv, line 4 has 'abc'"),
    "underscores": ("region,v\nN,1_000\n", {}, "line 2 has '1_000'"),
    "points and commas": ('region,v\nN,1.5\nS,"2,5"\n', {}, "line 3 has '2,5'"),
    "thousands": ('region,v\nN,"1,000"\nS,950\n', {}, "is the comma for decimals or thousands"),
    "empty": (
        "region,v\nN,1\nS,\n",
        {},
        "'v' is empty at r.csv, line 3 .1 record in all..\n\nHint: .* with where = '\"v\" IS NOT NULL'",
    ),
    "NaN": ("region,v\nN,1\nS,nan\n", {}, r"'v' is not a number at r\.csv, line 3"),
    "infinite": ("region,v\nN,1\nS,-inf\n", {}, r"'v' is infinite at r\.csv, line 3"),
    "huge": ("region,v\nN,1\nS,1e300\n", {}, r"'v' is too large to add exactly at r\.csv, line 3"),
    "huge sum": ("region,v\nN,9e14\nS,9e14\n", {}, "'v' adds up to about 1.8e\\+15, too large"),
    "weight below 0": ("region,v,w\nN,1,2\nN,1,-2\n", {"weight": "w"}, "weight 'w' is negative at r.csv, line 3: -2"),
    "weight as text": ("region,v,w\nN,1,x\n", {"weight": "w"}, "'w' should hold numbers"),
    "request of a half": ("region,v,q\nN,1,0.5\n", {"request": "q"}, "request 'q' should be a whole number"),
    "no respondent": (
        "region,v,f\nN,1,a\nN,1, \n",
        {"respondent": "f"},
        "'f' is missing at r.csv, line 3 .1 record in",
    ),
    "no code": ("region,v\nN,1\n ,2\n,3\n", {}, r"code of 'region' is missing at r\.csv, line 3 \(2 records in all\)"),
    "no column": ("regio;v\nN;1\n", {}, "no column 'region'. It has: 'regio', 'v'.\n\nHint: did you mean 'regio'"),
    "wrong delimiter": ("region;v\nN;1\n", {"delimiter": ","}, "Hint: check the delimiter"),
    "equation broken": (
        "region,v,a,b\nN,3,1,2\nS,5,1,2\n",
        {"value": ["v", "a", "b"], "equations": "v = a + b"},
        r"'v = a \+ b' does not hold at r\.csv, line 3 \(difference 2\)",
    ),
    "nothing passes": ("region,v\nN,1\n", {"where": "v > 5"}, "None of the 1 records of r.csv passes the filter"),
    "nothing has a code": ("region,v\n ,1\n", {"missing": "drop"}, "None of the 1 records of r.csv has a code"),
    "a code of blanks": ("region,v\nN,1\n\t,2\n", {}, r"has a code of nothing but blanks: '\\t'"),
    "a total among the codes": ("region,v\nTotal,1\nN,1\n", {}, "has the code 'Total', which is also the name"),
}


@pytest.mark.parametrize("case", CASES)
def test_records_that_cannot_be_added_up(case: str, tmp_path: Path) -> None:
    content, options, message = CASES[case]
    (tmp_path / "r.csv").write_text(content)
    with pytest.raises(InvalidTable, match=message):
        tabulate(tmp_path / "r.csv", **{"dimensions": ["region"], "value": "v", **options})


@pytest.mark.parametrize("case", [case for case, (_, _, message) in CASES.items() if "line" in message])
def test_a_record_that_is_not_found_again_is_said_of_the_file(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Parquet file whose statistics are damaged: what a look at all of it counts, a look for the first leaves out."""
    content, options, _ = CASES[case]
    (tmp_path / "r.csv").write_text(content)
    monkeypatch.setattr(Scan, "first", lambda *_: None)
    with pytest.raises(InvalidFile, match=r"r\.csv cannot be read: .*not found again.\n\nHint: is the file complete"):
        tabulate(tmp_path / "r.csv", **{"dimensions": ["region"], "value": "v", **options})


def test_a_code_of_blanks_may_stand_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("region,v\nN,1\nS,4\n\t,2\n")
    found = tabulate(tmp_path / "r.csv", dimensions=["region"], value="v", empty=["\t"], missing="drop")
    assert found.dimensions["region"].codes == ("Total", "N", "S")


CODES: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown": (
        "region,v\nN,1\nSS,2\n",
        {},
        "Code 'SS' of 'region' at r.csv, line 3 is not in regions.hrc.\n\nHint: did",
    ),
    "a total": (
        "region,v\nN,1\nTotal,2\n",
        {},
        "'Total' of 'region' at r.csv, line 3 is a total of regions.hrc, not a",
    ),
    "unknown for missing, with no total to put it under": (
        "region,v\nN,1\n,2\n",
        {"missing": "X", "dimensions": {"region": Hierarchy.flat(["N", "S"], total=None, name="regions")}},
        "'X', given for records without a code of 'region'",
    ),
    "a total for missing": ("region,v\nN,1\n,2\n", {"missing": "Total"}, "'Total' of 'region' is a total"),
}


@pytest.mark.parametrize("case", CODES)
def test_codes_that_are_no_leaves(case: str, tmp_path: Path) -> None:
    content, options, message = CODES[case]
    (tmp_path / "r.csv").write_text(content)
    with pytest.raises(InvalidHierarchy, match=message):
        tabulate(tmp_path / "r.csv", **{"dimensions": {"region": FLAT}, "value": "v", **options})


def test_a_code_for_missing_ones_becomes_a_part_of_the_total(tmp_path: Path) -> None:
    """Also in a hierarchy with levels, and where a group has a single part (its other name)."""
    (tmp_path / "r.csv").write_text("region,v\nN1,1\nS1,4\n,2\n")
    regions = Hierarchy.from_pairs([("N", "N1"), ("N", "N2"), ("S", "S1")], total="Total", name="regions")
    found = tabulate(tmp_path / "r.csv", dimensions={"region": regions}, value="v", missing="X")
    assert found.value[found.index(region="X")] == 2
    assert found.value[found.index()] == 7
    assert found.value[found.index(region="N")] == 1
    assert not found.residual().any()


def test_numbers_compared_with_text(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("region,v\nN,1\n")
    with pytest.raises(InvalidOption, match="compare numbers with numbers"):
        tabulate(tmp_path / "r.csv", dimensions=["region"], value="v", where="v <> 'NA'")


def test_the_second_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("region,v\nN,1\n")
    (tmp_path / "b.csv").write_text("region,v\nN,1\nN,x\n")
    with pytest.raises(InvalidTable, match=r"b\.csv, line 3 has 'x'"):
        tabulate(tmp_path / "*.csv", dimensions=["region"], value="v")


def test_rows_of_parquet_files_and_frames_are_named(tmp_path: Path) -> None:
    frame = pl.DataFrame({"region": ["N", "S", "Q"], "v": [1.0, 2.0, 3.0]})
    frame.write_parquet(tmp_path / "b.parquet")
    frame[:2].write_parquet(tmp_path / "a.parquet")
    for source, where in ((tmp_path / "*.parquet", "row 3 of b.parquet"), (frame, "row 3 of the frame")):
        with pytest.raises(InvalidHierarchy, match=f"'Q' of 'region' at {where} is not in regions.hrc"):
            tabulate(source, dimensions={"region": FLAT}, value="v")


def test_rows_are_counted_before_the_filter(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("region,v,year\nN,x,1\nN,2,2\nQ,2,2\n")
    with pytest.raises(InvalidHierarchy, match=r"r\.csv, line 4"):
        tabulate(tmp_path / "r.csv", dimensions={"region": FLAT}, value="v", where="year = 2")


STRUCTURES = {
    "minus": ("net = gross - tax", "'tax' counts -1 times in 'net'"),
    "twice": ("a = b + c; d = b + e; f = a + d", "'b' counts 2 times in 'f'"),
    "two contents": ("t = a + b; t = c + d", "breaks 't' down in several ways"),
}


@pytest.mark.parametrize("kind", STRUCTURES)
def test_structures_that_records_cannot_be_tabulated_by(kind: str) -> None:
    equations, message = STRUCTURES[kind]
    hierarchy = Hierarchy.from_equations(equations)
    with pytest.raises(InvalidHierarchy, match=message):
        tabulate({"x": [hierarchy.leaves[0]], "v": [1]}, dimensions={"x": hierarchy}, value="v")


OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "no dimension": ({"dimensions": {}}, "at least one dimension"),
    "largest": ({"largest": -1}, "largest must be a whole number"),
    "margin": ({"margins": [["regin"]]}, "margins names 'regin'.*did you mean 'region'"),
    "no margin": ({"margins": []}, "margins names no table"),
    "missing": ({"missing": {"regin": "x"}}, "missing names 'regin'"),
    "column_of": ({"column_of": {"regin": "x"}}, "column_of names 'regin'"),
    "value twice": ({"value": ["v", "v"]}, "value names 'v' twice"),
    "unknown part": ({"value": ["v", "w"], "equations": "t = v + x"}, "equations name 'x'"),
    "circle": ({"value": ["v", "w"], "equations": ["v = w + u", "w = v - u", "u = v - w"]}, "circle"),
    "equations of nothing": ({"value": None, "equations": "t = a + b"}, "value names none"),
    "a dimension added up": ({"columns": ["region"]}, "'region' is a dimension"),
    "request without contributors": ({"request": "v", "largest": 0}, "largest must be 1 or more"),
    "engine": ({"engine": "sparks"}, "engine must be"),
    "memory": ({"memory_limit": "lots"}, "memory_limit='lots'"),
    "threads": ({"threads": 0}, "threads=0"),
    "folder": ({"temporary": "/nowhere/at/all"}, "No temporary folder"),
    "filter of an unknown column": ({"where": "regin = 'N'"}, "did you mean 'region'"),
    "filter that is no SQL": ({"where": "region ="}, "write it as in SQL"),
    "filter of text by numbers": ({"where": "region > 5"}, "TRY_CAST"),
    "filter that is no text": ({"where": 5}, "where must be"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options(case: str) -> None:
    options, message = OPTIONS[case]
    frame = pl.DataFrame({"region": ["N", "S"], "v": [1, 2], "w": [1, 1]})
    with pytest.raises(InvalidOption, match=f"(?s){message}"):
        tabulate(frame, **{"dimensions": ["region"], "value": "v", **options})


def test_a_margin_needs_a_total() -> None:
    trees = Hierarchy.from_equations("P = a + b; Q = c + d")
    with pytest.raises(InvalidOption, match="no single total"):
        tabulate({"x": ["a"], "y": ["b"], "v": [1]}, dimensions={"x": trees, "y": None}, value="v", margins=[["y"]])


def test_a_column_of_dates_is_no_number() -> None:
    frame = pl.DataFrame({"region": ["N"], "v": ["2024-01-01"]}).with_columns(pl.col("v").str.to_date())
    with pytest.raises(InvalidInput, match="holds DATE, not numbers"):
        tabulate(frame, dimensions=["region"], value="v")


def test_no_name_or_value_reaches_the_log(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    frame = pl.DataFrame({"region": ["N"], "v": [4711], "firm": ["Secret & Sons"]})
    said: list[str] = []
    tabulate(frame, dimensions=["region"], value="v", respondent="firm", progress=lambda *step: said.append(repr(step)))
    shown = "".join([*capfd.readouterr(), caplog.text, *said])
    assert "4711" not in shown
    assert "Secret" not in shown
