"""Intervals of particular systems: extremes of size and structure, known instances, runs that are cut short."""

from __future__ import annotations

from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from oracle.attacker import exact, naive
from oracle.tables import cube, filled, open_system, sums, system_of
from seeds import fresh
from tablesafe.audit import intervals as intervals_module
from tablesafe.audit import system as pieces_module
from tablesafe.audit.intervals import Checkpoint, exact_intervals
from tablesafe.audit.protection import protection
from tablesafe.audit.system import Piece, Shape, System, pieces
from tablesafe.core.errors import Interrupted, InvalidFile, InvalidOption
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.io.jj import read_jj
from tablesafe.solve.exact import extremes, witnesses

JJ = [
    "targus", "table7", "hier13x7x7d", "table8", "table1", "hier13", "hier13x13x13a", "hier16", "two5in6", "nine5d",
]  # fmt: skip
PATTERNS = ("sensitive", "sparse", "dense")


def _pairs(system: System) -> list[tuple[float, float]]:
    found = exact_intervals(system)
    return list(zip(found.lower.tolist(), found.upper.tolist(), strict=True))


# -- small systems -----------------------------------------------------------------------------------------------------


def test_a_system_without_unknown_cells_has_no_intervals() -> None:
    system = open_system(cube((2, 2)), filled(cube((2, 2)), np.array([1, 2, 3, 4])), [])
    assert _pairs(system) == []
    assert protection(system, np.zeros(0, np.intp), np.zeros(0), np.zeros(0)).components == ()


def test_one_cell_alone_in_its_row_is_known() -> None:
    system = open_system(cube((2, 2)), filled(cube((2, 2)), np.array([1, 2, 3, 4])), [0])
    assert _pairs(system) == [(1.0, 1.0)]


def test_one_cell_that_no_equation_holds_has_its_prior() -> None:
    table = Table.from_equations(sparse.csr_array(np.array([[1, -1, 0]], np.int8)), np.array([5.0, 5.0, 7.0]))
    system = System.over(table, np.array([2]), np.array([2.5]), np.array([np.inf]))
    assert _pairs(system) == [(2.5, np.inf)]


def test_a_square_moves_as_one() -> None:
    system = open_system(cube((2, 2)), filled(cube((2, 2)), np.array([10, 5, 7, 8])), [0, 1, 2, 3])
    assert _pairs(system) == [(2.0, 15.0), (0.0, 13.0), (2.0, 15.0), (0.0, 13.0)]


def test_equations_alone_can_give_everything_away() -> None:
    """x + y, y + z and x + z are published: no bounds are needed."""
    matrix = sums([[0, 1], [1, 2], [0, 2]], 3)
    system = system_of(
        matrix, filled(matrix, np.array([3, 4, 5])), np.array([0, 1, 2]), np.full(3, -np.inf), np.full(3, np.inf)
    )
    assert _pairs(system) == [(3.0, 3.0), (4.0, 4.0), (5.0, 5.0)]
    found = protection(system, np.arange(3), system.truth - 1.0, system.truth + 1.0)
    assert not found.protected.any()


def _two_squares() -> System:
    one = cube((2, 2))
    matrix = np.zeros((8, 16), dtype=np.int8)
    matrix[:4, :8], matrix[4:, 8:] = one, one
    values = np.concatenate([filled(one, np.array([10, 5, 7, 8])), filled(one, np.array([1, 2, 3, 4]))])
    return open_system(matrix, values, [0, 1, 2, 3, 8, 9, 10, 11])


def test_parts_that_do_not_touch_are_answered_apart() -> None:
    other = filled(cube((2, 2)), np.array([1, 2, 3, 4]))
    both = _pairs(_two_squares())
    assert both[:4] == [(2.0, 15.0), (0.0, 13.0), (2.0, 15.0), (0.0, 13.0)]
    assert both[4:] == _pairs(open_system(cube((2, 2)), other, [0, 1, 2, 3]))


def test_sums_that_hold_together_can_still_move_apart() -> None:
    """a + b + c + d and a + b − c − d are published, so a + b and c + d are too: two parts with shared rows."""
    matrix = sparse.csr_array(np.array([[1, 1, 1, 1], [1, 1, -1, -1]], dtype=np.int8))
    shape = Shape.of(Piece(np.arange(4), matrix, np.full(4, -5.0), np.full(4, 5.0)))
    part = shape.part[shape.form]
    assert part[0] == part[1] != part[2] == part[3]


def test_the_end_may_be_a_fraction() -> None:
    """Bounds on x + y, y + z and x + z leave half units."""
    matrix = sums([[0, 1], [1, 2], [0, 2]], 3)
    truth = filled(matrix, np.array([5, 5, 5]))
    lower, upper = np.zeros(6), np.array([np.inf, np.inf, np.inf, 11, 11, 10.0])
    found = exact_intervals(system_of(matrix, truth, np.arange(6), lower, upper))
    assert found.upper[3:].tolist() == [11.0, 11.0, 10.0]
    brute = exact(matrix.tolist(), [0, 0, 0], lower.tolist(), upper.tolist())
    assert found.upper.tolist() == [float(high) for _, high in brute]


def test_large_groups_of_components_give_the_same_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    system = _two_squares()
    together = exact_intervals(system)
    assert len(list(pieces(system))) == 1
    monkeypatch.setattr(pieces_module, "CELLS", 1)
    assert len(list(pieces(system))) == 2
    apart = exact_intervals(replace(system))
    assert (together.lower == apart.lower).all()
    assert (together.upper == apart.upper).all()


@pytest.mark.parametrize("seed", fresh(6, "without a simple null space the equations will do"))
def test_without_a_simple_null_space_the_equations_will_do(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    system = _random_system(seed)
    expected = exact_intervals(system)
    monkeypatch.setattr(pieces_module, "null_space", lambda matrix: None)
    found = exact_intervals(replace(system))
    assert (found.lower == expected.lower).all()
    assert (found.upper == expected.upper).all()


@pytest.mark.parametrize("seed", fresh(6, "highs alone finds the same as the search from the truth"))
def test_highs_alone_finds_the_same_as_the_search_from_the_truth(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    system = _random_system(seed)
    expected = exact_intervals(system)
    wanted = np.arange(len(system))
    asked = (system.truth - np.ceil(0.2 * system.truth), system.truth + np.ceil(0.2 * system.truth))
    protected = protection(system, wanted, *asked).protected
    monkeypatch.setattr(extremes, "budgets", lambda part, sides: np.full(len(sides), -1.0))
    monkeypatch.setattr(witnesses, "budgets", lambda part, sides: np.full(len(sides), -1.0))
    found = exact_intervals(replace(system))
    assert (found.lower == expected.lower).all()
    assert (found.upper == expected.upper).all()
    assert (protection(system, wanted, *asked).protected == protected).all()


def _random_system(seed: int, sizes: tuple[int, ...] = (4, 4, 3)) -> System:
    random = np.random.default_rng(seed)
    matrix = cube(sizes)
    values = filled(matrix, random.integers(0, 60, int(np.prod(sizes))))
    unknown = np.flatnonzero(random.random(len(values)) < 0.6)
    upper = np.where(random.random(len(unknown)) < 0.3, np.inf, values[unknown] + random.integers(0, 90, len(unknown)))
    return system_of(matrix, values, unknown, np.zeros(len(unknown)), upper)


# -- numbers -----------------------------------------------------------------------------------------------------------


def _wide_table(seed: int) -> tuple[Table, np.ndarray]:
    """Cents next to billions: a flat table of amounts with two decimals over twelve orders of magnitude."""
    random = np.random.default_rng(seed)
    matrix, powers = cube((3, 3)), random.uniform(0, 12.3, 9)
    powers[[0, 8]] = 0.0, 12.0
    cents = filled(matrix, np.floor(10**powers).astype(np.int64))
    unknown = np.flatnonzero(random.random(9) < 0.8)
    return Table.from_equations(sparse.csr_array(matrix), cents / 100.0), unknown


@pytest.mark.parametrize("seed", fresh(6, "ten orders of magnitude come out exact"))
def test_ten_orders_of_magnitude_come_out_exact(seed: int) -> None:
    table, unknown = _wide_table(seed)
    assert table.integers[:9].max() / table.integers[:9].min() >= 1e10
    system = System.over(table, unknown, np.zeros(len(unknown)), np.full(len(unknown), np.inf))
    brute = exact(system.matrix.toarray().tolist(), system.rhs.tolist(), system.lower.tolist(), system.upper.tolist())
    assert _pairs(system) == [(float(low), float(high)) for low, high in brute]


def test_a_raw_solver_call_fails_on_ten_orders_of_magnitude() -> None:
    """The same tables, given to a solver as they are: it calls them infeasible, although the truth is a solution."""
    wrong = 0
    for seed in range(12):
        table, unknown = _wide_table(seed)
        system = System.over(table, unknown, np.zeros(len(unknown)), np.full(len(unknown), np.inf))
        published = np.setdiff1d(np.arange(len(table)), unknown)
        columns = table.equations.tocsc().astype(np.float64)
        rhs = -(columns[:, published] @ table.value[published])[system.rows]
        found = exact_intervals(system)
        for cell in range(len(unknown)):
            try:
                ends = naive(system.matrix.toarray().astype(float), rhs, system.lower, system.upper, cell)
            except AssertionError as infeasible:
                assert "infeasible" in str(infeasible)  # noqa: PT017
                wrong += 1
                break
            wrong += not np.allclose(ends, [found.lower[cell] / 100, found.upper[cell] / 100], rtol=1e-6)
    assert wrong > 0


def test_decimal_bounds_next_to_large_values_are_taken_as_they_are_written() -> None:
    """1559558383.4 is no binary fraction; measured from the truth it is 3.4, not 3.400000095."""
    matrix = sums([[0, 1]], 2)
    system = system_of(
        matrix, np.array([51334, 1559507046, 1559558380]), np.array([0, 2]), np.array([51333.9, 0.0]),
        np.array([np.inf, 1559558383.4]),
    )  # fmt: skip
    found = exact_intervals(system)
    assert found.upper.tolist() == [51337.4, 1559558383.4]
    assert found.lower.tolist() == [51333.9, 1559558379.9]


def test_bounds_that_are_no_decimals_are_rounded_inwards() -> None:
    matrix = sums([[0, 1]], 2)
    system = system_of(matrix, np.array([3, 4, 7]), np.array([0, 1]), np.array([2 + 1 / 3, 0.0]), np.array([9.0, 9.0]))
    found = exact_intervals(system)
    assert 2 + 1 / 3 <= found.lower[0] <= 2 + 1 / 3 + 1e-8
    assert found.upper[1] == pytest.approx(4 + 2 / 3, abs=1e-8)


def test_limits_that_are_no_numbers_are_refused() -> None:
    system = _random_system(0)
    with pytest.raises(InvalidOption, match="not a number"):
        protection(system, np.array([0]), np.array([np.nan]), np.array([1.0]))


# -- instances ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "pattern"), [(name, PATTERNS[i % 3]) for i, name in enumerate(JJ)])
def test_literature_instances_equal_naive_linear_programs(name: str, pattern: str, instances: Path) -> None:
    problem = read_jj(instances / "jj" / f"{name}.jj")
    random = np.random.default_rng(len(name))
    share = {"sensitive": 0.0, "sparse": 0.25, "dense": 0.9}[pattern]
    mask = problem.sensitivity.mask | ((random.random(len(problem.table)) < share) & ~problem.frozen)
    system = System.of(problem, Release.from_suppression(problem, mask))
    wanted = random.choice(len(system), min(5, len(system)), replace=False)
    found = exact_intervals(system, wanted)
    for i, cell in enumerate(wanted.tolist()):
        ends = naive(system.matrix.astype(float), system.rhs.astype(float), system.lower, system.upper, cell)
        np.testing.assert_allclose([found.lower[i], found.upper[i]], ends, rtol=1e-6, atol=1e-6)


# -- runs --------------------------------------------------------------------------------------------------------------


def _hard(monkeypatch: pytest.MonkeyPatch) -> System:
    """A system whose every side goes through chunks."""
    monkeypatch.setattr(extremes, "PATIENCE", 1)
    monkeypatch.setattr(intervals_module, "CHUNK", 7)
    monkeypatch.setattr(extremes, "budgets", lambda part, sides: np.full(len(sides), -1.0))
    return _random_system(3, (4, 4, 4))


@pytest.mark.parametrize("kind", ["threads", "processes", "dask"])
def test_the_executor_does_not_change_a_single_bit(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    system = _hard(monkeypatch)
    wanted = np.arange(len(system))
    asked = (system.truth - 3.0, system.truth + 3.0)
    here, shown = exact_intervals(system), protection(system, wanted, *asked)
    with _executor(kind) as executor:
        there = exact_intervals(replace(system), executor=executor)
        far = protection(replace(system), wanted, *asked, executor=executor)
    assert here.lower.tobytes() == there.lower.tobytes()
    assert here.upper.tobytes() == there.upper.tobytes()
    assert shown.lower.tobytes() == far.lower.tobytes()
    assert shown.upper.tobytes() == far.upper.tobytes()
    assert shown.low.tolist() == far.low.tolist()
    for one, other in zip(shown.components, far.components, strict=True):
        assert one.tables.tobytes() == other.tables.tobytes()


def _executor(kind: str) -> Executor:
    if kind == "threads":
        return ThreadPoolExecutor(2)
    if kind == "processes":
        return ProcessPoolExecutor(2)
    distributed = pytest.importorskip("distributed")
    client = distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None)
    executor = client.get_executor()
    shutdown = executor.shutdown

    def close(*args: object, **options: object) -> None:
        shutdown(*args, **options)
        client.close()

    executor.shutdown = close
    return executor


def test_progress_grows_from_nothing_to_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    system = _hard(monkeypatch)
    seen: list[float] = []
    exact_intervals(system, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(seen) > 3
    seen.clear()
    protection(system, np.arange(len(system)), system.truth - 1.0, system.truth + 1.0, progress=seen.append)
    assert seen[-1] == 1.0


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, path = _hard(monkeypatch), tmp_path / "audit.checkpoint"
    expected = exact_intervals(system)
    calls = 0

    def stop_halfway(share: float) -> None:
        nonlocal calls
        calls += 1
        if share > 0.75:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        exact_intervals(replace(system), progress=stop_halfway, checkpoint=path)
    assert path.stat().st_mode & 0o077 == 0
    done = Checkpoint(path, system).done
    assert 0 < done.sum() < len(system)
    solved: list[int] = []
    original = extremes.finish
    monkeypatch.setattr(intervals_module, "finish", lambda task: solved.append(len(task.sides)) or original(task))
    found = exact_intervals(replace(system), checkpoint=path)
    assert (found.lower == expected.lower).all()
    assert (found.upper == expected.upper).all()
    assert sum(solved) <= 2 * (len(system) - done.sum())
    assert not path.exists()
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_another_audit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.checkpoint"
    Checkpoint(path, _random_system(1)).save(now=True)
    with pytest.raises(InvalidFile, match="another audit"):
        exact_intervals(_random_system(2), checkpoint=path)
    path.write_bytes(b"no archive")
    with pytest.raises(InvalidFile, match="not a checkpoint"):
        exact_intervals(_random_system(2), checkpoint=path)


def test_a_run_that_fails_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, path = _hard(monkeypatch), tmp_path / "audit.checkpoint"

    def fail(task: object) -> None:
        raise MemoryError

    monkeypatch.setattr(intervals_module, "finish", fail)
    with pytest.raises(MemoryError):
        exact_intervals(system, checkpoint=path)
    assert path.exists()
