"""How chance turned true counts into published ones when records were changed: estimated from the table itself."""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.mechanism import Mechanism, Transition
from tablesafe.core.problem import Problem
from tablesafe.methods.microdata.tables import is_count

ASKED = 100
"""Published counts up to this get a posterior: of larger ones nobody learns about a person."""
ENOUGH = 30
"""Cells that the chances of one true count are estimated from, at least: those of neighbouring counts help."""


def estimated(problem: Problem, integers: Integers, known: Mask) -> Mechanism | None:
    """P(published | true) of the cells that changing records may change; None where cells do not count records.

    Swapping and imputing draw records, not cells: what happens to a count follows from how many of its records were
    drawn and where they went. The chances are those seen in all cells of about the same true count. They say what an
    intruder would know who knows the method and the kind of table well.
    """
    table = problem.table
    drawn = ~known & ~problem.frozen
    asked = drawn & (integers <= ASKED)
    if not is_count(table) or not asked.any():
        return None
    top = int(table.integers[asked].max())
    true, change = table.integers[drawn], (integers - table.integers)[drawn]
    order = np.argsort(true, kind="stable")
    true, change = true[order], change[order]
    rows, low = _rows(true, change, top)
    return Mechanism((Transition(rows, low),), np.where(asked, 0, -1))


def _rows(true: Integers, change: Integers, top: int) -> tuple[Floats, int]:
    """The chances of every change, a row per true count from 0 to `top`; and the smallest change."""
    first, last = np.arange(top + 1), np.arange(top + 1)
    start, end = np.searchsorted(true, first), np.searchsorted(true, last, side="right")
    widest = np.zeros(top + 1, dtype=np.int64)
    while True:
        few = (end - start < ENOUGH) & (end - start < len(true))
        if not few.any():
            break
        widest[few] = 2 * widest[few] + 1
        start = np.searchsorted(true, first - widest)
        end = np.searchsorted(true, last + widest, side="right")
    near = change[int(start.min()) : int(end.max())]
    low, high = int(min(near.min(), 0)), int(max(near.max(), 0))
    rows = np.zeros((top + 1, high - low + 1))
    for t in range(top + 1):
        seen = np.maximum(change[start[t] : end[t]], -t)  # a count is never negative
        rows[t] = np.bincount(seen - low, minlength=high - low + 1) / len(seen)
    return rows, low
