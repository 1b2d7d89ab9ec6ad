"""Unbiased controlled rounding: every draw adds up, and the expected value of every cell is its count."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from oracle.counts import cube, hierarchical
from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.methods.round import Round

DRAWS = 400


def adds_up(problem: Problem, release: Release, base: int) -> Mask:
    """Check that what is shown adds up in multiples; which cells went beyond their neighbours."""
    table, shown = problem.table, ~release.suppressed
    values = np.where(shown, release.values, 0).astype(np.int64)
    assert (values % base == 0).all()
    rows = np.asarray(abs(table.equations).astype(np.int64) @ (~shown).astype(np.int64)) == 0
    assert not (table.equations.astype(np.int64) @ values)[rows].any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    same = table.integers % base == 0
    return shown & ((np.abs(values - table.integers) >= base) | (same & (values != table.integers)))


def draws(table: Table, base: int) -> Integers:
    """Many draws, each checked."""
    problem = Problem(table)
    found = []
    for seed in range(DRAWS):
        release = Round(base=base, unbiased=True, seed=seed).protect(problem)
        assert not adds_up(problem, release, base).any()
        found.append(release.values)
    return np.array(found).astype(np.int64)


@pytest.mark.parametrize(("shape", "base"), [((3, 4), 5), ((2, 6), 3)])
def test_the_mean_of_many_draws_is_the_count(shape: tuple[int, int], base: int) -> None:
    table = cube(np.random.default_rng(2).integers(0, 3 * base, shape))
    values = draws(table, base)
    above = table.integers % base
    error = np.sqrt(above * (base - above) / DRAWS)
    assert (np.abs(values.mean(axis=0) - table.value) <= 4.5 * error).all()
    assert len(np.unique(values, axis=0)) > 5


def test_one_hierarchy_beside_a_flat_dimension_is_unbiased_too() -> None:
    table = hierarchical(((2, 2), (3,)), 3.0, 1)
    values = draws(table, 5)
    above = table.integers % 5
    error = np.sqrt(above * (5 - above) / DRAWS)
    assert (np.abs(values.mean(axis=0) - table.value) <= 4.5 * error).all()


def test_both_roundings_of_a_two_by_two_table_come_with_the_exact_chances() -> None:
    """1 and 1, 1 and 1 to base 2: either diagonal goes up; each must do so half of the time."""
    table = cube(np.ones((2, 2)))
    values = draws(table, 2)
    cell = table.index(d0="1", d1="1")
    assert set(values[:, cell]) == {0, 2}
    assert len(np.unique(values, axis=0)) == 2
    assert abs((values[:, cell] == 2).mean() - 0.5) <= 4.5 * 0.5 / np.sqrt(DRAWS)


def test_the_posterior_of_a_rounded_count_follows_from_its_chances() -> None:
    table = cube(np.random.default_rng(1).integers(0, 20, (3, 3)))
    release = Round(base=3, unbiased=True).protect(Problem(table))
    assert release.mechanism is not None
    single = Round(base=3, method="random").protect(Problem(table))
    assert single.mechanism is not None
    assert (release.mechanism.which == single.mechanism.which).all()


def test_equal_seed_equal_release() -> None:
    problem = Problem(cube(np.random.default_rng(1).integers(0, 20, (4, 4))))
    one, other = (Round(unbiased=True, seed=7).protect(problem) for _ in range(2))
    assert (one.values == other.values).all()


def test_what_chance_cannot_finish_is_said() -> None:
    inner = np.zeros((2, 2, 2))
    inner[[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]] = 1  # no rounding to the neighbours adds up
    problem = Problem(cube(inner))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = Round(base=2, unbiased=True, time_limit_s=2.0).protect(problem)
    said = [str(warning.message) for warning in caught]
    assert adds_up(problem, release, 2).any()
    assert any("expected values" in text for text in said)
    assert any("went further" in text for text in said)


def test_cells_withheld_stay_withheld_and_the_others_add_up() -> None:
    table = cube(np.random.default_rng(4).integers(0, 20, (3, 4)))
    problem = Problem(table, suppressed=np.arange(len(table)) < 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = Round(unbiased=True, seed=3).protect(problem)
    assert np.isnan(release.values[:2]).all()
    assert not adds_up(problem, release, 5).any()


def test_only_controlled_rounding_takes_the_option() -> None:
    with pytest.raises(InvalidOption, match="unbiased"):
        Round(method="random", unbiased=True)
