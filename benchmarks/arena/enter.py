"""Let the programs that are here make their patterns for an instance, and keep each as a small file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks import machine, peers, tasks
from benchmarks.arena.check import Instance, pattern_text, read_instance
from benchmarks.arena.instances import HERE, file_of
from benchmarks.clock import Stopwatch
from benchmarks.registry import PROGRAMS, Case, Made, NotHere

PATTERNS, BOUNDS = HERE / "patterns", HERE / "bounds"
ENTRANTS = {"tablesafe alike": "tablesafe", "two per sum": "two-per-sum", "pytauargus optimal": "pytauargus-optimal"}
"""Programs of the task `suppress` that take a JJ file, and the names of their files. All protect from outsiders."""


def folder_of(name: str) -> str:
    """The name of an instance as that of a folder or file."""
    return name.replace("/", "-")


def enter(name: str, *, seconds: float) -> list[str]:
    """Run every entrant on an instance; what happened, a line each."""
    tasks.load("suppress")
    with tempfile.TemporaryDirectory() as scratch:
        path = file_of(name, Path(scratch))
        if path is None:
            raise NotHere(f"the file of {name} is not here: set TABLESAFE_INSTANCES")
        instance = read_instance(path)
        return [_entered(name, program, path, instance, Path(scratch), seconds) for program in ENTRANTS]


def _entered(name: str, program: str, path: Path, instance: Instance, scratch: Path, seconds: float) -> str:
    """One program: its pattern replaces the one it had."""
    import tablesafe as ts

    own = scratch / ENTRANTS[program]
    own.mkdir()
    case = Case(
        made=Made(ts.read_jj(path)), folder=scratch, scratch=own, seconds=seconds, peers=peers.interpreter(),
        patience_s=10 * seconds + 60,
    )  # fmt: skip
    watch = Stopwatch()
    try:
        outcome = PROGRAMS["suppress"][program].run(case)
    except Exception as error:  # a program without an answer has no pattern, and the others go on
        return f"{name}: {program}: {(str(error).strip() or type(error).__name__).splitlines()[0]}"
    cpu = watch.cpu_s if outcome.cpu_s is None else outcome.cpu_s
    assert outcome.release is not None
    here = machine.described()
    versions = {**here["libraries"], **here["peers"]}
    product = "pytauargus" if "pytauargus" in program else "tablesafe"
    said = {"program": program, "version": f"{product} {versions.get(product, '')}".strip()}
    said |= {"seconds allowed": f"{seconds:g}", "cpu_s": f"{cpu:.2f}"}
    hidden = np.asarray(outcome.release.suppressed)
    folder = PATTERNS / folder_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    text = pattern_text(instance, hidden, said)
    (folder / f"{ENTRANTS[program]}.txt").write_text(text, encoding="utf-8")
    return f"{name}: {program}: {int((hidden & ~instance.always).sum()):,} cells, {cpu:.2f} s of CPU"
