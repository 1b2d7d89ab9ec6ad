"""A pattern, and what each of its cells is withheld for: which deviation protects whom, what is used by how many.

A pattern is never kept by itself. It is the union of the deviations that protect the targets, so a cell that no
deviation needs any more is published again at once. Every search for a pattern changes it by the same three steps:
add a deviation, drop one, exchange some for others. The cells are those of an instance, which may be a whole table or
a part of it: nothing here knows which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.deviations import NOBODY, Deviation, Room
from tablesafe.methods.suppress.instance import Instance

LEARNING = 0.05
"""Weight of the latest deviation in what one usually costs."""
DEAR = 10.0
"""How many times as much as the others a deviation costs that makes one look further."""


class CannotProtect(Exception):
    """A target that no pattern protects, or none that the search may use."""

    def __init__(self, target: int) -> None:
        super().__init__(target)
        self.target = target


class Pattern:
    """The deviations kept, whom each protects, how many of them use each cell, and what all of them cost."""

    def __init__(self, instance: Instance, least: Floats | None = None) -> None:
        """Begin with what is withheld in any case; `least` is the price of a cell that is withheld already."""
        n = len(instance)
        self.instance = instance
        self.kept: dict[int, Deviation] = {}
        """By their names, in the order in which they were added."""
        self.uses = np.zeros(n, dtype=np.int32)
        self.ever_used = np.zeros(n, dtype=np.bool_)
        """Cells that some deviation used, also one that was dropped since."""
        self.by = np.full(len(instance.level), -1, dtype=np.int64)
        """For each target the deviation that protects it; −1 without one."""
        self.cost = 0.0
        """What is withheld because of them."""
        self.next = 0
        """The name of the next deviation."""
        self.least = np.zeros(n) if least is None else least
        self.price = np.where(instance.forced, self.least, np.maximum(instance.cost, self.least))
        """What it costs a further deviation to use each cell."""
        positive = instance.cost[instance.cost > 0]
        self.usual = float(np.median(positive)) if positive.size else 1.0
        """What a deviation usually costs."""
        self._charged = np.where(instance.forced, 0.0, instance.cost)
        self._asked = np.maximum(instance.cost, self.least)
        self._users: dict[int, list[int]] | None = None

    # -- what is withheld ------------------------------------------------------------------------------------------

    @property
    def used(self) -> Mask:
        """The cells that some deviation uses."""
        return self.uses > 0

    @property
    def withheld(self) -> Mask:
        """All that is withheld."""
        return self.instance.forced | (self.uses > 0)

    @property
    def complementary(self) -> Integers:
        """Cells withheld only to protect others."""
        return np.flatnonzero((self.uses > 0) & ~self.instance.forced)

    @property
    def deviations(self) -> Iterable[Deviation]:
        """The deviations, in the order in which they were added."""
        return self.kept.values()

    @property
    def open(self) -> Integers:
        """Targets that no deviation protects."""
        return np.flatnonzero(self.by < 0)

    @property
    def rises(self) -> Mask:
        """Cells that no open target asks to rise."""
        return self._asked_of_none(1)

    @property
    def falls(self) -> Mask:
        """Cells that no open target asks to fall."""
        return self._asked_of_none(-1)

    def _asked_of_none(self, sign: int) -> Mask:
        out = np.ones(len(self.instance), dtype=np.bool_)
        out[self.instance.cell[(self.by < 0) & (self.instance.sign == sign)]] = False
        return out

    def dearest_first(self) -> Integers:
        """The complementary cells, the most costly first."""
        cells = self.complementary
        return cells[np.argsort(-self.instance.cost[cells], kind="stable")]

    # -- add, drop, exchange ---------------------------------------------------------------------------------------

    def add(self, deviation: Deviation) -> int:
        """Keep a deviation for the targets that it serves; returns its name."""
        name, self.next = self.next, self.next + 1
        self._put(name, deviation)
        self.ever_used[deviation.cells] = True
        if self._users is not None:
            self._note(name, deviation)
        return name

    def _put(self, name: int, deviation: Deviation) -> None:
        cells, uses = deviation.cells, self.uses[deviation.cells]
        self.cost += float(self._charged[cells[uses == 0]].sum())
        self.uses[cells] = uses + 1
        self.price[cells] = self.least[cells]
        self.kept[name] = deviation
        self.by[deviation.served] = name

    def _note(self, name: int, deviation: Deviation) -> None:
        """Note which cells a deviation uses; that is not taken back when it is dropped, for it may come again."""
        assert self._users is not None
        for cell in deviation.cells[~self.instance.forced[deviation.cells]].tolist():
            self._users.setdefault(cell, []).append(name)

    def drop(self, name: int) -> Deviation:
        """Forget a deviation; whoever relied on it is open."""
        deviation = self.kept.pop(name)
        cells = deviation.cells
        uses = self.uses[cells] - 1
        self.uses[cells] = uses
        gone = cells[(uses == 0) & ~self.instance.forced[cells]]
        self.cost -= float(self._charged[gone].sum())
        self.price[gone] = self._asked[gone]
        self.by[deviation.served] = -1
        return deviation

    def restore(self, name: int, deviation: Deviation) -> None:
        """Keep a deviation again that was dropped, under its old name."""
        self._put(name, deviation)

    def exchange(self, names: Iterable[int], new: Iterable[Deviation], most: float) -> bool:
        """Take new deviations for old ones, unless all of them cost more than so much then; says whether."""
        trial = Trial(self, names)
        for deviation in new:
            self.add(deviation)
        if self.cost > most:
            trial.undo()
            return False
        return True

    def relying_on(self, cells: Iterable[int]) -> list[int]:
        """The names of the deviations that use one of the cells, in order."""
        if self._users is None:
            self._users = {}
            for name, deviation in self.kept.items():
                self._note(name, deviation)
        found: set[int] = set()
        for cell in cells:
            if self.instance.forced[cell]:  # used by so many that nobody keeps a list of them
                found.update(name for name, deviation in self.kept.items() if (deviation.cells == cell).any())
            elif cell in self._users:
                own = self._users[cell] = [name for name in self._users[cell] if name in self.kept]
                found.update(own)
        return sorted(found)

    # -- what deviations cost --------------------------------------------------------------------------------------

    def fresh(self, cells: Integers) -> Mask:
        """Which of some cells are not withheld yet."""
        return np.asarray((self.uses[cells] == 0) & ~self.instance.forced[cells])

    def fresh_cost(self, cells: Integers) -> float:
        """What a further deviation of these cells would cost."""
        return float(self.instance.cost[cells[self.fresh(cells)]].sum())

    def dear(self, cells: Integers) -> bool:
        """Whether a deviation costs so much more than the others that it is worth looking for another further away."""
        return self.fresh_cost(cells) > DEAR * self.usual

    def learn(self, cells: Integers) -> None:
        """Remember what deviations usually cost; one that is dear counts as what would just be called so."""
        self.usual += LEARNING * (min(self.fresh_cost(cells), DEAR * self.usual) - self.usual)

    @contextmanager
    def charging(self, cost: Floats | None = None, banned: Integers | None = None) -> Iterator[None]:
        """Other prices for a while: other costs, and cells that no further deviation may use."""
        asked = self._asked
        if cost is not None:
            self._asked = np.maximum(cost, self.least)
            self.price = np.where(self.withheld, self.least, self._asked)
        if banned is not None:
            self.price[banned] = np.inf
        try:
            yield
        finally:
            self._asked = asked
            if cost is not None:
                self.price = np.where(self.withheld, self.least, self._asked)
            elif banned is not None:
                kept = self.instance.forced[banned] | (self.uses[banned] > 0)
                self.price[banned] = np.where(kept, self.least[banned], self._asked[banned])

    # -- whom a deviation protects ---------------------------------------------------------------------------------

    @cached_property
    def _targets(self) -> tuple[Integers, Integers]:
        """The targets in the order of their cells, and where those of each cell begin."""
        cell = self.instance.cell
        order = np.argsort(cell, kind="stable")
        return order, np.searchsorted(cell[order], np.arange(len(self.instance) + 1))

    def protected_by(self, deviation: Deviation, room: Room, enough: float = 1 + 1e-12) -> Integers:
        """The targets that a deviation protects, stretched as far as its cells can go, or turned around.

        One moves far enough that gets to `enough` times its level: a program that was asked for just the level, with
        cells that have no more room, comes out a little below it.
        """
        cells, amount, (order, start) = deviation.cells, deviation.amount, self._targets
        size, rising = np.abs(amount), amount > 0
        up, down = room.up[cells], room.down[cells]
        forward = float((np.where(rising, up, down) / size).min())
        backward = float((np.where(rising, down, up) / size).min())
        first, length = start[cells], start[cells + 1] - start[cells]
        begin = np.cumsum(length) - length
        targets = order[np.repeat(first - begin, length) + np.arange(int(length.sum()))]
        far = np.repeat(amount, length) * self.instance.sign[targets]
        reached = np.maximum(far * forward, -far * backward) >= self.instance.level[targets] * enough
        return np.asarray(targets[reached])


class Trial:
    """Deviations that were dropped to be replaced: what came after them can be undone."""

    def __init__(self, pattern: Pattern, names: Iterable[int]) -> None:
        self._pattern, self._first, self._names = pattern, pattern.next, tuple(names)
        self.dropped = [pattern.drop(name) for name in self._names]

    @property
    def targets(self) -> Integers:
        """Whoever relied on them, in order."""
        return np.sort(np.concatenate([each.served for each in self.dropped])) if self.dropped else NOBODY

    def undo(self) -> None:
        """Put them back in the place of all that was added since."""
        pattern = self._pattern
        for name in range(self._first, pattern.next):
            if name in pattern.kept:
                pattern.drop(name)
        for name, deviation in zip(self._names, self.dropped, strict=True):
            pattern.restore(name, deviation)
