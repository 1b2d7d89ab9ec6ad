"""Relaxed protection: sensitive cells move by a random part of their levels; many such releases are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from tablesafe.core.errors import InvalidOption
from tablesafe.core.options import require_choice, require_number, require_whole
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss.statistics import Over, chi_square, statistics
from tablesafe.methods.adjust.instance import Instance, whole_down, whole_up

PickName = Literal["quantity", "cells", "percent", "chi_square", "correlation", "slope", "variance"]
_MEASURED: dict[str, str] = {
    "quantity": "quantity changed",
    "cells": "cells changed",
    "percent": "average percent change",
    "chi_square": "chi-square",
    "correlation": "correlation",
    "slope": "slope",
    "variance": "variance ratio",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """Let each sensitive cell move by a random amount between a share of its level and the level.

    Less is changed, and an intruder who knows the levels still does not know by how much. A cell then may be published
    inside its protection interval: look at the column `least share` before choosing a release.
    """

    share_percent: float = field(
        default=50.0, metadata={"help": "the least that a sensitive cell moves, in percent of its protection level"}
    )
    releases: int = field(default=20, metadata={"help": "how many releases are drawn and compared"})
    pick: PickName = field(
        default="quantity",
        metadata={"help": "by which measure one is chosen: the smallest change, or the statistic nearest to 1"},
    )
    number: int | None = field(
        default=None,
        metadata={"help": "the release to take, by its number in the comparison, whatever its measures", "example": 7},
    )
    over: Over = field(
        default="sensitive",
        metadata={
            "help": "which cells the statistics are about: sensitive, all, inner, totals, a dimension or a column"
        },
    )

    def __post_init__(self) -> None:
        require_number(self, "share_percent", above=0, at_most=100)
        require_whole(self, "releases", at_least=1)
        require_choice(self, "pick", get_args(PickName))
        if self.number is not None:
            require_whole(self, "number", at_least=1)
            if self.number > self.releases:
                raise InvalidOption(
                    f"Relaxed.number is {self.number}, but only {self.releases} releases are drawn.",
                    about=("option", "Relaxed", "number"),
                )

    def loosened(self, instance: Instance, random: np.random.Generator, *, capped: bool = True) -> Instance:
        """The same problem with drawn levels; when `capped` no cell moves further than its full level."""
        share = self.share_percent / 100
        part = share + (1 - share) * random.random(len(instance.targets))
        above, below = (np.maximum(whole_up(level * part), 1.0) for level in (instance.above, instance.below))
        if not capped:
            return replace(instance, above=above, below=below)
        up, down = instance.up.copy(), instance.down.copy()
        up[instance.targets] = np.minimum(up[instance.targets], instance.above)
        down[instance.targets] = np.minimum(down[instance.targets], instance.below)
        return replace(instance, up=whole_down(up), down=whole_down(down), above=above, below=below).narrowed()


@dataclass(frozen=True, eq=False)
class Simulations:
    """Releases drawn from one problem, and what each costs the users of the table. Confidential."""

    problem: Problem = field(repr=False)
    relaxed: Relaxed
    releases: tuple[Release, ...] = field(repr=False)

    def frame(self) -> pl.DataFrame:
        """One row per release, numbered from 1: how much changed, how well statistics are kept, how far it hides."""
        return pl.DataFrame([self._row(number, release) for number, release in enumerate(self.releases, 1)])

    def release(self, number: int) -> Release:
        """A release by its number in the comparison."""
        if not 1 <= number <= len(self.releases):
            raise InvalidOption(f"There is no release {number}: they are numbered from 1 to {len(self.releases)}.")
        return self.releases[number - 1]

    def picked(self) -> Release:
        """The release that the options choose."""
        if self.relaxed.number is not None:
            return self.release(self.relaxed.number)
        column = self.frame()[_MEASURED[self.relaxed.pick]].to_numpy()
        near_one = self.relaxed.pick in {"correlation", "slope", "variance"}
        distance = np.abs(column - 1.0) if near_one else column
        return self.releases[int(np.argmin(np.where(np.isnan(distance), np.inf, distance)))]

    def _row(self, number: int, release: Release) -> dict[str, Any]:
        table, shown = self.problem.table, ~release.suppressed
        before, after = table.value[shown], release.values[shown]
        size, change = np.abs(before), np.abs(after - before)
        percent = 100 * change[size > 0] / size[size > 0]
        rows = statistics(self.problem, release, over=self.relaxed.over)
        return {
            "release": number,
            "quantity changed": float(change.sum()),
            "cells changed": int((change > 0).sum()),
            "average percent change": _mean(percent),
            "largest percent change": float(percent.max(initial=0.0)),
            "chi-square": chi_square(before, after),
            "correlation": _mean(rows["correlation"].to_numpy()),
            "slope": _mean(rows["slope"].to_numpy()),
            "variance ratio": _mean(rows["variance ratio"].to_numpy()),
            "change of the mean": _mean((rows["published mean"] - rows["mean"]).to_numpy()),
            "least share": self._least_share(release),
        }

    def _least_share(self, release: Release) -> float:
        """The smallest move of a sensitive cell, as a share of the level on its side; 1 or more is full protection."""
        s = self.problem.sensitivity
        cells = np.flatnonzero(s.mask & ~release.suppressed)
        moved = release.values[cells] - self.problem.table.value[cells]
        level = np.where(moved > 0, s.upper[cells], s.lower[cells])
        there = level > 0
        return float((np.abs(moved[there]) / level[there]).min(initial=np.inf)) if there.any() else 1.0


def simulated(
    problem: Problem, relaxed: Relaxed, draw: Callable[[np.random.Generator], Release], *, seed: int
) -> Simulations:
    """Draw the releases, each from a generator of its own: the first few are the same however many are drawn."""
    sources = np.random.SeedSequence(seed).spawn(relaxed.releases)
    return Simulations(problem, relaxed, tuple(draw(np.random.default_rng(source)) for source in sources))


def _mean(values: Any) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
