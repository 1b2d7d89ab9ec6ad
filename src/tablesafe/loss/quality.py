"""What users of a changed table should know before they rely on it: how far cells are from the truth, and which.

Percent changes by class with the unchanged cells, the quantities changed and affected, and the average percent change
of the changed cells are the measures of Dandekar & Cox ("Synthetic Tabular Data", 2002, Tables 5 to 7); the limits of
the classes are ours. All of it comes from the true values: confidential, except the flags, which an office may choose
to publish.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.display import shown
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss import Loss, loss
from tablesafe.loss.statistics import Over, statistics

CLASSES = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Percent of change at which the ten classes are cut; the tenth is open."""
FLAGS = ("good", "fair", "poor")
SIZES = 10.0
"""Size classes of cells are powers of this."""


@shown
@dataclass(frozen=True, eq=False)
class Quality:
    """How well a release serves its users."""

    loss: Loss = field(repr=False)
    classes: tuple[float, ...] = CLASSES
    limits: tuple[float, float] = (5.0, 10.0)
    """Percent of change up to which a cell is good, and fair."""
    over: Over = field(default="all", repr=False)

    def distribution(self) -> pl.DataFrame:
        """How many cells are unchanged, and how many changed by how many percent: a row per class."""
        percent = self.loss.percent
        finite = percent[np.isfinite(percent) & self.loss.altered]
        counts = np.bincount(np.searchsorted(self.classes, finite, side="left"), minlength=len(self.classes) + 1)
        edges = (0.0, *self.classes)
        words = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
        unchanged = int((self.loss.meant & ~self.loss.missing & ~self.loss.altered).sum())
        return pl.DataFrame(
            {
                "percent change": ["unchanged", *words, f"over {edges[-1]:g}", "from zero"],
                "cells": [unchanged, *counts.tolist(), int(np.isinf(percent).sum())],
            }
        )

    def totals(self) -> dict[str, float | int]:
        """The measures of the whole table, each a number."""
        found, size = self.loss, np.abs(self.loss.problem.table.value)
        published = found.meant & ~found.missing
        return {
            "cells": int(published.sum()),
            "cells changed": found.changed,
            "quantity changed": found.changed_quantity,
            "quantity affected": float(size[found.altered].sum()),
            "average percent change": found.average_percent,
            "average percent change of changed cells": found.average_percent_of_changed,
            "largest percent change": float(np.max(found.percent[np.isfinite(found.percent)], initial=0.0)),
            **{f"{flag} cells": int((self.flags() == flag).sum()) for flag in FLAGS},
        }

    def flags(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """Per cell good, fair or poor by its percent change; empty where nothing is published."""
        percent, (good, fair) = self.loss.percent, self.limits
        words = np.where(percent <= good, "good", np.where(percent <= fair, "fair", "poor"))
        return np.where(np.isnan(percent), "", words)

    def cells(self) -> pl.DataFrame:
        """A row per cell: its codes, the published value, the percent change and the flag. The percents are secret."""
        table, percent = self.loss.problem.table, self.loss.percent
        return pl.DataFrame(
            {
                **table.code_columns(),
                "published": self.loss.release.values,
                "percent change": percent,
                "quality": pl.Series(self.flags(), dtype=pl.String),
            }
        ).filter(pl.Series(self.loss.meant))

    def by_size(self) -> pl.DataFrame:
        """Accuracy by size class: a row per power of ten of the true value."""
        found, size = self.loss, np.abs(self.loss.problem.table.value)
        shown = found.meant & ~found.missing & (size > 0)
        power = np.floor(np.log10(np.where(size > 0, size, 1.0)) + 1e-12).astype(np.int64)
        frame = pl.DataFrame(
            {
                "power": power[shown], "changed": found.altered[shown], "percent": found.percent[shown],
                "quantity": np.abs(found.change[shown]), "value": size[shown],
            }
        )  # fmt: skip
        named = pl.col("power").map_elements(
            lambda p: f"{SIZES**p:,.15g} to {SIZES ** (p + 1):,.15g}", return_dtype=pl.String
        )
        return (
            frame.group_by("power")
            .agg(
                cells=pl.len(), changed=pl.col("changed").sum(), quantity=pl.col("quantity").sum(),
                average=pl.col("percent").mean(), largest=pl.col("percent").max(),
                share=100 * pl.col("quantity").sum() / pl.col("value").sum(),
            )
            .sort("power")
            .select(
                size=named, cells="cells", **{"cells changed": "changed", "quantity changed": "quantity"},
                **{"average percent change": "average", "largest percent change": "largest"},
                **{"percent of the quantity": "share"},
            )
        )  # fmt: skip

    def statistics(self) -> pl.DataFrame:
        """Mean, variance, correlation and slope before and after, over the groups that were asked for."""
        return statistics(self.loss.problem, self.loss.release, over=self.over)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the cells, ready for JSON; numbers that do not exist are None."""
        tables = {"distribution": self.distribution(), "by size": self.by_size(), "statistics": self.statistics()}
        return {
            "totals": self.totals(),
            "flags": {"good up to percent": self.limits[0], "fair up to percent": self.limits[1]},
            **{name: frame.fill_nan(None).to_dicts() for name, frame in tables.items()},
        }

    def __str__(self) -> str:
        t = self.totals()
        return (
            f"{t['cells changed']:,} of {t['cells']:,} cells are changed, by {t['quantity changed']:,.10g} in all; "
            f"they hold {t['quantity affected']:,.10g}. Percent change {t['average percent change']:.2f} on average, "
            f"{t['largest percent change']:.2f} at most. Good {t['good cells']:,}, fair {t['fair cells']:,}, poor "
            f"{t['poor cells']:,}."
        )


def quality(
    problem: Problem,
    release: Release,
    *,
    good_percent: float = 5.0,
    fair_percent: float = 10.0,
    classes: Sequence[float] = CLASSES,
    over: Over = "all",
) -> Quality:
    """Measure what was done to the values that users see; flags are good, fair and poor by the limits given.

    A zero that became something is poor. `over` names the cells or groups of cells that statistics are compared for.
    """
    if not 0 <= good_percent <= fair_percent:
        raise InvalidOption(
            f"quality's good_percent must be at most its fair_percent, and 0 or more; got {good_percent!r} and "
            f"{fair_percent!r}."
        )
    cut = tuple(float(edge) for edge in classes)
    if not cut or cut[0] <= 0 or any(low >= high for low, high in pairwise(cut)):
        raise InvalidOption(f"quality's classes must be rising percentages above 0, got {list(classes)!r}.")
    return Quality(loss(problem, release), cut, (float(good_percent), float(fair_percent)), over)


def compared(qualities: Mapping[str, Quality]) -> pl.DataFrame:
    """Several releases of one table side by side: a row per measure and class, a column per release."""
    if not qualities:
        raise InvalidOption("There is no release to compare.")
    columns: dict[str, list[Any]] = {}
    for name, found in qualities.items():
        spread = dict(found.distribution().iter_rows())
        rows = {**found.totals(), **{f"{word} %" if word[0].isdigit() else word: n for word, n in spread.items()}}
        columns.setdefault("measure", list(rows))
        if columns["measure"] != list(rows):
            raise InvalidOption("Releases can be compared only when their classes are the same.")
        columns[name] = [float(value) for value in rows.values()]
    return pl.DataFrame(columns)
