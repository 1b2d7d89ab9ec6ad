"""The attack on adjusted tables finds the nearest table that the office can have started from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from oracle.twoway import inner, possible, square
from tablesafe.core.errors import InvalidOption, InvalidRelease


def adjusted(values: Any, sensitive: list[int], moved: Any, level: float) -> tuple[ts.Problem, ts.Release]:
    """A table and a published one that differs from it by given moves of the inner cells; the margins stay."""
    table, other = square(values), square(np.asarray(values) + np.asarray(moved))
    mask = np.zeros(len(table), np.bool_)
    mask[sensitive] = True
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.where(mask, level, 0.0)))
    total = table.is_total
    release = ts.Release(
        table,
        other.value,
        np.where(total, table.value, 0.0),
        np.where(total, table.value, np.inf),
        np.zeros(len(table), np.uint8),
        "adjust",
    )
    return problem, release


def cheapest(problem: ts.Problem, release: ts.Release, *, known: bool) -> float:
    """The least cost of a whole table that is far enough from the published one, by trying all of them."""
    table, sensitive = problem.table, problem.sensitive
    hidden = ts.Release.from_suppression(problem, inner(table))
    tables = possible(hidden)
    back = tables - release.values
    far = back[:, sensitive]
    enough = (far >= problem.sensitivity.lower[sensitive]) | (-far >= problem.sensitivity.upper[sensitive])
    if known:
        enough &= np.sign(far) == np.sign((table.value - release.values)[sensitive])
    allowed = back[enough.all(axis=1)]
    return float((np.abs(allowed) * release.values).sum(axis=1).min())


CYCLE = np.array([[1, -1, 0], [-1, 1, 0], [0, 0, 0]])


@settings(max_examples=4)
@given(
    st.lists(st.lists(st.integers(3, 6), min_size=3, max_size=3), min_size=3, max_size=3),
    st.sampled_from([2, -2]),
    st.booleans(),
)
def test_the_answer_is_the_nearest_table_found_by_trying_all(values: list[list[int]], step: int, known: bool) -> None:
    problem, release = adjusted(values, [0], step * CYCLE, 2.0)
    ways = "known" if known else "unknown"
    found = ts.reverse_adjustment(problem, release, ts.ReverseAdjustment(cost="value", directions=ways))
    assert found.optimal
    assert found.cost == pytest.approx(cheapest(problem, release, known=known), rel=1e-6)
    guess = found.estimate.values
    assert np.abs(problem.table.equations @ guess).max() < 1e-6
    assert abs(guess[0] - release.values[0]) >= 2 - 1e-6


def test_an_intruder_who_knows_everything_but_the_values_finds_them() -> None:
    """Expensive neighbours everywhere else: the office had one way to go, and there is one way back."""
    values = [[50, 4, 90], [6, 70, 80], [95, 85, 60]]
    problem, release = adjusted(values, [0], 3 * CYCLE, 3.0)
    found = ts.reverse_adjustment(problem, release, ts.ReverseAdjustment(directions="known"))
    np.testing.assert_allclose(found.estimate.values, problem.table.value)
    assert (found.exact, found.nearer) == (1.0, 1.0)
    assert found.estimate.disclosed.all()
    assert not found.published.disclosed.any()


def test_the_mirror_image_of_the_offices_program_costs_the_same() -> None:
    """With the office's own costs, its levels and its directions, and no bound in the way (Castro 2012)."""
    random = np.random.default_rng(5)
    table = square(random.integers(40, 90, size=(4, 4)))
    mask = np.zeros(len(table), np.bool_)
    mask[random.choice(np.flatnonzero(inner(table)), 3, replace=False)] = True
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.where(mask, 5.0, 0.0)))
    cost = 1.0 + random.random(len(table))
    release = ts.protect(problem, ts.Adjust(cost=cost, time_limit_s=3))
    assert release.solution is not None
    found = ts.reverse_adjustment(problem, release, ts.ReverseAdjustment(cost=cost, directions="known"))
    assert found.cost == pytest.approx(release.solution.objective, rel=1e-6)
    unknown = ts.reverse_adjustment(problem, release, ts.ReverseAdjustment(cost=cost))
    assert unknown.cost <= found.cost * (1 + 1e-9)


def test_less_knowledge_never_makes_the_way_back_longer_and_none_leaves_the_published_table() -> None:
    problem, release = adjusted(
        [[50, 40, 90], [60, 70, 80], [95, 85, 60]], [0, 5], 5 * CYCLE + 6 * CYCLE[::-1, ::-1], 5.0
    )
    costs = [
        ts.reverse_adjustment(problem, release, ts.ReverseAdjustment(**options)).cost
        for options in ({"directions": "known"}, {}, {"levels": "none"})
    ]
    assert costs[0] >= costs[1] - 1e-6
    assert costs[2] == 0
    nothing = ts.reverse_adjustment(problem, release, ts.ReverseAdjustment(levels="none"))
    np.testing.assert_allclose(nothing.estimate.values, release.values)


def test_a_percentage_of_the_truth_is_one_of_the_published_value_too() -> None:
    """55 published, moved by 10% of the truth or more: the truth was at most 50, or at least 61.1."""
    problem, release = adjusted([[50, 40, 90], [60, 70, 80], [95, 85, 60]], [0], 5 * CYCLE, 5.0)
    found = ts.reverse_adjustment(problem, release, ts.ReverseAdjustment(levels="percent", p=10))
    assert found.estimate.values[0] == pytest.approx(50)


def test_what_contradicts_the_release_has_no_answer() -> None:
    problem, release = adjusted([[50, 40, 90], [60, 70, 80], [95, 85, 60]], [0], 5 * CYCLE, 5.0)
    found = ts.reverse_adjustment(problem, release, ts.ReverseAdjustment(capacity_percent=1.0))
    assert np.isnan(found.estimate.values[0])
    assert np.isnan(found.cost)


def test_only_adjusted_tables_can_be_turned_back() -> None:
    problem, release = adjusted([[50, 40, 90], [60, 70, 80], [95, 85, 60]], [0], np.eye(3), 5.0)
    with pytest.raises(InvalidRelease, match="do not add up"):
        ts.reverse_adjustment(problem, release)
    with pytest.raises(InvalidOption, match="cost"):
        ts.ReverseAdjustment(cost="nonsense")


def test_a_suppressed_table_is_no_error_and_has_nothing_to_turn_back() -> None:
    table = square([[10, 5], [7, 8]])
    release = ts.Release.from_suppression(ts.Problem(table), inner(table))
    found = ts.reverse_adjustment(ts.Problem(table), release)
    assert np.abs(table.equations @ found.estimate.values).max() < 1e-6


def test_it_is_one_of_the_attacks_on_a_release() -> None:
    problem, release = adjusted([[50, 4, 90], [6, 70, 80], [95, 85, 60]], [0], 3 * CYCLE, 3.0)
    known = ts.ReverseAdjustment(directions="known")
    estimate = ts.attack(problem, release, known)
    np.testing.assert_allclose(estimate.values, ts.reverse_adjustment(problem, release, known).estimate.values)
    assert estimate.disclosed.all()
