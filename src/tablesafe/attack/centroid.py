"""Monte Carlo over the centroid program: random points of all intervals, each made additive with the least change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tablesafe.attack.estimate import Guess, Summary, Tally
from tablesafe.attack.optima import NearestPoint
from tablesafe.attack.view import View
from tablesafe.core.errors import InvalidOption, OutOfTime
from tablesafe.work.budget import ENDLESS, Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomCentroid:
    """Guess the mean of additive tables, each nearest to random points `R·lower + (1 − R)·upper` of all intervals.

    R is uniform between `low` and `high`: 0 and 1, or a narrower band about the middle. When time is up the draws so
    far count. (Dandekar, "Protecting Sensitive Tabular Data by Complementary Cell Suppression: Myth & Reality".)
    """

    name: ClassVar[str] = "random centroids"

    draws: int = field(default=200, metadata={"help": "how many random points"})
    low: float = field(default=0.0, metadata={"help": "least R"})
    high: float = field(default=1.0, metadata={"help": "largest R"})
    common: bool = field(default=False, metadata={"help": "one R for all cells of a draw, instead of one each"})
    estimate: Summary = field(default="mean", metadata={"help": "what to guess: mean, or peak of the density"})
    seed: int = field(default=1, metadata={"help": "seed of the random numbers"})

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise InvalidOption(
                f"RandomCentroid.draws must be 1 or more, got {self.draws}.",
                about=("option", "RandomCentroid", "draws"),
            )
        if not 0 <= self.low <= self.high <= 1:
            raise InvalidOption(f"RandomCentroid needs 0 <= low <= high <= 1, got {self.low} and {self.high}.")

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """One linear program per draw, component by component, each from where the last one ended."""
        random, free = np.random.default_rng(self.seed), np.flatnonzero(view.free)
        tally, fewest, left = Tally(view.lower, view.upper), self.draws, len(view.room)
        for cells in view.room.members():
            room, own = view.room.part(cells), budget.share(len(cells) / left)
            left -= len(cells)
            ranged = np.isfinite(room.lower) & np.isfinite(room.upper)
            program = NearestPoint(room.matrix, room.rhs, room.lower, room.upper, ranged.astype(np.float64))
            width = np.where(ranged, room.upper - room.lower, 0.0)
            for draw in range(self.draws):
                share = random.uniform(self.low, self.high, 1 if self.common else len(room))
                try:
                    own.check()
                    point = program.to(room.anchor + (0.5 - share) * width, budget=own)
                except OutOfTime:
                    fewest = min(fewest, draw)
                    break
                tally.add(point, free[cells])
        density = tally.density()
        note = f"{fewest:,} of {self.draws:,} draws" + (", for want of time" if fewest < self.draws else "")
        return Guess(view.filled(density.at(self.estimate)[view.free]), density, note)
