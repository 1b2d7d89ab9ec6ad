"""The search for directions: repair what is infeasible, flip what is dear, free a few at a time, and prove a bound."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.equations import Floats, Integers, Mask
from tablesafe.methods.adjust.blocks import Neighbourhood, improved
from tablesafe.methods.adjust.instance import LARGE, Instance, Way
from tablesafe.methods.adjust.repair import NoChange, elastic, repaired
from tablesafe.solve.adjustment import Box, Change, Directions, LeastChange, Scale

TOLERANCE = 1e-6
BLOCK = 24
"""Targets whose directions are chosen together, at first: more when that is quick, fewer when it is not."""
SMALLEST = 8
BLOCK_SECONDS = 4.0
REGION = 900
"""Cells of a region, at first."""
REGION_CELLS = (150, 4_000)
REGION_SECONDS = 3.0
AGAIN_SECONDS = 20.0
"""How long regions are adjusted one after the other before the whole table is, once more."""


@dataclass(frozen=True, eq=False)
class Found:
    """Feasible directions and the least change that follows them."""

    way: Way
    change: Change


@dataclass(eq=False)
class Search:
    """One problem, its best answer so far, and the best proven bound."""

    instance: Instance
    deadline: float
    random: np.random.Generator
    best: Found | None = None
    bound: float = 0.0
    lean: Floats | None = None
    _program: LeastChange = field(init=False, repr=False)

    def __post_init__(self) -> None:
        i = self.instance
        self._program = LeastChange(i.rows, i.cost, i.cost, i.scale())

    @property
    def cost(self) -> float:
        """What the best answer costs."""
        return np.inf if self.best is None else self.best.change.cost

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.deadline - monotonic()

    def closed(self) -> bool:
        """Whether the best answer is proved to be the best there is."""
        return self.cost <= self.bound * (1 + TOLERANCE) + 1e-12

    def offer(self, way: Way) -> None:
        """Solve for these directions, repaired if need be, and keep them if they are better."""
        change = self._program.solve(self.instance.box(way))
        if change is None:
            way = repaired(self.instance, way, self.random, deadline=self.deadline)
            change = self._program.solve(self.instance.box(way))
            if change is None:  # feasible only within the solver's tolerance
                raise NoChange(np.arange(len(way)), proved=False)
        self._take(way, change)

    def begin(self, way: Way) -> None:
        """Any change that follows these directions, repaired if need be: for tables too deep for one program.

        Then region after region is adjusted at least cost, the directions kept.
        """
        i = self.instance
        way = repaired(i, way, self.random, deadline=self.deadline)
        box, rise, fall = elastic(i, way)
        change = LeastChange(i.rows, rise, fall, Scale.of(np.ones(1), np.concatenate([i.above, i.below]))).solve(box)
        if change is None:
            raise NoChange(np.arange(len(way)), proved=False)
        self.best = Found(way, Change(change.moves, i.price(change.moves), np.zeros(i.rows.shape[0])))
        self.regions(turn=False, rounds=1)

    def _take(self, way: Way, change: Change) -> bool:
        better = change.cost < self.cost * (1 - 1e-12)
        if better:
            self.best = Found(way, change)
        return better

    # -- local search ----------------------------------------------------------------------------------------------

    def flip(self, *, time_limit_s: float) -> None:
        """Turn targets round one at a time, each by a linear program that starts from the last answer.

        The least cost is convex in how far a target must move, so its price bounds what turning it round can save:
        most need not be tried at all.
        """
        assert self.best is not None
        i, both = self.instance, self.instance.can_rise & self.instance.can_fall
        tried, until = np.zeros(len(both), np.bool_), monotonic() + min(time_limit_s, self.left)
        while monotonic() < until:
            way, change = self.best.way, self.best.change
            saving = np.where(both & ~tried, self._saving(way, change), 0.0)
            target = int(np.argmax(saving)) if saving.size else 0
            if not saving.size or saving[target] <= TOLERANCE * change.cost:
                return
            tried[target] = True
            other = way.copy()
            other[target] = -other[target]
            better = self._program.solve(i.box(other), better_than=change.cost)
            if better is not None and better.cost < change.cost * (1 - TOLERANCE):
                self.best = Found(other, better)
                tried[:] = False
                tried[target] = True

    def _saving(self, way: Way, change: Change) -> Floats:
        """The most that turning each target round can save."""
        i = self.instance
        worth: Floats = np.asarray(i.rows.T @ change.prices)[i.targets]
        price = i.cost[i.targets] - way * worth
        return np.asarray(price * (i.above + i.below))

    def free_blocks(self, *, patience: int) -> None:
        """Choose the directions of a few neighbouring targets together, exactly; then of others, while it helps."""
        assert self.best is not None
        i = self.instance
        both = np.flatnonzero(i.can_rise & i.can_fall)
        near = sparse.csr_array(i.matrix[:, i.targets[both]])
        near = sparse.csr_array(abs(near).T @ abs(near))
        idle, size = 0, float(BLOCK)
        while self.left > 0.2 and idle < patience and both.size > 1:
            begin, limit = monotonic(), min(max(BLOCK_SECONDS, self.left / 8), self.left)
            open = np.zeros(len(i.targets), np.bool_)
            open[both[self._neighbours(near, int(self.random.integers(both.size)), int(size))]] = True
            idle = 0 if self._improve(open, time_limit_s=limit) else idle + 1
            if open[both].all() and self.closed():
                return
            quick = monotonic() - begin < limit / 2
            size = min(size * 1.5, both.size) if quick else max(size / 1.5, SMALLEST)

    def regions(self, *, turn: bool = True, rounds: int = 3) -> None:
        """Adjust region after region of a large table, first around the targets that promise most, while it helps."""
        assert self.best is not None
        i, near = self.instance, Neighbourhood.of(self.instance)
        size, least, most = float(REGION), *REGION_CELLS
        for _ in range(rounds):
            before, seen, again = self.cost, np.zeros(len(i.targets), np.bool_), monotonic() + AGAIN_SECONDS
            promise = self._saving(self.best.way, self.best.change)
            promise = np.where(promise > 0, promise, 0.0) + 1e-12 * self.random.random(len(seen))
            while self.left > 0.5 and not seen.all():
                begin = monotonic()
                target = int(np.argmax(np.where(seen, -1.0, promise)))
                cells = near.region(int(i.targets[target]), int(size), self.random)
                seen[target] = True
                seen |= np.isin(i.targets, cells) & (promise < promise[target])
                limit = min(REGION_SECONDS, self.left)
                found = self.best.change.moves, self.best.way
                step = improved(i, cells, *found, seconds=limit, turn=turn)
                if step is not None:
                    change = replace(self.best.change, moves=step.moves, cost=i.price(step.moves))
                    self.best = Found(step.way, change)
                quick = monotonic() - begin < limit / 3
                size = min(size * 1.2, most) if quick else max(size / 1.5, least)
                if monotonic() > again and not i.deep:
                    break
            self._polish()
            if self.left < 0.5 or self.cost > before * (1 - 1e-4):
                return

    def _polish(self) -> None:
        """The least change of the whole table for the directions found region by region."""
        if self.best is not None and not self.instance.deep:
            change = self._program.solve(self.instance.box(self.best.way))
            if change is not None:
                self.best = Found(self.best.way, change)

    def _neighbours(self, near: sparse.csr_array, seed: int, size: int) -> NDArray[np.intp]:
        """A target, what shares equations with it, what shares equations with those, until there are enough."""
        chosen = np.array([seed])
        while len(chosen) < min(size, near.shape[0]):
            ring = np.setdiff1d(near[chosen].indices, chosen)
            if not ring.size:
                ring = np.setdiff1d(np.arange(near.shape[0]), chosen)
            room = size - len(chosen)
            chosen = np.concatenate([chosen, self.random.permutation(ring)[:room]])
        return chosen

    def _improve(self, open: Mask, *, time_limit_s: float) -> bool:
        assert self.best is not None
        choice = self._choose(open, time_limit_s=time_limit_s)
        if choice is None or (choice == self.best.way).all():
            return False
        before = self.cost
        change = self._program.solve(self.instance.box(choice))
        if change is not None and change.cost < before * (1 - TOLERANCE):
            self.best = Found(choice, change)
            return True
        return False

    def _choose(self, open: Mask, *, time_limit_s: float) -> Way | None:
        """The best directions of the open targets when the others keep theirs."""
        assert self.best is not None
        program = self._directions(open)
        start = (self.best.change.moves, self.best.way[open] > 0)
        choice = program.choose(time_limit_s=time_limit_s, start=start)
        if open.all() or (open | ~(self.instance.can_rise & self.instance.can_fall)).all():
            self.bound = max(self.bound, min(choice.bound, self.cost))
        if choice.rise is None:
            return None
        way = self.best.way.copy()
        way[open] = np.where(choice.rise, 1, -1)
        return way

    def _directions(self, open: Mask, cost: float | None = None) -> Directions:
        """The program over the open targets, without what cannot be cheaper than `cost`, by default the best so far."""
        assert self.best is not None
        tight = self.instance.cheaper_than(self.cost if cost is None else cost)
        kept = np.maximum(self.best.change.moves, 0.0), np.maximum(-self.best.change.moves, 0.0)
        box = tight.box(self.best.way, open=open)
        box = Box(box.rise_least, np.maximum(box.rise_most, np.where(box.rise_most > 0, kept[0], 0.0)),
                  box.fall_least, np.maximum(box.fall_most, np.where(box.fall_most > 0, kept[1], 0.0)))  # fmt: skip
        return Directions(self.instance.rows, tight.cost, box, tight.switches(open), tight.scale(self.cost))

    # -- bounds ----------------------------------------------------------------------------------------------------

    def relax(self) -> None:
        """Prove a bound by the relaxation, and see where each target leans; of large tables the levels alone."""
        i = self.instance
        if len(i.cells) > 2 * LARGE:
            self.bound = max(self.bound, i.price(i.base))
            return
        open = i.can_rise & i.can_fall
        bound, lean = self._directions(open).relaxed()
        self.bound = max(self.bound, min(bound, self.cost))
        self.lean = np.where(i.can_rise, 1.0, 0.0)
        self.lean[open] = lean

    def optimise(self) -> None:
        """Choose all directions together, from the best known, with what time is left."""
        open = self.instance.can_rise & self.instance.can_fall
        way = self._choose(open, time_limit_s=self.left)
        if way is not None:
            change = self._program.solve(self.instance.box(way))
            if change is not None and change.cost < self.cost:
                self.best = Found(way, change)

    def whole(self, start: Integers | None) -> Integers | None:
        """The least change in whole numbers, directions included, with what time is left; `start` if none is better."""
        if start is not None and self.left < 0.2:
            return start
        i = self.instance
        open = i.can_rise & i.can_fall
        program = self._directions(open, 2 * self.cost if start is None else i.price(start))
        begin = None if start is None else (start.astype(np.float64), start[i.targets][open] > 0)
        choice = program.choose(time_limit_s=max(self.left, 5.0), start=begin, whole=True)
        if choice.moves is None:
            return start
        moves = np.rint(choice.moves).astype(np.int64)
        self.bound = max(self.bound, choice.bound)
        better = i.holds(moves) and (start is None or i.price(moves) < i.price(start))
        return moves if better else start
