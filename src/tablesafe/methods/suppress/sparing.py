"""Deviations of few cells: what a linear program says about the cells around a target, made sparing."""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.surroundings import LocalProgram
from tablesafe.solve.highs import UNLIMITED, Model
from tablesafe.solve.program import Columns

SPARING = 2
"""Times a deviation is asked to use fewer cells."""
NEGLIGIBLE = 1e-7
PIVOTS = 500
"""Steps of the simplex method after which a second thought is given up."""


def cheapest_point(solver: Model, program: LocalProgram, price: Floats, most: float = np.inf) -> Floats | None:
    """A point of the least price; None if there is none, or none that costs less than `most`."""
    scale = float(price.max(initial=0.0)) or 1.0
    columns = Columns(program.start, program.row, program.value, program.rows)
    pivots = UNLIMITED if most == np.inf else PIVOTS
    answer = solver.minimise(price / scale, program.lower, program.upper, columns, most=most / scale, pivots=pivots)
    return None if answer is None else answer.point


def sparing(solver: Model, program: LocalProgram, x: Floats, fresh: Floats, level: float) -> tuple[Integers, Floats]:
    """Ask again among the cells used, with prices against small moves: a linear program likes to share out.

    `fresh` is what each cell would cost that is not withheld yet.
    """
    best = _moves(program, x)
    least = float(fresh[best != 0].sum())
    for _ in range(SPARING):
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
