"""Run one of the peers in its own interpreter, and say what it used. This file imports nothing of tablesafe.

run.py TASK ARGUMENTS: the answer is one line of JSON, the last on standard output.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def used() -> float:
    """CPU seconds of this process and its children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


def timed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer with the seconds and the memory it took; imports are done before."""
    before, cpu, wall = held("VmRSS"), used(), time.perf_counter()
    answer = work()
    cpu, wall, peak = used() - cpu, time.perf_counter() - wall, held("VmHWM")
    return answer | {"cpu_s": cpu, "wall_s": wall, "peak_mb": peak, "added_mb": max(peak - before, 0.0)}


def held(mark: str) -> float:
    """Megabytes of memory, by one of the kernel's marks."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(mark)).split()[1]) / 1024


def optimal(file: str, out: str, seconds: str) -> dict[str, Any]:
    """The exact method of τ-ARGUS on a JJ file."""
    from pytauargus import HiTaSCtrl  # type: ignore[import-not-found]

    engine = HiTaSCtrl()

    def work() -> dict[str, Any]:
        code = engine.full_jj(in_file_jj=file, out_file=out, max_time=int(seconds))
        return {"code": code, "said": engine.error_string(code) if code else "done"}

    return timed(work)


def batch(file: str) -> dict[str, Any]:
    """A batch job of τ-ARGUS."""
    from pytauargus.engine import run_batch  # type: ignore[import-not-found]

    def work() -> dict[str, Any]:
        run_batch(file)
        return {}

    return timed(work)


def audit(file: str, out: str) -> dict[str, Any]:
    """The audit of τ-ARGUS: intervals of the withheld cells of a JJ file."""
    from pytauargus._tauargus import audit_jj  # type: ignore[import-not-found]

    found: list[dict[str, Any]] = []

    def work() -> dict[str, Any]:
        found.extend(audit_jj(file))
        return {"asked": len(found), "unsafe": sum(bool(row["unsafe"]) for row in found)}

    answer = timed(work)
    Path(out).write_text(json.dumps([[row["cell"], row["min"], row["max"]] for row in found]))
    return answer


def rounding(file: str, out: str, base: str, seconds: str) -> dict[str, Any]:
    """Controlled rounding of τ-ARGUS on a JJ file, with the constants that its own batch runs set."""
    from pytauargus import RounderCtrl

    engine = RounderCtrl()
    for number, value in ((101, 1e-7), (102, 2.14e13), (103, 1e-4), (104, 1e-2)):
        engine.set_double_constant(number, value)

    def work() -> dict[str, Any]:
        result, jump, jumps, _, error = engine.do_round(
            solver="SCIP", in_file=file, base=float(base), upper_bound=[1e40], lower_bound=[0.0], solution_file=out,
            statistics_file=f"{out}.statistics", max_time=int(seconds),
        )  # fmt: skip
        return {"result": result, "error": error, "furthest": jump, "beyond": jumps}

    return timed(work)


def crosstab(file: str) -> dict[str, Any]:
    """A two-way table of sums by acro, with its checks: too few, dominance, p%."""
    import logging

    import pandas as pd
    from acro import ACRO  # type: ignore[import-not-found]

    logging.disable(logging.CRITICAL)
    session = ACRO(suppress=True)

    def work() -> dict[str, Any]:
        records = pd.read_csv(file, dtype={"row": str, "column": str})
        table = session.crosstab(
            records["row"], records["column"], values=records["amount"], aggfunc="sum", margins=False
        )
        flags = next(iter(session.results.results.values())).outcome
        flagged = int((flags.astype(str) != "ok").to_numpy().sum())
        return {"cells": int(table.size), "flagged": flagged}

    return timed(work)


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "optimal": optimal, "batch": batch, "audit": audit, "round": rounding, "crosstab": crosstab,
}  # fmt: skip

if __name__ == "__main__":
    print("\n" + json.dumps(TASKS[sys.argv[1]](*sys.argv[2:])))
