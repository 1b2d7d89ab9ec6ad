"""Optimal means: against everybody who was asked about. No pattern that the audit passes is cheaper."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from oracle.suppression import grid
from seeds import fresh
from tablesafe.audit.audit import Audit
from tablesafe.core.errors import SolverFailure
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.methods.suppress.branch_and_cut.exact import BranchAndCut, Objection, least_costly
from tablesafe.methods.suppress.branch_and_cut.targets import Targets
from tablesafe.methods.suppress.incumbent import Incumbent
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.repair import _with_sums
from tablesafe.methods.suppress.widen_and_thin import judge_of
from tablesafe.solve.program import Price, Solution, SolveStatus
from tablesafe.work.budget import Budget
from tablesafe.work.run import Possibly

MOST = 5
"""Cells to choose from: the others are frozen."""


def records(random: np.random.Generator, rows: int, columns: int, n: int, people: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "a": [f"a{i}" for i in random.integers(0, rows, n)],
            "b": [f"b{i}" for i in random.integers(0, columns, n)],
            "value": np.round(random.pareto(1.2, n) * 50 + 1).astype(np.int64),
            "who": [f"r{i}" for i in random.integers(0, people, n)],
        }
    )


def a_problem(seed: int) -> Problem:
    random = np.random.default_rng(seed)
    frame = records(random, int(random.integers(2, 4)), int(random.integers(2, 5)), 40, int(random.integers(8, 25)))
    table = ts.tabulate(
        frame,
        dimensions={"a": None, "b": None},
        value="value",
        respondent="who",
        largest=int(random.choice([2, 3, 30])),
    )
    problem = Problem(table, rules=[ts.PPercent(p=int(random.choice([5, 15, 40]))), ts.Threshold(n=3)])
    free = np.flatnonzero(~problem.sensitivity.mask & (table.value != 0))
    frozen = problem.frozen.copy()
    if len(free) > MOST:
        frozen[random.choice(free, len(free) - MOST, replace=False)] = True
    return problem.replace(frozen=frozen, cost=random.integers(1, 5, len(table)).astype(np.float64))


@pytest.mark.parametrize("seed", fresh(2, "attackers"))
@pytest.mark.parametrize("possibly", ["open", "accept"])
def test_no_pattern_that_the_audit_passes_is_cheaper(seed: int, possibly: Possibly) -> None:
    problem = a_problem(seed)
    given = problem.sensitivity.mask
    free = np.flatnonzero(~given & ~problem.frozen & (problem.table.value != 0))
    judge = judge_of(Audit(problem, possibly=possibly))
    costs = []
    for number in range(2 ** len(free)):
        pattern = given.copy()
        pattern[free[(number >> np.arange(len(free))) & 1 == 1]] = True
        if not judge(pattern).failing:
            costs.append(float(problem.cost[pattern & ~given].sum()))
    if not costs:
        return
    release = ts.protect(
        problem, ts.Suppress(algorithm="optimal", time_limit_s=600), ts.Run(attackers=ts.Attackers(possibly=possibly))
    )
    assert release.solution is not None
    assert release.solution.objective == min(costs)
    assert release.solution.bound == min(costs)
    assert release.solution.status == "optimal"
    assert not judge(release.suppressed).failing
    prices = release.solution.prices
    assert [price.attacker for price in prices] == ["outsiders", "respondents", "sums"]
    assert sum(price.cost for price in prices) == release.solution.objective
    assert sum(price.cells for price in prices) == int((release.suppressed & ~given).sum())
    assert all(price.proved for price in prices)


def test_respondents_cost_more_than_outsiders_and_it_is_told_how_much() -> None:
    random = np.random.default_rng(7)
    table = ts.tabulate(
        records(random, 4, 4, 60, 25), dimensions={"a": None, "b": None}, value="value", respondent="who", largest=3
    )
    problem = Problem(table, rules=[ts.PPercent(p=15), ts.Threshold(n=3)])
    outsiders = ts.protect(
        problem,
        ts.Suppress(algorithm="optimal", cost="unit", time_limit_s=600),
        ts.Run(attackers=ts.Attackers(insiders=False, unions=False)),
    )
    release = ts.protect(problem, ts.Suppress(algorithm="optimal", cost="unit", time_limit_s=600))
    assert outsiders.solution is not None
    assert release.solution is not None
    assert release.solution.status == "optimal"
    assert release.solution.objective > outsiders.solution.objective
    assert release.solution.prices[0].cost == outsiders.solution.objective
    assert ts.audit(problem, release).prices == release.solution.prices


def test_programs_that_fail_after_the_search_end_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deviations suggested to the audit only help it, and bounds against more attackers only tell the price."""
    random = np.random.default_rng(7)
    table = ts.tabulate(
        records(random, 4, 4, 60, 25), dimensions={"a": None, "b": None}, value="value", respondent="who", largest=3
    )
    problem = Problem(table, rules=[ts.PPercent(p=15), ts.Threshold(n=3)])
    asked = []

    def fails(*_: object) -> None:
        asked.append(True)
        raise SolverFailure("A linear program of the suppression problem was not solved (infeasible).")

    monkeypatch.setattr(BranchAndCut, "witnesses", fails)
    monkeypatch.setattr(BranchAndCut, "ask_also", fails)
    release = ts.protect(problem, ts.Suppress(cost="unit", time_limit_s=600))
    assert len(asked) >= 2
    assert ts.audit(problem, release).safe


def test_prices_are_told_in_words_with_what_they_rest_on() -> None:
    prices = (
        Price(attacker="outsiders", cells=151, cost=1200.0, proved=True),
        Price(attacker="respondents", cells=46, cost=300.5, proved=True),
        Price(attacker="sums", cells=0, cost=0.0, proved=False),
    )
    solution = Solution(status=SolveStatus.FEASIBLE, objective=1500.5, bound=0.0, seconds=1.0, prices=prices)
    assert solution.priced == (
        "Withheld because of outsiders 151 cells (1,200), respondents 46 more (300.5 more), sums 0: "
        "as far as was searched."
    )
    assert Solution(status=SolveStatus.OPTIMAL, objective=1.0, bound=1.0, seconds=1.0).priced == ""


def test_an_objection_with_cells_for_sums_and_no_new_target_is_asked_in_the_wider_instance() -> None:
    """Before the search has begun, as when the time was too short for outsiders already: it ended by an error."""
    table = grid([[1, 30, 40], [50, 60, 70], [80, 90, 99]])
    problem = Problem(table, sensitivity=Sensitivity.of(table.value == 1, 1.0, 1.0, 0.0))
    instance = Instance.of(problem, problem.cost, zeros=False)
    best = least_costly(instance, Budget())
    assert best is not None
    dear = int(np.flatnonzero(~best.pattern & ~table.is_total)[-1])
    wider = _with_sums(instance, [SimpleNamespace(cells=(0, 1), level=1.0)], 1.0)  # type: ignore[list-item]
    incumbent = Incumbent(instance, budget=Budget(), report=lambda cost, bound: None)
    search = BranchAndCut(incumbent)
    search.ask_also(
        Objection(wider, Targets(instance.cell[:0], instance.sign[:0], instance.level[:0]), np.array([dear]))
    )
    search.advance(incumbent.late)
    assert incumbent.best is not None
    assert incumbent.best[dear]
    assert incumbent.best_cost > best.cost


def test_an_earlier_objection_of_fewer_cells_may_come_after_a_later_one() -> None:
    """What is said against the safe pattern was found first and is asked last: it ended by an IndexError."""
    table = grid([[1, 30, 40], [50, 60, 70], [80, 90, 99]])
    problem = Problem(table, sensitivity=Sensitivity.of(table.value == 1, 1.0, 1.0, 0.0))
    instance = Instance.of(problem, problem.cost, zeros=False)
    sums = [SimpleNamespace(cells=(0, 1), level=1.0), SimpleNamespace(cells=(3, 4), level=1.0)]
    nothing = np.zeros(0, dtype=np.int64)
    objections = []
    for many in (1, 2):
        wider = _with_sums(instance, sums[:many], 1.0)  # type: ignore[arg-type]
        last = np.array([len(wider) - 1])
        targets = Targets(last, np.ones(1, dtype=np.int8), np.ones(1))
        objections.append(Objection(wider, targets, nothing))
    costs = []
    for ordered in (objections, objections[::-1]):
        incumbent = Incumbent(instance, budget=Budget(), report=lambda cost, bound: None)
        search = BranchAndCut(incumbent)
        for objection in ordered:
            search.ask_also(objection)
        search.advance(incumbent.late)
        assert incumbent.best is not None
        costs.append((incumbent.best_cost, incumbent.bound))
    assert costs[0] == pytest.approx(costs[1])
