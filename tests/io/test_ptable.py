"""Files of perturbation tables: every spelling of the two programs, and every mistake by file and line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.core.errors import InvalidFile

LINES = ["0;0;1;0;1", "1;0;0.5;-1;0.5", "1;2;0.5;1;1", "2;1;0.25;-1;0.25", "2;2;0.5;0;0.75", "2;3;0.25;1;1"]
HEAD = "i;j;p;v;p_int_ub"


def written(folder: Path, lines: list[str], head: str = HEAD) -> Path:
    path = folder / "ptab.txt"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


def same(one: ts.PerturbationTable, other: ts.PerturbationTable) -> bool:
    return one.frame().equals(other.frame())


def test_the_spellings_of_both_programs_are_one_table(tmp_path: Path) -> None:
    table = ts.read_perturbation(written(tmp_path, LINES))
    assert table.count.tolist() == [0, 1, 2]
    assert table.change.tolist() == [0, -1, 1, -1, 0, 1]
    assert table.upper.tolist() == [1, 0.5, 1, 0.25, 0.75, 1]
    old = [f"{i};{j};{p};{float(ub) - float(p)};{ub};{v}" for i, j, p, v, ub in (line.split(";") for line in LINES)]
    spellings = [
        (old, "i;j;p;kum_p_u;kum_p_o;diff"),
        ([line.replace(";", ",") for line in LINES], HEAD.replace(";", ",")),
        ([line.replace(";", "\t") for line in LINES], HEAD.replace(";", "\t")),
        ([f'"{n}" ' + line.replace(";", " ") for n, line in enumerate(LINES)], '"row" "i" "j" "p" "v" "p_int_ub"'),
        ([line.replace(".", ",") for line in LINES], HEAD),
        ([";".join(line.split(";")[:3]) for line in LINES], "i;j;p"),
        ([";".join(np.array(line.split(";"))[[0, 3, 4]]) for line in LINES], "i;v;p_int_ub"),
        (LINES[1:], HEAD),
        ([line + ";all" for line in LINES], HEAD + ";type"),
    ]
    for lines, head in spellings:
        assert same(ts.read_perturbation(written(tmp_path, lines, head)), table), head


def test_a_file_may_hold_several_kinds(tmp_path: Path) -> None:
    even, odd = ts.design_perturbation(steps=2, counts=(1, 3)), ts.design_perturbation(steps=2, variance=2)
    path = tmp_path / "both.txt"
    ts.write_perturbation({"even": even, "odd": odd}, path)
    assert path.read_text(encoding="utf-8").startswith("i;j;p;v;p_int_ub;type\n0;0;1;0;1;even\n")
    tables = ts.read_perturbations(path)
    assert same(tables["even"], even)
    assert same(ts.read_perturbation(path, kind="odd"), odd)
    with pytest.raises(InvalidFile, match="several perturbation tables: 'even', 'odd'"):
        ts.read_perturbation(path)
    with pytest.raises(InvalidFile, match="no perturbation table of kind 'all'"):
        ts.read_perturbation(path, kind="all")


@given(maximum=st.integers(1, 8), share=st.floats(0.01, 0.9), smallest=st.integers(1, 3))
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, maximum: int, share: float, smallest: int
) -> None:
    table = ts.design_perturbation(
        maximum_change=maximum, variance=share * maximum**2, smallest=min(smallest, maximum), monotone=False
    )
    path = tmp_path_factory.mktemp("ptable") / "p.txt"
    ts.write_perturbation(table, path)
    again = ts.read_perturbation(path)
    assert again.upper.tolist() == table.upper.tolist()
    assert again.change.tolist() == table.change.tolist()


@pytest.mark.parametrize(
    ("line", "by", "message"),
    [
        (2, "1;2;0.4;1;1", r"ptab.txt, line 3 to 4: the probabilities for a count of 1 add up to 0.9, not to 1"),
        (2, "1;2;0.5;1;0.9", r"ptab.txt, line 4: the interval is 0.4 wide, but its probability is 0.5"),
        (2, "1;2;0.5;2;1", r"ptab.txt, line 4: the change v is not j − i"),
        (4, "2;2;0.5;0;0.8", r"ptab.txt, line 6: the interval is 0.55 wide, but its probability is 0.5"),
        (4, "2;2;0.5;0;0.2", r"ptab.txt, line 6: the upper end of the interval lies below"),
        (1, "1;-1;0.5;-2;0.5", r"ptab.txt, line 3: the result is negative"),
        (0, "0;1;1;1;1", r"ptab.txt, line 2: a count of 0 is changed"),
        (3, "0;0;1;0;1", r"ptab.txt, line 5: the counts must rise"),
        (5, "2;3;-0.25;1;1", r"ptab.txt, line 7: a probability is negative"),
        (5, "2;3;many;1;1", r"ptab.txt, line 7 has 'many'"),
        (5, "2;3;;1;1", r"'p' is empty at ptab.txt, line 7"),
    ],
)
def test_mistakes_are_named_by_line(tmp_path: Path, line: int, by: str, message: str) -> None:
    lines = [*LINES[:line], by, *LINES[line + 1 :]]
    with pytest.raises(InvalidFile, match=message):
        ts.read_perturbation(written(tmp_path, lines))


def test_gaps_between_intervals_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"line 2 to 3: the probabilities for a count of 1 add up to 0.9, not to 1"):
        ts.read_perturbation(written(tmp_path, ["1;0;0.5", "1;2;0.9"], "i;j;p_int_ub"))
    lines = ["1;0;0.5;0;0.5;-1", "1;2;0.5;0.4;1;1"]
    with pytest.raises(InvalidFile, match="line 3: the interval does not begin where the one before it ends"):
        ts.read_perturbation(written(tmp_path, lines, "i;j;p;p_int_lb;p_int_ub;v"))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="is no perturbation table: its columns are 'a', 'b'"):
        ts.read_perturbation(written(tmp_path, ["1;2"], "a;b"))
    with pytest.raises(InvalidFile, match="there is no kind 'middling'"):
        ts.read_perturbation(written(tmp_path, [line + ";middling" for line in LINES], HEAD + ";type"))
    with pytest.raises(InvalidFile, match="There is no file"):
        ts.read_perturbation(tmp_path / "none.txt")
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(InvalidFile, match="empty"):
        ts.read_perturbation(tmp_path / "empty.txt")


def test_the_sample_of_tau_argus_reads(instances: Path) -> None:
    table = ts.read_perturbation(instances / "tauargus" / "cellkey" / "ptab_freq.txt")
    found = table.constraints()
    assert len(table) == 9
    assert table.is_for_counts
    assert table.smallest == 3
    assert table.maximum_change == 5
    assert found["variance"][1:].to_list() == pytest.approx([3.0] * 8, abs=1e-6)
