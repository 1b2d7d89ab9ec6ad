"""Protect many targets with few linear programs: each moves hundreds of targets at once.

A program for each target does not end where there are twenty thousand. But most of them move together: give every
target of a batch a direction, pay for each as it nears its level, charge what moves that is not withheld yet, and
maximise what is left. The deviation serves the whole batch and whoever else it moves far enough; what it uses is
withheld, and costs nothing from then on. What a target is worth rises each time that it was left behind, so that the
cheap deviations come first and the dear ones find much withheld.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import OutOfTime, SolverFailure
from tablesafe.methods.suppress.instance import Instance
from tablesafe.solve.highs import INTERIOR, Model
from tablesafe.solve.program import Program, SolveStatus
from tablesafe.work.budget import Budget

MANY = 3_000
"""Cells on offer beyond which an interior point says first which of them are of use."""
PER_STEP_AND_ENTRY = 2e-6
"""Seconds of such a program, whose factors fill up."""
USED = 1e-6
PRESOLVED = 3
"""By which factor presolve makes such programs smaller, about."""
REACHED = 1 - 1e-9
ALIKE = 6.0
"""Targets of one batch differ by this factor at most: prices are for moves of one size."""
FAR = 100.0
"""How many times the largest level a cell may move."""
TINY = 0.05
"""Share of the least level of a batch below which the room of a cell is not worth a column."""
SUGGESTED = 0.1
"""Share of its cost at which a cell that was suggested is offered."""
FEWEST, SEVERAL = 100, 1_000
"""Targets of a batch, where there are so many."""
WITHIN = 2
"""Tries within what was suggested."""
WORTH = (3.0, 30.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 1e3, 1e3, 1e3, 1e3)
"""What it is worth to move a target, in units of its level, at each try."""
DEAREST = (10.0, 15.0, 20.0, 30.0, 60.0, 100.0, np.inf, np.inf, np.inf, np.inf)
"""The cost, in the same units, beyond which a cell that was not suggested is not offered, at each try after those."""
SLOPES = 3
"""How often a deviation is looked for again among the cells it uses, at prices by how far each moves."""
SETTLED = 0.97
"""Share of its cells with which a deviation is as good as it gets."""
FLAT = 1e-3
"""Share of the level below which a move is charged as if it were so long."""


class Pattern:
    """What is withheld, and which targets deviations within it are known to move far enough."""

    def __init__(self, instance: Instance, withheld: Mask | None = None) -> None:
        self.instance = instance
        self.withheld = instance.forced.copy() if withheld is None else withheld.copy()
        self.rise, self.fall = levels(instance)
        self.rises, self.falls = self.rise <= 0, self.fall <= 0
        """Cells that need not rise or fall further than is proved."""

    @property
    def cost(self) -> float:
        """What the pattern costs."""
        return self.instance.pattern_cost(self.withheld)

    @property
    def open(self) -> Integers:
        """Cells that are not known to be protected."""
        return np.flatnonzero(~(self.rises & self.falls))

    def add(self, deviation: Floats) -> None:
        """Withhold what a deviation of the whole table moves, and note whom it serves."""
        self.withheld |= np.abs(deviation) > USED
        self._serves(deviation)
        if (deviation <= self.instance.down).all() and (-deviation <= self.instance.up).all():
            self._serves(-deviation)

    def _serves(self, deviation: Floats) -> None:
        self.rises |= deviation >= self.rise * REACHED
        self.falls |= -deviation >= self.fall * REACHED


def levels(instance: Instance) -> tuple[Floats, Floats]:
    """How far each cell must rise and fall; whole numbers where there is room for them, so that deviations are."""
    rise, fall = np.zeros(len(instance)), np.zeros(len(instance))
    for need, room, sign in ((rise, instance.up, 1), (fall, instance.down, -1)):
        own = instance.sign == sign
        np.maximum.at(need, instance.cell[own], instance.level[own])
        whole = np.ceil(need)
        need[:] = np.where(whole <= room, whole, need)
    return rise, fall


def protect_together(
    pattern: Pattern, suggested: Mask, budget: Budget, random: np.random.Generator, *, sparing: bool
) -> None:
    """Move the targets of a pattern by the hundred until all are protected that can be, or the budget is over.

    First within what is withheld or suggested, then with whatever is not too dear; `sparing` also of what is suggested.
    """
    instance = pattern.instance
    need = np.maximum(pattern.rise, pattern.fall)
    turn, tried = 0, np.zeros(len(instance), dtype=np.bool_)
    while not budget.over and len(pattern.open):
        cells = pattern.open
        cells = cells[~tried[cells]]
        if not cells.size:
            turn, tried[:] = turn + 1, False
            if turn >= len(WORTH):
                return
            continue
        cells = cells[np.argsort(-need[cells], kind="stable")]
        near = cells[: max(FEWEST, int((need[cells] >= need[cells[0]] / ALIKE).sum()))]
        batch = random.choice(near, min(SEVERAL, len(near)), replace=False)
        tried[batch] = True
        way = random.choice([-1.0, 1.0], len(batch))
        way = np.where(pattern.rises[batch], -1.0, np.where(pattern.falls[batch], 1.0, way))
        offered = suggested.copy()
        if turn >= WITHIN:
            offered |= instance.cost <= DEAREST[turn - WITHIN] * float(np.median(need[batch]))
        cost = np.where(suggested, SUGGESTED, 1.0) * instance.cost
        slopes = SLOPES if sparing or turn >= WITHIN else 0
        deviation = _sloped(pattern, batch, way, WORTH[turn], cost, offered, slopes, budget)
        if deviation is not None:
            pattern.add(deviation)


def _sloped(
    pattern: Pattern,
    batch: Integers,
    way: Floats,
    worth: float,
    cost: Floats,
    offered: Mask,
    slopes: int,
    budget: Budget,
) -> Floats | None:
    """A deviation that is worth its cost, by slope scaling (Kim & Pardalos, Operations Research Letters 24, 1999).

    A cell costs the same however far it moves, a program charges by the unit. So it is asked again among the cells of
    its answer, at prices with which each would have cost what it does: short moves become dear, and merge.
    """
    instance = pattern.instance
    level = float(np.median(np.maximum(pattern.rise, pattern.fall)[batch]))
    price = cost / np.clip(instance.down, 1.0, level)
    best: Floats | None = None
    if slopes and int((offered & ~pattern.withheld).sum()) > MANY:
        amid = _moved(pattern, batch, way, worth, price, offered, budget, **INTERIOR)
        if amid is None:
            return None
        offered = (np.abs(amid) > FLAT * level) & ~pattern.withheld
        price = cost / np.maximum(np.abs(amid), FLAT * level)
    for turn in range(1 + slopes):
        deviation = _moved(pattern, batch, way, worth, price, offered, budget)
        if deviation is None:
            break
        best = deviation
        fresh = (deviation != 0) & ~pattern.withheld
        if turn and fresh.sum() > SETTLED * offered.sum():
            break
        offered, price = fresh, cost / np.maximum(np.abs(deviation), FLAT * level)
    return best


def _moved(
    pattern: Pattern,
    batch: Integers,
    way: Floats,
    worth: float,
    price: Floats,
    offered: Mask,
    budget: Budget,
    **options: Any,
) -> Floats | None:
    """The deviation that moves the cells of a batch as far as that is worth its price; None where time is over."""
    instance = pattern.instance
    far = FAR * max(float(pattern.rise.max()), float(pattern.fall.max()))
    above, below = np.minimum(instance.up, far), np.minimum(instance.down, far)
    above[batch] = np.where(pattern.rise[batch] > 0, np.minimum(pattern.rise[batch], above[batch]), above[batch])
    below[batch] = np.where(pattern.fall[batch] > 0, np.minimum(pattern.fall[batch], below[batch]), below[batch])
    level = np.where(way > 0, pattern.rise[batch], pattern.fall[batch])
    useful = instance.live & (np.minimum(instance.up, instance.down) >= TINY * float(level.min()))
    free, paid = np.flatnonzero(pattern.withheld & useful), np.flatnonzero(offered & ~pattern.withheld & useful)
    gain = np.zeros(len(instance))
    gain[batch] = worth * way
    dear = instance.columns[:, paid]
    cost = np.concatenate([-gain[free], price[paid], price[paid]])
    answer = _least(
        cost / np.median(np.abs(cost[cost != 0])),
        [instance.columns[:, free], dear, -dear],
        np.concatenate([-below[free], np.zeros(2 * len(paid))]),
        np.concatenate([above[free], above[paid], below[paid]]),
        budget,
        options or {"solver": "simplex"},
    )
    if answer is None:
        return None
    deviation = np.zeros(len(instance))
    deviation[free] = answer[: len(free)]
    deviation[paid] = answer[len(free) : len(free) + len(paid)] - answer[len(free) + len(paid) :]
    deviation[np.abs(deviation) <= USED] = 0.0
    return deviation


def _least(
    cost: Floats,
    columns: list[sparse.csc_array],
    lower: Floats,
    upper: Floats,
    budget: Budget,
    options: dict[str, Any],
) -> Floats | None:
    """The cheapest point that changes no sum; None where there is none, or no time."""
    matrix = sparse.csr_array(sparse.hstack(columns, format="csr"))
    matrix = matrix[np.flatnonzero(np.diff(matrix.indptr))]
    program = Program.equations(matrix, np.zeros(matrix.shape[0]), lower, upper, cost=cost)
    model = Model(program, **options)
    try:
        answer = model.solve(budget)
    except (OutOfTime, SolverFailure):
        return None
    finally:
        budget.hot(matrix.shape[0] // PRESOLVED, model.info("simplex_iteration_count"))
        budget.count(PER_STEP_AND_ENTRY * matrix.nnz * max(model.info("ipm_iteration_count"), 0))
    return answer.point if answer.status is SolveStatus.OPTIMAL else None
