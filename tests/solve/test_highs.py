"""One model of HiGHS: it follows changes, checks its answers, and stops when time or the user says so."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import highspy
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from seeds import fresh
from tablesafe.core.errors import OutOfTime, SolverFailure
from tablesafe.solve import highs
from tablesafe.solve.highs import DUAL, PRIMAL, SIMPLEX, Model, whole_point
from tablesafe.solve.program import Columns, Program, Rows, Scale, SolveStatus
from tablesafe.work.budget import Budget
from tablesafe.work.stopping import heed


def drawn(seed: int) -> Program:
    """A program with a point inside; every column has a bound on the side of its cost."""
    random = np.random.default_rng(seed)
    n, m = int(random.integers(3, 10)), int(random.integers(1, 5))
    matrix = sparse.csr_array(random.integers(-1, 2, (m, n)).astype(float))
    inside = random.random(n) * 10.0 ** random.integers(0, 10)
    sums, width = matrix @ inside, random.random(m) * np.where(random.random(m) < 0.5, 0.0, inside.max())
    lower, upper = inside - random.random(n) * inside.max(), inside + random.random(n) * inside.max()
    cost = random.standard_normal(n) * 10.0 ** float(random.integers(-9, 4))
    upper[(cost > 0) & (random.random(n) < 0.3)] = np.inf
    return Program(cost, matrix, sums - width, sums + width, lower, upper)


def least(p: Program) -> float:
    """The least cost by another solver, in numbers about 1."""
    size, price = max(float(np.abs(p.lower).max()), 1.0), float(np.abs(p.cost).max())
    found = linprog(
        p.cost / price,
        A_ub=np.vstack([p.matrix.toarray(), -p.matrix.toarray()]),
        b_ub=np.concatenate([p.row_upper, -p.row_lower]) / size,
        bounds=np.column_stack([p.lower, p.upper]) / size,
    )
    return float(found.fun) * size * price if found.status == 0 else np.nan


@pytest.mark.parametrize("seed", fresh(20, "a model follows what changes"))
def test_a_model_follows_what_changes_in_any_units(seed: int) -> None:
    program, random = drawn(seed), np.random.default_rng(seed + 1)
    model = Model(program, simplex_strategy=DUAL, later=PRIMAL, **SIMPLEX)
    size = float(np.abs(program.lower).max())
    for turn in range(4):
        solution, expected = model.solve(), least(model.program)
        tolerance = 1e-6 * size * float(np.abs(model.program.cost).max())
        if np.isnan(expected):
            assert not solution.found
        else:
            assert solution.objective == pytest.approx(expected, rel=1e-6, abs=tolerance)
            assert solution.bound == pytest.approx(expected, rel=1e-6, abs=tolerance)
            assert model.program.violation(solution.point, unit=size) < 1e-6
        columns = np.flatnonzero(np.isfinite(model.program.upper))[:2]
        if turn == 0:
            model.set_costs(columns, random.standard_normal(len(columns)) * float(np.abs(program.cost).max()))
        elif turn == 1:
            middle = (model.program.lower[columns] + model.program.upper[columns]) / 2
            model.set_bounds(columns, model.program.lower[columns], middle)
        else:
            form = random.integers(-1, 2, len(program.cost)).astype(float)
            at = np.array([form @ solution.point if solution.found else 0.0])
            row = Rows(np.array([0, len(form)]), np.arange(len(form)), form, len(form))
            model.add_rows(row, at - size / 8, at + size / 8)


@pytest.mark.parametrize("seed", fresh(20, "any prices prove a bound"))
def test_any_prices_prove_a_bound(seed: int) -> None:
    program, random = drawn(seed), np.random.default_rng(seed)
    best = least(program)
    for _ in range(5):
        prices = random.standard_normal(program.size[0]) * float(np.abs(program.cost).max())
        assert np.isnan(best) or program.bound(prices) <= best + 1e-9 * abs(best)


def test_costs_far_below_the_solvers_tolerance_count() -> None:
    """Unscaled, a cost of 1e-9 is nothing: any point would be called optimal."""
    matrix = sparse.csr_array(np.ones((1, 3)))
    program = Program.equations(
        matrix, np.array([5.0]), np.zeros(3), np.full(3, 5.0), cost=np.array([3e-9, 1e-9, 2e-9])
    )
    assert Model(program).solve().point.tolist() == [0, 5, 0]


def test_bounds_are_scaled_by_powers_of_two_and_whole_numbers_never() -> None:
    program = Program.equations(sparse.csr_array(np.ones((1, 2))), np.array([3e12]), np.zeros(2), np.full(2, np.inf))
    assert np.log2(Scale.of(program).step) == 18
    assert Model(program).solve().point.sum() == 3e12
    whole = Program(
        program.cost, program.matrix, *[program.row_lower] * 2, program.lower, program.upper, np.ones(2, bool)
    )
    assert Scale.of(whole).step == 1
    with pytest.raises(ValueError, match="whole"):
        Model(whole, scale=Scale(2.0))


@pytest.mark.parametrize("lie", [lambda x: x + 1.0, lambda x: x * np.nan, lambda x: x[:-1]])
def test_an_optimum_that_misses_the_equations_is_no_answer(monkeypatch: pytest.MonkeyPatch, lie: Any) -> None:
    real = highspy.Highs.getSolution

    def lying(self: Any) -> Any:
        found = real(self)
        found.col_value = list(lie(np.array(found.col_value)))
        return found

    monkeypatch.setattr(highspy.Highs, "getSolution", lying)
    program = Program.equations(sparse.csr_array(np.ones((1, 2))), np.array([4.0]), np.zeros(2), np.full(2, 3.0))
    model = Model(program)
    assert model.run() is SolveStatus.OPTIMAL
    assert model.solution().status is SolveStatus.FAILED
    with pytest.raises(SolverFailure, match="without an answer"):
        model.solve()


def test_what_has_no_answer_says_why() -> None:
    one = sparse.csr_array(np.ones((1, 1)))
    nowhere = Program.equations(one, np.array([4.0]), np.zeros(1), np.ones(1))
    assert Model(nowhere).solve().status is SolveStatus.INFEASIBLE
    assert Model(nowhere).solve().bound == np.inf
    free = sparse.csr_array((0, 1))
    endless = Program(-np.ones(1), free, np.zeros(0), np.zeros(0), np.zeros(1), np.full(1, np.inf))
    assert Model(endless).solve().status is SolveStatus.UNBOUNDED
    program = Program.equations(one, np.array([4.0]), np.zeros(1), np.full(1, 9.0), cost=np.ones(1))
    assert Model(program, **SIMPLEX).run(better_than=3.0) in {SolveStatus.CUT_OFF, SolveStatus.OPTIMAL}
    with pytest.raises(SolverFailure, match="does not accept"):
        Model(no_such_option=1)


def knapsack(seed: int = 0, n: int = 60) -> Program:
    """An integer program that takes long, with a point that is found at once."""
    random = np.random.default_rng(seed)
    matrix = sparse.csr_array(random.integers(10_000, 99_999, (5, n)).astype(float))
    half = np.floor(matrix.sum(axis=1) / 2)
    return Program(
        -random.integers(10_000, 99_999, n).astype(float), matrix, np.full(5, -np.inf), half, np.zeros(n), np.ones(n),
        np.ones(n, bool),
    )  # fmt: skip


class Interrupting(Budget):
    """The user interrupts when the solver looks how much is left; if it does not hear, all ends many looks later."""

    looks = 0

    def __init__(self, number: int = signal.SIGINT, after: int = 1) -> None:
        super().__init__()
        self._number, self._after = number, after

    @property
    def over(self) -> bool:
        self.looks += 1
        if self.looks == self._after:
            os.kill(os.getpid(), self._number)
        return self.looks > 10_000


@pytest.fixture
def usual_signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ctrl-C as Python has it; other tests in the same process may have changed that."""
    monkeypatch.setattr(highs, "LOOK_S", 0.0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_signals")
def test_the_user_stops_an_integer_program() -> None:
    with pytest.raises(KeyboardInterrupt):
        Model(knapsack()).run(Interrupting())
    kept = Model(knapsack()).solve(Interrupting(after=50), anytime=True)
    assert kept.interrupted
    assert kept.status in {SolveStatus.FEASIBLE, SolveStatus.STOPPED}
    assert kept.bound <= kept.objective


@pytest.mark.usefixtures("usual_signals")
def test_the_user_stops_a_linear_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "WATCHED", 0)
    random = np.random.default_rng(1)
    matrix = sparse.csr_array(random.integers(-1, 2, (60, 120)).astype(float))
    program = Program.equations(
        matrix, matrix @ random.random(120), np.zeros(120), np.ones(120), cost=random.random(120)
    )
    for options in (SIMPLEX, {"solver": "ipm"}):
        with pytest.raises(KeyboardInterrupt):
            Model(program, **options).run(Interrupting())
        assert Model(program, **options).run() is SolveStatus.OPTIMAL


@pytest.mark.usefixtures("usual_signals")
def test_a_wish_to_end_the_process_goes_on_to_who_deals_with_it() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            Model(knapsack()).run(Interrupting(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


def test_a_budget_that_is_over_or_stopped_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "LEAST_S", 0.0)
    with pytest.raises(OutOfTime, match="time_limit_s"):
        Model(knapsack()).solve(Budget(0.0))
    assert not Model(knapsack()).solve(Budget(0.0), anytime=True).found
    stopped = Budget(1e6)
    stopped.stop()
    assert Model(knapsack()).run(stopped) in {SolveStatus.STOPPED, SolveStatus.FEASIBLE}


def test_a_small_program_for_which_there_is_no_time_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "LEAST_S", 0.0)
    monkeypatch.setattr(highs, "WATCHED", 0)
    rng = np.random.default_rng(1)
    matrix = sparse.csc_array(rng.integers(-1, 2, (20, 60)).astype(np.float64))
    asked = rng.random(60), np.full(60, -1.0), np.ones(60), Columns.of(matrix)
    assert Model.small().minimise(*asked, budget=Budget(1e6)) is not None
    assert Model.small().minimise(*asked, budget=Budget(0.0)) is None
    assert Model.small(Budget(0.0)).minimise(*asked) is None, "it is counted in a budget that is over"
    small = Model.small()
    assert small.minimise(*asked, budget=Budget(0.0)) is None
    assert small.minimise(*asked) is not None  # the next one has its time again


def test_a_model_is_freed_with_its_last_user() -> None:
    import weakref

    model = Model(knapsack())
    watched = weakref.ref(model)
    del model
    assert watched() is None


@pytest.mark.parametrize("seed", fresh(10, "a whole point"))
def test_a_whole_point_is_found_where_there_is_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix = sparse.csr_array(random.integers(0, 3, (3, 7)))
    point = random.integers(0, 9, 7)
    status, found = whole_point(matrix, matrix @ point, np.full(7, 9.0), budget=Budget(60))
    assert status is SolveStatus.FEASIBLE
    assert found is not None
    assert np.array_equal(matrix @ found, matrix @ point)
    assert ((found >= 0) & (found <= 9)).all()
    even = sparse.csr_array(2 * np.ones((1, 4), np.int64))
    assert whole_point(even, np.array([7]), np.full(4, 9.0), budget=Budget(60)) == (SolveStatus.INFEASIBLE, None)


def test_a_program_without_a_budget_is_broken_off_when_its_seconds_after_a_stop_are_over() -> None:
    columns = highs.Columns.of(sparse.csc_array(np.array([[1.0, -1.0]])))
    program = np.array([1.0, 0.0]), np.ones(2), np.full(2, 5.0), columns
    whole, must = Budget(), Budget()
    must.hurry(whole, 0.0)
    with heed(whole, must):
        found = Model.small().minimise(*program)
        assert found is not None
        whole.stop()
        with pytest.raises(KeyboardInterrupt):
            Model.small().minimise(*program)


def test_what_the_primal_simplex_gives_up_on_is_solved_by_the_dual_one() -> None:
    """An attacker's program of 35 cells to which HiGHS says only that it does not know, from any start."""
    room = np.array(
        [4, 2, 265, 2, 263, 148, 214, 16, 265, 265, 122, 41, 121, 41, 29, 134, 138, 2, 44, 1, 10, 9, 19, 8, 27, 4, 221,
         141, 80, 219, 265, 46, 96, 124, 100]
    ) * (64 / 265)  # fmt: skip
    row = np.array(
        [0, 14, 26, 2, 16, 26, 3, 14, 27, 4, 15, 27, 5, 16, 27, 6, 14, 28, 7, 15, 28, 9, 13, 29, 10, 14, 29, 12, 16, 29,
         3, 17, 30, 4, 18, 30, 5, 19, 30, 7, 18, 31, 8, 19, 31, 10, 17, 32, 12, 19, 32, 1, 21, 33, 3, 20, 34, 6, 20, 35,
         7, 21, 35, 8, 22, 35, 10, 20, 36, 11, 21, 36, 12, 22, 36, 0, 23, 37, 3, 23, 38, 4, 24, 38, 5, 25, 38, 6, 23,
         39, 7, 24, 39, 8, 25, 39, 10, 23, 40, 11, 24, 40, 12, 25, 40]
    )  # fmt: skip
    value, cost = np.ones(105), np.zeros(35)
    value[23], cost[30] = -1.0, -1.0
    columns = Columns(np.arange(36) * 3, row, value, 41)
    program = Program.equations(columns, np.zeros(41), -room, room, cost=cost)
    model = Model(program, scale=Scale(), simplex_strategy=PRIMAL, **SIMPLEX)
    assert model.run() is SolveStatus.OPTIMAL
    assert model.objective == pytest.approx(Model(program, scale=Scale()).solve().objective)
    assert model.run() is SolveStatus.OPTIMAL, "and again, by the method it is made for"
