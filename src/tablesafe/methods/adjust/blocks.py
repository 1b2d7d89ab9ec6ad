"""Block coordinate descent: a part of a large table is adjusted anew, exactly, while the rest stays as it was.

A region is a box of inner cells that share equations, and all totals above them: so the work of a step does not grow
with the table, and yet no total is out of reach. (González & Castro, "A heuristic block coordinate descent approach for
controlled tabular adjustment", 2011.)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.methods.adjust.whole import rounded
from tablesafe.solve.least_change import Box, Directions
from tablesafe.work.budget import Budget, worked

NEAR_ENOUGH = 2e-3
"""A region is left when its answer is proved to be within this share of the best."""
BOXES = 12
"""Boxes that are put together to a region, at most."""

FIRST_S, SLOWEST_S = 0.1, 1.5
"""How long a region may take in the first round, and in the last; three times as long in each further one."""
CELLS = (30.0, 3_000.0)
"""Between which sizes a region stays, whatever time says: one sum with its parts, and what one program can do."""

Cells = NDArray[np.intp]


@dataclass(eq=False)
class Pace:
    """How large regions are: as large as can be adjusted in the time given to each."""

    seconds: float = FIRST_S
    size: float = 100.0

    @property
    def cells(self) -> int:
        """Inner cells of the next region."""
        return int(self.size)

    @property
    def limit(self) -> float:
        """Seconds after which a region is left as it is."""
        return 4 * self.seconds

    @property
    def slowest(self) -> bool:
        """Whether regions are as large as they get."""
        return self.seconds >= SLOWEST_S

    def slower(self) -> None:
        """Take more time for each."""
        self.seconds = min(3 * self.seconds, SLOWEST_S)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Adjust the size by how long something takes."""
        begin = worked()
        yield
        took = worked() - begin
        factor = 1.1 if took < self.seconds / 2 else 0.8 if took > self.seconds else 1.0
        self.size = float(np.clip(self.size * factor, *CELLS))


@dataclass(frozen=True, eq=False)
class Lists:
    """For each of many things the numbers of others, one after the other."""

    start: Integers = field(repr=False)
    items: Integers = field(repr=False)

    @classmethod
    def of(cls, matrix: sparse.csr_array | sparse.csc_array) -> Self:
        """The places of each row of a matrix by rows, or of each column of one by columns."""
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))

    def at(self, places: Cells | Integers) -> Integers:
        """What stands in the lists of these, one after the other."""
        first = self.start[places]
        length = self.start[places + 1] - first
        shift = np.repeat(first - np.concatenate([[0], np.cumsum(length)[:-1]]), length) if len(places) else length
        return np.asarray(self.items[np.arange(len(shift)) + shift])

    @cached_property
    def length(self) -> Integers:
        """How many stand in each list."""
        return np.diff(self.start)


@dataclass(frozen=True, eq=False)
class Step:
    """What a region's own program found: new moves and directions of some cells and targets, and what that saves."""

    cells: Cells
    moves: Floats
    targets: Cells
    way: Way
    saved: float = 0.0

    def take(self, moves: Floats, way: Way) -> None:
        """Write them into those of the whole table."""
        moves[self.cells] = self.moves
        way[self.targets] = self.way


@dataclass(frozen=True, eq=False)
class Regions:
    """A table's equations, to find parts of it that can move by themselves."""

    instance: Instance
    sums: Lists = field(repr=False)
    """Of each cell the equations in which it is a part."""
    parts: Lists = field(repr=False)
    """Of each equation its parts."""
    totals: Lists = field(repr=False)
    """Of each equation its totals."""
    under: Lists = field(repr=False)
    """Of each cell the equations of which it is the total."""
    target: Cells = field(repr=False)
    """The number of each cell among the targets, or −1."""

    @classmethod
    def of(cls, instance: Instance) -> Self:
        """Read the equations: a total stands with −1 among its parts."""
        entries = sparse.coo_array(instance.matrix)
        lists = []
        for chosen in (entries.data > 0, entries.data < 0):
            where = (entries.coords[0][chosen], entries.coords[1][chosen])
            one = sparse.coo_array((np.ones(int(chosen.sum()), np.int8), where), shape=entries.shape)
            lists += [Lists.of(one.tocsc()), Lists.of(one.tocsr())]
        target = np.full(len(instance.cells), -1)
        target[instance.targets] = np.arange(len(instance.targets))
        return cls(instance, lists[0], lists[1], lists[3], lists[2], target)

    # -- regions ---------------------------------------------------------------------------------------------------

    def around(self, cell: int, size: int, random: np.random.Generator) -> Cells:
        """About `size` inner cells around one, and all totals above them."""
        seed = self._inner(cell, random)
        found = self._box(seed, size, random)
        for _ in range(BOXES):
            if 2 * len(found) > size:
                break
            seed = self._inner(self._neighbour(seed, random), random)
            found = np.union1d(found, self._box(seed, size, random))
        return self._with_totals(np.union1d(found, [cell]))

    def _inner(self, cell: int, random: np.random.Generator) -> int:
        """A cell that is no total: the cell, or one of those that it is the sum of."""
        while self.under.length[cell]:
            row = random.choice(self.under.at(np.array([cell])))
            parts = self.parts.at(np.array([row]))
            if not parts.size:
                break
            cell = int(random.choice(parts))
        return cell

    def _neighbour(self, cell: int, random: np.random.Generator) -> int:
        """A part of a total of a total of the cell, or any cell where there is none."""
        for _ in range(2):
            rows = self.sums.at(np.array([cell]))
            above = self.totals.at(rows)
            if not above.size:
                break
            cell = int(random.choice(above))
        rows = self.under.at(np.array([cell]))
        parts = self.parts.at(rows)
        return int(random.choice(parts)) if parts.size else int(random.integers(len(self.target)))

    def _box(self, cell: int, size: int, random: np.random.Generator) -> Cells:
        """Some cells beside this one in each of its equations, and those where their equations meet.

        In a table of three dimensions: a few rows, columns and levels, and all cells in which they cross.
        """
        rows = self.sums.at(np.array([cell]))
        if not len(rows):
            return np.array([cell])
        each = max(int(size ** (1 / len(rows))), 2)
        beside = [random.permutation(self.parts.at(np.array([row])))[: each - 1] for row in rows]
        found = np.unique(np.concatenate([[cell], *beside]))
        for crossing in range(2, len(rows) + 1):
            cells, times = np.unique(self.parts.at(np.unique(self.sums.at(found))), return_counts=True)
            more = cells[times >= np.minimum(self.sums.length[cells], crossing)]
            found = np.union1d(found, random.permutation(more)[: 2 * size])
        return np.asarray(found, dtype=np.intp)

    def _with_totals(self, cells: Cells) -> Cells:
        found = fresh = cells
        while fresh.size:
            above = np.unique(self.totals.at(np.unique(self.sums.at(fresh))))
            fresh = np.setdiff1d(above, found)
            found = np.union1d(found, fresh)
        return np.asarray(found, dtype=np.intp)

    # -- programs --------------------------------------------------------------------------------------------------

    def improved(
        self, cells: Cells, moves: Floats, way: Way, *, seconds: float, turn: bool = True, whole: bool = False
    ) -> Step | None:
        """Choose the moves within a region anew, with `turn` the directions too; None when that is no better.

        With `whole` the moves stay whole numbers.
        """
        part, numbers = self._part(cells)
        now, ways = moves[cells], way[numbers]
        open = part.can_rise & part.can_fall if turn else np.zeros(len(ways), np.bool_)
        before = part.price(now)
        box = _within(part.box(ways, open=open), part.cost, before, now)
        program = Directions(part.matrix, part.cost, box, part.switches(open), part.scale(), part.matrix @ now)
        choice = program.choose(time_limit_s=seconds, start=(now, ways[open] > 0), gap=NEAR_ENOUGH)
        if choice.interrupted:
            raise KeyboardInterrupt
        if choice.moves is None or choice.rise is None or part.price(choice.moves) >= before * (1 - 1e-9):
            return None
        ways[open] = np.where(choice.rise, 1, -1)
        after = _whole(part, ways, choice.moves, now, seconds) if whole else choice.moves
        if after is None or part.price(after) >= before * (1 - 1e-9):
            return None
        return Step(cells, after, numbers, ways, before - part.price(after))

    def settled(self, cells: Cells, moves: Floats, way: Way, *, seconds: float) -> Step | None:
        """The least change of a region in these directions, in whole numbers; its targets may be short before."""
        part, numbers = self._part(cells)
        now, ways = moves[cells], way[numbers]
        none = np.zeros(len(ways), np.bool_)
        program = Directions(
            part.matrix, part.cost, part.box(ways), part.switches(none), part.scale(), part.matrix @ now
        )
        choice = program.choose(time_limit_s=seconds)
        if choice.interrupted:
            raise KeyboardInterrupt
        after = None if choice.moves is None else _whole(part, ways, choice.moves, now, seconds)
        return None if after is None else Step(cells, after, numbers, ways)

    def _part(self, cells: Cells) -> tuple[Instance, Cells]:
        """A region as a problem of its own, and the numbers of its targets."""
        i = self.instance
        matrix = sparse.csc_array(i.matrix[:, cells])
        rows, place = np.unique(matrix.indices, return_inverse=True)
        matrix = sparse.csc_array((matrix.data, place, matrix.indptr), shape=(len(rows), len(cells)))
        inside = self.target[cells]
        targets = np.flatnonzero(inside >= 0)
        numbers = inside[targets]
        part = Instance(
            i.cells[cells], matrix, i.cost[cells], i.up[cells], i.down[cells], targets,
            i.above[numbers], i.below[numbers],
        )  # fmt: skip
        return part, numbers


def _whole(part: Instance, way: Way, moves: Floats, now: Floats, seconds: float) -> Floats | None:
    """Whole moves near these that add up to what those of now do."""
    found = rounded(part, way, moves, budget=Budget(seconds), sums=np.asarray(part.matrix @ now))
    return None if found is None else found.astype(np.float64)


def _within(box: Box, cost: Floats, budget: float, now: Floats) -> Box:
    """The same bounds without moves that alone would cost more than everything does now: small big-Ms."""
    most = np.floor(budget / cost) + 1.0
    return Box(
        box.rise_least, np.maximum(np.minimum(box.rise_most, most), np.maximum(now, box.rise_least)),
        box.fall_least, np.maximum(np.minimum(box.fall_most, most), np.maximum(-now, box.fall_least)),
    )  # fmt: skip
