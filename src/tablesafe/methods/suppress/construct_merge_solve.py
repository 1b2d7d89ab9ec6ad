"""The best pattern among the cells that searches have used so far: few enough to choose exactly.

Every deviation that a search tries, kept or not, names cells that are worth withholding somewhere. The least costly
pattern made of these cells is found by branch and cut, in programs that are a fraction of the size of the table's, and
it is better than every pattern that contributed to it. (Construct, merge, solve and adapt: Blum et al.)
"""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Integers
from tablesafe.methods.suppress.branch_and_cut.exact import BranchAndCut
from tablesafe.methods.suppress.search import Search

MARGIN = 1e-9
"""Relative saving that counts."""


def combine(search: Search, *, seconds: float) -> bool:
    """Choose anew among the cells used so far; says whether the best pattern became better."""
    assert search.best is not None
    instance, before = search.instance, search.best_cost
    cells = np.flatnonzero((search.ever_used | search.best | instance.forced) & instance.live)
    part = narrowed(search, cells, seconds=seconds)
    BranchAndCut(part).advance(part.late)
    return search.best_cost < before


def narrowed(search: Search, cells: Integers, *, seconds: float) -> Search:
    """A search among some (ascending) cells, as if every other cell were published; better patterns are handed over.

    Its bounds say nothing about patterns that use other cells.
    """
    assert search.best is not None

    def hand_over(cost: float, bound: float) -> None:
        if part.best is not None and cost < search.best_cost * (1 - MARGIN):
            pattern = search.instance.forced.copy()
            pattern[cells] |= part.best
            search.keep(pattern, cost)

    part = Search(
        search.instance.only(cells),
        budget=search.budget.child(work=seconds),
        seed=search.seed,
        report=hand_over,
    )
    part.keep(search.best[cells], search.best_cost)
    return part
