"""The measure of a change and of its neighbours, compiled: a step updates running sums instead of adding all cells up.

Per group the sums `Σŷ`, `Σd̂ŷ`, `Σŷ²` (in units of the group's spread) give slope `1 + L`, ratio of variances
`1 + 2L + V` and correlation `(1 + L) / √ratio`; two more sums give the distance and chi-square.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.work.compiled import compiled

FAR, POWERS = 2**52, 50
"""No step is longer, so that moves stay exact as floats; and the powers of two below it that are tried as lengths."""
OUTSIDE = 1e3
"""What a statistic outside its limit costs."""


class Data(NamedTuple):
    """What does not change: cycles, room, levels, and what each cell counts for."""

    start: Integers
    cell: Integers
    coefficient: Integers
    up: Integers
    down: Integers
    above: Integers
    """0 where a cell is no target."""
    below: Integers
    cost: Floats
    square: Floats
    """What a squared unit adds to chi-square."""
    member_start: Integers
    """Cell i is in the groups member[member_start[i] : member_start[i + 1]]."""
    member: Integers
    deviation: Floats
    """d̂ of the cell in that group."""
    size: Floats
    """Per group: its cells."""
    unit: Floats
    """Per group: one unit of the table, in units of its spread."""
    weight: Floats
    """Distance, chi-square, correlation, slope, variance."""
    limit: Floats
    """The most that 1 − correlation, |1 − slope| and |ratio − 1| may be; beyond it every bit costs dearly."""


class State(NamedTuple):
    """A change and its running sums."""

    moves: Integers
    sums: Floats
    """Per group Σŷ, Σd̂ŷ, Σŷ²."""
    totals: Floats
    """Distance and chi-square."""
    scratch: Floats
    """Changes of `sums` while a step is tried."""
    touched: Integers


@compiled
def worth(data: Data, group: int, total: float, along: float, squared: float) -> float:
    """What a group's deviations count, from its three sums."""
    ratio = 1.0 + 2.0 * along + squared - total * total / data.size[group]
    correlated = (1.0 + along) * (1.0 + along) / ratio if ratio > 1e-12 and along > -1.0 else 0.0
    found = data.weight[2] * (1.0 - correlated) + data.weight[3] * abs(along) + data.weight[4] * abs(ratio - 1.0)
    over = max(1.0 - np.sqrt(correlated) - data.limit[0], 0.0)
    over += max(abs(along) - data.limit[1], 0.0) + max(abs(ratio - 1.0) - data.limit[2], 0.0)
    return float(found / len(data.size) + OUTSIDE * over)


def deviations(data: Data, state: State) -> tuple[float, float, float]:
    """1 − correlation, |1 − slope| and |ratio − 1|, each in the group where it is largest."""
    total, along, squared = state.sums.T
    ratio = np.maximum(1.0 + 2.0 * along + squared - total * total / data.size, 1e-12)
    correlation = np.maximum(1.0 + along, 0.0) / np.sqrt(ratio)
    apart, tilt, spread = (part.max(initial=0.0) for part in (1.0 - correlation, np.abs(along), np.abs(ratio - 1.0)))
    return float(apart), float(tilt), float(spread)


@compiled
def refresh(data: Data, state: State) -> float:
    """Add all cells up anew, and return the measure: the naive evaluation."""
    state.sums[:] = 0.0
    state.totals[:] = 0.0
    for i in range(len(state.moves)):
        y = float(state.moves[i])
        if y == 0.0:
            continue
        state.totals[0] += data.cost[i] * abs(y)
        state.totals[1] += data.square[i] * y * y
        for z in range(data.member_start[i], data.member_start[i + 1]):
            g = data.member[z]
            part = y * data.unit[g]
            state.sums[g, 0] += part
            state.sums[g, 1] += data.deviation[z] * part
            state.sums[g, 2] += part * part
    return measure(data, state)


@compiled
def measure(data: Data, state: State) -> float:
    """The measure from the running sums."""
    found = data.weight[0] * state.totals[0] + data.weight[1] * state.totals[1]
    for g in range(len(data.size)):
        found += worth(data, g, state.sums[g, 0], state.sums[g, 1], state.sums[g, 2])
    return float(found)


@compiled
def fits(data: Data, state: State, cells: Integers, steps: Integers, count: int, t: int) -> bool:
    """Whether a step stays within all bounds, and leaves every target far enough from its true value."""
    for k in range(count):
        i = cells[k]
        y = state.moves[i] + t * steps[k]
        if y > data.up[i] or -y > data.down[i]:
            return False
        if data.above[i] > 0 and y < data.above[i] and -y < data.below[i]:
            return False
    return True


@compiled
def gain(data: Data, state: State, cells: Integers, steps: Integers, count: int, t: int) -> float:
    """By how much a step changes the measure: only what it touches is looked at."""
    distance, squares, touched = 0.0, 0.0, 0
    for k in range(count):
        i = cells[k]
        old = float(state.moves[i])
        new = old + float(t * steps[k])
        distance += data.cost[i] * (abs(new) - abs(old))
        squares += data.square[i] * (new * new - old * old)
        for z in range(data.member_start[i], data.member_start[i + 1]):
            g = data.member[z]
            if state.scratch[g, 3] == 0.0:
                state.scratch[g, 3] = 1.0
                state.touched[touched] = g
                touched += 1
            unit = data.unit[g]
            state.scratch[g, 0] += (new - old) * unit
            state.scratch[g, 1] += data.deviation[z] * (new - old) * unit
            state.scratch[g, 2] += (new * new - old * old) * unit * unit
    found = data.weight[0] * distance + data.weight[1] * squares
    for k in range(touched):
        g = state.touched[k]
        a, b, c = state.sums[g, 0], state.sums[g, 1], state.sums[g, 2]
        da, db, dc = state.scratch[g, 0], state.scratch[g, 1], state.scratch[g, 2]
        found += worth(data, g, a + da, b + db, c + dc) - worth(data, g, a, b, c)
        state.scratch[g, :] = 0.0
    return float(found)


@compiled
def take(data: Data, state: State, cells: Integers, steps: Integers, count: int, t: int) -> None:
    """Make a step: the moves and the running sums."""
    for k in range(count):
        i = cells[k]
        old = float(state.moves[i])
        new = old + float(t * steps[k])
        state.moves[i] += t * steps[k]
        state.totals[0] += data.cost[i] * (abs(new) - abs(old))
        state.totals[1] += data.square[i] * (new * new - old * old)
        for z in range(data.member_start[i], data.member_start[i + 1]):
            g = data.member[z]
            unit = data.unit[g]
            state.sums[g, 0] += (new - old) * unit
            state.sums[g, 1] += data.deviation[z] * (new - old) * unit
            state.sums[g, 2] += (new * new - old * old) * unit * unit


@compiled
def lengths(data: Data, state: State, cells: Integers, steps: Integers, count: int, out: Integers) -> int:
    """Step lengths worth trying: powers of two, and where a cell reaches its true value, a level or a bound."""
    found, most = 0, FAR
    for k in range(count):
        i, c = cells[k], abs(steps[k])
        most = min(most, (data.up[i] + data.down[i]) // c)
        if found + 10 > len(out):
            continue
        y = state.moves[i]
        for goal in (0, data.above[i], -data.below[i], data.up[i], -data.down[i]):
            far = goal - y
            if abs(far) < FAR:
                t = far // steps[k]
                out[found], out[found + 1] = t, t + 1
                found += 2
    power = 1
    while power <= most and found + 2 <= len(out):
        out[found], out[found + 1] = power, -power
        found += 2
        power *= 2
    return found


@compiled
def best_length(
    data: Data, state: State, cells: Integers, steps: Integers, count: int, out: Integers
) -> tuple[int, float]:
    """The best step along one direction, and what it gains (negative is better); 0 when none improves."""
    best, found = 0, 0.0
    for k in range(lengths(data, state, cells, steps, count, out)):
        t = out[k]
        if t != 0 and t != best and fits(data, state, cells, steps, count, t):
            change = gain(data, state, cells, steps, count, t)
            if change < found - 1e-13:
                best, found = t, change
    return best, found


@compiled
def descend(data: Data, state: State, order: Integers, out: Integers) -> float:
    """Go through cycles in an order; take the best step along each that improves. Returns what was gained."""
    gained = 0.0
    for c in order:
        first, last = data.start[c], data.start[c + 1]
        cells, steps = data.cell[first:last], data.coefficient[first:last]
        t, change = best_length(data, state, cells, steps, last - first, out)
        if t != 0:
            take(data, state, cells, steps, last - first, t)
            gained += change
    return gained


@compiled
def mix(data: Data, chosen: Integers, factor: Integers, place: Integers, cells: Integers, steps: Integers) -> int:
    """The sum of cycles times whole factors, as cells and coefficients; `place` is −1 everywhere before and after."""
    count = 0
    for k in range(len(chosen)):
        for z in range(data.start[chosen[k]], data.start[chosen[k] + 1]):
            i = data.cell[z]
            if place[i] < 0:
                place[i] = count
                cells[count], steps[count] = i, 0
                count += 1
            steps[place[i]] += factor[k] * data.coefficient[z]
    kept = 0
    for k in range(count):
        place[cells[k]] = -1
        if steps[k] != 0:
            cells[kept], steps[kept] = cells[k], steps[k]
            kept += 1
    return kept


@compiled
def descend_mixed(
    data: Data, state: State, chosen: Integers, factor: Integers, place: Integers, cells: Integers, steps: Integers,
    out: Integers,
) -> float:  # fmt: skip
    """The same along random sums of cycles: out of corners where no single cycle improves."""
    gained = 0.0
    for k in range(len(chosen)):
        count = mix(data, chosen[k], factor[k], place, cells, steps)
        if count == 0:
            continue
        t, change = best_length(data, state, cells, steps, count, out)
        if t != 0:
            take(data, state, cells, steps, count, t)
            gained += change
    return gained


def state_of(data: Data, moves: Integers) -> State:
    """A change with its sums added up."""
    groups = len(data.size)
    state = State(
        moves.astype(np.int64), np.zeros((groups, 3)), np.zeros(2), np.zeros((groups, 4)),
        np.zeros(groups, np.int64),
    )  # fmt: skip
    refresh(data, state)
    return state


def workspace(data: Data, cells: int, joined: int) -> dict[str, NDArray[Any]]:
    """Room for the sums of so many cycles."""
    longest = int(np.diff(data.start).max(initial=1)) * joined
    return {
        "place": np.full(cells, -1, np.int64),
        "cells": np.zeros(longest, np.int64),
        "steps": np.zeros(longest, np.int64),
        "out": np.zeros(10 * min(longest, 40) + 2 * POWERS, np.int64),
    }
