"""Moves away from the true table: changes of some cells that keep every sum.

Each is looked for from the truth, in its neighbourhood, so it changes few cells; and it is checked in whole numbers.
Where that takes too long, a solver looks for it in the whole component.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.exact import SMALL_DENOMINATORS
from tablesafe.audit.sums import components
from tablesafe.audit.system import System
from tablesafe.equations import Floats, Integers
from tablesafe.solve import local
from tablesafe.solve.nullspace import every_unknown, null_space
from tablesafe.solve.polytope import Polytope
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
        own = sparse.eye_array(self._rows.shape[1], dtype=np.int64)
        self._forms = sparse.csc_array(sparse.vstack([own, self._rows.astype(np.int64)]))
        self._form, self._divisor = space.form, space.divisor
        order = np.argsort(space.form, kind="stable")
        self._order = order[np.searchsorted(space.form[order], 0) :]
        self._start = np.searchsorted(space.form[self._order], np.arange(space.forms.shape[0] + 1))
        self.solved = 0
        self._component = components(system.matrix)
        self._shared: local.Search | None = None

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

    def _search(self, polytope: Polytope) -> local.Search:
        """Space for a search; all rooms have the same shape."""
        if self._shared is None:
            self._shared = local.Search.over(polytope)
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
        if isinstance(move, Move) and abs(move.at(cell)) >= wanted:
            return move
        return None if move == local.OPTIMAL else self._by_program(room, cell, by, other)

    def _from_the_truth(self, room: Room, form: int, cell: int, by: float, other: Limits) -> Move | int:
        """Search near the truth: the move, or how the search ended without one."""
        p, s = room.polytope, self._search(room.polytope)
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
        columns, values = np.zeros(p.columns, np.int64), np.zeros(p.columns)
        count = local.here(p, s, columns, values)
        local.clear(p, s)
        found = self._move(p, columns[:count], values[:count]) if ended == local.REACHED else None
        p.lower[changed], p.upper[changed] = before
        return ended if ended == local.OPTIMAL else found or local.GAVE_UP

    def _own_bounds(self, room: Room, form: int, cell: int, by: float) -> tuple[float, float]:
        """The bounds of a form by all its cells, where one of them may move as far as it is asked to."""
        cells = self._order[self._start[form] : self._start[form + 1]]
        down, up = room.down[cells], room.up[cells]
        down[cells == cell] = max(-by, 0.0)
        up[cells == cell] = max(by, 0.0)
        low, high = self._in_forms(cells, down, up)
        return float(low.max()), float(high.min())

    def _move(self, p: Polytope, columns: Integers, values: Floats) -> Move | None:
        """A point of the polytope as a move of cells, in exact fractions, if it is inside in whole numbers too."""
        for parts in SMALL_DENOMINATORS:
            near = np.rint(values * parts)
            if bool((np.abs(values * parts - near) > 1e-6 * np.maximum(1.0, np.abs(near))).any()):
                continue
            start, stop = self._forms.indptr[columns], self._forms.indptr[columns + 1]
            entry = _ranges(start, stop - start)
            forms, where = np.unique(self._forms.indices[entry], return_inverse=True)
            total = np.zeros(len(forms), dtype=np.int64)
            np.add.at(total, where, self._forms.data[entry] * np.repeat(near.astype(np.int64), stop - start))
            if bool(((total <= p.upper[forms] * parts) & (total >= p.lower[forms] * parts)).all()):
                return self._of_cells(forms, total / parts)
        return None

    def _of_cells(self, forms: NDArray[np.intp], by: Floats) -> Move:
        moved = (by != 0) & (forms < len(self._start) - 1)
        forms, by = forms[moved], by[moved]
        length = self._start[forms + 1] - self._start[forms]
        cells = self._order[_ranges(self._start[forms], length)]
        return Move(cells, np.repeat(by, length) / self._divisor[cells])

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


def _ranges(start: NDArray[np.intp], length: NDArray[np.intp]) -> NDArray[np.intp]:
    """The numbers from each start on, so many of each, one after the other."""
    return np.repeat(start - (np.cumsum(length) - length), length) + np.arange(int(length.sum()))
