"""Feasible directions near given ones: what cannot follow its direction shows where it must be turned round."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Mask
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.solve.least_change import Box, Directions, LeastChange
from tablesafe.solve.program import Scale, SolveStatus

ROUNDS = 25
"""Rounds of a repair before a mixed-integer program decides."""
REACH = 16.0
"""How far a cell without bounds may move in the search for any feasible directions, beside the sum of all levels."""
LEAST_SECONDS = 5.0


class NoChange(Exception):
    """No directions let every target move far enough; says which stay behind."""

    def __init__(self, targets: NDArray[np.intp], *, proved: bool) -> None:
        super().__init__("no directions are feasible")
        self.targets = targets
        self.proved = proved


def repaired(instance: Instance, way: Way, random: np.random.Generator, *, deadline: float) -> Way:
    """Feasible directions near these: only what stays behind costs anything, and is turned round if it does."""
    turned = np.zeros(len(way), np.int64)
    both = instance.can_rise & instance.can_fall
    behind = np.ones(len(way), np.bool_)
    for _ in range(ROUNDS):
        behind, nearer = _behind(instance, way)
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
    return _by_choice(instance, np.flatnonzero(behind), max(deadline - monotonic(), LEAST_SECONDS))


def elastic(instance: Instance, way: Way) -> tuple[Box, Floats, Floats]:
    """Bounds and costs under which targets may stay behind, and only that costs: feasible whenever anything is."""
    box, i = instance.box(way), instance
    rise, fall = np.zeros(len(i.cells)), np.zeros(len(i.cells))
    up, down = i.targets[way > 0], i.targets[way < 0]
    fall[up], rise[down] = 1.0, 1.0
    box.fall_most[up] = i.above[way > 0] + i.down[up]
    box.rise_most[down] = i.below[way < 0] + i.up[down]
    return box, rise, fall


def _behind(instance: Instance, way: Way) -> tuple[Mask, Mask]:
    """Which targets stay behind when that is allowed, and which of them are nearer to the other side."""
    i = instance
    box, rise, fall = elastic(i, way)
    scale = Scale.middle(np.ones(1), np.concatenate([i.above, i.below]))
    change = LeastChange(i.rows, rise, fall, scale).solve(box)
    if change is None:
        return np.ones(len(way), np.bool_), np.zeros(len(way), np.bool_)
    moved = change.moves[i.targets]
    short = np.where(way > 0, i.above - moved, i.below + moved)
    return short > 1e-6 * np.maximum(1.0, i.above), moved * way < (way * (i.above - i.below)) / 2


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
