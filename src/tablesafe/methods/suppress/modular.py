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
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.ledger import NEAR, boxed, ledger_of, work
from tablesafe.methods.suppress.part import Held, Outcome, Part
from tablesafe.methods.suppress.subtables import Subtables, region, waves
from tablesafe.methods.suppress.witnesses import CannotProtect
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
TARGETS = 300
DOUBTFUL = 120
"""Targets to protect, and cells to reconsider, in one part."""
MANY = 2.5
"""Equations of a cell, on average, beyond which a table has three dimensions or more."""
WAVE = 32
"""Parts under way at the same time."""
WORTH = 0.95
MOST = 20_000
"""Share of the cost that is reconsidered, in at most so many cells; the rest is many cells that cost little."""
SMALL = 5_000
"""Complementary cells up to which all are reconsidered, and again as long as that pays."""
PASSES = 4
TARGET_S = 0.004
DOUBT_S = 0.02
"""Rough seconds per target and per doubtful cell, to share out the work."""


def modular(
    instance: Instance,
    *,
    guard: Guard | None = None,
    seconds: float = 60.0,
    executor: Executor | None = None,
    report: Callable[[float, float], None] | None = None,
) -> Mask:
    """A pattern that protects every target of an instance; raises CannotProtect for the first that none protects.

    With a guard, against single respondents too, as far as that can be. Second thoughts take `seconds` of work in all,
    or a quarter as much as the first ones; an interrupt ends them. `report` is told the cost and a bound on it.
    """
    if not len(instance.level):
        return instance.forced.copy()
    with workers(executor, len(instance.level) * (TARGET_S + DOUBT_S)) as pool:
        plan = Modular(instance, guard, pool, report)
        plan.protect()
        try:
            plan.clean_up(seconds)
        except KeyboardInterrupt:
            warnings.warn("Interrupted: the pattern so far is checked and kept. Interrupt again to stop.", stacklevel=2)
    return plan.pattern


class Modular:
    """The state of the whole table between parts: who is protected by which deviation."""

    def __init__(
        self,
        instance: Instance,
        guard: Guard | None,
        pool: Executor | None,
        report: Callable[[float, float], None] | None = None,
    ) -> None:
        self.instance = instance
        self._report = report
        self._guard = guard
        self._pool = pool
        self._subtables = Subtables.of(instance.rows)
        self._uses = np.zeros(len(instance), dtype=np.int32)
        self._deviations: dict[int, Held] = {}
        self._next = 0
        self._spent = 0.0
        self._boxes = False
        self._protected = np.zeros(len(instance.level), dtype=np.bool_)

    @property
    def pattern(self) -> Mask:
        """What is withheld."""
        return self.instance.forced | (self._uses > 0)

    def protect(self) -> None:
        """Protect every target, from the top down; what a part is too small for is tried in larger ones."""
        self._by_boxes()
        targets = np.flatnonzero(~self._protected)
        for size, together in ((REGION, TARGETS), (ALONE, 1), (10 * REGION, 10), (len(self.instance), 1)):
            batches = self._subtables.batches(self.instance.cell[targets], together, ROOM)
            depth = [int(self._subtables.depth[self.instance.cell[targets[own[0]]]]) for own in batches]
            for wave in waves(batches, depth, WAVE if size <= REGION else 2):
                self._protect_wave([np.sort(targets[batches[i]]) for i in wave], size)
            targets = np.flatnonzero(~self._protected)
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
        targets = range(len(self.instance.level))
        ledger = ledger_of(self.instance, np.arange(len(targets)), self._guard, boxes=True)
        self._boxes = boxed(ledger, targets) is not None
        if self._boxes:
            for held in ledger.deviations:
                self._add(held)
                self._protected[list(held.served)] = True
        self._spent += ledger.seconds

    def _protect_wave(self, batches: list[Integers], size: int) -> None:
        todo = [own[~self._protected[own]] for own in batches]
        jobs = [self._job(np.unique(self.instance.cell[own]), own, (), (), size) for own in todo if own.size]
        seconds = [TARGET_S * len(own) for own in todo if own.size]
        for job, outcome in zip(jobs, self._work(jobs, seconds), strict=True):
            for held in job.outside(outcome):
                served = tuple(target for target in held.served if not self._protected[target])
                if served:
                    self._add(Held(held.cells, held.amount, served, held.guarded))
                    self._protected[list(served)] = True

    def clean_up(self, seconds: float) -> None:
        """Publish again what is not needed, the most costly cells and whatever stands in their subtables."""
        end = self._spent + max(seconds, self._spent / 4)
        if self._boxes:
            self._reconsider_boxes(end - self._spent)
            return
        for _ in range(PASSES):
            before = self._cost()
            self._clean(self._costly(), end)
            if self._spent >= end or self._cost() > before * (1 - 1e-3):
                return

    def _reconsider_boxes(self, seconds: float) -> None:
        """Look for other boxes, in the whole table.

        Programs would find deviations that cost less, but lead far: an audit would look for them in vain.
        """
        ledger = ledger_of(self.instance, np.arange(len(self.instance.level)), self._guard, boxes=True)
        for held in self._deviations.values():
            ledger.add(held)
        for cell in self._costly().tolist():
            if ledger.seconds > seconds:
                break
            ledger.reconsider(cell, programs=False)
            if self._report is not None:
                self._report(ledger.cost, 0.0)
        self._deviations, self._next = {}, 0
        self._uses[:] = 0
        for held in ledger.deviations:
            self._add(held)
        self._spent += ledger.seconds

    def _cost(self) -> float:
        return self.instance.pattern_cost(self.pattern)

    def _costly(self) -> Integers:
        """Complementary cells, the most costly first; where they are many, without the long tail."""
        cells = np.flatnonzero((self._uses > 0) & ~self.instance.forced)
        cells = cells[np.argsort(-self.instance.cost[cells], kind="stable")]
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
                self._report(self._cost(), 0.0)
            self._clean_wave([cells[np.sort(batches[i])] for i in wave], each)

    def _clean_wave(self, batches: list[Integers], each: float) -> None:
        """Reconsider cells of several parts; of two parts that rely on one deviation, the second must wait."""
        users = self._users(np.concatenate(batches))
        jobs = []
        for cells in batches:
            names = sorted({name for cell in cells.tolist() for name in users.get(cell, ())})
            if names:
                jobs.append(self._job(cells, np.zeros(0, np.int64), names, cells.tolist(), REGION, each * len(cells)))
        seconds = [DOUBT_S * len(job.part.doubtful) for job in jobs]
        for job, outcome in zip(jobs, self._work(jobs, seconds), strict=True):
            if all(name in self._deviations for name in job.names):
                self._exchange(job, job.outside(outcome))

    def _exchange(self, job: _Job, new: list[Held]) -> None:
        """Take the new deviations of a part for its old ones, unless that costs more by now."""
        old = [self._deviations[name] for name in job.names]
        touched = np.unique(np.concatenate([held.cells for held in (*old, *new)]))
        touched = touched[~self.instance.forced[touched]]
        before = float(self.instance.cost[touched[self._uses[touched] > 0]].sum())
        for held in old:
            self._uses[held.cells] -= 1
        for held in new:
            self._uses[held.cells] += 1
        if float(self.instance.cost[touched[self._uses[touched] > 0]].sum()) > before:
            for held in new:
                self._uses[held.cells] -= 1
            for held in old:
                self._uses[held.cells] += 1
            return
        for name in job.names:
            del self._deviations[name]
        for held in new:
            self._deviations[self._next] = held
            self._next += 1

    def _users(self, cells: Integers) -> dict[int, list[int]]:
        """The deviations that use each of some cells."""
        names = np.fromiter(self._deviations, dtype=np.int64, count=len(self._deviations))
        every = [held.cells for held in self._deviations.values()]
        name, cell = np.repeat(names, [len(own) for own in every]), np.concatenate(every)
        wanted = np.zeros(len(self.instance), dtype=np.bool_)
        wanted[cells] = True
        name, cell = name[wanted[cell]], cell[wanted[cell]]
        out: dict[int, list[int]] = {}
        for own, user in zip(cell.tolist(), name.tolist(), strict=True):
            out.setdefault(own, []).append(user)
        return out

    def _add(self, held: Held) -> None:
        self._deviations[self._next] = held
        self._uses[held.cells] += 1
        self._next += 1

    def _work(self, jobs: list[_Job], seconds: list[float]) -> list[Outcome]:
        outcomes = in_order(work, [job.part for job in jobs], seconds, self._pool)
        self._spent += sum(outcome.seconds for outcome in outcomes)
        return outcomes

    def _job(self, cells: Integers, pending: Integers, names: tuple[int, ...] | list[int],
             doubtful: tuple[int, ...] | list[int], size: int, seconds: float = np.inf) -> _Job:  # fmt: skip
        """Cut out the region around some cells, with the targets and deviations to work on."""
        instance = self.instance
        held = [self._deviations[name] for name in names]
        own_uses = np.zeros(0, np.int64) if not held else np.concatenate([one.cells for one in held])
        targets = np.unique([*pending.tolist(), *(target for one in held for target in one.served)]).astype(np.int64)
        core = np.unique(np.concatenate([cells, instance.cell[targets]]))
        boxes = self._subtables.around(core)
        if len(boxes) <= size:
            core, size = boxes, min(REGION, max(LEAST, WIDER * len(boxes))) if size == REGION else size
        core = np.union1d(core, own_uses)
        price = np.where(self._uses > 0, 0.0, instance.cost)
        inside = region(instance, core, price, max(size, len(core)))
        others = self._uses.copy()
        np.subtract.at(others, own_uses, 1)
        local = {int(target): i for i, target in enumerate(targets.tolist())}
        part = replace(
            Part.cut(instance, inside, targets, instance.forced | (others > 0), self._guard),
            near_first=len(boxes) <= NEAR,
            boxes=self._boxes,
            pending=tuple(local[target] for target in pending.tolist()),
            held=tuple(
                Held(np.searchsorted(inside, one.cells), one.amount, tuple(local[t] for t in one.served), one.guarded)
                for one in held
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

    def outside(self, outcome: Outcome) -> list[Held]:
        """The deviations of an outcome in the numbers of the whole table."""
        return [
            Held(self._cells[held.cells], held.amount, tuple(self._targets[list(held.served)].tolist()), held.guarded)
            for held in outcome.held
        ]
