"""Tabu search: its steps keep every equation, its sums agree with adding up anew, and it finds what is best."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.loss.statistics import Relation, chi_square
from tablesafe.methods.adjust.costs import cost_of
from tablesafe.methods.adjust.instance import Allowance, Instance
from tablesafe.methods.adjust.tabu import kernel
from tablesafe.methods.adjust.tabu.cycles import Cycles
from tablesafe.methods.adjust.tabu.search import data_of

REGIONS = ts.Hierarchy.from_pairs([("T", "N"), ("T", "S"), ("N", "n1"), ("N", "n2"), ("S", "s1"), ("S", "s2")])


def table_of(values: Integers) -> ts.Table:
    """Four districts in two regions, by three kinds, with all totals."""
    places = list(product(["n1", "n2", "s1", "s2"], ["x", "y", "z"]))
    frame = pl.DataFrame({"region": [r for r, _ in places], "kind": [k for _, k in places], "value": values.ravel()})
    return ts.Table.from_cells(frame, dimensions={"region": REGIONS, "kind": None}, missing_totals="compute")


def problem_of(seed: int, *, sensitive: int = 5, totals: bool = True) -> ts.Problem:
    """A random table with some sensitive cells, levels up to a fifth of the values."""
    random = np.random.default_rng(seed)
    table = table_of(np.rint(10.0 ** (1.5 + 2 * random.random((4, 3)))).astype(np.int64))
    able = np.arange(len(table)) if totals else np.flatnonzero(~table.is_total)
    mask = np.zeros(len(table), np.bool_)
    mask[random.choice(able, sensitive, replace=False)] = True
    level = np.ceil(table.value * (0.02 + 0.15 * random.random(len(table))))
    return ts.Problem(table, sensitivity=Sensitivity.of(mask, np.minimum(level, table.value), level))


def search(**options: Any) -> ts.Tabu:
    """A short search."""
    return ts.Tabu(**({"iterations": 4, "patience": 4, "width": 2} | options))


def adjust(tabu: ts.Tabu, **options: Any) -> ts.Adjust:
    return ts.Adjust(cost="constant", directions="alternating", tabu=tabu, time_limit_s=60, **options)


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([None, 40.0]), st.sampled_from(["none", "top", "totals"]))
@settings(max_examples=4)
def test_every_promise_holds(seed: int, mean: bool, capacity: float | None, fixed: Any) -> None:
    problem = problem_of(seed, totals=fixed == "none")
    keep = ts.Keep() if mean else None
    try:
        release = adjust(search(), keep=keep, capacity_percent=capacity, fixed=fixed).protect(problem)
    except InvalidProblem:
        assume(False)
    table, s = problem.table, problem.sensitivity
    moves = release.values.astype(np.int64) - table.integers
    assert not (table.equations.astype(np.int64) @ moves).any()
    assert ((moves >= s.upper) | (-moves >= s.lower))[s.mask].all()
    assert (table.integers + moves >= 0).all()
    assert not mean or moves[s.mask].sum() == 0
    assert fixed != "totals" or not moves[table.is_total].any()
    assert capacity is None or (np.abs(moves) <= 0.4 * table.value + 1e-9)[~s.mask].all()


def instance_of(problem: ts.Problem, **limits: Any) -> Instance:
    return Instance.of(problem, cost_of(problem, "value"), Allowance(**limits))


def levels_of(instance: Instance) -> Integers:
    """Every target risen to its level, and nothing else: a unit of distances."""
    moves = np.zeros(len(instance.cells), np.int64)
    moves[instance.targets] = instance.above.astype(np.int64)
    return moves


@given(st.integers(0, 2**32), st.sampled_from(["none", "totals"]), st.booleans())
@settings(max_examples=25)
def test_cycles_keep_every_equation(seed: int, fixed: str, mean: bool) -> None:
    problem = problem_of(seed, totals=False)
    instance = instance_of(problem, fixed=fixed)
    if mean:
        try:
            instance = ts.Keep().with_means(problem, instance).instance
        except InvalidProblem:
            assume(False)
    cycles = Cycles.of(instance, np.random.default_rng(seed))
    assert cycles is not None
    assert len(cycles) > 0
    for c in range(len(cycles)):
        span = slice(cycles.start[c], cycles.start[c + 1])
        vector = np.zeros(len(instance.cells), np.int64)
        vector[cycles.cell[span]] = cycles.coefficient[span]
        assert vector.any()
        assert not (instance.matrix.astype(np.int64) @ vector).any()


@given(st.integers(0, 2**32), st.sampled_from(["sensitive", "all", "region"]))
@settings(max_examples=25)
def test_a_step_gains_what_adding_up_anew_says(seed: int, over: str) -> None:
    problem = problem_of(seed)
    instance = instance_of(problem)
    random = np.random.default_rng(seed)
    cycles = Cycles.of(instance, random)
    assert cycles is not None
    data = data_of(problem, instance, ts.Tabu(chi_square=0.5, over=over), cycles, levels_of(instance))
    state = kernel.state_of(data, np.zeros(len(instance.cells), np.int64))
    for c in random.integers(len(cycles), size=12).tolist():
        span = slice(cycles.start[c], cycles.start[c + 1])
        cells, steps = cycles.cell[span], cycles.coefficient[span]
        t = int(random.integers(-30, 31))
        before = kernel.measure(data, state)
        gained = kernel.gain(data, state, cells, steps, len(cells), t)
        kernel.take(data, state, cells, steps, len(cells), t)
        assert kernel.measure(data, state) - before == pytest.approx(gained, abs=1e-9)
        assert kernel.measure(data, state) == pytest.approx(kernel.refresh(data, state), rel=1e-9)


def test_the_measure_is_what_the_options_say() -> None:
    problem = problem_of(11)
    instance = instance_of(problem, zeros=True)
    cycles = Cycles.of(instance, np.random.default_rng(0))
    assert cycles is not None
    moves = np.random.default_rng(1).integers(-5, 6, len(instance.cells))
    table, cells = problem.table, problem.sensitive
    after = table.integers.copy()
    after[instance.cells] += moves
    found = Relation.of(table.value[cells], after[cells].astype(np.float64))
    expected = {
        "correlation": 1 - found.correlation**2,
        "slope": abs(1 - found.slope),
        "variance": abs(found.variance_ratio - 1),
    }
    none: dict[str, Any] = dict.fromkeys(("distance", "chi_square", *expected), 0.0)
    for name, value in expected.items():
        data = data_of(problem, instance, ts.Tabu(**(none | {name: 1.0})), cycles, levels_of(instance))
        assert kernel.measure(data, kernel.state_of(data, moves)) == pytest.approx(value, abs=1e-3)
    least = instance.above
    data = data_of(problem, instance, ts.Tabu(**(none | {"distance": 1.0})), cycles, levels_of(instance))
    unit = instance.cost[instance.targets] @ least
    assert kernel.measure(data, kernel.state_of(data, moves)) == pytest.approx(instance.price(moves) / unit)
    data = data_of(problem, instance, ts.Tabu(**(none | {"chi_square": 1.0})), cycles, levels_of(instance))
    unit = (least**2 / table.value[cells]).sum()
    chi = chi_square(table.value, after.astype(np.float64)) / unit
    assert kernel.measure(data, kernel.state_of(data, moves)) == pytest.approx(chi, abs=1e-3)


def test_it_never_ends_worse_than_it_began_and_reaches_the_least_change() -> None:
    for seed in range(4):
        problem = problem_of(seed)
        only = search(distance=1.0, correlation=0, slope=0, variance=0, iterations=30, width=5)
        begun = ts.Adjust(cost="constant", directions="alternating").protect(problem).solution
        found = adjust(only).protect(problem).solution
        best = ts.Adjust(cost="constant", directions="optimal").protect(problem).solution
        assert begun is not None
        assert found is not None
        assert best is not None
        assert found.objective <= begun.objective
        assert found.objective == pytest.approx(best.objective, rel=0.02)


def test_a_measure_of_ones_own_is_minimised() -> None:
    """The largest relative change of any cell: less than where the search began."""
    problem = problem_of(2)

    def largest(before: Floats, after: Floats) -> float:
        return float((np.abs(after - before) / np.maximum(before, 1)).max())

    plain = ts.Adjust(cost="constant", directions="alternating").protect(problem)
    none: dict[str, Any] = {"distance": 0.0, "correlation": 0.0, "slope": 0.0, "variance": 0.0}
    release = adjust(search(function=largest, **none)).protect(problem)
    truth = problem.table.value
    assert largest(truth, release.values) <= largest(truth, plain.values)
    assert not (problem.table.equations @ release.values).any()
    with pytest.raises(InvalidOption, match="finite number"):
        adjust(search(function=lambda before, after: float("nan"), **none)).protect(problem)


def test_chi_square_falls() -> None:
    problem = problem_of(3)
    truth = problem.table.value
    plain = ts.Adjust(cost="constant", directions="alternating").protect(problem)
    only = search(distance=0.0, correlation=0.0, slope=0.0, variance=0.0, chi_square=1.0)
    assert chi_square(truth, adjust(only).protect(problem).values) < chi_square(truth, plain.values)


def test_equal_seed_equal_release() -> None:
    problem = problem_of(6)
    one, other = (adjust(search(), seed=5).protect(problem).values for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_limits_of_statistics_hold_in_the_search() -> None:
    problem = problem_of(9, totals=False)
    keep = ts.Keep(mean=False, variance=0.05)
    release = adjust(search(distance=1.0, variance=0.0, slope=0.0), keep=keep).protect(problem)
    cells = problem.sensitive
    found = Relation.of(problem.table.value[cells], release.values[cells])
    assert abs(found.variance_ratio - 1) <= 0.05 + 1e-6
    with pytest.raises(InvalidOption, match="the same cells"):
        adjust(search(over="all"), keep=keep).protect(problem)


def test_options_are_checked() -> None:
    with pytest.raises(InvalidOption, match="minimises nothing"):
        ts.Tabu(distance=0, correlation=0, slope=0, variance=0)
    with pytest.raises(InvalidOption, match="at least 0"):
        ts.Tabu(slope=-1)
    with pytest.raises(InvalidOption, match="function of two arrays"):
        ts.Tabu(function=3)  # type: ignore[arg-type]
