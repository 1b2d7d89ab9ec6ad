"""Another distance than the sum of changes: the largest of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import OutOfTime
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.methods.adjust.interrupt import until_interrupted
from tablesafe.methods.adjust.search import Found, Search
from tablesafe.solve.adjustment import Directions, LeastChange
from tablesafe.solve.program import SolveStatus

NEAR = 1e-6
LEAST_S = 1.0
SLACK = (1.0, 1.02, 1.1, 1.5, 3.0)
"""When the least largest change cannot be made whole, a little more is allowed."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Whole moves by another distance, what they come to, and what nothing undercuts."""

    moves: Integers
    objective: float
    bound: float


def least_largest(
    search: Search, start: Integers, *, choose: bool, again: Callable[[Search], Integers | None]
) -> Measured:
    """Make the dearest change of all as cheap as can be, then all changes together.

    Whether a largest change is possible is a question of bounds, so it is halved in; with `choose` the directions are
    open at every step (a mixed-integer program each), else they are those that the search found. `again` searches
    the least change, made whole, within what is allowed; where it finds none, `start` is left as it is.
    """
    i, best = search.instance, search.best
    assert best is not None
    least = float(np.max(i.cost * i.base, initial=0.0))
    most = float(np.max(i.cost * np.abs(best.change.moves), initial=0.0))
    deadline, way = search.deadline - search.left / 3, best.way
    with until_interrupted(search):
        while most - least > NEAR * most and monotonic() < deadline:
            middle = (least + most) / 2 if least > most / 64 else np.sqrt(max(least, most * 1e-9) * most)
            possible, found = _possible(_at_most(i, middle), way, choose=choose, seconds=deadline - monotonic())
            if found is not None:
                most, way = middle, found
            elif possible is None:
                break
            else:
                least = middle
    moves: Integers | None = None
    with until_interrupted(search):
        for slack in SLACK:
            inner = replace_search(search, _at_most(i, most * slack * (1 + NEAR)), way)
            moves = None if inner is None else again(inner)
            if moves is not None:
                break
    kept = start if moves is None else moves
    objective = float(np.max(i.cost * np.abs(kept), initial=0.0))
    return Measured(kept, objective, min(least if choose else _trivial(i), objective))


def replace_search(search: Search, instance: Instance, way: Way) -> Search | None:
    """A search of its own within narrower bounds, begun at these directions."""
    inner = Search(instance, search.deadline, search.random)
    program = LeastChange(instance.rows, instance.cost, instance.cost, instance.scale())
    try:
        change = program.solve(instance.box(way), seconds=max(search.left, LEAST_S))
    except OutOfTime:
        return None
    if change is None:
        return None
    inner.best = Found(way, change)
    return inner


def _trivial(instance: Instance) -> float:
    return float(np.max(instance.cost * instance.base, initial=0.0))


def _at_most(instance: Instance, largest: float) -> Instance:
    most = np.floor(largest / instance.cost + 1e-9)
    return replace(instance, up=np.minimum(instance.up, most), down=np.minimum(instance.down, most)).narrowed()


def _possible(instance: Instance, way: Way, *, choose: bool, seconds: float) -> tuple[bool | None, Way | None]:
    """Whether there is a change within the bounds (None: not known), and its directions."""
    rise, fall = instance.can_rise, instance.can_fall
    if not (rise | fall).all():
        return False, None
    if (np.where(way > 0, rise, fall)).all():
        zero = np.zeros(len(instance.cells))
        program = LeastChange(instance.rows, zero, zero, instance.scale())
        try:
            change = program.solve(instance.box(way), seconds=max(seconds, LEAST_S))
        except OutOfTime:
            return None, None
        if change is not None:
            return True, way
    if not choose:
        return False, None
    open: Mask = rise & fall
    start = instance.allowed(way)
    chosen = Directions(
        instance.rows, instance.cost, instance.box(start, open=open), instance.switches(open), instance.scale()
    )
    choice = chosen.choose(time_limit_s=max(seconds, LEAST_S), first=True)
    if choice.rise is None:
        return (False if choice.status == SolveStatus.INFEASIBLE else None), None
    start[open] = np.where(choice.rise, 1, -1)
    return True, start
