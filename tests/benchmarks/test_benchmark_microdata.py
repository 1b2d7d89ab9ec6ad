"""Microdata of the benchmarks: drawn from seeds, sparse and skewed as an office's, kept when judges are slow."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.growth import curves
from benchmarks.instances.microdata import RECORDS, SOURCES, count_of
from benchmarks.registry import INSTANCES, SUITES

from benchmarks import headline, registry, runner, worker

registry.load()
SMALL = 1_000


@pytest.mark.parametrize("kind", SOURCES)
def test_a_seed_gives_the_same_records_and_another_seed_others(kind: str) -> None:
    source = SOURCES[kind]
    assert source.records(SMALL, 4).equals(source.records(SMALL, 4))
    assert not source.records(SMALL, 4).equals(source.records(SMALL, 5))
    assert source.records(SMALL, 4).height == SMALL


@pytest.mark.parametrize("kind", ["firms_2d", "four_flat", "households", "farms_2d"])
def test_the_tables_add_up_and_have_sensitive_cells_and_contributors(kind: str, tmp_path: Path) -> None:
    made = INSTANCES[f"micro/{kind}_1k"].make(tmp_path)
    problem = made.table_problem
    assert not (problem.table.equations.astype(np.int64) @ problem.table.integers).any()
    assert problem.sensitive.size
    assert problem.table.contributors is not None
    assert made.facts["records"] == SMALL
    assert (tmp_path / "records.parquet").exists()


def test_trade_is_99_percent_empty_and_has_eight_digits() -> None:
    source = SOURCES["trade"]
    records = source.records(count_of("5k"), 4)
    leaves = np.prod([len(tree.codes) for tree in source.dimensions.values()])
    assert records.select(list(source.dimensions)).n_unique() < 0.01 * leaves
    assert set(records["product"].str.len_chars().to_list()) == {8}


def test_firms_have_heavy_tails_and_holdings() -> None:
    records = SOURCES["firms"].records(count_of("20k"), 4)
    largest = records["turnover"].sort(descending=True)
    assert largest[:200].sum() > 0.2 * records["turnover"].sum(), "one firm in a hundred has a fifth of all"
    in_holdings = records["group_id"].is_duplicated().mean()
    assert in_holdings is not None
    assert 0.2 < float(str(in_holdings)) < 0.35


def test_there_are_five_thousand_to_a_million_firms_and_two_to_four_dimensions() -> None:
    sizes = [count_of(word) for word in RECORDS["firms"]]
    assert min(sizes) <= 5_000
    assert max(sizes) == 1_000_000
    assert {len(source.dimensions) for source in SOURCES.values()} == {2, 3, 4}


def test_what_offices_do_leads_the_headline() -> None:
    suite = SUITES["headline"]
    assert all(instance.startswith("micro/") for _, instance, _ in suite.headline[:6])
    for entry in SUITES["microdata"].entries:
        assert entry.programs[0] == "tablesafe alike", "ratios are to the program that protects from outsiders only"
        assert "pytauargus modular" in entry.programs


def test_a_comparison_stands_once_in_a_suite() -> None:
    for suite in SUITES.values():
        pairs = [(entry.task, entry.instance) for entry in suite.entries]
        assert len(pairs) == len(set(pairs)), suite.name


def row(program: str, instance: str, **figures: Any) -> dict[str, Any]:
    head = {"task": "suppress", "instance": instance, "program": program, "status": "ok", "cpu_s": 1.0, "peak_mb": 1.0}
    role = "tablesafe" if program.startswith("tablesafe") else "peer"
    return head | {"role": role} | figures


def test_growth_is_told_by_records_and_by_sensitive_cells_for_each_kind() -> None:
    rows = [
        row("tablesafe", f"micro/{kind}_{n}k", records=n * 1_000, sensitive=n**2, cpu_s=float(n), cells=7)
        for kind in ("firms", "trade")
        for n in (1, 5, 20)
    ]
    found = {(curve.family, curve.axis): curve.slope for curve in curves(rows)}
    assert found == {
        (f"micro/{kind}", axis): pytest.approx(slope)
        for kind in ("firms", "trade")
        for axis, slope in (("records", 1.0), ("sensitive", 0.5))
    }


def test_the_headline_tells_records_cells_and_what_respondents_learn() -> None:
    judged = {"open_by_audit": 0, "open_by_programs": 0, "programs_asked": 60}
    ours = row("tablesafe alike", "i", records=20_000, cells=700, complementary=100, open_to_respondents=9, **judged)
    theirs = row("pytauargus modular", "i", complementary=120, **judged)
    line = headline._line("suppress", "i", ours, theirs)
    assert line.startswith(
        "| suppress (alike): 20,000 records, 700 cells (`i`) | pytauargus modular | 1 | 1 | – | 1.2×"
    )
    assert "0; 0 of 60; 9 |" in line


def test_what_the_clock_said_is_kept_when_the_judges_do_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker writes before it judges, and the runner reads what a stopped worker wrote."""
    out, rows = tmp_path / "rows.json", [{"status": "ok", "cpu_s": 3.0, "note": "not judged in time"}]

    class Late:
        """A worker that wrote what it knew, and was not done in time."""

        pid, returncode = 0, -9

        def __init__(self, *command: object, **rest: object) -> None:
            pass

        def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
            if timeout is not None:
                worker.write(rows, out)
                raise subprocess.TimeoutExpired("worker", timeout)
            return b"", b""

    monkeypatch.setattr(subprocess, "Popen", Late)
    monkeypatch.setattr(runner.os, "killpg", lambda pid, number: None)
    assert runner.started({"out": str(out)}, 600) == rows
