"""Moves away from the true table: changes of some cells that keep every sum.

Each is looked for from the truth, in its neighbourhood, so it changes few cells; and it is checked in whole numbers.
Where that takes too long, a solver looks for it in the whole component.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.sums import components
from tablesafe.audit.system import System
from tablesafe.equations import Floats
from tablesafe.solve import local
from tablesafe.solve.nullspace import every_unknown, null_space
from tablesafe.solve.polytope import Polytope
from tablesafe.solve.proof import Proof, forget, inside, locate
from tablesafe.solve.repeated import RepeatedProgram

_BUDGET = 200_000.0
"""Elementary steps before a search from the truth is given up."""


@dataclass(frozen=True, eq=False)
class Move:
    """A change of some unknown cells, in units; every sum stays as it is."""

    cells: NDArray[np.intp] = field(repr=False)
    by: Floats = field(repr=False)

    def at(self, cell: int) -> float:
        """How far one cell moves."""
        return float(self.by[self.cells == cell].sum())


@dataclass(frozen=True, eq=False)
class Room:
    """How far each unknown cell may fall and rise, in whole units."""

    down: Floats = field(repr=False)
    up: Floats = field(repr=False)
    polytope: Polytope = field(repr=False)
    programs: dict[int, RepeatedProgram] = field(default_factory=dict, repr=False)
    """A program per component, made when it is needed."""

    def allows(self, move: Move, *, but: int) -> bool:
        """Whether a move stays within, one cell apart."""
        fits = (move.by <= self.up[move.cells]) & (-move.by <= self.down[move.cells])
        return bool((fits | (move.cells == but)).all())


@dataclass(frozen=True, eq=False)
class Limits:
    """Other limits for some cells."""

    cells: NDArray[np.intp] = field(repr=False)
    down: Floats = field(repr=False)
    up: Floats = field(repr=False)


class Moves:
    """Looks for moves of the unknown cells of a system."""

    def __init__(self, system: System) -> None:
        self.system = system
        space = null_space(system.matrix)
        if space is None:
            space = every_unknown(len(system))
            self._rows, self._extra = sparse.csr_array(system.matrix), system.matrix.shape[0]
        else:
            self._rows, self._extra = sparse.csr_array(space.forms[space.dimension :]), 0
        self._form, self._divisor = space.form, space.divisor
        order = np.argsort(space.form, kind="stable")
        self._order = order[np.searchsorted(space.form[order], 0) :]
        self._start = np.searchsorted(space.form[self._order], np.arange(space.forms.shape[0] + 1))
        self.solved = 0
        self._component = components(system.matrix)
        self._shared: tuple[local.Search, Proof] | None = None

    def room(self, down: Floats, up: Floats) -> Room:
        """The room given by limits for every cell; they are rounded inwards to whole units."""
        down, up = np.floor(np.maximum(down, 0.0)), np.floor(np.maximum(up, 0.0))
        forms = len(self._start) - 1
        lower, upper = np.full(forms, -np.inf), np.full(forms, np.inf)
        low, high = self._in_forms(self._order, down[self._order], up[self._order])
        np.maximum.at(lower, self._form[self._order], low)
        np.minimum.at(upper, self._form[self._order], high)
        zero = np.zeros(self._extra)
        polytope = Polytope.of(self._rows, np.concatenate([lower, zero]), np.concatenate([upper, zero]))
        return Room(down, up, polytope)

    def _scratch(self, polytope: Polytope) -> tuple[local.Search, Proof]:
        """Space for a search and its proof; all rooms have the same shape."""
        if self._shared is None:
            self._shared = local.Search.over(polytope), Proof.over(polytope)
        return self._shared

    def _in_forms(self, cells: NDArray[np.intp], down: Floats, up: Floats) -> tuple[Floats, Floats]:
        """The limits of cells as limits of their forms."""
        times = self._divisor[cells].astype(np.float64)
        with np.errstate(invalid="ignore"):
            one, other = -down * times, up * times
        return np.where(times > 0, one, other), np.where(times > 0, other, one)

    def find(self, room: Room, cell: int, by: float, other: Limits) -> Move | None:
        """A move in which a cell moves by so much, within the room, and within other limits of some cells; or None.

        The cell itself may move that far in any case; other limits count where they are narrower than the room's.
        """
        form = int(self._form[cell])
        if form < 0:
            return None
        wanted = abs(by)
        move = self._from_the_truth(room, form, cell, by, other)
        if isinstance(move, Move) or move == local.OPTIMAL:
            return move if isinstance(move, Move) and abs(move.at(cell)) >= wanted else None
        return self._by_program(room, cell, by, other)

    def _from_the_truth(self, room: Room, form: int, cell: int, by: float, other: Limits) -> Move | int:
        """Search near the truth: the move, or how the search ended without one."""
        p, s, w = room.polytope, *self._scratch(room.polytope)
        keep = (self._form[other.cells] >= 0) & (other.cells != cell)
        forms = self._form[other.cells[keep]]
        changed = np.unique(np.append(forms, form))
        before = p.lower[changed], p.upper[changed]
        low, high = self._in_forms(other.cells[keep], other.down[keep], other.up[keep])
        p.lower[form], p.upper[form] = self._own_bounds(room, form, cell, by)
        np.maximum.at(p.lower, forms, low)
        np.minimum.at(p.upper, forms, high)
        sign = float(np.sign(by) * np.sign(self._divisor[cell]))
        enough = abs(by) * abs(float(self._divisor[cell]))
        self.solved += 1
        reachable = (p.upper[form] if sign > 0 else -p.lower[form]) >= enough
        ended = local.maximise(p, s, form, sign, enough, _BUDGET) if reachable else local.OPTIMAL
        found: Move | int = ended
        if ended == local.REACHED:
            denominator = locate(p, w, local.here(p, s, w.columns, w.values))
            found = self._move(w, denominator) if denominator > 0 and inside(p, w, denominator) else local.GAVE_UP
            forget(w)
        local.clear(p, s)
        p.lower[changed], p.upper[changed] = before
        return found

    def _own_bounds(self, room: Room, form: int, cell: int, by: float) -> tuple[float, float]:
        """The bounds of a form by all its cells, where one of them may move as far as it is asked to."""
        cells = self._order[self._start[form] : self._start[form + 1]]
        down, up = room.down[cells], room.up[cells]
        down[cells == cell] = max(-by, 0.0)
        up[cells == cell] = max(by, 0.0)
        low, high = self._in_forms(cells, down, up)
        return float(low.max()), float(high.min())

    def _move(self, w: Proof, denominator: int) -> Move:
        """The point that was checked, as a move of cells."""
        forms = w.listed[: w.count[0]]
        forms = forms[(w.numerator[forms] != 0) & (forms < len(self._start) - 1)]
        length = self._start[forms + 1] - self._start[forms]
        offset = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        cells = self._order[np.repeat(self._start[forms], length) + offset]
        by = np.repeat(w.numerator[forms] / denominator, length) / self._divisor[cells]
        return Move(cells, by)

    def _by_program(self, room: Room, cell: int, by: float, other: Limits) -> Move | None:
        """Ask a solver, over the whole component."""
        number = int(self._component[cell])
        cells = np.flatnonzero(self._component == number)
        columns = self.system.matrix.tocsc()[:, cells].tocsr()
        matrix = sparse.csr_array(columns[np.flatnonzero(np.diff(columns.indptr))])
        if number not in room.programs:
            scale = 2.0 ** np.ceil(np.log2(max(float(self.system.truth[cells].max()) / 2.0**20, 1.0)))
            room.programs[number] = RepeatedProgram(matrix, -room.down[cells], room.up[cells], scale=scale)
        there = np.isin(other.cells, cells) & (other.cells != cell)
        changed = np.append(other.cells[there], cell)
        down = np.append(np.minimum(other.down, room.down[other.cells])[there], max(-by, 0.0))
        up = np.append(np.minimum(other.up, room.up[other.cells])[there], max(by, 0.0))
        at = np.searchsorted(cells, cell)
        values = room.programs[number].furthest(int(at), by > 0, np.searchsorted(cells, changed), -down, up)
        nearest = np.rint(values) if not np.asarray(matrix @ np.rint(values)).any() else values
        off = np.abs(np.asarray(matrix @ nearest)).max(initial=0.0)
        if abs(nearest[at]) < abs(by) - 1e-6 or off > 1e-6 * max(1.0, float(np.abs(nearest).max())):
            return None
        moved = np.flatnonzero(np.abs(nearest) > 1e-9)
        return Move(cells[moved], nearest[moved])
