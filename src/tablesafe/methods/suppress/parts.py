"""One part of a large table, as plain data: its answer depends on nothing else.

So it can be worked on anywhere: here, in another process, on another machine. Whatever stands outside a part stays as
it is, so a deviation found inside holds in the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from tablesafe.audit.respondent_knowledge import Guard
from tablesafe.core.equations import Integers, Mask
from tablesafe.methods.suppress.deviations import Deviation
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.linear_programs import SECOND_THOUGHTS
from tablesafe.methods.suppress.sequential import Sequential
from tablesafe.solve.highs import Model
from tablesafe.work.budget import Budget

CROWDED = 60
"""Deviations that rely on a cell, beyond which it is not reconsidered."""


@dataclass(frozen=True, eq=False)
class Part:
    """An instance of some cells of a table, and what to do there; cells and targets are numbered from 0."""

    instance: Instance
    guard: Guard | None = field(default=None, repr=False)
    near_first: bool = False
    """Whether to look among near cells first, and only then among cheap ones."""
    boxes: bool = False
    """Whether to look for boxes, and for programs only where there is none."""
    pending: tuple[int, ...] = ()
    """Targets to protect, in this order."""
    strict: bool = False
    """Whether only deviations will do for them that no respondent can rule out."""
    deviations: tuple[Deviation, ...] = ()
    """Those that were found before, and may be exchanged."""
    doubtful: tuple[int, ...] = ()
    """Cells to publish again if that pays, in this order."""
    seconds: float = np.inf
    """Work to spend on the doubtful, as a quiet machine would count it: equal on every machine."""
    most_s: float = np.inf
    """Seconds after which programs are given up."""

    @classmethod
    def cut(cls, instance: Instance, cells: Integers, targets: Integers, withheld: Mask, guard: Guard | None) -> Self:
        """Cut some cells (ascending) out of an instance, with some of the targets; nothing is pending yet."""
        part = instance.only(cells, targets=targets, forced=withheld)
        return cls(part, None if guard is None else guard.take(cells))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The deviations of a part after the work on it, and the targets it could not protect."""

    deviations: tuple[Deviation, ...]
    failed: tuple[int, ...]
    seconds: float
    """Work spent."""


def work(part: Part) -> Outcome:
    """Protect what is pending, then reconsider what is doubtful."""
    solver = Model.small(None if part.most_s == np.inf else Budget(part.most_s))
    engine = Sequential.by_programs(part.instance, part.guard, solver, boxes=part.boxes, near_first=part.near_first)
    for deviation in part.deviations:
        engine.pattern.add(deviation)
    strict = np.full(len(part.instance.level), part.strict)
    failed = engine.protect_all(part.pending, strict=strict)
    for cell in part.doubtful:
        if solver.work.spent > part.seconds:
            break
        reconsider(engine, cell, boxes=part.boxes)
    return Outcome(tuple(engine.pattern.deviations), tuple(failed), solver.work.spent)


def reconsider(engine: Sequential, cell: int, *, boxes: bool, within: bool = True) -> None:
    """Publish a cell again if that pays, unless very many rely on it; where there are boxes, by no wider programs."""
    if engine.instance.forced[cell]:
        return
    effort = 0 if boxes else SECOND_THOUGHTS
    engine.reconsider(np.array([cell]), effort=effort, within=within, crowded=CROWDED)
