"""What is left of a job's time when its release is audited and attacked."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tablesafe as ts
from tablesafe.work import budget
from tablesafe.work.budget import Budget

running, attempts = (import_module(f"tablesafe.pipeline.{name}") for name in ("running", "attempts"))
JOB = """
[source]
file = "firms.csv"
respondent = "firm"
[dimensions.region]
[dimensions.size]
[response]
value = "turnover"
[[rules]]
rule = "threshold"
n = 3
[method]
name = "suppress"
time_limit_s = 100
"""


class Clock:
    """A clock that goes on only when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def job(tmp_path: Path) -> Path:
    rows = [f"r{i % 3};s{i % 4};f{i};{10 + i}" for i in range(30)]
    (tmp_path / "firms.csv").write_text("region;size;firm;turnover\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "job.toml").write_text(JOB, encoding="utf-8")
    return tmp_path / "job.toml"


@pytest.mark.parametrize("took", [0.0, 70.0, 150.0, 190.0, 1000.0])
def test_protecting_and_auditing_end_within_twice_the_limit_and_what_a_verdict_takes(
    job: Path, took: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, given, finer = Clock(), [], []
    monkeypatch.setattr(budget, "monotonic", clock)
    monkeypatch.setattr(budget, "process_time", clock)
    outcome, audit, attacked = attempts.outcome, running.audit, running._attacked

    def slow(*asked: Any) -> Any:
        found = outcome(*asked)
        clock.now += took
        return found

    def watched(*asked: Any, run: Any, **named: Any) -> Any:
        given.append(run.budget.left)
        finer.append(run.refining.left)
        return audit(*asked, **named)

    def attacking(job: Any, findings: Any, listen: Any, some: Budget) -> Any:
        given.append(some.left)
        return attacked(job, findings, listen, some)

    monkeypatch.setattr(attempts, "outcome", slow)
    monkeypatch.setattr(running, "audit", watched)
    monkeypatch.setattr(running, "_attacked", attacking)
    ts.run(job)
    whole = 2 * 100 + running.LEAST_S
    assert took + given[0] <= max(whole, took) + running.LEAST_S + 1e-6
    assert given[0] >= min(50, whole - took)
    writing = running.PAGES_S + running.WRITING_S * 20  # 4 by 5 cells
    left = 100 - writing - took  # what makes the answer finer ends with the job's own limit
    assert finer[0] == pytest.approx(max(left, 0), abs=0.01)
    assert given[1] == pytest.approx(max(left, running.A_MOMENT_S), abs=0.01)


@pytest.mark.parametrize(("reading", "left"), [(0.0, 100.0), (4.0, 100.0), (31.0, 70.0), (80.0, 50.0), (300.0, 50.0)])
def test_reading_and_writing_are_part_of_the_limit(
    job: Path, reading: float, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a user waits for: 3,000 firms with a limit of 10 s took 14.5, of which the method had 9 to itself.

    Half of it is left for the method in any case.
    """
    clock, limits = Clock(), list[float]()
    monkeypatch.setattr(budget, "monotonic", clock)
    monkeypatch.setattr(budget, "process_time", clock)
    built, outcome = running.build_problem, attempts.outcome

    def slowly(*asked: Any, **named: Any) -> Any:
        clock.now += reading
        return built(*asked, **named)

    def limited(problem: Any, method: Any, run: Any) -> Any:
        limits.append(method.time_limit_s)
        return outcome(problem, method, run)

    monkeypatch.setattr(running, "build_problem", slowly)
    monkeypatch.setattr(attempts, "outcome", limited)
    ts.run(job)
    writing = running.PAGES_S + running.WRITING_S * 20
    assert limits == [pytest.approx(running.PROTECTING * (left - writing))], "to the last bit the same in each run"


def test_a_bound_without_a_pattern_is_told_as_such(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search against respondents begins without one: it said "cost inf (gap nan%)"."""
    outcome, events = attempts.outcome, list[Any]()

    def telling(problem: Any, method: Any, run: Any) -> Any:
        run.progress(float("inf"), 1234.0)
        return outcome(problem, method, run)

    monkeypatch.setattr(attempts, "outcome", telling)
    ts.run(job, on_event=events.append)
    told = [event for event in events if event.detail == ": at least 1,234"]
    assert [(event.incumbent, event.bound) for event in told] == [(None, 1234.0)]
    assert not any("inf" in event.detail or "nan" in event.detail for event in events)
