"""Published intervals hold the truth, keep every protection together, and give nothing away."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tablesafe as ts
from oracle.attacker import naive
from oracle.twoway import inner, square
from tablesafe.audit.system import System
from tablesafe.core.errors import InvalidOption

KINDS: list[dict[str, Any]] = [
    {"kind": "exact"},
    {"kind": "grid", "grid": 7.0},
    {"kind": "asymmetric", "seed": 5},
    {"kind": "asymmetric", "seed": 6, "decimals": 2, "spread": 6.0},
]


@st.composite
def protected(draw: st.DrawFn) -> tuple[ts.Problem, np.ndarray[Any, Any]]:
    """A table with a sensitive cell or two, all inner cells withheld, that passes its audit."""
    sizes = draw(st.tuples(st.integers(2, 4), st.integers(2, 4)))
    row = st.lists(st.integers(0, 300), min_size=sizes[1], max_size=sizes[1])
    table = square(draw(st.lists(row, min_size=sizes[0], max_size=sizes[0])))
    cells = draw(st.lists(st.sampled_from(np.flatnonzero(inner(table)).tolist()), min_size=1, max_size=2, unique=True))
    mask = np.zeros(len(table), np.bool_)
    mask[cells] = True
    mask &= table.value > 0
    share = draw(st.sampled_from([0.1, 0.25]))
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.where(mask, share * table.value, 0.0)))
    assume(mask.any())
    assume(ts.audit(problem, ts.Release.from_suppression(problem, inner(table)), certify=False).safe)
    return problem, inner(table)


@settings(max_examples=12)
@given(protected(), st.sampled_from(KINDS))
def test_intervals_hold_the_truth_and_the_audit_over_all_of_them_passes(
    case: tuple[ts.Problem, np.ndarray[Any, Any]], options: dict[str, Any]
) -> None:
    problem, pattern = case
    release = ts.PublishIntervals(pattern=pattern, **options).protect(problem)
    truth = problem.table.value
    assert ((release.lower <= truth) & (truth <= release.upper)).all()
    np.testing.assert_array_equal(release.suppressed, pattern)
    assert ts.audit(problem, release).safe
    # the same by an attacker that shares no code: every interval and every sum in one linear program
    system = System.of(problem, release)
    matrix, levels = system.matrix.toarray().astype(float), problem.sensitivity
    for at in np.flatnonzero(levels.mask[system.cells]):
        low, high = naive(matrix, system.rhs.astype(float), system.lower, system.upper, int(at))
        cell = system.cells[at]
        assert low <= truth[cell] - levels.lower[cell] + 1e-6
        assert high >= truth[cell] + levels.upper[cell] - 1e-6


@settings(max_examples=15)
@given(protected())
def test_exact_intervals_tell_what_can_be_computed_and_grids_no_more(
    case: tuple[ts.Problem, np.ndarray[Any, Any]],
) -> None:
    problem, pattern = case
    plain = ts.Release.from_suppression(problem, pattern)
    derived = ts.reconstruct(plain).derived
    exact = ts.PublishIntervals(kind="exact", pattern=pattern).protect(problem)
    np.testing.assert_allclose(exact.lower[derived.cells], derived.lower)
    np.testing.assert_allclose(exact.upper[derived.cells], derived.upper)
    grid = ts.PublishIntervals(kind="grid", grid=7, pattern=pattern).protect(problem)
    told = grid.intervals
    assert told is not None
    assert (np.abs(grid.lower[told] / 7 - np.rint(grid.lower[told] / 7)) < 1e-9).all()
    assert ((grid.lower[told] <= exact.lower[told] + 1e-9) & (exact.lower[told] < grid.lower[told] + 7)).all()
    assert ((grid.upper[told] >= exact.upper[told] - 1e-9) & (exact.upper[told] > grid.upper[told] - 7)).all()


def test_an_interval_of_one_cell_can_break_the_protection_of_another_and_the_audit_says_so() -> None:
    """The pattern is safe. Too narrow an interval of the neighbour B pins down X, whose own interval looks fine."""
    table = square([[100, 50], [70, 80]])
    mask = np.zeros(len(table), np.bool_)
    mask[0] = True
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.where(mask, 20.0, 0.0)))
    release = ts.PublishIntervals(kind="exact", pattern=inner(table)).protect(problem)
    assert ts.audit(problem, release).safe
    lower, upper = release.lower.copy(), release.upper.copy()
    lower[1], upper[1] = 45, 58
    broken = replace(release, lower=lower, upper=upper)
    findings = ts.audit(problem, broken)
    assert not findings.safe
    assert (findings.lower[0], findings.upper[0]) == (92, 105)
    assert not ts.check_intervals(problem, broken).safe


@pytest.mark.parametrize("kind", ["exact", "grid", "asymmetric"])
def test_what_is_leaked_under_symmetric_knowledge(kind: str) -> None:
    table = square([[1003, 517, 331], [702, 811, 449], [623, 287, 908]])
    mask = np.zeros(len(table), np.bool_)
    mask[[0, 5]] = True
    q = 0.3
    problem = ts.Problem(
        table,
        sensitivity=ts.Sensitivity.of(mask, np.where(mask, 0.1 * table.value, 0.0)),
        lower=table.value * (1 - q),
        upper=table.value * (1 + q),
    )
    options: dict[str, Any] = {"exact": {}, "grid": {"grid": 50}, "asymmetric": {"seed": 99}}[kind]
    release = ts.PublishIntervals(kind=kind, pattern=inner(table), **options).protect(problem)  # type: ignore[arg-type]
    leaks = ts.check_intervals(problem, release)
    assert leaks.findings.safe
    assert leaks.values_leak == leaks.q_leaks == (kind == "exact")
    assert leaks.safe == (kind != "exact")
    assert ("leak neither" in str(leaks)) == leaks.safe


def test_p_leaks_from_intervals_that_are_just_wide_enough() -> None:
    table = square([[100, 10], [25, 10]])
    mask = np.zeros(len(table), np.bool_)
    mask[0] = True
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.where(mask, 10.0, 0.0)))
    leaks = ts.check_intervals(problem, ts.PublishIntervals(pattern=inner(table)).protect(problem))
    assert leaks.p == pytest.approx(10)
    assert leaks.p_leaks
    assert leaks.p_range.upper == pytest.approx(10)


def test_asymmetric_intervals_hide_p_of_many_cells() -> None:
    """The narrowest of 60 intervals still does not tell p, where the pattern leaves room."""
    random = np.random.default_rng(3)
    table = square(random.integers(2_000, 9_000, size=(8, 8)))
    mask = inner(table) & (random.random(len(table)) < 0.5)
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.where(mask, 0.05 * table.value, 0.0)))
    release = ts.PublishIntervals(kind="asymmetric", pattern=inner(table), seed=1).protect(problem)
    leaks = ts.check_intervals(problem, release)
    assert leaks.findings.safe
    assert leaks.p_range.upper > 1.2 * 5
    assert not leaks.exact.any()
    assert leaks.safe


def test_equal_seeds_give_equal_releases_and_other_seeds_others() -> None:
    table = square([[1003, 517], [702, 811]])
    problem = ts.Problem(table)

    def ends(seed: int) -> list[float]:
        release = ts.PublishIntervals(kind="asymmetric", pattern=inner(table), seed=seed).protect(problem)
        return [*release.lower, *release.upper]

    assert ends(1) == ends(1)
    assert ends(1) != ends(2)


def test_the_release_shows_intervals_in_the_place_of_values_and_no_secret() -> None:
    table = square([[1003, 517], [702, 811]])
    mask = np.zeros(len(table), np.bool_)
    mask[0] = True
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.where(mask, 100.0, 0.0)))
    release = ts.PublishIntervals(kind="asymmetric", pattern=inner(table), seed=424242).protect(problem)
    frame = release.frame()
    assert frame.columns == ["row", "column", "value", "status", "from", "to"]
    hidden = frame.filter(pl.col("status") == "confidential")
    assert hidden["value"].is_null().all()
    assert (hidden["from"] < hidden["to"]).all()
    assert frame.filter(pl.col("status") == "published")["from"].is_null().all()
    assert not {spec.name for spec in fields(release)} & {"seed", "p", "q"}
    assert "424242" not in repr(release)
    assert "424242" not in repr(ts.PublishIntervals(kind="asymmetric", seed=424242))


def test_it_finds_a_pattern_by_itself_and_cells_withheld_by_design_get_no_interval() -> None:
    table = square([[30, 20, 40], [25, 60, 35], [15, 45, 50]])
    mask = np.zeros(len(table), np.bool_)
    mask[0] = True
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.where(mask, 3.0, 0.0)))
    release = ts.PublishIntervals(suppress=ts.Suppress(time_limit_s=5)).protect(problem)
    assert release.suppressed[0]
    assert release.intervals is not None
    np.testing.assert_array_equal(release.intervals, release.suppressed)
    withheld = problem.replace(withheld=inner(table))
    by_design = ts.PublishIntervals(kind="asymmetric", seed=3, pattern=inner(table)).protect(withheld)
    assert by_design.intervals is not None
    assert not by_design.intervals.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "grid"}, "goes with kind='grid'"),
        ({"grid": 5.0}, "goes with kind='grid'"),
        ({"kind": "asymmetric"}, "seed must be given"),
        ({"kind": "asymmetric", "seed": 1, "spread": 1.0}, "spread"),
        ({"kind": "round"}, "kind"),
        ({"least_percent": 0.0}, "least_percent"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        ts.PublishIntervals(**options)


def test_more_decimals_than_can_be_added_are_refused() -> None:
    table = square([[10, 5], [7, 8]])
    for decimals in (25,):
        with pytest.raises(InvalidOption, match="decimals"):
            ts.PublishIntervals(kind="asymmetric", seed=1, decimals=decimals, pattern=inner(table)).protect(
                ts.Problem(table)
            )


def test_a_job_publishes_intervals(tmp_path: Path) -> None:
    table = square([[30, 20], [25, 60]])
    table.cells().select("row", "column", "value").with_columns(count=pl.Series([1, 9, 9, 9, 9, 9, 9, 9, 9])).write_csv(
        tmp_path / "cells.csv"
    )
    (tmp_path / "job.toml").write_text(
        """
[source]
file = "cells.csv"
kind = "cells"
count = "count"
[dimensions.row]
[dimensions.column]
[response]
value = "value"
[[rules]]
rule = "threshold"
n = 3
range_percent = 10
[method]
name = "intervals"
kind = "asymmetric"
seed = 31337
[method.suppress]
time_limit_s = 5
[output]
release = "public/release.csv"
""",
        encoding="utf-8",
    )
    ts.run(tmp_path / "job.toml")
    text = (tmp_path / "public" / "release.csv").read_text(encoding="utf-8")
    shown = pl.read_csv(tmp_path / "public" / "release.csv")
    assert shown["from"].is_not_null().sum() == shown["value"].is_null().sum() == 4
    assert "31337" not in text
