"""Three dimensions by a sequence of two-dimensional networks: slice after slice, then the relations between them.

Working Paper 22 (Federal Committee on Statistical Methodology, chapter on methods for tabular data): before linear
programs over whole tables were affordable, offices protected each slice of a three-dimensional table as a network, then
the vertical sums through the slices, and again until nothing changed. Here a cell that moves to protect another in its
slice must be able to move as far along its vertical sum, and the other way round, so what is asked for is carried on
from one to the other.

Its weakness is known: each step is feasible by itself, but no single table need follow all of them at once. So what
comes out may leave cells open, and only an audit of the whole tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.table import Table
from tablesafe.methods.suppress.instance import Instance
from tablesafe.solve.network import Network, cheapest_circulation, network_of
from tablesafe.work.budget import Budget

ROUNDS = 50
"""Times that slices and vertical sums are gone through at most."""
NOTHING = 1e-9
"""Flows and lacking protection below it are noise of floats."""


@dataclass(frozen=True, eq=False)
class Slice:
    """A two-dimensional part of the table: its cells, and the network of its sums."""

    cells: Integers = field(repr=False)
    network: Network = field(repr=False)


@dataclass(eq=False)
class _Asked:
    """How far each cell must be able to rise and to fall, and how far that is seen to already, in one kind of step."""

    wanted: Floats
    """Two rows, up and down, in units of the table: shared by slices and sums."""
    done: Floats

    def open_at(self, cells: Integers) -> Iterator[tuple[int, int, float]]:
        """What is asked of these cells and not seen to: the place among them, the direction, how far; largest first."""
        lacking = self.wanted[:, cells] > self.done[:, cells] + NOTHING
        side, place = np.nonzero(lacking)
        far = self.wanted[side, cells[place]]
        for at in np.argsort(-far, kind="stable").tolist():
            yield int(place[at]), 1 if side[at] == 0 else -1, float(far[at])

    def settle(self, cell: int, sign: int, far: float) -> None:
        """This much is seen to."""
        side = 0 if sign > 0 else 1
        self.done[side, cell] = max(self.done[side, cell], far)


def by_slices(table: Table, instance: Instance, budget: Budget) -> Mask:
    """A pattern of the sensitive cells and what slices and vertical sums add to it; it need not be safe."""
    slices, sums = _cut(table)
    pattern = instance.forced.copy()
    wanted = np.zeros((2, len(instance)))
    for cell, sign, level in zip(instance.cell, instance.sign, instance.level, strict=True):
        side = 0 if sign > 0 else 1
        wanted[side, cell] = max(wanted[side, cell], level)
    flat, upright = (_Asked(wanted, np.zeros_like(wanted)) for _ in range(2))
    for _ in range(ROUNDS):
        before = pattern.sum(), wanted.sum()
        for one in slices:
            _through(one, instance, pattern, flat)
            if budget.over:
                return pattern
        for cells, signs in sums:
            _along(cells, signs, instance, pattern, upright)
        if before == (pattern.sum(), wanted.sum()):
            break
    return pattern


def _through(one: Slice, instance: Instance, pattern: Mask, asked: _Asked) -> None:
    """Protect what is asked for in a slice by the cheapest flows; every cell that carries one is asked the same."""
    up, down = instance.up[one.cells], instance.down[one.cells]
    for place, sign, far in asked.open_at(one.cells):
        price = np.where(pattern[one.cells], 0.0, instance.cost[one.cells])
        per_unit = (price / np.maximum(np.minimum(room, far), NOTHING) for room in (up, down))
        flow = cheapest_circulation(one.network, place, sign * far, up, down, *per_unit)
        asked.settle(int(one.cells[place]), sign, far)
        if flow is None:
            continue  # the slice alone cannot: left to the audit
        for at in np.flatnonzero(np.abs(flow) > NOTHING * far).tolist():
            _carry(int(one.cells[at]), float(flow[at]), pattern, asked)


def _along(cells: Integers, signs: Floats, instance: Instance, pattern: Mask, asked: _Asked) -> None:
    """Let another cell of a vertical sum give way for each that must move: withheld ones first, then the cheapest."""
    for place, sign, far in asked.open_at(cells):
        moved = sign * signs[place]  # how the sum would be off
        others = np.flatnonzero(np.arange(len(cells)) != place)
        way = -moved * signs[others]
        room = np.where(way > 0, instance.up[cells[others]], instance.down[cells[others]])
        price = np.where(pattern[cells[others]], 0.0, instance.cost[cells[others]])
        enough = room >= far
        order = np.lexsort((-room, price, ~enough))
        left = far
        for at in order.tolist():
            if left <= NOTHING * far or room[at] <= 0:
                break
            step = min(left, float(room[at]))
            _carry(int(cells[others[at]]), float(way[at]) * step, pattern, asked)
            left -= step
        asked.settle(int(cells[place]), sign, far)


def _carry(cell: int, amount: float, pattern: Mask, asked: _Asked) -> None:
    """A cell that moves is withheld, and must be able to move so far in every other step too."""
    pattern[cell] = True
    side = 0 if amount > 0 else 1
    asked.wanted[side, cell] = max(asked.wanted[side, cell], abs(amount))
    asked.settle(cell, 1 if amount > 0 else -1, abs(amount))


def _cut(table: Table) -> tuple[list[Slice], list[tuple[Integers, Floats]]]:
    """The slices of a table, and the sums through them: along the dimension that leaves networks."""
    rows = sparse.csr_array(table.equations)
    along = _dimensions(table, rows)
    count = len(table.dimensions)
    if count != 3 or (along < 0).any():
        raise InvalidOption(
            f"Suppress.algorithm is 'slices', which takes a single table of three dimensions; this one has {count}"
            f"{' and sums across dimensions' if count == 3 else ''}.",
            hint="algorithm='auto' takes any table.",
        )
    for vertical in np.argsort([len(h.codes) for h in table.dimensions.values()], kind="stable").tolist():
        slices = _networks(table, rows, along, vertical)
        if slices is not None:
            upright = rows[np.flatnonzero(along == vertical)]
            ends = upright.indptr
            sums = [
                (upright.indices[a:b].astype(np.int64), upright.data[a:b].astype(np.float64))
                for a, b in pairwise(ends.tolist())
            ]
            return slices, sums
    raise InvalidOption(
        "Suppress.algorithm is 'slices', but no slice of this table is a network: two of its dimensions may have no "
        "hierarchy, or one and the other none.",
        hint="algorithm='auto' takes any table.",
    )


def _dimensions(table: Table, rows: sparse.csr_array) -> Integers:
    """Per equation the one dimension along which it adds up; -1 where there is none or there are several."""
    codes, starts = table.codes[rows.indices], rows.indptr[:-1]
    varies = np.maximum.reduceat(codes, starts, axis=0) != np.minimum.reduceat(codes, starts, axis=0)
    return np.where(varies.sum(axis=1) == 1, varies.argmax(axis=1), -1).astype(np.int64)


def _networks(table: Table, rows: sparse.csr_array, along: Integers, vertical: int) -> list[Slice] | None:
    """One network per code of the vertical dimension; None when a slice is none."""
    code = table.codes[:, vertical]
    level = rows[np.flatnonzero(along != vertical)]
    own = code[level.indices[level.indptr[:-1]]]
    found = []
    for value in np.unique(code).tolist():
        cells = np.flatnonzero(code == value)
        network = network_of(sparse.csr_array(level[np.flatnonzero(own == value)].tocsc()[:, cells]))
        if network is None:
            return None
        found.append(Slice(cells.astype(np.int64), network))
    return found
