"""Directions to begin with: which sensitive cells rise and which fall, before anything is solved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tablesafe.core.equations import Floats
from tablesafe.core.problem import Problem
from tablesafe.methods.adjust.aims import DirectionsName
from tablesafe.methods.adjust.direction_search import Search
from tablesafe.methods.adjust.instance import LARGE, Instance, Way

SWEEPS = 32
"""Margins of margins of margins: each sweep settles one more level."""


def alternating(problem: Problem, instance: Instance) -> Way:
    """Up and down in turn by ascending value; sensitive margins go where their parts, together, take them.

    Dandekar & Cox, "Synthetic Tabular Data" (2002). The order is read from their Table 4, in which the 24 sensitive
    cells rise and fall exactly so: a total with a single part that can move is that part, and takes no turn of its own.
    A margin whose sensitive parts cancel out keeps its turn.
    """
    table = problem.table
    cells = instance.cells[instance.targets]
    margin = table.is_total[cells]
    way = _in_turn(np.abs(table.value[cells]), _same(instance))
    level = np.maximum(instance.above, instance.below)
    for _ in range(SWEEPS if margin.any() else 0):
        net = _net(problem, cells, np.where(way > 0, level, -level))
        turned = np.where(margin & (net != 0), np.sign(net), way).astype(np.int8)
        if (turned == way).all():
            break
        way = turned
    return instance.allowed(way)


def _in_turn(size: Floats, same: NDArray[np.int32]) -> Way:
    """The smallest rises, the next falls; cells of one number count once."""
    order = np.argsort(size, kind="stable")
    _, first, where = np.unique(same[order], return_index=True, return_inverse=True)
    turn = np.argsort(np.argsort(first))[where]
    way = np.empty(len(size), dtype=np.int8)
    way[order] = np.where(turn % 2 == 0, 1, -1)
    return way


def _same(instance: Instance) -> NDArray[np.int32]:
    """A number per target, equal for those that must move alike: all that is left of a sum are the two of them."""
    rows = sparse.csr_array(instance.matrix)
    pairs = rows[np.flatnonzero(np.diff(rows.indptr) == 2)]
    alike = pairs[np.flatnonzero(np.asarray(pairs.sum(axis=1)).ravel() == 0)]
    ends = alike.indices.reshape(-1, 2)
    count = len(instance.cells)
    graph = sparse.coo_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1][instance.targets], dtype=np.int32)


def _net(problem: Problem, cells: NDArray[np.intp], moves: Floats) -> Floats:
    """By how much the parts of each of these cells move, over all equations of which it is the total."""
    table = problem.table
    moved = np.zeros(len(table))
    moved[cells] = moves
    own = np.zeros(len(table))
    parts = table.equations.astype(np.float64) @ moved + moved[table.totals]
    np.add.at(own, table.totals, parts)
    return own[cells]


def uniform(instance: Instance, sign: int) -> Way:
    """All the same way, where there is room."""
    return instance.allowed(np.full(len(instance.targets), sign, dtype=np.int8))


def drawn(instance: Instance, random: np.random.Generator) -> Way:
    """A coin per target, where there is room on both sides."""
    return instance.allowed(np.where(random.random(len(instance.targets)) < 0.5, 1, -1).astype(np.int8))


def leaning(instance: Instance, lean: Floats, random: np.random.Generator | None = None) -> Way:
    """Where the relaxation leans to (1 = rise); with `random` a coin weighted by it."""
    limit = 0.5 if random is None else random.random(len(lean))
    return instance.allowed(np.where(lean >= limit, 1, -1).astype(np.int8))


# Which directions to try in which order: by what the user asked for, and by what a table of that size allows.


FEW = 160
"""Targets up to which one program over all directions deserves most of the time."""


def first(problem: Problem, instance: Instance, directions: DirectionsName, random: np.random.Generator) -> Way:
    """The directions to begin with."""
    if directions == "random":
        return drawn(instance, random)
    if directions in {"up", "down"}:
        return uniform(instance, 1 if directions == "up" else -1)
    return alternating(problem, instance)


def find(problem: Problem, search: Search, directions: DirectionsName, *, tries: int, start: Way | None = None) -> None:
    """Fill the search with the best directions that were asked for; `start` is feasible, where that is known."""
    search.offer(first(problem, search.instance, directions, search.random) if start is None else start)
    if search.long and not search.deep:
        search.settle()
    if directions == "random":
        for _ in range(tries - 1):
            if search.left <= 0 or search.deep:
                break
            search.offer(drawn(search.instance, search.random), repair=start is None)
    search.relax()
    if directions in {"search", "blocks", "optimal"}:
        if search.deep or len(search.instance.cells) > 2 * LARGE:
            search.regions()
        else:
            _improve(search, directions)


def _improve(search: Search, directions: DirectionsName) -> None:
    """Flip, free blocks, and, for `optimal`, let one program over all directions take it from there."""
    instance, targets, optimal = search.instance, len(search.instance.targets), directions == "optimal"
    assert search.lean is not None
    for way in (leaning(instance, search.lean), uniform(instance, 1), uniform(instance, -1)):
        if search.left > 0:
            search.offer(way, repair=False)
    if search.long:  # a program over all cells takes seconds even for one direction: region after region saves more
        search.regions()
    share = 1.0 if not optimal else 0.2 if targets <= FEW else 0.6
    whole, search.budget = search.budget, search.budget.child(search.left * share + search.reserved)
    if directions != "blocks":
        search.flip(time_limit_s=search.left / 3)
    search.free_blocks(patience=2 + targets // 16 if optimal else 4 + targets // 8)
    search.budget = whole
    if optimal and search.left > 0 and not search.closed():
        search.optimise()
