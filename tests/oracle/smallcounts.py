"""A reader of small-count rounding who goes through every table that agrees with the release: for a few cells."""

from __future__ import annotations

from itertools import product

import numpy as np


def possible(
    sums: np.ndarray, shown: np.ndarray, limit: int, *, occupied: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most that each cell can be, over every table from which the method could have come here.

    `sums` has a row per cell and a column per unit; `shown` holds the published counts, −1 for cells not shown. Where
    empty cells are left out, whatever is shown is `occupied`: it was 1 or more.
    """
    seen = shown >= 0
    most = [max(shown[seen & (column > 0)].min(), limit - 1) for column in sums.T]
    parts, goal = sums[seen], tuple(shown[seen].tolist())
    tables = [
        table
        for table in map(np.array, product(*(range(top + 1) for top in most)))
        if not (occupied and (parts @ table == 0).any()) and goal in outcomes(table, parts, limit)
    ]
    cells = np.array(tables) @ sums.T
    return cells.min(axis=0), cells.max(axis=0)


def outcomes(table: np.ndarray, parts: np.ndarray, limit: int) -> set[tuple[int, ...]]:
    """Everything that can be published of a table, whichever way each small unit goes, round after round."""
    small_unit = (table > 0) & (table < limit)
    ends: set[tuple[int, ...]] = set()
    seen: set[tuple[bytes, bytes]] = set()
    waiting = [(np.zeros(len(table), dtype=bool), table)]
    while waiting:
        changed, rounded = waiting.pop()
        if (changed.tobytes(), rounded.tobytes()) in seen:
            continue
        seen.add((changed.tobytes(), rounded.tobytes()))
        counts = parts @ rounded
        small = (counts > 0) & (counts < limit)
        if not small.any():
            ends.add(tuple(counts.tolist()))
            continue
        now = changed | (parts[small].any(axis=0) & small_unit)
        for way in product((0, limit), repeat=int(now.sum())):
            new = table.copy()
            new[now] = way
            waiting.append((now, new))
    return ends


def least_error(sums: np.ndarray, counts: np.ndarray, limit: int) -> int:
    """The least sum of squared errors over all ways to send every small unit to 0 or the limit."""
    small = np.flatnonzero((counts > 0) & (counts < limit))
    ways = (np.arange(2 ** len(small))[:, None] >> np.arange(len(small))) & 1
    change = (limit * ways - counts[small]) @ sums[:, small].T
    return int((change**2).sum(axis=1).min())
