"""Tables: cells, equations, exact sums, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tablesafe.core.equations import product_equations, roll_up
from tablesafe.core.errors import InvalidInput, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.linking import link
from tablesafe.core.table import Table
from tablesafe.io.frames import read_frame

REGION = Hierarchy.from_pairs([("T", "N"), ("T", "S"), ("N", "n1"), ("N", "n2"), ("S", "s1"), ("S", "s2")])
SEX = Hierarchy.flat(["m", "f"], total="T")


def frame(leaves: dict[tuple[str, str], float]) -> pl.DataFrame:
    """Leaf cells of region × sex as rows."""
    return pl.DataFrame(
        {"region": [k[0] for k in leaves], "sex": [k[1] for k in leaves], "value": list(leaves.values())},
        schema_overrides={"value": pl.Float64},
    )


def region_by_sex(**changes: float) -> Table:
    """A full table with leaves 1 … 8."""
    names = [(r, s) for r in ("n1", "n2", "s1", "s2") for s in ("m", "f")]
    values = dict(zip(names, map(float, range(1, 9)), strict=True))
    return Table.from_cells(
        frame({**values, **{tuple(k.split("_")): v for k, v in changes.items()}}),
        dimensions={"region": REGION, "sex": SEX},
        missing_totals="compute",
    )


def test_missing_totals_are_computed_and_every_equation_holds() -> None:
    table = region_by_sex()
    assert len(table) == 7 * 3
    assert table.equations.shape == (3 * 3 + 7, 21)
    assert not table.residual().any()
    assert table.value[table.index()] == 36
    assert table.value[table.index(region="N", sex="f")] == 6
    assert set(np.unique(table.equations.data)) == {-1, 1}


@pytest.mark.parametrize(
    "make", [pl.DataFrame, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, lambda f: f.to_dict(as_series=False)]
)
def test_any_frame_gives_the_same_table(make: Any) -> None:
    cells = region_by_sex().cells()
    table = Table.from_cells(make(cells), dimensions={"region": REGION, "sex": SEX})
    assert table.cells().equals(cells)


def test_arrow_and_pandas_are_really_those() -> None:
    cells = region_by_sex().cells()
    assert isinstance(cells.to_pandas(), pd.DataFrame)
    assert isinstance(cells.to_arrow(), pa.Table)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_give_the_same_table(tmp_path: Path, suffix: str) -> None:
    cells = region_by_sex().cells()
    path = tmp_path / f"cells.{suffix}"
    (cells.write_csv if suffix == "csv" else cells.write_parquet)(path)
    assert Table.from_cells(path, dimensions={"region": REGION, "sex": SEX}).cells().equals(cells)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("\ufeffort;wert\nKöln;1,5\nBonn;2,25\nTotal;3,75\n", "utf-8"),
        ("ort;wert\nKöln;1,5\nBonn;2,25\nTotal;3,75\n", "cp1252"),
        ("ort\twert\nKöln\t1.5\nBonn\t2.25\nTotal\t3.75\n", "utf-16"),
    ],
)
def test_what_offices_really_have(tmp_path: Path, text: str, encoding: str) -> None:
    path = tmp_path / "orte.csv"
    path.write_text(text, encoding=encoding)
    table = Table.from_cells(path, dimensions=["ort"], value="wert")
    assert table.integers.tolist() == [150, 225, 375]
    assert table.decimals == 2
    assert table.dimensions["ort"].codes == ("Total", "Köln", "Bonn")


def test_floating_point_is_no_false_alarm() -> None:
    table = Table.from_cells({"r": ["A", "B", "Total"], "value": [0.1, 0.2, 0.1 + 0.2]}, dimensions=["r"])
    assert table.integers.tolist() == [1, 2, 3]
    assert table.exact


def test_values_without_fixed_decimals_still_add_up_exactly() -> None:
    thirds = [1 / 3, 2 / 3, 1e6 / 7]
    table = Table.from_cells({"r": ["A", "B", "C", "Total"], "value": [*thirds, sum(thirds)]}, dimensions=["r"])
    assert not table.exact
    assert not table.residual().any()
    assert np.allclose(table.value[:3], thirds, rtol=1e-9)


def test_a_total_that_does_not_add_up_is_named_in_the_users_codes() -> None:
    rows = {"region": ["NO03", "NO031", "NO032"], "value": [1204, 1000, 199]}
    dimension = Hierarchy.from_prefixes(["NO03", "NO031", "NO032"], total=None)
    with pytest.raises(InvalidTable, match=r"region=NO03\) is 1,204 but its parts add up to 1,199 \(difference 5\)"):
        Table.from_cells(rows, dimensions={"region": dimension})
    with pytest.warns(UserWarning, match="recomputed"):
        table = Table.from_cells(rows, dimensions={"region": dimension}, tolerance=5)
    assert table.value.tolist() == [1199, 1000, 199]


def test_decimals_are_compared_exactly_not_within_a_tolerance() -> None:
    with pytest.raises(InvalidTable, match=r"difference 0\.01"):
        Table.from_cells({"r": ["A", "B", "Total"], "value": [1e9, 0.01, 1e9 + 0.02]}, dimensions=["r"])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"r": ["A", "B", "A", "Total"], "value": [1, 2, 3, 6]}, ["(r=A)", "twice", "rows 1 and 3"]),
        ({"r": ["A", "B"], "value": [1.0, float("nan")]}, ["'value'", "not a number", "row 2"]),
        ({"r": ["A", "B"], "value": [1.0, float("inf")]}, ["infinite", "row 2"]),
        ({"r": ["A", "B"], "value": [1.0, 1e17]}, ["too large", "row 2"]),
        ({"r": ["A", "B"], "value": ["1", "many"]}, ["'many'", "row 2"]),
        ({"r": ["A", "B"], "value": [1, None]}, ["empty", "row 2"]),
        ({"r": ["A", "B"], "turnover": [1, 2]}, ["no column 'value'", "'turnover'"]),
        ({"region": ["A", "B"], "value": [1, 2]}, ["no column 'r'"]),
    ],
)
def test_bad_cells_get_a_clear_error(rows: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        Table.from_cells(rows, dimensions=["r"])
    for word in words:
        assert word in str(caught.value)


def test_a_missing_total_is_named_with_the_remedy() -> None:
    with pytest.raises(InvalidTable, match=r"'N' of 'region'.*\n\nHint.*missing_totals='compute'"):
        Table.from_cells({"region": ["n1", "n2"], "value": [1, 2]}, dimensions={"region": REGION})


def test_a_hierarchy_of_another_dimension_is_recognised() -> None:
    with pytest.raises(InvalidInput, match=r"Code 'm' of 'sex' at row 1(.|\n)*is it the hierarchy of 'sex'\?"):
        Table.from_cells({"sex": ["m", "f"], "value": [1, 2]}, dimensions={"sex": REGION})


def test_a_code_with_two_names_is_one_cell_if_both_rows_agree() -> None:
    nace = Hierarchy.from_pairs([("T", "A"), ("T", "B"), ("B", "05")])
    rows = {"nace": ["T", "A", "B", "05"], "value": [5, 2, 3, 3]}
    assert len(Table.from_cells(rows, dimensions={"nace": nace})) == 3
    with pytest.raises(InvalidTable, match="same cell under two names"):
        Table.from_cells({**rows, "value": [5, 2, 3, 4]}, dimensions={"nace": nace})


def test_negative_values_and_empty_cells() -> None:
    rows = {"r": ["Total", "A", "B"], "c": ["Total"] * 3, "value": [-1, 2, -3]}
    table = Table.from_cells(rows, dimensions={"r": None, "c": Hierarchy.flat(["x", "y"])})
    assert table.value.tolist() == [-1, 2, -3]
    assert table.equations.shape[0] == 1  # the total over c is not broken down: no equation


def test_counts_must_be_whole() -> None:
    with pytest.raises(InvalidTable, match="whole numbers"):
        Table.from_cells({"r": ["A", "B"], "value": [1, 2], "n": [1, 1.5]}, dimensions=["r"], count="n")


def test_largest_contributors_must_descend() -> None:
    rows = {"r": ["A", "B"], "value": [10, 10], "x1": [5, 1], "x2": [1, 5]}
    with pytest.raises(InvalidTable, match="descending"):
        Table.from_cells(rows, dimensions=["r"], largest=["x1", "x2"])
    with pytest.raises(InvalidTable, match="keeps 1"):
        Table.from_cells(rows, dimensions=["r"], largest=["x1"], missing_totals="none").largest(2)


def test_equations_of_any_shape() -> None:
    table = Table.from_equations("t = a + b; net = t - c", {"t": 3, "a": 1, "b": 2, "c": 4, "net": -1})
    assert not table.residual().any()
    assert table.describe_equation(1) == "'net' = 't' - 'c'"
    with pytest.raises(InvalidTable, match=r"'t' is 4 but its parts add up to 3"):
        Table.from_equations("t = a + b", {"t": 4, "a": 1, "b": 2})


# -- linked tables -----------------------------------------------------------------------------------------------------


def test_tables_with_different_dimensions_share_their_common_cells() -> None:
    by_sex = region_by_sex()
    size = Hierarchy.flat(["small", "big"])
    rows = [(r, z) for r in REGION.codes for z in ("Total", "small", "big")]
    totals = {r: by_sex.value[by_sex.index(region=r)] for r in REGION.codes}
    value = [totals[r] if z == "Total" else (0 if z == "small" else totals[r]) for r, z in rows]
    by_size = Table.from_cells(
        {"region": [r for r, _ in rows], "size": [z for _, z in rows], "value": value},
        dimensions={"region": REGION, "size": size},
    )
    linked = link([by_sex, by_size])
    assert len(linked) == len(by_sex) + len(by_size) - len(REGION)
    assert not linked.residual().any()
    assert linked.value[linked.index(region="N")] == totals["N"]


def test_an_equation_that_only_the_joint_hierarchy_implies_is_found() -> None:
    fine = Table.from_cells(
        {"region": ["T", "n1", "n2", "s1", "s2"], "value": [10, 1, 2, 3, 4]},
        dimensions={"region": Hierarchy.flat(["n1", "n2", "s1", "s2"], total="T")},
    )
    coarse = Table.from_cells(
        {"region": ["T", "N", "S"], "value": [10, 3, 7]}, dimensions={"region": Hierarchy.flat(["N", "S"], total="T")}
    )
    part = {"region": ["N", "n1", "n2"], "value": [3, 1, 2]}
    whole = Table.from_cells(part, dimensions={"region": REGION}, missing_totals="none")
    linked = link([fine, coarse, whole])
    spelled = {linked.describe_equation(row) for row in range(linked.equations.shape[0])}
    assert "(region=S) = (region=s1) + (region=s2)" in spelled


CELLS = {"a": ["p", "q", "Total"], "value": [100.0, 500.0, 600.0], "n": [3, 9, 12]}


def _of_cells(**columns: list[Any]) -> Table:
    largest = [name for name in columns if name.startswith("x")]
    identity = [name for name in columns if name.startswith("who")]
    more = {name: "count" if name == "n" else "holdings" for name in ("n", "h") if name in columns}
    return Table.from_cells(
        pl.DataFrame({**CELLS, **columns}), dimensions=["a"], value="value", largest=largest, identity=identity,
        columns=["ranked"] if "ranked" in columns else [], **{option: name for name, option in more.items()},
    )  # fmt: skip


@pytest.mark.parametrize("name", ["n", "h"])
@pytest.mark.parametrize(("counts", "refused"), [([None, 9, 12], True), ([3, 9, None], True), ([0, 9, 12], False)])
def test_a_count_that_is_missing_is_no_count_of_nobody(name: str, counts: list[int | None], refused: bool) -> None:
    """A threshold passes over cells that nobody contributes to; where nobody said so it must not."""
    if not refused:
        assert _of_cells(**{name: counts}).integers[0] == 100
        return
    with pytest.raises(InvalidTable, match=f"Column '{name}' is empty at row"):
        _of_cells(**{name: counts})


def test_a_count_may_be_missing_where_there_is_nothing() -> None:
    table = _of_cells(value=[0.0, 500.0, 500.0], n=[None, 9, 9])
    assert table.count is not None
    assert table.count.tolist() == [0, 9, 9]


@pytest.mark.parametrize(
    ("first", "second", "third", "ranked", "refused"),
    [
        ([50, 90, None], [30, 80, None], [10, 70, None], None, True),
        ([60, 90, 90], [None, 80, 80], [None, 70, 70], None, True),
        ([60, 90, 90], [40, 80, 80], [None, 70, 70], None, False),
        ([100, 90, 90], [None, 80, 80], [None, 70, 70], None, False),
        ([60, 90, 90], [0, 80, 80], [0, 70, 70], None, False),
        ([60, 90, 90], [None, 80, 80], [None, 70, 70], [60, 900, 960], False),
        ([60, 90, 90], [None, 80, 80], [None, 70, 70], [70, 900, 970], True),
    ],
)
def test_contributors_that_are_missing_are_not_taken_for_nothing(
    first: list[int | None], second: list[int | None], third: list[int | None], ranked: list[int] | None, refused: bool
) -> None:
    """Without them all of a total seems to be of small contributors, and no rule that weighs them flags it."""
    columns = {"x1": first, "x2": second, "x3": third} | ({} if ranked is None else {"ranked": ranked})
    if not refused:
        assert _of_cells(**columns).contributors is not None
        return
    with pytest.raises(InvalidTable, match="lists fewer contributors than there are columns for"):
        _of_cells(**columns)


def test_what_is_zero_by_definition_holds_nothing() -> None:
    """Such a cell is published and never sensitive: here it would be that of a single respondent."""
    frame = pl.DataFrame({**CELLS, "n": [1, 9, 10], "void": [1, 0, 0]})
    options: dict[str, Any] = {"dimensions": ["a"], "value": "value", "count": "n", "structural_zero": "void"}
    with pytest.raises(InvalidTable, match=r"'void' says at row 1 .* zero by definition, but 'value' is not 0"):
        Table.from_cells(frame, **options)
    empty = frame.with_columns(value=pl.Series([0.0, 500.0, 500.0]), n=pl.Series([0, 9, 9]))
    table = Table.from_cells(empty, **options)
    assert table.structural_zero is not None
    assert table.structural_zero.tolist() == [True, False, False]


def test_one_contributor_in_two_places_of_a_cell_is_refused() -> None:
    """It would pass for two: with 80 of 100 here, the largest seems to have 50."""
    columns = {"x1": [50, 90, 90], "x2": [30, 80, 80], "who1": ["A", "C", "C"]}
    assert _of_cells(**columns, who2=["B", "A", "A"]).contributors is not None
    for nobody in (None, ""):
        assert _of_cells(**{**columns, "who1": [nobody, "C", "C"]}, who2=[nobody, "A", "A"]).contributors is not None
    with pytest.raises(InvalidTable, match="names the same contributor in two places"):
        _of_cells(**columns, who2=["A", "A", "D"])


@pytest.mark.parametrize("wrong", [0.5, 1.5, 2, 257, -255, np.nan])
def test_coefficients_that_are_not_held_as_they_are_given_are_refused(wrong: float) -> None:
    """Half of a cell that is 0 was left out of its sum, so that it seemed to be free: its total holds it."""
    matrix = sparse.csr_array(np.array([[-1, wrong, 1]]))
    with pytest.raises(InvalidTable, match="must be −1 at the total"):
        Table.from_equations(matrix, np.array([10.0, 0.0, 10.0]))
    assert len(Table.from_equations(sparse.csr_array(np.array([[-1.0, 1.0, 1.0]])), np.array([10.0, 0.0, 10.0]))) == 3
    with pytest.raises(InvalidTable, match=r"'t = a \+ b \+ a' names a cell twice"):
        Table.from_equations(["s = a + b", "t = a + b + a"], {"s": 3.0, "t": 4.0, "a": 1.0, "b": 2.0})


def test_linked_tables_that_disagree_are_refused() -> None:
    one, other = region_by_sex(), region_by_sex(n1_m=2.0)
    with pytest.raises(InvalidTable, match=r"disagree on cell \(region=n1, sex=m\): 1 in one, 2 in another"):
        link([one, other])


def test_response_variables_tied_by_an_equation() -> None:
    def table(response: str, a: float, b: float) -> Table:
        rows = {"r": ["Total", "A", "B"], response: [a + b, a, b]}
        return Table.from_cells(rows, dimensions=["r"], value=response)

    linked = link(
        [table("total", 5, 7), table("domestic", 2, 3), table("export", 3, 4)], equations="total = domestic + export"
    )
    assert len(linked) == 9
    assert linked.equations.shape[0] == 3 + 3
    with pytest.raises(InvalidTable, match="response=total"):
        link(
            [table("total", 5, 7), table("domestic", 2, 3), table("export", 9, 4)],
            equations="total = domestic + export",
        )
    with pytest.raises(InvalidTable, match="'exports'"):
        link([table("total", 5, 7), table("domestic", 2, 3)], equations="total = domestic + exports")


@pytest.mark.parametrize(("largest", "fits"), [(4.0e14, False), (4.0e8, True), (-4.0e14, False)])
def test_linked_values_that_64_bits_do_not_hold_with_the_others_decimals_are_refused(
    largest: float, fits: bool
) -> None:
    """4e14 with seven decimals wrapped round to a negative number, and every sum with it, so that all added up."""
    values = [largest, 3.0, 1.0], [0.1234567, 2.5, 1.25]
    tables = [
        Table.from_cells(
            pl.DataFrame({"a": ["p", "q", "r", "Total"], name: [*own, sum(own)]}), dimensions=["a"], value=name,
            response=name,
        )
        for name, own in zip(("one", "other"), values, strict=True)
    ]  # fmt: skip
    if fits:
        assert link(tables).value[:3].tolist() == values[0]
        return
    with pytest.raises(InvalidTable, match="too large"):
        link(tables)


def test_contributors_of_linked_tables_keep_one_identity_by_name() -> None:
    rows = {"r": ["Total", "A", "B"], "value": [3.0, 1.0, 2.0], "x": [2.0, 1.0, 2.0]}
    one = Table.from_cells({**rows, "who": ["b", "a", "b"]}, dimensions=["r"], largest=["x"], identity=["who"])
    other = Table.from_cells(
        {"s": ["Total", "C", "D"], "value": [3.0, 2.0, 1.0], "x": [2.0, 2.0, 1.0], "who": ["b", "b", "c"]},
        dimensions=["s"], largest=["x"], identity=["who"],
    )  # fmt: skip
    linked = link([one, other])
    assert linked.contributors is not None
    names = linked.contributors.names
    assert names is not None
    who = names[linked.contributors.identity[:, 0]]
    assert who[linked.index(r="B")] == who[linked.index(s="C")] == "b"


# -- properties --------------------------------------------------------------------------------------------------------


@st.composite
def dimensions(draw: st.DrawFn) -> dict[str, Hierarchy]:
    """Two or three random dimensions: trees, flat ones, and one that is no tree."""
    out = {}
    for name in draw(st.sampled_from(["ab", "abc"])):
        kind = draw(st.sampled_from(["tree", "flat", "graph"]))
        if kind == "flat":
            out[name] = Hierarchy.flat([f"{name}{i}" for i in range(draw(st.integers(2, 4)))])
        elif kind == "tree":
            n = draw(st.integers(3, 8))
            out[name] = Hierarchy.from_pairs([(f"{draw(st.integers(0, i - 1))}", f"{i}") for i in range(1, n)])
        else:
            out[name] = Hierarchy.from_equations("T = N + S; N = a + b; S = c + d; T = x + y; x = a + c; y = b + d")
    return out


@settings(deadline=None, max_examples=60)
@given(dimensions(), st.integers(0, 2**32 - 1), st.floats(0.2, 1.0))
def test_adding_up_leaves_gives_every_margin(dims: dict[str, Hierarchy], seed: int, density: float) -> None:
    random = np.random.default_rng(seed)
    leaves = [np.flatnonzero(~h.is_total) for h in dims.values()]
    grid = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, len(dims)).astype(np.int32)
    grid = grid[random.random(len(grid)) < density]
    values = random.integers(0, 100, len(grid))
    codes, sums = roll_up(grid, list(dims.values()), {"value": values})
    table = Table.from_codes(codes, sums["value"].astype(float), dims)
    matrices = [h.leaf_matrix.toarray() for h in dims.values()]
    column = [np.cumsum(~h.is_total) - 1 for h in dims.values()]
    for cell in range(len(table)):
        expected = sum(
            int(value)
            * int(np.prod([m[c, k[leaf]] for m, c, k, leaf in zip(matrices, codes[cell], column, row, strict=True)]))
            for row, value in zip(grid, values, strict=True)
        )
        assert table.integers[cell] == expected
    assert not table.residual().any()
    product = product_equations(codes, list(dims.values()))
    assert product.orphan_cell is None


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_linked_margins_of_one_cube_agree_with_the_cube(seed: int) -> None:
    random = np.random.default_rng(seed)
    dims = {"region": REGION, "sex": SEX, "size": Hierarchy.flat(["s", "b"])}
    leaves = [np.flatnonzero(~h.is_total) for h in dims.values()]
    grid = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
    codes, sums = roll_up(grid, list(dims.values()), {"value": random.integers(0, 50, len(grid))})
    cube = Table.from_codes(codes, sums["value"].astype(float), dims)
    cells = cube.cells()
    one = cells.filter(pl.col("size") == "Total")
    other = cells.filter(pl.col("sex") == "T")
    linked = link(
        [
            Table.from_cells(one, dimensions={"region": REGION, "sex": SEX}),
            Table.from_cells(other, dimensions={"region": REGION, "size": dims["size"]}),
        ]
    )
    joined = linked.cells().join(cells, on=["region", "sex", "size"], suffix="_cube")
    assert joined.height == len(linked)
    assert (joined["value"] == joined["value_cube"]).all()
    assert not linked.residual().any()


@pytest.mark.parametrize("blank", ["", "  ", "\t", "\u00a0"])
def test_a_blank_code_is_missing(blank: str) -> None:
    frame = pl.DataFrame({"region": ["North", blank], "value": [1, 2]})
    with pytest.raises(InvalidTable, match="The code of 'region' is missing at row 2 of the frame"):
        Table.from_cells(frame, dimensions=["region"], missing_totals="compute")


def test_codes_of_several_levels_are_told_with_the_file_that_has_them(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    path.write_text("region,value\nTotal,10\nN,10\nN1,10\nN2,10\nN3,10\n", encoding="utf-8")
    with pytest.raises(InvalidTable, match=r"The codes of 'region' in cells\.csv add up to .* their total"):
        Table.from_cells(read_frame(path), dimensions={"region": Hierarchy.flat(["N", "N1", "N2", "N3"])})


def test_sums_that_fall_short_where_cells_are_missing_say_so() -> None:
    """A printed table in which others have withheld cells: their values are needed, not another hierarchy."""
    values = {"T": [100, 60, 40], "a": [70, None, 30], "b": [30, None, 10]}
    frame = pl.DataFrame(
        [
            {"r": row, "c": column, "value": value}
            for row, line in values.items()
            for column, value in zip(("T", "x", "y"), line, strict=True)
            if value is not None
        ]
    )
    trees = {name: Hierarchy.flat(codes, total="T") for name, codes in (("r", ["a", "b"]), ("c", ["x", "y"]))}
    with pytest.raises(InvalidTable, match="has no value for 2 of the cells that its codes make"):
        Table.from_cells(frame, dimensions=trees, value="value")
