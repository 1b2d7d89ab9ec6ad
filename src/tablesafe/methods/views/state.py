"""A pattern of two views and what it hides, kept up to date entry by entry; compiled.

`flip` withholds or publishes one entry and moves the bounds of the targets of its slice: no other bound changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.views.instance import TwoViews
from tablesafe.work.compiled import compiled

OWN, COUNT_A, COUNT_B, OPEN = 0, 1, 2, 3
"""Places in `State.sums`: cost without balance, entries withheld from either view, targets that are open."""


class Data(NamedTuple):
    """What does not change: the two views, their costs, and the targets."""

    a: Floats
    b: Floats
    total: Floats
    cost_a: Floats
    cost_b: Floats
    live_a: Mask
    live_b: Mask
    groups: Integers
    low_row: Integers
    low_column: Integers
    low_group: Integers
    low_start: Integers
    low_need: Floats
    low_scale: Floats
    up_row: Integers
    up_column: Integers
    up_group: Integers
    up_start: Integers
    up_need: Floats
    up_scale: Floats
    balance: float


class State(NamedTuple):
    """What does change: the pattern, its counts per slice, the bounds of the targets, and sums over all."""

    held_a: Mask
    held_b: Mask
    count_a: Integers
    count_b: Integers
    worth_a: Floats
    """Per slice what the withheld entries of the first view add up to."""
    worth_b: Floats
    low: Floats
    up: Floats
    endless: Integers
    """Per target how many slices let it rise without limit."""
    sums: Floats


def data_of(views: TwoViews) -> Data:
    """The arrays of a problem; entries withheld in any case may not be touched."""
    low, up = views.low, views.up
    data = Data(
        np.ascontiguousarray(views.a), np.ascontiguousarray(views.b), views.total,
        np.where(views.forced_a, 0.0, views.cost_a), np.where(views.forced_b, 0.0, views.cost_b),
        views.live_a & ~views.forced_a, views.live_b & ~views.forced_b, np.ascontiguousarray(views.groups),
        low.row, low.column, low.group, low.start, low.need, np.ones(len(low)),
        up.row, up.column, up.group, up.start, up.need, np.ones(len(up)), float(views.balance),
    )  # fmt: skip
    state = _blank(data)
    _withhold(data, state, np.ascontiguousarray(views.forced_a), np.ascontiguousarray(views.forced_b))
    low_scale = np.maximum(state.low - low.need, 1.0)
    up_scale = np.maximum(up.need - state.up, 1.0)
    return data._replace(low_scale=low_scale, up_scale=up_scale)


def state_of(data: Data, a: Mask, b: Mask) -> State:
    """The state of a pattern."""
    state = _blank(data)
    _withhold(data, state, np.ascontiguousarray(a), np.ascontiguousarray(b))
    state.sums[COUNT_A] = float((a & data.live_a).sum())
    state.sums[COUNT_B] = float((b & data.live_b).sum())
    return state


def _blank(data: Data) -> State:
    slices = len(data.a)
    state = State(
        np.zeros(data.a.shape, np.bool_), np.zeros(data.b.shape, np.bool_), np.zeros(slices, np.int64),
        np.zeros(slices, np.int64), np.zeros(slices), np.zeros(slices), np.zeros(len(data.low_row)),
        np.zeros(len(data.up_row)), np.zeros(len(data.up_row), np.int64), np.zeros(4),
    )  # fmt: skip
    _publish_all(data, state)
    return state


@compiled
def _publish_all(data: Data, state: State) -> None:
    for j in range(data.a.shape[0]):
        for g in data.groups[j]:
            for q in range(data.low_start[g], data.low_start[g + 1]):
                part = data.a[j, data.low_row[q]] + data.b[j, data.low_column[q]] - data.total[j]
                state.low[q] += max(part, 0.0)
            for q in range(data.up_start[g], data.up_start[g + 1]):
                state.up[q] += min(data.a[j, data.up_row[q]], data.b[j, data.up_column[q]])
    for q in range(len(state.low)):
        state.sums[OPEN] += state.low[q] > data.low_need[q]
    for q in range(len(state.up)):
        state.sums[OPEN] += state.up[q] < data.up_need[q]


@compiled
def _withhold(data: Data, state: State, a: Mask, b: Mask) -> None:
    rows, columns = a.shape[1], b.shape[1]
    for j in range(a.shape[0]):
        for place in range(rows + columns):
            side = int(place >= rows)
            x = place - side * rows
            if (side == 0 and a[j, x]) or (side == 1 and b[j, x]):
                flip(data, state, j, side, x)


@compiled
def cost(data: Data, state: State) -> float:
    """What the pattern costs."""
    return float(state.sums[OWN] + data.balance * max(state.sums[COUNT_A], state.sums[COUNT_B]))


@compiled
def vanishes(own: bool, other_rows: bool, across: bool, other_columns: bool) -> bool:
    """Whether a slice's part in a lower bound is gone: two sums that make up for each other are free."""
    return (own or other_columns) and (across or other_rows)


@compiled
def reach(shown: float, held: bool, worth: float, across: int) -> float:
    """The most that a row can be: as published, as the withheld ones together, or anything."""
    if not held:
        return shown
    return np.inf if across > 0 else worth


@compiled
def flip(data: Data, state: State, j: int, side: int, x: int) -> None:
    """Withhold or publish entry x of slice j of a view (0 or 1)."""
    held_a, held_b = state.held_a[j], state.held_b[j]
    old_a, old_b, old_wa, old_wb = state.count_a[j], state.count_b[j], state.worth_a[j], state.worth_b[j]
    new_a, new_b, new_wa, new_wb = old_a, old_b, old_wa, old_wb
    if side == 0:
        step = -1 if held_a[x] else 1
        new_a, new_wa = old_a + step, old_wa + step * data.a[j, x]
        state.sums[OWN] += step * data.cost_a[j, x]
        state.sums[COUNT_A] += step
    else:
        step = -1 if held_b[x] else 1
        new_b, new_wb = old_b + step, old_wb + step * data.b[j, x]
        state.sums[OWN] += step * data.cost_b[j, x]
        state.sums[COUNT_B] += step
    for g in data.groups[j]:
        for q in range(data.low_start[g], data.low_start[g + 1]):
            i, k = data.low_row[q], data.low_column[q]
            part = data.a[j, i] + data.b[j, k] - data.total[j]
            if part <= 0:
                continue
            row, column = held_a[i], held_b[k]
            row_now = row != (side == 0 and i == x)
            column_now = column != (side == 1 and k == x)
            gone = vanishes(row, old_a - row > 0, column, old_b - column > 0)
            gone_now = vanishes(row_now, new_a - row_now > 0, column_now, new_b - column_now > 0)
            if gone != gone_now:
                state.sums[OPEN] -= state.low[q] > data.low_need[q]
                state.low[q] += -part if gone_now else part
                state.sums[OPEN] += state.low[q] > data.low_need[q]
        for q in range(data.up_start[g], data.up_start[g + 1]):
            i, k = data.up_row[q], data.up_column[q]
            row, column = held_a[i], held_b[k]
            row_now = row != (side == 0 and i == x)
            column_now = column != (side == 1 and k == x)
            if not (row or column or row_now or column_now):
                continue
            most = min(reach(data.a[j, i], row, old_wa, old_b), reach(data.b[j, k], column, old_wb, old_a))
            now = min(reach(data.a[j, i], row_now, new_wa, new_b), reach(data.b[j, k], column_now, new_wb, new_a))
            if most != now:
                state.sums[OPEN] -= state.endless[q] == 0 and state.up[q] < data.up_need[q]
                if most == np.inf:
                    state.endless[q] -= 1
                else:
                    state.up[q] -= most
                if now == np.inf:
                    state.endless[q] += 1
                else:
                    state.up[q] += now
                state.sums[OPEN] += state.endless[q] == 0 and state.up[q] < data.up_need[q]
    if side == 0:
        held_a[x] = not held_a[x]
        state.count_a[j], state.worth_a[j] = new_a, new_wa
    else:
        held_b[x] = not held_b[x]
        state.count_b[j], state.worth_b[j] = new_b, new_wb


@compiled
def entry(data: Data, state: State, number: int) -> tuple[int, int, int, bool, bool]:
    """Slice, view and place of an entry, whether it is withheld, and whether it may be; views are numbered through."""
    if number < data.a.size:
        j, x = number // data.a.shape[1], number % data.a.shape[1]
        return j, 0, x, state.held_a[j, x], data.live_a[j, x]
    place = number - data.a.size
    j, x = place // data.b.shape[1], place % data.b.shape[1]
    return j, 1, x, state.held_b[j, x], data.live_b[j, x]


@compiled
def copy_state(source: State, target: State) -> None:
    """Make one state like another, in place."""
    for j in range(source.held_a.shape[0]):
        for i in range(source.held_a.shape[1]):
            target.held_a[j, i] = source.held_a[j, i]
        for k in range(source.held_b.shape[1]):
            target.held_b[j, k] = source.held_b[j, k]
        target.count_a[j] = source.count_a[j]
        target.count_b[j] = source.count_b[j]
        target.worth_a[j] = source.worth_a[j]
        target.worth_b[j] = source.worth_b[j]
    for q in range(len(source.low)):
        target.low[q] = source.low[q]
    for q in range(len(source.up)):
        target.up[q] = source.up[q]
        target.endless[q] = source.endless[q]
    for at in range(len(source.sums)):
        target.sums[at] = source.sums[at]


@compiled
def draw(seed: NDArray[np.uint64], below: int) -> int:
    """A whole number from 0 to `below` − 1; the same sequence for the same seed on every machine (xorshift)."""
    x = seed[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    seed[0] = x
    return int((x >> np.uint64(11)) % np.uint64(below))


def seed_of(number: int) -> NDArray[np.uint64]:
    """The start of a sequence of draws."""
    return np.random.default_rng(number).integers(1, 2**63, size=1, dtype=np.uint64)
