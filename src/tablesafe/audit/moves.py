"""Moves away from the true table that contributors cannot rule out.

A witness is a move: a change of some cells that keeps every sum. An insider rules it out when it takes a cell below
what the insider itself has there, or changes a cell that the insider knows. So the program that looks for a move pays
little for changes that nobody can rule out, and much for the others: what it finds convinces as many as can be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.exact import SMALL_DENOMINATORS, row_sums
from tablesafe.audit.knowledge import Part
from tablesafe.equations import Floats, Mask
from tablesafe.solve.repeated import RepeatedProgram

_CHEAP, _DEAR = 1.0, 40.0


class Moves:
    """Finds moves of one component by which a cell goes up or down, as seen by any coalition."""

    def __init__(self, part: Part) -> None:
        self.part = part
        system = part.system
        n = len(system)
        self._down, self._up = self._room((), cautious=True)
        self.free_up = np.where(part.transparent, 0.0, system.upper - system.truth)
        """How far each cell may rise without anybody ruling it out."""
        self.free_down = np.where(part.transparent, 0.0, system.truth - np.maximum(part.most, system.lower))
        self.free_down = np.maximum(self.free_down, 0.0)
        near, far = self._split(self._down)
        cost = np.concatenate([np.where(part.transparent, _DEAR, _CHEAP), np.full(n, _CHEAP), np.full(n, _DEAR)])
        matrix = system.matrix.astype(np.float64)
        scale = 2.0 ** np.floor(np.log2(max(float(np.abs(system.truth).max(initial=1)) / 1e6, 1.0)))
        self._program = RepeatedProgram(
            sparse.hstack([matrix, -matrix, -matrix], format="csr"),
            cost,
            np.zeros(3 * n),
            np.concatenate([self._up, near, far]),
            scale=scale,
        )
        self.solved = 0

    def _room(self, members: tuple[int, ...], *, cautious: bool) -> tuple[Floats, Floats]:
        """How far each cell may fall and rise, as far as a coalition knows."""
        system = self.part.system
        floor, known = self.part.view(members, cautious=cautious)
        return np.where(known, 0.0, system.truth - floor), np.where(known, 0.0, system.upper - system.truth)

    def _split(self, down: Floats) -> tuple[Floats, Floats]:
        near = np.minimum(down, self.free_down)
        return near, np.where(np.isinf(near), 0.0, down - np.where(np.isinf(near), 0.0, near))

    def find(self, cell: int, by: float, members: tuple[int, ...], *, cautious: bool) -> Floats | None:
        """A move of the component in which the cell moves by so much, that the coalition cannot rule out; or None.

        The cell is a place in the component.
        """
        n = len(self.part.system)
        down, up = self._room(members, cautious=cautious)
        if by > up[cell] or -by > down[cell]:
            return None
        near, far = self._split(down)
        upper = np.concatenate([up, near, far])
        lower = np.zeros(3 * n)
        down_near = min(max(-by, 0.0), near[cell])
        for column, amount in ((cell, max(by, 0.0)), (n + cell, down_near), (2 * n + cell, max(-by, 0.0) - down_near)):
            lower[column] = upper[column] = amount
        before = np.concatenate([self._up, *self._split(self._down)])
        changed = np.flatnonzero((upper != before) | (lower != 0))
        self.solved += 1
        answer = self._program.minimise(changed, lower[changed], upper[changed])
        if answer is None:
            return None
        return self._exact(answer[:n] - answer[n : 2 * n] - answer[2 * n :], cell, by, down, up)

    def _exact(self, move: Floats, cell: int, by: float, down: Floats, up: Floats) -> Floats | None:
        """The move in exact fractions of a unit, if it is near to one; or as it is, if it adds up but for rounding."""
        for parts in SMALL_DENOMINATORS:
            near = np.rint(move * parts)
            fits = bool((near <= up * parts).all() and (-near <= down * parts).all())
            additive = fits and not row_sums(self.part.system.matrix, near.astype(np.int64)).any()
            if additive and abs(near[cell]) >= abs(by) * parts:
                return near / parts
        size = np.maximum(1.0, np.abs(move))
        slack = 1e-9 * max(1.0, float(size.max()))
        fits = bool((move <= up + slack).all() and (-move <= down + slack).all())
        off = np.abs(np.asarray(self.part.system.matrix @ move))
        return move if fits and bool((off <= 1e-9 * (abs(self.part.system.matrix) @ size)).all()) else None

    def violated(self, move: Floats, cell: int) -> NDArray[np.intp]:
        """Cells, other than the one moved on purpose, in which some coalition may rule the move out."""
        against: Mask = (move > self.free_up) | (-move > self.free_down)
        against[cell] = False
        return np.flatnonzero(against)

    def convinces(self, move: Floats, members: tuple[int, ...], cell: int, *, cautious: bool) -> bool:
        """Whether a coalition cannot rule a move out, apart from the cell moved on purpose."""
        down, up = self._room(members, cautious=cautious)
        fits = (move <= up) & (-move <= down)
        fits[cell] = True
        return bool(fits.all())

    def possible(self, move: Floats) -> bool:
        """Whether the outsider cannot rule a move out."""
        system = self.part.system
        return bool((move <= system.upper - system.truth).all() and (-move <= system.truth - system.lower).all())
