"""Least squares within bounds: what must hold at the best point, checked without another solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from tablesafe.methods.adjust.least_squares import least_squares


@example(32678, 1, 4, 0)  # corrections that turned in a circle
@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(4, 30), st.integers(0, 6))
@settings(max_examples=80)
def test_the_conditions_of_optimality_hold(seed: int, rows: int, columns: int, orders: int) -> None:
    """Stationary where free, pushed against the bound where not (Karush, Kuhn, Tucker): the problem is convex."""
    random = np.random.default_rng(seed)
    matrix = random.integers(-1, 2, (rows, columns)).astype(np.float64)
    if np.linalg.matrix_rank(matrix) < rows:
        return
    weight = 10.0 ** (random.random(columns) * orders - orders / 2)
    inside = np.linalg.svd(matrix)[2][rows:].T @ random.normal(size=columns - rows) * 10
    lower, upper = inside - random.exponential(5, columns), inside + random.exponential(5, columns)
    lower[random.random(columns) < 0.2] = -np.inf
    upper[random.random(columns) < 0.2] = np.inf
    found = least_squares(sparse.csc_array(matrix), weight, lower, upper)
    assert found is not None
    y = found.moves
    size = max(1.0, float(np.abs(y).max()))
    assert np.abs(matrix @ y).max() <= 1e-6 * size
    assert ((y >= lower - 1e-9) & (y <= upper + 1e-9)).all()
    slope = weight * y - matrix.T @ found.prices
    steep = 1e-4 * max(1.0, float(np.abs(weight * y).max()))
    room = 1e-4 * size
    assert (slope[y < upper - room] >= -steep).all()
    assert (slope[y > lower + room] <= steep).all()


def test_known_cells_and_no_equations() -> None:
    matrix = sparse.csc_array(np.array([[1.0, 1.0, -1.0]]))
    found = least_squares(matrix, np.ones(3), np.array([6.0, -9.0, -9.0]), np.array([6.0, 9.0, 9.0]))
    assert found is not None
    assert found.moves == pytest.approx([6, -3, 3], abs=1e-6)
    assert least_squares(matrix, np.ones(3), np.array([6.0, 0.0, 0.0]), np.array([6.0, 0.0, 0.0])) is None
    alone = least_squares(sparse.csc_array((0, 2)), np.ones(2), np.array([2.0, -5.0]), np.array([4.0, 5.0]))
    assert alone is not None
    assert alone.moves == pytest.approx([2, 0], abs=1e-6)
