"""Points on faces: exact where vertices have denominators too large for a proof."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from tablesafe.core.equations import Floats
from tablesafe.solve.exact import rational, witnesses
from tablesafe.solve.exact.extremes import WholePart, tighten
from tablesafe.solve.exact.faces import Faces, GridPoint, independent
from tablesafe.solve.exact.nullspace import null_space
from tablesafe.solve.exact.polytope import Polytope
from tablesafe.solve.exact.proof import Proof
from tablesafe.solve.exact.ranges import Ranges
from tablesafe.solve.exact.witnesses import NOBODY, find_witnesses
from tablesafe.solve.highs import Model
from tablesafe.solve.program import Solution
from tablesafe.work.budget import ENDLESS, Budget


@st.composite
def polytopes(draw: st.DrawFn) -> Polytope:
    """A few columns, sums of them, and whole bounds that leave room."""
    k, m = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    rows = np.array(draw(st.lists(st.integers(-3, 3), min_size=k * m, max_size=k * m))).reshape(m, k)
    room = st.integers(1, 20).map(float)
    lower = -np.array(draw(st.lists(room, min_size=k + m, max_size=k + m)))
    upper = np.array(draw(st.lists(room, min_size=k + m, max_size=k + m)))
    return Polytope.of(sparse.csr_array(rows.astype(np.int64)), lower, upper)


def _objective(p: Polytope, side: int) -> Floats:
    objective = np.zeros(p.columns)
    columns, coefficients = p.objective(side // 2)
    objective[columns] = coefficients * (1 - 2 * (side % 2))
    return objective


def _is_inside(p: Polytope, point: GridPoint) -> bool:
    """In fractions, by addition alone."""
    t = [Fraction(0)] * p.columns
    for column, number in zip(point.columns.tolist(), point.numbers.tolist(), strict=True):
        t[column] = Fraction(number, point.denominator)
    rows = p.rows.toarray().astype(int).tolist()
    forms = t + [sum((a * x for a, x in zip(row, t, strict=True)), Fraction(0)) for row in rows]
    return all(low <= x <= high for low, x, high in zip(p.lower.tolist(), forms, p.upper.tolist(), strict=True))


@given(polytopes(), st.booleans())
@settings(deadline=None, max_examples=20)
def test_what_a_face_shows_is_the_end_and_its_point_lies_inside(p: Polytope, generous: bool) -> None:
    for side in range(2 * p.forms):
        ranges = Ranges.of(p)
        faces = Faces(p, ranges, Proof.over(p))
        assert faces.usable
        point = faces.push(_objective(p, side), side, generous=generous)
        assert point is None or _is_inside(p, point)
        for other in np.flatnonzero(ranges.closed).tolist():
            end = rational.extreme(p, other // 2, 1 - 2 * (other % 2)).value
            assert Fraction(int(ranges.numerator[other]), int(ranges.denominator[other])) == end


@given(polytopes())
@settings(deadline=None, max_examples=20)
def test_faces_alone_close_every_side_or_leave_it_to_fractions(p: Polytope) -> None:
    whole = WholePart(p, Ranges.of(p), np.arange(2 * p.forms))
    whole.hard = True
    whole.close_all()
    for side in range(2 * p.forms):
        end = rational.extreme(p, side // 2, 1 - 2 * (side % 2)).value
        assert Fraction(int(whole.ranges.numerator[side]), int(whole.ranges.denominator[side])) == end


def test_a_polytope_whose_rows_have_no_room_has_no_faces_to_search() -> None:
    p = Polytope.of(sparse.csr_array(np.array([[1, 1]])), np.array([-1.0, -1.0, 0.0]), np.array([1.0, 1.0, 0.0]))
    assert not Faces(p, Ranges.of(p), Proof.over(p)).usable
    whole = WholePart(p, Ranges.of(p), np.arange(6))
    whole.hard = True
    whole.close_all()
    assert whole.ranges.numerator.tolist() == [1, 1, 1, 1, 0, 0]


@given(st.integers(1, 5), st.integers(1, 8), st.integers(0, 2**32))
@settings(deadline=None)
def test_independent_rows_have_the_determinant_they_are_said_to_have(m: int, n: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).integers(-2, 3, (m, n)).astype(np.float64)
    taken, pivot, determinant = independent(matrix.copy(), m, 1e6)
    assert len(taken) == np.linalg.matrix_rank(matrix)
    assert np.isclose(abs(np.linalg.det(matrix[np.ix_(taken, pivot)])), abs(determinant))


def dense_cube(n: int, seed: int) -> Polytope:
    """The cells of a cube of which all two-way margins are known, but only half of the cells: a dense null space."""
    random = np.random.default_rng(seed)
    hidden = np.flatnonzero(random.random(n**3) < 0.6)
    at = np.array(np.unravel_index(hidden, (n, n, n)))
    equations = np.vstack([np.eye(n * n)[at[a] * n + at[b]].T for a, b in ((0, 1), (0, 2), (1, 2))])
    space = null_space(sparse.csr_array(equations.astype(np.int64)))
    assert space is not None
    lower, upper = np.full(space.forms.shape[0], -np.inf), np.full(space.forms.shape[0], np.inf)
    moves = space.form >= 0
    truth = random.integers(1, 1000, len(hidden))[moves] * space.divisor[moves]
    np.maximum.at(lower, space.form[moves & (space.divisor > 0)], -truth[space.divisor[moves] > 0].astype(float))
    np.minimum.at(upper, space.form[moves & (space.divisor < 0)], -truth[space.divisor[moves] < 0].astype(float))
    p = Polytope.of(space.forms[space.dimension :], lower, upper)
    tighten(p)
    return p


def test_a_dense_part_is_closed_without_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    p = dense_cube(7, seed=1)
    monkeypatch.setattr(rational, "extreme", None)
    sides = np.arange(0, 2 * p.forms, 5)
    whole = WholePart(p, Ranges.of(p), sides)
    whole.hard = True
    whole.close_all()
    k, rows = p.columns, p.rows
    for side in sides[::4].tolist():
        found = linprog(
            -_objective(p, side),
            A_ub=sparse.vstack([rows, -rows]),
            b_ub=np.concatenate([p.upper[k:], -p.lower[k:]]),
            bounds=np.column_stack([p.lower[:k], p.upper[:k]]),
        )
        assert np.isclose(-found.fun, whole.ranges.numerator[side] / whole.ranges.denominator[side], rtol=1e-7)


def test_needs_at_the_very_end_of_a_dense_part_are_served() -> None:
    p = dense_cube(5, seed=2)
    need = np.full(2 * p.forms, -1.0)
    need[::3] = np.column_stack([p.upper, -p.lower]).ravel()[::3]
    store, ranges = find_witnesses(p, np.zeros(p.forms, np.int64), need)
    for side in range(0, 2 * p.forms, 3):
        assert store.by[side] != NOBODY or ranges.closed[side]


def test_every_program_of_a_proof_has_the_budget_of_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program goes on when the time is over, and what was found until then is as true as ever."""
    p = Polytope.of(sparse.csr_array(np.array([[1, 1, -1], [2, -1, 1]])), np.full(5, -9.0), np.full(5, 7.0))
    given: list[Budget] = []
    maximise = Model.maximise

    def heard(self: Model, objective: Floats, budget: Budget = ENDLESS) -> Solution:
        given.append(budget)
        return maximise(self, objective, budget)

    monkeypatch.setattr(Model, "maximise", heard)
    monkeypatch.setattr(witnesses, "_from_the_truth", lambda polytope, part, ranges, store, sides, budget: store)
    now = [0.0]
    for stop in (None, 1, 2):
        budget, own = Budget(1.0, clock=lambda: now[0]), len(given)
        need, part = np.full(2 * p.forms, 3.0), np.zeros(p.forms, np.int64)

        def tick(
            self: Model, objective: Floats, given_: Budget = ENDLESS, stop: int | None = stop, own: int = own
        ) -> Solution:
            answer = heard(self, objective, given_)
            now[0] += 2.0 if len(given) - own == stop else 0.0
            return answer

        monkeypatch.setattr(Model, "maximise", tick)
        store, _ = find_witnesses(p, part, need, budget=budget)
        served = store.by != NOBODY
        assert len(given) > own
        assert all(each is budget for each in given[own:])
        assert served.all() if stop is None else len(given) - own <= stop + 1
