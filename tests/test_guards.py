"""Ordinary mistakes in Python are answered in words, as those in a job file are."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.cli.app import call
from tablesafe.core.errors import InvalidOption, InvalidTable, MissingExtra
from tablesafe.pipeline import inputs, running

CELLS = {"r": ["Total", "a", "b", "c"], "value": [60, 10, 20, 30], "n": [12, 1, 6, 5]}


@pytest.fixture
def table() -> ts.Table:
    """Three regions and their total."""
    return ts.Table.from_cells(CELLS, dimensions=["r"], count="n")


def test_a_single_rule_may_stand_alone(table: ts.Table) -> None:
    assert ts.Problem(table, ts.Threshold(3)).sensitivity.mask.tolist() == [False, True, False, False]


@pytest.mark.parametrize("rules", ["threshold", ["threshold"], [ts.Threshold], [3], 3, [None]])
def test_what_is_no_rule_is_refused_in_words(table: ts.Table, rules: Any) -> None:
    with pytest.raises(InvalidOption, match=r"Hint.*rules=\[ts\.Threshold"):
        ts.Problem(table, rules)


def test_the_name_of_a_method_stands_for_the_method(table: ts.Table) -> None:
    problem = ts.Problem(table, [ts.Threshold(n=3)])
    assert ts.audit(problem, ts.protect(problem, "suppress")).safe
    with pytest.raises(InvalidOption, match="suppress"):
        ts.protect(problem, "supress")
    with pytest.raises(InvalidOption, match=r"ts\.Suppress\(\)"):
        ts.protect(problem, ts.Suppress)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="problem first"):
        ts.protect(ts.Suppress(), problem)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="takes a problem"):
        ts.protect(table, ts.Suppress())  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["audit", "loss", "attack"])
def test_arguments_in_the_wrong_order(table: ts.Table, what: str) -> None:
    problem = ts.Problem(table, [ts.Threshold(n=3)])
    release = ts.protect(problem, ts.Suppress())
    function: Any = getattr(ts, what)
    with pytest.raises(InvalidOption, match="takes the problem first"):
        function(release, problem)
    with pytest.raises(InvalidOption, match="got a Table"):
        function(table, release)
    with pytest.raises(InvalidOption, match="got a ndarray"):
        function(problem, np.ones(4, np.bool_))


@pytest.mark.parametrize("tree", [{"Total": ["a", "b", "c"]}, "r.hrc", ["a", "b"], Path("r.hrc")])
def test_what_is_no_hierarchy_is_refused_in_words(tree: Any) -> None:
    makers: tuple[Any, ...] = (ts.Table.from_cells, ts.tabulate)
    for make in makers:
        with pytest.raises(InvalidOption, match=r"hierarchy of 'r' must be a Hierarchy.*\n\nHint: Hierarchy\."):
            make(pl.DataFrame(CELLS), dimensions={"r": tree})


def test_codes_of_several_levels_ask_for_a_hierarchy() -> None:
    deep = {"r": ["Total", "N", "S", "n1", "n2", "s1", "s2"], "value": [100, 30, 70, 10, 20, 30, 40]}
    with pytest.raises(InvalidTable, match="exactly 2 times their total") as caught:
        ts.Table.from_cells(deep, dimensions=["r"])
    assert "tolerance" not in str(caught.value)
    assert "hierarchy" in str(caught.value)
    uneven = {"r": ["Total", "N", "S", "n1", "n2"], "value": [100, 30, 70, 10, 20]}
    with pytest.raises(InvalidTable, match="more than their total"):
        ts.Table.from_cells(uneven, dimensions=["r"])
    with pytest.raises(InvalidTable, match="tolerance=1"):
        ts.Table.from_cells({"r": ["Total", "a", "b"], "value": [6, 2, 3]}, dimensions=["r"])


@pytest.mark.parametrize("mark", ["", "c", "x", "..", ":", "C", "*"])
def test_an_audit_reads_a_table_as_it_was_published(tmp_path: Path, mark: str) -> None:
    pl.DataFrame(CELLS).write_csv(tmp_path / "cells.csv")
    (tmp_path / "job.toml").write_text(
        '[source]\nfile = "cells.csv"\nkind = "cells"\ncount = "n"\n[dimensions.r]\n[response]\nvalue = "value"\n'
        '[[rules]]\nrule = "threshold"\nn = 3\n[method]\nname = "suppress"\n[output]\nrelease = "public/r.csv"\n'
    )
    job, pattern = str(tmp_path / "job.toml"), tmp_path / "shown.csv"
    pattern.write_text(f"r,value\nTotal,60\na,{mark}\nb,{mark}\nc,30\n")
    record = tmp_path / "record"
    assert call(["audit", job, "--pattern", str(pattern), "--record", str(record), "--quiet"]) == 0
    assert {"report.html", "findings.json", "cells.csv", "certificate.json.gz"} <= {p.name for p in record.iterdir()}
    pattern.write_text(f"r,value\nTotal,60\na,{mark}\nb,20\nc,30\n")
    report = tmp_path / "report.html"
    assert call(["audit", job, "--pattern", str(pattern), "--report", str(report), "--quiet"]) == 1
    assert report.exists()
    pattern.write_text(f"r,value\na,{mark}\nb,{mark}\n")
    assert call(["audit", job, "--pattern", str(pattern), "--complete", "no", "--quiet"]) == 0
    assert call(["audit", job, "--pattern", str(pattern), "--quiet"]) == 2
    pattern.write_text(f"r,value\nTotal,60\na,{mark}\nb,{mark}\nc,31\n")
    assert call(["audit", job, "--pattern", str(pattern), "--quiet"]) == 2


def test_files_whose_lines_end_in_a_carriage_return(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_bytes(b"who,r,v\rw1,a,1\rw2,b,2\rw3,a,4\r")
    table = ts.tabulate(tmp_path / "old.csv", dimensions=["r"], value="v", respondent="who")
    assert table.value[table.index(r="a")] == 5
    (tmp_path / "cells.csv").write_bytes(b"r,value\rTotal,3\ra,1\rb,2\r")
    assert len(ts.Table.from_cells(tmp_path / "cells.csv", dimensions=["r"])) == 3


@pytest.mark.parametrize(
    ("text", "package"),
    [('[output]\nrelease = "public/r.xlsx"\n', "xlsxwriter"), ('[run]\nexecutor = "dask"\n', "distributed")],
)
def test_packages_that_a_job_needs_are_looked_for_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, package: str
) -> None:
    pl.DataFrame(CELLS).write_csv(tmp_path / "cells.csv")
    (tmp_path / "job.toml").write_text(
        '[source]\nfile = "cells.csv"\nkind = "cells"\ncount = "n"\n[dimensions.r]\n[response]\nvalue = "value"\n'
        '[[rules]]\nrule = "threshold"\nn = 3\n[method]\nname = "suppress"\n' + text
    )
    monkeypatch.setattr(inputs, "find_spec", lambda name: None if name == package else find_spec(name))
    monkeypatch.setattr(running, "build_problem", lambda *_: pytest.fail("the work had begun"))
    with pytest.raises(MissingExtra):
        ts.run(tmp_path / "job.toml")
