"""The exact range of the forms of a polytope.

Most ends are found from the truth by `local`, in microseconds each. Where that takes too long (a form that can only
move far when hundreds of others give way), HiGHS goes on, part by part, with the devices that save most of its runs:
sums of many forms first, then the form nearest to its bound; every point seen counts for all forms; known ends tighten
the bounds of the rest. Whoever finds an end, it counts only with a proof in integers. If that fails, fractions decide.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lcm

import numpy as np
from scipy import sparse

from tablesafe.equations import Floats, Integers
from tablesafe.solve import rational
from tablesafe.solve.highs import Answer, WarmSimplex
from tablesafe.solve.local import Search
from tablesafe.solve.polytope import Polytope
from tablesafe.solve.program import SolveStatus
from tablesafe.solve.proof import Proof
from tablesafe.solve.propagate import propagate
from tablesafe.solve.ranges import Ranges, close, judge, run_away, sweep

Report = Callable[[int], None]
"""Told how many of the sides asked for are finished."""

STRIDE = 4_096
"""Sides between two reports."""
PATIENCE = 64
"""Searches after which it is asked whether searching from the truth pays."""
SUMS = 3
"""Rounds of maximising and minimising the sum of everything open."""


def find_ends(polytope: Polytope, part: Integers, sides: Integers, report: Report) -> Ranges:
    """The ends of some sides (2f: the upper end of form f; 2f + 1: the lower). `part` numbers independent parts.

    Tightens the bounds of the polytope in place.
    """
    tighten(polytope)
    ranges = Ranges.of(polytope)
    left = _from_the_truth(polytope, ranges, part, sides, report)
    for number in np.unique(part[left // 2]).tolist():
        forms = np.flatnonzero(part == number)
        own = np.flatnonzero(part[left // 2] == number)
        inner = np.searchsorted(forms, left[own] // 2) * 2 + left[own] % 2
        piece = ranges.take(forms)
        _Hard(polytope.restricted(forms), piece, inner, report, len(sides) - len(left)).finish()
        ranges.put(forms, piece)
        left = left[~ranges.closed[left]]
    return ranges


def tighten(polytope: Polytope) -> None:
    """Propagate the bounds between the forms, in place."""
    k, forms = polytope.columns, polytope.forms
    own = sparse.eye_array(forms - k, dtype=np.float64)
    lower, upper = propagate(
        sparse.hstack([polytope.rows, -own], format="csr"), polytope.lower, polytope.upper
    )
    polytope.lower[:], polytope.upper[:] = lower, upper


def _from_the_truth(polytope: Polytope, ranges: Ranges, part: Integers, sides: Integers, report: Report) -> Integers:
    """Search from the truth for as long as it pays; returns the sides still open."""
    search, proof = Search.over(polytope), Proof.over(polytope)
    size = np.bincount(part)
    budget = 100_000.0 + 50.0 * size[part[sides // 2]]
    first = 0
    while first < len(sides):
        stop = min(first + STRIDE, len(sides))
        first = sweep(polytope, search, proof, ranges, sides, first, stop, budget, PATIENCE)
        report(first)
        if first < stop:
            break
    return sides[~ranges.closed[sides]]


class _Hard:
    """One independent part, finished by HiGHS."""

    def __init__(self, polytope: Polytope, ranges: Ranges, sides: Integers, report: Report, before: int) -> None:
        self.p, self.ranges, self.sides = polytope, ranges, sides
        self.report, self.before = report, before
        self.proof = Proof.over(polytope)
        self.rows = np.arange(polytope.forms - polytope.columns)
        self.model = WarmSimplex(polytope)
        self.every = max(10, len(sides) // 100)

    def finish(self) -> None:
        """Close every side."""
        self._sums()
        solved = 0
        while (side := self._next()) is not None:
            self._one(side)
            solved += 1
            if solved % self.every == 0:
                self._learn()
                self.report(self.before + int(self.ranges.closed[self.sides].sum()))

    def _bounds(self, sides: Integers) -> Floats:
        return np.where(sides % 2 == 0, self.p.upper[sides // 2], -self.p.lower[sides // 2])

    def _open(self) -> Integers:
        return self.sides[~self.ranges.closed[self.sides]]

    def _gap(self, sides: Integers) -> Floats:
        seen = self.ranges.numerator[sides] / self.ranges.denominator[sides]
        return self._bounds(sides) - seen

    def _next(self) -> int | None:
        """The open side nearest to its bound."""
        sides = self._open()
        return int(sides[np.argmin(self._gap(sides))]) if sides.size else None

    def _sums(self) -> None:
        """Push everything open up at once, then down."""
        for turn in range(2 * SUMS):
            sides = self._open()
            sides = sides[(sides % 2 == turn % 2) & np.isfinite(self._bounds(sides))]
            if sides.size > 1:
                weight = np.zeros(self.p.forms)
                weight[sides // 2] = 1.0 - 2.0 * (sides % 2)
                k = self.p.columns
                answer = self.model.maximise(weight[:k] + self.p.rows.T @ weight[k:])
                self._judge(answer, int(sides[0]), prices=False)

    def _one(self, side: int) -> None:
        """Close one side: by the warm model, by a fresh one in unscaled numbers, or by fractions."""
        self._try(self.model, side)
        if not self.ranges.closed[side]:
            self._try(WarmSimplex(self.p, scaled=False), side)
        if not self.ranges.closed[side]:
            self._by_fractions(side)

    def _try(self, model: WarmSimplex, side: int) -> None:
        columns, coefficients = self.p.objective(side // 2)
        objective = np.zeros(self.p.columns)
        objective[columns] = coefficients * (1 - 2 * (side % 2))
        answer = model.maximise(objective)
        if answer.status is SolveStatus.OPTIMAL:
            self._judge(answer, side, prices=True)
        elif answer.status is SolveStatus.UNBOUNDED:
            self._without_end(objective, side)

    def _judge(self, answer: Answer, side: int, *, prices: bool) -> None:
        columns = np.flatnonzero(answer.point)
        self.proof.columns[: len(columns)], self.proof.values[: len(columns)] = columns, answer.point[columns]
        rows = np.flatnonzero(np.abs(answer.prices) > 1e-9) if prices else self.rows[:0]
        judge(
            self.p, self.proof, self.ranges, len(columns), rows, answer.prices[rows], len(rows) if prices else -1, side
        )

    def _without_end(self, objective: Floats, side: int) -> None:
        """Look for a direction without end, in the polytope of all directions."""
        answer = WarmSimplex(self.p.directions()).maximise(objective)
        columns = np.flatnonzero(answer.point)
        self.proof.columns[: len(columns)], self.proof.values[: len(columns)] = columns, answer.point[columns]
        run_away(self.p, self.proof, self.ranges, len(columns), side)

    def _by_fractions(self, side: int) -> None:
        found = rational.extreme(self.p, side // 2, 1 - 2 * (side % 2))
        if found.value is None:
            close(self.ranges, side, 1, 0)
        else:
            close(self.ranges, side, found.value.numerator, found.value.denominator)

    def _learn(self) -> None:
        """Tighten bounds by the ends found so far, and close what the points seen take to the new bounds."""
        sides = np.flatnonzero(self.ranges.closed & (self.ranges.denominator > 0))
        end = -(-self.ranges.numerator[sides] // self.ranges.denominator[sides]).astype(np.float64)
        upper, lower = sides % 2 == 0, sides % 2 == 1
        at = sides // 2
        self.p.upper[at[upper]] = np.minimum(self.p.upper[at[upper]], end[upper])
        self.p.lower[at[lower]] = np.maximum(self.p.lower[at[lower]], -end[lower])
        tighten(self.p)
        sides = self._open()
        met = self._bounds(sides) * self.ranges.denominator[sides] == self.ranges.numerator[sides]
        self.ranges.closed[sides[met]] = True
