"""The exact range of the forms of a polytope.

Most ends are found from the truth by `local`, in microseconds each. Where that takes too long (a form that can only
move far when hundreds of others give way), HiGHS goes on, part by part, with the devices that save most of its runs:
sums of many forms first, then the form nearest to its bound; every point seen counts for all forms; known ends tighten
the bounds of the rest. Whoever finds an end, it counts only with a proof in integers. If that fails, fractions decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.solve.exact import rational
from tablesafe.solve.exact.faces import Faces
from tablesafe.solve.exact.polytope import Polytope
from tablesafe.solve.exact.proof import Proof
from tablesafe.solve.exact.ranges import Ranges, close, judge, run_away, sweep
from tablesafe.solve.exact.simplex import Search
from tablesafe.solve.highs import Model
from tablesafe.solve.program import Solution, SolveStatus
from tablesafe.solve.propagate import propagate
from tablesafe.work.budget import ENDLESS, Budget

STRIDE = 512
"""Sides between two moments at which an interrupt is noticed."""
PATIENCE = 64
"""Searches after which it is asked whether searching from the truth pays."""
PER_SIDE_AND_FORM_S = 2.5e-6
"""Seconds in which a solver finds a side of a part, for each form of it."""
SUMS = 3
"""Rounds of maximising and minimising the sum of everything open."""
CHUNK = 5_000
"""Open sides of one part that are finished together."""
MEMORY = 16
"""Searches on faces whose yield, in sides closed, is remembered."""
WORTH = 1.5
"""The yield from which on points are sought that close further sides."""
COARSE = 2**10
"""A fraction too large for 64 bits is rounded up to a multiple of one over this."""


@dataclass(frozen=True, eq=False)
class HardPart:
    """Sides of one independent part that need a solver for the whole part; can be sent to another process."""

    polytope: Polytope = field(repr=False)
    ranges: Ranges = field(repr=False)
    sides: Integers = field(repr=False)
    """Numbered within the part."""
    forms: Integers = field(repr=False)
    """The form of the whole polytope behind each form of the part."""
    budget: Budget = ENDLESS

    @property
    def seconds(self) -> float:
        """Roughly how long it takes to finish."""
        return PER_SIDE_AND_FORM_S * len(self.sides) * self.polytope.forms


def tighten(polytope: Polytope) -> None:
    """Propagate the bounds between the forms, in place."""
    own = sparse.eye_array(polytope.forms - polytope.columns, dtype=np.float64)
    lower, upper = propagate(sparse.hstack([polytope.rows, -own], format="csr"), polytope.lower, polytope.upper)
    polytope.lower[:], polytope.upper[:] = lower, upper


def budgets(part: Integers, sides: Integers) -> Floats:
    """How long to search from the truth for each side: about as long as a solver for its whole part would need."""
    return np.asarray(100_000.0 + 50.0 * np.bincount(part)[part[sides // 2]])


def easy_ends(polytope: Polytope, part: Integers, sides: Integers, budget: Budget = ENDLESS) -> tuple[Ranges, Integers]:
    """Search from the truth for as long as it pays; returns what was found, and the sides still open.

    Side 2f is the upper end of form f, 2f + 1 the lower. `part` numbers the independent parts. When the budget is over
    before the end, that is an error.
    """
    ranges = Ranges.of(polytope)
    search, proof, steps = Search.over(polytope), Proof.over(polytope), budgets(part, sides)
    first = 0
    while first < len(sides):
        budget.check()
        stop = min(first + STRIDE, len(sides))
        first = sweep(polytope, search, proof, ranges, sides, first, stop, steps, PATIENCE)
        if first < stop:
            break
    return ranges, sides[~ranges.closed[sides]]


def hard_parts(
    polytope: Polytope, part: Integers, ranges: Ranges, left: Integers, chunk: int, budget: Budget = ENDLESS
) -> Iterator[HardPart]:
    """The open sides by part, in chunks."""
    order = np.argsort(part, kind="stable")
    for number in np.unique(part[left // 2]).tolist():
        forms = order[slice(*np.searchsorted(part[order], [number, number + 1]))]
        own = left[part[left // 2] == number]
        sides = np.searchsorted(forms, own // 2) * 2 + own % 2
        piece, known = polytope.restricted(forms), ranges.take(forms)
        for first in range(0, len(sides), chunk):
            yield HardPart(piece, known, sides[first : first + chunk], forms, budget)


def finish(task: HardPart) -> Ranges:
    """Close every side of a hard part; returns the ranges of all its forms. Out of time is an error."""
    ranges = task.ranges.copy()
    polytope = task.polytope._replace(lower=task.polytope.lower.copy(), upper=task.polytope.upper.copy())
    WholePart(polytope, ranges, task.sides, task.budget).close_all()
    return ranges


def whole_fraction(value: Fraction) -> tuple[int, int]:
    """Numerator and denominator in 64 bits; rounded up where they do not fit."""
    if max(abs(value.numerator), value.denominator) < 2**62:
        return value.numerator, value.denominator
    return ceil(value * COARSE), COARSE


class WholePart:
    """One independent part in the hands of HiGHS."""

    def __init__(self, polytope: Polytope, ranges: Ranges, sides: Integers, budget: Budget = ENDLESS) -> None:
        self.p, self.ranges, self.sides, self.budget = polytope, ranges, sides, budget
        self.proof = Proof.over(polytope)
        self.model = polytope.simplex()
        self.hard = False
        """Whether vertices have turned out to be too hard to prove."""
        self._faces: Faces | None = None
        self._yield = float(MEMORY)
        self._pushed_out = False
        self._away: Model | None = None

    def close_all(self) -> None:
        """Close every side."""
        for turn in range(2 * SUMS):
            self._push_all(turn % 2)
        every = max(10, len(self.sides) // 100)
        solved = 0
        while (side := self._nearest()) is not None:
            self.close_one(side)
            solved += 1
            if solved % every == 0:
                self._learn()

    def close_one(self, side: int) -> None:
        """Close one side: by a vertex, by a point on a face, by a vertex in unscaled numbers, or by fractions.

        Once a vertex had a denominator too large for a proof, others will: then faces come first.
        """
        ways: list[Callable[[], None]] = [
            lambda: self._try(self.model, side),
            lambda: self._on_faces(side, self.faces(), strict=True),
            lambda: self._on_faces(side, self.faces(again=True), strict=False),
            lambda: self._try(self.p.simplex(scaled=False), side),
            lambda: self._by_fractions(side),
        ]
        if self.hard:
            ways[0], ways[1] = ways[1], ways[0]
        for number, way in enumerate(ways):
            self.budget.check()
            way()
            if self.ranges.closed[side]:
                return
            self.hard |= number == 0

    def _on_faces(self, side: int, faces: Faces | None, *, strict: bool) -> None:
        if faces is not None:
            before = int(self.ranges.closed.sum())
            generous = strict and self._yield >= WORTH
            faces.push(self.objective(np.array([side])), side, generous=generous, strict=strict)
            self._yield += (int(self.ranges.closed.sum()) - before - self._yield) / MEMORY

    def faces(self, *, again: bool = False) -> Faces | None:
        """The search on faces, made when first needed, or made again; None where there is none."""
        if self._faces is None or again:
            self._faces = Faces(self.p, self.ranges, self.proof, self.budget)
        return self._faces if self._faces.usable else None

    def _bounds(self, sides: Integers) -> Floats:
        return np.where(sides % 2 == 0, self.p.upper[sides // 2], -self.p.lower[sides // 2])

    def _open(self) -> Integers:
        return self.sides[~self.ranges.closed[self.sides]]

    def _nearest(self) -> int | None:
        """The open side nearest to its bound."""
        sides = self._open()
        if not sides.size:
            return None
        seen = self.ranges.numerator[sides] / self.ranges.denominator[sides]
        return int(sides[np.argmin(self._bounds(sides) - seen)])

    def _push_all(self, which: int) -> None:
        """Push everything open up at once, or down."""
        sides = self._open()
        sides = sides[(sides % 2 == which) & np.isfinite(self._bounds(sides))]
        if sides.size < 2 or self._pushed_out:
            return
        self.budget.check()
        before = len(self._open())
        objective = self.objective(sides)
        if not self.hard:
            self.judge(self.model.maximise(objective, self.budget), int(sides[0]), prices=False)
            self.hard = len(self._open()) == before
        if self.hard and (faces := self.faces()) is not None:
            faces.push(objective)
        self._pushed_out = before - len(self._open()) < len(sides) // 20

    def objective(self, sides: Integers) -> Floats:
        """The sum of some sides, over the columns."""
        weight = np.zeros(self.p.forms)
        weight[sides // 2] = 1.0 - 2.0 * (sides % 2)
        return np.asarray(weight[: self.p.columns] + self.p.rows.T @ weight[self.p.columns :])

    def _try(self, model: Model, side: int) -> None:
        objective = self.objective(np.array([side]))
        answer = model.maximise(objective, self.budget)
        if answer.status is SolveStatus.OPTIMAL:
            self.judge(answer, side, prices=True)
        elif answer.status is SolveStatus.UNBOUNDED:
            self._away = self._away or self.p.directions().simplex()
            answer = self._away.maximise(objective, self.budget)
            run_away(self.p, self.proof, self.ranges, self.load(answer.point), side)

    def load(self, point: Floats) -> int:
        """Hand a point to the proof; returns how many columns are not zero in it."""
        columns = np.flatnonzero(point)
        self.proof.columns[: len(columns)], self.proof.values[: len(columns)] = columns, point[columns]
        return len(columns)

    def judge(self, answer: Solution, side: int, *, prices: bool) -> None:
        """Learn from an answer what can be proved."""
        rows, count = np.flatnonzero(np.abs(answer.dual) > 1e-9), self.load(answer.point)
        priced = len(rows) if prices else -1
        judge(self.p, self.proof, self.ranges, count, rows, answer.dual[rows], priced, side)

    def _by_fractions(self, side: int) -> None:
        found = rational.extreme(self.p, side // 2, 1 - 2 * (side % 2), self.budget)
        if found.value is None:
            close(self.ranges, side, 1, 0)
        else:
            close(self.ranges, side, *whole_fraction(found.value))

    def _learn(self) -> None:
        """Tighten bounds by the ends found so far, and close what the points seen take to the new bounds."""
        sides = np.flatnonzero(self.ranges.closed & (self.ranges.denominator > 0))
        end = -(-self.ranges.numerator[sides] // self.ranges.denominator[sides]).astype(np.float64)
        at, upper = sides // 2, sides % 2 == 0
        self.p.upper[at[upper]] = np.minimum(self.p.upper[at[upper]], end[upper])
        self.p.lower[at[~upper]] = np.maximum(self.p.lower[at[~upper]], -end[~upper])
        tighten(self.p)
        sides = self._open()
        met = self._bounds(sides) * self.ranges.denominator[sides] == self.ranges.numerator[sides]
        self.ranges.closed[sides[met]] = True
