"""Random moves that keep every sum and every expected value, until each unknown arrives at one of its bounds.

A move goes up or down so far that an unknown arrives; the chance of either is such that nothing changes on average. In
a network the moves are circulations around cycles, found by walking on from arc to arc; elsewhere they are the
solutions of the equations.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.round.controlled import Rounded, round_controlled
from tablesafe.methods.round.grid import Grid
from tablesafe.solve.exact.nullspace import null_space
from tablesafe.solve.network import network_of
from tablesafe.work.budget import Budget
from tablesafe.work.compiled import compiled

THERE = 1e-9
"""An unknown this near to a bound has arrived."""


def walk(
    matrix: sparse.csr_array, at: Floats, low: Floats, high: Floats, random: np.random.Generator, budget: Budget
) -> Floats:
    """Where the unknowns of `matrix @ x = constant` are when nothing can move any more, or the time is up.

    Unknowns without an upper bound only follow the others.
    """
    place = at.copy()
    bounded = np.isfinite(high)
    few = np.diff(matrix.tocsc().indptr) <= 2
    for part in (few & bounded, bounded):
        _around_cycles(matrix, place, low, high, np.flatnonzero(part & _between(place, low, high)), random)
    while not budget.over:
        open_ = np.flatnonzero(_between(place, low, high))
        if not bounded[open_].any() or not _along_solutions(matrix, place, low, high, open_, random):
            break
    return place


def _between(at: Floats, low: Floats, high: Floats) -> Mask:
    return (at > low + THERE) & (at < high - THERE)


def _part(matrix: sparse.csr_array, columns: NDArray[np.intp]) -> sparse.csr_array:
    part = sparse.csr_array(matrix.tocsc()[:, columns])
    return sparse.csr_array(part[np.flatnonzero(np.diff(part.indptr))])


def _around_cycles(
    matrix: sparse.csr_array, at: Floats, low: Floats, high: Floats, open_: NDArray[np.intp],
    random: np.random.Generator,
) -> None:  # fmt: skip
    """Walk in the network of these unknowns, where they form one; all sums of them keep their value."""
    network = network_of(_part(matrix, open_)) if open_.size else None
    if network is None:
        return
    place = at[open_]
    _cycles(
        network.tail, network.head, network.start, network.arcs, place, low[open_], high[open_], random,
    )  # fmt: skip
    at[open_] = place


@compiled
def _cycles(tail: Any, head: Any, start: Any, arcs: Any, at: Any, low: Any, high: Any, random: Any) -> None:
    """Extend a path until it meets itself; send a random amount around the cycle; drop the arcs that arrived.

    `first[v]` is the first arc of a node that may still be open. A path that gets stuck gives up its last arc: it lies
    on no cycle.
    """
    nodes = len(start) - 1
    done = np.zeros(len(tail), dtype=np.bool_)
    first = start[:-1].copy()
    on_path = np.full(nodes, -1, dtype=np.int64)
    path_node, path_arc = np.empty(nodes + 1, dtype=np.int64), np.empty(nodes + 1, dtype=np.int64)
    for j in range(len(tail)):
        if tail[j] == head[j]:
            up = random.random() * (high[j] - low[j]) < at[j] - low[j]
            at[j] = high[j] if up else low[j]
            done[j] = True
    for root in range(nodes):
        size = 0
        path_node[0] = root
        on_path[root] = 0
        while True:
            v = path_node[size]
            came = path_arc[size - 1] if size > 0 else -1
            found = -1
            while first[v] < start[v + 1] and done[arcs[first[v]]]:
                first[v] += 1
            for entry in range(first[v], start[v + 1]):
                if not done[arcs[entry]] and arcs[entry] != came:
                    found = arcs[entry]
                    break
            if found < 0:
                on_path[v] = -1
                if size == 0:
                    break
                done[came] = True  # on no cycle
                size -= 1
                continue
            w = head[found] if tail[found] == v else tail[found]
            path_arc[size] = found
            if on_path[w] < 0:
                size += 1
                path_node[size] = w
                on_path[w] = size
                continue
            begin = on_path[w]
            _send(tail, path_node, path_arc, begin, size, at, low, high, done, random)
            for k in range(begin + 1, size + 1):
                on_path[path_node[k]] = -1
            size = begin


@compiled
def _send(
    tail: Any,
    path_node: Any,
    path_arc: Any,
    begin: int,
    end: int,
    at: Any,
    low: Any,
    high: Any,
    done: Any,
    random: Any,
) -> None:
    """Send an amount around the cycle, one way or the other, that leaves every expected value as it is."""
    up, down = np.inf, np.inf
    for k in range(begin, end + 1):
        j = path_arc[k]
        above, below = high[j] - at[j], at[j] - low[j]
        if tail[j] != path_node[k]:
            above, below = below, above
        up, down = min(up, above), min(down, below)
    by = up if random.random() * (up + down) < down else -down
    for k in range(begin, end + 1):
        j = path_arc[k]
        at[j] += by if tail[j] == path_node[k] else -by
        if at[j] <= low[j] + THERE:
            at[j], done[j] = low[j], True
        elif at[j] >= high[j] - THERE:
            at[j], done[j] = high[j], True


def _along_solutions(
    matrix: sparse.csr_array, at: Floats, low: Floats, high: Floats, open_: NDArray[np.intp],
    random: np.random.Generator,
) -> bool:  # fmt: skip
    """Move along a basis of the solutions; whether anything moved."""
    space = null_space(_part(matrix, open_))
    if space is None or not space.dimension:
        return False
    forms = sparse.csr_array(space.forms[np.maximum(space.form, 0)]).astype(np.float64)
    row = np.repeat(np.arange(len(open_)), np.diff(forms.indptr))
    forms.data = forms.data * np.where(space.form >= 0, 1.0 / space.divisor, 0.0)[row]
    forms.eliminate_zeros()
    moves, place = forms.tocsc(), at[open_]
    shortest = np.argsort(np.diff(moves.indptr) + random.random(moves.shape[1]))
    moved = _moved(
        moves.indptr, moves.indices, moves.data, place, low[open_], high[open_], shortest,
        random.random(moves.shape[1]),
    )  # fmt: skip
    at[open_] = place
    return bool(moved)


@compiled
def _moved(start: Any, index: Any, times: Any, at: Any, low: Any, high: Any, order: Any, chance: Any) -> int:
    """Make every move all of whose unknowns are still in between; moves that share unknowns follow each other."""
    moved = 0
    for j in order:
        up, down, useful = np.inf, np.inf, False
        for e in range(start[j], start[j + 1]):
            i = index[e]
            useful |= np.isfinite(high[i])
            above, below = (high[i] - at[i]) / abs(times[e]), (at[i] - low[i]) / abs(times[e])
            if times[e] < 0:
                above, below = below, above
            up, down = min(up, above), min(down, below)
        if not useful or up <= THERE or down <= THERE or np.isinf(up) or np.isinf(down):
            continue
        by = up if chance[j] * (up + down) < down else -down
        for e in range(start[j], start[j + 1]):
            i = index[e]
            at[i] += by * times[e]
            if at[i] <= low[i] + THERE:
                at[i] = low[i]
            elif at[i] >= high[i] - THERE:
                at[i] = high[i]
        moved += 1
    return moved


# Unbiased controlled rounding: by chance, every sum kept, and the expected value of every cell is its count.
#
# Cox, "A constructive procedure for unbiased controlled rounding", JASA 82 (1987), moves a table along closed paths
# of cells that are not yet rounded, up or down with chances that leave every expected value as it is, until a cell
# arrives at a neighbour. Here the paths are any moves that keep all sums: the same in two dimensions, and defined in
# all others. Where no move is left while cells are still in between (two hierarchies, three and more dimensions), the
# rest is rounded together, each cell up with its own chance unless the sums forbid it.


WALK = 0.4
"""The part of the time for moves by chance; the rest is for what they leave."""


def round_unbiased(grid: Grid, time_limit_s: float, seed: int) -> Rounded:
    """Draw a rounding; where chance alone does not finish it, say so and round the rest with the same chances."""
    begin = monotonic()
    grid.counts.require_multiples_where_frozen()
    random = np.random.default_rng(seed)
    drawn = _walked(grid, random, Budget(WALK * time_limit_s))
    steps = np.where(grid.hidden, grid.low, np.floor(drawn + THERE)).astype(np.int64)
    between = (drawn - steps > THERE) & ~grid.hidden
    if not between.any() and not grid.hidden.any() and grid.adds_up(steps):
        return Rounded(steps * grid.step, grid.beyond(steps), None, proven=False, by_chance=True)
    if between.any():
        warnings.warn(
            f"{int(between.sum()):,} of {int((grid.high > grid.low).sum()):,} cells could not be rounded one by one "
            "so that every sum holds; they were rounded together: their expected values are only nearly the counts.",
            stacklevel=5,
        )
    rest = round_controlled(
        _pulled(grid, drawn, steps, between, random), max(time_limit_s - (monotonic() - begin), 0.1)
    )
    return Rounded(rest.values, rest.beyond, None, rest.proven)


def _pulled(grid: Grid, drawn: Floats, steps: Integers, between: Mask, random: np.random.Generator) -> Grid:
    """What chance decided stays as far as can be; cells in between go up when their part of a step exceeds a threshold.

    Thresholds are random, so that every cell goes up with its own chance unless the sums forbid it.
    """
    pull = np.where(between, random.random(len(drawn)) - (drawn - steps), np.where(drawn > grid.low, -1.0, 1.0))
    return replace(grid, pull=pull)


def _walked(grid: Grid, random: np.random.Generator, budget: Budget) -> Floats:
    """Where chance takes every cell from its count, in steps; the walk itself is in whole counts, so it is exact."""
    low, high = (grid.low * grid.step).astype(np.float64), (grid.high * grid.step).astype(np.float64)
    low[grid.hidden], high[grid.hidden] = 0.0, np.inf
    equations = sparse.csr_array(grid.counts.table.equations).astype(np.int64)
    return walk(equations, grid.counts.value.astype(np.float64), low, high, random, budget) / grid.step
