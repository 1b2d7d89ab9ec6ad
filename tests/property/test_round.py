"""Rounded tables add up, stay in their windows, keep multiples; in two dimensions nothing is nearer."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.counts import hierarchy
from tablesafe.audit.system import System
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.methods.round import Round
from tablesafe.solve.program import SolveStatus

DISTANCES = ("absolute", "squared", "relative")


def tabulated(hierarchies: list[Hierarchy], random: np.random.Generator, mean: float) -> Table:
    """A table of random counts with every total; zeros stay in."""
    rows = list(product(*(h.leaves for h in hierarchies)))
    names = [f"d{i}" for i in range(len(hierarchies))]
    frame = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return Table.from_cells(
        pl.DataFrame(frame | {"value": random.poisson(mean, len(rows)).astype(float)}),
        dimensions=dict(zip(names, hierarchies, strict=True)),
        missing_totals="compute",
    )


@st.composite
def tables(draw: st.DrawFn, dimensions: tuple[int, int], trees: int) -> Table:
    """A table with so many dimensions, of which up to `trees` have a hierarchy."""
    count = draw(st.integers(*dimensions))
    groups = [
        draw(st.lists(st.integers(1, 3 if d < trees else 1), min_size=2, max_size=4 if count < 4 else 2))
        for d in range(count)
    ]
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    return tabulated([hierarchy(g) for g in groups], random, draw(st.sampled_from([0.5, 3.0, 40.0])))


def rounded(table: Table, **options: Any) -> tuple[Release, list[str]]:
    """The release, and what was said about it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        release = Round(**options).protect(Problem(table))
    return release, [str(warning.message) for warning in said]


def check(table: Table, release: Release, base: int) -> np.ndarray[Any, Any]:
    """What holds for every controlled rounding; returns how many steps each cell went beyond its neighbours."""
    values = release.values.astype(np.int64)
    assert (values == release.values).all()
    assert (values % base == 0).all()
    assert (values >= 0).all()
    assert not (table.equations.astype(np.int64) @ values).any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    System.of(Problem(table), release)  # the audit accepts what the release says
    off, above = values - table.integers, table.integers % base
    steps = np.maximum(off + above - base * (above > 0), -above - off) // base
    beyond: np.ndarray[Any, Any] = np.maximum(steps, 0)
    assert (release.upper - values == (beyond + 1) * base - 1).all()
    assert (release.lower == np.maximum(values - (beyond + 1) * base + 1, 0)).all()
    within = beyond == 0
    assert (np.abs(off[within]) < base).all()
    assert (off[within & (above == 0)] == 0).all()
    return beyond


@given(tables((2, 4), trees=4), st.sampled_from([2, 3, 5, 10]), st.sampled_from(DISTANCES))
@settings(max_examples=10)
def test_a_rounded_table_adds_up_and_stays_in_its_windows(table: Table, base: int, distance: str) -> None:
    release, said = rounded(table, base=base, distance=distance, time_limit_s=0.4)
    beyond = check(table, release, base)
    assert bool(said) == bool(beyond.any())
    assert release.solution is not None
    assert release.solution.bound <= release.solution.objective + 1e-9


@given(tables((2, 2), trees=1), st.sampled_from([2, 3, 5]), st.sampled_from(DISTANCES))
@settings(max_examples=50)
def test_two_dimensions_with_one_hierarchy_are_always_solved_to_the_optimum(
    table: Table, base: int, distance: str
) -> None:
    release, said = rounded(table, base=base, distance=distance)
    assert not check(table, release, base).any()
    assert not said
    assert release.solution is not None
    assert release.solution.status == SolveStatus.OPTIMAL


def brute_force(table: Table, base: int, distance: str) -> float:
    """The least distance over every choice of neighbours that adds up."""
    floor, above = table.integers - table.integers % base, table.integers % base
    open_cells = np.flatnonzero(above)
    choices = (np.arange(2 ** len(open_cells))[:, None] >> np.arange(len(open_cells))) & 1
    values = np.repeat(floor[None], len(choices), axis=0)
    values[:, open_cells] += base * choices
    values = values[~(values @ table.equations.astype(np.int64).toarray().T).any(axis=1)]
    off = np.abs(values - table.integers).astype(float)
    if distance == "squared":
        off = off**2
    if distance == "relative":
        off = off / np.maximum(table.integers, 1)
    return float(off.sum(axis=1).min())


@given(st.integers(0, 10**6), st.sampled_from([(2, 2), (2, 3), (3, 3)]), st.sampled_from([2, 3, 5]))
@settings(max_examples=25)
@pytest.mark.parametrize("distance", DISTANCES)
def test_no_rounding_of_a_small_table_is_nearer(distance: str, seed: int, shape: tuple[int, int], base: int) -> None:
    table = tabulated([hierarchy([1] * size) for size in shape], np.random.default_rng(seed), 4.0)
    release, _ = rounded(table, base=base, distance=distance)
    assert release.solution is not None
    assert release.solution.objective == pytest.approx(brute_force(table, base, distance))
    assert release.solution.gap == 0


@given(tables((2, 3), trees=3), st.sampled_from([2, 3, 5, 10]), st.sampled_from(["random", "conventional"]))
@settings(max_examples=40)
@pytest.mark.parametrize("additive", [False, True])
def test_single_rounding_tells_the_truth_about_itself(additive: bool, table: Table, base: int, method: str) -> None:
    release, _ = rounded(table, base=base, method=method, additive=additive)
    values = release.values.astype(np.int64)
    assert (values % base == 0).all()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    alone = ~table.is_total if additive else np.ones(len(table), dtype=np.bool_)
    assert (np.abs(values - table.integers)[alone] < base).all()
    assert (values == table.integers)[alone & (table.integers % base == 0)].all()
    if additive:
        assert not (table.equations.astype(np.int64) @ values).any()
