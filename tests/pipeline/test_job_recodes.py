"""Coarser codings of a job's dimensions: by a level, by a list of new codes, by what is collapsed."""

from __future__ import annotations

from pathlib import Path

import pytest

import tablesafe as ts
from tablesafe.core.table import Table
from tablesafe.job import load_job
from tablesafe.pipeline import build_table

RECORDS = [("A1", "1", 5), ("A1", "2", 7), ("A2", "3", 11), ("A2", "", 13), ("B1", "4", 17), ("C", "1", 19)]
HRC = "A\n@A1\n@A2\nB\n@B1\nC\n"


def table(folder: Path, act: str = "", size: str = "", *, grc: str = "") -> Table:
    lines = "".join(f"{a},{s},{v}\n" for a, s, v in RECORDS)
    (folder / "d.csv").write_text("act,size,v\n" + lines, encoding="utf-8")
    (folder / "act.hrc").write_text(HRC, encoding="utf-8")
    (folder / "r.grc").write_text(grc or "x: 1", encoding="utf-8")
    text = (
        '[source]\nfile = "d.csv"\n[response]\nvalue = "v"\n[[rules]]\nrule = "threshold"\nn = 2\n'
        f'[dimensions.act]\nhierarchy = "act.hrc"\n{act}\n[dimensions.size]\nmissing = "?"\n{size}\n'
    )
    (folder / "job.toml").write_text(text, encoding="utf-8")
    return build_table(load_job(folder / "job.toml"))


def values(found: Table, name: str) -> dict[str, float]:
    return {code: found.value[found.index(**{name: code})] for code in found.dimensions[name].codes}


def test_a_level_leaves_out_what_is_below_it(tmp_path: Path) -> None:
    found = table(tmp_path, act="level = 1")
    assert values(found, "act") == {"Total": 72, "A": 36, "B": 17, "C": 19}
    assert found.value[found.index(act="A", size="?")] == 13


def test_new_codes_take_the_place_of_old_ones(tmp_path: Path) -> None:
    found = table(tmp_path, size='recode = "r.grc"', grc="small: 1-2\nlarge: 3, 4\n")
    assert values(found, "size") == {"Total": 72, "small": 31, "large": 28, "?": 13}
    assert found.value[found.index(act="A2", size="large")] == 11


def test_what_is_collapsed_is_counted_above(tmp_path: Path) -> None:
    found = table(tmp_path, act='recode = "r.grc"', grc="<TREERECODE>\nA\n")
    assert values(found, "act") == {"Total": 72, "A": 36, "B": 17, "C": 19}
    assert values(table(tmp_path, act='recode = "r.grc"', grc="<TREERECODE>\nB\n"), "act")["A1"] == 12


def test_the_table_is_that_of_records_with_the_new_codes(tmp_path: Path) -> None:
    ours = table(tmp_path, act="level = 1", size='recode = "r.grc"', grc="s: 1-2\n")
    lines = "".join(f"{a[0]},{'s' if s in {'1', '2'} else s or '?'},{v}\n" for a, s, v in RECORDS)
    (tmp_path / "e.csv").write_text("act,size,v\n" + lines, encoding="utf-8")
    other = ts.tabulate(tmp_path / "e.csv", dimensions={"act": None, "size": None}, value="v")
    assert {frozenset(zip(t.cells()["act"], t.cells()["size"], t.value, strict=True)) for t in (ours, other)} == {
        frozenset(zip(ours.cells()["act"], ours.cells()["size"], ours.value, strict=True))
    }


@pytest.mark.parametrize(
    ("act", "size", "message"),
    [("level = 7", "", "has no level 7"), ("", "level = 1", "has no hierarchy"), ('recode = "n.grc"', "", "n.grc")],
)
def test_what_cannot_be_recoded_is_said(tmp_path: Path, act: str, size: str, message: str) -> None:
    with pytest.raises(ts.TablesafeError, match=message):
        table(tmp_path, act, size)


def test_a_finished_table_is_not_recoded(tmp_path: Path) -> None:
    table(tmp_path)
    text = (tmp_path / "job.toml").read_text(encoding="utf-8").replace('"d.csv"', '"d.csv"\nkind = "cells"')
    (tmp_path / "job.toml").write_text(text.replace('missing = "?"', "level = 1"), encoding="utf-8")
    with pytest.raises(ts.TablesafeError, match="makes a coarser table of records"):
        load_job(tmp_path / "job.toml")
