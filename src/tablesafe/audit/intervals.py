"""The exact interval of every unknown cell: what an attacker can derive from all that is published, at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.checkpoint import Checkpoint
from tablesafe.audit.pieces import Piece, Shape, pieces
from tablesafe.audit.rectangle import rectangle_ends
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import Interrupted
from tablesafe.solve.exact.extremes import CHUNK, HardPart, easy_ends, finish, hard_parts
from tablesafe.solve.exact.ranges import Ranges
from tablesafe.solve.propagate import are_points
from tablesafe.work.executor import spread

Progress = Callable[[float], None]
"""Told the share of the work that is done, from 0 to 1."""

EASY = 0.5
"""The share of the work, for the progress, that lies before the hard parts."""
EASY_S = 1e-5
"""Estimated seconds per cell before the hard parts."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """The least and the greatest value of each wanted cell, in the system's units; infinite where unbounded."""

    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class Question:
    """A piece and which of its cells (positions within it) are asked for; can be sent to another process."""

    piece: Piece
    wanted: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Found:
    """What is known about a piece: its shape is kept only while sides are open."""

    shape: Shape | None
    ranges: Ranges
    left: Integers
    """The sides that are still open."""
    sides: Integers
    """For each wanted cell the side that is its upper end, and the one that is its lower end; −1 if it cannot move."""
    scale: Integers
    """For each wanted cell what its form is divided by."""


def exact_intervals(
    system: System,
    wanted: NDArray[np.intp] | None = None,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Intervals:
    """The exact minimum and maximum of each wanted unknown (all by default) over all that the attacker cannot rule out.

    The answer is the same with any executor. A `checkpoint` file keeps what is finished, for a run that is interrupted;
    it is confidential, and removed at the end.
    """
    wanted = np.arange(len(system)) if wanted is None else np.asarray(wanted, dtype=np.intp)
    kept = Checkpoint(checkpoint, system)
    try:
        _find(system, np.setdiff1d(wanted, np.flatnonzero(kept.done)), kept, executor, progress or (lambda share: None))
    except KeyboardInterrupt as stop:
        kept.save(now=True)
        raise Interrupted("The audit was interrupted; nothing was written.") from stop
    except BaseException:
        kept.save(now=True)
        raise
    kept.remove()
    return Intervals(kept.lower[wanted], kept.upper[wanted])


def _find(
    system: System, wanted: NDArray[np.intp], kept: Checkpoint, executor: Executor | None, report: Progress
) -> None:
    """First everything that is easy, piece by piece; then what is hard, in chunks."""
    known = system.truth[wanted].astype(np.float64)
    kept.put(wanted, known, known)  # what stands in no piece cannot move
    kept.done[wanted] = False
    hard: list[tuple[Question, Found]] = []
    for question, found in _easy(system, wanted, executor, report):
        _keep(system, kept, question, found)
        if found.left.size:
            hard.append((question, found))
    tasks = [(at, task) for at, (_, found) in enumerate(hard) for task in _tasks(found)]
    done = 0.0
    seconds = [task.seconds for _, task in tasks]
    for i, ranges in spread(finish, [task for _, task in tasks], seconds, executor):
        at, task = tasks[i]
        hard[at][1].ranges.put_sides(task.forms, ranges, task.sides)
        _keep(system, kept, *hard[at])
        done += seconds[i]
        report(EASY + (1.0 - EASY) * done / sum(seconds))
    kept.done[wanted] = True
    report(1.0)


def _tasks(found: Found) -> Iterator[HardPart]:
    if found.shape is not None:
        yield from hard_parts(found.shape.polytope, found.shape.part, found.ranges, found.left, CHUNK)


def _easy(
    system: System, wanted: NDArray[np.intp], executor: Executor | None, report: Progress
) -> Iterator[tuple[Question, Found]]:
    """What the search from the truth finds in each piece that has wanted cells."""
    position = np.full(len(system), -1)
    position[wanted] = np.arange(len(wanted))
    questions = (Question(piece, np.flatnonzero(position[piece.cells] >= 0)) for piece in pieces(system))
    questions = (question for question in questions if question.wanted.size)
    done = 0
    if executor is None:
        for question in questions:
            yield question, look(question)
            done += len(question.wanted)
            report(EASY * done / len(wanted))
        return
    every = list(questions)
    for i, found in spread(look, every, [EASY_S * len(question.piece) for question in every], executor):
        done += len(every[i].wanted)
        report(EASY * done / len(wanted))
        yield every[i], found


def look(question: Question) -> Found:
    """Search a piece from the truth, unless a closed form knows its ends."""
    piece = question.piece
    if are_points(piece.matrix, piece.lower, piece.upper):
        ends: tuple[Integers, Integers] | None = piece.lower.astype(np.int64), piece.upper.astype(np.int64)
    else:
        ends = rectangle_ends(piece.matrix, piece.lower, piece.upper)
    if ends is not None:
        return _known(ends[0][question.wanted], ends[1][question.wanted])
    shape = Shape.of(piece)
    form, divisor = shape.form[question.wanted], shape.divisor[question.wanted]
    upper = np.where(form < 0, -1, 2 * form + (divisor < 0))
    lower = np.where(form < 0, -1, 2 * form + (divisor > 0))
    asked = np.unique(np.concatenate([upper, lower])[np.concatenate([form, form]) >= 0])
    ranges, left = easy_ends(shape.polytope, shape.part, asked)
    return Found(shape if left.size else None, ranges, left, np.column_stack([upper, lower]), np.abs(divisor))


def _known(lower: Integers, upper: Integers) -> Found:
    """Ends that need no search."""
    n = len(lower)
    ends = np.column_stack([upper, -lower]).ravel()
    ranges = Ranges(np.ones(2 * n, np.bool_), ends, np.ones(2 * n, np.int64))
    return Found(None, ranges, np.zeros(0, np.int64), np.arange(2 * n).reshape(n, 2), np.ones(n, np.int64))


def _keep(system: System, kept: Checkpoint, question: Question, found: Found) -> None:
    """Write down the intervals of the cells whose ends are both known."""
    moves = found.sides[:, 0] >= 0
    done = ~moves
    done[moves] = found.ranges.closed[found.sides[moves]].all(axis=1)
    cells = question.piece.cells[question.wanted[done]]
    ends = []
    for column, sign in ((1, -1), (0, 1)):
        top, bottom = np.zeros(len(cells), np.int64), np.ones(len(cells), np.int64)
        side = found.sides[done & moves, column]
        top[moves[done]] = sign * found.ranges.numerator[side]
        bottom[moves[done]] = found.ranges.denominator[side]
        ends.append(values_at(system.truth[cells], top, bottom, found.scale[done], question.piece.grid))
    lower, upper = np.maximum(ends[0], system.lower[cells]), np.minimum(ends[1], system.upper[cells])
    kept.put(cells, lower, upper)
    kept.save()


def values_at(truth: Integers, top: Integers, bottom: Integers, divisor: Integers, grid: int) -> Floats:
    """`truth + top / (bottom · divisor · grid)`, correctly rounded; infinite where the bottom is 0."""
    out = (truth + top).astype(np.float64)
    out[bottom == 0] = np.sign(top[bottom == 0]) * np.inf
    for i in np.flatnonzero((bottom > 0) & ((bottom > 1) | (divisor > 1) | (grid > 1))).tolist():
        whole = int(bottom[i]) * int(divisor[i]) * grid
        out[i] = (int(truth[i]) * whole + int(top[i])) / whole
    return out
