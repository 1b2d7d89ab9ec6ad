"""Symmetric knowledge gives everything away; anything else does not look like it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from oracle.twoway import inner, square

numbers = st.integers(1, 500)
tables = st.integers(2, 4).flatmap(
    lambda columns: st.lists(st.lists(numbers, min_size=columns, max_size=columns), min_size=2, max_size=4)
)


@settings(max_examples=25)
@given(tables, st.floats(0.05, 0.9), st.booleans())
def test_a_share_of_each_value_or_a_number_of_units_is_found_and_the_middles_are_the_truth(
    values: list[list[int]], share: float, absolute: bool
) -> None:
    table = square(values)
    radius = np.full(len(table), 40.0) if absolute else share * table.value
    problem = ts.Problem(table, lower=table.value - radius, upper=table.value + radius)
    found = ts.reconstruct(ts.Release.from_suppression(problem, inner(table)))
    np.testing.assert_allclose(found.values, table.value, rtol=1e-9, atol=1e-9)
    assert found.additive
    assert found.betrayed
    if not absolute:
        assert found.q == pytest.approx(100 * share, rel=1e-6)


@settings(max_examples=25)
@given(tables)
def test_nobody_is_betrayed_by_intervals_that_only_know_that_values_are_not_negative(values: list[list[int]]) -> None:
    table = square(values)
    found = ts.reconstruct(ts.Release.from_suppression(ts.Problem(table), inner(table)))
    assert not found.betrayed
    lower, upper = found.derived.lower, found.derived.upper
    np.testing.assert_allclose(found.values[found.derived.cells], (lower + upper) / 2)


def test_a_release_without_freedom_is_known_and_nothing_is_left_to_reconstruct() -> None:
    table = square([[4, 6], [3, 9]])
    mask = np.zeros(len(table), np.bool_)
    mask[0] = True
    found = ts.reconstruct(ts.Release.from_suppression(ts.Problem(table), mask))
    np.testing.assert_array_equal(found.values, table.value)
    assert found.prior == "none"


def test_cells_without_an_end_have_no_middle() -> None:
    table = square([[4, 6], [3, 9]])
    found = ts.reconstruct(ts.Release.from_suppression(ts.Problem(table), np.ones(len(table), np.bool_)))
    assert np.isnan(found.values).all()
    assert not found.additive
    assert not found.betrayed


def test_uneven_knowledge_is_not_taken_for_even() -> None:
    """Bounds 10% below and 30% above: the middles are 10% too high, and do not pretend to be right."""
    table = square([[100, 50, 70], [70, 80, 60], [40, 90, 30]])
    problem = ts.Problem(table, lower=0.9 * table.value, upper=1.3 * table.value)
    found = ts.reconstruct(ts.Release.from_suppression(problem, inner(table)))
    assert np.abs(found.values - table.value).max() > 1
    assert found.frame().height == 9
