"""The cheaper question: can every wanted cell go as far down and as far up as it must?

It stops where witnesses are known: complete tables that agree with all that is published. Witnesses are held once per
component and shared by the cells they serve; those that move different cells are joined into one table. They are
exact: whole numbers over a common denominator, that satisfy every equation and every bound without a tolerance.

Few tables for many witnesses: moves that do not disturb each other are added up.

A point found for one cell moves a few cells and leaves the rest at the truth. Added to another point it gives a table
that serves both, as long as every bound holds and everybody served so far still is.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.exact import ExactMove
from tablesafe.audit.intervals import EASY_S, Progress, values_at
from tablesafe.audit.neighbourhood import Guesses
from tablesafe.audit.system import Piece, Shape, System
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import Interrupted, InvalidOption
from tablesafe.solve.exact.ranges import Ranges
from tablesafe.solve.exact.witnesses import NOBODY, TRUTH, Store, find_witnesses
from tablesafe.solve.propagate import are_points
from tablesafe.work.budget import ENDLESS, Budget
from tablesafe.work.compiled import compiled
from tablesafe.work.executor import spread

MOST_NUMBERS = 30_000_000
"""Numbers that tables under construction may take up; beyond, they are finished and new ones begun."""
FREE = 2**62
"""A bound, in numerators, that is none: beyond, 64 bits overflow."""


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of one piece, as the numerators of its forms."""

    values: sparse.csr_array = field(repr=False)
    denominator: Integers = field(repr=False)
    part: Integers = field(repr=False)
    """The part that each table belongs to."""
    of_side: Integers = field(repr=False)
    """For each side the table that serves it; −1 for none."""

    @property
    def parts(self) -> Integers:
        """The parts that have tables, ascending."""
        return np.unique(self.part)

    def reached(self, sides: Integers, tables: Integers) -> tuple[Integers, Integers]:
        """How far each table takes a side, as a fraction; 0 where there is no table."""
        top, bottom = np.zeros(len(sides), np.int64), np.ones(len(sides), np.int64)
        there = tables >= 0
        top[there] = np.abs(pairs(self.values, tables[there], sides[there] // 2))
        bottom[there] = self.denominator[tables[there]]
        return top, bottom


def form_values(shape: Shape, store: Store) -> sparse.csr_array:
    """The numerators of every form at every point."""
    points = store.rows(shape.polytope.columns)
    rows = points @ shape.polytope.rows.astype(np.int64).T.tocsr()
    values = sparse.csr_array(sparse.hstack([points, rows], format="csr"))
    values.eliminate_zeros()
    values.sort_indices()
    return values


def pairs(matrix: sparse.csr_array, rows: Integers, columns: Integers) -> Integers:
    """The entries at some pairs of row and column."""
    if not len(rows):
        return np.zeros(0, np.int64)
    return np.asarray(matrix[rows, columns]).ravel().astype(np.int64)


def share(shape: Shape, store: Store, sides: Integers) -> Tables:
    """Tables in which every one of these sides goes as far as it needs, or as its own point takes it."""
    values, polytope = form_values(shape, store), shape.polytope
    start, index = values.indptr.astype(np.int64), values.indices.astype(np.int64)
    sides = sides[np.argsort(shape.part[sides // 2], kind="stable")]
    parts, starts = np.unique(shape.part[sides // 2], return_index=True)
    forms_by_part = np.argsort(shape.part, kind="stable")
    ends = np.searchsorted(shape.part[forms_by_part], np.stack([parts, parts + 1]))
    of_side, place = np.full(2 * polytope.forms, NOBODY), np.zeros(polytope.forms, np.int64)
    rows, bottoms, owners, count = [], [], [], 0
    for i, part in enumerate(parts.tolist()):
        forms = np.sort(forms_by_part[ends[0, i] : ends[1, i]])
        place[forms] = np.arange(len(forms))
        left = sides[starts[i] : starts[i + 1] if i + 1 < len(parts) else None]
        while left.size:
            most = min(len(left), max(1, MOST_NUMBERS // len(forms)))
            done, used, table, taken, bottom = _fill(
                polytope.lower, polytope.upper, start, index, values.data, store.denominator, store.by, store.need,
                forms, place, left, most,
            )  # fmt: skip
            of_side[left[:done]] = count + table[:done]
            own = sparse.csr_array(taken[:used])
            rows.append(sparse.csr_array((own.data, forms[own.indices], own.indptr), shape=(used, polytope.forms)))
            bottoms.append(bottom[:used])
            owners.append(np.full(used, part))
            count, left = count + used, left[done:]
    if not rows:
        none = np.zeros(0, np.int64)
        return Tables(sparse.csr_array((0, polytope.forms), dtype=np.int64), none, none, of_side)
    joined = sparse.csr_array(sparse.vstack(rows, format="csr"))
    return Tables(joined, np.concatenate(bottoms), np.concatenate(owners), of_side)


@compiled
def _fill(
    lower: Floats, upper: Floats, start: Integers, index: Integers, data: Integers, denominator: Integers,
    by: Integers, need: Floats, forms: Integers, place: Integers, sides: Integers, most: int,
) -> tuple[int, int, Integers, Integers, Integers]:  # fmt: skip
    """Serve sides of one part with at most so many tables: by one that does already, by adding to one, by a new one.

    Returns how many sides are served, the number of tables, the table of each side, the tables and their denominators.
    """
    n, used = len(forms), 0
    table, bottom = np.zeros(len(sides), np.int64), np.zeros(most, np.int64)
    values, least, greatest = (
        np.zeros((most, n), np.int64),
        np.zeros((most, n), np.int64),
        np.zeros((most, n), np.int64),
    )
    for i in range(len(sides)):
        form, sign, point = sides[i] // 2, 1 - 2 * (sides[i] % 2), by[sides[i]]
        d, at = denominator[point], place[form]
        gain = 0
        for z in range(start[point], start[point + 1]):
            if index[z] == form:
                gain = sign * data[z]
        goal = int(need[sides[i]]) * d if need[sides[i]] * d < gain else gain
        b = 0
        while b < used and not (bottom[b] == d and sign * values[b, at] >= goal):
            b += 1
        if b == used:
            b = 0
            while b < used and not (
                bottom[b] == d
                and sign * values[b, at] + gain >= goal
                and _fits(start, index, data, place, values[b], least[b], greatest[b], point)
            ):
                b += 1
            if b == used:
                if used == most:
                    return i, used, table, values, bottom
                bottom[b] = d
                for j in range(n):
                    least[b, j] = _numerator_bound(lower[forms[j]], d)
                    greatest[b, j] = _numerator_bound(upper[forms[j]], d)
                used += 1
            for z in range(start[point], start[point + 1]):
                values[b, place[index[z]]] += data[z]
        table[i] = b
        if sign > 0:
            least[b, at] = max(least[b, at], goal)
        else:
            greatest[b, at] = min(greatest[b, at], -goal)
    return len(sides), used, table, values, bottom


@compiled
def _fits(
    start: Integers, index: Integers, data: Integers, place: Integers, values: Integers, least: Integers,
    greatest: Integers, point: int,
) -> bool:  # fmt: skip
    """Whether a point can be added to a table without breaking a bound or a promise."""
    for z in range(start[point], start[point + 1]):
        at = place[index[z]]
        x = values[at] + data[z]
        if x < least[at] or x > greatest[at]:
            return False
    return True


@compiled
def _numerator_bound(bound: float, denominator: int) -> int:
    """A bound in numerators; beyond 64 bits as good as none."""
    if abs(bound) * denominator >= FREE:
        return int(FREE) if bound > 0 else int(-FREE)
    return int(bound) * denominator


# -- witnesses for cells -----------------------------------------------------------------------------------------------


MOST = 2.0**50
"""Nothing is asked to go farther than this."""
LARGE = 600
"""Cells of a piece beyond which guesses come before a program over all of it."""


@dataclass(frozen=True, eq=False)
class Component:
    """Unknown cells that depend on each other, and the witnesses found for them."""

    cells: NDArray[np.intp] = field(repr=False)
    """Positions among the unknown cells of the system, ascending."""
    truth: Integers = field(repr=False)
    moves: tuple[ExactMove, ...] = field(repr=False)
    """Each witness as its exact difference from the truth, over the unknown cells of the system."""

    @cached_property
    def tables(self) -> Floats:
        """The witnesses as tables: one row per witness, one column per cell of the component."""
        out = np.tile(self.truth.astype(np.float64), (len(self.moves), 1))
        for row, move in zip(out, self.moves, strict=True):
            row[np.searchsorted(self.cells, move.cells)] += (move.numerators / move.denominator).astype(np.float64)
        return out


@dataclass(frozen=True, eq=False)
class Protection:
    """How far the wanted cells were seen to go, and who showed it."""

    lower: Floats = field(repr=False)
    """The least value seen; where a cell cannot go as far down as it must, the least there is."""
    upper: Floats = field(repr=False)
    protected: Mask = field(repr=False)
    component: NDArray[np.intp] = field(repr=False)
    """The component of each wanted cell; −1 for one that cannot move, or for which no witness is needed."""
    low: NDArray[np.intp] = field(repr=False)
    """Which witness of its component shows the lower value; −1: none, −2: the truth itself."""
    high: NDArray[np.intp] = field(repr=False)
    components: tuple[Component, ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class PieceNeeds:
    """What is asked of some cells of a piece: how far down, how far up, and how far apart, from the truth, in units."""

    piece: Piece
    wanted: NDArray[np.intp]
    """Positions within the piece."""
    down: Floats
    up: Floats
    width: Floats
    truth: Integers
    """Of all cells of the piece."""
    budget: Budget = ENDLESS


@dataclass(frozen=True, eq=False)
class PieceAnswer:
    """What was found for the wanted cells of a piece."""

    lower: Floats
    upper: Floats
    component: NDArray[np.intp]
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    components: tuple[Component, ...]


def protection(
    system: System,
    wanted: NDArray[np.intp],
    below: Floats,
    above: Floats,
    width: Floats | None = None,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    budget: Budget = ENDLESS,
) -> Protection:
    """Whether each wanted unknown can be at most `below`, at least `above`, and in two tables `width` apart.

    All numbers are in the system's units. When the budget is over, what was not seen by then stays unseen.
    """
    wanted = np.asarray(wanted, dtype=np.intp)
    width = np.zeros(len(wanted)) if width is None else width
    if np.isnan(np.concatenate([below, above, width])).any():
        raise InvalidOption("protection() was asked for a limit that is not a number.")
    try:
        found = _ask(system, wanted, below, above, width, executor, progress or (lambda share: None), budget)
    except KeyboardInterrupt as stop:
        raise Interrupted("The audit was interrupted; nothing was written.") from stop
    lower, upper = found.lower, found.upper
    with np.errstate(invalid="ignore"):
        reached = (lower <= below) & (upper >= above) & (upper - lower >= width)
    return Protection(lower, upper, reached, found.component, found.low, found.high, found.components)


def _ask(
    system: System, wanted: NDArray[np.intp], below: Floats, above: Floats, width: Floats,
    executor: Executor | None, report: Progress, budget: Budget,
) -> PieceAnswer:  # fmt: skip
    truth = system.truth[wanted].astype(np.float64)
    none = np.full(len(wanted), NOBODY)
    out = PieceAnswer(truth.copy(), truth.copy(), none.copy(), np.where(below >= truth, TRUTH, none),
                 np.where(above <= truth, TRUTH, none), ())  # fmt: skip
    components: list[Component] = []
    done = 0
    for at, answer in _answers(system, wanted, truth - below, above - truth, width, executor, budget):
        for name in ("lower", "upper", "low", "high"):
            getattr(out, name)[at] = getattr(answer, name)
        out.component[at] = np.where(answer.component >= 0, answer.component + len(components), NOBODY)
        components += answer.components
        done += len(at)
        report(done / len(wanted))
    report(1.0)
    return PieceAnswer(out.lower, out.upper, out.component, out.low, out.high, tuple(components))


def _answers(
    system: System,
    wanted: NDArray[np.intp],
    down: Floats,
    up: Floats,
    width: Floats,
    executor: Executor | None,
    budget: Budget,
) -> Iterator[tuple[NDArray[np.intp], PieceAnswer]]:
    """Piece by piece, in order: which of the wanted cells it answers, and how."""
    order = np.argsort(wanted, kind="stable")
    ordered = wanted[order]

    def needs() -> Iterator[tuple[NDArray[np.intp], PieceNeeds]]:
        for piece in system.pieces:
            place = np.minimum(np.searchsorted(piece.cells, ordered), len(piece) - 1)
            here = piece.cells[place] == ordered
            at = order[here]
            if at.size:
                yield at, PieceNeeds(piece, place[here], down[at], up[at], width[at], system.truth[piece.cells], budget)

    if executor is None:
        yield from ((at, answer_needs(need)) for at, need in needs())
        return
    every = list(needs())
    answers: dict[int, PieceAnswer] = {}
    for i, answer in spread(answer_needs, [n for _, n in every], [EASY_S * len(n.piece) for _, n in every], executor):
        answers[i] = answer
    yield from ((at, answers[i]) for i, (at, _) in enumerate(every))


def answer_needs(needs: PieceNeeds) -> PieceAnswer:
    """Find witnesses for the wanted cells of a piece."""
    if are_points(needs.piece.matrix, needs.piece.lower, needs.piece.upper):
        return _at_the_bounds(needs)
    shape = needs.piece.shape
    sides = _sides(shape, needs.wanted)
    scale = np.abs(shape.divisor[needs.wanted]) * float(needs.piece.grid)
    far = np.column_stack([_whole_needs(needs.down, scale), _whole_needs(needs.up, scale)])
    guess = Guesses(needs.piece, shape, needs.budget) if len(needs.piece) > LARGE else None
    store, ranges = find_witnesses(shape.polytope, shape.part, _per_side(shape, sides, far), guess, needs.budget)
    reached = _reached(shape, store, sides)
    narrow = (sides[:, 0] >= 0) & ((reached / scale[:, None]).sum(axis=1) < needs.width)
    if narrow.any():
        far[narrow] = np.maximum(far[narrow], _whole_needs(needs.width, scale)[narrow, None])
        store, ranges = find_witnesses(shape.polytope, shape.part, _per_side(shape, sides, far), guess, needs.budget)
    return _answer(needs, shape, store, ranges, sides)


def _at_the_bounds(needs: PieceNeeds) -> PieceAnswer:
    """Two tables serve all cells: the one of all the lower bounds, and the one of all the upper."""
    piece, truth = needs.piece, needs.truth[needs.wanted]
    ends = [bounds.astype(np.int64) for bounds in (piece.lower, piece.upper)]
    moves = tuple(ExactMove(piece.cells[end != 0], end[end != 0], piece.grid) for end in ends)
    here = np.zeros(len(needs.wanted), np.int64)
    one = np.ones(len(needs.wanted), np.int64)
    low, high = (values_at(truth, end[needs.wanted], one, one, piece.grid) for end in ends)
    component = Component(piece.cells, needs.truth, moves)
    return PieceAnswer(low, high, here, here, here + 1, (component,))


def _sides(shape: Shape, wanted: NDArray[np.intp]) -> Integers:
    """For each wanted cell the side that is its lower end, and the one that is its upper; −1 if it cannot move."""
    form, divisor = shape.form[wanted], shape.divisor[wanted]
    lower, upper = 2 * form + (divisor > 0), 2 * form + (divisor < 0)
    return np.where((form >= 0)[:, None], np.column_stack([lower, upper]), -1)


def _whole_needs(far: Floats, scale: Floats) -> Floats:
    """PieceNeeds in whole numbers of a form, rounded up."""
    exact = np.clip(far * scale, 0.0, MOST)
    nearest = np.rint(exact)
    return np.where(np.abs(exact - nearest) <= 1e-9 * np.maximum(1.0, nearest), nearest, np.ceil(exact))


def _per_side(shape: Shape, sides: Integers, far: Floats) -> Floats:
    need = np.full(2 * shape.polytope.forms, -1.0)
    moves = sides >= 0
    np.maximum.at(need, sides[moves], far[moves])
    return need


def _reached(shape: Shape, store: Store, sides: Integers) -> Floats:
    """How far the witness of each side takes its form."""
    out, by = np.zeros(sides.shape), _served_by(store, sides)
    there = by >= 0
    out[there] = np.abs(pairs(form_values(shape, store), by[there], sides[there] // 2)) / store.denominator[by[there]]
    return out


def _served_by(store: Store, sides: Integers) -> Integers:
    """The point that serves each side; nobody serves a cell that cannot move."""
    by = np.full(sides.shape, NOBODY)
    by[sides >= 0] = store.by[sides[sides >= 0]]
    return by


def _answer(needs: PieceNeeds, shape: Shape, store: Store, ranges: Ranges, sides: Integers) -> PieceAnswer:
    asked = np.unique(sides[sides >= 0])
    tables = share(shape, store, asked[store.by[asked] >= 0])
    part_of_cell = np.full(len(shape.form), NOBODY)
    part_of_cell[shape.form >= 0] = shape.part[shape.form[shape.form >= 0]]
    components, number = _components(needs, shape, tables, part_of_cell)
    ends, who = [], []
    for column, sign in ((0, -1), (1, 1)):
        side, by = sides[:, column], _served_by(store, sides[:, column])
        table = np.full(len(side), NOBODY)
        table[by >= 0] = tables.of_side[side[by >= 0]]
        top, bottom = tables.reached(side, table)
        known = (side >= 0) & (by == NOBODY)
        top[known], bottom[known] = ranges.numerator[side[known]], ranges.denominator[side[known]]
        divisor = np.abs(shape.divisor[needs.wanted])
        ends.append(values_at(needs.truth[needs.wanted], sign * top, bottom, divisor, needs.piece.grid))
        own = np.where(top == 0, TRUTH, NOBODY)
        own[by >= 0] = number[table[by >= 0]]
        who.append(own)
    part = part_of_cell[needs.wanted]
    there = (who[0] >= 0) | (who[1] >= 0)
    component = np.where(there, np.searchsorted(tables.parts, part), NOBODY)
    return PieceAnswer(ends[0], ends[1], component, who[0], who[1], components)


def _components(
    needs: PieceNeeds, shape: Shape, tables: Tables, part_of_cell: Integers
) -> tuple[tuple[Component, ...], Integers]:
    """The parts that have witnesses, and the number of each table among those of its part."""
    order = np.argsort(part_of_cell, kind="stable")
    starts = np.searchsorted(part_of_cell[order], tables.parts)
    stops = np.searchsorted(part_of_cell[order], tables.parts, side="right")
    number = np.zeros(len(tables.part), np.int64)
    components = []
    for i, part in enumerate(tables.parts.tolist()):
        own = np.flatnonzero(tables.part == part)
        number[own] = np.arange(len(own))
        cells = np.sort(order[starts[i] : stops[i]])
        moves = tuple(_move(needs, shape, cells, tables, table) for table in own.tolist())
        components.append(Component(needs.piece.cells[cells], needs.truth[cells], moves))
    return tuple(components), number


def _move(needs: PieceNeeds, shape: Shape, cells: Integers, tables: Tables, table: int) -> ExactMove:
    """One table as the exact moves of the cells of its part."""
    span = slice(tables.values.indptr[table], tables.values.indptr[table + 1])
    form = np.zeros(shape.polytope.forms, np.int64)
    form[tables.values.indices[span]] = tables.values.data[span]
    moved = cells[form[shape.form[cells]] != 0]
    divisor = shape.divisor[moved]
    common = lcm(*np.unique(np.abs(divisor)).tolist())
    numerators = _products(form[shape.form[moved]], common // divisor)
    denominator = int(tables.denominator[table]) * common * needs.piece.grid
    shared = gcd(denominator, *map(int, np.unique(numerators).tolist()))
    return ExactMove(needs.piece.cells[moved], numerators // shared, denominator // shared)


def _products(numbers: Integers, factors: Integers) -> NDArray[Any]:
    """The products, as Python's own integers where 64 bits are too few."""
    if float(np.abs(numbers).max(initial=0)) * float(np.abs(factors).max(initial=1)) < 2.0**62:
        return np.asarray(numbers * factors)
    return np.asarray(numbers.astype(object) * factors.astype(object))
