"""What is near a cell decides only what the whole table would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from tablesafe.audit.alternative_tables import _exact_or_none
from tablesafe.audit.exact import denominators
from tablesafe.audit.neighbourhood import Neighbourhoods
from tablesafe.core.equations import Floats


def cube(side: int, dimensions: int) -> sparse.csr_array:
    """Every line of a cube of unknown cells is a sum."""
    place = np.arange(side**dimensions).reshape((side,) * dimensions)
    lines = np.concatenate([np.moveaxis(place, d, -1).reshape(-1, side) for d in range(dimensions)])
    row = np.repeat(np.arange(len(lines)), side)
    return sparse.csr_array((np.ones(lines.size, np.int64), (row, lines.ravel())), shape=(len(lines), place.size))


def furthest(matrix: sparse.csr_array, cell: int, sign: int, lower: Floats, upper: Floats) -> float:
    """The whole table's own answer, by another solver."""
    cost = np.zeros(matrix.shape[1])
    cost[cell] = -sign
    bounds = np.column_stack([lower, upper])
    return -float(linprog(cost, A_eq=matrix.toarray(), b_eq=np.zeros(matrix.shape[0]), bounds=bounds).fun)


@given(seed=st.integers(0, 2**20), size=st.sampled_from([5, 12, 20, 64, 200]))
def test_near_cells_promise_nothing_that_the_table_denies(seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    matrix = cube(4, 3)
    lower, upper = (-random.integers(0, 9, 64)).astype(float), random.integers(0, 9, 64).astype(float)
    cell, sign = int(random.integers(64)), int(random.choice([-1, 1]))
    nearby = Neighbourhoods(matrix)
    near = nearby.around(cell, size)
    most = furthest(matrix, cell, sign, lower, upper)
    far, decided = nearby.reach(near, cell, sign, lower[near.cells], upper[near.cells])
    assert far <= most + 1e-6
    assert not decided or far == pytest.approx(most, abs=1e-6)
    assert decided or len(near.cells) < 64
    asked = float(random.integers(1, 10))
    move = nearby.shortest(near, cell, sign * asked, lower[near.cells], upper[near.cells])
    if move is None:
        assert len(near.cells) < 64 or most < asked or asked > (upper[cell] if sign > 0 else -lower[cell])
        return
    whole = np.zeros(64)
    whole[near.cells] = move
    assert np.abs(matrix @ whole).max() < 1e-6
    assert whole[cell] == pytest.approx(sign * asked)
    others = np.arange(64) != cell
    assert ((whole <= upper + 1e-6) & (whole >= lower - 1e-6))[others].all()


def test_a_move_near_a_cell_is_the_shortest() -> None:
    matrix = cube(5, 4)
    nearby = Neighbourhoods(matrix)
    near = nearby.around(0, 400)
    room = np.full(len(near.cells), 100.0)
    move = nearby.shortest(near, 0, 7.0, -room, room)
    assert move is not None
    assert np.count_nonzero(np.abs(move) > 1e-9) == 16  # the corners of a box in four dimensions
    assert sorted(set(np.round(move, 6).tolist())) == [-7.0, 0.0, 7.0]


def test_denominators_are_read_off_the_values() -> None:
    assert 7 * 9 in denominators(np.array([1 / 7, 2 / 9, 3.0]))
    assert list(denominators(np.array([0.5, 2.0])))[-1] == 12


def test_a_move_counts_only_if_it_is_exact() -> None:
    """It keeps every sum in whole numbers, within its bounds; what is only nearly so is none."""
    matrix, room = sparse.csr_array(np.array([[1, 1, 0], [0, 1, 1]])), np.full(3, 2.0)
    assert _exact_or_none(matrix, np.array([1 / 3, -1 / 3, 1 / 3]), -room, room) is not None
    assert _exact_or_none(matrix, np.array([1.0, -1.0, 0.9]), -room, room) is None
    assert _exact_or_none(matrix, np.array([1.0, -1.0, 1.0]), -room, room / 4) is None
