"""Another distance than the sum of changes: the largest of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import OutOfTime
from tablesafe.methods.adjust.descent import Descent, bounds
from tablesafe.methods.adjust.direction_search import Found, Search
from tablesafe.methods.adjust.instance import LARGE, Instance, Way
from tablesafe.methods.adjust.interrupt import until_interrupted
from tablesafe.methods.adjust.least_squares import Squares, least_squares
from tablesafe.methods.adjust.whole import rounded
from tablesafe.solve.least_change import Directions, LeastChange
from tablesafe.solve.program import SolveStatus
from tablesafe.work.budget import Budget

NEAR = 1e-6
"""Relative accuracy of the least largest change."""
LEAST_S = 1.0
"""Seconds that a program gets however late it is: without an answer there is no release."""
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
    budget, way = search.budget.child(search.left * 2 / 3), best.way
    with until_interrupted(search):
        while most - least > NEAR * most and not budget.over:
            middle = (least + most) / 2 if least > most / 64 else np.sqrt(max(least, most * 1e-9) * most)
            possible, found = _possible(_at_most(i, middle), way, choose=choose, seconds=budget.left)
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
    inner = Search(instance, search.budget, search.random)
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


# Another distance than the sum of changes: the sum of their squares.


FIRST_S = 20.0
"""Seconds that the first program may take whatever the time, per 100,000 cells more."""
MANY = 200
"""Targets from which on several are turned round at once."""


def least_squared(search: Search, start: Integers, *, flip: bool) -> Measured:
    """Make the weighted sum of squared changes small: exact for given directions, which are flipped while it helps.

    Then whole, near that point. What the time does not allow is said: then `start`, the least sum of changes, is
    improved step by step instead, or left as it is.
    """
    i, best = search.instance, search.best
    assert best is not None
    way = _way(i, start)
    least = FIRST_S * (1 + len(i.cells) / 100_000)
    found, moves, made_whole = None, start, False
    with until_interrupted(search):
        found = _squares(i, way, max(search.left, least))
    bound = 0.0 if found is None else _proved(i, found.prices)
    if found is not None and flip:
        way, found = _turned(search, way, found)
        bound = max(bound, _proved(i, found.prices))
    with until_interrupted(search):
        moves, made_whole = _whole(search, start, way, found)
    if found is None and not search.stopped:
        warnings.warn(
            "The least squares were not found in the time given: the least sum of changes was improved step by step "
            "instead. Raise time_limit_s.",
            stacklevel=6,
        )
    elif not made_whole and not search.stopped:
        warnings.warn(
            "The change of least squares could not be made whole in the time given: the least sum of changes was "
            "improved step by step instead. Raise time_limit_s, or allow more decimals.",
            stacklevel=6,
        )
    objective = worth(i, moves)
    return Measured(moves, objective, min(max(worth(i, i.base), bound), objective))


def _turned(search: Search, way: Way, found: Squares) -> tuple[Way, Squares]:
    """Turn targets round while that makes the squares smaller: of many targets several at once, fewer if in vain."""
    i, value, tried = search.instance, worth(search.instance, found.moves), np.zeros(len(way), np.bool_)
    together = 1 if len(way) <= MANY else len(way) // 20
    both = i.can_rise & i.can_fall
    with until_interrupted(search):
        while search.left > 0:
            gain = np.where(tried | ~both, 0.0, _gain(i, way, found))
            chosen = np.argsort(-gain, kind="stable")[:together]
            chosen = chosen[gain[chosen] > NEAR * value]
            if not chosen.size:
                break
            other = way.copy()
            other[chosen] = -other[chosen]
            turned = _squares(i, other, search.left)
            if turned is not None and worth(i, turned.moves) < value * (1 - NEAR):
                way, found, value = other, turned, worth(i, turned.moves)
                tried[:] = False
                tried[chosen] = True
            elif len(chosen) > 1:
                together = len(chosen) // 4 + 1 if len(chosen) > 4 else 1
            else:
                tried[chosen] = True
    return way, found


def _whole(search: Search, start: Integers, way: Way, found: Squares | None) -> tuple[Integers, bool]:
    """The best of what rounding, steps from there, and steps from the start lead to; whether rounding led anywhere."""
    i, budget = search.instance, search.last_seconds()
    descent = Descent.of(i, search.random)
    stepped = coarse = None
    if found is not None and descent is not None:
        stepped = descent.improved(way, descent.rounded(way, start, found.moves), budget=budget)
    if found is not None and (len(i.cells) <= LARGE or stepped is None):
        steep = replace(i, cost=i.cost * (2 * np.abs(found.moves) + 1))
        coarse = rounded(steep, way, found.moves, budget=budget)
    near = [moves for moves in (stepped, coarse) if moves is not None and i.holds(moves)]
    whole = [start, *near]
    if descent is not None:
        better = [descent.improved(_way(i, moves), moves, budget=budget) for moves in whole]
        whole += [moves for moves in better if moves is not None]
    return min(whole, key=lambda moves: worth(i, moves)), bool(near)


def _way(instance: Instance, moves: Integers) -> Way:
    """The directions that the targets take in a change."""
    return np.where(moves[instance.targets] > 0, 1, -1).astype(np.int8)


def _squares(instance: Instance, way: Way, seconds: float) -> Squares | None:
    return least_squares(instance.rows, instance.cost, *bounds(instance, way), budget=Budget(seconds))


def worth(instance: Instance, moves: Floats | Integers) -> float:
    """The weighted sum of squares."""
    return float((instance.cost * np.square(moves.astype(np.float64))).sum())


def _gain(instance: Instance, way: Way, found: Squares) -> Floats:
    """The most that turning each target round can save: the sum is convex in how far it must move."""
    at = instance.targets
    slope = instance.cost[at] * found.moves[at] - np.asarray(instance.rows.T @ found.prices)[at]
    return np.asarray(2 * way * slope * (instance.above + instance.below))


def _proved(instance: Instance, prices: Floats) -> float:
    """What no change undercuts, whatever its directions: right for any prices of the equations (weak duality)."""
    i, price = instance, np.asarray(instance.rows.T @ prices)
    least = _lowest(i.cost, price, -i.down, i.up)
    at, weight, worth = i.targets, i.cost[i.targets], price[i.targets]
    rise = np.where(i.can_rise, _lowest(weight, worth, i.above, np.maximum(i.up[at], i.above)), np.inf)
    fall = np.where(i.can_fall, _lowest(weight, worth, np.minimum(-i.down[at], -i.below), -i.below), np.inf)
    least[at] = np.minimum(rise, fall)
    return 2.0 * float(least.sum())


def _lowest(weight: Floats, price: Floats, lower: Floats, upper: Floats) -> Floats:
    """The least of `weight y² / 2 − price y` within bounds."""
    y = np.clip(price / weight, lower, upper)
    return np.asarray(weight * y * y / 2 - price * y)
