"""Patterns made by other programs: matched on codes, in every vocabulary; gaps and strangers are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tablesafe.core.errors import InvalidFile, InvalidInput, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.frames import write_release
from tablesafe.io.jj import read_jj, write_jj
from tablesafe.io.patterns import read_pattern
from tablesafe.tauargus.microdata import read_microdata
from tablesafe.tauargus.write_table import write_table

CODES = ["Total", " 1", " 2", "10"]


def problem() -> Problem:
    table = Table.from_cells({"Region": CODES, "value": [60.0, 10.0, 20.0, 30.0]}, dimensions=["Region"])
    return Problem(table, sensitivity=Sensitivity.of(np.array([False, True, False, False]), 1.0))


EXPECTED = [False, True, True, False]
FORMS = {
    "flags": "Region,suppressed\nTotal,0\n1,1\n2,1\n10,0\n",
    "words": "Region;status\nTotal;published\n1;sensitive\n2;complementary\n10;frozen\n",
    "letters": "region,sdcStatus\nTotal,s\n1,u\n2,x\n10,z\n",
    "SBS": "Region,Status\nTotal,V\n1,C\n2,D\n10,V\n",
    "τ-ARGUS with names": "Region,value,Status\nTotal,60,1\n1,10,3\n2,20,11\n10,30,2\n",
    "τ-ARGUS without": '"Total",60.00,1\n" 1",10.00,3\n" 2",20.00,11\n"10",30.00,1\n',
    "unordered": "Region,suppressed\n10,no\n2,yes\nTotal,no\n1,yes\n",
    "an empty code is the total": "Region,suppressed\n,false\n1,true\n2,true\n10,false\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_pattern_is_read(tmp_path: Path, form: str) -> None:
    path = tmp_path / "pattern.csv"
    path.write_text(FORMS[form], encoding="utf-8")
    assert read_pattern(path, problem()).tolist() == EXPECTED


def test_frames_and_other_files(tmp_path: Path) -> None:
    frame = pl.DataFrame({"Region": CODES, "hide": EXPECTED})
    assert read_pattern(frame, problem(), column="hide").tolist() == EXPECTED
    frame.write_parquet(tmp_path / "p.parquet")
    assert read_pattern(tmp_path / "p.parquet", problem(), column="hide").tolist() == EXPECTED
    release = Release.from_suppression(problem(), np.array(EXPECTED))
    for name in ("r.csv", "r.parquet", "r.xlsx"):
        write_release(release, tmp_path / name)
        assert read_pattern(tmp_path / name, problem()).tolist() == EXPECTED


def test_what_we_write_for_tau_argus_is_read_as_the_same_pattern(tmp_path: Path) -> None:
    release = Release.from_suppression(problem(), np.array(EXPECTED))
    for header in (True, False):
        write_table(release, problem(), tmp_path / "t.txt", 3, "AS+FL+" if header else "AS+")
        assert read_pattern(tmp_path / "t.txt", problem()).tolist() == EXPECTED


def test_a_jj_file_is_a_pattern(tmp_path: Path) -> None:
    given = problem().replace(suppressed=np.array([False, False, True, False]))
    write_jj(given, tmp_path / "p.jj.gz")
    assert read_pattern(tmp_path / "p.jj.gz", problem()).tolist() == EXPECTED
    named = read_jj(tmp_path / "p.jj.gz")
    assert read_pattern(tmp_path / "p.jj.gz", named).tolist() == EXPECTED
    other = Table.from_cells({"Region": CODES, "value": [61.0, 11.0, 20.0, 30.0]}, dimensions=["Region"])
    with pytest.raises(InvalidTable, match=r"(?s)Region=Total.*pattern of another table"):
        read_pattern(tmp_path / "p.jj.gz", Problem(other))
    smaller = Table.from_cells({"Region": CODES[:2], "value": [10.0, 10.0]}, dimensions=["Region"])
    with pytest.raises(InvalidTable, match="4 cells, but the table has"):
        read_pattern(tmp_path / "p.jj.gz", Problem(smaller))


def test_the_pattern_that_tau_argus_found(instances: Path) -> None:
    folder = instances / "tauargus" / "testW"
    data = read_microdata(folder / "tau_testW.asc", dimensions=["Size", "Region"])
    leaves = data.frame.group_by("Size", "Region").agg(pl.col("Var2").sum())
    table = Table.from_cells(leaves, dimensions=data.dimensions, value="Var2", missing_totals="compute")
    mask = read_pattern(folder / "expected_Simple2D" / "Simple2D.txt", Problem(table))
    assert mask.sum() == 21, "9 primary, 12 secondary"
    assert table.value[mask].sum() == 2_524_351 + 12_013


MISTAKES = {
    "empty": ("", InvalidFile, "is empty"),
    "unknown code": ("Region,suppressed\nTotal,0\n11,1\n", InvalidInput, "'11' of 'Region' at p.csv, line 3"),
    "named twice": (
        FORMS["flags"] + "1,0\n",
        InvalidTable,
        "(?s)line 3 and p.csv, line 6 both speak of cell.*Region= ?1",
    ),
    "a cell left out": (
        "Region,suppressed\n1,1\n2,0\n",
        InvalidTable,
        r"says nothing about cell \(Region=Total\) \(and 1",
    ),
    "no status": ("Region,value\nTotal,60\n", InvalidInput, "no column that says what is suppressed"),
    "unknown status": ("Region,status\nTotal,hm\n", InvalidFile, "line 2 has the status 'hm'"),
    "another table": ("Country,flag\nA,1\n", InvalidInput, "no column 'Region'. It has: 'Country', 'flag'"),
    "one column": ("a\nb\n", InvalidFile, "1 columns, but 1 dimensions"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(tmp_path: Path, mistake: str) -> None:
    text, error, message = MISTAKES[mistake]
    path = tmp_path / "p.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        read_pattern(path, problem())


def test_cells_left_out_can_be_published(tmp_path: Path) -> None:
    frame = {"Region": ["1"], "suppressed": [True]}
    assert read_pattern(frame, problem(), complete=False).tolist() == [False, True, False, False]


def test_a_pattern_may_publish_but_not_suppress_cells_that_are_not_there() -> None:
    table = Table.from_cells(
        {"a": ["Total", "1", "2"], "b": ["Total", "Total", "Total"], "value": [3, 1, 2]}, dimensions=["a", "b"]
    )
    rows = {"a": ["Total", "1", "2", "1"], "b": ["Total", "Total", "Total", "x"]}
    with pytest.raises(InvalidInput, match="'x' of 'b'"):
        read_pattern({**rows, "suppressed": [0, 1, 1, 1]}, Problem(table))
    assert read_pattern({**rows, "suppressed": [0, 1, 1, 0]}, Problem(table)).tolist() == [False, True, True]
    tree = {"a": table.dimensions["a"], "b": Hierarchy.flat(["x", "y"])}
    wide = Table.from_cells(
        {"a": ["Total", "1", "2"], "b": ["Total", "Total", "Total"], "value": [3, 1, 2]}, dimensions=tree
    )
    assert read_pattern({**rows, "suppressed": [0, 1, 1, 0]}, Problem(wide)).tolist() == [False, True, True]
    with pytest.raises(InvalidTable, match=r"names \(a=1, b=x\), but the table has no such cell"):
        read_pattern({**rows, "suppressed": [0, 1, 1, 1]}, Problem(wide))


def test_cells_of_a_table_without_dimensions_go_by_their_names() -> None:
    table = Table.from_equations("t = a + b", {"t": 3, "a": 1, "b": 2})
    mask = read_pattern({"cell": ["a", "b", "t"], "status": ["u", "m", "s"]}, Problem(table))
    assert mask.tolist() == [False, True, True]
    with pytest.raises(InvalidTable, match="names cell 'c', which the table does not have"):
        read_pattern({"cell": ["c"], "status": ["sensitive"]}, Problem(table))


SDMX = "Region,status\nTotal,F\n1,A\n2,F\n10,D\n"
"""A small count that is withheld, with one secondary cell: SBS would take all of it for withheld."""


def test_a_pattern_with_the_letters_of_sdmx_is_not_read_as_that_of_sbs(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(SDMX)
    with pytest.raises(InvalidFile, match=r"(?s)F \(2 cells\): sbs withheld, sensitive; sdmx-conf published"):
        read_pattern(path, problem())
    assert read_pattern(path, problem(), scheme="sdmx-conf").tolist() == [False, True, False, True]
    assert read_pattern(path, problem(), scheme="sbs").tolist() == [True] * 4
    path.write_text(SDMX.replace("status", "CONF_STATUS"))
    assert read_pattern(path, problem()).tolist() == [False, True, False, True]


def test_secondary_in_sdmx_is_safe_in_tau_argus(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("Region,status\nTotal,S\n1,M\n2,S\n10,E\n")
    with pytest.raises(InvalidFile, match=r"(?s)S \(2 cells\): tauargus published; sdmx-conf withheld"):
        read_pattern(path, problem())


def test_two_columns_of_statuses_are_not_chosen_between(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("Region,OBS_STATUS,CONF_STATUS\nTotal,A,F\n1,Q,A\n2,A,F\n10,A,D\n")
    with pytest.raises(InvalidInput, match=r"(?s)several columns.*'CONF_STATUS', 'OBS_STATUS'.*column='CONF_STATUS'"):
        read_pattern(path, problem())
    assert read_pattern(path, problem(), column="CONF_STATUS").tolist() == [False, True, False, True]
    assert read_pattern(path, problem(), column="OBS_STATUS").tolist() == [False, True, False, False]


def test_a_column_called_published_is_not_read_as_withheld() -> None:
    for yes in ([1, 0, 0, 1], [True, False, False, True]):
        with pytest.raises(InvalidFile, match="says yes for what is published"):
            read_pattern({"Region": CODES, "published": yes}, problem(), column="published")
