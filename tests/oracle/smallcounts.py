"""A reader of small-count rounding who goes through every table that agrees with the release: for a few cells."""

from __future__ import annotations

from itertools import product

import numpy as np


def possible(sums: np.ndarray, shown: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most that each cell can be, by trying every table of rounded counts.

    `sums` has a row per cell and a column per unit; `shown` holds the published counts, −1 for cells not shown. A unit
    shows what it is, or was 1 to limit − 1 and shows 0 or the limit; then some published count with it has only such.
    """
    seen = shown >= 0
    most = [shown[seen & (column > 0)].min() for column in sums.T]
    rounded = np.array(list(product(*(range(top + 1) for top in most))))
    rounded = rounded[(rounded @ sums[seen].T == shown[seen]).all(axis=1)]
    either = np.isin(rounded, [0, limit])
    changed = np.zeros(rounded.shape, dtype=bool)
    for row in sums[seen] > 0:
        changed |= (either | ~row).all(axis=1)[:, None] & row
    least = np.where(changed & (rounded == limit), 1, rounded)
    most_true = np.where(changed & (rounded == 0), limit - 1, rounded)
    return (least @ sums.T).min(axis=0), (most_true @ sums.T).max(axis=0)


def least_error(sums: np.ndarray, counts: np.ndarray, limit: int) -> int:
    """The least sum of squared errors over all ways to send every small unit to 0 or the limit."""
    small = np.flatnonzero((counts > 0) & (counts < limit))
    ways = (np.arange(2 ** len(small))[:, None] >> np.arange(len(small))) & 1
    change = (limit * ways - counts[small]) @ sums[:, small].T
    return int((change**2).sum(axis=1).min())
