"""The first answer in a new process: with loops still to be compiled, with loops compiled before, and imports alone.

Every run is an interpreter of its own. Numba keeps what it compiled in a folder that each case is given anew: *cold*
finds it empty, as on a machine where tablesafe was just installed; *warm* finds there what a run before left.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import tablesafe as ts
from benchmarks.clock import Stopwatch
from benchmarks.registry import Case, NotHere, Outcome, program

TASK = "start"
SOURCES = Path(ts.__file__).resolve().parent.parent
FROM_FILE = """
import sys, tablesafe as ts
problem = ts.read_jj(sys.argv[1])
release = ts.Suppress(time_limit_s=float(sys.argv[2])).protect(problem)
assert ts.audit(problem, release).safe
"""
FROM_RECORDS = """
import sys, tablesafe as ts
roles = {"value": "turnover", "respondent": "firm_id", "holding": "group_id"}
table = ts.tabulate(sys.argv[1], dimensions=["size", "nace"], **roles)
problem = ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=10)])
release = ts.Suppress(time_limit_s=float(sys.argv[2])).protect(problem)
assert ts.audit(problem, release).safe
"""
IMPORT = "import tablesafe"
EVERYTHING = "import tablesafe as ts; ts.read_jj, ts.tabulate, ts.Suppress, ts.audit, ts.Adjust, ts.Round"
LIBRARIES = "import numpy, scipy.sparse, scipy.optimize, polars"


def timed(case: Case, arguments: Sequence[str | Path], cache: Path) -> Outcome:
    """A new interpreter with these arguments: the CPU seconds of all of it."""
    cache.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(SOURCES)}
    watch = Stopwatch()
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment, cwd=case.scratch,
        timeout=case.patience_s, check=False,
    )  # fmt: skip
    cpu, wall = watch.cpu_s, watch.wall_s
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no reason given"])[-1][:200])
    return Outcome(cpu_s=cpu, wall_s=wall)


def answer(case: Case) -> list[str | Path]:
    """What asks for the first answer: from records where the instance has them, else from a JJ file."""
    records = case.folder / "records.parquet"
    if records.exists():
        return ["-c", FROM_RECORDS, records, str(case.seconds)]
    return ["-c", FROM_FILE, table_of(case), str(case.seconds)]


def table_of(case: Case) -> Path:
    """The instance as a JJ file."""
    path = case.scratch / "table.jj"
    ts.write_jj(case.made.table_problem, path)
    return path


@program(TASK, "tablesafe warm", "tablesafe")
def warm(case: Case) -> Outcome:
    """Import, read, protect, audit; the loops were compiled by a run before."""
    timed(case, answer(case), case.scratch / "kept")
    return timed(case, answer(case), case.scratch / "kept")


@program(TASK, "tablesafe cold", "tablesafe")
def cold(case: Case) -> Outcome:
    """The same where nothing is compiled yet."""
    return timed(case, answer(case), case.scratch / "empty")


@program(TASK, "tablesafe shell", "tablesafe")
def shell(case: Case) -> Outcome:
    """`tablesafe suppress table.jj`, when the loops are compiled."""
    if (case.folder / "records.parquet").exists():
        raise NotHere("the command takes a table")
    seconds = ["--time-limit-s", str(case.seconds)]
    command = ["-m", "tablesafe", "suppress", table_of(case), *seconds, "-o", case.scratch / "pattern.csv"]
    timed(case, command, case.scratch / "kept")
    (case.scratch / "pattern.csv").unlink()
    return timed(case, command, case.scratch / "kept")


def imports(case: Case, code: str) -> Outcome:
    """An interpreter that only imports, once before so that everything is in the file cache."""
    timed(case, ["-c", code], case.scratch / "kept")
    return timed(case, ["-c", code], case.scratch / "kept")


program(TASK, "tablesafe import", "tablesafe")(partial(imports, code=IMPORT))
program(TASK, "tablesafe import all", "tablesafe")(partial(imports, code=EVERYTHING))
program(TASK, "libraries alone", "naive")(partial(imports, code=LIBRARIES))
program(TASK, "Python alone", "naive")(partial(imports, code="pass"))
