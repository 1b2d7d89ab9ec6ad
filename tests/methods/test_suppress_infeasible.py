"""What cannot be protected is proved and explained: a conflict of which nothing can be left out, and a way out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from oracle.suppression import TREE, grid, open_cells, product
from tablesafe.core.errors import InvalidProblem
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods.suppress import Suppress
from tablesafe.methods.suppress.infeasible import Demand, Obstacles, remedy


def blocked_problem(seed: int, *, share: float) -> Problem:
    """A table in which much is frozen; some of its sensitive cells have no room."""
    random = np.random.default_rng(seed)
    tree, flat = Hierarchy.from_pairs(TREE), Hierarchy.flat(["x", "y", "z"])
    table = product([tree, flat] if seed % 2 else [flat, flat, Hierarchy.flat(["u", "v"])], random, most=20)
    mask = ~table.is_total & (table.value > 0) & (random.random(len(table)) < 0.1)
    frozen = ~mask & (random.random(len(table)) < share)
    level = np.ceil(table.value / 4)
    return Problem(table, sensitivity=Sensitivity.of(mask, level), frozen=frozen)


def reach(problem: Problem, demand: Demand, fixed: np.ndarray, rows: np.ndarray) -> float:
    """How far a cell can move over some sums with some cells fixed, by another library's program."""
    table = problem.table
    up, down = problem.upper - table.value, table.value - problem.lower
    bounds = [(0.0, 0.0) if fixed[i] else (-down[i], None if np.isinf(up[i]) else up[i]) for i in range(len(table))]
    cost = np.zeros(len(table))
    cost[demand.cell] = -demand.sign
    limit = (0.0, demand.level) if demand.sign > 0 else (-demand.level, 0.0)
    bounds[demand.cell] = limit
    matrix = table.equations.toarray()[rows] if len(rows) else np.zeros((1, len(table)))
    answer = linprog(cost, A_eq=matrix, b_eq=np.zeros(len(matrix)), bounds=bounds, method="highs")
    assert answer.status == 0
    return -float(answer.fun)


def stuck_demands(problem: Problem, obstacles: Obstacles) -> list[Demand]:
    levels = problem.sensitivity
    found = []
    for cell in problem.sensitive.tolist():
        for sign, level in ((1, levels.upper[cell]), (-1, levels.lower[cell])):
            demand = Demand(cell, sign, float(level))
            if obstacles.reach(demand) < level * (1 - 1e-6):
                found.append(demand)
    return found


@settings(max_examples=6)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.7, 0.9]))
def test_conflicts_are_irreducible_and_remedies_work(seed: int, share: float) -> None:
    problem = blocked_problem(seed, share=share)
    obstacles = Obstacles(problem, zeros=False)
    everything = np.arange(problem.table.equations.shape[0])
    for demand in stuck_demands(problem, obstacles)[:2]:
        found = remedy(obstacles, demand)
        assert found is not None
        assert found.solved
        for conflict in found.conflicts:
            only, rows = np.isin(np.arange(len(problem.table)), conflict.cells), np.array(conflict.sums)
            assert reach(problem, demand, only, rows) < demand.level * (1 - 1e-7)
            for cell in conflict.cells:
                fewer = only & (np.arange(len(problem.table)) != cell)
                assert reach(problem, demand, fewer, rows) == pytest.approx(demand.level)
            for row in conflict.sums:
                assert reach(problem, demand, only, rows[rows != row]) == pytest.approx(demand.level)
        freed = obstacles.blocked & ~np.isin(np.arange(len(problem.table)), found.unfreeze)
        assert reach(problem, demand, freed, everything) == pytest.approx(demand.level)
        for cell in found.instead if len(found.unfreeze) == 1 else ():
            freed = obstacles.blocked & (np.arange(len(problem.table)) != cell)
            assert reach(problem, demand, freed, everything) == pytest.approx(demand.level)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 0.6]))
def test_an_error_is_raised_exactly_when_nothing_protects(seed: int, share: float) -> None:
    problem = blocked_problem(seed, share=share)
    may_be_withheld = ~problem.frozen & ((problem.table.value != 0) | problem.sensitivity.mask)
    hopeless = {problem.table.describe(cell) for cell in open_cells(problem, may_be_withheld)}
    try:
        release = Suppress(time_limit_s=2).protect(problem)
    except InvalidProblem as error:
        message = str(error)
    else:
        assert not hopeless
        assert open_cells(problem, release) == []
        return
    assert message.split(" cannot be protected")[0].removeprefix("Sensitive cell ") in hopeless
    assert "Hint: unfreeze" in message or "zeros=True" in message


def test_the_message_names_cells_sums_and_the_way_out() -> None:
    table = Table.from_cells({"r": ["Total", "A", "B", "C"], "value": [10, 2, 3, 5]}, dimensions=["r"])
    frozen = np.array([True, False, True, True])
    mask = np.array([False, True, False, False])
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0), frozen=frozen)
    with pytest.raises(InvalidProblem) as caught:
        Suppress().protect(problem)
    assert str(caught.value) == (
        "Sensitive cell (r=A) cannot be protected: it must be able to rise by 1, but even if everything is withheld "
        "that may be, it cannot rise at all.\n"
        "In the way: (r=Total), (r=B), (r=C) (frozen),\n"
        "because of this sum:\n"
        "  (r=Total) = (r=A) + (r=B) + (r=C)\n"
        "\n"
        "Hint: unfreeze one of (r=Total), (r=B), (r=C); or waive (r=A)."
    )
    for cell in (0, 2, 3):
        eased = problem.replace(frozen=frozen & (np.arange(4) != cell))
        assert open_cells(eased, Suppress().protect(eased)) == []


def test_two_conflicts_need_two_cells_unfrozen() -> None:
    """The row and the column of the cell are frozen: one cell in each must go, and a corner with them."""
    table = grid([[5, 6], [7, 8]])
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[table.index(r="a", c="x")] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 2.0), frozen=~mask)
    obstacles = Obstacles(problem, zeros=False)
    found = remedy(obstacles, Demand(table.index(r="a", c="x"), 1, 2.0))
    assert found is not None
    assert len(found.unfreeze) == 3
    eased = problem.replace(frozen=problem.frozen & ~np.isin(np.arange(len(table)), found.unfreeze))
    assert open_cells(eased, Suppress().protect(eased)) == []
    with pytest.raises(InvalidProblem, match="more of its kind"):
        Suppress().protect(problem)


def test_zeros_in_the_way_are_told_from_frozen_cells() -> None:
    table = grid([[5, 0, 0], [0, 8, 9], [0, 9, 8]])
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[table.index(r="a", c="x")] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0, 0.0), frozen=table.is_total)
    with pytest.raises(InvalidProblem, match=r"of value zero, which may not be withheld(.|\n)*zeros=True"):
        Suppress().protect(problem)
    assert open_cells(problem, Suppress(zeros=True).protect(problem)) == []


def test_bounds_of_other_cells_can_leave_no_room() -> None:
    """Nothing is frozen, but an attacker who knows the others to within 1 knows this one to within 3."""
    table = Table.from_cells({"r": ["Total", "A", "B", "C"], "value": [10, 5, 3, 2]}, dimensions=["r"])
    mask = np.array([False, True, False, False])
    around = np.where(mask, 5.0, 1.0)
    problem = Problem(
        table, sensitivity=Sensitivity.of(mask, 4.0), lower=table.value - around, upper=table.value + around
    )
    with pytest.raises(InvalidProblem, match=r"it can rise by 3 at most(.|\n)*prior bounds leave it no room"):
        Suppress().protect(problem)


def test_all_that_have_no_room_are_named_at_once() -> None:
    table = grid([[5, 6, 7], [8, 9, 10], [11, 12, 13]])
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[[table.index(r="a", c="x"), table.index(r="b", c="y")]] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0), frozen=~mask)
    with pytest.raises(InvalidProblem, match=r"for reasons of their own, for \(r=[ab], c=[xy]\)\."):
        Suppress().protect(problem)


def test_what_is_far_away_counts_too() -> None:
    """A chain of sums: only its last cell, ten steps away, keeps the first where it is."""
    links = [f"t{i} = x{i} + x{i + 1}" for i in range(10)]
    table = Table.from_equations(links, {f"x{i}": 10 for i in range(11)} | {f"t{i}": 20 for i in range(10)})
    totals = table.value == 20
    names = [table.describe(cell) for cell in range(len(table))]
    first, last = (next(i for i, name in enumerate(names) if one in name) for one in ("x0", "x10"))
    mask = np.arange(len(table)) == first
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 2.0), frozen=totals | (np.arange(len(table)) == last))
    for sign in (-1, 1):
        assert Obstacles(problem, zeros=False).reach(Demand(first, sign, 2.0)) == 0
        assert Obstacles(problem.replace(frozen=totals), zeros=False).reach(Demand(first, sign, 2.0)) == 2


@pytest.mark.parametrize("seed", [3, 5, 6])
def test_what_nothing_protects_costs_frozen_cells_where_that_is_the_policy(seed: int) -> None:
    problem = blocked_problem(seed, share=0.8)
    with pytest.raises(InvalidProblem, match="cannot be protected"):
        Suppress().protect(problem)
    release = Suppress(unprotectable="withhold totals").protect(problem)
    assert open_cells(problem, release) == []
    withheld = release.suppressed & problem.frozen
    assert withheld.any()
    assert release.solution is not None
    told = " ".join(release.solution.notes)
    assert "withhold totals" in told
    assert all(problem.table.describe(cell) in told for cell in np.flatnonzero(withheld)[:1].tolist())
