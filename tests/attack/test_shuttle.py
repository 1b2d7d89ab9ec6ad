"""The shuttle algorithm: never tighter than the exact interval, equal where margins do not interlock."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from oracle.attacker import naive
from seeds import fresh


def released(values: np.ndarray, *, hidden: float = 1.0, seed: int = 0) -> tuple[ts.Problem, ts.Release]:
    """A flat table with totals, of which inner cells are withheld."""
    codes = [[*map(str, range(1, size + 1)), "Total"] for size in values.shape]
    names = list("abcd")[: values.ndim]
    for axis in range(values.ndim):
        values = np.concatenate([values, values.sum(axis=axis, keepdims=True)], axis=axis)
    rows = list(product(*codes))
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    table = ts.Table.from_cells(pl.DataFrame(columns | {"value": values.ravel().astype(float)}), dimensions=names)
    mask = ~table.is_total & (np.random.default_rng(seed).random(len(table)) <= hidden)
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, 1.0))
    return problem, ts.Release.from_suppression(problem, mask)


def by_hand(problem: ts.Problem, release: ts.Release) -> tuple[np.ndarray, np.ndarray]:
    """The algorithm as the papers have it, equation after equation, in plain Python."""
    table, hidden = problem.table, release.suppressed
    lower = np.where(hidden, 0.0, table.value)
    upper = np.where(hidden, np.inf, table.value)
    matrix = table.equations.toarray()
    for _ in range(200):
        before = lower.copy(), upper.copy()
        for row in matrix:
            for cell in np.flatnonzero(row):
                others = [i for i in np.flatnonzero(row) if i != cell]
                ends = [(row[i] * lower[i], row[i] * upper[i]) for i in others]
                low, high = sum(min(e) for e in ends), sum(max(e) for e in ends)
                found = sorted((-low / row[cell], -high / row[cell]))
                lower[cell], upper[cell] = max(lower[cell], found[0]), min(upper[cell], found[1])
        if (before[0] == lower).all() and (before[1] == upper).all():
            break
    return lower[hidden], upper[hidden]


@pytest.mark.parametrize("seed", fresh(6, "shuttle"))
def test_bounds_are_those_of_the_papers_and_hold_the_exact_interval(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = (3, 3, 2) if seed % 2 else (4, 5)
    problem, release = released(random.integers(0, 30, shape), hidden=0.8, seed=seed)
    frame = ts.Shuttle().bounds(problem, release)
    lower, upper = by_hand(problem, release)
    cells = np.flatnonzero(release.suppressed)
    free = upper > lower
    known = {tuple(row[:-5]): row[-5:] for row in frame.iter_rows()}
    codes = [tuple(column[int(c)] for column in problem.table.code_columns().values()) for c in cells]
    matrix = problem.table.equations.toarray().astype(float)
    low = np.where(release.suppressed, 0.0, problem.table.value)
    high = np.where(release.suppressed, np.inf, problem.table.value)
    for at, (place, cell) in enumerate(zip(codes, cells, strict=True)):
        exact = naive(matrix, np.zeros(len(matrix)), low, high, int(cell))
        assert lower[at] <= exact[0] + 1e-6
        assert exact[1] <= upper[at] + 1e-6
        if free[at]:
            assert known[place][:2] == (lower[at], upper[at])
            assert known[place][2:4] == pytest.approx(exact, abs=1e-6)


def test_a_full_rectangle_has_no_gap() -> None:
    """There the exact ends are those of Fréchet, and sums reach them."""
    problem, release = released(np.array([[5, 1], [2, 9]]))
    assert ts.Shuttle().bounds(problem, release)["gap"].to_list() == [0.0] * 4


def test_where_margins_interlock_there_is_a_gap(dandekar: ts.Problem) -> None:
    """Dandekar's pattern of 44 complements: the sums of three dimensions together say more than one after another."""
    frame = pl.read_csv("tests/papers/data/dandekar_10x6x4/cells.csv")
    problem = dandekar.replace(frozen=dandekar.table.value == 0)
    release = ts.Release.from_suppression(problem, frame["suppression_44"].is_not_null().to_numpy())
    gap = ts.Shuttle().bounds(problem, release)["gap"]
    assert gap.min() == 0
    assert (gap == 0).sum() < 20
    assert 0.4 < gap.mean() < 0.5


def test_it_is_an_attack_like_the_others() -> None:
    problem, release = released(np.array([[5, 1, 7], [2, 9, 3]]))
    estimate = ts.attack(problem, release, ts.Shuttle())
    assert "intervals are exact" in estimate.note
    assert np.isfinite(estimate.values).all()
