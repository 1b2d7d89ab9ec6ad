"""What the public may believe about true counts: the posterior against direct enumeration, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.core.errors import InvalidOption, InvalidRelease
from tablesafe.core.mechanism import Mechanism, Transition
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table


def listed(counts: np.ndarray) -> Table:
    """Counts and their total."""
    names = [f"c{i}" for i in range(len(counts))]
    values = dict(zip(names, counts.astype(float).tolist(), strict=True)) | {"t": float(counts.sum())}
    return Table.from_equations(["t = " + " + ".join(names)], values)


@st.composite
def transitions(draw: st.DrawFn) -> Transition:
    """Any rows of probabilities that make no count negative, the last one or more repeated."""
    low = draw(st.integers(-3, 0))
    rows, width = draw(st.integers(1 - low, 6)), draw(st.integers(2 - low, 7))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    chance = random.random((rows, width)) * (random.random((rows, width)) < 0.7)
    true, change = np.indices(chance.shape)
    chance[true + low + change < 0] = 0.0
    chance[:, -low] += 0.05  # no change at all is always possible
    period = draw(st.integers(1, rows + low))  # rows for counts that can change by any amount
    return Transition(chance / chance.sum(axis=1, keepdims=True), low, period)


def directly(transition: Transition, prior: list[float], published: int) -> np.ndarray:
    """The probability of each true count, by Bayes' rule over all of them."""
    rows, first = len(transition.rows), len(transition.rows) - transition.period
    weight = np.zeros(len(prior))
    for true, before in enumerate(prior):
        row = true if true < rows else first + (true - first) % transition.period
        change = published - true - transition.low
        if 0 <= change < transition.width:
            weight[true] = before * transition.rows[row, change]
    return weight / weight.sum()


@given(transitions(), st.integers(0, 10**6), st.sampled_from(["uniform", "given"]))
@settings(max_examples=60)
def test_the_posterior_is_that_of_bayes(transition: Transition, seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    table = listed(random.integers(0, 12, 8))
    cells = ~table.is_total
    drawn = transition.draw(table.integers, random.random(len(table)))
    values = np.where(cells, drawn, table.integers).astype(float)
    mask = cells & (random.random(len(table)) < 0.6)
    level = np.where(mask, random.integers(0, 3, len(table)), 0).astype(float)
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.minimum(level, table.value), level))
    lower, upper = np.where(cells, 0.0, values), np.where(cells, np.inf, values)
    status = np.full(len(table), Status.CHANGED, dtype=np.uint8)
    release = Release(table, values, lower, upper, status, mechanism=Mechanism.single(transition, cells))
    prior = [1.0] * 60 if kind == "uniform" else (random.random(60) + 0.01).tolist()
    found = ts.posterior(problem, release, prior="uniform" if kind == "uniform" else prior, level=0.8)
    assert found.cells.tolist() == np.flatnonzero(cells).tolist()
    true = np.arange(60)
    for k, cell in enumerate(found.cells):
        chance = directly(transition, prior, int(values[cell]))
        assert found.mean[k] == pytest.approx((chance * true).sum())
        assert found.certainty[k] == pytest.approx(chance.max())
        assert chance[found.mode[k]] == pytest.approx(chance.max())
        assert found.unchanged[k] == pytest.approx(chance[int(values[cell])])
        inside = chance[found.lower[k] : found.upper[k] + 1].sum()
        assert inside >= 0.8 - 1e-6
        length = found.upper[k] - found.lower[k]
        assert all(chance[start : start + length].sum() < 0.8 + 1e-6 for start in range(60))
        value, room = table.value[cell], level[cell]
        near = (true == value) | ((true > value - min(room, value)) & (true < value + room))
        if mask[cell]:
            assert found.near[k] == pytest.approx(chance[near].sum())
        else:
            assert np.isnan(found.near[k])


@given(st.integers(2, 12))
def test_random_rounding_is_unbiased_in_exact_numbers(base: int) -> None:
    transition = Transition.random_rounding(base)
    for residue, row in enumerate(transition.rows):
        chances = [Fraction(float(p)).limit_denominator(base) for p in row]
        assert sum(chances) == 1
        assert sum(p * (transition.low + k) for k, p in enumerate(chances)) == 0
        assert all((residue + transition.low + k) % base == 0 for k, p in enumerate(chances) if p)
    residue = np.arange(base)
    assert transition.variance() == pytest.approx(residue * (base - residue))


@given(st.integers(2, 12), st.integers(0, 200))
def test_conventional_rounding_goes_to_the_nearest_and_half_up(base: int, count: int) -> None:
    drawn = Transition.conventional_rounding(base).draw(np.array([count]), np.array([0.3]))[0]
    assert drawn == (2 * count + base) // (2 * base) * base


@given(transitions())
@settings(max_examples=20)
def test_draws_follow_the_probabilities(transition: Transition) -> None:
    n = 4_000
    chance = (np.arange(n) + 0.5) / n
    for true in range(len(transition.rows) + 3):
        drawn = transition.draw(np.full(n, true), chance)
        row = transition.rows[transition.row_of(np.array([true]))[0]]
        seen = np.bincount(drawn - true - transition.low, minlength=transition.width) / n
        assert seen == pytest.approx(row, abs=2 / n)
        assert transition.probability(np.full(n, true), drawn).min() > 0


def rounded() -> tuple[Problem, Release]:
    """A table of small counts rounded by chance."""
    random = np.random.default_rng(1)
    frame = pl.DataFrame(
        {"a": np.repeat(np.arange(20), 15).astype(str), "b": np.tile(np.arange(15), 20).astype(str)}
    ).with_columns(pl.Series("value", random.poisson(2.0, 300).astype(float)))
    table = Table.from_cells(frame, dimensions=["a", "b"], count="value", missing_totals="compute")
    problem = Problem(table, [ts.Threshold(n=3)])
    return problem, ts.Round(base=5, method="random", seed=2).protect(problem)


def test_beliefs_are_calibrated_under_the_counts_own_distribution() -> None:
    problem, release = rounded()
    found = ts.posterior(problem, release)
    right = (found.mode == problem.table.integers[found.cells]).mean()
    assert right == pytest.approx(found.certainty.mean(), abs=0.06)
    same = (release.values == problem.table.value)[found.cells].mean()
    assert same == pytest.approx(found.unchanged.mean(), abs=0.06)
    summary = found.summary()
    assert summary["cells"].to_list() == ["all", "sensitive"]
    assert summary["number"].to_list() == [len(found.cells), int(problem.sensitivity.mask.sum())]
    assert summary["truth in interval"][0] >= 0.9
    assert found.by_value()["published"].is_sorted()
    assert found.by_value()["cells"].sum() == len(found.cells)


def test_a_posterior_lies_in_what_the_release_implies() -> None:
    problem, release = rounded()
    found = ts.posterior(problem.replace(upper=np.maximum(problem.table.value, 6.0)), release)
    assert (found.lower >= release.lower[found.cells]).all()
    assert (found.upper <= np.minimum(release.upper, np.maximum(problem.table.value, 6.0))[found.cells]).all()


def test_the_frames_tell_cells_by_their_codes() -> None:
    problem, release = rounded()
    frame = ts.posterior(problem, release).frame(cells="sensitive")
    assert frame.columns[:5] == ["a", "b", "published", "true", "sensitive"]
    assert len(frame) == problem.sensitivity.mask.sum()
    assert frame["P(too near)"].null_count() == 0
    with pytest.raises(InvalidOption, match="'sensitive' or 'all'"):
        ts.posterior(problem, release).frame(cells="some")  # type: ignore[arg-type]


def test_totals_that_are_sums_went_through_no_chance_of_their_own() -> None:
    problem, _ = rounded()
    release = ts.Round(base=5, method="random", additive=True).protect(problem)
    found = ts.posterior(problem, release)
    assert found.cells.tolist() == np.flatnonzero(~problem.table.is_total).tolist()
    assert "sensitive" in str(found)


def test_the_mechanism_never_reaches_what_is_published() -> None:
    _, release = rounded()
    assert release.mechanism is not None
    assert release.frame().columns == ["a", "b", "value", "status"]


def test_what_was_known_before_is_still_known() -> None:
    """Bounds that the attacker had before the release hold for every true count that it believes in."""
    problem, release = rounded()
    truth = problem.table.value
    known = problem.replace(lower=np.maximum(truth - 1, 0.0), upper=truth + 1)
    found = ts.posterior(known, release, prior="uniform", level=0.999)
    cells = found.cells
    assert (found.lower >= known.lower[cells]).all()
    assert (found.upper <= known.upper[cells]).all()
    assert (found.upper > found.lower).any()


def test_of_equally_likely_counts_the_nearest_to_the_published_is_guessed() -> None:
    """Changes of −1, 0 and 1, all alike: under a flat prior nothing but nearness tells the three counts apart."""
    table = Table.from_cells(pl.DataFrame({"a": ["x", "y"], "n": [40, 60]}), dimensions=["a"], value="n",
                             missing_totals="compute")  # fmt: skip
    problem = Problem(table)
    third = ts.PerturbationTable.of([(1, [-1, 0, 1], [1 / 3, 1 / 3, 1 / 3])])
    release = ts.protect(problem, ts.CellKey(key=np.array([0.1, 0.1, 0.9]), perturbation=third))
    found = ts.posterior(problem, release, prior="uniform")
    assert found.mode.tolist() == found.published.tolist()


def test_a_release_without_chance_has_no_posterior() -> None:
    problem, _ = rounded()
    with pytest.raises(InvalidRelease, match="how chance changed"):
        ts.posterior(problem, ts.SmallCounts().protect(problem))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "flat"}, "'empirical', 'uniform'"),
        ({"prior": [0.5, -0.5]}, "0 or more"),
        ({"prior": []}, "0 or more"),
        ({"prior": [1.0]}, "could not have been published as"),
        ({"prior": ["many"]}, "0 or more"),
        ({"level": 1.0}, "between 0 and 1"),
        ({"level": "high"}, "between 0 and 1"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    problem, release = rounded()
    with pytest.raises(InvalidOption, match=message):
        ts.posterior(problem, release, **options)


def test_rows_must_be_probabilities_that_make_no_count_negative() -> None:
    with pytest.raises(InvalidOption, match=r"a count of 1 .* add up to 0.9"):
        Transition(np.array([[0.0, 1.0], [0.4, 0.5]]), -1)
    with pytest.raises(InvalidOption, match="count of 0 could become negative"):
        Transition(np.array([[0.5, 0.5]]), -1)
    with pytest.raises(InvalidOption, match="row per true count"):
        Transition(np.ones((1, 1)), 0, 2)
