"""What a (fractional) pattern fails to protect, and the inequalities that say so."""

from __future__ import annotations

import numpy as np
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
        self.effort = 0
        """How wide to look for a cut: the more cells are looked at, the fewer a cut has to name."""

    def round_seconds(self) -> float:
        """About how long it takes to ask about every target once."""
        targets = len(self._instance.level)
        some = np.linspace(0, targets - 1, min(targets, SAMPLED)).astype(np.int64)
        everything = self._instance.live.astype(np.float64)
        before = self._solver.work.spent
        for target in some.tolist():
            near = self._neighbourhoods.near(int(self._instance.cell[target]), effort=self.effort)
            largest_move(
                self._instance, self._neighbourhoods.localities, self._solver, target, near, everything, everything=True
            )
        return (self._solver.work.spent - before) * targets / max(len(some), 1)

    def violated(self, share: Floats, *, whole: bool, stop: object = None) -> tuple[list[Cut], list[int]]:
        """Cuts that the pattern violates, and the targets it leaves open.

        With `whole` the pattern is 0/1, and every open target yields a cut; otherwise only what is quickly found.
        """
        part = _Parts(self._instance, share)
        cuts: list[Cut] = []
        left_open: list[int] = []
        self._priced = np.zeros(self._instance.rows.shape[0], dtype=np.bool_)
        for target in range(len(self._instance.level)):
            if not whole and self._told(target):
                continue
            if self._still_holds(target, share) or self._protected(target, share, part, whole=whole):
                continue
            left_open.append(target)
            cut = self._cut(target, share, part, whole=whole)
            if cut is not None:
                cuts.append(cut)
            if callable(stop) and stop():
                break
        return cuts, left_open

    def _still_holds(self, target: int, share: Floats) -> bool:
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
        used = (np.abs(move.amount) > NEGLIGIBLE) & (move.cells != instance.cell[target])
        cells, amount = move.cells[used], move.amount[used]
        room = np.where(amount > 0, instance.up[cells], instance.down[cells]) / instance.level[target]
        self._known[target] = (cells, np.minimum(np.abs(amount) / np.minimum(room, limit), share[cells]))
        return True

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
