"""The matching attack finds exactly the tables that lead to a pattern."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from oracle.twoway import inner, possible, square
from tablesafe.core.errors import InvalidOption

P = 30.0


def cheapest_rectangle(table: ts.Table) -> np.ndarray[Any, Any]:
    """An office by hand: cell (1,1) is hidden by the cheapest rectangle in which it can move by P percent."""
    width = int(table.codes[:, 1].max()) + 1
    grid = table.value.reshape(-1, width)
    need, best = P / 100 * grid[0, 0], None
    for i in range(1, grid.shape[0] - 1):
        for j in range(1, width - 1):
            price = grid[0, j] + grid[i, 0] + grid[i, j]
            if min(grid[0, j], grid[i, 0], grid[i, j]) >= need and (best is None or price < best[0]):
                best = (price, i, j)
    mask = np.zeros(grid.shape, np.bool_)
    if best is not None:
        mask[np.ix_([0, best[1]], [0, best[2]])] = True
    return mask.ravel()


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(1, 15), min_size=3, max_size=3), min_size=3, max_size=3))
def test_the_matching_tables_are_those_found_by_trying_all(values: list[list[int]]) -> None:
    table = square(values)
    pattern = cheapest_rectangle(table)
    release = ts.Release.from_suppression(ts.Problem(table), pattern)
    if not pattern.any():
        return
    everything = possible(release)
    found = ts.match_pattern(release, cheapest_rectangle, tables=everything)
    leads = np.array([bool((cheapest_rectangle(square(t.reshape(4, 4)[:3, :3])) == pattern).all()) for t in everything])
    np.testing.assert_array_equal(found.matching, leads)
    assert found.matching[(everything == table.value).all(axis=1)].all()  # the truth led to it
    np.testing.assert_array_equal(found.lower, everything[leads].min(axis=0))
    np.testing.assert_array_equal(found.upper, everything[leads].max(axis=0))
    assert ((found.lower <= table.value) & (table.value <= found.upper)).all()


@settings(max_examples=8)
@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=3, max_size=3), st.integers(0, 5))
def test_drawn_tables_agree_with_the_release(values: list[list[int]], seed: int) -> None:
    table = square(values)
    release = ts.Release.from_suppression(ts.Problem(table), inner(table))
    drawn = ts.candidate_tables(release, 8, seed=seed)
    for each in drawn:
        grid = each.reshape(4, 4)
        assert (grid >= 0).all()
        assert (grid[:-1].sum(axis=0) == grid[-1]).all()
        assert (grid[:, :-1].sum(axis=1) == grid[:, -1]).all()
        np.testing.assert_array_equal(each[table.is_total], table.value[table.is_total])
    np.testing.assert_array_equal(drawn, ts.candidate_tables(release, 8, seed=seed))


def test_every_possible_table_is_drawn_sooner_or_later() -> None:
    table = square([[3, 2, 1], [1, 2, 2], [0, 1, 2]])
    mask = np.zeros((4, 4), np.bool_)
    mask[:2, :3] = True
    release = ts.Release.from_suppression(ts.Problem(table), mask.ravel())
    drawn = {tuple(row) for row in ts.candidate_tables(release, 600, seed=1)}
    assert drawn == {tuple(row) for row in possible(release)}


def test_the_attack_narrows_what_the_release_leaves_open_and_is_scored() -> None:
    table = square([[49, 9, 14], [14, 49, 52], [7, 60, 23]])
    sensitive = np.zeros(len(table), np.bool_)
    sensitive[0] = True
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(sensitive, np.where(sensitive, 0.3 * table.value, 0.0)))
    pattern = cheapest_rectangle(table)
    if not pattern.any():
        pattern = inner(table)
    release = ts.Release.from_suppression(problem, pattern)
    found = ts.match_pattern(release, lambda given: pattern, count=40, seed=2)
    assert found.share == 1.0
    estimate = found.estimate(problem)
    np.testing.assert_allclose(estimate.values, found.tables.mean(axis=0))
    nothing = ts.match_pattern(release, lambda given: ~pattern, count=5)
    assert nothing.share == 0.0
    assert np.isnan(nothing.values[pattern]).all()


def test_an_office_with_a_known_method_withholds_what_the_method_does() -> None:
    table = square([[30, 20, 40], [25, 60, 35], [15, 45, 50]])
    sensitive = np.zeros(len(table), np.bool_)
    sensitive[0] = True
    tried: list[ts.Problem] = []

    def protect(problem: ts.Problem) -> ts.Release:
        tried.append(problem)
        return ts.Release.from_suppression(problem, cheapest_rectangle(problem.table))

    office = ts.known_office(ts.Problem(table), sensitive, P, protect)
    np.testing.assert_array_equal(office(table), cheapest_rectangle(table))
    assert tried[0].sensitivity.upper[0] == pytest.approx(9)


def test_tables_that_contradict_the_release_are_refused() -> None:
    table = square([[3, 2], [1, 2]])
    release = ts.Release.from_suppression(ts.Problem(table), inner(table))
    for cells in combinations(range(2), 1):
        wrong = table.value.copy()
        wrong[list(cells)] += 1
        with pytest.raises(InvalidOption, match="add up"):
            ts.match_pattern(release, cheapest_rectangle, tables=wrong[None, :])
