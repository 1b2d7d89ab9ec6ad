"""Adjustment true to the statistics: Cox & Kelly's table by each formulation, and what running sums save a search."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import tablesafe as ts
from benchmarks.clock import Stopwatch
from benchmarks.instances.papers import COX_KELLY
from benchmarks.registry import Case, Outcome, Row, program
from tablesafe.core.equations import Floats, Integers
from tablesafe.loss.statistics import Relation
from tablesafe.methods.adjust.costs import cost_of
from tablesafe.methods.adjust.instance import Allowance, Instance
from tablesafe.methods.adjust.tabu import kernel
from tablesafe.methods.adjust.tabu.cycles import Cycles
from tablesafe.methods.adjust.tabu.search import data_of
from tablesafe.work.compiled import compiled

TASK, STEPS_TASK, WARM, STEPS = "adjust statistics", "tabu steps", "cox_kelly_4x9", 5_000


def kept(problem: ts.Problem, values: Floats) -> Row:
    """The three statistics over the sensitive cells, and how much was changed."""
    cells, truth = problem.sensitive, problem.table.value
    found = Relation.of(truth[cells], np.asarray(values)[cells])
    words = f"correlation {found.correlation:.4f}, slope {found.slope:.4f}, variance ratio {found.variance_ratio:.4f}"
    return {"objective": float(np.abs(values - truth).sum()), "note": words}


def ours(case: Case, method: ts.Adjust) -> Outcome:
    """One formulation."""
    problem = case.made.table_problem
    release = method.protect(problem)
    return Outcome(release=release, measures=kept(problem, release.values))


def half(keep: ts.Keep, tabu: ts.Tabu | None = None) -> ts.Adjust:
    """The paper's capacities: changes up to half of the value."""
    return ts.Adjust(cost="constant", capacity_percent=50, directions="alternating", keep=keep, tabu=tabu)


ONLY: dict[str, Any] = {"distance": 0.0, "correlation": 0.0, "slope": 0.0, "variance": 0.0}
FORMULATIONS: dict[str, ts.Adjust] = {
    "least change, zeros move": ts.Adjust(cost="constant", zeros=True),
    "least change, mean kept": ts.Adjust(cost="constant", keep=ts.Keep()),
    "variance best": half(ts.Keep(variance="best")),
    "slope best": half(ts.Keep(slope="best")),
    "correlation best": half(ts.Keep(correlation="best")),
    "all three best": half(ts.Keep(variance="best", slope="best", correlation="best")),
    "within the printed lp_variance": half(ts.Keep(variance=0.0625, slope=0.075, correlation=0.0448)),
    "L(y) largest": half(ts.Keep(correlation="best", formulation="linear")),
    "|L(y)| least": half(ts.Keep(slope="best", formulation="linear")),
    "tabu, all three": half(ts.Keep(), ts.Tabu(**(ONLY | {"correlation": 1, "slope": 1, "variance": 1}))),
    "tabu, correlation": half(ts.Keep(), ts.Tabu(**(ONLY | {"correlation": 1.0}))),
}
for _name, _method in FORMULATIONS.items():
    program(TASK, f"tablesafe {_name}".replace("|", ""), "tablesafe", warm=WARM)(partial(ours, method=_method))


@program(TASK, "printed", "printed")
def printed(case: Case) -> Outcome:
    """The adjusted tables of the paper."""
    problem = case.made.table_problem
    columns = problem.table.columns
    figures = {name: kept(problem, np.asarray(columns[name])) for name in COX_KELLY}
    rows = ({"program": f"printed {name}", "status": "ok", **figure} for name, figure in figures.items())
    return Outcome(rows=tuple(rows))


# -- the same steps judged by running sums, and by adding all cells up anew --------------------------------------------


@compiled
def by_running_sums(data: kernel.Data, state: kernel.State, chosen: Integers, lengths: Integers) -> Floats:
    """The measure after each step, from what the step touches."""
    values, now = np.zeros(len(chosen)), kernel.measure(data, state)
    for k in range(len(chosen)):
        first, last = data.start[chosen[k]], data.start[chosen[k] + 1]
        cells, steps = data.cell[first:last], data.coefficient[first:last]
        values[k] = now + kernel.gain(data, state, cells, steps, last - first, lengths[k])
    return values


@compiled
def anew(data: kernel.Data, state: kernel.State, chosen: Integers, lengths: Integers) -> Floats:
    """The measure after each step, from all cells."""
    values = np.zeros(len(chosen))
    for k in range(len(chosen)):
        for z in range(data.start[chosen[k]], data.start[chosen[k] + 1]):
            state.moves[data.cell[z]] += lengths[k] * data.coefficient[z]
        values[k] = kernel.refresh(data, state)
        for z in range(data.start[chosen[k]], data.start[chosen[k] + 1]):
            state.moves[data.cell[z]] -= lengths[k] * data.coefficient[z]
    return values


def judging(case: Case, *, running: bool) -> Outcome:
    """Judge the same random steps one way."""
    problem = case.made.table_problem
    instance = Instance.of(problem, cost_of(problem, "constant"), Allowance(zeros=True))
    random = np.random.default_rng(0)
    cycles = Cycles.of(instance, random)
    assert cycles is not None
    data = data_of(problem, instance, ts.Tabu(over="all"), cycles)
    state = kernel.state_of(data, random.integers(-9, 10, len(instance.cells)))
    chosen, lengths = random.integers(len(cycles), size=STEPS), random.integers(1, 50, STEPS)
    judge = by_running_sums if running else anew
    judge(data, state, chosen[:1], lengths[:1])  # compiles
    kernel.refresh(data, state)
    watch = Stopwatch()
    values = judge(data, state, chosen, lengths)
    measures = {"objective": float(values.sum()), "note": f"{STEPS:,} steps"}
    return Outcome(cpu_s=watch.cpu_s, wall_s=watch.wall_s, measures=measures)


program(STEPS_TASK, "tablesafe running sums", "tablesafe")(partial(judging, running=True))
program(STEPS_TASK, "added up anew", "naive")(partial(judging, running=False))
