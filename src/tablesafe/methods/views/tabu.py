"""Tabu search: take entries out of a pattern, close what opens without them, drop what became redundant; compiled.

A step publishes one withheld entry (a swap, when another takes its place), or all of one slice, or of two. For some
steps these may not come back (they are tabu), unless nothing else helps; about every eighth step may use them all the
same, but counts only if its pattern is the best so far (aspiration). The greedy heuristic closes what is open, singly
and by pairs. A pattern that is no worse is kept; after many steps without a better one the search starts again from the
best pattern, shaken.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.views.greedy import FOREVER, close_all, drop_redundant
from tablesafe.methods.views.state import Data, State, copy_state, cost, draw, entry, flip
from tablesafe.work.budget import Budget
from tablesafe.work.compiled import compiled

SMALL = 400
"""Entries up to which every step looks for redundancies in the whole pattern, not only where it changed."""
NOISE = 0.3
"""By what share greedy weights vary, so that the same hole is not always closed in the same way."""
PATIENCE = 60
"""Steps without a better pattern, for every eight entries of it, after which the search starts again."""
SHAKEN = 6
"""Slices that are opened anew, at most, when the search starts again."""
OTHERS = 8
"""Entries of unchanged slices, on average, that a step looks at as well."""
BATCH = 64
"""Steps between looks at the clock."""


def tabu_search(
    data: Data, state: State, *, seed: NDArray[np.uint64], steps: int, budget: Budget, restarts: bool = True,
    report: Callable[[float], None] | None = None,
) -> int:  # fmt: skip
    """Improve a pattern in place, for so many steps or as long as there is time; says how many steps were taken.

    `report` is told what the best pattern costs whenever it gets better.
    """
    tabu_a, tabu_b = np.zeros(data.a.shape, np.int64), np.zeros(data.b.shape, np.int64)
    current, spare = _copy(state), _copy(state)
    clock = np.zeros(2, np.int64)
    batch = min(BATCH, max(1, 200_000 // (len(data.low_row) + len(data.up_row) + 1)))
    _steps(data, state, current, spare, tabu_a, tabu_b, clock, seed, 0, restarts)  # compiled before it is looked at
    told = cost(data, state)
    while clock[0] < steps and not budget.over and cost(data, state) > 0:
        _steps(data, state, current, spare, tabu_a, tabu_b, clock, seed, min(batch, steps - int(clock[0])), restarts)
        if report is not None and cost(data, state) < told:
            told = cost(data, state)
            report(told)
    return int(clock[0])


def _copy(state: State) -> State:
    return State._make(part.copy() for part in state)


@compiled
def _steps(
    data: Data, best: State, current: State, spare: State, tabu_a: Integers, tabu_b: Integers, clock: Integers,
    seed: NDArray[np.uint64], count: int, restarts: bool,
) -> None:  # fmt: skip
    """Take `count` steps. `clock` holds the steps taken, and those since the last better pattern or new start."""
    for _ in range(count):
        clock[0] += 1
        clock[1] += 1
        now = clock[0]
        held = _held(data, current)
        if len(held) == 0:
            return
        copy_state(current, spare)
        depth = draw(seed, 4)
        touched = np.zeros(data.a.shape[0], np.bool_)
        tenure = now + 2 + draw(seed, 3 + len(held) // 4)
        if depth < 2:
            _publish(data, current, held[draw(seed, len(held))], tabu_a, tabu_b, tenure, touched)
        else:
            for _again in range(depth - 1):
                _publish_slice(data, current, held[draw(seed, len(held))], tabu_a, tabu_b, tenure, touched)
        aspiring = draw(seed, 8) == 0
        closed = close_all(data, current, tabu_a, tabu_b, FOREVER if aspiring else now, seed, NOISE)
        if closed:
            _mark_changed(current, spare, touched)
            drop_redundant(data, current, _order(data, current, touched, seed))
        value = cost(data, current)
        if closed and value < cost(data, best) * (1 - 1e-12):
            copy_state(current, best)
            clock[1] = 0
        elif aspiring or not closed or value > cost(data, spare) * (1 + 1e-12):
            copy_state(spare, current)
        if restarts and clock[1] > PATIENCE * (1 + len(held) // 8):
            clock[1] = 0
            copy_state(best, current)
            _shake(data, current, tabu_a, tabu_b, now, seed)


@compiled
def _shake(data: Data, state: State, tabu_a: Integers, tabu_b: Integers, now: int, seed: NDArray[np.uint64]) -> None:
    """Publish some slices of the pattern, and close it in another way."""
    touched = np.zeros(data.a.shape[0], np.bool_)
    held = _held(data, state)
    if len(held) == 0:
        return
    for _ in range(min(1 + len(held) // 9, SHAKEN)):
        _publish_slice(data, state, held[draw(seed, len(held))], tabu_a, tabu_b, now + 10, touched)
    close_all(data, state, tabu_a, tabu_b, now, seed, 2 * NOISE)
    touched[:] = True
    drop_redundant(data, state, _order(data, state, touched, seed))


@compiled
def _held(data: Data, state: State) -> Integers:
    """The numbers of the withheld entries that may be published."""
    rows, columns = data.a.shape[1], data.b.shape[1]
    found = np.empty(state.count_a.sum() + state.count_b.sum(), np.int64)
    count = 0
    for j in range(data.a.shape[0]):
        if state.count_a[j] > 0:
            for i in range(rows):
                if state.held_a[j, i] and data.live_a[j, i]:
                    found[count] = j * rows + i
                    count += 1
        if state.count_b[j] > 0:
            for k in range(columns):
                if state.held_b[j, k] and data.live_b[j, k]:
                    found[count] = data.a.size + j * columns + k
                    count += 1
    return found[:count]


@compiled
def _publish(
    data: Data, state: State, number: int, tabu_a: Integers, tabu_b: Integers, until: int, touched: NDArray[np.bool_]
) -> None:
    """Publish one entry, and forbid it for a while."""
    j, side, x, held, _ = entry(data, state, number)
    if held:
        flip(data, state, j, side, x)
    if side == 0:
        tabu_a[j, x] = until
    else:
        tabu_b[j, x] = until
    touched[j] = True


@compiled
def _publish_slice(
    data: Data, state: State, number: int, tabu_a: Integers, tabu_b: Integers, until: int, touched: NDArray[np.bool_]
) -> None:
    """Publish all entries of the slice that an entry stands in."""
    rows, columns = data.a.shape[1], data.b.shape[1]
    j = entry(data, state, number)[0]
    for x in range(rows + columns):
        other = j * rows + x if x < rows else data.a.size + j * columns + x - rows
        _, _, _, held, live = entry(data, state, other)
        if held and live:
            _publish(data, state, other, tabu_a, tabu_b, until, touched)


@compiled
def _mark_changed(state: State, before: State, touched: NDArray[np.bool_]) -> None:
    for j in range(len(touched)):
        if state.count_a[j] != before.count_a[j] or state.count_b[j] != before.count_b[j]:
            touched[j] = True


@compiled
def _order(data: Data, state: State, touched: NDArray[np.bool_], seed: NDArray[np.uint64]) -> Integers:
    """The withheld entries to look at for redundancies: those of changed slices, and some others; dear ones first."""
    held = _held(data, state)
    chosen, price = np.empty(len(held), np.int64), np.empty(len(held))
    count = 0
    everything = data.a.size + data.b.size <= SMALL
    for number in held:
        j, side, x, _, _ = entry(data, state, number)
        if everything or touched[j] or draw(seed, len(held)) < OTHERS:
            own = data.cost_a[j, x] if side == 0 else data.cost_b[j, x]
            chosen[count], price[count] = number, own * (1 + draw(seed, 1024) / 256)
            count += 1
    _sort_down(chosen, price, count)
    return chosen[:count]


@compiled
def _sort_down(chosen: Integers, price: Floats, count: int) -> None:
    """Sort entries by falling price, in place (Shell's sort: short to compile)."""
    gap = count // 2
    while gap > 0:
        for at in range(gap, count):
            number, own, place = chosen[at], price[at], at
            while place >= gap and price[place - gap] < own:
                chosen[place], price[place] = chosen[place - gap], price[place - gap]
                place -= gap
            chosen[place], price[place] = number, own
        gap //= 2
