"""Point estimates against tables solved by hand, and against the papers."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.optimize import brentq

from tablesafe.attack import (
    ATTACKS,
    AdditiveMidpoint,
    AnalyticCentre,
    Attack,
    ChebyshevCentre,
    HitAndRun,
    InteriorPoint,
    MaximumEntropy,
    Midpoint,
    PublishedValue,
    RandomCentroid,
    SimplexVertex,
    VertexMean,
    attack,
)
from tablesafe.attack.parameters import ShrunkMidpoint
from tablesafe.attack.view import View
from tablesafe.core.errors import InvalidOption
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods.round import Round
from tablesafe.work import budget

EVERY = [kind() for kind in ATTACKS.values()]
QUICK = (
    SimplexVertex(), InteriorPoint(), AnalyticCentre(), ChebyshevCentre(), MaximumEntropy(), Midpoint(),
    AdditiveMidpoint(), VertexMean(), RandomCentroid(draws=3), HitAndRun(effective=20),
)  # fmt: skip
NOT_ADDITIVE = {Midpoint.name}


def flat(inner: np.ndarray[Any, Any]) -> Table:
    """A flat table of any number of dimensions with all its totals."""
    padded = inner
    for axis in range(inner.ndim):
        padded = np.concatenate([padded, padded.sum(axis=axis, keepdims=True)], axis=axis)
    rows = list(product(*([*map(str, range(1, size + 1)), "Total"] for size in inner.shape)))
    names = [f"d{i}" for i in range(inner.ndim)]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return Table.from_cells(pl.DataFrame(columns | {"value": padded.ravel().astype(float)}), dimensions=names)


def hidden(table: Table, cells: np.ndarray[Any, Any], level: float = 1.0, **bounds: Any) -> tuple[Problem, Release]:
    """A problem in which the withheld cells are sensitive."""
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[cells] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, level), **bounds)
    return problem, Release.from_suppression(problem, mask)


def inner(table: Table) -> np.ndarray[Any, Any]:
    return np.flatnonzero(~table.is_total)


def sum_of_three(upper: float = np.inf) -> tuple[Problem, Release]:
    """x + y + z = 6, none negative, x at most `upper`."""
    table = Table.from_equations(["t = x + y + z"], {"t": 6, "x": 1, "y": 2, "z": 3})
    return hidden(table, np.array([1, 2, 3]), upper=np.array([np.inf, upper, np.inf, np.inf]))


# -- by hand


@pytest.mark.parametrize(
    ("method", "each"),
    [
        (AnalyticCentre(), 2.0),
        (ChebyshevCentre(), 2.0),
        (InteriorPoint(), 2.0),
        (MaximumEntropy(), 2.0),
        (Midpoint(), 3.0),
    ],
    ids=lambda a: str(a),
)
def test_three_cells_with_a_known_sum(method: Attack, each: float) -> None:
    estimate = attack(*sum_of_three(), method)
    assert estimate.values == pytest.approx([6, each, each, each])


def test_three_cells_the_vertex_is_a_corner() -> None:
    values = attack(*sum_of_three(), SimplexVertex()).values
    assert sorted(values.tolist()) == [0, 0, 6, 6]


def test_middles_are_made_additive_with_the_least_change() -> None:
    """Three middles of 3 must come down to a sum of 6: by 3 in all, wherever it is taken."""
    values = attack(*sum_of_three(), AdditiveMidpoint()).values
    assert values[1:].sum() == pytest.approx(6)
    assert np.abs(values[1:] - 3).sum() == pytest.approx(3)


def test_the_interior_point_stops_inside_and_adds_up() -> None:
    values = attack(*sum_of_three(upper=1.0), InteriorPoint()).values
    assert values[1:].sum() == pytest.approx(6)
    assert 0 < values[1] < 1
    assert (values[2:] > 0).all()


def test_too_little_time_is_no_answer_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, release = sum_of_three()
    monkeypatch.setattr(budget, "wall", monotonic)  # the processor's clock is read too rarely for so little
    for estimate in attack(problem, release, AnalyticCentre(), VertexMean(), RandomCentroid(), time_limit_s=1e-9):
        assert np.isnan(estimate.values[1:]).all()
        assert not estimate.disclosed.any()
        assert "time" in estimate.note or "second" in estimate.note
    with pytest.raises(InvalidOption, match="time_limit_s"):
        attack(problem, release, time_limit_s=0)


def test_a_prior_bound_moves_the_centre() -> None:
    """Maximise log x + log(1 − x) + 2·log((6 − x)/2)."""
    x = brentq(lambda x: 1 / x - 1 / (1 - x) - 2 / (6 - x), 1e-6, 1 - 1e-6, xtol=1e-14)
    values = attack(*sum_of_three(upper=1.0), AnalyticCentre()).values
    assert values == pytest.approx([6, x, (6 - x) / 2, (6 - x) / 2], abs=1e-8)


def test_the_largest_ball_touches_the_narrowest_cell_on_both_sides() -> None:
    values = attack(*sum_of_three(upper=1.0), ChebyshevCentre()).values
    assert values[1] == pytest.approx(0.5)
    radius = 0.5 / np.sqrt(2 / 3)  # a cell's unit vector loses a third of its square to the equation
    assert min(values[2:]) >= radius * np.sqrt(2 / 3) - 1e-9
    assert values[1:].sum() == pytest.approx(6)


def test_the_ball_of_a_rectangle() -> None:
    """Two independent pairs: a + b = 10 and c + d = 4, each with its own ball."""
    table = Table.from_equations(["s = a + b", "t = c + d"], {"s": 10, "a": 1, "b": 9, "t": 4, "c": 4, "d": 0})
    for method in (ChebyshevCentre(), AnalyticCentre(), Midpoint()):
        estimate = attack(*hidden(table, np.array([1, 2, 4, 5])), method)
        assert estimate.values == pytest.approx([10, 5, 5, 4, 2, 2])


# -- the papers


def test_dandekar_the_analytic_centre_discloses_fourteen_cells_as_printed(paper_data: Path) -> None:
    """Dandekar, "Protecting Sensitive Tabular Data by Complementary Cell Suppression: Myth & Reality", Table 3."""
    cells = pl.read_csv(paper_data / "dandekar_10x6x4" / "cells.csv")
    dimensions = {
        name: Hierarchy.from_pairs([(str(size), str(code)) for code in range(1, size)])
        for name, size in (("col", 10), ("row", 6), ("level", 4))
    }
    table = Table.from_cells(cells, dimensions=dimensions)
    levels = cells["protection"].fill_null(0).to_numpy().astype(float)
    sensitivity = Sensitivity.of(cells["sensitive"].to_numpy() == 1, levels)
    problem = Problem(table, sensitivity=sensitivity, frozen=table.value == 0)
    release = Release.from_suppression(problem, cells["suppression_44"].is_not_null().to_numpy())
    estimate = attack(problem, release, AnalyticCentre())
    assert (len(estimate.cells), int(estimate.disclosed.sum())) == (24, 14)
    assert "14 of 24 sensitive cells" in str(estimate)
    assert not estimate.exactly.any()
    assert np.abs(table.equations @ estimate.values).max() < 1e-6
    printed = pl.read_csv(paper_data / "dandekar_10x6x4" / "expected_attack_44.csv")
    found = estimate.frame().with_columns(pl.col("col", "row", "level").cast(pl.Int64))
    both = printed.join(found, on=["col", "row", "level"], validate="1:1")
    width = both["lp_upper"] - both["lp_lower"]
    # only alike: the paper's solver stopped at an interior point of its own, at most a quarter of the range away
    assert ((both["pcx_null_objective"] - both["estimate"]).abs() / width).max() < 0.25  # type: ignore[operator]
    off = (both["pcx_null_objective"] - both["value"]).abs()
    # the print is rounded to whole numbers, and two of its guesses lie at the end of their interval
    assert (int((off < both["protection"]).sum()), int((off <= both["protection"]).sum())) == (13, 15)


def test_cox_the_middle_of_the_cycle(paper_data: Path) -> None:
    """Cox, "Vulnerability of Complementary Cell Suppression to Intruder Attack": one degree of freedom."""
    case = json.loads((paper_data / "cox_vulnerability.json").read_text(encoding="utf-8"))["cycle_2x2"]
    cells = case["cells"]
    table = flat(np.array([[cells["X"], cells["B"]], [cells["C"], cells["A"]]]))
    names = {"X": ("1", "1"), "B": ("1", "2"), "C": ("2", "1"), "A": ("2", "2")}
    expected = {table.index(d0=r, d1=c): np.mean(case["exact_intervals"][k]) for k, (r, c) in names.items()}
    problem, release = hidden(table, inner(table), case["protection_of_X"])
    for method in (Midpoint(), AnalyticCentre(), ChebyshevCentre()):  # symmetric, so the centres agree
        values = attack(problem, release, method).values
        assert {cell: values[cell] for cell in expected} == pytest.approx(expected)
    x = table.index(d0="1", d1="1")
    estimate = attack(problem, release, Midpoint())
    assert estimate.error[estimate.cells.tolist().index(x)] == pytest.approx(-1.5)  # the bias of the midpoint
    assert bool(estimate.disclosed[estimate.cells.tolist().index(x)])  # 8.5 lies in (8, 12)


# -- no freedom, endless freedom


@pytest.mark.parametrize("method", EVERY, ids=lambda a: a.name)
def test_a_release_without_freedom_is_disclosed_exactly(method: Attack) -> None:
    table = flat(np.array([[5, 3], [2, 7]]))
    for mask in (np.array([0]), np.array([], dtype=np.intp)):
        problem, release = hidden(table, mask)
        estimate = attack(problem, release, method)
        assert estimate.values == pytest.approx(table.value)
        assert estimate.exactly.all()
        assert estimate.disclosed.all()
        assert (estimate.relative_error == 0).all()


@pytest.mark.parametrize("method", EVERY, ids=lambda a: a.name)
def test_cells_that_only_bounds_fix_are_known_too(method: Attack) -> None:
    """x + y = 0 with neither negative, beside a sum that is free."""
    table = Table.from_equations(["s = x + y", "t = u + v"], {"s": 0, "x": 0, "y": 0, "t": 8, "u": 3, "v": 5})
    estimate = attack(*hidden(table, np.array([1, 2, 4, 5]), level=0.0), method)
    assert estimate.exactly.tolist() == [True, True, False, False]
    assert estimate.values[[1, 2]].tolist() == [0, 0]
    if not isinstance(method, PublishedValue):  # which guesses nothing where nothing is published
        assert estimate.values[4] + estimate.values[5] == pytest.approx(8)


def test_cells_without_an_end_get_no_guess_but_their_neighbours_do() -> None:
    """t = x + y and y + z = 4: y and z are bounded, x and t are not."""
    table = Table.from_equations(["t = x + y", "s = y + z"], {"t": 9, "x": 6, "y": 3, "z": 1, "s": 4})
    problem, release = hidden(table, np.array([0, 1, 2, 3]))
    for method in (Midpoint(), AnalyticCentre(), ChebyshevCentre()):
        estimate = attack(problem, release, method)
        assert np.isnan(estimate.values[[0, 1]]).all()
        assert 0 < estimate.values[2] < 4
        assert not estimate.disclosed[:2].any()
        assert estimate.frame().height == 4
    assert np.isfinite(attack(problem, release, SimplexVertex()).values).all()


def test_values_may_be_negative() -> None:
    table = Table.from_equations(["t = x + y"], {"t": -5, "x": -8, "y": 3})
    problem, release = hidden(table, np.array([1, 2]), lower=-10.0, upper=10.0)
    for method in (Midpoint(), AnalyticCentre(), ChebyshevCentre()):
        assert attack(problem, release, method).values == pytest.approx([-5, -2.5, -2.5])


# -- properties


@st.composite
def releases(draw: st.DrawFn) -> tuple[Problem, Release]:
    """A random table of two or three dimensions with a random pattern, values small or huge."""
    shape = draw(st.lists(st.integers(2, 4), min_size=2, max_size=3))
    seed, scale = draw(st.integers(0, 10**6)), draw(st.sampled_from([1, 1000, 10**8]))
    random = np.random.default_rng(seed)
    table = flat(random.poisson(3, shape) * random.integers(1, scale, shape, endpoint=True))
    mask = random.random(len(table)) < draw(st.sampled_from([0.3, 0.6]))
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 0.1 * table.value), upper=2 * table.value + 5)
    return problem, Release.from_suppression(problem, mask)


@given(releases())
@settings(max_examples=8)
def test_every_guess_is_a_possible_table(case: tuple[Problem, Release]) -> None:
    problem, release = case
    scale = 1 + float(np.abs(problem.table.value).max())
    for estimate in attack(problem, release, *QUICK):
        low, high = np.maximum(release.lower, problem.lower), np.minimum(release.upper, problem.upper)
        assert ((estimate.values >= low - 1e-7 * scale) & (estimate.values <= high + 1e-7 * scale)).all()
        if estimate.attack not in {Midpoint.name, ShrunkMidpoint.name}:
            assert np.abs(problem.table.equations @ estimate.values).max() <= 1e-7 * scale


@given(releases())
@settings(max_examples=40)
def test_no_step_within_the_equations_leads_up_from_the_analytic_centre(case: tuple[Problem, Release]) -> None:
    view = View.of(*case)
    room = view.room
    if not len(room):
        return
    x = AnalyticCentre().guess(view).values[view.free]
    below, above = x - room.prior_lower, room.prior_upper - x
    assert (below > 0).all()
    assert (above > 0).all()
    near = np.minimum(below, above)  # measured by the distance to the bound, every slope is of order 1
    directions = null_space(room.matrix.toarray() * near)
    assert np.abs(directions.T @ ((1 / below - 1 / above) * near)).max(initial=0.0) < 1e-5


def test_a_rounded_release_is_attacked_through_its_windows() -> None:
    """Rounded values are public, the counts behind them are guessed: additive, and inside every window."""
    table = flat(np.random.default_rng(2).poisson(4, (4, 5)))
    problem = Problem(table, sensitivity=Sensitivity.of((table.value > 0) & (table.value < 3), 1.0))
    release = Round(base=5).protect(problem)
    for estimate in attack(problem, release, *QUICK):
        assert ((estimate.values >= release.lower - 1e-9) & (estimate.values <= release.upper + 1e-9)).all()
        assert not estimate.known.any()
        if estimate.attack not in NOT_ADDITIVE:
            assert np.abs(table.equations @ estimate.values).max() < 1e-6


def test_several_attacks_give_a_tuple_and_none_gives_all() -> None:
    problem, release = sum_of_three()
    assert [e.attack for e in attack(problem, release, Midpoint(), AnalyticCentre())] == ["midpoint", "analytic centre"]
    assert {e.attack for e in attack(problem, release)} == set(ATTACKS)
    with pytest.raises(InvalidOption, match="AnalyticCentre"):
        attack(problem, release, AnalyticCentre)  # type: ignore[call-overload]
