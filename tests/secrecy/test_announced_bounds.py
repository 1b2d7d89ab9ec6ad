"""Intervals that readers are told never follow what only some attackers know of single cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.core.errors import InvalidOption
from tablesafe.io.frames import write_release

METHODS: dict[str, Any] = {
    "adjust": ts.Adjust(time_limit_s=5, directions="alternating"),
    "noise": ts.Noise(seed=3),
    "swap": ts.Swap(geography=("region",), match=("size",), rate=0.3, new_cells="avoid", seed=4),
    "cell_key": ts.CellKey(magnitude=ts.Magnitude(), seed=6),
}


def problem_of(how: str) -> ts.Problem:
    """A small table, and what attackers know of it beforehand."""
    rng = np.random.default_rng(4)
    n = 60
    records = pl.DataFrame(
        {
            "region": rng.choice(list("abc"), n),
            "size": rng.choice(["s", "m"], n),
            "firm": [f"f{i}" for i in range(n)],
            "v": rng.integers(5, 90, n),
        }
    )
    table = ts.tabulate(records, dimensions=["region", "size"], value="v", respondent="firm")
    value = table.value
    upper: dict[str, Any] = {
        "the same for all": 1e6,
        "around the truth": 1.5 * value,
        "for one cell": np.where(np.arange(len(value)) == 3, 1.5 * value, np.inf),
    }
    return ts.Problem(table, [ts.PPercent(p=40)], lower=0.0, upper=upper[how])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("how", ["around the truth", "for one cell"])
def test_bounds_of_single_cells_are_not_shown(method: str, how: str, tmp_path: Path) -> None:
    release = released(method, problem_of(how))
    with pytest.raises(InvalidOption, match=r"(?s)prior bounds, which differ from cell to cell.*Hint"):
        release.frame(intervals=True)
    with pytest.raises(InvalidOption, match="prior bounds"):
        write_release(release, tmp_path / "release.csv", intervals=True)
    assert not (tmp_path / "release.csv").exists()
    assert "from" not in release.frame().columns


def test_a_report_does_not_show_them_either(tmp_path: Path) -> None:
    problem = problem_of("around the truth")
    with pytest.raises(InvalidOption, match="prior bounds"):
        ts.report(problem, released("adjust", problem), path=tmp_path / "report.html", intervals=True)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("method", METHODS)
def test_bounds_that_are_the_same_for_all_may_be_shown(method: str) -> None:
    shown = released(method, problem_of("the same for all")).frame(intervals=True)
    assert {"from", "to"} <= set(shown.columns)


def released(method: str, problem: ts.Problem) -> ts.Release:
    return ts.protect(problem, METHODS[method])
