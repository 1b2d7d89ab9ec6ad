"""Exports for τ-ARGUS: read back by our reader of batch files they are the same problem; what is left out is said."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.batch_jobs import run_batch
from tablesafe.batch_jobs.export import Exported, export_tauargus
from tablesafe.cli.app import call
from tablesafe.core.errors import InvalidOption
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import read_jj
from tablesafe.job import load_job
from tablesafe.pipeline import build_problem
from tablesafe.tauargus.table import read_code_value

DIMENSIONS = """
[dimensions.nace]
hierarchy = "nace.hrc"
[dimensions.region]
[response]
value = "turnover"
"""
RULES = """
[[rules]]
rule = "p_percent"
p = 15
[[rules]]
rule = "threshold"
n = 3
range_percent = 10
"""


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """Records of firms in a hierarchy whose leaves are of different length, one group with a single part."""
    random = np.random.default_rng(7)
    n = 400
    leaf = random.choice(["A1", "A22", "B", "C1"], n, p=[0.5, 0.3, 0.15, 0.05])
    frame = pl.DataFrame(
        {
            "nace": leaf,
            "region": random.choice(["north", "süd", "w"], n, p=[0.6, 0.38, 0.02]),
            "size": random.choice(["1", "2"], n),
            "turnover": np.round(random.lognormal(3, 2, n), 1),
            "firm": [f"f{i // 2}" for i in range(n)],
            "group": [f"g{i // 5}" for i in range(n)],
            "weight": random.choice([1.0, 2.5], n),
            "effort": random.integers(1, 9, n),
        }
    )
    frame.write_csv(tmp_path / "firms.csv")
    (tmp_path / "nace.hrc").write_text("A\n@A1\n@A22\nB\nC\n@C1\n")
    return tmp_path


def job_in(office: Path, source: str = "", rest: str = RULES, dimensions: str = DIMENSIONS) -> Path:
    path = office / "job.toml"
    path.write_text(f'[source]\nfile = "firms.csv"\n{source}\n{dimensions}\n{rest}')
    return path


def read_back(exported: Exported) -> tuple[Problem, ...]:
    """The problems of a batch file, without protecting them."""
    path = exported.files[0]
    assert path.suffix == ".arb"
    kept = [line for line in path.read_bytes().splitlines() if not line.startswith((b"<SUPPRESS>", b"<WRITETABLE>"))]
    only = path.with_name("only_read.arb")
    only.write_bytes(b"\n".join(kept) + b"\n")
    return run_batch(only).problems


def assert_same(problem: Problem, back: Problem, *, costs: bool = True) -> None:
    """Every cell of `back` is that of `problem`, in value, status, levels and cost."""
    table, own = back.table, problem.table
    assert set(table.dimensions) <= set(own.dimensions)
    for cell in range(len(table)):
        codes = {name: str(column[cell]).strip() for name, column in table.code_columns().items()}
        at = own.index(**codes)
        assert table.value[cell] == own.value[at], codes
        for name in ("mask", "lower", "upper"):
            mine, theirs = getattr(problem.sensitivity, name)[at], getattr(back.sensitivity, name)[cell]
            assert theirs == pytest.approx(mine), (codes, name)
        assert back.frozen[cell] == problem.frozen[at], codes
        assert back.suppressed[cell] == problem.suppressed[at], codes
        if costs:
            assert back.cost[cell] == pytest.approx(problem.cost[at]), codes


def assert_round_trip(job: Path, folder: Path, form: str, *, costs: bool = True) -> Exported:
    exported = export_tauargus(job, folder, form=form)  # type: ignore[arg-type]
    problem = build_problem(load_job(job))
    (back,) = read_back(exported)
    assert len(back.table) == len(problem.table)
    assert problem.sensitivity.mask.any()
    assert_same(problem, back, costs=costs)
    jj = read_jj(exported.files[-1])
    assert (jj.sensitivity.mask == problem.sensitivity.mask).all()
    return exported


@pytest.mark.parametrize("form", ["records", "cells"])
def test_records_and_cells_give_the_same_problem(office: Path, form: str) -> None:
    exported = assert_round_trip(job_in(office), office / "out", form)
    endings = [path.suffix for path in exported.files]
    assert endings[0] == ".arb"
    assert {".rda", ".hrc", ".jj", ".asc" if form == "records" else ".tab"} <= set(endings)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in exported.files)
    assert stat.S_IMODE((office / "out").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("source", "rules"),
    [
        ('holding = "group"', RULES),
        ('holding = "group"', '[[rules]]\nrule = "threshold"\nn = 12\non = "holdings"\nrange_percent = 20\n'),
        ('respondent = "firm"', RULES),
        ("", '[[rules]]\nrule = "dominance"\nn = 2\nk = 85\n[[rules]]\nrule = "pq"\np = 10\nq = 50\n'),
        ("", RULES + '[[rules]]\nrule = "zero_cells"\nrange_absolute = 2.5\n'),
        ('weight = "weight"', '[[rules]]\nrule = "dominance"\nn = 3\nk = 25\nsampling_weights = "expanded"\n'),
        ("where = \"size = '1'\"", RULES),
    ],
)
def test_rules_holdings_and_weights_mean_the_same_there(office: Path, source: str, rules: str) -> None:
    assert_round_trip(job_in(office, source, rules), office / "out", "records", costs="weight" not in source)


@pytest.mark.parametrize("cost", ["value", "unit", "count", "effort"])
def test_costs_are_the_same_there(office: Path, cost: str) -> None:
    assert_round_trip(job_in(office, rest=RULES + f'[problem]\ncost = "{cost}"\n'), office / "out", "records")


def test_contributions_ranked_by_a_shadow_variable_are_read_as_its(tmp_path: Path) -> None:
    """They may add up to more than the cell, which is an error where they are taken for parts of it."""
    frame = pl.DataFrame(
        {
            "a": list("xxyyzz") * 3,
            "firm": [f"f{i}" for i in range(18)],
            "v": [5.0] * 18,
            "s": [float(i) for i in range(18)],
        }
    )
    table = ts.tabulate(frame, dimensions=["a"], value="v", respondent="firm", shadow="s", largest=3)
    problem = Problem(table, [ts.Threshold(n=8, range_percent=10)])
    exported = export_tauargus(problem, tmp_path / "out")
    assert '"a"|"v"|"v_Shadow"|"v_Cost"' in exported.files[0].read_text(encoding="utf-8")
    (back,) = read_back(exported)
    assert_same(problem, back)
    assert back.table.columns["shadow"].tolist() == pytest.approx(table.columns["shadow"].tolist())


def test_a_table_that_counts(office: Path) -> None:
    dimensions = '[dimensions.nace]\nhierarchy = "nace.hrc"\n[dimensions.region]\n'
    rules = '[[rules]]\nrule = "threshold"\nn = 5\nrange_percent = 10\n'
    for form in ("records", "cells"):
        exported = assert_round_trip(job_in(office, rest=rules, dimensions=dimensions), office / form, form)
        assert "<freq>" in exported.files[0].read_text(encoding="cp1252")


def test_missing_codes_are_as_the_job_says(office: Path) -> None:
    frame = pl.read_csv(office / "firms.csv").with_columns(
        region=pl.when(pl.int_range(pl.len()) % 9 == 0).then(None).otherwise(pl.col("region"))
    )
    frame.write_csv(office / "firms.csv")
    for missing in ("drop", "unknown"):
        dimensions = DIMENSIONS.replace("[dimensions.region]", f'[dimensions.region]\nmissing = "{missing}"')
        assert_round_trip(job_in(office, dimensions=dimensions), office / missing, "records")


def test_a_priori_information_goes_along(office: Path) -> None:
    (office / "known.hst").write_text("A1,north,P\nTotal,w,S\nB,north,U\nB,north,PL,3,4\n", encoding="utf-8")
    job = job_in(office, rest=RULES + '[problem]\napriori = "known.hst"\n')
    problem = build_problem(load_job(job))
    assert problem.frozen.any()
    exported = export_tauargus(job, office / "out")
    assert "<APRIORI>" in exported.files[0].read_text(encoding="cp1252")
    (back,) = read_back(exported)
    assert_same(problem, back)


def test_several_a_priori_files_go_along_in_their_order(office: Path) -> None:
    (office / "known.hst").write_text("A1,north,P\nB,north,U\n", encoding="utf-8")
    (office / "more.hst").write_text("B,north,PL,3,4\n", encoding="utf-8")
    job = job_in(office, rest=RULES + '[problem]\napriori = ["known.hst", "more.hst"]\n')
    problem = build_problem(load_job(job))
    assert problem.sensitivity.upper[problem.table.index(nace="B", region="north")] == 4
    exported = export_tauargus(job, office / "out")
    assert exported.files[0].read_text(encoding="cp1252").count("<APRIORI>") == 2
    (back,) = read_back(exported)
    assert_same(problem, back)


@pytest.mark.parametrize("form", ["records", "cells"])
def test_linked_tables_stay_linked(office: Path, form: str) -> None:
    dimensions = DIMENSIONS.replace("[response]", "[dimensions.size]\n[response]")
    tables = '[[tables]]\ndimensions = ["nace", "region"]\n[[tables]]\ndimensions = ["size", "nace"]\n'
    job = job_in(office, rest=tables + RULES, dimensions=dimensions)
    exported = export_tauargus(job, office / "out", form=form)  # type: ignore[arg-type]
    text = exported.files[0].read_text(encoding="cp1252")
    assert "<SUPPRESS> MOD(0," in text
    assert '(2,2,,"safe_2.csv")' in text
    problem = build_problem(load_job(job))
    found = read_back(exported)
    assert {frozenset(each.table.dimensions) for each in found} == {
        frozenset({"nace", "region"}), frozenset({"size", "nace"}),
    }  # fmt: skip
    for back in found:
        assert_same(problem, back)
    shared = {"nace"}
    totals = sum(1 for each in found for _ in range(len(each.table))) - len(problem.table)
    assert totals == len(problem.table.dimensions[shared.pop()]), "common cells are in both"


def test_response_variables_that_add_up_become_a_dimension(office: Path) -> None:
    frame = pl.read_csv(office / "firms.csv").with_columns(export=(pl.col("turnover") / 2).floor())
    frame.with_columns(home=(pl.col("turnover") - pl.col("export")).round(1)).write_csv(office / "firms.csv")
    dimensions = DIMENSIONS.replace(
        'value = "turnover"', 'value = ["home", "export"]\nequations = ["all = home + export"]'
    )
    job = job_in(office, dimensions=dimensions)
    exported = export_tauargus(job, office / "out")
    assert any("several response variables" in note for note in exported.notes)
    assert any("further dimension" in note for note in exported.notes)
    (back,) = read_back(exported)
    assert_same(build_problem(load_job(job)), back)


def test_the_batch_file_runs_and_its_release_is_safe(office: Path) -> None:
    job = job_in(office, rest=RULES + '[method]\nname = "suppress"\nalgorithm = "optimal"\ntime_limit_s = 3\n'
                 '[output]\nrelease = ["public/turnover.csv"]\n')  # fmt: skip
    exported = export_tauargus(job, office / "out")
    text = exported.files[0].read_text(encoding="cp1252")
    assert "<SUPPRESS> OPT(1,1)" in text
    assert '<WRITETABLE> (1,2,,"turnover.csv")' in text
    exported.files[0].write_text(text.replace("OPT(1,1)", "MOD(1,1,1,1,1)"), encoding="cp1252")
    result = run_batch(exported.files[0])
    assert result.safe
    assert (office / "out" / "turnover.csv").exists()


@pytest.mark.parametrize(
    ("method", "expected", "said"),
    [
        ('name = "suppress"\nalgorithm = "modular"\ntime_limit_s = 300', "MOD(1,5,1,1,1)", ""),
        ('name = "suppress"\nalgorithm = "network"', "NET(1)", ""),
        ('name = "suppress"', "MOD(1,1,1,1,1)", "'auto' has no counterpart"),
        ('name = "suppress"\nmargin = 0.1', "MOD(1,1,1,1,1)", "margin"),
        ('name = "adjust"', "CTA(1)", "no options"),
        ('name = "withhold"', None, ""),
        ('name = "none"', "MOD(1,1,1,1,1)", "'none' has no counterpart"),
    ],
)
def test_methods_become_those_of_the_same_role_or_it_is_said(
    office: Path, method: str, expected: str | None, said: str
) -> None:
    exported = export_tauargus(job_in(office, rest=f"{RULES}\n[method]\n{method}\n"), office / "out")
    text = exported.files[0].read_text(encoding="cp1252")
    assert (f"<SUPPRESS> {expected}" in text) if expected else ("<SUPPRESS>" not in text)
    assert any(said in note for note in exported.notes) or not said
    assert all(note.replace("τ-ARGUS", "tau-ARGUS") in text for note in exported.notes), "the file says so too"


def test_rounding_becomes_rounding(office: Path) -> None:
    dimensions = '[dimensions.nace]\nhierarchy = "nace.hrc"\n[dimensions.region]\n'
    rest = '[[rules]]\nrule = "threshold"\nn = 3\n[method]\nname = "round"\nbase = 5\n'
    exported = export_tauargus(job_in(office, rest=rest, dimensions=dimensions), office / "out")
    assert "<SUPPRESS> RND(1,5,0,1,0,2)" in exported.files[0].read_text(encoding="cp1252")


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ('[[rules]]\nrule = "p_percent"\np = 12.5\n', "whole percentages"),
        ('[[rules]]\nrule = "linear"\nweights = [0.1, 0]\n', "LinearSensitivity"),
        (RULES + '[[rules]]\nrule = "p_percent"\np = 5\n[[rules]]\nrule = "pq"\np = 5\nq = 20\n', "at most 2"),
        (RULES + "[problem]\nwithin_percent = 50.0\n", "bounds"),
        (RULES + '[problem]\nfrozen = [{ nace = "A1", region = "north" }]\n', "chosen"),
        (RULES + '[method]\nname = "suppress"\ncost = "inverse"\n', "'inverse'"),
    ],
)
def test_what_tau_argus_cannot_find_in_records_goes_out_as_cells_and_it_is_said(
    office: Path, rules: str, why: str
) -> None:
    job = job_in(office, rest=rules)
    exported = export_tauargus(job, office / "out")
    assert any(path.suffix == ".tab" for path in exported.files)
    assert any("finished table" in note and why in note for note in exported.notes)
    (back,) = read_back(exported)
    assert_same(build_problem(load_job(job)), back)
    with pytest.raises(InvalidOption, match=why):
        export_tauargus(job, office / "no", form="records")
    assert not (office / "no").exists()


def test_a_variable_that_is_both_a_dimension_and_the_value_goes_out_as_cells(office: Path) -> None:
    dimensions = '[dimensions.size]\n[dimensions.region]\n[response]\nvalue = "size"\n'
    job = job_in(office, dimensions=dimensions)
    exported = export_tauargus(job, office / "out")
    assert any("same name" in note for note in exported.notes)
    (back,) = read_back(exported)
    assert back.table.value.tolist() == build_problem(load_job(job)).table.value.tolist()


def a_problem() -> Problem:
    tree = Hierarchy.from_pairs([("Total", "A"), ("Total", "B"), ("A", "a"), ("A", "b")])
    frame = {
        "x": ["Total", "A", "B", "a", "b"] * 3,
        "y": ["Total"] * 5 + ["1"] * 5 + ["2"] * 5,
        "value": [60.0, 40, 20, 15, 25, 25, 20, 5, 10, 10, 35, 20, 15, 5, 15],
    }
    table = Table.from_cells(frame, dimensions={"x": tree, "y": None})
    mask = np.zeros(15, np.bool_)
    mask[8] = True
    frozen = np.zeros(15, np.bool_)
    frozen[0] = True
    given = np.zeros(15, np.bool_)
    given[9] = True
    return Problem(
        table, sensitivity=Sensitivity.of(mask, 1.5, 2.5, 5.0), frozen=frozen, suppressed=given,
        cost=np.arange(1.0, 16), upper=table.value * 2,
    )  # fmt: skip


def test_a_problem_goes_out_with_all_that_can_be_said_of_it(tmp_path: Path) -> None:
    problem = a_problem()
    exported = ts.export_tauargus(problem, tmp_path / "out", name="my table")
    assert exported.files[0].name == "my_table.arb"
    assert any("Sliding" in note for note in exported.notes)
    assert any("bounds" in note for note in exported.notes)
    (back,) = read_back(exported)
    assert_same(problem, back)
    jj = read_jj(exported.files[-1])
    assert (jj.sensitivity.sliding == problem.sensitivity.sliding).all(), "the JJ file has what the .tab has not"
    assert (jj.upper == problem.upper).all()


def test_what_is_no_product_of_trees_is_only_a_jj_file(tmp_path: Path) -> None:
    web = Hierarchy.from_equations("13 = 4 + 5; 12 = 4 + 6", name="web")
    table = Table.from_cells({"w": ["13", "12", "4", "5", "6"], "value": [3, 4, 1, 2, 3]}, dimensions={"w": web})
    named = Table.from_equations("t = a + b", {"t": 3, "a": 1, "b": 2})
    for each, why in [(table, "not a tree"), (named, "without dimensions")]:
        exported = export_tauargus(Problem(each), tmp_path / why.replace(" ", "_"))
        assert [path.suffix for path in exported.files] == [".jj"]
        assert any("only a JJ file" in note and why in note for note in exported.notes)
        assert len(read_jj(exported.files[0]).table) == len(each)


def test_codes_beyond_windows_are_said(tmp_path: Path) -> None:
    problem = Problem(Table.from_cells({"r": ["Total", "Łódź", "Ω"], "value": [3, 1, 2]}, dimensions=["r"]))
    exported = export_tauargus(problem, tmp_path / "out")
    assert any("Windows-1252" in note for note in exported.notes)
    (back,) = read_back(exported)
    assert_same(problem, back)


def test_a_dimension_called_like_a_column_of_the_format(tmp_path: Path) -> None:
    frame = {"StatusVar": ["Total", "a", "b"], "value": [3.0, 1, 2]}
    problem = Problem(Table.from_cells(frame, dimensions=["StatusVar"], response="StatusVar"))
    (back,) = read_back(export_tauargus(problem, tmp_path / "out"))
    assert back.table.value.tolist() == [3, 1, 2]


def test_an_unknown_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="auto, records or cells"):
        export_tauargus(a_problem(), tmp_path / "out", form="both")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="no rules"):
        export_tauargus(a_problem(), tmp_path / "out", form="records")


def test_the_command_says_what_it_wrote_and_what_it_left_out(office: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = job_in(office, rest=RULES + '[method]\nname = "suppress"\nmargin = 0.1\n')
    assert call(["convert", str(job), str(office / "argus"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert any(file.endswith("job.arb") for file in document["files"])
    assert any("margin" in note for note in document["notes"])
    assert call(["convert", str(job), str(office / "argus")]) == 0
    shown = capsys.readouterr()
    assert "margin" in " ".join((shown.out + shown.err).split())


def test_pytauargus_reads_what_is_exported_and_finds_the_same_primaries(office: Path) -> None:
    """The engine of τ-ARGUS itself, where TABLESAFE_PYTAUARGUS names an interpreter that has it."""
    python = os.environ.get("TABLESAFE_PYTAUARGUS")
    if not python:
        pytest.skip("pytauargus is not here: set TABLESAFE_PYTAUARGUS to an interpreter that has it")
    frame = pl.read_csv(office / "firms.csv").with_columns(pl.col("region").str.replace("süd", "south"))
    frame.write_csv(office / "firms.csv")
    job = job_in(office, 'holding = "group"')
    problem = build_problem(load_job(job))
    for form in ("records", "cells"):
        exported = export_tauargus(job, office / form, form=form)
        kept = [line for line in exported.files[0].read_text().splitlines() if not line.startswith("<WRITETABLE>")]
        path = office / form / "peer.arb"
        path.write_text("\n".join([*kept, '<WRITETABLE> (1,3,AS+,"peer.txt")', ""]))
        code = "import sys; from pytauargus.engine import run_batch; run_batch(sys.argv[1])"
        subprocess.run([python, "-c", code, str(path)], check=True, cwd=office / form)
        found = read_code_value(office / form / "peer.txt", dimensions=list(problem.table.dimensions))
        for *codes, value, status in found.filter(pl.col("value").is_not_null()).iter_rows():
            cell = problem.table.index(**dict(zip(problem.table.dimensions, codes, strict=True)))
            assert value == pytest.approx(problem.table.value[cell], abs=0.05)
            assert (3 <= int(status) <= 9) == bool(problem.sensitivity.mask[cell]), (form, codes)


@st.composite
def some_problem(draw: st.DrawFn) -> Problem:
    """A small table, perhaps with codes of a single part, negative values, zeros, and every status."""
    groups = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    pairs = []
    for g, parts in enumerate(groups):
        pairs += [("Total", f"g {g}"), *((f"g {g}", f"c{g}.{i}") for i in range(parts))]
    tree = Hierarchy.from_pairs(pairs)
    leaves = [(code, letter) for code in tree.leaves for letter in "xyz"]
    there = draw(st.lists(st.sampled_from(leaves), min_size=1, unique=True))
    values = draw(st.lists(st.integers(-50, 900), min_size=len(there), max_size=len(there)))
    frame = {"a": [c[0] for c in there], "b b": [c[1] for c in there], "v": [value / 4 for value in values]}
    table = Table.from_cells(frame, dimensions={"a": tree, "b b": None}, value="v", missing_totals="compute")
    n = len(table)
    status = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    levels = np.array(draw(st.lists(st.integers(0, 40), min_size=n, max_size=n)), dtype=np.float64) / 8
    return Problem(
        table, sensitivity=Sensitivity.of(status == 1, levels, levels[::-1].copy()), frozen=status == 2,
        suppressed=status == 3, cost=np.arange(n) / 2,
    )  # fmt: skip


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(some_problem())
def test_any_product_of_trees_goes_there_and_back(problem: Problem) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (back,) = read_back(export_tauargus(problem, folder))
    assert len(back.table) == len(problem.table)
    assert_same(problem, back)
