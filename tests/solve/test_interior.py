"""The programs behind the attacks: interior points, corners and nearest points against an independent solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from seeds import fresh
from tablesafe.attack.optima import NearestPoint, Vertices
from tablesafe.core.errors import OutOfTime
from tablesafe.solve.interior import Predictor
from tablesafe.work.budget import Budget


def polytope(seed: int) -> tuple[sparse.csr_array, np.ndarray, np.ndarray, np.ndarray]:
    """Independent equations with whole coefficients, bounds of all kinds, and a point strictly inside."""
    random = np.random.default_rng(seed)
    n, m = int(random.integers(4, 12)), int(random.integers(1, 4))
    matrix = np.column_stack([np.eye(m), random.integers(-1, 2, (m, n - m))])
    inside = random.random(n) * 100
    lower, upper = inside - random.random(n) * 50 - 1, inside + random.random(n) * 50 + 1
    kind = random.integers(0, 4, n)
    lower[kind == 1], upper[kind == 2] = -np.inf, np.inf
    return sparse.csr_array(matrix.astype(float)), matrix @ inside, lower, upper


@pytest.mark.parametrize("seed", fresh(25, "the least is the least"))
def test_the_least_is_the_least(seed: int) -> None:
    matrix, rhs, lower, upper = polytope(seed)
    cost = np.random.default_rng(seed + 1000).standard_normal(matrix.shape[1])
    expected = linprog(cost, A_eq=matrix.toarray(), b_eq=rhs, bounds=np.column_stack([lower, upper]))
    if expected.status != 0:
        return
    x = Predictor(matrix, rhs, lower, upper).least(cost)
    assert cost @ x == pytest.approx(expected.fun, rel=1e-6, abs=1e-4)
    assert matrix @ x == pytest.approx(rhs, abs=1e-4)
    assert ((x >= lower - 1e-6) & (x <= upper + 1e-6)).all()


@pytest.mark.parametrize("seed", fresh(10, "corners and nearest points"))
def test_corners_and_nearest_points(seed: int) -> None:
    matrix, rhs, lower, upper = polytope(seed)
    n = matrix.shape[1]
    vertices = Vertices(matrix, rhs, lower, upper)
    bounds = np.column_stack([lower, upper])
    for column in range(n):
        for sign in (1.0, -1.0):
            cost = np.zeros(n)
            cost[column] = sign
            expected = linprog(cost, A_eq=matrix.toarray(), b_eq=rhs, bounds=bounds)
            found = vertices.least(np.array([column]), sign)
            if found is None:
                assert expected.status in {2, 3}
            else:
                assert sign * found[column] == pytest.approx(expected.fun, rel=1e-7, abs=1e-6)
                assert matrix @ found == pytest.approx(rhs, abs=1e-6)
    point = np.clip(np.zeros(n), lower, upper)
    near = NearestPoint(matrix, rhs, lower, upper, np.ones(n)).to(point)
    both = linprog(
        np.ones(2 * n),
        A_eq=np.hstack([matrix.toarray(), -matrix.toarray()]),
        b_eq=rhs - matrix @ point,
        bounds=np.column_stack([np.zeros(2 * n), np.concatenate([upper - point, point - lower])]),
    )
    assert np.abs(near - point).sum() == pytest.approx(both.fun, rel=1e-6, abs=1e-6)
    assert matrix @ near == pytest.approx(rhs, abs=1e-6)


def test_a_budget_that_is_over_stops_by_an_error() -> None:
    matrix, rhs, lower, upper = polytope(3)
    with pytest.raises(OutOfTime):
        Predictor(matrix, rhs, lower, upper).least(np.ones(matrix.shape[1]), budget=Budget(0.0))
    assert Budget(None).left == np.inf
    assert Budget(100.0).left > 0
