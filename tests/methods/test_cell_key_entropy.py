"""The distribution of largest entropy: it keeps its conditions, and no other that does is more even."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import null_space

from tablesafe.core.errors import SolverFailure
from tablesafe.methods.cell_key.design import largest_entropy


def entropy(p: np.ndarray) -> float:
    return float(-(p * np.log(np.where(p > 0, p, 1.0))).sum())


def order_of(points: np.ndarray) -> list[tuple[int, int]]:
    up, down = np.flatnonzero(points > 0).tolist(), np.flatnonzero(points < 0).tolist()[::-1]
    return [*pairwise(up), *pairwise(down)]


@given(st.integers(1, 8), st.integers(1, 12), st.floats(0.05, 0.95), st.booleans(), st.integers(0, 2**32 - 1))
def test_no_distribution_with_the_same_moments_is_more_even(
    low: int, high: int, share: float, ordered: bool, seed: int
) -> None:
    points = np.arange(-low, high + 1.0)
    pairs = order_of(points) if ordered else []
    most = _largest_variance(points, ordered)
    features, expected = np.vstack([points, points**2]), np.array([0.0, share * most])
    p = largest_entropy(features, expected, decreasing=pairs)
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1, abs=1e-14)
    assert np.abs(features @ p - expected).max() <= 1e-12 * (points**2).max()
    assert all(p[a] >= p[b] - 1e-13 for a, b in pairs)
    directions = null_space(np.vstack([np.ones(len(points)), features]))
    if directions.size:
        move = directions @ np.random.default_rng(seed).normal(size=directions.shape[1])
        for size in (1e-4, 1e-3, 1e-2):
            other = p + size * move
            allowed = (other >= 0).all() and all(other[a] >= other[b] for a, b in pairs)
            assert not allowed or entropy(other) <= entropy(p) + 1e-12


def _largest_variance(points: np.ndarray, ordered: bool) -> float:
    """The largest variance of an unbiased distribution, by trying every pair of extreme ones."""

    def extremes(side: np.ndarray) -> list[np.ndarray]:
        return [side[: k + 1] if ordered else side[k : k + 1] for k in range(len(side))]

    best = 0.0
    for low in extremes(points[points < 0][::-1]):
        for high in extremes(points[points > 0]):
            share = high.mean() / (high.mean() - low.mean())
            best = max(best, share * (low**2).mean() + (1 - share) * (high**2).mean())
    return best


def test_without_conditions_it_is_even() -> None:
    p = largest_entropy(np.zeros((1, 5)), np.zeros(1))
    assert p == pytest.approx(np.full(5, 0.2))


def test_moments_that_nothing_has_are_an_error() -> None:
    points = np.array([-1.0, 0.0, 1.0])
    with pytest.raises(SolverFailure, match="largest entropy"):
        largest_entropy(np.vstack([points, points**2]), np.array([0.0, 2.0]))
