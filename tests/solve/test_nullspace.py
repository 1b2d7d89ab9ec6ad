"""How solutions of homogeneous equations can move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from oracle.tables import cube
from tablesafe.solve.exact import nullspace
from tablesafe.solve.exact.nullspace import every_unknown, null_space

MATRICES = st.tuples(st.integers(0, 6), st.integers(1, 8)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.sampled_from([-1, 0, 0, 1]))
)


@given(MATRICES, st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_every_choice_of_coordinates_solves_the_equations(matrix: np.ndarray, seed: int) -> None:
    space = null_space(sparse.csr_array(matrix))
    assert space is not None
    t = np.random.default_rng(seed).integers(-9, 10, space.dimension)
    forms = space.forms @ t
    common = int(np.lcm.reduce(np.abs(space.divisor)))
    x = np.where(space.form >= 0, forms[space.form] if len(forms) else 0, 0) * (common // space.divisor)
    assert not (matrix.astype(np.int64) @ x).any()


@given(MATRICES)
@settings(deadline=None)
def test_there_are_as_many_coordinates_as_the_rank_leaves(matrix: np.ndarray) -> None:
    space = null_space(sparse.csr_array(matrix))
    assert space is not None
    assert space.dimension == matrix.shape[1] - np.linalg.matrix_rank(matrix)
    assert (space.forms[: space.dimension].toarray() == np.eye(space.dimension)).all()


@given(MATRICES)
@settings(deadline=None)
def test_an_unknown_has_no_form_exactly_if_no_solution_moves_it(matrix: np.ndarray) -> None:
    space = null_space(sparse.csr_array(matrix))
    assert space is not None
    rank = np.linalg.matrix_rank(matrix)
    for column in range(matrix.shape[1]):
        unit = np.eye(matrix.shape[1])[column]
        assert (space.form[column] < 0) == (np.linalg.matrix_rank(np.vstack([matrix, unit])) == rank)


def test_cells_that_only_move_together_share_a_form() -> None:
    square = cube((2, 2))[:, :4]
    space = null_space(sparse.csr_array(square))
    assert space is not None
    assert space.dimension == 1
    assert len(set(space.form.tolist())) == 1
    assert space.divisor.tolist() in ([1, -1, -1, 1], [-1, 1, 1, -1])


def test_a_half_is_a_form_over_two() -> None:
    """x + y = a, x − y = b, so x = (a + b) / 2."""
    matrix = sparse.csr_array(np.array([[1, 1, -1, 0], [1, -1, 0, -1]]))
    space = null_space(matrix)
    assert space is not None
    assert 2 in np.abs(space.divisor) or 2 in np.abs(space.forms.data)


def test_it_is_given_up_when_it_would_take_too_much_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nullspace, "MOST_ENTRIES", 10)
    assert null_space(sparse.csr_array(cube((4, 4, 4))[:, :64])) is None


def test_every_unknown_can_be_its_own_coordinate() -> None:
    space = every_unknown(3)
    assert space.dimension == 3
    assert space.form.tolist() == [0, 1, 2]
