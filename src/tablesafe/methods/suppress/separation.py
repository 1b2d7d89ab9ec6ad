"""What a (fractional) pattern fails to protect, and the inequalities that say so."""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy import sparse
from scipy.sparse import csgraph

from tablesafe.equations import Floats, Integers
from tablesafe.methods.suppress.deviations import FAR, NEGLIGIBLE, capacity_cut, largest_move
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.neighbourhood import Neighbourhoods
from tablesafe.solve.covering import Cut
from tablesafe.solve.small import SmallSolver

PRESENT = 1e-9
LEAST = 1e-3
"""Room given to cells outside the pattern when looking for a cut: it then names few of them."""
VIOLATION = 1e-4
LARGE = 3_000
SAMPLED = 16
LONGEST = 7
"""Rounds that a target is left alone at most."""


class Separation:
    """Looks for targets that a pattern leaves open; remembers deviations that still hold."""

    def __init__(
        self, instance: Instance, neighbourhoods: Neighbourhoods, solver: SmallSolver, variable: Integers
    ) -> None:
        self._instance = instance
        self._neighbourhoods = neighbourhoods
        self._solver = solver
        self._variable = variable
        self._known: dict[int, tuple[Integers, Floats]] = {}
        self._patience = _Patience()
        self._by_cell = np.argsort(instance.cell, kind="stable")
        self._cells = instance.cell[self._by_cell]
        self.effort = 0
        """How wide to look for a cut: the more cells are looked at, the fewer a cut has to name."""

    def round_seconds(self, limit: float = np.inf) -> float:
        """About how long it takes to ask about every target once; where it is plainly above a limit, less exactly."""
        targets = len(self._instance.level)
        some = np.linspace(0, targets - 1, min(targets, SAMPLED)).astype(np.int64)
        everything = self._instance.live.astype(np.float64)
        before, asked = self._solver.work.spent, 0
        for target in some.tolist():
            near = self._neighbourhoods.near(int(self._instance.cell[target]), effort=self.effort)
            largest_move(
                self._instance, self._neighbourhoods.localities, self._solver, target, near, everything, everything=True
            )
            asked += 1
            if (self._solver.work.spent - before) * targets > 2 * limit * len(some):
                break
        return (self._solver.work.spent - before) * targets / max(asked, 1)

    def violated(self, share: Floats, *, whole: bool, stop: object = None) -> tuple[list[Cut], list[int]]:
        """Cuts that the pattern violates, and the targets it leaves open.

        With `whole` the pattern is 0/1, and every open target yields a cut; otherwise only what is quickly found.
        """
        cuts, left_open = self._look(share, whole=whole, stop=stop)
        if not cuts and not whole and self._patience.start_again():
            return self._look(share, whole=whole, stop=stop)
        return cuts, left_open

    def _look(self, share: Floats, *, whole: bool, stop: object) -> tuple[list[Cut], list[int]]:
        part = _Parts(self._instance, share)
        cuts: list[Cut] = []
        left_open: list[int] = []
        self._priced = np.zeros(self._instance.rows.shape[0], dtype=np.bool_)
        self._patience.next_round()
        for target in range(len(self._instance.level)):
            if not whole and (self._patience.rests(target) or self._told(target)):
                continue
            if self.still_holds(target, share) or self._protected(target, share, part, whole=whole):
                continue
            left_open.append(target)
            cut = self._cut(target, share, part, whole=whole)
            self._patience.asked(target, in_vain=cut is None)
            if cut is not None:
                cuts.append(cut)
            if callable(stop) and stop():
                break
        return cuts, left_open

    def still_holds(self, target: int, share: Floats) -> bool:
        """Whether a deviation found before protects the target in this pattern too."""
        known = self._known.get(target)
        return known is not None and bool((known[1] <= share[known[0]] + 1e-9).all())

    def _protected(self, target: int, share: Floats, part: _Parts, *, whole: bool) -> bool:
        """Whether the pattern protects the target; only the last question asked is the exact one."""
        near = self._neighbourhoods.near(int(self._instance.cell[target]), effort=0)
        near = near[share[near] > PRESENT]
        if self._reaches(target, near, share, limit=1.0):
            return True
        return whole and self._reaches(target, part.of(int(self._instance.cell[target])), share, limit=FAR)

    def _reaches(self, target: int, cells: Integers, share: Floats, *, limit: float) -> bool:
        instance = self._instance
        move = largest_move(instance, self._neighbourhoods.localities, self._solver, target, cells, share, limit=limit)
        if move is None or move.reach < 1 - 1e-7:
            return False
        used = np.abs(move.amount) > NEGLIGIBLE
        cells, amount = move.cells[used], move.amount[used]
        if limit == 1.0:
            self._remember_others(cells, amount, share)
        own = cells == instance.cell[target]
        needs = _needs(instance, target, cells, amount, limit)
        self._known[target] = (cells, np.where(own, 0.0, np.minimum(needs, share[cells])))
        return True

    def _remember_others(self, cells: Integers, amount: Floats, share: Floats) -> None:
        """The same deviation for all targets that go as far as any cell in it, as it is or turned around."""
        instance, held = self._instance, share[cells]
        far = np.flatnonzero(np.abs(amount) > np.abs(amount).max() * (1 - 1e-9))
        first, last = (np.searchsorted(self._cells, cells[far], side=side) for side in ("left", "right"))
        length = last - first
        other = self._by_cell[np.repeat(first - (np.cumsum(length) - length), length) + np.arange(int(length.sum()))]
        turn = amount[np.repeat(far, length)] * instance.sign[other]
        for at in _serving(
            amount, turn, instance.up[cells], instance.down[cells], instance.level[other], held
        ).tolist():
            target = int(other[at])
            needs = _needs(instance, target, cells, amount / turn[at], 1.0)
            self._known[target] = (cells, np.minimum(needs, held))

    def _cut(self, target: int, share: Floats, part: _Parts, *, whole: bool) -> Cut | None:
        cell = int(self._instance.cell[target])
        near = self._neighbourhoods.near(cell, effort=self.effort)
        attempts = [(near, 1.0, LEAST)]
        if whole:
            own = part.of(cell)
            attempts += [(np.union1d(near, own if len(own) < LARGE else near), FAR, LEAST)]
            attempts += [(np.union1d(near, part.present), FAR, LEAST), (own, FAR, 0.0)]
        for some, limit, least in attempts:
            move = largest_move(
                self._instance, self._neighbourhoods.localities, self._solver, target, some, share,
                limit=limit, least=least, everything=True,
            )  # fmt: skip
            if move is None or move.reach >= 1 - 1e-7:
                continue
            cut = capacity_cut(self._instance, target, move.rows, move.prices, self._variable)
            if cut is not None and self._violates(cut, share):
                self._priced[move.rows[np.abs(move.prices) > 1e-9]] = True
                return cut
        return None

    def _told(self, target: int) -> bool:
        columns, cell = self._instance.columns, int(self._instance.cell[target])
        return bool(self._priced[columns.indices[columns.indptr[cell] : columns.indptr[cell + 1]]].any())

    def _violates(self, cut: Cut, share: Floats) -> bool:
        held = share[self._cells_of(cut)]
        return float(cut.coefficients @ held) < 1 - VIOLATION

    def _cells_of(self, cut: Cut) -> Integers:
        return self._candidates[cut.variables]

    @property
    def _candidates(self) -> Integers:
        return np.flatnonzero(self._variable >= 0)


def _needs(instance: Instance, target: int, cells: Integers, amount: Floats, limit: float) -> Floats:
    """The share of its room that each cell of a deviation takes; `limit` caps the room, in levels of the target."""
    room = np.where(amount > 0, instance.up[cells], instance.down[cells]) / instance.level[target]
    with np.errstate(divide="ignore"):
        return np.asarray(np.abs(amount) / np.minimum(room, limit))


@njit(cache=True)
def _serving(amount: Floats, turn: Floats, up: Floats, down: Floats, level: Floats, held: Floats) -> Integers:
    """Which targets a deviation serves when it is divided by `turn`: no cell takes more of its room than it has."""
    serves = np.ones(len(turn), np.bool_)
    for k in range(len(turn)):
        for j in range(len(amount)):
            move = amount[j] / turn[k]
            room = min((up[j] if move > 0 else down[j]) / level[k], 1.0)
            if abs(move) > room * (held[j] + 1e-9):
                serves[k] = False
                break
    return np.flatnonzero(serves)


class _Patience:
    """Which targets to leave alone for some rounds: those asked about in vain, for longer every time."""

    def __init__(self) -> None:
        self._round = 0
        self._waits: dict[int, int] = {}
        self._until: dict[int, int] = {}
        self._rested = False

    def next_round(self) -> None:
        """Let a round begin."""
        self._round += 1
        self._rested = False

    def rests(self, target: int) -> bool:
        """Whether to leave a target alone in this round."""
        rests = self._until.get(target, 0) >= self._round
        self._rested |= rests
        return rests

    def asked(self, target: int, *, in_vain: bool) -> None:
        """Note that a target was asked about."""
        self._waits[target] = min(2 * self._waits.get(target, 0) + 1, LONGEST) if in_vain else 0
        self._until[target] = self._round + self._waits[target]

    def start_again(self) -> bool:
        """Forget it all; says whether a target was left alone in this round."""
        self._until.clear()
        return self._rested


class _Parts:
    """The connected parts of a pattern."""

    def __init__(self, instance: Instance, share: Floats) -> None:
        self.mask = (share > PRESENT) & instance.live
        self.present = np.flatnonzero(self.mask)
        columns = instance.columns[:, self.present].tocoo()
        m = columns.shape[0]
        graph = sparse.coo_array(
            (np.ones(columns.nnz, dtype=np.int8), (columns.row, m + columns.col)), shape=(m + len(self.present),) * 2
        )
        _, labels = csgraph.connected_components(graph, directed=False)
        self._label = np.full(len(instance), -1, dtype=np.int64)
        self._label[self.present] = labels[m:]
        order = np.argsort(labels[m:], kind="stable")
        self._sorted = self.present[order]
        self._starts = np.searchsorted(labels[m:][order], np.arange(labels.max(initial=0) + 2))

    def of(self, cell: int) -> Integers:
        """The part of the pattern that a cell belongs to, ascending."""
        label = int(self._label[cell])
        return np.sort(self._sorted[self._starts[label] : self._starts[label + 1]])
