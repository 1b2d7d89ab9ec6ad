"""Points of a polytope that show that forms can go as far as they must.

Each side of a form may have a need: how far it must be able to go. A point that takes a form so far is a witness for
it, and for every other need that it happens to serve. Where a need cannot be served, the true end is found instead, and
the point that shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import OutOfTime
from tablesafe.solve.exact import rational
from tablesafe.solve.exact import simplex as local
from tablesafe.solve.exact.elimination import ROOM
from tablesafe.solve.exact.extremes import PATIENCE, STRIDE, SUMS, budgets, whole_fraction
from tablesafe.solve.exact.faces import Faces, GridPoint
from tablesafe.solve.exact.polytope import Polytope
from tablesafe.solve.exact.proof import Proof, equal, forget, put
from tablesafe.solve.exact.ranges import Ranges, close, note, prove_point, settle
from tablesafe.solve.exact.simplex import OPTIMAL, Search
from tablesafe.solve.program import SolveStatus
from tablesafe.work.budget import ENDLESS, Budget
from tablesafe.work.compiled import compiled

NOBODY, TRUTH = -1, -2
"""Who serves a need: nobody, or the truth itself, because nothing is needed."""

FARTHER, FARTHEST = 64.0, 2.0**50
"""Where a form has no end, the polytope is cut off at growing distances until the need is served."""
NOTHING, NO_PRICES = np.zeros(0, np.int64), np.zeros(0)
"""No forms, and no prices of rows."""
MOST_FRACTIONS = 2_000
"""Forms of a part beyond which no simplex method in fractions is tried."""
HUGE = 400_000
"""Forms of a part beyond which no program is asked about all of it."""
_POINTS, _ENTRIES, _FULL = range(3)
"""Places in the numbers of a list of points: how many, their entries, and whether it is full."""


class Store(NamedTuple):
    """The points found so far, as sparse rows, and which of them serves each side."""

    by: Integers
    need: Floats
    """How far each side must go, as a whole number; −1 where nothing is asked."""
    start: Integers
    column: Integers
    numerator: Integers
    denominator: Integers
    sizes: Integers

    @classmethod
    def empty(cls, need: Floats, points: int, entries: int) -> Store:
        """Nothing found yet; the truth serves those who need nothing."""
        return cls(
            np.where(need == 0.0, TRUTH, NOBODY), need, np.zeros(points + 1, np.int64), np.zeros(entries, np.int64),
            np.zeros(entries, np.int64), np.zeros(points, np.int64), np.zeros(3, np.int64),
        )  # fmt: skip

    def larger(self) -> Store:
        """The same with twice the space."""
        points, entries = len(self.denominator), len(self.column)
        self.sizes[_FULL] = 0
        return self._replace(
            start=np.concatenate([self.start, np.zeros(points, np.int64)]),
            denominator=np.concatenate([self.denominator, np.zeros(points, np.int64)]),
            column=np.concatenate([self.column, np.zeros(entries, np.int64)]),
            numerator=np.concatenate([self.numerator, np.zeros(entries, np.int64)]),
        )

    def rows(self, columns: int) -> sparse.csr_array:
        """The points' numerators."""
        n, entries = int(self.sizes[_POINTS]), int(self.sizes[_ENTRIES])
        parts = (self.numerator[:entries], self.column[:entries], self.start[: n + 1])
        return sparse.csr_array(parts, shape=(n, columns))


Guess = Callable[[int, float], Iterator[tuple[Integers, Floats]]]
"""Points that may take a side as far as it must: the columns that are not at the truth, and their values."""


def find_witnesses(
    polytope: Polytope, part: Integers, need: Floats, guess: Guess | None = None, budget: Budget = ENDLESS
) -> tuple[Store, Ranges]:
    """Serve the need of every side (2f: the upper end of form f; 2f + 1: the lower), or find its true end.

    What is not found from the truth may be guessed, before a solver is asked for the whole part. When the budget is
    over, needs that nobody serves stay so.
    """
    ranges, store = Ranges.of(polytope), Store.empty(need, 64, 4 * polytope.columns + 64)
    sides = np.flatnonzero(need > 0.0)
    store = _from_the_truth(polytope, part, ranges, store, sides, budget)
    if guess is not None:
        store = _guessed(polytope, ranges, store, sides, guess, budget)
    for number in np.unique(part[_open(ranges, store, sides) // 2]).tolist():
        if int((part == number).sum()) > HUGE or budget.over:
            continue  # no program of that size ends in time: what is not proved by now stays so
        whole = _WholePart(polytope, np.flatnonzero(part == number), ranges, store, budget)
        store = whole.serve(_open(ranges, store, sides[part[sides // 2] == number]))
    return store, ranges


def _open(ranges: Ranges, store: Store, sides: Integers) -> Integers:
    """Sides that nobody serves, though they may have room."""
    return np.asarray(sides[(store.by[sides] == NOBODY) & ~ranges.closed[sides]])


def _from_the_truth(
    polytope: Polytope, part: Integers, ranges: Ranges, store: Store, sides: Integers, budget: Budget
) -> Store:
    """Search from the truth for as long as it pays."""
    search, proof, steps = Search.over(polytope), Proof.over(polytope), budgets(part, sides)
    first = 0
    while first < len(sides) and not budget.over:
        stop = min(first + STRIDE, len(sides))
        first = _sweep(polytope, search, proof, ranges, store, sides, first, stop, steps, PATIENCE)
        if store.sizes[_FULL]:
            store = store.larger()
        elif first < stop:
            break
    return store


def _guessed(polytope: Polytope, ranges: Ranges, store: Store, sides: Integers, guess: Guess, budget: Budget) -> Store:
    """Try guesses for as long as they help."""
    proof, tried, lost = Proof.over(polytope), 0, 0
    for side in _open(ranges, store, sides).tolist():
        if store.by[side] != NOBODY or ranges.closed[side]:
            continue
        for columns, values in guess(side, store.need[side]):
            store = _learned(polytope, proof, ranges, store, columns, values, NOTHING, NO_PRICES, -1, side)
            if store.by[side] != NOBODY:
                break
        tried, lost = tried + 1, lost + (store.by[side] == NOBODY)
        if budget.over:
            break
        if tried >= PATIENCE and 4 * lost > 3 * tried:
            break
    return store


def _learned(
    p: Polytope, proof: Proof, ranges: Ranges, store: Store, columns: Integers, values: Floats, rows: Integers,
    prices: Floats, priced: int, side: int,
) -> Store:  # fmt: skip
    """Learn from a point and prices what can be proved, in a larger store if this one is full."""
    while True:
        proof.columns[: len(columns)], proof.values[: len(columns)] = columns, values
        absorb(p, proof, ranges, store, len(columns), rows, prices, priced, side)
        if not store.sizes[_FULL]:
            return store
        store = store.larger()


@compiled
def _sweep(
    p: Polytope, s: Search, w: Proof, ranges: Ranges, store: Store, sides: Integers, first: int, stop: int,
    budget: Floats, patience: int,
) -> int:  # fmt: skip
    """Serve some sides, each from the truth; returns where it stopped, for want of space or because it does not pay."""
    tried, lost = 0, 0
    for i in range(first, stop):
        side = sides[i]
        if store.by[side] != NOBODY or ranges.closed[side]:
            continue
        ended = local.maximise(p, s, side // 2, 1.0 - 2.0 * (side % 2), store.need[side], budget[i])
        count = local.here(p, s, w.columns, w.values)
        priced = s.sizes[0] if ended == OPTIMAL else -1
        absorb(p, w, ranges, store, count, s.active, s.dual, priced, side)
        local.clear(p, s)
        if store.sizes[_FULL]:
            return i
        tried += 1
        lost += store.by[side] == NOBODY and not ranges.closed[side]
        if tried == patience:
            if 4 * lost > 3 * tried:
                return i + 1
            tried, lost = 0, 0
    return stop


@compiled
def absorb(
    p: Polytope,
    w: Proof,
    ranges: Ranges,
    store: Store,
    count: int,
    rows: Integers,
    prices: Floats,
    priced: int,
    side: int,
) -> None:
    """Learn what can be proved of a point and of prices; keep the point if it is of use. May find the store full."""
    denominator, exact = prove_point(p, w, count)
    if denominator > 0:
        note(p, w, ranges, denominator)
        if priced >= 0:
            settle(p, w, ranges, denominator, exact, rows, prices, priced, side)
        _keep(p, w, ranges, store, denominator)
    forget(w)


@compiled
def _keep(p: Polytope, w: Proof, ranges: Ranges, store: Store, denominator: int) -> None:
    """Store the point located if it serves a need that nobody serves yet."""
    k, columns, at, used = len(p.column_start) - 1, 0, store.sizes[_POINTS], store.sizes[_ENTRIES]
    useful = False
    for i in range(w.sizes[0]):
        form = w.listed[i]
        columns += form < k
        useful |= _serves(ranges, store, form, w.numerator[form], denominator)
    if not useful:
        return
    if at >= len(store.denominator) or used + columns > len(store.column):
        store.sizes[_FULL] = 1
        return
    for i in range(w.sizes[0]):
        form = w.listed[i]
        x = w.numerator[form]
        if _serves(ranges, store, form, x, denominator):
            store.by[2 * form if x > 0 else 2 * form + 1] = at
        if form < k and x != 0:
            store.column[used], store.numerator[used] = form, x
            used += 1
    store.denominator[at], store.start[at + 1] = denominator, used
    store.sizes[_POINTS], store.sizes[_ENTRIES] = at + 1, used


@compiled
def _serves(ranges: Ranges, store: Store, form: int, numerator: int, denominator: int) -> bool:
    """Whether a value of a form goes as far as needed, or to the very end, where nobody goes yet."""
    side = 2 * form if numerator > 0 else 2 * form + 1
    need = store.need[side]
    if store.by[side] != NOBODY or need <= 0.0:
        return False
    if need * denominator < ROOM and abs(numerator) >= int(need) * denominator:
        return True
    return ranges.closed[side] and equal(abs(numerator), denominator, ranges.numerator[side], ranges.denominator[side])


class _WholePart:
    """One independent part in the hands of HiGHS."""

    def __init__(self, polytope: Polytope, forms: Integers, ranges: Ranges, store: Store, budget: Budget) -> None:
        self.p, self.ranges, self.store, self.budget = polytope, ranges, store, budget
        self.columns, self.rows = forms[forms < polytope.columns], forms[forms >= polytope.columns] - polytope.columns
        self.part = polytope.restricted(forms)
        self.proof = Proof.over(polytope)
        self.model = self.part.simplex()
        self.forms = forms
        self._faces: Faces | None = None

    def serve(self, sides: Integers) -> Store:
        """Serve every side, or find its end: first all at once, then one by one."""
        for turn in range(2 * SUMS):
            left = _open(self.ranges, self.store, sides)
            left = left[left % 2 == turn % 2]
            left = left[np.isfinite(np.where(left % 2 == 0, self.p.upper[left // 2], self.p.lower[left // 2]))]
            if left.size > 1 and not self.budget.over:
                self._absorb(self.model.maximise(self._objective(left), self.budget).point, int(left[0]))
        for side in sides.tolist():
            if self.budget.over:
                break
            if self.store.by[side] == NOBODY and not self.ranges.closed[side]:
                self._serve_one(side)
        return self.store

    def _serve_one(self, side: int) -> None:
        """By a vertex, by a point on a face, or by fractions; where there is no end, by a point far enough."""
        objective = self._objective(np.array([side]))
        answer = self.model.maximise(objective, self.budget)
        reach = self.part.extent + self.store.need[side]
        while answer.status is SolveStatus.UNBOUNDED and reach < FARTHEST and not self.budget.over:
            reach *= FARTHER
            answer = _clipped(self.part, reach).simplex().maximise(objective, self.budget)
            self._absorb(answer.point, side)
            if self.store.by[side] == NOBODY:
                answer = replace(answer, status=SolveStatus.UNBOUNDED)
        if self.store.by[side] == NOBODY:
            self._absorb(answer.point, side, answer.dual if answer.status is SolveStatus.OPTIMAL else None)
        if self.store.by[side] == NOBODY and not self.ranges.closed[side]:
            self._on_faces(side, objective)
        if self.store.by[side] == NOBODY and not self.ranges.closed[side]:
            answer = self.part.simplex(scaled=False).maximise(objective, self.budget)
            self._absorb(answer.point, side, answer.dual if answer.status is SolveStatus.OPTIMAL else None)
        if self.store.by[side] == NOBODY and not self.ranges.closed[side]:
            self._by_fractions(side)

    def _objective(self, sides: Integers) -> Floats:
        """The sum of some sides, over the columns of the part."""
        weight = np.zeros(self.p.forms)
        weight[sides // 2] = 1.0 - 2.0 * (sides % 2)
        k = self.p.columns
        return np.asarray(weight[self.columns] + self.part.rows.T @ weight[k + self.rows])

    def _absorb(self, point: Floats, side: int, dual: Floats | None = None) -> None:
        """Learn from an answer what can be proved, in a larger store if this one is full."""
        prices = np.zeros(0) if dual is None else dual
        at, rows = np.flatnonzero(point), np.flatnonzero(np.abs(prices) > 1e-9)
        self.store = _learned(
            self.p, self.proof, self.ranges, self.store, self.columns[at], point[at],
            self.rows[rows], prices[rows], -1 if dual is None else len(rows), side,
        )  # fmt: skip

    def _on_faces(self, side: int, objective: Floats) -> None:
        """By a point on the face where the side ends, from a warm model of the faces or a fresh one."""
        own = 2 * int(np.searchsorted(self.forms, side // 2)) + side % 2
        for again in (False, True):
            if self._faces is None or again:
                self._faces = Faces(self.part, self.ranges.take(self.forms), Proof.over(self.part), self.budget)
            if not self._faces.usable or self.store.by[side] != NOBODY or self.ranges.closed[side]:
                return
            point = self._faces.push(objective, own, generous=False, strict=not again)
            known = np.flatnonzero(self._faces.ranges.closed)
            self.ranges.put_sides(self.forms, self._faces.ranges, known)
            if point is not None:
                self._take(point)

    def _take(self, point: GridPoint) -> None:
        """Keep a proved point of the part if it is of use, in a larger store if this one is full."""
        self.proof.columns[: len(point.columns)] = self.columns[point.columns]
        put(self.p, self.proof, point.numbers, len(point.columns))
        _keep(self.p, self.proof, self.ranges, self.store, point.denominator)
        while self.store.sizes[_FULL]:
            self.store = self.store.larger()
            _keep(self.p, self.proof, self.ranges, self.store, point.denominator)
        forget(self.proof)

    def _by_fractions(self, side: int) -> None:
        if len(self.forms) > MOST_FRACTIONS or self.budget.over:
            return  # not proved: a tableau of fractions over so much does not end in time
        form, sign = side // 2, 1 - 2 * (side % 2)
        try:
            found = rational.extreme(self.p, form, sign, self.budget)
        except OutOfTime:
            return
        if found.value is None:
            close(self.ranges, side, 1, 0)
            return
        point = np.zeros(self.p.columns)
        for column, value in found.columns.items():
            point[column] = float(value)
        close(self.ranges, side, *whole_fraction(found.value))
        self._absorb(point[self.columns], side)


def _clipped(polytope: Polytope, reach: float) -> Polytope:
    """The polytope with bounds where it has none."""
    reach = float(2.0 ** np.ceil(np.log2(reach)))
    return polytope._replace(lower=np.maximum(polytope.lower, -reach), upper=np.minimum(polytope.upper, reach))
