"""One program on one instance, in this process: make or load the instance, run, read the clock, then judge.

Started by the runner with one JSON text; the row goes to the file named in it.
"""

from __future__ import annotations

import json
import pickle
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import benchmarks.instances  # noqa: F401
from benchmarks import peers, tasks
from benchmarks.clock import Stopwatch, forget_peak, peak_mb
from benchmarks.registry import INSTANCES, PROGRAMS, Case, Made, NotHere, Outcome, Row
from tablesafe.work.compiled import compiling_at_once

WARM_S = 0.3
"""How long methods may look while they are warmed up."""
JUDGES_S = 6.0
"""How long the independent programs may take; fewer cells are asked about where that is too short."""


def instance_of(name: str, folder: Path) -> Made:
    """The instance: kept from before, or made now. The file is this run's own, and goes with its folder."""
    kept = folder / "instance.pickle"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = INSTANCES[name].make(folder)
        kept.write_bytes(pickle.dumps(made))
        return made
    found: Made = pickle.loads(kept.read_bytes())
    return found


def facts_of(made: Made) -> Row:
    """How large an instance is."""
    facts: Row = {key: made.facts[key] for key in ("records", "size") if key in made.facts}
    if made.problem is not None:
        facts |= {"cells": len(made.problem.table), "sensitive": len(made.problem.sensitive)}
        facts["dimensions"] = len(made.problem.table.dimensions)
    if made.hidden is not None:
        facts["unknown"] = int(made.hidden.sum())
    return facts


def measured(asked: dict[str, Any], root: Path, scratch: Path) -> list[Row]:
    """The rows of one program: one, or those that others printed.

    What the clock says is written before the judges begin, so that a release they cannot judge in time is a row too.
    """
    program = PROGRAMS[asked["task"]][asked["program"]]
    case = Case(
        made=instance_of(asked["instance"], root / asked["instance"]),
        folder=root / asked["instance"],
        scratch=scratch / "run",
        seconds=asked["seconds"],
        peers=peers.interpreter(),
        patience_s=asked["patience_s"],
    )
    case.scratch.mkdir()
    if asked["figures"] and program.warm is not None:
        warm(case, asked, root, scratch)
    with patience(case.patience_s):
        before, watch = forget_peak(), Stopwatch()
        outcome = program.run(case)
        cpu, wall, peak = watch.cpu_s, watch.wall_s, peak_mb()
    if outcome.rows:
        return [facts_of(case.made) | row for row in outcome.rows]
    row: Row = facts_of(case.made) | {
        "status": "ok",
        "cpu_s": round(cpu if outcome.cpu_s is None else outcome.cpu_s, 4),
        "wall_s": round(wall if outcome.wall_s is None else outcome.wall_s, 4),
        "peak_mb": round(peak if outcome.peak_mb is None else outcome.peak_mb, 1),
        "added_mb": round(max(peak - before, 0.0) if outcome.added_mb is None else outcome.added_mb, 1),
    }
    row |= dict(outcome.measures)

    def keep(known: Row) -> None:
        write([row | known], Path(asked["out"]))

    keep({"note": "not judged in time"} if outcome.release is not None else {})
    return [row | judgement(case, outcome, keep) | dict(outcome.measures)]


def warm(case: Case, asked: dict[str, Any], root: Path, scratch: Path) -> None:
    """Run the program on a small instance first: figures are of the work, not of compilation and imports."""
    program = PROGRAMS[asked["task"]][asked["program"]]
    assert program.warm is not None
    small, folder = instance_of(program.warm, root / program.warm), scratch / "warm"
    folder.mkdir()
    with compiling_at_once():
        program.run(replace(case, made=small, folder=root / program.warm, scratch=folder, seconds=WARM_S))


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Stop a program that takes longer; one that does not listen is ended by the runner."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"no answer in {seconds:.0f} s")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def judgement(case: Case, outcome: Outcome, keep: Callable[[Row], None]) -> Row:
    """What the judges say of a release."""
    if outcome.release is None:
        return {}
    from benchmarks.judges import judged

    return judged(case.made.table_problem, outcome.release, JUDGES_S, keep)


def reason(error: Exception) -> str:
    """The first line of what went wrong, without paths of this machine."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return text.replace(str(Path.home()), "~").replace(tempfile.gettempdir(), "")[:200]


def main(asked: dict[str, Any]) -> None:
    """Do what is asked, and write the rows; a failure is a row too."""
    warnings.simplefilter("ignore")
    tasks.load(asked["task"])
    root, out = Path(asked["root"]), Path(asked["out"])
    with tempfile.TemporaryDirectory() as scratch:
        try:
            if asked["program"] is None:
                instance_of(asked["instance"], root / asked["instance"])
                rows: list[Row] = [{"status": "ok"}]
            else:
                rows = measured(asked, root, Path(scratch))
        except NotHere as missing:
            rows = [{"status": "skipped", "reason": reason(missing)}]
        except TimeoutError as slow:
            rows = [{"status": "out of time", "reason": reason(slow)}]
        except Exception as error:  # whatever a program does, the run goes on
            rows = [{"status": "failed", "reason": reason(error)}]
    write(rows, out)


def write(rows: list[Row], out: Path) -> None:
    """The rows, whole or not at all: the runner may end this process at any time."""
    half = out.with_suffix(".half")
    half.write_text(json.dumps(rows), encoding="utf-8")
    half.replace(out)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
