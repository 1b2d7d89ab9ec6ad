"""What the protection cost the users of a table: what they do not see, and what they see changed. Confidential."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl

from tablesafe.core.display import shown
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidRelease
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status, require_problem_and_release

STEPS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Percent of change that the distribution is cut at."""
SAME = 1e-6
"""Units of the table's last decimal within which a published value is the true one."""


@dataclass(frozen=True, slots=True)
class Share:
    """What is lost of some cells of a table."""

    cells: int
    """How many were meant to be published."""
    withheld: int
    changed: int
    value: float
    """What they add up to, whatever the signs."""
    withheld_value: float
    moved: float
    """By how much the changed ones were changed in all."""

    @property
    def percent_of_cells(self) -> float:
        """Withheld or changed, in percent of the cells."""
        return 100 * (self.withheld + self.changed) / self.cells if self.cells else 0.0

    @property
    def percent_of_value(self) -> float:
        """What is withheld and what was moved, in percent of the value."""
        return 100 * (self.withheld_value + self.moved) / self.value if self.value else 0.0

    def __str__(self) -> str:
        what = [f"{self.withheld:,} withheld"] + ([f"{self.changed:,} changed"] if self.changed else [])
        return (
            f"{' and '.join(what)} of {self.cells:,} cells ({self.percent_of_cells:.1f}%), "
            f"{self.percent_of_value:.1f}% of the value"
        )


@shown
@dataclass(frozen=True, eq=False)
class Loss:
    """What users of a release miss, compared with the table as it was meant to be published.

    Cells withheld by design count nowhere: nobody was ever to see them. Values count by their size, whatever the sign.
    """

    problem: Problem = field(repr=False)
    release: Release = field(repr=False)

    @cached_property
    def meant(self) -> Mask:
        """Which cells were meant to be published."""
        return np.not_equal(self.release.status, Status.BY_DESIGN)

    @cached_property
    def missing(self) -> Mask:
        """Which of them are withheld."""
        return self.meant & self.release.suppressed

    @cached_property
    def altered(self) -> Mask:
        """Which of them show another value than the true one."""
        return self.meant & (np.abs(self.change) > SAME * 10.0**-self.problem.table.decimals)

    @cached_property
    def change(self) -> Floats:
        """Published less true value, per cell; 0 where nothing is published."""
        return np.where(self.release.suppressed, 0.0, self.release.values - self.problem.table.value)

    @cached_property
    def percent(self) -> Floats:
        """The size of the change in percent of the true value, per cell; infinite for a zero that became something.

        NaN where nothing is published.
        """
        size = np.where(self.altered, np.abs(self.change), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            percent = np.where(size > 0, 100 * size / np.abs(self.problem.table.value), 0.0)
        return np.where(self.meant & ~self.missing, percent, np.nan)

    @property
    def cells(self) -> int:
        """How many cells were meant to be published."""
        return int(self.meant.sum())

    @property
    def withheld(self) -> int:
        """How many of them are withheld."""
        return int(self.missing.sum())

    @property
    def withheld_complementary(self) -> int:
        """How many are withheld to protect others only."""
        return int((self.missing & (self.release.status == Status.COMPLEMENTARY)).sum())

    @property
    def withheld_value(self) -> float:
        """What the withheld cells add up to."""
        return float(self._size[self.missing].sum())

    @property
    def changed(self) -> int:
        """How many cells show another value than the true one."""
        return int(self.altered.sum())

    @property
    def changed_quantity(self) -> float:
        """By how much all cells together were changed, upwards or downwards."""
        return float(np.abs(self.change[self.altered]).sum())

    @property
    def largest_change(self) -> float:
        """The most that any published cell was changed by, upwards or downwards."""
        return float(np.max(np.abs(self.change[self.altered]), initial=0.0))

    @property
    def average_change(self) -> float:
        """By how much the published cells were changed on average, upwards or downwards; 0 when there are none."""
        return _mean(np.where(self.altered, np.abs(self.change), 0.0)[self.meant & ~self.missing])

    @property
    def average_percent(self) -> float:
        """The mean percent change of the published cells that are not zero; 0 when there are none."""
        return _mean(self.percent[np.isfinite(self.percent) & (self._size > 0)])

    @property
    def average_percent_of_changed(self) -> float:
        """The mean percent change of the changed cells that are not zero; 0 when there are none."""
        return _mean(self.percent[self.altered & np.isfinite(self.percent)])

    @property
    def _size(self) -> Floats:
        return np.abs(self.problem.table.value)

    @cached_property
    def finest(self) -> Share:
        """What is lost of the cells that are no totals: each value is counted once, as every level counts it again."""
        return self._share(~self.problem.table.is_total)

    @cached_property
    def whole(self) -> Share:
        """What is lost of the cells of all levels together."""
        return self._share(np.ones(len(self.meant), dtype=np.bool_))

    def _share(self, which: Mask) -> Share:
        meant, missing, altered = (mask & which for mask in (self.meant, self.missing, self.altered))
        moved = float(np.abs(self.change[altered]).sum())
        return Share(
            int(meant.sum()), int(missing.sum()), int(altered.sum()), float(self._size[meant].sum()),
            float(self._size[missing].sum()), moved,
        )  # fmt: skip

    def levels(self) -> pl.DataFrame:
        """The loss by level as `frame` has it, the finest first, in percent of the same level."""
        found = self.frame()
        by = [name for name in found.columns if name.endswith("level")]
        percent = {
            "percent of cells": 100 * pl.col("withheld") / pl.col("cells"),
            "percent of value": pl.when(pl.col("value") > 0).then(100 * pl.col("withheld value") / pl.col("value")),
        }
        if self.changed:
            percent["average percent changed"] = pl.col("average percent")
        kept = [*by, "cells", "withheld", "complementary", *(["changed"] if self.changed else [])]
        order = pl.sum_horizontal(*(pl.col(name) for name in by)) if by != ["level"] else pl.col("level") == "inner"
        shares = {name: each.fill_null(0.0) for name, each in percent.items()}
        return found.sort(order, descending=True, maintain_order=True).select(*kept, **shares)

    def distribution(self) -> pl.DataFrame:
        """How many published cells changed by how many percent: a row per class, from unchanged to most changed."""
        shown = self.percent[~np.isnan(self.percent)]
        edges = np.array([*STEPS, np.inf])
        place = np.searchsorted(edges, shown[np.isfinite(shown)], side="left")
        counts = np.bincount(place, minlength=len(edges))
        words = ["unchanged", *(f"{low:g} to {high:g}" for low, high in pairwise(STEPS))]
        return pl.DataFrame(
            {
                "percent change": [*words, f"over {STEPS[-1]:g}", "from zero"],
                "cells": [*counts.tolist(), int(np.isinf(shown).sum())],
            }
        )

    def frame(self) -> pl.DataFrame:
        """The loss by level: a row per combination of levels, the totals first.

        The level of a code is its depth below the total. A table without dimensions has inner cells and totals.
        """
        levels = self._levels()
        whole = pl.DataFrame(
            levels
            | {
                "cells": self.meant,
                "withheld": self.missing,
                "complementary": self.missing & (self.release.status == Status.COMPLEMENTARY),
                "value": np.where(self.meant, self._size, 0.0),
                "withheld value": np.where(self.missing, self._size, 0.0),
                "changed": self.altered,
                "changed quantity": np.where(self.altered, np.abs(self.change), 0.0),
                "change": np.where(self.altered, np.abs(self.change), np.where(self.missing, np.nan, 0.0)),
                "percent": np.where(np.isfinite(self.percent) & (self._size > 0), self.percent, np.nan),
            }
        )
        by = list(levels)
        sums = pl.col("cells", "withheld", "complementary", "value", "withheld value", "changed", "changed quantity")
        change, percent = pl.col("change").fill_nan(None), pl.col("percent").fill_nan(None)
        measures = {"average change": change.mean(), "largest change": change.max(), "average percent": percent.mean()}
        filled = {name: measure.fill_null(0.0) for name, measure in measures.items()}
        return whole.filter(pl.col("cells")).group_by(by).agg(sums.sum(), **filled).sort(by)

    def _levels(self) -> dict[str, pl.Series]:
        table = self.problem.table
        if not table.dimensions:
            return {"level": pl.Series(np.where(table.is_total, "total", "inner"), dtype=pl.String)}
        return {
            f"{name} level": pl.Series(hierarchy.depth).gather(table.codes[:, d].astype(np.uint32))
            for d, (name, hierarchy) in enumerate(table.dimensions.items())
        }

    def __str__(self) -> str:
        total = float(self._size[self.meant].sum())
        lines = [
            f"{self.withheld:,} of {self.cells:,} cells are withheld ({self.withheld_complementary:,} complementary), "
            f"{self.withheld_value / total if total else 0:.1%} of the value."
        ]
        if self.changed:
            lines.append(
                f"{self.changed:,} cells are changed, by {self.changed_quantity:,.10g} in all, "
                f"{self.average_percent:.2f}% on average ({self.average_percent_of_changed:.2f}% of the changed ones)."
            )
        return "\n".join(lines)


def loss(problem: Problem, release: Release) -> Loss:
    """Say what the protection cost: cells and value withheld, cells and quantity changed, by level."""
    require_problem_and_release("loss", problem, release)
    if len(release.values) != len(problem.table):
        raise InvalidRelease(f"The release has {len(release.values):,} cells, the table {len(problem.table):,}.")
    return Loss(problem, release)


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0
