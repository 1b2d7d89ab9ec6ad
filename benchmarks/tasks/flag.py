"""A two-way table with its sensitive cells flagged: ours, plain pandas, and acro.

The rules are acro's own: fewer than 10 contributors; the two largest hold more than 90%; the p% rule with 10%. Zeros
are left alone: acro flags empty cells too, which is counted apart in its note.
"""

from __future__ import annotations

import numpy as np

from benchmarks.peers import asked, outcome
from benchmarks.registry import Case, Outcome, program
from tablesafe.core.problem import Problem
from tablesafe.rules import Dominance, PPercent, Threshold
from tablesafe.tabulate import tabulate

TASK, WARM = "flag", "flat_1k"
FEW, SHARE, PERCENT = 10, 90, 10


@program(TASK, "tablesafe", "tablesafe", warm=WARM)
def ours(case: Case) -> Outcome:
    """Tabulate and apply the rules; totals are tabulated too, and not counted."""
    table = tabulate(
        case.folder / "records.csv", dimensions=["row", "column"], value="amount", respondent="firm", largest=2
    )
    problem = Problem(table, rules=[Threshold(n=FEW), Dominance(n=2, k=SHARE), PPercent(p=PERCENT)])
    inner = ~table.is_total & (table.value != 0)
    return Outcome(measures={"cells": len(table), "note": f"{int((problem.sensitivity.mask & inner).sum())} flagged"})


@program(TASK, "pandas", "naive", warm=WARM)
def with_pandas(case: Case) -> Outcome:
    """Group by both columns, sort the amounts of each cell, and compare."""
    import pandas as pd

    records = pd.read_csv(case.folder / "records.csv")
    cells = records.groupby(["row", "column"])["amount"]
    total, count = cells.sum(), cells.count()
    largest = cells.nlargest(2).groupby(level=[0, 1])
    first, two = largest.max().reindex(total.index), largest.sum().reindex(total.index)
    flagged = (count < FEW) | (two > SHARE / 100 * total) | (total - two < PERCENT / 100 * first)
    return Outcome(measures={"cells": len(total), "note": f"{int(np.count_nonzero(flagged))} flagged"})


@program(TASK, "acro", "peer")
def acro(case: Case) -> Outcome:
    """acro's crosstab with its default checks."""
    found = asked(case, "crosstab", case.folder / "records.csv")
    note = f"{found['flagged']} flagged, empty cells included"
    return outcome(found, measures={"cells": found["cells"], "note": note})
