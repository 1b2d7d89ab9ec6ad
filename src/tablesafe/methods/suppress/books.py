"""Who relies on which deviation: the books that every search for a pattern keeps.

A pattern is never kept by itself. It is the union of the deviations that protect the targets, so a cell that no
deviation needs any more is published again at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.part import Held


class Books:
    """The deviations kept, how many of them use each cell, and what their cells cost that were not withheld before."""

    def __init__(self, cost: Floats, withheld: Mask) -> None:
        self.kept: dict[int, Held] = {}
        self.uses = np.zeros(len(cost), dtype=np.int32)
        self.cost = 0.0
        self.next = 0
        """The name of the next deviation."""
        self._price = np.where(withheld, 0.0, cost)
        self._users: dict[int, set[int]] = {}

    def add(self, held: Held) -> None:
        """Keep a deviation."""
        cells = held.cells
        self.cost += float(self._price[cells[self.uses[cells] == 0]].sum())
        self.uses[cells] += 1
        for cell in cells.tolist():
            self._users.setdefault(cell, set()).add(self.next)
        self.kept[self.next] = held
        self.next += 1

    def drop(self, name: int) -> Held:
        """Forget a deviation."""
        held = self.kept.pop(name)
        cells = held.cells
        self.uses[cells] -= 1
        self.cost -= float(self._price[cells[self.uses[cells] == 0]].sum())
        for cell in cells.tolist():
            self._users[cell].discard(name)
        return held

    def relying_on(self, cells: Iterable[int]) -> list[int]:
        """The names of the deviations that use one of the cells, in order."""
        return sorted({name for cell in cells for name in self._users.get(cell, ())})


class Targets:
    """Which targets each cell has, and how far each must be able to move."""

    def __init__(self, cell: Integers, sign: NDArray[np.int8], level: Floats) -> None:
        self._sign, self._level = sign, level
        self._of: dict[int, list[int]] = {}
        for target, own in enumerate(cell.tolist()):
            self._of.setdefault(own, []).append(target)

    def protected_by(self, cells: Integers, amount: Floats, up: Floats, down: Floats) -> Iterator[int]:
        """The targets that a deviation protects, stretched as far as its cells can go, or turned around."""
        size, rising = np.abs(amount), amount > 0
        up, down = up[cells], down[cells]
        forward = float((np.where(rising, up, down) / size).min())
        backward = float((np.where(rising, down, up) / size).min())
        for cell, move in zip(cells.tolist(), amount.tolist(), strict=True):
            for target in self._of.get(cell, ()):
                far = move * int(self._sign[target])
                if max(far * forward, -far * backward) >= self._level[target] * (1 + 1e-12):
                    yield target
