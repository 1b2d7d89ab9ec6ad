"""Cheapest flows: in a table that is a network, the cheapest way to move one cell is a flow around it.

Successive shortest paths take the place of a linear program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tablesafe.core.equations import Floats
from tablesafe.solve.incidence import Network
from tablesafe.work.compiled import compiled

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
