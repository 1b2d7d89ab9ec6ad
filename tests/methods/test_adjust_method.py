"""Controlled tabular adjustment: its options, its messages, and what its release says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from tablesafe.audit.audit import audit
from tablesafe.audit.system import System
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.release import Status
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods import METHODS, protect
from tablesafe.methods.adjust import Adjust
from tablesafe.methods.adjust.aims import Keep
from tablesafe.methods.adjust.costs import cost_of
from tablesafe.methods.adjust.directions import alternating
from tablesafe.methods.adjust.instance import Allowance, Instance
from tablesafe.methods.adjust.publish import guessed

VALUES = {
    ("A", "x"): 20, ("A", "y"): 50, ("A", "z"): 10, ("B", "x"): 8, ("B", "y"): 19, ("B", "z"): 22,
    ("C", "x"): 17, ("C", "y"): 32, ("C", "z"): 12,
}  # fmt: skip


def table_of(values: Mapping[tuple[str, str], float]) -> Table:
    """A two-way table with its totals."""
    rows = {"row": [r for r, _ in values], "column": [c for _, c in values], "value": list(values.values())}
    extra = {"weight": [1.0 + i for i in range(len(values))]}
    return Table.from_cells(
        pl.DataFrame(rows | extra), dimensions=["row", "column"], missing_totals="compute", columns=["weight"]
    )


def problem_of(table: Table, levels: Mapping[tuple[str, str], float], **options: Any) -> Problem:
    """Sensitive cells by their codes, with their levels."""
    mask, level = np.zeros(len(table), np.bool_), np.zeros(len(table))
    for (row, column), amount in levels.items():
        cell = table.index(row=row, column=column)
        mask[cell], level[cell] = True, amount
    return Problem(table, sensitivity=Sensitivity.of(mask, level), **options)


@pytest.fixture
def problem() -> Problem:
    return problem_of(table_of(VALUES), {("B", "z"): 5, ("C", "x"): 3})


def test_one_sensitive_cell_moves_a_cycle() -> None:
    """In a two-way table the least change of one inner cell is a cycle of four cells, or a path to the totals."""
    problem = problem_of(table_of(VALUES), {("B", "z"): 5}, lower=0.0)
    release = Adjust(cost="constant", fixed="totals").protect(problem)
    moved = np.abs(release.values - problem.table.value)
    assert sorted(moved[moved > 0]) == [5, 5, 5, 5]
    assert release.solution is not None
    assert release.solution.objective == pytest.approx(20)
    assert release.solution.status == "optimal"


@pytest.mark.parametrize("directions", ["optimal", "search", "blocks", "alternating", "random", "up", "down"])
def test_all_directions_give_a_release_and_none_beats_the_optimum(problem: Problem, directions: Any) -> None:
    release = protect(problem, Adjust(directions=directions, tries=5))
    best = protect(problem, Adjust(directions="optimal"))
    assert release.solution is not None
    assert best.solution is not None
    assert best.solution.status == "optimal"
    assert release.solution.objective >= best.solution.objective * (1 - 1e-9)
    assert release.solution.bound <= best.solution.objective * (1 + 1e-9)
    moved = release.values - problem.table.value
    if directions in {"up", "down"}:
        assert (moved[problem.sensitive] * (1 if directions == "up" else -1) > 0).all()


def test_alternating_goes_by_value_and_takes_margins_along() -> None:
    """Ascending: 8 up, 10 down, 12 up, 17 down; the row total of B has one sensitive part, and goes its way."""
    levels = {("B", "x"): 1, ("A", "z"): 1, ("C", "z"): 2, ("C", "x"): 1, ("B", "Total"): 1, ("C", "Total"): 1}
    problem = problem_of(table_of(VALUES), levels)
    instance = Instance.of(problem, cost_of(problem, "value"), Allowance())
    way = dict(zip(instance.cells[instance.targets].tolist(), alternating(problem, instance).tolist(), strict=True))
    expected = {("B", "x"): 1, ("A", "z"): -1, ("C", "z"): 1, ("C", "x"): -1, ("B", "Total"): 1, ("C", "Total"): 1}
    assert {key: way[problem.table.index(row=key[0], column=key[1])] for key in levels} == expected


def test_infeasible_directions_are_repaired() -> None:
    """Two cells of a row whose total and other cell are frozen cannot both rise: one is turned round."""
    table = table_of(VALUES)
    frozen = np.zeros(len(table), np.bool_)
    frozen[[table.index(row="B", column="x"), table.index(row="B", column="Total")]] = True
    problem = problem_of(table, {("B", "y"): 3, ("B", "z"): 3}, frozen=frozen)
    release = Adjust(directions="up").protect(problem)
    moved = release.values - table.value
    y, z = table.index(row="B", column="y"), table.index(row="B", column="z")
    assert moved[y] == -moved[z] != 0
    assert not moved[frozen].any()


def test_fixed_totals_keep_their_value(problem: Problem) -> None:
    table = problem.table
    moved = Adjust(fixed="totals").protect(problem).values - table.value
    assert not moved[table.is_total].any()
    top = table.index(row="Total", column="Total")
    moved = Adjust(fixed="top", cost="log_over_value", directions="up").protect(problem).values - table.value
    assert moved[top] == 0
    assert moved[table.is_total].any()


def test_what_the_release_says_about_each_cell() -> None:
    table = table_of({**VALUES, ("A", "x"): 0})
    frozen = np.zeros(len(table), np.bool_)
    frozen[table.index(row="A", column="y")] = True
    problem = problem_of(table, {("B", "z"): 5}, frozen=frozen, upper=1000.0)
    release = Adjust().protect(problem)
    known = release.lower == release.upper
    assert set(np.flatnonzero(known)) == {table.index(row="A", column="y"), table.index(row="A", column="x")}
    assert (release.values[known] == table.value[known]).all()
    assert (release.lower[~known] == 0).all()
    assert (release.upper[~known] == 1000).all()
    narrow = Adjust(announce_percent=50).protect(problem)
    free = ~known
    np.testing.assert_allclose(narrow.lower[free], narrow.values[free] * 0.5)
    np.testing.assert_allclose(narrow.upper[free], narrow.values[free] * 1.5)
    System.of(problem, narrow)


def test_cells_withheld_stay_withheld_and_may_move(problem: Problem) -> None:
    table = problem.table
    withheld, suppressed = np.zeros(len(table), np.bool_), np.zeros(len(table), np.bool_)
    withheld[table.index(row="A", column="x")] = True
    suppressed[table.index(row="A", column="y")] = True
    release = Adjust().protect(problem.replace(withheld=withheld, suppressed=suppressed))
    assert np.isnan(release.values[withheld | suppressed]).all()
    assert not np.isnan(release.values[~(withheld | suppressed)]).any()
    assert (release.status[withheld] == Status.BY_DESIGN).all()
    assert (release.status[suppressed] == Status.GIVEN).all()
    assert release.frame().height == len(table) - 1


def test_a_sensitive_cell_without_levels_still_moves() -> None:
    problem = problem_of(table_of(VALUES), {("B", "z"): 0})
    release = Adjust().protect(problem)
    cell = problem.sensitive[0]
    assert release.values[cell] != problem.table.value[cell]


def test_a_sliding_level_is_asked_for_on_either_side() -> None:
    table = table_of(VALUES)
    mask = np.zeros(len(table), np.bool_)
    cell = table.index(row="B", column="z")
    mask[cell] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0, 1.0, 9.0))
    assert abs(Adjust().protect(problem).values[cell] - table.value[cell]) >= 8


def test_nothing_sensitive_nothing_changed() -> None:
    table = table_of(VALUES)
    release = Adjust().protect(Problem(table))
    np.testing.assert_array_equal(release.values, table.value)
    assert release.solution is not None
    assert release.solution.status == "optimal"
    assert release.solution.objective == 0


def test_a_table_without_equations() -> None:
    table = Table.from_equations(sparse.csr_array((0, 2)), np.array([5.0, 7.5]))
    problem = Problem(table, sensitivity=Sensitivity.of(np.array([True, False]), 1.25))
    release = Adjust().protect(problem)
    assert abs(release.values[0] - 5.0) == pytest.approx(1.3)
    assert release.values[1] == 7.5
    exact = Adjust(decimals=2).protect(problem)
    assert abs(exact.values[0] - 5.0) == pytest.approx(1.25)


def test_decimals_stay_decimals() -> None:
    table = table_of({key: value / 10 for key, value in VALUES.items()})
    problem = problem_of(table, {("B", "z"): 0.33, ("C", "x"): 0.27})
    release = Adjust().protect(problem)
    units = np.rint(release.values * 10)
    np.testing.assert_allclose(units, release.values * 10, atol=1e-9)
    assert not (table.equations.astype(np.int64) @ units.astype(np.int64)).any()
    assert (np.abs(release.values - table.value)[problem.sensitive] >= [0.33, 0.27]).all()


def test_values_at_the_edge_of_exactness_add_up() -> None:
    """Values near 1e14 and levels of a tenth of them: far beyond a solver's absolute tolerances."""
    big = 10**13
    table = table_of({key: value * big + i for i, (key, value) in enumerate(VALUES.items())})
    problem = problem_of(table, {("B", "z"): 2.2 * big + 0.5, ("C", "x"): 1.7 * big, ("A", "y"): 3.1 * big})
    release = Adjust().protect(problem)
    moved = release.values.astype(np.int64) - table.integers
    assert not (table.equations.astype(np.int64) @ moved).any()
    cells = problem.sensitive
    assert (np.abs(moved[cells]) >= problem.sensitivity.upper[cells]).all()


def test_costs_by_name_column_and_array(problem: Problem) -> None:
    value = problem.table.value
    np.testing.assert_allclose(cost_of(problem, "constant"), 1)
    np.testing.assert_allclose(cost_of(problem, "log"), np.log(1 + value))
    np.testing.assert_allclose(cost_of(problem, "value"), value)
    np.testing.assert_allclose(cost_of(problem, "inverse"), 1 / (1 + value))
    np.testing.assert_allclose(cost_of(problem, "log_over_value"), np.log(1 + value) / (1 + value))
    np.testing.assert_allclose(cost_of(problem, "weight"), problem.table.columns["weight"])
    by_column = Adjust(cost="weight").protect(problem)
    by_array = Adjust(cost=np.asarray(problem.table.columns["weight"])).protect(problem)
    np.testing.assert_array_equal(by_column.values, by_array.values)


def test_costs_far_apart_still_decide() -> None:
    """Of two ways that cost 1e-10 and 3e-10 beside 1 for all else, the cheaper one is taken."""
    table = table_of(VALUES)
    problem = problem_of(table, {("A", "x"): 5})
    for cheap, dear in (("y", "z"), ("z", "y")):
        cost = np.ones(len(table))
        for row in "AB":
            cost[table.index(row=row, column=cheap)] = 1e-10
            cost[table.index(row=row, column=dear)] = 3e-10
        for row, column in (("A", "x"), ("B", "x")):
            cost[table.index(row=row, column=column)] = 1e-10
        moved = Adjust(cost=cost).protect(problem).values - table.value
        assert moved[table.index(row="A", column=cheap)] != 0
        assert np.count_nonzero(moved) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"directions": "sideways"}, "Adjust.directions"),
        ({"fixed": "some"}, "Adjust.fixed"),
        ({"time_limit_s": 0}, "Adjust.time_limit_s"),
        ({"capacity_percent": -1.0}, "Adjust.capacity_percent"),
        ({"announce_percent": 0.0}, "Adjust.announce_percent"),
        ({"tries": 0}, "Adjust.tries"),
        ({"seed": -1}, "Adjust.seed"),
        ({"decimals": -1}, "Adjust.decimals"),
        ({"distance": "long"}, "Adjust.distance"),
        ({"most_times_level": 0.5}, "Adjust.most_times_level"),
        ({"capacity_times": -1.0}, "Adjust.capacity_times"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        Adjust(**options)


def test_unknown_costs_and_bad_costs_are_named(problem: Problem) -> None:
    with pytest.raises(InvalidOption, match="did you mean 'weight'"):
        Adjust(cost="weigth").protect(problem)
    with pytest.raises(InvalidProblem, match="costs"):
        Adjust(cost=np.ones(3)).protect(problem)
    cost = np.ones(len(problem.table))
    cost[problem.table.index(row="A", column="x")] = -1
    with pytest.raises(InvalidProblem, match="row=A, column=x"):
        Adjust(cost=cost).protect(problem)
    with pytest.raises(InvalidOption, match="exactly"):
        Adjust(decimals=15).protect(problem)


def test_a_cell_that_frozen_neighbours_hold_is_explained() -> None:
    table = table_of(VALUES)
    frozen = np.ones(len(table), np.bool_)
    frozen[[table.index(row="B", column="z"), table.index(row="C", column="z")]] = False
    with pytest.raises(InvalidProblem) as error:
        Adjust().protect(problem_of(table, {("B", "z"): 5}, frozen=frozen))
    assert "(row=B, column=z) cannot be moved far enough" in str(error.value)
    assert "frozen" in str(error.value)
    assert "Hint: unfreeze" in str(error.value)


def test_zeros_in_the_way_are_explained() -> None:
    table = table_of({("A", "x"): 5, ("A", "y"): 0, ("B", "x"): 0, ("B", "y"): 6})
    frozen = table.is_total
    problem = problem_of(table, {("A", "x"): 2}, frozen=frozen)
    with pytest.raises(InvalidProblem, match="zeros=True"):
        Adjust().protect(problem)
    assert abs(Adjust(zeros=True).protect(problem).values[0] - 5) >= 2


def test_a_narrow_capacity_and_a_narrow_window_are_explained() -> None:
    problem = problem_of(table_of(VALUES), {("B", "z"): 10})
    with pytest.raises(InvalidProblem, match="raise capacity_percent"):
        Adjust(capacity_percent=1).protect(problem)
    with pytest.raises(InvalidProblem, match="announce a larger deviation"):
        Adjust(announce_percent=10).protect(problem)


def test_prior_bounds_without_room_are_explained() -> None:
    table = table_of(VALUES)
    problem = problem_of(table, {("B", "z"): 10}, lower=table.value - 5, upper=table.value + 5)
    with pytest.raises(InvalidProblem, match="prior bounds"):
        Adjust().protect(problem)


def test_cells_that_cannot_all_move_are_named() -> None:
    """Three cells of a row whose total is frozen, each by exactly 3: an odd number of equal moves cannot cancel."""
    table = table_of(VALUES)
    frozen = np.zeros(len(table), np.bool_)
    frozen[table.index(row="B", column="Total")] = True
    cells = [("B", "x"), ("B", "y"), ("B", "z")]
    lower, upper = np.zeros(len(table)), np.full(len(table), np.inf)
    for row, column in cells:
        cell = table.index(row=row, column=column)
        lower[cell], upper[cell] = table.value[cell] - 3, table.value[cell] + 3
    problem = problem_of(table, dict.fromkeys(cells, 3), frozen=frozen, lower=lower, upper=upper)
    with pytest.raises(InvalidProblem, match="cannot all be moved"):
        Adjust().protect(problem)


def test_the_largest_change_is_made_as_small_as_it_can_be() -> None:
    """One inner cell must move by 6; no other needs to move further."""
    problem = problem_of(table_of(VALUES), {("B", "z"): 6})
    for directions in ("optimal", "alternating"):
        release = Adjust(cost="constant", distance="largest", directions=directions).protect(problem)
        assert np.abs(release.values - problem.table.value).max() == 6
        assert release.solution is not None
        assert release.solution.objective == 6
    narrow = problem_of(table_of(VALUES), {("B", "z"): 6, ("A", "x"): 4, ("C", "Total"): 5})
    release = Adjust(cost="value", distance="largest").protect(narrow)
    other = Adjust(cost="value").protect(narrow)
    cost = narrow.table.value
    largest = [float((cost * np.abs(r.values - narrow.table.value)).max()) for r in (release, other)]
    assert largest[0] <= largest[1]
    assert release.solution is not None
    assert release.solution.objective == pytest.approx(largest[0])


def test_squares_spread_a_change_that_a_sum_would_put_in_one_place() -> None:
    """With row totals fixed, 6 up in one cell is 3 down in each of the two others, not 6 in one."""
    problem = problem_of(table_of(VALUES), {("B", "z"): 6})
    fixed = np.zeros(len(problem.table))
    fixed[[problem.table.index(row=r, column="Total") for r in ("A", "B", "C", "Total")]] = 1
    release = Adjust(cost="constant", distance="squares", fixed_cells=fixed).protect(problem)
    moved = {
        key: release.values[problem.table.index(row=key[0], column=key[1])] - value for key, value in VALUES.items()
    }
    assert sorted(abs(moved["B", c]) for c in "xyz") == [3, 3, 6]
    assert release.solution is not None
    squares = np.square(release.values - problem.table.value).sum()
    assert release.solution.objective == pytest.approx(squares)
    assert (
        squares
        < np.square(Adjust(cost="constant", fixed_cells=fixed).protect(problem).values - problem.table.value).sum()
    )


def test_squares_are_counted_in_the_units_of_the_table() -> None:
    whole = problem_of(table_of(VALUES), {("B", "z"): 6, ("A", "x"): 4})
    fine = Adjust(cost="constant", distance="squares", decimals=2).protect(whole)
    assert fine.solution is not None
    assert fine.solution.objective == pytest.approx(np.square(fine.values - whole.table.value).sum())
    with pytest.raises(InvalidOption, match="distance"):
        Adjust(distance="squares", keep=Keep(mean=True))


def test_capacities_from_a_column_of_standard_errors(problem: Problem) -> None:
    """The column is 1 to 9 in the inner cells; totals hold the sums of their parts."""
    table = problem.table
    error = np.asarray(table.columns["weight"])
    for times in (2.0, 0.5):
        release = Adjust(capacity="weight", capacity_times=times).protect(problem)
        moved = np.abs(release.values - table.value)
        assert (moved <= times * error + 1e-9)[~problem.sensitivity.mask].all()
    with pytest.raises(InvalidOption, match="did you mean 'weight'"):
        Adjust(capacity="weigth").protect(problem)
    with pytest.raises(InvalidOption, match=r"Adjust\.capacity has 3 entries"):
        Adjust(capacity=np.ones(3)).protect(problem)


def test_sensitive_cells_exactly_at_their_limits_or_capped(problem: Problem) -> None:
    cells = problem.sensitive
    level = problem.sensitivity.upper[cells]
    for times in (1.0, 1.5):
        release = Adjust(most_times_level=times, cost="inverse").protect(problem)
        moved = np.abs(release.values - problem.table.value)[cells]
        assert (moved >= level).all()
        assert (moved <= times * level).all()


def test_chosen_cells_stay(problem: Problem) -> None:
    table = problem.table
    stay = np.zeros(len(table))
    stay[[table.index(row="B", column="x"), table.index(row="Total", column="z")]] = 1
    release = Adjust(fixed_cells=stay).protect(problem)
    assert (release.values == table.value)[stay > 0].all()
    assert (release.lower == release.upper)[stay > 0].all()
    every = np.ones(len(table))
    with pytest.raises(InvalidProblem, match="fixed_cells"):
        Adjust(fixed_cells=every).protect(problem)


def test_capacities_give_way_where_they_must_and_nowhere_else() -> None:
    problem = problem_of(table_of(VALUES), {("B", "z"): 10})
    with pytest.raises(InvalidProblem, match="relax_capacity"):
        Adjust(capacity_percent=10).protect(problem)
    method = Adjust(capacity_percent=10, relax_capacity=True)
    report = method.relaxation(problem)
    release = method.protect(problem)
    moved = np.abs(release.values - problem.table.value)
    over = (moved > 0.1 * problem.table.value + 1e-9) & ~problem.sensitivity.mask
    assert over.any()
    assert set(np.flatnonzero(over)) <= set(report.cells.tolist())
    assert (moved[report.cells] <= report.after).all()
    frame = report.frame()
    assert frame.columns == ["row", "column", "value", "capacity", "raised to"]
    assert (frame["raised to"] > frame["capacity"]).all()
    assert f"{len(report.cells)} capacities were raised" in str(report)
    wide = Adjust(capacity_percent=90, relax_capacity=True)
    assert str(wide.relaxation(problem)) == "All capacities hold."


def test_an_intruder_who_guesses_the_limits_is_audited(problem: Problem) -> None:
    """A wide guess leaves the cells protected; one that the truth just meets gives them away."""
    release = Adjust().protect(problem)
    assert audit(problem, release).safe
    assert audit(problem, guessed(problem, release, percent=500)).safe
    close = guessed(problem, release, percent=1)
    assert (close.lower <= problem.table.value).all()
    assert (close.upper >= problem.table.value).all()
    assert not audit(problem, close).safe
    with pytest.raises(InvalidOption, match="guess"):
        guessed(problem, release, percent=0)


def test_it_is_registered_by_name() -> None:
    assert METHODS["adjust"] is Adjust
