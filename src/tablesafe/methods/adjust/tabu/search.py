"""The three phases: a feasible change, its improvement, and turning sensitive cells round without turning them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidOption, OutOfTime, SolverFailure
from tablesafe.core.problem import Problem
from tablesafe.loss.statistics import Group, groups_of
from tablesafe.methods.adjust.aims import Keep, Tabu
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.methods.adjust.interrupt import until_interrupted
from tablesafe.methods.adjust.means import Means
from tablesafe.methods.adjust.repair import NoChange, Short, repaired
from tablesafe.methods.adjust.tabu import kernel
from tablesafe.methods.adjust.tabu.cycles import Cycles
from tablesafe.methods.adjust.tabu.kernel import FAR, Data, State
from tablesafe.solve.least_change import LeastChange
from tablesafe.work.budget import Budget

WORK = 20_000
"""Cells that one sweep steps through; cycles beyond wait for the next."""
MIXED, JOINED, FACTORS = 400, 3, 8
"""Random directions of a sweep, how many cycles each joins, and up to how many times each of these."""
SWEEPS = 40
"""Sweeps of one improvement at most."""
CLOSE = 1e-9
"""Merits that differ by less are equal."""
PARTS = 4
"""Sweeps in vain before a change counts as improved, when one does not reach all cycles."""
RESTART = 12
"""Iterations without a better change before the search goes on elsewhere."""
IDLE = 1e-6
"""The least weight of the distance: a change that does nothing for the measure counts for something."""
LITTLE = 1e-5
"""By how much a statistic that is to be best may be worse than where the search begins."""
TRIED = 24
"""Steps per sweep that a user's own measure is asked about."""


@dataclass(eq=False)
class TabuSearch:
    """One problem, a measure, and the best change so far."""

    problem: Problem
    means: Means
    tabu: Tabu
    first: Integers = field(repr=False)
    """A feasible change to begin with."""
    budget: Budget
    random: np.random.Generator
    keep: Keep | None = None
    """Statistics whose limits hold on the way; what is to be best stays as good as it is at the beginning."""
    stopped: bool = False
    """Whether the user has interrupted it."""
    best: tuple[float, Integers] = field(init=False, repr=False)
    """The best change so far, and its measure."""
    data: Data = field(init=False, repr=False)
    space: dict[str, NDArray[Any]] = field(init=False, repr=False)
    _program: LeastChange = field(init=False, repr=False)
    _short: Short = field(init=False, repr=False)

    @property
    def instance(self) -> Instance:
        """The problem, means among its equations."""
        return self.means.instance

    def __post_init__(self) -> None:
        i = self.instance
        cycles = Cycles.of(i, self.random)
        if cycles is None:
            raise SolverFailure(
                "The equations of this table leave no simple steps to search with.",
                hint="use Adjust without tabu; keep=Keep(...) works on every table.",
            )
        self.data = data_of(self.problem, i, self.tabu, cycles, self.first)
        self.data = self.data._replace(limit=_limits(self.keep, self.data, self.first))
        self.space = kernel.workspace(self.data, len(i.cells), JOINED)
        self._program, self._short = LeastChange(i.rows, i.cost, i.cost, i.scale()), Short(i)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.budget.left

    def value(self, state: State) -> float:
        """The whole measure of a change."""
        found = float(kernel.measure(self.data, state))
        if self.tabu.function is None:
            return found
        return found + self._asked(state.moves)

    def _asked(self, moves: Integers) -> float:
        """The user's own part of the measure."""
        assert self.tabu.function is not None
        table = self.problem.table
        integers = table.integers.copy()
        integers[self.instance.cells] += moves
        answer: Any = self.tabu.function(table.value, integers / 10.0**table.decimals)
        if np.ndim(answer) != 0 or not np.isfinite(float(answer)):
            raise InvalidOption(
                f"Tabu.function must return a finite number, got {answer!r}.", about=("option", "Tabu", "function")
            )
        return float(answer)

    def run(self) -> Integers:
        """The best change found."""
        self.best = (np.inf, self.first)
        with until_interrupted(self):
            self._note(self._improved(self.first))
            self._turned()
            self._note(self._improved(self.best[1]))
        return self.best[1]

    def _note(self, found: tuple[float, Integers]) -> bool:
        """Keep a change if it is better than the best; whether it clearly is."""
        clearly = found[0] < self.best[0] - CLOSE
        if found[0] < self.best[0]:
            self.best = found
        return clearly

    # -- improve ---------------------------------------------------------------------------------------------------

    def _improved(self, moves: Integers, sweeps: int = SWEEPS) -> tuple[float, Integers]:
        """Steps along cycles, then along random sums of them, while they help."""
        state, idle = kernel.state_of(self.data, moves), 0
        whole = max(1, min(len(self.data.cell) // WORK, PARTS))
        for _ in range(sweeps):
            if self.left <= 0 or idle >= whole:
                break
            gained = self._sweep(state)
            kernel.refresh(self.data, state)
            idle = 0 if gained < -CLOSE else idle + 1
        return self.value(state), state.moves

    def _sweep(self, state: State) -> float:
        count = len(self.data.start) - 1
        if count == 0:
            return 0.0
        if self.tabu.function is not None:
            return self._sweep_asking(state)
        order = self.random.permutation(count)
        order = order[: np.searchsorted(np.cumsum(np.diff(self.data.start)[order]), WORK) + 1]
        gained = float(kernel.descend(self.data, state, order, self.space["out"]))
        mixed = max(int(MIXED * len(order) / count), 8) if len(order) < count else MIXED
        chosen = self.random.integers(count, size=(mixed, JOINED))
        factor = self.random.integers(-FACTORS, FACTORS + 1, size=(mixed, JOINED))
        return gained + float(kernel.descend_mixed(self.data, state, chosen, factor, **self.space))

    def _sweep_asking(self, state: State) -> float:
        """The same with a measure that is asked anew for every step."""
        before = now = self.value(state)
        for c in self.random.integers(len(self.data.start) - 1, size=TRIED).tolist():
            cells, steps, count = self._direction(c)
            found = kernel.lengths(self.data, state, cells, steps, count, self.space["out"])
            for t in self.random.permutation(np.unique(self.space["out"][:found]))[:TRIED].tolist():
                if t == 0 or self.left <= 0 or not kernel.fits(self.data, state, cells, steps, count, t):
                    continue
                kernel.take(self.data, state, cells, steps, count, t)
                after = self.value(state)
                if after < now - 1e-13:
                    now = after
                else:
                    kernel.take(self.data, state, cells, steps, count, -t)
        return now - before

    def _direction(self, first: int) -> tuple[Integers, Integers, int]:
        """A cycle, or a random sum of cycles that begins with it."""
        joined = int(self.random.integers(1, JOINED + 1))
        chosen = np.concatenate([[first], self.random.integers(len(self.data.start) - 1, size=joined - 1)])
        factor = np.concatenate([[1], self.random.integers(-FACTORS, FACTORS + 1, size=joined - 1)])
        cells, steps = self.space["cells"], self.space["steps"]
        count = int(kernel.mix(self.data, chosen, factor, self.space["place"], cells, steps))
        return cells, steps, count

    # -- tabu ------------------------------------------------------------------------------------------------------

    def _turned(self) -> None:
        """Turn targets round, the best of a few at a time, even when that is worse; and not back for a while."""
        current, idle, since = self.best[1], 0, 0
        free = np.flatnonzero(self.instance.can_rise & self.instance.can_fall)
        until = np.zeros(len(self.instance.targets), dtype=np.int64)
        for iteration in range(self.tabu.iterations if free.size else 0):
            if self.left <= 0 or idle >= self.tabu.patience:
                break
            idle, since = idle + 1, since + 1
            turned = self._best_turn(current, free, until, iteration, self.best[0])
            if turned is None or since > RESTART:
                fresh, since = self._fresh(), 0
                if fresh is None:
                    continue
                value, current = fresh
            else:
                value, current = turned
            if self._note((value, current)):
                idle, since = 0, 0

    def _best_turn(
        self, moves: Integers, free: NDArray[np.intp], until: Integers, iteration: int, best: float
    ) -> tuple[float, Integers] | None:
        """The first of a few ways to turn one target, or two, that beats everything yet, or the best of them.

        Those turned lately only if that beats everything.
        """
        found: list[tuple[float, int, Integers, NDArray[np.intp]]] = []
        for number, targets in enumerate(self._candidates(free, until, iteration)):
            flipped = self._flipped(moves, targets)
            if flipped is not None and ((until[targets] <= iteration).all() or flipped[0] < best - CLOSE):
                found.append((flipped[0], number, flipped[1], targets))
                if flipped[0] < best - CLOSE:
                    break
        if not found:
            return None
        value, _, turned, targets = min(found, key=lambda entry: entry[:2])
        until[targets] = iteration + self.tabu.tenure + int(self.random.integers(self.tabu.tenure))
        return value, turned

    def _candidates(self, free: NDArray[np.intp], until: Integers, iteration: int) -> list[NDArray[np.intp]]:
        """Targets to try: some that may be turned, alone or two together, and one that may have been turned lately."""
        open = self.random.permutation(free[until[free] <= iteration])
        chosen: list[NDArray[np.intp]] = []
        while open.size and len(chosen) < self.tabu.width:
            take = min(int(self.random.integers(1, 3)), open.size)
            chosen.append(open[:take])
            open = open[take:]
        return [*chosen, self.random.choice(free, 1)]

    def _flipped(self, moves: Integers, targets: NDArray[np.intp]) -> tuple[float, Integers] | None:
        """The change with some targets turned round, improved; None when the others cannot follow."""
        way: Way = np.where(moves[self.instance.targets] > 0, 1, -1).astype(np.int8)
        way[targets] = -way[targets]
        return self._along(way) or self._near(way, targets)

    def _near(self, way: Way, chosen: NDArray[np.intp] | None = None) -> tuple[float, Integers] | None:
        """The same where others must turn too; the chosen ones stay turned."""
        try:
            near = repaired(self.instance, way, self.random, budget=self.budget, short=self._short, chosen=chosen)
        except (NoChange, OutOfTime):
            return None
        return self._along(near)

    def _along(self, way: Way) -> tuple[float, Integers] | None:
        """The least change in these directions, improved."""
        if self.left <= 0:
            return None
        try:
            change = self._program.solve(self.instance.box(way), seconds=max(self.left, 0.1))
        except OutOfTime:
            return None
        if change is None:
            return None
        whole = self.means.rounded(way, change.moves, budget=self.budget.at_least(0.1))
        if whole is None or not self.instance.holds(whole):
            return None
        return self._improved(whole, SWEEPS // 4)

    def _fresh(self) -> tuple[float, Integers] | None:
        """Another place to go on from: random directions, repaired where they are not feasible."""
        way = np.where(self.random.random(len(self.instance.targets)) < 0.5, 1, -1).astype(np.int8)
        return self._near(self.instance.allowed(way))


def data_of(problem: Problem, instance: Instance, tabu: Tabu, cycles: Cycles, first: Integers) -> Data:
    """Everything the kernel needs, as arrays numbered by the cells that may move; distances are those of `first`."""
    i, count = instance, len(instance.cells)
    above, below = np.zeros(count, np.int64), np.zeros(count, np.int64)
    above[i.targets], below[i.targets] = i.above.astype(np.int64), i.below.astype(np.int64)
    groups = [g for g in groups_of(problem, tabu.over) if _varies(problem, g)]
    member_start, member, deviation, size, unit = _members(problem, instance, groups)
    value = np.abs(problem.table.integers[i.cells]).astype(np.float64)
    square = np.divide(1.0, value, out=np.zeros(count), where=value > 0)
    return Data(
        cycles.start, cycles.cell, cycles.coefficient,
        np.minimum(i.up, FAR).astype(np.int64), np.minimum(i.down, FAR).astype(np.int64), above, below,
        i.cost / _positive(i.price(first)), square / _positive(float(square @ np.square(first.astype(np.float64)))),
        member_start, member, deviation, size, unit, _weights(tabu), np.full(3, np.inf),
    )  # fmt: skip


def _members(
    problem: Problem, instance: Instance, groups: Sequence[Group]
) -> tuple[Integers, Integers, Floats, Floats, Floats]:
    """Which groups each cell that may move is in, and how far its true value is from their means."""
    place = np.full(len(problem.table), -1)
    place[instance.cells] = np.arange(len(instance.cells))
    cells, member, deviation = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    size, unit = np.zeros(len(groups)), np.zeros(len(groups))
    for g, group in enumerate(groups):
        values = problem.table.integers[group.cells].astype(np.float64)
        d = values - values.mean()
        spread = float(np.sqrt(d @ d))
        size[g], unit[g] = len(d), 1.0 / spread
        moving = np.flatnonzero(place[group.cells] >= 0)
        cells.append(place[group.cells[moving]])
        member.append(np.full(len(moving), g))
        deviation.append(d[moving] / spread)
    cell, group_of, far = np.concatenate(cells), np.concatenate(member), np.concatenate(deviation)
    order = np.argsort(cell, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=len(instance.cells)))])
    return start.astype(np.int64), group_of[order].astype(np.int64), far[order], size, unit


def _weights(tabu: Tabu) -> Floats:
    """The weights; a change that does nothing for the measure always counts for something."""
    distance, *others = tabu.weights
    return np.array([max(distance, IDLE), *others], dtype=np.float64)


def _limits(keep: Keep | None, data: Data, first: Integers) -> Floats:
    """The most that 1 − correlation, |1 − slope| and |ratio − 1| may be: what is to be best stays as it is."""
    given = (None,) * 3 if keep is None else (keep.correlation, keep.slope, keep.variance)
    reached = kernel.deviations(data, kernel.state_of(data, first))
    return np.array(
        [
            np.inf if limit is None else now + LITTLE if limit == "best" else limit
            for limit, now in zip(given, reached, strict=True)
        ],
        dtype=np.float64,
    )


def _varies(problem: Problem, group: Group) -> bool:
    values = problem.table.integers[group.cells]
    return len(values) > 1 and bool((values != values[0]).any())


def _positive(number: float) -> float:
    return number if number > 0 else 1.0
