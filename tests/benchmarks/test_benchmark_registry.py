"""Instances come from their seeds, suites name what there is, and the independent judge judges rightly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.instances import files
from benchmarks.registry import INSTANCES, PROGRAMS, SUITES, Made, NotHere

from benchmarks import judges, registry
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table

registry.load()
GENERATED = ("firms_2d_100", "values_2d_100", "counts_2d_100", "cube_3d_200", "pattern_3d_200")


@pytest.mark.parametrize("name", GENERATED)
def test_a_seed_gives_the_same_table_twice(name: str, tmp_path: Path) -> None:
    first, second = (INSTANCES[name].make(tmp_path) for _ in range(2))
    one, two = first.table_problem, second.table_problem
    assert (one.table.integers == two.table.integers).all()
    assert (one.sensitivity.mask == two.sensitivity.mask).all()
    assert not (one.table.equations.astype(np.int64) @ one.table.integers).any()
    assert one.sensitive.size


@pytest.mark.parametrize("name", ["firms_2d_100", "values_2d_100", "counts_2d_100", "counts_3d_100"])
def test_the_size_told_is_the_size_made(name: str, tmp_path: Path) -> None:
    table = INSTANCES[name].make(tmp_path).table_problem.table
    assert 0.5 * INSTANCES[name].size <= len(table) <= INSTANCES[name].size


def test_generated_tables_reach_from_a_hundred_to_ten_million_cells_and_from_two_to_six_dimensions() -> None:
    for kind in ("firms", "values", "counts"):
        sizes = [each.size for name, each in INSTANCES.items() if name.startswith(f"{kind}_")]
        assert min(sizes) < 200
        assert max(sizes) >= 1_000_000
    assert max(each.size for name, each in INSTANCES.items() if name.startswith("values_")) >= 10_000_000
    assert max(each.size for name, each in INSTANCES.items() if name.startswith("counts_")) >= 10_000_000
    for dimensions in range(2, 7):
        assert any(f"_{dimensions}d_" in name for name in INSTANCES)


def test_a_pattern_withholds_no_cell_alone_in_its_sum(tmp_path: Path) -> None:
    made = INSTANCES["pattern_3d_1k"].make(tmp_path)
    per_sum = abs(made.table_problem.table.equations) @ made.pattern.astype(np.int64)
    assert (per_sum != 1).all()


def test_every_task_has_ours_and_something_beside_it() -> None:
    alone = {"cell key design", "swap households", "impute nearest", "impute model", "adjust reference"}
    alone |= {"adjust percent"}
    for task, programs in PROGRAMS.items():
        roles = {program.role for program in programs.values()}
        assert "tablesafe" in roles, task
        assert task in alone or roles & {"naive", "peer"} or "printed" in roles, task


def test_growth_has_several_sizes_of_the_five_tasks() -> None:
    entries = SUITES["growth"].entries
    for task in ("tabulate", "audit", "suppress", "adjust", "round"):
        assert len({entry.instance for entry in entries if entry.task == task}) >= 4


def test_the_headline_shows_only_what_its_suite_measures() -> None:
    suite = SUITES["headline"]
    measured = {(entry.task, entry.instance): entry.programs for entry in suite.entries}
    for task, instance, other in suite.headline:
        assert other in measured[task, instance] or ("printed" in other and "printed" in measured[task, instance])
        assert any(PROGRAMS[task][name].role == "tablesafe" for name in measured[task, instance])


def test_without_the_shared_folder_its_instances_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLESAFE_INSTANCES", str(tmp_path / "nowhere"))
    with pytest.raises(NotHere, match="TABLESAFE_INSTANCES"):
        INSTANCES["bench/2d_20"].make(tmp_path)


def test_the_files_of_the_shared_folder_have_the_cells_that_are_told(
    instances: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TABLESAFE_INSTANCES", str(instances))
    for name in ("bench/2d_20", "bench/3d_10", "jj/targus"):
        assert len(INSTANCES[name].make(tmp_path).table_problem.table) == files.CELLS[name]
    assert files.lines("bench/peers.csv", instance="2d_20")


def square(hidden: list[tuple[str, str]]) -> tuple[Problem, Release]:
    """A 2 × 2 table; the cell (x0, y0) has the value 10 and must be hidden by 3 either way."""
    import polars as pl

    frame = pl.DataFrame({"x": ["x0", "x0", "x1", "x1"], "y": ["y0", "y1"] * 2, "value": [10, 20, 30, 40]})
    trees = {d: Hierarchy.flat([f"{d}0", f"{d}1"]) for d in "xy"}
    table = Table.from_cells(frame, dimensions=trees, missing_totals="compute")
    codes = table.code_columns()
    names = list(zip(codes["x"].to_list(), codes["y"].to_list(), strict=True))
    secret = np.array([name == ("x0", "y0") for name in names])
    problem = Problem(table, sensitivity=Sensitivity.of(secret, np.full(len(table), 3.0)))
    return problem, Release.from_suppression(problem, np.array([name in hidden for name in names]))


def test_the_judge_finds_a_cell_open_that_is_alone_in_its_row() -> None:
    problem, release = square([("x0", "y0")])
    assert judges.open_by_programs(problem, release, 10.0) == (1, 1)
    problem, release = square([])
    assert judges.open_by_programs(problem, release, 10.0) == (1, 1)


def test_the_judge_finds_nothing_open_behind_a_square() -> None:
    problem, release = square([(x, y) for x in ("x0", "x1") for y in ("y0", "y1")])
    assert judges.open_by_programs(problem, release, 10.0) == (0, 1)
    row = judges.judged(problem, release, 10.0)
    assert row["open_by_audit"] == row["open_by_programs"] == 0
    assert (row["complementary"], row["complementary_value"]) == (3, 90.0)


def test_the_judge_asks_for_the_width_that_the_levels_ask_for() -> None:
    problem, _ = square([])
    cell = int(problem.sensitive[0])
    assert judges.is_open(problem, cell, (8.0, 14.0))
    assert judges.is_open(problem, cell, (6.0, 12.0))
    assert not judges.is_open(problem, cell, (7.0, 13.0))


def test_two_cells_per_sum_leave_no_sum_with_one(tmp_path: Path) -> None:
    from benchmarks.registry import Case

    made: Made = INSTANCES["firms_2d_300"].make(tmp_path)
    case = Case(made=made, folder=tmp_path, scratch=tmp_path, seconds=1, peers=None, patience_s=10)
    release = PROGRAMS["suppress"]["two per sum"].run(case).release
    assert release is not None
    free = ~made.table_problem.frozen & (made.table_problem.table.value != 0)
    rows = abs(made.table_problem.table.equations)
    alone = rows @ release.suppressed.astype(np.int64) == 1
    assert not (alone & (rows @ free.astype(np.int64) > 1)).any()
