"""Tables of counts that leave out empty cells: whoever sees a cell, withheld or not, knows that somebody is in it."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import tablesafe as ts

ROWS = [("a", "x"), ("a", "y"), ("a", "z")] + 5 * [("b", "x"), ("b", "y"), ("b", "z")]
"""In row a three persons, one in each column: their total of 3 is not small."""


def people(*more: tuple[str, str]) -> pl.DataFrame:
    rows = [*ROWS, *more]
    row, column = zip(*rows, strict=True)
    return pl.DataFrame({"row": row, "column": column, "person": [f"p{i}" for i in range(len(rows))]})


def withheld(problem: ts.Problem) -> ts.Release:
    """Everything inside is withheld, all totals are shown."""
    return ts.Release.from_suppression(problem, ~problem.table.is_total)


@pytest.mark.parametrize("more", [(), 3 * (("c", "x"),)], ids=["full", "with gaps"])
def test_three_cells_that_hold_somebody_and_add_up_to_three_are_one_each(more: tuple[tuple[str, str], ...]) -> None:
    for zeros, least in ((False, 1.0), (True, 0.0)):
        table = ts.tabulate(people(*more), dimensions=["row", "column"], respondent="person", zeros=zeros)
        problem = ts.Problem(table, [ts.Threshold(n=3)])
        assert problem.lower.max() == least
        findings = ts.audit(problem, withheld(problem))
        assert findings.safe is zeros
        given_away = findings.cells[findings.lower == findings.upper]
        assert zeros or set(given_away) >= {table.index(row="a", column=each) for each in "xyz"}


def test_suppression_and_levels_know_it() -> None:
    """The total of the three has to go as well; and no level asks for less than everybody knows."""
    table = ts.tabulate(people(), dimensions=["row", "column"], respondent="person")
    problem = ts.Problem(table, [ts.Threshold(n=3, range_absolute=2)])
    assert problem.sensitivity.lower.max() == 0
    assert problem.sensitivity.upper[problem.sensitivity.mask].tolist() == [2, 2, 2]
    release = ts.protect(problem, ts.Suppress(time_limit_s=5))
    assert release.suppressed[table.index(row="a")]
    assert ts.audit(problem, release).safe


def test_it_is_seen_in_finished_tables_too() -> None:
    """Cells that were read: a count that is missing, and none that is 0, tell the same."""
    cells = people(("c", "x")).group_by("row", "column").len("n").with_columns(pl.col("n").cast(pl.Int64))
    for frame, least in (
        (cells, 1.0),
        (pl.concat([cells, pl.DataFrame({"row": ["c"], "column": ["y"], "n": [0]})], how="vertical"), 0.0),
    ):
        table = ts.Table.from_cells(frame, dimensions=["row", "column"], value="n", count="n", missing_totals="compute")
        assert ts.Problem(table, [ts.Threshold(n=3)]).lower.max() == least


def test_amounts_may_be_nothing_at_all() -> None:
    frame = people().with_columns(amount=pl.Series(np.arange(len(ROWS)) + 3))
    table = ts.tabulate(frame, dimensions=["row", "column"], value="amount", respondent="person")
    assert not table.occupied.any()
    assert ts.Problem(table, [ts.Threshold(n=3)]).lower.max() == 0


def test_unseen_cells_of_a_cube_may_be_empty() -> None:
    people = pl.DataFrame({"a": list("001101"), "b": list("010110"), "c": list("001011")})
    table = ts.tabulate(people, dimensions=list("abc"), margins=[["a", "b"], ["a", "c"], ["b", "c"]])
    problem = ts.Problem(table)
    assert table.unseen is not None
    assert (problem.lower[table.unseen] == 0).all()
    assert (problem.lower[~table.unseen] == 1).all()
    assert not problem.bounds_differ, "everybody knows them"


def test_what_became_of_empty_cells_travels_with_a_table() -> None:
    """A table that was sent to another process, or linked, is known to as much as before."""
    several = pl.concat([people(), people()])  # two records a person
    table = ts.tabulate(several, dimensions=["row", "column"], respondent="person")
    assert table.occupied.all()
    assert pickle.loads(pickle.dumps(table)).occupied.all()
    assert ts.link([table]).occupied.all()


def test_whole_margins_that_are_not_there_are_not_empty_cells() -> None:
    """Linked tables that show all their zeros, and happen to have none, say nothing about who is there."""
    frame = pl.DataFrame({"a": list("0011"), "b": list("0101"), "c": list("0110"), "person": list("wxyz")})
    frame = pl.concat([frame.with_columns(pl.col("person") + str(i)) for i in range(3)])
    frame = pl.concat([frame, frame.with_columns(c=pl.lit("0"), person=pl.col("person") + "0")])
    frame = pl.concat([frame, frame.with_columns(c=pl.lit("1"), person=pl.col("person") + "1")])
    tables = [
        ts.tabulate(frame, dimensions=list(dimensions), respondent="person", zeros=True) for dimensions in ("ab", "ac")
    ]
    assert not any(table.occupied.any() for table in tables)
    linked = ts.link(tables)
    assert not linked.occupied.any()
    read = replace(linked, empty=None)
    assert not read.occupied.any(), "the cells of a and b alone are all there, and so are those of a and c"


def with_a_zero(zeros: bool) -> ts.Table:
    """A row of three persons, one in each column, beside one in which a column is empty."""
    return ts.tabulate(
        people(*3 * (("c", "x"), ("c", "y"))), dimensions=["row", "column"], respondent="person", zeros=zeros
    )


def test_who_sees_that_zeros_are_shown_knows_that_nothing_withheld_is_zero() -> None:
    """Of counts that show their empty cells the office never withholds one: what is withheld is 1 or more."""
    table = with_a_zero(True)
    problem = ts.Problem(table, [ts.Threshold(n=3)])
    release = ts.Release.from_suppression(problem, ~table.is_total & (table.value > 0))
    findings = ts.audit(problem, release)
    assert str(findings.verdict.word) == "OPEN"
    given_away = set(findings.cells[findings.lower == findings.upper])
    assert given_away >= {table.index(row="a", column=each) for each in "xyz"}
    assert ts.audit(problem, withheld(problem)).safe, "a zero is withheld, so that any may be"
    said = ts.Problem(table, [ts.Threshold(n=3)], shows_zeros=False)
    assert ts.audit(said, ts.Release.from_suppression(said, ~table.is_total & (table.value > 0))).safe


def test_a_kept_audit_asks_of_each_release_what_that_one_tells() -> None:
    """Whether a zero is withheld changes what levels ask for, so that no proof of one serves the other."""
    table = with_a_zero(True)
    problem = ts.Problem(table, [ts.Threshold(n=3, range_absolute=1)])
    session = ts.Audit(problem)
    shown, hidden = ts.Release.from_suppression(problem, ~table.is_total & (table.value > 0)), withheld(problem)
    for release in (hidden, shown, hidden, shown):
        assert session.judge(release).safe is ts.audit(problem, release).safe
        assert bool(session.judge(release).problem.lower.any()) is (release is shown)


@pytest.mark.parametrize("rule", [ts.Threshold(n=3), ts.Threshold(n=3, range_absolute=2)])
def test_suppression_keeps_zeros_shown_and_knows_what_that_tells(rule: ts.Threshold) -> None:
    table = with_a_zero(True)
    problem = ts.Problem(table, [rule])
    release = ts.protect(problem, ts.Suppress(time_limit_s=5))
    assert not release.suppressed[table.value == 0].any()
    assert release.suppressed[table.index(row="a")], "its three are 1 each otherwise"
    assert ts.audit(problem, release).safe
    may = ts.protect(problem, ts.Suppress(time_limit_s=5, zeros=True))
    assert may.shows_zeros is False
    assert ts.audit(problem, may).safe


def test_amounts_that_are_not_known_to_be_whole_may_be_as_small_as_one_likes() -> None:
    frame = people().with_columns(amount=pl.Series(np.arange(len(ROWS)) % 3))
    table = ts.tabulate(frame, dimensions=["row", "column"], value="amount", respondent="person", zeros=True)
    problem = ts.Problem(table, [ts.Threshold(n=3)])
    release = ts.Release.from_suppression(problem, ~table.is_total & (table.value > 0))
    assert ts.audit(problem, release).problem is problem
    assert ts.audit(problem, release, integers=True).problem.lower.any()
