"""The best pattern among the cells that searches have used so far: few enough to choose exactly.

Every deviation that a search tries, kept or not, names cells that are worth withholding somewhere. The least costly
pattern made of these cells is found by cuts, in programs that are a fraction of the size of the table's, and it is
better than every pattern that contributed to it. (Construct, merge, solve and adapt: Blum et al.)
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy import sparse

from tablesafe.equations import Integers
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.optimal import optimise
from tablesafe.methods.suppress.search import Search, Unfinished

MARGIN = 1e-9
ROUNDS = 1
"""Rounds of all targets that are worth it here: among few cells the relaxation rises fast."""


def combine(search: Search, *, seconds: float, patience: int) -> bool:
    """Choose anew among the cells used so far; says whether the best pattern became better."""
    assert search.best is not None
    instance = search.instance
    cells = np.flatnonzero((search.ever_used | search.best | instance.forced) & instance.live)
    part = Search(
        _only(instance, cells),
        deadline=search.deadline,
        seed=search.seed,
        report=lambda cost, bound: None,
        seconds=min(seconds, search.left),
        solver=search.solver,
    )
    part.keep(search.best[cells], search.best_cost)
    with suppress(Unfinished):  # the time of this part is over, not that of the search: what it found counts
        optimise(part, patience=patience, rounds=ROUNDS)
    if part.best is None or part.best_cost >= search.best_cost * (1 - MARGIN):
        return False
    pattern = instance.forced.copy()
    pattern[cells] |= part.best
    search.keep(pattern, part.best_cost)
    return True


def _only(instance: Instance, cells: Integers) -> Instance:
    """The instance on some (ascending) cells, all targets among them; every other cell stands still."""
    columns = instance.columns[:, cells]
    touched = np.flatnonzero(np.bincount(columns.indices, minlength=columns.shape[0]))
    rows = sparse.csr_array(columns.tocsr()[touched])
    return replace(
        instance,
        rows=rows,
        columns=sparse.csc_array(rows),
        cost=instance.cost[cells],
        forced=instance.forced[cells],
        live=instance.live[cells],
        up=instance.up[cells],
        down=instance.down[cells],
        cell=np.searchsorted(cells, instance.cell),
    )
