"""Random moves that keep every sum and every expected value, until each unknown arrives at one of its bounds.

A move goes up or down so far that an unknown arrives; the chance of either is such that nothing changes on average. In
a network the moves are circulations around cycles, found by walking on from arc to arc; elsewhere they are the
solutions of the equations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Mask
from tablesafe.solve.exact.nullspace import null_space
from tablesafe.solve.incidence import network_of
from tablesafe.work.budget import Budget

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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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
