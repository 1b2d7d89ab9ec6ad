"""Controlled rounding: the least widening against brute force, tables that are linked, hidden, large or no tree."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from oracle.counts import cube, hierarchical, one_in_every_other, rounded
from seeds import fresh
from tablesafe.audit.audit import audit
from tablesafe.core.errors import SolverFailure
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.linking import link
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import read_jj
from tablesafe.methods.round import Round, controlled
from tablesafe.methods.round.partition import RoundingProgram
from tablesafe.solve.program import SolveStatus


def check(problem: Problem, release: Release, base: int) -> np.ndarray[Any, Any]:
    """Sums hold, multiples of the base, windows hold the truth; steps beyond the neighbours of each cell."""
    table, shown = problem.table, ~release.suppressed
    values = np.where(shown, release.values, 0).astype(np.int64)
    assert (values % base == 0).all()
    rows = np.asarray(abs(table.equations).astype(np.int64) @ (~shown).astype(np.int64)) == 0
    assert not (table.equations.astype(np.int64) @ values)[rows].any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    low, high = table.integers // base * base, -(-table.integers // base) * base
    return np.where(shown, np.maximum(np.maximum(low - values, values - high), 0), 0) // base


def least_widening(table: Table, base: int, furthest: int) -> tuple[int, int, int] | None:
    """By enumeration of all inner cells: the least largest widening, then the fewest steps, then the least distance."""
    inner = np.flatnonzero(~table.is_total)
    low, high = table.integers // base, -(-table.integers // base)
    choices = [np.arange(max(low[i] - furthest, 0), high[i] + furthest + 1) for i in inner]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*choices, indexing="ij")], axis=1)
    steps = np.zeros((len(points), len(table)), dtype=np.int64)
    steps[:, inner] = points
    for _ in range(4):  # from the inner cells up
        for row, total in enumerate(table.totals):
            span = slice(table.equations.indptr[row], table.equations.indptr[row + 1])
            parts = [i for i in table.equations.indices[span] if i != total]
            steps[:, total] = steps[:, parts].sum(axis=1)
    beyond = np.maximum(np.maximum(low - steps, steps - high), 0)
    distance = np.abs(base * steps - table.integers).sum(axis=1)
    best = np.lexsort((distance, beyond.sum(axis=1), beyond.max(axis=1)))[0]
    if beyond[best].max() > furthest:
        return None
    return int(beyond[best].max()), int(beyond[best].sum()), int(distance[best])


def test_the_known_table_without_a_rounding_gets_the_least_widening() -> None:
    table = one_in_every_other()
    zero = least_widening(table, 2, 0)
    assert zero is None or zero[0] > 0  # proven by enumeration: no rounding to the neighbours adds up
    best = least_widening(table, 2, 1)
    release, said = rounded(Problem(table), base=2)
    beyond = check(Problem(table), release, 2)
    assert release.solution is not None
    assert (beyond.max(), beyond.sum(), release.solution.objective) == best
    assert release.solution.status == SolveStatus.OPTIMAL
    assert "No rounding exists" in said[0]
    assert table.describe(int(np.flatnonzero(beyond)[0])) in said[0]


@pytest.mark.parametrize("seed", fresh(12, "small cubes are rounded as near as enumeration finds"))
def test_small_cubes_are_rounded_as_near_as_enumeration_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    base = int(random.choice([2, 3, 5]))
    table = cube(random.integers(0, 2 * base, (2, 2, 2)) * (random.random((2, 2, 2)) < 0.8))
    best = least_widening(table, base, 1)
    release, said = rounded(Problem(table), base=base)
    beyond = check(Problem(table), release, base)
    assert release.solution is not None
    assert (beyond.max(), beyond.sum(), release.solution.objective) == best
    assert release.solution.status == SolveStatus.OPTIMAL
    assert bool(said) == bool(beyond.any())


def test_some_small_cubes_have_no_rounding_at_all() -> None:
    """So that the test above tries both kinds."""
    kinds = set()
    for seed in range(40):
        random = np.random.default_rng(seed)
        table = cube((random.random((2, 2, 2)) < 0.5).astype(int))
        release, _ = rounded(Problem(table), base=2)
        beyond = check(Problem(table), release, 2)
        best = least_widening(table, 2, 1)
        assert best is not None
        assert (beyond.max(), beyond.sum()) == best[:2]
        kinds.add(bool(beyond.any()))
    assert kinds == {True, False}


def brute_force_attacker(table: Table, release: Release) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The least and the greatest of each cell over all tables of whole counts that agree with the windows."""
    inner = np.flatnonzero(~table.is_total)
    spans = [np.arange(int(release.lower[i]), int(release.upper[i]) + 1) for i in inner]
    low, high = np.full(len(table), np.inf), np.full(len(table), -np.inf)
    outer = table.equations.astype(np.int64).toarray()
    for point in product(*spans):
        cells = np.zeros(len(table))
        cells[inner] = point
        for _ in range(2):
            for row, total in enumerate(table.totals):
                cells[total] += outer[row] @ cells
        if ((release.lower <= cells) & (cells <= release.upper)).all():
            low, high = np.minimum(low, cells), np.maximum(high, cells)
    return low, high


@pytest.mark.parametrize("seed", fresh(4, "the audit and an enumerating attacker agree on a rounded table"))
def test_the_audit_and_an_enumerating_attacker_agree_on_a_rounded_table(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = cube(random.integers(0, 8, (2, 2)))
    mask = np.ones(len(table), dtype=np.bool_)
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.ones(len(table))))
    release, _ = rounded(problem, base=3)
    findings = audit(problem, release, integers=True)
    low, high = brute_force_attacker(table, release)
    assert (findings.lower == low[findings.cells]).all()
    assert (findings.upper == high[findings.cells]).all()


def test_linked_tables_are_rounded_together() -> None:
    random = np.random.default_rng(3)
    whole = pl.DataFrame(
        {
            "sex": np.repeat(["m", "f"], 12),
            "age": np.tile(np.repeat(["1", "2", "3"], 4), 2),
            "region": np.tile(["N", "E", "S", "W"], 6),
            "value": random.poisson(4, 24).astype(float),
        }
    )
    tables = [
        Table.from_cells(
            whole.group_by(keys, maintain_order=True).agg(pl.col("value").sum()),
            dimensions=keys,
            missing_totals="compute",
        )
        for keys in (["sex", "age"], ["sex", "region"])
    ]
    table = link(tables)
    release, said = rounded(Problem(table))
    assert not check(Problem(table), release, 5).any()
    assert not said
    alone, _ = rounded(Problem(tables[0]))
    assert alone.solution is not None
    assert release.solution is not None
    assert release.solution.status == SolveStatus.OPTIMAL
    assert release.solution.objective >= alone.solution.objective  # a link can only bind


def test_two_hierarchies_at_once_come_with_a_bound() -> None:
    table = hierarchical(((3, 3, 2), (3, 2, 2)), 3.0, 1)
    release, said = rounded(Problem(table))
    assert not check(Problem(table), release, 5).any()
    assert not said
    assert release.solution is not None
    assert release.solution.gap <= 0.01


def test_a_large_table_is_opened_only_around_what_is_fractional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controlled, "LARGE", 100)
    table = hierarchical(((4, 3, 2), (3, 3, 2)), 2.0, 4)
    release, _ = rounded(Problem(table))
    assert not check(Problem(table), release, 5).any()
    exact, _ = rounded(Problem(table), time_limit_s=20.0)
    assert release.solution is not None
    assert exact.solution is not None
    assert release.solution.bound <= exact.solution.objective <= release.solution.objective
    assert release.solution.gap <= 0.01


def test_a_crowded_table_is_bounded_by_prices_and_improved_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = hierarchical(((3, 2), (3, 2), (2, 2)), 3.0, 5)
    exact, _ = rounded(Problem(table), time_limit_s=1.0)
    monkeypatch.setattr(controlled, "CROWDED", 100)
    release, _ = rounded(Problem(table), time_limit_s=0.5)
    beyond = check(Problem(table), release, 5)
    assert beyond.max() <= 2
    assert release.solution is not None
    assert exact.solution is not None
    assert release.solution.bound <= release.solution.objective
    if not beyond.any():
        assert release.solution.bound <= exact.solution.objective


@pytest.mark.parametrize("name", ["hier13", "two5in6"])
def test_structures_that_are_no_tree_are_rounded(instances: Path, name: str) -> None:
    problem = read_jj(instances / "jj" / f"{name}.jj")
    release, said = rounded(problem, time_limit_s=1.0)
    beyond = check(problem, release, 5)
    assert beyond.any()
    assert "No rounding exists" in said[-1]  # proven: these structures leave too little room


def test_huge_counts_are_rounded_exactly() -> None:
    random = np.random.default_rng(6)
    table = cube(random.integers(10**12, 2 * 10**12, (4, 5)))
    given = np.arange(len(table)) == 2
    for problem in (Problem(table), Problem(table, suppressed=given)):
        release, _ = rounded(problem)
        assert not check(problem, release, 5).any()


def test_a_base_above_all_counts_gives_zeros_and_the_base() -> None:
    table = cube(np.array([[1, 2], [3, 1]]))
    release, _ = rounded(Problem(table), base=100)
    assert set(release.values) <= {0.0, 100.0}
    assert not check(Problem(table), release, 100).any()


def test_tables_without_equations_and_without_cells_are_rounded() -> None:
    one = Table.from_cells(
        pl.DataFrame({"d": ["a"], "value": [7.0]}), dimensions={"d": Hierarchy.flat(["a"], total=None)}
    )
    release, _ = rounded(Problem(one))
    assert release.values.tolist() == [5.0]
    none = Table.from_codes(np.zeros((0, 1), np.int32), np.zeros(0), {"d": Hierarchy.flat(["a", "b"])})
    release, _ = rounded(Problem(none))
    assert len(release.values) == 0


def test_parts_that_share_no_equation_are_each_rounded_to_the_optimum() -> None:
    names = {"t": 9, "a": 4, "b": 5, "u": 6, "c": 2, "d": 4, "alone": 8}
    table = Table.from_equations(["t = a + b", "u = c + d"], {name: float(v) for name, v in names.items()})
    release, _ = rounded(Problem(table))
    assert release.solution is not None
    assert release.solution.status == SolveStatus.OPTIMAL
    assert release.values[list(names).index("alone")] == 10
    assert not check(Problem(table), release, 5).any()


def test_structural_zeros_stay_zero() -> None:
    frame = pl.DataFrame(
        {"r": ["a", "a", "b", "b"], "c": ["x", "y", "x", "y"], "value": [3.0, 0.0, 4.0, 6.0], "zero": [0, 1, 0, 0]}
    )
    table = Table.from_cells(frame, dimensions=["r", "c"], structural_zero="zero", missing_totals="compute")
    release, _ = rounded(Problem(table))
    cell = table.index(r="a", c="y")
    assert (release.values[cell], release.lower[cell], release.upper[cell]) == (0, 0, 0)
    assert not check(Problem(table), release, 5).any()


def test_where_empty_cells_are_left_out_a_published_zero_is_no_true_zero() -> None:
    frame = pl.DataFrame({"r": ["a", "a", "b"], "c": ["x", "y", "x"], "value": [1.0, 6.0, 4.0]})
    table = Table.from_cells(frame, dimensions=["r", "c"], missing_totals="compute")
    release, _ = rounded(Problem(table))
    assert (release.lower >= 1).all()
    assert (release.lower <= table.value).all()


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user presses Ctrl-C during the first integer program."""

    def solve(self: RoundingProgram, budget: object, start: object = None, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RoundingProgram, "solve", solve)


@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_keeps_the_best_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    table = hierarchical(((3, 2), (3, 2), (2, 2)), 3.0, 5)
    with pytest.raises(KeyboardInterrupt):  # nothing was found yet
        Round().protect(Problem(table))
    monkeypatch.setattr(controlled, "CROWDED", 100)  # begins with a rounding that adds up
    release, said = rounded(Problem(table))
    check(Problem(table), release, 5)
    assert any("Interrupted" in text for text in said)


def test_frozen_cells_can_make_rounding_impossible() -> None:
    table = Table.from_equations(["t = a + b", "u = a - b"], {"t": 10, "a": 5, "b": 5, "u": 0})
    with pytest.raises(SolverFailure, match="unfreeze"):
        Round(base=10, time_limit_s=2.0).protect(Problem(table, frozen=np.array([True, False, False, True])))
