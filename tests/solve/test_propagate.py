"""Bounds from bounds: valid always, exact on trees."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from oracle.attacker import exact
from tablesafe.solve.propagate import propagate


@given(
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(1, 4), st.integers(2, 7)).flatmap(
        lambda shape: arrays(np.int8, shape, elements=st.sampled_from([-2, -1, 0, 0, 1, 3]))
    ),
)
@settings(deadline=None)
def test_nothing_true_is_cut_off(seed: int, matrix: np.ndarray) -> None:
    """A solution inside the bounds stays inside the narrower ones."""
    random = np.random.default_rng(seed)
    _, _, basis = np.linalg.svd(matrix.astype(float))
    null = basis[np.linalg.matrix_rank(matrix) :]
    assume(len(null))
    solution = null.T @ random.normal(0, 20, len(null))
    lower = np.floor(np.minimum(solution, 0)) - random.integers(0, 5, len(solution))
    upper = np.ceil(np.maximum(solution, 0)) + random.integers(0, 5, len(solution))
    lower[random.random(len(lower)) < 0.2] = -np.inf
    upper[random.random(len(upper)) < 0.2] = np.inf
    low, high = propagate(sparse.csr_array(matrix), lower, upper)
    assert (low >= lower).all()
    assert (high <= upper).all()
    assert (low <= solution + 1e-9).all()
    assert (solution <= high + 1e-9).all()
    assert (low[np.isfinite(low)] == np.rint(low[np.isfinite(low)])).all()


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_bounds_that_settle_on_a_tree_are_exact(data: st.DataObject) -> None:
    """A hierarchy in which no cell stands in more than one equation as a part is a tree."""
    members, cells = [], 1
    for _ in range(data.draw(st.integers(1, 2))):
        parts = data.draw(st.integers(2, 3))
        total = data.draw(st.integers(0, cells - 1))
        members.append((total, range(cells, cells + parts)))
        cells += parts
    matrix = np.zeros((len(members), cells), dtype=np.int8)
    for row, (total, parts) in enumerate(members):
        matrix[row, total], matrix[row, list(parts)] = -1, 1
    lower = np.array([-data.draw(st.integers(0, 9)) for _ in range(cells)], dtype=float)
    upper = np.array([data.draw(st.integers(0, 9)) for _ in range(cells)], dtype=float)
    low, high = propagate(sparse.csr_array(matrix), lower, upper)
    found = exact(matrix.tolist(), [0] * len(members), lower.tolist(), upper.tolist())
    assert [(float(a), float(b)) for a, b in found] == list(zip(low.tolist(), high.tolist(), strict=True))


def test_bounds_that_creep_do_not_creep_for_ever() -> None:
    """x = y + z and x = y − z + w: the bounds approach each other by less and less."""
    matrix = sparse.csr_array(np.array([[3, -2, 0], [-2, 3, 0]]))
    low, high = propagate(matrix, np.full(3, -1e12), np.full(3, 1e12))
    assert (low <= 0).all()
    assert (high >= 0).all()


def test_no_equations_change_nothing() -> None:
    low, high = propagate(sparse.csr_array((0, 2), dtype=np.int8), np.array([-1.0, -np.inf]), np.array([2.0, np.inf]))
    assert low.tolist() == [-1.0, -np.inf]
    assert high.tolist() == [2.0, np.inf]
