"""What was proved of a problem's cells, for whatever release: it holds for every other release that leaves it room.

A witness is a change of some cells that keeps every sum. It does not know the release it was found for: it proves the
same for any release that hides all the cells it changes, within bounds no narrower than they were then. So a pattern
that withholds more keeps all proofs of the one before it, and one that publishes a cell loses only those that move it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.exact import ExactMove
from tablesafe.audit.proofs import Group
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Mask
from tablesafe.solve.neighbourhood import spans

TIMES = 3
"""Proofs per cell before only the newest of each is kept."""


def _nobody() -> NDArray[np.intp]:
    return np.zeros(0, dtype=np.intp)


@dataclass(eq=False)
class _Changes:
    """Sets of cells of the table that have to be hidden, each within bounds no narrower than these."""

    cell: NDArray[np.intp] = field(default_factory=_nobody, repr=False)
    """Cells with their bounds, one or more for each system in which they were changed."""
    lower: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    upper: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    entry: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32), repr=False)
    """Which of these each set has, one set after the other."""
    length: NDArray[np.intp] = field(default_factory=_nobody, repr=False)

    def __len__(self) -> int:
        return len(self.length)

    def add(self, system: System, every: Sequence[NDArray[np.intp]]) -> None:
        """Further sets, as positions among the unknown cells of a system."""
        at, entry = np.unique(np.concatenate([_nobody(), *every]), return_inverse=True)
        self.entry = np.concatenate([self.entry, (entry + len(self.cell)).astype(np.int32)])
        self.cell = np.concatenate([self.cell, system.cells[at]])
        self.lower = np.concatenate([self.lower, system.lower[at]])
        self.upper = np.concatenate([self.upper, system.upper[at]])
        self.length = np.concatenate([self.length, np.array([len(each) for each in every], dtype=np.intp)])

    def copy(self) -> _Changes:
        """The same sets; what is added to either is not added to the other."""
        return copy(self)  # arrays are never changed, only replaced

    def possible(self, system: System) -> Mask:
        """Which sets are hidden, and have the room they had."""
        at = system.positions(self.cell)
        good = at >= 0
        good[good] = (system.lower[at[good]] <= self.lower[good]) & (system.upper[at[good]] >= self.upper[good])
        bad = np.append(0, np.cumsum(~good[self.entry]))
        end = np.cumsum(self.length)
        return np.asarray(bad[end] == bad[end - self.length])

    def take(self, kept: NDArray[np.intp]) -> None:
        """Forget all but some."""
        entry, needed = self.entry[self._entries(kept)], np.zeros(len(self.cell), dtype=np.bool_)
        needed[entry] = True
        used = np.flatnonzero(needed)
        self.entry = (np.cumsum(needed, dtype=np.int32) - 1)[entry]
        self.cell, self.lower, self.upper = self.cell[used], self.lower[used], self.upper[used]
        self.length = self.length[kept]

    def of(self, some: NDArray[np.intp]) -> NDArray[np.intp]:
        """The cells of some sets."""
        return self.cell[self.entry[self._entries(some)]]

    def _entries(self, some: NDArray[np.intp]) -> NDArray[np.intp]:
        return spans(np.append(0, np.cumsum(self.length)), some)[0]


@dataclass(frozen=True, eq=False)
class Holding:
    """The proofs that hold in one system."""

    cells: NDArray[np.intp] = field(repr=False)
    """The table's cells that are proved, ascending."""
    low: Floats = field(repr=False)
    """How far each was seen to fall, in units: not above 0."""
    high: Floats = field(repr=False)
    groups: tuple[Group, ...] = field(default=(), repr=False)
    """The witnesses; only where they were asked for."""


class Proved:
    """Proofs for the sensitive cells of one problem, and the witnesses that they name."""

    def __init__(self) -> None:
        self._moves: list[ExactMove] = []
        """Over the table's cells."""
        self._changes = _Changes()
        self._cell = np.zeros(0, dtype=np.intp)
        self._by = np.zeros((0, 2), dtype=np.intp)
        """The witnesses that show each cell low and high enough, counted from 1; 0 is the truth."""
        self._far = np.zeros((0, 2))
        self._group = np.zeros(0, dtype=np.intp)
        self._checked = np.zeros(0, dtype=np.bool_)

    def copy(self) -> Proved:
        """The same proofs; what is added to either is not added to the other."""
        other = copy(self)
        other._moves, other._changes = list(self._moves), self._changes.copy()
        return other

    def keep(self, system: System, groups: Sequence[Group], *, checked: bool) -> None:
        """Remember what was proved in a system; `checked` in whole numbers, as a certificate needs it."""
        first = int(self._group.max(initial=-1)) + 1
        moves: list[ExactMove] = []
        cell, by, far, number = [self._cell], [self._by], [self._far], [self._group]
        for count, group in enumerate(groups):
            before = len(self._moves) + len(moves)
            moves += group.moves
            which = np.column_stack([group.low, group.high])
            cell.append(system.cells[group.at])
            by.append(np.where(which > 0, which + before, 0))
            far.append(_reached(group, which))
            number.append(np.full(len(group), first + count))
        self._changes.add(system, [move.cells for move in moves])
        self._moves += [ExactMove(system.cells[move.cells], move.numerators, move.denominator) for move in moves]
        self._checked = np.concatenate([self._checked, np.full(sum(map(len, cell[1:])), checked)])
        self._cell, self._by = np.concatenate(cell), np.concatenate(by)
        self._far, self._group = np.concatenate(far), np.concatenate(number)
        if len(self._cell) > TIMES * len(np.unique(self._cell)):
            self._forget()

    def _forget(self) -> None:
        """Keep the newest proof of each cell, and its witnesses; one that was checked before one that was not."""
        order = np.lexsort((np.arange(len(self._cell)), self._checked, self._cell))
        last = np.append(self._cell[order][1:] != self._cell[order][:-1], True)
        kept = np.sort(order[last])
        used = np.unique(self._by[kept])
        used = used[used > 0] - 1
        place = np.zeros(len(self._moves) + 1, dtype=np.intp)
        place[used + 1] = np.arange(len(used)) + 1
        self._moves = [self._moves[at] for at in used.tolist()]
        self._changes.take(used)
        self._cell, self._by, self._far = self._cell[kept], place[self._by[kept]], self._far[kept]
        self._group, self._checked = self._group[kept], self._checked[kept]

    def holding(self, system: System, *, certify: bool) -> Holding:
        """What holds in a system; to `certify`, what was checked in whole numbers, with its witnesses."""
        possible = np.append(True, self._changes.possible(system))
        good = possible[self._by].all(axis=1) & (system.positions(self._cell) >= 0)
        if certify:
            good &= self._checked
        which = np.flatnonzero(good)[::-1]
        cells, newest = np.unique(self._cell[which], return_index=True)
        which = which[newest]
        groups = self._groups(system, which) if certify else ()
        return Holding(cells, self._far[which, 0], self._far[which, 1], groups)

    def relied_on(self, cells: NDArray[np.intp]) -> NDArray[np.intp]:
        """What the witnesses of some cells move."""
        used = np.unique(self._by[np.isin(self._cell, cells)])
        return self._changes.of(used[used > 0] - 1)

    def _groups(self, system: System, which: NDArray[np.intp]) -> tuple[Group, ...]:
        which = which[np.argsort(self._group[which], kind="stable")]
        cuts = np.flatnonzero(np.diff(self._group[which])) + 1
        out = []
        for own in np.split(which, cuts) if len(which) else []:
            used, place = np.unique(np.append(0, self._by[own]), return_inverse=True)
            moves = [self._moves[number - 1] for number in used[1:].tolist()]
            by = place[1:].reshape(-1, 2)
            out.append(
                Group(
                    tuple(ExactMove(system.positions(each.cells), each.numerators, each.denominator) for each in moves),
                    system.positions(self._cell[own]),
                    by[:, 0],
                    by[:, 1],
                )
            )
        return tuple(out)


def _reached(group: Group, which: NDArray[np.intp]) -> Floats:
    """How far the witnesses of a group move the cells that they prove."""
    out = np.zeros(which.shape)
    for number, move in enumerate(group.moves, start=1):
        row, side = np.nonzero(which == number)
        out[row, side] = (move.at(group.at[row]) / move.denominator).astype(np.float64)
    return out


@dataclass(eq=False)
class Settled:
    """Cells that no respondent comes too close to, each with the sets of cells that the tables change which show it."""

    _changes: _Changes = field(default_factory=_Changes, repr=False)
    _cell: NDArray[np.intp] = field(default_factory=_nobody, repr=False)
    _pairs: NDArray[np.intp] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.intp), repr=False)
    """A place among these cells, and a set that it rests on."""

    def copy(self) -> Settled:
        """The same cells; what is added to either is not added to the other."""
        other = copy(self)
        other._changes = self._changes.copy()
        return other

    def keep(
        self,
        system: System,
        cells: NDArray[np.intp],
        moved: Sequence[NDArray[np.intp]],
        pairs: NDArray[np.intp],
    ) -> None:
        """Remember some of a system's unknown cells, the sets that witnesses move, and which cell rests on which."""
        old = np.flatnonzero(~np.isin(self._cell, system.cells[cells]))
        place = np.full(len(self._cell), -1)
        place[old] = np.arange(len(old))
        kept = self._pairs[place[self._pairs[:, 0]] >= 0]
        used, sets = np.unique(kept[:, 1], return_inverse=True)
        self._changes.take(used)
        self._changes.add(system, moved)
        own = np.column_stack([place[kept[:, 0]], sets])
        self._pairs = np.concatenate([own, pairs + np.array([len(old), len(used)])])
        self._cell = np.concatenate([self._cell[old], system.cells[cells]])

    def relied_on(self, cells: NDArray[np.intp]) -> NDArray[np.intp]:
        """What the witnesses of some cells move."""
        own = np.isin(self._cell, cells)
        return self._changes.of(np.unique(self._pairs[own[self._pairs[:, 0]], 1]))

    def holding(self, system: System) -> NDArray[np.intp]:
        """The table's cells for which this holds in a system."""
        possible = self._changes.possible(system)
        bad = np.zeros(len(self._cell), dtype=np.bool_)
        bad[self._pairs[~possible[self._pairs[:, 1]], 0]] = True
        return np.unique(self._cell[~bad])
