"""Rounding: what the options mean, what the public may conclude, what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from oracle.counts import cube, one_in_every_other
from tablesafe.core.errors import InvalidOption, InvalidProblem, InvalidTable, SolverFailure
from tablesafe.core.problem import Problem
from tablesafe.core.release import Status
from tablesafe.core.table import Table
from tablesafe.methods import METHODS
from tablesafe.methods.round import Round
from tablesafe.solve.program import SolveStatus


def test_a_table_without_zero_restricted_rounding_is_recognised_and_widened_least() -> None:
    table = one_in_every_other()
    with pytest.warns(UserWarning, match="neighbours") as said:
        release = Round(base=2).protect(Problem(table))
    assert not (table.equations.astype(np.int64) @ release.values.astype(np.int64)).any()
    wide = np.flatnonzero(release.upper - release.values > 1)
    assert len(wide) == 1  # none is impossible, so one is the least
    assert table.describe(int(wide[0])) in str(said[0].message)
    assert release.upper[wide[0]] - release.values[wide[0]] == 3
    assert release.solution is not None
    assert release.solution.status == SolveStatus.OPTIMAL


def test_frozen_cells_stay_and_are_known() -> None:
    table = cube(np.array([[3, 4, 0], [6, 7, 0]]))
    zero = table.value == 0
    release = Round().protect(Problem(table, frozen=zero))
    assert (release.values[zero] == 0).all()
    assert (release.upper[zero] == 0).all()
    assert (release.upper[~zero] > release.lower[~zero]).all()
    with pytest.raises(InvalidProblem, match="no multiple of 5"):
        Round().protect(Problem(table, frozen=table.value == 3))
    kept = Round(method="conventional").protect(Problem(table, frozen=table.value == 3))
    assert kept.values[table.value == 3].tolist() == [3]


def test_cells_withheld_by_design_are_not_rounded_and_need_not_be_whole_steps() -> None:
    table = cube(np.array([[1, 1, 1], [1, 1, 1], [1, 1, 1]]))
    withheld = ~table.is_total
    release = Round().protect(Problem(table, withheld=withheld))
    assert np.isnan(release.values[withheld]).all()
    assert (release.status[withheld] == Status.BY_DESIGN).all()
    assert np.isinf(release.upper[withheld]).all()
    margins, total = release.values[table.is_total & (table.value == 3)], release.values[table.value == 9]
    assert margins.sum() == 2 * total[0]
    assert set(margins) <= {0.0, 5.0}


def test_a_cell_withheld_before_stays_withheld() -> None:
    table = cube(np.array([[3, 4], [6, 7]]))
    given = np.arange(len(table)) == 0
    release = Round().protect(Problem(table, suppressed=given))
    assert release.suppressed.tolist() == given.tolist()
    assert release.status[0] == Status.GIVEN


def test_a_table_of_multiples_stays_as_it_is() -> None:
    table = cube(np.array([[5, 10], [0, 25]]))
    release = Round().protect(Problem(table))
    assert (release.values == table.value).all()
    assert release.solution is not None
    assert (release.solution.status, release.solution.objective) == (SolveStatus.OPTIMAL, 0)


def test_status_tells_changed_from_published() -> None:
    table = cube(np.array([[5, 4], [6, 10]]))
    release = Round().protect(Problem(table))
    assert ((release.status == Status.CHANGED) == (release.values != table.value)).all()


@pytest.mark.parametrize("base", [2, 3, 4, 5, 10])
def test_the_window_of_conventional_rounding_is_what_rounds_to_the_value(base: int) -> None:
    counts = np.arange(0, 6 * base)
    table = Table.from_equations(
        ["t = " + " + ".join(f"c{i}" for i in counts)],
        {f"c{i}": float(i) for i in counts} | {"t": float(counts.sum())},
    )
    release = Round(base=base, method="conventional").protect(Problem(table))
    values, low, high = (array[:-1] for array in (release.values, release.lower, release.upper))
    for value in np.unique(values)[:-1]:  # the largest could come from counts beyond those tried
        same = counts[values == value]
        assert (low[values == value] == same.min()).all()
        assert (high[values == value] == same.max()).all()


def test_random_rounding_is_unbiased_and_repeats_with_its_seed() -> None:
    table = cube(np.arange(20).reshape(4, 5))
    problem = Problem(table)
    draws = np.array([Round(method="random", seed=seed).protect(problem).values for seed in range(600)])
    above = table.integers % 5
    error = np.sqrt(above * (5 - above) / len(draws))
    assert (np.abs(draws.mean(axis=0) - table.value) <= 4.5 * error).all()
    again = Round(method="random", seed=3).protect(problem)
    assert (again.values == draws[3]).all()
    assert len(np.unique(draws, axis=0)) > 500


def test_additive_random_rounding_sums_the_inner_cells_and_their_windows() -> None:
    table = cube(np.array([[1, 2], [3, 4]]))
    release = Round(method="random", additive=True, seed=1).protect(Problem(table))
    assert not (table.equations @ release.values).any()
    total = table.index()
    assert release.upper[total] - release.values[total] == 4 * 4
    with pytest.raises(InvalidProblem, match="additive=False"):
        Round(method="random", additive=True).protect(Problem(table, frozen=np.arange(len(table)) == total))


def test_an_answer_comes_in_any_time() -> None:
    random = np.random.default_rng(5)
    table = cube(random.poisson(4, (8, 8, 8)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some cells went beyond their neighbours
        release = Round(time_limit_s=0.001).protect(Problem(table))
    assert not (table.equations.astype(np.int64) @ release.values.astype(np.int64)).any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    assert release.solution is not None
    assert release.solution.bound <= release.solution.objective


def test_frozen_cells_can_make_rounding_impossible() -> None:
    """With a = b and a + b = 10 both frozen, neither 0 nor 10 nor 20 will do for a."""
    table = Table.from_equations(["t = a + b", "u = a - b"], {"t": 10, "a": 5, "b": 5, "u": 0})
    with pytest.raises(SolverFailure, match="unfreeze"):
        Round(base=10).protect(Problem(table, frozen=np.array([True, False, False, True])))


@pytest.mark.parametrize("base", [1, 0, -5, 2.5, True, "5"])
def test_a_base_must_be_whole_and_at_least_two(base: Any) -> None:
    with pytest.raises(InvalidOption, match="2 or more"):
        Round(base=base)


@pytest.mark.parametrize(
    "options", [{"method": "nearest"}, {"distance": "euclidean"}, {"time_limit_s": 0.0}, {"time_limit_s": float("nan")}]
)
def test_options_outside_their_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=r"Round\."):
        Round(**options)


def test_negative_counts_and_fractions_are_refused_by_name() -> None:
    negative = Table.from_equations(["t = a + b"], {"t": 1, "a": 3, "b": -2})
    with pytest.raises(InvalidTable, match="'b' is negative"):
        Round().protect(Problem(negative))
    fraction = Table.from_equations(["t = a + b"], {"t": 4, "a": 1.5, "b": 2.5})
    with pytest.raises(InvalidTable, match="'a' is not a whole number"):
        Round().protect(Problem(fraction))


def test_amounts_are_rounded_in_their_smallest_unit() -> None:
    """A base of 5 is 5 whole units, whatever the decimals; the window says so."""
    value = {"t": 40.9, "a": 11.4, "b": 17.2, "c": 12.3}
    problem = Problem(Table.from_equations(["t = a + b + c"], value))
    release = Round(amounts=True).protect(problem)
    assert (release.values % 5 == 0).all()
    assert np.abs(problem.table.equations @ release.values).max() == 0
    assert (np.abs(release.values - problem.table.value) < 5).all()
    assert ((release.lower <= problem.table.value) & (problem.table.value <= release.upper)).all()
    whole = Problem(Table.from_equations(["t = a + b"], {"t": 9, "a": 3, "b": 6}))
    assert (Round(amounts=True).protect(whole).values == Round().protect(whole).values).all()


@pytest.mark.parametrize("options", [{"method": "random"}, {"unbiased": True}])
def test_amounts_are_not_rounded_by_chance(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=r"Round\.amounts is for controlled rounding"):
        Round(amounts=True, **options)


def test_the_method_is_known_by_its_name() -> None:
    assert METHODS["round"] is Round
