"""What has to be withheld so that insiders who learn too much no longer do.

Each gets a deviation of its own, which it cannot rule out: it moves no cell that the insider knows, and takes none
below what it has there itself. In a large table each is looked for in a part around its cell, many at the same time,
and the answers are joined in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from tablesafe.audit.insiders import Insider
from tablesafe.audit.respondent_knowledge import Guard, Lists
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress.hypercube_method import Seen, against_insiders
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.linear_programs import EFFORTS, EVERYTHING, SECOND_THOUGHTS
from tablesafe.methods.suppress.parts import Outcome, Part, work
from tablesafe.methods.suppress.sequential import GUARDED, Sequential
from tablesafe.methods.suppress.subtables import Subtables, region
from tablesafe.solve.highs import Model
from tablesafe.solve.hypercubes import Hypercubes
from tablesafe.work.budget import ENDLESS, Budget
from tablesafe.work.executor import in_order, workers

FEW = 20
"""Insiders for whom, one by one, the whole table is looked at where its surroundings do not help."""
MANY = 200
"""Insiders from which on each is content with the first way that is found near it."""
SIZES = (2_000, 8_000, 40_000)
"""Cells of a part, beside the subtables of its target; a table no larger than the last is not taken apart."""
AFTER_CUBES = 0.15
"""Share of the time for those few, in one round of repair, whom no hypercube convinces."""
WAVE, STEP = 32, 4
"""Parts that start from the same pattern, and those of them that are sent off before one looks at the time again."""
PART_S, MOST_S = 0.2, 3.0
"""Rough seconds of work on a part, and those after which it is given up."""


def asked_by(found: Sequence[Insider], instance: Instance, problem: Problem) -> tuple[Instance, list[Insider]]:
    """The instance with what insiders should not be able to rule out as its targets, and the insider of each."""
    unit, whose = 10.0**problem.table.decimals, []
    cell: list[int] = []
    sign: list[int] = []
    level: list[float] = []
    for insider in found:
        true = float(problem.table.value[insider.cell])
        further = {
            -1: insider.short_below and true - insider.lower + insider.short_below,
            +1: insider.short_above and insider.upper - true + insider.short_above,
        }
        if not any(further.values()):
            further[+1] = max(insider.short_width, 1.0 / unit) + insider.upper - true
        for side, far in further.items():
            if far:
                cell.append(insider.cell)
                sign.append(side)
                level.append(float(np.ceil(far * unit - 1e-6)))
                whose.append(insider)
    return replace(
        instance,
        cell=np.array(cell, dtype=np.int64),
        sign=np.array(sign, dtype=np.int8),
        level=np.array(level, dtype=np.float64),
    ), whose


def against(
    found: Sequence[Insider],
    instance: Instance,
    lists: Lists,
    value: Integers,
    executor: Executor | None,
    cubes: Hypercubes | None = None,
    *,
    budget: Budget = ENDLESS,
) -> Mask:
    """The pattern of an instance and what has to be withheld besides; there is one target for each insider.

    When the budget is over, it is what was found so far.
    """
    left = np.arange(len(found))
    if cubes is not None:
        eyes = _Eyes(lists, value)
        pattern, left = against_insiders(map(eyes.of, found), instance, cubes, lambda: budget.over)
        if budget.over:
            return pattern
        instance = instance.withholding(pattern).asking(left)
        found = [found[target] for target in left.tolist()]
        left = np.arange(len(found))
        budget = budget.child(AFTER_CUBES * budget.left) if budget.left < np.inf else budget
    if len(left) and len(instance) > SIZES[-1]:
        pattern, left = _in_parts(found, instance, lists, value, executor, budget)
        instance = instance.withholding(pattern)
    if not len(left):
        return instance.forced
    engine = Sequential.by_programs(instance, solver=Model.small(budget.child()))
    strict = np.ones(len(found), dtype=np.bool_)
    for effort in _efforts(len(left)):
        failed = []
        for target in left.tolist():
            if budget.over:
                break
            engine.watched_by(_seen_by(found[target], lists, value))
            failed += engine.protect_all([target], effort=effort, strict=strict)
        left = np.array(failed, dtype=np.int64)
    return engine.pattern.withheld


def _efforts(insiders: int) -> tuple[int, ...]:
    """How wide to look for one insider after another: the more there are, the less for each, as long as that helps."""
    if insiders > MANY:
        return SECOND_THOUGHTS, GUARDED, EVERYTHING
    return (EVERYTHING if insiders > FEW else EFFORTS,)


def _in_parts(
    found: Sequence[Insider], instance: Instance, lists: Lists, value: Integers, executor: Executor | None,
    budget: Budget = ENDLESS,
) -> tuple[Mask, Integers]:  # fmt: skip
    """The pattern with what parts have found, and the targets for which they found nothing."""
    subtables, pattern, left = Subtables.of(instance.rows), instance.forced.copy(), np.arange(len(found))
    with workers(executor, PART_S * len(left)) as pool:
        for size in SIZES:
            failed: list[int] = []
            turns = -(-len(left) // WAVE)
            for turn in range(turns):
                wave = left[turn::turns].tolist()
                price = np.where(pattern, 0.0, instance.cost)
                cells = [_around(int(instance.cell[target]), instance, subtables, price, size) for target in wave]
                parts = []
                for target, own in zip(wave, cells, strict=True):
                    seen = _seen_by(found[target], lists, value)
                    part = Part.cut(instance, own, np.array([target]), pattern, seen)
                    parts.append(replace(part, pending=(0,), strict=True, most_s=MOST_S))
                outcomes: list[Outcome] = []
                while len(outcomes) < len(parts) and not budget.over:
                    some = parts[len(outcomes) : len(outcomes) + STEP]
                    outcomes += in_order(work, some, [PART_S] * len(some), pool)
                for target, own, outcome in zip(wave, cells, outcomes, strict=False):
                    failed += [target] if outcome.failed else []
                    for deviation in outcome.deviations:
                        pattern[own[deviation.cells]] = True
                if budget.over:
                    return pattern, left[:0]
            left = np.sort(np.array(failed, dtype=np.int64))
    return pattern, left


def _around(cell: int, instance: Instance, subtables: Subtables, price: Floats, size: int) -> Integers:
    """The subtables of a cell with their margins, and what is around, up to so many cells in all."""
    boxes = subtables.around(np.array([cell]))
    core = boxes if len(boxes) <= SIZES[-1] else np.array([cell])
    return region(instance, core, price, max(size, len(core)))


class _Eyes:
    """What insiders know, one after another; what they have in common is kept."""

    def __init__(self, lists: Lists, value: Integers) -> None:
        self._lists, self._value = lists, value
        self._elsewhere: dict[int, Floats] = {}

    def of(self, insider: Insider) -> Seen:
        """What one insider knows: the cells that have no other contributor, and what it has in all others.

        One that is only possible may have, wherever it is not listed, as much as anybody can have there.
        """
        lists, value = self._lists, self._value
        cells, own, listed = lists.listings(insider.members)
        down = np.where(lists.negative[cells], np.inf, value[cells] - own)
        return Seen(
            self._of_others(0 if insider.certain else insider.size), cells, listed >= lists.everyone[cells], down
        )

    def _of_others(self, size: int) -> Floats:
        if size not in self._elsewhere:
            lists, value = self._lists, self._value
            down = np.full(len(value), np.inf)
            if size:
                most = np.minimum(size * lists.unlisted, np.maximum(value - lists.own.sum(axis=1), 0.0))
                down = np.where(lists.negative | (most <= 0), np.inf, value - most)
            self._elsewhere[size] = down
        return self._elsewhere[size]


def _seen_by(insider: Insider, lists: Lists, value: Integers) -> Guard:
    """What one insider knows of all cells."""
    return _Eyes(lists, value).of(insider).guard
