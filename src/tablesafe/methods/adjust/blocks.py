"""Block coordinate descent: a part of the table is adjusted anew, exactly, while the rest stays as it was.

Two kinds of part. Of small tables: a few targets choose their directions together while every cell may follow. Of large
ones: a region of cells that share equations is a program of its own; all else keeps its moves, so that the work of a
step does not grow with the table. (González & Castro, "A heuristic block coordinate descent approach for controlled
tabular adjustment", 2011.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.equations import Floats
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.solve.adjustment import Box, Directions

NEAR_ENOUGH = 2e-3
"""A region is left when its answer is proved to be within this share of the best."""
MOST_EQUATIONS = 4_000


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Which cells share equations, to find parts of the table that can move by themselves."""

    rows: sparse.csr_array = field(repr=False)
    columns: sparse.csc_array = field(repr=False)
    degree: NDArray[np.intp] = field(repr=False)
    """In how many equations each cell stands."""

    @classmethod
    def of(cls, instance: Instance) -> Neighbourhood:
        """Read the equations."""
        matrix = instance.matrix
        return cls(sparse.csr_array(matrix), matrix, np.diff(matrix.indptr).astype(np.intp))

    def region(self, cell: int, size: int, random: np.random.Generator) -> NDArray[np.intp]:
        """About `size` cells around one: those that stand in two or more of the equations near it.

        A cell with one near equation only could not move without its surroundings; so the region grows by equations.
        """
        equations = self._of_cells(np.array([cell]))
        cells = np.array([cell], dtype=np.intp)
        while True:
            near = self._cells_of(equations)
            grown = self._of_cells(near)
            fresh = np.setdiff1d(grown, equations)
            if not fresh.size:
                return self._inside(equations)
            before = cells
            step = min(fresh.size, max(8, len(equations)))
            equations = np.union1d(equations, random.permutation(fresh)[:step])
            cells = self._inside(equations)
            if len(cells) >= size or len(equations) > MOST_EQUATIONS:
                return cells if len(cells) <= 2 * size or len(before) < 2 else before

    def _of_cells(self, cells: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.unique(self.columns[:, cells].indices).astype(np.intp)

    def _cells_of(self, equations: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.unique(self.rows[equations].indices).astype(np.intp)

    def _inside(self, equations: NDArray[np.intp]) -> NDArray[np.intp]:
        cells, times = np.unique(self.rows[equations].indices, return_counts=True)
        return np.asarray(cells[times >= np.minimum(self.degree[cells], 2)], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Step:
    """What a region's own program found."""

    moves: Floats
    way: Way
    targets: int
    """How many directions were open."""


def improved(
    instance: Instance, cells: NDArray[np.intp], moves: Floats, way: Way, *, seconds: float, turn: bool = True
) -> Step | None:
    """Choose the moves within a region anew, with `turn` the directions too; None when that is no better."""
    i = instance
    place = np.full(len(i.cells), -1)
    place[cells] = np.arange(len(cells))
    inside = place[i.targets] >= 0
    open = inside & i.can_rise & i.can_fall if turn else np.zeros(len(inside), np.bool_)
    box = _part(i.box(way, open=open), cells)
    matrix = i.matrix[:, cells]
    touched = np.flatnonzero(np.diff(sparse.csr_array(matrix).indptr))
    matrix = sparse.csc_array(sparse.csr_array(matrix)[touched])
    switches = i.switches(open)
    switches = type(switches)(place[switches.cells], switches.above, switches.below)
    now = moves[cells]
    before = float(i.cost[cells] @ np.abs(now))
    program = Directions(
        matrix, i.cost[cells], _within(box, i.cost[cells], before, now), switches, i.scale(), np.asarray(matrix @ now)
    )
    choice = program.choose(time_limit_s=seconds, start=(now, way[open] > 0), gap=NEAR_ENOUGH)
    if choice.moves is None or choice.rise is None:
        return None
    if float(i.cost[cells] @ np.abs(choice.moves)) >= before * (1 - 1e-9):
        return None
    found, ways = moves.copy(), way.copy()
    found[cells] = choice.moves
    ways[open] = np.where(choice.rise, 1, -1)
    return Step(found, ways, int(open.sum()))


def _part(box: Box, cells: NDArray[np.intp]) -> Box:
    return Box(box.rise_least[cells], box.rise_most[cells], box.fall_least[cells], box.fall_most[cells])


def _within(box: Box, cost: Floats, budget: float, now: Floats) -> Box:
    """The same bounds without moves that alone would cost more than everything does now: small big-Ms."""
    most = np.floor(budget / cost) + 1.0
    return Box(
        box.rise_least, np.maximum(np.minimum(box.rise_most, most), np.maximum(now, box.rise_least)),
        box.fall_least, np.maximum(np.minimum(box.fall_most, most), np.maximum(-now, box.fall_least)),
    )  # fmt: skip
