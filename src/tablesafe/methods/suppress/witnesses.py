"""Who is protected by which deviation in a whole instance: the state of a search for a pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.books import Books, Targets
from tablesafe.methods.suppress.deviations import Deviation, Prices, cheapest_deviation
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.neighbourhood import Neighbourhoods
from tablesafe.methods.suppress.part import Held
from tablesafe.solve.highs import Model

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
        self, instance: Instance, neighbourhoods: Neighbourhoods, solver: Model, finder: Finder | None = None
    ) -> None:
        self.instance = instance
        self.neighbourhoods = neighbourhoods
        self.solver = solver
        self._finder = finder
        self.ever_used = np.zeros(len(instance), dtype=np.bool_)
        self._books = Books(instance.cost, instance.forced)
        self._targets = Targets(instance.cell, instance.sign, instance.level)
        self._of_target: dict[int, int] = {}

    @property
    def uses(self) -> NDArray[np.int32]:
        """How many deviations use each cell."""
        return self._books.uses

    @property
    def cost(self) -> float:
        """What the complementary cells cost."""
        return self._books.cost

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
        protected = self._targets.protected_by(found.cells, found.amount, self.instance.up, self.instance.down)
        also = [other for other in protected if other in pending and other != target]
        self.add(Held(found.cells, found.amount, (target, *also)))
        for served in (target, *also):
            pending.pop(served, None)

    def add(self, held: Held) -> None:
        """Keep a deviation for the targets that it serves."""
        self._of_target.update(dict.fromkeys(held.served, self._books.next))
        self._books.add(held)
        self.ever_used[held.cells] = True

    def drop(self, target: int) -> None:
        """Leave a target unprotected; a deviation that serves nobody any more goes too."""
        name = self._of_target.pop(target)
        held = self._books.kept[name]
        served = tuple(other for other in held.served if other != target)
        if served:
            self._books.kept[name] = replace(held, served=served)
        else:
            self._books.drop(name)

    def relying_on(self, cells: Iterable[int]) -> list[int]:
        """Targets whose deviation uses one of the cells, in order."""
        return sorted(target for name in self._books.relying_on(cells) for target in self._books.kept[name].served)

    def held(self, targets: Iterable[int]) -> list[Held]:
        """The deviations of some targets, to be put back when a change was no good."""
        groups: dict[int, list[int]] = {}
        for target in targets:
            groups.setdefault(self._of_target[target], []).append(target)
        return [replace(self._books.kept[name], served=tuple(served)) for name, served in groups.items()]
