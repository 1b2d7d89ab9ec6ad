"""Cold and warm starts differ in what Numba finds in its folder, and in nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from benchmarks.registry import INSTANCES, PROGRAMS, SUITES, Case, Made, NotHere

from benchmarks import registry

registry.load()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], bool]]:
    """The commands that were started, and whether the folder of compiled loops was empty; each leaves one there."""
    found: list[tuple[list[str], bool]] = []

    def started(command: list[str], *, env: dict[str, str], **rest: Any) -> subprocess.CompletedProcess[str]:
        cache = Path(env["NUMBA_CACHE_DIR"])
        found.append((command[1:], not any(cache.iterdir())))
        (cache / "loop").touch()
        for name in command:
            if name.endswith("pattern.csv"):
                Path(name).touch()
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", started)
    return found


def case(instance: str, folder: Path) -> Case:
    made: Made = INSTANCES[instance].make(folder)
    scratch = folder / "scratch"
    scratch.mkdir()
    return Case(made=made, folder=folder, scratch=scratch, seconds=1, peers=None, patience_s=60)


def test_cold_finds_nothing_compiled_and_warm_what_a_run_before_left(
    tmp_path: Path, seen: list[tuple[list[str], bool]]
) -> None:
    small = case("values_2d_100", tmp_path)
    PROGRAMS["start"]["tablesafe cold"].run(small)
    assert [empty for _, empty in seen] == [True]
    seen.clear()
    PROGRAMS["start"]["tablesafe warm"].run(small)
    assert [empty for _, empty in seen] == [True, False]
    assert seen[0][0] == seen[1][0]
    assert "read_jj" in seen[0][0][1]


def test_the_shell_is_asked_twice_for_the_same_file(tmp_path: Path, seen: list[tuple[list[str], bool]]) -> None:
    PROGRAMS["start"]["tablesafe shell"].run(case("values_2d_100", tmp_path))
    assert [command[:3] for command, _ in seen] == [["-m", "tablesafe", "suppress"]] * 2
    assert [empty for _, empty in seen] == [True, False]


def test_from_records_the_first_answer_begins_with_tabulation(
    tmp_path: Path, seen: list[tuple[list[str], bool]]
) -> None:
    (tmp_path / "records.parquet").touch()
    small = case("values_2d_100", tmp_path)
    PROGRAMS["start"]["tablesafe cold"].run(small)
    assert "ts.tabulate" in seen[0][0][1]
    with pytest.raises(NotHere):
        PROGRAMS["start"]["tablesafe shell"].run(small)


def test_an_import_is_measured_in_an_interpreter_of_its_own(tmp_path: Path) -> None:
    outcome = PROGRAMS["start"]["Python alone"].run(case("values_2d_100", tmp_path))
    assert outcome.cpu_s is not None
    assert outcome.cpu_s > 0


def test_the_suite_has_a_table_and_records() -> None:
    assert {entry.instance.partition("/")[0] for entry in SUITES["start"].entries} == {"values_2d_100", "micro"}
