"""A pattern suggested from the top down: one exact suppression problem for each subtable.

A subtable is a code with its parts in every dimension. From the top to the finest, each is protected at the least cost
by branch and cut, with what was withheld before (HiTaS: de Wolf, Privacy in Statistical Databases, 2002). A cell that
an upper subtable withholds must be able to move in the lower ones too, and a lower one may withhold what an upper one
published, at a higher price: then that one is looked at again.

Deviations of subtables do not add up to one of the table: what is suggested is cheap, and most targets are protected by
it, but not all. See `tablesafe.methods.suppress.simultaneous` for the rest.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import product

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import SolverFailure
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.machine import cores
from tablesafe.methods.suppress.branch_and_cut.exact import least_costly
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.pattern import CannotProtect
from tablesafe.solve.hypercubes import Hypercubes
from tablesafe.solve.neighbourhood import spans
from tablesafe.work.budget import Budget
from tablesafe.work.executor import in_order, workers

LARGEST = 2_000
"""Cells of a subtable beyond which it is left out."""
WORK_EACH = 0.3
SECONDS_EACH = 3.0
"""Work, and time, after which the best pattern of a subtable has to do."""
AGAIN = 2.0
"""How many times its cost a cell is said to cost that an upper subtable published: others have to follow."""
SHARE = 0.01
"""Of its room, how far a cell must move at least that is withheld for others."""
TURNS = 6
"""How often a subtable is looked at at most."""
TYPICAL_S = 0.04
"""Seconds that a subtable takes: whether it is worth while to share them out."""
WAVE = 8
"""Subtables of one depth, without a common cell, that are looked at at once, however many processes there are."""


class Subtables:
    """The subtables of a product of trees: their cells, and the equations among these."""

    def __init__(self, instance: Instance, dimensions: Sequence[Hierarchy], cubes: Hypercubes) -> None:
        axes = [_families(hierarchy) for hierarchy in dimensions]
        self._instance, self._cubes = instance, cubes
        self.cells: list[Integers] = []
        self.rows: list[Integers] = []
        depth: list[int] = []
        inside = np.zeros(len(instance), dtype=np.bool_)
        for families in product(*axes):
            keys = np.zeros(1, dtype=np.int64)
            for k, (_, codes) in enumerate(families):
                keys = (keys[:, None] + codes * cubes.stride[k]).ravel()
            cells = cubes.index[keys]
            cells = np.sort(cells[cells >= 0]).astype(np.int64)
            if 2 <= len(cells) <= LARGEST:
                self.cells.append(cells)
                self.rows.append(self._within(cells, inside))
                depth.append(sum(level for level, _ in families))
        self.depth = np.array(depth, dtype=np.int64)
        every = np.concatenate(self.cells) if self.cells else np.zeros(0, np.int64)
        number = np.repeat(np.arange(len(self.cells)), [len(cells) for cells in self.cells])
        order = np.argsort(every, kind="stable")
        self._number, self._start = number[order], np.searchsorted(every[order], np.arange(len(instance) + 1))

    def __len__(self) -> int:
        return len(self.cells)

    def of(self, cells: Integers) -> Integers:
        """The subtables that hold some of these cells."""
        return np.unique(self._number[spans(self._start, cells)[0]])

    def around(self, cells: Integers) -> Integers:
        """All cells of the subtables that hold some of these."""
        return np.unique(np.concatenate([cells, *(self.cells[i] for i in self.of(cells).tolist())]))

    def most_below(self, need: Floats) -> Floats:
        """For each cell the largest need of the cells that are parts of it, or parts of these."""
        most, cubes = need.copy(), self._cubes
        for k in range(cubes.codes.shape[1]):
            chain, begin = cubes.chain[cubes.leaves[k] : cubes.leaves[k + 1]], cubes.codes[:, k]
            above = np.full(cubes.first.shape[1], -1, dtype=np.int64)
            for depth in range(chain.shape[1] - 1):
                own = chain[:, depth + 1] >= 0
                above[chain[own, depth]] = chain[own, depth + 1]
            now = most.copy()
            code = above[begin]
            while (code >= 0).any():
                at = np.flatnonzero(code >= 0)
                upper = cubes.index[cubes.codes[at] @ cubes.stride + (code[at] - begin[at]) * cubes.stride[k]]
                np.maximum.at(now, upper[upper >= 0], most[at[upper >= 0]])
                code = np.where(code >= 0, above[code], -1)
            most = now
        return most

    def _within(self, cells: Integers, inside: Mask) -> Integers:
        """The equations all of whose cells are among these."""
        rows, columns = self._instance.rows, self._instance.columns
        met = np.unique(columns.indices[spans(columns.indptr, cells)[0]])
        entries, length = spans(rows.indptr, met)
        inside[cells] = True
        whole = np.add.reduceat(inside[rows.indices[entries]], np.cumsum(length) - length, dtype=np.int64) == length
        inside[cells] = False
        return np.asarray(met[whole], dtype=np.int64)


def _families(hierarchy: Hierarchy) -> list[tuple[int, Integers]]:
    """Every code that has parts, with these, and how far below the top it stands."""
    above: dict[int, int] = {}
    found = []
    for equation in hierarchy.as_equations():
        total, parts = hierarchy.position(equation.total), [hierarchy.position(part) for part in equation.parts]
        above.update(dict.fromkeys(parts, total))
        found.append((total, parts))
    out = []
    for total, parts in found:
        depth, code = 0, total
        while code in above:
            depth, code = depth + 1, above[code]
        out.append((depth, np.array([total, *parts], dtype=np.int64)))
    return out or [(0, np.arange(len(hierarchy), dtype=np.int64))]


def from_the_top(
    instance: Instance,
    subtables: Subtables,
    rise: Floats,
    fall: Floats,
    budget: Budget,
    executor: Executor | None = None,
) -> Mask:
    """What subtables withhold, each by itself, from the top down; as far as the budget reaches."""
    withheld, decided = instance.forced.copy(), np.zeros(len(instance), dtype=np.bool_)
    least = subtables.most_below(np.maximum(rise, fall))
    queue = [(int(subtables.depth[i]), i) for i in range(len(subtables))]
    heapq.heapify(queue)
    waiting = np.ones(len(subtables), dtype=np.bool_)
    turns = np.zeros(len(subtables), dtype=np.int64)
    with workers(executor, TYPICAL_S * len(subtables)) as pool:
        while queue and not budget.over:
            wave = next_wave(queue, subtables, len(instance))
            waiting[wave] = False
            parts = []
            for i in wave:
                cells = subtables.cells[i]
                parts.append(
                    _part(instance, cells, subtables.rows[i], withheld[cells], decided[cells], rise, fall, least)
                )
            tasks = [(part, budget.child(SECONDS_EACH, work=WORK_EACH)) for part in parts]
            found = in_order(_cheapest, tasks, [1.0] * len(tasks), pool)
            if pool is not None:  # what others did at the same time was not counted here
                budget.count(sum(work for _, work in found) / min(cores(), len(tasks)))
            fresh = []
            for i, part, (pattern, _) in zip(wave, parts, found, strict=True):
                fresh.append(subtables.cells[i][pattern & ~part.forced])
                withheld[fresh[-1]] = True
                decided[subtables.cells[i]] = True
                turns[i] += 1
            for own, new in zip(wave, fresh, strict=True):
                for other in subtables.of(new).tolist() if new.size else ():
                    if other != own and not waiting[other] and 0 < turns[other] < TURNS:
                        heapq.heappush(queue, (int(subtables.depth[other]), other))
                        waiting[other] = True
    return withheld


def next_wave(queue: list[tuple[int, int]], subtables: Subtables, n: int) -> list[int]:
    """The first subtables of a queue that have the same depth and no cell in common; they are taken from it."""
    taken, wave, others = np.zeros(n, dtype=np.bool_), list[int](), list[tuple[int, int]]()
    depth = queue[0][0]
    while queue and queue[0][0] == depth and len(wave) < WAVE and len(others) < WAVE * WAVE:
        first = heapq.heappop(queue)
        cells = subtables.cells[first[1]]
        if taken[cells].any():
            others.append(first)
        else:
            taken[cells] = True
            wave.append(first[1])
    for each in others:
        heapq.heappush(queue, each)
    return wave


def _part(
    instance: Instance,
    cells: Integers,
    rows: Integers,
    forced: Mask,
    decided: Mask,
    rise: Floats,
    fall: Floats,
    least: Floats,
) -> Instance:
    """A subtable as a problem of its own: its sensitive cells must move, and what is withheld for others.

    The latter as far as any sensitive cell below it must: else that could not move in the subtables above its own.
    """
    matrix = sparse.csr_array(instance.rows[rows][:, cells])
    room = np.minimum(instance.up[cells], instance.down[cells])
    room = np.where(forced, np.minimum(np.maximum(least[cells], SHARE * room), room), 0.0)
    above, below = (np.where(need[cells] > 0, need[cells], room) for need in (rise, fall))
    above, below = np.minimum(above, instance.up[cells]), np.minimum(below, instance.down[cells])
    level = np.concatenate([above, below])
    order = np.argsort(-level, kind="stable")[: int((level > 0).sum())]
    sign = np.repeat(np.array([1, -1], np.int8), len(cells))
    return Instance(
        matrix,
        sparse.csc_array(matrix),
        np.where(forced, 0.0, instance.cost[cells] * np.where(decided, AGAIN, 1.0)),
        forced,
        instance.live[cells],
        instance.up[cells],
        instance.down[cells],
        np.tile(np.arange(len(cells)), 2)[order],
        sign[order],
        level[order],
    )


def _cheapest(task: tuple[Instance, Budget]) -> tuple[Mask, float]:
    """The best pattern of a subtable, and the work that it took; what is withheld already where there is none."""
    part, budget = task
    if not len(part.level):
        return part.forced, 0.0
    try:
        found = least_costly(part, budget)
    except (CannotProtect, SolverFailure):  # it is a suggestion: others see to what it leaves open
        found = None
    return part.forced if found is None else found.pattern, budget.spent
