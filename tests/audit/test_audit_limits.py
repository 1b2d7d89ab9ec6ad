"""Every part of an audit ends with its budget, and what was not looked at by then is never called safe."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from seeds import fresh
from tablesafe.audit.alternative_tables import Moves
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.neighbourhood import Neighbourhoods
from tablesafe.audit.sums import constant_sums
from tablesafe.audit.system import System
from tablesafe.audit.unions import unions
from tablesafe.audit.verdict import Word
from tablesafe.core.errors import OutOfTime
from tablesafe.solve import highs
from tablesafe.work.budget import Budget

extremes = import_module("tablesafe.solve.exact.extremes")


class OverAfter(Budget):
    """A budget that is over after so many looks at it."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    @property
    def left(self) -> float:
        self.looks -= 1
        return float(self.looks >= 0)


def over() -> Budget:
    return OverAfter(0)


def firms(seed: int) -> ts.Problem:
    random = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "a": random.choice(list("pqrs"), 90),
            "b": random.choice(list("xyz"), 90),
            "c": random.choice(list("mn"), 90),
            "v": np.ceil(random.lognormal(3, 1.2, 90)),
            "firm": random.integers(0, 60, 90),
        }
    )
    table = ts.tabulate(frame, dimensions=["a", "b", "c"], value="v", respondent="firm", largest=10)
    return ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=10)])


def everything_withheld(problem: ts.Problem) -> tuple[ts.Release, System]:
    mask = np.ones(len(problem.table), dtype=np.bool_)
    mask[problem.table.index()] = False
    release = ts.Release.from_suppression(problem, mask & (problem.table.value > 0))
    return release, System.of(problem, release)


@pytest.mark.parametrize(("looks", "hard"), [(0, False), (1, False), *((looks, True) for looks in range(8))])
def test_exact_intervals_stop_at_any_look(looks: int, hard: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if hard:  # nothing is found from the truth: a solver for each end
        monkeypatch.setattr(extremes, "sweep", lambda *given: given[5])
    _, system = everything_withheld(firms(3))
    with pytest.raises(OutOfTime):
        exact_intervals(system, budget=OverAfter(looks))
    assert np.isnan(system.derived[0]).all()


def test_intervals_are_the_same_where_the_budget_is_enough() -> None:
    _, system = everything_withheld(firms(3))
    found, again = (
        exact_intervals(system, budget=Budget(1e6)),
        exact_intervals(system.within(system.lower, system.upper)),
    )
    assert (found.lower == again.lower).all()
    assert (found.upper == again.upper).all()


def test_a_program_around_a_cell_stops_with_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "WATCHED", 0)
    _, system = everything_withheld(firms(3))
    near = Neighbourhoods(system.matrix, over())
    around = near.around(0, 600)
    room = (system.lower - system.truth)[around.cells], (system.upper - system.truth)[around.cells]
    with pytest.raises(OutOfTime):
        near.shortest(around, int(around.cells[0]), 1.0, *room)


def test_respondents_for_whom_a_program_was_cut_off_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = firms(3)
    release = ts.protect(problem, ts.Suppress(time_limit_s=600))
    assert ts.audit(problem, release).safe

    def cut_off(*given: Any, **named: Any) -> None:
        raise OutOfTime("The time given was too short for an answer.")

    monkeypatch.setattr(Moves, "find", cut_off)
    late = ts.audit(problem, release)
    assert late.insiders is not None
    assert late.insiders.late
    assert late.verdict.word is Word.NOT_PROVED


@pytest.mark.parametrize("seed", fresh(3, "sums that were found in time"))
def test_sums_found_before_the_end_are_among_all_of_them(seed: int) -> None:
    problem = firms(seed)
    _, system = everything_withheld(problem)
    every = constant_sums(system)
    known = {tuple(row) for row in every.cells.toarray().tolist()}
    assert not every.late
    for looks in range(6):
        found = constant_sums(system, budget=OverAfter(looks))
        assert {tuple(row) for row in found.cells.toarray().tolist()} <= known
        assert found.late or len(found) == len(every)
    assert constant_sums(system, budget=over()).late


def test_sums_that_were_not_searched_for_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = firms(3)
    release = ts.protect(problem, ts.Suppress(time_limit_s=600))
    monkeypatch.setattr(
        import_module("tablesafe.audit.audit"),
        "find_unions",
        lambda problem, system, budget, before: unions(problem, system, budget=over()),
    )
    late = ts.audit(problem, release)
    assert late.verdict.word is Word.NOT_PROVED
    assert not late.safe
    assert any("the time was over before all were searched for" in line for line in late.verdict.lines)


def test_exact_intervals_of_large_releases_are_given_up_where_nobody_said_how_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The verdict and its proofs are the same without them."""
    problem = firms(fresh(1, "patience")[0])
    release, _ = everything_withheld(problem)
    plain = ts.audit(problem, release)
    outsiders = import_module("tablesafe.audit.outsiders")
    monkeypatch.setattr(outsiders, "LARGE", 0)
    assert ts.audit(problem, release).exact
    monkeypatch.setattr(outsiders, "PATIENT_S", 0.0)
    hurried = ts.audit(problem, release)
    assert plain.exact
    assert not hurried.exact
    assert (hurried.protected == plain.protected).all()
    assert hurried.verdict.word == plain.verdict.word
