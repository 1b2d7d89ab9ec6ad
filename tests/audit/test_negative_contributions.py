"""Contributions that may be negative: what the audit says must be what a brute-force insider finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from oracle.signed import Cell, Signed
from seeds import fresh
from tablesafe.core.errors import InvalidOption, InvalidProblem, InvalidTable
from tablesafe.core.table import Table

RULES = (ts.Threshold(n=3), ts.PPercent(p=10))


def table_of(case: Signed, **options: Any) -> Table:
    frame = pl.DataFrame(case.records, schema=["row", "column", "firm", "amount"], orient="row")
    more: dict[str, Any] = {"respondent": "firm", "largest": 60, **options}
    return ts.tabulate(frame, dimensions=["row", "column"], value="amount", **more)


def named(table: Table) -> list[Cell]:
    columns = table.code_columns()
    return list(zip(columns["row"], columns["column"], strict=True))


@st.composite
def cases(draw: st.DrawFn, share: tuple[float, float] = (0.001, 0.3)) -> Signed:
    """Small tables with few contributors a cell, some of whom are in several; at least one record is negative."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    negative = draw(st.floats(*share))
    rows, columns = draw(st.integers(2, 3)), draw(st.integers(2, 4))
    firms = draw(st.integers(6, 24))
    records = []
    for row in range(rows):
        for column in range(columns):
            fewest = int(column % rows == row or row % columns == column)  # no row or column without records
            for _ in range(max(fewest, int(random.choice([0, 1, 2, 3, 5])))):
                size = float(np.ceil(random.lognormal(3, 1.3)))
                sign = -1.0 if random.random() < negative else 1.0
                records.append((f"r{row}", f"c{column}", f"f{random.integers(firms)}", sign * size))
    if share[1] > 0:
        row, column, who, amount = records[0]
        records[0] = (row, column, who, -abs(amount))
    return Signed(records, negative=share[1] > 0)


def audited(case: Signed, table: Table, hidden: set[Cell], **options: Any) -> tuple[ts.Problem, Any]:
    problem = ts.Problem(table, RULES, **options)
    mask = np.array([cell in hidden for cell in named(table)])
    return problem, ts.Release.from_suppression(problem, mask)


@st.composite
def patterns(draw: st.DrawFn, share: tuple[float, float] = (0.001, 0.3)) -> tuple[Signed, set[Cell]]:
    case = draw(cases(share))
    cells = sorted(case.cells)
    sensitive = {cell for cell in cells if case.level(cell) is not None}
    more = {cell for cell in cells if draw(st.booleans())}
    return case, sensitive | more


@settings(max_examples=6)
@given(patterns(), st.integers(1, 2))
def test_the_audit_agrees_with_a_brute_force_insider(drawn: tuple[Signed, set[Cell]], coalition: int) -> None:
    case, hidden = drawn
    table = table_of(case)
    problem, release = audited(case, table, hidden)
    cells = named(table)
    assert {cells[i] for i in problem.sensitive} == {cell for cell in case.cells if case.level(cell) is not None}
    findings = ts.audit(problem, release, unions=False, coalition=coalition)
    openings = case.openings(hidden, coalition=coalition)
    assert {cells[opening.cell] for opening in findings.open} == {cell for cell, _ in openings}
    assert findings.safe == (not openings)


@settings(max_examples=4)
@given(patterns(share=(0.0, 0.0)))
def test_the_brute_force_insider_is_the_usual_one_where_nothing_is_negative(drawn: tuple[Signed, set[Cell]]) -> None:
    case, hidden = drawn
    table = table_of(case)
    problem, release = audited(case, table, hidden)
    assert (problem.lower == 0).all()
    findings = ts.audit(problem, release, unions=False)
    assert {named(table)[opening.cell] for opening in findings.open} == {cell for cell, _ in case.openings(hidden)}


@settings(max_examples=4)
@given(patterns(), st.integers(0, 2**32 - 1))
def test_it_agrees_where_attackers_know_bounds_beforehand(drawn: tuple[Signed, set[Cell]], seed: int) -> None:
    """Without any bounds a cell is known exactly or not at all; with bounds of their own, it is a matter of degree."""
    case, hidden = drawn
    table = table_of(case)
    room = np.ceil(np.random.default_rng(seed).lognormal(2.5, 1.2, (2, len(table))))
    bounds = {
        cell: (value - down, value + up)
        for cell, value, down, up in zip(named(table), table.value.tolist(), *room, strict=True)
    }
    problem, release = audited(case, table, hidden, lower=table.value - room[0], upper=table.value + room[1])
    findings = ts.audit(problem, release, unions=False)
    openings = case.openings(hidden, bounds=bounds)
    assert {named(table)[opening.cell] for opening in findings.open} == {cell for cell, _ in openings}


@settings(max_examples=4)
@given(cases())
def test_protect_ends_safe(case: Signed) -> None:
    table = table_of(case)
    problem = ts.Problem(table, RULES)
    cells = named(table)
    try:
        release = ts.protect(problem, ts.Suppress(time_limit_s=5, zeros=True))
    except InvalidProblem:  # nothing helps: it must be so that not even withholding everything does
        with pytest.raises(InvalidProblem):
            ts.protect(problem, ts.Suppress(time_limit_s=5, zeros=True), ts.Run(attackers=ts.Attackers(unions=False)))
        assert case.openings(set(cells))
        return
    assert ts.audit(problem, release).safe
    assert not case.openings({cells[i] for i in np.flatnonzero(release.suppressed)})


def big(negative: float | None = None) -> Signed:
    """A table of three by three with forty firms a cell, one cell with two, and one negative record among them all."""
    random = np.random.default_rng(7)
    records = [
        (row, column, f"{row}{column}{i}", float(np.ceil(random.lognormal(4, 1))))
        for row in "abc" for column in "xyz" for i in range(2 if row + column == "ax" else 40)
    ]  # fmt: skip
    if negative is not None:
        row, column, who, _ = records[-1]
        records[-1] = (row, column, who, negative)
    return Signed(records, negative=negative is not None)


@pytest.mark.parametrize("largest", [2, 3, 60])
def test_one_small_negative_record_is_known_however_few_contributors_are_kept(largest: int) -> None:
    """No value is negative, and the record is not among the largest: bounds, levels and insiders must know of it."""
    case = big(-0.5)
    table = table_of(case, largest=largest)
    assert (table.integers > 0).all()
    assert table.may_be_negative.all()
    problem = ts.Problem(table, RULES)
    assert (problem.lower == -np.inf).all()
    release = ts.protect(problem, ts.Suppress(time_limit_s=5))
    assert ts.audit(problem, release).safe
    assert not case.openings({named(table)[i] for i in np.flatnonzero(release.suppressed)})


def test_without_a_negative_record_nothing_changes() -> None:
    table = table_of(big())
    assert not table.may_be_negative.any()
    assert (ts.Problem(table, RULES).lower == 0).all()


def test_gains_and_losses_that_cancel_do_not_hide_each_other() -> None:
    """+100, −95 and three of 1: the value is 8, but the largest must be hidden by a tenth of itself, less the rest."""
    records = [("a", "x", who, amount) for who, amount in zip("ABCDE", [100.0, -95.0, 1.0, 1.0, 1.0], strict=True)]
    records += [("a", "y", f"y{i}", 40.0) for i in range(9)]
    table = table_of(Signed(records, negative=True), largest=2)
    cell = table.index(row="a", column="x")
    found = ts.PPercent(p=10)(table)
    assert found.mask[cell]
    assert found.upper[cell] == found.lower[cell] == 10 - 3
    assert ts.Threshold(n=6, range_percent=10)(table).upper[cell] == pytest.approx(19.5)


def test_those_not_listed_may_have_the_other_sign_where_records_say_so() -> None:
    """60 and 50 are kept of a cell of 5: the others lost 105 together, which hides more than a tenth of 60."""
    records = [("a", "x", "A", 60.0), ("a", "x", "B", 50.0), *(("a", "x", f"l{i}", -35.0) for i in range(3))]
    records += [("a", "y", f"y{i}", 40.0) for i in range(9)]
    table = table_of(Signed(records, negative=True), largest=2)
    assert not ts.PPercent(p=10)(table).mask[table.index(row="a", column="x")]


def test_holdings_count_by_their_net() -> None:
    """A holding that gains 1,000 and loses 999 in a cell has 1 there: that is what others could learn of it."""
    frame = pl.DataFrame(
        {
            "row": ["a"] * 5 + ["b"] * 6,
            "firm": [f"f{i}" for i in range(11)],
            "group": ["H", "H", "f2", "f3", "f4", *(f"f{i}" for i in range(5, 11))],
            "amount": [1000.0, -999.0, 10.0, 10.0, 10.0, *[20.0] * 6],
        }
    )
    table = ts.tabulate(frame, dimensions=["row"], value="amount", respondent="firm", holding="group")
    cell = table.index(row="a")
    assert table.may_be_negative.all()
    assert table.largest(3)[cell].tolist() == [10, 10, 10]
    assert not ts.PPercent(p=10)(table).mask[cell]


# -- what is said ------------------------------------------------------------------------------------------------------


def test_a_profit_may_be_negative_whatever_these_records_show() -> None:
    problem = ts.Problem(table_of(big(), negative="possible"), RULES)
    assert (problem.lower == -np.inf).all()
    assert ts.audit(problem, ts.protect(problem, ts.Suppress(time_limit_s=5))).safe


def test_never_refuses_a_negative_record_by_its_place() -> None:
    with pytest.raises(InvalidTable, match=r"'amount' is -0.5 at row 322 of .*, but negative = 'never'"):
        table_of(big(-0.5), negative="never")
    assert not table_of(big(), negative="never").may_be_negative.any()
    with pytest.raises(InvalidOption, match="negative must be 'auto', 'possible' or 'never', got 'no'"):
        table_of(big(), negative="no")


def test_counts_are_never_negative() -> None:
    frame = pl.DataFrame({"row": ["a", "b"], "amount": [-1.0, 2.0]})
    table = ts.tabulate(frame, dimensions=["row"], negative="possible")
    assert not table.may_be_negative.any()


def test_cells_tell_by_their_values_and_contributions() -> None:
    cells = pl.DataFrame({"row": ["a", "b", "Total"], "value": [5.0, 9.0, 14.0], "m1": [6.0, 5.0, 6.0],
                          "m2": [-2.0, 3.0, 5.0]})  # fmt: skip
    options: dict[str, Any] = {"dimensions": ["row"], "value": "value"}
    assert not Table.from_cells(cells, **options).may_be_negative.any()
    assert Table.from_cells(cells, **options, negative="possible").may_be_negative.all()
    assert Table.from_cells(cells, **options, largest=["m1", "m2"]).may_be_negative.all()
    with pytest.raises(InvalidTable, match=r"Cell \(row=a\) of .* has a contribution that is negative"):
        Table.from_cells(cells, **options, largest=["m1", "m2"], negative="never")


def test_each_of_several_responses_has_signs_of_its_own() -> None:
    """Turnover is never negative, profit is: an attacker still knows the first, and the computed cost."""
    frame = pl.DataFrame(
        {
            "row": [f"r{i % 3}" for i in range(30)],
            "firm": [f"f{i}" for i in range(30)],
            "turnover": [50.0 + i for i in range(30)],
            "profit": [float(i - 4) for i in range(30)],
        }
    )
    table = ts.tabulate(frame, dimensions=["row"], value=["turnover", "profit"], respondent="firm",
                        equations=["cost = turnover - profit"])  # fmt: skip
    response = table.code_columns()["response"].to_numpy()
    assert set(response[table.may_be_negative]) == {"profit"}
    lower = ts.Problem(table, RULES).lower
    assert set(response[lower == 0]) == {"turnover", "cost"}
    assert set(response[lower < 0]) == {"profit"}


def test_linked_tables_of_one_variable_tell_about_each_other() -> None:
    """One table shows only cells without losses; the other one has a loss, so nobody can exclude it in either."""
    one = Table.from_cells(pl.DataFrame({"row": ["a", "b", "Total"], "value": [5.0, 9.0, 14.0]}), dimensions=["row"])
    other = Table.from_cells(
        pl.DataFrame({"column": ["x", "y", "Total"], "value": [-5.0, 19.0, 14.0]}), dimensions=["column"]
    )
    assert ts.link([one, other]).may_be_negative.all()


def test_every_attack_works_where_no_cell_has_a_bound() -> None:
    from tablesafe.attack.registry import ATTACKS

    table = table_of(big(-0.5))
    problem = ts.Problem(table, RULES)
    release = ts.protect(problem, ts.Suppress(time_limit_s=5))
    for attack in ATTACKS.values():
        estimate = ts.attack(problem, release, attack())
        assert len(estimate.values) == len(table)


@pytest.mark.draws
def test_short_lists_never_hide_a_sum_that_fails_where_contributions_may_be_negative() -> None:
    """What fails with every contributor listed fails with three of them too, if only possibly."""
    tried = 0
    for seed in [1, 4, 11, *fresh(4, "sums of signed contributions by short lists")]:  # the first three have such sums
        random = np.random.default_rng(seed)
        n = 60
        frame = pl.DataFrame(
            {
                "a": random.choice(list("xyz"), n),
                "b": random.choice(list("pqr"), n),
                "firm": random.integers(0, 11, n),
                "v": np.ceil(random.lognormal(2.5, 1.3, n)).astype(int) * random.choice([1, 1, 1, 1, -1], n),
            }
        )
        found = []
        for largest in (3, 20):
            table = ts.tabulate(frame, dimensions=["a", "b"], value="v", respondent="firm", largest=largest)
            problem = ts.Problem(table, [ts.PPercent(p=40)])
            hidden = np.random.default_rng(seed).random(len(table)) < 0.6
            findings = ts.audit(problem, ts.Release.from_suppression(problem, hidden), insiders=False)
            assert findings.unions is not None
            found.append({one.cells: one.certain for one in findings.unions.failed})
        short, full = found
        tried += len(full)
        for cells in full:  # of sums within each other the smallest is told
            assert any(set(one) <= set(cells) for one in short)
    assert tried


def test_what_is_not_listed_may_leave_one_alone_in_a_sum() -> None:
    """f9 has 29 in B that the list does not show, and what f3 has in A takes away what it has in B."""
    parts = {
        "A": {9: 100, 0: 60, 2: -30, 3: -29},
        "B": {0: 40, 2: 31, 3: 30, 9: 29},
        "C": dict.fromkeys(range(4, 9), 10),
    }
    rows = [{"a": a, "firm": firm, "v": v} for a, part in parts.items() for firm, v in part.items()]
    word, failed = {}, {}
    for largest in (3, 9):
        table = ts.tabulate(pl.DataFrame(rows), dimensions=["a"], value="v", respondent="firm", largest=largest)
        problem = ts.Problem(table, [ts.PPercent(p=25)])
        hidden = np.isin(table.code_columns()["a"].to_numpy(), ["A", "B"])
        findings = ts.audit(problem, ts.Release.from_suppression(problem, hidden))
        assert findings.unions is not None
        word[largest] = findings.verdict.word
        failed[largest] = [(one.cells, one.certain) for one in findings.unions.failed]
    both = tuple(np.flatnonzero(hidden).tolist())
    assert failed == {3: [(both, False)], 9: [(both, True)]}
    assert word == {3: "POSSIBLY OPEN", 9: "OPEN"}
