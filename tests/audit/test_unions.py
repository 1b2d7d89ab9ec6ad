"""Unions: sums that a release gives away, and who is in them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from tablesafe.audit.audit import audit
from tablesafe.audit.sums import SumSearch, constant_sums
from tablesafe.audit.system import System
from tablesafe.audit.unions import Unions, unions
from tablesafe.core.errors import InvalidOption
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Contributors, Table
from tablesafe.rules import AllOf, AnyOf, Dominance, Levels, Manual, PPercent, RequestRule, Rule, Threshold, Waiver
from tablesafe.tabulate import tabulate

Record = tuple[str, str, str, float]

MANY: list[Record] = [
    (row, column, f"{row}{column}{i}", 20.0) for row in "abc" for column in "xyz" for i in range(5)
]  # fmt: skip


def records(**cells: dict[str, float]) -> list[Record]:
    """Five equal firms per cell, but for the cells given, such as `ax={"A": 100}`."""
    kept = [record for record in MANY if record[0] + record[1] not in cells]
    return kept + [(cell[0], cell[1], firm, amount) for cell, has in cells.items() for firm, amount in has.items()]


def table_of(rows: list[Record], **options: Any) -> Table:
    frame = pl.DataFrame(rows, schema=["row", "column", "firm", "amount"], orient="row")
    return tabulate(frame, dimensions=["row", "column"], value="amount", respondent="firm", **{"largest": 3, **options})


def hidden(table: Table, *cells: str) -> NDArray[np.bool_]:
    mask = np.zeros(len(table), dtype=np.bool_)
    for cell in cells:
        codes = {d: c for d, c in zip(("row", "column"), cell, strict=True) if c != "T"}
        mask[table.index(**codes)] = True
    return mask


def judged(table: Table, cells: str, *rules: Rule, **options: Any) -> Unions:
    problem = Problem(table, rules)
    system = System.of(problem, Release.from_suppression(problem, hidden(table, *cells.split())))
    return unions(problem, system, **options)


def named(table: Table, found: Unions) -> list[set[str]]:
    columns = list(table.code_columns().values())
    return [{"".join("T" if c[i] == "Total" else c[i] for c in columns) for i in u.cells} for u in found.failed]


def test_a_respondent_in_both_cells_of_a_remainder_is_one() -> None:
    """Each cell has three firms, but the two cells together have four, and A holds nearly all of both."""
    table = table_of(records(ax={"A": 90, "B": 5, "C": 9}, ay={"A": 80, "B": 4, "D": 8}))
    found = judged(table, "ax ay bx by", PPercent(p=15))
    assert named(table, found) == [{"ax", "ay"}]
    union = found.failed[0]
    assert union.certain
    assert (union.value, union.fewest, union.most) == (196, 4, 4)
    assert union.rules == ("p%",)
    assert union.text == "(row=a, column=x) + (row=a, column=y) = (row=a, column=Total) − (row=a, column=z)"
    assert not found.safe


def test_two_different_respondents_hide_each_other() -> None:
    """The same amounts, but of two different firms: neither can tell how much the other has."""
    table = table_of(records(ax={"A": 90, "B": 5, "C": 9}, ay={"E": 80, "F": 14, "D": 8}))
    found = judged(table, "ax ay bx by", PPercent(p=15))
    assert not found.failed
    assert found.safe
    assert found.sums > 0


def test_a_union_with_too_few_respondents_fails_the_threshold() -> None:
    table = table_of(records(ax={"A": 90}, ay={"B": 80}))
    found = judged(table, "ax ay bx by", Threshold(n=3))
    assert named(table, found) == [{"ax", "ay"}]
    assert found.failed[0].rules == ("threshold",)


def test_a_sum_through_two_equations_is_found() -> None:
    """The north is withheld with two of its parts, and the south: both equations together leave three cells."""
    pairs = [("Total", "north"), ("Total", "south"), ("north", "n1"), ("north", "n2"), ("north", "n3")]
    rows = [("n1", "A", 50.0), ("n2", "B", 60.0), ("south", "D", 7.0), *(("n3", f"C{i}", 9.0) for i in range(5))]
    frame = pl.DataFrame(rows, schema=["region", "firm", "amount"], orient="row")
    table = tabulate(
        frame, dimensions={"region": Hierarchy.from_pairs(pairs)}, value="amount", respondent="firm", largest=3
    )
    mask = np.isin(table.code_columns()["region"].to_numpy(), ["n1", "n2", "north", "south"])
    text = "(region=n1) + (region=n2) + (region=south) = (region=Total) − (region=n3)"
    for n, fails in ((3, False), (4, True)):
        problem = Problem(table, [Threshold(n=n)])
        found = unions(problem, System.of(problem, Release.from_suppression(problem, mask)))
        chains = [union for union in found.failed if union.text == text]
        assert bool(chains) is fails
        assert all(len(union.equations) == 2 for union in chains)


def test_a_pair_through_many_equations_is_found() -> None:
    """Rows a and b, less columns y and z, leave one cell of each row."""
    firms = [
        (row, column, f"{row}{column}{i}", 20.0)
        for row in "abc"
        for column in "wxyz"
        for i in range(1 if row + column in {"ax", "bw"} else 5)
    ]
    table = table_of(firms)
    for chain in (1, 4):
        found = judged(table, "ax ay az bw by bz cx cw", Threshold(n=3), search=SumSearch(max_chain=chain))
        assert named(table, found) == [{"ax", "bw"}]
        assert len(found.failed[0].equations) >= 3
        assert found.failed[0].text.startswith("(row=a, column=x) + (row=b, column=w) = ")


def test_a_cell_with_one_possible_value_is_no_part_of_a_sum() -> None:
    """z can only be zero, so what remains of the row is x and y alone."""
    table = Table.from_equations(
        ["t = x + y + z", "u = z + w", "v = x + s", "r = y + q"],
        {"t": 9.0, "x": 4.0, "y": 5.0, "z": 0.0, "u": 0.0, "w": 0.0, "v": 8.0, "s": 4.0, "r": 9.0, "q": 4.0},
    )
    table = replace(table, count=np.array([2, 1, 1, 0, 0, 0, 5, 4, 5, 4]))
    mask = np.array(
        [name in {"x", "y", "z", "w", "s", "q"} for name in ["t", "x", "y", "z", "u", "w", "v", "s", "r", "q"]]
    )
    problem = Problem(table, [Threshold(n=3)])
    system = System.of(problem, Release.from_suppression(problem, mask))
    truth = system.truth.astype(float)
    moves = ~np.isin(system.cells, [3, 5])
    found = unions(problem, system, lower=np.where(moves, 0.0, truth), upper=np.where(moves, 9.0, truth))
    assert ("'x' + 'y' = 't' − 'z'") in [union.text for union in found.failed]


def test_differences_are_no_unions() -> None:
    """The total and one part are withheld: their difference is known, but nobody contributes to a difference."""
    table = table_of(records(ax={"A": 90}))
    found = judged(table, "ax aT bx bT", Threshold(n=3))
    assert not found.failed
    assert {"ax", "aT"} not in named(table, found)


def test_short_lists_leave_a_union_possible_only() -> None:
    """A may be the third of D's cell, and D of A's; the lists of two do not say that B is."""
    cells: dict[str, dict[str, float]] = {
        "ax": {"A": 90, "C": 60, "B": 55},
        "ay": {"D": 90, "E": 60, "B": 55},
        "az": {"L": 500, "M": 400, "N": 300},
    }
    short = judged(table_of(records(**cells), largest=2), "ax ay bx by", PPercent(p=95))
    assert [union.certain for union in short.failed] == [False]
    assert short.safe
    assert not judged(table_of(records(**cells), largest=3), "ax ay bx by", PPercent(p=95)).failed


def test_the_list_of_the_total_limits_what_is_not_listed() -> None:
    """Here the row's own list shows that A and D have no more in the row than in their cells."""
    cells: dict[str, dict[str, float]] = {"ax": {"A": 90, "C": 60, "B": 55}, "ay": {"D": 90, "E": 60, "B": 55}}
    assert not judged(table_of(records(**cells), largest=2), "ax ay bx by", PPercent(p=95)).failed


@pytest.mark.parametrize("overlap", [0, 1])
def test_counts_that_add_up_show_that_nobody_is_in_two_cells(overlap: int) -> None:
    """Two firms in each of two cells: they are four if the row has four, and maybe fewer if it has three."""
    frame = pl.DataFrame(
        {"row": list("aabb"), "column": list("xyxy"), "value": [20.0, 30.0, 500.0, 600.0], "count": [2, 2, 50, 60]}
    )
    table = Table.from_cells(
        frame, dimensions=["row", "column"], value="value", count="count", missing_totals="compute"
    )
    count = np.asarray(table.count).copy()
    count[table.index(row="a")] -= overlap
    found = judged(replace(table, count=count), "ax ay bx by", Threshold(n=4))
    assert [union.certain for union in found.failed] == [False] * overlap
    assert [(union.fewest, union.most) for union in found.failed] == [(3, 4)] * overlap


def test_rules_by_hand_waivers_and_requests_speak_of_sums_as_they_can() -> None:
    table = table_of(records(ax={"A": 90, "B": 1}, ay={"A": 80, "B": 1}))
    pair = hidden(table, "ax", "ay")
    one = hidden(table, "ax")

    def fails(rule: Rule) -> bool:
        return bool(judged(table, "ax ay bx by", rule).failed)

    assert fails(PPercent(p=10))
    assert not fails(Manual(cells=pair)), "said of single cells"
    assert fails(AnyOf(rules=(Manual(cells=pair), PPercent(p=10))))
    assert fails(AllOf(rules=(Threshold(n=3), Dominance(n=1, k=80))))
    assert fails(Levels(of=PPercent(p=10), sliding=1.0))
    assert not fails(Waiver(of=PPercent(p=10), cells=pair))
    assert fails(Waiver(of=PPercent(p=10), cells=one)), "one cell was waived, not both"
    assert not fails(Waiver(of=PPercent(p=10), respondents=("A", "B")))
    assert fails(RequestRule(of=PPercent(p=10), request=one))
    assert not fails(RequestRule(of=PPercent(p=10), request=hidden(table, "bx")))
    assert fails(RequestRule(of=PPercent(p=10), respondents=("A",)))
    assert not fails(RequestRule(of=PPercent(p=10), respondents=("B",)))


def test_a_shadow_variable_ranks_the_merged_contributors_too() -> None:
    """By turnover A and D are alike; by employment, the shadow variable, A is nearly all there is in both cells."""
    rows = records(ax={"A": 50, "B": 50, "C": 50}, ay={"A": 50, "D": 50, "E": 50})
    frame = pl.DataFrame(rows, schema=["row", "column", "firm", "amount"], orient="row").with_columns(
        staff=pl.when(pl.col("firm") == "A").then(1000.0).otherwise(10.0)
    )
    for shadow, fails in ((None, False), ("staff", True)):
        table = tabulate(
            frame, dimensions=["row", "column"], value="amount", respondent="firm", shadow=shadow, largest=3
        )
        assert bool(judged(table, "ax ay bx by", PPercent(p=10)).failed) is fails


def test_holdings_are_counted_as_the_threshold_asks() -> None:
    frame = pl.DataFrame(
        records(ax={"A": 90, "B": 80}, ay={"C": 80, "D": 70}), schema=["row", "column", "firm", "amount"], orient="row"
    ).with_columns(group=pl.col("firm").replace({"A": "G", "B": "G", "C": "G", "D": "G"}))
    table = tabulate(frame, dimensions=["row", "column"], value="amount", respondent="firm", holding="group", largest=3)
    found = judged(table, "ax ay bx by", Threshold(n=3, on="holdings"))
    assert named(table, found) == [{"ax", "ay"}]
    assert found.failed[0].most == 4
    assert not judged(table, "ax ay bx by", Threshold(n=3)).failed


def test_weights_are_merged_with_the_amounts() -> None:
    rows = records(ax={"A": 20, "B": 9, "C": 9}, ay={"A": 20, "D": 9, "E": 9})
    frame = pl.DataFrame(rows, schema=["row", "column", "firm", "amount"], orient="row").with_columns(
        weight=pl.when(pl.col("firm") == "A").then(5.0).otherwise(1.0)
    )
    table = tabulate(frame, dimensions=["row", "column"], value="amount", respondent="firm", weight="weight", largest=3)
    assert judged(table, "ax ay bx by", PPercent(p=15)).failed[0].certain
    assert not judged(table, "ax ay bx by", PPercent(p=15, sampling_weights="unpublished")).failed


def test_the_search_says_what_it_did_and_where_it_stopped() -> None:
    table = table_of(records())
    found = judged(table, "ax ay az bx by bz cx cy cz", PPercent(p=10), search=SumSearch(max_component=3))
    assert "a limit was met" in found.searched
    full = judged(table, "ax ay az bx by bz cx cy cz", PPercent(p=10))
    assert "a limit was met" not in full.searched
    assert str(full.sums) in full.searched


@pytest.mark.parametrize("option", ["max_terms", "max_chain", "max_sums", "max_component"])
def test_limits_must_be_at_least_one(option: str) -> None:
    with pytest.raises(InvalidOption, match=f"SumSearch.{option} must be at least 1, got 0"):
        SumSearch(**{option: 0})


def test_remainders_of_a_large_table_agree_with_a_loop() -> None:
    """Every remainder of a random table with 40,000 cells, merged and judged one by one."""
    random = np.random.default_rng(7)
    size = 200
    keep = random.random(size * size) < 0.9
    hierarchies = {name: Hierarchy.flat([str(i) for i in range(size)]) for name in ("row", "column")}
    firms = random.integers(0, 3000, size=(size * size, 3))
    amount = -np.sort(-random.integers(1, 1000, size=(size * size, 3)).astype(float), axis=1)
    firms[:, 1] = np.where(firms[:, 1] == firms[:, 0], 3001, firms[:, 1])
    firms[:, 2] = np.where(np.isin(firms[:, 2], [3001]) | (firms[:, 2] == firms[:, 0]), 3002, firms[:, 2])
    amount[~keep], firms[~keep] = 0.0, -1
    value = np.zeros((size + 1, size + 1))
    value[:size, :size] = amount.sum(axis=1).reshape(size, size)
    value[size], value[:, size] = value.sum(axis=0), value.sum(axis=1)
    value[size, size] = value[:size, size].sum()
    at = np.indices(value.shape).reshape(2, -1).T
    place = np.array([hierarchies["row"].position(c) for c in [*map(str, range(size)), "Total"]], np.int32)
    inner = (at < size).all(axis=1)
    kept = Contributors(np.zeros((len(at), 3)), np.full((len(at), 3), -1))
    kept.amount[inner], kept.identity[inner] = amount, firms
    count = np.where(inner, 0, 99)
    count[inner] = (firms >= 0).sum(axis=1)
    table = Table.from_codes(place[at], value.ravel(), hierarchies, count=count, contributors=kept)
    mask = np.zeros(len(table), dtype=np.bool_)
    chosen = random.random(size * size) < 0.012
    mask[np.flatnonzero(inner)[chosen & keep]] = True
    rules = [PPercent(p=30), Threshold(n=6)]
    problem = Problem(table, sensitivity=None)
    problem = problem.replace(rules=tuple(rules))
    system = System.of(problem, Release.from_suppression(problem, mask))
    found = unions(problem, system, search=SumSearch(max_chain=1, max_component=1))
    fixed = constant_sums(system, search=SumSearch(max_chain=1, max_component=1)).fixed
    failing = set()
    for row in range(system.matrix.shape[0]):
        cells = system.matrix.indices[system.matrix.indptr[row] : system.matrix.indptr[row + 1]]
        cells = cells[~fixed[cells]]
        merged: dict[int, float] = {}
        for cell in system.cells[cells]:
            for firm, size_of in zip(kept.identity[cell].tolist(), kept.amount[cell].tolist(), strict=True):
                if firm >= 0:
                    merged[firm] = merged.get(firm, 0.0) + size_of
        ranked = sorted(merged.values(), reverse=True)
        if len(cells) > 1 and (len(ranked) < 6 or sum(ranked[2:]) < 0.3 * ranked[0]):
            failing.add(tuple(sorted(system.cells[cells].tolist())))
    told = {union.cells for union in found.failed if union.certain and len(union.equations) == 1}
    smallest = {some for some in failing if not any(set(other) < set(some) for other in failing)}
    assert smallest
    assert told == smallest
    assert all(itertools.chain.from_iterable((u.certain, u.fewest == u.most) for u in found.failed))


def test_a_sum_of_cells_that_are_asked_for_by_several_codes_is_asked_about() -> None:
    """Two requests of a cell stand in its column as one number: a sum of such cells must not pass for one nobody asked
    about."""
    records = pl.DataFrame(
        {
            "a": ["x", "x", "y", "y", "z", "z", "z"],
            "firm": ["1", "2", "1", "3", "4", "5", "6"],
            "turnover": [50, 50, 50, 50, 100, 100, 100],
            "asked": [1, 2, 1, 2, 0, 0, 0],
        }
    )
    table = tabulate(records, dimensions=["a"], value="turnover", respondent="firm", request="asked")
    rule = RequestRule(of=Dominance(n=1, k=40), request="asked", code=1)
    problem = Problem(table, [rule])
    x, y = table.index(a="x"), table.index(a="y")
    assert table.columns["asked"][[x, y]].tolist() == [-3, -3]
    withheld = np.zeros(len(table), dtype=np.bool_)
    withheld[[x, y]] = True
    findings = audit(problem, Release.from_suppression(problem, withheld), insiders=False)
    assert findings.unions is not None
    assert findings.unions.failed, "firm 1 has half of the sum, and asked"
    assert not findings.safe
