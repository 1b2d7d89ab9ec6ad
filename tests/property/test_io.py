"""Files hold what was written to them, whatever it was; and no file, however damaged, breaks a reader."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from tablesafe.core.errors import TablesafeError
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.apriori import apply_cells
from tablesafe.io.frames import read_frame, write_cells, write_release
from tablesafe.io.jj import read_jj, write_jj
from tablesafe.io.patterns import read_pattern
from tablesafe.tauargus.apriori import apply_hst, write_hst
from tablesafe.tauargus.codes import read_code_list
from tablesafe.tauargus.metadata import CellKey, Metadata, Role, Variable, read_metadata, write_metadata
from tablesafe.tauargus.microdata import read_microdata
from tablesafe.tauargus.table import read_code_value, read_tab, write_tab
from tablesafe.tauargus.write_table import write_table

WHOLE = settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])

CODE = st.text(st.sampled_from("abcXYZ019.-@ÄÉ&'"), min_size=1, max_size=5)


@st.composite
def trees(draw: st.DrawFn, *, code: st.SearchStrategy[str] = CODE) -> Hierarchy:
    """A tree of up to three levels; some groups have one member."""
    codes = draw(st.lists(code, min_size=2, max_size=9, unique_by=lambda c: c.strip()))
    assume("Total" not in codes)
    pairs = []
    for i, own in enumerate(codes):
        parent = draw(st.integers(-1, min(i - 1, 3)))
        pairs.append(("Total" if parent < 0 else codes[parent], own))
    return Hierarchy.from_pairs(pairs, total="Total")


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """A table of one or two dimensions with everything that a problem can say about its cells."""
    dimensions = {name: draw(trees()) for name in draw(st.sampled_from([["a"], ["a", "b c"]]))}
    leaves = [tree.leaves for tree in dimensions.values()]
    combinations = np.stack([grid.ravel() for grid in np.meshgrid(*map(np.array, leaves), indexing="ij")], axis=1)
    decimals = draw(st.integers(0, 3))
    low = draw(st.sampled_from([0, 0, -50]))
    n = len(combinations)
    values = np.array(draw(st.lists(st.integers(low, 10**6), min_size=n, max_size=n))) / 10**decimals
    frame = {name: combinations[:, d].tolist() for d, name in enumerate(dimensions)}
    counts = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    table = Table.from_cells(
        {**frame, "value": values, "count": counts}, dimensions=dimensions, count="count", missing_totals="compute"
    )
    return draw(about(table))


@st.composite
def about(draw: st.DrawFn, table: Table) -> Problem:
    """Statuses, levels, costs and bounds for the cells of a table."""
    n = len(table)
    status = np.array(draw(st.lists(st.sampled_from("ssssumz"), min_size=n, max_size=n)))
    amounts = st.one_of(st.integers(0, 1000).map(float), st.floats(0, 1e6, allow_subnormal=False))
    level = np.array(draw(st.lists(amounts, min_size=2 * n, max_size=2 * n))).reshape(2, n)
    cost = np.array(draw(st.lists(amounts, min_size=n, max_size=n)))
    room = np.array(draw(st.lists(st.sampled_from([0.0, 1.0, 2.5, np.inf]), min_size=2 * n, max_size=2 * n))).reshape(
        2, n
    )
    return Problem(
        table,
        sensitivity=Sensitivity.of(status == "u", level[0], level[1]),
        lower=table.value - room[0],
        upper=table.value + room[1],
        cost=cost,
        frozen=status == "z",
        suppressed=status == "m",
    )


def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def assert_same_cells(one: Problem, other: Problem, *, bounds: bool = True) -> None:
    assert (one.table.value == other.table.value).all()
    for name in ("cost", "frozen", "suppressed", *(("lower", "upper") if bounds else ())):
        assert (getattr(one, name) == getattr(other, name)).all(), name
    for name in ("mask", "lower", "upper"):
        assert (getattr(one.sensitivity, name) == getattr(other.sensitivity, name)).all(), name


# -- round trips -------------------------------------------------------------------------------------------------------


@WHOLE
@given(problems())
def test_a_problem_survives_jj(problem: Problem) -> None:
    with folder() as at:
        path = Path(at) / "p.jj"
        write_jj(problem, path)
        back = read_jj(path)
    assert_same_cells(problem, back)
    assert abs(problem.table.equations - back.table.equations).nnz == 0
    assert (problem.table.totals == back.table.totals).all()


@WHOLE
@given(st.data())
def test_equations_of_any_sign_and_right_hand_side_survive_jj(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 6))
    ids = data.draw(st.lists(st.integers(-50, 50), min_size=n, max_size=n, unique=True))
    values = data.draw(st.lists(st.integers(-20, 20), min_size=n, max_size=n))
    signs = st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n).filter(any)
    rows = data.draw(st.lists(signs, min_size=1, max_size=4))
    lines = ["0", str(n)]
    lines += [f"{i} {v} 1 s -100 100 0 0 0" for i, v in zip(ids, values, strict=True)]
    lines.append(str(len(rows)))
    for row in rows:
        terms = [f"{i} ({c})" for i, c in zip(ids, row, strict=True) if c]
        lines.append(f"{int(np.dot(row, values))} {len(terms)} : {' '.join(terms)}")
    with folder() as at:
        path, copy = Path(at) / "p.jj", Path(at) / "q.jj"
        path.write_text("\n".join(lines))
        problem = read_jj(path)
        write_jj(problem, copy)
        assert_same_cells(problem, read_jj(copy))
        written = copy.read_text().splitlines()
    table = problem.table
    assert (table.equations.toarray()[np.arange(len(rows)), table.totals] == -1).all()
    assert np.asarray(table.names).tolist()[:n] == [str(i) for i in ids]
    for row, line in zip(rows, written[3 + n :], strict=True):
        head, terms = line.split(":")
        found = {int(t.split(" (")[0]): int(t.split("(")[1]) for t in terms.strip().rstrip(")").split(") ")}
        expected = {i: c for i, c in zip(ids, row, strict=True) if c}
        sign = 1 if found == expected else -1
        assert {i: sign * c for i, c in found.items()} == expected
        assert sign * float(head.split()[0]) == np.dot(row, values)


@WHOLE
@given(trees(code=st.one_of(CODE, CODE.map(lambda c: " " + c))), st.sampled_from(["@", "  ", "#+"]))
def test_a_hierarchy_survives_hrc(tree: Hierarchy, indent: str) -> None:
    assume(not any(code.startswith(indent[0]) for code in (*tree.codes, *tree.aliases)))
    with folder() as at:
        path = Path(at) / "t.hrc"
        tree.to_hrc(path, indent=indent)
        back = Hierarchy.from_hrc(path, indent=indent)
    assert back == tree
    assert set(back.aliases) == set(tree.aliases)


@WHOLE
@given(problems(), st.sampled_from([(";", True), (",", False), ("\t", False)]))
def test_a_problem_survives_tab(problem: Problem, form: tuple[str, bool]) -> None:
    separator, comma = form
    with folder() as at:
        path = Path(at) / "p.tab"
        write_tab(problem, path, separator=separator, decimal_comma=comma)
        back = read_tab(path)
    assert_same_cells(problem, back, bounds=False)
    assert (problem.table.codes == back.table.codes).all()
    assert (problem.table.count == back.table.count).all()
    for name, tree in problem.table.dimensions.items():
        assert back.table.dimensions[name] == tree


@WHOLE
@given(problems())
def test_a_problem_survives_hst(problem: Problem) -> None:
    bare = Problem(problem.table)
    with folder() as at:
        path = Path(at) / "p.hst"
        write_hst(problem, path)
        assume(path.read_text())
        back = apply_hst(bare, path)
    assert_same_cells(problem, back)


@WHOLE
@given(problems(), st.sampled_from([".csv", ".parquet"]))
def test_information_about_cells_survives_a_table(problem: Problem, ending: str) -> None:
    frame = pl.DataFrame(
        {
            **problem.table.code_columns(),
            "status": np.select([problem.sensitivity.mask, problem.suppressed, problem.frozen], ["u", "m", "p"], "s"),
            "cost": problem.cost,
            "lower_level": problem.sensitivity.lower,
            "upper_level": problem.sensitivity.upper,
            "lower_bound": problem.lower,
            "upper_bound": problem.upper,
        }
    )
    with folder() as at:
        path = Path(at) / f"p{ending}"
        frame.write_csv(path) if ending == ".csv" else frame.write_parquet(path)
        back = apply_cells(Problem(problem.table), path, scheme="tauargus")
    assert_same_cells(problem, back)


@WHOLE
@given(problems(), st.sampled_from([".csv", ".parquet", ".xlsx"]))
def test_cells_survive_every_kind_of_file(problem: Problem, ending: str) -> None:
    table = problem.table
    with folder() as at:
        path = Path(at) / f"cells{ending}"
        write_cells(table, path)
        back = Table.from_cells(read_frame(path), dimensions=table.dimensions, value="value", count="count")
    assert (back.value == table.value).all()
    assert (back.codes == table.codes).all()
    assert (back.count == table.count).all()


@WHOLE
@given(problems(), st.data(), st.sampled_from(["p.csv", "p.parquet", "p.txt", "p.jj"]))
def test_a_pattern_survives_every_kind_of_file(problem: Problem, data: st.DataObject, name: str) -> None:
    n = len(problem.table)
    hidden = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n))) & ~problem.frozen
    release = Release.from_suppression(problem, hidden)
    with folder() as at:
        path = Path(at) / name
        if name == "p.txt":
            write_table(release, problem, path, 3, "AS+")
            mask = read_pattern(path, problem, scheme="tauargus")
        elif name == "p.jj":
            none = Sensitivity.none(n)
            write_jj(problem.replace(sensitivity=none, suppressed=hidden), path)
            mask = read_pattern(path, problem)
        else:
            write_release(release, path)
            mask = read_pattern(path, problem)
    assert (mask == hidden).all()


NAME = st.text(st.sampled_from("abÄ_ 1"), min_size=1, max_size=6).filter(str.strip)
WORD = st.text(st.sampled_from("abc xyz19.\\/"), min_size=1, max_size=8).filter(str.strip)


@st.composite
def metadata(draw: st.DrawFn) -> Metadata:
    kind = draw(st.sampled_from(["micro", "table"]))
    free = kind == "table" or draw(st.booleans())
    micro = [Role.DIMENSION, Role.RESPONSE, Role.DIMENSION_AND_RESPONSE, Role.OTHER, Role.REQUEST]
    table = [Role.DIMENSION, Role.RESPONSE, Role.SHADOW, Role.COST, Role.LARGEST, Role.OTHER]
    names = draw(st.lists(NAME, min_size=1, max_size=5, unique_by=lambda name: name.lower()))
    variables = []
    for name in names:
        role = draw(st.sampled_from(micro if kind == "micro" else table))
        dimension = role in {Role.DIMENSION, Role.DIMENSION_AND_RESPONSE}
        file = draw(st.none() | WORD) if dimension else None
        key = CellKey(method="T", top=2, parity=True, scaling="F", parameters=(0.5, 1e-5)) if kind == "micro" else None
        variables.append(
            Variable(
                name=name,
                role=role,
                start=None if free else draw(st.integers(1, 99)),
                width=None if kind == "table" else draw(st.integers(1, 99)),
                missing=tuple(draw(st.lists(WORD, max_size=2))),
                decimals=draw(st.integers(0, 9)),
                total=draw(WORD) if dimension else "Total",
                hierarchical=file is not None,
                hierarchy_file=file,
                indent="@" if file is not None else ".",
                code_list=draw(st.none() | WORD),
                distance=tuple(draw(st.lists(st.integers(0, 99), max_size=5))),
                request=tuple(draw(st.lists(WORD, max_size=2))) if role is Role.REQUEST else (),
                cell_key=key if role is Role.RESPONSE else None,
            )
        )
    return Metadata(
        variables=tuple(variables),
        kind="micro" if kind == "micro" else "table",
        separator=draw(st.sampled_from(",;|\t")) if free else None,
        safe=draw(st.sampled_from("SX")) if kind == "table" else "S",
    )


@WHOLE
@given(metadata())
def test_metadata_survive_rda(given_metadata: Metadata) -> None:
    with folder() as at:
        path = Path(at) / "m.rda"
        write_metadata(given_metadata, path)
        assert read_metadata(path, kind=given_metadata.kind) == given_metadata


@WHOLE
@given(st.data())
def test_fixed_and_free_format_hold_the_same_records(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 8))
    codes = data.draw(st.lists(st.sampled_from(["1", "2", "10", "99"]), min_size=n, max_size=n))
    cents = data.draw(st.lists(st.none() | st.integers(0, 10**6), min_size=n, max_size=n))
    numbers = ["" if c is None else f"{c / 100:.2f}" for c in cents]
    with folder() as at:
        fixed, free = Path(at) / "fixed.asc", Path(at) / "free.asc"
        fixed.write_text("".join(f"{c:>3}x{v:>9}\n" for c, v in zip(codes, numbers, strict=True)))
        free.write_text("".join(f'"{c}";x;{v}\n' for c, v in zip(codes, numbers, strict=True)))
        body = "r{} 99\n <RECODEABLE>\nx{}\nv{}\n <NUMERIC> <DECIMALS> 2\n"
        fixed.with_suffix(".rda").write_text(body.format(" 1 3", " 4 1", " 5 9"))
        free.with_suffix(".rda").write_text('<SEPARATOR> ";"\n' + body.format(" 3", " 1", " 9"))
        one, other = read_microdata(fixed), read_microdata(free)
    assert one.frame.equals(other.frame)
    assert one.dimensions["r"] == other.dimensions["r"]
    assert one.frame["v"].to_list() == [None if c is None else float(f"{c / 100:.2f}") for c in cents]
    assert one.frame["r"].to_list() == codes


# -- damage ------------------------------------------------------------------------------------------------------------

RDA = """<SEPARATOR> ","
r
 <RECODEABLE>
 <TOTCODE> "Total"
v
 <NUMERIC>
n
 <FREQUENCY>
s
 <STATUS>
l
 <NUMERIC> <LOWERPL>
"""
TAB = "Total,30.5,5,S,\nA,10.5,2,U,1\nB,20,3,P,\n"
MICRO = """r 1 2 99
 <RECODEABLE> <HIERARCHICAL>
 <HIERCODELIST> "h.hrc" <HIERLEADSTRING> "@"
v 3 6
 <NUMERIC> <DECIMALS> 2
w 9 3
 <WEIGHT>
"""
RECORDS = "A1 10.50  1\nB   2.25  2\n99     7  1\n"
HRC = "A\n@A1\n@A2\nB\n"
JJ = """0
3
0 30 30 s 0 100 0 0 0
1 10 10 u 0 100 1 1 0
2 20 20 m 0 1e20 0 0 0
2
0 3 : 0 (-1) 1 (1) 2 (1)
20 1 : 2 (1)
"""
HST = "A;u\nA;pl;1;2\nB;c;5\n;p\nB;ab;0;\n"
PATTERN = "r,value,status\nTotal,30,1\nA,10,3\nB,20,11\n"
CELLS = "r,status,cost,lower_level,upper_bound\nA,u,5,1,\nB,s,2,,inf\n"
LABELS = "A,First\nB,Second\n"
CODES = '"Total",30.50,1\n"A",10.50,3\n"B",20.00,11\n"C",-,14\n'


def simple() -> Problem:
    return Problem(Table.from_cells({"r": ["Total", "A", "B"], "value": [30, 10, 20]}, dimensions=["r"]))


def _micro(at: Path) -> Any:
    (at / "h.hrc").write_text(HRC) if not (at / "h.hrc").exists() else None
    return read_microdata(at / "d.asc", at / "d.rda")


READERS: dict[str, tuple[dict[str, str], str, Callable[[Path], Any]]] = {
    "jj": ({"x.jj": JJ}, "x.jj", lambda at: read_jj(at / "x.jj")),
    "hrc": ({"x.hrc": HRC}, "x.hrc", lambda at: Hierarchy.from_hrc(at / "x.hrc")),
    "rda of microdata": ({"x.rda": MICRO}, "x.rda", lambda at: read_metadata(at / "x.rda")),
    "rda of a table": ({"x.rda": RDA}, "x.rda", lambda at: read_metadata(at / "x.rda", kind="table")),
    "cdl": ({"x.cdl": LABELS}, "x.cdl", lambda at: read_code_list(at / "x.cdl")),
    "asc": ({"d.rda": MICRO, "d.asc": RECORDS}, "d.asc", _micro),
    "asc with its rda": ({"d.asc": RECORDS, "d.rda": MICRO}, "d.rda", _micro),
    "asc with its hrc": ({"d.asc": RECORDS, "d.rda": MICRO, "h.hrc": HRC}, "h.hrc", _micro),
    "tab": ({"t.rda": RDA, "t.tab": TAB}, "t.tab", lambda at: read_tab(at / "t.tab")),
    "tab, recomputed": ({"t.rda": RDA, "t.tab": TAB}, "t.tab", lambda at: read_tab(at / "t.tab", totals="compute")),
    "tab with its rda": ({"t.tab": TAB, "t.rda": RDA}, "t.rda", lambda at: read_tab(at / "t.tab")),
    "hst": ({"x.hst": HST}, "x.hst", lambda at: apply_hst(simple(), at / "x.hst")),
    "hst, ignoring": ({"x.hst": HST}, "x.hst", lambda at: apply_hst(simple(), at / "x.hst", ignore_unknown=True)),
    "pattern": ({"x.csv": PATTERN}, "x.csv", lambda at: read_pattern(at / "x.csv", simple())),
    "pattern of τ-ARGUS": ({"x.txt": CODES}, "x.txt", lambda at: read_pattern(at / "x.txt", simple(), complete=False)),
    "pattern as jj": ({"x.jj": JJ}, "x.jj", lambda at: read_pattern(at / "x.jj", simple())),
    "code value": ({"x.txt": CODES}, "x.txt", lambda at: read_code_value(at / "x.txt")),
    "cells": ({"x.csv": CELLS}, "x.csv", lambda at: apply_cells(simple(), at / "x.csv")),
    "parquet": ({"x.parquet": PATTERN}, "x.parquet", lambda at: read_frame(at / "x.parquet")),
    "excel": ({"x.xlsx": PATTERN}, "x.xlsx", lambda at: read_frame(at / "x.xlsx")),
}


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """The text with some bytes or lines removed, repeated, replaced; or no trace of it."""
    data = text.encode()
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=60))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        until = draw(st.integers(at, min(len(data), at + 12)))
        junk = st.one_of(
            st.just(b""),
            st.binary(max_size=4),
            st.sampled_from([b"\n", b",", b";", b'"', b"-", b"9" * 25, b"1e400", b"<", b"("]),
        )
        new = draw(st.one_of(junk, st.just(data[at:until] * 2)))
        data = data[:at] + new + data[until:]
    return data


@pytest.mark.parametrize("reader", READERS)
@settings(deadline=None, max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(reader: str, data: st.DataObject) -> None:
    files, target, read = READERS[reader]
    with folder() as at, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for name, text in files.items():
            (Path(at) / name).write_text(text)
        (Path(at) / target).write_bytes(data.draw(damaged(files[target])))
        with suppress(TablesafeError):
            read(Path(at))


@pytest.mark.parametrize("reader", [reader for reader in READERS if reader not in {"parquet", "excel"}])
def test_the_undamaged_files_are_read(reader: str) -> None:
    files, _, read = READERS[reader]
    with folder() as at:
        for name, text in files.items():
            (Path(at) / name).write_text(text)
        assert read(Path(at)) is not None


def test_a_written_matrix_is_the_one_that_was_given() -> None:
    """`write_jj` relies on the entries of a row standing together, in any order."""
    matrix = sparse.csr_array(np.array([[-1, 1, 1, 0], [0, -1, 0, 1]], dtype=np.int8))
    table = Table.from_equations(matrix, np.array([3.0, 1.0, 2.0, 1.0]))
    with folder() as at:
        write_jj(Problem(table), Path(at) / "m.jj")
        back = read_jj(Path(at) / "m.jj")
    assert (back.table.equations.toarray() == matrix.toarray()).all()
