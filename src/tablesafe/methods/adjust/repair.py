"""Feasible directions near given ones: what cannot follow its direction shows where it must be turned round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Mask
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.solve.least_change import Box, Directions, LeastChange
from tablesafe.solve.program import Scale, SolveStatus
from tablesafe.work.budget import Budget

ROUNDS = 25
"""Rounds of a repair before a mixed-integer program decides."""
REACH = 16.0
"""How far a cell without bounds may move in the search for any feasible directions, beside the sum of all levels."""
LEAST_SECONDS = 5.0
"""For the last way to any feasible directions, whatever is left: without them there is no release at all."""


class NoChange(Exception):
    """No directions let every target move far enough; says which stay behind."""

    def __init__(self, targets: NDArray[np.intp], *, proved: bool) -> None:
        super().__init__("no directions are feasible")
        self.targets = targets
        self.proved = proved


def repaired(
    instance: Instance, way: Way, random: np.random.Generator, *, budget: Budget, short: Short | None = None,
    chosen: NDArray[np.intp] | None = None,
) -> Way:  # fmt: skip
    """Feasible directions near these: only what stays behind costs anything, and is turned round if it does.

    Where that does not end, a mixed-integer program decides. A search that asks often gives its own `short`, and the
    targets that are not to be turned back: for it, directions that are not soon found are none.
    """
    once = short is None
    short = Short(instance) if short is None else short
    turned = np.zeros(len(way), np.int64)
    both = instance.can_rise & instance.can_fall
    if chosen is not None:
        both[chosen] = False
    behind = np.ones(len(way), np.bool_)
    for _ in range(ROUNDS):
        behind, nearer = short.of(way, np.inf if once else budget.left, chosen)
        if not behind.any():
            return way
        flip = behind & both & nearer & (turned < 2)
        if not flip.any():
            candidates = np.flatnonzero(behind & both & (turned < 3))
            if not candidates.size:
                break
            flip[random.choice(candidates)] = True
        turned += flip
        way = np.where(flip, -way, way).astype(np.int8)
    if not once:
        raise NoChange(np.flatnonzero(behind), proved=False)
    return _by_choice(instance, np.flatnonzero(behind), max(budget.left, LEAST_SECONDS))


class Short:
    """By how much targets stay behind in given directions: every target has a second column, and only those cost.

    One program whose bounds alone vary, so that each answer starts from the last.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = i = instance
        count, targets = len(i.cells), len(i.targets)
        columns = sparse.csc_array(sparse.hstack([i.rows, i.rows[:, i.targets]], format="csc"))
        cost = np.concatenate([np.zeros(count), np.ones(targets)])
        scale = Scale.middle(np.ones(1), np.concatenate([i.above, i.below]))
        self._program = LeastChange(columns, cost, cost, scale)

    def of(self, way: Way, seconds: float = np.inf, chosen: NDArray[np.intp] | None = None) -> tuple[Mask, Mask]:
        """Which targets stay behind when that is allowed, and which of them are nearer to the other side.

        Chosen ones may not; all stay behind when these cannot go their way, whatever the others do.
        """
        i, box, none = self._instance, self._instance.box(way), np.zeros(len(way))
        back = np.where(way > 0, 0.0, i.below + i.up[i.targets]), np.where(way > 0, i.above + i.down[i.targets], 0.0)
        if chosen is not None:
            back[0][chosen] = back[1][chosen] = 0.0
        ends = ((box.rise_least, none), (box.rise_most, back[0]), (box.fall_least, none), (box.fall_most, back[1]))
        change = self._program.solve(Box(*(np.concatenate(pair) for pair in ends)), seconds=seconds)
        if change is None:
            return np.ones(len(way), np.bool_), np.zeros(len(way), np.bool_)
        moved = change.moves[i.targets] + change.moves[len(i.cells) :]
        short = np.where(way > 0, i.above - moved, i.below + moved)
        return short > 1e-6 * np.maximum(1.0, i.above), moved * way < (way * (i.above - i.below)) / 2


def elastic(instance: Instance, way: Way) -> tuple[Box, Floats, Floats]:
    """Bounds and costs under which targets may stay behind, and only that costs: feasible whenever anything is."""
    box, i = instance.box(way), instance
    rise, fall = np.zeros(len(i.cells)), np.zeros(len(i.cells))
    up, down = i.targets[way > 0], i.targets[way < 0]
    fall[up], rise[down] = 1.0, 1.0
    box.fall_most[up] = i.above[way > 0] + i.down[up]
    box.rise_most[down] = i.below[way < 0] + i.up[down]
    return box, rise, fall


def _by_choice(instance: Instance, behind: NDArray[np.intp], seconds: float) -> Way:
    """Let a mixed-integer program find any feasible directions, or prove that there are none."""
    i = instance
    reach = REACH * float(i.above.sum() + i.below.sum())
    near = replace(i, up=np.minimum(i.up, reach), down=np.minimum(i.down, reach))
    open = near.can_rise & near.can_fall
    way = near.allowed(np.ones(len(open), np.int8))
    program = Directions(i.rows, i.cost, near.box(way, open=open), i.switches(open), i.scale())
    choice = program.choose(time_limit_s=seconds, first=True)
    if choice.rise is None:
        raise NoChange(behind, proved=choice.status == SolveStatus.INFEASIBLE)
    way[open] = np.where(choice.rise, 1, -1)
    return way
