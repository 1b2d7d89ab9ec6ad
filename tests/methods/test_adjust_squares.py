"""The squared distance: exact for given directions, whole, near the fractional best, and proved as far as it is."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablesafe.core.equations import Floats
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods.adjust import Adjust
from tablesafe.methods.adjust import distances as squares
from tablesafe.methods.adjust import least_squares as normal
from tablesafe.methods.adjust.costs import cost_of
from tablesafe.methods.adjust.descent import Descent, bounds
from tablesafe.methods.adjust.directions import alternating
from tablesafe.methods.adjust.instance import Allowance, Instance
from tablesafe.methods.adjust.least_squares import least_squares
from tablesafe.work.budget import Budget


def cube(shape: tuple[int, ...], seed: int, share: float = 0.15) -> Problem:
    """A skewed table, some cells empty, some inner cells sensitive."""
    random = np.random.default_rng(seed)
    places = list(product(*(range(size) for size in shape)))
    value = np.where(random.random(len(places)) < 0.15, 0, np.rint(np.exp(random.normal(4, 1.5, len(places)))))
    codes = {name: [str(place[d]) for place in places] for d, name in enumerate("abcd"[: len(shape)])}
    frame = pl.DataFrame({**codes, "value": value.astype(np.int64)})
    table = Table.from_cells(frame, dimensions=list(codes), missing_totals="compute")
    chosen = (table.value > 0) & ~table.is_total & (random.random(len(table)) < share)
    level = np.ceil(0.15 * table.value)
    return Problem(table, sensitivity=Sensitivity.of(chosen, level, level))


def squared(problem: Problem, values: Floats, cost: Floats | None = None) -> float:
    weight = np.ones(len(values)) if cost is None else cost
    return float((weight * np.square(values - problem.table.value)).sum())


@pytest.mark.parametrize("cost", ["constant", "value", "inverse"])
@pytest.mark.parametrize("shape", [(12, 9), (7, 6, 5), (4, 4, 3, 3)])
def test_whole_moves_cost_hardly_more_than_fractional_ones(
    shape: tuple[int, ...], cost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on large tables: systems by iterations, no integer program over the whole table."""
    problem = cube(shape, 3)
    monkeypatch.setattr(normal, "FEW_ROWS", 0)
    monkeypatch.setattr(squares, "LARGE", 0)
    release = Adjust(distance="squares", cost=cost, directions="alternating").protect(problem)
    values = np.rint(release.values).astype(np.int64)
    assert not (problem.table.equations.astype(np.int64) @ values).any()
    instance = Instance.of(problem, cost_of(problem, cost), Allowance())
    way = np.where((release.values - problem.table.value)[instance.cells[instance.targets]] > 0, 1, -1).astype(np.int8)
    monkeypatch.setattr(normal, "FEW_ROWS", 2_000)
    best = least_squares(instance.rows, instance.cost, *bounds(instance, way))
    assert best is not None
    least = float((instance.cost * np.square(best.moves)).sum())
    found = squared(problem, release.values, cost_of(problem, cost))
    assert least * (1 - 1e-6) <= found <= 1.03 * least + instance.cost.sum() / 4
    assert release.solution is not None
    assert release.solution.objective == pytest.approx(found, rel=1e-9)


@given(st.integers(0, 2**32), st.sampled_from([(3, 4), (3, 3, 3), (2, 2, 3, 2)]), st.booleans())
@settings(max_examples=25)
def test_steps_keep_equations_bounds_and_never_cost_more(seed: int, shape: tuple[int, ...], far: bool) -> None:
    problem = cube(shape, seed, 0.2)
    instance = Instance.of(problem, cost_of(problem, "constant"), Allowance())
    way = alternating(problem, instance)
    descent = Descent.of(instance, np.random.default_rng(0))
    best = least_squares(instance.rows, instance.cost, *bounds(instance, way))
    if descent is None or best is None:
        return
    near = descent.rounded(way, np.zeros(len(instance.cells), np.int64), best.moves)
    assert not (instance.matrix.astype(np.int64) @ near).any()
    begin = near + 5 * descent.basis.astype(np.int64)[:, [0]].toarray().ravel() if far else near

    found = descent.improved(way, begin, budget=Budget(20))
    if found is None:
        return
    assert instance.holds(found)
    if instance.holds(begin):
        assert squares.worth(instance, found) <= squares.worth(instance, begin)


@given(st.lists(st.integers(1, 9), min_size=4, max_size=4), st.integers(0, 2**32))
@settings(max_examples=5)
def test_the_bound_of_squares_is_below_every_whole_change(values: list[int], seed: int) -> None:
    """Of a 2×2 block all changes within reach are tried: none costs less than the bound says."""
    random = np.random.default_rng(seed)
    frame = pl.DataFrame({"a": ["0", "0", "1", "1"], "b": ["0", "1", "0", "1"], "value": values})
    table = Table.from_cells(frame, dimensions=["a", "b"], missing_totals="compute")
    mask = random.random(len(table)) < 0.3
    level = random.integers(1, 4, len(table)).astype(np.float64)
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.minimum(level, table.value), level))
    cost = 10.0 ** random.integers(-2, 3, len(table))
    release = Adjust(distance="squares", cost=cost, time_limit_s=5).protect(problem)
    solution, inner = release.solution, np.flatnonzero(~table.is_total)
    assert solution is not None
    steps = np.array(list(product(range(-6, 7), repeat=4)))
    moves = np.zeros((len(steps), len(table)))
    moves[:, inner] = steps
    for _ in range(2):
        parts = moves @ table.equations.T.astype(np.float64).toarray() + moves[:, table.totals]
        moves[:, table.totals] = parts
    upper, lower = np.maximum(problem.sensitivity.upper, 1), np.maximum(problem.sensitivity.lower, 1)
    good = ((moves >= upper) | (-moves >= lower))[:, mask].all(axis=1) & (table.value + moves >= 0).all(axis=1)
    least = float((np.square(moves[good]) @ cost).min())
    assert solution.bound <= least * (1 + 1e-6) + 1e-9
    if (np.abs(release.values - table.value)[inner] <= 6).all():
        assert solution.objective >= least * (1 - 1e-6)


def test_a_program_without_an_answer_is_said_and_the_least_sum_improved(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = cube((5, 5, 4), 1)
    plain = Adjust(cost="constant", directions="alternating").protect(problem)
    monkeypatch.setattr(squares, "least_squares", lambda *arguments, **options: None)
    with pytest.warns(UserWarning, match="least squares were not found"):
        release = Adjust(cost="constant", distance="squares", directions="alternating").protect(problem)
    assert squared(problem, release.values) < squared(problem, plain.values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monkeypatch.undo()
        better = Adjust(cost="constant", distance="squares", directions="alternating").protect(problem)
    assert squared(problem, better.values) <= squared(problem, release.values)
