"""Relaxed protection: what is drawn, what is compared, and which release is taken."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.methods.adjust.relaxed import Simulations

REGIONS = ts.Hierarchy.from_pairs([("T", "N"), ("T", "S"), ("N", "n1"), ("N", "n2"), ("S", "s1"), ("S", "s2")])


def problem_of(seed: int) -> ts.Problem:
    """A random table with a hierarchy; a third of its cells is sensitive, by a fifth of the value."""
    random = np.random.default_rng(seed)
    places = list(product(["n1", "n2", "s1", "s2"], ["x", "y", "z"]))
    values = np.rint(10.0 ** (2 + 2 * random.random(len(places))))
    frame = pl.DataFrame({"region": [r for r, _ in places], "kind": [k for _, k in places], "value": values})
    table = ts.Table.from_cells(frame, dimensions={"region": REGIONS, "kind": None}, missing_totals="compute")
    mask = (random.random(len(table)) < 0.3) & ~table.is_total
    return ts.Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(0.2 * table.value)))


def method(share: float = 50.0, releases: int = 6, **options: object) -> ts.Adjust:
    relaxed = ts.Relaxed(share_percent=share, releases=releases, **options)  # type: ignore[arg-type]
    return ts.Adjust(cost="constant", directions="random", tries=2, relaxed=relaxed, seed=3)


@given(st.integers(0, 2**32), st.sampled_from([20.0, 50.0, 100.0]))
@settings(max_examples=12)
def test_every_sensitive_cell_moves_by_a_part_of_its_level(seed: int, share: float) -> None:
    problem = problem_of(seed)
    assume(problem.sensitivity.mask.any())
    try:
        simulations = method(share, releases=3).simulate(problem)
    except InvalidProblem:
        assume(False)
    level = problem.sensitivity.upper
    for release in simulations.releases:
        moves = release.values.astype(np.int64) - problem.table.integers
        assert not (problem.table.equations.astype(np.int64) @ moves).any()
        assert (np.abs(moves) >= share / 100 * level - 1e-9)[problem.sensitivity.mask].all()
    assert (simulations.frame()["least share"] >= share / 100 - 1e-9).all()


@pytest.fixture(scope="module")
def simulations() -> Simulations:
    return method().simulate(problem_of(1))


def test_amounts_are_drawn_and_less_is_changed_than_in_full(simulations: Simulations) -> None:
    frame = simulations.frame()
    assert frame.height == 6
    assert frame["quantity changed"].n_unique() > 1
    problem = simulations.problem
    cells = problem.sensitive
    shares = np.concatenate(
        [np.abs(r.values - problem.table.value)[cells] / problem.sensitivity.upper[cells] for r in simulations.releases]
    )
    assert shares.min() < 0.9
    assert len(np.unique(shares.round(3))) > len(cells)
    full = ts.Adjust(cost="constant", directions="search").protect(problem)
    assert frame["quantity changed"].min() < np.abs(full.values - problem.table.value).sum()


def test_the_frame_says_what_the_releases_are(simulations: Simulations) -> None:
    problem = simulations.problem
    for row in simulations.frame().iter_rows(named=True):
        release = simulations.release(row["release"])
        change = np.abs(release.values - problem.table.value)
        assert row["quantity changed"] == pytest.approx(change.sum())
        assert row["cells changed"] == np.count_nonzero(change)
        relation = ts.statistics(problem, release).row(0, named=True)
        assert row["correlation"] == pytest.approx(relation["correlation"])
        assert row["variance ratio"] == pytest.approx(relation["variance ratio"])


@pytest.mark.parametrize(
    ("pick", "column", "goal"),
    [("quantity", "quantity changed", 0.0), ("chi_square", "chi-square", 0.0), ("slope", "slope", 1.0)],
)
def test_the_best_by_the_chosen_measure_is_taken(simulations: Simulations, pick: str, column: str, goal: float) -> None:
    frame = simulations.frame()
    best = int(np.argmin(np.abs(frame[column].to_numpy() - goal)))
    taken = method(pick=pick).protect(simulations.problem)
    np.testing.assert_array_equal(taken.values, simulations.release(best + 1).values)


def test_the_user_picks_by_number(simulations: Simulations) -> None:
    taken = method(number=4).protect(simulations.problem)
    np.testing.assert_array_equal(taken.values, simulations.release(4).values)
    with pytest.raises(InvalidOption, match="numbered from 1 to 6"):
        simulations.release(7)
    with pytest.raises(InvalidOption, match="only 3 releases"):
        ts.Relaxed(releases=3, number=4)


def test_options_are_checked() -> None:
    with pytest.raises(InvalidOption, match="share_percent"):
        ts.Relaxed(share_percent=0)
    with pytest.raises(InvalidOption, match="pick"):
        ts.Relaxed(pick="beauty")  # type: ignore[arg-type]


JOB = """
[source]
file = "firms.csv"
respondent = "firm"

[dimensions.region]
[dimensions.kind]

[response]
value = "turnover"

[[rules]]
rule = "p_percent"

[method]
name = "adjust"
directions = "alternating"

[method.keep]
over = "inner"
slope = 0.1

[method.tabu]
over = "inner"
iterations = 2

[method.relaxed]
share_percent = 60
releases = 2
number = 2
over = "inner"

[output]
release = ["out.csv"]
internal = "internal"
"""


def test_a_job_keeps_searches_draws_and_compares(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    places = list(product("NSEW", "xyz", range(4)))
    frame = pl.DataFrame(
        {
            "region": [r for r, _, _ in places],
            "kind": [k for _, k, _ in places],
            "firm": [f"{r}{k}{f}" for r, k, f in places],
            "turnover": np.rint(10.0 ** (1 + 2 * random.random(len(places)))).astype(np.int64),
        }
    )
    frame.write_csv(tmp_path / "firms.csv")
    (tmp_path / "job.toml").write_text(JOB, encoding="utf-8")
    result = ts.run(tmp_path / "job.toml", force=True)
    comparison = pl.read_csv(tmp_path / "internal" / "releases.csv")
    assert comparison.height == 2
    taken = np.abs(result.release.values - result.problem.table.value).sum()
    assert comparison["quantity changed"][1] == pytest.approx(taken)
    row = pl.read_csv(tmp_path / "internal" / "statistics.csv").row(0, named=True)
    assert abs(row["slope"] - 1) <= 0.1 + 1e-6
    assert row["mean"] == pytest.approx(row["published mean"])
    measures = dict(pl.read_csv(tmp_path / "internal" / "quality.csv").iter_rows())
    assert measures["quantity changed"] == pytest.approx(taken)
    classes = pl.read_csv(tmp_path / "internal" / "percent_changes.csv")
    assert classes["cells"].sum() == measures["cells"] == len(result.problem.table)
    assert pl.read_csv(tmp_path / "internal" / "quality_flags.csv").height == measures["cells"]
