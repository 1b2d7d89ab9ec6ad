"""Which steps some cells may take while all others stay: the program of a rounding, or of a part of one.

A linear program, and where that is fractional an integer one. For two-dimensional tables, also with one hierarchy,
every vertex of the linear program is whole (it is a network flow).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.methods.round.grid import Grid
from tablesafe.solve.highs import Model, Report
from tablesafe.solve.program import Program, Scale, Solution, SolveStatus
from tablesafe.work.budget import Budget

WHOLE = 1e-6
"""How near to a whole number the solver's answer must be; the sums are then checked in whole numbers."""
EXACT = 1e-6
"""Relative gap at which an answer counts as proved."""
CLOSE = 1e-9
"""Prices this far beyond what bounds allow are taken for rounding errors of the solver."""
SIMPLE = 1500
"""Cells below which the solver copes with more equations than cells."""
SLACK = 1000
"""Hidden cells may fall by this many steps, and by a few for every cell: large numbers are no food for solvers."""


def whole_cells(grid: Grid) -> Mask:
    """The cells that the solver is asked to make whole: all, which is fastest, where that is not its ruin.

    Where there are more equations than cells it would lose itself in modular arithmetic: then only cells that decide
    the others, which follow. With different bases they do not.
    """
    rows, cells = grid.matrix.shape
    if rows <= cells or cells < SIMPLE or not bool((grid.step == grid.step[:1]).all()):
        return np.ones(cells, dtype=np.bool_)
    return deciding(grid.matrix, grid.counts.table.totals) | grid.hidden


def deciding(matrix: sparse.csr_array, totals: Integers) -> Mask:
    """The cells that, once whole, make all others whole: those that no sum of decided cells gives.

    Asking the solver for fewer whole columns spares it hours of modular arithmetic on structures that are no trees.
    """
    given = np.ones(matrix.shape[1], dtype=np.bool_)
    given[totals] = False
    chosen = given.copy()
    present = sparse.csr_array(matrix).astype(bool).astype(np.int32)
    own = np.abs(matrix.data) == 1
    while not given.all():
        open_rows = np.asarray(present @ (~given).astype(np.int32)) == 1
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        new = np.unique(matrix.indices[open_rows[row] & own & ~given[matrix.indices]])
        if not new.size:
            chosen |= ~given
            break
        given[new] = True
    return chosen


@dataclass(frozen=True, eq=False)
class Columns:
    """Steps that a cell may take, each once: the cell, the direction, and whether it leaves the neighbours."""

    cell: NDArray[np.intp] = field(repr=False)
    direction: Integers = field(repr=False)
    beyond: Integers = field(repr=False)
    """0 between the two neighbours, then 1, 2, … for each step further."""

    @classmethod
    def within(cls, grid: Grid, cells: Mask, furthest: int) -> Self:
        """From the lower neighbour to the upper one, and so many steps beyond either; never below zero."""
        near = np.flatnonzero(cells & grid.free & (grid.high > grid.low))
        parts = [(near, 1, 0)]
        free = np.flatnonzero(cells & grid.free)
        for step in range(1, furthest + 1):
            parts += [(free, 1, step), (free[grid.low[free] >= step], -1, step)]
        return cls(
            np.concatenate([cell for cell, _, _ in parts]),
            np.concatenate([np.full(len(cell), direction) for cell, direction, _ in parts]),
            np.concatenate([np.full(len(cell), step) for cell, _, step in parts]),
        )

    def costs(self, grid: Grid) -> Floats:
        """What each step adds to the distance: less than the next one in its direction, so they are taken in order."""
        cell, low, high = self.cell, grid.low[self.cell], grid.high[self.cell]
        last = np.where(self.direction > 0, high, low) + self.direction * (self.beyond - 1)
        here = np.where(self.beyond == 0, low, last)
        return grid.distances(here + self.direction, cell) - grid.distances(here, cell)


@dataclass(frozen=True, eq=False)
class RoundingProgram:
    """The program over some cells, and how its columns stand for them."""

    grid: Grid = field(repr=False)
    columns: Columns
    start: Integers = field(repr=False)
    """All steps when no column is taken."""
    hidden: NDArray[np.intp] = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
    """The equations that the program has a row for."""
    program: Program = field(repr=False)

    @classmethod
    def of(
        cls,
        grid: Grid,
        whole: Mask,
        *,
        cells: Mask | None = None,
        stay: Integers | None = None,
        furthest: int = 0,
        dear: float = 0.0,
        fewest: bool = False,
        most_beyond: int | None = None,
    ) -> Self:
        """The least distance with `cells` free and all others as they `stay`.

        Steps beyond the neighbours, up to `furthest`, cost `dear` more each; with `fewest` they alone cost;
        no more than `most_beyond` are taken.
        """
        moving = np.ones(len(grid.step), dtype=np.bool_) if cells is None else cells
        columns = Columns.within(grid, moving, furthest)
        hidden = np.flatnonzero(grid.hidden & moving)
        start = grid.low.copy() if stay is None else np.where(moving & grid.free, grid.low, stay)
        start[hidden] = np.maximum(grid.low[hidden] - 4 * len(start) - SLACK, 0)
        cell = np.concatenate([columns.cell, hidden])
        direction = np.concatenate([columns.direction, np.ones(len(hidden), np.int64)])
        matrix = sparse.csr_array(grid.by_cell[:, cell])
        matrix.data = matrix.data * direction[matrix.indices]
        rhs = -np.asarray(grid.matrix @ start)
        used = (np.diff(matrix.indptr) > 0) | (rhs != 0)
        rows = np.flatnonzero(used)
        matrix, rhs = sparse.csr_array(matrix[rows]), rhs[rows]
        away = columns.beyond > 0
        cost = away.astype(np.float64) if fewest else columns.costs(grid) + dear * away
        cost = np.concatenate([cost, np.zeros(len(hidden))])
        most = np.concatenate([np.ones(len(columns.cell)), np.full(len(hidden), np.inf)])
        kinds = np.concatenate([whole[columns.cell], np.ones(len(hidden), np.bool_)])
        offset = 0.0 if fewest else float(grid.distances(start).sum())
        if most_beyond is not None:  # one row more, and a column for the steps that are not needed
            row = sparse.csr_array(np.concatenate([away, np.zeros(len(hidden), np.bool_)]).astype(np.int64)[None])
            unused = sparse.csr_array(([1], ([0], [0])), shape=(1, 1))
            matrix = sparse.csr_array(sparse.block_array([[matrix, None], [row, unused]], format="csr"))
            rhs, kinds = np.append(rhs, most_beyond), np.append(kinds, False)
            cost, most = np.append(cost, 0.0), np.append(most, float(most_beyond))
        right = rhs.astype(np.float64)
        program = Program(cost, matrix, right, right, np.zeros(len(cost)), most, kinds, offset)
        return cls(grid, columns, start, hidden, rows, program)

    def relax(self, budget: Budget) -> Solution:
        """The linear program: its vertex, and a bound from the prices of its rows."""
        return self._solved(replace(self.program, integer=None), budget)

    def solve(
        self, budget: Budget, start: Floats | None = None, *, gap: float = EXACT, report: Report | None = None
    ) -> Solution:
        """The integer program: the best point within the time, or one within `gap` of the best, or none."""
        return self._solved(self.program, budget, start, report, mip_rel_gap=gap, mip_feasibility_tolerance=WHOLE)

    def _solved(
        self, program: Program, budget: Budget, start: Floats | None = None, report: Report | None = None,
        **options: Any,
    ) -> Solution:  # fmt: skip
        if not len(program.cost):  # nothing can move: all sums hold already, or never will
            status = SolveStatus.INFEASIBLE if program.row_lower.any() else SolveStatus.OPTIMAL
            return Solution(status=status, objective=program.offset, bound=program.offset, seconds=0.0)
        model = Model(program, scale=Scale.of(self.program), solver="simplex", **options)
        if start is not None:
            model.start(start)
        model.run(budget, report=report)
        return model.solution()

    def bound(self, prices: Floats) -> float:
        """What no rounding costs less than, by prices of the rows: right for any prices."""
        return self.program.bound(prices, noise=CLOSE / Scale.costs(self.program.cost, whole=True))

    def steps(self, solution: Solution) -> Integers | None:
        """The solver's point as steps of every cell, if they are whole, add up exactly, and stay in their windows."""
        if not solution.found:
            return None
        point = solution.point
        n, k = len(self.columns.cell), len(self.grid.step)
        moved = np.zeros(k)
        np.add.at(moved, self.columns.cell, point[:n] * self.columns.direction)
        moved[self.hidden] += point[n : n + len(self.hidden)]
        whole = np.rint(moved)
        if (np.abs(moved - whole) > WHOLE).any() or (np.abs(whole) > 2.0**52).any():
            return None
        steps = self.start + whole.astype(np.int64)
        furthest = int(self.columns.beyond.max(initial=0))
        if (self.grid.beyond(steps)[self.columns.cell] > furthest).any() or not self.grid.adds_up(steps):
            return None
        return steps

    def fractional(self, point: Floats) -> NDArray[np.intp]:
        """The columns that are not whole."""
        return np.flatnonzero(np.abs(point - np.rint(point)) > WHOLE)

    def taken(self, steps: Integers) -> Floats:
        """Some steps as a point of this program: where a solver may begin."""
        cell, step = self.columns.cell, self.columns.beyond
        up, down = steps[cell] - self.grid.high[cell], self.grid.low[cell] - steps[cell]
        far = np.where(self.columns.direction > 0, up, down) >= step
        near = steps[cell] > self.grid.low[cell]
        point = np.where(step == 0, near, far).astype(np.float64)
        point = np.concatenate([point, (steps - self.start)[self.hidden].astype(np.float64)])
        spare = len(self.program.cost) - len(point)
        return np.append(point, self.program.row_lower[-1] - (step > 0) @ point[: len(step)]) if spare else point


# Large tables part by part: one part is rounded anew, exactly, while all around it stays, so every total still holds.
#
# A part is a block of codes: some children of one code in every dimension, with all the codes above them. Only steps
# that leave the surrounding sums as they are can be taken, so the table adds up at any time.


CELLS = 500
"""About how many cells the first part has; parts that are solved at once make the next ones larger."""
FEWEST, MOST = 200, 20_000
"""Between which sizes a part stays: below, whole families of codes are torn apart; above, a program is the table's."""
PART_S, QUICK_S = 1.0, 0.1
"""Seconds after which a part is given up, and within which it counts as solved at once."""
GROWTH = 1.3
"""By how much the next part is larger than one that was solved at once, or smaller than one that was not."""


def improved(
    grid: Grid,
    whole: Mask,
    best: Integers,
    offer: Callable[[Integers | None], bool],
    budget: Budget,
) -> None:
    """Round parts anew until the time is up, around what lies beyond its neighbours first."""
    random, size = np.random.default_rng(0), float(CELLS)
    for part in _parts(grid, random):
        if budget.over:
            return
        seed = _seed(grid, best, random)
        if seed is None:
            return
        cells = part(seed, size)
        furthest = int(grid.beyond(best).max(initial=0))
        model = RoundingProgram.of(grid, whole, cells=cells, stay=best, furthest=furthest, dear=_dear(grid, cells))
        begin = process_time()
        found = model.solve(budget.child(min(PART_S, budget.left)), model.taken(best))
        quick = found.status == SolveStatus.OPTIMAL and process_time() - begin < QUICK_S
        size = float(np.clip(size * (GROWTH if quick else 1.0 / GROWTH), FEWEST, MOST))
        steps = model.steps(found)
        if steps is not None and offer(steps):
            best = steps


def _seed(grid: Grid, best: Integers, random: np.random.Generator) -> int | None:
    """A cell beyond its neighbours, mostly; otherwise one that is farther than it need be."""
    beyond = np.flatnonzero(grid.beyond(best))
    if beyond.size and random.random() < 0.8:
        return int(random.choice(beyond))
    nearest = np.minimum(grid.distances(grid.low), grid.distances(grid.high))
    far = np.flatnonzero(grid.distances(best) > nearest)
    return int(random.choice(far)) if far.size else None


def _dear(grid: Grid, cells: Mask) -> float:
    """So much that a step beyond the neighbours outweighs the distances of a part."""
    at = np.flatnonzero(cells & grid.free)
    slopes = np.abs(grid.distances(grid.low[at] + 1, at) - grid.distances(grid.low[at], at))
    return 50.0 * float(slopes.max(initial=1.0))


def _parts(grid: Grid, random: np.random.Generator) -> Iterator[Callable[[int, float], Mask]]:
    """Ways to draw a part around a cell: by codes where there are dimensions, else by equations."""
    table = grid.counts.table
    if table.names is not None or not table.dimensions:
        pattern = abs(sparse.csr_array(grid.matrix)).astype(bool).astype(np.int32)
        while True:
            yield lambda seed, size: _ball(pattern, seed, size)
    families = [_families(hierarchy) for hierarchy in table.dimensions.values()]
    while True:
        yield lambda seed, size: _block(table.codes, families, table.codes[seed], size, random)


def _families(hierarchy: Hierarchy) -> sparse.csr_array:
    """Which codes stand together in an equation."""
    rows = abs(sparse.csr_array(hierarchy.equations)).astype(np.int32)
    return sparse.csr_array(rows.T @ rows)


def _block(
    codes: NDArray[np.int32], families: list[sparse.csr_array], seed: NDArray[np.int32], size: float,
    random: np.random.Generator,
) -> Mask:  # fmt: skip
    """The cells whose codes are all near the seed's: its equations', with everything above."""
    inside = np.ones(len(codes), dtype=np.bool_)
    each = max(2.0, size ** (1.0 / len(families)))
    for d, family in enumerate(families):
        near = family.indices[family.indptr[seed[d]] : family.indptr[seed[d] + 1]]
        for _ in range(8):  # upwards and sideways until there are enough
            if len(near) >= each or not len(near):
                break
            wider = np.unique(np.concatenate([family.indices[family.indptr[c] : family.indptr[c + 1]] for c in near]))
            if len(wider) == len(near):
                break
            near = wider
        if len(near) > 2 * each:
            near = random.choice(near, int(2 * each), replace=False)
        kept = np.zeros(family.shape[0], dtype=np.bool_)
        kept[near] = True
        kept[seed[d]] = True
        inside &= kept[codes[:, d]]
    return inside


def _ball(pattern: sparse.csr_array, seed: int, size: float) -> Mask:
    """The cells within a few equations of a cell."""
    inside = np.zeros(pattern.shape[1], dtype=np.bool_)
    inside[seed] = True
    across = sparse.csr_array(pattern.T)
    while inside.sum() < size:
        wider = np.asarray(across @ (np.asarray(pattern @ inside.astype(np.int32)) > 0).astype(np.int32)) > 0
        if wider.sum() == inside.sum() or (wider.sum() > 4 * size and inside.sum() > 1):
            break
        inside = wider
    return inside
