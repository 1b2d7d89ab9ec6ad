"""Whole moves of small squares: a fractional change rounded along a basis of all changes, then improved step by step.

Every step is a whole vector that keeps all equations, so nothing has to be made to add up; of tables of any size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.adjust.blocks import Regions
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.methods.adjust.tabu.cycles import Cycles, basis_of
from tablesafe.solve.least_change import whole_moves
from tablesafe.work.budget import Budget
from tablesafe.work.compiled import compiled

TIMES = 3
"""Steps beside each member of the basis: sums and differences of two."""
STIFF = 1e3
"""What a move beyond its bound costs while the others are still to be rounded, beside its own square."""
SWEEPS = 200
"""Sweeps over all steps at most; they end when one gains little."""
REGIONS, REGION_S, FAR = (60, 250, 1_000), 5.0, 8.0
"""Inner cells around a move that is to be brought back, seconds for each, and how far others may give way."""
WORTHWHILE = 1e-7
"""A sweep that saves a smaller share is the last."""


@dataclass(frozen=True, eq=False)
class Descent:
    """The steps of one problem."""

    instance: Instance
    basis: sparse.csc_array = field(repr=False)
    cycles: Cycles = field(repr=False)

    @classmethod
    def of(cls, instance: Instance, random: np.random.Generator) -> Self | None:
        """None where the equations leave no simple steps."""
        basis = basis_of(instance)
        if basis is None or not basis.shape[1]:
            return None
        return cls(instance, basis, Cycles.beside(basis, random, TIMES))

    def rounded(self, way: Way, start: Integers, moves: Floats) -> Integers:
        """Whole moves near fractional ones that keep all equations; bounds are kept where that is easy.

        `start` is whole and keeps all equations. Coordinate after coordinate goes to the whole number on the side
        where the squares of all cells that it moves stay smaller, what is rounded already included.
        """
        lower, upper = bounds(self.instance, way)
        places, share = self._coordinates(moves - start)
        found = start + np.asarray(self.basis @ share)
        b = self.basis
        _round(b.indptr, b.indices, b.data.astype(np.float64), places, share, found, lower, upper, self.instance.cost)
        return np.asarray(start + b.astype(np.int64) @ np.rint(share).astype(np.int64))

    def _coordinates(self, change: Floats) -> tuple[Integers, Floats]:
        """The columns in the order of rounding, and how often each is part of a change.

        Cells that only one column moves say it; columns without such a cell stay out.
        """
        rows = self.basis.tocsr()
        alone = np.flatnonzero(np.diff(rows.indptr) == 1)
        column, entry = rows.indices[rows.indptr[alone]], rows.data[rows.indptr[alone]]
        share = np.zeros(self.basis.shape[1])
        share[column] = change[alone] / entry
        return np.argsort(-np.abs(share), kind="stable"), share

    def improved(self, way: Way, moves: Integers, *, budget: Budget) -> Integers | None:
        """Steps that bring moves within their bounds and make squares smaller; None when some stay outside.

        What single steps leave outside its bounds is brought back by programs over its neighbours.
        """
        near = self._stepped(way, moves, budget=budget)
        if self.instance.holds(near):
            return near
        back = self._brought_back(way, near, budget=budget)
        found = None if back is None else self._stepped(way, back, budget=budget)
        return found if found is not None and self.instance.holds(found) else None

    def _brought_back(self, way: Way, moves: Integers, *, budget: Budget) -> Integers | None:
        """Bring each move outside its bounds back, by the least change of a region around it."""
        lower, upper = bounds(self.instance, way)
        regions, random, near = Regions.of(self.instance), np.random.default_rng(0), moves.copy()
        for cell in np.flatnonzero((near < lower) | (near > upper)).tolist():
            for size in REGIONS:
                if budget.over:
                    return None
                if lower[cell] <= near[cell] <= upper[cell] or self._nudged(
                    regions.around(cell, size, random), near, lower, upper, seconds=min(budget.left, REGION_S)
                ):
                    break
            else:
                return None
        return near

    def _nudged(
        self, cells: NDArray[np.intp], moves: Integers, lower: Floats, upper: Floats, *, seconds: float
    ) -> bool:
        """Change the moves of some cells as little as can be so that all are within bounds; whether it was done."""
        now, count = moves[cells].astype(np.float64), len(cells)
        least, most = lower[cells] - now, upper[cells] - now
        rows = sparse.csr_array(self.instance.matrix[:, cells])
        rows = sparse.csc_array(rows[np.flatnonzero(np.diff(rows.indptr))])
        cost = self.instance.cost[cells]
        step = whole_moves(
            sparse.csc_array(sparse.hstack([rows, -rows])), np.zeros(rows.shape[0], np.int64),
            np.concatenate([cost, cost]),
            np.concatenate([np.maximum(least, 0.0), np.maximum(-most, 0.0)]),
            np.concatenate([np.clip(most, 0.0, np.maximum(least, FAR)), np.clip(-least, 0.0, np.maximum(-most, FAR))]),
            time_limit_s=seconds,
        )  # fmt: skip
        if step is None:
            return False
        moves[cells] += step[:count] - step[count:]
        return True

    def _stepped(self, way: Way, moves: Integers, *, budget: Budget) -> Integers:
        """Sweep after sweep over all steps, while that helps and there is time."""
        lower, upper = bounds(self.instance, way)
        now, c = moves.astype(np.float64), self.cycles
        for _ in range(SWEEPS):
            before = float((self.instance.cost * np.square(now)).sum())
            saved, nearer = _descend(
                c.start, c.cell, c.coefficient.astype(np.float64), now, lower, upper, self.instance.cost
            )
            if (saved <= WORTHWHILE * before and nearer <= 0) or budget.over:
                break
        return np.rint(now).astype(np.int64)


def bounds(instance: Instance, way: Way) -> tuple[Floats, Floats]:
    """The least and the most of every move when the targets go these ways."""
    box = instance.box(way)
    return box.rise_least - box.fall_most, box.rise_most - box.fall_least


@compiled
def _round(
    start: Integers, cell: Integers, entry: Floats, order: Integers, share: Floats, moves: Floats, lower: Floats,
    upper: Floats, weight: Floats,
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
                y = moves[i] + step * entry[k]
                over = max(lower[i] - y, y - upper[i], 0.0)
                found += weight[i] * (y * y - moves[i] * moves[i]) + STIFF * weight[i] * over * (over + abs(y))
            if found < least:
                best, least = whole, found
        for k in range(start[c], start[c + 1]):
            moves[cell[k]] += (best - share[c]) * entry[k]
        share[c] = best


@compiled
def _descend(
    start: Integers, cell: Integers, entry: Floats, moves: Floats, lower: Floats, upper: Floats, weight: Floats
) -> tuple[float, float]:
    """One sweep over all steps: what it saved, and by how much less the moves are beyond their bounds."""
    saved, nearer = 0.0, 0.0
    for c in range(len(start) - 1):
        slope, curve = 0.0, 0.0
        for k in range(start[c], start[c + 1]):
            slope += weight[cell[k]] * moves[cell[k]] * entry[k]
            curve += weight[cell[k]] * entry[k] * entry[k]
        far = _within(start[c], start[c + 1], cell, entry, moves, lower, upper, np.rint(-slope / curve))
        best, gain, closer = 0.0, 0.0, 0.0
        for t in (far, 1.0, -1.0):
            if t == 0.0:
                continue
            less = 0.0
            for k in range(start[c], start[c + 1]):
                i = cell[k]
                y = moves[i] + t * entry[k]
                less += max(lower[i] - moves[i], moves[i] - upper[i], 0.0) - max(lower[i] - y, y - upper[i], 0.0)
            gained = -t * (2.0 * slope + t * curve)
            if less > closer or (less == closer and gained > gain * (1 + 1e-12)):
                best, gain, closer = t, gained, less
        if best != 0.0 and (closer > 0.0 or gain > 1e-9 * curve):
            for k in range(start[c], start[c + 1]):
                moves[cell[k]] += best * entry[k]
            saved += gain
            nearer += closer
    return saved, nearer


@compiled
def _within(
    first: int, last: int, cell: Integers, entry: Floats, moves: Floats, lower: Floats, upper: Floats, far: float
) -> float:
    """The whole length next to `far` that leaves no bound, of a step whose cells are within theirs."""
    most = abs(far)
    sign = 1.0 if far > 0 else -1.0
    for k in range(first, last):
        i, each = cell[k], sign * entry[k]
        room = (upper[i] - moves[i]) / each if each > 0 else (lower[i] - moves[i]) / each
        most = min(most, max(room, 0.0))
    return float(sign * np.floor(most + 1e-9))
