"""Whole changes that keep means: first all equations hold, then small steps bring the sums of groups back to zero."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.methods.adjust.lattice import Lattice
from tablesafe.methods.adjust.tabu.cycles import Cycles
from tablesafe.methods.adjust.tabu.kernel import FAR
from tablesafe.methods.adjust.whole import rounded
from tablesafe.solve.least_change import LeastChange
from tablesafe.work.budget import Budget
from tablesafe.work.compiled import compiled

LARGE = 1_000
"""Cells from which on a basis of all changes finds whole moves sooner than programs over many whole numbers."""
FEW_S = 1.0
"""How long the few fractional cells of such a table may take before that."""
MOST = 40_000_000
"""Sums of groups per step that are kept at once; beyond, one program rounds everything together."""


@dataclass(eq=False)
class Means:
    """A problem whose last equations say that the changes of groups add up to zero."""

    instance: Instance
    sums: sparse.csr_array = field(repr=False)
    """A row per group, over the cells that may move."""
    _steps: tuple[Cycles, Integers] | None = field(default=None, init=False, repr=False)

    @classmethod
    def none(cls, instance: Instance) -> Self:
        """No means are kept."""
        return cls(instance, sparse.csr_array((0, len(instance.cells)), dtype=np.int64))

    @cached_property
    def plain(self) -> Instance:
        """The problem without the equations of the means."""
        groups = self.sums.shape[0]
        if not groups:
            return self.instance
        return replace(self.instance, matrix=sparse.csc_array(self.instance.matrix[:-groups]))

    @cached_property
    def lattice(self) -> Lattice | None:
        """The whole changes of the table, means or not; None where they have no simple basis."""
        return Lattice.of(self.plain)

    def rounded(self, way: Way, moves: Floats, *, budget: Budget, close: bool = False) -> Integers | None:
        """Whole moves in these directions that add up and keep the means; None when none were found.

        First those of a few cells that are fractional; of a table of some size then by a basis of all changes, for
        programs over many whole numbers seldom end in time. With `close` they stay near these moves, at any cost.
        """
        large = len(self.instance.cells) > LARGE
        most, stages = (FEW_S, 1) if large else (np.inf, None)
        found = self._evened(rounded(self.plain, way, moves, budget=budget, most=most, stages=stages))
        if found is None and large:
            found = self.by_lattice(way, moves, budget=budget, close=close)
        return rounded(self.instance, way, moves, budget=budget) if found is None else found

    def by_lattice(
        self,
        way: Way,
        moves: Floats,
        *,
        budget: Budget,
        program: LeastChange | None = None,
        close: bool = False,
    ) -> Integers | None:
        """The same by a basis of all changes, whatever the table's shape and size."""
        if self.lattice is None:
            return None
        i = self.instance
        program = LeastChange(i.rows, i.cost, i.cost, i.scale()) if program is None else program
        found = self._evened(self.lattice.whole(way, moves, program, budget=budget, close=close))
        return found if found is not None and i.holds(found) else None

    def _evened(self, moves: Integers | None) -> Integers | None:
        """The same moves with a few steps along cycles that bring every group's sum to zero."""
        if moves is None:
            return None
        residual = np.asarray(self.sums @ moves).astype(np.int64)
        if not residual.any():
            return moves
        plain = self.plain
        if self._steps is None:
            if self.lattice is None or len(self.lattice.steps) * len(residual) > MOST:
                return None
            cycles = self.lattice.steps
            matrix = sparse.csc_array(
                (cycles.coefficient, cycles.cell, cycles.start), shape=(len(plain.cells), len(cycles))
            )
            self._steps = cycles, np.ascontiguousarray((self.sums @ matrix).toarray().T.astype(np.int64))
        cycles, effect = self._steps
        above, below = np.zeros((2, len(plain.cells)), np.int64)
        above[plain.targets], below[plain.targets] = plain.above, plain.below
        up, down = (np.minimum(side, FAR).astype(np.int64) for side in (plain.up, plain.down))
        found = moves.copy()
        _even(
            found, residual, effect, cycles.start, cycles.cell, cycles.coefficient, up, down, above, below, plain.cost
        )
        return None if residual.any() else found


@compiled
def _even(
    moves: Integers, residual: Integers, effect: Integers, start: Integers, cell: Integers, coefficient: Integers,
    up: Integers, down: Integers, above: Integers, below: Integers, cost: Floats,
) -> None:  # fmt: skip
    """Take the step that brings the sums nearest to zero for the least cost, until they are zero or none helps."""
    while residual.any():
        best, length, ratio = -1, 0, np.inf
        for c in range(len(effect)):
            for g in range(len(residual)):
                if effect[c, g] == 0 or residual[g] == 0:
                    continue
                whole = -residual[g] // effect[c, g]
                for t in (whole, whole // 2, 1 if whole > 0 else -1):
                    nearer = 0
                    for h in range(len(residual)):
                        nearer += abs(residual[h]) - abs(residual[h] + t * effect[c, h])
                    if t == 0 or nearer <= 0:
                        continue
                    price = _price(moves, t, start[c], start[c + 1], cell, coefficient, up, down, above, below, cost)
                    if price / nearer < ratio:
                        best, length, ratio = c, t, price / nearer
        if best < 0:
            return
        for z in range(start[best], start[best + 1]):
            moves[cell[z]] += length * coefficient[z]
        for h in range(len(residual)):
            residual[h] += length * effect[best, h]


@compiled
def _price(
    moves: Integers, t: int, first: int, last: int, cell: Integers, coefficient: Integers, up: Integers,
    down: Integers, above: Integers, below: Integers, cost: Floats,
) -> float:  # fmt: skip
    """What a step costs; infinity when it leaves the bounds or brings a target too near its true value."""
    found = 0.0
    for z in range(first, last):
        i = cell[z]
        y = moves[i] + t * coefficient[z]
        if y > up[i] or -y > down[i] or (above[i] > 0 and y < above[i] and -y < below[i]):
            return np.inf
        found += cost[i] * (abs(y) - abs(moves[i]))
    return found
