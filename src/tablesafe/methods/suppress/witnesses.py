"""Who is protected by which deviation: the state of a search for a pattern.

A pattern is never kept by itself. It is the union of the deviations that protect the targets, so a cell that no
deviation needs any more is published again at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from tablesafe.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.deviations import Deviation, Prices, cheapest_deviation
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.neighbourhood import Neighbourhoods
from tablesafe.solve.small import SmallSolver

EFFORTS = 5
WIDE = 2
"""The effort before which it is worth asking whether all that is withheld in the table is enough."""

Finder = Callable[[int, Floats, Mask | None], Deviation | None]
"""Finds the cheapest deviation of a target, given the prices of all cells and those that may not be used."""


class CannotProtect(Exception):
    """A target that no pattern protects, or none that the search may use."""

    def __init__(self, target: int) -> None:
        super().__init__(target)
        self.target = target


class Witnesses:
    """For each target a deviation that protects it; for each cell how many deviations use it."""

    def __init__(
        self, instance: Instance, neighbourhoods: Neighbourhoods, solver: SmallSolver, finder: Finder | None = None
    ) -> None:
        self.instance = instance
        self.neighbourhoods = neighbourhoods
        self.solver = solver
        self._finder = finder
        self.uses = np.zeros(len(instance), dtype=np.int32)
        self.cost = 0.0
        self.ever_used = np.zeros(len(instance), dtype=np.bool_)
        self._of_target: dict[int, int] = {}
        self._deviations: dict[int, Deviation] = {}
        self._serves: dict[int, set[int]] = {}
        self._users: dict[int, set[int]] = {}
        self._next = 0
        self._targets_of_cell: dict[int, list[int]] = {}
        for target, cell in enumerate(instance.cell.tolist()):
            self._targets_of_cell.setdefault(cell, []).append(target)

    @property
    def pattern(self) -> Mask:
        """What is withheld."""
        return self.instance.forced | (self.uses > 0)

    @property
    def complementary(self) -> Integers:
        """Cells withheld only to protect others."""
        return np.flatnonzero((self.uses > 0) & ~self.instance.forced)

    def protect(
        self,
        target: int,
        pending: dict[int, None],
        *,
        cost: Floats | Prices,
        banned: Mask | None = None,
        inside: Mask | None = None,
    ) -> None:
        """Find the cheapest deviation for a target, and see whom else among the pending it protects.

        Cells `inside` are tried first, together with what is withheld already.
        """

        def fresh(cell: int, cells: Integers) -> Floats:
            price = cost(cell, cells) if callable(cost) else cost[cells]
            return np.where(self.instance.forced[cells] | (self.uses[cells] > 0), 0.0, price)

        cell = int(self.instance.cell[target])
        if self._finder is not None:
            self._keep(self._finder(target, fresh(cell, np.arange(len(self.instance))), banned), target, pending)
            return
        size, found = -1, self._among_withheld(target, self.neighbourhoods.near(cell, effort=1), banned, inside)
        for effort in range(EFFORTS):
            if found is not None:
                break
            if effort == WIDE:
                found = self._among_withheld(target, np.flatnonzero(self.instance.live), banned, inside)
                if found is not None:
                    break
            cells = self.neighbourhoods.near(cell, effort=effort)
            if banned is not None:
                cells = cells[~banned[cells]]
            if len(cells) == size:
                continue
            size = len(cells)
            found = cheapest_deviation(self.instance, self.neighbourhoods.localities, self.solver, target, cells, fresh)
        self._keep(found, target, pending)

    def _among_withheld(
        self, target: int, cells: Integers, banned: Mask | None, inside: Mask | None
    ) -> Deviation | None:
        """A deviation that costs nothing, looked for among some cells; cells `inside` may be used besides."""
        instance = self.instance
        withheld = instance.forced[cells] | (self.uses[cells] > 0)
        if inside is not None:
            withheld |= inside[cells]
        if banned is not None:
            withheld &= ~banned[cells]

        def least(_: int, some: Integers) -> Floats:
            return np.where(instance.forced[some] | (self.uses[some] > 0), 0.0, instance.cost[some])

        return cheapest_deviation(instance, self.neighbourhoods.localities, self.solver, target, cells[withheld], least)

    def _keep(self, found: Deviation | None, target: int, pending: dict[int, None]) -> None:
        """Keep a deviation for a target and for the pending targets that it protects as well."""
        if found is None:
            raise CannotProtect(target)
        self.add(found, [target, *self._also_protected(found, target, pending)])
        for served in self._serves[self._next - 1]:
            pending.pop(served, None)

    def _also_protected(self, deviation: Deviation, target: int, pending: dict[int, None]) -> Iterable[int]:
        """Pending targets that the deviation, stretched or turned around, protects as well."""
        instance = self.instance
        cells, amount = deviation.cells, deviation.amount
        with np.errstate(divide="ignore"):
            forward = np.where(
                amount > 0, instance.up[cells] / np.abs(amount), instance.down[cells] / np.abs(amount)
            ).min()
            backward = np.where(
                amount > 0, instance.down[cells] / np.abs(amount), instance.up[cells] / np.abs(amount)
            ).min()
        forward = max(forward, 1.0)
        for at in np.flatnonzero(instance.forced[cells]).tolist():
            for other in self._targets_of_cell.get(int(cells[at]), ()):
                if other in pending and other != target:
                    move = amount[at] * instance.sign[other]
                    if max(move * forward, -move * backward) >= instance.level[other] * (1 + 1e-12):
                        yield other

    def add(self, deviation: Deviation, targets: Iterable[int]) -> None:
        """Keep a deviation for some targets."""
        name = self._next
        self._next += 1
        self._deviations[name] = deviation
        self._serves[name] = set(targets)
        for target in self._serves[name]:
            self._of_target[target] = name
        fresh = deviation.cells[self.uses[deviation.cells] == 0]
        self.cost += float(self.instance.cost[fresh].sum())
        self.uses[deviation.cells] += 1
        self.ever_used[deviation.cells] = True
        for cell in deviation.cells.tolist():
            self._users.setdefault(cell, set()).add(name)

    def drop(self, target: int) -> None:
        """Leave a target unprotected; a deviation that serves nobody any more goes too."""
        name = self._of_target.pop(target)
        self._serves[name].discard(target)
        if not self._serves[name]:
            deviation = self._deviations.pop(name)
            del self._serves[name]
            self.uses[deviation.cells] -= 1
            gone = deviation.cells[self.uses[deviation.cells] == 0]
            self.cost -= float(self.instance.cost[gone].sum())
            for cell in deviation.cells.tolist():
                self._users[cell].discard(name)

    def relying_on(self, cells: Iterable[int]) -> list[int]:
        """Targets whose deviation uses one of the cells, in order."""
        names = {name for cell in cells for name in self._users.get(cell, ())}
        return sorted(target for name in names for target in self._serves[name])

    def held(self, targets: Iterable[int]) -> list[tuple[Deviation, list[int]]]:
        """The deviations of some targets, to be put back when a change was no good."""
        groups: dict[int, list[int]] = {}
        for target in targets:
            groups.setdefault(self._of_target[target], []).append(target)
        return [(self._deviations[name], served) for name, served in groups.items()]
