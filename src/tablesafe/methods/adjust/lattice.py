"""Whole moves of linked tables: a fractional change rounded along a basis of all changes, then improved step by step.

A vertex of a linked table is fractional in most of its cells, and integer programs around it find nothing in any
reasonable time. Every whole sum of a whole basis keeps all equations, so that only bounds are to be minded: coordinate
after coordinate goes to the side where the cost, and a penalty on what leaves its bounds, is smaller. What is left
outside is given a little more room in the program, and rounded again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import OutOfTime
from tablesafe.methods.adjust.descent import bounds
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.methods.adjust.tabu.cycles import Cycles, basis_of
from tablesafe.solve.least_change import Box, LeastChange
from tablesafe.work.budget import Budget
from tablesafe.work.compiled import compiled

TIMES = 8
"""Steps beside each member of the basis: sums and differences of two."""
STIFF = 1e3
"""What a unit beyond a bound costs, beside the dearest cell."""
SWEEPS = 30
"""Sweeps over all steps at most; they end when one gains little."""
WORTHWHILE = 1e-6
"""A sweep that saves a smaller share of the cost is the last."""
TIGHTER = 8
"""How often what rounding left outside its bounds is given more room."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """The whole changes of one problem."""

    instance: Instance
    basis: sparse.csc_array = field(repr=False)
    steps: Cycles = field(repr=False)

    @classmethod
    def of(cls, instance: Instance) -> Self | None:
        """None where the equations leave no basis in small whole numbers."""
        basis = basis_of(instance)
        if basis is None or not basis.shape[1]:
            return None
        return cls(instance, basis, Cycles.beside(basis, np.random.default_rng(0), TIMES))

    def whole(
        self, way: Way, moves: Floats, program: LeastChange, *, budget: Budget, close: bool = False
    ) -> Integers | None:
        """Whole moves near the least change in these directions; None when some stay outside their bounds.

        With `close` they stay near these very moves, which are not the least: costs are of the way from them.
        """
        lower, upper = bounds(self.instance, way)
        tight_lower, tight_upper = lower.copy(), upper.copy()
        middle = moves if close else np.zeros(len(moves))
        for _ in range(TIGHTER):
            found = self._rounded(moves, middle, lower, upper)
            found = self._stepped(found, middle, lower, upper, budget=budget)
            if self.instance.holds(found):
                return found
            tight_lower += np.maximum(lower - found, 0.0)
            tight_upper -= np.maximum(found - upper, 0.0)
            if budget.over or (tight_lower > tight_upper).any():
                break
            try:
                change = program.solve(_box(tight_lower - middle, tight_upper - middle), seconds=budget.left)
            except OutOfTime:
                break
            if change is None:
                break
            moves = middle + change.moves
        return None

    def _rounded(self, moves: Floats, middle: Floats, lower: Floats, upper: Floats) -> Integers:
        """The whole sum of the basis that is found by rounding one coordinate after the other, the largest first."""
        rows, share = self.basis.tocsr(), np.zeros(self.basis.shape[1])
        alone = np.flatnonzero(np.diff(rows.indptr) == 1)  # a cell that one member alone moves tells its coordinate
        at = rows.indptr[alone]
        share[rows.indices[at]] = moves[alone] / rows.data[at]
        order, near = np.argsort(-np.abs(share), kind="stable"), np.asarray(self.basis @ share)
        b, cost, entry = self.basis, self.instance.cost, self.basis.data.astype(np.float64)
        _round(b.indptr, b.indices, entry, order, share, near, middle, lower, upper, cost, self._stiff)
        return np.asarray(b.astype(np.int64) @ np.rint(share).astype(np.int64))

    def _stepped(self, moves: Integers, middle: Floats, lower: Floats, upper: Floats, *, budget: Budget) -> Integers:
        now, s = moves.astype(np.float64), self.steps
        entry = s.coefficient.astype(np.float64)
        for _ in range(SWEEPS):
            saved = _descend(s.start, s.cell, entry, now, middle, lower, upper, self.instance.cost, self._stiff)
            if saved <= WORTHWHILE * self.instance.price(now - middle) or budget.over:
                break
        return np.rint(now).astype(np.int64)

    @property
    def _stiff(self) -> float:
        return STIFF * float(self.instance.cost.max(initial=0.0))


def _box(lower: Floats, upper: Floats) -> Box:
    """Bounds of the moves as bounds of rises and falls."""
    return Box(np.maximum(lower, 0.0), np.maximum(upper, 0.0), np.maximum(-upper, 0.0), np.maximum(-lower, 0.0))


@compiled
def _worse(before: float, after: float, middle: float, lower: float, upper: float, cost: float, stiff: float) -> float:
    """What a cell's new move costs beyond its old one, by the way from the middle, penalties included."""
    out, was = max(lower - after, after - upper, 0.0), max(lower - before, before - upper, 0.0)
    return cost * (abs(after - middle) - abs(before - middle)) + stiff * (out * out - was * was)


@compiled
def _round(
    start: Integers, cell: Integers, entry: Floats, order: Integers, share: Floats, moves: Floats, middle: Floats,
    lower: Floats, upper: Floats, cost: Floats, stiff: float,
) -> None:  # fmt: skip
    """Make the shares whole, one after the other; moves follow."""
    for c in order:
        below = np.floor(share[c] + 1e-9)
        best, least = below, np.inf
        for whole in (below, below + 1.0):
            if whole > below and share[c] - below < 1e-9:
                break
            step, found = whole - share[c], 0.0
            for k in range(start[c], start[c + 1]):
                i = cell[k]
                found += _worse(moves[i], moves[i] + step * entry[k], middle[i], lower[i], upper[i], cost[i], stiff)
            if found < least:
                best, least = whole, found
        for k in range(start[c], start[c + 1]):
            moves[cell[k]] += (best - share[c]) * entry[k]
        share[c] = best


@compiled
def _descend(
    start: Integers, cell: Integers, entry: Floats, moves: Floats, middle: Floats, lower: Floats, upper: Floats,
    cost: Floats, stiff: float,
) -> float:  # fmt: skip
    """One sweep over all steps, each doubled in length while that helps, for costs are convex; what it saved."""
    saved = 0.0
    for c in range(len(start) - 1):
        best, gain = 0.0, 0.0
        for sign in (1.0, -1.0):
            t = sign
            while True:
                found = 0.0
                for k in range(start[c], start[c + 1]):
                    i = cell[k]
                    found -= _worse(moves[i], moves[i] + t * entry[k], middle[i], lower[i], upper[i], cost[i], stiff)
                if found <= gain + 1e-9:
                    break
                best, gain, t = t, found, 2.0 * t
        if best != 0.0:
            for k in range(start[c], start[c + 1]):
                moves[cell[k]] += best * entry[k]
            saved += gain
    return saved
