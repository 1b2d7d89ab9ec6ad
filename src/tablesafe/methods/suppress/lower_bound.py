"""What every safe pattern of a large table costs at least: a linear program over the capacity cuts of its subtables.

A pattern that protects a target in the table protects it in every subtable, where an attacker has fewer equations to
rule deviations out with. So what branch and cut proves about a subtable, when nothing but the sensitive cells is
withheld, holds for the table (the prices of all other equations are zero: Fischetti & Salazar-González, section 4.1).
The cuts of all subtables together, over the cells they share, bound the cost.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Integers
from tablesafe.methods.suppress.branch_and_cut.attacker import Attacker
from tablesafe.methods.suppress.branch_and_cut.cuts import Variables
from tablesafe.methods.suppress.branch_and_cut.master_problem import Covering, Cut
from tablesafe.methods.suppress.branch_and_cut.separation import Separation
from tablesafe.methods.suppress.branch_and_cut.targets import Targets
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.top_down import Subtables
from tablesafe.solve.neighbourhood import spans
from tablesafe.work.budget import Budget

CUTTING = 0.7
"""Share of the budget for cuts; the rest is for the program over all of them."""
ROUNDS = 8
"""Rounds of cuts for one subtable by itself."""


def lower_bound(instance: Instance, targets: Targets, subtables: Subtables, budget: Budget) -> float:
    """A bound on the cost of every safe pattern, the finest subtables first; weaker where the budget is soon over."""
    variables = Variables.of(instance, None)
    whole = Covering(variables.cost, budget)
    place = np.full(len(instance), -1, dtype=np.int64)
    asked = np.zeros(len(instance), dtype=np.bool_)
    asked[targets.cell] = True
    order = np.argsort(targets.cell, kind="stable")
    start = np.searchsorted(targets.cell[order], np.arange(len(instance) + 1))
    cutting = budget.child(CUTTING * budget.left)
    for i in np.argsort(-subtables.depth, kind="stable").tolist():
        if cutting.over:
            break
        cells = subtables.cells[i]
        if not asked[cells].any():
            continue
        place[cells] = np.arange(len(cells))
        own = targets.take(order[spans(start, cells)[0]])
        own = Targets(place[own.cell], own.sign, own.level)
        whole.add(_cuts(within(instance, cells, subtables.rows[i]), own, variables.of_cell[cells], cutting))
    if not whole.cuts:
        return 0.0
    whole.relax(max(budget.seconds_left, 1.0))
    return whole.proved if np.isfinite(whole.proved) else 0.0


def within(instance: Instance, cells: Integers, rows: Integers) -> Instance:
    """A subtable with nothing withheld that need not be; its targets are said apart."""
    matrix = sparse.csr_array(instance.rows[rows][:, cells])
    return Instance(
        matrix,
        sparse.csc_array(matrix),
        instance.cost[cells],
        instance.forced[cells],
        instance.live[cells],
        instance.up[cells],
        instance.down[cells],
        np.zeros(0, dtype=np.int64),
        np.zeros(0, dtype=np.int8),
        np.zeros(0),
    )


def _cuts(part: Instance, targets: Targets, number: Integers, budget: Budget) -> list[Cut]:
    """The cuts of a subtable until they are enough for it by itself, in the variables of the whole table."""
    own = Variables.of(part, None)
    if not len(own.cost):
        return []
    separation = Separation(part, targets, own, Attacker(part, budget), lambda: budget.over)
    covering, x = Covering(own.cost, budget), np.zeros(len(own.cost))
    for _ in range(ROUNDS):
        seen = separation.look(own.shares(part.forced, x), x, covering.high)
        if not covering.add(seen.cuts) or budget.over:
            break
        x = covering.relax(max(budget.seconds_left, 0.05))
    return [Cut(number[own.cell[cut.variables]], cut.coefficients, cut.least) for cut in covering.cuts]
