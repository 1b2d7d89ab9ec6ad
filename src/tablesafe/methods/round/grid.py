"""A table in whole steps: every cell a multiple of its base, near its count, and how far from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.round.counts import Counts


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells counted in steps of their base. Hidden cells take what makes the sums right, in the finest base."""

    counts: Counts = field(repr=False)
    distance: str
    matrix: sparse.csr_array = field(repr=False)
    """The equations between steps, in the finest base: a step of a coarse cell is several fine ones."""
    step: Integers = field(repr=False)
    """The base of each cell; that of hidden cells is the finest one."""
    low: Integers = field(repr=False)
    high: Integers = field(repr=False)
    """The neighbours of each count, in steps; equal for multiples and frozen cells."""
    pull: Floats | None = field(default=None, repr=False)
    """In the place of the distance: what a step up costs, or with a minus a step down, from the neighbour it wants."""

    @classmethod
    def of(cls, counts: Counts, distance: str) -> Self:
        """The grid of some counts."""
        unit = int(counts.base.min(initial=np.iinfo(np.int64).max))
        step = np.where(counts.hidden, unit, counts.base)
        matrix = sparse.csr_array(counts.table.equations).astype(np.int64)
        matrix.data = matrix.data * (step // unit)[matrix.indices]
        low = counts.value // step
        return cls(counts, distance, matrix, step, low, low + (counts.value % step > 0))

    @property
    def hidden(self) -> Mask:
        """Cells that are not published."""
        return self.counts.hidden

    @cached_property
    def by_cell(self) -> sparse.csc_array:
        """The equations by column."""
        return self.matrix.tocsc()

    @cached_property
    def free(self) -> Mask:
        """Published cells that may change."""
        return ~self.counts.hidden & ~self.counts.frozen

    @cached_property
    def least(self) -> float:
        """A distance that no rounding is below: every cell at its nearer neighbour."""
        return float(np.minimum(self.distances(self.low), self.distances(self.high)).sum())

    def distances(self, steps: Integers, cells: Integers | None = None) -> Floats:
        """How far each cell is from its count, in the chosen measure; hidden cells count nothing."""
        at = np.arange(len(self.step)) if cells is None else cells
        if self.pull is not None:
            wanted = np.where(self.pull[at] > 0, self.low[at], self.high[at])
            return np.where(self.hidden[at], 0.0, np.abs(self.pull[at]) * np.abs(steps - wanted))
        value = self.counts.value[at]
        off: Floats = np.abs(steps * self.step[at] - value).astype(np.float64)
        if self.distance == "squared":
            off = off**2
        elif self.distance == "relative":
            off = off / np.maximum(value, 1)
        return np.where(self.hidden[at], 0.0, off)

    def beyond(self, steps: Integers) -> Integers:
        """How many steps each cell lies beyond its two neighbours."""
        out = np.maximum(np.maximum(self.low - steps, steps - self.high), 0)
        return np.where(self.hidden, 0, out)

    def adds_up(self, steps: Integers) -> bool:
        """Whether every sum holds, exactly, nothing is negative, and what is frozen stayed."""
        if (steps < 0).any() or (steps != self.low)[self.counts.frozen].any():
            return False
        return not np.asarray(self.matrix @ steps).any()

    @property
    def whole_costs(self) -> bool:
        """Whether distances are whole numbers, so that bounds may be rounded up."""
        return self.distance != "relative" and self.pull is None
