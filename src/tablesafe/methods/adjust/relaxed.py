"""Relaxed protection: sensitive cells move by a random part of their levels; many such releases are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss.statistics import chi_square, statistics
from tablesafe.methods.adjust.aims import Relaxed
from tablesafe.methods.adjust.instance import Instance, whole_down, whole_up

_MEASURED: dict[str, str] = {
    "quantity": "quantity changed",
    "cells": "cells changed",
    "percent": "average percent change",
    "chi_square": "chi-square",
    "correlation": "correlation",
    "slope": "slope",
    "variance": "variance ratio",
}


def loosened(instance: Instance, share: float, random: np.random.Generator, *, capped: bool = True) -> Instance:
    """The same problem with levels drawn between a share of each and all of it.

    When `capped`, no cell moves further than its full level.
    """
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
