"""Manual mode: a pattern somebody made is audited and repaired, and its choices are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.suppression import grid, open_cells, product
from tablesafe.core.errors import InvalidOption, InvalidProblem, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.io.patterns import read_pattern
from tablesafe.methods.suppress import Suppress
from tablesafe.pipeline import run

JOB = """\
[source]
file = "cells.csv"
kind = "cells"
status = "status"
[dimensions.r]
total = "T"
[dimensions.c]
total = "T"
[response]
value = "value"
[problem]
manual_range = 20
[method]
name = "suppress"
{option}
time_limit_s = 5
[output]
release = "public/table.csv"
"""


def random_problem(seed: int) -> Problem:
    random = np.random.default_rng(seed)
    table = product([Hierarchy.flat(["a", "b", "c"]), Hierarchy.flat(["x", "y", "z"])], random)
    mask = ~table.is_total & (table.value > 0) & (random.random(len(table)) < 0.2)
    return Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value / 5)))


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1))
def test_choices_are_kept_and_what_they_leave_open_is_repaired(seed: int) -> None:
    problem = random_problem(seed)
    by_hand = np.random.default_rng(seed).random(len(problem.table)) < 0.15
    try:
        release = Suppress(keep=by_hand, time_limit_s=2).protect(problem)
    except InvalidProblem:
        assert open_cells(problem, (problem.table.value != 0) | by_hand | problem.sensitivity.mask)
        return
    assert release.suppressed[by_hand].all()
    assert open_cells(problem, release) == []
    assert (release.status[by_hand & ~problem.sensitivity.mask] == Status.GIVEN).all()


def test_a_pattern_that_is_safe_stays_as_it_is() -> None:
    problem = random_problem(3)
    made = Suppress(time_limit_s=2).protect(problem)
    again = Suppress(keep=made.suppressed).protect(problem)
    assert (again.suppressed == made.suppressed).all()
    assert again.solution is not None
    assert again.solution.objective == 0


def test_a_bad_pattern_is_named() -> None:
    problem = random_problem(3)
    frozen = np.zeros(len(problem.table), dtype=np.bool_)
    frozen[problem.table.index(d0="a", d1="Total")] = True
    with pytest.raises(InvalidProblem, match=r"\(d0=a, d1=Total\) is to be kept withheld, but frozen"):
        Suppress(keep=frozen).protect(problem.replace(frozen=frozen))
    with pytest.raises(InvalidProblem, match="16 booleans"):
        Suppress(keep=np.ones(3, dtype=np.bool_)).protect(problem)
    with pytest.raises(InvalidOption, match=r"not read yet(.|\n)*read_pattern"):
        Suppress(keep="pattern.csv").protect(problem)


def cells_file(folder: Path) -> None:
    table = grid([[5, 6, 20], [7, 8, 30], [9, 40, 50]])
    status = np.full(len(table), "published")
    status[table.index(r="a", c="x")] = "sensitive"
    table.cells().with_columns(pl.Series("status", status)).write_csv(folder / "cells.csv")


def test_a_job_repairs_a_pattern_and_keeps_it(tmp_path: Path) -> None:
    cells_file(tmp_path)
    (tmp_path / "mine.csv").write_text("r,c,suppressed\na,x,1\na,z,1\nc,x,1\n")
    (tmp_path / "job.toml").write_text(JOB.format(option='keep = "mine.csv"'))
    result = run(tmp_path / "job.toml")
    assert result.safe
    named = {result.problem.table.describe(int(i)) for i in np.flatnonzero(result.release.suppressed)}
    assert named > {"(r=a, c=x)", "(r=a, c=z)", "(r=c, c=x)"}


def test_last_periods_pattern_comes_from_a_file_of_another_table(tmp_path: Path) -> None:
    """A code that has gone since is left out with a warning; what is there is preferred, and measured."""
    cells_file(tmp_path)
    (tmp_path / "last.csv").write_text("r,c,suppressed\na,x,1\na,z,1\nc,x,1\nc,z,1\ngone,x,1\n")
    (tmp_path / "job.toml").write_text(JOB.format(option='previous = "last.csv"\nprevious_discount = 0.9'))
    with pytest.warns(UserWarning, match=r"last.csv: 1 of the 5 cells that it withholds are not in the table"):
        result = run(tmp_path / "job.toml")
    assert result.safe
    assert result.facts()["stability"] == {
        "before": 3, "kept": 3, "dropped": 0, "new": 0, "share_kept": 1.0, "similarity": 1.0
    }  # fmt: skip


def test_a_pattern_of_another_table_is_refused(tmp_path: Path) -> None:
    problem = Problem(grid([[5, 6], [7, 8]]))
    (tmp_path / "last.csv").write_text("r,c,suppressed\nq,x,1\n")
    with pytest.raises(InvalidTable, match="None of the 1 cells"):
        read_pattern(tmp_path / "last.csv", problem, complete=False, ignore_unknown=True)


def test_a_given_pattern_can_be_audited_first() -> None:
    problem = random_problem(3)
    pattern = problem.sensitivity.mask
    assert open_cells(problem, Release.from_suppression(problem, pattern))
    assert open_cells(problem, Suppress(keep=pattern).protect(problem)) == []


def test_a_run_tells_cost_and_bound_as_it_goes(tmp_path: Path) -> None:
    cells_file(tmp_path)
    (tmp_path / "job.toml").write_text(JOB.format(option=""))
    heard: list[str] = []
    run(tmp_path / "job.toml", on_event=lambda event: heard.append(event.detail))
    assert any(detail.startswith(": cost 21, at least ") for detail in heard)
