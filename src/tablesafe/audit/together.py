"""Witnesses for many cells at once: one linear program moves hundreds of them.

A program for each side of each cell does not end soon where ten thousand cells are sensitive. But most of them can move
together: each of a batch is given a direction, and the program takes all of them as far as they must get, or as far as
their number allows. Its vertex is a table that agrees with the release; it serves the batch, and whoever else it moves
far enough, and so does its opposite where there is room for it. What is left has been left behind several times, and is
for a program of its own.

Like every suggestion of a solver, what comes from here is checked in whole numbers before it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import count
from math import lcm
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tablesafe.audit.doubts import MOST, Doubts
from tablesafe.audit.exact import ExactMove, row_sums
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.solve.highs import Model
from tablesafe.solve.program import Program
from tablesafe.work.budget import Budget
from tablesafe.work.side_by_side import AT_ONCE, side_by_side

MANY = 300
"""Cells from which on this is sooner done than a search for each."""
BATCH = 1_000
"""Cells that a program moves."""
FAR = 100.0
"""How many times as far as the one that must move furthest any cell moves."""
PAYS = 0.1
"""Share of what is left that a round must serve, or the rest is for others: its vertices have no simple fractions."""
READ, LARGEST, COMMON = 2.0**-24, 1_000, 10**11
"""How finely a solver's values are read, the denominators that they may have, and what these may have in common: so
that a move of the furthest cells, counted in such parts, has no more than 64 bits."""
PER_STEP = 1.3e-9
"""Seconds of a step of such a program, for each of its entries to the power of 1.5."""
STEPS, AFFORDED = 30, 0.1
"""Steps that such a program takes, and the share of the time left that one may take, or none is tried."""
SEVERAL = 1_500
"""Cells that a program moves which is to convince respondents."""
TURNS, FEWER, CONVINCED = 4, 0.04, 0.08
"""Programs after which either so many fewer cells are open, or so many doubts are gone, or the rest is for others."""
IN_VAIN = 4
"""How many times as long as others a cell waits for its next turn that gained nothing by the last one."""
ALIKE = 4.0
"""Cells that are moved together to convince respondents differ by this factor from the first."""
SEED = 7
"""Of the order in which cells take turns: the same in every run."""


def affordable(matrix: sparse.csr_array, budget: Budget) -> bool:
    """Whether there is time for a number of programs over all cells: of a few hundred thousand one takes a minute."""
    return bool(PER_STEP * STEPS * matrix.nnz**1.5 <= AFFORDED * budget.left)


def moves_together(
    matrix: sparse.csr_array,
    down: Floats,
    up: Floats,
    fall: Floats,
    rise: Floats,
    budget: Budget,
) -> Iterator[ExactMove]:
    """Moves that take cells down by `fall` and up by `rise`, where these are above 0, within `down` and `up`.

    All in whole units. They end when they no longer serve many, or the budget is over.
    """
    random = np.random.default_rng(SEED)
    low, high = fall > 0, rise > 0
    low &= fall <= down
    high &= rise <= up
    far = min(FAR * max(float(fall.max(initial=0.0)), float(rise.max(initial=0.0))), MOST)
    below, above = np.minimum(down, far), np.minimum(up, far)
    while not budget.over and len(left := np.flatnonzero(low | high)):
        before = int(low.sum()) + int(high.sum())
        for batch in np.array_split(random.permutation(left), -(-len(left) // BATCH)):
            batch = batch[(low | high)[batch]]
            if not len(batch) or budget.over:
                continue
            way = np.where(
                low[batch] & high[batch], random.choice([-1.0, 1.0], len(batch)), np.where(high[batch], 1.0, -1.0)
            )
            point = _furthest(matrix, below, above, batch, way, np.where(way > 0, rise[batch], fall[batch]), budget)
            move = None if point is None else _exact(matrix, point, down, up)
            if move is not None:
                yield move
                _serve(low, high, fall, rise, move, up, down)
        served = before - int(low.sum()) - int(high.sum())
        if served < PAYS * before:
            return


def convincing_moves(
    matrix: sparse.csr_array, down: Floats, up: Floats, doubts: Doubts, suggested: Iterable[ExactMove], budget: Budget
) -> Iterator[np.ndarray]:
    """Moves within `down` and `up` by which respondents are convinced, in whole numbers of some unit each.

    First those suggested, then what programs find, as long as they convince many.
    """
    random = np.random.default_rng(SEED)
    far = min(FAR * max(float(need.max(initial=0.0)) for need in doubts.need.values()), MOST)

    def noted(move: ExactMove) -> tuple[np.ndarray, int]:
        by = np.zeros(len(down), dtype=np.int64)
        by[move.cells] = move.numerators
        return by, move.denominator

    def ways(cells: Integers) -> Floats:
        low, high = doubts.open(-1)[cells], doubts.open(1)[cells]
        return np.where(low & high, random.choice([-1.0, 1.0], len(cells)), np.where(high, 1.0, -1.0))

    def mover(asked: Asked, budget: Budget) -> tuple[np.ndarray, int] | None:
        below, above = doubts.rooms(down, up, asked.still)
        level = np.where(asked.way > 0, doubts.need[1][asked.cells], doubts.need[-1][asked.cells])
        can = level > 0
        far_below, far_above = np.minimum(below, far), np.minimum(above, far)
        point = _furthest(matrix, far_below, far_above, asked.cells[can], asked.way[can], level[can], budget)
        move = None if point is None else _exact(matrix, point, down, up)
        return None if move is None else noted(move)

    for move in suggested:
        if move.numerators.dtype == object or move.denominator > COMMON:
            continue  # what is compared with it would have more than 64 bits
        by, unit = noted(move)
        if row_sums(matrix, by).any():
            continue
        for one in (by, -by):
            if _within(one, unit, down, up):
                doubts.add(one, unit)
                yield one
    yield from convince(doubts, mover, ways, budget)


class Asked(NamedTuple):
    """Cells to move, each its own way, while others stay at rest."""

    cells: Integers
    way: Floats
    still: Mask


Mover = Callable[[Asked, Budget], tuple[np.ndarray, int] | None]
"""Finds a move of what it is asked for, within a budget: in whole numbers of one over a unit."""


def convince(doubts: Doubts, mover: Mover, ways: Callable[[Integers], Floats], budget: Budget) -> Iterator[np.ndarray]:
    """Convince respondents by moves of many cells, as long as that convinces many; what these move is told.

    `ways` gives each cell a direction in which somebody still doubts that it can move. Two moves are looked for at
    once, each of cells that must move about as far, or else those that must move far are left behind by all others.
    """
    random, before = np.random.default_rng(SEED), (0, 0)
    level = np.maximum(doubts.need[-1], doubts.need[1])
    tried = np.zeros(len(doubts.listed.alone), dtype=np.int64)
    open_ = doubts.open(-1) | doubts.open(1)
    for turn in count():
        if turn % TURNS == 0:
            now = int(open_.sum()), doubts.total
            if turn and now[0] > (1 - FEWER) * before[0] and now[1] > (1 - CONVINCED) * before[1]:
                return
            before = now
        cells = np.flatnonzero(open_ & (level > 0))  # what must move at all
        if not len(cells) or budget.over:
            return
        cells = cells[np.lexsort((random.random(len(cells)), tried[cells]))]
        groups = list[Integers]()
        while len(cells) and len(groups) < AT_ONCE:
            alike = np.abs(np.log(level[cells] / level[cells[0]])) <= np.log(ALIKE)
            groups.append(cells[alike][:SEVERAL])
            cells = cells[~alike]
        groups = groups if len(groups) == AT_ONCE else groups * AT_ONCE
        cells = np.unique(np.concatenate(groups))
        asked = list[Asked]()
        for some in groups:
            way = ways(some)
            chosen, still = doubts.batch(some, way, random)
            if chosen.any():
                asked.append(Asked(some[chosen], way[chosen], still))
        for found in side_by_side([partial(mover, each) for each in asked], budget):
            if found is not None:
                doubts.add(*found)
                yield found[0]
        now_open = doubts.open(-1) | doubts.open(1)
        tried[cells] += np.where(open_[cells] & now_open[cells], IN_VAIN, 1)
        open_ = now_open


def _furthest(
    matrix: sparse.csr_array,
    below: Floats,
    above: Floats,
    batch: np.ndarray,
    way: Floats,
    level: Floats,
    budget: Budget,
) -> Floats | None:
    """A vertex in which cells go as far as they must, as many as can; None where there was no time."""
    lower, upper, cost = -below, above.copy(), np.zeros(len(below))
    cost[batch] = -way / level
    upper[batch[way > 0]] = level[way > 0]
    lower[batch[way < 0]] = -level[way < 0]
    model = Model(Program.equations(matrix, np.zeros(matrix.shape[0]), lower, upper, cost=cost), solver="ipm")
    return model.best_point(budget, PER_STEP * matrix.nnz**1.5)


def _exact(matrix: sparse.csr_array, point: Floats, down: Floats, up: Floats) -> ExactMove | None:
    """The point in exact fractions; the equations tell whether they were read rightly."""
    move = in_fractions(point)
    if move is None:
        return None
    by = np.zeros(len(point), dtype=np.int64)
    by[move.cells] = move.numerators
    return None if row_sums(matrix, by).any() or not _within(by, move.denominator, down, up) else move


def in_fractions(point: Floats) -> ExactMove | None:
    """A solver's point, each of its values read as a simple fraction; None where they have no common denominator.

    A vertex in which thousands of cells move has several denominators; a common one is rarely small.
    """
    floor = np.floor(point + READ)
    distinct, where = np.unique(np.rint((point - floor) / READ).astype(np.int64), return_inverse=True)
    parts = [Fraction(int(each) * READ).limit_denominator(LARGEST) for each in distinct.tolist()]
    common = lcm(*(part.denominator for part in parts))
    if common > COMMON or np.abs(point).max(initial=0.0) > MOST:
        return None
    tops = np.array([part.numerator * (common // part.denominator) for part in parts], dtype=np.int64)
    numerators = floor.astype(np.int64) * common + tops[where]
    cells = np.flatnonzero(numerators)
    return ExactMove(cells, numerators[cells], common)


def _within(by: Integers, unit: int, down: Floats, up: Floats) -> bool:
    """Whether a move in whole numbers of one over `unit` stays within whole units."""
    high, low = (np.floor(np.minimum(room, MOST)).astype(np.int64) * unit for room in (up, down))
    return bool((by <= high).all() and (-by <= low).all())


def _serve(low: Mask, high: Mask, fall: Floats, rise: Floats, move: ExactMove, up: Floats, down: Floats) -> None:
    """Take off who is served by a move, and by its opposite where there is room for it."""
    by = move.numerators / move.denominator
    cells = move.cells
    high[cells[by >= rise[cells]]] = False
    low[cells[-by >= fall[cells]]] = False
    if (-by <= up[cells]).all() and (by <= down[cells]).all():
        high[cells[-by >= rise[cells]]] = False
        low[cells[by >= fall[cells]]] = False
