"""Three ways to the end of a form: from the truth, by HiGHS, in fractions. And proofs that cannot be fooled."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from tablesafe.core.errors import SolverFailure
from tablesafe.solve.exact import rational
from tablesafe.solve.exact.extremes import HardPart, WholePart, easy_ends, finish, hard_parts, tighten, whole_fraction
from tablesafe.solve.exact.polytope import Polytope
from tablesafe.solve.exact.proof import Proof, common_denominator, forget, inside, limit, locate
from tablesafe.solve.exact.ranges import Ranges
from tablesafe.solve.exact.witnesses import NOBODY, find_witnesses
from tablesafe.solve.highs import Model
from tablesafe.solve.program import SolveStatus


@st.composite
def polytopes(draw: st.DrawFn, bounded: bool = False) -> Polytope:
    """A few columns, a few sums of them, whole bounds around zero."""
    k, m = draw(st.integers(1, 4)), draw(st.integers(0, 5))
    rows = np.array(draw(st.lists(st.integers(-3, 3), min_size=k * m, max_size=k * m))).reshape(m, k)
    room = st.integers(0, 20).map(float)
    if not bounded:
        room = st.one_of(room, st.just(np.inf))
    n = k + m
    lower = -np.array(draw(st.lists(room, min_size=n, max_size=n)))
    upper = np.array(draw(st.lists(room, min_size=n, max_size=n)))
    return Polytope.of(sparse.csr_array(rows.astype(np.int64)), lower, upper)


def _linprog(p: Polytope, side: int) -> float:
    objective = np.zeros(p.columns)
    columns, coefficients = p.objective(side // 2)
    objective[columns] = -coefficients * (1 - 2 * (side % 2))
    k, rows = p.columns, p.rows.toarray()
    above, below = np.isfinite(p.upper[k:]), np.isfinite(p.lower[k:])
    found = linprog(
        objective,
        A_ub=np.vstack([rows[above], -rows[below]]),
        b_ub=np.concatenate([p.upper[k:][above], -p.lower[k:][below]]),
        bounds=np.column_stack([p.lower[:k], p.upper[:k]]),
    )
    return np.inf if found.fun is None else -found.fun  # zero is feasible, so it can only be unbounded


def _end(ranges: Ranges, side: int) -> float:
    assert ranges.closed[side]
    return np.inf if ranges.denominator[side] == 0 else ranges.numerator[side] / ranges.denominator[side]


@given(polytopes())
@settings(deadline=None, max_examples=20)
def test_all_ways_find_the_same_ends(p: Polytope) -> None:
    sides = np.arange(2 * p.forms)
    one_part = np.zeros(p.forms, dtype=np.int64)
    easy, left = easy_ends(p, one_part, sides)
    assert not left.size
    hard = finish(HardPart(p, Ranges.of(p), sides, np.arange(p.forms)))
    for side in sides.tolist():
        expected = _linprog(p, side)
        in_fractions = rational.extreme(p, side // 2, 1 - 2 * (side % 2)).value
        assert _end(easy, side) == pytest.approx(expected, abs=1e-7)
        assert _end(hard, side) == _end(easy, side)
        assert (np.inf if in_fractions is None else float(in_fractions)) == _end(easy, side)


@given(polytopes())
@settings(deadline=None)
def test_tightening_changes_no_end(p: Polytope) -> None:
    narrow = p._replace(lower=p.lower.copy(), upper=p.upper.copy())
    tighten(narrow)
    part, sides = np.zeros(p.forms, dtype=np.int64), np.arange(2 * p.forms)
    before, after = easy_ends(p, part, sides)[0], easy_ends(narrow, part, sides)[0]
    assert [_end(before, side) for side in sides.tolist()] == [_end(after, side) for side in sides.tolist()]


@given(polytopes())
@settings(deadline=None)
def test_a_point_in_fractions_lies_inside_and_shows_the_end(p: Polytope) -> None:
    for side in range(2 * p.forms):
        sign = 1 - 2 * (side % 2)
        found = rational.extreme(p, side // 2, sign)
        t = [found.columns.get(q, Fraction(0)) for q in range(p.columns)]
        rows = [[int(c) for c in row] for row in p.rows.toarray()]
        forms = t + [sum((c * x for c, x in zip(row, t, strict=True)), Fraction(0)) for row in rows]
        if found.value is None:
            assert sign * forms[side // 2] > 0
            assert all(not x > 0 or np.isinf(p.upper[f]) for f, x in enumerate(forms))
            assert all(not x < 0 or np.isinf(p.lower[f]) for f, x in enumerate(forms))
        else:
            assert sign * forms[side // 2] == found.value
            assert all(p.lower[f] <= x <= p.upper[f] for f, x in enumerate(forms))


@given(polytopes(bounded=True), st.data())
@settings(deadline=None)
def test_no_prices_prove_a_limit_that_is_too_low(p: Polytope, data: st.DataObject) -> None:
    """Weak duality: whatever a solver says, the limit is never below the true end."""
    m = p.forms - p.columns
    prices = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, -1.0, 0.5, 1 / 3, 2.0]), min_size=m, max_size=m)))
    exact = data.draw(st.booleans())
    for side in range(2 * p.forms):
        sign = 1 - 2 * (side % 2)
        top, bottom = limit(p, Proof.over(p), np.arange(m), prices, m, side // 2, sign, exact)
        truth = rational.extreme(p, side // 2, sign).value
        assert truth is not None
        assert bottom == 0 or Fraction(int(top), int(bottom)) >= truth


@given(polytopes(bounded=True), st.data())
@settings(deadline=None)
def test_a_point_outside_is_never_taken_for_one_inside(p: Polytope, data: st.DataObject) -> None:
    k = p.columns
    point = np.array(data.draw(st.lists(st.integers(-40, 40), min_size=k, max_size=k))) / data.draw(st.integers(1, 7))
    proof = Proof.over(p)
    proof.columns[:], proof.values[:] = np.arange(k), point
    denominator = locate(p, proof, k, True)
    assert denominator > 0
    t = [Fraction(round(x * denominator), denominator) for x in point]
    rows = [[int(c) for c in row] for row in p.rows.toarray()]
    forms = t + [sum((c * x for c, x in zip(row, t, strict=True)), Fraction(0)) for row in rows]
    expected = all(p.lower[f] <= x <= p.upper[f] for f, x in enumerate(forms))
    assert inside(p, proof, denominator) == expected
    forget(proof)
    if locate(p, proof, k, False) and inside(p, proof, 1 << 40):
        assert all(p.lower[f] - 1e-6 <= x <= p.upper[f] + 1e-6 for f, x in enumerate(forms))


@given(polytopes(), st.data())
@settings(deadline=None)
def test_a_need_is_served_exactly_if_the_end_lies_beyond(p: Polytope, data: st.DataObject) -> None:
    need = np.array(
        data.draw(st.lists(st.sampled_from([-1.0, 0.0, 1.0, 7.0, 300.0]), min_size=2 * p.forms, max_size=2 * p.forms))
    )
    part = np.zeros(p.forms, dtype=np.int64)
    store, ranges = find_witnesses(p, part, need)
    points = store.rows(p.columns)
    for side in np.flatnonzero(need > 0).tolist():
        sign, by = 1 - 2 * (side % 2), int(store.by[side])
        end = rational.extreme(p, side // 2, sign).value
        serves = end is None or end >= int(need[side])
        if by != NOBODY:
            t = points[[by]].toarray().ravel() / store.denominator[by]
            forms = np.concatenate([t, p.rows @ t])
            assert (forms >= p.lower - 1e-9).all()
            assert (forms <= p.upper + 1e-9).all()
            reached = sign * forms[side // 2]
            assert reached >= need[side] - 1e-9 if serves else reached == pytest.approx(float(end))
        else:
            assert not serves
            assert ranges.closed[side]
            assert end == Fraction(int(ranges.numerator[side]), int(ranges.denominator[side]))


def test_a_hard_part_is_cut_into_chunks_that_can_be_finished_apart() -> None:
    rows = sparse.csr_array(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=np.int64))
    p = Polytope.of(rows, np.full(6, -5.0), np.array([4.0, 4, 4, 6, 6, 7]))
    part, sides = np.zeros(6, dtype=np.int64), np.arange(12)
    whole = easy_ends(p, part, sides)[0]
    found = Ranges.of(p)
    tasks = list(hard_parts(p, part, found, sides, 5))
    assert [len(task.sides) for task in tasks] == [5, 5, 2]
    for task in tasks:
        found.put_sides(task.forms, finish(task), task.sides)
    assert [_end(found, side) for side in sides.tolist()] == [_end(whole, side) for side in sides.tolist()]


def test_a_solver_that_lies_is_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong points, wrong prices, wrong statuses: the answer comes from fractions, and is right."""
    rows = sparse.csr_array(np.array([[1, 1], [1, -1]], dtype=np.int64))
    p = Polytope.of(rows, np.full(4, -9.0), np.array([9.0, 9, 4, 3]))
    true = [rational.extreme(p, side // 2, 1 - 2 * (side % 2)).value for side in range(8)]
    original = Model.maximise

    for kind in ("point", "prices", "status", "unbounded"):

        def lie(self: Model, objective: np.ndarray, kind: str = kind):
            answer = original(self, objective)
            if kind == "point":
                return replace(answer, point=answer.point + 1.0)
            if kind == "prices":
                return replace(answer, point=answer.point * 0.5, dual=np.zeros_like(answer.dual))
            return replace(answer, status=SolveStatus.FAILED if kind == "status" else SolveStatus.UNBOUNDED)

        with monkeypatch.context() as patch:
            patch.setattr(Model, "maximise", lie)
            ranges = finish(HardPart(p, Ranges.of(p), np.arange(8), np.arange(4)))
        assert [Fraction(int(ranges.numerator[s]), int(ranges.denominator[s])) for s in range(8)] == true


def test_fractions_give_up_rather_than_run_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rational, "MOST_STEPS", 1)
    rows = sparse.csr_array(np.array([[1, 1], [1, -1]], dtype=np.int64))
    p = Polytope.of(rows, np.full(4, -9.0), np.full(4, 9.0))
    with pytest.raises(SolverFailure, match="ran out of steps"):
        rational.extreme(p, 2, 1)


def test_highs_refuses_unknown_options() -> None:
    with pytest.raises(SolverFailure, match="does not accept"):
        Model(no_such_option=1)


def test_a_warm_model_follows_its_objectives() -> None:
    rows = sparse.csr_array(np.array([[1, 1]], dtype=np.int64))
    p = Polytope.of(rows, np.array([-3.0, -3, -4]), np.array([3.0, 3, 4]))
    model = p.simplex()
    assert model.maximise(np.array([1.0, 1.0])).point.sum() == pytest.approx(4)
    assert model.maximise(np.array([-1.0, 0.0])).point[0] == pytest.approx(-3)
    assert model.maximise(np.array([0.0, 0.0])).status is SolveStatus.OPTIMAL


def test_whole_fractions_fit_64_bits_and_err_outwards() -> None:
    assert whole_fraction(Fraction(7, 3)) == (7, 3)
    value = Fraction(10**30 + 1, 10**29 + 7)
    top, bottom = whole_fraction(value)
    assert max(top, bottom) < 2**62
    assert 0 <= Fraction(top, bottom) - value < Fraction(1, 1000)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, 2.0], 1), ([0.5, 1 / 3], 6), ([2 / 7, 3 / 14], 14), ([np.pi], 0), ([1e12 + 0.5], 2), ([], 1)],
)
def test_the_common_denominator_of_floats(values: list[float], expected: int) -> None:
    assert common_denominator(np.array(values), len(values)) == expected


def test_one_whole_part_closes_one_side_at_a_time() -> None:
    rows = sparse.csr_array(np.array([[2, 1]], dtype=np.int64))
    p = Polytope.of(rows, np.array([-3.0, -3, -4]), np.array([3.0, 3, 4]))
    ranges = Ranges.of(p)
    WholePart(p, ranges, np.array([4])).close_one(4)
    assert _end(ranges, 4) == 4.0
    assert not ranges.closed[5]


def test_a_point_too_large_for_any_grid_is_not_located() -> None:
    p = Polytope.of(sparse.csr_array(np.ones((1, 2), dtype=np.int64)), np.full(3, -np.inf), np.full(3, np.inf))
    w = Proof.over(p)
    w.columns[0], w.values[0] = 0, 1e19
    assert locate(p, w, 1, False) == 0
