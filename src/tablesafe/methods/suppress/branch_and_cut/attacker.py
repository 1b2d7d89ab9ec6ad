"""The attacker's linear programs, kept hot: one model for each connected part of a (fractional) pattern.

How far can a cell move when each cell may move by a share of its room? Between two questions about the same part only
the objective changes, and the last vertex is a good start: a question takes a few pivots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log2, log10

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import SolverFailure
from tablesafe.methods.suppress.branch_and_cut.targets import NOTHING, View
from tablesafe.methods.suppress.instance import Instance
from tablesafe.solve.highs import PRIMAL, SIMPLEX, Model
from tablesafe.solve.neighbourhood import spans
from tablesafe.solve.program import Columns, Program, Scale, SolveStatus
from tablesafe.work.budget import Budget

NEGLIGIBLE = 1e-9
"""Shares of cells, and parts of a level, that are as good as none."""
GRIDS = (55_440, 55_440 * 13 * 17)
"""Prices of equations are fractions with small denominators: multiples of one in these."""
FINEST = 2**30
"""The denominator where none of these fits: prices are then rounded, and the cut made from them is still valid."""
WORTH_A_SWEEP = 0.1
"""Share of the cells still waiting that a sweep must settle to be worth a further one."""
FAR = 1e4
"""Room beyond this many times the level asked for is first left out: it seldom helps, and costs digits."""
NEARER, NEAREST = 100.0, 100.0
"""By how much nearer rooms are cut off when a program is not solved, and at how many times the level at the nearest."""


@dataclass(frozen=True, slots=True)
class Move:
    """How far a cell got, and the deviation that took it there, over the cells of its part."""

    reach: float
    cells: Integers
    amount: Floats
    back: float = 0.0
    """How many times as far the same deviation may go the other way."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Reduced costs of an attacker's question over all cells of the table: whole numbers over a denominator.

    In every table that agrees with what is published, the move of the cell asked about is `Σ number · y / over`.
    """

    cells: Integers
    number: Integers
    over: int


class Attacker:
    """Asks how far cells can move in a pattern; `load` says which."""

    def __init__(self, instance: Instance, work: Budget) -> None:
        self._instance = instance
        self._model = Model(work=work, simplex_strategy=PRIMAL, **SIMPLEX)
        n = len(instance)
        self.place = np.full(n, -1, dtype=np.int64)
        self.part = np.full(n, -1, dtype=np.int64)
        self._sums = np.zeros(n, dtype=np.int64)
        self._present = np.full(1, -1, dtype=np.int64)
        columns, rows = instance.columns, instance.rows
        self._pointer, self._index = columns.indptr.astype(np.int64), columns.indices.astype(np.int64)
        self._value = columns.data.astype(np.float64)
        self._row_pointer, self._row_index = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
        self._row_value = np.rint(rows.data).astype(np.int64)

    def load(self, share: Floats, *, unit: bool = False) -> None:
        """Take a pattern, and find its connected parts; with `unit` all rooms are the shares themselves."""
        self._share, self._unit, self._now, self._view = share.copy(), unit, (-1, 0.0), NOTHING
        cells = np.flatnonzero((share > NEGLIGIBLE) & self._instance.live)
        if np.array_equal(cells, self._present):
            return
        self._present, m = cells, self._instance.rows.shape[0]
        entries, length = spans(self._pointer, cells)
        start = np.concatenate([np.zeros(m + 1, np.int32), np.cumsum(length, dtype=np.int32)])
        graph = sparse.csr_array(  # from cells to their equations: in the form that SciPy works with
            (np.ones(len(entries)), self._index[entries].astype(np.int32), start), shape=(m + len(cells),) * 2
        )
        labels = csgraph.connected_components(graph, directed=False)[1][m:]
        self.part[:] = -1
        self.part[cells] = labels
        order = np.argsort(labels, kind="stable")
        self._sorted = cells[order]
        self.starts = np.searchsorted(labels[order], np.arange(labels.max(initial=-1) + 2))

    def bring(self, part: int, far: float) -> None:
        """Make a part's program the one that is asked; rooms beyond `far` are cut off."""
        if self._now == (part, far):
            return
        instance = self._instance
        cells = self.cells = self._sorted[self.starts[part] : self.starts[part + 1]]
        entries, length = spans(self._pointer, cells)
        self._rows, index = np.unique(self._index[entries], return_inverse=True)
        n, share = len(cells), self._share[cells]
        self.place[cells] = np.arange(n)
        up, down = (np.ones(n), np.ones(n)) if self._unit else (instance.up[cells], instance.down[cells])
        self._above, self._below = np.minimum(up, far) * share, np.minimum(down, far) * share
        start = np.concatenate([[0], np.cumsum(length)])
        columns, zero = Columns(start, index, self._value[entries], len(self._rows)), np.zeros(len(self._rows))
        self._model.load(Program(np.zeros(n), columns, zero, zero, -self._below, self._above), scale=Scale())
        self._asked, self._now, self._view = 0, (part, far), NOTHING

    def sweep(self, cells: Integers, level: Floats, random: np.random.Generator) -> Iterator[Move]:
        """Moves that take many cells of one part as far as their levels at once, up some and down others.

        Every cell has as much room both ways, so what a move does for one side its reverse does for the other. They end
        when few more cells get there.
        """
        part = int(self.part[cells[0]])
        self.bring(part, far_of(float(level.max())))
        at = self.place[cells]
        room = np.minimum(self._above, self._below)
        reachable = room[at] >= level
        at, level = at[reachable], level[reachable]
        room[at] = level
        self._model.set_bounds(np.arange(len(room)), -room, room)
        waiting = np.ones(len(at), dtype=np.bool_)
        while waiting.any():
            cost = np.zeros(len(room))
            cost[at[waiting]] = random.choice([-1.0, 1.0], int(waiting.sum())) / level[waiting]
            self._model.set_costs(np.arange(len(room)), cost)
            if self._model.run() is not SolveStatus.OPTIMAL:
                break
            amount = self._model.answer()[0]
            there = waiting & (np.abs(amount[at]) >= level * (1 - NEGLIGIBLE))
            yield Move(float(there.sum()), self.cells, amount)
            if there.sum() < WORTH_A_SWEEP * waiting.sum():
                break
            waiting &= ~there
        self._now = (-1, 0.0)

    def _look_from(self, view: View) -> None:
        """Take the rooms of the part as somebody sees them."""
        if view is self._view:
            return
        cells, instance, (_, far) = self.cells, self._instance, self._now
        here = np.union1d(self._view.within(cells)[0], view.within(cells)[0])
        some = cells[here]
        up, down = view.rooms(some, instance.up[some], instance.down[some])
        self._above[here] = np.minimum(up, far) * self._share[some]
        self._below[here] = np.minimum(down, far) * self._share[some]
        self._model.set_bounds(here, -self._below[here], self._above[here])
        self._view = view

    def ask(self, cell: int, sign: int, level: float, *, view: View = NOTHING, tight: bool = False) -> Move:
        """Move a cell as far up (`sign` 1) or down (−1) as it can go; rooms far beyond its level may be left out.

        With `tight` rooms are cut off near the level: a small share of an endless room must not look like much.
        """
        far = 2.0 ** ceil(log2(level)) if tight else far_of(level)
        far = 1.0 if self._unit else far
        status = self._run(cell, sign, far, view)
        while status is not SolveStatus.OPTIMAL and not self._unit and far > NEAREST * level:
            far /= NEARER  # to move nothing is an answer, so there is one: the digits did not suffice
            status = self._run(cell, sign, far, view)
        if status is not SolveStatus.OPTIMAL:
            raise SolverFailure(f"A linear program of the suppression problem was not solved ({status}).")
        reach, cells, amount = self._answered()
        return Move(reach, cells, amount, self._back(amount))

    def _run(self, cell: int, sign: int, far: float, view: View) -> SolveStatus:
        """Ask how far a cell can move, with rooms beyond `far` cut off."""
        self.bring(int(self.part[cell]), far)
        self._look_from(view)
        at = int(self.place[cell])
        if at != self._asked:
            self._model.set_cost(self._asked, 0.0)
        self._model.set_cost(at, -float(sign))
        self._asked, self._question = at, (cell, sign)
        return self._model.run()

    def _answered(self) -> tuple[float, Integers, Floats]:
        """How far the cell goes, and how much all of the part move; the model minimises, so prices change sign."""
        amount, prices = self._model.answer()
        self._row_prices = -prices
        return -self._model.objective, self.cells, amount

    def _back(self, amount: Floats) -> float:
        """How many times as far a deviation may go the other way."""
        far = np.abs(amount)
        opposite = np.where(amount > 0, self._below, self._above)[far > NEGLIGIBLE]
        return float((opposite / far[far > NEGLIGIBLE]).min(initial=1.0))

    def ask_again_without_bounds_of(self, cell: int) -> float | None:
        """The same question when one cell moves freely: where the answer is finite, its prices name others."""
        at = int(self.place[cell])
        self._model.set_bound(at, -np.inf, np.inf)
        reach = self._answered()[0] if self._model.run() is SolveStatus.OPTIMAL else None
        self._model.set_bound(at, -self._below[at], self._above[at])
        return reach

    def publish(self, cell: int) -> None:
        """Keep a cell of the part where it is, until it is withheld again."""
        self._share[cell] = 0.0
        at = int(self.place[cell])
        self._above[at] = self._below[at] = 0.0
        self._model.set_bound(at, 0.0, 0.0)

    def withhold(self, cell: int) -> None:
        """Let a cell of the part move again, by all its room."""
        self._share[cell] = 1.0
        at, far, one = int(self.place[cell]), self._now[1], np.array([cell])
        up, down = self._view.rooms(one, self._instance.up[one], self._instance.down[one])
        self._above[at], self._below[at] = min(float(up[0]), far), min(float(down[0]), far)
        self._model.set_bound(at, -self._below[at], self._above[at])

    def prices(self) -> Prices:
        """What the last question's prices say about all cells, in whole numbers: true whatever the solver meant."""
        cell, sign = self._question
        prices = self._row_prices
        for over in GRIDS:
            number = np.rint(prices * over)
            if np.abs(number - prices * over).max(initial=0.0) < 1e-2:
                break
        else:
            over = FINEST
            number = np.rint(prices * over)
        used = np.flatnonzero(number)
        entries, length = spans(self._row_pointer, self._rows[used])
        terms = -np.repeat(number[used].astype(np.int64), length) * self._row_value[entries]
        sums = self._sums
        np.add.at(sums, self._row_index[entries], terms)
        sums[cell] += sign * over
        cells = np.flatnonzero(sums)
        numbers = sums[cells]
        sums[cells] = 0
        on = self._instance.live[cells]
        return Prices(cells[on], numbers[on], over)


def far_of(level: float) -> float:
    """Where rooms are cut off for a level: the same for levels of about the same size, so that programs are shared."""
    return FAR * 1000.0 ** ceil(log10(max(level, 1e-6)) / 3.0)
