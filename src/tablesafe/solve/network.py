"""Tables that are networks, and minimum-cost flows in them.

In a table of two dimensions, of which at most one has a hierarchy, every cell can be made to stand in two equations
with opposite signs: cells are arcs, equations are nodes, and a change of the table that keeps all sums is a
circulation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.work.compiled import compiled

TRIALS = 3
"""Random combinations of the equations left out that must follow from the others."""


@dataclass(frozen=True, eq=False)
class Network:
    """Arcs between nodes: a unit more in arc j is a unit out of `tail[j]` and into `head[j]`."""

    tail: Integers = field(repr=False)
    head: Integers = field(repr=False)
    start: Integers = field(repr=False)
    """Where the arcs of each node begin in `arcs`."""
    arcs: Integers = field(repr=False)

    @property
    def nodes(self) -> int:
        """How many nodes there are; the last one is the world outside."""
        return len(self.start) - 1


def network_of(matrix: Any) -> Network | None:
    """The network whose circulations are exactly the solutions of `matrix @ y = 0`; None where there is none.

    Equations that follow from others may be left out so that every column keeps two. Which, depends on the order in
    which they are taken: those of one dimension first, then those of the other, or with the fullest columns last.
    """
    rows = sparse.csr_array(matrix).astype(np.int64)
    if rows.nnz and not bool((np.abs(rows.data) == 1).all()):
        return None
    per_column = np.bincount(rows.indices, minlength=rows.shape[1])
    crowded = np.asarray(rows.astype(bool).astype(np.float64) @ (per_column > 2)) / np.maximum(np.diff(rows.indptr), 1)
    forward = np.arange(rows.shape[0])
    for order in (forward, forward[::-1], np.argsort(crowded, kind="stable")):
        taken = _two_per_column(rows.indptr, rows.indices, order.astype(np.int64), rows.shape[1])
        found = _with_signs(rows, taken)
        if found is not None and _implied(found, rows, taken):
            return found
    return None


@compiled
def _two_per_column(start: Any, index: Any, order: Any, columns: int) -> Any:
    """Which rows are taken when each is, unless one of its columns has two already."""
    count = np.zeros(columns, dtype=np.int8)
    taken = np.zeros(len(order), dtype=np.bool_)
    for row in order:
        fits = True
        for entry in range(start[row], start[row + 1]):
            if count[index[entry]] == 2:
                fits = False
                break
        if fits:
            taken[row] = True
            for entry in range(start[row], start[row + 1]):
                count[index[entry]] += 1
    return taken


def _with_signs(rows: sparse.csr_array, taken: Mask) -> Network | None:
    """The network of the taken rows, each perhaps turned around so that the two entries of a column differ."""
    chosen = rows[np.flatnonzero(taken)].tocsc()
    m, n = chosen.shape
    width = np.diff(chosen.indptr)
    first = np.where(width > 0, chosen.indptr[:-1], 0)
    second = np.where(width > 1, chosen.indptr[:-1] + 1, 0)
    node = np.append(chosen.indices, m) if chosen.nnz else np.array([m])
    sign = np.append(chosen.data, 1) if chosen.nnz else np.array([1])
    one, other = np.where(width > 0, node[first], m), np.where(width > 1, node[second], m)
    a, b = np.where(width > 0, sign[first], 1), np.where(width > 1, sign[second], 1)
    turn = _turns(one[width == 2], other[width == 2], (a * b)[width == 2] > 0, m)
    if turn is None:
        return None
    into_one = a * np.append(turn, 1)[one] > 0
    tail, head = np.where(into_one, other, one), np.where(into_one, one, other)
    ends = np.concatenate([tail, head])
    arc = np.concatenate([np.arange(n), np.arange(n)])
    order = np.argsort(ends, kind="stable")
    start = np.searchsorted(ends[order], np.arange(m + 2))
    return Network(tail.astype(np.int64), head.astype(np.int64), start.astype(np.int64), arc[order].astype(np.int64))


def _turns(one: NDArray[Any], other: NDArray[Any], differ: Mask, m: int) -> NDArray[Any] | None:
    """±1 per row so that rows joined by a column are turned alike or, where `differ`, not; None if that cannot be.

    Every row stands twice, as it is and turned around; what must go together is joined. A row joined to its own turned
    self is a contradiction.
    """
    partner = np.where(differ, other + m, other), np.where(differ, other, other + m)
    ends = (np.concatenate([one, one + m]), np.concatenate(partner))
    graph = sparse.coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(2 * m, 2 * m))
    _, label = csgraph.connected_components(graph, directed=False)
    if (label[:m] == label[m:]).any():
        return None
    return np.where(label[:m] < label[m:], 1, -1)


def _implied(network: Network, rows: sparse.csr_array, taken: Mask) -> bool:
    """Whether the equations left out follow from those taken: a combination of them is a difference of potentials."""
    left = np.flatnonzero(~taken)
    if not left.size:
        return True
    random = np.random.default_rng(20240229)
    for _ in range(TRIALS):
        weight = random.integers(1, 2**20, size=len(left))
        combined = np.asarray(rows[left].T @ weight)
        if not _is_difference(network.tail, network.head, network.start, network.arcs, combined):
            return False
    return True


@compiled
def _is_difference(tail: Any, head: Any, start: Any, arcs: Any, given: Any) -> bool:
    """Whether numbers on the arcs are differences of numbers on the nodes."""
    nodes = len(start) - 1
    potential = np.zeros(nodes, dtype=np.int64)
    seen = np.zeros(nodes, dtype=np.bool_)
    queue = np.empty(nodes, dtype=np.int64)
    for root in range(nodes):
        if seen[root]:
            continue
        seen[root] = True
        queue[0] = root
        read, written = 0, 1
        while read < written:
            u = queue[read]
            read += 1
            for entry in range(start[u], start[u + 1]):
                j = arcs[entry]
                v = head[j] if tail[j] == u else tail[j]
                if not seen[v]:
                    seen[v] = True
                    potential[v] = potential[u] + (given[j] if tail[j] == u else -given[j])
                    queue[written] = v
                    written += 1
    return bool(np.all(given == potential[head] - potential[tail]))


# Cheapest flows: in a table that is a network, the cheapest way to move one cell is a flow around it.
#
# Successive shortest paths take the place of a linear program.


TINY = 1e-12
"""Less than this part of a flow is nothing."""


def cheapest_circulation(
    network: Network, arc: int, amount: float, up: Floats, down: Floats, price_up: Floats, price_down: Floats
) -> Floats | None:
    """The cheapest circulation that sends `amount` through one arc; None where there is none.

    Arc j may carry from `-down[j]` to `up[j]`, at a price per unit in either direction, never negative.
    """
    if network.tail[arc] == network.head[arc]:
        flow = np.zeros(len(up))
    else:
        ends = (network.head[arc], network.tail[arc]) if amount > 0 else (network.tail[arc], network.head[arc])
        flow, left = _cheapest_flow(
            network.tail, network.head, network.start, network.arcs, ends[0], ends[1], abs(amount), arc,
            up, down, price_up, price_down,
        )  # fmt: skip
        if left > TINY * abs(amount):
            return None
    flow[arc] = amount
    return np.asarray(flow)


@compiled
def _cheapest_flow(
    tail: Any, head: Any, start: Any, arcs: Any, source: int, sink: int, amount: float, skipped: int,
    up: Any, down: Any, price_up: Any, price_down: Any,
) -> Any:  # fmt: skip
    """Successive shortest paths from source to sink: the flow, and how much could not be sent."""
    flow, potential = np.zeros(len(up)), np.zeros(len(start) - 1)
    left, tiny = amount, TINY * amount
    while left > tiny:
        distance, by = _shortest_paths(
            tail, head, start, arcs, source, sink, skipped, up, down, price_up, price_down, flow, potential, tiny
        )
        if not np.isfinite(distance[sink]):
            break
        potential += np.minimum(distance, distance[sink])
        step, v = left, sink
        while v != source:
            j = by[v]
            if head[j] == v:
                step = min(step, up[j] - flow[j] if flow[j] > -tiny else -flow[j])
            else:
                step = min(step, down[j] + flow[j] if flow[j] < tiny else flow[j])
            v = tail[j] if head[j] == v else head[j]
        v = sink
        while v != source:
            j = by[v]
            flow[j] += step if head[j] == v else -step
            v = tail[j] if head[j] == v else head[j]
        left -= step
    return flow, max(left, 0.0)


@compiled
def _shortest_paths(
    tail: Any, head: Any, start: Any, arcs: Any, source: int, sink: int, skipped: int,
    up: Any, down: Any, price_up: Any, price_down: Any, flow: Any, potential: Any, tiny: float,
) -> Any:  # fmt: skip
    """Dijkstra in what is left of the network, as far as the sink: distances, and the arc by which a node is reached.

    Taking flow back earns its price; the potentials make up for that, so no distance is negative.
    """
    nodes = len(start) - 1
    distance, done = np.full(nodes, np.inf), np.zeros(nodes, dtype=np.bool_)
    by = np.empty(nodes, dtype=np.int64)
    keys, heap = np.empty(len(arcs) + 2), np.empty(len(arcs) + 2, dtype=np.int64)
    distance[source] = 0.0
    size = _push(keys, heap, 0, 0.0, source)
    while size > 0:
        u = heap[0]
        size = _pop(keys, heap, size)
        if done[u]:
            continue
        done[u] = True
        if u == sink:
            break
        for entry in range(start[u], start[u + 1]):
            j = arcs[entry]
            forward = tail[j] == u
            v = head[j] if forward else tail[j]
            if j == skipped or done[v]:
                continue
            if (up[j] - flow[j] if forward else down[j] + flow[j]) <= tiny:
                continue
            if forward:
                price = price_up[j] if flow[j] > -tiny else -price_down[j]
            else:
                price = price_down[j] if flow[j] < tiny else -price_up[j]
            new = distance[u] + max(price + potential[u] - potential[v], 0.0)
            if new < distance[v]:
                distance[v], by[v] = new, j
                size = _push(keys, heap, size, new, v)
    for v in range(nodes):
        if not done[v] and distance[v] < distance[sink]:
            distance[v] = distance[sink]
    return distance, by


@compiled
def _push(keys: Any, heap: Any, size: int, key: float, node: int) -> Any:
    """Put a node into the heap; the new size."""
    at = size
    while at > 0 and keys[(at - 1) // 2] > key:
        keys[at], heap[at] = keys[(at - 1) // 2], heap[(at - 1) // 2]
        at = (at - 1) // 2
    keys[at], heap[at] = key, node
    return size + 1


@compiled
def _pop(keys: Any, heap: Any, size: int) -> Any:
    """Take the first node out of the heap; the new size."""
    size -= 1
    key, node, at = keys[size], heap[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at], heap[at] = keys[child], heap[child]
        at = child
    keys[at], heap[at] = key, node
    return size
