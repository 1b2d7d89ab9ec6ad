"""Choose few witnesses, make them exact, and say which cell is proved by which two.

A solver's tables are suggestions. A cell counts as protected only if exact tables show it, so a required level that is
met exactly is proved by the table that meets it, and one that is missed by a billionth has no proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import lcm
from time import perf_counter
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.exact import (
    ExactLimits,
    ExactMove,
    Wholes,
    exact_in_units,
    exact_inside,
    exact_moves,
    exact_nearby,
    exact_vertex,
    fits,
    row_sums,
    times,
    whole_multiples,
    within,
)
from tablesafe.audit.furthest import FurthestWholeMove
from tablesafe.core.equations import Floats, Mask
from tablesafe.solve.exact.nullspace import NullSpace, null_space
from tablesafe.solve.highs import Model
from tablesafe.solve.neighbourhood import spans
from tablesafe.solve.program import Program
from tablesafe.work.budget import ENDLESS, Budget

TIE = 1e-6
"""Two numbers nearer than this, relative to their size, are compared exactly."""


@dataclass(frozen=True, eq=False)
class Needs:
    """How far each wanted unknown cell must be able to move, in whole numbers of `1/scale` of the system's unit."""

    at: NDArray[np.intp] = field(repr=False)
    """Position of the cell among the unknown."""
    lower: Wholes = field(repr=False)
    upper: Wholes = field(repr=False)
    sliding: Wholes = field(repr=False)
    scale: int = 1

    @classmethod
    def of(cls, at: NDArray[np.intp], lower: Floats, upper: Floats, sliding: Floats, decimals: int) -> Self:
        """Needs from protection levels in the table's own unit, read as the decimal numbers they are."""
        levels = [exact_in_units(level, decimals) for level in (lower, upper, sliding)]
        scale = lcm(1, *(level.denominator for part in levels for level in set(part.tolist())))
        lows, highs, widths = (whole_multiples(level, scale) for level in levels)
        return cls(at, lows, highs, widths, scale)

    def __len__(self) -> int:
        return len(self.at)

    def take(self, which: NDArray[np.intp]) -> Needs:
        """Some of the cells."""
        return Needs(self.at[which], self.lower[which], self.upper[which], self.sliding[which], self.scale)

    def floats(self) -> tuple[Floats, Floats, Floats]:
        """Lower, upper and sliding levels in units, for a solver."""
        lower, upper, sliding = (
            (level / self.scale).astype(np.float64) for level in (self.lower, self.upper, self.sliding)
        )
        return lower, upper, sliding

    def low_enough(self, reached: Reach) -> Mask:
        """Which cells a witness shows at or below their value less the lower level."""
        return np.asarray(times(reached.numerators, self.scale) <= -times(self.lower, reached.denominator), np.bool_)

    def high_enough(self, reached: Reach) -> Mask:
        """Which cells a witness shows at or above their value plus the upper level."""
        return np.asarray(times(reached.numerators, self.scale) >= times(self.upper, reached.denominator), np.bool_)

    def wide_enough(self, cell: int, low: Fraction, high: Fraction) -> bool:
        """Whether two moves of a cell are as far apart as its sliding level asks."""
        return (high - low) * self.scale >= int(self.sliding[cell])


@dataclass(frozen=True, eq=False)
class Reach:
    """How far one exact witness moves the wanted cells."""

    numerators: Wholes = field(repr=False)
    denominator: int

    def __getitem__(self, cell: int) -> Fraction:
        return Fraction(int(self.numerators[cell]), self.denominator)


@dataclass(frozen=True, eq=False)
class Group:
    """Witnesses that share their cells, and what they prove."""

    moves: tuple[ExactMove, ...]
    """Cells are positions among the unknown."""
    at: NDArray[np.intp]
    """The proved cells, as positions among the unknown."""
    low: NDArray[np.intp]
    """Which witness shows each cell low enough: 0 is the true table, 1 the first of `moves`."""
    high: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True, eq=False)
class Place:
    """Where tables are looked for: all equations over all unknown cells, and how far each cell may move."""

    columns: sparse.csc_array = field(repr=False)
    limits: ExactLimits = field(repr=False)

    def checked(self, move: ExactMove) -> ExactMove | None:
        """The move, if it satisfies every equation in which it stands and every limit; else what part of it does."""
        if not self._holds(move):
            return None
        kept = within(move.numerators, move.denominator, self.limits.take(move.cells))
        return None if kept is None else ExactMove(move.cells[kept.cells], kept.numerators, kept.denominator)

    def _holds(self, move: ExactMove) -> bool:
        """Whether a move satisfies every equation, in whole numbers."""
        entry, widths = spans(self.columns.indptr, move.cells)
        numerators, factors = move.numerators, self.columns.data[entry].astype(np.int64)
        if numerators.dtype == object or not fits(numerators, factors, len(entry)):
            return not row_sums(equations_over(self.columns, move.cells), numerators).any()
        terms = factors * np.repeat(numerators, widths)
        row = self.columns.indices[entry]
        order = np.argsort(row, kind="stable")
        first = np.flatnonzero(np.diff(row[order], prepend=-1))
        return not (np.add.reduceat(terms[order], first).any() if len(first) else False)


def prove(
    place: Place,
    needs: Needs,
    moves: Sequence[ExactMove],
    *,
    cells: NDArray[np.intp] | None = None,
    tables: Floats | None = None,
    whole: bool = False,
) -> Group:
    """Prove as many of the needs as the moves allow; none is believed before it is checked.

    Each row of `tables` is a solver's table less the truth over `cells`, in floats: it is made exact first. With
    `whole`, only whole numbers count.
    """
    cells = np.zeros(0, np.intp) if cells is None else cells
    search = _Search(place, needs, moves, cells, np.zeros((0, len(cells))) if tables is None else tables, whole)
    search.cover()
    return search.group()


def furthest_moves(place: Place, cells: NDArray[np.intp], needs: Needs, budget: Budget = ENDLESS) -> Floats:
    """Moves over `cells` that take each wanted cell as far down and up as it must get, or can: one program each."""
    matrix, (low, high) = equations_over(place.columns, cells), _room(place, cells)
    both = sparse.hstack([matrix, -matrix], format="csr").astype(np.float64)
    zero, n = np.zeros(matrix.shape[0]), len(cells)
    found = []
    for cell, far in zip(np.searchsorted(cells, needs.at).tolist(), _far(needs).tolist(), strict=True):
        scale = max(1.0, far / 1e3)
        for sign in (-1.0, 1.0):
            cost, most = np.zeros(2 * n), np.concatenate([high, -low]) / scale
            cost[cell], cost[cell + n] = -sign, sign
            most[[cell, cell + n]] = np.minimum(most[[cell, cell + n]], far / scale)
            if budget.over:
                break
            model = Model(Program.equations(both, zero, np.zeros(2 * n), most, cost=cost))
            model.run(budget)
            answer = model.solution()
            if answer.found:
                found.append((answer.point[:n] - answer.point[n:]) * scale)
    return np.array(found).reshape(len(found), n)


def whole_moves(place: Place, cells: NDArray[np.intp], needs: Needs, time_limit_s: float | None) -> Floats:
    """The same in whole numbers: one integer program each, as long as there is time."""
    low, high = (end(side) for end, side in zip((np.ceil, np.floor), _room(place, cells), strict=True))
    program = FurthestWholeMove(equations_over(place.columns, cells), low, high)
    deadline = perf_counter() + (np.inf if time_limit_s is None else time_limit_s)
    found = []
    for cell, far in zip(np.searchsorted(cells, needs.at).tolist(), _far(needs).tolist(), strict=True):
        own = np.array([cell])
        program.narrow(own, np.maximum(low[own], -far), np.minimum(high[own], far))
        for sign in (-1, 1):
            if perf_counter() < deadline:
                point = program.of(cell, sign, Budget(deadline - perf_counter())).point
                if point is not None:
                    found.append(point.astype(np.float64))
        program.narrow(own, low[own], high[own])
    return np.array(found).reshape(len(found), len(cells))


def _room(place: Place, cells: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """How far cells may move down and up, for a solver."""
    own = place.limits.take(cells)
    low = np.where(own.low_free, -np.inf, own.low.astype(np.float64) / own.scale)
    return low, np.where(own.high_free, np.inf, own.high.astype(np.float64) / own.scale)


def _far(needs: Needs) -> Floats:
    """How far each wanted cell must go at most, in whole units: so that no program is without end."""
    lower, upper, sliding = needs.floats()
    return np.asarray(np.ceil(lower + upper + sliding) + 1.0)


def equations_over(columns: sparse.csc_array, cells: NDArray[np.intp]) -> sparse.csr_array:
    """The equations in which some cells stand, over those cells only; costs only as much as they are many."""
    entry, widths = spans(columns.indptr, cells)
    rows, row = np.unique(columns.indices[entry], return_inverse=True)
    column = np.repeat(np.arange(len(cells)), widths)
    return sparse.csr_array((columns.data[entry], (row, column)), shape=(len(rows), len(cells)))


class _Search:
    """Greedy cover: the suggestion that serves most open needs first, made exact, until no more is served."""

    def __init__(
        self,
        place: Place,
        needs: Needs,
        moves: Sequence[ExactMove],
        cells: NDArray[np.intp],
        tables: Floats,
        whole: bool,
    ) -> None:
        self.place, self.needs, self.moves, self.cells, self.tables = place, needs, moves, cells, tables
        self.whole = whole
        self.found: list[ExactMove] = []
        self.reached: list[Reach] = []
        self.bare = np.asarray((needs.lower == 0) & (needs.upper == 0) & (needs.sliding == 0), np.bool_)
        """Cells without levels must only not be known: one witness that differs from the truth will do."""
        self.low = np.where((needs.lower == 0) & ~self.bare, 0, -1)
        """Witness that serves each cell downwards; 0 is the truth, which serves a level of 0; −1 none yet."""
        self.high = np.where((needs.upper == 0) & ~self.bare, 0, -1)

    def cover(self) -> None:
        """Serve every need that the suggestions can serve."""
        near = self._suggested()
        lower, upper, _ = self.needs.floats()
        slack = np.where(self.bare, -TIE, TIE) * np.maximum(1.0, np.abs(near))
        down, up = near - slack <= -lower, near + slack >= upper
        gain = (down & (self.low < 0)).sum(axis=1) + (up & (self.high < 0)).sum(axis=1)
        while gain.size and int(gain.max()) > 0:
            best = int(gain.argmax())
            no_low, no_high = self.low < 0, self.high < 0
            self._add(best, down[best] & no_low, up[best] & no_high)
            served_low, served_high = no_low & (self.low >= 0), no_high & (self.high >= 0)
            gain -= down[:, served_low].sum(axis=1) + up[:, served_high].sum(axis=1)
            gain[best] = 0
        self._widen(near)

    def _suggested(self) -> Floats:
        """How far each suggestion seems to move each wanted cell."""
        given = [(move.at(self.needs.at) / move.denominator).astype(np.float64) for move in self.moves]
        rows = np.array(given).reshape(len(given), len(self.needs))
        if not len(self.tables):
            return rows
        return np.vstack([rows, self.tables[:, np.searchsorted(self.cells, self.needs.at)]])

    def _add(self, suggestion: int, asked_low: Mask, asked_high: Mask) -> None:
        """Make a suggestion exact; where rounding lost what was asked of it, solve for its vertex."""
        for move, reach in self._exact(suggestion):
            self._serve(move, reach)
            if not ((asked_low & (self.low < 0)) | (asked_high & (self.high < 0))).any():
                break

    def _serve(self, move: ExactMove, reach: Reach) -> None:
        moved = np.asarray(reach.numerators != 0, np.bool_)
        low = (self.low < 0) & self.needs.low_enough(reach) & (moved | ~self.bare)
        high = (self.high < 0) & self.needs.high_enough(reach) & (moved | ~self.bare)
        if (low | high).any():
            index = self._keep(move, reach)
            self.low[high & self.bare] = self.high[low & self.bare] = 0
            self.low[low], self.high[high] = index, index

    def _exact(self, suggestion: int) -> Iterator[tuple[ExactMove, Reach]]:
        """Exact tables near a suggestion."""
        for move in self._near(suggestion):
            if move is not None and not (self.whole and move.denominator > 1):
                yield move, Reach(move.at(self.needs.at), move.denominator)

    def _near(self, suggestion: int) -> Iterator[ExactMove | None]:
        if suggestion < len(self.moves):
            yield self.place.checked(self.moves[suggestion])
            return
        table = self.tables[suggestion - len(self.moves)]
        for move in self._made_exact(table):
            yield None if move is None else ExactMove(self.cells[move.cells], move.numerators, move.denominator)

    def _made_exact(self, table: Floats) -> Iterator[ExactMove | None]:
        """A solver's table rounded, as the vertex that it means, or with rounded coordinates."""
        limits = self.place.limits.take(self.cells)
        yield exact_moves(self.matrix, table[None], limits)[0]
        if not self.whole:
            yield exact_vertex(self.matrix, table, limits)
        if self.space is not None:
            yield from exact_inside(self.space, self.matrix, table, limits)
        elif not self.whole:
            yield exact_nearby(self.matrix, table, limits)

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """The equations over the cells of the solver's tables."""
        return equations_over(self.place.columns, self.cells)

    @cached_property
    def space(self) -> NullSpace | None:
        """All moves that the equations allow; None where they have no simple description."""
        return null_space(self.matrix)

    def _keep(self, move: ExactMove, reach: Reach) -> int:
        self.found.append(move)
        self.reached.append(reach)
        return len(self.found)

    def _widen(self, near: Floats) -> None:
        """Cells with a sliding level need two witnesses that far apart: the lowest and the highest known."""
        for cell in np.flatnonzero((self.needs.sliding > 0) & (self.low >= 0) & (self.high >= 0)).tolist():
            if self._wide_enough(cell):
                continue
            self._use_extremes(cell)
            if not self._wide_enough(cell) and len(near):
                for suggestion in (int(near[:, cell].argmin()), int(near[:, cell].argmax())):
                    for move, reach in self._exact(suggestion):
                        self._keep(move, reach)
                self._use_extremes(cell)
            if not self._wide_enough(cell):
                self.low[cell] = self.high[cell] = -1

    def _use_extremes(self, cell: int) -> None:
        known = self._known(cell)
        self.low[cell] = min(range(len(known)), key=known.__getitem__)
        self.high[cell] = max(range(len(known)), key=known.__getitem__)

    def _wide_enough(self, cell: int) -> bool:
        known = self._known(cell)
        return self.needs.wide_enough(cell, known[self.low[cell]], known[self.high[cell]])

    def _known(self, cell: int) -> list[Fraction]:
        return [Fraction(0), *(reach[cell] for reach in self.reached)]

    def group(self) -> Group:
        """What was proved, with only the witnesses that some proof names."""
        proved = np.flatnonzero((self.low >= 0) & (self.high >= 0))
        used = np.unique(np.concatenate([[0], self.low[proved], self.high[proved]]))
        return Group(
            tuple(self.found[index - 1] for index in used[1:].tolist()),
            self.needs.at[proved],
            np.searchsorted(used, self.low[proved]),
            np.searchsorted(used, self.high[proved]),
        )
