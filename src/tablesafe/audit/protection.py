"""The cheaper question: can every wanted cell go as far down and as far up as it must?

It stops where witnesses are known: complete tables that agree with all that is published. Witnesses are held once per
component and shared by the cells they serve; those that move different cells are joined into one table. They are exact:
whole numbers over a common denominator, that satisfy every equation and every bound without a tolerance.
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

from tablesafe.audit.exact import Move
from tablesafe.audit.guesses import Guesses
from tablesafe.audit.intervals import EASY_S, Progress, values_at
from tablesafe.audit.pieces import Piece, Shape, pieces
from tablesafe.audit.sharing import Tables, form_values, pairs, share
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import Interrupted, InvalidOption
from tablesafe.solve.exact.ranges import Ranges
from tablesafe.solve.exact.witnesses import NOBODY, TRUTH, Store, find_witnesses
from tablesafe.solve.propagate import are_points
from tablesafe.work.budget import ENDLESS, Budget
from tablesafe.work.executor import spread

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
    moves: tuple[Move, ...] = field(repr=False)
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
class Needs:
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
class Answer:
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
) -> Answer:  # fmt: skip
    truth = system.truth[wanted].astype(np.float64)
    none = np.full(len(wanted), NOBODY)
    out = Answer(truth.copy(), truth.copy(), none.copy(), np.where(below >= truth, TRUTH, none),
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
    return Answer(out.lower, out.upper, out.component, out.low, out.high, tuple(components))


def _answers(
    system: System,
    wanted: NDArray[np.intp],
    down: Floats,
    up: Floats,
    width: Floats,
    executor: Executor | None,
    budget: Budget,
) -> Iterator[tuple[NDArray[np.intp], Answer]]:
    """Piece by piece, in order: which of the wanted cells it answers, and how."""
    order = np.argsort(wanted, kind="stable")
    ordered = wanted[order]

    def needs() -> Iterator[tuple[NDArray[np.intp], Needs]]:
        for piece in pieces(system):
            place = np.minimum(np.searchsorted(piece.cells, ordered), len(piece) - 1)
            here = piece.cells[place] == ordered
            at = order[here]
            if at.size:
                yield at, Needs(piece, place[here], down[at], up[at], width[at], system.truth[piece.cells], budget)

    if executor is None:
        yield from ((at, answer_needs(need)) for at, need in needs())
        return
    every = list(needs())
    answers: dict[int, Answer] = {}
    for i, answer in spread(answer_needs, [n for _, n in every], [EASY_S * len(n.piece) for _, n in every], executor):
        answers[i] = answer
    yield from ((at, answers[i]) for i, (at, _) in enumerate(every))


def answer_needs(needs: Needs) -> Answer:
    """Find witnesses for the wanted cells of a piece."""
    if are_points(needs.piece.matrix, needs.piece.lower, needs.piece.upper):
        return _at_the_bounds(needs)
    shape = Shape.of(needs.piece)
    sides = _sides(shape, needs.wanted)
    scale = np.abs(shape.divisor[needs.wanted]) * float(needs.piece.grid)
    far = np.column_stack([_whole_needs(needs.down, scale), _whole_needs(needs.up, scale)])
    guess = Guesses(needs.piece, shape) if len(needs.piece) > LARGE else None
    store, ranges = find_witnesses(shape.polytope, shape.part, _per_side(shape, sides, far), guess, needs.budget)
    reached = _reached(shape, store, sides)
    narrow = (sides[:, 0] >= 0) & ((reached / scale[:, None]).sum(axis=1) < needs.width)
    if narrow.any():
        far[narrow] = np.maximum(far[narrow], _whole_needs(needs.width, scale)[narrow, None])
        store, ranges = find_witnesses(shape.polytope, shape.part, _per_side(shape, sides, far), guess, needs.budget)
    return _answer(needs, shape, store, ranges, sides)


def _at_the_bounds(needs: Needs) -> Answer:
    """Two tables serve all cells: the one of all the lower bounds, and the one of all the upper."""
    piece, truth = needs.piece, needs.truth[needs.wanted].astype(np.float64)
    ends = [bounds.astype(np.int64) for bounds in (piece.lower, piece.upper)]
    moves = tuple(Move(piece.cells[end != 0], end[end != 0], piece.grid) for end in ends)
    here = np.zeros(len(needs.wanted), np.int64)
    low, high = (end[needs.wanted] / piece.grid for end in ends)
    component = Component(piece.cells, needs.truth, moves)
    return Answer(truth + low, truth + high, here, here, here + 1, (component,))


def _sides(shape: Shape, wanted: NDArray[np.intp]) -> Integers:
    """For each wanted cell the side that is its lower end, and the one that is its upper; −1 if it cannot move."""
    form, divisor = shape.form[wanted], shape.divisor[wanted]
    lower, upper = 2 * form + (divisor > 0), 2 * form + (divisor < 0)
    return np.where((form >= 0)[:, None], np.column_stack([lower, upper]), -1)


def _whole_needs(far: Floats, scale: Floats) -> Floats:
    """Needs in whole numbers of a form, rounded up."""
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


def _answer(needs: Needs, shape: Shape, store: Store, ranges: Ranges, sides: Integers) -> Answer:
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
    return Answer(ends[0], ends[1], component, who[0], who[1], components)


def _components(
    needs: Needs, shape: Shape, tables: Tables, part_of_cell: Integers
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


def _move(needs: Needs, shape: Shape, cells: Integers, tables: Tables, table: int) -> Move:
    """One table as the exact moves of the cells of its part."""
    span = slice(tables.values.indptr[table], tables.values.indptr[table + 1])
    form = np.zeros(shape.polytope.forms, np.int64)
    form[tables.values.indices[span]] = tables.values.data[span]
    moved = cells[form[shape.form[cells]] != 0]
    divisor = shape.divisor[moved]
    common = lcm(*np.unique(np.abs(divisor)).tolist())
    numerators = _times(form[shape.form[moved]], common // divisor)
    denominator = int(tables.denominator[table]) * common * needs.piece.grid
    shared = gcd(denominator, *map(int, np.unique(numerators).tolist()))
    return Move(needs.piece.cells[moved], numerators // shared, denominator // shared)


def _times(numbers: Integers, factors: Integers) -> NDArray[Any]:
    """The products, as Python's own integers where 64 bits are too few."""
    if float(np.abs(numbers).max(initial=0)) * float(np.abs(factors).max(initial=1)) < 2.0**62:
        return np.asarray(numbers * factors)
    return np.asarray(numbers.astype(object) * factors.astype(object))
