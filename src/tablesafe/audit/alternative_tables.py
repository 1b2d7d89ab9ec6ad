"""Moves away from the true table: changes of some cells that keep every sum.

Each is looked for from the truth, in its neighbourhood, so it changes few cells; and it is checked in whole numbers.
Where that takes too long, a solver looks for the shortest near the cell, then for any in the whole component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.exact import NEAR, denominators, row_sums
from tablesafe.audit.furthest import FurthestMove, FurthestWholeMove
from tablesafe.audit.hypercubes import LOOKS, hypercubes_of
from tablesafe.audit.neighbourhood import SIZES, WIDE, Neighbourhood, Neighbourhoods
from tablesafe.audit.sums import components
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers
from tablesafe.solve.exact import simplex as local
from tablesafe.solve.exact.nullspace import NullSpace, every_unknown, null_space
from tablesafe.solve.exact.polytope import Polytope
from tablesafe.solve.hypercubes import adds_up
from tablesafe.work.budget import ENDLESS, Budget, worked

_BUDGET = 200_000.0
"""Elementary steps before a search from the truth is given up."""
WHOLE_S, ALL_WHOLE_S, QUICKLY = 5.0, 120.0, 0.05
"""Seconds for a program in whole numbers, where a move was found that is none, and for all of them; and the share of
both where a quick answer is wanted, as for a repair."""
LARGE, FAR = 60_000, (4_000, 15_000)
"""Cells of a component beyond which ever more cells around one are looked at before all: of 100,000 a program takes a
minute or does not end, of 15,000 two seconds."""


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
    build: Callable[[Floats, Floats], Polytope] = field(repr=False)
    """Makes the polytope of such a room: where hypercubes are enough, nobody asks for it."""
    programs: dict[int, FurthestMove] = field(default_factory=dict, repr=False)
    """A program per component, made when it is needed."""

    @cached_property
    def polytope(self) -> Polytope:
        """The moves that the room allows, for a search from the truth."""
        return self.build(self.down, self.up)

    @cached_property
    def both_ways(self) -> Floats:
        """How far each cell may move, whichever way."""
        return np.minimum(self.down, self.up)

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

    @classmethod
    def of(cls, cell: int, down: float, up: float) -> Self:
        """A limit for one cell."""
        return cls(np.array([cell]), np.array([down]), np.array([up]))

    def without(self, cell: int) -> Limits:
        """The limits of the other cells."""
        keep = self.cells != cell
        return Limits(self.cells[keep], self.down[keep], self.up[keep])

    def and_also(self, other: Limits) -> Limits:
        """These limits and those of further cells."""
        return Limits(
            np.concatenate([self.cells, other.cells]),
            np.concatenate([self.down, other.down]),
            np.concatenate([self.up, other.up]),
        )


Box = tuple[NDArray[np.intp], Floats]
"""The cells of a hypercube, and the way each of them goes."""


class Moves:
    """Looks for moves of the unknown cells of a system."""

    def __init__(self, system: System, budget: Budget = ENDLESS, *, whole: bool = False) -> None:
        """Programs stop by an error when the budget is over. With `whole`, only moves by whole units count."""
        self.system, self._budget = system, budget
        self._whole, self._took = whole, 0.0
        self.solved = 0
        self.quick = False
        """Whether to look without a solver: then none found does not mean much."""
        self.only_hypercubes = False
        """Whether to look for nothing else, where there are any."""
        self._near = Neighbourhoods(system.matrix, budget)
        self._component = components(system.matrix)
        self._components: dict[int, tuple[NDArray[np.intp], sparse.csr_array]] = {}
        self._search: local.Search | None = None
        """Space for a search; all rooms have the same shape."""
        self._cubes, self._free = hypercubes_of(system), np.zeros(len(system))
        self._boxes: dict[tuple[Room, int, float], Box | None] = {}
        self._limited: tuple[tuple[Room, int, float], Limits, Box | None] | None = None

    @cached_property
    def _space(self) -> tuple[NullSpace, bool]:
        """The coordinates of all moves, and whether they are simple; else every cell is one, and the equations rows."""
        space = null_space(self.system.matrix)
        return (every_unknown(len(self.system)), False) if space is None else (space, True)

    @cached_property
    def _rows(self) -> sparse.csr_array:
        space, simple = self._space
        return sparse.csr_array(space.forms[space.dimension :] if simple else self.system.matrix)

    @cached_property
    def _forms(self) -> sparse.csc_array:
        own = sparse.eye_array(self._rows.shape[1], dtype=np.int64)
        return sparse.csc_array(sparse.vstack([own, self._rows.astype(np.int64)]))

    @property
    def _form(self) -> Integers:
        return self._space[0].form

    @property
    def _divisor(self) -> Integers:
        return self._space[0].divisor

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        order = np.argsort(self._form, kind="stable")
        return np.asarray(order[np.searchsorted(self._form[order], 0) :])

    @cached_property
    def _start(self) -> NDArray[np.intp]:
        return np.searchsorted(self._form[self._order], np.arange(self._space[0].forms.shape[0] + 1))

    @cached_property
    def _columns(self) -> sparse.csc_array:
        return sparse.csc_array(self.system.matrix.astype(np.int64))

    @cached_property
    def _sums(self) -> Integers:
        return np.zeros(self.system.matrix.shape[0], dtype=np.int64)

    def room(self, down: Floats, up: Floats) -> Room:
        """The room given by limits for every cell; they are rounded inwards to whole units."""
        return Room(np.floor(np.maximum(down, 0.0)), np.floor(np.maximum(up, 0.0)), self._polytope)

    def _polytope(self, down: Floats, up: Floats) -> Polytope:
        forms = len(self._start) - 1
        lower, upper = np.full(forms, -np.inf), np.full(forms, np.inf)
        low, high = self._in_forms(self._order, down[self._order], up[self._order])
        np.maximum.at(lower, self._form[self._order], low)
        np.minimum.at(upper, self._form[self._order], high)
        zero = np.zeros(0 if self._space[1] else self.system.matrix.shape[0])
        return Polytope.of(self._rows, np.concatenate([lower, zero]), np.concatenate([upper, zero]))

    def _in_forms(self, cells: NDArray[np.intp], down: Floats, up: Floats) -> tuple[Floats, Floats]:
        """The limits of cells as limits of their forms."""
        times = self._divisor[cells].astype(np.float64)
        with np.errstate(invalid="ignore"):
            one, other = -down * times, up * times
        return np.where(times > 0, one, other), np.where(times > 0, other, one)

    def find(self, room: Room, cell: int, by: float, other: Limits, *, everywhere: bool) -> Move | None:
        """A move in which a cell moves by so much, within the room, and within other limits of some cells; or None.

        The cell itself may move that far in any case; other limits count where they are narrower than the room's.
        Unless it is looked for `everywhere`, None does not mean that there is none; nor where a move in parts of a unit
        is none, and no program in whole numbers finds another in time.
        """
        move = self._found(room, cell, by, other, everywhere=everywhere)
        if move is None or not self._whole or bool((move.by == np.rint(move.by)).all()):
            return move
        own = Limits.of(cell, max(-by, 0.0), max(by, 0.0))
        seen = self.reach_whole(room, cell, 1 if by > 0 else -1, other.without(cell).and_also(own), own=True)[0]
        return seen if seen is not None and abs(seen.at(cell)) >= abs(by) else None

    def _found(self, room: Room, cell: int, by: float, other: Limits, *, everywhere: bool) -> Move | None:
        boxed = self._boxed(room, cell, by, other)
        if boxed is not None or (self.only_hypercubes and self._cubes is not None):
            return boxed
        form = int(self._form[cell])
        if form < 0:
            return None
        self.solved += 1
        sign, enough = self._sense(cell, by), abs(by * float(self._divisor[cell]))
        with self._within(room, other.without(cell), form, self._own_bounds(room, form, cell, by)) as p:
            if (p.upper[form] if sign > 0 else -p.lower[form]) < enough:
                return None
            ended, _, columns, values = self._furthest(p, form, sign, enough)
            move = self._move(p, columns, values) if ended == local.REACHED else None
        if move is not None or ended == local.OPTIMAL or self.quick:
            return move
        far = self._component_size[self._component[cell]] > LARGE
        move = self._nearby(room, cell, by, other.without(cell), (*SIZES, *FAR) if far else SIZES)
        if move is not None or not everywhere:
            return move
        there = Limits.of(cell, max(-by, 0.0), max(by, 0.0))
        found = self._by_program(room, cell, by > 0, other.without(cell).and_also(there))
        return found if found is not None and abs(found.at(cell)) >= abs(by) - 1e-6 else None

    def _boxed(self, room: Room, cell: int, by: float, other: Limits) -> Move | None:
        """A hypercube that moves a cell by so much, whichever way each of the others goes: up if down, so kept."""
        if self._cubes is None:
            return None
        key = room, cell, abs(by)
        if len(other.cells):  # of limits, of which there are many, the last are kept
            if self._limited is None or self._limited[0] != key or self._limited[1] is not other:
                self._limited = key, other, self._box(room, cell, abs(by), other)
            found = self._limited[2]
        else:
            if key not in self._boxes:
                self._boxes[key] = self._box(room, cell, abs(by), other)
            found = self._boxes[key]
        return None if found is None else Move(found[0], by * found[1])

    def _box(self, room: Room, cell: int, by: float, other: Limits) -> Box | None:
        """The cells of such a hypercube, and the way each of them goes when the one asked about rises."""
        assert self._cubes is not None
        both, changed = room.both_ways, np.append(other.cells, cell)
        before = both[changed]
        np.minimum.at(both, other.cells, np.minimum(other.down, other.up))
        both[cell] = by
        found = self._cubes.cheapest(cell, by, self._free, both, looks=LOOKS)
        both[changed] = before
        if found is None:
            return None
        order = np.argsort(found[0])
        cells, signs = found[0][order], found[1][order]
        columns = self._columns
        if not adds_up(columns.indptr, columns.indices, columns.data, cells, signs, self._sums):
            return None
        return cells, signs.astype(np.float64)

    def reach(self, room: Room, cell: int, sign: int, other: Limits, *, exactly: bool) -> float:
        """How far a cell can fall (sign −1) or rise (+1), within the room and other limits.

        Unless it is asked for `exactly`, in large components what is near may have the last word: then it can move
        that far, and perhaps further.
        """
        form = int(self._form[cell])
        if form < 0:
            return 0.0
        self.solved += 1
        with self._within(room, other, form, (room.polytope.lower[form], room.polytope.upper[form])) as p:
            ended, value, _, _ = self._furthest(p, form, self._sense(cell, sign), np.inf)
        if ended == local.OPTIMAL:
            return abs(value / float(self._divisor[cell]))
        if ended == local.UNBOUNDED:
            return np.inf
        for near in self._neighbourhoods(cell, (*SIZES, WIDE) if exactly else SIZES):
            far, decided = self._near.reach(near, cell, sign, *_bounds(room, other, near.cells))
            if decided or (not exactly and np.isfinite(far) and len(near.cells) == SIZES[-1]):
                return far
        found = self._by_program(room, cell, sign > 0, other)
        return np.inf if found is None else abs(found.at(cell))

    def reach_whole(
        self, room: Room, cell: int, sign: int, other: Limits, *, own: bool = False
    ) -> tuple[Move | None, float]:
        """How far a cell can go one way by whole units: the furthest move that was found, and what no move exceeds.

        With `own`, the limit of the cell itself counts alone, and not the room's.
        """
        cells, matrix = self._whole_component(int(self._component[cell]))
        patience = QUICKLY if self.quick else 1.0
        if self._took > patience * ALL_WHOLE_S or len(cells) > LARGE:
            return None, np.inf
        lower, upper = _bounds(room, other, cells)
        at = int(np.searchsorted(cells, cell))
        if own:
            mine = other.cells == cell
            lower[at], upper[at] = -other.down[mine].min(), other.up[mine].min()
        begin = worked()
        program = FurthestWholeMove(matrix, np.ceil(lower), np.floor(upper))
        found = program.of(at, sign, self._budget.child(patience * WHOLE_S))
        self._took += worked() - begin
        self._budget.check()
        if found.point is None:
            return None, found.bound
        moved = np.flatnonzero(found.point)
        return Move(cells[moved], found.point[moved].astype(np.float64)), found.bound

    def _sense(self, cell: int, sign: float) -> float:
        return float(np.sign(sign) * np.sign(self._divisor[cell]))

    @contextmanager
    def _within(self, room: Room, other: Limits, form: int, bounds: tuple[float, float]) -> Iterator[Polytope]:
        """The room's polytope with other bounds of one form and other limits of some cells, for a while."""
        p = room.polytope
        keep = self._form[other.cells] >= 0
        forms = self._form[other.cells[keep]]
        changed = np.append(forms, form)
        before = p.lower[changed], p.upper[changed]
        low, high = self._in_forms(other.cells[keep], other.down[keep], other.up[keep])
        p.lower[form], p.upper[form] = bounds
        np.maximum.at(p.lower, forms, low)
        np.minimum.at(p.upper, forms, high)
        try:
            yield p
        finally:
            p.lower[changed], p.upper[changed] = before

    def _furthest(self, p: Polytope, form: int, sign: float, enough: float) -> tuple[int, float, Integers, Floats]:
        """Push a form from the truth: how the search ended, how far it came, and the point."""
        if self._search is None:
            self._search = local.Search.over(p)
        search = self._search
        ended = local.maximise(p, search, form, sign, enough, _BUDGET)
        value = float(search.value[form])
        columns, values = np.zeros(p.columns, np.int64), np.zeros(p.columns)
        count = local.here(p, search, columns, values)
        local.clear(p, search)
        return int(ended), value, columns[:count], values[:count]

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
        for parts in denominators(values):
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

    def _neighbourhoods(self, cell: int, sizes: tuple[int, ...]) -> Iterator[Neighbourhood]:
        """Ever more cells around one, as long as there are more."""
        before = 0
        for most in sizes:
            near = self._near.around(cell, most)
            if len(near.cells) > before:
                yield near
            before = len(near.cells)

    def _nearby(self, room: Room, cell: int, by: float, other: Limits, sizes: tuple[int, ...]) -> Move | None:
        """The shortest move among the cells around, if it is exact."""
        for near in self._neighbourhoods(cell, sizes):
            lower, upper = _bounds(room, other, near.cells)
            values = self._near.shortest(near, cell, by, lower, upper)
            if values is None:
                continue
            at = int(np.searchsorted(near.cells, cell))
            lower[at], upper[at] = min(by, 0.0), max(by, 0.0)
            moved = np.flatnonzero(np.abs(values) > 1e-9)
            rows = sparse.csr_array(near.matrix[:, moved].astype(np.int64))
            exact = _exact_or_none(rows, values[moved], lower[moved], upper[moved])
            if exact is not None:
                return Move(near.cells[moved], exact)
        return None

    @cached_property
    def _component_size(self) -> Integers:
        return np.bincount(self._component)

    def _by_program(self, room: Room, cell: int, up: bool, other: Limits) -> Move | None:
        """Ask a solver for the furthest move, over the whole component; None where it has no end."""
        number = int(self._component[cell])
        cells, matrix = self._whole_component(number)
        if number not in room.programs:
            scale = 2.0 ** np.ceil(np.log2(max(float(self.system.truth[cells].max()) / 2.0**20, 1.0)))
            room.programs[number] = FurthestMove(matrix, -room.down[cells], room.up[cells], scale=scale)
        own = other.cells == cell
        here = np.isin(other.cells, cells)
        down = np.where(own, other.down, np.minimum(other.down, room.down[other.cells]))[here]
        high = np.where(own, other.up, np.minimum(other.up, room.up[other.cells]))[here]
        changed = np.searchsorted(cells, other.cells[here])
        values = room.programs[number].of(int(np.searchsorted(cells, cell)), 1 if up else -1, changed, -down, high,
                                             budget=self._budget)  # fmt: skip
        if values is None:
            return None
        low, top = -room.down[cells], room.up[cells]
        low[changed], top[changed] = -down, high
        nearest = _exactly(matrix, values, low, top)
        moved = np.flatnonzero(np.abs(nearest) > 1e-9)
        return Move(cells[moved], nearest[moved])

    def _whole_component(self, number: int) -> tuple[NDArray[np.intp], sparse.csr_array]:
        """The cells of a component, and its equations over them."""
        if number not in self._components:
            cells = np.flatnonzero(self._component == number)
            columns = self.system.matrix.tocsc()[:, cells].tocsr()
            rows = np.flatnonzero(np.diff(columns.indptr))
            self._components[number] = cells, sparse.csr_array(columns[rows].astype(np.int64))
        return self._components[number]


def _bounds(room: Room, other: Limits, cells: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """How far some cells may move, within the room and other limits."""
    lower, upper = -room.down[cells], room.up[cells]
    place = np.full(len(room.down), -1)
    place[other.cells] = np.arange(len(other.cells))
    ours = np.flatnonzero(place[cells] >= 0)
    theirs = place[cells[ours]]
    lower[ours] = np.maximum(lower[ours], -other.down[theirs])
    upper[ours] = np.minimum(upper[ours], other.up[theirs])
    return lower, upper


def _exactly(matrix: sparse.csr_array, values: Floats, lower: Floats, upper: Floats) -> Floats:
    """A solver's point in exact fractions, where it is near to one that is exactly additive and within its bounds."""
    found = _exact_or_none(matrix, values, lower, upper)
    return values if found is None else found


def _exact_or_none(matrix: sparse.csr_array, values: Floats, lower: Floats, upper: Floats) -> Floats | None:
    for parts in denominators(values):
        near = np.rint(values * parts)
        close = (np.abs(values * parts - near) <= NEAR) & (near >= lower * parts) & (near <= upper * parts)
        if bool(close.all()) and not row_sums(matrix, near.astype(np.int64)).any():
            return np.asarray(near / parts)
    return None


def _ranges(start: NDArray[np.intp], length: NDArray[np.intp]) -> NDArray[np.intp]:
    """The numbers from each start on, so many of each, one after the other."""
    return np.repeat(start - (np.cumsum(length) - length), length) + np.arange(int(length.sum()))
