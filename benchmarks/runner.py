"""Run a suite: each program in a process of its own, each comparison within one run, results written as they come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import machine, peers
from benchmarks.fresh import engine
from benchmarks.registry import INSTANCES, PROGRAMS, Entry, Row, Suite
from benchmarks.results import Results, compared

REPOSITORY = Path(__file__).resolve().parent.parent
WORKER = ("-m", "benchmarks.worker")
MAKING_S = 900.0
"""How long an instance may take to be made."""
LARGE = 20_000
"""Cells or records from which on making an instance would show in the memory of the first program."""
AFTER_S = 120.0
"""How long the judges may take after a program is stopped at the latest; as long as the program where that is more."""


def run(
    suite: Suite,
    path: Path,
    *,
    fresh: bool = False,
    only: str = "",
    minutes: float = inf,
    tell: Callable[[str], None] = print,
) -> Results:
    """Run what is missing of a suite, and write after each comparison.

    An interrupted run is taken up where it stopped: comparisons that are complete and of this engine stay, all others
    are run whole, for figures are compared only within one run. After `minutes` no further comparison is begun.
    """
    wanted = [entry for entry in suite.entries if only in f"{entry.task} {entry.instance}"]
    results = Results.resumed(path, suite.name, machine.described(), fresh=fresh, keep_finished=bool(only))
    begin = perf_counter()
    left = [entry for entry in wanted if only or not (results.has(entry) and of_this_engine(results, entry))]
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        for number, entry in enumerate(left, 1):
            if perf_counter() - begin > 60 * minutes:
                tell(f"{minutes:g} minutes are over: {len(left) - number + 1} comparisons are left for the next run")
                return results
            tell(f"[{number}/{len(left)}] {entry.task}: {entry.instance} ({perf_counter() - begin:.0f} s)")
            results = results.with_rows(entry, compare(suite, entry, Path(folder), tell)).ordered(suite.entries)
            results.write(path, finished=all(results.has(each) for each in suite.entries))
    tell(f"done in {perf_counter() - begin:.0f} s")
    return results


def of_this_engine(results: Results, entry: Entry) -> bool:
    """Whether all rows of a comparison were measured with the engine that is here."""
    return {row.get("engine") for row in results.of(entry.task, entry.instance)} == {engine()}


def compare(suite: Suite, entry: Entry, folder: Path, tell: Callable[[str], None]) -> list[Row]:
    """All programs of one comparison, with their ratios to ours."""
    begin = datetime.now(UTC).isoformat(timespec="seconds")
    load = machine.load()
    large = INSTANCES[entry.instance].size >= LARGE
    if suite.figures and large and not (folder / entry.instance / "instance.pickle").exists():
        started(_asked(suite, entry, None, folder), MAKING_S)
    rows: list[Row] = []
    for name in entry.programs:
        program = PROGRAMS[entry.task][name]
        found = _found(suite, entry, name, folder)
        head = {"task": entry.task, "instance": entry.instance, "program": name, "role": program.role}
        head |= {"seconds_allowed": entry.seconds, "begun": begin, "load": load}
        head |= {"commit": machine.commit(), "engine": engine()}
        rows += [head | row for row in found]
        for row in rows[-len(found) :]:
            tell("    " + told(row))
    return compared(rows)


def _found(suite: Suite, entry: Entry, name: str, folder: Path) -> list[Row]:
    """The rows of one program; no process is started for a peer that is not there."""
    if PROGRAMS[entry.task][name].role == "peer" and peers.interpreter() is None:
        return [{"status": "skipped", "reason": peers.MISSING}]
    return started(_asked(suite, entry, name, folder), entry.patience_s + max(AFTER_S, entry.patience_s))


def _asked(suite: Suite, entry: Entry, program: str | None, folder: Path) -> dict[str, Any]:
    return {
        "task": entry.task, "instance": entry.instance, "program": program, "seconds": entry.seconds,
        "patience_s": entry.patience_s, "figures": suite.figures, "root": str(folder),
        "out": str(folder / "rows.json"),
    }  # fmt: skip


def started(asked: dict[str, Any], limit: float) -> list[Row]:
    """The rows of a worker process; its death or its slowness is a row."""
    out = Path(asked["out"])
    out.unlink(missing_ok=True)
    command = [sys.executable, *WORKER, json.dumps(asked)]
    worker = subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        _, errors = worker.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        if not out.exists():
            return [{"status": "out of time", "reason": f"stopped after {limit:.0f} s"}]
    finally:
        _end_all(worker)
    if out.exists():
        rows: list[Row] = json.loads(out.read_text(encoding="utf-8"))
        return rows
    last = (errors.decode(errors="replace").strip().splitlines() or ["no reason given"])[-1][:200]
    said = f"ended by signal {-worker.returncode}" if worker.returncode < 0 else last
    return [{"status": "failed", "reason": said}]


def _end_all(worker: subprocess.Popen[bytes]) -> None:
    """End a worker and what it started: all processes of its own session."""
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.communicate()


def told(row: Row) -> str:
    """One line about a row, while the suite runs."""
    if row["status"] != "ok":
        return f"{row['program']}: {row['status']} ({row['reason']})"
    parts = []
    if row.get("cpu_s") is not None:
        parts.append(f"{row['cpu_s']:.2f} s CPU, {row['peak_mb']:.0f} MB")
    if row.get("complementary") is not None:
        parts.append(f"{row['complementary']:,} complementary, value {row['complementary_value']:,.0f}")
    if row.get("open_by_programs") is not None:
        asked = row.get("programs_asked")
        parts.append(f"open {row.get('open_by_audit', '–')} / {row['open_by_programs']} of {asked}")
    return f"{row['program']}: {', '.join(parts)}"
