"""Global recoding: files, levels, and what cannot be recoded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablesafe.core.errors import InvalidFile, InvalidHierarchy, InvalidInput
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.tauargus.codes import Recoding, read_recode, recode_codes, recode_level, recode_tree

NACE = Hierarchy.from_pairs([("Total", "A"), ("Total", "B"), ("A", "A1"), ("A", "A2"), ("A1", "A11"), ("A1", "A12"),
                             ("B", "B1"), ("B1", "B11"), ("B1", "B12")], name="nace.hrc")  # fmt: skip
SIZES = Hierarchy.flat([f"{i:02}" for i in range(1, 11)], name="size")


def file(folder: Path, text: str) -> Path:
    (folder / "r.grc").write_text(text, encoding="utf-8")
    return folder / "r.grc"


def codes(recoding: Recoding) -> set[str]:
    return {*recoding.tree.codes, *recoding.tree.aliases}


def test_a_level_keeps_what_is_above_it() -> None:
    first = recode_level(NACE, 1, "nace")
    assert codes(first) == {"Total", "A", "B"}
    assert first.becomes["A12"] == first.becomes["A1"] == first.becomes["A2"] == "A"
    second = recode_level(NACE, 2, "nace")
    assert codes(second) == {"Total", "A", "B", "A1", "A2", "B1"}, "B has one part, which is a level all the same"
    assert (second.becomes["A11"], second.becomes["A2"], second.becomes["B12"]) == ("A1", "A2", "B1")
    deepest = recode_level(NACE, 3, "nace")
    assert deepest.tree == NACE
    assert "changes nothing" in deepest.remarks[0]


@pytest.mark.parametrize("level", [0, 4])
def test_a_level_that_is_not_there_is_an_error(level: int) -> None:
    with pytest.raises(InvalidHierarchy, match=rf"(?s)'nace' has no level {level}.*levels 1 to 3 \(nace.hrc\)"):
        recode_level(NACE, level, "nace")
    with pytest.raises(InvalidHierarchy, match="'size' has no hierarchy"):
        recode_level(SIZES, 1, "size")


def test_a_tree_is_collapsed_at_the_codes_listed(tmp_path: Path) -> None:
    found = recode_tree(NACE, read_recode(file(tmp_path, "<TREERECODE>\nA1\nB\nA2\n")), "nace")
    assert codes(found) == {"Total", "A", "A1", "A2", "B"}
    assert (found.becomes["A12"], found.becomes["B11"], found.becomes["A2"]) == ("A1", "B", "A2")
    assert "'A2' has no parts" in found.remarks[0]


@pytest.mark.parametrize("text", ["<TREERECODE>\nA1\nB\n", "<TREERECODE>\nA\nA1\nA12\nB1\n"])
def test_codes_below_a_collapsed_one_follow_it(tmp_path: Path, text: str) -> None:
    found = recode_tree(NACE, read_recode(file(tmp_path, text)), "nace")
    for code, new in found.becomes.items():
        assert new in codes(found)
        assert found.becomes.get(new, new) == new, f"{code} stops half way"


def test_new_codes_from_lists_and_ranges(tmp_path: Path) -> None:
    text = '1: -02\n2 : 03 – 05 , 07\n"big": 09-\n<MISSING> "10" 7\n'
    found = recode_codes(SIZES, read_recode(file(tmp_path, text)), "size", ())
    wanted = {"01": "1", "02": "1", "03": "2", "04": "2", "05": "2", "06": "06", "07": "2", "08": "08", "09": "big"}
    assert found.becomes == {**wanted, "10": "big"}
    assert set(found.tree.leaves) == {"1", "2", "06", "08", "big"}
    assert found.missing == (), "no new code is called so"


def test_ranges_go_by_the_width_of_the_codes_and_names_may_hold_a_dash(tmp_path: Path) -> None:
    tree = Hierarchy.flat([" 1", " 5", "10", "49", "50", "x-y"], name="n")
    found = recode_codes(tree, read_recode(file(tmp_path, "a: 1-49\nb: x-y\n")), "n", ())
    assert {code for code, new in found.becomes.items() if new == "a"} == {" 1", " 5", "10", "49"}
    assert found.becomes["x-y"] == "b"


def test_labels_come_from_a_code_list(tmp_path: Path) -> None:
    (tmp_path / "new.cdl").write_text("1,small\n", encoding="utf-8")
    recode = read_recode(file(tmp_path, '1: -05\n<CODELIST> "C:\\x\\NEW.CDL"\n'))
    assert recode_codes(SIZES, recode, "size", ()).tree.labels["1"] == "small"


MISTAKES = {
    "no colon": ("1 01, 02\n", "r.grc, line 1: '1 01, 02' is not 'new code: old codes'"),
    "no name": ('"": 01, 02\n', "r.grc, line 1: .* is not 'new code: old codes'"),
    "nothing": ("\n", "r.grc recodes nothing"),
    "keyword": ("<TREE>\nA\n", "r.grc, line 1: there is no keyword <TREE>"),
    "both": ("1: 01\n<TREERECODE>\n02\n", "r.grc, line 1 is a new code"),
    "twice": ("1: 01-03\n2: 03\n", "(?s)r.grc, line 2: code '03' becomes '2', but on line 1 '1'"),
    "total": ("Total: 01\n", "r.grc, line 1: 'Total' is the total"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_file_line_and_code(tmp_path: Path, mistake: str) -> None:
    text, message = MISTAKES[mistake]
    with pytest.raises(InvalidInput, match=message):
        recode_codes(SIZES, read_recode(file(tmp_path, text)), "size", ())


def test_a_code_that_nobody_has_is_said(tmp_path: Path) -> None:
    found = recode_codes(SIZES, read_recode(file(tmp_path, "1: 01, 77\n")), "size", ())
    assert found.remarks == ("r.grc, line 1: no record of size has a code '77'.",)


def test_the_kind_of_file_must_fit_the_variable(tmp_path: Path) -> None:
    with pytest.raises(InvalidHierarchy, match=r"(?s)'nace' has a hierarchy.*<TREERECODE>"):
        recode_codes(NACE, read_recode(file(tmp_path, "1: A11\n")), "nace", ())
    with pytest.raises(InvalidHierarchy, match="'size' has no hierarchy"):
        recode_tree(SIZES, read_recode(file(tmp_path, "<TREERECODE>\n01\n")), "size")
    with pytest.raises(InvalidHierarchy, match=r"(?s)Code 'A3' of 'nace' at r.grc, line 2 is not in nace.hrc.*mean 'A"):
        recode_tree(NACE, read_recode(file(tmp_path, "<TREERECODE>\nA3\n")), "nace")
    with pytest.raises(InvalidFile, match="There is no file"):
        read_recode(tmp_path / "none.grc")
