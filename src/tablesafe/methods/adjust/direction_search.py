"""A first change of a table too deep for one linear program: sensitive cells take their steps box by box.

Nothing has moved at first. Box after box of cells is settled at least cost, its sensitive cells at their distance, the
totals above free to give way where they must: so most never move. Whole numbers from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import OutOfTime
from tablesafe.methods.adjust.blocks import Pace, Regions
from tablesafe.methods.adjust.instance import LARGE, Instance, Way
from tablesafe.methods.adjust.means import Means
from tablesafe.methods.adjust.repair import NoChange, elastic, repaired
from tablesafe.solve.least_change import LONG, Box, Change, Directions, LeastChange
from tablesafe.solve.program import Scale
from tablesafe.work.budget import ENDLESS, Budget, worked

BOX = 600
"""Inner cells of a box, at first."""
LARGER = (1, 2, 4)
"""A box in which nothing is feasible is tried again in larger ones."""
SECONDS = 5.0
"""How long a box may take; as many times longer as it is larger, squared: without a first answer there is none."""
LEAST_S = 10.0
"""How long one program over everything may take at least, for without it there may be no good answer."""


def any_change(instance: Instance, way: Way, random: np.random.Generator, *, budget: Budget) -> tuple[Way, Floats]:
    """Whole moves that follow these directions; where boxes find none, directions near these.

    Raises NoChange when nothing was found, OutOfTime when there was no time to look.
    """
    i = instance
    moves = settled(Regions.of(i), way, random, budget=ENDLESS)  # a first answer is worth more than its time
    if moves is not None:
        return way, moves
    way = repaired(i, way, random, budget=budget)
    whole = None
    for program, box in _programs(i, way):
        with suppress(OutOfTime):
            change = program.solve(box, seconds=max(budget.left, LEAST_S))
            whole = None if change is None else Means.none(i).rounded(way, change.moves, budget=budget)
        if whole is not None:
            return way, whole.astype(np.float64)
    raise NoChange(np.arange(len(way)), proved=False)


def _programs(instance: Instance, way: Way) -> Iterator[tuple[LeastChange, Box]]:
    """The least change; where that takes too long, any: it may be thousands of times as dear."""
    i = instance
    yield LeastChange(i.rows, i.cost, i.cost, i.scale()), i.box(way)
    box, rise, fall = elastic(i, way)
    yield LeastChange(i.rows, rise, fall, Scale.middle(np.ones(1), np.concatenate([i.above, i.below]))), box


def settled(regions: Regions, way: Way, random: np.random.Generator, *, budget: Budget) -> Floats | None:
    """Whole moves in these directions that keep every equation and every bound; None when they were not found."""
    i = regions.instance
    moves, done = np.zeros(len(i.cells)), np.zeros(len(i.targets), np.bool_)
    for target in random.permutation(len(i.targets)).tolist():
        if done[target]:
            continue
        if budget.over:
            return None
        for times in LARGER:
            cells = regions.around(int(i.targets[target]), BOX * times, random)
            step = regions.settled(cells, moves, way, seconds=min(SECONDS * times**2, budget.left))
            if step is not None:
                break
        else:
            return None
        step.take(moves, way)
        done[step.targets] = True
    return moves if i.holds(np.rint(moves).astype(np.int64)) else None


# The search for directions: repair what is infeasible, flip what is dear, free a few at a time, and prove a bound.


TOLERANCE = 1e-6
"""Relative difference of costs that does not count: the accuracy of the programs."""
BLOCK, SMALLEST, BLOCK_SECONDS = 24, 8, 4.0
"""Targets whose directions are chosen together, at first: more when that is quick, fewer, to the smallest number, when
it is not; and the seconds that it may take in any case."""
TOGETHER = 300
"""Regions that are adjusted one after the other before the whole table is, once more."""
WORTHWHILE = 1e-3
"""A round that saves less, in the largest regions, is the last."""
AT_LEAST_S, LAST_S = 2.0, 5.0
"""How long a program may take when the time is up; how long it may take to make the changes whole."""
PATIENCE, FIRST_S = 1 / 3, 10.0
"""The share of the time that the first program over a large table may take, or the seconds per 100,000 cells."""
LONGEST = 1.5
"""The same for other tables: what is found without it is so much worse that a loaded machine takes longer instead."""


@dataclass(frozen=True, eq=False)
class Found:
    """Feasible directions and the least change that follows them."""

    way: Way
    change: Change


@dataclass(eq=False)
class Search:
    """One problem, its best answer so far, and the best proven bound."""

    instance: Instance
    budget: Budget
    random: np.random.Generator
    best: Found | None = None
    bound: float = 0.0
    lean: Floats | None = None
    report: Callable[[float, float], None] | None = field(default=None, repr=False)
    """Hears of the cost of the best answer and the proven bound, whenever one of them is better."""
    stopped: bool = False
    """Whether the user has interrupted it."""
    means: Means | None = field(default=None, repr=False)
    """What the equations of the instance say about means, where some are kept."""
    kept: Integers | None = None
    """The best answer so far in whole numbers, where that takes long: so that no answer is worse than a start."""
    reserved: float = 0.0
    """Seconds set aside to make the last answer whole."""
    deep: bool = field(init=False)
    """Whether one linear program over the whole table would take too long: then only regions are solved."""
    _program: LeastChange = field(init=False, repr=False)

    def __post_init__(self) -> None:
        i = self.instance
        self.deep = i.deep
        self._program = LeastChange(i.rows, i.cost, i.cost, i.scale())

    @property
    def cost(self) -> float:
        """What the best answer costs."""
        return np.inf if self.best is None else self.best.change.cost

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(self.budget.left - self.reserved, 0.0)

    @property
    def long(self) -> bool:
        """Whether one linear program over the whole table takes seconds, and an integer program much longer."""
        return bool(self.instance.rows.shape[0] >= LONG)

    def settle(self) -> None:
        """Make the best answer whole and keep it; as much time as that took is set aside for the last one."""
        begin = worked()
        self.keep(self.whole_by_lattice())
        self.reserved = min(1.2 * (worked() - begin) + 0.2, self.left / 2)

    def keep(self, moves: Integers | None) -> None:
        """Keep whole moves that are better than those kept."""
        i = self.instance
        if moves is not None and i.holds(moves) and (self.kept is None or i.price(moves) < i.price(self.kept)):
            self.kept = moves

    def last_seconds(self) -> Budget:
        """A budget for the last steps: what is left of the time, or a little when it is up."""
        return Budget(max(self.left, LAST_S))

    def tell(self, cost: float = np.inf, bound: float = 0.0) -> None:
        """Report what is known now, or a little more that a program under way has found."""
        if self.report is not None and min(self.cost, cost) < np.inf:
            self.report(min(self.cost, cost), min(max(self.bound, bound), self.cost))

    def closed(self) -> bool:
        """Whether the best answer is proved to be the best there is."""
        return self.cost <= self.bound * (1 + TOLERANCE) + 1e-12

    def offer(self, way: Way, *, repair: bool = True) -> None:
        """Solve for these directions, repaired if need be, and keep them if they are better.

        Of a table too deep for one program the first directions are followed region by region, and no others.
        """
        if not self.deep:
            try:
                self._solve(way, repair=repair)
            except OutOfTime:
                self.deep = self.best is None
        if self.deep and self.best is None:
            self._begin(way)

    def _solve(self, way: Way, *, repair: bool) -> None:
        cells = len(self.instance.cells)
        share = PATIENCE if cells > 2 * LARGE else LONGEST
        seconds = self.left if self.best is not None else max(share * self.left, FIRST_S * (1 + cells / 100_000))
        change = self._program.solve(self.instance.box(way), seconds=seconds)
        if change is None and not repair:
            return
        if change is None:
            way = repaired(self.instance, way, self.random, budget=self.budget)
            change = self._program.solve(self.instance.box(way), seconds=seconds)
            if change is None:  # feasible only within the solver's tolerance
                raise NoChange(np.arange(len(way)), proved=False)
        self._take(way, change)

    def _begin(self, way: Way) -> None:
        """Any whole change that follows these directions, then region after region at least cost."""
        i, begin = self.instance, worked()
        way, moves = any_change(i, way, self.random, budget=self.budget)
        self.best = Found(way, Change(moves, i.price(moves), np.zeros(i.rows.shape[0])))
        whole, self.budget = self.budget, self.budget.child(0.3 * (worked() - begin) + 1.0)
        self.regions(turn=False, rounds=1)
        self.budget = whole

    def _take(self, way: Way, change: Change) -> None:
        if change.cost < self.cost * (1 - 1e-12):
            self.best = Found(way, change)
            self.tell()

    # -- local search ----------------------------------------------------------------------------------------------

    def flip(self, *, time_limit_s: float, most: int | None = None, enough: float = 0.0) -> None:
        """Turn targets round one at a time, each by a linear program that starts from the last answer.

        The least cost is convex in how far a target must move, so its price bounds what turning it round can save:
        most need not be tried at all. Ends after `most` tries, or at a cost that is low enough.
        """
        assert self.best is not None
        i, both = self.instance, self.instance.can_rise & self.instance.can_fall
        tried, budget = np.zeros(len(both), np.bool_), self.budget.child(min(time_limit_s, self.left))
        tries = count() if most is None else range(most)
        for _ in tries:
            way, change = self.best.way, self.best.change
            if budget.over or change.cost <= enough:
                return
            saving = np.where(both & ~tried, self._saving(way, change), 0.0)
            target = int(np.argmax(saving)) if saving.size else 0
            if not saving.size or saving[target] <= TOLERANCE * change.cost:
                return
            tried[target] = True
            other = way.copy()
            other[target] = -other[target]
            try:
                better = self._program.solve(i.box(other), better_than=change.cost, seconds=budget.left)
            except OutOfTime:
                return
            if better is not None and better.cost < change.cost * (1 - TOLERANCE):
                self.best = Found(other, better)
                self.tell()
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
            begin, limit = worked(), min(max(BLOCK_SECONDS, self.left / 8), self.left)
            open = np.zeros(len(i.targets), np.bool_)
            open[both[self._neighbours(near, int(self.random.integers(both.size)), int(size))]] = True
            idle = 0 if self._improve(open, time_limit_s=limit) else idle + 1
            if open[both].all() and self.closed():
                return
            quick = worked() - begin < limit / 2
            size = min(size * 1.5, both.size) if quick else max(size / 1.5, SMALLEST)

    def regions(self, *, turn: bool = True, rounds: int = 100) -> None:
        """Adjust region after region of a large table while it helps, each round in larger ones.

        First around the targets that promise most. Tables too deep for one program keep whole moves throughout.
        """
        assert self.best is not None
        near, pace = Regions.of(self.instance), Pace()
        self.best = Found(self.best.way.copy(), replace(self.best.change, moves=self.best.change.moves.copy()))
        for _ in range(rounds):
            before, seen = self.cost, np.zeros(len(self.instance.targets), np.bool_)
            while self.left > 0.5 and not seen.all():
                self._sweep(near, pace, seen, turn=turn)
                self._polish()
                self.tell()
            if self.left < 0.5 or (self.cost > before * (1 - WORTHWHILE) and pace.slowest):
                return
            pace.slower()

    def _sweep(self, near: Regions, pace: Pace, seen: Mask, *, turn: bool) -> None:
        """Adjust some regions around targets that were in none before; `seen` is filled."""
        done = 0
        for target in np.argsort(-self._promise()).tolist():
            if done >= TOGETHER or self.left < 0.5:
                return
            if seen[target]:
                continue
            with pace.measured():
                cells = near.around(int(self.instance.targets[target]), pace.cells, self.random)
                inside = near.target[cells]
                seen[inside[inside >= 0]] = True
                self._adjust(near, cells, seconds=min(pace.limit, self.left), turn=turn)
            done += 1

    def _promise(self) -> Floats:
        """What turning each target round may save; equal ones in a random order."""
        assert self.best is not None
        saving = self._saving(self.best.way, self.best.change)
        return np.asarray(np.maximum(saving, 0.0) + 1e-12 * self.random.random(len(saving)))

    def _adjust(self, near: Regions, cells: NDArray[np.intp], *, seconds: float, turn: bool) -> None:
        """Adjust one region; moves and directions of the best answer, which are the search's own, change in place."""
        assert self.best is not None
        change = self.best.change
        step = near.improved(cells, change.moves, self.best.way, seconds=seconds, turn=turn, whole=self.deep)
        if step is not None:
            step.take(change.moves, self.best.way)
            self.best = Found(self.best.way, replace(change, cost=change.cost - step.saved))

    def _polish(self) -> None:
        """The least change of the whole table for the directions found region by region."""
        if self.best is None or self.deep:
            return
        with suppress(OutOfTime):
            change = self._program.solve(self.instance.box(self.best.way), seconds=max(self.left, AT_LEAST_S))
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
        """Choose the best directions of the open targets when the others keep theirs; whether that is better.

        What is found until the user interrupts is kept.
        """
        assert self.best is not None
        program, before = self._directions(open), self.cost
        start = (self.best.change.moves, self.best.way[open] > 0)
        everything = bool((open | ~(self.instance.can_rise & self.instance.can_fall)).all())
        report = self.tell if everything and self.report is not None else None
        choice = program.choose(time_limit_s=time_limit_s, start=start, report=report)
        if everything:
            self.bound = max(self.bound, min(choice.bound, self.cost))
            self.tell()
        if choice.rise is not None and (choice.rise != start[1]).any():
            way = self.best.way.copy()
            way[open] = np.where(choice.rise, 1, -1)
            with suppress(OutOfTime):
                change = self._program.solve(self.instance.box(way), seconds=max(self.left, AT_LEAST_S))
                if change is not None:
                    self._take(way, change)
        if choice.interrupted:
            raise KeyboardInterrupt
        return self.cost < before * (1 - TOLERANCE)

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
        self.bound = max(self.bound, i.price(i.base))
        if self.deep or len(i.cells) > 2 * LARGE:
            return
        open = i.can_rise & i.can_fall
        bound, lean = self._directions(open).relaxed(time_limit_s=max(self.left / (3 if self.long else 2), AT_LEAST_S))
        self.bound = max(self.bound, min(bound, self.cost))
        self.tell()
        self.lean = np.where(i.can_rise, 1.0, 0.0)
        self.lean[open] = lean

    def optimise(self) -> None:
        """Choose all directions together, from the best known, with what time is left."""
        self._improve(self.instance.can_rise & self.instance.can_fall, time_limit_s=self.left)

    def whole(self, start: Integers | None) -> Integers | None:
        """The least change in whole numbers, directions included, with what time is left; `start` if none is better."""
        if start is not None and self.left < 0.2:
            return start
        i = self.instance
        open = i.can_rise & i.can_fall
        program = self._directions(open, 2 * self.cost if start is None else i.price(start))
        begin = None if start is None else (start.astype(np.float64), start[i.targets][open] > 0)
        choice = program.choose(time_limit_s=max(self.left, AT_LEAST_S), start=begin, whole=True)
        if choice.moves is None:
            return start
        moves = np.rint(choice.moves).astype(np.int64)
        self.bound = max(self.bound, choice.bound)
        better = i.holds(moves) and (start is None or i.price(moves) < i.price(start))
        return moves if better else start

    def whole_by_lattice(self) -> Integers | None:
        """Whole moves in the best directions by a basis of all changes: near the least, whatever the table's shape."""
        if self.best is None:
            return None
        means = Means.none(self.instance) if self.means is None else self.means
        budget = self.last_seconds()
        return means.by_lattice(self.best.way, self.best.change.moves, budget=budget, program=self._program)

    def whole_by_regions(self) -> Integers | None:
        """Whole moves in the best directions, box by box: not the least, but soon found."""
        assert self.best is not None
        moves = settled(Regions.of(self.instance), self.best.way, self.random, budget=self.last_seconds())
        return None if moves is None else np.rint(moves).astype(np.int64)
