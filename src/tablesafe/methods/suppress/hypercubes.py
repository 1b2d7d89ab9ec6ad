"""Deviations by hypercubes and boxes: two codes in each direction, found in microseconds.

Where 40% of the cells are sensitive they mostly protect each other, and there are too many of them for a linear program
each. A hypercube (see `tablesafe.solve.hypercubes`) serves every sensitive cell that it moves far enough, up and down;
what is withheld already costs nothing. A box (see `tablesafe.solve.boxes`) is the same in equations that are no product
of trees.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tablesafe.methods.suppress.deviations import Deviation, Wanted
from tablesafe.methods.suppress.instance import UNBOUNDED, Instance
from tablesafe.solve.boxes import Space, System, cheapest_box
from tablesafe.solve.hypercubes import Hypercubes

if TYPE_CHECKING:
    from tablesafe.work.budget import Budget

SHARES = (0.5, 0.25, 0.125)
"""Parts of a level, each moved by a hypercube of its own, where none has the room for all of it."""


class Boxes:
    """Finds the cheapest box around a target, from the equations alone."""

    def __init__(self, system: System, work: Budget) -> None:
        self._system, self._space, self._work = system, Space.over(system), work

    def cheapest(self, wanted: Wanted) -> Deviation | None:
        """The cheapest box; how much it may cost and what comes first make no difference."""
        system = self._system._replace(up=wanted.room.up, down=wanted.room.down)
        box = cheapest_box(system, self._space, wanted.cell, wanted.sign, wanted.level, wanted.price, self._work)
        return None if box is None else Deviation(*box)


def both_ways(instance: Instance) -> Instance:
    """The instance with one target for each sensitive cell, which rises and falls: as far as the farther side must.

    A hypercube moves as well the other way round, where every cell has the smaller of its two rooms.
    """
    need = np.zeros(len(instance))
    np.maximum.at(need, instance.cell, instance.level)
    room = np.minimum(np.minimum(instance.up, instance.down), UNBOUNDED)
    cell = np.flatnonzero(need)
    return replace(
        instance, up=room, down=room, cell=cell, sign=np.ones(len(cell), dtype=np.int8), level=need[cell]
    )  # fmt: skip


class Cubes:
    """Finds the cheapest hypercube of a target of `both_ways`, or several that move it by a part each."""

    def __init__(self, cubes: Hypercubes) -> None:
        self._cubes = cubes

    def cheapest(self, wanted: Wanted) -> Deviation | None:
        """The cheapest hypercube; with some effort several for a part of the level each, where none has all the room.

        The room to fall is taken for the room to rise as well.
        """
        found = self._cubes.cheapest(wanted.cell, wanted.level, wanted.price, wanted.room.down, most=wanted.most)
        if found is not None:
            return Deviation(found[0], found[1].astype(np.float64) * wanted.level)
        return self._several(wanted) if wanted.effort and wanted.most == np.inf else None

    def _several(self, wanted: Wanted) -> Deviation | None:
        """Several hypercubes that together move a cell as far as it needs; None where they do not."""
        cell, left = wanted.cell, wanted.level
        amount, spare, price = np.zeros(len(wanted.price)), wanted.room.down.copy(), wanted.price.copy()
        spare[cell] = np.inf
        for share in SHARES:
            while left > 0:
                found = self._cubes.cheapest(cell, min(left, share * wanted.level), price, spare)
                if found is None:
                    break
                cells, sign = found
                by = min(left, float(spare[cells].min()))
                amount[cells] += sign * by
                spare[cells] -= by
                spare[cell] = np.inf
                price[cells] = 0.0
                left -= by
        if left > 0:
            return None
        moved = np.flatnonzero(amount)
        return Deviation(moved, amount[moved])
