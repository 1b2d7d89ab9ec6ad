"""The part of a table around a cell: what a cheap deviation is likely to need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.equations import Integers
from tablesafe.methods.suppress.instance import Instance

REACH = 4
"""Steps from cell to equation to cell: two cycles of a hierarchical table, and the next level up."""
CROWD = 600
"""Cells beyond which only the cheapest of a neighbourhood are looked at."""
REMEMBERED = 20_000


def spans(matrix: Any, which: NDArray[Any]) -> tuple[Integers, Integers]:
    """Positions of the entries of some rows (or columns) of a compressed matrix, and how many each has."""
    start = matrix.indptr[which]
    length = matrix.indptr[which + 1] - start
    begin = np.cumsum(length) - length
    return np.repeat(start - begin, length) + np.arange(int(length.sum())), length


class Neighbourhoods:
    """Balls around cells in the graph of cells and equations, remembered."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._balls: dict[tuple[int, int], Integers] = {}

    def ball(self, cell: int, steps: int) -> Integers:
        """The cells that may be withheld within some steps of a cell, ascending; the cell itself among them."""
        key = (cell, steps)
        found = self._balls.get(key)
        if found is None:
            found = np.array([cell], dtype=np.int64)
            for _ in range(steps):
                found = self._wider(found)
            if len(self._balls) >= REMEMBERED:
                self._balls.clear()
            self._balls[key] = found
        return found

    def _wider(self, cells: Integers) -> Integers:
        instance = self._instance
        entries, _ = spans(instance.columns, cells)
        rows = np.unique(instance.columns.indices[entries])
        entries, _ = spans(instance.rows, rows)
        wider = np.unique(instance.rows.indices[entries]).astype(np.int64)
        return wider[instance.live[wider]]

    def near(self, cell: int, *, effort: int) -> Integers:
        """Where to look first; more with every `effort`, in the end everything."""
        if effort >= 4:
            return np.flatnonzero(self._instance.live)
        key = (cell, -1 - effort)
        found = self._balls.get(key)
        if found is not None:
            return found
        crowd = CROWD * 4**effort
        steps = 1
        wide = self.ball(cell, 1)
        while steps < REACH + 2 * effort and len(wide) < crowd:
            steps += 1
            wider = self.ball(cell, steps)
            if len(wider) == len(wide):
                break
            wide = wider
        if len(wide) > crowd:
            wide = self._cheapest(cell, wide, crowd)
        self._balls[key] = wide
        return wide

    def _cheapest(self, cell: int, cells: Integers, crowd: int) -> Integers:
        """The cells in the cell's own equations, and the cheapest others."""
        own = self.ball(cell, 1)
        cost = self._instance.cost[cells]
        cheap = cells[np.argpartition(cost, crowd)[:crowd]]
        return np.union1d(own, cheap)
