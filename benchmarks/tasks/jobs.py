"""The same τ-ARGUS job by tablesafe and by pytauargus: reading, tabulating, rules and protection.

`alike` protects from outsiders, as pytauargus does; the other protects also from respondents, who know what they
contributed, and from sums that can be derived, which is what a job does here unless it says otherwise.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.clock import Stopwatch, peak_mb
from benchmarks.judges import judged
from benchmarks.peers import asked, outcome
from benchmarks.registry import Case, Outcome, Row, program
from benchmarks.tasks.suppress import pattern_of
from tablesafe.batch_jobs import run_batch
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.suppress import Suppress
from tablesafe.work.run import OUTSIDERS, Attackers, Run

TASK, WARM = "τ-ARGUS job", "job_3d_optimal"
JUDGES_S = 6.0


def problem_of(folder: Path) -> Problem:
    """The job read by our own reader, with its rules applied."""
    return run_batch(folder / "read.arb").problems[0]


def sizes(problem: Problem) -> Row:
    """How large the table of a job is."""
    return {"cells": len(problem.table), "sensitive": len(problem.sensitive)}


def ours(case: Case, *, alike: bool) -> Outcome:
    """Read and protect."""
    watch = Stopwatch()
    problem = problem_of(case.folder)
    with ThreadPoolExecutor(1) as here:  # processes of their own would be paid for by their start
        run = Run(executor=here, attackers=OUTSIDERS if alike else Attackers())
        release = Suppress(time_limit_s=case.seconds).protect(problem, run)
    cpu, wall, peak = watch.cpu_s, watch.wall_s, peak_mb()
    return Outcome(cpu_s=cpu, wall_s=wall, peak_mb=peak, measures=sizes(problem) | judged(problem, release, JUDGES_S))


program(TASK, "tablesafe alike", "tablesafe", warm=WARM)(partial(ours, alike=True))
program(TASK, "tablesafe", "tablesafe", warm=WARM)(partial(ours, alike=False))


@program(TASK, "pytauargus", "peer")
def peer(case: Case) -> Outcome:
    """The batch file as it is, in the peer's own process."""
    for file in case.folder.iterdir():
        if file.suffix != ".pickle":
            shutil.copy(file, case.scratch / file.name)
    found = asked(case, "batch", case.scratch / "job.arb")
    problem = problem_of(case.folder)
    primary, hidden = pattern_of(problem, case.scratch / "peer.txt")
    differ = int((primary != problem.sensitivity.mask).sum())
    release = Release.from_suppression(problem, hidden | problem.sensitivity.mask)
    note = {"note": "the same sensitive cells" if not differ else f"{differ} sensitive cells differ"}
    return outcome(found, measures=sizes(problem) | judged(problem, release, JUDGES_S) | note)
