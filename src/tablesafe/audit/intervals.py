"""The exact interval of every unknown cell: what an attacker can derive from all that is published, at once.

The ends of every cell of a rectangle with known margins, in closed form.

In a rectangle all of whose cells are unknown, a cell with row sum r, column sum c and total N lies between max(0, r +
c − N) and min(r, c), and reaches both (Fréchet 1940; Dobra & Fienberg, PNAS 97 (2000), 11885–11892). Here sums are
counted from the lower bounds of the cells, and no upper bound may be tighter than the margins are.

A file that lets an interrupted audit go on where it stopped.

It holds intervals, so it is as confidential as the table: only its owner may read it, and it is removed when the
audit is done. It is bound to one question by a hash and written whole or not at all.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.system import Piece, Shape, System
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import Interrupted, InvalidFile, OutOfTime
from tablesafe.files.write import whole_file
from tablesafe.solve.exact.extremes import CHUNK, PER_SIDE_AND_FORM_S, HardPart, easy_ends, finish, hard_parts
from tablesafe.solve.exact.ranges import Ranges
from tablesafe.solve.propagate import EXACT, are_points
from tablesafe.work.budget import ENDLESS, Budget
from tablesafe.work.executor import spread

EVERY_S = 15.0
"""Seconds between two saves."""


class Checkpoint:
    """Which unknown cells are finished, and their intervals."""

    def __init__(self, path: str | Path | None, system: System) -> None:
        self._path = None if path is None else Path(path)
        self._digest = "" if path is None else digest(system)
        self._saved = time.monotonic()
        self.done: Mask = np.zeros(len(system), dtype=np.bool_)
        self.lower: Floats = np.full(len(system), np.nan)
        self.upper: Floats = np.full(len(system), np.nan)
        if self._path is not None and self._path.exists():
            self._load(self._path)

    def _load(self, path: Path) -> None:
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                belongs = str(file["digest"]) == self._digest
                cells, lower, upper = file["cells"], file["lower"], file["upper"]
                n = len(self.done)
                if not (cells.dtype.kind == "i" and cells.shape == lower.shape == upper.shape == (len(cells),)):
                    raise ValueError("the arrays differ in length")
                if len(cells) and not (cells.min() >= 0 and cells.max() < n):
                    raise ValueError("there is no such cell")
                lower, upper = lower.astype(np.float64, casting="safe"), upper.astype(np.float64, casting="safe")
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:  # a damaged archive fails in many ways
            raise InvalidFile(f"{path.name!r} is not a checkpoint of an audit.", hint="remove it.") from error
        if not belongs:
            raise InvalidFile(
                f"The checkpoint {path.name!r} belongs to another audit: table, release or bounds differ.",
                hint="remove it, or name another file.",
            )
        self.put(cells, lower, upper)

    def put(self, cells: NDArray[np.intp], lower: Floats, upper: Floats) -> None:
        """These cells are finished."""
        self.done[cells] = True
        self.lower[cells], self.upper[cells] = lower, upper

    def save(self, *, now: bool = False) -> None:
        """Write the file, if it is time."""
        if self._path is None or (not now and time.monotonic() - self._saved < EVERY_S):
            return
        cells = np.flatnonzero(self.done)
        name, lower, upper = np.array(self._digest), self.lower[cells], self.upper[cells]
        with whole_file(self._path, private=True) as temporary, temporary.open("wb") as file:
            np.savez(file, digest=name, cells=cells, lower=lower, upper=upper)
        self._saved = time.monotonic()

    def remove(self) -> None:
        """The audit is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def digest(system: System) -> str:
    """A hash of everything that an interval depends on."""
    state = hashlib.sha256()
    matrix = system.matrix.tocsr()
    for array in (matrix.indptr, matrix.indices, matrix.data, system.lower, system.upper, system.truth):
        state.update(str(array.dtype).encode() + np.ascontiguousarray(array).tobytes())
    return state.hexdigest()


# -- a rectangle -------------------------------------------------------------------------------------------------------


def rectangle_ends(matrix: sparse.csr_array, lower: Floats, upper: Floats) -> tuple[Integers, Integers] | None:
    """The least and the greatest of each unknown of `matrix @ x = 0`; None if it is no rectangle, or bounds interfere.

    Bounds are whole numbers, or infinite.
    """
    sides = _sides(matrix)
    if sides is None or not bool((np.abs(lower).sum() < EXACT) and np.isfinite(lower).all()):
        return None
    row, column = sides
    r, c, total = np.bincount(row, -lower)[row], np.bincount(column, -lower)[column], -float(lower.sum())
    least, most = np.maximum(0.0, r + c - total), np.minimum(r, c)
    if bool((upper - lower < most).any()):
        return None
    return (lower + least).astype(np.int64), (lower + most).astype(np.int64)


def _sides(matrix: sparse.csr_array) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """For each unknown its row and its column in the rectangle; None if the equations are not those of one."""
    columns = matrix.tocsc()
    m, n = columns.shape
    if n == 0 or m < 2 or not bool((np.diff(columns.indptr) == 2).all() and (columns.data == columns.data[0]).all()):
        return None
    if abs(int(columns.data[0])) != 1:
        return None
    one, other = columns.indices[::2], columns.indices[1::2]
    is_row = np.zeros(m, dtype=np.bool_)  # the equations that share an unknown with the first unknown's second one
    crossing = (one == other[0]) | (other == other[0])
    is_row[np.where(one[crossing] == other[0], other[crossing], one[crossing])] = True
    row, column = np.where(is_row[one], one, other), np.where(is_row[one], other, one)
    rows = int(is_row.sum())
    if bool((is_row[one] == is_row[other]).any()) or rows * (m - rows) != n or len(np.unique(row * m + column)) != n:
        return None
    return row.astype(np.intp), column.astype(np.intp)


# -- all unknown cells -------------------------------------------------------------------------------------------------


Progress = Callable[[float], None]
"""Told the share of the work that is done, from 0 to 1."""

HOPELESS = 20.0
"""How many times the time that is left a solver would need where it is not worth beginning; much may be easy."""
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
class PieceAsked:
    """A piece and which of its cells (positions within it) are asked for; can be sent to another process."""

    piece: Piece
    wanted: NDArray[np.intp]
    budget: Budget = ENDLESS


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
    budget: Budget = ENDLESS,
) -> Intervals:
    """The exact minimum and maximum of each wanted unknown (all by default) over all that the attacker cannot rule out.

    The answer is the same with any executor, and is kept with the system for whoever asks again. A `checkpoint` file
    keeps what is finished, for a run that is interrupted; it is confidential, and removed at the end. When the budget
    is over before that, it is an error.
    """
    wanted = np.arange(len(system)) if wanted is None else np.asarray(wanted, dtype=np.intp)
    lower, upper = system.derived
    asked = np.unique(wanted[np.isnan(lower[wanted])])
    if asked.size:
        kept = Checkpoint(checkpoint, system)
        left = np.setdiff1d(asked, np.flatnonzero(kept.done))
        try:
            _find(system, left, kept, executor, progress or (lambda share: None), budget)
        except KeyboardInterrupt as stop:
            kept.save(now=True)
            raise Interrupted("The audit was interrupted; nothing was written.") from stop
        except BaseException:
            kept.save(now=True)
            raise
        kept.remove()
        lower[asked], upper[asked] = kept.lower[asked], kept.upper[asked]
    return Intervals(lower[wanted], upper[wanted])


def _find(
    system: System,
    wanted: NDArray[np.intp],
    kept: Checkpoint,
    executor: Executor | None,
    report: Progress,
    budget: Budget,
) -> None:
    """First everything that is easy, piece by piece; then what is hard, in chunks."""
    known = system.truth[wanted].astype(np.float64)
    kept.put(wanted, known, known)  # what stands in no piece cannot move
    kept.done[wanted] = False
    hard: list[tuple[PieceAsked, Found]] = []
    for question, found in _easy(system, wanted, executor, report, budget):
        _keep(system, kept, question, found)
        if found.left.size:
            hard.append((question, found))
    tasks = [(at, task) for at, (_, found) in enumerate(hard) for task in _tasks(found, budget)]
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


def _tasks(found: Found, budget: Budget) -> Iterator[HardPart]:
    if found.shape is not None:
        yield from hard_parts(found.shape.polytope, found.shape.part, found.ranges, found.left, CHUNK, budget)


def _easy(
    system: System, wanted: NDArray[np.intp], executor: Executor | None, report: Progress, budget: Budget
) -> Iterator[tuple[PieceAsked, Found]]:
    """What the search from the truth finds in each piece that has wanted cells."""
    position = np.full(len(system), -1)
    position[wanted] = np.arange(len(wanted))
    questions = (PieceAsked(piece, np.flatnonzero(position[piece.cells] >= 0), budget) for piece in system.pieces)
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


def hopeless(asked: int, cells: int, seconds: float) -> bool:
    """Whether there is far too little time for the intervals of so many cells of a piece."""
    return PER_SIDE_AND_FORM_S * 2 * asked * cells > HOPELESS * seconds


def look(question: PieceAsked) -> Found:
    """Search a piece from the truth, unless a closed form knows its ends."""
    piece = question.piece
    question.budget.check()
    if are_points(piece.matrix, piece.lower, piece.upper):
        ends: tuple[Integers, Integers] | None = piece.lower.astype(np.int64), piece.upper.astype(np.int64)
    else:
        ends = rectangle_ends(piece.matrix, piece.lower, piece.upper)
    if ends is not None:
        return _known(ends[0][question.wanted], ends[1][question.wanted])
    if hopeless(len(question.wanted), len(piece), question.budget.left):
        raise OutOfTime("The time given is far too short for so many exact intervals.", hint="raise time_limit_s.")
    shape = piece.shape
    form, divisor = shape.form[question.wanted], shape.divisor[question.wanted]
    upper = np.where(form < 0, -1, 2 * form + (divisor < 0))
    lower = np.where(form < 0, -1, 2 * form + (divisor > 0))
    asked = np.unique(np.concatenate([upper, lower])[np.concatenate([form, form]) >= 0])
    ranges, left = easy_ends(shape.polytope, shape.part, asked, question.budget)
    return Found(shape if left.size else None, ranges, left, np.column_stack([upper, lower]), np.abs(divisor))


def _known(lower: Integers, upper: Integers) -> Found:
    """Ends that need no search."""
    n = len(lower)
    ends = np.column_stack([upper, -lower]).ravel()
    ranges = Ranges(np.ones(2 * n, np.bool_), ends, np.ones(2 * n, np.int64))
    return Found(None, ranges, np.zeros(0, np.int64), np.arange(2 * n).reshape(n, 2), np.ones(n, np.int64))


def _keep(system: System, kept: Checkpoint, question: PieceAsked, found: Found) -> None:
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
