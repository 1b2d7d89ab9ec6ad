"""How something is run: the budget bounds it, the attackers are those asked about, and nothing is said twice."""

from __future__ import annotations

from math import inf

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.core.errors import InvalidOption
from tablesafe.methods.suppress.method import IMPROVING, QUICKEST
from tablesafe.work.budget import Budget
from tablesafe.work.memo import Remembering
from tablesafe.work.run import OUTSIDERS, Attackers, Run


def problem(seed: int = 3, size: int = 7) -> ts.Problem:
    random = np.random.default_rng(seed)
    n = 5 * size * size
    records = pl.DataFrame(
        {
            "a": [f"a{i}" for i in random.integers(0, size, n)],
            "b": [f"b{i}" for i in random.integers(0, size, n)],
            "firm": [f"f{i}" for i in random.integers(0, n // 3, n)],
            "value": np.exp(random.normal(3, 1.5, n)).round().astype(np.int64) + 1,
        }
    )
    table = ts.tabulate(records, dimensions={"a": None, "b": None}, value="value", respondent="firm", largest=4)
    return ts.Problem(table, rules=[ts.PPercent(p=20)])


class Memory(dict[str, bytes]):
    def put(self, key: str, data: bytes) -> None:
        self[key] = data


def test_a_limit_of_its_own_holds_inside_the_budget_of_the_run() -> None:
    now = [0.0]
    whole = Budget(10.0, clock=lambda: now[0])
    run = Run(budget=whole)
    assert run.seconds(3.0) == 3.0
    assert run.seconds(30.0) == 10.0
    whole.count(8.0)
    assert run.seconds(30.0) == 2.0
    part = run.within(None)
    part.count(2.0)
    assert whole.over
    assert Run().seconds(7.0) == 7.0
    assert Run().within(None).left == inf


def test_a_budget_that_is_over_ends_the_search_with_a_safe_pattern() -> None:
    given = problem(size=5)
    release = ts.protect(given, ts.Suppress(time_limit_s=600), Run(budget=Budget(work=0.0)))
    assert release.solution is not None
    assert {IMPROVING, QUICKEST} & set(release.solution.notes)
    assert ts.audit(given, release).safe


def test_who_is_not_asked_about_costs_nothing() -> None:
    """Outsiders alone are never dearer to withstand; what is asked of the method is what the audit then finds."""
    given, optimal = problem(size=4), ts.Suppress(algorithm="optimal", time_limit_s=600)
    one, all_ = (ts.protect(given, optimal, Run(attackers=who)) for who in (OUTSIDERS, Attackers()))
    assert one.solution is not None
    assert all_.solution is not None
    assert one.solution.objective <= all_.solution.objective * (1 + 1e-9)
    assert ts.audit(given, one, run=Run(attackers=OUTSIDERS)).safe
    assert ts.audit(given, all_, run=Run()).safe
    found = ts.audit(given, one, run=Run(attackers=OUTSIDERS))
    assert found.insiders is None
    assert found.unions is None


def test_an_audit_is_told_once_and_tells_how_far_it_is() -> None:
    given = problem(size=4)
    release, heard = ts.protect(given, ts.Withhold()), list[float]()
    findings = ts.audit(given, release, run=Run(examined=heard.append))
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
    for twice in ({"insiders": False}, {"coalition": 2}, {"possibly": "accept"}, {"integers": False}):
        with pytest.raises(InvalidOption, match="told twice"):
            ts.audit(given, release, run=Run(), **twice)  # type: ignore[arg-type]
    late = ts.audit(given, release, run=Run(budget=Budget(work=0.0)))
    assert set(findings.cells[~findings.protected]) <= set(late.cells[~late.protected])


def test_attackers_are_sensible() -> None:
    assert Attackers(insiders=False, coalition=3).coalition == 1
    with pytest.raises(InvalidOption, match="coalition"):
        Attackers(coalition=0)
    with pytest.raises(InvalidOption, match="possibly"):
        Attackers(possibly="perhaps")  # type: ignore[arg-type]


def test_a_memory_is_asked_by_who_works() -> None:
    memory = Memory()
    workers = Run(memo=memory).workers
    assert isinstance(workers, Remembering)
    assert Run().workers is None
