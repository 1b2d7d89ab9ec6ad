"""Cox's asymmetric intervals: ends drawn at random, so that the middle is right on average but never the truth.

The distance of the lower end from the truth is uniform; that of the upper end is normal, truncated to the same range
about the same mean. So the middle of the interval has the truth as its expectation, and is off by half the difference
of two independent draws. (Cox, "Vulnerability of Complementary Cell Suppression to Intruder Attack".)
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from tablesafe.attack.reconstruction import seen
from tablesafe.audit.intervals import exact_intervals
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.intervals.room import Room

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


def drawn(problem: Problem, pattern: Release, room: Room, spread: float, random: np.random.Generator) -> Release:
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


def asymmetric(room: Room, spread: float, random: np.random.Generator) -> tuple[Floats, Floats]:
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


def limits(room: Room, spread: float) -> tuple[Floats, Floats]:
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


def unbiased(room: Room, spread: float) -> Mask:
    """Which cells have room for intervals whose middle is right on average."""
    least, most = limits(room, spread)
    return np.asarray((least[0] == least[1]) & (most[0] == most[1]) & (most[0] > least[0]))


def _truncated_normal(least: Floats, most: Floats, random: np.random.Generator) -> Floats:
    """Normal about the middle of a range, cut off at its ends: by the inverse of its distribution function."""
    cut = SPREADS / 2
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
