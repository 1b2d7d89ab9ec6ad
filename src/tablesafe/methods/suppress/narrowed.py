"""A search among some of the cells, as if every other cell were published: what it finds counts for the whole table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from tablesafe.equations import Integers
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.search import Search

MARGIN = 1e-9


def narrowed(search: Search, cells: Integers, *, seconds: float = np.inf, proving: bool = False) -> Search:
    """A search among some (ascending) cells that starts from the best pattern; better ones are handed over at once.

    `proving` says that no better pattern uses another cell: then its bound is one for the whole table.
    """
    assert search.best is not None

    def hand_over(cost: float, bound: float) -> None:
        if part.best is not None and cost < search.best_cost * (1 - MARGIN):
            pattern = search.instance.forced.copy()
            pattern[cells] |= part.best
            search.keep(pattern, cost)
        if proving:
            search.prove(min(bound, cost))

    part = Search(
        _only(search.instance, cells),
        deadline=search.deadline,
        seed=search.seed,
        report=hand_over,
        seconds=min(seconds, search.left),
        solver=search.solver,
    )
    part.bound = search.bound if proving else 0.0
    part.keep(search.best[cells], search.best_cost)
    return part


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
