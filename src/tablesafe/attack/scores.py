"""What all attacks together say: which comes nearest, and which cells are in most danger. Confidential throughout."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from tablesafe.attack.estimate import Estimate
from tablesafe.core.display import shown
from tablesafe.core.errors import InvalidOption


@shown
@dataclass(frozen=True, eq=False)
class Scores:
    """Estimates of the same release, those at the peak of a density among them."""

    estimates: tuple[Estimate, ...]

    @classmethod
    def of(cls, estimates: Iterable[Estimate]) -> Self:
        """Score estimates together; each density also guesses by its peak."""
        every: list[Estimate] = []
        for estimate in estimates:
            peak = estimate.at_peak()
            same = peak is None or np.array_equal(peak.values, estimate.values, equal_nan=True)
            every += [estimate] if same or peak is None else [estimate, peak]
        if not every:
            raise InvalidOption("There is no estimate to score.")
        return cls(tuple(every))

    @property
    def worst(self) -> Estimate:
        """The attack that lands inside most protection intervals."""
        return max(self.estimates, key=lambda estimate: int(estimate.disclosed.sum()))

    @property
    def with_density(self) -> Estimate | None:
        """The first estimate that comes from many solutions, so that their density can be drawn."""
        return next((estimate for estimate in self.estimates if estimate.density is not None), None)

    @property
    def headline(self) -> str:
        """The sentence for the report."""
        if not len(self.worst.cells):
            return "There are no sensitive cells to guess."
        return str(self.worst)

    def frame(self) -> pl.DataFrame:
        """One row per attack, in the order in which they were tried."""
        return pl.DataFrame([_row(estimate) for estimate in self.estimates], infer_schema_length=None)

    def ranking(self) -> pl.DataFrame:
        """One row per sensitive cell, the one in most danger first.

        Danger is being known exactly, then being guessed by many attacks, then by how near the nearest guess comes.
        """
        first = self.estimates[0]
        table, cells = first.problem.table, first.cells
        codes = {name: column.gather(cells.astype(np.uint32)) for name, column in table.code_columns().items()}
        disclosed = np.array([estimate.disclosed for estimate in self.estimates]).sum(axis=0)
        distance = np.array([np.nan_to_num(estimate.distance, nan=np.inf) for estimate in self.estimates])
        variation = np.array([np.nan_to_num(estimate.variation, nan=np.inf) for estimate in self.estimates])
        nearest = np.argmin(distance, axis=0) if len(cells) else np.zeros(0, np.intp)
        guesses = np.array([estimate.values[cells] for estimate in self.estimates])
        names = np.array([estimate.attack for estimate in self.estimates])
        order = np.lexsort((distance.min(axis=0), -disclosed, ~first.exactly))
        columns: dict[str, Any] = codes | {
            "true value": table.value[cells],
            "known exactly": first.exactly,
            "disclosed by": disclosed,
            "attacks": np.full(len(cells), len(self.estimates)),
            "nearest guess": pl.Series(guesses[nearest, np.arange(len(cells))], nan_to_null=True),
            "nearest attack": pl.Series(names[nearest], dtype=pl.String),
            "distance": distance.min(axis=0),
            "coefficient of variation": _finite(variation.min(axis=0)),
        }
        return pl.DataFrame(columns)[order.astype(np.uint32)]


def _finite(values: Any) -> pl.Series:
    return pl.Series(np.where(np.isfinite(values), values, np.nan), nan_to_null=True)


def _row(estimate: Estimate) -> dict[str, Any]:
    guessed = ~np.isnan(estimate.error)
    errors, variation = estimate.relative_error[guessed], estimate.variation[~np.isnan(estimate.variation)]
    return {
        "attack": estimate.attack,
        "disclosed": int(estimate.disclosed.sum()),
        "sensitive": len(estimate.cells),
        "share": round(estimate.share, 4),
        "exactly": int(estimate.exactly.sum()),
        "guessed": int(guessed.sum()),
        "median relative error": round(float(np.median(errors)), 4) if errors.size else None,
        "median coefficient of variation": round(float(np.median(variation)), 4) if variation.size else None,
        "seconds": round(estimate.seconds, 3),
        "note": estimate.note,
    }
