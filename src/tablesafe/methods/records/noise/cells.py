"""Random tabular adjustment: noise on the sensitive cells themselves, and totals added up anew.

Stinner, "Disclosure control and random tabular adjustment" (Proceedings of the Survey Methods Section, Statistical
Society of Canada, 2017): instead of being withheld, a sensitive cell is published with noise as large as its protection
asks for; users are told how much.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidProblem, Setting
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.methods.round.counts import summed_up

ROUNDS = 40
"""Most times that totals are looked at whose parts' noise has cancelled."""


@dataclass(frozen=True, eq=False)
class Adjusted:
    """The values after noise, and which cells it may have reached."""

    integers: Integers = field(repr=False)
    touched: Mask = field(repr=False)
    short: NDArray[np.intp] = field(repr=False)
    """Sensitive cells that noise did not move as far as their protection asks for."""


def adjust_cells(problem: Problem, sizes: Floats, least: float, random: np.random.Generator) -> Adjusted:
    """Move every sensitive cell by at least its protection level, at random up or down; totals follow.

    Noise is `sizes / least` times the larger protection level (where the rules give none, `least` of the value): the
    levels are the least. A cell that cannot go down so far goes down to zero, and up the more seldom: on average
    nothing changes. A sensitive total whose parts cancel gets more noise in the largest of its inner cells.
    """
    table, mask = problem.table, problem.sensitivity.mask
    unit = 10.0**table.decimals
    level = np.maximum(np.maximum(problem.sensitivity.upper, problem.sensitivity.lower) * unit, 0.0)
    level = np.where(level > 0, level, least * np.abs(table.integers))
    need = np.where(mask, np.maximum(np.ceil(level), 1), 0).astype(np.int64)
    wanted = np.where(mask, np.maximum(np.rint(level * sizes / least), need), 0).astype(np.int64)
    movable = ~problem.frozen & ~table.is_total
    noise = np.zeros(len(table), dtype=np.int64)
    inner = np.flatnonzero(mask & movable)
    noise[inner] = _drawn(table, inner, wanted[inner], random)
    leaf = _largest_inner(table, movable)
    for _ in range(ROUNDS):
        short = _short(table, mask, need, _total(table, noise))
        asked = short[leaf[short] >= 0]
        if not asked.size:
            break
        most = np.zeros(len(table), dtype=np.int64)
        np.maximum.at(most, leaf[asked], wanted[asked])
        at = np.unique(leaf[asked])
        noise[at] = _more(table, at, noise[at], _drawn(table, at, most[at], random))
    moved = _total(table, noise)
    touched = summed_up(table, (noise != 0).astype(np.int64), absolute=True)
    assert touched is not None
    return Adjusted(table.integers + moved, touched > 0, _short(table, mask, need, moved))


def _short(table: Table, mask: Mask, need: Integers, moved: Integers) -> NDArray[np.intp]:
    """Sensitive cells that have not moved enough, though they are not down at zero."""
    return np.flatnonzero(mask & (np.abs(moved) < need) & ((table.integers + moved != 0) | (moved == 0)))


def _drawn(table: Table, cells: NDArray[np.intp], wanted: Integers, random: np.random.Generator) -> Integers:
    """Up by `wanted` or down as far as there is room, the chances such that the mean is zero; a zero can only go up."""
    down = np.minimum(wanted, _room(table, cells))
    goes_down = random.random(len(cells)) * (wanted + down) < wanted
    return np.where(goes_down & (down > 0), -down, wanted)


def _more(table: Table, cells: NDArray[np.intp], before: Integers, again: Integers) -> Integers:
    """Noise upon noise: the same way as before, and no further down than there is room."""
    both = np.where(before == 0, again, before + np.sign(before) * np.abs(again))
    return np.maximum(both, -_room(table, cells))


def _room(table: Table, cells: NDArray[np.intp]) -> Integers:
    """How far a cell may go down: to zero, unless contributions may be negative."""
    return np.where(table.may_be_negative[cells], np.iinfo(np.int64).max // 4, table.integers[cells])


def _total(table: Table, noise: Integers) -> Integers:
    moved = summed_up(table, noise)
    if moved is None:
        raise InvalidProblem(
            "Noise on cells needs a table whose inner cells determine its totals.",
            hint=(
                "put the noise on the records (",
                Setting("level", "record"),
                "), or use Adjust.",
            ),
        )
    return moved


def _largest_inner(table: Table, movable: Mask) -> NDArray[np.intp]:
    """The inner cell that a cell's noise goes to: the largest part of its largest part; −1 if that is frozen."""
    best = np.arange(len(table), dtype=np.intp)
    entries = table.equations.tocoo()
    parts = (entries.col != table.totals[entries.row]) & (entries.data > 0)
    cell, total = entries.col[parts], table.totals[entries.row[parts]]
    order = np.lexsort((cell, np.abs(table.integers[cell])))
    best[total[order]] = cell[order]
    for _ in range(len(table)):
        deeper = best[best]
        if (deeper == best).all():
            break
        best = deeper
    return np.where(movable[best], best, -1)
