"""Linked views: the operators are the linear programs, patterns are safe and cheapest, whatever the cube."""

from __future__ import annotations

from itertools import combinations, product
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from oracle.views import interval, published
from tablesafe.audit.audit import audit
from tablesafe.core.errors import InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.linked_views import views
from tablesafe.methods.views import SuppressViews
from tablesafe.methods.views.bounds import view_bounds
from tablesafe.methods.views.fitting import fitted, view_costs
from tablesafe.methods.views.operators import Interval, cell_maxima, cell_minima, slice_bounds, sums_of_slices
from tablesafe.methods.views.state import data_of, flip, state_of

Array = np.ndarray[Any, Any]
NAMES = ("a", "b", "c", "d")
FACES = [("a", "b"), ("b", "c")]
values = st.one_of(st.integers(0, 3), st.integers(0, 3), st.integers(20, 60))


def cubes(*sizes: int, least: int = 2) -> st.SearchStrategy[Array]:
    """Cubes with small and a few large cells."""
    shape = st.tuples(*(st.integers(least, size) for size in sizes))
    return shape.flatmap(lambda s: arrays(np.int64, s, elements=values))


def masks(shape: tuple[int, ...]) -> st.SearchStrategy[Array]:
    return arrays(np.bool_, shape, elements=st.sampled_from([False, False, True]))


def stated(cube: Array, **options: Any) -> Problem:
    """The problem in which a × b and b × c are published and a × c is confidential."""
    given: dict[str, Any] = {"published": FACES, "confidential": [("a", "c")], **options}
    return views(cube, dimensions=NAMES[: cube.ndim], **given)


def cell_at(problem: Problem, **codes: int) -> int:
    return problem.table.index(**{name: str(code + 1) for name, code in codes.items()})


@settings(max_examples=20)
@given(cubes(3, 2, 3), st.data())
def test_the_operators_are_the_linear_programs(cube: Array, data: st.DataObject) -> None:
    i, j, k = cube.shape
    held_a, held_b = data.draw(masks((i, j))), data.draw(masks((j, k)))
    with_totals = data.draw(st.booleans())
    known = [*published(cube, (0, 1), held_a), *published(cube, (1, 2), held_b)]
    total = None
    if with_totals:
        known += published(cube, (1,))
        total = Interval.of(cube.sum(axis=(0, 2)).astype(float))
    a, b = Interval.of(cube.sum(axis=2).T.astype(float), held_a.T), Interval.of(cube.sum(axis=0).astype(float), held_b)
    lower, upper = sums_of_slices(a, b, np.zeros(j, np.int64), 1, total)
    for at in product(range(i), range(k)):
        low, high = interval(cube.shape, known, (0, 2), at)
        assert lower[0][at] == pytest.approx(low, abs=1e-6)
        assert upper[0][at] == pytest.approx(high, abs=1e-6)


@settings(max_examples=60)
@given(cubes(4, 4, 4))
def test_without_withheld_entries_they_are_the_formulas_of_the_paper(cube: Array) -> None:
    a, b = cube.sum(axis=2).T.astype(float), cube.sum(axis=0).astype(float)
    slices, rows, columns = len(a), a.shape[1], b.shape[1]
    for i, k in product(range(rows), range(columns)):
        others = [sum(b[j, p] for p in range(columns) if p != k) for j in range(slices)]
        assert cell_maxima(a, b)[i, k] == sum(min(a[j, i], b[j, k]) for j in range(slices))
        assert cell_minima(a, b)[i, k] == sum(max(a[j, i] - others[j], 0) for j in range(slices))


@settings(max_examples=30)
@given(st.data())
def test_entries_known_to_lie_in_intervals_bound_a_slice_exactly(data: st.DataObject) -> None:
    cube = data.draw(cubes(3, 3))
    sides = []
    for values in (cube.sum(axis=1), cube.sum(axis=0)):
        down = data.draw(arrays(np.int64, values.shape, elements=st.integers(0, 9)))
        up = data.draw(arrays(np.int64, values.shape, elements=st.sampled_from([0, 0, 2, 7, 10**9])))
        upper = np.where(up > 10**6, np.inf, values + up)
        sides.append(Interval(np.maximum(values - down, 0).astype(float)[None], upper[None]))
    lower, upper = slice_bounds(*sides)
    for at in np.ndindex(cube.shape):
        low, high = _within(cube.shape, sides, at)
        assert lower[0][at] == pytest.approx(low, abs=1e-6)
        assert upper[0][at] == pytest.approx(high, abs=1e-6)


def _within(shape: tuple[int, ...], sides: list[Interval], at: tuple[int, ...]) -> tuple[float, float]:
    """The interval of one entry of a slice, by linear programs over the slice."""
    rows = [np.arange(np.prod(shape)).reshape(shape)[i] for i in range(shape[0])]
    columns = [np.arange(np.prod(shape)).reshape(shape)[:, k] for k in range(shape[1])]
    left, right = [], []
    for sums, side in ((rows, sides[0]), (columns, sides[1])):
        for place, line in enumerate(sums):
            row = np.zeros(int(np.prod(shape)))
            row[line] = 1
            left += [-row, row]
            right += [-side.lower[0, place], side.upper[0, place]]
    keep = np.isfinite(right)
    cost = np.zeros(int(np.prod(shape)))
    cost[np.ravel_multi_index(at, shape)] = 1
    ends = []
    for sign in (1, -1):
        found = linprog(sign * cost, A_ub=np.array(left)[keep], b_ub=np.array(right)[keep], method="highs")
        ends.append(-sign * inf if found.status == 3 else sign * found.fun)
    return ends[0], ends[1]


@settings(max_examples=25)
@given(
    cubes(3, 2, 3, 2),
    st.sampled_from(
        [
            [("a", "b"), ("b", "c", "d")],
            [("a", "b", "d"), ("b", "c", "d")],
            [("a", "b", "c"), ("d",)],
            [("a", "b", "c"), ("a", "b", "d"), ("b", "c", "d")],
            [("a", "b"), ("b", "c"), ("c", "d")],
        ]
    ),
    st.sampled_from([("a", "c"), ("a", "c", "d"), ("a", "d"), ("b", "d")]),
    st.booleans(),
    st.data(),
)
def test_bounds_are_those_of_the_audit_for_any_views(
    cube: Array, shown: list[tuple[str, ...]], secret: tuple[str, ...], totals: bool, data: st.DataObject
) -> None:
    if any(set(secret) == set(view) for view in shown):
        return
    problem = stated(cube, published=shown, confidential=[secret], totals=totals)
    free = ~(problem.withheld | problem.frozen)
    mask = data.draw(masks((len(problem.table),))) & free
    release = Release.from_suppression(problem, mask)
    one, two = view_bounds(problem, release), view_bounds(problem, release, by="audit")
    outer = view_bounds(problem, release, by="operators")
    assert one.exact
    np.testing.assert_allclose(one.lower, two.lower, atol=1e-6)
    np.testing.assert_allclose(one.upper, two.upper, atol=1e-6)
    assert (outer.lower <= two.lower + 1e-6).all()
    assert (outer.upper >= two.upper - 1e-6).all()
    value = problem.table.value[problem.sensitive]
    assert ((one.lower <= value) & (value <= one.upper)).all()


@settings(max_examples=40)
@given(cubes(4, 3, 4), st.data())
def test_the_state_of_the_search_follows_the_operators(cube: Array, data: st.DataObject) -> None:
    problem = stated(cube)
    fit = fitted(problem, view_costs(problem, "unit", ()), balance=0.0)
    if fit is None:  # nothing is sensitive
        assert not problem.sensitivity.mask.any()
        return
    kept = data_of(fit.views)
    state = state_of(kept, fit.views.forced_a, fit.views.forced_b)
    for _ in range(12):
        side = data.draw(st.integers(0, 1))
        held = (state.held_a, state.held_b)[side]
        j, x = data.draw(st.tuples(st.integers(0, held.shape[0] - 1), st.integers(0, held.shape[1] - 1)))
        flip(kept, state, j, side, x)
        one = np.zeros(len(kept.a), np.int64)
        shown = Interval.of(fit.views.a, state.held_a), Interval.of(fit.views.b, state.held_b)
        lower, upper = sums_of_slices(*shown, one, 1)
        low, up = fit.views.low, fit.views.up
        np.testing.assert_array_equal(state.low, lower[0][low.row, low.column])
        np.testing.assert_array_equal(np.where(state.endless > 0, np.inf, state.up), upper[0][up.row, up.column])
        assert (
            state.sums[3]
            == (lower[0][low.row, low.column] > low.need).sum() + (upper[0][up.row, up.column] < up.need).sum()
        )


def derived(cube: Array, problem: Problem, release: Release) -> tuple[bool, bool]:
    """By the oracle: whether every confidential cell is hidden, and whether a withheld entry is known all the same."""
    withheld = release.suppressed & ~problem.withheld
    faces = {}
    for axes in ((0, 1), (1, 2)):
        shape = tuple(cube.shape[d] for d in axes)
        faces[axes] = np.array(
            [
                withheld[cell_at(problem, **{NAMES[d]: p for d, p in zip(axes, at, strict=True)})]
                for at in np.ndindex(shape)
            ]
        ).reshape(shape)
    known = [fact for axes, mask in faces.items() for fact in published(cube, axes, mask)]
    safe = True
    for i, k in product(range(cube.shape[0]), range(cube.shape[2])):
        value = cube.sum(axis=1)[i, k]
        if value:
            low, high = interval(cube.shape, known, (0, 2), (i, k))
            safe &= low <= 1e-6 and high >= 1.2 * value - 1e-6
    given_away = any(
        np.ptp(interval(cube.shape, known, axes, tuple(at))) < 1e-6
        for axes, mask in faces.items()
        for at in np.argwhere(mask)
    )
    return safe, given_away


@settings(max_examples=4)
@given(cubes(3, 3, 3), st.integers(0, 5))
@pytest.mark.parametrize("cost", ["unit", "value", "balanced"])
@pytest.mark.parametrize("algorithm", ["optimal", "greedy", "tabu", "random"])
def test_every_pattern_hides_and_no_withheld_cell_is_given_away(
    algorithm: Any, cost: Any, cube: Array, seed: int
) -> None:
    problem = stated(cube)
    release = SuppressViews(algorithm=algorithm, cost=cost, steps=40, seed=seed).protect(problem)
    assert derived(cube, problem, release) == (True, False)


@settings(max_examples=4)
@given(cubes(2, 2, 2))
def test_no_safe_pattern_is_cheaper_than_the_optimal_one(cube: Array) -> None:
    problem = stated(cube)
    found = SuppressViews(algorithm="optimal").protect(problem)
    assert found.solution is not None
    assert found.solution.status == "optimal"
    free = np.flatnonzero(~problem.withheld)
    best = int((found.suppressed & ~problem.withheld).sum())
    assert found.solution.objective == best
    for size in range(best):
        for cells in combinations(free.tolist(), size):
            mask = np.zeros(len(problem.table), np.bool_)
            mask[list(cells)] = True
            release = Release.from_suppression(problem, mask)
            assert not view_bounds(problem, release, by="audit").protected.all()


@settings(max_examples=15)
@given(cubes(3, 3, 3), st.booleans())
def test_views_alone_say_the_same_as_their_cube(cube: Array, with_values: bool) -> None:
    secret = cube.sum(axis=1)
    alone = {("a", "b"): cube.sum(axis=2), ("b", "c"): cube.sum(axis=0)}
    options: dict[str, Any] = {"confidential": {("a", "c"): secret}}
    if not with_values:
        options = {"confidential": [("a", "c")], "tolerable": {("a", "c"): (0 * secret, 1.2 * secret)}}
    one, two = stated(cube), views(alone, **options)
    assert not two.table.residual().any()
    codes = ["a", "b", "c"]
    first, second = view_bounds(one).frame(), view_bounds(two).frame()
    joined = first.join(second, on=codes, how="inner", suffix=" alone")
    assert joined["lower"].to_list() == joined["lower alone"].to_list()
    assert joined["upper"].to_list() == joined["upper alone"].to_list()
    assert joined["protected"].to_list() == joined["protected alone"].to_list()
    assert len(first.filter(~first["protected"])) == len(second.filter(~second["protected"]))
    if with_values:
        assert two.table.value[two.withheld][: secret.size].tolist() == secret.ravel().tolist()


@settings(max_examples=10)
@given(cubes(3, 3, 3))
def test_published_totals_stay_and_the_audit_agrees(cube: Array) -> None:
    problem = stated(cube, totals=True)
    everything = Release.from_suppression(problem, ~problem.frozen)
    if not view_bounds(problem, everything).protected.all():
        with pytest.raises(InvalidProblem, match="cannot be protected"):
            SuppressViews(algorithm="greedy", time_limit_s=2).protect(problem)
        return
    release = SuppressViews(algorithm="greedy", time_limit_s=2).protect(problem)
    assert not release.suppressed[problem.frozen].any()
    assert audit(problem, release).safe
