"""Hierarchies: every way to build one, and every way to get one wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablesafe.core.errors import InvalidFile, InvalidHierarchy
from tablesafe.core.hierarchy import Hierarchy

COX_KELLY = "13=4+5+6; 12=1+6; 11=3+4; 10=3+6; 9=4+5; 8=1+2; 7=3+8+13"


def contents(hierarchy: Hierarchy) -> dict[str, set[str]]:
    """The leaves below each code."""
    dense = hierarchy.leaf_matrix.toarray()
    return {
        code: {leaf for leaf, times in zip(hierarchy.leaves, dense[i], strict=True) if times}
        for i, code in enumerate(hierarchy.codes)
    }


def test_pairs_levels_prefixes_and_hrc_build_the_same_tree(tmp_path: Path) -> None:
    pairs = Hierarchy.from_pairs([("T", "A"), ("T", "B"), ("A", "A1"), ("A", "A2"), ("B", "B1"), ("B", "B2")])
    levels = Hierarchy.from_levels({"top": ["A", "A", "B", "B"], "leaf": ["A1", "A2", "B1", "B2"]}, total="T")
    prefixes = Hierarchy.from_prefixes(["A1", "A2", "B1", "B2"], lengths=(1,), total="T")
    listed = Hierarchy.from_prefixes(["A", "A1", "A2", "B", "B1", "B2"], total="T")
    (tmp_path / "h.hrc").write_text("A\n@A1\n@A2\nB\n@B1\n@B2\n")
    hrc = Hierarchy.from_hrc(tmp_path / "h.hrc", total="T")
    equations = Hierarchy.from_equations("T = A + B; A = A1 + A2; B = B1 + B2", codes=pairs.codes)
    assert pairs == levels == prefixes == listed == hrc == equations
    assert pairs.is_tree
    assert pairs.total == "T"
    assert pairs.leaves == ("A1", "A2", "B1", "B2")
    assert pairs.depth.tolist() == [0, 1, 2, 2, 1, 2, 2]


def test_leading_spaces_of_hrc_codes_count_and_trailing_ones_do_not(tmp_path: Path) -> None:
    path = tmp_path / "region.hrc"
    path.write_bytes(b"Nr \r\n@ 1\r\n@ 2\r\nOs\r\n@10\r\n@11\r\n")
    hierarchy = Hierarchy.from_hrc(path)
    assert hierarchy.codes == ("Total", "Nr", " 1", " 2", "Os", "10", "11")
    assert hierarchy.positions(pl.Series([" 1", "1", "10", "nope"])).tolist() == [2, 2, 5, -1]


def test_spaces_that_tell_two_codes_apart_are_never_guessed(tmp_path: Path) -> None:
    path = tmp_path / "region.hrc"
    path.write_text("a\n a\nb\n")
    hierarchy = Hierarchy.from_hrc(path)
    assert hierarchy.positions(pl.Series(["a", " a", "a ", "b "])).tolist() == [1, 2, -1, 3]


@pytest.mark.parametrize("indent", ["@", "--", "\t", "  "])
def test_any_indent_string(tmp_path: Path, indent: str) -> None:
    path = tmp_path / "h.hrc"
    path.write_text(f"A\n{indent}A1\n{indent}A2\n{indent * 2}A2x\n{indent * 2}A2y\nB\n")
    hierarchy = Hierarchy.from_hrc(path, indent=indent)
    assert contents(hierarchy)["A"] == {"A1", "A2x", "A2y"}
    hierarchy.to_hrc(tmp_path / "out.hrc", indent=indent)
    assert Hierarchy.from_hrc(tmp_path / "out.hrc", indent=indent) == hierarchy


def test_a_parent_with_one_child_is_one_code_with_two_names() -> None:
    hierarchy = Hierarchy.from_pairs([("T", "A"), ("T", "B"), ("B", "B1"), ("B1", "B11")])
    assert hierarchy.codes == ("T", "A", "B")
    assert hierarchy.aliases == {"B1": "B", "B11": "B"}
    assert hierarchy.position("B11") == hierarchy.position("B")


def test_a_structure_that_is_no_tree() -> None:
    hierarchy = Hierarchy.from_equations(COX_KELLY)
    assert not hierarchy.is_tree
    assert hierarchy.total is None
    assert set(hierarchy.leaves) == {"1", "2", "3", "4", "5", "6"}
    assert contents(hierarchy)["7"] == {"1", "2", "3", "4", "5", "6"}
    assert contents(hierarchy)["10"] == {"3", "6"}


def test_several_trees_over_the_same_leaves() -> None:
    hierarchy = Hierarchy.from_equations("T = N + S; N = a + b; S = c + d; T = town + land; town = a + c; land = b + d")
    assert hierarchy.total == "T"
    assert not hierarchy.is_tree
    assert contents(hierarchy)["town"] == {"a", "c"}
    assert hierarchy.equations.shape[0] == 6


def test_signs_spaces_and_quotes_in_equations() -> None:
    hierarchy = Hierarchy.from_equations('net sales = gross sales - tax; "a+b" = c-1 + d')
    assert [str(e) for e in hierarchy.as_equations()] == ["net sales = gross sales - tax", "a+b = c-1 + d"]


def test_ranges_and_fillers_of_naics() -> None:
    hierarchy = Hierarchy.from_prefixes(["11", "31-33", "311", "3111", "3112", "32", "33"], total="00")
    assert contents(hierarchy)["31-33"] == {"3111", "3112", "32", "33"}
    padded = Hierarchy.from_prefixes(["11----", "111---", "112---", "21----"], filler="-")
    assert contents(padded)["11----"] == {"111---", "112---"}


def test_levels_of_different_depth_and_labels() -> None:
    frame = pl.DataFrame({"l1": ["A", "A", "B"], "l2": ["A1", "A2", None], "l3": ["A1", "A2x", ""]})
    hierarchy = Hierarchy.from_levels(frame, labels={"A": "Alpha"})
    assert contents(hierarchy)["Total"] == {"A1", "A2", "B"}
    assert hierarchy.aliases == {"A2x": "A2"}
    assert hierarchy.labels["A"] == "Alpha"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Hierarchy.from_pairs([("a", "b"), ("b", "a")]), ["no root", "'a'", "'b'"]),
        (lambda: Hierarchy.from_pairs([("T", "a"), ("b", "c"), ("c", "b")]), ["cycle", "'b'", "'c'"]),
        (lambda: Hierarchy.from_pairs([("T", "a"), ("T", "b"), ("a", "c"), ("b", "c")]), ["'c'", "two parents", "'b'"]),
        (lambda: Hierarchy.from_pairs([("T", "a"), ("T", "a")]), ["'a'", "twice"]),
        (lambda: Hierarchy.from_pairs([("T", "a"), ("S", "b")]), ["'S'", "without a parent", "total="]),
        (lambda: Hierarchy.from_pairs([("T", "a"), ("S", "b")], total="T"), ["'S'", "no parent"]),
        (lambda: Hierarchy.from_pairs([("a", "a")]), ["'a'", "own parent"]),
        (lambda: Hierarchy.from_pairs([]), ["no codes"]),
        (lambda: Hierarchy.from_equations("a=b+c;b=d+e;d=a+f"), ["cycle", "'a'", "'b'", "'d'"]),
        (lambda: Hierarchy.from_equations("a=b+b"), ["twice"]),
        (lambda: Hierarchy.from_equations("a+b=c"), ["a+b=c", "equation"]),
        (lambda: Hierarchy.from_equations(""), ["no equation"]),
        (lambda: Hierarchy.from_equations("a=b+c", codes=["a", "b"]), ["'c'", "no code"]),
        (lambda: Hierarchy.flat(["x", "y", "x"]), ["'x'", "twice"]),
    ],
)
def test_what_is_no_hierarchy_gets_a_clear_error(build: object, words: list[str]) -> None:
    with pytest.raises(InvalidHierarchy) as caught:
        build()  # type: ignore[operator]
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A\n@@A1\n", ["line 2", "skips a level"]),
        ("@A\n", ["line 1", "skips a level"]),
        ("A\n@x\nB\n@x\n", ["'x'", "lines 2 and 4"]),
        ("\n\n", ["no codes"]),
    ],
)
def test_a_bad_hrc_file_is_named_with_its_line(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "bad.hrc"
    path.write_text(text)
    with pytest.raises(InvalidHierarchy) as caught:
        Hierarchy.from_hrc(path)
    for word in ["bad.hrc", *words]:
        assert word in str(caught.value)


def test_two_groups_of_one_name_are_kept_apart_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "nuts.hrc"
    path.write_text("1\n@11\n@@a\n@@b\n2\n@11\n@@c\n@@d\n")
    with pytest.warns(UserWarning, match=r"nuts\.hrc.*'11'.*lines 2 and 6"):
        hierarchy = Hierarchy.from_hrc(path)
    assert contents(hierarchy)["1"] == {"a", "b"}
    assert contents(hierarchy)["2"] == {"c", "d"}


def test_a_correspondence_table_with_two_parents_names_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "levels.csv"
    path.write_text("l1,l2\nA,x\nB,y\nB,x\n")
    with pytest.raises(InvalidHierarchy, match=r"'x'.*two parents.*line 2.*line 4"):
        Hierarchy.from_levels(path)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InvalidFile, match=r"nowhere\.hrc"):
        Hierarchy.from_hrc("nowhere.hrc")


def test_every_sample_hrc_file_loads_and_round_trips(instances: Path, tmp_path: Path) -> None:
    paths = sorted((instances / "tauargus" / "testW").parent.glob("**/*.hrc"))
    assert len(paths) >= 10
    for path in paths:
        if path.name == "NUTS.hrc":  # the sample really names two groups alike
            with pytest.warns(UserWarning, match="'11'"):
                hierarchy = Hierarchy.from_hrc(path)
        else:
            hierarchy = Hierarchy.from_hrc(path)
        hierarchy.to_hrc(tmp_path / "out.hrc")
        assert Hierarchy.from_hrc(tmp_path / "out.hrc") == hierarchy


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Random trees as parent–child pairs: node i hangs below an earlier one."""
    n = draw(st.integers(2, 25))
    return [(str(draw(st.integers(0, i - 1))), str(i)) for i in range(1, n)]


@given(trees())
def test_leaf_matrix_satisfies_every_equation(pairs: list[tuple[str, str]]) -> None:
    hierarchy = Hierarchy.from_pairs(pairs)
    assert hierarchy.is_tree
    assert (hierarchy.equations.astype(np.int64) @ hierarchy.leaf_matrix).nnz == 0 or not (
        hierarchy.equations.astype(np.int64) @ hierarchy.leaf_matrix
    ).toarray().any()
    assert (np.diff(hierarchy.equations.indptr) >= 3).all()


@given(trees(), st.randoms(use_true_random=False))
def test_the_order_of_pairs_does_not_change_what_a_code_contains(pairs: list[tuple[str, str]], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = Hierarchy.from_pairs(pairs), Hierarchy.from_pairs(shuffled)
    assert contents(one) == contents(other)


@given(trees())
def test_merging_a_hierarchy_with_a_part_of_itself_changes_nothing(pairs: list[tuple[str, str]]) -> None:
    hierarchy = Hierarchy.from_pairs(pairs)
    part = hierarchy.keep([code for code in hierarchy.codes if hierarchy.depth[hierarchy.position(code)] <= 1])
    merged = hierarchy.merge(part)
    assert contents(merged) == contents(hierarchy)
    assert set(map(str, merged.as_equations())) == set(map(str, hierarchy.as_equations()))


@pytest.mark.parametrize("blank", ["", " ", "\t", "\u00a0", "\u3000"])
def test_a_blank_code_is_refused(blank: str) -> None:
    """Nobody could see it, and files with it would be read as if the code were missing: as the total."""
    with pytest.raises(InvalidHierarchy, match="is blank"):
        Hierarchy.flat(["A", blank])
    with pytest.raises(InvalidHierarchy, match="is blank"):
        Hierarchy.from_pairs([("Total", "A"), ("Total", blank)])
