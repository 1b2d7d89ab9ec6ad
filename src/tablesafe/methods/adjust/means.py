"""Whole changes that keep means: first all equations hold, then small steps bring the sums of groups back to zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numba import njit
from scipy import sparse

from tablesafe.equations import Floats, Integers
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.methods.adjust.tabu.cycles import Cycles
from tablesafe.methods.adjust.tabu.kernel import FAR
from tablesafe.methods.adjust.whole import rounded

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

    def rounded(self, way: Way, moves: Floats, *, left: Callable[[], float]) -> Integers | None:
        """Whole moves in these directions that add up and keep the means; None when none were found."""
        groups = self.sums.shape[0]
        if not groups:
            return rounded(self.instance, way, moves, left=left)
        plain = replace(self.instance, matrix=sparse.csc_array(self.instance.matrix[:-groups]))
        whole = rounded(plain, way, moves, left=left)
        evened = None if whole is None else self._evened(plain, whole)
        return evened if evened is not None else rounded(self.instance, way, moves, left=left)

    def _evened(self, plain: Instance, moves: Integers) -> Integers | None:
        """The same moves with a few steps along cycles that bring every group's sum to zero."""
        residual = np.asarray(self.sums @ moves).astype(np.int64)
        if not residual.any():
            return moves
        if self._steps is None:
            cycles = Cycles.of(plain, np.random.default_rng(0))
            if cycles is None or len(cycles) * len(residual) > MOST:
                return None
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


@njit(cache=True)
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


@njit(cache=True)
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
