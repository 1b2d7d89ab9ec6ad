"""Where floats, tiny rooms, rough proofs and interrupts meet: found by an attacker, kept as tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from oracle.counts import tree
from seeds import fresh
from tablesafe.audit.audit import audit
from tablesafe.core.equations import Mask, roll_up
from tablesafe.core.errors import InvalidProblem, SolverFailure
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods.suppress import Algorithm, explain, method, securing, widen_and_thin
from tablesafe.methods.suppress.branch_and_cut import master_problem as covering
from tablesafe.methods.suppress.branch_and_cut.master_problem import Covering
from tablesafe.methods.suppress.infeasible import Demand, Obstacles, Remedy
from tablesafe.methods.suppress.search import Search
from tablesafe.work.run import OUTSIDERS
from tablesafe.work.stopping import ask


def flat(random: np.random.Generator, sides: tuple[int, ...], highest: int, *, zeros: float = 0.0) -> Table:
    dimensions = {name: tree(name, (side,)) for name, side in zip("abcd", sides, strict=False)}
    leaves = [np.flatnonzero(~h.is_total) for h in dimensions.values()]
    grid = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, len(sides)).astype(np.int32)
    values = random.integers(1, highest + 1, len(grid)) * (random.random(len(grid)) >= zeros)
    codes, sums = roll_up(grid, list(dimensions.values()), {"value": values})
    return Table.from_codes(codes, sums["value"].astype(float), dimensions)


def some(random: np.random.Generator, table: Table, count: int) -> Mask:
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[random.choice(np.flatnonzero(~table.is_total & (table.value > 0)), count, replace=False)] = True
    return mask


@pytest.mark.parametrize(
    "algorithm", [name for name in get_args(Algorithm) if name != "slices"]
)  # not of two dimensions
def test_a_level_equal_to_a_decimal_value_is_no_obstacle(algorithm: Algorithm) -> None:
    assert 73.9 * 100 > 7390
    random = np.random.default_rng(5)
    records = [
        (f"a{x}", f"b{y}", 10 * (6 * x + y) + i, 73.90 if x == y == 1 else round(20 + 50 * float(random.random()), 2))
        for x in range(6)
        for y in range(6)
        for i in range(1 if x == y == 1 else 6)
    ]
    frame = pl.DataFrame(records, schema=["x", "y", "firm", "v"], orient="row")
    table = ts.tabulate(frame, dimensions={"x": None, "y": None}, value="v", respondent="firm")
    problem = ts.Problem(table, rules=[ts.Threshold(n=3, range_absolute=100)])
    assert problem.sensitivity.lower[problem.sensitive].tolist() == [73.9]
    assert audit(problem, ts.Suppress(algorithm=algorithm, time_limit_s=2).protect(problem)).safe


@settings(max_examples=12)
@given(st.integers(0, 2**20), st.sampled_from([0.1, 0.3]))
def test_a_level_may_reach_to_the_prior_bounds(seed: int, share: float) -> None:
    random = np.random.default_rng(seed)
    table = flat(random, (5, 5), 1000)
    mask = some(random, table, 1)
    problem = ts.Problem(
        table,
        sensitivity=Sensitivity.of(mask, share * table.value, share * table.value),
        lower=np.where(mask, table.value - share * table.value, 0.0),
        upper=np.where(mask, table.value * (1 + share), np.inf),
    )
    assert audit(problem, ts.Suppress(time_limit_s=1).protect(problem)).safe


@pytest.mark.parametrize("seed", fresh(2, "a rough answer proves nothing"))
def test_a_rough_answer_proves_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The integer solver may answer with anything: bounds come from elsewhere."""
    random = np.random.default_rng(seed)
    table = flat(random, (4, 4, 3), 1000)
    mask = some(random, table, 3)
    level = np.ceil(table.value * 0.2)
    problem = ts.Problem(table, sensitivity=Sensitivity.of(mask, level, level))
    suppress, outsiders = ts.Suppress(algorithm="optimal", time_limit_s=3), ts.Run(attackers=OUTSIDERS)
    monkeypatch.setattr(Search, "polish", lambda *_, **__: None)
    exact = suppress.protect(problem, outsiders).solution
    monkeypatch.setattr(covering, "NODES", 0)
    monkeypatch.setattr(Covering, "_chosen", lambda self, matrix, least, columns, seconds: columns)
    rough = suppress.protect(problem, outsiders).solution
    assert rough is not None
    assert exact is not None
    assert max(rough.bound, exact.bound) <= min(rough.objective, exact.objective) + 1e-6


@pytest.mark.parametrize("seed", fresh(3, "cells that must only not be known need no whole unit of room"))
def test_cells_that_must_only_not_be_known_need_no_whole_unit_of_room(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = flat(random, (4, 4), 20)
    mask = some(random, table, 2)
    problem = ts.Problem(table, sensitivity=Sensitivity.of(mask, 0.0), lower=table.value * 0.9, upper=table.value * 1.1)
    release = ts.Suppress(time_limit_s=2).protect(problem)
    assert audit(problem, release).safe
    assert release.solution is not None
    cheaper = [
        pattern
        for pattern in (mask | some(np.random.default_rng(i), table, 2) for i in range(60))
        if table.value[pattern & ~mask].sum() < release.solution.bound
    ]
    assert not any(audit(problem, Release.from_suppression(problem, pattern)).safe for pattern in cheaper)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_unfreezing_what_is_named_helps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when there are more conflicts than are looked at one by one."""
    monkeypatch.setattr("tablesafe.methods.suppress.infeasible.ROUNDS", 2)
    told: list[tuple[Demand, Remedy | None]] = []
    remedy = explain.remedy

    def listening(obstacles: Obstacles, demand: Demand) -> Remedy | None:
        told.append((demand, remedy(obstacles, demand)))
        return told[-1][1]

    monkeypatch.setattr(explain, "remedy", listening)
    random = np.random.default_rng(seed)
    table = flat(random, (4, 4, 3), 100)
    mask = some(random, table, 1)
    frozen = (random.random(len(table)) < 0.8) & ~mask
    problem = ts.Problem(
        table,
        sensitivity=Sensitivity.of(mask, 0.4 * table.value),
        frozen=frozen,
        lower=0.5 * table.value,
        upper=1.5 * table.value,
    )
    with pytest.raises(InvalidProblem):
        ts.Suppress(time_limit_s=1).protect(problem)
    found = told[-1][1]
    assert found is not None
    assert found.solved
    assert found.unfreeze
    freed = frozen.copy()
    freed[list(found.unfreeze)] = False
    assert audit(problem, ts.Suppress(time_limit_s=1).protect(problem.replace(frozen=freed))).protected.all()


def test_an_interrupt_after_the_repair_keeps_the_safe_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "a": random.choice(list("uvwxyz"), 220),
            "b": random.choice(list("pqrstuv"), 220),
            "firm": random.integers(0, 90, 220),
            "turnover": np.ceil(random.lognormal(3, 1.3, 220)),
        }
    )
    table = ts.tabulate(frame, dimensions={"a": None, "b": None}, value="turnover", respondent="firm", largest=4)
    problem = ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=20)])

    asked: list[bool] = []

    def interrupting(*given: Any) -> widen_and_thin.Judge:
        judge = widen_and_thin.judge_of(*given)

        def judged(pattern: Any) -> ts.Findings:
            asked.append(True)
            if len(asked) == 3:
                ask()  # as the first Ctrl-C does
            return judge(pattern)

        return judged

    monkeypatch.setattr(securing, "judge_of", interrupting)
    everything = np.arange(len(table)) > 0
    monkeypatch.setattr(securing, "repaired", lambda *_, **__: (everything, False))
    release = ts.Suppress(time_limit_s=600).protect(problem)  # it ends by the stop; a busy machine must get as far
    assert len(asked) >= 3
    assert release.solution is not None
    assert release.solution.status == "feasible"
    assert audit(problem, release).safe


@pytest.mark.parametrize("seed", fresh(4, "tiny costs are told apart"))
def test_tiny_costs_are_told_apart(seed: int) -> None:
    """A pattern that costs less than any tolerance is no cheaper than another; so 1/value of large values."""
    random = np.random.default_rng(seed)
    table = flat(random, (5, 4), 1000)
    problem = ts.Problem(table, sensitivity=Sensitivity.of(some(random, table, 4), np.ceil(0.3 * table.value)))
    usual = ts.Suppress(cost=table.value, time_limit_s=600).protect(problem).solution
    told: list[tuple[float, float]] = []
    run = ts.Run(progress=lambda cost, bound: told.append((cost, bound)))
    tiny = ts.Suppress(cost=table.value * 1e-14, time_limit_s=600).protect(problem, run).solution
    assert usual is not None
    assert tiny is not None
    assert tiny.status == usual.status == "optimal"
    assert tiny.objective * 1e14 == pytest.approx(usual.objective)
    assert tiny.bound * 1e14 == pytest.approx(usual.bound)
    assert told[-1] == pytest.approx((tiny.objective, tiny.bound))


@pytest.mark.parametrize("seed", fresh(4, "cells that cost nothing are told at no cost"))
def test_cells_that_cost_nothing_are_told_at_no_cost(seed: int) -> None:
    """They are not withheld in vain all the same; and nothing is called the best that is not."""
    random = np.random.default_rng(seed)
    table = flat(random, (4, 4), 30)
    mask = some(random, table, 3)
    cost = np.where(random.random(len(table)) < 0.4, 0.0, 1 + 1e-3 * random.integers(0, 3, len(table)))
    problem = ts.Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(0.3 * table.value)))
    outsiders = ts.Run(attackers=OUTSIDERS)
    release = ts.Suppress(cost=cost, algorithm="optimal", time_limit_s=5).protect(problem, outsiders)
    assert release.solution is not None
    assert release.solution.objective == pytest.approx(cost[release.suppressed & ~mask].sum())
    assert release.solution.bound <= release.solution.objective + 1e-9
    others = np.flatnonzero(cost * (~mask) > 0)
    best = release.solution.objective
    for _ in range(100):
        pattern = (cost == 0) | mask
        pattern[random.choice(others, int(random.integers(0, 7)), replace=False)] = True
        if (
            cost[pattern & ~mask].sum() < best
            and audit(problem, Release.from_suppression(problem, pattern), run=outsiders).safe
        ):
            best = float(cost[pattern & ~mask].sum())
    assert release.solution.bound <= best + 1e-9


def test_a_solver_that_fails_on_the_bound_loses_no_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    table = flat(random, (6, 6, 4), 100)
    problem = ts.Problem(table, sensitivity=Sensitivity.of(some(random, table, 8), np.ceil(0.3 * table.value)))

    def fails(self: Covering, seconds: float = np.inf) -> np.ndarray[Any, Any]:
        raise SolverFailure("It was not solved.")

    monkeypatch.setattr(Covering, "relax", fails)
    with pytest.warns(UserWarning, match="best pattern so far is checked and kept"):
        release = ts.Suppress(algorithm="optimal", time_limit_s=5).protect(problem)
    assert audit(problem, release).safe
    assert release.solution is not None
    assert release.solution.status == "feasible"


def test_zeros_that_were_reported_are_withheld_where_there_is_no_other_way() -> None:
    """All of a row have reported nothing: that it is empty would tell so of the only two in one of its cells."""
    records = [("a", "x", 0.0)] * 2 + [("a", "y", 0.0)] * 5 + [("b", column, 20.0) for column in "xy" for _ in range(5)]
    frame = pl.DataFrame(records, schema=["row", "column", "v"], orient="row").with_row_index("firm")
    table = ts.tabulate(frame, dimensions=["row", "column"], value="v", respondent="firm")
    problem = ts.Problem(table, rules=[ts.Threshold(n=3)])
    release = ts.Suppress(time_limit_s=600).protect(problem)
    assert release.suppressed[table.index(row="a", column="Total")]
    assert release.solution is not None
    assert method.ZEROS in release.solution.notes
    assert ts.audit(problem, release).safe
    untold = replace(table, count=None, contributors=None)
    without = ts.Problem(untold, sensitivity=problem.sensitivity)
    with pytest.raises(InvalidProblem, match="cannot rise at all"):
        ts.Suppress(time_limit_s=600).protect(without)
