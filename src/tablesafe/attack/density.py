"""How often the solutions that an intruder finds put a cell where, in ten equal intervals of what it can be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers

INTERVALS = 10
EDGE = 1e-9
"""Part of the width by which a solution may miss the edge that it lies on."""

Summary = Literal["mean", "peak"]
"""What a density says about a cell: its mean, or the middle of its fullest interval."""


@dataclass(frozen=True, eq=False)
class Density:
    """Per unknown cell: its exact range, how many solutions fell into each tenth of it, their mean and deviation."""

    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    counts: Integers = field(repr=False)
    """One row per cell, one column per interval; zeros for a cell without a range."""
    mean: Floats = field(repr=False)
    """NaN for a cell without a range or without a solution."""
    deviation: Floats = field(repr=False)
    """Standard deviation over the solutions."""

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def solutions(self) -> Integers:
        """How many solutions each cell was counted in."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def edges(self) -> Floats:
        """The ends of the intervals, one row per cell."""
        share = np.linspace(0.0, 1.0, INTERVALS + 1)
        with np.errstate(invalid="ignore"):
            return self.lower[:, None] + (self.upper - self.lower)[:, None] * share

    @property
    def peak(self) -> Floats:
        """The middle of the fullest interval; of several, the one nearest to the mean."""
        edges = self.edges
        middle = (edges[:, :-1] + edges[:, 1:]) / 2
        fullest = self.counts == self.counts.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            off = np.where(fullest, np.abs(middle - self.mean[:, None]), np.inf)
        best = middle[np.arange(len(self)), np.argmin(off, axis=1)]
        return np.where(np.isnan(self.mean), np.nan, best)

    @property
    def variation(self) -> Floats:
        """Coefficient of variation: the standard deviation relative to the mean."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.deviation / np.abs(self.mean)

    def at(self, summary: Summary) -> Floats:
        """The mean or the peak."""
        return self.mean if summary == "mean" else self.peak

    def take(self, cells: NDArray[np.intp]) -> Density:
        """The density of some of the cells."""
        return Density(
            self.lower[cells], self.upper[cells], self.counts[cells], self.mean[cells], self.deviation[cells]
        )

    def over(self, unit: float) -> Density:
        """The same in another unit."""
        return Density(self.lower / unit, self.upper / unit, self.counts, self.mean / unit, self.deviation / unit)


class Tally:
    """Counts solutions as they come; cells are measured by their place between the ends of their range."""

    def __init__(self, lower: Floats, upper: Floats) -> None:
        n = len(lower)
        width = upper - lower
        self._lower, self._upper, self._ranged = lower, upper, np.isfinite(width) & (width > 0)
        self._width = np.where(self._ranged, width, 1.0)
        self._counts = np.zeros((n, INTERVALS), np.int64)
        self._total, self._squares = np.zeros(n), np.zeros(n)

    def add(self, point: Floats, cells: NDArray[np.intp], weight: int = 1) -> None:
        """Count one solution for some of the cells, so many times."""
        own = self._ranged[cells]
        at = cells[own]
        place = np.clip((point[own] - self._lower[at]) / self._width[at], 0.0, 1.0)
        column = np.minimum(((place + EDGE) * INTERVALS).astype(np.intp), INTERVALS - 1)
        self._counts[at, column] += weight
        self._total[at] += weight * place
        self._squares[at] += weight * place**2

    def add_places(self, places: Floats, cells: NDArray[np.intp]) -> None:
        """Count many solutions for some of the cells, one per row, given as places between the ends of each range."""
        column = np.clip(((places + EDGE) * INTERVALS).astype(np.int8), 0, INTERVALS - 1)
        for interval in range(INTERVALS):
            self._counts[cells, interval] += (column == interval).sum(axis=0)
        self._total[cells] += places.sum(axis=0, dtype=np.float64)
        self._squares[cells] += np.einsum("ij,ij->j", places, places, dtype=np.float64)

    def density(self) -> Density:
        """What was counted."""
        points = self._counts.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self._total / points
            spread = np.maximum(self._squares - points * mean**2, 0.0) / np.maximum(points - 1, 1)
        fixed = self._upper == self._lower
        mean, spread = np.where(fixed, 0.0, mean), np.where(fixed, 0.0, np.where(points > 0, spread, np.nan))
        return Density(
            self._lower, self._upper, self._counts, self._lower + mean * self._width, np.sqrt(spread) * self._width
        )
