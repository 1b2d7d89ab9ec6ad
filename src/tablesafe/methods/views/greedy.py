"""The greedy heuristic: withhold, one or two entries of a slice at a time, what closes most per cost; compiled.

The weights of slices shrink as targets close, so a slice is weighed again only when its last weight is the best (lazy
evaluation).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.views.state import OPEN, Data, State, draw, entry, flip
from tablesafe.methods.views.weighing import LEAST, NOTHING, best_of_slice, in_group, open_targets

FOREVER = 1 << 60
"""A time at which nothing is tabu any more."""


@njit(cache=True)
def close_all(
    data: Data, state: State, tabu_a: Integers, tabu_b: Integers, now: int, seed: NDArray[np.uint64], noise: float
) -> bool:
    """Withhold entries until every target is closed; False when even all that may be withheld is not enough.

    `noise` makes weights vary by up to that share, so that repeated runs differ. What is tabu at time `now` is used
    only when nothing else helps.
    """
    slices = data.a.shape[0]
    weight, fresh, moves = np.full(slices, np.inf), np.full(slices, -1), np.full((slices, 4), NOTHING)
    cross = np.zeros((data.a.shape[1], data.b.shape[1]))
    step, forced = 0, False
    while state.sums[OPEN] > 0:
        low, up = open_targets(data, state)
        before = _lacking(data, state, low, up)
        while True:
            j = _largest(weight)
            if fresh[j] == step or weight[j] <= 0:
                break
            found = best_of_slice(data, state, j, low, up, tabu_a, tabu_b, now, cross)
            factor = 1.0 + noise * (draw(seed, 1024) / 1024 - 0.5) if noise > 0 else 1.0
            weight[j], fresh[j] = found[0] * factor, step
            moves[j, 0], moves[j, 1], moves[j, 2], moves[j, 3] = found[1], found[2], found[3], found[4]
        step += 1
        if weight[j] <= 0:
            if now < FOREVER:
                now = FOREVER
            elif forced or not _force(data, state, low, up):
                return False
            else:
                forced = True
            weight = np.full(slices, np.inf)
            continue
        for at in range(0, 4, 2):
            if moves[j, at] != NOTHING:
                flip(data, state, j, moves[j, at], moves[j, at + 1])
        low, up = open_targets(data, state)
        helped = _lacking(data, state, low, up) < before - LEAST
        forced = forced and not helped
        weight[j] = np.inf if helped else 0.0
    return True


@njit(cache=True)
def _largest(weight: Floats) -> int:
    best = 0
    for j in range(len(weight)):
        if weight[j] > weight[best]:
            best = j
    return best


@njit(cache=True)
def _lacking(data: Data, state: State, low: Integers, up: Integers) -> float:
    lacking = 0.0
    for q in low:
        lacking += (state.low[q] - data.low_need[q]) / data.low_scale[q]
    for q in up:
        lacking += (data.up_need[q] - state.up[q]) / data.up_scale[q]
    return lacking


@njit(cache=True)
def _force(data: Data, state: State, low: Integers, up: Integers) -> bool:
    """Withhold all that may be withheld in the slices of the first open target."""
    group = data.low_group[low[0]] if len(low) else data.up_group[up[0]]
    moved = False
    for number in range(data.a.size + data.b.size):
        j, side, x, held, live = entry(data, state, number)
        if live and not held and in_group(data, j, group):
            flip(data, state, j, side, x)
            moved = True
    return moved


@njit(cache=True)
def drop_redundant(data: Data, state: State, order: Integers) -> None:
    """Publish every entry that is not needed, in the given order of entries.

    Withholding less never hides more, so one pass leaves no entry that could be published.
    """
    for number in order:
        j, side, x, held, live = entry(data, state, number)
        again = 0
        while held and live and (again == 0 or (again == 1 and state.sums[OPEN] > 0)):
            flip(data, state, j, side, x)
            again += 1


@njit(cache=True)
def withhold_in_order(data: Data, state: State, order: Integers) -> bool:
    """Withhold entries in the given order until every target is closed; False when that never happens."""
    for number in order:
        if state.sums[OPEN] == 0:
            break
        j, side, x, held, live = entry(data, state, number)
        if live and not held:
            flip(data, state, j, side, x)
    return bool(state.sums[OPEN] == 0)
