"""Patterns by hypercubes, for tables with many sensitive cells whose dimensions are trees.

Where 40% of the cells are sensitive they mostly protect each other, and there are too many of them for a linear program
each. A hypercube (see `tablesafe.solve.hypercubes`) is found in microseconds and serves every sensitive cell that it
moves far enough; what is withheld already costs nothing. The finest cells come first, so that those of the totals find
much withheld below them. Then every cell is reconsidered, the dearest first: whoever relied on it is protected anew
without it, and the pattern that costs less is kept. It is safe at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tablesafe.audit.respondent_knowledge import Guard
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress.instance import UNBOUNDED, Instance
from tablesafe.solve.hypercubes import Hypercubes

if TYPE_CHECKING:
    from tablesafe.audit.unions import Union

FEWEST, FEW = 600, 4_000
"""Targets up to which programs find cheaper patterns in any time, and given time."""
PER_TARGET_S = 5e-3
"""Seconds for each target that this takes, with an audit of what programs find."""
PASSES = 3
MEMBERS = 6
"""Cells of a sum of which each is tried as the one that moves."""
SHARES = (1.0, 0.5, 0.25, 0.125)
"""Parts of a level, each moved by a hypercube of its own, where none has the room for all of it."""


@dataclass(frozen=True, eq=False)
class Cube:
    """Cells that move together, and the sensitive ones among them that rely on it."""

    cells: Integers = field(repr=False)
    served: Integers = field(repr=False)


def hypercubes_of(problem: Problem, targets: int, seconds: float = np.inf) -> Hypercubes | None:
    """The hypercubes of a problem with too many targets for the time; None where they are few, or it has no trees."""
    table = problem.table
    if targets <= min(FEW, max(FEWEST, seconds / PER_TARGET_S)) or table.names is not None or not table.dimensions:
        return None
    return Hypercubes.of(list(table.dimensions.values()), table.codes)


class CubePattern:
    """Which cube protects whom, and what is withheld for it.

    With a guard, hypercubes are looked for first that convince every respondent, so that nobody has to be asked
    afterwards: that costs more, and is soon done.
    """

    def __init__(self, instance: Instance, cubes: Hypercubes, guard: Guard | None = None) -> None:
        self.instance, self._cubes = instance, cubes
        self.need = np.zeros(len(instance))
        np.maximum.at(self.need, instance.cell, instance.level)
        self.room = np.minimum(np.minimum(instance.up, instance.down), UNBOUNDED)
        self._guarded = None if guard is None else np.where(guard.alone, 0.0, np.minimum(self.room, guard.down))
        """How far each cell may move in the eyes of everybody."""
        self.price = np.where(instance.forced, 0.0, instance.cost)
        self.cost = 0.0
        self.failed: list[int] = []
        self._asked = self.need > 0
        self._by = np.full(len(instance), -1)
        """The cube that protects each sensitive cell."""
        self._uses = np.zeros(len(instance), dtype=np.int64)
        self._kept: dict[int, Cube] = {}
        self._next = 0
        self._users: dict[int, set[int]] = {}

    @property
    def pattern(self) -> Mask:
        """What is withheld."""
        return self.instance.forced | (self._uses > 0)

    def protect(self, cells: Iterable[int], most: float = np.inf) -> tuple[list[int], bool]:
        """Protect cells as long as the pattern costs less than `most`: the cubes added, and whether all are."""
        added: list[int] = []
        for cell in cells:
            if self._by[cell] >= 0:
                continue
            found = self._cheapest(cell, most - self.cost)
            if found is None:
                return added, False
            added.append(self._add(found))
            if self.cost >= most:
                return added, False
        return added, True

    def protect_all(self, stop: Callable[[], bool]) -> None:
        """A first pattern; cells that no hypercube protects are noted as failed."""
        for cell in self._in_order(np.flatnonzero(self._asked)).tolist():
            if self._by[cell] < 0 and not self.protect([cell])[1]:
                self.failed.append(cell)
            if stop():
                left = np.flatnonzero(self._asked & (self._by < 0))
                self.failed = np.union1d(left, np.array(self.failed, dtype=np.int64)).tolist()
                return

    def clean_up(self, stop: Callable[[], bool], report: Callable[[float], None]) -> None:
        """Publish again what is not needed, the dearest first."""
        for _ in range(PASSES):
            before = self.cost
            cells = np.flatnonzero((self._uses > 0) & ~self.instance.forced)
            for turn, cell in enumerate(cells[np.argsort(-self.instance.cost[cells], kind="stable")].tolist()):
                if stop():
                    return
                if self._uses[cell]:
                    self._reconsider(cell)
                if turn % 200 == 0:
                    report(self.cost)
            if self.cost > before * (1 - 1e-3):
                return

    def _in_order(self, cells: Integers) -> Integers:
        """The finest cells first, of these the ones that must move farthest."""
        return np.asarray(cells[np.lexsort((-self.need[cells], self._cubes.leaves_below(cells)))])

    def _cheapest(self, cell: int, most: float) -> Cube | None:
        """The cheapest hypercube with room for the whole level of a cell, or several for a part of it each."""
        guarded = None if self._guarded is None else self._cheapest_guarded(self._guarded, cell, most)
        if guarded is not None:
            return guarded
        found = self._cubes.cheapest(cell, self.need[cell], self.price, self.room, most=most)
        if found is not None:
            cells = found[0]
            serves = self._asked[cells] & (self.need[cells] <= self.room[cells].min()) & (self._by[cells] < 0)
            serves &= self._guarded is None or cells == cell  # others may have one that convinces everybody
            return Cube(cells, cells[serves])
        if most < np.inf:
            return None
        every = spread(self._cubes, cell, self.need[cell], self.price, self.room)
        return None if every is None else Cube(every, np.array([cell]))

    def _cheapest_guarded(self, room: Floats, cell: int, most: float) -> Cube | None:
        """The cheapest hypercube that nobody can rule out; others rely on it where the cell is known to nobody."""
        own = float(room[cell])
        room[cell] = self.room[cell]  # whoever knows the cell, it is from the others that it must be hidden
        found = self._cubes.cheapest(cell, self.need[cell], self.price, room, most=most)
        room[cell] = own
        if found is None:
            return None
        cells = found[0]
        far = float(room[cells].min())
        return Cube(
            cells, cells[(cells == cell) | (self._asked[cells] & (self.need[cells] <= far) & (self._by[cells] < 0))]
        )

    def _add(self, cube: Cube) -> int:
        name, self._next = self._next, self._next + 1
        fresh = cube.cells[(self._uses[cube.cells] == 0) & ~self.instance.forced[cube.cells]]
        self.cost += float(self.instance.cost[fresh].sum())
        self._uses[cube.cells] += 1
        self.price[cube.cells] = 0.0
        self._kept[name], self._by[cube.served] = cube, name
        for cell in cube.cells[~self.instance.forced[cube.cells]].tolist():
            self._users.setdefault(cell, set()).add(name)
        return name

    def _drop(self, name: int) -> Cube:
        cube = self._kept.pop(name)
        self._uses[cube.cells] -= 1
        gone = cube.cells[(self._uses[cube.cells] == 0) & ~self.instance.forced[cube.cells]]
        self.cost -= float(self.instance.cost[gone].sum())
        self.price[gone] = self.instance.cost[gone]
        self._by[cube.served] = -1
        for cell in cube.cells[~self.instance.forced[cube.cells]].tolist():
            self._users[cell].discard(name)
        return cube

    def _reconsider(self, cell: int) -> None:
        """Protect anew whoever relies on a cell, without it; keep the result if it costs less."""
        before = self.cost
        old = [self._drop(name) for name in sorted(self._users.get(cell, ()))]
        self.price[cell] = np.inf
        served = self._in_order(np.concatenate([cube.served for cube in old]))
        added, done = self.protect(served.tolist(), before * (1 - 1e-9))
        self.price[cell] = 0.0 if self._uses[cell] else self.instance.cost[cell]
        if done:
            return
        for name in added:
            self._drop(name)
        for cube in old:
            self._add(cube)


def spread(cubes: Hypercubes, cell: int, need: float, price: Floats, room: Floats) -> Integers | None:
    """The cells of several hypercubes that together move a cell as far as it needs; None where they do not."""
    left, taken = need, np.zeros(0, dtype=np.int64)
    spare, dear = room.copy(), price.copy()
    spare[cell] = np.inf
    for share in SHARES[1:]:
        while left > 0:
            found = cubes.cheapest(cell, min(left, share * need), dear, spare)
            if found is None:
                break
            cells = found[0]
            by = min(left, float(spare[cells].min()))
            spare[cells] -= by
            spare[cell] = np.inf
            dear[cells] = 0.0
            taken, left = np.union1d(taken, cells), left - by
    return taken if left <= 0 else None


def against_insiders(seen: Iterable[Guard], instance: Instance, cubes: Hypercubes) -> tuple[Mask, Integers]:
    """The pattern with a hypercube for each insider, which it cannot rule out; and the targets that have none.

    `seen` is what the insider of each target knows, listed or possible.
    """
    pattern, left = instance.forced.copy(), []
    price = np.where(pattern, 0.0, instance.cost)
    plain = np.minimum(np.minimum(instance.up, instance.down), UNBOUNDED)
    for target, guard in enumerate(seen):
        cell, need = int(instance.cell[target]), float(instance.level[target])
        room = np.where(guard.alone, 0.0, np.minimum(plain, np.maximum(guard.down, 0.0)))
        room[cell] = max(need, plain[cell])
        cube = cubes.cheapest(cell, need, price, room)
        taken = spread(cubes, cell, need, price, room) if cube is None else cube[0]
        if taken is None:
            left.append(target)
            continue
        pattern[taken] = True
        price[taken] = 0.0
    return pattern, np.array(left, dtype=np.int64)


def against_sums(sums: Sequence[Union], instance: Instance, cubes: Hypercubes, unit: float) -> tuple[Mask, list[Union]]:
    """The pattern with a hypercube for each sum, of whose cells it moves one alone; and the sums that have none."""
    pattern, left = instance.forced.copy(), []
    price = np.where(pattern, 0.0, instance.cost)
    room = np.minimum(np.minimum(instance.up, instance.down), UNBOUNDED)
    for each in sums:
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
