"""Controlled tabular adjustment over random tables: what it promises, checked without a solver."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods.adjust import Adjust
from tablesafe.methods.adjust.costs import MEASURES

ways = st.sampled_from(["optimal", "search", "blocks", "alternating", "random", "up", "down"])


def table_of(values: Integers, decimals: int = 0) -> Table:
    """A table with totals over a block of inner values."""
    names = "abc"[: values.ndim]
    places = list(product(*(range(size) for size in values.shape)))
    frame = pl.DataFrame(
        {
            **{name: [str(place[d]) for place in places] for d, name in enumerate(names)},
            "value": [round(int(values[place]) / 10**decimals, decimals) for place in places],
        }
    )
    return Table.from_cells(frame, dimensions=list(names), missing_totals="compute")


@st.composite
def problems(draw: st.DrawFn, *, shapes: Any = ((2, 3), (4, 4), (2, 2, 3), (3, 3, 3))) -> Problem:
    """A random table with a few sensitive cells, margins among them, and levels on both sides."""
    shape = draw(st.sampled_from(shapes))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = np.where(random.random(shape) < 0.2, 0, np.rint(10.0 ** (random.random(shape) * draw(st.integers(1, 6)))))
    table = table_of(values.astype(np.int64), draw(st.sampled_from([0, 2])))
    assume((table.integers > 0).any())
    mask = (random.random(len(table)) < 0.2) & (table.integers > 0)
    lower = np.minimum(np.maximum(table.value * 0.3 * random.random(len(table)), 0.01), table.value)
    upper = np.maximum(table.value * 0.5 * random.random(len(table)), 0.01)
    return Problem(table, sensitivity=Sensitivity.of(mask, lower, upper))


def moves_of(problem: Problem, release: Release, decimals: int | None = None) -> Integers:
    """The published changes in whole units."""
    unit = 10.0 ** (problem.table.decimals if decimals is None else decimals)
    published = np.rint(release.values * unit)
    np.testing.assert_allclose(published, release.values * unit, rtol=1e-14, atol=1e-6)
    return published.astype(np.int64) - np.rint(problem.table.value * unit).astype(np.int64)


def attempt(method: Adjust, problem: Problem) -> Release | str:
    """The release, or why there is none."""
    try:
        return method.protect(problem)
    except InvalidProblem as error:
        return str(error)


def outside(problem: Problem, release: Release) -> bool:
    """Whether every sensitive cell is published outside its protection interval, and not as it is."""
    cells = problem.sensitive
    moved = release.values[cells] - problem.table.value[cells]
    noise = 1e-9 * np.maximum(1.0, problem.table.value[cells])
    far = (moved >= problem.sensitivity.upper[cells] - noise) | (-moved >= problem.sensitivity.lower[cells] - noise)
    return bool((far & (moved != 0)).all())


@given(problems(), ways, st.sampled_from(list(MEASURES)), st.booleans())
@settings(max_examples=10)
def test_everything_adds_up_and_every_sensitive_cell_is_far_enough(
    problem: Problem, directions: Any, cost: str, zeros: bool
) -> None:
    release = attempt(Adjust(cost=cost, directions=directions, zeros=zeros, tries=3, time_limit_s=2), problem)
    if isinstance(release, str):
        assert "Hint:" in release
        return
    table, moves = problem.table, moves_of(problem, release)
    assert not (table.equations.astype(np.int64) @ moves).any()
    assert outside(problem, release)
    assert (table.integers + moves >= 0).all()
    if not zeros:
        assert not moves[table.integers == 0].any()
    assert ((release.status == Status.CHANGED) == (moves != 0)).all()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    System.of(problem, release)  # refuses a release that says something false
    assert release.solution is not None
    assert release.solution.bound <= release.solution.objective * (1 + 1e-9)


@given(problems(), st.sampled_from([5.0, 20.0, 60.0]), st.sampled_from(["search", "alternating", "up"]))
@settings(max_examples=8)
def test_capacities_and_announced_windows_hold(problem: Problem, percent: float, directions: Any) -> None:
    table, sensitive = problem.table, problem.sensitivity.mask
    release = attempt(Adjust(capacity_percent=percent, directions=directions, time_limit_s=2), problem)
    if isinstance(release, str):
        assert "far enough" in release
    else:
        moved = np.abs(release.values - table.value)
        assert (moved <= percent / 100 * table.value + 1e-9)[~sensitive].all()
        assert outside(problem, release)
    release = attempt(Adjust(announce_percent=percent, directions=directions, time_limit_s=2), problem)
    if isinstance(release, str):
        assert "far enough" in release
        return
    assert (np.abs(release.values - table.value) <= percent / 100 * release.values * (1 + 1e-12) + 1e-9).all()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    could = release.lower < release.upper
    assert (release.upper[could] <= release.values[could] * (1 + percent / 100) + 1e-6).all()
    System.of(problem, release)


def least_by_trying(problem: Problem, cost: Floats, reach: int) -> float | None:
    """The least cost over every whole change of a 2×2 block within bounds, found by trying them all."""
    table = problem.table
    inner = np.flatnonzero(~table.is_total)
    least = np.maximum(problem.lower - table.integers, -reach).astype(np.int64)
    most = np.minimum(problem.upper - table.integers, reach).astype(np.int64)
    choices = [np.arange(least[c], most[c] + 1) for c in inner]
    grid = np.stack(np.meshgrid(*choices, indexing="ij"), axis=-1).reshape(-1, len(inner))
    parts = np.zeros((len(inner), len(table)))
    for place, cell in enumerate(inner):
        for other in range(len(table)):
            own, total = table.codes[cell], table.codes[other]
            tops = [h.position(str(h.total)) for h in table.dimensions.values()]
            parts[place, other] = all(t in (o, top) for o, t, top in zip(own, total, tops, strict=True))
    moves = grid @ parts
    values = table.integers + moves
    s = problem.sensitivity
    good = ((values >= problem.lower) & (values <= problem.upper)).all(axis=1)
    good &= ((moves >= np.maximum(np.ceil(s.upper), 1)) | (-moves >= np.maximum(np.ceil(s.lower), 1)))[:, s.mask].all(
        axis=1
    )
    good &= (moves[:, table.integers == 0] == 0).all(axis=1)
    return float((np.abs(moves[good]) @ cost).min()) if good.any() else None


@given(
    st.lists(st.integers(0, 9), min_size=4, max_size=4),
    st.sets(st.integers(0, 8), min_size=1, max_size=4),
    st.integers(0, 2**32),
    st.integers(0, 10),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.filter_too_much])
def test_optimal_is_the_best_there_is(values: list[int], sensitive: set[int], seed: int, orders: int) -> None:
    table = table_of(np.array(values).reshape(2, 2))
    assume(len(table) == 9)
    random = np.random.default_rng(seed)
    mask = np.zeros(9, np.bool_)
    mask[list(sensitive)] = True
    mask &= table.integers > 0
    level = random.integers(1, 4, 9).astype(np.float64)
    problem = Problem(
        table,
        sensitivity=Sensitivity.of(mask, np.minimum(level, table.value), level),
        lower=np.maximum(table.value - 5, 0),
        upper=table.value + 5,
    )
    cost = 10.0 ** (random.random(9) * orders)
    best = least_by_trying(problem, cost, 5)
    if best is None:
        with pytest.raises(InvalidProblem):
            Adjust(cost=cost).protect(problem)
        return
    solution = Adjust(cost=cost).protect(problem).solution
    assert solution is not None
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(best, rel=1e-6)


@given(problems(), st.integers(0, 5))
@settings(max_examples=10)
def test_equal_seed_equal_release(problem: Problem, seed: int) -> None:
    method = Adjust(directions="random", tries=4, seed=seed)
    first, second = attempt(method, problem), attempt(method, problem)
    if isinstance(first, str) or isinstance(second, str):
        assert first == second
        return
    np.testing.assert_array_equal(first.values, second.values)


@given(problems(shapes=((3, 3, 3),)))
@settings(max_examples=4)
def test_more_decimals_never_cost_more(problem: Problem) -> None:
    coarse = attempt(Adjust(cost="constant", time_limit_s=5), problem)
    if isinstance(coarse, str):
        return
    finer = Adjust(cost="constant", decimals=problem.table.decimals + 2, time_limit_s=5).protect(problem)
    assert coarse.solution is not None
    assert finer.solution is not None
    if finer.solution.status == "optimal":
        assert finer.solution.objective <= coarse.solution.objective * (1 + 1e-6)
    moves = moves_of(problem, finer, problem.table.decimals + 2)
    assert not (problem.table.equations.astype(np.int64) @ moves).any()


@given(problems(), st.sampled_from(["squares", "largest"]), st.sampled_from(["optimal", "alternating", "up"]))
@settings(max_examples=5)
def test_other_distances_keep_every_promise(problem: Problem, distance: Any, directions: Any) -> None:
    method = Adjust(distance=distance, cost="constant", directions=directions, time_limit_s=2)
    release = attempt(method, problem)
    if isinstance(release, str):
        assert "Hint:" in release
        return
    moves = moves_of(problem, release)
    assert not (problem.table.equations.astype(np.int64) @ moves).any()
    assert outside(problem, release)
    assert (problem.table.integers + moves >= 0).all()
    size = np.abs(release.values - problem.table.value)
    assert release.solution is not None
    expected = size.max(initial=0.0) if distance == "largest" else np.square(size).sum()
    assert release.solution.objective == pytest.approx(expected, rel=1e-6, abs=1e-9)
    if distance == "largest" and directions == "optimal":
        other = attempt(Adjust(cost="constant", time_limit_s=2), problem)
        assert not isinstance(other, str)
        assert size.max(initial=0.0) <= np.abs(other.values - problem.table.value).max(initial=0.0) + 1e-9


@given(problems(), st.floats(1.0, 3.0), st.sampled_from([2.0, 15.0]))
@settings(max_examples=15)
def test_caps_columns_and_relaxed_capacities_hold(problem: Problem, times: float, percent: float) -> None:
    table, sensitive = problem.table, problem.sensitivity.mask
    error = 0.05 * table.value
    release = attempt(Adjust(most_times_level=times, capacity=error, directions="search", time_limit_s=2), problem)
    if not isinstance(release, str):
        moved = np.abs(release.values - table.value)
        unit = 10.0**-table.decimals
        assert (moved <= 2 * error + 1e-9)[~sensitive].all()
        most = times * (np.maximum(problem.sensitivity.lower, problem.sensitivity.upper) + unit)
        assert (moved <= most + 1e-9)[sensitive].all()
        assert outside(problem, release)
    method = Adjust(capacity_percent=percent, relax_capacity=True, directions="alternating", time_limit_s=3)
    release = attempt(method, problem)
    if isinstance(release, str):
        return
    report = method.relaxation(problem)
    moved = np.abs(moves_of(problem, release))
    within = moved <= percent / 100 * table.integers + 1e-9
    raised = np.isin(np.arange(len(table)), report.cells)
    assert (within | raised | sensitive).all()
    assert (moved[report.cells] <= report.after + 1e-9).all()
    assert outside(problem, release)
