"""Linear programs: the cheapest deviations of one target, over the cells around it.

Cells are gathered equation by equation, so the work depends on the surroundings and not on the size of the table. A
cell that stands alone in an equation cannot move and is pruned, with all that hangs on it; the dearest cells are left
out as long as the target can still move. A cell pays in proportion to the share of the move that it carries: the
tightest linear measure below the price of withholding it (Kelly, Golden & Assad). A linear program likes to share out:
it is asked again at prices against small moves.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.deviations import NEGLIGIBLE, Deviation, Wanted
from tablesafe.methods.suppress.hypercubes import Boxes
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.pattern import Pattern
from tablesafe.solve.boxes import System
from tablesafe.solve.highs import UNLIMITED, Model
from tablesafe.solve.neighbourhood import Effort, LocalProgram, Scratch, around
from tablesafe.solve.program import Columns

EFFORTS, SECOND_THOUGHTS = 4, 1
"""Efforts spent on a target, and on one whose deviation may be replaced."""
EVERYTHING = 3
"""The effort that looks at everything; only where there is no other way."""
RUINOUS, SMALL = 300.0, 20_000
"""How many times as much as usual a deviation costs that makes one look at everything, in at most so many cells."""
MOSTLY = 0.3
"""Share of what such a deviation costs from which on a cell is one that makes it dear."""
ALMOST_FREE, NEARLY_FREE = 0.01, 0.1
"""Share of its cost that a cell withheld already is charged: the fewer cells a deviation needs, the better. The second
is for boxes."""
LEEWAY = 1.5
"""A program counts what is withheld already as almost free, not as free: how much dearer than it pays it may look."""
NEAR = 2_000
"""Cells that count as near."""
REWEIGHTED = 2
"""Times a deviation is asked to use fewer cells."""
PIVOTS = 500
"""Steps of the simplex method after which a second thought is given up."""


def least_of(instance: Instance, *, boxes: bool) -> Floats:
    """What a cell is charged that is withheld already."""
    positive = instance.cost[instance.cost > 0]
    usual = float(np.median(positive)) if positive.size else 1.0
    return (NEARLY_FREE if boxes else ALMOST_FREE) * (instance.cost + 0.1 * usual)


class LocalPrograms:
    """Finds deviations of a pattern by linear programs, wider and wider around a target while they are dear."""

    def __init__(self, pattern: Pattern, solver: Model, *, boxes: bool = False, near_first: bool = False) -> None:
        """With `boxes`, programs are only for targets that have none; `near_first` looks near before it looks cheap."""
        instance = pattern.instance
        self.solver, self._pattern, self._instance = solver, pattern, instance
        self._system = System.of(instance.rows, instance.up, instance.down)
        self._scratch = Scratch.over(self._system)
        self._boxes = Boxes(self._system, solver.work) if boxes else None
        cheap, near, *wide = _efforts(instance.rows)
        self._efforts = (near, cheap, *wide) if near_first else (cheap, near, *wide)

    def cheapest(self, wanted: Wanted) -> Deviation | None:
        """A cheap deviation; what comes first is tried first, then a box, if wanted, then programs.

        A linear program likes a little of a very dear cell: where that makes a deviation dear, one without it is looked
        for, here and further away.
        """
        pattern, sizes = self._pattern, {0}
        best = None if wanted.first is None else self._within(wanted, wanted.first)
        if best is None and self._boxes is not None:
            best = self._boxes.cheapest(wanted)
        for wide, effort in enumerate(self._efforts):
            if not self._worth_it(wide, wanted.effort, best):
                break
            found = self._found(wanted, effort, sizes)
            while found is not None and (
                best is None or pattern.fresh_cost(found.cells) < pattern.fresh_cost(best.cells)
            ):
                best = found
                if wide >= EVERYTHING or not pattern.dear(best.cells):
                    break
                price = wanted.price.copy()
                price[self._dearest(best.cells, wanted.cell)] = np.inf
                wanted = wanted._replace(price=price)
                found = self._found(wanted, effort, sizes)
        return best

    def _within(self, wanted: Wanted, pattern: Mask) -> Deviation | None:
        """A deviation among the cells of a pattern and what is withheld besides."""
        allowed = (pattern | self._pattern.withheld) & (wanted.price < np.inf)
        price = np.where(allowed, self._pattern.least, np.inf)
        return self._found(wanted._replace(price=price), self._efforts[1], {0})

    def _found(self, wanted: Wanted, effort: Effort, sizes: set[int]) -> Deviation | None:
        """A cheap deviation among the cells that an effort looks at; None if there is none, or they were looked at."""
        system = self._system._replace(up=wanted.room.up, down=wanted.room.down)
        program = around(system, self._scratch, wanted.cell, wanted.sign, wanted.level, wanted.price, effort)
        if program is None or len(program.cells) in sizes:
            return None
        sizes.add(len(program.cells))
        x = cheapest_point(self.solver, program, program.price, LEEWAY * wanted.most)
        if x is None:
            return None
        cells = program.cells
        fresh = np.where(self._pattern.fresh(cells), self._instance.cost[cells], 0.0)
        return Deviation(*reweighted(self.solver, program, x, fresh, wanted.level))

    def _worth_it(self, wide: int, efforts: int, best: Deviation | None) -> bool:
        """Whether to look as wide as that: where nothing was found yet, or what was found is dear."""
        if best is None:
            return wide < efforts
        if wide < EVERYTHING:
            return wide < efforts and self._pattern.dear(best.cells)
        enough = efforts > SECOND_THOUGHTS and len(self._instance) <= SMALL
        return enough and self._pattern.fresh_cost(best.cells) > RUINOUS * self._pattern.usual

    def _dearest(self, cells: Integers, own: int) -> Integers:
        """The cells that make up most of what a deviation costs."""
        fresh = cells[self._pattern.fresh(cells) & (cells != own)]
        most: Mask = self._instance.cost[fresh] > MOSTLY * self._pattern.fresh_cost(cells)
        return np.asarray(fresh[most])


def _efforts(rows: sparse.csr_array) -> tuple[Effort, ...]:
    """How wide to look: in d dimensions the far corner of a box is d steps away, and one more step shows other ways.

    First the cheapest cells there; then all that are near, because cells withheld already are cheap and may crowd out
    those that help; then the cheapest of a wide area; then everything.
    """
    d = max(1, rows.nnz // max(1, rows.shape[1]))
    return (
        Effort(d + 1, 30_000, 200 * d),
        Effort(d + 1, NEAR, 2 * NEAR),
        Effort(64, 200_000, 4_000),
        Effort(10**6, 10**9, 10**9),
    )


# -- deviations of few cells -------------------------------------------------------------------------------------------


def cheapest_point(solver: Model, program: LocalProgram, price: Floats, most: float = np.inf) -> Floats | None:
    """A point of the least price; None if there is none, or none that costs less than `most`."""
    scale = float(price.max(initial=0.0)) or 1.0
    columns = Columns(program.start, program.row, program.value, program.rows)
    pivots = UNLIMITED if most == np.inf else PIVOTS
    answer = solver.minimise(price / scale, program.lower, program.upper, columns, most=most / scale, pivots=pivots)
    return None if answer is None else answer.point


def reweighted(solver: Model, program: LocalProgram, x: Floats, fresh: Floats, level: float) -> tuple[Integers, Floats]:
    """Ask again among the cells used, each priced by the inverse of its last move: a linear program likes to share out.

    This is iteratively reweighted ℓ1 minimisation (Candès, Wakin & Boyd, 2008), which prefers few cells.

    `fresh` is what each cell would cost that is not withheld yet.
    """
    best = _moves(program, x)
    least = float(fresh[best != 0].sum())
    for _ in range(REWEIGHTED):
        if float(fresh @ np.minimum(np.abs(best), 1.0)) > 0.95 * least:
            break
        few, kept = _restricted(program, best != 0)
        share = np.maximum(np.abs(best[program.member[kept]]), 0.02)
        answer = cheapest_point(solver, few, few.price / np.minimum(share, 1.0))
        if answer is None:
            break
        moves = _moves(few, answer)
        cost = float(fresh[moves != 0].sum())
        if cost >= least * (1 - 1e-9):
            break
        best, least = moves, cost
    used = np.flatnonzero(best)
    order = used[np.argsort(program.cells[used])]
    return program.cells[order], best[order] * level


def _moves(program: LocalProgram, x: Floats) -> Floats:
    """How far each cell moves, in levels."""
    moves = np.bincount(program.member, weights=x * program.way, minlength=len(program.cells))
    return np.where(np.abs(moves) > NEGLIGIBLE, moves, 0.0)


def _restricted(program: LocalProgram, cells: Mask) -> tuple[LocalProgram, Integers]:
    """The program over some of its cells, and which columns those are."""
    kept = np.flatnonzero(cells[program.member])
    length = program.start[kept + 1] - program.start[kept]
    entry = np.repeat(program.start[kept] - (np.cumsum(length) - length), length) + np.arange(int(length.sum()))
    rows, row = np.unique(program.row[entry], return_inverse=True)
    return LocalProgram(
        program.cells,
        np.concatenate([[0], np.cumsum(length)]).astype(np.int32),
        row.astype(np.int32),
        program.value[entry],
        program.price[kept],
        program.lower[kept],
        program.upper[kept],
        program.member[kept],
        program.way[kept],
        len(rows),
    ), kept
