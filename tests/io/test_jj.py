"""JJ files: every benchmark instance loads, balances and round-trips; every damage is named with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tablesafe.core.errors import InvalidFile, InvalidOption
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import read_jj, write_jj

FILES = [
    *(f"jj/{name}.jj" for name in (
        "hier13", "hier13x13x13a", "hier13x7x7d", "hier16", "nine5d", "table1", "table7", "table8", "targus", "two5in6"
    )),
    *(f"bench/{name}.jj.gz" for name in (
        "2d_100", "2d_20", "2d_50", "3d_10", "3d_20", "h3_5k", "h_10k", "h_2k", "h_50k"
    )),
]  # fmt: skip

SMALL = """0
4
7 10 5 s 0 100 0 0 0
3 4 4 u 0 100 1 2 3.5
5 6 6 m 0 1e20 0 0 0
9 0 1 z 0 100 0 0 0
2
0 3 : 7 (-1) 3 (1) 5 (1)
0 2 : 7 (1) 9 (-1)
"""
BALANCED = SMALL.replace("0 2 : 7 (1) 9 (-1)", "10 2 : 7 (1) 9 (-1)")


def equations_of(problem: Problem) -> set[frozenset[tuple[str, int]]]:
    """The equations by the names of their cells; an equation and its negative are the same."""
    matrix, names = problem.table.equations, problem.table.names
    assert names is not None
    found = set()
    for row in range(matrix.shape[0]):
        span = slice(matrix.indptr[row], matrix.indptr[row + 1])
        terms = sorted((str(names[c]), int(v)) for c, v in zip(matrix.indices[span], matrix.data[span], strict=True))
        sign = 1 if terms[0][1] > 0 else -1
        found.add(frozenset((name, sign * coefficient) for name, coefficient in terms))
    return found


def assert_same(one: Problem, other: Problem) -> None:
    assert (np.asarray(one.table.names) == np.asarray(other.table.names)).all()
    for name in ("lower", "upper", "cost", "frozen", "suppressed"):
        assert (getattr(one, name) == getattr(other, name)).all(), name
    for name in ("mask", "lower", "upper", "sliding"):
        assert (getattr(one.sensitivity, name) == getattr(other.sensitivity, name)).all(), name
    assert (one.table.value == other.table.value).all()
    assert equations_of(one) == equations_of(other)


def write(folder: Path, text: str) -> Path:
    path = folder / "small.jj"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FILES)
def test_every_instance_loads_balances_and_round_trips(instances: Path, tmp_path: Path, name: str) -> None:
    problem = read_jj(instances / name)
    assert not problem.table.residual().any()
    copy = tmp_path / Path(name).name
    write_jj(problem, copy)
    assert_same(problem, read_jj(copy))


@pytest.mark.parametrize("name", ["jj/targus.jj", "jj/table1.jj", "jj/hier13.jj", "bench/h_2k.jj.gz"])
def test_what_is_read_is_what_the_file_says(instances: Path, name: str) -> None:
    data = (instances / name).read_bytes()
    lines = (gzip.decompress(data) if name.endswith(".gz") else data).decode().splitlines()
    problem = read_jj(instances / name)
    n = int(lines[1])
    for cell in range(n):
        identity, value, cost, status, *rest = lines[2 + cell].split()
        lower, upper, below, above, sliding = map(float, rest)
        assert problem.table.names is not None
        assert problem.table.names[cell] == identity
        assert problem.table.value[cell] == float(value)
        assert problem.cost[cell] == float(cost)
        assert (problem.lower[cell], problem.upper[cell]) == (lower, upper)
        assert problem.sensitivity.mask[cell] == (status == "u")
        assert problem.frozen[cell] == (status == "z")
        if status == "u":
            levels = problem.sensitivity
            assert (levels.lower[cell], levels.upper[cell], levels.sliding[cell]) == (below, above, sliding)
    m = int(lines[2 + n])
    assert problem.table.equations.shape == (m, n)
    dense = problem.table.equations.tocsr()
    for row in range(0, m, max(1, m // 200)):
        terms = lines[3 + n + row].split(":")[1].replace("(", " ").replace(")", " ").split()
        expected = {int(terms[i]): int(terms[i + 1]) for i in range(0, len(terms), 2)}
        span = slice(dense.indptr[row], dense.indptr[row + 1])
        got = dict(zip(dense.indices[span].tolist(), dense.data[span].tolist(), strict=True))
        assert got in (expected, {cell: -sign for cell, sign in expected.items()})


def test_statuses_levels_bounds_and_right_hand_sides(tmp_path: Path) -> None:
    problem = read_jj(write(tmp_path, BALANCED))
    names = np.asarray(problem.table.names)
    assert names.tolist() == ["7", "3", "5", "9", "rhs 10"]
    assert problem.sensitivity.mask.tolist() == [False, True, False, False, False]
    assert (problem.sensitivity.lower[1], problem.sensitivity.upper[1], problem.sensitivity.sliding[1]) == (1, 2, 3.5)
    assert problem.suppressed.tolist() == [False, False, True, False, False]
    assert problem.frozen.tolist() == [False, False, False, True, True]
    assert problem.upper[2] == np.inf
    assert (problem.lower[4], problem.upper[4], problem.table.value[4]) == (10, 10, 10)
    copy = tmp_path / "copy.jj"
    write_jj(problem, copy)
    text = copy.read_text()
    assert "10 2 : 7 (1) 9 (-1)" in text or "-10 2 : 7 (-1) 9 (1)" in text
    assert text.splitlines()[1] == "4", "a right-hand side is no cell"
    assert_same(problem, read_jj(copy))


@pytest.mark.parametrize(
    ("line", "total", "parts"),
    [
        ("0 3 : 7 (1) 3 (-1) 5 (-1)", "7", {"3", "5"}),
        ("0 3 : 3 (1) 5 (1) 7 (-1)", "7", {"3", "5"}),
        ("4 2 : 7 (1) 5 (-1)", "7", {"5", "rhs 4"}),
        ("10 2 : 3 (1) 5 (1)", "rhs 10", {"3", "5"}),
        ("-10 2 : 3 (-1) 5 (-1)", "rhs 10", {"3", "5"}),
    ],
)
def test_every_equation_gets_a_total_at_minus_one(tmp_path: Path, line: str, total: str, parts: set[str]) -> None:
    head, _, _ = BALANCED.partition("2\n0 3")
    problem = read_jj(write(tmp_path, head + "1\n" + line + "\n"))
    table = problem.table
    assert table.names is not None
    row = {str(table.names[c]): int(v) for c, v in zip(table.equations.indices, table.equations.data, strict=True)}
    assert table.names[table.totals[0]] == total
    assert row[total] == -1
    assert set(row) == {total, *parts}


def test_windows_line_ends_blank_lines_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    plain = read_jj(write(tmp_path, BALANCED))
    dressed = tmp_path / "dressed.jj"
    dressed.write_bytes(b"\xef\xbb\xbf" + BALANCED.replace("\n", "\r\n\r\n").encode() + b"\x1a")
    assert_same(plain, read_jj(dressed))


def test_a_table_with_dimensions_is_numbered_from_zero(tmp_path: Path) -> None:
    table = Table.from_cells(
        {"region": ["Total", "N", "S"], "value": [0.3, 0.1, 0.2]}, dimensions={"region": Hierarchy.flat(["N", "S"])}
    )
    mask = np.array([False, True, False])
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 0.05, 0.1), withheld=np.array([False, False, True]))
    write_jj(problem, tmp_path / "t.jj.gz")
    back = read_jj(tmp_path / "t.jj.gz")
    assert np.asarray(back.table.names).tolist() == ["0", "1", "2"]
    assert back.table.value.tolist() == [0.3, 0.1, 0.2]
    assert back.suppressed.tolist() == [False, False, True]
    assert back.cost.tolist() == [0.3, 0.1, 0.0], "withheld by design costs nothing"
    assert (back.upper == np.inf).all()


def test_an_infinite_bound_can_be_written_as_another_number(tmp_path: Path) -> None:
    problem = read_jj(write(tmp_path, BALANCED))
    write_jj(problem, tmp_path / "finite.jj", infinity=5000)
    assert read_jj(tmp_path / "finite.jj").upper[2] == 5000
    with pytest.raises(InvalidOption, match="larger than every value"):
        write_jj(problem, tmp_path / "finite.jj", infinity=5)


DAMAGES = {
    "empty": ("", "is empty"),
    "another file": ("a,b\n1,2\n", "line 1.*begins with the line '0'"),
    "no count": ("0\n", "number of cells should stand here"),
    "text as count": ("0\nfour\n", "line 2.*number of cells.*'four'"),
    "negative count": ("0\n-4\n", "line 2"),
    "no cells": ("0\n0\n0\n", "announces no cells"),
    "too few cells": (SMALL.replace("\n4\n", "\n5\n", 1), "line 8.*number of equations.*line 2 announces 5 cells"),
    "far too few cells": (SMALL.replace("\n4\n", "\n500\n", 1), "line 2.*500 cells.*ends sooner"),
    "too many cells": (SMALL.replace("\n4\n", "\n3\n", 1), "line 6.*number of equations.*line 2 announces 3"),
    "too few equations": (SMALL.replace("\n2\n0 3", "\n3\n0 3"), "line 7.*3 equations are announced, but 2 follow"),
    "too many equations": (SMALL.replace("\n2\n0 3", "\n1\n0 3"), "line 9.*goes on after the 1 equations"),
    "missing entry": (SMALL.replace("7 10 5 s", "7 10 s"), "line 3.*9 entries"),
    "text in a number": (SMALL.replace("3 4 4 u", "3 four 4 u"), "line 4.*value should be a number"),
    "not a number": (SMALL.replace("3 4 4 u", "3 nan 4 u"), "line 4.*value should be a number"),
    "decimal comma": (SMALL.replace("3 4 4 u", "3 4,5 4 u"), "line 4.*value should be a number.*4,5"),
    "huge": (SMALL.replace("3 4 4 u", "3 1e300 4 u"), "line 4.*too large"),
    "status": (SMALL.replace("7 10 5 s", "7 10 5 q"), "line 3.*one of u, s, z, m"),
    "id": (SMALL.replace("7 10 5 s", "x 10 5 s"), "line 3.*id of a cell is a whole number"),
    "repeated id": (SMALL.replace("9 0 1 z", "7 0 1 z"), "line 6.*cell 7 was on line 3"),
    "negative cost": (SMALL.replace("7 10 5 s", "7 10 -5 s"), "line 3.*cost is negative"),
    "negative level": (SMALL.replace("0 100 1 2 3.5", "0 100 -1 2 3.5"), "line 4.*lower level is negative"),
    "outside bounds": (SMALL.replace("7 10 5 s 0 100", "7 10 5 s 0 9"), "line 3.*outside the bounds"),
    "unknown cell": (SMALL.replace("5 (1)", "6 (1)"), "line 8.*no cell 6"),
    "cell beyond numbers": (SMALL.replace("5 (1)", "99999999999999999999 (1)"), "line 8.*no cell 9999"),
    "coefficient": (SMALL.replace("5 (1)", "5 (2)"), "line 8.*coefficient 2.*1 and -1"),
    "no coefficient": (SMALL.replace("5 (1)", "5 1"), "line 8.*is no equation"),
    "text coefficient": (SMALL.replace("5 (1)", "5 (one)"), "line 8.*coefficient one"),
    "number of terms": (SMALL.replace("0 3 :", "0 4 :"), "line 8.*4 terms are announced, 3 follow"),
    "cell twice": (SMALL.replace("5 (1)", "3 (1)"), "line 8.*cell 3 stands in it twice"),
    "no colon": (SMALL.replace("0 3 :", "0 3"), "line 8.*is no equation"),
    "right-hand side": (SMALL.replace("0 3 :", "x 3 :"), "line 8.*right-hand side should be a number"),
    "unbalanced": (SMALL, "line 9.*is off by 10"),
    "no terms": (SMALL.replace("0 2 : 7 (1) 9 (-1)", "5 0 :"), "line 9.*no terms"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_with_its_line(tmp_path: Path, damage: str) -> None:
    text, message = DAMAGES[damage]
    with pytest.raises(InvalidFile, match="(?s)small.jj.*" + message if text else message):
        read_jj(write(tmp_path, text))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="no file"):
        read_jj(tmp_path / "nowhere.jj")
    with pytest.raises(InvalidFile, match="folder"):
        read_jj(tmp_path)
    whole = gzip.compress(BALANCED.encode())
    (tmp_path / "half.jj.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidFile, match="damaged gzip"):
        read_jj(tmp_path / "half.jj.gz")
    (tmp_path / "binary.jj").write_bytes(bytes(range(256)) * 4)
    with pytest.raises(InvalidFile, match="not a text file"):
        read_jj(tmp_path / "binary.jj")


def test_nothing_is_left_when_writing_fails(tmp_path: Path) -> None:
    problem = read_jj(write(tmp_path, BALANCED))
    (tmp_path / "occupied").write_text("a file, not a folder")
    with pytest.raises(InvalidFile):
        write_jj(problem, tmp_path / "occupied" / "x.jj")
    assert {entry.name for entry in tmp_path.iterdir()} == {"small.jj", "occupied"}
