"""Densities of single cells and measures of releases as plain numbers: what the app keeps, and draws later."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from report_cases import made

import tablesafe as ts
from tablesafe.attack.estimate import INTERVALS, Estimate
from tablesafe.core.errors import InvalidOption
from tablesafe.report.frontier import Frontier, Measured, Measures, frontier, method_words
from tablesafe.report.plots.densities import CellDensity, cell_densities, cell_density, densities

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    case = made("suppress")
    found = ts.attack(case.problem, case.release, ts.RandomCentroid(seed=3))
    assert isinstance(found, Estimate)
    return found


def test_a_density_is_what_the_attack_counted(estimate: Estimate) -> None:
    found, every = cell_densities(estimate, 10**6)
    assert len(found) == every > 0
    assert estimate.density is not None
    place = {estimate.problem.table.describe(int(cell)).strip("()'"): i for i, cell in enumerate(estimate.unknown)}
    for each in found:
        i = place[each.cell]
        assert list(each.counts) == estimate.density.counts[i].tolist()
        assert len(each.counts) == INTERVALS
        assert np.allclose(each.edges, estimate.density.edges[i])
        assert each.band[0] <= each.truth <= each.band[1]
        assert each.lower <= each.truth <= each.upper
    assert cell_densities(estimate, 2) == (found[:2], every)


def test_the_cells_in_most_danger_come_first(estimate: Estimate) -> None:
    off = [
        abs(each.guess - each.truth) / max(each.truth - each.band[0], 1e-9) for each in cell_densities(estimate, 99)[0]
    ]
    assert off == sorted(off)


def test_a_density_survives_json_and_is_drawn_with_words(estimate: Estimate) -> None:
    first = cell_densities(estimate, 1)[0][0]
    again = CellDensity(**json.loads(json.dumps(asdict(first))))
    plot = cell_density(again)
    assert plot.internal
    assert plot.alt == str(first)
    assert f"The true value is {first.truth:,.0f}" in plot.alt
    assert ("inside" if first.disclosed else "outside") in plot.alt
    svg = plot.svg()
    assert svg.startswith("<svg")
    assert 'role="img"' in svg
    assert densities(estimate, most=2).alt.startswith("Histograms")


def test_an_attack_with_one_solution_has_no_density() -> None:
    case = made("suppress")
    found = ts.attack(case.problem, case.release, ts.Midpoint())
    with pytest.raises(InvalidOption, match="one solution only"):
        cell_densities(found, 3)


def test_measures_alone_say_what_the_frontier_says() -> None:
    """Through JSON, as the app keeps them: same points, same efficient ones, same picture."""
    case = made("suppress")
    releases = {"suppress": case.release, "withhold": ts.protect(case.problem, ts.Withhold())}
    found = frontier(case.problem, releases, attacks=("midpoint",), risk="open")
    assert isinstance(found, Frontier)
    rows = json.loads(json.dumps([each.row() for each in found.measured]))
    alone = Measures(tuple(rows), "value", "open")
    assert alone.names == ["suppress", "withhold"]
    assert np.allclose(alone.loss, found.loss)
    assert np.allclose(alone.risk, found.risk)
    assert alone.efficient.tolist() == found.efficient.tolist()
    assert ts.plots.frontier(alone).svg() == ts.plots.frontier(found).svg()


def test_a_release_is_measured_by_the_rules_of_another_problem() -> None:
    """Twice the levels, the same cells: what was just hidden is open by the stricter rules."""
    case = made("suppress")
    levels = case.problem.sensitivity
    strict = case.problem.replace(sensitivity=ts.Sensitivity.of(levels.mask, 40.0 * levels.upper))
    mild = Measured.of("mild", case.problem, case.release, ("midpoint",), 1, 10.0).row()
    hard = Measured.of("hard", strict, case.release, ("midpoint",), 1, 10.0).row()
    assert mild["percent open"] == 0.0 < hard["percent open"]
    assert mild["percent of value lost"] == hard["percent of value lost"]


def test_a_method_is_called_by_what_is_special_about_it() -> None:
    assert method_words(ts.Round(base=7)) == "round base=7"
    assert method_words(ts.Suppress()) == "suppress"
