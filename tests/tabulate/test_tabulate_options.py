"""What the options of a tabulation mean."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table
from tablesafe.rules import PPercent, RequestRule, Threshold
from tablesafe.rules.contributions import shadowed
from tablesafe.tabulate import tabulate

FIRMS = pl.DataFrame(
    {
        "region": ["N", "N", "N", "S", "S", "W"],
        "size": ["1", "2", "2", "1", "1", None],
        "firm": ["a", "a", "b", "b", "c", "d"],
        "group": ["g", "g", None, None, "g", "h"],
        "turnover": [10, 20, 40, 7, 5, 3],
        "staff": [1, 2, 3, 4, 5, 6],
        "asked": [0, 0, 1, 0, 2, 0],
    }
)


def cell(table: Table, **codes: str) -> int:
    return table.index(**codes)


def test_the_example_of_the_design(tmp_path: Path) -> None:
    FIRMS.drop_nulls("size").write_parquet(tmp_path / "firms.parquet")
    table = tabulate(
        tmp_path / "firms.parquet", dimensions={"region": Hierarchy.flat(["N", "S", "W"]), "size": None},
        value="turnover", respondent="firm", holding="group", weight=None, largest=3,
    )  # fmt: skip
    top = cell(table)
    assert table.value[top] == 82
    assert table.count is not None
    assert table.holdings is not None
    assert table.contributors is not None
    assert table.contributors.names is not None
    assert (table.count[top], table.holdings[top]) == (3, 2)
    assert table.largest(3)[top].tolist() == [47, 35, 0]
    assert [str(table.contributors.names[i]) for i in table.contributors.identity[top][:2]] == ["b", "g"]


def test_codes_of_flat_dimensions_are_in_the_order_a_reader_expects() -> None:
    table = tabulate({"m": ["10", "9", "1", "2"]}, dimensions=["m"])
    assert table.dimensions["m"].codes == ("Total", "1", "2", "9", "10")


def test_without_a_value_records_are_counted() -> None:
    table = tabulate(FIRMS, dimensions=["region"], respondent="firm")
    assert table.response == "records"
    assert table.value.tolist() == [6, 3, 2, 1]
    assert table.count is not None
    assert table.count.tolist() == [4, 2, 2, 1], "a respondent in two regions is one in the total"
    assert not table.residual().any()


def test_weighted_counts_estimate_the_population() -> None:
    table = tabulate(FIRMS, dimensions=["region"], weight="staff")
    assert table.value.tolist() == [21, 6, 9, 6]
    assert table.count is not None
    assert table.count.tolist() == [6, 3, 2, 1]


def test_missing_codes() -> None:
    dropped = tabulate(FIRMS, dimensions=["region", "size"], value="turnover", missing="drop")
    assert dropped.value[cell(dropped)] == 82
    named = tabulate(FIRMS, dimensions=["region", "size"], value="turnover", missing={"size": "unknown"})
    assert named.value[cell(named)] == 85
    assert named.value[cell(named, size="unknown")] == 3
    tree = Hierarchy.from_pairs([("All", "known"), ("All", "?"), ("known", "1"), ("known", "2")])
    inside = tabulate(FIRMS, dimensions={"size": tree}, value="turnover", missing="?")
    assert {code: inside.value[cell(inside, size=code)] for code in tree.codes} == {
        "All": 85, "known": 82, "1": 22, "2": 60, "?": 3,
    }  # fmt: skip


def test_texts_that_stand_for_nothing() -> None:
    frame = {"x": ["A", "NA", " NA "], "v": ["1", "2", "3"]}
    table = tabulate(frame, dimensions=["x"], value="v", empty=["NA"], missing="none")
    assert dict(zip(table.code_columns()["x"], table.value, strict=True)) == {"Total": 6, "A": 1, "none": 5}


def test_blanks_around_codes_and_names_do_not_matter() -> None:
    frame = {"x": ["A", "A ", " A"], "f": ["u", " u", "u "], "v": [1, 2, 3]}
    for hierarchy in (None, Hierarchy.flat(["A", "B"])):
        table = tabulate(frame, dimensions={"x": hierarchy}, value="v", respondent="f")
        assert table.value.tolist() == ([6] if hierarchy is None else [6, 6])
        assert table.count is not None
        assert set(table.count) == {1}


WHERE = {
    "sql": "turnover > 4 AND region <> 'W'",
    "comment": "turnover > 4 AND region <> 'W' -- not the west",
    "quoted": "\"turnover\" > 4 AND \"region\" IN ('N', 'S')",
}


@pytest.mark.parametrize("kind", WHERE)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ""])
def test_filters(kind: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"r{suffix}"
    if suffix:
        FIRMS.write_csv(path) if suffix == ".csv" else FIRMS.write_parquet(path)
    source = path if suffix else FIRMS
    assert tabulate(source, dimensions=["region"], value="turnover", where=WHERE[kind]).value.tolist() == [82, 70, 12]


def test_filters_by_codes() -> None:
    one = tabulate(FIRMS, dimensions=["region"], value="turnover", where={"region": ["N", " S"], "staff": "2"})
    assert one.value.tolist() == [20]


def test_text_of_a_csv_file_counts_as_numbers_in_a_filter_if_all_of_it_is(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(
        "x;n;code;long;v\nA;9;07;123456789012345678;1,5\nB;10;11;123456789012345679;2,5\n\nC;;12;;4,0\n"
    )

    def total(where: str) -> float:
        table = tabulate(tmp_path / "r.csv", dimensions=["x"], value="v", where=where)
        return float(table.value[table.index()])

    assert total("n > 9.5") == 2.5, "as text, 10 comes before 9"
    assert total("n IS NULL") == 4.0
    assert total("long = 123456789012345678") == 1.5
    assert total("v >= 2.5") == 6.5, "with decimal commas"
    assert total("code LIKE '0%'") == 1.5, "a code with a leading zero is no number"
    assert total("code = '07' OR N = 10") == 4.0


def test_bad_records_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("x,v\nA,1\nB,NA\n?,3\n")
    table = tabulate(
        tmp_path / "r.csv", dimensions={"x": Hierarchy.flat(["A", "B"])}, value="v", where="v <> 'NA' AND x <> '?'"
    )
    assert table.value.tolist() == [1, 1]


def test_columns_under_other_names() -> None:
    table = tabulate(FIRMS, dimensions=["area"], column_of={"area": "region"}, total="Land", value="turnover")
    assert list(table.dimensions) == ["area"]
    assert table.dimensions["area"].total == "Land"
    two = tabulate(FIRMS, dimensions=["region", "staff"], total={"staff": "All"}, value="turnover")
    assert [h.total for h in two.dimensions.values()] == ["Total", "All"]


def test_empty_combinations_as_zeros() -> None:
    frame = FIRMS.drop_nulls("size")
    table = tabulate(frame, dimensions=["region", "size"], value="turnover", respondent="firm", zeros=True)
    assert len(table) == 3 * 3
    empty = cell(table, region="S", size="2")
    assert table.value[empty] == 0
    assert table.count is not None
    assert table.count[empty] == 0
    assert table.contributors is not None
    assert (table.contributors.identity[empty] == -1).all()
    assert not table.residual().any()
    full = tabulate(frame, dimensions=["region", "size"], value="turnover", respondent="firm")
    there = [cell(table, region=r, size=s) for r, s in zip(*full.code_columns().values(), strict=True)]
    assert table.value[there].tolist() == full.value.tolist()
    assert table.largest(3)[there].tolist() == full.largest(3).tolist()
    margins = tabulate(frame, dimensions=["region", "size"], value="turnover", zeros=True, margins=["region", "size"])
    assert len(margins) == 3 + 3 - 1


def test_shadow_cost_and_further_columns() -> None:
    table = tabulate(
        FIRMS, dimensions=["region"], value="staff", shadow="turnover", cost="turnover", columns=["asked"],
        respondent="firm", largest=2,
    )  # fmt: skip
    north = cell(table, region="N")
    assert table.value[north] == 6
    assert table.largest(2)[north].tolist() == [40, 30], "contributors are ranked and measured by the shadow variable"
    assert table.columns["shadow"][north] == 70
    assert table.columns["cost"][north] == 70
    assert table.columns["asked"][north] == 1
    plain = tabulate(FIRMS, dimensions=["region"], value="turnover", respondent="firm", largest=2)
    rule = PPercent(p=10)
    assert rule(table).mask.tolist() == rule(plain).mask.tolist()
    share = rule(plain).upper / plain.value
    assert np.allclose(rule(table).upper, share * table.value)  # the same share of the response
    assert rule(table).mask.tolist() == rule(plain).mask.tolist(), "rules look at the shadow variable by themselves"
    assert shadowed(plain) is plain


def test_the_request_is_that_of_the_largest_contributor() -> None:
    table = tabulate(FIRMS, dimensions=["region"], value="turnover", respondent="firm", request="asked")
    by_code = dict(zip(table.code_columns()["region"], table.columns["asked"], strict=True))
    assert by_code == {"Total": 1, "N": 1, "S": 0, "W": 0}, "b asked in the north, so its largest share asked there"
    rule = RequestRule(of=Threshold(n=5), request="asked", code=1)
    assert rule(table).mask.tolist() == [True, True, False, False]


def test_a_respondent_of_two_holdings_is_one_respondent() -> None:
    frame = {"x": ["A", "A", "B"], "f": ["u", "u", "u"], "g": ["p", "q", None], "v": [1, 2, 4]}
    table = tabulate(frame, dimensions=["x"], value="v", respondent="f", holding="g")
    assert table.count is not None
    assert table.holdings is not None
    assert table.count.tolist() == [1, 1, 1]
    assert table.holdings.tolist() == [3, 2, 1]


def test_a_respondent_alone_is_not_the_holding_of_the_same_name() -> None:
    frame = {"x": ["A", "A"], "f": ["7", "8"], "g": [None, "7"], "v": [1, 2]}
    table = tabulate(frame, dimensions=["x"], value="v", respondent="f", holding="g")
    assert table.contributors is not None
    assert table.contributors.names is not None
    assert [str(table.contributors.names[i]) for i in table.contributors.identity[0][:2]] == ["7", "7 (no holding)"]


def test_ties_go_by_name() -> None:
    frame = {"x": ["A"] * 4, "f": ["d", "b", "a", "c"], "v": [5, -5, 5, 5]}
    table = tabulate(frame, dimensions=["x"], value="v", respondent="f", largest=3)
    assert table.contributors is not None
    assert table.contributors.names is not None
    assert list(table.contributors.names[table.contributors.identity[0]]) == ["a", "b", "c"]
    assert table.contributors.amount[0].tolist() == [5, -5, 5]


def test_no_contributors_wanted() -> None:
    table = tabulate(FIRMS, dimensions=["region"], value="turnover", respondent="firm", holding="group", largest=0)
    assert table.contributors is None
    assert table.count is not None
    assert table.count.tolist() == [4, 2, 2, 1]


def test_sums_are_exact_whatever_the_order() -> None:
    values = [0.1, 0.2, 0.3, 1e9, -1e9, 0.1, 0.2] * 50
    for rows in (values, values[::-1], sorted(values)):
        table = tabulate({"x": ["A"] * len(rows), "v": rows}, dimensions=["x"], value="v")
        assert (table.integers[0], table.decimals) == (450, 1)


def test_exact_weights() -> None:
    table = tabulate({"x": ["A", "B"], "v": [0.1, 0.2], "w": [1.15, 2.25]}, dimensions=["x"], value="v", weight="w")
    assert table.decimals == 3
    assert table.exact
    assert table.integers.tolist() == [565, 115, 450]


def test_several_responses_without_equations() -> None:
    table = tabulate(FIRMS, dimensions=["region"], value=["turnover", "staff"], respondent="firm")
    assert list(table.dimensions) == ["region", "response"]
    assert table.value[cell(table, region="S", response="staff")] == 9


def test_a_total_among_the_values_or_computed() -> None:
    frame = FIRMS.with_columns(all=pl.col("turnover") + pl.col("staff"))
    options: dict[str, Any] = {"dimensions": ["region"], "equations": "all = turnover + staff", "respondent": "firm"}
    listed = tabulate(frame, value=["all", "turnover", "staff"], **options)
    computed = tabulate(frame, value=["turnover", "staff"], **options)
    assert listed.value.tolist() == computed.value.tolist()
    assert listed.largest(3).tolist() == computed.largest(3).tolist()
    inexact = frame.with_columns(w=pl.lit(1 / 3) * pl.col("staff"))
    for value in (["all", "turnover", "staff"], ["turnover", "staff"]):
        table = tabulate(inexact, value=value, weight="w", **options)
        assert not table.exact
        assert not table.residual().any(), "the equation holds though every share was rounded"


def test_equations_of_equations() -> None:
    frame = {"x": ["A", "B"], "a": [1, 2], "b": [3, 4], "c": [5, 6]}
    table = tabulate(frame, dimensions=["x"], value=["a", "b", "c"], equations=["all = ab + c", "ab = a + b"])
    assert table.value[cell(table, response="all")] == 21
    assert table.value[cell(table, response="ab")] == 10


def test_progress_is_reported() -> None:
    steps: list[tuple[str, int, int | None]] = []
    tabulate(FIRMS, dimensions=["region"], value="turnover", progress=lambda *step: steps.append(step))
    assert any(total == done == 6 for _, done, total in steps)


def test_many_batches_cut_no_contributor_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    frame = pl.DataFrame(
        {
            "x": rng.integers(0, 9, 3000).astype(str),
            "y": rng.integers(0, 9, 3000).astype(str),
            "f": rng.integers(0, 300, 3000).astype(str),
            "g": np.minimum(rng.integers(0, 40, 3000), 9).astype(str),
            "v": rng.integers(-50, 900, 3000),
        }
    )
    tables = []
    for batch in (1 << 18, 2048, 3):
        monkeypatch.setattr(import_module("tablesafe.tabulate.leaves"), "BATCH", batch)
        tables.append(tabulate(frame, dimensions=["x", "y"], value="v", respondent="f", holding="g"))
    for table in tables[1:]:
        assert table.largest(3).tolist() == tables[0].largest(3).tolist()
        assert table.count is not None
        assert table.count.tolist() == tables[0].count.tolist()  # type: ignore[union-attr]
        assert table.holdings.tolist() == tables[0].holdings.tolist()  # type: ignore[union-attr]


def test_a_request_is_heard_from_all_who_are_the_largest_and_in_all_its_codes() -> None:
    """Two alike, of whom one asked; one who asked in two ways; with weights, the most reported and the most added."""
    rule = PPercent(p=60)

    def flagged(rows: list[tuple[str, str, int, int, int]], weight: str | None = None) -> list[bool]:
        frame = pl.DataFrame(rows, schema=["region", "firm", "v", "w", "asked"], orient="row")
        table = tabulate(frame, dimensions=["region"], value="v", respondent="firm", weight=weight, request="asked")
        rules = [RequestRule(of=rule, request="asked", code=code) for code in (1, 2)]
        rules.append(RequestRule(of=rule, respondents=tuple({firm for _, firm, *_, asked in rows if asked})))
        return [bool(each(table).mask[table.index()]) for each in rules]

    for asked in ((0, 1), (1, 0)):
        rows = [("N", "f", 5, 1, asked[0]), ("N", "g", 5, 1, asked[1])]
        assert flagged(rows) == [True, False, True]
    assert flagged([("N", "f", 5, 1, 1), ("N", "f", 5, 1, 2), ("S", "f", 5, 1, 0)]) == [True, True, True]
    weighted = [("N", "f", 8, 2, 1), ("N", "g", 10, 1, 2)]
    assert flagged(weighted) == [False, True, True]
    assert flagged(weighted, "w") == [True, True, True]
