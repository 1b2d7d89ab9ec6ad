"""What is found about p holds for the office's p; what p says about the values holds for the values."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import tablesafe as ts
from oracle.twoway import inner, possible, square
from tablesafe.core.errors import InvalidOption


def primary_at(table: ts.Table, cells: list[int]) -> np.ndarray[Any, Any]:
    mask = np.zeros(len(table), np.bool_)
    mask[cells] = True
    return mask


SMALL = st.lists(st.lists(st.integers(1, 12), min_size=3, max_size=3), min_size=3, max_size=3)


@settings(max_examples=20)
@given(SMALL, st.sampled_from([10.0, 20.0, 35.0]))
def test_shrunk_intervals_are_those_of_all_tables_that_the_known_p_allows(values: list[list[int]], p: float) -> None:
    """By enumeration: among all possible tables, those in which cell (1,1) is protected by p of its own value."""
    table = square(values)
    mask = np.zeros((4, 4), np.bool_)
    mask[:2, :2] = True
    release = ts.Release.from_suppression(ts.Problem(table), mask.ravel())
    one = primary_at(table, [0])
    everything = possible(release)
    low, high = everything[:, 0].min(), everything[:, 0].max()
    shrunk = ts.shrink(release, p, one=one)
    allowed = everything[
        (everything[:, 0] * (1 - p / 100) >= low - 1e-9) & (everything[:, 0] * (1 + p / 100) <= high + 1e-9)
    ]
    if not len(allowed):
        return  # only fractions, or nothing at all
    assert not shrunk.refuted
    cells = shrunk.cells
    assert (allowed[:, cells] >= shrunk.lower - 1e-6).all()
    assert (allowed[:, cells] <= shrunk.upper + 1e-6).all()
    assert (shrunk.lower <= allowed[:, cells].min(axis=0) + 1e-6).all()
    # whole tables come within one of the ends: X runs through whole numbers, and everything moves with it
    assert (allowed[:, cells].min(axis=0) - shrunk.lower < 1 + 1e-6).all()
    assert (shrunk.upper - allowed[:, cells].max(axis=0) < 1 + 1e-6).all()


@settings(max_examples=15)
@given(SMALL, st.floats(2, 40))
def test_whoever_is_protected_stays_inside_and_p_below_its_bound(values: list[list[int]], p: float) -> None:
    table = square(np.array(values) * 10)
    one = primary_at(table, [0])
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(one, np.where(one, p / 100 * table.value, 0.0)))
    release = ts.Release.from_suppression(problem, inner(table))
    assume(ts.audit(problem, release).safe)
    found = ts.infer_p(release, one=one)
    assert p in found
    shrunk = ts.shrink(release, p, one=one)
    truth = table.value[shrunk.cells]
    assert ((shrunk.lower <= truth + 1e-6) & (truth <= shrunk.upper + 1e-6)).all()
    assert (shrunk.narrowed >= -1e-9).all()


def test_two_contributors_show_half_of_p_unless_the_office_takes_p_of_the_whole_cell() -> None:
    """50 + 50 protected by 10% of one of them: the printed bound for two contributors would be p ≤ 5%, and wrong."""
    table = square([[100, 5], [5, 5]])
    two = primary_at(table, [0])
    release = ts.Release.from_suppression(ts.Problem(table), inner(table))
    none = np.zeros(len(table), np.bool_)
    assert ts.infer_p(release, one=none, two=two).upper == pytest.approx(10)
    assert ts.infer_p(release, one=none, two=two, of="value").upper == pytest.approx(5)


def test_cells_with_few_contributors_are_known_from_the_counts() -> None:
    table = square([[100, 5], [5, 5]])
    count = np.full(len(table), 9)
    count[0] = 1
    counted = replace(table, count=count)
    release = ts.Release.from_suppression(ts.Problem(counted), inner(table))
    assert ts.infer_p(release).upper == pytest.approx(5)
    assert ts.infer_p(ts.Release.from_suppression(ts.Problem(table), inner(table))).upper == 100  # nobody is known


def test_a_guess_that_is_too_large_moves_intervals_away_or_is_refuted() -> None:
    """X = 10 in [2, 15]: with p = 60 an intruder believes X ≤ 9.375, and is wrong; with 77 it sees that it is wrong."""
    table = square([[10, 5], [7, 8]])
    release = ts.Release.from_suppression(ts.Problem(table), inner(table))
    one = primary_at(table, [0])
    wrong = ts.shrink(release, 60, one=one)
    np.testing.assert_allclose(
        [wrong.lower[0], wrong.upper[0], wrong.lower[1], wrong.upper[1]],
        [5, 9.375, 15 - 9.375, 10],
        rtol=1e-6,
    )
    refuted = ts.shrink(release, 77, one=one)
    assert refuted.refuted
    assert np.isnan(refuted.lower).all()


def test_options_are_checked() -> None:
    table = square([[10, 5], [7, 8]])
    release = ts.Release.from_suppression(ts.Problem(table), inner(table))
    with pytest.raises(InvalidOption, match="below 100"):
        ts.shrink(release, 100)
    with pytest.raises(InvalidOption, match="booleans"):
        ts.infer_p(release, one=np.array([1, 2]))
    with pytest.raises(InvalidOption, match="'largest'"):
        ts.infer_p(release, of="nonsense")  # type: ignore[arg-type]


# -- trial protection


def largest_p(tables: np.ndarray[Any, Any], truth: np.ndarray[Any, Any], cell: int) -> float:
    """Up to which p the tables an intruder cannot rule out protect one cell."""
    low, high, value = tables[:, cell].min(), tables[:, cell].max(), truth[cell]
    return float(100 * min(value - low, high - value) / value)


@settings(max_examples=5)
@given(SMALL)
def test_the_bracket_of_p_is_the_one_found_by_enumeration(values: list[list[int]]) -> None:
    """The upper end: how far the pattern protects. The lower end: how far it would with one cell less."""
    table = square(values)
    mask = np.zeros((4, 4), np.bool_)
    mask[:2, :2] = True
    mask[0, 2] = mask[2, 2] = mask[2, 0] = True
    pattern = mask.ravel()
    problem, one = ts.Problem(table), primary_at(table, [0])
    release = ts.Release.from_suppression(problem, pattern)
    found = ts.trial_p(release, one)
    upper = largest_p(possible(release), table.value, 0)
    lower = 0.0
    for cell in np.flatnonzero(pattern & ~one):
        less = pattern.copy()
        less[cell] = False
        lower = max(lower, largest_p(possible(ts.Release.from_suppression(problem, less)), table.value, 0))
    assert found.upper[0] == pytest.approx(min(upper, 100))
    assert found.lower[0] == pytest.approx(min(lower, upper, 100))


def test_an_intruder_with_many_tables_in_mind_keeps_those_that_can_have_led_to_the_pattern() -> None:
    table = square([[30, 20, 40], [25, 60, 35], [15, 45, 50]])
    one = primary_at(table, [0])
    mask = np.zeros((4, 4), np.bool_)
    mask[:2, :2] = True
    release = ts.Release.from_suppression(ts.Problem(table), mask.ravel())
    tables = ts.candidate_tables(release, 30, seed=4)
    found = ts.trial_p(release, one, tables)
    alone = ts.trial_p(release, one)
    assert found.range.lower <= alone.range.lower + 1e-9 or not found.possible.any()
    assert (found.upper[found.possible] > found.lower[found.possible]).all()
    with pytest.raises(InvalidOption, match="add up"):
        ts.trial_p(release, one, tables + 1)


def test_trial_protection_by_the_offices_own_method_brackets_p() -> None:
    """The office withholds the cheapest rectangle in which cell (1,1) can move by p of its value, by hand."""
    table = square([[100, 12, 30, 60], [12, 50, 40, 30], [30, 40, 50, 20], [60, 30, 20, 90]])
    width = 5

    def office(given: ts.Table, p: float) -> np.ndarray[Any, Any]:
        grid = given.value.reshape(width, width)
        best, cost = (1, 1), np.inf
        for i, j in product(range(1, width - 1), repeat=2):
            if min(grid[0, j], grid[i, 0]) >= p / 100 * grid[0, 0] and grid[i, j] >= p / 100 * grid[0, 0]:
                price = grid[0, j] + grid[i, 0] + grid[i, j]
                if price < cost:
                    best, cost = (i, j), price
        mask = np.zeros((width, width), np.bool_)
        mask[np.ix_([0, best[0]], [0, best[1]])] = True
        return mask.ravel()

    release = ts.Release.from_suppression(ts.Problem(table), office(table, 20))
    found = ts.trial_p_by_method(release, office, table, cost=table.value)
    assert found.lower == pytest.approx(12, abs=2e-3)
    assert found.upper == pytest.approx(30, abs=2e-3)
    assert 20 in found


SIX = [
    [200, 36, 120, 90, 150, 80], [44, 60, 70, 30, 25, 90], [130, 55, 120, 75, 60, 45],
    [95, 40, 65, 85, 50, 35], [110, 75, 30, 45, 140, 60], [70, 20, 95, 55, 40, 100],
]  # fmt: skip


def cheapest_rectangle(grid: np.ndarray[Any, Any], need: float) -> tuple[float, float, np.ndarray[Any, Any]]:
    """The cheapest rectangle in which the first cell can move by `need` either way: cost, how far it can, cells."""
    best: tuple[float, float, np.ndarray[Any, Any]] | None = None
    for i, j in product(range(1, grid.shape[0] - 1), range(1, grid.shape[1] - 1)):
        room = min(grid[0, 0], grid[0, j], grid[i, 0], grid[i, j])
        price = grid[0, 0] + grid[0, j] + grid[i, 0] + grid[i, j]
        if room >= need - 1e-9 and (best is None or price < best[0]):
            mask = np.zeros(grid.shape, np.bool_)
            mask[np.ix_([0, i], [0, j])] = True
            best = price, room, mask.ravel()
    assert best is not None
    return best


def test_a_cycle_of_four_cells_tells_p_from_below_by_itself_and_through_the_method() -> None:
    """Whichever of four cells is published gives all away: only what is cheaper tells that p is not small."""
    table = square(SIX)
    grid, p, one = table.value.reshape(7, 7), 20.0, primary_at(table, [0])
    paid, room, pattern = cheapest_rectangle(grid, p / 100 * grid[0, 0])
    release = ts.Release.from_suppression(ts.Problem(table), pattern)
    rooms = sorted({float(x) for x in grid[:-1, :-1].ravel()})
    cheaper = max(100 * r / grid[0, 0] for r in rooms if cheapest_rectangle(grid, min(r, room))[0] < paid)
    assert 5 < cheaper < p

    found = ts.trial_p(release, one)
    assert found.lower[0] == 0.0  # nothing is withheld in vain
    assert found.cheaper[0] == pytest.approx(cheaper)
    assert found.range.lower == pytest.approx(cheaper)
    assert found.range.upper == pytest.approx(100 * room / grid[0, 0])
    assert p in found.range
    assert ts.trial_p(release, one, cost=None).range.lower == 0.0

    def protect(problem: ts.Problem) -> ts.Release:
        values = problem.table.value.reshape(7, 7)
        return ts.Release.from_suppression(problem, cheapest_rectangle(values, problem.sensitivity.upper[0])[2])

    for known in (p, None):
        office = ts.known_office(ts.Problem(table), one, known, protect)
        told = ts.trial_p_by_method(release, office, table, cost=table.value)
        assert told.lower == pytest.approx(cheaper, abs=2e-3)
        assert p in told
        if known is not None:  # the same office matches patterns
            assert ts.match_pattern(release, office, tables=table.value[None, :]).share == 1.0


def test_p_is_bounded_from_below_through_the_real_method() -> None:
    """The office withholds by `ts.Suppress` with p = 20: an intruder brackets p by itself and by asking the method."""
    table = square(SIX)
    one, method = primary_at(table, [0]), ts.Suppress(cost="value", time_limit_s=20)
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(one, np.where(one, 0.2 * table.value, 0.0)))
    release = ts.protect(problem, method)
    alone = ts.trial_p(release, one).range
    office = ts.known_office(ts.Problem(table), one, None, lambda asked: ts.protect(asked, method))
    told = ts.trial_p_by_method(release, office, table, cost=table.value)
    for found in (alone, told):
        assert 5 < found.lower < 20
        assert 20 in found
    less = ts.Sensitivity.of(one, np.where(one, (alone.lower - 0.5) / 100 * table.value, 0.0))
    cheaper = ts.protect(ts.Problem(table, sensitivity=less), method)
    assert table.value[cheaper.suppressed].sum() < table.value[release.suppressed].sum(), "what a smaller p would cost"


@pytest.mark.parametrize("seed", [1, 6, 8])
def test_no_more_can_be_said_of_p_than_cheaper_patterns_say(seed: int) -> None:
    """The cheapest pattern for the next level costs as much as the release: 0 is the truth where a bound is 0."""
    table = square(np.random.default_rng(seed).integers(10, 300, (6, 6)).tolist())
    one, method = primary_at(table, [0]), ts.Suppress(algorithm="optimal", cost="value", time_limit_s=20)

    def cheapest(level: float) -> ts.Release:
        sensitivity = ts.Sensitivity.of(one, np.where(one, level, 0.0))
        return ts.protect(ts.Problem(table, sensitivity=sensitivity), method)

    def paid(level: float) -> float:
        return float(table.value[cheapest(level).suppressed].sum())

    x = table.value[0]
    release = cheapest(np.ceil(0.2 * x))
    found = ts.trial_p(release, one).range
    reached = round(found.lower / 100 * x)
    assert (reached == 0) == (seed == 8)
    assert paid(reached + 1) == table.value[release.suppressed].sum()
    assert reached == 0 or paid(reached) < table.value[release.suppressed].sum()
    assert 20 in found


def furthest(grid: np.ndarray[Any, Any], pattern: np.ndarray[Any, Any]) -> float:
    """Up to which p a pattern of inner cells protects the first one, by two linear programs."""
    size = grid.shape[0]
    lines = [np.eye(size)[:, i : i + 1] * np.ones((1, size)) for i in range(size)]
    equations = np.array([line.ravel() for line in [*lines, *(line.T for line in lines)]])[:, pattern]
    known = equations @ grid.ravel()[pattern]
    first = np.zeros(int(pattern.sum()))
    first[0] = 1
    low, high = (
        sign * linprog(sign * first, A_eq=equations, b_eq=known, bounds=(0, None), method="highs").fun
        for sign in (1, -1)
    )
    return float(100 * min(grid[0, 0] - low, high - grid[0, 0]) / grid[0, 0])


@settings(max_examples=4)
@given(st.lists(st.integers(10, 300), min_size=9, max_size=9), st.sampled_from([10.0, 20.0, 30.0]))
def test_the_bound_by_cheaper_patterns_holds_for_an_office_that_takes_the_cheapest(cells: list[int], p: float) -> None:
    """All 256 patterns of the other eight inner cells, by brute force: the office takes the cheapest that protects."""
    grid = np.array(cells, dtype=float).reshape(3, 3)
    patterns = np.array([(True, *rest) for rest in product([False, True], repeat=8)])
    reached = np.array([furthest(grid, pattern) for pattern in patterns])
    price = patterns @ grid.ravel()
    assume(bool((reached >= p).any()))
    chosen = int(np.flatnonzero(reached >= p)[np.argmin(price[reached >= p])])
    best = reached[price < price[chosen] - 1e-9].max(initial=0.0)
    table = square(grid)
    mask = np.zeros((4, 4), np.bool_)
    mask[:3, :3] = patterns[chosen].reshape(3, 3)
    found = ts.trial_p(ts.Release.from_suppression(ts.Problem(table), mask.ravel()), primary_at(table, [0]))
    assert found.cheaper[0] <= best + 1e-6
    assert best < p
    assert p in found.range


def test_an_office_that_takes_no_p_is_refused_in_words() -> None:
    table = square([[10, 5], [7, 8]])
    release = ts.Release.from_suppression(ts.Problem(table), inner(table))
    with pytest.raises(InvalidOption, match="takes a table only"):
        ts.trial_p_by_method(release, lambda given: inner(given), table)  # type: ignore[call-arg, arg-type]
    with pytest.raises(InvalidOption, match="has no p of its own"):
        ts.known_office(ts.Problem(table), primary_at(table, [0]), None, lambda problem: release)(table)
    with pytest.raises(InvalidOption, match="'value', 'unit'"):
        ts.trial_p(release, primary_at(table, [0]), cost="nonsense")  # type: ignore[arg-type]


def test_the_middles_of_shrunk_intervals_are_one_of_the_attacks_on_a_release() -> None:
    """X = 100 in [90, 110]: the largest p that can be, 10, makes it a point. Without counts nobody is known."""
    table = square([[100, 10], [25, 10]])
    count = np.full(len(table), 9)
    count[0] = 1
    counted = replace(table, count=count)
    one = primary_at(table, [0])
    problem = ts.Problem(counted, sensitivity=ts.Sensitivity.of(one, np.where(one, 10.0, 0.0)))
    release = ts.Release.from_suppression(problem, inner(table))
    estimate = ts.attack(problem, release, ts.ShrunkMidpoint())
    np.testing.assert_allclose(estimate.values, table.value, rtol=1e-9)
    assert estimate.note == "p = 10%"
    assert "refuted" in ts.attack(problem, release, ts.ShrunkMidpoint(p=50)).note
    plain = ts.Problem(table)
    nobody = ts.attack(plain, ts.Release.from_suppression(plain, inner(table)), ts.ShrunkMidpoint())
    np.testing.assert_allclose(nobody.values[0], 100)
    assert nobody.note == "no interval tells p"


def test_large_tables_are_shrunk_and_searched(instances: Path) -> None:
    """Sensitive by 10% of the value: p is found to be no less, and every value stays inside what it leaves."""
    problem = ts.read_jj(instances / "bench" / "2d_20.jj.gz")
    hidden = ~problem.frozen & ~problem.table.is_total
    release = ts.Release.from_suppression(problem, hidden)
    one = problem.sensitivity.mask & hidden
    assert ts.infer_p(release, one=one).upper >= 10
    shrunk = ts.shrink(release, 10, one=one)
    truth = problem.table.value[shrunk.cells]
    assert ((shrunk.lower <= truth + 1e-6) & (truth <= shrunk.upper + 1e-6)).all()
    assert not ts.reconstruct(release).betrayed
