"""τ-ARGUS tables: the samples load as they are; what is written reads back; what is withheld is not in the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tablesafe.core.errors import InvalidFile, InvalidInput, InvalidOption, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.tauargus.table import read_code_value, read_tab, write_tab

META = """<SEPARATOR> ";"
region "99"
  <RECODEABLE>
  <TOTCODE> "Total"
value
  <NUMERIC>
n
  <FREQUENCY>
top
  <MAXSCORE>
cost
  <NUMERIC> <COST>
status
  <STATUS>
low
  <NUMERIC> <LOWERPL>
high
  <NUMERIC> <UPPERPL>
"""
DATA = """Total;60,5;10;20;60;S;;
N;20,5;4;20;5;U;2;3
S;40;6;10;;P;;
W;0;;;;U;;
99;-;0;-;;E;;
"""


def write(folder: Path, data: str = DATA, meta: str = META) -> Path:
    (folder / "t.rda").write_text(meta, encoding="utf-8")
    path = folder / "t.tab"
    path.write_text(data, encoding="utf-8")
    return path


def test_the_batch_example_loads(instances: Path) -> None:
    folder = instances / "tauargus" / "batch" / "ex1"
    problem = read_tab(folder / "tabdata_ex1.tab", folder / "metadata_ex1.rda")
    assert len(problem.table) == 15
    assert problem.table.value.sum() == 4 * 5146
    cell = problem.table.index(region="A", gender="female")
    assert problem.sensitive.tolist() == [cell]
    assert (problem.sensitivity.lower[cell], problem.sensitivity.upper[cell]) == (1, 1)


def test_the_table_example_does_not_add_up_and_says_so(instances: Path) -> None:
    with pytest.raises(InvalidTable, match=r"(?s)Region=Os.*3,703,896.00.*3,703,895.00.*pp.tab"):
        read_tab(instances / "tauargus" / "tableinput" / "pp.tab")


def test_the_table_example_loads_as_its_job_reads_it(instances: Path) -> None:
    """TestTable.arb: <READTABLE> 1, totals are recomputed."""
    folder = instances / "tauargus" / "tableinput"
    with pytest.warns(UserWarning, match="4 totals were not the sums"):
        problem = read_tab(folder / "pp.tab", totals="compute")
    table = problem.table
    assert len(table) == 162
    assert table.structural_zero is not None
    assert (int(table.structural_zero.sum()), len(problem.sensitive)) == (43, 9)
    cell = table.index(Size="9", Region="4")
    assert problem.sensitivity.upper[cell] == 1288.15
    assert table.largest(2)[cell].tolist() == [11401, 145]
    assert table.dimensions["Region"].labels["Os"] == "East"
    assert problem.cost[cell] == 11968
    assert table.columns["Var2_Shadow"][cell] == 11968
    assert table.count is not None
    assert table.count[cell] == 29
    assert not table.residual().any()


def test_statuses_levels_costs_and_blanks(tmp_path: Path) -> None:
    problem = read_tab(write(tmp_path))
    table = problem.table
    assert table.value.tolist() == [60.5, 20.5, 40, 0, 0]
    assert problem.sensitivity.mask.tolist() == [False, True, False, True, False]
    assert problem.sensitivity.lower.tolist() == [0, 2, 0, 0, 0]
    assert problem.sensitivity.upper.tolist() == [0, 3, 0, 0, 0]
    assert problem.frozen.tolist() == [False, False, True, False, True]
    assert problem.cost.tolist() == [60, 5, 40, 0, 0], "a cost left blank is the value"
    assert table.structural_zero is not None
    assert table.structural_zero.tolist() == [False, False, False, False, True]


def test_unsafe_cells_without_levels_get_a_range_by_hand(tmp_path: Path) -> None:
    path = write(tmp_path, DATA.replace("U;2;3", "U;;"))
    assert read_tab(path).sensitivity.upper[1] == pytest.approx(20.5 * 0.20)
    assert read_tab(path, manual_range=10).sensitivity.lower[1] == pytest.approx(2.05)
    with pytest.raises(InvalidOption, match="percentage"):
        read_tab(path, manual_range=-1)


def test_missing_totals_are_computed_when_asked(tmp_path: Path) -> None:
    meta = META.replace("top\n  <MAXSCORE>\n", "")
    path = write(tmp_path, "N;20,5;4;5;U;2;3\nS;40;6;;P;;\n", meta)
    problem = read_tab(path, totals="compute")
    assert sorted(problem.table.value.tolist()) == [20.5, 40, 60.5]
    total = problem.table.index()
    assert not problem.sensitivity.mask[total]
    assert not problem.frozen[total]
    assert problem.cost[total] == 60.5


def test_a_table_of_counts_alone_is_its_own_response(tmp_path: Path) -> None:
    meta = '<SEPARATOR> ","\nregion\n <RECODEABLE>\nn\n <FREQUENCY>\n'
    problem = read_tab(write(tmp_path, "Total,3\nN,1\nS,2\n", meta))
    assert problem.table.value.tolist() == [3, 1, 2]
    assert problem.table.count is not None
    assert problem.table.count.tolist() == [3, 1, 2]


MISTAKES = {
    "empty": ("", META, "t.tab is empty"),
    "status": (DATA.replace(";S;", ";Q;"), META, "t.tab, line 1 has the status 'Q'"),
    "unsafe and safe alike": (
        DATA,
        META.replace('";"\n', '";"\n<UNSAFE> "S"\n', 1),
        "one letter to two statuses: S safe, S",
    ),
    "empty with a value": (DATA.replace(";P;", ";E;"), META, "line 3 is marked as empty, but has a value"),
    "unsafe without a value": (DATA.replace("W;0;", "W;-;"), META, "line 4 is unsafe, but has no value"),
    "text in a number": (DATA.replace("40;", "forty;"), META, "'value' should hold numbers.*line 3 has 'forty'"),
    "not additive": (DATA.replace("60,5;", "61,5;"), META, "t.tab, line 1: .*61.5, but its parts add up to 60.5"),
    "duplicate": (DATA + "N;20,5;4;20;5;U;2;3\n", META, "stands twice"),
    "no total": (DATA.replace("Total", "M"), META, "no row for that total"),
    "negative level": (DATA.replace("U;2;3", "U;-2;3"), META, "line 2 has a negative protection level"),
    "negative cost": (DATA.replace("20;5;U", "20;-5;U"), META, "line 2 has a negative cost"),
    "large contributions": (DATA.replace("4;20;5", "4;21;5"), META, "contributions at t.tab, line 2 add up to 21"),
    "fractional count": (DATA.replace("20,5;4;", "20,5;4,5;"), META, "'n' should hold whole numbers"),
    "too few entries": (DATA.replace("40;6;", "40;"), META, "line 3: there are 7 entries"),
    "no dimension": (DATA, META.replace("  <RECODEABLE>\n", ""), "t.rda has no dimension"),
    "no response": ("N;1\n", '<SEPARATOR> ";"\nr\n<RECODEABLE>\ns\n<STATUS>\n', "0 response variables"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(tmp_path: Path, mistake: str) -> None:
    data, meta, message = MISTAKES[mistake]
    with pytest.raises(InvalidInput, match="(?s)" + message):
        read_tab(write(tmp_path, data, meta))


def test_of_several_responses_one_must_be_named(tmp_path: Path) -> None:
    meta = '<SEPARATOR> ","\nr\n <RECODEABLE>\na\n <NUMERIC>\nb\n <NUMERIC>\n'
    path = write(tmp_path, "Total,3,30\nN,1,10\nS,2,20\n", meta)
    with pytest.raises(InvalidFile, match="2 response variables \\('a', 'b'\\)"):
        read_tab(path)
    problem = read_tab(path, response="B", cost="a")
    assert problem.table.value.tolist() == [30, 10, 20]
    assert problem.cost.tolist() == [3, 1, 2]
    assert problem.table.columns["a"].tolist() == [3, 1, 2]
    with pytest.raises(InvalidFile, match="'r' is no response"):
        read_tab(path, response="r")


def small_problem() -> tuple[Problem, Release]:
    tree = Hierarchy.from_pairs([("Total", "@A"), ("Total", "B"), ("@A", " 1"), ("@A", "1")])
    flat = Hierarchy.flat(["x", "y"], name="flat")
    rows = [(c, d) for c in ("Total", "@A", "B", " 1", "1") for d in ("Total", "x", "y")]
    values = [70.5, 30.5, 40.0, 40.5, 20.5, 20.0, 30.0, 10.0, 20.0, 10.5, 10.5, 0.0, 30.0, 10.0, 20.0]
    frame = {"code": [r[0] for r in rows], "size": [r[1] for r in rows], "turnover": values, "count": list(range(15))}
    zero = [0] * 11 + [1] + [0] * 3
    table = Table.from_cells(
        {**frame, "zero": zero}, dimensions={"code": tree, "size": flat}, value="turnover", count="count",
        structural_zero="zero",
    )  # fmt: skip
    mask = np.zeros(15, np.bool_)
    mask[7] = True
    frozen = np.zeros(15, np.bool_)
    frozen[0] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.25, 2.5), frozen=frozen)
    hidden = mask.copy()
    hidden[[6, 8, 4, 3, 5]] = True
    return problem, Release.from_suppression(problem, hidden)


@pytest.mark.parametrize(("separator", "comma"), [(";", True), (",", False), ("\t", True), ("|", False)])
def test_what_is_written_as_a_table_reads_back(tmp_path: Path, separator: str, comma: bool) -> None:
    problem, _ = small_problem()
    written = write_tab(problem, tmp_path / "out.tab", separator=separator, decimal_comma=comma)
    assert all(path.is_file() for path in written)
    back = read_tab(tmp_path / "out.tab")
    assert back.table.cells().equals(problem.table.cells())
    assert list(back.table.dimensions) == list(problem.table.dimensions)
    for name, tree in problem.table.dimensions.items():
        assert back.table.dimensions[name] == tree
    for name in ("frozen", "suppressed", "cost"):
        assert (getattr(back, name) == getattr(problem, name)).all()
    for name in ("mask", "lower", "upper"):
        assert (getattr(back.sensitivity, name) == getattr(problem.sensitivity, name)).all()


def test_a_table_that_tau_argus_cannot_hold_is_refused(tmp_path: Path) -> None:
    problem, _ = small_problem()
    with pytest.raises(InvalidOption, match="separator"):
        write_tab(problem, tmp_path / "out.tab", separator=",", decimal_comma=True)
    named = Table.from_equations("t = a + b", {"t": 3, "a": 1, "b": 2})
    with pytest.raises(InvalidTable, match="without dimensions"):
        write_tab(Problem(named), tmp_path / "out.tab")
    web = Hierarchy.from_equations("13 = 4 + 5; 12 = 4 + 6", name="web")
    table = Table.from_cells({"w": ["13", "12", "4", "5", "6"], "value": [3, 4, 1, 2, 3]}, dimensions={"w": web})
    with pytest.raises(InvalidTable, match="not a tree"):
        write_tab(Problem(table), tmp_path / "out.tab")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "is empty"), ("a\nb\n", "no column of values"), ("a,b,1\na,b\n", "line 2: there are 2 entries"),
     ("N,A,S\nN,B,one\n", "should hold numbers")],
)  # fmt: skip
def test_a_damaged_code_value_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_code_value(tmp_path / "x.txt")


def test_the_printed_files_of_tau_argus_load(instances: Path) -> None:
    folder = (instances / "tauargus" / "testW").parent
    printed = read_code_value(folder / "testW" / "expected_Simple2D" / "Simple2D.txt")
    assert printed.columns == ["code 1", "code 2", "value", "status"]
    assert printed["status"].value_counts().sort("status").rows() == [("1", 98), ("11", 12), ("14", 43), ("3", 9)]
    enterprise = read_code_value(folder / "enterprise" / "expected_test_1.txt", dimensions=["act", "product"])
    assert enterprise.height == 1665
    with pytest.raises(InvalidFile, match="dimensions"):
        read_code_value(folder / "enterprise" / "expected_test_1.txt", dimensions=["a", "b", "c", "d"])
