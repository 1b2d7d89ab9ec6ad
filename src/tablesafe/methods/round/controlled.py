"""Controlled rounding: every value one of its two neighbours, every sum kept, as near to the truth as can be.

A zero-restricted rounding leaves multiples of the base unchanged. In two dimensions there always is one (Cox & Ernst,
"Controlled Rounding", INFOR 20, 1982); in three there may be none (Causey, Cox & Ernst, "Applications of
Transportation Theory to Statistical Problems", JASA 80, 1985): then as few steps beyond the neighbours as possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.equations import Floats, Integers
from tablesafe.errors import SolverFailure
from tablesafe.methods.round.counts import Counts, summed_up
from tablesafe.solve.program import Solution, SolveStatus
from tablesafe.solve.rounding import StepProgram

NEIGHBOURS = 0.8
"""Share of the time for roundings to the neighbours; the rest is for going beyond them."""
FURTHEST = 4
"""Steps beyond the neighbours that are tried before the inner cells are rounded and added up."""


@dataclass(frozen=True, eq=False)
class Rounded:
    """The rounded values, how many steps each lies beyond its neighbours, and how good the answer is."""

    values: Integers = field(repr=False)
    beyond: Integers = field(repr=False)
    solution: Solution


@dataclass(frozen=True, eq=False)
class Columns:
    """Steps that a cell may take, each once: the cell, the direction, and whether it leaves the neighbours."""

    cell: NDArray[np.intp]
    direction: Integers
    beyond: Integers
    """0 between the two neighbours, then 1, 2, … for each step further."""


def round_controlled(counts: Counts, distance: str, time_limit_s: float) -> Rounded:
    """Round to neighbours; where that is impossible, find the fewest steps beyond them first, then the distance."""
    begin = monotonic()
    counts.require_multiples_where_frozen()
    search = _Search(counts, distance, begin + time_limit_s)
    near = _neighbours(counts)
    found = search.nearest(near)
    furthest = 0
    while found is None and furthest < FURTHEST and search.left() > 0:
        furthest += 1
        found = search.fewest_beyond(_wider(counts, near, furthest))
    if found is None:
        found = search.added_up()
    values, status, bound = found
    objective = float(search.distances(values).sum())
    closed = search.proven and status == SolveStatus.OPTIMAL
    solution = Solution(
        status=SolveStatus.OPTIMAL if closed else SolveStatus.FEASIBLE,
        objective=objective,
        bound=objective if closed else max(min(bound, objective), 0.0),
        seconds=monotonic() - begin,
    )
    return Rounded(values, _beyond(counts, values), solution)


Found = tuple[Integers, SolveStatus, float]
"""Rounded values, how the search for them ended, and a bound on the distance."""


class _Search:
    """The programs of one rounding, and the clock they share."""

    def __init__(self, counts: Counts, distance: str, deadline: float) -> None:
        self.counts, self._distance, self._deadline = counts, distance, deadline
        self._start = np.where(counts.hidden, 0, counts.floor // counts.base)
        self._rhs = -np.asarray(counts.table.equations.astype(np.int64) @ self._start)
        self.proven = True
        """Whether every program so far was solved to its end."""

    def left(self) -> float:
        """Seconds until the deadline."""
        return self._deadline - monotonic()

    def distances(self, values: Integers) -> Floats:
        """How far each published cell is from its count, in the chosen measure."""
        return np.where(self.counts.hidden, 0.0, self._measured(np.arange(len(values)), values))

    def nearest(self, columns: Columns) -> Found | None:
        """The least distance with these steps allowed."""
        cost, offset = self._costs(columns)
        return self._solved(columns, cost, offset, NEIGHBOURS * self.left())

    def fewest_beyond(self, columns: Columns) -> Found | None:
        """The least distance among the roundings with the fewest steps beyond the neighbours."""
        found = self._solved(columns, (columns.beyond > 0).astype(np.float64), 0.0, self.left() / 2)
        if found is None:
            return None
        cost, offset = self._costs(columns)
        spent = int(_beyond(self.counts, found[0]).sum())
        nearest = self._solved(columns, cost, offset, self.left(), most_beyond=spent)
        return nearest or (found[0], SolveStatus.FEASIBLE, -np.inf)

    def added_up(self) -> Found:
        """Round the inner cells alone and add them up: always additive, but totals may drift."""
        counts, half = self.counts, self.counts.base // 2
        nearest = (counts.value + half) // counts.base * counts.base
        sums = summed_up(counts.table, np.where(counts.frozen, counts.value, nearest))
        if sums is None or (counts.frozen & (sums != counts.value)).any():
            raise SolverFailure(
                "No rounding that adds up was found in time.\n\nHint: raise time_limit_s, or unfreeze some cells."
            )
        return sums, SolveStatus.FEASIBLE, -np.inf

    def _costs(self, columns: Columns) -> tuple[Floats, float]:
        """What each step adds to the distance: less than the next one in its direction, so they are taken in order."""
        counts = self.counts
        near, upward = columns.beyond == 0, columns.direction > 0
        top = counts.floor + counts.base * (counts.above > 0)
        last = np.where(upward, top[columns.cell], counts.floor[columns.cell])
        here = np.where(near, counts.floor[columns.cell], last + columns.direction * (columns.beyond - 1) * counts.base)
        there = here + columns.direction * counts.base
        cost = self._measured(columns.cell, there) - self._measured(columns.cell, here)
        return cost, float(self.distances(counts.floor).sum())

    def _measured(self, cell: NDArray[np.intp], value: Integers) -> Floats:
        count = self.counts.value[cell]
        off: Floats = np.abs(value - count).astype(np.float64)
        if self._distance == "squared":
            return off**2
        return off / np.maximum(count, 1) if self._distance == "relative" else off

    def _solved(
        self, columns: Columns, cost: Floats, offset: float, time_limit_s: float, most_beyond: int | None = None
    ) -> Found | None:
        """Run the program; hidden cells take whatever value makes the sums right."""
        counts, steps = self.counts, len(columns.cell)
        hidden = np.flatnonzero(counts.hidden)
        cell = np.concatenate([columns.cell, hidden])
        direction = np.concatenate([columns.direction, np.ones(len(hidden), np.int64)])
        matrix = sparse.csr_array(counts.table.equations.tocsc()[:, cell].astype(np.int64))
        matrix = sparse.csr_array(matrix.multiply(direction))
        cost = np.concatenate([cost, np.zeros(len(hidden))])
        most = np.concatenate([np.ones(steps), np.full(len(hidden), np.inf)])
        rhs = self._rhs
        if most_beyond is not None:  # one row more, and a column for the steps that are not needed
            row = np.concatenate([columns.beyond > 0, np.zeros(len(hidden), np.bool_)]).astype(np.int64)
            unused = sparse.csr_array(([1], ([0], [0])), shape=(1, 1))
            matrix = sparse.csr_array(sparse.block_array([[matrix, None], [sparse.csr_array(row[None]), unused]]))
            cost, most, rhs = np.append(cost, 0.0), np.append(most, most_beyond), np.append(rhs, most_beyond)
        whole = np.ones(len(cost), dtype=np.bool_)
        whole[steps : steps + len(hidden)] = False
        found = StepProgram(matrix, rhs, cost, most, whole, offset).solve(time_limit_s=time_limit_s)
        self.proven &= found.status in {SolveStatus.OPTIMAL, SolveStatus.INFEASIBLE}
        if found.taken is None:
            return None
        moved = np.zeros(len(counts.value), dtype=np.int64)
        np.add.at(moved, cell, found.taken[: len(cell)] * direction)
        return (self._start + moved) * counts.base, found.status, found.bound


def _neighbours(counts: Counts) -> Columns:
    """One step up for every count that is no multiple."""
    cell = np.flatnonzero((counts.above > 0) & ~counts.hidden)
    return Columns(cell, np.ones(len(cell), np.int64), np.zeros(len(cell), np.int64))


def _wider(counts: Counts, near: Columns, furthest: int) -> Columns:
    """Further steps in both directions for every cell that may change; none below zero."""
    free = np.flatnonzero(~counts.hidden & ~counts.frozen)
    columns = [near]
    for step in range(1, furthest + 1):
        down = free[counts.floor[free] >= step * counts.base]
        for cell, direction in ((free, 1), (down, -1)):
            columns.append(Columns(cell, np.full(len(cell), direction), np.full(len(cell), step)))
    return Columns(
        np.concatenate([c.cell for c in columns]),
        np.concatenate([c.direction for c in columns]),
        np.concatenate([c.beyond for c in columns]),
    )


def _beyond(counts: Counts, values: Integers) -> Integers:
    """How many steps each value lies beyond the two neighbours of its count."""
    below = (counts.floor - values) // counts.base
    above = (values - counts.floor) // counts.base - (counts.above > 0)
    return np.where(counts.hidden, 0, np.maximum(np.maximum(below, above), 0))
