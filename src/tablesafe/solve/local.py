"""The range of one sum, by a simplex method that starts at the truth and stays in its neighbourhood.

The truth lies inside the polytope, so no first phase is needed; and what limits one cell of a table is a handful of
others nearby, so only what the search touches is ever looked at: the cost of an answer depends on its neighbourhood,
not on the size of the table. Instead of a basis of the whole program the method keeps the inverse of a small matrix:
the *active* rows (held at a bound) by the *basic* columns (that give way to hold them there).

Floats are used on the way. What is returned counts only after `tablesafe.solve.proof` has checked it in integers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tablesafe.equations import Floats, Integers, Mask
from tablesafe.solve.polytope import Polytope

OPTIMAL, UNBOUNDED, GAVE_UP, REACHED = 0, 1, 2, 3
"""How a search ended: at the optimum, on a ray, out of budget, or as far as was asked."""

CAPACITY = 256
"""Active rows before the search gives up: beyond, a sparse solver is faster."""

STALLED = 30
"""Steps of length zero before the rule of least index takes over, which cannot cycle."""

_COST = 1e-7
_ZERO = 1e-9
_TIE = 1e-12
_ACTIVE, _LISTED, _TOUCHED, _STALL, _MOVER, _SENSE = range(6)
_ITSELF, _NOTHING = -1, -2


class Search(NamedTuple):
    """The state of a search: a point, the small inverse, and scratch space that is clean between searches."""

    value: Floats
    """Every form at the current point; zero at the truth."""
    place: Integers
    """Where a basic column or an active row stands in the small inverse; −1 elsewhere."""
    at_upper: Mask
    """Whether an active row is held at its upper bound."""
    basic: Integers
    active: Integers
    inverse: Floats
    dual: Floats
    """The price of each active row."""
    step: Floats
    """How the basic columns move."""
    entering: Floats
    leaving: Floats
    norm: Floats
    slope: Floats
    """While pricing, the gradient along each column; while moving, how fast each row moves."""
    listed: Integers
    """Where the slope is not zero."""
    is_listed: Mask
    touched: Integers
    is_touched: Mask
    count: NDArray[np.int64]
    """Lengths of the lists above, steps of length zero in a row, and what moves without end."""

    @classmethod
    def over(cls, polytope: Polytope, capacity: int = CAPACITY) -> Search:
        """A search that stands at the truth."""
        k, forms = polytope.columns, polytope.forms
        m, s = forms - k, min(capacity, forms - k, k) + 1
        return cls(
            np.zeros(forms), np.full(forms, -1), np.zeros(m, np.bool_), np.zeros(s, np.int64), np.zeros(s, np.int64),
            np.zeros((s, s)), np.zeros(s), np.zeros(s), np.zeros(s), np.zeros(s), np.zeros(s),
            np.zeros(forms), np.zeros(forms, np.int64), np.zeros(forms, np.bool_),
            np.zeros(forms, np.int64), np.zeros(forms, np.bool_), np.zeros(6, np.int64),
        )  # fmt: skip


@njit(cache=True)
def maximise(p: Polytope, s: Search, form: int, sign: float, enough: float, budget: float) -> int:
    """Push `sign * form` up from the truth until it can go no further, or is at least `enough`.

    `budget` bounds the work, in elementary steps. The answer stands in `s`; `clear` must follow.
    """
    work = 0.0
    while True:
        if sign * s.value[form] >= enough:
            return REACHED
        if work > budget:
            return GAVE_UP
        _price(p, s, form, sign)
        column, row = _choose(p, s)
        if column < 0 and row < 0:
            return OPTIMAL
        sense = _direct(p, s, column, row)
        length, leaving, upward = _ratio(p, s, column, row, sense)
        if leaving == _NOTHING:
            s.count[_MOVER], s.count[_SENSE] = column, np.int64(sense)
            return UNBOUNDED
        _move(p, s, column, row, sense, length)
        s.count[_STALL] = s.count[_STALL] + 1 if length <= 0.0 else 0
        size = s.count[_ACTIVE]
        work += 4.0 * size * size + 4.0 * s.count[_LISTED] + 50.0
        if leaving == _ITSELF:
            _flip(p, s, column, row, sense)
        elif not _exchange(p, s, column, row, leaving, upward):
            return GAVE_UP


@njit(cache=True)
def here(p: Polytope, s: Search, columns: Integers, values: Floats) -> int:
    """The columns that are not at the truth, and their values; returns how many there are."""
    k, n = len(p.column_start) - 1, 0
    for i in range(s.count[_TOUCHED]):
        if s.touched[i] < k:
            columns[n], values[n] = s.touched[i], s.value[s.touched[i]]
            n += 1
    return n


@njit(cache=True)
def ray(s: Search, columns: Integers, values: Floats) -> int:
    """The columns that move without end after a search that found no limit, and their speeds; returns how many."""
    n = 0
    for i in range(s.count[_ACTIVE]):
        if abs(s.step[i]) > _ZERO:
            columns[n], values[n] = s.basic[i], s.step[i]
            n += 1
    if s.count[_MOVER] >= 0:
        columns[n], values[n] = s.count[_MOVER], float(s.count[_SENSE])
        n += 1
    return n


@njit(cache=True)
def _price(p: Polytope, s: Search, form: int, sign: float) -> None:
    """Prices of the active rows, and the gradient along every column that has one."""
    k, size = len(p.column_start) - 1, s.count[_ACTIVE]
    s.count[_LISTED] = 0
    for j in range(size):
        s.dual[j] = 0.0
    if form < k:
        _price_term(s, form, sign, size)
    else:
        for z in range(p.row_start[form - k], p.row_start[form - k + 1]):
            _price_term(s, p.row_column[z], sign * p.row_value[z], size)
    for j in range(size):
        y = s.dual[j]
        if y != 0.0:
            row = s.active[j]
            for z in range(p.row_start[row], p.row_start[row + 1]):
                _add_slope(s, p.row_column[z], -y * p.row_value[z])


@njit(cache=True)
def _price_term(s: Search, column: int, cost: float, size: int) -> None:
    """Add one term of the objective to the prices and the gradient."""
    _add_slope(s, column, cost)
    at = s.place[column]
    if at >= 0:
        for j in range(size):
            s.dual[j] += cost * s.inverse[at, j]


@njit(cache=True)
def _add_slope(s: Search, form: int, by: float) -> None:
    if not s.is_listed[form]:
        s.is_listed[form] = True
        s.slope[form] = 0.0
        s.listed[s.count[_LISTED]] = form
        s.count[_LISTED] += 1
    s.slope[form] += by


@njit(cache=True)
def _choose(p: Polytope, s: Search) -> tuple[int, int]:
    """What shall move: a column, or the place of an active row that leaves its bound; −1 and −1 at the optimum."""
    least_index = s.count[_STALL] > STALLED
    column, row, best = -1, -1, 0.0
    for i in range(s.count[_LISTED]):
        q = s.listed[i]
        s.is_listed[q] = False
        g = s.slope[q]
        if s.place[q] < 0 and ((g > _COST and s.value[q] < p.upper[q]) or (g < -_COST and s.value[q] > p.lower[q])):
            score = abs(g) * p.weight[q]
            if (least_index and (column < 0 or q < column)) or (not least_index and score > best):
                column, best = q, score
    if least_index and column >= 0:
        return column, -1
    size = s.count[_ACTIVE]
    _norms(s, size)
    for j in range(size):
        y = s.dual[j]
        if (y < -_COST) if s.at_upper[s.active[j]] else (y > _COST):
            score = abs(y) / np.sqrt(s.norm[j])
            if (least_index and (row < 0 or s.active[j] < s.active[row])) or (not least_index and score > best):
                column, row, best = -1, j, score
    return column, row


@njit(cache=True)
def _norms(s: Search, size: int) -> None:
    """How far the basic columns move when an active row does: makes rows comparable with columns."""
    for j in range(size):
        s.norm[j] = 1.0
    for i in range(size):
        for j in range(size):
            s.norm[j] += s.inverse[i, j] * s.inverse[i, j]


@njit(cache=True)
def _direct(p: Polytope, s: Search, column: int, row: int) -> float:
    """How the basic columns must move along; returns the sense in which the column or the row moves."""
    size = s.count[_ACTIVE]
    if column < 0:
        sense = -1.0 if s.at_upper[s.active[row]] else 1.0
        for i in range(size):
            s.step[i] = sense * s.inverse[i, row]
        return sense
    sense = 1.0 if s.slope[column] > 0.0 else -1.0
    k = len(p.column_start) - 1
    for j in range(size):
        s.leaving[j] = 0.0
    for z in range(p.column_start[column], p.column_start[column + 1]):
        at = s.place[k + p.column_row[z]]
        if at >= 0:
            s.leaving[at] = p.column_value[z]
    for i in range(size):
        x = 0.0
        for j in range(size):
            x += s.inverse[i, j] * s.leaving[j]
        s.entering[i] = x
        s.step[i] = -sense * x
    return sense


@njit(cache=True)
def _ratio(p: Polytope, s: Search, column: int, row: int, sense: float) -> tuple[float, int, bool]:
    """How far the move can go, what stops it (a form, the mover itself, nothing), and at which bound."""
    k, size = len(p.column_start) - 1, s.count[_ACTIVE]
    least_index = s.count[_STALL] > STALLED
    s.count[_LISTED] = 0
    if column >= 0:
        length = p.upper[column] - s.value[column] if sense > 0.0 else s.value[column] - p.lower[column]
        _add_column(p, s, column, sense)
    else:
        form = k + s.active[row]
        length = p.upper[form] - p.lower[form]
    leaving = _ITSELF if length < np.inf else _NOTHING
    upward, pivot = sense > 0.0, np.inf
    for i in range(size):
        if abs(s.step[i]) > _ZERO:
            form = s.basic[i]
            _add_column(p, s, form, s.step[i])
            length, leaving, upward, pivot = _tighter(
                p, s, form, s.step[i], length, leaving, upward, pivot, least_index
            )
    for i in range(s.count[_LISTED]):
        form = s.listed[i]
        s.is_listed[form] = False
        if s.place[form] < 0 and abs(s.slope[form]) > _ZERO:
            length, leaving, upward, pivot = _tighter(
                p, s, form, s.slope[form], length, leaving, upward, pivot, least_index
            )
    return max(length, 0.0), leaving, upward


@njit(cache=True)
def _add_column(p: Polytope, s: Search, column: int, by: float) -> None:
    """Add what a moving column does to the rows."""
    k = len(p.column_start) - 1
    for z in range(p.column_start[column], p.column_start[column + 1]):
        _add_slope(s, k + p.column_row[z], by * p.column_value[z])


@njit(cache=True)
def _tighter(
    p: Polytope, s: Search, form: int, speed: float,
    length: float, leaving: int, upward: bool, pivot: float, least_index: bool,
) -> tuple[float, int, bool, float]:  # fmt: skip
    """The stricter of the limit so far and that of one more form; ties go to the larger pivot, or the lesser index."""
    room = p.upper[form] - s.value[form] if speed > 0.0 else s.value[form] - p.lower[form]
    limit = room / abs(speed)
    slack = _TIE * max(1.0, abs(length)) if length < np.inf else 0.0
    better = limit < length - slack
    if not better and limit <= length + slack and leaving >= 0:
        better = form < leaving if least_index else abs(speed) > pivot
    if better:
        return limit, form, speed > 0.0, abs(speed)
    return length, leaving, upward, pivot


@njit(cache=True)
def _move(p: Polytope, s: Search, column: int, row: int, sense: float, length: float) -> None:
    """Go there."""
    k = len(p.column_start) - 1
    if column >= 0:
        _shift(s, column, sense * length)
    else:
        _shift(s, k + s.active[row], sense * length)
    for i in range(s.count[_ACTIVE]):
        if abs(s.step[i]) > _ZERO:
            _shift(s, s.basic[i], s.step[i] * length)
    for i in range(s.count[_LISTED]):
        form = s.listed[i]
        if s.place[form] < 0 and abs(s.slope[form]) > _ZERO:
            _shift(s, form, s.slope[form] * length)


@njit(cache=True)
def _shift(s: Search, form: int, by: float) -> None:
    if not s.is_touched[form]:
        s.is_touched[form] = True
        s.touched[s.count[_TOUCHED]] = form
        s.count[_TOUCHED] += 1
    s.value[form] += by


@njit(cache=True)
def _flip(p: Polytope, s: Search, column: int, row: int, sense: float) -> None:
    """What moved went all the way to its own other bound: nothing else changes."""
    form = column if column >= 0 else len(p.column_start) - 1 + s.active[row]
    s.value[form] = p.upper[form] if sense > 0.0 else p.lower[form]
    if column < 0:
        s.at_upper[s.active[row]] = sense > 0.0


@njit(cache=True)
def _exchange(p: Polytope, s: Search, column: int, row: int, leaving: int, upward: bool) -> bool:
    """Bring the small inverse up to date; false when there is no room for it."""
    k = len(p.column_start) - 1
    s.value[leaving] = p.upper[leaving] if upward else p.lower[leaving]
    if leaving >= k:
        s.at_upper[leaving - k] = upward
        pivot = _read_row(p, s, leaving - k, column)
        if column >= 0:
            return _grow(s, column, leaving, pivot, k)
        _replace_row(s, row, leaving, k)
    elif column >= 0:
        _replace_column(s, s.place[leaving], column)
    else:
        _shrink(s, s.place[leaving], row, k)
    return True


@njit(cache=True)
def _read_row(p: Polytope, s: Search, row: int, column: int) -> float:
    """A row times the inverse, into `s.leaving`; returns its coefficient at the entering column."""
    size = s.count[_ACTIVE]
    pivot = 0.0
    for j in range(size):
        s.leaving[j] = 0.0
    for z in range(p.row_start[row], p.row_start[row + 1]):
        q = p.row_column[z]
        at = s.place[q]
        if at >= 0:
            x = p.row_value[z]
            pivot -= x * s.entering[at]
            for j in range(size):
                s.leaving[j] += x * s.inverse[at, j]
        elif q == column:
            pivot += p.row_value[z]
    return pivot


@njit(cache=True)
def _grow(s: Search, column: int, form: int, pivot: float, k: int) -> bool:
    """A column becomes basic and a row active: border the inverse."""
    size = s.count[_ACTIVE]
    if size >= len(s.basic) - 1:
        return False
    for i in range(size):
        f = s.entering[i] / pivot
        if f != 0.0:
            for j in range(size):
                s.inverse[i, j] += f * s.leaving[j]
        s.inverse[i, size] = -f
    for j in range(size):
        s.inverse[size, j] = -s.leaving[j] / pivot
    s.inverse[size, size] = 1.0 / pivot
    s.basic[size], s.place[column] = column, size
    s.active[size], s.place[form] = form - k, size
    s.count[_ACTIVE] = size + 1
    return True


@njit(cache=True)
def _replace_row(s: Search, row: int, form: int, k: int) -> None:
    """One row becomes active instead of another."""
    size, pivot = s.count[_ACTIVE], s.leaving[row]
    for i in range(size):
        x = s.inverse[i, row] / pivot
        s.inverse[i, row] = x
        if x != 0.0:
            for j in range(size):
                if j != row:
                    s.inverse[i, j] -= s.leaving[j] * x
    s.place[k + s.active[row]] = -1
    s.active[row], s.place[form] = form - k, row


@njit(cache=True)
def _replace_column(s: Search, at: int, column: int) -> None:
    """One column becomes basic instead of another."""
    size, pivot = s.count[_ACTIVE], s.entering[at]
    for j in range(size):
        s.inverse[at, j] /= pivot
    for i in range(size):
        x = s.entering[i]
        if i != at and x != 0.0:
            for j in range(size):
                s.inverse[i, j] -= x * s.inverse[at, j]
    s.place[s.basic[at]] = -1
    s.basic[at], s.place[column] = column, at


@njit(cache=True)
def _shrink(s: Search, at: int, row: int, k: int) -> None:
    """A basic column stops at its bound and an active row is let go: both leave the inverse."""
    size, pivot = s.count[_ACTIVE], s.inverse[at, row]
    for i in range(size):
        x = s.inverse[i, row] / pivot
        if i != at and x != 0.0:
            for j in range(size):
                if j != row:
                    s.inverse[i, j] -= x * s.inverse[at, j]
    last = size - 1
    s.place[s.basic[at]] = -1
    s.place[k + s.active[row]] = -1
    if at != last:
        s.basic[at] = s.basic[last]
        s.place[s.basic[at]] = at
        for j in range(size):
            s.inverse[at, j] = s.inverse[last, j]
    if row != last:
        s.active[row] = s.active[last]
        s.place[k + s.active[row]] = row
        for i in range(size):
            s.inverse[i, row] = s.inverse[i, last]
    s.count[_ACTIVE] = last


@njit(cache=True)
def clear(p: Polytope, s: Search) -> None:
    """Back to the truth."""
    k = len(p.column_start) - 1
    for i in range(s.count[_TOUCHED]):
        form = s.touched[i]
        s.value[form] = 0.0
        s.is_touched[form] = False
    for i in range(s.count[_ACTIVE]):
        s.place[s.basic[i]] = -1
        s.place[k + s.active[i]] = -1
    for i in range(len(s.count)):
        s.count[i] = 0
