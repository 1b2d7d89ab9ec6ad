"""Integers: bounds for an attacker who knows that counts are whole; and Fréchet bounds for cubes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.integers import IntegerIntervals, cube_bounds, frechet, integer_intervals, is_network, shuttle
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.errors import InvalidInput
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table


def system_of(table: Table, hidden: set[str], **bounds: Any) -> System:
    problem = Problem(table, **bounds)
    mask = np.isin(np.array(table.names, dtype=str), list(hidden))
    return System.of(problem, Release.from_suppression(problem, mask))


def interval(system: System, found: IntegerIntervals, name: str) -> tuple[float, float]:
    names = np.asarray(system.table.names, dtype=str)[system.cells]
    at = int(np.flatnonzero(names == name)[0])
    return float(found.lower[at]), float(found.upper[at])


def cube(inner: NDArray[Any]) -> Table:
    """A flat table with all its margins, its dimensions named 0, 1, …"""
    full = inner
    for axis in range(inner.ndim):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    hierarchies = {str(axis): Hierarchy.flat([str(i) for i in range(n)]) for axis, n in enumerate(inner.shape)}
    codes = np.indices(full.shape).reshape(inner.ndim, -1).T
    places = [[h.position(c) for c in [*map(str, range(len(h) - 1)), "Total"]] for h in hierarchies.values()]
    located = np.column_stack([np.array(place)[codes[:, axis]] for axis, place in enumerate(places)])
    return Table.from_codes(located.astype(np.int32), full.ravel().astype(float), hierarchies)


def inner_cells(table: Table) -> NDArray[np.bool_]:
    mask = np.ones(len(table), dtype=np.bool_)
    for axis, hierarchy in enumerate(table.dimensions.values()):
        mask &= ~hierarchy.is_total[table.codes[:, axis]]
    return mask


def test_two_equal_cells_that_add_up_to_two_are_one() -> None:
    """15 = 10 + 3 + x + x: x is shown twice under different names."""
    table = Table.from_equations(
        ["all = a + b + x + y", "left = x + p", "right = y + p"],
        {"all": 15.0, "a": 10.0, "b": 3.0, "x": 1.0, "y": 1.0, "p": 4.0, "left": 5.0, "right": 5.0},
    )
    system = system_of(table, {"x", "y", "p"})
    found = integer_intervals(system)
    assert found.proven.all()
    assert interval(system, found, "x") == (1, 1)


def test_cells_known_to_be_positive_share_out_what_remains() -> None:
    """A withheld count is at least 1: of two that add up to 2 each is 1; of three that add up to 4 none exceeds 2."""
    table = Table.from_equations(
        ["t = a + x + y", "u = b + p + q + r"],
        {"t": 15.0, "a": 13.0, "x": 1.0, "y": 1.0, "u": 9.0, "b": 5.0, "p": 1.0, "q": 1.0, "r": 2.0},
    )
    system = system_of(table, {"x", "y", "p", "q", "r"}, lower=np.ones(len(table)))
    found = integer_intervals(system)
    assert found.proven.all()
    assert interval(system, found, "x") == (1, 1)
    assert interval(system, found, "q") == (1, 2)


def test_an_odd_cycle_has_no_half() -> None:
    """Of three cells any two share one unit: the linear program lets all be a half, whole numbers only one be 1."""
    table = Table.from_equations(
        ["t1 = a + b + r", "t2 = b + c + s", "t3 = a + c + q", "all = a + b + c"],
        {"a": 1.0, "b": 0.0, "c": 0.0, "r": 0.0, "s": 1.0, "q": 0.0, "t1": 1.0, "t2": 1.0, "t3": 1.0, "all": 1.0},
    )
    system = system_of(table, {"a", "b", "c", "r", "s", "q", "all"})
    linear = exact_intervals(system, np.arange(len(system)))
    assert float(linear.upper[-1]) == 1.5
    found = integer_intervals(system)
    assert found.proven.all()
    assert interval(system, found, "all") == (0, 1)
    again = integer_intervals(system, start=(linear.lower, linear.upper))
    assert (again.upper == found.upper).all()


def test_intervals_are_never_wider_than_those_of_the_linear_program() -> None:
    random = np.random.default_rng(3)
    table = cube(random.poisson(1.2, size=(4, 4, 3)))
    problem = Problem(table)
    system = System.of(problem, Release.from_suppression(problem, inner_cells(table)))
    linear = exact_intervals(system, np.arange(len(system)))
    found = integer_intervals(system)
    assert found.proven.all()
    assert (found.lower >= linear.lower).all()
    assert (found.upper <= linear.upper).all()
    assert ((found.lower <= system.truth) & (system.truth <= found.upper)).all()


def test_without_time_the_bounds_are_valid_but_not_proven() -> None:
    table = cube(np.random.default_rng(4).poisson(2.0, size=(5, 5, 5)))
    problem = Problem(table)
    system = System.of(problem, Release.from_suppression(problem, inner_cells(table)))
    wanted = np.arange(20)
    linear = exact_intervals(system, wanted)
    found = integer_intervals(system, wanted, start=(linear.lower, linear.upper), time_limit_s=0.0)
    assert not found.proven.all()
    assert (found.lower <= system.truth[wanted]).all()
    assert (found.upper >= system.truth[wanted]).all()
    assert (found.lower >= np.ceil(linear.lower - 1e-9)).all()


def test_unbounded_cells_stay_unbounded() -> None:
    table = Table.from_equations(["t = a + b"], {"t": 3.0, "a": 1.0, "b": 2.0})
    system = system_of(table, {"t", "a", "b"})
    found = integer_intervals(system)
    assert found.proven.all()
    assert interval(system, found, "t") == (0, np.inf)


def test_bounds_that_are_not_whole_are_rounded_inwards() -> None:
    """In a network too, where the linear program is exact only for whole bounds."""
    table = Table.from_equations(["t = a + b"], {"t": 3.0, "a": 1.0, "b": 2.0})
    system = system_of(table, {"a", "b"}, lower=np.array([0.0, 0.5, 0.25]))
    linear = exact_intervals(system, np.arange(2))
    assert float(linear.upper[0]) == 2.75
    for found in (integer_intervals(system), integer_intervals(system, start=(linear.lower, linear.upper))):
        assert found.proven.all()
        assert interval(system, found, "a") == (1, 2)


def test_two_way_tables_are_networks_and_three_way_tables_are_not() -> None:
    for inner, network in ((np.ones((3, 4)), True), (np.ones((2, 2, 2)), False)):
        table = cube(inner)
        problem = Problem(table)
        system = System.of(problem, Release.from_suppression(problem, inner_cells(table)))
        assert is_network(system.matrix) is network
    triangle = sparse.csr_array(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))
    assert not is_network(triangle)


def test_the_shuttle_alone_closes_what_needs_two_equations() -> None:
    """a + b + c = 5 and b + c + d = 2: the first is at least 3 more than the second allows."""
    table = Table.from_equations(
        ["t = a + b + c", "u = b + c + d"], {"t": 5.0, "u": 2.0, "a": 3.0, "b": 1.0, "c": 1.0, "d": 0.0}
    )
    system = system_of(table, {"a", "b", "c", "d"})
    lower, upper = shuttle(system, system.lower, system.upper)
    names = np.asarray(table.names, dtype=str)[system.cells].tolist()
    assert (lower[names.index("a")], upper[names.index("a")]) == (3, 5)


def test_cox_table_3_the_diagonal_is_one(paper_data: Path) -> None:
    """Cox, "Vulnerability of Complementary Cell Suppression to Intruder Attack", Table 3: a 3×3×3 table."""
    case = json.loads((paper_data / "cox_vulnerability.json").read_text(encoding="utf-8"))["table_3_3x3x3"]
    margins = {
        (0, 1): np.array(case["row_margin_by_plane"]),
        (0, 2): np.array(case["column_margin_by_plane"]),
        (1, 2): np.array(case["vertical_margin"]),
    }
    lower, upper = frechet(margins, (3, 3, 3))
    assert (upper >= lower).all()
    for i in range(3):
        assert lower[i, i, i] <= 1 <= upper[i, i, i]


def test_frechet_bounds_of_two_margins_are_the_textbook_ones() -> None:
    rows, columns = np.array([5, 3]), np.array([6, 2])
    lower, upper = frechet({(0,): rows, (1,): columns}, (2, 2))
    assert upper.tolist() == [[5, 2], [3, 2]]
    assert lower.tolist() == [[3, 0], [1, 0]]


def test_frechet_knows_nothing_of_missing_margins() -> None:
    lower, upper = frechet({(0,): np.array([5.0, np.nan])}, (2, 3))
    assert upper.tolist() == [[5, 5, 5], [np.inf, np.inf, np.inf]]
    assert (lower == 0).all()


@pytest.mark.parametrize("axes", [(0, 0), (0, 5), (0,)])
def test_a_margin_that_does_not_fit_is_refused(axes: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="cannot have shape"):
        frechet({axes: np.ones((2, 2))}, (2, 3))


def test_cube_bounds_need_a_flat_table_of_values_that_are_not_negative() -> None:
    flat = cube(np.arange(4).reshape(2, 2))
    problem = Problem(flat)
    system = System.of(problem, Release.from_suppression(problem, inner_cells(flat)))
    assert cube_bounds(system) is not None
    losses = cube(np.array([[1, -2], [3, 4]]))
    problem = Problem(losses)
    assert cube_bounds(System.of(problem, Release.from_suppression(problem, inner_cells(losses)))) is None
    named = Table.from_equations(["t = a + b"], {"t": 3.0, "a": 1.0, "b": 2.0})
    assert cube_bounds(system_of(named, {"a", "b"})) is None


def test_cube_bounds_take_unknown_margins_and_empty_cells_as_they_are() -> None:
    inner = np.array([[4, 0, 3], [2, 5, 1]])
    table = cube(inner)
    keep = np.flatnonzero((table.integers != 0) | ~inner_cells(table))
    sparse_table = Table.from_codes(table.codes[keep], table.value[keep], table.dimensions)
    problem = Problem(sparse_table)
    mask = inner_cells(sparse_table) | (np.arange(len(sparse_table)) == len(sparse_table) - 2)
    system = System.of(problem, Release.from_suppression(problem, mask))
    bounds = cube_bounds(system)
    assert bounds is not None
    exact = exact_intervals(system, np.arange(len(system)))
    assert (bounds[0] <= exact.lower + 1e-9).all()
    assert (bounds[1] >= exact.upper - 1e-9).all()
