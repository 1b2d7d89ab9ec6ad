"""Densities: counting, mean and peak; many programs, random centroids and random walks against cases known by hand."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tablesafe.attack import Density, HitAndRun, InteriorMean, Midpoint, RandomCentroid, VertexMean, attack
from tablesafe.attack.estimate import Tally
from tablesafe.attack.hit_and_run import convergence
from tablesafe.attack.suite import attack_table, density_table
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.report.plots import densities


def sum_of(values: dict[str, int], total: str = "t", **options: float) -> tuple[Problem, Release]:
    """Cells with a published sum; all of them hidden and sensitive."""
    table = Table.from_equations([f"{total} = {' + '.join(values)}"], {total: sum(values.values()), **values})
    hidden = np.arange(len(table)) > 0
    problem = Problem(table, sensitivity=Sensitivity.of(hidden, 1.0), **options)
    return problem, Release.from_suppression(problem, hidden)


THREE = sum_of({"x": 1, "y": 2, "z": 3})


def density_of(found: Density | None) -> Density:
    assert found is not None
    return found


# -- counting


def test_solutions_are_counted_in_tenths_of_the_range() -> None:
    tally = Tally(np.array([0.0, 10.0, 5.0, 0.0]), np.array([10.0, 20.0, 5.0, np.inf]))
    every = np.arange(4)
    for point in ([0, 10, 5, 1], [1, 20, 5, 2], [9.999, 15, 5, 3], [10, 15.5, 5, 4]):
        tally.add(np.array(point, dtype=float), every)
    found = tally.density()
    assert found.counts[0].tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    assert found.counts[1].tolist() == [1, 0, 0, 0, 0, 2, 0, 0, 0, 1]
    assert not found.counts[2:].any()
    assert found.mean[:3] == pytest.approx([(0 + 1 + 9.999 + 10) / 4, 15.125, 5])
    assert found.deviation[1] == pytest.approx(np.std([10, 20, 15, 15.5], ddof=1))
    assert found.peak[:3] == pytest.approx([9.5, 15.5, 5])
    assert np.isnan(found.mean[3])
    assert np.isnan(found.peak[3])
    assert found.edges[1] == pytest.approx(np.arange(10, 21))
    assert found.variation[2] == 0


def test_counting_many_at_once_is_counting_one_by_one() -> None:
    lower, upper, random = np.array([0.0, -5.0]), np.array([4.0, 5.0]), np.random.default_rng(1)
    places = random.random((50, 2))
    one, many = Tally(lower, upper), Tally(lower, upper)
    many.add_places(places, np.arange(2))
    for place in places:
        one.add(lower + place * (upper - lower), np.arange(2))
    assert np.array_equal(one.density().counts, many.density().counts)
    assert one.density().mean == pytest.approx(many.density().mean)
    assert one.density().deviation == pytest.approx(many.density().deviation)


# -- many programs


def test_eight_programs_over_three_cells_by_hand() -> None:
    """x + y + z = 6: each maximum is a corner with 6 in one cell, each minimum a corner with 0 in it."""
    estimate = attack(*THREE, VertexMean())
    found = density_of(estimate.density)
    assert estimate.note == "8 of 8 programs"
    assert found.solutions.tolist() == [8, 8, 8]
    assert found.counts[:, 1:9].sum() == 0  # only corners
    assert (found.counts[:, 9] >= 1).all()
    assert found.counts[:, 9].sum() == 8  # one cell holds it all, in each solution
    assert estimate.values[1:] == pytest.approx(6 * found.counts[:, 9] / 8)


def test_the_centres_of_the_faces_by_hand() -> None:
    """Minimum of x: y = z = 3. Maximum of x: the corner. The sum is fixed: the centre, twice."""
    estimate = attack(*THREE, InteriorMean(solutions="centres"))
    found = density_of(estimate.density)
    assert estimate.values[1:] == pytest.approx([2, 2, 2], abs=1e-4)
    # of eight solutions: 0 (own minimum, two other maxima), 3 twice, 6 once, 2 twice
    assert found.deviation == pytest.approx([np.std([0, 0, 0, 3, 3, 6, 2, 2], ddof=1)] * 3, abs=1e-3)


def test_an_infeasible_start_ends_within_the_optimal_face() -> None:
    found = density_of(attack(*THREE, InteriorMean()).density)
    assert (found.counts[:, 0] == 3).all()
    assert (found.counts[:, 9] == 1).all()


def test_cells_that_move_in_step_are_asked_once_and_counted_as_often_as_asked() -> None:
    """A 2×2 cycle: four cells with one degree of freedom, 2·(4 + 1) programs, half at either end."""
    table = Table.from_equations(
        ["r = a + b", "s = c + d", "u = a + c"], {"r": 15, "a": 10, "b": 5, "s": 15, "c": 7, "d": 8, "u": 17}
    )
    hidden = np.isin(np.arange(len(table)), [1, 2, 4, 5])
    problem = Problem(table, sensitivity=Sensitivity.of(hidden, 2.0))
    estimate = attack(problem, Release.from_suppression(problem, hidden), VertexMean())
    found = density_of(estimate.density)
    assert found.solutions.tolist() == [10] * 4
    assert found.counts[:, 1:9].sum() == 0
    assert sorted(found.counts[:, 0].tolist() + found.counts[:, 9].tolist())[0] >= 4


def test_components_have_programs_of_their_own() -> None:
    table = Table.from_equations(["s = a + b", "t = c + d"], {"s": 10, "a": 1, "b": 9, "t": 4, "c": 4, "d": 0})
    hidden = np.array([False, True, True, False, True, True])
    problem = Problem(table, sensitivity=Sensitivity.of(hidden, 1.0))
    estimate = attack(problem, Release.from_suppression(problem, hidden), VertexMean())
    assert density_of(estimate.density).solutions.tolist() == [6] * 4
    assert estimate.note == "12 of 12 programs"


def test_cells_without_an_end_are_skipped_and_their_neighbours_counted() -> None:
    table = Table.from_equations(["t = x + y", "s = y + z"], {"t": 9, "x": 6, "y": 3, "z": 1, "s": 4})
    hidden = np.array([True, True, True, True, False])
    problem = Problem(table, sensitivity=Sensitivity.of(hidden, 1.0))
    release = Release.from_suppression(problem, hidden)
    for method in (VertexMean(), InteriorMean(), RandomCentroid(draws=5), HitAndRun()):
        estimate = attack(problem, release, method)
        assert np.isnan(estimate.values[[0, 1]]).all()
    assert 0 <= attack(problem, release, VertexMean()).values[2] <= 4


# -- random centroids


def test_one_random_place_for_all_cells_of_a_cycle_is_additive_at_once() -> None:
    """x + y = 10: with one R the centroid is (10 (1 − R), 10 (1 − R)), and takes |10 − 20 (1 − R)| of change."""
    estimate = attack(*sum_of({"x": 4, "y": 6}), RandomCentroid(draws=400, common=True, seed=3))
    found = density_of(estimate.density)
    assert found.solutions.tolist() == [400, 400]
    assert estimate.values[1] + estimate.values[2] == pytest.approx(10)


def test_a_narrow_band_stays_near_the_middle() -> None:
    wide = density_of(attack(*THREE, RandomCentroid(draws=100)).density)
    narrow = density_of(attack(*THREE, RandomCentroid(draws=100, low=0.45, high=0.55)).density)
    assert (narrow.deviation[1:] <= wide.deviation[1:] + 1e-9).all()
    for options in ({"low": 0.6, "high": 0.4}, {"high": 1.5}, {"draws": 0}):
        with pytest.raises(InvalidOption):
            RandomCentroid(**options)


@pytest.mark.parametrize("method", [RandomCentroid(draws=10), HitAndRun(effective=50)], ids=lambda a: a.name)
def test_equal_seeds_give_equal_guesses(method: RandomCentroid | HitAndRun) -> None:
    one, two = attack(*THREE, method), attack(*THREE, method)
    other = attack(*THREE, type(method)(seed=99))
    assert np.array_equal(one.values, two.values)
    assert not np.array_equal(one.values, other.values)


# -- random walks


def test_hit_and_run_is_uniform_on_a_triangle() -> None:
    """x + y + z = 6, uniform: P(x > a) = (1 − a/6)², so each tenth has a known share."""
    estimate = attack(*THREE, HitAndRun(effective=4000))
    found = density_of(estimate.density)
    edges = np.arange(11) / 10
    share = (1 - edges[:-1]) ** 2 - (1 - edges[1:]) ** 2
    assert estimate.values[1:] == pytest.approx([2, 2, 2], abs=0.1)
    assert found.counts / found.solutions[:, None] == pytest.approx(np.tile(share, (3, 1)), abs=0.03)
    assert "effective draws" in estimate.note
    assert not estimate.note.startswith("only")


def test_hit_and_run_agrees_with_rejection_on_a_box_with_a_sum() -> None:
    """w + x + y + z = 10 with upper bounds: draws from the box of three, kept when the fourth fits."""
    top = np.array([np.inf, 2.0, 5.0, 6.0, 7.0])
    problem, release = sum_of({"w": 1, "x": 2, "y": 3, "z": 4}, upper=top)  # type: ignore[arg-type]
    found = density_of(attack(problem, release, HitAndRun(effective=3000)).density)
    box = np.random.default_rng(1).random((400_000, 3)) * top[1:4]
    last = 10 - box.sum(axis=1)
    kept = np.column_stack([box, last])[(last >= 0) & (last <= 7)]
    assert found.mean == pytest.approx(kept.mean(axis=0), abs=0.12)
    assert found.deviation == pytest.approx(kept.std(axis=0), rel=0.06)


def test_effective_sample_size_of_known_walks() -> None:
    random = np.random.default_rng(5)
    independent = random.standard_normal((4, 2000, 3))
    slow = np.empty((4, 2000, 1))
    state = random.standard_normal(4)
    for i in range(2000):
        state = 0.9 * state + np.sqrt(1 - 0.81) * random.standard_normal(4)
        slow[:, i, 0] = state
    size, ratio = convergence(independent)
    assert size == pytest.approx([8000] * 3, rel=0.15)
    assert (ratio < 1.01).all()
    size, ratio = convergence(slow)
    assert size == pytest.approx([8000 * 0.1 / 1.9], rel=0.35)  # (1 − ρ) / (1 + ρ)
    apart = independent[:, :, :1] + np.arange(4)[:, None, None] * 3
    assert convergence(apart)[1][0] > 1.5
    stuck = np.zeros((4, 100, 1))
    assert (convergence(stuck)[0][0], convergence(stuck)[1][0]) == (0, np.inf)


# -- layouts, plots


def test_layouts_and_the_missing_density() -> None:
    vertex, mean = attack(*THREE, VertexMean(estimate="peak")), attack(*THREE, VertexMean())
    frame = attack_table(vertex, mean, mean)
    assert frame.columns[1:6] == ["value", "protection", "lp_lower", "lp_upper", "simplex_null_objective"]
    assert frame.columns[-3:] == ["mean_8_lp", "stddev_8_lp", "cv_percent_8_lp"]
    counts = density_table(mean)["counts_in_10_equal_intervals"].to_list()
    assert [sum(map(int, row.split())) for row in counts] == [8, 8, 8]
    with pytest.raises(InvalidOption, match="no density"):
        density_table(attack(*THREE, Midpoint()))


def test_a_plot_is_drawn_and_written(tmp_path: Path) -> None:
    figure = densities(attack(*THREE, VertexMean()))
    figure.save(tmp_path / "d.svg")
    assert len(figure.axes) == 3
    assert (tmp_path / "d.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
    with pytest.raises(InvalidOption, match="density"):
        densities(attack(*THREE, Midpoint()))


def test_corners_of_every_sign_pattern_are_seen_by_walks_inside_bounds() -> None:
    """Every draw lies inside: the counts add up to the draws, for all shapes of small tables."""
    for first, second in product((1, 5), (2, 9)):
        problem, release = sum_of({"x": first, "y": second})
        found = density_of(attack(problem, release, HitAndRun(effective=100)).density)
        assert (found.solutions == found.solutions[0]).all()
        assert found.mean == pytest.approx([(first + second) / 2] * 2, rel=0.2)
