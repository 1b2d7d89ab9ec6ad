"""Maximum entropy against iterative proportional fitting, written out, and against tables solved by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from tablesafe.attack import MaximumEntropy, attack
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table


def two_way(inner: np.ndarray[Any, Any]) -> Table:
    rows, columns = inner.shape
    cells = [(str(i), str(j), float(inner[i, j])) for i in range(rows) for j in range(columns)]
    cells += [(str(i), "Total", float(inner[i].sum())) for i in range(rows)]
    cells += [("Total", str(j), float(inner[:, j].sum())) for j in range(columns)]
    cells += [("Total", "Total", float(inner.sum()))]
    frame = pl.DataFrame(cells, schema=["r", "c", "value"], orient="row")
    return Table.from_cells(frame, dimensions=["r", "c"])


def hidden(table: Table, mask: np.ndarray[Any, Any], **bounds: Any) -> tuple[Problem, Release]:
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0), **bounds)
    return problem, Release.from_suppression(problem, mask)


def fitted(prior: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], columns: np.ndarray[Any, Any]) -> Any:
    """Iterative proportional fitting, as everybody writes it."""
    x = prior.astype(float).copy()
    for _ in range(2000):
        x *= (rows / x.sum(axis=1))[:, None]
        x *= columns / x.sum(axis=0)
    return x


INNER = np.array([[5, 3, 9], [2, 7, 1]])


def test_without_a_prior_it_is_the_table_of_independence() -> None:
    table = two_way(INNER)
    estimate = attack(*hidden(table, ~table.is_total), MaximumEntropy())
    expected = np.outer(INNER.sum(axis=1), INNER.sum(axis=0)) / INNER.sum()
    assert estimate.values[~table.is_total] == pytest.approx(expected.ravel(), rel=1e-7)


def test_from_a_prior_table_it_is_iterative_proportional_fitting() -> None:
    table = two_way(INNER)
    last = np.array([[6, 1, 8], [2, 9, 2]])
    prior = np.full(len(table), np.nan)
    prior[~table.is_total] = last.ravel()
    estimate = attack(*hidden(table, ~table.is_total), MaximumEntropy(prior=prior))
    expected = fitted(last, INNER.sum(axis=1), INNER.sum(axis=0))
    assert estimate.values[~table.is_total] == pytest.approx(expected.ravel(), rel=1e-6)
    assert estimate.note == "from a prior table"


def test_the_truth_as_a_prior_is_found_again() -> None:
    table = two_way(INNER)
    estimate = attack(*hidden(table, ~table.is_total), MaximumEntropy(prior=table.value))
    assert estimate.values == pytest.approx(table.value, rel=1e-7)


def test_an_unknown_total_has_no_entropy_of_its_own() -> None:
    """Only the column totals are known: each column is shared out alike, and the row totals follow."""
    table = two_way(INNER)
    codes = table.cells()
    unknown = ~((codes["r"] == "Total").to_numpy())
    estimate = attack(*hidden(table, unknown), MaximumEntropy())
    for j in "012":
        column = ((codes["c"] == j) & (codes["r"] != "Total")).to_numpy()
        assert estimate.values[column] == pytest.approx(table.value[column].mean(), rel=1e-5)
    totals = ((codes["c"] == "Total") & (codes["r"] != "Total")).to_numpy()
    assert estimate.values[totals] == pytest.approx([INNER.sum() / 2] * 2, rel=1e-5)


def test_a_bound_that_binds_is_kept() -> None:
    """x + y + z = 6 alike would be 2 each; x at most 1 leaves 2.5 for the others."""
    table = Table.from_equations(["t = x + y + z"], {"t": 6, "x": 1, "y": 2, "z": 3})
    mask = np.array([False, True, True, True])
    top = np.array([np.inf, 1.0, np.inf, np.inf])
    assert attack(*hidden(table, mask, upper=top), MaximumEntropy()).values == pytest.approx([6, 1, 2.5, 2.5], abs=1e-5)


def test_negative_values_are_measured_from_their_least() -> None:
    table = Table.from_equations(["t = x + y"], {"t": -5, "x": -8, "y": 3})
    mask = np.array([False, True, True])
    problem, release = hidden(table, mask, lower=-10.0, upper=10.0)
    assert attack(problem, release, MaximumEntropy()).values == pytest.approx([-5, -2.5, -2.5], abs=1e-5)


def test_without_a_least_value_it_is_least_squares_from_the_prior() -> None:
    table = Table.from_equations(["t = x + y"], {"t": -5, "x": -8, "y": 3})
    mask = np.array([False, True, True])
    problem, release = hidden(table, mask)
    estimate = attack(problem, release, MaximumEntropy(prior=np.array([np.nan, -6.0, 6.0])))
    assert estimate.values == pytest.approx([-5, -8.5, 3.5], abs=1e-6)


def test_a_prior_of_the_wrong_length_is_refused() -> None:
    table = two_way(INNER)
    with pytest.raises(InvalidOption, match="one value per cell"):
        attack(*hidden(table, ~table.is_total), MaximumEntropy(prior=np.ones(3)))


def test_a_cell_that_was_empty_last_time_is_no_dead_end() -> None:
    table = two_way(INNER)
    prior = np.where(np.arange(len(table)) == 0, 0.0, table.value)
    estimate = attack(*hidden(table, ~table.is_total), MaximumEntropy(prior=prior))
    assert 0 < estimate.values[0] < 5
    assert np.abs(table.equations @ estimate.values).max() < 1e-6
