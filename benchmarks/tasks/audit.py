"""The audit: exact intervals of every withheld cell, against one fresh program per bound and τ-ARGUS's own audit."""

from __future__ import annotations

import json

import numpy as np
from scipy.optimize import linprog

from benchmarks.clock import Stopwatch
from benchmarks.peers import asked, outcome
from benchmarks.registry import Case, Outcome, program
from tablesafe.audit.audit import audit
from tablesafe.audit.intervals import Intervals, exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.release import Release
from tablesafe.io.jj import write_jj

TASK, WARM = "audit", "pattern_3d_200"
SAMPLE = 20
"""Cells that fresh programs are asked about; their time is scaled up to all."""
CLOSE = 1e-6


def release_of(case: Case) -> Release:
    """The release of the instance's pattern."""
    return Release.from_suppression(case.made.table_problem, case.made.pattern)


@program(TASK, "tablesafe", "tablesafe", warm=WARM)
def ours(case: Case) -> Outcome:
    """The exact interval of every withheld cell."""
    system = System.of(case.made.table_problem, release_of(case))
    exact_intervals(system)
    return Outcome(measures={"programs": 2 * len(system)})


@program(TASK, "tablesafe protected or not", "tablesafe", warm=WARM)
def decided(case: Case) -> Outcome:
    """Only which sensitive cells are protected from outsiders."""
    findings = audit(
        case.made.table_problem, release_of(case), exact=False, insiders=False, unions=False, certify=False
    )
    return Outcome(measures={"note": f"{len(findings.open):,} of {len(findings.cells):,} open"})


@program(TASK, "tablesafe certified", "tablesafe", warm=WARM)
def certified(case: Case) -> Outcome:
    """Everything: exact intervals, sums that can be derived, and two tables as proof of every protected cell."""
    findings = audit(case.made.table_problem, release_of(case))
    return Outcome(measures={"note": f"{len(findings.open):,} open, with certificate"})


@program(TASK, "fresh programs", "naive")
def fresh(case: Case) -> Outcome:
    """A fresh program for each bound of a sample of cells; the time is scaled up to all bounds."""
    system = System.of(case.made.table_problem, release_of(case))
    matrix, rhs = system.matrix.astype(np.float64), system.rhs.astype(np.float64)
    limits = np.column_stack([system.lower, system.upper])
    cells = np.random.default_rng(1).permutation(len(system))[:SAMPLE]
    watch, found = Stopwatch(), []
    for cell in cells.tolist():
        cost = np.zeros(len(system))
        cost[cell] = 1.0
        for sign in (1.0, -1.0):
            answer = linprog(sign * cost, A_eq=matrix, b_eq=rhs, bounds=limits, method="highs")
            found.append((cell, sign, -sign * np.inf if answer.status == 3 else sign * float(answer.fun)))
        if watch.wall_s > case.patience_s / 2:
            break
    share = 2 * len(system) / len(found)
    cpu, wall = watch.cpu_s * share, watch.wall_s * share
    exact = exact_intervals(system)
    wrong = sum(not _same(value, (exact.lower if sign > 0 else exact.upper)[cell]) for cell, sign, value in found)
    note = f"from {len(found)} of {2 * len(system):,} programs; {wrong} disagree with ours"
    return Outcome(cpu_s=cpu, wall_s=wall, measures={"note": note, "disagree": wrong, "scaled_up": share})


@program(TASK, "pytauargus", "peer")
def peer(case: Case) -> Outcome:
    """The audit of τ-ARGUS: the interval of every withheld cell of the same JJ file."""
    problem, hidden = case.made.table_problem, case.made.pattern
    held = problem.replace(suppressed=hidden & ~problem.sensitivity.mask)
    file, answer = case.scratch / "in.jj", case.scratch / "out.json"
    write_jj(held, file)
    found = asked(case, "audit", file, answer)
    system = System.of(problem, release_of(case))
    exact, unit = exact_intervals(system), 10.0**problem.table.decimals
    place = {int(cell): i for i, cell in enumerate(system.cells)}
    wrong = _disagree(exact, place, json.loads(answer.read_text()), unit)
    note = f"{found['asked']:,} cells; {wrong} intervals disagree with ours"
    return outcome(found, measures={"note": note, "disagree": wrong})


def _disagree(exact: Intervals, place: dict[int, int], rows: list[list[float]], unit: float) -> int:
    """How many finite intervals are not ours; cells that are known exactly have none in the system."""
    wrong = 0
    for cell, low, high in rows:
        at = place.get(int(cell))
        if at is not None and np.isfinite(exact.upper[at]):
            wrong += not (_same(low * unit, exact.lower[at]) and _same(high * unit, exact.upper[at]))
    return wrong


def _same(theirs: float, ours: float) -> bool:
    return bool(theirs == ours or abs(theirs - ours) <= CLOSE * max(1.0, abs(ours)))
