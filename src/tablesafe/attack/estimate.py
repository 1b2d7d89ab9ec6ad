"""How near a guess comes to the truth. Confidential throughout: it compares with the truth."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.attack.density import Density
from tablesafe.core.display import shown
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.problem import Problem

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

    def __str__(self) -> str:
        known, disclosed = int(self.exactly.sum()), int(self.disclosed.sum())
        return (
            f"An intruder using the {self.attack} lands within the protection interval of {disclosed:,} of "
            f"{len(self.cells):,} sensitive cells" + (f" (known exactly: {known:,})." if known else ".")
        )
