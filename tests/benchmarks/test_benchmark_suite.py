"""The smoke suite runs, judges and writes; programs that fail or hang are rows; an interrupted run goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.registry import Entry, Suite
from benchmarks.results import Results, compared

from benchmarks import peers, registry, runner

REPOSITORY = Path(__file__).resolve().parent.parent.parent
registry.load()


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the one command, run as a user runs it."""
    folder = tmp_path_factory.mktemp("results")
    command = [sys.executable, "-m", "benchmarks", "run", "smoke", "--into", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    return folder


def rows_of(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / "smoke.json").read_text(encoding="utf-8"))["rows"]
    return rows


def test_every_program_is_a_row_that_worked_or_says_why_not(smoke: Path) -> None:
    rows = rows_of(smoke)
    asked = {(e.task, e.instance, p) for e in registry.SUITES["smoke"].entries for p in e.programs}
    assert {(row["task"], row["instance"], row["program"]) for row in rows} == asked
    for row in rows:
        if row["role"] == "peer" and peers.interpreter() is None:
            assert (row["status"], row["reason"]) == ("skipped", peers.MISSING)
        elif row["role"] != "peer":
            assert row["status"] == "ok", row
            assert row["cpu_s"] >= 0
            assert row["peak_mb"] >= row["added_mb"] >= 0


def test_neither_judge_finds_a_cell_open_that_tablesafe_protected(smoke: Path) -> None:
    judged = [row for row in rows_of(smoke) if row["role"] == "tablesafe" and "open_by_audit" in row]
    assert {row["task"] for row in judged} == {"suppress", "adjust", "round"}
    for row in judged:
        assert row["open_by_audit"] == row["open_by_programs"] == 0
        assert row["programs_asked"] > 0
        assert row["sampled"] == (row["programs_asked"] < row["sensitive"])


def test_ratios_are_those_of_the_figures(smoke: Path) -> None:
    rows = rows_of(smoke)
    others = [row for row in rows if row["role"] == "naive"]
    assert others
    for row in others:
        ours = next(r for r in rows if r["role"] == "tablesafe" and r["instance"] == row["instance"])
        assert row["cpu_ratio"] == pytest.approx(row["cpu_s"] / ours["cpu_s"], abs=1e-3)
        assert row["memory_ratio"] == pytest.approx(row["peak_mb"] / ours["peak_mb"], abs=1e-3)


def test_fresh_programs_and_plain_polars_agree_with_ours(smoke: Path) -> None:
    rows = rows_of(smoke)
    assert next(row for row in rows if row["program"] == "fresh programs")["disagree"] == 0
    ours, plain = (
        next(r for r in rows if r["task"] == "tabulate" and r["program"] == p) for p in ("tablesafe", "polars")
    )
    assert ours["cells"] == plain["cells"]
    for key, value in ours["sums"].items():
        assert plain["sums"][key] == pytest.approx(value, rel=1e-9)


def test_the_files_name_the_machine_but_neither_host_nor_path(smoke: Path) -> None:
    data = json.loads((smoke / "smoke.json").read_text(encoding="utf-8"))
    assert data["finished"]
    assert {"cpu", "cores", "memory_gb", "python", "libraries"} <= set(data["machine"])
    for file in ("smoke.json", "smoke.md"):
        text = (smoke / file).read_text(encoding="utf-8")
        assert str(Path.home()) not in text
        assert str(REPOSITORY) not in text
    assert "| tablesafe |" in (smoke / "smoke.md").read_text(encoding="utf-8")


def entry(*programs: str) -> Entry:
    return Entry("suppress", "firms_2d_100", programs)


def fakes(answers: dict[str, list[dict[str, Any]]], asked: list[str]) -> Any:
    """In the place of a worker: answers by program, and a list of who was asked."""

    def started(case: dict[str, Any], limit: float) -> list[dict[str, Any]]:
        asked.append(case["program"])
        return answers[case["program"]]

    return started


GOOD = [{"status": "ok", "cpu_s": 2.0, "wall_s": 2.0, "peak_mb": 100.0, "added_mb": 1.0}]
BAD = [{"status": "failed", "reason": "no solution"}]


def test_a_program_that_fails_is_a_row_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "started", fakes({"two per sum": BAD, "tablesafe": GOOD}, []))
    found = runner.run(Suite("s", "", (entry("two per sum", "tablesafe"),), figures=False), tmp_path / "s.json")
    assert [row["status"] for row in found.rows] == ["failed", "ok"]
    assert "failed: no solution" in (tmp_path / "s.md").read_text(encoding="utf-8")


def test_an_interrupted_run_goes_on_with_whole_comparisons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(runner, "started", fakes({"tablesafe": GOOD, "two per sum": GOOD}, asked))
    first, second = entry("tablesafe", "two per sum"), Entry("suppress", "firms_2d_300", ("tablesafe",))
    path = tmp_path / "s.json"
    runner.run(Suite("s", "", (first,), figures=False), path)
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(data | {"finished": False}), encoding="utf-8")
    asked.clear()
    found = runner.run(Suite("s", "", (first, second), figures=False), path)
    assert asked == ["tablesafe"]
    assert len(found.rows) == 3
    old = data | {"finished": False, "rows": [each | {"engine": "of old"} for each in data["rows"]]}
    path.write_text(json.dumps(old), encoding="utf-8")
    asked.clear()
    runner.run(Suite("s", "", (first,), figures=False), path)
    assert asked == ["tablesafe", "two per sum"], "figures of another engine are made anew"
    half = data | {"finished": False, "rows": data["rows"][:1]}
    path.write_text(json.dumps(half), encoding="utf-8")
    asked.clear()
    runner.run(Suite("s", "", (first,), figures=False), path)
    assert asked == ["tablesafe", "two per sum"]


def test_figures_of_another_machine_are_not_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(runner, "started", fakes({"tablesafe": GOOD}, asked))
    path, suite = tmp_path / "s.json", Suite("s", "", (entry("tablesafe"),), figures=False)
    runner.run(suite, path)
    data = json.loads(path.read_text(encoding="utf-8"))
    data["machine"]["cores"] += 1
    path.write_text(json.dumps(data | {"finished": False}), encoding="utf-8")
    runner.run(suite, path)
    assert asked == ["tablesafe", "tablesafe"]


def test_a_worker_that_hangs_or_dies_is_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = {"out": str(tmp_path / "rows.json")}
    monkeypatch.setattr(runner, "WORKER", ("-c", "import time; time.sleep(60)"))
    assert runner.started(asked, 0.5)[0]["status"] == "out of time"
    monkeypatch.setattr(runner, "WORKER", ("-c", "import os; os.kill(os.getpid(), 11)"))
    assert runner.started(asked, 600)[0] == {"status": "failed", "reason": "ended by signal 11"}
    monkeypatch.setattr(runner, "WORKER", ("-c", "raise SystemExit('no memory')"))
    assert runner.started(asked, 600)[0] == {"status": "failed", "reason": "no memory"}


def test_printed_seconds_are_not_compared() -> None:
    head = {"task": "suppress", "instance": "i", "status": "ok"}
    rows = [
        head | {"program": "tablesafe", "role": "tablesafe", "cpu_s": 2.0, "peak_mb": 10.0, "complementary_value": 4.0},
        head | {"program": "x (printed)", "role": "printed", "wall_s": 9.0, "cpu_s": 1.0, "complementary_value": 6.0},
    ]
    found = compared(rows)[1]
    assert found["value_ratio"] == 1.5
    assert "cpu_ratio" not in found


def test_results_read_back_as_they_were_written(tmp_path: Path) -> None:
    rows = ({"task": "audit", "instance": "i", "program": "tablesafe", "role": "tablesafe", "status": "ok"},)
    written = Results("s", {"cores": 1, "libraries": {}, "peers": {}, "commit": "", "cpu": "", "memory_gb": 1.0,
                            "distribution": "", "system": "", "python": ""}, rows)  # fmt: skip
    written.write(tmp_path / "s.json", finished=False)
    assert Results.read(tmp_path / "s.json") == written
