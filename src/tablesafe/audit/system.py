"""What an attacker knows, as linear equations over the cells it does not know.

All numbers are in units of `10**-decimals` of the table, so everything that comes from the table is a whole number.

An attacker's system cut into pieces that can be searched: in whole numbers, without the cells known already.

Everything is measured from the truth: a cell that has not moved has its true value. So the right-hand sides vanish,
and numbers stay as small as the freedom that is left, however large the values are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidRelease
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.solve.exact.extremes import tighten
from tablesafe.solve.exact.nullspace import NullSpace, every_unknown, null_space
from tablesafe.solve.exact.polytope import Polytope
from tablesafe.solve.propagate import EXACT, propagate

MOST_FREE = 20_000
"""Unseen cells that may move at the same time."""


@dataclass(frozen=True, eq=False)
class System:
    """`matrix @ x = rhs` and `lower <= x <= upper` over the unknown cells; the truth is one solution.

    A cell of the table is known (not here), unknown, or unseen: unknown because nobody ever publishes it. Every row
    says which equation of the table it comes from, every bound holds for one cell; an attacker is a system and what it
    knows beyond (see `respondent_knowledge`). What is worked out about a system is kept with it: its pieces, their
    null spaces, and the intervals that somebody asked for.
    """

    table: Table = field(repr=False)
    cells: NDArray[np.intp] = field(repr=False)
    """The table's cell behind each unknown."""
    rows: NDArray[np.intp] = field(repr=False)
    """The table's equation behind each row."""
    matrix: sparse.csr_array = field(repr=False)
    rhs: Integers = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    truth: Integers = field(repr=False)

    @classmethod
    def of(cls, problem: Problem, release: Release) -> Self:
        """The outsider's view of a release: the equations, what is published, and the prior bounds on the rest."""
        table = problem.table
        if len(release.values) != len(table):
            raise InvalidRelease(f"The release has {len(release.values):,} cells, the table {len(table):,}.")
        unit = 10.0**table.decimals
        truth = table.integers
        lower = np.maximum(release.lower, problem.lower) * unit
        upper = np.minimum(release.upper, problem.upper) * unit
        known = release.lower == release.upper
        lower[known] = upper[known] = np.rint(release.lower[known] * unit)
        lower, upper = snapped(lower), snapped(upper)
        outside = np.flatnonzero((truth < lower) | (truth > upper))
        if outside.size:
            raise InvalidRelease(
                f"The release says something false about cell {table.describe(int(outside[0]))}: "
                f"its true value lies outside the interval that the release implies."
            )
        unknown = np.flatnonzero(lower < upper)
        return cls.over(table, unknown, lower[unknown], upper[unknown])

    @classmethod
    def over(cls, table: Table, unknown: NDArray[np.intp], lower: Floats, upper: Floats) -> Self:
        """The system in which exactly the cells `unknown` are unknown, within the given bounds (in units)."""
        columns = table.equations.tocsc()[:, unknown].tocsr()
        rows = np.flatnonzero(np.diff(columns.indptr))
        matrix = columns[rows]
        truth = table.integers[unknown]
        rhs = np.asarray(matrix.astype(np.int64) @ truth)
        return cls(table, unknown, rows, matrix, rhs, lower, upper, truth)

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def unseen(self) -> Mask:
        """Which of the unknown cells no release shows: inner cells of the cube that tables are margins of."""
        unseen = self.table.unseen
        return np.zeros(len(self), dtype=np.bool_) if unseen is None else np.asarray(unseen[self.cells], np.bool_)

    @cached_property
    def is_large(self) -> bool:
        """Whether it has more unseen cells than can be looked at all at once."""
        return int(self.unseen.sum()) > MOST_FREE

    @cached_property
    def tells_nothing(self) -> bool:
        """Whether a release tells nothing but which cells are empty, and nobody knows bounds.

        The contributions of each respondent add up as the table does. So whatever a coalition knows, the others may
        have nothing at all, or one of them many times what it has: of every cell that a coalition does not make up it
        knows no more than what it has there itself, below which nothing is asked, and no sum can be derived. A cell of
        value zero that has contributors is not empty, and says of each what it reported; and where contributions may be
        negative, even an empty cell may tell something.
        """
        known = np.ones(len(self.table), dtype=np.bool_)
        known[self.cells] = False
        signed, count = self.table.may_be_negative, self.table.count
        empty = (self.table.integers == 0) & (self.table.contributors is None if count is None else count == 0)
        if (known & ~empty).any() or (bool(known.any()) and bool(signed.any())):
            return False
        free = np.isneginf(self.lower) | ((self.lower == 0) & ~signed[self.cells])
        return bool(np.isposinf(self.upper).all() and free.all())

    def positions(self, cells: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where cells of the table stand among the unknown; −1 for one that is known."""
        if not len(self):
            return np.full(len(cells), -1, dtype=np.intp)
        at = np.minimum(np.searchsorted(self.cells, cells), len(self) - 1)
        return np.where(self.cells[at] == cells, at, -1)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The system cut into pieces that can be searched one by one."""
        return tuple(pieces(self))

    @cached_property
    def derived(self) -> tuple[Floats, Floats]:
        """The exact ends of the cells that somebody asked for; not a number where nobody did."""
        return np.full(len(self), np.nan), np.full(len(self), np.nan)

    def within(self, lower: Floats, upper: Floats) -> Self:
        """The same equations with other bounds: what an attacker knows who knows more."""
        return replace(self, lower=lower, upper=upper)


def snapped(bounds: Floats) -> Floats:
    """Bounds that are whole up to the noise of scaling by a power of ten, made whole."""
    nearest = np.rint(bounds)
    with np.errstate(invalid="ignore"):
        close = np.abs(bounds - nearest) <= 1e-9 * np.maximum(1.0, np.abs(bounds))
    return np.where(close, nearest, bounds)


# -- pieces ------------------------------------------------------------------------------------------------------------


FINEST = 10**9
"""Bounds are rounded to this fraction of a unit, inwards, if they are no decimal numbers of fewer digits."""
ROOM = 2.0**48
"""The largest bound that is multiplied to make fractions of a unit whole."""
CELLS = 20_000
"""Small components are put together into pieces of about so many cells."""
KEPT = 5_000_000
"""Entries of a null space that is kept for the next question."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Some components of a system: `matrix @ move = 0` and `lower <= grid * move <= upper`."""

    cells: NDArray[np.intp] = field(repr=False)
    """Positions among the unknown cells of the system, ascending."""
    matrix: sparse.csr_array = field(repr=False)
    lower: Floats = field(repr=False)
    """Whole numbers, or infinite; not above zero."""
    upper: Floats = field(repr=False)
    grid: int = 1

    def __len__(self) -> int:
        return len(self.cells)

    def __reduce__(self) -> tuple[Any, ...]:
        """What another process gets: the piece, without what was worked out about it here."""
        return Piece, (self.cells, self.matrix, self.lower, self.upper, self.grid)

    @property
    def shape(self) -> Shape:
        """The piece as a polytope, worked out once; that of a very large one is not kept."""
        kept: Shape | None = self.__dict__.get("_shape")
        if kept is None:
            kept = Shape.of(self)
            if kept.polytope.rows.nnz <= KEPT:
                self.__dict__["_shape"] = kept
        return kept


@dataclass(frozen=True, eq=False)
class Shape:
    """A piece as a polytope: each cell's move is a form over its divisor (and over the grid)."""

    polytope: Polytope = field(repr=False)
    part: Integers = field(repr=False)
    """For each form the independent part that it belongs to."""
    form: Integers = field(repr=False)
    """The form behind each cell of the piece; −1 for a cell that cannot move."""
    divisor: Integers = field(repr=False)

    @classmethod
    def of(cls, piece: Piece) -> Self:
        """Describe a piece by its null space; if that has no simple description, by its equations as they are."""
        space = null_space(piece.matrix)
        if space is not None:
            shape = cls._over(space, piece, space.forms[space.dimension :])
            finite = np.concatenate([shape.polytope.lower, shape.polytope.upper])
            if float(np.abs(finite[np.isfinite(finite)]).max(initial=0.0)) < EXACT:
                return shape
        return cls._over(every_unknown(len(piece)), piece, sparse.csr_array(piece.matrix.astype(np.int64)))

    @classmethod
    def _over(cls, space: NullSpace, piece: Piece, rows: sparse.csr_array) -> Self:
        k, count = space.dimension, space.dimension + rows.shape[0]
        moves = space.form >= 0
        lower, upper = np.full(count, -np.inf), np.full(count, np.inf)
        if space.forms.shape[0] < count:  # the equations themselves are the rows
            lower[k:] = upper[k:] = 0.0
        scale = space.divisor[moves].astype(np.float64)
        one, other = piece.lower[moves] * scale, piece.upper[moves] * scale
        np.maximum.at(lower, space.form[moves], np.minimum(one, other))
        np.minimum.at(upper, space.form[moves], np.maximum(one, other))
        polytope = Polytope.of(rows, lower, upper)
        tighten(polytope)
        return cls(polytope, _parts(rows), space.form, space.divisor)


def _parts(rows: sparse.csr_array) -> Integers:
    """A number for each form, equal for forms that depend on each other."""
    coo = rows.tocoo()
    m, k = rows.shape
    graph = sparse.coo_array((np.ones(coo.nnz, np.int8), (k + coo.row, coo.col)), shape=(k + m, k + m))
    return np.asarray(csgraph.connected_components(graph, directed=False)[1], dtype=np.int64)


def pieces(system: System) -> Iterator[Piece]:
    """Cut a system into pieces, without the cells that bounds and equations give away one after another."""
    lower, upper, grid = _from_the_truth(system)
    matrix = sparse.csr_array(system.matrix)
    lower, upper = propagate(matrix, lower, upper)
    unknown = np.flatnonzero(lower < upper)
    columns = matrix.tocsc()[:, unknown].tocsr()
    columns = columns[np.flatnonzero(np.diff(columns.indptr))]
    label, row_label = _components(columns)
    order, row_order = np.argsort(label, kind="stable"), np.argsort(row_label, kind="stable")
    cuts = _groups(np.bincount(label))
    ends, row_ends = np.searchsorted(label[order], cuts), np.searchsorted(row_label[row_order], cuts)
    for i in range(len(cuts) - 1):
        own = np.sort(order[ends[i] : ends[i + 1]])
        rows = np.sort(row_order[row_ends[i] : row_ends[i + 1]])
        part = columns[rows].tocsc()[:, own].tocsr()
        cells = unknown[own]
        yield Piece(cells, part, lower[cells], upper[cells], grid)


def _components(matrix: sparse.csr_array) -> tuple[Integers, Integers]:
    """For each column and each row the connected component it belongs to."""
    m, n = matrix.shape
    coo = matrix.tocoo()
    graph = sparse.coo_array((np.ones(coo.nnz, np.int8), (n + coo.row, coo.col)), shape=(n + m, n + m))
    label = csgraph.connected_components(graph, directed=False)[1].astype(np.int64)
    return label[:n], label[n:]


def _groups(size: Integers) -> list[int]:
    """Where to cut the components, in order, so that a group has about as many cells as a piece should."""
    cuts, cells = [0], 0
    for number, own in enumerate(size.tolist()):
        if cells and cells + own > CELLS:
            cuts.append(number)
            cells = 0
        cells += own
    return [*cuts, len(size)] if len(size) else [0]


def _from_the_truth(system: System) -> tuple[Floats, Floats, int]:
    """Bounds on the moves, in whole numbers of one over the grid.

    Bounds that are no decimal numbers of few digits are rounded inwards: who is protected within them is protected.
    Bounds beyond what floats hold exactly are left out.
    """
    bounds = np.stack([system.lower, system.upper])
    finite = np.abs(bounds) < EXACT
    whole = np.where(finite, np.rint(bounds), 0.0)
    rest, noise = np.where(finite, bounds, 0.0) - whole, 2.0 * np.spacing(np.where(finite, bounds, 0.0))
    steps = whole - system.truth
    largest = float(np.abs(steps[finite]).max(initial=1.0))
    grid = 1
    while grid < FINEST and largest * grid * 10 < ROOM and not _near_whole(rest * grid, noise * grid).all():
        grid *= 10
    rest, noise = rest * grid, noise * grid
    inward = np.stack([np.ceil(rest[0]), np.floor(rest[1])])
    moves = steps * grid + np.where(_near_whole(rest, noise), np.rint(rest), inward)
    return np.where(finite[0], moves[0], -np.inf), np.where(finite[1], moves[1], np.inf), grid


def _near_whole(numbers: Floats, noise: Floats) -> NDArray[np.bool_]:
    """Which numbers are whole, up to the noise of decimal fractions in floats."""
    return np.asarray(np.abs(numbers - np.rint(numbers)) <= 1e-9 + np.minimum(np.abs(noise), 0.1))
