"""A few cells and the equations among them, with everything that cannot move left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.suppress.instance import Instance
from tablesafe.work.compiled import compiled


@dataclass(frozen=True, slots=True)
class Local:
    """The cells that can move when all others stand still, and the equations that tie them together."""

    cells: Integers
    rows: Integers
    start: NDArray[np.int32]
    """Column-wise entries of the equations over the cells, rows numbered from 0."""
    index: NDArray[np.int32]
    value: Floats


def spans(pointers: NDArray[Any], which: NDArray[Any]) -> tuple[Integers, Integers]:
    """Positions of the entries of some rows (or columns) of a compressed matrix, and how many each has."""
    start = pointers[which].astype(np.int64)
    length = pointers[which + 1] - start
    begin = np.cumsum(length) - length
    return np.repeat(start - begin, length) + np.arange(int(length.sum())), length


class Localities:
    """Cuts small systems out of a large one; holds the scratch space that this takes."""

    def __init__(self, instance: Instance) -> None:
        columns = instance.columns
        self._start = columns.indptr.astype(np.int64)
        self._row = columns.indices.astype(np.int64)
        self._value = columns.data.astype(np.float64)
        self._left = np.zeros(columns.shape[0], dtype=np.int64)
        self._mixed = np.zeros(columns.shape[0], dtype=np.int64)
        self._number = np.full(columns.shape[0], -1, dtype=np.int64)

    def around(self, cells: Integers, target: int) -> Local | None:
        """The part of some (ascending) cells that can move with a target; None when the target cannot.

        A cell that is alone in an equation stands still, so it goes, and with it perhaps the next.
        """
        return self._cut_out(cells, target, True)

    def all_of(self, cells: Integers, target: int) -> Local:
        """All of some (ascending) cells, the target among them, and all their equations."""
        local = self._cut_out(cells, target, False)
        assert local is not None
        return local

    def _cut_out(self, cells: Integers, target: int, peel: bool) -> Local | None:
        kept, rows, start, index, value = _peel(
            self._start, self._row, self._value, cells, self._left, self._mixed, self._number, peel
        )
        some = cells[kept]
        at = np.searchsorted(some, target)
        if at == len(some) or some[at] != target:
            return None
        return Local(some, rows, start, index, value)


@compiled
def _peel(
    start: Integers,
    row: Integers,
    value: Floats,
    cells: Integers,
    left: Integers,
    mixed: Integers,
    number: Integers,
    peel: bool,
) -> tuple[NDArray[np.bool_], Integers, NDArray[np.int32], NDArray[np.int32], Floats]:
    """Drop cells that are alone in an equation until none is; `left` and `mixed` are zero before and after.

    `mixed` is the exclusive or of the positions of the cells left in an equation: with one left, its position.
    """
    n = len(cells)
    entries = 0
    for k in range(n):
        for z in range(start[cells[k]], start[cells[k] + 1]):
            left[row[z]] += 1
            mixed[row[z]] ^= k
            entries += 1
    kept = np.ones(n, np.bool_)
    lonely = np.empty(entries, np.int64)
    waiting = 0
    for k in range(n):
        for z in range(start[cells[k]], start[cells[k] + 1]):
            if peel and left[row[z]] == 1:
                lonely[waiting] = row[z]
                waiting += 1
    while waiting:
        waiting -= 1
        r = lonely[waiting]
        if left[r] != 1:
            continue
        k = mixed[r]
        kept[k] = False
        for z in range(start[cells[k]], start[cells[k] + 1]):
            left[row[z]] -= 1
            mixed[row[z]] ^= k
            if left[row[z]] == 1:
                lonely[waiting] = row[z]
                waiting += 1
    size = 0
    for k in range(n):
        if kept[k]:
            size += start[cells[k] + 1] - start[cells[k]]
    rows = np.empty(size, np.int64)
    local_start = np.zeros(kept.sum() + 1, np.int32)
    index, entry = np.empty(size, np.int32), np.empty(size, np.float64)
    used, column, at = 0, 0, 0
    for k in range(n):
        if kept[k]:
            for z in range(start[cells[k]], start[cells[k] + 1]):
                if number[row[z]] < 0:
                    number[row[z]] = used
                    rows[used] = row[z]
                    used += 1
                index[at], entry[at] = number[row[z]], value[z]
                at += 1
            column += 1
            local_start[column] = at
        for z in range(start[cells[k]], start[cells[k] + 1]):
            left[row[z]] = mixed[row[z]] = 0
    for u in range(used):
        number[rows[u]] = -1
    return kept, rows[:used].copy(), local_start, index, entry
