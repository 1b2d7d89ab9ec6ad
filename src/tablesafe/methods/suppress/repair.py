"""The audit has the last word: what it finds open is protected anew until nothing is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.audit import audit
from tablesafe.equations import Mask
from tablesafe.errors import SolverFailure
from tablesafe.methods.suppress.neighbourhood import Neighbourhoods
from tablesafe.methods.suppress.optimal import Search
from tablesafe.methods.suppress.sequential import protect_all
from tablesafe.methods.suppress.witnesses import Witnesses
from tablesafe.problem import Problem
from tablesafe.release import Release

ROUNDS = 12


def repaired(problem: Problem, search: Search, pattern: Mask) -> Mask:
    """A pattern that the audit of the whole system finds safe; what was withheld stays withheld.

    The search works with the tolerances of floating point, the audit with exact arithmetic: each round asks for a
    little more than the levels, so that the two cannot disagree for ever.
    """
    for round_ in range(ROUNDS):
        release = Release.from_suppression(problem, pattern)
        findings = audit(problem, release, exact=False, insiders=False, unions=False, certify=False)
        still_open = findings.cells[~findings.protected]
        if not still_open.size:
            return pattern
        pattern = pattern | _protecting(search, pattern, still_open, 1 + 1e-7 * 10**round_)
    raise SolverFailure(
        f"Cell {problem.table.describe(int(still_open[0]))} stays open after {ROUNDS} rounds of repair.\n\n"
        f"Hint: please report this; a pattern with margin=0.01 will most likely do."
    )


def _protecting(search: Search, pattern: Mask, cells: NDArray[np.intp], stretch: float) -> Mask:
    """What has to be withheld besides a pattern to protect some cells."""
    instance = search.instance
    wider = replace(
        instance,
        forced=instance.forced | pattern,
        cost=np.where(pattern, 0.0, instance.cost),
        level=instance.level * stretch,
    )
    witnesses = Witnesses(wider, Neighbourhoods(wider), search.solver)
    targets = np.flatnonzero(np.isin(instance.cell, cells)).tolist()
    protect_all(witnesses, wider.cost, targets=targets)
    return witnesses.pattern
