"""WRITETABLE: each format is that of τ-ARGUS, line by line; what is for the public holds nothing that is withheld."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tablesafe.audit.audit import audit
from tablesafe.core.errors import InvalidOption, InvalidRelease, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.linking import link
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Rule, Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import read_jj
from tablesafe.io.patterns import read_pattern
from tablesafe.methods.adjust import Adjust
from tablesafe.methods.round import Round
from tablesafe.methods.suppress import Suppress
from tablesafe.rules.counts import Threshold
from tablesafe.rules.linear import Dominance, PPercent
from tablesafe.tabulate import tabulate
from tablesafe.tauargus.microdata import read_microdata
from tablesafe.tauargus.sheet import Kind, Layout, WriteOptions, is_whole, parse_options
from tablesafe.tauargus.table import read_code_value, read_tab
from tablesafe.tauargus.write_table import table_files, write_table
from tablesafe.work.run import OUTSIDERS, Run


def regions() -> Hierarchy:
    return Hierarchy.from_pairs([("Total", "N"), ("Total", "S"), ("N", "N1"), ("N", "N2"), ("S", "only")])


def records() -> pl.DataFrame:
    """Nine firms; region S has the single part 'only', and nobody large is in N2."""
    return pl.DataFrame(
        {
            "region": ["N1", "N1", "N1", "N1", "N2", "N2", "N2", "only", "only"],
            "size": ["small", "small", "small", "large", "small", "small", "small", "small", "large"],
            "turnover": [10.5, 20.0, 30.0, 90.0, 5.0, 6.0, 7.0, 8.0, 11.0],
        }
    )


def problem_and_release() -> tuple[Problem, Release]:
    table = tabulate(records(), dimensions={"region": regions(), "size": None}, value="turnover", largest=3)
    problem = Problem(table, [Threshold(n=2)])
    return problem, Suppress(time_limit_s=1).protect(problem, Run(attackers=OUTSIDERS))


def lines(release: Release, problem: Problem, kind: int, options: str = "") -> list[str]:
    return table_files(release, problem, "t.txt", kind, options).files[0].text.splitlines()


# -- types 1 to 3 ------------------------------------------------------------------------------------------------------


def test_every_combination_has_a_line_in_the_order_of_the_codes_and_second_names_too() -> None:
    problem, release = problem_and_release()
    shown = [line.split(",")[:2] for line in lines(release, problem, 3)]
    regions_in_order = ["Total", "N", "N1", "N2", "S", "only"]
    assert shown == [[f'"{r}"', f'"{s}"'] for r in regions_in_order for s in ("Total", "large", "small")]


def test_a_code_with_a_single_part_is_the_same_cell_under_both_names() -> None:
    problem, release = problem_and_release()
    shown = {tuple(line.split(",")[:2]): line.split(",")[2] for line in lines(release, problem, 3)}
    for size in ('"Total"', '"large"', '"small"'):
        assert shown['"S"', size] == shown['"only"', size]


def test_withheld_is_x_and_empty_is_a_dash() -> None:
    problem, release = problem_and_release()
    shown = {tuple(line.split(",")[:2]): line.split(",")[2] for line in lines(release, problem, 3)}
    assert shown['"N2"', '"large"'] == "-"
    assert {code for code, value in shown.items() if value == "x"} >= {('"only"', '"large"'), ('"only"', '"small"')}
    assert shown['"Total"', '"Total"'] == "187.5"


def test_the_options_of_a_list() -> None:
    problem, release = problem_and_release()
    assert lines(release, problem, 2)[0] == '"region","size","turnover"'
    assert lines(release, problem, 3, "FL+QU-")[0] == "region,size,turnover"
    assert len(lines(release, problem, 3, "SE+")) == len(lines(release, problem, 3)) - 1
    assert not any(line.endswith(",-") for line in lines(release, problem, 3, "SE+"))


def test_the_grid_has_a_row_per_code_of_the_first_and_a_column_per_code_of_the_second() -> None:
    problem, release = problem_and_release()
    shown = lines(release, problem, 1)
    assert shown[0] == ',"Total","large","small"'
    assert [row.split(",")[0] for row in shown[1:7]] == [f'"{r}"' for r in ("Total", "N", "N1", "N2", "S", "only")]
    assert shown[7] == "", "a block ends with an empty line"
    listed = {tuple(line.split(",")[:2]): line.split(",")[2] for line in lines(release, problem, 3)}
    for row in shown[1:7]:
        name, *values = row.split(",")
        assert values == [listed[name, size] for size in ('"Total"', '"large"', '"small"')]


def test_a_grid_of_three_dimensions_has_a_block_per_code_of_the_first() -> None:
    frame = records().with_columns(year=pl.Series(["1", "2"] * 4 + ["1"]))
    table = tabulate(frame, dimensions={"year": None, "region": None, "size": None}, value="turnover", largest=2)
    problem = Problem(table, [Threshold(n=2)])
    release = Release.from_suppression(problem, problem.sensitivity.mask)
    blocks = "\n".join(lines(release, problem, 1)).split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == ['Var 1,"Total"', 'Var 1,"1"', 'Var 1,"2"']
    assert all(block.splitlines()[1] == ',"Total","large","small"' for block in blocks)


def test_a_grid_of_one_dimension_is_one_row() -> None:
    table = tabulate(records(), dimensions={"size": None}, value="turnover", largest=2)
    problem = Problem(table)
    shown = lines(Release.from_suppression(problem, np.zeros(3, np.bool_)), problem, 1)
    assert shown == [',"Total","large","small"', ",187.5,101.0,86.5"]


def test_statuses_bring_the_true_values_and_the_file_is_private(tmp_path: Path) -> None:
    problem, release = problem_and_release()
    written = write_table(release, problem, tmp_path / "t.txt", 3, "AS+")
    assert written.confidential
    assert any("not for publication" in note for note in written.notes)
    assert stat.S_IMODE((tmp_path / "t.txt").stat().st_mode) == 0o600
    frame = read_code_value(tmp_path / "t.txt", dimensions=["region", "size"])
    status = {(r, s): (value, code) for r, s, value, code in frame.iter_rows()}
    assert status["only", "large"] == (11.0, "5"), "too few contributors"
    assert status["only", "small"] == (8.0, "5")
    assert status["N2", "large"] == (None, "14")
    assert {code for _, code in status.values()} <= {"1", "5", "11", "14"}


def test_a_release_is_readable_by_all_and_overwrites(tmp_path: Path) -> None:
    problem, release = problem_and_release()
    for _ in range(2):
        written = write_table(release, problem, tmp_path / "t.txt", 3)
    assert not written.confidential
    assert stat.S_IMODE((tmp_path / "t.txt").stat().st_mode) & 0o044


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_a_rounded_table_is_published_rounded_and_its_truth_only_on_request(kind: int) -> None:
    counts = tabulate(records(), dimensions={"region": None, "size": None})
    problem = Problem(counts, [Threshold(n=2)])
    release = Round(base=3).protect(problem)
    shown = lines(release, problem, kind)
    numbers = [entry for line in shown for entry in line.split(",") if entry.isdigit()]
    assert numbers
    assert all(int(entry) % 3 == 0 for entry in numbers)
    if kind > 1:
        with_truth = lines(release, problem, kind, "AS+FL+")
        assert with_truth[0] == '"region","size","Freq_Round","Freq_Orig"'
        assert with_truth[1] == '"Total","Total",9,9'


def test_an_adjusted_table_has_its_original_values_and_statuses_on_request() -> None:
    table = tabulate(records(), dimensions={"region": None, "size": None}, value="turnover", largest=3)
    problem = Problem(table, [PPercent(p=20)])
    release = Adjust(time_limit_s=5).protect(problem)
    shown = lines(release, problem, 3, "AS+FL+")
    assert shown[0] == '"region","size","turnover_CTA","turnover_Orig","Status"'
    statuses = {line.rsplit(",", 1)[1] for line in shown[1:]}
    assert "3" in statuses
    assert "11" in statuses, "a safe cell that was changed"
    assert not table_files(release, problem, "t", 3).confidential


# -- types 4 to 7 ------------------------------------------------------------------------------------------------------


def test_sbs_has_count_flag_and_shares_and_leaves_empty_cells_out() -> None:
    table = tabulate(records(), dimensions={"region": regions(), "size": None}, value="turnover", largest=3)
    problem = Problem(table, [PPercent(p=10), Threshold(n=3)])
    release = Suppress(time_limit_s=1).protect(problem, Run(attackers=OUTSIDERS))
    shown = lines(release, problem, 4, "HL+")
    assert len(shown) == 17, "one of eighteen combinations is empty"
    entries = {tuple(line.split(",")[:4]): line.split(",")[4:] for line in shown}
    assert entries['"Total"', "0", '"Total"', "0"][:2] == ["187.5", "9"]
    assert entries['"N1"', "2", '"large"', "0"] == ["90.0", "1", "F", "100.0", "0.0"]
    assert entries['"only"', "2", '"large"', "0"][2] == "F"
    assert entries['"N2"', "2", '"small"', "0"][2] in {"V", "D"}
    assert table_files(release, problem, "t", 4).confidential


def test_sbs_flags_dominance_by_one_or_two_and_counts_alone() -> None:
    table = tabulate(records(), dimensions={"region": None, "size": None}, value="turnover", largest=3)
    cases: list[tuple[Rule, str, int]] = [
        (Dominance(n=1, k=60), "B", 1), (Dominance(n=2, k=60), "C", 1), (Threshold(n=2), "A", 0),
    ]  # fmt: skip
    for rule, flag, shares in cases:
        problem = Problem(table, [rule])
        shown = lines(Release.from_suppression(problem, problem.sensitivity.mask), problem, 4)
        (line,) = [line for line in shown if line.startswith('"N1","large",')]
        entries = line.split(",")
        assert entries[2:5] == ["90.0", "1", flag]
        assert len(entries) == 5 + shares


def test_the_intermediate_file_reads_back_with_statuses_levels_and_costs(tmp_path: Path) -> None:
    problem, release = problem_and_release()
    written = write_table(release, problem, tmp_path / "t.tab", 5)
    assert [file.name for file in written.files] == ["t.tab", "t.rda", "t_1_region.hrc"]
    assert all(stat.S_IMODE((tmp_path / file.name).stat().st_mode) == 0o600 for file in written.files)
    first = (tmp_path / "t.tab").read_text().splitlines()[0].split(";")
    assert first == ['"Total"', '"Total"', "187.5", "9", "187.5", "187.5", "90.0", "30.0", "20.0", "S", "0.0", "0.0"]
    back = read_tab(tmp_path / "t.tab")
    assert back.table.dimensions["region"] == problem.table.dimensions["region"]
    for cell in range(len(problem.table)):
        codes = {name: column[cell] for name, column in problem.table.code_columns().items()}
        there = back.table.index(**codes)
        assert back.table.value[there] == problem.table.value[cell]
        assert back.sensitivity.mask[there] == problem.sensitivity.mask[cell]
        assert back.cost[there] == problem.cost[cell]
        assert back.suppressed[there] == (release.status[cell] == Status.COMPLEMENTARY)


def test_the_intermediate_file_without_contributors_with_holdings_and_with_the_audit() -> None:
    frame = records().with_columns(group=pl.Series(["a", "a", "b", "c", "d", "d", "d", "e", "f"]))
    table = tabulate(
        frame, dimensions={"region": regions(), "size": None}, value="turnover", holding="group", largest=3
    )
    problem = Problem(table, [Threshold(n=2)])
    release = Suppress(time_limit_s=1).protect(problem, Run(attackers=OUTSIDERS))
    short = lines(release, problem, 5, "SO+SE+")
    assert len(short) == 17
    assert short[0] == '"Total";"Total";187.5;9;187.5;S;0.0;0.0'
    assert lines(release, problem, 5, "SO+HI+")[0] == '"Total";"Total";187.5;6;187.5;S;0.0;0.0'
    findings = audit(problem, release, cells="all", insiders=False, unions=False)
    told = table_files(release, problem, "t.tab", 5, "SO+AR+", findings=findings)
    assert any("AR+" in note for note in told.notes)
    by_code = {tuple(line.split(";")[:2]): line.split(";")[8:] for line in told.files[0].text.splitlines()}
    assert by_code['"Total"', '"Total"'] == ["0"] * 6
    cell = table.index(region="only", size="large")
    at = int(np.flatnonzero(findings.cells == cell)[0])
    low, high, width = by_code['"only"', '"large"'][:3]
    assert float(low) == pytest.approx(findings.lower[at])
    assert float(high) == pytest.approx(findings.upper[at])
    assert float(width) == pytest.approx(findings.upper[at] - findings.lower[at])
    assert told.files[0].text == table_files(release, problem, "t.tab", 5, "SO+AR+").files[0].text


def test_the_jj_file_holds_the_secondaries(tmp_path: Path) -> None:
    problem, release = problem_and_release()
    write_table(release, problem, tmp_path / "t.jj", 6)
    back = read_jj(tmp_path / "t.jj")
    assert (back.sensitivity.mask == problem.sensitivity.mask).all()
    assert (back.suppressed == (release.status == Status.COMPLEMENTARY)).all()
    assert (back.table.value == problem.table.value).all()


def test_perturbed_values_with_their_originals_on_request(tmp_path: Path) -> None:
    problem, _ = problem_and_release()
    value = problem.table.value
    release = Release(
        problem.table, value + 1, value - 1, value + 3, np.full(len(value), Status.CHANGED, np.uint8), "cell key"
    )
    assert not table_files(release, problem, "t.csv", 7).confidential
    told = write_table(release, problem, tmp_path / "t.csv", 7, "AO+AD+AC+")
    assert told.confidential
    assert any("keys" in note for note in told.notes)
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == '"Total";"Total";188.5;187.5;1.0'
    assert "turnover_Diff" in (tmp_path / "t.rda").read_text()
    assert any("adds no status" in note for note in table_files(release, problem, "t", 3, "AS+").notes)


# -- what cannot be ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [(8, "", "no type 8"), ("x", "", "no type x"), (3, "ZZ+", "no option 'ZZ'"), (3, "AS", "followed by ''"),
     (3, "AS*", r"followed by '\*'"), (7, "", "suppressed cannot be written as type 7")],
)  # fmt: skip
def test_what_tau_argus_does_not_know_is_refused(kind: int, options: str, message: str) -> None:
    problem, release = problem_and_release()
    with pytest.raises(InvalidOption, match=message):
        table_files(release, problem, "t", kind, options)


def test_formats_that_do_not_fit_the_method_are_refused() -> None:
    problem = Problem(tabulate(records(), dimensions={"region": None, "size": None}), [Threshold(n=2)])
    release = Round(base=3).protect(problem)
    with pytest.raises(InvalidOption, match="rounded cannot be written as type 6"):
        table_files(release, problem, "t", 6)
    other = Problem(tabulate(records(), dimensions={"size": None}))
    with pytest.raises(InvalidRelease, match="different cells"):
        table_files(release, other, "t", 3)


def test_an_option_that_says_nothing_to_a_format_is_told() -> None:
    problem, release = problem_and_release()
    assert table_files(release, problem, "t", 1, "AS+SE+").notes == (
        "AS+ says nothing to a file of type 1.", "SE+ says nothing to a file of type 1.",
    )  # fmt: skip
    assert table_files(release, problem, "t", 1, "AS-").notes == ()
    assert parse_options(" as+ se- ") == WriteOptions(AS=True, SE=False)


def test_a_table_without_dimensions_can_only_be_jj() -> None:
    named = Table.from_equations("t = a + b", {"t": 3, "a": 1, "b": 2})
    problem = Problem(named)
    release = Release.from_suppression(problem, np.zeros(3, np.bool_))
    for kind in (1, 2, 3, 4, 5):
        with pytest.raises(InvalidTable, match="without dimensions"):
            table_files(release, problem, "t", kind)
    assert table_files(release, problem, "t", 6).files[0].text.startswith("0\n3\n")


def test_codes_that_a_format_cannot_tell_apart_are_refused() -> None:
    frame = {"a,b": ["Total", "x,y", "z"], "value": [3, 1, 2]}
    problem = Problem(Table.from_cells(frame, dimensions=["a,b"]))
    release = Release.from_suppression(problem, np.zeros(3, np.bool_))
    assert lines(release, problem, 3)[1] == '"x,y",1'
    with pytest.raises(InvalidTable, match=r"(?s)'x,y'.*QU\+"):
        table_files(release, problem, "t", 3, "QU-")


def test_a_linked_table_shows_no_dash_where_it_has_no_cell() -> None:
    """Combinations that belong to neither table are not empty: nobody says anything about them."""
    frame = records().with_columns(year=pl.Series(["1", "2"] * 4 + ["1"]))
    one = tabulate(frame, dimensions={"region": None, "size": None}, value="turnover", largest=2)
    other = tabulate(frame, dimensions={"region": None, "year": None}, value="turnover", largest=2)
    table = link([one, other])
    assert is_whole(one)
    assert not is_whole(table)
    problem = Problem(table)
    release = Release.from_suppression(problem, np.zeros(len(table), np.bool_))
    assert len(lines(release, problem, 3)) == len(table)
    assert ",-" not in "\n".join(lines(release, problem, 1))


def test_a_table_too_large_for_all_combinations_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, release = problem_and_release()
    monkeypatch.setattr("tablesafe.tauargus.sheet.MOST_LINES", 10)
    with pytest.raises(InvalidOption, match=r"(?s)18 combinations.*SE\+"):
        table_files(release, problem, "t", 3)
    assert len(lines(release, problem, 3, "SE+")) == 17


# -- against τ-ARGUS's own files ---------------------------------------------------------------------------------------


def printed(release: Release, problem: Problem, widths: dict[str, int]) -> list[str]:
    told = table_files(release, problem, "t", Kind.CODE_VALUE, "AS+", decimals=2, widths=widths)
    return told.files[0].text.splitlines()


def without_choice(line: str) -> str:
    """A printed line in which a cell that is safe and one that is withheld for another look the same."""
    rest, _, status = line.rpartition(",")
    return f"{rest},{'1' if status == '11' else status}"


def test_simple2d_is_printed_as_tau_argus_printed_it(instances: Path) -> None:
    folder = instances / "tauargus" / "testW"
    data = read_microdata(folder / "tau_testW.asc", dimensions=["Size", "Region"])
    table = tabulate(data.frame, dimensions=data.dimensions, value="Var2", largest=2)
    problem = Problem(table, [PPercent(p=15)])
    release = Release.from_suppression(problem, problem.sensitivity.mask)
    expected = (folder / "expected_Simple2D" / "Simple2D.txt").read_text().splitlines()
    ours = printed(release, problem, {"Size": 2})
    assert [without_choice(line) for line in ours] == [without_choice(line) for line in expected]


def test_the_enterprises_are_printed_as_tau_argus_printed_them(instances: Path) -> None:
    """Except code "00": there missing codes were safe."""
    folder = instances / "tauargus" / "enterprise"
    data = read_microdata(folder / "example_enterprise.asc", dimensions=["act", "product"])
    table = tabulate(data.frame, dimensions=data.dimensions, value="turnover", holding=data.holding, largest=2)
    problem = Problem(table, [PPercent(p=10)])
    release = Release.from_suppression(problem, problem.sensitivity.mask)
    expected = (folder / "expected_test_1.txt").read_text().splitlines()
    ours = printed(release, problem, {"product": 2})
    known = [line for line in expected if not line.startswith('"00"')]
    assert [without_choice(line) for line in ours if not line.startswith('"00"')] == list(map(without_choice, known))


def test_every_format_is_byte_by_byte_that_of_pytauargus(instances: Path, tmp_path: Path) -> None:
    """The engine of τ-ARGUS itself, where TABLESAFE_PYTAUARGUS names an interpreter that has it."""
    python = os.environ.get("TABLESAFE_PYTAUARGUS")
    if not python:
        pytest.skip("pytauargus is not here: set TABLESAFE_PYTAUARGUS to an interpreter that has it")
    folder = instances / "tauargus" / "testW"
    for name in ("tau_testW.asc", "Tau_TestW.rda", "region2.hrc", "region.cdl"):
        shutil.copy(folder / name, tmp_path / name)
    asked = [(1, ""), (2, ""), (2, "SE+"), (3, "AS+"), (3, "SE+"), (4, ""), (4, "HL+")]
    head = ['<OPENMICRODATA> "tau_testW.asc"', '<OPENMETADATA> "Tau_TestW.rda"']
    head += ['<SPECIFYTABLE> "Size""Region""Year"|"Var2"||', "<SAFETYRULE> P(15,1)|FREQ(3,10)", "<READMICRODATA>"]
    writes = [f'<WRITETABLE> (1,{kind},{options},"{i}.txt")' for i, (kind, options) in enumerate(asked)]
    (tmp_path / "job.arb").write_text("\n".join([*head, "<SUPPRESS> MOD(1,1,1,1,1)", *writes, ""]))
    code = "import sys; from pytauargus.engine import run_batch; run_batch(sys.argv[1])"
    subprocess.run([python, "-c", code, str(tmp_path / "job.arb")], check=True, cwd=tmp_path)
    data = read_microdata(tmp_path / "tau_testW.asc", dimensions=["Size", "Region", "Year"])
    trees = {name: data.dimensions[name] for name in ("Size", "Region", "Year")}
    table = tabulate(data.frame, dimensions=trees, value="Var2", largest=2)
    problem = Problem(table, [PPercent(p=15), Threshold(n=3, range_percent=10)])
    release = Release.from_suppression(problem, read_pattern(tmp_path / "3.txt", problem))
    for i, (kind, options) in enumerate(asked):
        told = table_files(release, problem, "t", kind, options, decimals=2, widths={"Size": 2, "Year": 2})
        assert told.files[0].text.splitlines() == (tmp_path / f"{i}.txt").read_text().splitlines(), (kind, options)


# -- properties --------------------------------------------------------------------------------------------------------


@st.composite
def some_release(draw: st.DrawFn) -> tuple[Problem, Release]:
    """A small table with distinct values, some of them withheld, some codes with a single part."""
    first = draw(st.sampled_from([[2], [1, 2], [3, 1], [2, 2, 1]]))
    pairs = []
    for g, parts in enumerate(first):
        pairs += [("Total", f"g{g}"), *((f"g{g}", f"c{g}{i}") for i in range(parts))]
    tree = Hierarchy.from_pairs(pairs)
    leaves = [(tree.aliases and next((a for a, c in tree.aliases.items() if c == code), code)) or code
              for code in tree.leaves]  # fmt: skip
    cells = [(a, b) for a in leaves for b in ("x", "y")]
    there = draw(st.lists(st.sampled_from(cells), min_size=1, unique=True))
    values = draw(st.permutations([1009 * (i + 1) + i * i for i in range(len(there))]))
    frame = {"a": [c[0] for c in there], "b": [c[1] for c in there], "v": [float(v) for v in values]}
    table = tabulate(frame, dimensions={"a": tree, "b": None}, value="v", largest=2)
    n = len(table)
    mask = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    hidden = mask | np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0))
    return problem, Release.from_suppression(problem, hidden)


QUICK = settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(some_release())
def test_what_is_for_the_public_holds_no_withheld_value(drawn: tuple[Problem, Release]) -> None:
    problem, release = drawn
    secret = {f"{value:.0f}" for value in problem.table.value[release.suppressed]}
    secret -= {f"{value:.0f}" for value in problem.table.value[~release.suppressed]}
    for kind in (1, 2, 3):
        written = table_files(release, problem, "t", kind)
        assert not written.confidential
        shown = {entry for line in written.files[0].text.splitlines() for entry in line.split(",")}
        assert not shown & secret


@QUICK
@given(some_release())
def test_a_list_says_of_every_cell_what_the_release_says(drawn: tuple[Problem, Release]) -> None:
    problem, release = drawn
    layout = Layout.of(problem.table, lines="combinations")
    shown = [line.split(",")[2] for line in lines(release, problem, 3)]
    assert len(shown) == len(layout.cell)
    assert set(layout.cell[layout.cell >= 0]) == set(range(len(problem.table)))
    for cell, entry in zip(layout.cell.tolist(), shown, strict=True):
        if cell < 0:
            assert entry == "-"
        elif release.suppressed[cell]:
            assert entry == "x"
        else:
            assert float(entry) == release.values[cell]


@QUICK
@given(some_release(), st.sampled_from([(4, ""), (5, ""), (6, ""), (2, "AS+"), (3, "AS+")]))
def test_whatever_holds_the_truth_is_marked_confidential(
    drawn: tuple[Problem, Release], asked: tuple[int, str]
) -> None:
    problem, release = drawn
    assert all(file.confidential for file in table_files(release, problem, "t.tab", *asked).files)


def test_the_formats_do_not_depend_on_the_order_of_cells() -> None:
    problem, release = problem_and_release()
    table = problem.table
    order = np.random.default_rng(1).permutation(len(table))
    shuffled: Callable[[np.ndarray], np.ndarray] = lambda column: column[order]  # noqa: E731
    assert table.count is not None
    assert table.contributors is not None
    other = Table.from_codes(
        shuffled(table.codes), shuffled(table.value), table.dimensions, count=shuffled(table.count),
        contributors=table.contributors.take(order), response=table.response,
    )  # fmt: skip
    again = Problem(other, [Threshold(n=2)])
    same = Release.from_suppression(again, shuffled(release.suppressed))
    for kind in (1, 2, 3, 4):
        assert lines(same, again, kind) == lines(release, problem, kind)
