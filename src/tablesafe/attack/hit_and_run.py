"""Random walks inside a polytope: hit-and-run along sparse directions that keep every sum.

A step draws a point uniformly from the chord through the current point, so that the walk forgets where it began and
visits all places alike. The directions are circuits of the equations: a few cells change, all others stay, and a step
touches no more than these. Several eliminations in different orders give more of them than one, which mixes far faster.
Where there is no sparse description, directions are drawn from the ellipsoid of the analytic centre. (Smith, "Efficient
Monte Carlo procedures for generating points uniformly distributed over bounded regions", Operations Research 32, 1984.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from tablesafe.attack.centres import Barrier
from tablesafe.attack.estimate import Guess, Summary, Tally
from tablesafe.attack.feasible_region import FeasibleRegion
from tablesafe.attack.view import View
from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidOption
from tablesafe.solve.exact.nullspace import NullSpace, null_space
from tablesafe.work.budget import ENDLESS, Budget
from tablesafe.work.compiled import compiled

ORDERS = 8
"""How many eliminations the circuits come from."""
LONG = 10
"""Circuits of further eliminations that change more than so many times the cells of a middling one are left out."""

Draw = Callable[[Floats, np.random.Generator, int, Floats], None]
"""Walk on from a point, in place, so many steps between two draws; write the draws as places between the bounds."""


def walker(room: FeasibleRegion, centre: Floats, random: np.random.Generator) -> tuple[Draw, int]:
    """A walk over a room all of whose cells are bounded, and how many steps make a sweep in all directions."""
    circuits = _circuits(room, random)
    if circuits is None:
        return _long_walk(room, _ellipsoid(room, centre)), len(room) - room.matrix.shape[0]
    start, cell = circuits.indptr.astype(np.int64), circuits.indices.astype(np.int64)
    change = circuits.data.astype(np.float64)

    def draw(x: Floats, random: np.random.Generator, steps: int, out: Floats) -> None:
        _walk(x, room.lower, room.upper, start, cell, change, random, steps, out)

    return draw, circuits.shape[0]


def far_start(room: FeasibleRegion, centre: Floats, random: np.random.Generator) -> Floats:
    """A point far from the centre, in a random direction: walks that meet from there have forgotten it."""
    x, direction = centre.copy(), _ellipsoid(room, centre)(random)
    back, ahead = _chord(x, room.lower, room.upper, direction)
    x += 0.9 * (ahead if random.random() < 0.5 else back) * direction
    return np.clip(x, room.lower, room.upper)


def _circuits(room: FeasibleRegion, random: np.random.Generator) -> sparse.csr_array | None:
    """Distinct directions that keep every sum, one per row, from eliminations in several orders; None if too dense."""
    if room.space is None:
        return None
    n = len(room)
    matrix, found = sparse.csc_array(room.matrix.astype(np.int64)), [_moves(room.space)]
    longest = LONG * float(np.median(np.diff(found[0].indptr)))
    for _ in range(ORDERS - 1):
        order = random.permutation(n)
        space = null_space(sparse.csr_array(matrix[:, order]))
        if space is not None:
            back = np.empty(n, np.intp)
            back[order] = np.arange(n)
            moves = sparse.csr_array(sparse.csc_array(_moves(space))[:, back])
            found.append(moves[np.flatnonzero(np.diff(moves.indptr) <= longest)])
    return _distinct(sparse.csr_array(sparse.vstack(found, format="csr")), random)


def _moves(space: NullSpace) -> sparse.csr_array:
    """One row per coordinate: by how much it changes each cell."""
    rows = sparse.diags_array(1.0 / space.divisor) @ space.forms.astype(np.float64)[space.form]
    return sparse.csr_array(rows.T)


def _distinct(moves: sparse.csr_array, random: np.random.Generator) -> sparse.csr_array:
    """Rows of which none is a multiple of another, told by the sum of their entries with random weights."""
    moves.sort_indices()
    sums = np.asarray(moves @ random.random(moves.shape[1])) / moves.data[moves.indptr[:-1]]
    _, first = np.unique(np.round(sums, 9), return_index=True)
    return sparse.csr_array(moves[np.sort(first)])


def _ellipsoid(room: FeasibleRegion, centre: Floats) -> Callable[[np.random.Generator], Floats]:
    """Random directions of the ellipsoid that the bounds' barrier has at the centre."""
    scale = 1.0 / np.sqrt(Barrier.of(room).curvature(centre))
    matrix = sparse.csr_array(room.matrix @ sparse.diags_array(scale))
    if not matrix.shape[0]:
        return lambda random: scale * random.standard_normal(len(scale))
    from scipy.sparse.linalg import splu

    factors = splu(sparse.csc_array(matrix @ matrix.T), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def direction(random: np.random.Generator) -> Floats:
        ball = random.standard_normal(len(scale))
        return np.asarray(scale * (ball - matrix.T @ factors.solve(np.asarray(matrix @ ball))))

    return direction


def _long_walk(room: FeasibleRegion, direction: Callable[[np.random.Generator], Floats]) -> Draw:
    width = room.upper - room.lower

    def draw(x: Floats, random: np.random.Generator, steps: int, out: Floats) -> None:
        for row in out:
            for _ in range(steps):
                along = direction(random)
                back, ahead = _chord(x, room.lower, room.upper, along)
                x += (back + random.random() * (ahead - back)) * along
            np.clip(x, room.lower, room.upper, out=x)
            row[:] = (x - room.lower) / width

    return draw


def _chord(x: Floats, lower: Floats, upper: Floats, direction: Floats) -> tuple[float, float]:
    """How far one can go back and ahead along a direction."""
    moving = np.abs(direction) > 1e-12 * np.abs(direction).max(initial=1e-300)
    ends = np.stack([(lower - x)[moving] / direction[moving], (upper - x)[moving] / direction[moving]])
    return min(float(ends.min(axis=0).max()), 0.0), max(float(ends.max(axis=0).min()), 0.0)


@compiled
def _walk(
    x: Floats, lower: Floats, upper: Floats, start: Integers, cell: Integers, change: Floats, random: Any, steps: int,
    out: Floats,
) -> None:  # fmt: skip
    """Steps along circuits picked at random, in place; a draw after so many."""
    count = len(start) - 1
    for row in range(len(out)):
        for _ in range(steps):
            at = int(random.random() * count)
            back, ahead = -np.inf, np.inf
            for z in range(start[at], start[at + 1]):
                i = cell[z]
                low, high = (lower[i] - x[i]) / change[z], (upper[i] - x[i]) / change[z]
                if change[z] < 0:
                    low, high = high, low
                back, ahead = max(back, low), min(ahead, high)
            back, ahead = min(back, 0.0), max(ahead, 0.0)
            step = back + random.random() * (ahead - back)
            for z in range(start[at], start[at + 1]):
                x[cell[z]] += step * change[z]
        for i in range(len(x)):
            out[row, i] = (x[i] - lower[i]) / (upper[i] - lower[i])


# Whether random walks have forgotten where they began: effective sample size and potential scale reduction.
#
# (Gelman et al., Bayesian Data Analysis, 3rd edition, 11.4 and 11.5; Geyer, "Practical Markov chain Monte Carlo",
# Statistical Science 7, 1992; Vehtari et al., "Rank-normalization, folding, and localization: an improved R̂", 2021.)


COLUMNS_AT_ONCE = 512
"""Cells looked at together."""


def convergence(draws: Floats) -> tuple[Floats, Floats]:
    """Effective sample size and R̂ of each cell, from draws of shape (chains, draws, cells); every chain is halved.

    A chain that does not move at all has forgotten nothing: its sample size is 0, its R̂ infinite.
    """
    chains, length, n = draws.shape
    half = length // 2
    halves = draws[:, : 2 * half].reshape(2 * chains, half, n)
    sizes, ratios = np.empty(n), np.empty(n)
    for first in range(0, n, COLUMNS_AT_ONCE):
        part = slice(first, min(first + COLUMNS_AT_ONCE, n))
        sizes[part], ratios[part] = _of_halves(halves[:, :, part].astype(np.float64))
    return sizes, ratios


def _of_halves(draws: Floats) -> tuple[Floats, Floats]:
    chains, length, _ = draws.shape
    means = draws.mean(axis=1)
    covariance = _autocovariance(draws - means[:, None])
    within = covariance[:, 0].mean(axis=0) * length / (length - 1)
    total = covariance[:, 0].mean(axis=0) + means.var(axis=0, ddof=1)
    moves = (within > 0) & (draws.var(axis=1).min(axis=0) > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(moves, np.sqrt(total / within), np.inf)
        correlation = 1.0 - (within - covariance.mean(axis=0) * length / (length - 1)) / total
    size = chains * length / np.maximum(_correlation_time(correlation), 1.0 / np.log10(chains * length))
    return np.where(moves, np.minimum(size, chains * length), 0.0), ratio


def _autocovariance(centred: Floats) -> Floats:
    """Of each chain and cell at every lag, by the fast Fourier transform."""
    length = centred.shape[1]
    room = 2 ** int(np.ceil(np.log2(2 * length)))
    spectrum = np.fft.rfft(centred, n=room, axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, n=room, axis=1)[:, :length] / length)


def _correlation_time(correlation: Floats) -> Floats:
    """Geyer's sum of the autocorrelations: pairs of lags, falling, for as long as they are positive."""
    even = 2 * (correlation.shape[0] // 2)
    pairs = correlation[:even:2] + correlation[1:even:2]
    positive = np.cumprod(pairs > 0, axis=0)
    falling = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    return np.asarray(2.0 * falling.sum(axis=0) - 1.0)


# Hit-and-run sampling: what an intruder believes to whom all possible tables are equally likely.


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
            raise InvalidOption(
                f"HitAndRun.effective must be 1 or more, got {self.effective}.",
                about=("option", "HitAndRun", "effective"),
            )
        if self.chains < 2:
            raise InvalidOption(
                f"HitAndRun.chains must be 2 or more, to be compared; got {self.chains}.",
                about=("option", "HitAndRun", "chains"),
            )

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

    def _places(self, room: FeasibleRegion, centre: Floats, random: np.random.Generator, budget: Budget) -> Floats:
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
