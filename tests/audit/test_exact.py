"""Exact moves: whatever the solver says, what comes back satisfies every equation and limit without a tolerance."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import null_space
from scipy.optimize import linprog

from tablesafe.audit.exact import (
    ExactLimits,
    ExactMove,
    exact,
    exact_in_units,
    exact_moves,
    exact_nearby,
    exact_vertex,
    row_sums,
    times,
)


def cube(shape: tuple[int, int, int], kept: np.ndarray[Any, Any]) -> sparse.csr_array:
    """The equations of a three-dimensional table with all margins published, over some of its cells."""
    index = np.arange(int(np.prod(shape))).reshape(shape)
    rows = [line for axis in range(3) for line in np.moveaxis(index, axis, -1).reshape(-1, shape[axis])]
    matrix = np.zeros((len(rows), index.size), dtype=np.int8)
    for row, line in enumerate(rows):
        matrix[row, line] = 1
    return sparse.csr_array(matrix[:, kept])


def is_exact(matrix: sparse.csr_array, move: ExactMove, low: list[Any], high: list[Any]) -> bool:
    """Check a move with fractions and plain Python, one number at a time."""
    values = [Fraction(0)] * matrix.shape[1]
    for cell, numerator in zip(move.cells.tolist(), move.numerators.tolist(), strict=True):
        values[cell] = Fraction(numerator, move.denominator)
    dense = matrix.toarray().tolist()
    additive = all(sum(c * v for c, v in zip(row, values, strict=True)) == 0 for row in dense)
    return additive and all(a <= v <= b for a, v, b in zip(low, values, high, strict=True))


TELLING = 8
"""Power of ten beyond which a solver does not tell a quarter of a unit from nothing."""


@settings(max_examples=75, deadline=None)
@given(seed=st.integers(0, 10**9), fractional=st.booleans(), power=st.integers(0, 11))
def test_a_vertex_of_a_table_becomes_exact_and_stays_where_it_was(seed: int, fractional: bool, power: int) -> None:
    random = np.random.default_rng(seed)
    shape = tuple(int(size) for size in random.integers(2, 5, 3))
    kept = np.flatnonzero(random.random(int(np.prod(shape))) < random.uniform(0.5, 1.0))
    matrix = cube(shape, kept)  # type: ignore[arg-type]
    truth = random.integers(0, 20, len(kept)) * 10**power
    upper = truth * 1.37 + 0.25 if fractional else np.full(len(kept), np.inf)
    answer = linprog(
        random.normal(size=len(kept)), A_eq=matrix.astype(float), b_eq=(matrix.astype(np.int64) @ truth).astype(float),
        bounds=np.column_stack([np.zeros(len(kept)), upper]), method="highs-ds",
    )  # fmt: skip
    if answer.status != 0:
        return
    limits = ExactLimits.of(np.zeros(len(kept)), exact_in_units(upper, 0) if fractional else upper, truth)
    low = [-int(t) for t in truth]
    high = [exact(u) - int(t) for u, t in zip(upper, truth, strict=True)] if fractional else [np.inf] * len(kept)
    suggested = answer.x - truth
    first, vertex = exact_moves(matrix, suggested[None], limits)[0], exact_vertex(matrix, suggested, limits)
    assert first is not None
    assert vertex is not None or (fractional and power > TELLING)
    for move in (first, vertex or first):
        assert is_exact(matrix, move, low, high)
        found = np.zeros(len(kept))
        found[move.cells] = [n / move.denominator for n in move.numerators.tolist()]
        assert np.abs(found - suggested).max() <= 1e-6 * max(1.0, np.abs(suggested).max())


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), size=st.integers(1, 14))
def test_large_denominators_are_found_by_refinement(seed: int, size: int) -> None:
    """Random matrices of −1, 0 and 1 have determinants far beyond any table's."""
    random = np.random.default_rng(seed)
    square = random.integers(-1, 2, (size, size))
    if abs(np.linalg.det(square)) < 0.5:
        return
    column = random.integers(-1, 2, (size, 1))
    matrix = sparse.csr_array(np.hstack([square, column]).astype(np.int8))
    move = np.append(np.linalg.solve(square, -column[:, 0] * 12345.0), 12345.0)
    free = np.full(size + 1, np.inf)
    upper = free.copy()
    upper[-1] = 12345.0  # the last cell is at its limit, the others follow
    limits = ExactLimits.of(-free, upper, np.zeros(size + 1, dtype=np.int64))
    found = exact_vertex(matrix, move, limits)
    assert found is not None
    high = [np.inf] * size + [12345]
    assert is_exact(matrix, found, [-np.inf] * (size + 1), high)
    assert found.at(np.array([size]))[0] == 12345 * found.denominator


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_nonsense_gives_an_exact_move_or_none(data: st.DataObject) -> None:
    shape = (2, 3, 2)
    matrix = cube(shape, np.arange(12))
    number = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.integers(-50, 50).map(float))
    suggested = np.array(data.draw(st.lists(number, min_size=12, max_size=12)))
    truth = np.array(data.draw(st.lists(st.integers(0, 9), min_size=12, max_size=12)))
    limits = ExactLimits.of(np.zeros(12), truth + 4.0, truth)
    move = exact_moves(matrix, suggested[None], limits)[0]
    if move is not None:
        assert is_exact(matrix, move, [-int(t) for t in truth], [4] * 12)


def test_a_move_beyond_its_limits_is_shortened_towards_the_truth() -> None:
    matrix = sparse.csr_array(np.array([[1, 1]], dtype=np.int8))
    limits = ExactLimits.of(np.array([0.0, 0.0]), np.array([12.0, 13.0]), np.array([10, 10]))
    move = exact_moves(matrix, np.array([[3.0, -3.0]]), limits)[0]
    assert move is not None
    assert (move.numerators / move.denominator).tolist() == [2.0, -2.0]
    blocked = ExactLimits.of(np.array([0.0, 0.0]), np.array([10.0, 13.0]), np.array([10, 10]))
    move = exact_moves(matrix, np.array([[3.0, -3.0]]), blocked)[0]
    assert move is None or not move.cells.size


def test_large_coefficients_are_multiplied_without_overflow() -> None:
    """In 64 bits the product would be 0, and a move that breaks the equation would seem to keep it."""
    matrix = sparse.csr_array(np.array([[2**40, -1]], dtype=np.int64))
    assert row_sums(matrix, np.array([2**30, 0])).tolist() == [2**70]


def test_numbers_beyond_64_bits_are_added_without_overflow() -> None:
    matrix = sparse.csr_array(np.ones((2, 400), dtype=np.int8))
    values = np.full(400, 2**61, dtype=np.int64)
    assert row_sums(matrix, values).tolist() == [400 * 2**61] * 2
    assert row_sums(sparse.csr_array(np.array([[0, 0], [1, -1]], dtype=np.int8)), np.array([5, 2**62])).tolist() == [
        0,
        5 - 2**62,
    ]


@pytest.mark.parametrize(
    ("given_number", "meant"),
    [(71.4, "357/5"), (0.1 + 0.2, "3/10"), (0.1 * 714, "357/5"), (1e22, "10000000000000000000000"), (0.07 * 100, "7")],
)
def test_a_level_is_the_decimal_number_that_was_meant(given_number: float, meant: str) -> None:
    assert exact(given_number) == Fraction(meant)


def test_nothing_times_a_number_beyond_64_bits_is_nothing() -> None:
    assert times(np.zeros(3, np.int64), 2**70).tolist() == [0, 0, 0]
    assert times(np.array([1, 0]), 2**70).tolist() == [2**70, 0]


@pytest.mark.parametrize("seed", range(6))
def test_moves_without_simple_fractions_are_made_exact(seed: int) -> None:
    """Most cells follow from a few, over a determinant of many digits."""
    random = np.random.default_rng(seed)
    matrix = sparse.csr_array(random.choice([-1, 0, 1], (40, 45), p=[0.1, 0.7, 0.2]))
    basis = null_space(matrix.toarray().astype(float))
    move = basis @ random.normal(size=basis.shape[1])
    move *= 1000 / np.abs(move).max()
    tight = ExactLimits.within(np.where(move < 0, np.ceil(-move), 2000.0), np.where(move > 0, np.ceil(move), 2000.0))
    for limits in (ExactLimits.within(np.full(45, 2000.0), np.full(45, np.inf)), tight):
        found = exact_nearby(matrix, move + 1e-9 * random.normal(size=45), limits)
        assert found is not None
        by = np.array([Fraction(0)] * 45)
        by[found.cells] = [Fraction(int(n), found.denominator) for n in found.numerators]
        assert not (matrix.toarray().astype(object) @ by).any()
        assert limits.allow(found.whole(45), found.denominator)
        assert np.abs(by.astype(float) - move).max() < 0.01
