"""A-priori information: each instruction does what it says, mistakes are named with their line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tablesafe.core.errors import InvalidFile, InvalidInput, InvalidOption, InvalidProblem, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.statuses import Scheme
from tablesafe.core.table import Table
from tablesafe.io.apriori import apply_cells
from tablesafe.tauargus.apriori import apply_hst, write_hst


def table() -> Table:
    tree = Hierarchy.from_pairs([("Total", "N"), ("Total", "S"), ("N", " 1"), ("N", " 2"), ("S", "S1")])
    rows = [(r, s) for r in ("Total", "N", " 1", " 2", "S") for s in ("Total", "a", "b")]
    values = [100, 60, 40, 70, 40, 30, 30, 30, 0, 40, 10, 30, 30, 20, 10]
    frame = {
        "region": [r for r, _ in rows],
        "size": [s for _, s in rows],
        "value": values,
        "zero": [v == 0 for v in values],
    }
    return Table.from_cells(
        frame, dimensions={"region": tree, "size": Hierarchy.flat(["a", "b"])}, structural_zero="zero"
    )


def bare() -> Problem:
    return Problem(table())


def cell(region: str = "Total", size: str = "Total") -> int:
    return table().index(region=region, size=size)


def write(folder: Path, text: str) -> Path:
    path = folder / "a.hst"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_every_instruction(tmp_path: Path, separator: str) -> None:
    lines = [
        "N;a;u",
        "1;a;U",
        " 1;a;pl;3;4.5",
        "S;a;p",
        "N;b;ml",
        "S;b;m",
        ";;c;250",
        "Total;b;w;7",
        "2;a;ab;5;",
        "2;b;ab;;99",
    ]
    problem = apply_hst(bare(), write(tmp_path, "\n".join(lines).replace(";", separator) + "\n"))
    assert set(problem.sensitive) == {cell("N", "a"), cell("1", "a")}
    assert problem.sensitivity.upper[cell("N", "a")] == 8, "20 percent by hand"
    one = cell("1", "a")
    assert (problem.sensitivity.lower[one], problem.sensitivity.upper[one]) == (3, 4.5)
    assert problem.frozen[cell("S", "a")]
    assert set(np.flatnonzero(problem.suppressed)) == {cell("N", "b"), cell("S", "b")}
    assert (problem.cost[cell()], problem.cost[cell("Total", "b")], problem.cost[cell("N")]) == (250, 7, 70)
    assert (problem.lower[cell("2", "a")], problem.upper[cell("2", "a")]) == (5, np.inf)
    assert (problem.lower[cell("2", "b")], problem.upper[cell("2", "b")]) == (-np.inf, 99)


def test_a_trivial_level_is_the_same_cell(tmp_path: Path) -> None:
    """τ-ARGUS has an option to expand these; here 'S1', the only part of 'S', is 'S'."""
    problem = apply_hst(bare(), write(tmp_path, "S1;a;u\n"))
    assert problem.sensitive.tolist() == [cell("S", "a")]


def test_safe_waives_what_a_rule_found_and_later_lines_win(tmp_path: Path) -> None:
    mask = np.zeros(15, np.bool_)
    mask[[cell("N", "a"), cell("1", "a")]] = True
    start = Problem(table(), sensitivity=Sensitivity.of(mask, 5.0))
    problem = apply_hst(start, write(tmp_path, "N;a;s\n1;a;s\n1;a;u\n2;a;u\n2;a;s\n"))
    assert problem.sensitive.tolist() == [cell("1", "a")]
    assert problem.sensitivity.upper[cell("1", "a")] == 5, "already sensitive: its levels stay"
    assert apply_hst(start, write(tmp_path, "2;a;u\n"), manual_range=50).sensitivity.upper[cell("2", "a")] == 5


def test_structural_zeros_are_left_alone_and_said_so(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="a.hst: 1 line was left out: 1 of cells that are structural zeros"):
        problem = apply_hst(bare(), write(tmp_path, "1;b;u\nN;a;u\n"))
    assert problem.sensitive.tolist() == [cell("N", "a")]


MISTAKES = {
    "empty": ("", InvalidFile, "a.hst is empty"),
    "wrong separator": ("N:a:u\n", InvalidFile, "cannot be split into 2 codes"),
    "too few entries": ("N;a;u\nN;a\n", InvalidFile, "cannot be split|line 2"),
    "unknown code": ("N;a;u\nX;a;u\n", InvalidInput, "Code 'X' of 'region' at a.hst, line 2"),
    "instruction": ("N;a;u\nN;b;q\n", InvalidFile, "line 2 has the instruction 'q'"),
    "no cost": ("N;a;c\n", InvalidFile, "line 1: 'c' must be followed by 1 number"),
    "no level": ("N;a;u\nN;a;pl\n", InvalidFile, "line 2: 'pl' must be followed by 2 numbers"),
    "a number too many": ("N;a;u;3\n", InvalidFile, "line 1: 'u' must be followed by no number"),
    "text in a number": ("N;a;c;much\n", InvalidTable, "line 1 has 'much'"),
    "negative cost": ("N;a;c;-3\n", InvalidProblem, "line 1: cell .* has a negative cost"),
    "negative level": ("N;a;u\nN;a;pl;-3;1\n", InvalidProblem, "line 2: cell .* negative protection level"),
    "levels of a safe cell": ("N;a;pl;3;1\n", InvalidProblem, "line 1: cell .* gets protection levels, but is not"),
    "bounds": ("N;a;ab;50;60\n", InvalidProblem, "line 1: cell .* lies outside its bounds"),
    "frozen and sensitive": ("N;a;u\nN;a;p\nN;b;u\n", None, ""),
    "too many entries": ("N;a;pl;1;2;3;4;5\n", InvalidFile, "line 1 has 8 entries"),
    "something after": ("N;a;ab;1;99;x\n", InvalidFile, "line 1 goes on after the second number"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, mistake: str) -> None:
    text, error, message = MISTAKES[mistake]
    path = write(tmp_path, text)
    if error is None:
        problem = apply_hst(bare(), path)
        assert problem.frozen[cell("N", "a")]
        assert problem.sensitive.tolist() == [cell("N", "b")]
        return
    with pytest.raises(error, match="(?s)" + message):
        apply_hst(bare(), path)


def test_a_cell_that_a_rule_flagged_cannot_be_protected(tmp_path: Path) -> None:
    start = Problem(table(), sensitivity=Sensitivity.of(np.arange(15) == cell("N", "a"), 5.0))
    with pytest.raises(
        InvalidProblem, match=r"a.hst, line 1: cell \(region=N, size=a\) is to be published, but is sens"
    ):
        apply_hst(start, write(tmp_path, "N;a;p\n"))
    assert apply_hst(start, write(tmp_path, "N;a;s\n")).sensitive.size == 0


def test_unknown_cells_can_be_left_out_with_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path, "N;a;u\nX;a;u\nN;zz;c;5\n")
    with pytest.warns(UserWarning, match="2 lines were left out: 2 of cells that are not in the table"):
        problem = apply_hst(bare(), path, ignore_unknown=True)
    assert problem.sensitive.tolist() == [cell("N", "a")]


def test_options_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path, "N;a;u\n")
    with pytest.raises(InvalidOption, match="percentage"):
        apply_hst(bare(), path, manual_range=101)
    with pytest.raises(InvalidOption, match="one character"):
        apply_hst(bare(), path, separator="ab")
    with pytest.raises(InvalidOption, match="separator"):
        write_hst(bare(), path, separator="1")


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    n = 15
    mask, frozen, suppressed = (np.zeros(n, np.bool_) for _ in range(3))
    mask[[4, 7]] = True
    frozen[0] = True
    suppressed[5] = True
    low, high = np.where(mask, 1.5, 0), np.where(mask, 2.25, 0)
    cost, upper = bare().cost.copy(), np.full(n, np.inf)
    cost[3], upper[9] = 1000, 41.5
    problem = Problem(
        table(),
        sensitivity=Sensitivity.of(mask, low, high),
        frozen=frozen,
        suppressed=suppressed,
        cost=cost,
        upper=upper,
    )
    write_hst(problem, tmp_path / "out.hst", separator="|")
    back = apply_hst(bare(), tmp_path / "out.hst")
    for name in ("lower", "upper", "cost", "frozen", "suppressed"):
        assert (getattr(back, name) == getattr(problem, name)).all(), name
    for name in ("mask", "lower", "upper"):
        assert (getattr(back.sensitivity, name) == getattr(problem.sensitivity, name)).all(), name


def test_sliding_levels_are_not_lost_in_silence(tmp_path: Path) -> None:
    problem = Problem(table(), sensitivity=Sensitivity.of(np.arange(15) == 4, 1.0, 1.0, 3.0))
    with pytest.raises(InvalidProblem, match="Sliding"):
        write_hst(problem, tmp_path / "out.hst")


def test_information_from_a_table(tmp_path: Path) -> None:
    text = (
        (
            "region,size,status,cost,lower level,upper_level,sliding_level,lower_bound,upper_bound,frozen\n"
            "N,a,sensitive,5,1,2,4,0,inf,\n1,a,,,,,,,,yes\nS,b,11,,,,,-inf,50,\n2,a,10,,,,,,,no\n"
        )
        .replace("11", "complementary")
        .replace("10", "frozen")
    )
    path = tmp_path / "info.csv"
    path.write_text(text)
    problem = apply_cells(bare(), path)
    at = cell("N", "a")
    assert problem.sensitive.tolist() == [at]
    levels = problem.sensitivity
    assert (levels.lower[at], levels.upper[at], levels.sliding[at]) == (1, 2, 4)
    assert (problem.cost[at], problem.lower[at], problem.upper[at]) == (5, 0, np.inf)
    assert problem.frozen[cell("1", "a")]
    assert not problem.frozen[cell("2", "a")]
    assert problem.suppressed[cell("S", "b")]
    assert (problem.lower[cell("S", "b")], problem.upper[cell("S", "b")]) == (-np.inf, 50)


@pytest.mark.parametrize("form", ["polars", "parquet", "argus"])
def test_information_from_frames(tmp_path: Path, form: str) -> None:
    frame = pl.DataFrame({"region": ["N", "S"], "size": ["a", "b"], "status": [3, 11], "cost": [None, 9.0]})
    source: object = frame
    if form == "parquet":
        frame.write_parquet(tmp_path / "f.parquet")
        source = tmp_path / "f.parquet"
    problem = apply_cells(bare(), source, scheme="tauargus" if form == "argus" else None)
    assert problem.sensitive.tolist() == [cell("N", "a")]
    assert problem.suppressed[cell("S", "b")]
    assert (problem.cost[cell("N", "a")], problem.cost[cell("S", "b")]) == (40, 9)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("region,size,cots\nN,a,5\n", InvalidInput, "(?s)column 'cots', which means nothing.*did you mean 'cost'"),
        ("region,size\nN,a\n", InvalidInput, "says nothing about its cells"),
        ("region,cost\nN,5\n", InvalidInput, "no column 'size'"),
        ("region,size,cost\nN,a,5\nN,a,6\n", InvalidTable, "line 2 and info.csv, line 3 both speak of cell"),
        ("region,size,cost\nN,c,5\n", InvalidInput, "'c' of 'size' at info.csv, line 2"),
        ("region,size,cost\nN,a,inf\n", InvalidTable, "infinite at info.csv, line 2"),
        ("region,size,cost\nN,a,x\n", InvalidTable, "line 2 has 'x'"),
        ("region,size,status\nN,a,maybe\n", InvalidFile, "line 2 has the status 'maybe'"),
        ("region,size,status\nN,a,empty\n", InvalidProblem, "line 2: cell .* is called empty, but has a value"),
    ],
)
def test_mistakes_in_a_table_are_named(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    path = tmp_path / "info.csv"
    path.write_text(text)
    with pytest.raises(error, match=message):
        apply_cells(bare(), path)


@pytest.mark.parametrize(
    ("scheme", "entry", "waived"),
    [("tauargus", "s", True), ("sdmx-conf", "F", True), ("obs-status", "A", False), ("0/1", "0", False)],
)
def test_only_a_decision_takes_away_what_a_rule_found(scheme: Scheme, entry: str, waived: bool) -> None:
    """A normal value (OBS_STATUS) or one that is not withheld (0/1) was not found to be safe by anyone."""
    at = cell("N", "a")
    problem = bare().replace(sensitivity=Sensitivity.of(np.arange(15) == at, 1.0))
    given = {"region": ["N"], "size": ["a"], "status": [entry]}
    assert apply_cells(problem, given, scheme=scheme).sensitivity.mask[at] == (not waived)
    assert apply_cells(problem, given, scheme=scheme, waive=False).sensitivity.mask[at]


def test_one_level_is_both(tmp_path: Path) -> None:
    problem = apply_hst(bare(), write(tmp_path, "N;a;u\nN;a;pl;3\n"))
    at = cell("N", "a")
    assert (problem.sensitivity.lower[at], problem.sensitivity.upper[at]) == (3, 3)


BAD = ["X;a;u", "N;a", "N;a;q", "N;a;c;much", "N;a;c;-3", "N;a;c", "N;a;u;3", "2;a;pl;3;1", "2;a;ab;50;60", "1;a;p",
       "N;a;pl;1;2;3;4", "N:a:u"]  # fmt: skip
GOOD = ["1;a;u", "1;a;pl;2;3", "S;a;p", "N;b;m", "Total;b;c;7", "2;a;ab;5;"]


@pytest.mark.parametrize("bad", BAD)
def test_lines_that_cannot_be_followed_are_left_out_if_asked(tmp_path: Path, bad: str) -> None:
    lines = "\n".join([*GOOD, bad, "S;b;c;9"]) + "\n"
    with pytest.warns(UserWarning, match=r"a.hst: 1 lines? .*left out"):
        lenient = apply_hst(bare(), write(tmp_path, lines), separator=";", ignore_errors=True)
    strict = apply_hst(bare(), write(tmp_path, "\n".join([*GOOD, "S;b;c;9"]) + "\n"))
    for name in ("lower", "upper", "cost", "frozen", "suppressed"):
        assert (getattr(lenient, name) == getattr(strict, name)).all()
    for name in ("mask", "lower", "upper"):
        assert (getattr(lenient.sensitivity, name) == getattr(strict.sensitivity, name)).all()
    with pytest.raises(InvalidInput):
        apply_hst(bare(), write(tmp_path, lines), separator=";")
