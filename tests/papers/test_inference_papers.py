"""Cox, "Vulnerability of Complementary Cell Suppression to Intruder Attack": its examples, attacked as printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tablesafe as ts
from oracle.twoway import inner, square
from tablesafe.attack.reconstruction import Derived
from tablesafe.methods.intervals.draw import FACTOR, Reach, drawn, unbiased

CYCLE = ["X", "B", "C", "A"]
"""The inner cells of the printed 2×2 table, row by row."""


@pytest.fixture(scope="module")
def case(paper_data: Path) -> dict[str, Any]:
    return dict(json.loads((paper_data / "cox_vulnerability.json").read_text(encoding="utf-8")))


def cycle(printed: dict[str, Any], scale: float = 1.0) -> ts.Table:
    values = np.array([printed["cells"][name] for name in CYCLE], dtype=float).reshape(2, 2)
    table = square(scale * values)
    assert table.value[[2, 5]].tolist() == [scale * total for total in printed["row_totals"]]
    return table


def single(table: ts.Table) -> np.ndarray[Any, Any]:
    """Cell X alone: the sensitive one, with one contributor."""
    mask = np.zeros(len(table), np.bool_)
    mask[0] = True
    return mask


def protecting(table: ts.Table, level: float, **bounds: Any) -> ts.Problem:
    mask = single(table)
    return ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.where(mask, level, 0.0)), **bounds)


# -- the cycle: exact intervals, midpoints, bias


def test_every_cell_of_a_cycle_has_the_printed_interval_and_its_middle_is_off_by_the_same_amount(
    case: dict[str, Any],
) -> None:
    table = cycle(case["cycle_2x2"])
    problem = protecting(table, case["cycle_2x2"]["protection_of_X"])
    release = ts.Release.from_suppression(problem, inner(table))
    found = ts.reconstruct(release)
    printed = np.array([case["cycle_2x2"]["exact_intervals"][name] for name in CYCLE])
    np.testing.assert_allclose(np.stack([found.derived.lower, found.derived.upper], axis=1), printed)
    bias = found.derived.middle - table.value[found.derived.cells]
    # one degree of freedom, t in [−8, 5]: every middle is off by half of the sum of its ends, in turns up and down
    np.testing.assert_allclose(bias, [-1.5, 1.5, 1.5, -1.5])
    assert found.additive
    assert not found.betrayed  # intervals that reach down to zero betray nothing


def test_the_same_pattern_with_another_value_does_not_protect(case: dict[str, Any]) -> None:
    table = cycle(case["cycle_2x2_unprotected"])
    problem = protecting(table, case["cycle_2x2"]["protection_of_X"])
    findings = ts.audit(problem, ts.Release.from_suppression(problem, inner(table)))
    assert not findings.safe
    assert findings.value[0] - findings.lower[0] == 1


# -- p: bounds, shrinking, recovery


def test_one_contributor_bounds_p_and_a_known_p_shrinks_every_interval(case: dict[str, Any]) -> None:
    table = cycle(case["cycle_2x2"])
    release = ts.Release.from_suppression(ts.Problem(table), inner(table))
    found = ts.infer_p(release, one=single(table))
    assert found.upper == pytest.approx(100 * (15 - 2) / (15 + 2))
    shrunk = ts.shrink(release, 20, one=single(table))
    assert shrunk.lower[0] == pytest.approx(2 / (1 - 0.2))
    assert shrunk.upper[0] == pytest.approx(15 / (1 + 0.2))
    # X and its neighbours add up to 15 and 17: their intervals follow
    np.testing.assert_allclose(shrunk.lower[1:3], [15 - 12.5, 17 - 12.5], rtol=1e-9)
    np.testing.assert_allclose(shrunk.upper[1:3], [15 - 2.5, 17 - 2.5], rtol=1e-9)
    assert ts.shrink(release, 77, one=single(table)).refuted
    assert not ts.shrink(release, 76, one=single(table)).refuted


def test_p_and_the_value_are_recovered_when_protection_is_just_enough() -> None:
    """X = 100 may move by 10 either way and no further: its interval tells p, and p tells the value."""
    table = square(np.array([[100.0, 10.0], [25.0, 10.0]]))
    problem = protecting(table, 10)
    release = ts.Release.from_suppression(problem, inner(table))
    found = ts.infer_p(release, one=single(table))
    assert found.upper == pytest.approx(10)
    assert ts.trial_p(release, single(table)).range.upper == pytest.approx(10)
    shrunk = ts.shrink(release, found.upper, one=single(table))
    np.testing.assert_allclose(shrunk.values, table.value, rtol=1e-9)


# -- p/q: exact intervals reconstruct everything


@pytest.mark.parametrize("q", [0.1, 0.25, 0.37, 0.5])
def test_exact_intervals_under_a_pq_rule_reconstruct_every_value_and_q(case: dict[str, Any], q: float) -> None:
    table = cycle(case["cycle_2x2"], scale=100)
    problem = protecting(table, 50, lower=table.value * (1 - q), upper=table.value * (1 + q))
    release = ts.PublishIntervals(kind="exact", pattern=inner(table)).protect(problem)
    # as printed: b is the smallest cell, q = (u_B − l_B)/(u_B + l_B), b = l_B/(1 − q), x = l_X + q·b
    lower, upper = release.lower[inner(table)], release.upper[inner(table)]
    smallest = int(np.argmin(lower))
    recovered = (upper[smallest] - lower[smallest]) / (upper[smallest] + lower[smallest])
    assert recovered == pytest.approx(q, rel=1e-9)
    np.testing.assert_allclose(lower + recovered * lower[smallest] / (1 - recovered), table.value[inner(table)])
    found = ts.reconstruct(release)
    assert (found.prior, found.betrayed) == ("percent", True)
    assert found.q == pytest.approx(100 * q, rel=1e-9)
    np.testing.assert_allclose(found.values, table.value, rtol=1e-9)
    leaks = ts.check_intervals(problem, release)
    assert leaks.values_leak
    assert leaks.q_leaks
    assert not leaks.safe


def test_any_symmetric_knowledge_makes_every_middle_the_truth() -> None:
    """The theorem, in a table with many degrees of freedom and a radius of its own for each cell."""
    random = np.random.default_rng(1)
    table = square(random.integers(50, 900, size=(5, 6)).astype(float))
    radius = random.integers(1, 40, size=len(table)).astype(float)
    problem = ts.Problem(table, lower=table.value - radius, upper=table.value + radius)
    release = ts.PublishIntervals(kind="exact", pattern=inner(table)).protect(problem)
    found = ts.reconstruct(release)
    assert found.additive
    np.testing.assert_allclose(found.values, table.value, rtol=1e-9)
    assert ts.check_intervals(problem, release, one=single(table)).reconstruction.prior == "none"


# -- tables 3 and 4: cells that are given away


def test_table_4_gives_away_one_cell_and_nothing_is_left_to_guess_there(case: dict[str, Any]) -> None:
    printed = case["table_4_4x4"]
    table, mask, given = _table_4(printed)
    release = ts.Release.from_suppression(ts.Problem(table), mask)
    found = ts.reconstruct(release).derived
    at = {int(cell): k for k, cell in enumerate(found.cells)}
    known = [cell for cell, k in at.items() if found.lower[k] == found.upper[k]]
    assert [table.value[cell] for cell in known] == list(printed["disclosed"].values())
    assert known == [given]


def _table_4(printed: dict[str, Any]) -> tuple[ts.Table, np.ndarray[Any, Any], int]:
    """Any table with the printed totals and published cells serves: what can be derived does not depend on the rest."""
    from scipy.optimize import linprog

    rows, columns = printed["row_totals"], printed["column_totals"]
    fixed = {tuple(int(k) - 1 for k in key.split(",")): value for key, value in printed["published"].items()}
    equations, totals = [], []
    for axis, sums in ((0, rows), (1, columns)):
        for k, total in enumerate(sums):
            row = np.zeros((4, 4))
            row[(k, slice(None)) if axis == 0 else (slice(None), k)] = 1
            equations.append(row.ravel())
            totals.append(total)
    bounds = [(fixed[i, j],) * 2 if (i, j) in fixed else (0, None) for i in range(4) for j in range(4)]
    answer = linprog(np.arange(16.0), A_eq=np.array(equations), b_eq=totals, bounds=bounds, method="highs")
    values = np.rint(answer.x).reshape(4, 4)
    table = square(values)
    mask = np.zeros((5, 5), np.bool_)
    for key in printed["suppressed"]:
        mask[tuple(int(k) - 1 for k in key.split(","))] = True
    (given,) = (5 * (int(key[0]) - 1) + int(key[2]) - 1 for key in printed["disclosed"])
    return table, mask.ravel(), given


# -- the asymmetric procedure


@pytest.mark.parametrize(("scale", "draws"), [(1, 100), (100, 1000)])
def test_asymmetric_intervals_defeat_the_midpoint_attack(case: dict[str, Any], scale: float, draws: int) -> None:
    """Right on average within three standard errors, and never exact: neither as published nor jointly."""
    table = cycle(case["cycle_2x2"], scale=scale)
    problem = protecting(table, scale * case["cycle_2x2"]["protection_of_X"])
    pattern, cells = ts.Release.from_suppression(problem, inner(table)), np.flatnonzero(inner(table))
    room = Reach.of(problem, pattern, 0.05)
    assert unbiased(room.wider(*FACTOR[::-1]), 3.0).all()
    published, jointly = [], []
    for seed in range(draws):
        release = drawn(problem, pattern, room, 3.0, np.random.default_rng(seed))
        published.append((release.lower[cells] + release.upper[cells]) / 2 - table.value[cells])
        if seed < 100:  # an intruder puts all intervals and sums together first
            jointly.append(Derived.of(release).middle - table.value[cells])
    for off in (np.array(published), np.array(jointly)):
        standard_error = off.std(axis=0, ddof=1) / np.sqrt(len(off))
        assert (np.abs(off.mean(axis=0)) <= 3 * standard_error).all()
        assert (np.abs(off) > 1e-9).all()


def test_the_method_draws_the_same_way_and_is_safe_every_time(case: dict[str, Any]) -> None:
    table = cycle(case["cycle_2x2"])
    problem = protecting(table, case["cycle_2x2"]["protection_of_X"])
    for seed in range(10):
        method = ts.PublishIntervals(kind="asymmetric", pattern=inner(table), seed=seed)
        release = method.protect(problem)
        assert ts.audit(problem, release).safe
        assert (release.lower[inner(table)] + release.upper[inner(table)] != 2 * table.value[inner(table)]).all()
        again = method.protect(problem)
        np.testing.assert_array_equal(release.lower, again.lower)
        np.testing.assert_array_equal(release.upper, again.upper)
