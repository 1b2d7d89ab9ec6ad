"""What noise did to a table: how far values moved, and totals from the sums of their parts. Confidential."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidRelease
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release

SHOWN = {"least": 0.0, "10%": 0.1, "25%": 0.25, "median": 0.5, "75%": 0.75, "90%": 0.9, "95%": 0.95, "99%": 0.99,
         "most": 1.0}  # fmt: skip


@dataclass(frozen=True, eq=False)
class NoiseMeasures:
    """The changes of the published cells that are not zero by themselves."""

    problem: Problem = field(repr=False)
    release: Release = field(repr=False)

    @cached_property
    def cells(self) -> Mask:
        """The published cells with a true value other than zero: noise leaves zeros as they are."""
        return np.asarray(~self.release.suppressed & (self.problem.table.integers != 0) & ~self.problem.frozen)

    @cached_property
    def changes(self) -> Floats:
        """Published less true value of these cells."""
        return np.asarray((self.release.values - self.problem.table.value)[self.cells])

    @property
    def mean(self) -> float:
        """The mean change: near zero where the noise is unbiased."""
        return float(self.changes.mean()) if self.changes.size else 0.0

    @property
    def variance(self) -> float:
        """The mean squared change."""
        return float((self.changes**2).mean()) if self.changes.size else 0.0

    @property
    def false_zeros(self) -> int:
        """Cells that became zero."""
        return int((self.release.values[self.cells] == 0).sum())

    @property
    def false_positives(self) -> int:
        """Zeros that became something else: none, by this method."""
        zero = ~self.release.suppressed & (self.problem.table.integers == 0)
        return int((self.release.values[zero] != 0).sum())

    def distribution(self) -> pl.DataFrame:
        """How many cells changed by how much; for counts."""
        change, cells = np.unique(self.changes, return_counts=True)
        return pl.DataFrame({"change": change, "cells": cells, "share": cells / max(1, cells.sum())})

    def distances(self) -> pl.DataFrame:
        """Quantiles of three distances between true and published values: absolute, relative, of square roots.

        The three that Eurostat's recommendations for census tables compare methods by; square roots only for values
        that are not negative.
        """
        true, shown = self.problem.table.value[self.cells], self.release.values[self.cells]
        root = np.abs(np.sqrt(np.maximum(shown, 0.0)) - np.sqrt(np.maximum(true, 0.0)))
        distances = {"absolute": np.abs(shown - true), "relative": np.abs(shown - true) / np.abs(true), "root": root}
        rows: dict[str, list[str] | list[float]] = {"measure": [*SHOWN, "mean"]}
        for name, found in distances.items():
            found = found if found.size else np.zeros(1)
            rows[name] = [*np.quantile(found, list(SHOWN.values())).tolist(), float(found.mean())]
        return pl.DataFrame(rows)

    @cached_property
    def gaps(self) -> Floats:
        """Published total less the sum of its published parts, for each sum of which all cells are published."""
        values, equations = self.release.values, self.problem.table.equations
        hidden = abs(equations).astype(np.int64) @ self.release.suppressed.astype(np.int64) > 0
        return np.asarray(-(equations.astype(np.float64) @ np.nan_to_num(values))[~hidden])

    def totals(self) -> dict[str, float]:
        """The main measures in one table."""
        off = np.abs(self.gaps)
        return {
            "cells": float(self.changes.size),
            "changed cells": float((self.changes != 0).sum()),
            "mean change": self.mean,
            "mean squared change": self.variance,
            "false zeros": float(self.false_zeros),
            "false positives": float(self.false_positives),
            "sums": float(off.size),
            "sums that no longer hold": float((off > 1e-9).sum()),
            "mean gap of sums": float(off.mean()) if off.size else 0.0,
            "largest gap of sums": float(off.max(initial=0.0)),
        }

    def __str__(self) -> str:
        totals = self.totals()
        return (
            f"{totals['changed cells']:,.0f} of {totals['cells']:,.0f} cells that are not zero are changed, by "
            f"{self.mean:+.3f} on average, with a mean square of {self.variance:.3f}; {self.false_zeros:,} became "
            f"zero. {totals['sums that no longer hold']:,.0f} of {totals['sums']:,.0f} sums no longer hold, by "
            f"{totals['mean gap of sums']:.2f} on average and {totals['largest gap of sums']:,.10g} at most."
        )


def noise_measures(problem: Problem, release: Release) -> NoiseMeasures:
    """Say what noise did to a table: changes, distances, false zeros, and sums that no longer hold."""
    if len(release.values) != len(problem.table):
        raise InvalidRelease(f"The release has {len(release.values):,} cells, the table {len(problem.table):,}.")
    return NoiseMeasures(problem, release)
