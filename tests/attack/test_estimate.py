"""Scores of a guess: what counts as disclosed, relative error, order of risk."""

from __future__ import annotations

import numpy as np
import pytest

from tablesafe.attack.estimate import Estimate
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table


def estimate(guess: list[float], lower: list[float], upper: list[float], known: list[bool] | None = None) -> Estimate:
    """Guesses of cells a, b, c with true values 10, 20 and 0."""
    table = Table.from_equations(["t = a + b + c"], {"a": 10, "b": 20, "c": 0, "t": 30})
    mask = np.array([True, True, True, False])
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.array([*lower, 0]), np.array([*upper, 0])))
    return Estimate(problem, "test", np.array([*guess, 30.0]), np.array([*(known or [False] * 3), True]))


@pytest.mark.parametrize(
    ("guess", "disclosed"),
    [(8.0, False), (8.001, True), (10.0, True), (12.9, True), (13.0, False), (7.0, False), (np.nan, False)],
)
def test_disclosed_is_inside_the_protection_interval_without_its_ends(guess: float, disclosed: bool) -> None:
    assert bool(estimate([guess, 0, 0], [2, 1, 0], [3, 1, 0]).disclosed[0]) is disclosed


def test_without_levels_only_the_value_itself_is_disclosed() -> None:
    found = estimate([10, 20.5, 0], [0, 0, 0], [0, 0, 0])
    assert found.disclosed.tolist() == [True, False, True]


def test_a_cell_that_is_known_is_disclosed() -> None:
    found = estimate([10, 25, 0], [0, 1, 0], [0, 1, 0], known=[True, False, False])
    assert found.disclosed.tolist() == [True, False, True]
    assert found.exactly.tolist() == [True, False, False]
    assert found.share == pytest.approx(2 / 3)
    assert str(found).endswith("2 of 3 sensitive cells (known exactly: 1).")


def test_relative_error_and_the_order_of_risk() -> None:
    found = estimate([11, 15, 4], [5, 2, 0], [5, 2, 8])
    assert found.relative_error.tolist() == [0.1, 0.25, np.inf]
    assert found.distance.tolist() == [0.2, 2.5, 0.5]
    frame = found.frame()
    assert frame["cell"].to_list() == ["a", "c", "b"]
    assert frame["disclosed"].to_list() == [True, True, False]
    assert frame["protected from"].to_list() == [5, 0, 18]


def test_a_problem_without_sensitive_cells_has_nothing_to_disclose() -> None:
    table = Table.from_equations(["t = a + b"], {"a": 1, "b": 2, "t": 3})
    found = Estimate(Problem(table), "test", table.value, np.ones(3, dtype=np.bool_))
    assert found.share == 0
    assert found.frame().height == 0
    assert "0 of 0" in str(found)
