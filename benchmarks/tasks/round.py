"""Controlled rounding to base 5: ours, one integer program over the whole table, and the rounder of τ-ARGUS."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks.peers import asked, outcome
from benchmarks.registry import Case, Outcome, program
from tablesafe.core.equations import Floats
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.io.jj import write_jj
from tablesafe.methods.round import Round

TASK, WARM, BASE = "round", "counts_2d_100", 5


@program(TASK, "tablesafe", "tablesafe", warm=WARM)
def ours(case: Case) -> Outcome:
    """Controlled rounding with the usual options."""
    problem = case.made.table_problem
    release = Round(base=BASE, time_limit_s=case.seconds).protect(problem)
    assert release.solution is not None
    wide = release.upper - release.values - (BASE - 1)
    beyond = int((wide > 0).sum())
    measures = {"objective": release.solution.objective, "gap": release.solution.gap, "beyond": beyond}
    return Outcome(release=release, measures=measures | {"adds_up": adds_up(problem, release.values)})


def adds_up(problem: Problem, values: Floats) -> bool:
    """Whether every sum holds exactly."""
    return not (problem.table.equations.astype(np.int64) @ values.astype(np.int64)).any()


def rounded(problem: Problem, values: Floats) -> Release:
    """A release of multiples: the public knows that a count is less than a base away."""
    truth = problem.table.value
    lower, upper = np.minimum(np.maximum(values - (BASE - 1), 0), truth), np.maximum(values + (BASE - 1), truth)
    status = np.where(values == truth, Status.PUBLISHED, Status.CHANGED).astype(np.uint8)
    return Release(problem.table, values, lower, upper, status, "round")


@program(TASK, "one integer program", "naive")
def plain(case: Case) -> Outcome:
    """A column for every count that is no multiple, a row for every sum."""
    problem = case.made.table_problem
    table = problem.table
    above = table.integers % BASE
    moving = np.flatnonzero(above)
    matrix = sparse.csr_array(sparse.csc_array(table.equations)[:, moving]).astype(np.float64)
    missing = -(table.equations.astype(np.int64) @ (table.integers - above)) // BASE
    answer = milp(
        (BASE - 2.0 * above[moving]),
        integrality=np.ones(len(moving)),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(matrix, missing, missing)],
        options={"time_limit": case.seconds},
    )
    if answer.x is None:
        raise RuntimeError(f"no answer: {answer.message}")
    values = (table.integers - above).astype(np.float64)
    values[moving] += BASE * np.rint(answer.x)
    objective = float(np.abs(values - table.value).sum())
    measures = {"objective": objective, "gap": float(answer.mip_gap), "adds_up": adds_up(problem, values)}
    return Outcome(release=rounded(problem, values), measures=measures)


@program(TASK, "pytauargus", "peer")
def peer(case: Case) -> Outcome:
    """The rounder of τ-ARGUS on the same JJ file."""
    problem = case.made.table_problem
    file, answer = case.scratch / "in.jj", case.scratch / "out"
    n, most = len(problem.table), 10.0 * float(problem.table.value.max())
    bounded = problem.replace(upper=np.full(n, most), cost=np.ones(n))  # every unit of distance costs the same
    write_jj(bounded, file)
    found = asked(case, "round", file, answer, str(BASE), str(max(1, round(case.seconds))))
    if found["result"] > 0 or not answer.exists():
        raise RuntimeError(f"no rounding: result {found['result']}, error {found['error']}")
    values = read_rounded(answer.read_text(), len(problem.table))
    objective = float(np.abs(values - problem.table.value).sum())
    measures = {"objective": objective, "beyond": found["beyond"], "adds_up": adds_up(problem, values)}
    return outcome(found, release=rounded(problem, values), measures=measures)


def read_rounded(text: str, cells: int) -> Floats:
    """The values of a solution file."""
    values = np.full(cells, np.nan)
    for line in text.splitlines():
        parts = line.split()
        if len(parts) == 5 and parts[0].isdigit():  # cell "from" value "to" value
            values[int(parts[0])] = float(parts[4])
    if np.isnan(values).any():
        raise RuntimeError("the solution does not name every cell")
    return values
