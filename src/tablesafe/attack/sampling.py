"""Hit-and-run sampling: what an intruder believes to whom all possible tables are equally likely."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

import numpy as np

from tablesafe.attack.density import Summary, Tally
from tablesafe.attack.diagnostics import convergence
from tablesafe.attack.guess import Guess
from tablesafe.attack.room import Room
from tablesafe.attack.view import View
from tablesafe.attack.walk import Draw, far_start, walker
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption
from tablesafe.work.budget import ENDLESS, Budget

MIXED = 1.05
"""The largest R̂ of walks that have met."""
BLOCK = 4_000_000
"""Steps between two looks at the budget."""
FEWEST = 250
"""Draws of each walk that are judged, at least: fewer tell nothing."""
MOST_SWEEPS = 2**13
"""Sweeps between two draws at which a walk that does not mix is given up, however much time there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HitAndRun:
    """Guess the mean of tables drawn at random from all that are possible, each as likely as any other.

    Several walks start far apart and go on until they agree, with enough effective draws of every cell; when time is
    up, with what there is. Cells of a component without end are not drawn.
    """

    name: ClassVar[str] = "hit-and-run"

    effective: int = field(default=1_000, metadata={"help": "effective draws of each cell at which to stop"})
    chains: int = field(default=4, metadata={"help": "walks that must agree"})
    estimate: Summary = field(default="mean", metadata={"help": "what to guess: mean, or peak of the density"})
    seed: int = field(default=1, metadata={"help": "seed of the random numbers"})

    def __post_init__(self) -> None:
        if self.effective < 1:
            raise InvalidOption(f"HitAndRun.effective must be 1 or more, got {self.effective}.")
        if self.chains < 2:
            raise InvalidOption(f"HitAndRun.chains must be 2 or more, to be compared; got {self.chains}.")

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """Component by component, the small ones first: each needs as many steps as it needs."""
        random, free, centre = np.random.default_rng(self.seed), np.flatnonzero(view.free), view.centre(budget)
        tally, least, worst = Tally(view.lower, view.upper), inf, 0.0
        left = int((~view.room.endless).sum())
        for cells in view.room.members():
            if view.room.endless[cells[0]]:
                continue
            places = self._places(view.room.part(cells), centre[cells], random, budget.share(len(cells) / left))
            left -= len(cells)
            size, ratio = convergence(places)
            least, worst = min(least, float(size.min())), max(worst, float(ratio.max()))
            tally.add_places(places.reshape(-1, len(cells)), free[cells])
        density = tally.density()
        return Guess(view.filled(density.at(self.estimate)[view.free]), density, self._note(least, worst))

    def _note(self, least: float, worst: float) -> str:
        if least == inf:
            return "nothing to draw"
        short = least < self.effective or worst > MIXED
        return f"{'only ' if short else ''}{least:,.0f} effective draws, R̂ {worst:.2f}" + (
            ", for want of time" if short else ""
        )

    def _places(self, room: Room, centre: Floats, random: np.random.Generator, budget: Budget) -> Floats:
        """Draws of all chains as places between the bounds, of shape (chains, draws, cells).

        The buffer is filled; its second half is judged. If that will not do, every second draw is kept, and the walks
        go on with twice as many steps between draws.
        """
        draw, sweep = walker(room, centre, random)
        keep = max(FEWEST, -(-2 * self.effective // self.chains))
        starts = [far_start(room, centre, random) for _ in range(self.chains)]
        buffer: Floats = np.empty((self.chains, 2 * keep, len(room)), np.float32)
        steps, filled = sweep, 0
        while True:
            filled = self._fill(buffer, filled, starts, draw, steps, random, budget)
            if filled < 2 * keep:
                return buffer[:, filled // 2 : filled]
            judged = buffer[:, keep:]
            size, ratio = convergence(judged)
            if (float(size.min()) >= self.effective and float(ratio.max()) <= MIXED) or steps > MOST_SWEEPS * sweep:
                return judged
            buffer[:, :keep] = buffer[:, ::2].copy()
            steps, filled = 2 * steps, keep

    def _fill(
        self, buffer: Floats, filled: int, at: list[Floats], draw: Draw, steps: int, random: np.random.Generator,
        budget: Budget,
    ) -> int:  # fmt: skip
        """Walk on until the buffer is full or time is up; returns how many draws of each chain there are."""
        block = max(1, BLOCK // (steps * self.chains))
        while filled < buffer.shape[1] and (filled < 4 or not budget.over):
            end = min(filled + block, buffer.shape[1])
            for chain, x in enumerate(at):
                draw(x, random, steps, buffer[chain, filled:end])
            filled = end
        return filled
