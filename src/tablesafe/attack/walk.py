"""Random walks inside a polytope: hit-and-run along sparse directions that keep every sum.

A step draws a point uniformly from the chord through the current point, so that the walk forgets where it began and
visits all places alike. The directions are circuits of the equations: a few cells change, all others stay, and a step
touches no more than these. Several eliminations in different orders give more of them than one, which mixes far faster.
Where there is no sparse description, directions are drawn from the ellipsoid of the analytic centre. (Smith, "Efficient
Monte Carlo procedures for generating points uniformly distributed over bounded regions", Operations Research 32, 1984.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse
from scipy.sparse.linalg import splu

from tablesafe.attack.newton import Barrier
from tablesafe.attack.room import Room
from tablesafe.core.equations import Floats, Integers
from tablesafe.solve.exact.nullspace import NullSpace, null_space

ORDERS = 8
"""How many eliminations the circuits come from."""
LONG = 10
"""Circuits of further eliminations that change more than so many times the cells of a middling one are left out."""

Draw = Callable[[Floats, np.random.Generator, int, Floats], None]
"""Walk on from a point, in place, so many steps between two draws; write the draws as places between the bounds."""


def walker(room: Room, centre: Floats, random: np.random.Generator) -> tuple[Draw, int]:
    """A walk over a room all of whose cells are bounded, and how many steps make a sweep in all directions."""
    circuits = _circuits(room, random)
    if circuits is None:
        return _long_walk(room, _ellipsoid(room, centre)), len(room) - room.matrix.shape[0]
    start, cell = circuits.indptr.astype(np.int64), circuits.indices.astype(np.int64)
    change = circuits.data.astype(np.float64)

    def draw(x: Floats, random: np.random.Generator, steps: int, out: Floats) -> None:
        _walk(x, room.lower, room.upper, start, cell, change, random, steps, out)

    return draw, circuits.shape[0]


def far_start(room: Room, centre: Floats, random: np.random.Generator) -> Floats:
    """A point far from the centre, in a random direction: walks that meet from there have forgotten it."""
    x, direction = centre.copy(), _ellipsoid(room, centre)(random)
    back, ahead = _chord(x, room.lower, room.upper, direction)
    x += 0.9 * (ahead if random.random() < 0.5 else back) * direction
    return np.clip(x, room.lower, room.upper)


def _circuits(room: Room, random: np.random.Generator) -> sparse.csr_array | None:
    """Distinct directions that keep every sum, one per row, from eliminations in several orders; None if too dense."""
    if room.space is None:
        return None
    n = len(room)
    matrix, found = sparse.csc_array(room.matrix.astype(np.int64)), [_moves(room.space)]
    longest = LONG * float(np.median(np.diff(found[0].indptr)))
    for _ in range(ORDERS - 1):
        order = random.permutation(n)
        space = null_space(sparse.csr_array(matrix[:, order]))
        if space is not None:
            back = np.empty(n, np.intp)
            back[order] = np.arange(n)
            moves = sparse.csr_array(sparse.csc_array(_moves(space))[:, back])
            found.append(moves[np.flatnonzero(np.diff(moves.indptr) <= longest)])
    return _distinct(sparse.csr_array(sparse.vstack(found, format="csr")), random)


def _moves(space: NullSpace) -> sparse.csr_array:
    """One row per coordinate: by how much it changes each cell."""
    rows = sparse.diags_array(1.0 / space.divisor) @ space.forms.astype(np.float64)[space.form]
    return sparse.csr_array(rows.T)


def _distinct(moves: sparse.csr_array, random: np.random.Generator) -> sparse.csr_array:
    """Rows of which none is a multiple of another, told by the sum of their entries with random weights."""
    moves.sort_indices()
    sums = np.asarray(moves @ random.random(moves.shape[1])) / moves.data[moves.indptr[:-1]]
    _, first = np.unique(np.round(sums, 9), return_index=True)
    return sparse.csr_array(moves[np.sort(first)])


def _ellipsoid(room: Room, centre: Floats) -> Callable[[np.random.Generator], Floats]:
    """Random directions of the ellipsoid that the bounds' barrier has at the centre."""
    scale = 1.0 / np.sqrt(Barrier.of(room).curvature(centre))
    matrix = sparse.csr_array(room.matrix @ sparse.diags_array(scale))
    if not matrix.shape[0]:
        return lambda random: scale * random.standard_normal(len(scale))
    factors = splu(sparse.csc_array(matrix @ matrix.T), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def direction(random: np.random.Generator) -> Floats:
        ball = random.standard_normal(len(scale))
        return np.asarray(scale * (ball - matrix.T @ factors.solve(np.asarray(matrix @ ball))))

    return direction


def _long_walk(room: Room, direction: Callable[[np.random.Generator], Floats]) -> Draw:
    width = room.upper - room.lower

    def draw(x: Floats, random: np.random.Generator, steps: int, out: Floats) -> None:
        for row in out:
            for _ in range(steps):
                along = direction(random)
                back, ahead = _chord(x, room.lower, room.upper, along)
                x += (back + random.random() * (ahead - back)) * along
            np.clip(x, room.lower, room.upper, out=x)
            row[:] = (x - room.lower) / width

    return draw


def _chord(x: Floats, lower: Floats, upper: Floats, direction: Floats) -> tuple[float, float]:
    """How far one can go back and ahead along a direction."""
    moving = np.abs(direction) > 1e-12 * np.abs(direction).max(initial=1e-300)
    ends = np.stack([(lower - x)[moving] / direction[moving], (upper - x)[moving] / direction[moving]])
    return min(float(ends.min(axis=0).max()), 0.0), max(float(ends.max(axis=0).min()), 0.0)


@njit(cache=True)
def _walk(
    x: Floats, lower: Floats, upper: Floats, start: Integers, cell: Integers, change: Floats, random: Any, steps: int,
    out: Floats,
) -> None:  # fmt: skip
    """Steps along circuits picked at random, in place; a draw after so many."""
    count = len(start) - 1
    for row in range(len(out)):
        for _ in range(steps):
            at = int(random.random() * count)
            back, ahead = -np.inf, np.inf
            for z in range(start[at], start[at + 1]):
                i = cell[z]
                low, high = (lower[i] - x[i]) / change[z], (upper[i] - x[i]) / change[z]
                if change[z] < 0:
                    low, high = high, low
                back, ahead = max(back, low), min(ahead, high)
            back, ahead = min(back, 0.0), max(ahead, 0.0)
            step = back + random.random() * (ahead - back)
            for z in range(start[at], start[at + 1]):
                x[cell[z]] += step * change[z]
        for i in range(len(x)):
            out[row, i] = (x[i] - lower[i]) / (upper[i] - lower[i])
