"""Why a sensitive cell cannot be protected: proved in whole numbers, as a smallest set, with what to unfreeze.

With every cell withheld that may be, the attacker's own program says how far the cell can move, and the prices of its
sums prove that it is no further. What has a price is in the way. Whatever is not needed for the proof is struck out,
one after another, until the rest is irreducible: a conflict. What to unfreeze is the smallest set that meets every
conflict.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress.branch_and_cut.master_problem import Covering, Cut
from tablesafe.methods.suppress.branch_and_cut.tree import least_answer
from tablesafe.methods.suppress.instance import Instance
from tablesafe.solve.highs import Model
from tablesafe.solve.program import Columns
from tablesafe.work.budget import Budget

FARTHEST = 1e6
"""No cell needs to move further than this many times what is asked of the sensitive one."""
GRID = 55_440
"""Prices of sums are fractions with small denominators: multiples of one in 55,440."""
CLOSE = 1e-6
"""A level that is reached but for this share is reached."""
NEAR = (1, 2, 4)
"""Steps from sum to sum around the cell in which a conflict is looked for before the whole table is."""
ROUNDS = 60
"""Conflicts after which no smaller set of cells to unfreeze is looked for."""
FEWEST_S = 10.0
"""Seconds after which the smallest set so far that meets all conflicts will do."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Sums, and cells that stay as they are, which together leave a sensitive cell no room; none can be left out."""

    cells: tuple[int, ...]
    sums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """A sensitive cell, the side it must move to, and how far, in units of the table."""

    cell: int
    sign: int
    level: float

    @classmethod
    def of(cls, instance: Instance, target: int) -> Self:
        """What a target of an instance asks for."""
        return cls(int(instance.cell[target]), int(instance.sign[target]), float(instance.level[target]))


class Obstacles:
    """What keeps a sensitive cell where it is: `blocked` cells do not move, the others within the prior bounds."""

    def __init__(self, problem: Problem, *, zeros: bool | Mask) -> None:
        table = problem.table
        unit, value = 10.0**table.decimals, table.integers.astype(np.float64)
        self._up, self._down = problem.upper * unit - value, value - problem.lower * unit
        self._rows = sparse.csr_array(table.equations).astype(np.int64)
        self._columns = sparse.csc_array(self._rows)
        forced = problem.sensitivity.mask | problem.suppressed | problem.withheld
        self.blocked = problem.frozen | ((table.integers == 0) & ~forced & np.logical_not(zeros))
        self._solver = Model.small()

    def reach(self, demand: Demand, *, blocked: Mask | None = None, sums: Integers | None = None) -> float:
        """How far the cell can move to its side at most, up to what is demanded; over some sums, or all of them.

        What a few sums around the cell allow is no less than that, and what it can do while all else stays as it is
        is no more: where the two meet, the rest of the table has no say.
        """
        blocked = self.blocked if blocked is None else blocked
        if sums is not None:
            return self._solved(demand, blocked, sums)[0]
        for steps in NEAR:
            near = self._around(demand, steps)
            most = self._solved(demand, blocked, near)[0]
            least = self._solved(demand, blocked | ~self._within(near), near)[0]
            if least >= most * (1 - CLOSE):
                return least
        return self._solved(demand, blocked, None)[0]

    def _within(self, sums: Integers) -> Mask:
        """The cells that stand in no other sums than these."""
        inside = np.bincount(self._rows[sums].indices, minlength=len(self.blocked))
        return np.asarray(inside == np.diff(self._columns.indptr))

    def conflict(self, demand: Demand, blocked: Mask) -> Conflict | None:
        """An irreducible reason why the cell cannot move as far as demanded; None when it can, or nothing proves it."""
        for steps in (*NEAR, None):
            move, sums, prices = self._solved(demand, blocked, None if steps is None else self._around(demand, steps))
            if move < demand.level * (1 - CLOSE):
                break
        else:
            return None
        proof = self._proof(demand, blocked, sums, prices)
        if proof is None:
            return None
        cells, sums = proof
        only = np.zeros(len(blocked), dtype=np.bool_)
        only[cells] = True
        for cell in cells.tolist():
            only[cell] = False
            if self.reach(demand, blocked=only, sums=sums) >= demand.level * (1 - CLOSE):
                only[cell] = True
        for row in sums.tolist():
            rest = sums[sums != row]
            if self.reach(demand, blocked=only, sums=rest) < demand.level * (1 - CLOSE):
                sums = rest
        return Conflict(tuple(np.flatnonzero(only).tolist()), tuple(sums.tolist()))

    def stuck(self, demand: Demand) -> bool:
        """Whether the sums that the cell stands in already leave it no room; further ones might as well."""
        return self.reach(demand, sums=self._around(demand, 1)) < demand.level * (1 - CLOSE)

    def _around(self, demand: Demand, steps: int) -> Integers:
        """The sums within some steps of the cell: what they forbid alone, they forbid with all the others."""
        cells = np.array([demand.cell])
        for _ in range(steps):
            rows = np.unique(self._columns[:, cells].indices)
            cells = np.unique(self._rows[rows].indices)
        return rows

    def _solved(self, demand: Demand, blocked: Mask, sums: Integers | None) -> tuple[float, Integers, Floats]:
        """The largest move of the cell, and the prices of the sums that prove it; over some sums, or all of them."""
        rows = np.arange(self._rows.shape[0]) if sums is None else sums
        part = self._rows[rows]
        cells = np.unique(np.append(part.indices, demand.cell))
        cells = cells[~blocked[cells]]
        if demand.cell not in cells:
            return 0.0, rows[:0], np.zeros(0)
        columns = part.tocsc()[:, cells]
        far = FARTHEST * demand.level
        above, below = (np.minimum(room[cells], far) / demand.level for room in (self._up, self._down))
        at = int(np.searchsorted(cells, demand.cell))
        above[at], below[at] = (min(above[at], 1.0), 0.0) if demand.sign > 0 else (0.0, min(below[at], 1.0))
        cost = np.zeros(len(cells))
        cost[at] = -demand.sign
        answer = self._solver.minimise(cost, -below, above, Columns.of(columns))
        if answer is None:
            return demand.level, rows[:0], np.zeros(0)
        return -answer.objective * demand.level, rows, answer.dual

    def _proof(
        self, demand: Demand, blocked: Mask, rows: Integers, prices: Floats
    ) -> tuple[NDArray[np.intp], Integers] | None:
        """The blocked cells and the sums that the prices name, if in whole numbers they prove that it cannot move far.

        The sums, weighed by their prices, say that the cell's move is a combination of the moves of others; blocked
        ones do not move, and the rest cannot move further than the prior bounds.
        """
        weight = np.rint(prices * GRID).astype(np.int64)
        used = rows[weight != 0]
        reduced = np.asarray(self._rows[used].T @ weight[weight != 0])
        reduced[demand.cell] += demand.sign * GRID
        free = ~blocked & (reduced != 0)
        room = np.where(reduced > 0, self._up, self._down)[free]
        if np.isinf(room).any():
            return None
        most = sum(
            (abs(Fraction(int(r))) * Fraction(float(width)) for r, width in zip(reduced[free], room, strict=True)),
            Fraction(0),
        )
        if most >= Fraction(float(demand.level)) * GRID:
            return None
        return np.flatnonzero(blocked & (reduced != 0) & (np.where(reduced > 0, self._up, self._down) > 0)), used


@dataclass(frozen=True, slots=True)
class Remedy:
    """Conflicts that keep a cell from being protected, and the fewest cells that must be unfrozen to resolve them."""

    conflicts: tuple[Conflict, ...]
    unfreeze: tuple[int, ...]
    instead: tuple[int, ...] = ()
    """Where one cell is enough: all cells of which any one is."""
    solved: bool = True
    """False when no unfreezing helps: the prior bounds alone leave no room."""


def remedy(obstacles: Obstacles, demand: Demand) -> Remedy | None:
    """Find what to unfreeze so that a cell can be protected; None when it is not proved that it cannot."""
    conflicts: list[Conflict] = []
    freed: tuple[int, ...] = ()
    for _ in range(ROUNDS):
        found = obstacles.conflict(demand, _without(obstacles.blocked, freed))
        if found is None:
            break
        conflicts.append(found)
        if not found.cells:
            return Remedy(tuple(conflicts), (), solved=False)
        freed = _hitting(conflicts)
    if not conflicts:
        return None
    if not _enough(obstacles, demand, freed):
        freed = tuple(sorted({cell for conflict in conflicts for cell in conflict.cells}))
        while (found := obstacles.conflict(demand, _without(obstacles.blocked, freed))) is not None:
            conflicts.append(found)
            if not found.cells:
                return Remedy(tuple(conflicts), (), solved=False)
            freed = tuple(sorted({*freed, *found.cells}))
        for cell in freed:
            fewer = tuple(other for other in freed if other != cell)
            freed = fewer if _enough(obstacles, demand, fewer) else freed
    instead = freed
    if len(freed) == 1:
        shared = sorted(set.intersection(*(set(conflict.cells) for conflict in conflicts)))
        instead = tuple(cell for cell in shared[:20] if _enough(obstacles, demand, (cell,)))
    return Remedy(tuple(conflicts), freed, instead)


def _enough(obstacles: Obstacles, demand: Demand, freed: tuple[int, ...]) -> bool:
    """Whether a cell can be protected once some are no longer frozen."""
    return obstacles.reach(demand, blocked=_without(obstacles.blocked, freed)) >= demand.level * (1 - CLOSE)


def _without(mask: Mask, cells: tuple[int, ...]) -> Mask:
    out = mask.copy()
    out[list(cells)] = False
    return out


def _hitting(conflicts: list[Conflict]) -> tuple[int, ...]:
    """The fewest cells that meet every conflict."""
    cells = np.unique([cell for conflict in conflicts for cell in conflict.cells])
    covering = Covering(np.ones(len(cells)))
    covering.add(
        [Cut(np.searchsorted(cells, np.array(conflict.cells)), np.ones(len(conflict.cells))) for conflict in conflicts]
    )
    budget = Budget(FEWEST_S)
    chosen = least_answer(covering, np.ones(len(cells)), lambda: budget.over)
    return tuple(cells[chosen > 0.5].tolist())
