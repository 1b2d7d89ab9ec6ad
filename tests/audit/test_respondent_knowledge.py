"""Who is who where a table lists contributors without their names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seeds
import tablesafe as ts
from tablesafe.audit.audit import audit
from tablesafe.audit.insiders import insiders
from tablesafe.audit.respondent_knowledge import Lists
from tablesafe.audit.system import System
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.rules import Manual, PPercent
from tablesafe.tabulate import tabulate


def lists_of(table: Table) -> tuple[Lists, Lists]:
    """With names and without; the table keeps all contributors of its cells."""
    assert table.contributors is not None
    nameless = replace(table.contributors, identity=np.full_like(table.contributors.identity, -1))
    named, bare = Lists.of(table), Lists.of(replace(table, contributors=nameless))
    assert named is not None
    assert bare is not None
    return named, bare


def table_of(records: list[tuple[str, str, str, int]]) -> Table:
    frame = pl.DataFrame(records, schema=["row", "column", "firm", "amount"], orient="row")
    return tabulate(frame, dimensions=["row", "column"], value="amount", respondent="firm", largest=8)


@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("ABCDEF"), st.integers(1, 9)),
        min_size=1, max_size=8,
    )
)  # fmt: skip
def test_different_contributors_are_never_taken_for_one(records: list[tuple[str, str, str, int]]) -> None:
    """Firms may be in several cells, and have equal amounts; places with equal amounts may stand in any order."""
    named, bare = lists_of(table_of(records))
    for number in np.unique(bare.who[bare.who >= 0]).tolist():
        cells, places = np.nonzero(bare.who == number)
        assert len(np.unique(cells)) == len(cells), "nobody is twice in a cell"
        firms = [
            {int(firm) for firm in named.who[cell][named.own[cell] == named.own[cell, place]] if firm >= 0}
            for cell, place in zip(cells, places, strict=True)
        ]
        assert set.intersection(*firms)


@pytest.mark.parametrize("seed", [11, 19, 37, 43, *seeds.fresh(2, "counted contributors")])
def test_counts_that_were_read_tell_of_their_contributors_what_records_tell(seed: int) -> None:
    """Each of those who are counted knows that it is one of them, so that no cell of its own is empty."""
    random = np.random.default_rng(seed)
    k = int(random.integers(12, 60))
    frame = pl.DataFrame({"a": random.choice(list("pqr"), k), "b": random.choice(list("xyz"), k)})
    made = tabulate(frame, dimensions=["a", "b"], zeros=True, largest=4)
    read = Table.from_cells(made.cells(), dimensions=["a", "b"], value=made.response, count="count")
    hidden = random.random(len(made)) < random.choice([0.5, 0.8])
    sensitive = hidden & (random.random(len(made)) < 0.4) & (made.integers > 0)
    open_: list[tuple[set[int], set[int]]] = []
    for table in (made, read):
        problem = ts.Problem(table, rules=[ts.Manual(cells=sensitive, range_absolute=1 + seed % 3)])
        found = insiders(problem, System.of(problem, ts.Release.from_suppression(problem, hidden))).found
        open_.append(({each.cell for each in found if each.certain}, {each.cell for each in found}))
    (certain, possible), (also_certain, also_possible) = open_
    assert certain <= also_possible
    assert also_certain <= possible
    assert certain or seed not in {11, 19, 37, 43}


def test_contributors_of_amounts_or_of_cells_that_nobody_counted_are_not_told_theirs() -> None:
    frame = pl.DataFrame({"a": ["p", "q", "Total"], "n": [2, 3, 5], "value": [2.0, 4.0, 6.0]})
    counts, amounts = (Table.from_cells(frame, dimensions=["a"], value=name, count="n") for name in ("n", "value"))
    for table, own in ((counts, 1.0), (amounts, 0.0)):
        lists = Lists.of(table)
        assert lists is not None
        assert lists.own.ravel().tolist() == [own] * 3
    unseen = np.array([True, False, False])
    for judged in (False, True):
        lists = Lists.of(replace(counts, unseen=unseen, judged=judged))
        assert lists is not None
        assert lists.own.ravel().tolist() == [float(judged), 1.0, 1.0]


def test_contributors_of_a_single_cell_are_found_in_its_totals() -> None:
    cells = [("a", "x"), ("a", "y"), ("b", "y")]
    records = [(r, c, f"{r}{c}{i}", 10 ** (i + 1) + k) for k, (r, c) in enumerate(cells) for i in range(2)]
    named, bare = lists_of(table_of(records))
    pairs = {(int(a), int(b)) for a, b in zip(named.who.ravel(), bare.who.ravel(), strict=True) if a >= 0}
    assert len(pairs) == len(records), "one number for each firm, in all cells"


@pytest.mark.parametrize("amounts", [(7, 7), (7, 3)])
def test_the_only_contributor_of_a_total_is_the_only_one_of_its_parts(amounts: tuple[int, int]) -> None:
    table = table_of([("a", "x", "A", amounts[0]), ("a", "y", "A", amounts[1]), ("b", "x", "B", 5), ("b", "y", "C", 6)])
    _, bare = lists_of(table)
    at = [table.index(row="a", column=column) for column in ("x", "y", "Total")]
    assert len(set(bare.who[at, 0].tolist())) == 1
    assert bare.who[table.index(row="b", column="x"), 0] != bare.who[table.index(row="b", column="y"), 0]


def test_equal_amounts_are_not_told_apart() -> None:
    """By rows the second 5 of the whole table would be that of (a, y), by columns that of (b, x)."""
    table = table_of([(row, column, row + column, 5) for row in "ab" for column in "xy"])
    _, bare = lists_of(table)
    inner = [table.index(row=row, column=column) for row in "ab" for column in "xy"]
    assert len(set(bare.who[inner, 0].tolist())) == 4


def test_that_somebody_is_alone_in_a_combination_that_no_table_shows_is_said_not_to_be_assumed() -> None:
    """Two margins that need no unseen cells; a crossed table, or one with unseen cells that cross all, says nothing."""
    random = np.random.default_rng(5)
    rows = [
        (*random.integers(0, 3, 3).astype(str).tolist(), f"f{i % 40}", int(random.integers(1, 90))) for i in range(90)
    ]
    frame = pl.DataFrame(rows, schema=["a", "b", "c", "firm", "amount"], orient="row")
    for margins, told in (
        ([["a"], ["b"]], True),
        ([["a", "b"], ["b", "c"]], True),
        ([["a", "b"], ["b", "c"], ["a", "c"]], False),
        (None, False),
    ):
        names = ["a", "b"] if margins == [["a"], ["b"]] else ["a", "b", "c"]
        table = tabulate(frame, dimensions=names, value="amount", respondent="firm", margins=margins, largest=40)
        problem = Problem(table, [PPercent(p=90), Manual(cells=np.arange(len(table)) == table.index(a="1"))])
        verdict = audit(problem, Release.from_suppression(problem, np.ones(len(table), np.bool_))).verdict
        assert any("alone in a combination" in line for line in verdict.lines) is told, margins
