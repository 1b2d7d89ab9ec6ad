"""The range of one sum, by a simplex method that starts at the truth and stays in its neighbourhood.

The truth lies inside the polytope, so no first phase is needed; and what limits one cell of a table is a handful of
others nearby, so only what the search touches is ever looked at: the cost of an answer depends on its neighbourhood,
not on the size of the table. Instead of a basis of the whole program the method keeps the inverse of a small matrix:
the *active* rows (held at a bound) by the *basic* columns (that give way to hold them there).

Floats are used on the way. What is returned counts only after `tablesafe.solve.exact.proof` has checked it in integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.work.compiled import compiled

if TYPE_CHECKING:
    from tablesafe.solve.exact.polytope import Polytope

OPTIMAL, UNBOUNDED, GAVE_UP, REACHED = 0, 1, 2, 3
"""How a search ended: at the optimum, on a ray, out of budget, or as far as was asked."""

CAPACITY = 256
"""Active rows before the search gives up: beyond, a sparse solver is faster."""

STALLED = 30
"""Steps of length zero before the rule of least index takes over, which cannot cycle."""

_COST, _ZERO, _TIE = 1e-7, 1e-9, 1e-12
"""Reduced costs that improve, entries that are none, and lengths of a step that are equal."""
_ACTIVE, _PRICED, _MOVING, _TOUCHED, _STALL, _MOVER, _SENSE, _WORK = range(8)
"""Places in the numbers of a state: how many of each there are, who moves and which way, and the work done."""
_ITSELF, _NOTHING = -1, -2
"""What stops a step, where no row does: the other bound of what moves, or nothing."""


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
    """One row per active row, one column per basic column."""
    dual: Floats
    """The price of each active row."""
    step: Floats
    """How the basic columns move."""
    entering: Floats
    leaving: Floats
    slope: Floats
    """The gradient along each column, and how fast each row moves."""
    priced: Integers
    """Columns with a gradient."""
    moving: Integers
    """Rows that move."""
    is_listed: Mask
    touched: Integers
    is_touched: Mask
    sizes: Integers
    """Lengths of the lists above, steps of length zero in a row, what moves without end, and work done."""

    @classmethod
    def over(cls, polytope: Polytope, capacity: int = CAPACITY) -> Search:
        """A search that stands at the truth."""
        k, forms = polytope.columns, polytope.forms
        m, s = forms - k, min(capacity, forms - k, k) + 1
        return cls(
            np.zeros(forms), np.full(forms, -1), np.zeros(m, np.bool_), np.zeros(s, np.int64), np.zeros(s, np.int64),
            np.zeros((s, s)), np.zeros(s), np.zeros(s), np.zeros(s), np.zeros(s),
            np.zeros(forms), np.zeros(k, np.int64), np.zeros(m, np.int64), np.zeros(forms, np.bool_),
            np.zeros(forms, np.int64), np.zeros(forms, np.bool_), np.zeros(8, np.int64),
        )  # fmt: skip


@compiled
def maximise(p: Polytope, s: Search, form: int, sign: float, enough: float, budget: float) -> int:
    """Push `sign * form` up from the truth until it can go no further, or is at least `enough`.

    `budget` bounds the work, in elementary steps. The answer stands in `s`; `clear` must follow.
    """
    stale = True
    while True:
        if sign * s.value[form] >= enough:
            return REACHED
        if s.sizes[_WORK] > budget:
            return GAVE_UP
        if stale:
            _price(p, s, form, sign)
        column, row = _choose(p, s)
        if column < 0 and row < 0:
            return OPTIMAL
        sense = _direct(p, s, column, row)
        _spread(p, s, column, sense)
        length, leaving, upward = _ratio(p, s, column, row, sense)
        if leaving == _NOTHING and enough == np.inf:
            s.sizes[_MOVER], s.sizes[_SENSE] = column, int(sense)
            return UNBOUNDED
        if leaving == _NOTHING:
            length = np.ceil((enough - sign * s.value[form]) / _speed(p, s, form, column, sense))
        _move(p, s, column, row, sense, length)
        if leaving == _NOTHING:
            return REACHED
        s.sizes[_STALL] = s.sizes[_STALL] + 1 if length <= 0.0 else 0
        stale = leaving != _ITSELF  # otherwise all prices stay as they are
        if not stale:
            _flip(p, s, column, row, sense)
        elif not _exchange(p, s, column, row, leaving, upward):
            return GAVE_UP


@compiled
def here(p: Polytope, s: Search, columns: Integers, values: Floats) -> int:
    """The columns that are not at the truth, and their values; returns how many there are."""
    k, n = len(p.column_start) - 1, 0
    for i in range(s.sizes[_TOUCHED]):
        if s.touched[i] < k:
            columns[n], values[n] = s.touched[i], s.value[s.touched[i]]
            n += 1
    return n


@compiled
def ray(s: Search, columns: Integers, values: Floats) -> int:
    """The columns that move without end after a search that found no limit, and their speeds; returns how many."""
    n = 0
    for i in range(s.sizes[_ACTIVE]):
        if abs(s.step[i]) > _ZERO:
            columns[n], values[n] = s.basic[i], s.step[i]
            n += 1
    if s.sizes[_MOVER] >= 0:
        columns[n], values[n] = s.sizes[_MOVER], float(s.sizes[_SENSE])
        n += 1
    return n


@compiled
def _price(p: Polytope, s: Search, form: int, sign: float) -> None:
    """Prices of the active rows, and the gradient along every column that has one."""
    k, size, n = len(p.column_start) - 1, s.sizes[_ACTIVE], 0
    slope, listed, is_listed, dual, inverse = s.slope, s.priced, s.is_listed, s.dual, s.inverse
    for j in range(size):
        dual[j] = 0.0
    begin, end = (0, 1) if form < k else (p.row_start[form - k], p.row_start[form - k + 1])
    for z in range(begin, end):
        column, cost = (form, sign) if form < k else (p.row_column[z], sign * p.row_value[z])
        n = _add_slope(slope, listed, is_listed, n, column, cost)
        at = s.place[column]
        if at >= 0:
            for j in range(size):
                dual[j] += cost * inverse[j, at]
    for j in range(size):
        y = dual[j]
        if y != 0.0:
            for z in range(p.row_start[s.active[j]], p.row_start[s.active[j] + 1]):
                n = _add_slope(slope, listed, is_listed, n, p.row_column[z], -y * p.row_value[z])
            s.sizes[_WORK] += p.row_start[s.active[j] + 1] - p.row_start[s.active[j]]
    for i in range(n):
        is_listed[listed[i]] = False
    s.sizes[_PRICED] = n


@compiled
def _add_slope(slope: Floats, listed: Integers, is_listed: Mask, n: int, form: int, by: float) -> int:
    """Add to the slope of one form; returns how many are listed. Takes arrays, not the search: it must be inlined."""
    if not is_listed[form]:
        is_listed[form] = True
        slope[form] = 0.0
        listed[n] = form
        n += 1
    slope[form] += by
    return n


@compiled
def _choose(p: Polytope, s: Search) -> tuple[int, int]:
    """What shall move: a column, or the place of an active row that leaves its bound; −1 and −1 at the optimum."""
    least_index = s.sizes[_STALL] > STALLED
    column, row, best = -1, -1, 0.0
    for i in range(s.sizes[_PRICED]):
        q = s.priced[i]
        g = s.slope[q]
        if s.place[q] < 0 and ((g > _COST and s.value[q] < p.upper[q]) or (g < -_COST and s.value[q] > p.lower[q])):
            score = abs(g) * p.weight[q]
            if (least_index and (column < 0 or q < column)) or (not least_index and score > best):
                column, best = q, score
    if least_index and column >= 0:
        return column, -1
    for j in range(s.sizes[_ACTIVE]):
        y = s.dual[j]
        if (y < -_COST) if s.at_upper[s.active[j]] else (y > _COST):
            score = abs(y) / _norm(s, j)
            if (least_index and (row < 0 or s.active[j] < s.active[row])) or (not least_index and score > best):
                column, row, best = -1, j, score
    return column, row


@compiled
def _norm(s: Search, row: int) -> float:
    """How far everything moves when an active row moves by 1: makes rows comparable with columns."""
    total = 1.0
    for i in range(s.sizes[_ACTIVE]):
        total += s.inverse[row, i] * s.inverse[row, i]
    return float(np.sqrt(total))


@compiled
def _direct(p: Polytope, s: Search, column: int, row: int) -> float:
    """How the basic columns must move along; returns the sense in which the column or the row moves."""
    size = s.sizes[_ACTIVE]
    if column < 0:
        sense = -1.0 if s.at_upper[s.active[row]] else 1.0
        for i in range(size):
            s.step[i] = sense * s.inverse[row, i]
        return sense
    sense = 1.0 if s.slope[column] > 0.0 else -1.0
    k = len(p.column_start) - 1
    for i in range(size):
        s.entering[i] = 0.0
    for z in range(p.column_start[column], p.column_start[column + 1]):
        at = s.place[k + p.column_row[z]]
        if at >= 0:
            for i in range(size):
                s.entering[i] += p.column_value[z] * s.inverse[at, i]
    for i in range(size):
        s.step[i] = -sense * s.entering[i]
    return sense


@compiled
def _spread(p: Polytope, s: Search, column: int, sense: float) -> None:
    """How fast every row moves."""
    k, n = len(p.column_start) - 1, 0
    slope, listed, is_listed = s.slope, s.moving, s.is_listed
    for i in range(-1, s.sizes[_ACTIVE]):
        q, by = (column, sense) if i < 0 else (s.basic[i], s.step[i])
        if q >= 0 and abs(by) > _ZERO:
            for z in range(p.column_start[q], p.column_start[q + 1]):
                n = _add_slope(slope, listed, is_listed, n, k + p.column_row[z], by * p.column_value[z])
            s.sizes[_WORK] += p.column_start[q + 1] - p.column_start[q]
    for i in range(n):
        is_listed[listed[i]] = False
    s.sizes[_MOVING] = n
    size = s.sizes[_ACTIVE]
    s.sizes[_WORK] += size * size + s.sizes[_PRICED] + 2 * n + 20


@compiled
def _ratio(p: Polytope, s: Search, column: int, row: int, sense: float) -> tuple[float, int, bool]:
    """How far the move can go, what stops it (a form, the mover itself, nothing), and at which bound.

    Among equal limits the largest pivot wins, or, against cycling, the least index.
    """
    k, size = len(p.column_start) - 1, s.sizes[_ACTIVE]
    value, lower, upper, place = s.value, p.lower, p.upper, s.place
    least_index = s.sizes[_STALL] > STALLED
    if column >= 0:
        length = upper[column] - value[column] if sense > 0.0 else value[column] - lower[column]
    else:
        length = upper[k + s.active[row]] - lower[k + s.active[row]]
    leaving = _ITSELF if length < np.inf else _NOTHING
    upward, pivot = sense > 0.0, np.inf
    for i in range(size + s.sizes[_MOVING]):
        form = s.basic[i] if i < size else s.moving[i - size]
        speed = s.step[i] if i < size else s.slope[form]
        if abs(speed) <= _ZERO or (i >= size and place[form] >= 0):
            continue
        limit = (upper[form] - value[form] if speed > 0.0 else value[form] - lower[form]) / abs(speed)
        slack = _TIE * max(1.0, abs(length)) if length < np.inf else 0.0
        better = limit < length - slack
        if not better and limit <= length + slack and leaving >= 0:
            better = form < leaving if least_index else abs(speed) > pivot
        if better:
            length, leaving, upward, pivot = limit, form, speed > 0.0, abs(speed)
    return max(length, 0.0), leaving, upward


@compiled
def _move(p: Polytope, s: Search, column: int, row: int, sense: float, length: float) -> None:
    """Go there."""
    k, size, n = len(p.column_start) - 1, s.sizes[_ACTIVE], s.sizes[_TOUCHED]
    value, touched, is_touched, place = s.value, s.touched, s.is_touched, s.place
    for i in range(-1, size + s.sizes[_MOVING]):
        if i < 0:
            form, speed = column if column >= 0 else k + s.active[row], sense
        elif i < size:
            form, speed = s.basic[i], s.step[i]
        else:
            form = s.moving[i - size]
            speed = s.slope[form] if place[form] < 0 else 0.0
        if abs(speed) > _ZERO:
            if not is_touched[form]:
                is_touched[form] = True
                touched[n] = form
                n += 1
            value[form] += speed * length
    s.sizes[_TOUCHED] = n


@compiled
def _speed(p: Polytope, s: Search, form: int, column: int, sense: float) -> float:
    """How fast a form moves, in absolute value."""
    k = len(p.column_start) - 1
    if form == column:
        return 1.0
    if form < k:
        return float(abs(s.step[s.place[form]]))
    return float(abs(s.slope[form])) if s.place[form] < 0 else 1.0


@compiled
def _flip(p: Polytope, s: Search, column: int, row: int, sense: float) -> None:
    """What moved went all the way to its own other bound: nothing else changes."""
    form = column if column >= 0 else len(p.column_start) - 1 + s.active[row]
    s.value[form] = p.upper[form] if sense > 0.0 else p.lower[form]
    if column < 0:
        s.at_upper[s.active[row]] = sense > 0.0


@compiled
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


@compiled
def _read_row(p: Polytope, s: Search, row: int, column: int) -> float:
    """A row times the inverse, into `s.leaving`; returns its coefficient at the entering column."""
    size = s.sizes[_ACTIVE]
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
                s.leaving[j] += x * s.inverse[j, at]
        elif q == column:
            pivot += p.row_value[z]
    return pivot


@compiled
def _grow(s: Search, column: int, form: int, pivot: float, k: int) -> bool:
    """A column becomes basic and a row active: border the inverse."""
    size = s.sizes[_ACTIVE]
    if size >= len(s.basic) - 1:
        return False
    for j in range(size):
        f = s.leaving[j] / pivot
        if f != 0.0:
            for i in range(size):
                s.inverse[j, i] += f * s.entering[i]
        s.inverse[j, size] = -f
    for i in range(size):
        s.inverse[size, i] = -s.entering[i] / pivot
    s.inverse[size, size] = 1.0 / pivot
    s.basic[size], s.place[column] = column, size
    s.active[size], s.place[form] = form - k, size
    s.sizes[_ACTIVE] = size + 1
    return True


@compiled
def _replace_row(s: Search, row: int, form: int, k: int) -> None:
    """One row becomes active instead of another."""
    size, pivot = s.sizes[_ACTIVE], s.leaving[row]
    for i in range(size):
        s.inverse[row, i] /= pivot
    for j in range(size):
        x = s.leaving[j]
        if j != row and x != 0.0:
            for i in range(size):
                s.inverse[j, i] -= x * s.inverse[row, i]
    s.place[k + s.active[row]] = -1
    s.active[row], s.place[form] = form - k, row


@compiled
def _replace_column(s: Search, at: int, column: int) -> None:
    """One column becomes basic instead of another."""
    size, pivot = s.sizes[_ACTIVE], s.entering[at]
    for j in range(size):
        x = s.inverse[j, at] / pivot
        if x != 0.0:
            for i in range(size):
                s.inverse[j, i] -= x * s.entering[i]
            s.inverse[j, at] = x
    s.place[s.basic[at]] = -1
    s.basic[at], s.place[column] = column, at


@compiled
def _shrink(s: Search, at: int, row: int, k: int) -> None:
    """A basic column stops at its bound and an active row is let go: both leave the inverse."""
    size, pivot = s.sizes[_ACTIVE], s.inverse[row, at]
    for j in range(size):
        x = s.inverse[j, at] / pivot
        if j != row and x != 0.0:
            for i in range(size):
                s.inverse[j, i] -= x * s.inverse[row, i]
    last = size - 1
    s.place[s.basic[at]] = -1
    s.place[k + s.active[row]] = -1
    if row != last:
        s.active[row] = s.active[last]
        s.place[k + s.active[row]] = row
        for i in range(size):
            s.inverse[row, i] = s.inverse[last, i]
    if at != last:
        s.basic[at] = s.basic[last]
        s.place[s.basic[at]] = at
        for j in range(size):
            s.inverse[j, at] = s.inverse[j, last]
    s.sizes[_ACTIVE] = last


@compiled
def clear(p: Polytope, s: Search) -> None:
    """Back to the truth."""
    k = len(p.column_start) - 1
    for i in range(s.sizes[_TOUCHED]):
        form = s.touched[i]
        s.value[form] = 0.0
        s.is_touched[form] = False
    for i in range(s.sizes[_ACTIVE]):
        s.place[s.basic[i]] = -1
        s.place[k + s.active[i]] = -1
    for i in range(len(s.sizes)):
        s.sizes[i] = 0
