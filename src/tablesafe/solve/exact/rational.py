"""The last resort: a simplex method in fractions. Slow, never wrong, never stuck.

It starts at the truth like `solve.exact.simplex`, and always takes the mover and the limit with the least index,
which cannot cycle (Bland 1977, "New finite pivoting rules for the simplex method").
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING

from tablesafe.core.errors import SolverFailure
from tablesafe.work.budget import ENDLESS, Budget

if TYPE_CHECKING:
    from tablesafe.solve.exact.polytope import Polytope

MOST_STEPS = 20_000
"""Pivots in fractions before a program is given up: the rule of least index cannot cycle, but may go on for long."""

Row = dict[int, Fraction]


@dataclass(frozen=True, slots=True)
class Extreme:
    """The furthest a form can go and a point that shows it; without end (None), a direction."""

    value: Fraction | None
    columns: Row


def extreme(polytope: Polytope, form: int, sign: int, budget: Budget = ENDLESS) -> Extreme:
    """The largest value of `sign * form`, exactly; an error when the budget is over before that."""
    tableau = _Tableau(polytope)
    for _ in range(MOST_STEPS):
        budget.check()
        mover = tableau.mover(form, sign)
        if mover is None:
            return Extreme(sign * tableau.value[form], tableau.columns(tableau.value))
        endless = tableau.step(*mover)
        if endless is not None:
            return Extreme(None, tableau.columns(endless))
    raise SolverFailure("An interval was not found: the exact simplex method ran out of steps.")


class _Tableau:
    """Every basic form as a combination of the nonbasic ones, in fractions."""

    def __init__(self, p: Polytope) -> None:
        self.k = p.columns
        self.lower = [Fraction(x) if isfinite(x) else None for x in p.lower.tolist()]
        self.upper = [Fraction(x) if isfinite(x) else None for x in p.upper.tolist()]
        self.value = {form: Fraction(0) for form in range(p.forms)}
        self.rows: dict[int, Row] = {}
        self.holders: dict[int, set[int]] = {q: set() for q in range(p.forms)}
        for form in range(p.columns, p.forms):
            columns, coefficients = p.objective(form)
            self._write(
                form, {q: Fraction(int(c)) for q, c in zip(columns.tolist(), coefficients.tolist(), strict=True)}
            )

    def columns(self, numbers: Row) -> Row:
        """The numbers that belong to coordinates and are not zero."""
        return {form: x for form, x in numbers.items() if form < self.k and x}

    def mover(self, form: int, sign: int) -> tuple[int, int] | None:
        """The nonbasic form of least index whose move helps, and in which sense; None at the optimum."""
        gradient = self.rows.get(form, {form: Fraction(1)})
        for f in sorted(gradient):
            sense = 1 if sign * gradient[f] > 0 else -1
            bound = self._bound(f, sense)
            if bound is None or bound != self.value[f]:
                return f, sense
        return None

    def step(self, mover: int, sense: int) -> Row | None:
        """Move as far as the bounds allow; a direction when they allow any distance."""
        speeds = {f: sense * self.rows[f][mover] for f in self.holders[mover]}
        speeds[mover] = Fraction(sense)
        limits = []
        for f, speed in speeds.items():
            bound = self._bound(f, 1 if speed > 0 else -1)
            if bound is not None:
                limits.append(((bound - self.value[f]) / speed, f))
        if not limits:
            return speeds
        length, stopped = min(limits)
        for f, speed in speeds.items():
            self.value[f] += length * speed
        if stopped != mover:
            self._exchange(mover, stopped)
        return None

    def _bound(self, form: int, sense: int) -> Fraction | None:
        return self.upper[form] if sense > 0 else self.lower[form]

    def _exchange(self, entering: int, leaving: int) -> None:
        """The entering form becomes basic, the leaving one nonbasic."""
        row = self._erase(leaving)
        pivot = row.pop(entering)
        new = {f: -a / pivot for f, a in row.items()}
        new[leaving] = 1 / pivot
        for holder in list(self.holders[entering]):
            old = self._erase(holder)
            factor = old.pop(entering)
            for f, a in new.items():
                old[f] = old.get(f, Fraction(0)) + factor * a
            self._write(holder, old)
        self._write(entering, new)

    def _erase(self, form: int) -> Row:
        row = self.rows.pop(form)
        for f in row:
            self.holders[f].discard(form)
        return row

    def _write(self, form: int, row: Row) -> None:
        self.rows[form] = {f: a for f, a in row.items() if a}
        for f in self.rows[form]:
            self.holders[f].add(form)
