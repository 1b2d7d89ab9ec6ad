"""Insiders on tables small enough to follow by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import tablesafe as ts
from seeds import fresh
from tablesafe.audit import alternative_tables
from tablesafe.audit.alternative_tables import Moves
from tablesafe.audit.insiders import DESCRIBED, Insiders, insiders
from tablesafe.audit.respondent_knowledge import Knowledge, Lists
from tablesafe.audit.system import System
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Rule, Sensitivity
from tablesafe.core.table import Table
from tablesafe.rules import PPercent, Threshold
from tablesafe.tabulate import tabulate
from tablesafe.work.budget import Budget

Record = tuple[str, str, str, float]

OTHERS: list[Record] = [
    ("b", "x", "F", 50), ("b", "x", "G", 50), ("b", "x", "H", 45),
    ("b", "y", "I", 50), ("b", "y", "J", 50), ("b", "y", "K", 45),
    ("a", "z", "L", 30), ("a", "z", "M", 30), ("a", "z", "N", 28),
    ("b", "z", "O", 30), ("b", "z", "P", 30), ("b", "z", "Q", 28),
]  # fmt: skip
SQUARE = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
INNER = [(row, column) for row in "ab" for column in "xyz"]


def table_of(records: list[Record], **options: Any) -> Table:
    frame = pl.DataFrame(records, schema=["row", "column", "firm", "amount"], orient="row")
    return tabulate(frame, dimensions=["row", "column"], value="amount", respondent="firm", **{"largest": 3, **options})


def hidden(table: Table, cells: list[tuple[str, str]]) -> np.ndarray[Any, Any]:
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[[table.index(row=row, column=column) for row, column in cells]] = True
    return mask


def found_in(table: Table, cells: list[tuple[str, str]], *rules: Rule, **options: Any) -> Insiders:
    problem = Problem(table, rules or (PPercent(p=10),))
    system = System.of(problem, Release.from_suppression(problem, hidden(table, cells)))
    return insiders(problem, system, **options)


def by_cell(table: Table, found: Insiders) -> dict[tuple[str, ...], Any]:
    columns = table.code_columns()
    return {tuple(column[insider.cell] for column in columns.values()): insider for insider in found.found}


def test_two_single_contributors_in_a_row_learn_each_other() -> None:
    table = table_of([("a", "x", "A", 100), ("a", "y", "B", 80), *OTHERS])
    found = by_cell(table, found_in(table, SQUARE))
    assert set(found) == {("a", "x"), ("a", "y")}
    worst = found["a", "x"]
    assert worst.exact
    assert worst.certain
    assert (worst.lower, worst.upper) == (100, 100)
    assert worst.role == "the only contributor of another cell in the same row"


def test_a_single_contributor_beside_two_learns_their_sum() -> None:
    table = table_of([("a", "x", "A", 100), ("a", "y", "B", 80), ("a", "y", "C", 70), *OTHERS])
    found = by_cell(table, found_in(table, SQUARE))
    assert set(found) == {("a", "y")}, "the single one is safe: neither of the two knows their sum"
    assert found["a", "y"].exact


def test_one_of_two_is_no_danger_where_the_rest_is_wide() -> None:
    two = [("a", "x", "A", 100.0), ("a", "x", "B", 90.0), ("a", "y", "C", 80.0), ("a", "y", "D", 70.0)]
    assert not found_in(table_of([*two, *OTHERS]), SQUARE).found


def test_one_of_two_is_a_danger_where_it_holds_nearly_all_of_the_other_cell() -> None:
    """The other cell of the row can give way by no more than 1, which is all that is not the insider's."""
    two = [("a", "x", "A", 100.0), ("a", "x", "B", 90.0), ("a", "y", "C", 80.0), ("a", "y", "D", 1.0)]
    table = table_of([*two, *OTHERS])
    worst = by_cell(table, found_in(table, SQUARE))["a", "x"]
    assert worst.role == "one of two contributors of another cell in the same row"
    assert worst.upper == 191
    assert worst.short_above == pytest.approx(10 - 1)


def test_names_are_told_only_when_asked_for() -> None:
    table = table_of([("a", "x", "Acme", 100), ("a", "y", "Bolt", 80), *OTHERS])
    quiet = found_in(table, SQUARE)
    assert "Acme" not in repr(quiet)
    assert "Bolt" not in repr(quiet)
    loud = by_cell(table, found_in(table, SQUARE, names=True))
    assert loud["a", "x"].names == ("Bolt",)


def test_firms_of_one_holding_are_one_insider() -> None:
    """Two firms in two cells of a row: as one holding they know the sum of both, and so the third cell."""
    records = [("a", "x", "A", 100.0), ("a", "y", "B", 80.0), ("a", "z", "C", 70.0)]
    others = [record for record in OTHERS if record[0] == "b"]
    frame = pl.DataFrame([*records, *others], schema=["row", "column", "firm", "amount"], orient="row")
    apart = tabulate(frame, dimensions=["row", "column"], value="amount", respondent="firm", largest=3)
    assert not found_in(apart, INNER).found
    frame = frame.with_columns(group=pl.col("firm").replace({"A": "AB", "B": "AB"}))
    joint = tabulate(frame, dimensions=["row", "column"], value="amount", respondent="firm", holding="group", largest=3)
    found = by_cell(joint, found_in(joint, INNER, names=True))
    assert set(found) == {("a", "z")}
    assert found["a", "z"].names == ("AB",)


def test_a_coalition_of_two_knows_what_neither_knows() -> None:
    records = [("a", "x", "A", 100.0), ("a", "y", "B", 80.0), ("a", "z", "C", 70.0)]
    table = table_of([*records, *(record for record in OTHERS if record[0] == "b")])
    assert not found_in(table, INNER).found
    found = by_cell(table, found_in(table, INNER, coalition=2))
    assert set(found) == {("a", "x"), ("a", "y"), ("a", "z")}
    assert all(insider.size == 2 and insider.exact for insider in found.values())
    assert found["a", "x"].role.startswith("a coalition of 2: the only contributor of another cell in the same row;")


def test_a_limit_on_coalitions_is_told() -> None:
    records = [("a", "x", "A", 100.0), ("a", "y", "B", 80.0), ("a", "z", "C", 70.0)]
    table = table_of([*records, *(record for record in OTHERS if record[0] == "b")])
    cut = found_in(table, INNER, coalition=2, max_coalitions=1)
    assert cut.unsearched
    assert "not all of them" in cut.searched
    assert not found_in(table, INNER, coalition=2).unsearched


def test_from_the_largest_contributor_only_the_others_are_hidden() -> None:
    """A has 100 of 104 and 80 of the 82 beside. It may learn that B has at most 6; D in its place learns too much."""
    records = [("a", "x", "A", 100.0), ("a", "x", "B", 4.0), ("a", "y", "A", 80.0), ("a", "y", "C", 2.0)]
    table = table_of([*records, *OTHERS])
    assert Problem(table, [PPercent(p=10)]).sensitivity.upper[table.index(row="a", column="x")] == 10
    assert not found_in(table, SQUARE).found
    records[2] = ("a", "y", "D", 80.0)
    table = table_of([*records, *OTHERS])
    found = by_cell(table, found_in(table, SQUARE, names=True))
    assert found["a", "x"].names == ("D",)
    assert found["a", "x"].upper == 106


def test_who_is_alone_in_a_cell_is_no_danger_to_itself() -> None:
    table = table_of([("a", "x", "A", 100), ("a", "y", "B", 80), ("a", "y", "C", 70), ("a", "y", "D", 70), *OTHERS])
    assert not found_in(table, SQUARE).found


def test_without_contributors_and_counts_there_are_no_insiders() -> None:
    table = Table.from_equations(["t = a + b"], {"t": 3.0, "a": 1.0, "b": 2.0})
    problem = Problem(table, sensitivity=Sensitivity.of(np.array([False, True, True]), 1.0))
    system = System.of(problem, Release.from_suppression(problem, np.array([False, True, True])))
    found = insiders(problem, system)
    assert found.safe
    assert found.checked == 0
    assert "neither contributors" in found.searched


def test_counts_alone_tell_single_contributors() -> None:
    frame = pl.DataFrame(
        {
            "row": ["a", "a", "b", "b"],
            "column": ["x", "y", "x", "y"],
            "value": [10.0, 20.0, 30.0, 40.0],
            "count": [1, 1, 5, 5],
        }
    )
    table = Table.from_cells(
        frame, dimensions=["row", "column"], value="value", count="count", missing_totals="compute"
    )
    problem = Problem(table, [Threshold(n=3)])
    system = System.of(problem, Release.from_suppression(problem, hidden(table, SQUARE)))
    found = insiders(problem, system, names=True)
    assert {tuple(table.describe(i.cell) for i in found.found)} == {("(row=a, column=x)", "(row=a, column=y)")}
    assert {insider.names for insider in found.found} == {("without a name",)}


def test_a_threshold_without_a_range_asks_only_that_nobody_knows_the_cell() -> None:
    records = [("a", "x", "A", 100.0), ("a", "y", "B", 80.0), ("a", "y", "C", 70.0)]
    table = table_of([*records, *OTHERS])
    found = by_cell(table, found_in(table, SQUARE, Threshold(n=3)))
    assert set(found) == {("a", "y")}
    assert found["a", "y"].exact


def test_with_losses_only_single_contributors_know_something() -> None:
    """C and D may have lost any amount, so what they have themselves bounds nothing."""
    two = [("a", "x", "A", 100.0), ("a", "x", "B", -90.0), ("a", "y", "C", 80.0), ("a", "y", "D", 1.0)]
    assert not found_in(table_of([*two, *OTHERS]), SQUARE).found
    alone = [("a", "x", "A", 100.0), ("a", "x", "B", -90.0), ("a", "y", "C", 80.0)]
    table = table_of([*alone, *OTHERS])
    assert by_cell(table, found_in(table, SQUARE))["a", "x"].exact


def test_sampling_weights_count_as_known() -> None:
    """The single respondent beside the cell stands for ten: it knows the weighted cell."""
    frame = pl.DataFrame(
        [("a", "x", "A", 100.0, 1.0), ("a", "y", "B", 8.0, 10.0), *((*record, 1.0) for record in OTHERS)],
        schema=["row", "column", "firm", "amount", "weight"],
        orient="row",
    )
    table = tabulate(frame, dimensions=["row", "column"], value="amount", respondent="firm", weight="weight", largest=3)
    assert by_cell(table, found_in(table, SQUARE))["a", "x"].exact


def test_a_shadow_variable_tells_nothing_of_the_value() -> None:
    two = [("a", "x", "A", 100.0), ("a", "x", "B", 90.0), ("a", "y", "C", 80.0), ("a", "y", "D", 1.0)]
    frame = pl.DataFrame([*two, *OTHERS], schema=["row", "column", "firm", "amount"], orient="row").with_columns(
        size=pl.col("amount") * 1000
    )
    table = tabulate(frame, dimensions=["row", "column"], value="amount", respondent="firm", shadow="size", largest=3)
    problem = Problem(table, sensitivity=Sensitivity.of(hidden(table, SQUARE), 5.0))
    system = System.of(problem, Release.from_suppression(problem, hidden(table, SQUARE)))
    assert not insiders(problem, system).found


def test_below_what_one_has_alone_in_a_part_nothing_is_asked_with_a_shadow_variable_either() -> None:
    """A and B are alone in the two parts of a row: for neither can its total fall by 60 percent, shadow or not."""
    records = [("a", "x", "A", 100.0), ("a", "y", "B", 80.0)]
    records += [(row, column, f"{row}{column}{i}", 60.0) for row in "bc" for column in "xy" for i in range(3)]
    frame = pl.DataFrame(records, schema=["row", "column", "firm", "amount"], orient="row").with_columns(size=1.0)
    for shadow in (None, "size"):
        table = tabulate(
            frame, dimensions=["row", "column"], value="amount", respondent="firm", shadow=shadow, largest=3
        )
        problem = Problem(table, [Threshold(n=3, range_percent=60)])
        assert table.index(row="a", column="Total") in problem.sensitive
        release = ts.protect(problem, ts.Suppress(time_limit_s=1))
        assert ts.audit(problem, release).safe
    known = Knowledge.of(System.of(problem, release), 1)
    assert known is not None
    (alone,) = {int(who) for who in known.lists.who[table.index(row="a", column="x")] if who >= 0}
    assert known.least((alone,))[table.index(row="a", column="Total")] == 100
    assert known.least((alone,))[table.index(row="Total", column="Total")] == 100
    assert known.least((alone,))[table.index(row="b", column="Total")] == 0


class TwentyTwo:
    """Sensitive is the cell (a, x), by hand, with levels of 22."""

    def __call__(self, table: Table) -> Sensitivity:
        return Sensitivity.of(hidden(table, [("a", "x")]), 22.0)


def test_what_rests_on_unlisted_contributors_is_only_possible() -> None:
    """B has 4 in both cells beside, which leaves them 20 to fall. Lists of two do not show that it is the same firm."""
    records = [("a", "x", "A", 100.0), ("a", "x", "B", 3.0)]
    records += [("a", "y", "C", 5.0), ("a", "y", "D", 5.0), ("a", "y", "B", 4.0)]
    records += [("a", "z", "E", 5.0), ("a", "z", "G", 5.0), ("a", "z", "B", 4.0)]
    records += [record for record in OTHERS if record[0] == "b"]
    full = found_in(table_of(records, largest=3), INNER, TwentyTwo(), names=True)
    assert [(insider.names, insider.upper, insider.certain) for insider in full.found] == [(("B",), 123, True)]
    short = found_in(table_of(records, largest=2), INNER, TwentyTwo())
    assert [insider.certain for insider in short.found] == [False]
    assert short.safe


def test_a_cell_open_to_everyone_is_not_an_insiders_finding() -> None:
    table = table_of([("a", "x", "A", 100), ("a", "y", "B", 80), *OTHERS])
    assert not found_in(table, [("a", "x")]).found


def test_only_the_wanted_cells_are_looked_at() -> None:
    table = table_of([("a", "x", "A", 100), ("a", "y", "B", 80), *OTHERS])
    problem = Problem(table, [PPercent(p=10)])
    system = System.of(problem, Release.from_suppression(problem, hidden(table, SQUARE)))
    cell = table.index(row="a", column="x")
    found = insiders(problem, system, np.flatnonzero(system.cells == cell))
    assert [insider.cell for insider in found.found] == [cell]
    assert found.checked == 1


def test_a_coalition_needs_a_member() -> None:
    table = table_of([("a", "x", "A", 100), ("a", "y", "B", 80), *OTHERS])
    with pytest.raises(InvalidOption, match="at least 1, got 0"):
        found_in(table, SQUARE, coalition=0)


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_larger_tables_agree_with_a_linear_program_per_insider(seed: int) -> None:
    """Every single contributor against every sensitive cell, by fresh linear programs."""
    random = np.random.default_rng(seed)
    rows, columns, firms = 7, 6, 30
    records = [
        (f"r{row}", f"c{column}", f"f{firm}", float(random.integers(1, 100)))
        for row in range(rows)
        for column in range(columns)
        for firm in random.choice(firms, size=random.choice([1, 2, 4, 5, 6]), replace=False)
    ]
    table = table_of(records, largest=6)
    problem = Problem(table, [PPercent(p=15)])
    mask = problem.sensitivity.mask | (random.random(len(table)) < 0.12)
    system = System.of(problem, Release.from_suppression(problem, mask))
    found = {insider.cell for insider in insiders(problem, system).found}
    assert found
    assert found == set(_naive(problem, system, records))


@pytest.mark.parametrize("seed", fresh(3, "who is told nothing learns nothing"))
def test_who_is_told_nothing_learns_nothing(seed: int) -> None:
    """Where nothing is published nobody is asked; a linear program for every respondent says the same."""
    random = np.random.default_rng(seed)
    records = [
        (f"r{row}", f"c{column}", f"f{firm}", float(random.integers(1, 100)))
        for row in range(4)
        for column in range(4)
        for firm in random.choice(9, size=random.choice([1, 2, 3]), replace=False)
    ]
    table = table_of(records, largest=3)
    problem = Problem(table, [PPercent(p=15), Threshold(n=2, range_percent=20)])
    everything = np.ones(len(table), dtype=np.bool_)
    system = System.of(problem, Release.from_suppression(problem, everything))
    assert system.tells_nothing
    assert not insiders(problem, system).found
    assert not _naive(problem, system, records)
    everything[0] = False
    assert not System.of(problem, Release.from_suppression(problem, everything)).tells_nothing
    bounded = problem.replace(upper=np.where(table.is_total, 2 * table.value, np.inf))
    told = System.of(bounded, Release.from_suppression(bounded, np.ones(len(table), dtype=np.bool_)))
    assert not told.tells_nothing


def test_a_zero_that_was_reported_is_something_told() -> None:
    """Three reported nothing in (a, y), which is published: A, all the rest of the row, then knows its total."""
    records: list[Record] = [("a", "x", "A", 10.0), *(("a", "y", firm, 0.0) for firm in "BCD")]
    records += [("b", column, firm, 5.0) for column in "xy" for firm in "EFGH"]
    table = table_of(records, largest=4)
    cells = [("a", "x"), ("a", "Total"), ("b", "x"), ("b", "y"), ("b", "Total")]
    mask = hidden(table, [*cells, *(("Total", column) for column in ("x", "y", "Total"))])
    secret = np.zeros(len(table), dtype=np.bool_)
    secret[table.index(row="a", column="Total")] = True
    problem = Problem(table, sensitivity=Sensitivity.of(secret, 0.0))
    system = System.of(problem, Release.from_suppression(problem, mask))
    assert not system.tells_nothing
    assert [insider.exact for insider in insiders(problem, system).found] == [True]


def _naive(problem: Problem, system: System, records: list[Record]) -> list[int]:
    columns = problem.table.code_columns()
    names = [tuple(column[int(cell)] for column in columns.values()) for cell in system.cells]
    has: list[dict[str, float]] = [{} for _ in names]
    for row, column, firm, amount in records:
        for at, (r, c) in enumerate(names):
            if r in {row, "Total"} and c in {column, "Total"}:
                has[at][firm] = has[at].get(firm, 0.0) + amount
    matrix, levels = system.matrix.toarray(), problem.sensitivity
    out = []
    for at, cell in enumerate(system.cells.tolist()):
        if levels.mask[cell] and _open(system, matrix, at, has, None, levels.lower[cell], levels.upper[cell]) is False:
            insiders_of = {firm for other in has for firm in other if set(has[at]) != {firm}}
            if any(
                _open(system, matrix, at, has, firm, levels.lower[cell], levels.upper[cell])
                for firm in sorted(insiders_of)
            ):
                out.append(cell)
    return out


def _open(
    system: System, matrix: Any, at: int, has: list[dict[str, float]], firm: str | None, lower: float, upper: float
) -> bool:
    own = np.array([0.0 if firm is None else other.get(firm, 0.0) for other in has])
    alone = np.array([firm is not None and set(other) == {firm} for other in has])
    low, high = np.maximum(system.lower, own), np.where(alone, system.truth, system.upper)
    low = np.where(alone, system.truth, low)
    value = float(system.truth[at])
    if firm is not None and firm in has[at] and own[at] == max(has[at].values()):
        ranked = sorted(has[at].values(), reverse=True)
        other = max(amount for name, amount in has[at].items() if name != firm)
        rest, hides = sum(ranked[2:]), value - own[at] - other
        lower, upper = (min(x, max(0.0, (x + rest) / ranked[0] * other - hides)) for x in (lower, upper))
    lower = min(lower, value - own[at])
    bounds, cost = np.column_stack([low, high]), np.eye(len(system))[at]
    least = linprog(cost, A_eq=matrix, b_eq=system.rhs, bounds=bounds)
    most = linprog(-cost, A_eq=matrix, b_eq=system.rhs, bounds=bounds)
    high_end = np.inf if most.status == 3 else -most.fun
    return bool(least.fun > value - lower + 1e-6 or high_end < value + upper - 1e-6)


def test_where_not_all_coalitions_were_looked_at_nothing_is_said_to_be_safe() -> None:
    table = table_of([("a", "x", "A", 100), *OTHERS])
    problem = Problem(table, (PPercent(p=10),))
    found = ts.audit(problem, ts.Suppress(time_limit_s=1).protect(problem))
    assert found.safe
    assert found.insiders is not None
    cell = int(problem.sensitive[0])
    cut = replace(found, insiders=replace(found.insiders, unsearched=(cell,)))
    assert cut.insiders is not None
    assert not cut.insiders.safe
    assert not cut.safe
    assert "more than could be looked at" in cut.text()


def test_from_those_who_agreed_the_others_are_hidden_as_far_as_the_rule_says() -> None:
    """A, the largest, agreed to publication; B must be hidden from it by 60%. A knows (a, y), and much of (a, z)."""
    records = [("a", "x", "A", 100.0), ("a", "x", "B", 10.0), ("a", "x", "C", 1.0), ("a", "y", "A", 40.0)]
    records += [("a", "z", f"D{i}", 90.0) for i in range(4)]
    records += [(row, column, f"{row}{column}{i}", 95.0) for row in "bc" for column in "xyz" for i in range(4)]
    table = table_of(records, largest=10)
    least = np.zeros(len(table))
    least[table.index(row="a", column="z")] = 358
    problem = Problem(table, (ts.Waiver(of=PPercent(p=60), respondents=("A",)),), lower=least)
    cells = [("a", "x"), ("a", "y"), ("a", "z"), ("b", "x"), ("b", "y"), ("b", "z")]
    system = System.of(problem, Release.from_suppression(problem, hidden(table, cells)))
    worst = by_cell(table, insiders(problem, system))["a", "x"]
    assert worst.certain
    assert worst.upper == 113, "A derives that B has at most 13, where the rule asks for 16"


@pytest.mark.parametrize("seed", [1, *fresh(1, "no contributor that is not listed has more than the limit")])
def test_no_contributor_that_is_not_listed_has_more_than_the_limit(seed: int) -> None:
    """Lists are ranked by what was reported; weights change the order of what is added."""
    random = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "row": random.choice(list("abc"), 80), "column": random.choice(list("xyz"), 80),
            "firm": [f"F{i}" for i in random.integers(0, 30, 80)],
            "amount": np.rint(np.exp(random.normal(3, 1, 80))), "weight": random.choice([1.0, 2.0, 25.0], 80),
        }
    )  # fmt: skip
    options: dict[str, Any] = {"dimensions": ["row", "column"], "value": "amount", "respondent": "firm"}
    short, full = (tabulate(frame, weight="weight", largest=largest, **options) for largest in (2, 80))
    lists = Lists.of(short)
    assert lists is not None
    assert full.contributors is not None
    assert full.contributors.weighted is not None
    assert short.contributors is not None
    one, other = (np.append(np.asarray(t.contributors.names), ["?"])[t.contributors.identity] for t in (full, short))
    beyond = ~(one[:, :, None] == other[:, None, :]).any(axis=2)
    most = np.where(beyond & (full.contributors.identity >= 0), full.contributors.weighted, 0.0).max(axis=1)
    assert (most > 0).any() or seed != 1
    assert (lists.unlisted / 10.0**short.decimals >= most - 1e-6).all()


def test_large_coalitions_end_by_the_work_that_is_counted() -> None:
    """There are far too many coalitions of up to 99; however busy the machine, so many are looked at and no more."""
    random = np.random.default_rng(4)
    rows = [
        (str(random.choice(list("abcd"))), str(random.choice(list("wxyz"))), f"F{random.integers(0, 60)}", amount)
        for amount in np.ceil(random.lognormal(3, 1.3, 160)).tolist()
    ]
    table = table_of(rows, largest=8)
    problem = Problem(table, (Threshold(n=3), PPercent(p=30)))
    system = System.of(problem, Release.from_suppression(problem, ~table.is_total | problem.sensitivity.mask))
    looked = []
    for work in (0.02, 0.1):
        budget = Budget(1.0, work=work, clock=lambda: 0.0)
        found = insiders(problem, system, coalition=99, budget=budget)
        assert found.late, "what was not looked at is told"
        assert work <= budget.spent < work + 0.01
        looked.append(len(found.every))
        assert all(insider.role.count(";") <= DESCRIBED for insider in found.every)
    assert looked[0] <= looked[1]


@pytest.mark.parametrize("seed", fresh(6, "however little is found at once, the audit says the same"))
def test_however_little_is_found_at_once_the_audit_says_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is possibly open is found out over the whole table: not what is nearest has the last word.

    Lists of two out of five contributors leave much possible. Where no move is found but by a program over everything,
    nothing may be missing, and nothing else may be open.
    """
    random = np.random.default_rng(seed)
    records = [
        (f"r{row}", f"c{column}", f"f{firm}", float(random.integers(1, 100)))
        for row in range(6)
        for column in range(6)
        for firm in random.choice(25, size=random.choice([1, 2, 4, 5]), replace=False)
    ]
    table = table_of(records, largest=2)
    problem = Problem(table, [PPercent(p=15)])
    mask = problem.sensitivity.mask | (random.random(len(table)) < 0.3)
    system = System.of(problem, Release.from_suppression(problem, mask))
    usual = {(insider.cell, insider.certain) for insider in insiders(problem, system).found}
    find = Moves.find

    def by_programs_alone(self: Moves, *given: Any, everywhere: bool) -> Any:
        return find(self, *given, everywhere=True) if everywhere else None

    monkeypatch.setattr(Moves, "find", by_programs_alone)
    monkeypatch.setattr(alternative_tables, "SIZES", (4,))
    monkeypatch.setattr(alternative_tables, "_BUDGET", 0)
    assert {(insider.cell, insider.certain) for insider in insiders(problem, system).found} == usual


LISTED_ELSEWHERE = [
    ("a0", "b0", "f0", 31), ("a0", "b1", "f3", 196), ("a0", "b1", "f5", 25),
    ("a1", "b1", "f3", 38), ("a1", "b1", "f1", 34), ("a1", "b1", "f0", 30),
]  # fmt: skip
"""The total has four contributors; who is the smallest of them, f5, is one of two in another withheld cell."""
NOT_LISTED = [
    ("a0", "b0", "h4", 54), ("a0", "b0", "h2", 32), ("a0", "b1", "h3", 81), ("a1", "b0", "h1", 10),
    ("a1", "b0", "h4", 21), ("a1", "b0", "h2", 317), ("a1", "b0", "h3", 36), ("a1", "b1", "h1", 128),
    ("a1", "b1", "h3", 12),
]  # fmt: skip
"""Of (a1, b0) h2 and h3 know 353, and h1, who is the smallest there, 10 more."""


@pytest.mark.parametrize(
    ("records", "shown", "largest", "agreed"),
    [
        (LISTED_ELSEWHERE, [("a1", "b1"), ("a1", "Total")], 3, ()),
        (NOT_LISTED, [("Total", "b0"), ("a0", "b1")], 2, ("h2", "h3")),
    ],
    ids=["of the cell itself", "of another cell"],
)
def test_a_coalition_has_members_that_a_cell_does_not_list(
    records: list[Any], shown: list[tuple[str, str]], largest: int, agreed: tuple[str, ...]
) -> None:
    """With all contributors listed three together know too much: that a list is short must not make them know less."""
    for length, word in ((9, {"OPEN"}), (largest, {"OPEN", "POSSIBLY OPEN"})):
        frame = pl.DataFrame(records, schema=["a", "b", "firm", "value"], orient="row")
        table = tabulate(frame, dimensions=["a", "b"], value="value", respondent="firm", largest=length)
        rule: Rule = PPercent(p=50)
        problem = Problem(table, rules=[ts.Waiver(of=rule, respondents=agreed) if agreed else rule])
        codes = zip(*(column.to_list() for column in table.code_columns().values()), strict=True)
        release = Release.from_suppression(problem, np.array([code not in shown for code in codes]))
        assert str(ts.audit(problem, release, coalition=3).verdict.word) in word
