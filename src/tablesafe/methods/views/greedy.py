"""What the entries of a slice, singly and by pairs, would do to the targets that are still open; compiled.

One entry alone in its slice hides nothing, so pairs are weighed as well: two of one view, or one of each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.views.state import COUNT_A, COUNT_B, OPEN, Data, State, draw, entry, flip, reach
from tablesafe.work.compiled import compiled

NOTHING = -1
"""The place of no cell, and of no side."""
FEW = 12
"""Entries of a slice up to which all pairs are weighed."""
LEAST = 1e-9
"""A gain or a cost below this counts as none."""


@compiled
def open_targets(data: Data, state: State) -> tuple[Integers, Integers]:
    """The targets whose bounds do not reach far enough."""
    low, up = np.empty(len(state.low), np.int64), np.empty(len(state.up), np.int64)
    lows, ups = 0, 0
    for q in range(len(state.low)):
        if state.low[q] > data.low_need[q]:
            low[lows] = q
            lows += 1
    for q in range(len(state.up)):
        if state.endless[q] == 0 and state.up[q] < data.up_need[q]:
            up[ups] = q
            ups += 1
    return low[:lows], up[:ups]


@compiled
def in_group(data: Data, j: int, group: int) -> bool:
    found = False
    for g in data.groups[j]:
        found = found or g == group
    return found


@compiled
def _weigh_low(
    data: Data, state: State, j: int, targets: Integers, single_a: Floats, single_b: Floats, pair_a: Floats,
    pair_b: Floats, twin_a: Floats, twin_b: Floats, cross: Floats, common: Floats,
) -> None:  # fmt: skip
    """Add what each entry, and each pair, would take from the lower bounds.

    `common` collects what every entry of the first view does, every one of the second, and every pair across.
    """
    for q in targets:
        if not in_group(data, j, data.low_group[q]):
            continue
        i, k = data.low_row[q], data.low_column[q]
        part = data.a[j, i] + data.b[j, k] - data.total[j]
        if part <= 0:
            continue
        row, column = state.held_a[j, i], state.held_b[j, k]
        first = row or state.count_b[j] - column > 0
        second = column or state.count_a[j] - row > 0
        if first and second:
            continue
        gain = min(part, state.low[q] - data.low_need[q]) / data.low_scale[q]
        if first:  # an entry that frees another row, or column k
            common[0] += gain
            single_a[i] -= gain
            single_b[k] += gain
        elif second:
            common[1] += gain
            single_b[k] -= gain
            single_a[i] += gain
        else:
            common[2] += gain
            pair_a[i] -= gain
            pair_b[k] -= gain
            cross[i, k] += 2 * gain
            twin_a[i] += gain
            twin_b[k] += gain


@compiled
def _weigh_up(
    data: Data, state: State, j: int, targets: Integers, single_a: Floats, single_b: Floats, pair_a: Floats,
    pair_b: Floats, twin_a: Floats, twin_b: Floats, cross: Floats, common: Floats,
) -> None:  # fmt: skip
    """Add what each entry, and each pair, would give to the upper bounds."""
    count_a, count_b, worth_a, worth_b = state.count_a[j], state.count_b[j], state.worth_a[j], state.worth_b[j]
    for q in targets:
        if not in_group(data, j, data.up_group[q]):
            continue
        i, k = data.up_row[q], data.up_column[q]
        a, b = data.a[j, i], data.b[j, k]
        row, column = state.held_a[j, i], state.held_b[j, k]
        most_a, most_b = reach(a, row, worth_a, count_b), reach(b, column, worth_b, count_a)
        now = min(most_a, most_b)
        lacking, scale = data.up_need[q] - state.up[q], data.up_scale[q]
        if row:  # then column k is published, and no more than b can be reached without it
            single_b[k] += lacking / scale
            if count_b == 0:
                gain = min(lacking, b - now) / scale
                common[1] += gain
                single_b[k] -= gain
                for x in range(len(single_a)):
                    if x != i:
                        single_a[x] += min(lacking, min(worth_a + data.a[j, x], b) - now) / scale
        elif column:
            single_a[i] += lacking / scale
            if count_a == 0:
                gain = min(lacking, a - now) / scale
                common[0] += gain
                single_a[i] -= gain
                for x in range(len(single_b)):
                    if x != k:
                        single_b[x] += min(lacking, min(worth_b + data.b[j, x], a) - now) / scale
        else:
            alone_a = min(lacking, min(np.inf if count_b > 0 else worth_a + a, b) - now) / scale
            alone_b = min(lacking, min(np.inf if count_a > 0 else worth_b + b, a) - now) / scale
            with_a, with_b = min(lacking, b - now) / scale, min(lacking, a - now) / scale
            single_a[i] += alone_a
            single_b[k] += alone_b
            pair_a[i] += with_a - alone_a
            pair_b[k] += with_b - alone_b
            twin_a[i] += with_a - alone_a
            twin_b[k] += with_b - alone_b
            cross[i, k] += lacking / scale - with_a - with_b


@compiled
def _matters(data: Data, state: State, j: int, low: Integers, up: Integers) -> bool:
    """Whether a slice has a part in what is open. Any slice can raise an upper bound, if it may be opened at all."""
    for q in up:
        if in_group(data, j, data.up_group[q]):
            return True
    for q in low:
        part = data.a[j, data.low_row[q]] + data.b[j, data.low_column[q]] - data.total[j]
        if part > 0 and in_group(data, j, data.low_group[q]):
            return True
    return False


@compiled
def best_of_slice(
    data: Data, state: State, j: int, low: Integers, up: Integers, tabu_a: Integers, tabu_b: Integers, now: int,
    cross: Floats,
) -> tuple[float, int, int, int, int]:  # fmt: skip
    """The best gain per cost in a slice: the ratio, then side and place of one entry and of another (−1 for none).

    `cross` is room for what the pair (i, k) of a target gains beyond its entries; zero before and after.
    """
    if not _matters(data, state, j, low, up):
        return 0.0, NOTHING, NOTHING, NOTHING, NOTHING
    rows, columns = data.a.shape[1], data.b.shape[1]
    single_a, single_b, pair_a, pair_b = np.zeros(rows), np.zeros(columns), np.zeros(rows), np.zeros(columns)
    twin_a, twin_b, common = np.zeros(rows), np.zeros(columns), np.zeros(3)
    _weigh_low(data, state, j, low, single_a, single_b, pair_a, pair_b, twin_a, twin_b, cross, common)
    _weigh_up(data, state, j, up, single_a, single_b, pair_a, pair_b, twin_a, twin_b, cross, common)
    more_a = data.balance if state.sums[COUNT_A] >= state.sums[COUNT_B] else 0.0
    more_b = data.balance if state.sums[COUNT_B] >= state.sums[COUNT_A] else 0.0
    cost_a, cost_b = np.full(rows, np.inf), np.full(columns, np.inf)  # endless for what may not be withheld now
    for x in range(rows):
        if data.live_a[j, x] and not state.held_a[j, x] and tabu_a[j, x] <= now:
            cost_a[x] = data.cost_a[j, x]
    for y in range(columns):
        if data.live_b[j, y] and not state.held_b[j, y] and tabu_b[j, y] <= now:
            cost_b[y] = data.cost_b[j, y]
    best, side, one, other, two = 0.0, NOTHING, NOTHING, NOTHING, NOTHING
    for x in range(rows):
        ratio = (single_a[x] + common[0]) / max(cost_a[x] + more_a, LEAST)
        if ratio > best:
            best, side, one, other, two = ratio, 0, x, NOTHING, NOTHING
    for y in range(columns):
        ratio = (single_b[y] + common[1]) / max(cost_b[y] + more_b, LEAST)
        if ratio > best:
            best, side, one, other, two = ratio, 1, y, NOTHING, NOTHING
    everywhere, more = common[0] + common[1] + common[2], max(more_a, more_b)
    some_a, some_b = _promising(single_a, pair_a, cost_a), _promising(single_b, pair_b, cost_b)
    for x in some_a:
        for y in some_b:
            gain = single_a[x] + pair_a[x] + single_b[y] + pair_b[y] + cross[x, y] + everywhere
            ratio = gain / max(cost_a[x] + cost_b[y] + more, LEAST)
            if ratio > best * (1 + LEAST):
                best, side, one, other, two = ratio, 0, x, 1, y
    for at in range(len(low) + len(up)):
        x = data.low_row[low[at]] if at < len(low) else data.up_row[up[at - len(low)]]
        y = data.low_column[low[at]] if at < len(low) else data.up_column[up[at - len(low)]]
        gain = single_a[x] + pair_a[x] + single_b[y] + pair_b[y] + cross[x, y] + everywhere
        ratio = gain / max(cost_a[x] + cost_b[y] + more, LEAST)
        if ratio > best * (1 + LEAST):
            best, side, one, other, two = ratio, 0, x, 1, y
    if state.count_a[j] + state.count_b[j] == 0:
        ratio, x, y = _best_twins(single_a, twin_a, cost_a, more_a)
        if ratio > best * (1 + LEAST):
            best, side, one, other, two = ratio, 0, x, 0, y
        ratio, x, y = _best_twins(single_b, twin_b, cost_b, more_b)
        if ratio > best * (1 + LEAST):
            best, side, one, other, two = ratio, 1, x, 1, y
    for q in low:
        cross[data.low_row[q], data.low_column[q]] = 0.0
    for q in up:
        cross[data.up_row[q], data.up_column[q]] = 0.0
    return best, side, one, other, two


@compiled
def _promising(single: Floats, pair: Floats, cost: Floats) -> Integers:
    """The entries worth pairing with any other: all of a few, else the two best by gain per cost, gain, and cost."""
    n = len(single)
    if n <= FEW:
        return np.arange(n)
    found = np.zeros(6, np.int64)
    top = np.full(6, -np.inf)
    for x in range(n):
        if cost[x] == np.inf:
            continue
        gain = single[x] + pair[x]
        for way in range(0, 6, 2):
            value = gain / max(cost[x], LEAST) if way == 0 else gain if way == 2 else -cost[x]
            if value > top[way]:
                found[way + 1], top[way + 1] = found[way], top[way]
                found[way], top[way] = x, value
            elif value > top[way + 1]:
                found[way + 1], top[way + 1] = x, value
    return found


@compiled
def _best_twins(single: Floats, twin: Floats, cost: Floats, more: float) -> tuple[float, int, int]:
    """Two entries of one view, of which each hides the other: the two with the largest gain per cost."""
    one, two, first, second = NOTHING, NOTHING, 0.0, 0.0
    for x in range(len(single)):
        if cost[x] == np.inf:
            continue
        value = (single[x] + twin[x]) / max(cost[x] + more, LEAST)
        if one == NOTHING or value > first:
            one, two, first, second = x, one, value, first
        elif two == NOTHING or value > second:
            two, second = x, value
    if two == NOTHING:
        return 0.0, one, two
    gain = single[one] + twin[one] + single[two] + twin[two]
    return gain / max(cost[one] + cost[two] + 2 * more, LEAST), one, two


# The greedy heuristic: withhold, one or two entries of a slice at a time, what closes most per cost; compiled.
#
# The weights of slices shrink as targets close, so a slice is weighed again only when its last weight is the best (lazy
# evaluation).


FOREVER = 1 << 60
"""A time at which nothing is tabu any more."""


@compiled
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


@compiled
def _largest(weight: Floats) -> int:
    best = 0
    for j in range(len(weight)):
        if weight[j] > weight[best]:
            best = j
    return best


@compiled
def _lacking(data: Data, state: State, low: Integers, up: Integers) -> float:
    lacking = 0.0
    for q in low:
        lacking += (state.low[q] - data.low_need[q]) / data.low_scale[q]
    for q in up:
        lacking += (data.up_need[q] - state.up[q]) / data.up_scale[q]
    return lacking


@compiled
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


@compiled
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


@compiled
def withhold_in_order(data: Data, state: State, order: Integers) -> bool:
    """Withhold entries in the given order until every target is closed; False when that never happens."""
    for number in order:
        if state.sums[OPEN] == 0:
            break
        j, side, x, held, live = entry(data, state, number)
        if live and not held:
            flip(data, state, j, side, x)
    return bool(state.sums[OPEN] == 0)
