"""Suppression in parts, for tables of a hundred thousand cells and more.

Subtable by subtable from the top, every sensitive cell is given a deviation that protects it in the whole table. Parts
that are far from each other are worked on at the same time, each from the same state, and their answers are joined in a
fixed order: so the pattern does not depend on who did the work. Then each part publishes again what is not needed.
No part holds more than a fixed number of cells, and no more than a fixed number of parts is under way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from tablesafe.audit.respondent_knowledge import Guard
from tablesafe.core.equations import Integers, Mask
from tablesafe.methods.suppress.deviations import NOBODY, Deviation
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.linear_programs import NEAR
from tablesafe.methods.suppress.parts import Outcome, Part, reconsider, work
from tablesafe.methods.suppress.pattern import CannotProtect, Pattern
from tablesafe.methods.suppress.sequential import Sequential, boxed
from tablesafe.methods.suppress.subtables import Subtables, region, waves
from tablesafe.solve.highs import Model
from tablesafe.work.budget import ENDLESS, Budget
from tablesafe.work.executor import in_order, workers

REGION = 40_000
"""The most cells of a part; a target that it cannot protect is tried alone, then in parts ten times as large, then in
the whole table."""
ALONE = 20_000
"""Cells around a target that is tried alone."""
WIDER, LEAST = 4, 4_000
"""At first a part has so many times as many cells as the subtables it is about, and no fewer than these."""
ROOM = 2_000
"""Inner cells of the subtables that a part is about."""
TARGETS, DOUBTFUL = 300, 120
"""Targets to protect, and cells to reconsider, in one part."""
MANY = 2.5
"""Equations of a cell, on average, beyond which a table has three dimensions or more."""
WAVE = 32
"""Parts under way at the same time."""
WORTH, MOST = 0.95, 20_000
"""Share of the cost that is reconsidered, in at most so many cells; the rest is many cells that cost little."""
SMALL = 5_000
"""Complementary cells up to which all are reconsidered, and again as long as that pays."""
PASSES = 4
"""Times that all parts are gone through, at most."""
TARGET_S, DOUBT_S = 0.004, 0.02
"""Rough seconds per target and per doubtful cell, to share out the work."""


def modular(
    instance: Instance,
    *,
    guard: Guard | None = None,
    seconds: float = 60.0,
    executor: Executor | None = None,
    report: Callable[[float, float], None] | None = None,
    budget: Budget = ENDLESS,
) -> Mask:
    """A pattern that protects every target of an instance; raises CannotProtect for the first that none protects.

    With a guard, against single respondents too, as far as that can be. Second thoughts take `seconds` of work in all,
    or a quarter as much as the first ones; an interrupt ends them. `report` is told the cost and a bound on it. When
    the budget is over before every target is protected, it raises OutOfTime.
    """
    if not len(instance.level):
        return instance.forced.copy()
    with workers(executor, len(instance.level) * (TARGET_S + DOUBT_S)) as pool:
        plan = Modular(instance, guard, pool, report, budget)
        plan.protect()
        try:
            plan.clean_up(seconds)
        except KeyboardInterrupt:
            warnings.warn("Interrupted: the pattern so far is checked and kept. Interrupt again to stop.", stacklevel=2)
    return plan.pattern.withheld


class Modular:
    """Works on one part of a table after another; the pattern is that of the whole."""

    def __init__(
        self,
        instance: Instance,
        guard: Guard | None,
        pool: Executor | None,
        report: Callable[[float, float], None] | None = None,
        budget: Budget = ENDLESS,
    ) -> None:
        self.instance = instance
        self._report, self._budget = report, budget
        self._guard = guard
        self._pool = pool
        self._subtables = Subtables.of(instance.rows)
        self.pattern = Pattern(instance)
        self._spent = 0.0
        self._boxes = False

    def protect(self) -> None:
        """Protect every target, from the top down; what a part is too small for is tried in larger ones."""
        self._by_boxes()
        targets = self.pattern.open
        for size, together in ((REGION, TARGETS), (ALONE, 1), (10 * REGION, 10), (len(self.instance), 1)):
            batches = self._subtables.batches(self.instance.cell[targets], together, ROOM)
            depth = [int(self._subtables.depth[self.instance.cell[targets[own[0]]]]) for own in batches]
            for wave in waves(batches, depth, WAVE if size <= REGION else 2):
                self._budget.check()
                self._protect_wave([np.sort(targets[batches[i]]) for i in wave], size)
            targets = self.pattern.open
            if not targets.size:
                return
        raise CannotProtect(int(targets[0]))

    def _by_boxes(self) -> None:
        """Where subtables are large and have three dimensions or more, boxes are found in the whole table, and at once.

        So they are where very many cells are withheld by design: the unseen cells of a large cube.
        Elsewhere programs over a subtable take no longer, and find cheaper deviations.
        """
        flat = self._subtables.cut[self.instance.cell].mean() >= 0.5 or int(self.instance.forced.sum()) > ALONE
        if self.instance.rows.nnz < MANY * len(self.instance) or not flat:
            return
        solver = Model.small()
        engine = Sequential.by_programs(self.instance, self._guard, solver, boxes=True)
        self._boxes = boxed(engine, range(len(self.instance.level))) is not None
        if self._boxes:
            for deviation in engine.pattern.deviations:
                self.pattern.add(deviation)
        self._spent += solver.work.spent

    def _protect_wave(self, batches: list[Integers], size: int) -> None:
        pattern = self.pattern
        todo = [own[pattern.by[own] < 0] for own in batches]
        jobs = [self._job(np.unique(self.instance.cell[own]), own, (), (), size) for own in todo if own.size]
        seconds = [TARGET_S * len(own) for own in todo if own.size]
        for job, outcome in zip(jobs, self._work(jobs, seconds), strict=True):
            for deviation in job.outside(outcome):
                served = deviation.served[pattern.by[deviation.served] < 0]
                if served.size:
                    pattern.add(replace(deviation, served=served))

    def clean_up(self, seconds: float) -> None:
        """Publish again what is not needed, the most costly cells and whatever stands in their subtables."""
        end = self._spent + max(seconds, self._spent / 4)
        if self._boxes:
            self._reconsider_boxes(end - self._spent)
            return
        for _ in range(PASSES):
            before = self.pattern.cost
            self._clean(self._costly(), end)
            if self._spent >= end or self.pattern.cost > before * (1 - 1e-3):
                return

    def _reconsider_boxes(self, seconds: float) -> None:
        """Look for other boxes, in the whole table.

        Programs would find deviations that cost less, but lead far: an audit would look for them in vain.
        """
        solver = Model.small()
        engine = Sequential.by_programs(self.instance, self._guard, solver, boxes=True)
        for deviation in self.pattern.deviations:
            engine.pattern.add(deviation)
        self.pattern = engine.pattern
        for cell in self._costly().tolist():
            if solver.work.spent > seconds:
                break
            reconsider(engine, cell, boxes=True, within=False)
            if self._report is not None:
                self._report(self.pattern.cost, 0.0)
        self._spent += solver.work.spent

    def _costly(self) -> Integers:
        """Complementary cells, the most costly first; where they are many, without the long tail."""
        cells = self.pattern.dearest_first()
        if len(cells) <= SMALL:
            return cells
        reached = np.cumsum(self.instance.cost[cells])
        return cells[: min(MOST, int(np.searchsorted(reached, WORTH * reached[-1])) + 1)]

    def _clean(self, cells: Integers, end: float) -> None:
        batches = self._subtables.batches(cells, DOUBTFUL, ROOM)
        depth = [int(self._subtables.depth[cells[own[0]]]) for own in batches]
        each = (end - self._spent) / max(len(cells), 1)
        for wave in waves(batches, depth, WAVE):
            if self._spent >= end:
                return
            if self._report is not None:
                self._report(self.pattern.cost, 0.0)
            self._clean_wave([cells[np.sort(batches[i])] for i in wave], each)

    def _clean_wave(self, batches: list[Integers], each: float) -> None:
        """Reconsider cells of several parts; of two parts that rely on one deviation, the second must wait."""
        jobs = []
        for cells in batches:
            names = self.pattern.relying_on(cells.tolist())
            if names:
                jobs.append(self._job(cells, np.zeros(0, np.int64), names, cells.tolist(), REGION, each * len(cells)))
        seconds = [DOUBT_S * len(job.part.doubtful) for job in jobs]
        for job, outcome in zip(jobs, self._work(jobs, seconds), strict=True):
            if all(name in self.pattern.kept for name in job.names):
                self.pattern.exchange(job.names, job.outside(outcome), self.pattern.cost * (1 + 1e-12))

    def _work(self, jobs: list[_Job], seconds: list[float]) -> list[Outcome]:
        outcomes = in_order(work, [job.part for job in jobs], seconds, self._pool)
        self._spent += sum(outcome.seconds for outcome in outcomes)
        return outcomes

    def _job(self, cells: Integers, pending: Integers, names: tuple[int, ...] | list[int],
             doubtful: tuple[int, ...] | list[int], size: int, seconds: float = np.inf) -> _Job:  # fmt: skip
        """Cut out the region around some cells, with the targets and deviations to work on."""
        instance, pattern = self.instance, self.pattern
        own = [pattern.kept[name] for name in names]
        own_uses = np.concatenate([NOBODY, *(each.cells for each in own)])
        targets = np.unique(np.concatenate([pending, *(each.served for each in own)]))
        core = np.unique(np.concatenate([cells, instance.cell[targets]]))
        boxes = self._subtables.around(core)
        if len(boxes) <= size:
            core, size = boxes, min(REGION, max(LEAST, WIDER * len(boxes))) if size == REGION else size
        core = np.union1d(core, own_uses)
        price = np.where(pattern.used, 0.0, instance.cost)
        inside = region(instance, core, price, max(size, len(core)))
        others = pattern.uses.copy()
        np.subtract.at(others, own_uses, 1)
        part = replace(
            Part.cut(instance, inside, targets, instance.forced | (others > 0), self._guard),
            near_first=len(boxes) <= NEAR,
            boxes=self._boxes,
            pending=tuple(np.searchsorted(targets, pending).tolist()),
            deviations=tuple(
                replace(each, cells=np.searchsorted(inside, each.cells), served=np.searchsorted(targets, each.served))
                for each in own
            ),
            seconds=seconds,
            doubtful=tuple(np.searchsorted(inside, np.asarray(doubtful, dtype=np.int64)).tolist()),
        )
        return _Job(part, inside, targets, tuple(names))


class _Job:
    """A part, and what its cells and targets are in the whole table."""

    def __init__(self, part: Part, cells: Integers, targets: Integers, names: tuple[int, ...]) -> None:
        self.part, self.names = part, names
        self._cells, self._targets = cells, targets

    def outside(self, outcome: Outcome) -> list[Deviation]:
        """The deviations of an outcome in the numbers of the whole table."""
        return [
            replace(each, cells=self._cells[each.cells], served=self._targets[each.served])
            for each in outcome.deviations
        ]
