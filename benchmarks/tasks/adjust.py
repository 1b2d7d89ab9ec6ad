"""Controlled tabular adjustment: ours by several directions, all cells up, one integer program, and printed figures."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from benchmarks.instances.files import lines
from benchmarks.instances.papers import SYNTHETIC
from benchmarks.registry import Case, NotHere, Outcome, Row, program
from tablesafe.core.equations import Floats
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.methods.adjust import Adjust
from tablesafe.methods.adjust.costs import MEASURES, cost_of
from tablesafe.methods.adjust.directions import DirectionsName

TASK, WARM = "adjust", "values_2d_100"
REFERENCE = "adjust reference"
PAPER = "adjust paper"
PERCENT = "adjust percent"


def ours(case: Case, directions: DirectionsName = "optimal", cost: str = "value") -> Outcome:
    """One run of our own."""
    problem = case.made.table_problem
    release = Adjust(cost=cost, directions=directions, time_limit_s=case.seconds).protect(problem)
    assert release.solution is not None
    return Outcome(release=release, measures={"objective": release.solution.objective, "gap": release.solution.gap})


program(TASK, "tablesafe", "tablesafe", warm=WARM)(ours)
program(TASK, "tablesafe alternating", "tablesafe", warm=WARM)(partial(ours, directions="alternating"))
program(TASK, "tablesafe search", "tablesafe", warm=WARM)(partial(ours, directions="search"))


def adjusted(problem: Problem, values: Floats) -> Release:
    """A release with these values: the truth may be anything within the prior bounds where a cell could change."""
    moved = ~problem.frozen & (problem.table.value != 0)
    status = np.where(np.abs(values - problem.table.value) > 0, Status.CHANGED, Status.PUBLISHED).astype(np.uint8)
    lower = np.where(moved, problem.lower, problem.table.value)
    return Release(problem.table, values, lower, np.where(moved, problem.upper, problem.table.value), status, "adjust")


def free_changes(problem: Problem) -> tuple[np.ndarray, sparse.csr_array, Floats, Floats]:
    """The cells that may change, their equations, and how far they may fall and rise."""
    moving = np.flatnonzero(~problem.frozen & (problem.table.value != 0))
    matrix = sparse.csr_array(sparse.csc_array(problem.table.equations)[:, moving]).astype(np.float64)
    value = problem.table.value[moving]
    return moving, matrix, value - problem.lower[moving], problem.upper[moving] - value


@program(TASK, "all up", "naive")
def all_up(case: Case) -> Outcome:
    """Every sensitive cell rises: one linear program over the whole table."""
    problem = case.made.table_problem
    moving, matrix, fall, rise = free_changes(problem)
    cost = cost_of(problem, "value")[moving]
    least = np.where(problem.sensitivity.mask, problem.sensitivity.upper, 0.0)[moving]
    up, down = np.column_stack([least, rise]), np.column_stack([np.zeros(len(moving)), fall])
    down[problem.sensitivity.mask[moving], 1] = 0.0
    options = {"time_limit": case.patience_s * 0.7}
    answer = linprog(
        np.concatenate([cost, cost]), A_eq=sparse.hstack([matrix, -matrix]), b_eq=np.zeros(matrix.shape[0]),
        bounds=np.vstack([up, down]), method="highs", options=options,
    )  # fmt: skip
    if answer.x is None:
        raise RuntimeError(f"no answer: {answer.message}")
    values = problem.table.value.copy()
    values[moving] += answer.x[: len(moving)] - answer.x[len(moving) :]
    return Outcome(release=adjusted(problem, values), measures={"objective": float(answer.fun)})


@program(TASK, "one integer program", "naive")
def integer(case: Case) -> Outcome:
    """Each sensitive cell up or down, by a binary of its own: one integer program over the whole table."""
    problem = case.made.table_problem
    moving, matrix, fall, rise = free_changes(problem)
    n, secret = len(moving), np.flatnonzero(problem.sensitivity.mask[moving])
    levels = problem.sensitivity
    upper, lower = levels.upper[moving[secret]], levels.lower[moving[secret]]
    most = 10 * (upper + lower).max() + 10 * problem.table.value[moving[secret]]
    rise[secret], fall[secret] = np.minimum(rise[secret], most), np.minimum(fall[secret], most)
    s = len(secret)
    pick = sparse.csr_array((np.ones(s), (np.arange(s), secret)), shape=(s, n))
    none = sparse.csr_array((s, n))
    constraints = [
        LinearConstraint(sparse.hstack([matrix, -matrix, sparse.csr_array((matrix.shape[0], s))]), 0, 0),
        LinearConstraint(sparse.hstack([pick, none, -sparse.diags_array(rise[secret])]), -np.inf, 0),
        LinearConstraint(sparse.hstack([pick, none, -sparse.diags_array(upper)]), 0, np.inf),
        LinearConstraint(sparse.hstack([none, pick, sparse.diags_array(fall[secret])]), -np.inf, fall[secret]),
        LinearConstraint(sparse.hstack([none, pick, sparse.diags_array(lower)]), lower, np.inf),
    ]
    cost = cost_of(problem, "value")[moving]
    answer = milp(
        np.concatenate([cost, cost, np.zeros(s)]),
        integrality=np.concatenate([np.zeros(2 * n), np.ones(s)]),
        bounds=Bounds(np.zeros(2 * n + s), np.concatenate([rise, fall, np.ones(s)])),
        constraints=constraints,
        options={"time_limit": case.seconds},
    )
    if answer.x is None:
        raise RuntimeError(f"no answer: {answer.message}")
    values = problem.table.value.copy()
    values[moving] += answer.x[:n] - answer.x[n : 2 * n]
    measures = {"objective": float(answer.fun), "gap": float(answer.mip_gap)}
    return Outcome(release=adjusted(problem, values), measures=measures)


# -- the instances of the literature: cost 1 / value, zeros may change -------------------------------------------------


def relative(case: Case, directions: DirectionsName) -> Outcome:
    """Ours with the cost that the reference figures have."""
    problem = case.made.table_problem
    cost = 1.0 / np.maximum(problem.table.value, 1.0)
    method = Adjust(cost=cost, zeros=True, decimals=3, directions=directions, time_limit_s=case.seconds)
    release = method.protect(problem)
    assert release.solution is not None
    return Outcome(release=release, measures={"objective": release.solution.objective, "gap": release.solution.gap})


program(REFERENCE, "tablesafe", "tablesafe", warm=WARM)(partial(relative, directions="optimal"))
program(REFERENCE, "tablesafe up", "tablesafe", warm=WARM)(partial(relative, directions="up"))


@program(REFERENCE, "printed", "printed")
def reference(case: Case) -> Outcome:
    """The reference figures beside the instances."""
    folder, _, name = str(case.made.facts.get("file", "")).partition("/")
    found = lines("jj/cta_reference.csv", instance=name) if folder == "jj" else []
    asked = {"all up": "lp_all_up_cost_1_over_value", "either": "milp_two_sided_incumbent"}
    rows: list[Row] = [
        {"program": f"reference, {word}", "status": "ok", "objective": float(row[column])}
        for row in found
        for word, column in asked.items()
        if row[column]
    ]
    if not rows:
        raise NotHere("there is no reference for this instance")
    return Outcome(rows=tuple(rows))


# -- how many cells of large linked tables change by less than one percent ---------------------------------------------


def little_changed(case: Case, cost: str) -> Outcome:
    """Ours by one cost: the share of the cells that are not zero and change by less than one percent."""
    problem = case.made.table_problem
    release = Adjust(cost=cost, time_limit_s=case.seconds).protect(problem)
    assert release.solution is not None
    value = problem.table.value
    there = value != 0
    share = np.mean(np.abs(release.values - value)[there] < 0.01 * np.abs(value)[there])
    note = f"{100 * share:.1f}% of the cells within 1%"
    measures = {"objective": release.solution.objective, "gap": release.solution.gap, "note": note}
    return Outcome(release=release, measures=measures)


for _cost in MEASURES:
    program(PERCENT, f"tablesafe {_cost}", "tablesafe", warm=WARM)(partial(little_changed, cost=_cost))


# -- Tables 6 and 7 of Dandekar & Cox ----------------------------------------------------------------------------------


def by_cost(case: Case, cost: str, directions: DirectionsName) -> Outcome:
    """One column of Table 6: percent changes by cost."""
    from tablesafe.loss.quality import quality

    problem = case.made.table_problem
    release = Adjust(cost=cost, directions=directions).protect(problem)
    assert release.solution is not None
    found = quality(problem, release)
    note = f"average change {found.loss.average_percent:.2f}%"
    return Outcome(release=release, measures={"objective": release.solution.objective, "note": note})


for _directions in ("alternating", "optimal"):
    for _cost in MEASURES:
        _run = partial(by_cost, cost=_cost, directions=_directions)
        program(PAPER, f"tablesafe {_directions}, {_cost}", "tablesafe", warm=WARM)(_run)


@program(PAPER, "tablesafe best of 100 random", "tablesafe", warm=WARM)
def tries(case: Case) -> Outcome:
    """Random directions at constant cost. The paper's best of 100 (Table 6) is 3,058, at costs that are values."""
    release = Adjust(cost="constant", directions="random", tries=100).protect(case.made.table_problem)
    assert release.solution is not None
    measures = {"objective": release.solution.objective, "note": "the paper's best of 100 at cost value is 3,058"}
    return Outcome(release=release, measures=measures)


@program(PAPER, "printed table", "naive")
def synthetic(case: Case) -> Outcome:
    """The adjusted table that the paper prints, judged as ours are."""
    problem = case.made.table_problem
    values = np.asarray(problem.table.columns[SYNTHETIC], dtype=np.float64)
    status = np.where(values == problem.table.value, Status.PUBLISHED, Status.CHANGED).astype(np.uint8)
    objective = float(np.abs(values - problem.table.value).sum())
    release = Release(problem.table, values, problem.lower, problem.upper, status, "printed")
    return Outcome(release=release, measures={"objective": objective, "note": "at constant cost"})
