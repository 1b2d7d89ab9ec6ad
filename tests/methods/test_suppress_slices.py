"""Slices and vertical sums (Working Paper 22), their known weakness, and the clean-up of a given pattern."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from oracle.attacker import naive
from seeds import fresh
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table

OPEN = 2
"""A seed whose table the slices do not protect."""


def table_of(values: np.ndarray) -> Table:
    codes = [[*map(str, range(1, size + 1)), "Total"] for size in values.shape]
    names = list("abcd")[: values.ndim]
    for axis in range(values.ndim):
        values = np.concatenate([values, values.sum(axis=axis, keepdims=True)], axis=axis)
    rows = list(product(*codes))
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return Table.from_cells(pl.DataFrame(columns | {"value": values.ravel().astype(float)}), dimensions=names)


def problem_of(seed: int) -> Problem:
    """A small sparse table of three dimensions, about one inner cell in seven sensitive."""
    random = np.random.default_rng(seed)
    shape = (3, 4, 3)
    table = table_of(random.integers(1, 60, shape) * (random.random(shape) < 0.75))
    mask = ~table.is_total & (table.value > 0) & (random.random(len(table)) < 0.15)
    mask[np.argmax(np.where(table.is_total, 0, table.value))] |= not mask.any()
    return Problem(table, sensitivity=ts.Sensitivity.of(mask, np.where(mask, np.ceil(table.value * 0.3), 0)))


def interval(problem: Problem, pattern: np.ndarray, cell: int, rows: np.ndarray) -> tuple[float, float]:
    """What can be derived of a cell from some of the equations, by linear programs from scratch."""
    value = problem.table.value
    matrix = problem.table.equations.toarray().astype(float)[rows]
    lower, upper = np.where(pattern, 0.0, value), np.where(pattern, np.inf, value)
    return naive(matrix, np.zeros(len(matrix)), lower, upper, cell)


def protected(problem: Problem, pattern: np.ndarray, cell: int, rows: np.ndarray) -> bool:
    low, high = interval(problem, pattern, cell, rows)
    value, s = problem.table.value[cell], problem.sensitivity
    return low <= value - s.lower[cell] + 1e-6 and high >= value + s.upper[cell] - 1e-6


@pytest.mark.parametrize("seed", [OPEN, *fresh(4, "slices")])
def test_each_slice_and_each_vertical_sum_protects_by_itself(seed: int) -> None:
    """What the algorithm promises, looked at with other means; cells that nothing in their slice can hide excepted."""
    problem = problem_of(seed)
    table = problem.table
    pattern = ts.experiments.slices(problem).suppressed
    assert pattern[problem.sensitivity.mask].all()
    assert not pattern[(table.value == 0)].any()
    everything = (table.value > 0) | problem.sensitivity.mask
    entries = table.equations.tocsr()
    varies = np.array([
        [len(np.unique(table.codes[entries.indices[a:b], d])) > 1 for d in range(3)]
        for a, b in zip(entries.indptr[:-1], entries.indptr[1:], strict=True)
    ])  # fmt: skip
    upright = next(d for d in range(3) if len(list(table.dimensions.values())[d].codes) == 4)
    for cell in problem.sensitive:
        for rows in (np.flatnonzero(~varies[:, upright]), np.flatnonzero(varies[:, upright])):
            own = np.array([r for r in rows if upright < 0 or _touches(table, entries, r, cell, upright, varies)])
            if protected(problem, everything, int(cell), own):
                assert protected(problem, pattern, int(cell), own)


def _touches(table: Table, entries: object, row: int, cell: int, upright: int, varies: np.ndarray) -> bool:
    """Whether an equation belongs to the slice of a cell, or to the vertical sums through it."""
    cells = entries.indices[entries.indptr[row] : entries.indptr[row + 1]]  # type: ignore[attr-defined]
    if varies[row, upright]:
        return cell in cells
    return bool((table.codes[cells, upright] == table.codes[cell, upright]).all())


def test_the_whole_may_be_open_though_every_part_is_not() -> None:
    """The known weakness, by the audit and by an attacker of its own; the method warns, and closes it."""
    problem = problem_of(OPEN)
    release = ts.experiments.slices(problem)
    findings = ts.audit(problem, release, insiders=False, unions=False)
    every = np.arange(problem.table.equations.shape[0])
    bare = [int(c) for c in problem.sensitive if not protected(problem, release.suppressed, int(c), every)]
    assert bare
    assert sorted({opening.cell for opening in findings.open}) == bare
    with pytest.warns(UserWarning, match="the audit of the whole finds 1 sensitive cell open"):
        repaired = ts.Suppress(algorithm="slices").protect(problem)
    assert ts.audit(problem, repaired).safe
    assert all(protected(problem, repaired.suppressed, int(c), every) for c in problem.sensitive)


@pytest.mark.parametrize("seed", fresh(3, "slices made safe"))
def test_the_method_is_safe_on_any_table(seed: int) -> None:
    problem = problem_of(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = ts.Suppress(algorithm="slices").protect(problem)
    assert ts.audit(problem, release).safe


def test_only_three_dimensions_have_slices() -> None:
    table = table_of(np.arange(1, 13).reshape(3, 4))
    problem = Problem(table, sensitivity=ts.Sensitivity.of(np.arange(len(table)) == 0, 1.0))
    with pytest.raises(InvalidOption, match="three dimensions; this one has 2"):
        ts.Suppress(algorithm="slices").protect(problem)
    tree = ts.Hierarchy.from_pairs([("T", "A"), ("T", "B"), ("A", "a1"), ("A", "a2"), ("B", "b1"), ("B", "b2")])
    leaves = ["a1", "a2", "b1", "b2"]
    records = pl.DataFrame([(x, y, z, 5) for x in leaves for y in leaves for z in leaves], orient="row",
                           schema=["x", "y", "z", "v"])  # fmt: skip
    deep = ts.tabulate(records, dimensions={"x": tree, "y": tree, "z": tree}, value="v")
    problem = Problem(deep, sensitivity=ts.Sensitivity.of(np.arange(len(deep)) == len(deep) - 1, 1.0))
    with pytest.raises(InvalidOption, match="no slice of this table is a network"):
        ts.Suppress(algorithm="slices").protect(problem)


# -- the clean-up of a pattern that somebody made


@pytest.mark.parametrize("column", ["suppression_44", "suppression_39"])
def test_a_printed_pattern_is_made_safe_and_every_cell_of_it_is_needed(dandekar: Problem, column: str) -> None:
    """Dandekar's patterns leave cells open and withhold some in vain."""
    given = pl.read_csv("tests/papers/data/dandekar_10x6x4/cells.csv")[column].is_not_null().to_numpy()
    release = ts.Suppress(keep=given, clean_up=True, cost="unit").protect(dandekar)
    assert ts.audit(dandekar, release).safe
    added = release.suppressed & ~given
    assert added.sum() <= 2, "what closes the open cells"
    assert release.suppressed.sum() < given.sum()
    for cell in np.flatnonzero(release.suppressed & ~dandekar.sensitivity.mask):
        fewer = release.suppressed.copy()
        fewer[cell] = False
        assert not ts.audit(dandekar, ts.Release.from_suppression(dandekar, fewer), certify=False).safe


def test_what_the_office_withholds_itself_stays() -> None:
    table = table_of(np.array([[20, 30, 40], [50, 60, 70], [80, 90, 100]]))
    mask, chosen = np.arange(len(table)) == 0, np.zeros(len(table), dtype=np.bool_)
    chosen[table.index(a="3", b="3")] = True
    problem = Problem(table, sensitivity=ts.Sensitivity.of(mask, 5.0), suppressed=chosen)
    everything = np.ones(len(table), dtype=np.bool_)
    release = ts.Suppress(keep=everything, clean_up=True).protect(problem)
    assert ts.audit(problem, release).safe
    assert release.suppressed[chosen].all()
    assert release.suppressed.sum() < len(table) / 2
    assert ts.Suppress(keep=everything).protect(problem).suppressed.all(), "without clean_up all of it stays"


def test_nothing_to_clean_up_is_an_error() -> None:
    with pytest.raises(InvalidOption, match="clean_up needs a pattern"):
        ts.Suppress(clean_up=True)
    table = table_of(np.array([[20, 30], [50, 60]]))
    frozen = np.arange(len(table)) == 3
    problem = Problem(table, sensitivity=ts.Sensitivity.of(np.arange(len(table)) == 0, 5.0), frozen=frozen)
    with pytest.raises(InvalidProblem, match="frozen"):
        ts.Suppress(keep=frozen, clean_up=True).protect(problem)


def test_a_pattern_that_cannot_be_made_safe_says_which_cells_are_in_the_way() -> None:
    """Its row must be published but for the sensitive cell: nothing hides that, whatever else is withheld."""
    table = table_of(np.array([[20, 30], [50, 60]]))
    secret = np.arange(len(table)) == table.index(a="1", b="1")
    frozen = np.zeros(len(table), dtype=np.bool_)
    frozen[[table.index(a="1", b="2"), table.index(a="1", b="Total")]] = True
    problem = Problem(table, sensitivity=ts.Sensitivity.of(secret, 5.0), frozen=frozen)
    for keep in (secret, ~frozen):
        with pytest.raises(InvalidProblem, match=r"\(a=1, b=1\) cannot be protected(.|\n)*a=1, b="):
            ts.Suppress(keep=keep, clean_up=True).protect(problem)
    release = ts.Suppress(keep=secret, clean_up=True, unprotectable="withhold totals").protect(problem)
    assert ts.audit(problem.replace(frozen=np.zeros(len(table), dtype=np.bool_)), release).safe
