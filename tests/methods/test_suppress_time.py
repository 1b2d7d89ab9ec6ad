"""Suppression ends: a stop at any moment, or no time at all, leaves a safe pattern or an error that says so."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from seeds import fresh
from tablesafe.audit.audit import Audit, audit
from tablesafe.audit.insiders import insiders
from tablesafe.audit.system import System
from tablesafe.audit.verdict import Word
from tablesafe.core.errors import Interrupted
from tablesafe.methods.suppress import Algorithm, securing
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.search import Search
from tablesafe.methods.suppress.strategy import first_pattern
from tablesafe.work import budget as budgets
from tablesafe.work import run
from tablesafe.work.budget import Budget
from tablesafe.work.run import OUTSIDERS


def firms(seed: int, shape: tuple[int, ...] = (4, 4, 3), records: int = 250) -> ts.Problem:
    random = np.random.default_rng(seed)
    codes = {f"d{i}": [f"{i}{code}" for code in random.integers(0, size, records)] for i, size in enumerate(shape)}
    turnover = np.ceil(random.lognormal(3, 1.3, records))
    frame = pl.DataFrame({**codes, "turnover": turnover, "firm": random.integers(0, records // 2, records)})
    table = ts.tabulate(frame, dimensions=list(codes), value="turnover", respondent="firm", largest=20)
    return ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=10)])


class StopsAfter(Budget):
    """A budget that the user stops at the n-th look at it."""

    looks = 0
    most = 0

    @property
    def stopped(self) -> bool:
        StopsAfter.looks += 1
        return StopsAfter.looks > StopsAfter.most


@pytest.mark.parametrize("looks", [0, 1, 2, 3, 5, 8, 13, 30, 80, 200])
def test_a_stop_at_any_look_leaves_a_safe_pattern(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = firms(5)
    monkeypatch.setattr(StopsAfter, "looks", 0)
    monkeypatch.setattr(StopsAfter, "most", looks)
    monkeypatch.setattr(run, "Budget", StopsAfter)
    monkeypatch.setattr(securing, "AFTER_STOP_S", 600.0)  # a busy machine must get as far
    with pytest.warns(UserWarning, match="Interrupted: the best pattern so far"):
        release = ts.Suppress(time_limit_s=600).protect(problem)
    monkeypatch.undo()
    assert audit(problem, release).safe
    assert release.solution is not None
    assert any("stopped by the user" in note or "quickest" in note for note in release.solution.notes)


@pytest.mark.parametrize("algorithm", ["auto", "sequential"])
@pytest.mark.parametrize("looks", [5, 30, 60, 100, 150, 250, 400])
def test_a_clock_that_runs_out_at_any_look_calls_nothing_impossible(
    looks: int, algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine the wall's clock ends what the processor has hardly begun; programs then have no answer."""
    seen = iter(range(10**9))
    monkeypatch.setattr(budgets, "wall", lambda: 0.0 if next(seen) < looks else 1e6)
    monkeypatch.setattr(import_module("tablesafe.methods.suppress.method"), "necessary", lambda *_: Budget())
    problem = firms(5)
    release = ts.Suppress(algorithm=algorithm, time_limit_s=60).protect(problem)
    monkeypatch.undo()
    assert audit(problem, release).safe


@pytest.mark.parametrize("seed", fresh(2, "without time the quickest way is safe, and few audits are made"))
def test_without_time_the_quickest_way_is_safe_and_few_audits_are_made(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    judge = Audit.judge

    def counted(*given: Any, **named: Any) -> ts.Findings:
        asked.append(True)
        return judge(*given, **named)

    monkeypatch.setattr(Audit, "judge", counted)
    method = import_module("tablesafe.methods.suppress.method")
    monkeypatch.setattr(method, "necessary", lambda *_: Budget())  # however busy the machine is
    problem = firms(seed)
    release = ts.Suppress(time_limit_s=1e-6).protect(problem)
    assert len(asked) <= 12
    assert audit(problem, release).safe
    assert release.solution is not None
    assert release.solution.notes
    modular = ts.Suppress(algorithm="modular", time_limit_s=60).protect(problem).solution
    assert modular is not None
    assert release.solution.objective <= 3 * max(modular.objective, 1.0)


def test_respondents_who_were_not_looked_at_are_not_proved() -> None:
    problem = firms(5)
    release = ts.Suppress(time_limit_s=600).protect(problem)
    assert audit(problem, release, exact=False).safe
    over = Budget()
    over.stop()
    found = insiders(problem, System.of(problem, release), budget=over)
    assert set(found.late) == set(problem.sensitive.tolist())
    assert not found.safe
    late = audit(problem, release, exact=False, budget=over)
    assert late.verdict.word is Word.NOT_PROVED
    assert not late.safe
    assert any("time: it was over" in line for line in late.verdict.lines)


def test_a_cheaper_pattern_that_was_not_made_safe_in_time_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dearer one that is safe stays, and a note says why."""
    problem, budget = firms(5), Budget(600.0)
    asked = Instance.of(problem, problem.table.value.copy())
    keeps = securing.Securing(problem, asked, ts.Run(), budget, budget)
    everything = asked.live | asked.forced
    monkeypatch.setattr(securing, "repaired", lambda audit, instance, pattern, **_: (pattern, False))
    assert (keeps.secure(everything) == everything).all()
    monkeypatch.setattr(securing, "repaired", lambda audit, instance, pattern, **_: (pattern, True))
    assert (keeps.secure(asked.forced) == everything).all()
    assert budget.given_up == (securing.DEARER,)


def test_stopped_before_anything_was_proved_it_publishes_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coarsest pattern is safe from everybody, which takes no audit; it is called what it is."""
    problem = firms(5)
    _stopped_at_once(monkeypatch)
    with pytest.warns(UserWarning, match="Interrupted"):
        release = ts.Suppress(time_limit_s=600).protect(problem)
    monkeypatch.undo()
    assert release.suppressed[problem.table.value != 0].all()
    assert release.solution is not None
    assert securing.NOTHING_LEFT in release.solution.notes
    assert audit(problem, release).safe


def test_stopped_where_a_cell_must_be_published_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a total frozen, even that little can give a cell away: it is not said to be safe without an audit."""
    problem = firms(5)
    frozen = np.zeros(len(problem.table), dtype=np.bool_)
    frozen[0] = True
    _stopped_at_once(monkeypatch)
    with pytest.warns(UserWarning, match="Interrupted"), pytest.raises(Interrupted, match="before a safe pattern"):
        ts.Suppress(time_limit_s=600).protect(problem.replace(frozen=frozen))


def _stopped_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StopsAfter, "looks", 0)
    monkeypatch.setattr(StopsAfter, "most", 0)
    monkeypatch.setattr(run, "Budget", StopsAfter)
    monkeypatch.setattr(securing, "AFTER_STOP_S", 0.0)


def test_the_audit_of_a_run_goes_on_from_what_the_search_has_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, asked = firms(5), list[int]()
    how = ts.Run(audits={})
    release = ts.protect(problem, ts.Suppress(time_limit_s=600), how)
    examination = import_module("tablesafe.audit.audit")
    search = examination.search_insiders

    def counted(problem: ts.Problem, system: System, wanted: Any, **options: Any) -> Any:
        asked.append(len(wanted))
        return search(problem, system, wanted, **options)

    monkeypatch.setattr(examination, "search_insiders", counted)
    again, anew = audit(problem, release, run=how), audit(problem, release)
    assert asked[0] == 0 < asked[1]
    assert again.safe
    assert again.verdict.lines == anew.verdict.lines
    assert (again.protected == anew.protected).all()


@pytest.mark.parametrize("everybody", [False, True])
def test_the_search_has_the_time_that_the_audit_does_not_need(everybody: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that has used its share goes on, once its pattern is seen to be safe in no time, from outsiders."""
    method = import_module("tablesafe.methods.suppress.method")
    left: list[float] = []

    def spends_its_share(search: Search, **_: Any) -> None:
        first_pattern(search)
        search.budget.count(search.left + 1.0)

    monkeypatch.setattr(method, "find", spends_its_share)
    monkeypatch.setattr(method, "go_on", lambda search, *, insist: left.append(search.left))
    problem = firms(5)
    attackers = ts.Attackers() if everybody else OUTSIDERS
    release = ts.Suppress(time_limit_s=600).protect(problem, ts.Run(attackers=attackers))
    assert audit(problem, release, run=ts.Run(attackers=attackers)).safe
    assert left == ([] if everybody else [pytest.approx(600 * 0.25, abs=12)])
