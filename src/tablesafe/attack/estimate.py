"""How often the solutions that an intruder finds put a cell where, in ten equal intervals of what it can be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.attack.view import View
from tablesafe.core.display import shown
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.language import Text, text
from tablesafe.core.problem import Problem
from tablesafe.work.budget import ENDLESS, Budget

INTERVALS = 10
"""Classes into which the range of a cell is divided, to count where guesses fall."""
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


# What every attack is, and what it comes up with.


@dataclass(frozen=True, eq=False)
class Guess:
    """A value for every unknown cell, in the system's units, and where it came from."""

    values: Floats = field(repr=False)
    """NaN where the attack has no answer."""
    density: Density | None = field(default=None, repr=False)
    note: str = ""
    """What was done, where that is not always the same: how many programs, how many draws."""


class Attack(Protocol):
    """A way to guess: its options are its fields."""

    name: ClassVar[str]

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """Guess every unknown cell; stop, with what there is, when the budget is up."""
        ...


# How near a guess comes to the truth. Confidential throughout: it compares with the truth.


SAME = 1e-6
"""Units of the table's last decimal within which two numbers are the same."""


@shown
@dataclass(frozen=True, eq=False)
class Estimate:
    """An intruder's guess of every cell, and its score against the truth, one entry per sensitive cell."""

    problem: Problem = field(repr=False)
    attack: str
    values: Floats = field(repr=False)
    """All cells: what is known as it is known, what is not as it was guessed, NaN where the attack has no answer."""
    known: Mask = field(repr=False)
    """All cells: which can be one number only, published or derived."""
    unknown: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp), repr=False)
    """The cells that the release does not tell: those of the density."""
    density: Density | None = field(default=None, repr=False)
    """How the solutions behind the guess are spread, where there are many: one entry per unknown cell."""
    note: str = ""
    """What was done: how many programs, how many draws."""
    seconds: float = 0.0

    @property
    def cells(self) -> NDArray[np.intp]:
        """The sensitive cells that the scores are about."""
        return self.problem.sensitive

    @cached_property
    def error(self) -> Floats:
        """Guess less truth, per sensitive cell."""
        return self.values[self.cells] - self.problem.table.value[self.cells]

    @cached_property
    def relative_error(self) -> Floats:
        """The size of the error relative to the truth; infinite for a wrong guess of a cell that is zero."""
        truth, off = np.abs(self.problem.table.value[self.cells]), np.abs(self.error)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(off <= self._tolerance, 0.0, off / truth)

    @cached_property
    def distance(self) -> Floats:
        """The error as a share of the protection level on its side: below 1 is inside the protection interval."""
        sensitivity = self.problem.sensitivity
        level = np.where(self.error < 0, sensitivity.lower[self.cells], sensitivity.upper[self.cells])
        off = np.abs(self.error)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(off <= self._tolerance, 0.0, off / level)

    @cached_property
    def disclosed(self) -> Mask:
        """Which sensitive cells are guessed inside their protection interval: statistical disclosure.

        The interval is (value − lower level, value + upper level) without its ends, and always holds the value itself.
        A cell that can be one number only is disclosed.
        """
        sensitivity, off = self.problem.sensitivity, self.error
        lower, upper = sensitivity.lower[self.cells], sensitivity.upper[self.cells]
        inside = (off > self._tolerance - lower) & (off < upper - self._tolerance)
        return inside | (np.abs(off) <= self._tolerance) | self.exactly

    @cached_property
    def variation(self) -> Floats:
        """Coefficient of variation of the solutions behind each guess; NaN where there is one solution only."""
        out = np.full(len(self.cells), np.nan)
        if self.density is not None:
            own = np.isin(self.cells, self.unknown)
            out[own] = self.density.variation[np.searchsorted(self.unknown, self.cells[own])]
        return out

    def at_peak(self) -> Estimate | None:
        """The same with the peak of the density as the guess; None when there is no density."""
        if self.density is None:
            return None
        values = self.values.copy()
        values[self.unknown] = self.density.peak
        values[self.known] = self.values[self.known]
        kind = self.attack.removeprefix("mean of ")
        return replace(self, attack=f"peak of {kind}", values=values, note="", seconds=0.0)

    @property
    def exactly(self) -> Mask:
        """Which sensitive cells can be one number only, the truth."""
        return self.known[self.cells]

    @property
    def share(self) -> float:
        """The share of the sensitive cells that are disclosed; 0 when there are none."""
        return float(self.disclosed.mean()) if len(self.cells) else 0.0

    @property
    def _tolerance(self) -> float:
        return SAME * 10.0**-self.problem.table.decimals

    def frame(self) -> pl.DataFrame:
        """One row per sensitive cell, the riskiest first."""
        table, sensitivity, cells = self.problem.table, self.problem.sensitivity, self.cells
        value = table.value[cells]
        codes = {name: column.gather(cells.astype(np.uint32)) for name, column in table.code_columns().items()}
        scores = {
            "true value": value,
            "estimate": pl.Series(self.values[cells], nan_to_null=True),
            "relative error": pl.Series(self.relative_error, nan_to_null=True),
            "protected from": value - sensitivity.lower[cells],
            "protected to": value + sensitivity.upper[cells],
            "distance": pl.Series(self.distance, nan_to_null=True),
            "disclosed": self.disclosed,
            "exactly": self.exactly,
        }
        if self.density is not None:
            scores["coefficient of variation"] = pl.Series(self.variation, nan_to_null=True)
        order = np.lexsort((np.nan_to_num(self.distance, nan=np.inf), ~self.disclosed, ~self.exactly))
        return pl.DataFrame(codes | scores)[order.astype(np.uint32)]

    @property
    def sentence(self) -> Text:
        """How many sensitive cells the guess comes too near to."""
        known, told = int(self.exactly.sum()), {"attack": self.attack, "many": len(self.cells)}
        near = int(self.disclosed.sum())
        if not known:
            return text(
                "An intruder using the {attack} lands within the protection interval of {near:,} of {many:,} sensitive "
                "cells.",
                near=near, **told,
            )  # fmt: skip
        return text(
            "An intruder using the {attack} lands within the protection interval of {near:,} of {many:,} sensitive "
            "cells (known exactly: {known:,}).",
            near=near, known=known, **told,
        )  # fmt: skip

    def __str__(self) -> str:
        return str(self.sentence)
