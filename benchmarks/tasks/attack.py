"""Attacks: what each guesses and costs, beside midpoints of intervals from fresh programs."""

from __future__ import annotations

from functools import partial

from benchmarks.registry import Case, Outcome, program
from benchmarks.tasks.audit import fresh, release_of
from tablesafe.attack import ATTACKS
from tablesafe.attack.suite import estimate_by
from tablesafe.attack.view import View

TASK, WARM = "attack", "pattern_3d_200"


def ours(case: Case, name: str) -> Outcome:
    """One attack, with what all of them need first: the exact intervals."""
    problem = case.made.table_problem
    view = View.of(problem, release_of(case))
    found = estimate_by(ATTACKS[name](), problem, view, case.seconds)
    told = f"{int(found.disclosed.sum()):,} of {len(found.cells):,} cells guessed within their protection interval"
    return Outcome(measures={"note": f"{told}{'; ' + found.note if found.note else ''}"})


for _name in ATTACKS:
    program(TASK, f"tablesafe {_name}", "tablesafe", warm=WARM)(partial(ours, name=_name))
program(TASK, "midpoints by fresh programs", "naive")(fresh)
