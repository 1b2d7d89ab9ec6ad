"""How wide the intervals of the withheld cells must be together, so that every sensitive cell keeps its protection.

An intruder who is told an interval for every withheld cell puts them all into one system with the equations. A
sensitive cell is protected there when, for each side, some table within all intervals takes it far enough: a witness.
Intervals that hold one witness for every side of every sensitive cell are wide enough; wider ones all the more. So how
wide they must be is settled before anything is drawn at random, and no draw can be unsafe.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.attack.reconstruction import seen
from tablesafe.audit.audit import audit
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.outsiders import LEAST_WIDTH
from tablesafe.audit.protection import Component, protection
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.problem import Problem, least
from tablesafe.core.release import Release

NOISE = 1e-9
"""What a float may differ from the whole number that it is."""
WIDENINGS = 6
"""How often intervals are doubled, 64 times in all, before they are taken as wide as they can be."""


@dataclass(frozen=True, eq=False)
class Reach:
    """Per withheld cell, in whole steps from the truth: how far its interval must reach, and how far it can.

    What it can is what anyone derives from the pattern alone: wider intervals would tell nothing.
    """

    steps: float
    """How many steps make up 1: the ends of intervals are drawn in steps."""
    cells: NDArray[np.intp] = field(repr=False)
    truth: Floats = field(repr=False)
    down: Floats = field(repr=False)
    """How far down each interval must reach."""
    up: Floats = field(repr=False)
    lowest: Floats = field(repr=False)
    """How far down the pattern alone lets each cell be; infinite if without end."""
    highest: Floats = field(repr=False)

    @classmethod
    def of(cls, problem: Problem, pattern: Release, least: float, decimals: int | None = None) -> Self:
        """What the protection of all sensitive cells takes; at least the share `least` of each value in any case."""
        more = 10.0 ** (0 if decimals is None else decimals - problem.table.decimals)
        system = System.of(problem, pattern)
        shown = np.flatnonzero(~problem.withheld[system.cells])
        down, up = (_whole(more * far) for far in witnessed(problem, system))
        derived, truth = derivable(problem, system), system.truth.astype(np.float64)
        lowest, highest, truth = (
            np.floor(more * (truth - derived[0])),
            np.floor(more * (derived[1] - truth)),
            more * truth,
        )
        floor = np.maximum(1.0, np.ceil(least * np.abs(truth)))
        down, up = np.maximum(down, np.minimum(floor, lowest)), np.maximum(up, np.minimum(floor, highest))
        steps = more * 10.0**problem.table.decimals
        room = cls(steps, system.cells, truth, down, up, lowest, highest).take(shown)
        return room.safe(problem, pattern)

    def take(self, some: NDArray[np.intp]) -> Self:
        """The room of some of the cells."""
        return replace(
            self, cells=self.cells[some], truth=self.truth[some], down=self.down[some], up=self.up[some],
            lowest=self.lowest[some], highest=self.highest[some],
        )  # fmt: skip

    def wider(self, factor: float, least: float) -> Self:
        """Room by a factor more than must be, and no less than `least`; where one side is tight, on the other side.

        What is tight on both sides is so by the pattern alone, and known to anybody.
        """
        base, tight = np.maximum(self.down, self.up), np.minimum(self.lowest, self.highest)
        even = np.minimum(np.ceil(factor * base), tight - 2.0)  # an end drawn beyond it, and a tie, take one more each
        roomy = even >= np.ceil(least * base)
        far = np.ceil(2.0 * factor * base)
        below = np.where(self.lowest > self.highest, np.maximum(self.down, np.minimum(far, self.lowest)), self.down)
        above = np.where(self.lowest > self.highest, self.up, np.maximum(self.up, np.minimum(far, self.highest)))
        return replace(self, down=np.where(roomy, even, below), up=np.where(roomy, even, above))

    def safe(self, problem: Problem, pattern: Release) -> Self:
        """Wide enough for insiders and unions too: the least intervals are audited, and doubled while it finds more."""
        room, allowed = self, -1
        for _ in range(WIDENINGS):
            found = _openings(problem, room.release(pattern, -room.down, room.up))
            if found and allowed < 0:
                allowed = _openings(problem, pattern)  # what is open anyway is not for intervals to close
            if found <= max(allowed, 0):
                return room
            room = replace(room, down=np.minimum(2 * room.down, room.lowest), up=np.minimum(2 * room.up, room.highest))
        return replace(
            room,
            down=np.where(np.isfinite(room.lowest), room.lowest, room.down),
            up=np.where(np.isfinite(room.highest), room.highest, room.up),
        )

    def release(self, pattern: Release, below: Floats, above: Floats) -> Release:
        """The pattern with an interval for each of the cells, given as moves from the truth in steps."""
        lower, upper = pattern.lower.copy(), pattern.upper.copy()
        lower[self.cells], upper[self.cells] = (self.truth + below) / self.steps, (self.truth + above) / self.steps
        return replace(pattern, lower=lower, upper=upper)


def _openings(problem: Problem, release: Release) -> int:
    return len(audit(problem, release, exact=False, certify=False).open)


def derivable(problem: Problem, system: System) -> tuple[Floats, Floats]:
    """What anyone derives from the pattern alone, in units: not from what the office thinks that an intruder knows."""
    free = system.within(least(problem.table)[system.cells], np.full(len(system), np.inf))
    found = exact_intervals(free)
    return found.lower, found.upper


def witnessed(problem: Problem, system: System) -> tuple[Floats, Floats]:
    """How far each unknown cell must be able to go down and up, in units, for tables that show every protection."""
    sensitivity, unit = problem.sensitivity, 10.0**problem.table.decimals
    wanted = np.flatnonzero(sensitivity.mask[system.cells])
    cells, truth = system.cells[wanted], system.truth[wanted].astype(np.float64)
    lower, upper, sliding = (
        level[cells] * unit for level in (sensitivity.lower, sensitivity.upper, sensitivity.sliding)
    )
    sliding = np.where((lower == 0) & (upper == 0) & (sliding == 0), LEAST_WIDTH, sliding)
    seen = protection(system, wanted, truth - lower, truth + upper, sliding)
    missing = np.maximum(sliding - lower - upper, 0.0)
    far, by = np.stack([lower + missing, upper + missing]), np.stack([seen.low, seen.high])
    down, up = np.zeros(len(system)), np.zeros(len(system))
    for number, component in enumerate(seen.components):
        own = np.flatnonzero(seen.component == number)
        moves = _scaled(component, wanted[own], far[:, own], by[:, own], len(system))
        np.maximum.at(down, moves.col, -moves.data)
        np.maximum.at(up, moves.col, moves.data)
    return down, up


def _whole(amounts: Floats) -> Floats:
    """The next whole number, unless it is whole already up to the noise of floats."""
    nearest = np.rint(amounts)
    return np.where(np.abs(amounts - nearest) <= NOISE * np.maximum(1.0, nearest), nearest, np.ceil(amounts))


def _scaled(
    component: Component, wanted: NDArray[np.intp], far: Floats, by: NDArray[np.intp], n: int
) -> sparse.coo_array:
    """The witnesses of a component as moves, one row each, scaled down to what is asked of them.

    Part of the way to a table that adds up also adds up. `far` is what is asked, `by` the witness that shows it.
    """
    witness = np.repeat(np.arange(len(component.moves)), [len(move.cells) for move in component.moves])
    cell = np.concatenate([move.cells for move in component.moves])
    amount = np.concatenate([(move.numerators / move.denominator).astype(np.float64) for move in component.moves])
    moves = sparse.csr_array((amount, (witness, cell)), shape=(len(component.moves), n))
    scale = np.zeros(len(component.moves))
    for side in (0, 1):
        served = np.flatnonzero(by[side] >= 0)
        if not served.size:
            continue
        shown = by[side, served]
        reach = np.abs(np.asarray(moves[shown, wanted[served]]).ravel())
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(reach > 0, np.minimum(far[side, served] / reach, 1.0), 1.0)
        np.maximum.at(scale, shown, part)
    return (sparse.diags_array(scale) @ moves).tocoo()


# Cox's asymmetric intervals: ends drawn at random, so that the middle is right on average but never the truth.
#
# The distance of the lower end from the truth is uniform; that of the upper end is normal, truncated to the same range
# about the same mean. So the middle of the interval has the truth as its expectation, and is off by half the difference
# of two independent draws. (Cox, "Vulnerability of Complementary Cell Suppression to Intruder Attack".)


FACTOR = (1.25, 2.0)
"""Protection is exceeded by a factor drawn from this range, the same for all cells: or the narrowest would tell p."""
REDRAWS = 200
"""How often ends are drawn again at most; less often where many cells make each trial long."""
TRIALS = 10_000
"""Cells times redraws, at most."""
HALF = 0.25
"""Steps from the truth within which the middle of an interval, a whole or half number, is the truth."""
SPREADS = 4.0
"""The normal distribution is cut off at this many times its standard deviation, together on both sides."""


def drawn(problem: Problem, pattern: Release, room: Reach, spread: float, random: np.random.Generator) -> Release:
    """Draw all intervals; again about sensitive cells whose middle is the truth when all that is published is used."""
    unit = 10.0**problem.table.decimals
    room = room.wider(random.uniform(*FACTOR), FACTOR[0])
    below, above = asymmetric(room, spread, random)
    release = room.release(pattern, -below, above)
    for _ in range(_redraws(len(room.cells), fine=room.steps > unit)):
        again = _found_out(release, problem.sensitivity.mask, HALF * unit / room.steps)[room.cells]
        if not again.any():
            break
        new = asymmetric(room, spread, random)
        below, above = np.where(again, new[0], below), np.where(again, new[1], above)
        release = room.release(pattern, -below, above)
    return release


def _redraws(cells: int, *, fine: bool) -> int:
    """How often to look for middles that are the truth: not among thousands of cells in steps that make it unlikely."""
    often = min(REDRAWS, TRIALS // max(cells, 1))
    return often if fine else max(often, 3)


def asymmetric(room: Reach, spread: float, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw how far each interval reaches below and above the truth, in whole steps.

    Both distances lie between what protection takes and `spread` times that, within what the pattern leaves open. A
    tie would make the middle the truth: one of the two ends then moves on by a unit, either with the same probability.
    """
    least, most = limits(room, spread)
    below = np.ceil(least[0] + random.random(len(room.cells)) * (most[0] - least[0]))
    above = np.ceil(_truncated_normal(least[1], most[1], random))
    tie = (below == above) & ((most[0] > least[0]) | (most[1] > least[1]))
    first = random.random(len(tie)) < 0.5
    down = tie & first & (below < room.lowest)
    return below + down, above + (tie & ~down)


def limits(room: Reach, spread: float) -> tuple[Floats, Floats]:
    """The least and the most that each end may be away from the truth: downwards, then upwards.

    The same on both sides where there is room for that, so that the middle is right on average; otherwise, as where a
    cell must be able to be zero, each side has its own.
    """
    base = np.maximum(room.down, room.up)
    far = np.minimum(np.ceil(spread * base), np.minimum(room.lowest, room.highest) - 1.0)  # a tie takes one more
    even = far > base
    least = np.where(even, base, np.stack([room.down, room.up]))
    own = np.stack([np.minimum(np.ceil(spread * room.down), room.lowest), np.ceil(spread * room.up) + 1.0])
    most = np.where(even, far, np.maximum(own, least))
    fixed = (room.lowest <= 0) & (room.highest <= 0)  # known from the pattern alone
    return np.where(fixed, 0.0, least), np.where(fixed, 0.0, most)


def unbiased(room: Reach, spread: float) -> Mask:
    """Which cells have room for intervals whose middle is right on average."""
    least, most = limits(room, spread)
    return np.asarray((least[0] == least[1]) & (most[0] == most[1]) & (most[0] > least[0]))


def _truncated_normal(least: Floats, most: Floats, random: np.random.Generator) -> Floats:
    """Normal about the middle of a range, cut off at its ends: by the inverse of its distribution function."""
    cut = SPREADS / 2
    from scipy.special import ndtr, ndtri

    share = ndtr(-cut) + random.random(len(least)) * (ndtr(cut) - ndtr(-cut))
    return np.asarray(least + (most - least) * (0.5 + ndtri(share) / SPREADS))


def _found_out(release: Release, suspects: Mask, close: float) -> Mask:
    """The suspects whose interval, by all that is published, has the truth in its middle, and all their neighbours."""
    system = seen(release)
    asked = np.flatnonzero(suspects[system.cells])
    found = exact_intervals(system, asked)
    with np.errstate(invalid="ignore"):
        width, middle = found.upper - found.lower, (found.lower + found.upper) / 2
        right = (width > close) & (np.abs(middle - system.truth[asked]) < close)
    hit = np.zeros(len(system), np.int64)
    hit[asked] = right
    rows = abs(system.matrix).astype(np.int64)
    out = np.zeros(len(release.table), np.bool_)
    out[system.cells] = (hit > 0) | (np.asarray(rows.T @ (rows @ hit)) > 0)
    return out
