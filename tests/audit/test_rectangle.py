"""The closed form of a rectangle against linear programs."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from tablesafe.audit.intervals import rectangle_ends
from tablesafe.core.equations import Floats


def margins(n: int, m: int) -> sparse.csr_array:
    """One equation per row and per column."""
    rows = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    return sparse.csr_array(np.vstack(rows).astype(np.int64))


def _ends(matrix: sparse.csr_array, lower: Floats, upper: Floats, cell: int) -> tuple[float, float]:
    cost = np.zeros(matrix.shape[1])
    cost[cell] = 1.0
    zero = np.zeros(matrix.shape[0])
    answers = [
        linprog(s * cost, A_eq=matrix, b_eq=zero, bounds=np.column_stack([lower, upper])).fun * s for s in (1, -1)
    ]
    return answers[0], answers[1]


@given(st.integers(1, 4), st.integers(1, 4), st.data())
@settings(deadline=None, max_examples=30)
def test_where_the_closed_form_answers_it_is_right(n: int, m: int, data: st.DataObject) -> None:
    matrix = margins(n, m)[data.draw(st.permutations(range(n + m)))]
    room = st.integers(0, 9)
    lower = -np.array(data.draw(st.lists(room, min_size=n * m, max_size=n * m)), dtype=np.float64)
    upper = np.full(n * m, data.draw(st.sampled_from([np.inf, 40.0, 12.0])))
    found = rectangle_ends(matrix, lower, upper)
    assert found is not None or np.isfinite(upper).all()
    if found is not None:
        for cell in range(n * m):
            low, high = _ends(matrix, lower, upper, cell)
            assert np.allclose([low, high], [found[0][cell], found[1][cell]])


def test_what_is_no_rectangle_gets_no_answer() -> None:
    full = margins(3, 3)
    holes = full.tocsc()[:, [0, 1, 3, 4, 8]].tocsr()
    signs = full.copy()
    signs.data[0] = -1
    cube = sparse.csr_array(np.vstack([np.kron(np.eye(2), np.ones(4)), np.kron(np.ones(4), np.eye(2))]))
    for matrix in (holes, signs, full[:5], sparse.vstack([full, full[:1]]).tocsr(), cube.astype(np.int64)[:, :5]):
        n = matrix.shape[1]
        assert rectangle_ends(sparse.csr_array(matrix), np.full(n, -1.0), np.full(n, np.inf)) is None
    assert rectangle_ends(full, np.full(9, -np.inf), np.full(9, np.inf)) is None
