"""Reconstruct the truth from intervals that lie symmetrically about it.

Where the bounds that intervals were computed from lie symmetrically about the true values (each is known to within q
percent, or to within so many units), every exact interval lies symmetrically about its true value: with each table that
is possible the one mirrored at the truth is possible too. So the middle of each interval is the truth, and the widest
interval relative to its middle tells q. (Cox, "Vulnerability of Complementary Cell Suppression to Intruder Attack".)

Nothing here looks at the true values: it works on what a release shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System, snapped
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.release import Release
from tablesafe.core.table import Table

CLOSE = 1e-7
"""How far apart numbers may be, relative to what they are made of, that should be equal."""
Prior = Literal["percent", "units", "none"]


@dataclass(frozen=True, eq=False)
class Derived:
    """The exact intervals that follow from a release alone, one entry per unknown cell, in the table's own unit."""

    system: System = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)

    @classmethod
    def of(cls, release: Release) -> Derived:
        """What anyone can work out: from the values and intervals that are shown, and the equations between them."""
        system = seen(release)
        found, unit = exact_intervals(system), 10.0**release.table.decimals
        return cls(system, found.lower / unit, found.upper / unit)

    @property
    def cells(self) -> NDArray[np.intp]:
        """The table's cells that the intervals are about."""
        return self.system.cells

    @property
    def table(self) -> Table:
        """The table that the cells belong to."""
        return self.system.table

    @cached_property
    def free(self) -> Mask:
        """Which of them can be more than one number, and have two ends."""
        width = self.upper - self.lower
        return np.isfinite(width) & (width > 1e-6 * 10.0**-self.table.decimals)

    @cached_property
    def middle(self) -> Floats:
        """The middle of each interval; NaN for one without an end."""
        with np.errstate(invalid="ignore"):
            middle = self.lower + (self.upper - self.lower) / 2
        return np.where(np.isfinite(middle), middle, np.nan)

    def everywhere(self, values: Floats) -> Floats:
        """All cells of the table: what the release shows, and the given values for the unknown ones."""
        out = self.table.value.copy()  # a cell that is not unknown is shown, or given away, and thus true
        out[self.cells] = values
        return out


def seen(release: Release) -> System:
    """The equations between the cells that a release leaves open, and the bounds that it gives for them."""
    unit = 10.0**release.table.decimals
    lower, upper = snapped(release.lower * unit), snapped(release.upper * unit)
    unknown = np.flatnonzero(lower < upper)
    return System.over(release.table, unknown, lower[unknown], upper[unknown])


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """The middles of all intervals as values, and how far the intervals betray that these are the truth."""

    derived: Derived = field(repr=False)
    values: Floats = field(repr=False)
    """All cells: as shown, or the middle of the interval; NaN for an interval without an end."""
    additive: bool
    """Whether the middles satisfy every equation, as the truth does."""
    prior: Prior
    """A symmetric prior that explains every interval: each value known to within a percentage, or a number of units."""
    q: float
    """The percentage, if that explains the intervals; otherwise NaN."""
    units: float
    """The number of units, if that explains the intervals; otherwise NaN."""

    @property
    def betrayed(self) -> bool:
        """Whether an intruder can be confident: a prior with fewer parameters than intervals explains them all.

        Intervals down to zero are explained by q = 100 as well, which says nothing.
        """
        return self.additive and (self.prior == "units" or (self.prior == "percent" and self.q < 100 * (1 - CLOSE)))

    def frame(self) -> pl.DataFrame:
        """One row per unknown cell. As confidential as the values that it may give away."""
        cells = self.derived.cells.astype(np.uint32)
        codes = {name: column.gather(cells) for name, column in self.derived.table.code_columns().items()}
        return pl.DataFrame(
            codes
            | {
                "from": pl.Series(self.derived.lower, nan_to_null=True),
                "to": pl.Series(self.derived.upper, nan_to_null=True),
                "reconstructed": pl.Series(self.values[self.derived.cells], nan_to_null=True),
            }
        )

    def __str__(self) -> str:
        free = int(self.derived.free.sum())
        if not self.betrayed:
            return f"The intervals of {free:,} cells do not betray that their middles are the true values."
        known = f"{self.q:g}% of each value" if self.prior == "percent" else f"{self.units:g} units"
        return (
            f"The intervals of {free:,} cells follow from a knowledge to within {known}: their middles are the truth."
        )


def reconstruct(release: Release) -> Reconstruction:
    """Take the middle of every interval that follows from a release, and test whether that is the truth.

    The test needs no truth: with the middles as values, does one number (a percentage of every value, or a number of
    units) reproduce every interval that was seen?
    """
    return reconstruct_from(Derived.of(release))


def reconstruct_from(derived: Derived) -> Reconstruction:
    """The same from intervals that are known already."""
    middle, free = derived.middle, derived.free
    nothing: tuple[float, float, Prior] = (np.nan, np.nan, "none")
    q, units, prior = nothing if not free.any() or np.isnan(middle).any() else _explanation(derived)
    return Reconstruction(derived, derived.everywhere(middle), _adds_up(derived), prior, q, units)


def _explanation(derived: Derived) -> tuple[float, float, Prior]:
    """The prior that reproduces all intervals, tried in turn: a share of the value, then a number of units."""
    free, half = derived.free, (derived.upper - derived.lower) / 2
    size = np.abs(derived.middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = float(np.max(np.where(free & (size > 0), half / size, 0.0)))
    if share <= 1 + CLOSE and _reproduces(derived, share * size):
        return 100 * share, np.nan, "percent"
    most = float(half.max())
    if _reproduces(derived, np.full(len(half), most)):
        return np.nan, most, "units"
    return np.nan, np.nan, "none"


def _reproduces(derived: Derived, radius: Floats) -> bool:
    """Whether a knowledge of each middle to within its radius leads to just these intervals."""
    system, unit = derived.system, 10.0**derived.table.decimals
    none = np.zeros(len(system), np.int64)
    radius = np.where(derived.free, radius, 0.0) * unit
    around = System(
        system.table, system.cells, system.rows, system.matrix, np.zeros_like(system.rhs), -radius, radius, none
    )
    found = exact_intervals(around).upper / unit
    half = (derived.upper - derived.lower) / 2
    tolerance = CLOSE * np.maximum(half, np.abs(derived.middle)) + 2e-9 / unit
    return bool((np.abs(found - half) <= tolerance).all())


def _adds_up(derived: Derived) -> bool:
    """Whether the middles satisfy the equations, up to the noise of floats."""
    system, unit = derived.system, 10.0**derived.table.decimals
    middle = derived.middle * unit
    if np.isnan(middle).any():
        return False
    off = np.abs(np.asarray(system.matrix.astype(np.float64) @ middle) - system.rhs)
    size = np.asarray(abs(system.matrix).astype(np.float64) @ np.abs(middle))
    return bool((off <= CLOSE * np.maximum(size, 1.0)).all())
