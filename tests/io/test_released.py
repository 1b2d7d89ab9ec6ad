"""A release with announced intervals, written and read back, and what its bounds must not tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.io.frames import write_release
from tablesafe.io.patterns import read_release


def changed(lower: float, upper: float) -> tuple[Problem, Release]:
    """Every value changed by one, each with this interval around it."""
    frame = pl.DataFrame({"region": ["North", "South"], "value": [40, 2]})
    table = ts.Table.from_cells(frame, dimensions={"region": None}, missing_totals="compute")
    problem, values, n = Problem(table, lower=lower), table.value + 1, len(table)
    status = np.full(n, Status.CHANGED, np.uint8)
    return problem, Release(table, values, np.full(n, lower), np.full(n, upper), status, "adjust")


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
@pytest.mark.parametrize(("lower", "upper"), [(0.0, np.inf), (-np.inf, np.inf), (-np.inf, 60.0), (0.5, 60.25)])
def test_bounds_are_read_back_also_where_there_are_none(
    ending: str, lower: float, upper: float, tmp_path: Path
) -> None:
    problem, release = changed(lower, upper)
    write_release(release, tmp_path / f"release.{ending}", intervals=True)
    back = read_release(tmp_path / f"release.{ending}", problem)
    assert np.array_equal(back.values, release.values)
    assert np.array_equal(back.lower, release.lower)
    assert np.array_equal(back.upper, release.upper)
    assert (back.status == Status.CHANGED).all()


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6, 1e9])
def test_no_last_bit_tells_that_a_bound_is_the_truth(size: float) -> None:
    """A window that is computed and one that was widened to hold the true value look alike."""
    _, release = changed(0.0, np.inf)
    window = np.array([12.6, 0.7, 33.3]) * size
    one, other = (replace(release, upper=each) for each in (window, np.nextafter(window, np.inf)))
    assert not np.array_equal(one.upper, other.upper)
    assert one.frame(intervals=True).equals(other.frame(intervals=True))


def test_whole_bounds_stay_as_they_are() -> None:
    _, release = changed(0.0, 9_007_199_254_740_991.0)
    assert release.frame(intervals=True)["to"].to_list() == [9_007_199_254_740_991] * 3


def test_a_release_shows_no_objective() -> None:
    """The objective of a suppression adds up withheld values, and notebooks keep what an object says of itself."""
    frame = pl.DataFrame({"region": ["North", "South", "East"], "value": [1_234_567, 2_345_679, 3_456_781]})
    table = ts.Table.from_cells(frame, dimensions={"region": None}, missing_totals="compute")
    problem = Problem(table, sensitivity=ts.Sensitivity.of(table.value == 1_234_567, 98_765.0))
    release = ts.protect(problem, ts.Suppress())
    assert release.solution is not None
    assert release.solution.objective in table.value
    assert "2345679" not in repr(release) + str(release)
