"""Dandekar & Cox, "Synthetic Tabular Data" (2002): a table adjusted in many ways, and what each costs its users.

Everything here compares with the true values: confidential.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss.quality import CLASSES, Quality, quality
from tablesafe.methods.adjust import Adjust
from tablesafe.methods.adjust.costs import MEASURES

StartName = Literal["alternating", "up", "down"]
STARTS: tuple[StartName, ...] = get_args(StartName)


@dataclass(frozen=True, eq=False)
class Experiment:
    """Releases of one problem made in several ways, by name. Confidential."""

    problem: Problem = field(repr=False)
    releases: dict[str, Release] = field(repr=False)
    classes: tuple[float, ...] = CLASSES

    @cached_property
    def qualities(self) -> dict[str, Quality]:
        """What each way cost the users of the table."""
        return {name: quality(self.problem, release, classes=self.classes) for name, release in self.releases.items()}

    def frame(self) -> pl.DataFrame:
        """A row per release: how many cells changed, by how much in all, in percent, what they hold, and the most.

        Percent changes are averaged over the changed cells, as Dandekar & Cox do.
        """
        return pl.DataFrame([{"start": name, **_measures(found)} for name, found in self.qualities.items()])

    def percent_changes(self) -> pl.DataFrame:
        """A row per class of percent change, a column of cells per release."""
        spread = {name: found.distribution() for name, found in self.qualities.items()}
        words = next(iter(spread.values()))["percent change"]
        return pl.DataFrame({"percent change": words, **{name: frame["cells"] for name, frame in spread.items()}})

    def summary(self) -> pl.DataFrame:
        """The same with the random starts summed up: the least, the mean and the largest of every measure."""
        frame = self.frame()
        drawn = frame.filter(pl.col("start").str.starts_with("random "))
        rows = frame.filter(~pl.col("start").str.starts_with("random ")).cast({"cells changed": pl.Float64})
        if not drawn.height:
            return rows
        numbers = pl.all().exclude("start").cast(pl.Float64)
        sums = {"least": numbers.min(), "mean": numbers.mean(), "largest": numbers.max()}
        parts = [
            drawn.select(pl.lit(f"{word} of {drawn.height} random").alias("start"), one) for word, one in sums.items()
        ]
        return pl.concat([rows, *parts])


def _measures(found: Quality) -> dict[str, float | int]:
    totals = found.totals()
    return {
        "cells changed": int(totals["cells changed"]),
        "quantity changed": float(totals["quantity changed"]),
        "average percent change": float(totals["average percent change of changed cells"]),
        "quantity affected": float(totals["quantity affected"]),
        "largest change": found.loss.largest_change,
        "largest percent change": float(totals["largest percent change"]),
    }


def directions(
    problem: Problem,
    *,
    cost: str | Floats = "value",
    starts: Sequence[StartName] = STARTS,
    random: int = 100,
    seed: int = 0,
    classes: Sequence[float] = CLASSES,
    zeros: bool = False,
    time_limit_s: float = 60.0,
) -> Experiment:
    """Adjust a table by directions that are fixed beforehand: in turn, all up, all down, and drawn at random.

    The experiment of Dandekar & Cox ("Synthetic Tabular Data", 2002, Tables 4, 6 and 7): for each start one linear
    program. Directions that no table follows are turned where they must be. The random starts are called `random 1`
    and so on; the first few are the same however many are drawn.
    """
    unknown = [start for start in starts if start not in STARTS]
    if unknown:
        raise InvalidOption(f"directions' starts must be among {', '.join(STARTS)}; got {unknown[0]!r}.")
    if isinstance(random, bool) or not isinstance(random, int) or random < 0:
        raise InvalidOption(f"directions' random must be a whole number, 0 or more; got {random!r}.")
    if not (starts or random):
        raise InvalidOption("There is nothing to compare: name starts, or draw some at random.")
    share = time_limit_s / (len(starts) + random)
    named: dict[str, Adjust] = {
        start: Adjust(cost=cost, directions=start, zeros=zeros, time_limit_s=share) for start in starts
    }
    seeds = np.random.SeedSequence(seed).generate_state(random) if random else ()
    for number, one in enumerate(seeds, 1):
        named[f"random {number}"] = Adjust(
            cost=cost, directions="random", tries=1, zeros=zeros, time_limit_s=share, seed=int(one)
        )
    return _experiment(problem, named, classes)


def costs(
    problem: Problem,
    *,
    costs: Sequence[str] = tuple(MEASURES),
    classes: Sequence[float] = CLASSES,
    **options: Any,
) -> Experiment:
    """Adjust a table at several costs of a change: which cells then change by how many percent.

    The experiment of Dandekar & Cox (2002, Table 5). `options` are those of `ts.Adjust`.
    """
    return _experiment(problem, {cost: Adjust(cost=cost, **options) for cost in costs}, classes)


def _experiment(problem: Problem, ways: dict[str, Any], classes: Sequence[float]) -> Experiment:
    """Protect in every way; that fixed directions are far from the best is no news here."""
    releases: dict[str, Release] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The answer may be far from the best")
        for name, method in ways.items():
            protect: Callable[[Problem], Release] = method.protect
            releases[name] = protect(problem)
    return Experiment(problem, releases, tuple(float(edge) for edge in classes))
