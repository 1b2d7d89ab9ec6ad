"""The hypercube method: a safe pattern at once for tables with many sensitive cells whose dimensions are trees.

(Giessing & Repsilber's GHMITER.) The finest cells come first, so that those of the totals find much withheld below
them. Then every cell is reconsidered, the dearest first: whoever relied on it is protected anew without it, and the
pattern that costs less is kept. It is safe at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.respondent_knowledge import Guard
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress.deviations import Deviation, Room, Wanted
from tablesafe.methods.suppress.hypercubes import Cubes
from tablesafe.methods.suppress.instance import UNBOUNDED, Instance
from tablesafe.methods.suppress.sequential import Sequential, Stop
from tablesafe.solve.hypercubes import Hypercubes

if TYPE_CHECKING:
    from tablesafe.audit.unions import Union

FEWEST, FEW = 600, 4_000
"""Targets up to which programs find cheaper patterns in any time, and given time."""
PER_TARGET_S = 5e-3
"""Seconds for each target that this takes, with an audit of what programs find."""
PASSES = 3
"""Times that all targets are gone through, at most."""
MEMBERS = 6
"""Cells of a sum of which each is tried as the one that moves."""


def too_many(targets: int, seconds: float) -> bool:
    """Whether there are too many targets for programs to find cheaper patterns in the time."""
    return targets > min(FEW, max(FEWEST, seconds / PER_TARGET_S))


def hypercubes_of(problem: Problem) -> Hypercubes | None:
    """The hypercubes of a problem; None where its dimensions are no trees."""
    table = problem.table
    if table.names is not None or not table.dimensions:
        return None
    return Hypercubes.of(list(table.dimensions.values()), table.codes)


class HypercubeMethod:
    """Protects the sensitive cells of an instance by hypercubes.

    With a guard, hypercubes are looked for first that convince every respondent, so that nobody has to be asked
    afterwards: that costs more, and is soon done.
    """

    def __init__(self, instance: Instance, cubes: Hypercubes, guard: Guard | None = None) -> None:
        self._engine, self._cubes = Sequential.by_hypercubes(instance, cubes, guard), cubes
        self.failed: Integers = np.zeros(0, dtype=np.int64)
        """Cells that no hypercube protects."""

    @property
    def pattern(self) -> Mask:
        """What is withheld."""
        return self._engine.pattern.withheld

    @property
    def cost(self) -> float:
        """What the pattern costs."""
        return self._engine.pattern.cost

    @property
    def deviations(self) -> Iterable[Deviation]:
        """The hypercubes by which it is safe."""
        return self._engine.pattern.deviations

    def protect_all(self, stop: Stop) -> None:
        """A first pattern; cells that no hypercube protects are noted as failed."""
        instance = self._engine.instance
        order = self._in_order(np.arange(len(instance.level)))
        self.failed = np.sort(instance.cell[self._engine.protect_all(order.tolist(), stop=stop)])

    def clean_up(self, stop: Stop, report: Callable[[float], None]) -> None:
        """Publish again what is not needed, the dearest first."""
        engine, pattern = self._engine, self._engine.pattern
        for _ in range(PASSES):
            before = pattern.cost
            for turn, cell in enumerate(pattern.dearest_first().tolist()):
                if stop():
                    return
                if pattern.uses[cell]:
                    most = pattern.cost * (1 - 1e-9)
                    engine.reconsider(np.array([cell]), most=most, within=False, ordered=self._in_order, stop=stop)
                if turn % 200 == 0:
                    report(pattern.cost)
            if pattern.cost > before * (1 - 1e-3):
                return

    def _in_order(self, targets: Integers) -> Integers:
        """The finest cells first, of these the ones that must move farthest."""
        instance = self._engine.instance
        leaves = self._cubes.leaves_below(instance.cell[targets])
        return np.asarray(targets[np.lexsort((-instance.level[targets], leaves))])


@dataclass(frozen=True, eq=False)
class Seen:
    """What an insider knows: how far it believes cells to fall."""

    elsewhere: Floats = field(repr=False)
    """Of all cells, where it is not listed: shared by all who know the same of these."""
    cells: NDArray[np.intp] = field(repr=False)
    """Those that list it."""
    alone: Mask = field(repr=False)
    """Which of these have no other contributor."""
    down: Floats = field(repr=False)
    """How far each of these can fall."""

    @property
    def guard(self) -> Guard:
        """The same for all cells."""
        alone, down = np.zeros(len(self.elsewhere), dtype=np.bool_), self.elsewhere.copy()
        alone[self.cells], down[self.cells] = self.alone, self.down
        return Guard(alone, down)


def against_insiders(seen: Iterable[Seen], instance: Instance, cubes: Hypercubes, stop: Stop) -> tuple[Mask, Integers]:
    """The pattern with a hypercube for each insider, which it cannot rule out; and the targets that have none.

    `seen` is what the insider of each target knows, listed or possible. After a `stop` it is what was found so far.
    """
    pattern, left, finder = instance.forced.copy(), [], Cubes(cubes)
    price = np.where(pattern, 0.0, instance.cost)
    plain = np.minimum(np.minimum(instance.up, instance.down), UNBOUNDED)
    rooms: dict[int, Floats] = {}
    for target, each in enumerate(seen):
        if stop():
            break
        cell, need = int(instance.cell[target]), float(instance.level[target])
        if id(each.elsewhere) not in rooms:
            rooms[id(each.elsewhere)] = np.minimum(plain, np.maximum(each.elsewhere, 0.0))
        room = rooms[id(each.elsewhere)]
        changed = np.append(each.cells, cell)
        before = room[changed]
        room[each.cells] = np.where(each.alone, 0.0, np.minimum(plain[each.cells], np.maximum(each.down, 0.0)))
        room[cell] = max(need, plain[cell])
        found = finder.cheapest(Wanted(cell, 1, need, price, Room(room, room), effort=1))
        room[changed] = before
        if found is None:
            left.append(target)
            continue
        pattern[found.cells] = True
        price[found.cells] = 0.0
    return pattern, np.array(left, dtype=np.int64)


def against_sums(
    sums: Sequence[Union], instance: Instance, cubes: Hypercubes, unit: float, stop: Stop
) -> tuple[Mask, list[Union]]:
    """The pattern with a hypercube for each sum, of whose cells it moves one alone; and the sums that have none."""
    pattern, left = instance.forced.copy(), []
    price = np.where(pattern, 0.0, instance.cost)
    room = np.minimum(np.minimum(instance.up, instance.down), UNBOUNDED)
    for each in sums:
        if stop():
            break
        cells, need = np.asarray(each.cells, dtype=np.int64), max(1.0, float(np.ceil(each.level * unit)))
        before = price[cells]
        price[cells] = np.inf
        best: Integers | None = None
        least = np.inf
        for cell in cells[np.argsort(-room[cells], kind="stable")][:MEMBERS].tolist():
            price[cell] = 0.0
            found = cubes.cheapest(cell, need, price, room, most=least)
            if found is not None:
                best, least = found[0], float(price[found[0]].sum())
            price[cell] = np.inf
        price[cells] = before
        if best is None:
            left.append(each)
            continue
        pattern[best] = True
        price[best] = 0.0
    return pattern, left
