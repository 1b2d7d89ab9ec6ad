"""The part of a table around a cell: what a cheap deviation is likely to need."""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Integers, Mask
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.local import Localities
from tablesafe.work.compiled import compiled

REACH = 3
"""Steps from cell to equation to cell: a cycle of a hierarchical table, and the next level up."""
CROWD = 600
"""Cells beyond which only the cheapest of a neighbourhood are looked at."""
REMEMBERED = 20_000_000
"""Cells in all remembered neighbourhoods."""


class Neighbourhoods:
    """The cells around a cell in the graph of cells and equations; what is near is remembered."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self.localities = Localities(instance)
        self._near: dict[tuple[int, int], Integers] = {}
        self._held = 0
        self._columns = (instance.columns.indptr.astype(np.int64), instance.columns.indices.astype(np.int64))
        self._rows = (instance.rows.indptr.astype(np.int64), instance.rows.indices.astype(np.int64))
        self._seen_cell = np.zeros(len(instance), dtype=np.int64)
        self._seen_row = np.zeros(instance.rows.shape[0], dtype=np.int64)
        self._turn = 0

    def ball(self, cell: int, steps: int) -> Integers:
        """The cells that may be withheld within some steps of a cell, ascending; the cell itself among them."""
        return np.sort(self._spread(cell, steps, len(self._instance))[0])

    def nearest(self, cell: int, crowd: int) -> Integers:
        """The cells nearest to a cell, in order, about so many."""
        return self._spread(cell, 2 * REACH, crowd)[0]

    def near(self, cell: int, *, effort: int) -> Integers:
        """Where to look first; more with every `effort`, in the end everything."""
        if effort >= 4:
            return np.flatnonzero(self._instance.live)
        key = (cell, effort)
        found = self._near.get(key)
        if found is None:
            crowd = CROWD * 4**effort
            wide, own = self._spread(cell, REACH + 2 * effort, crowd)
            found = np.sort(wide if len(wide) <= crowd else self._cheapest(wide, own, crowd))
            if self._held + len(found) > REMEMBERED:
                self._near.clear()
                self._held = 0
            self._near[key] = found
            self._held += len(found)
        return found

    def _cheapest(self, cells: Integers, own: int, crowd: int) -> Integers:
        """The cells in the cell's own equations, which come first, and the cheapest others."""
        others = cells[own:]
        room = max(crowd - own, 0)
        if room == 0:
            return cells[:own]
        cheap = np.argpartition(self._instance.cost[others], room - 1)[:room]
        return np.concatenate([cells[:own], others[cheap]])

    def _spread(self, cell: int, steps: int, crowd: int) -> tuple[Integers, int]:
        self._turn += 1
        return _spread(
            *self._columns, *self._rows, self._instance.live, cell, steps, crowd,
            self._seen_cell, self._seen_row, self._turn,
        )  # fmt: skip


@compiled
def _spread(
    column_start: Integers, column_row: Integers, row_start: Integers, row_column: Integers, live: Mask, cell: int,
    steps: int, crowd: int, seen_cell: Integers, seen_row: Integers, turn: int,
) -> tuple[Integers, int]:  # fmt: skip
    """Cells in the order they are reached, whole steps, until there are more than `crowd`; how many the first step has.

    `turn` marks what was seen this time, so that nothing has to be wiped.
    """
    found = np.empty(1024, np.int64)
    found[0] = cell
    size, begin, own = 1, 0, 1
    seen_cell[cell] = turn
    for step in range(steps):
        end = size
        for k in range(begin, end):
            for z in range(column_start[found[k]], column_start[found[k] + 1]):
                r = column_row[z]
                if seen_row[r] == turn:
                    continue
                seen_row[r] = turn
                for y in range(row_start[r], row_start[r + 1]):
                    c = row_column[y]
                    if seen_cell[c] != turn and live[c]:
                        seen_cell[c] = turn
                        if size == len(found):
                            found = np.concatenate((found, np.empty(len(found), np.int64)))
                        found[size] = c
                        size += 1
        if step == 0:
            own = size
        if size == end or size > crowd:
            break
        begin = end
    return found[:size].copy(), own
