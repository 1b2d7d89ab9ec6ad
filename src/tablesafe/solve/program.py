"""Linear and mixed-integer programs as data, their scaling, and what a solver says of them.

A solver's tolerances are absolute and made for numbers about 1: costs such as 1/value near 1e-9 fall under them, and
bounds of 1e9 let wrong points pass. So a program is scaled before it is solved, here and nowhere else, by powers of
two, which lose nothing; the answer is checked against the equations in the units of the data. A time limit is not an
optimum, and a bound comes from the dual, never from the best point found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask

COMFORTABLE = 2.0**24
"""Larger bounds are scaled down to about this."""
LARGE_COST = 1e5
"""Whole costs of an integer program up to this prune best as they are."""
WORTH = 1e3
"""What an objective should be at least, so that absolute tolerances are small beside it."""
FEASIBILITY = 1e-6
"""By how much a row may be missed, relative to the size of its terms, before a point is no answer."""
FAR = 3.0
"""An answer that costs so many times its proven bound is said to be far from it."""


class SolveStatus(StrEnum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    """A checked answer with a gap: stopped by time, by the user, or by a node limit."""
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    CUT_OFF = "cut off"
    """Every point costs more than the limit that was given."""
    STOPPED = "stopped"
    """The time was over, or the user interrupted, before there was an answer."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Columns:
    """A matrix column by column as the solver wants it, over rows numbered from 0.

    For small programs by the thousand: building a sparse array of scipy takes as long as solving one of them.
    """

    start: NDArray[np.integer[Any]]
    index: NDArray[np.integer[Any]]
    value: Floats
    rows: int

    @classmethod
    def of(cls, matrix: sparse.csc_array) -> Self:
        """The columns of a sparse matrix."""
        return cls(
            matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data.astype(np.float64),
            matrix.shape[0],
        )  # fmt: skip

    def sums(self, x: Floats) -> tuple[Floats, Floats]:
        """Per row the sum of its terms at a point, and the sum of their sizes."""
        terms = self.value * np.repeat(x, np.diff(self.start))
        return _by_row(self.index, terms, self.rows), _by_row(self.index, np.abs(terms), self.rows)


@dataclass(frozen=True, slots=True)
class Rows:
    """The same row by row, for rows that are added to a program."""

    start: NDArray[np.integer[Any]]
    index: NDArray[np.integer[Any]]
    value: Floats
    columns: int

    @property
    def by_scipy(self) -> sparse.csr_array:
        """The matrix as scipy has it."""
        return sparse.csr_array((self.value, self.index, self.start), shape=(len(self.start) - 1, self.columns))


Matrix: TypeAlias = sparse.csr_array | sparse.csc_array | Columns


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise `cost @ x + offset` over `row_lower <= matrix @ x <= row_upper`, `lower <= x <= upper`.

    Columns are whole where `integer` says so; without it, none must be.
    """

    cost: Floats = field(repr=False)
    matrix: Matrix = field(repr=False)
    row_lower: Floats = field(repr=False)
    row_upper: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    integer: Mask | None = field(default=None, repr=False)
    offset: float = 0.0

    @classmethod
    def equations(
        cls, matrix: Matrix, rhs: Floats | Integers, lower: Floats, upper: Floats,
        *, cost: Floats | None = None, integer: Mask | None = None,
    ) -> Self:  # fmt: skip
        """The program with `matrix @ x = rhs`; without a cost any point will do."""
        rows = rhs.astype(np.float64)
        return cls(np.zeros(len(lower)) if cost is None else cost, matrix, rows, rows, lower, upper, integer)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.row_lower), len(self.cost)

    @property
    def mixed(self) -> bool:
        """Whether some columns must be whole."""
        return self.integer is not None and bool(self.integer.any())

    def violation(self, x: Floats, *, unit: float = 1.0) -> float:
        """How far a point is outside, relative to the size of a row's terms, at least `unit`; infinite for no point."""
        if len(x) != len(self.cost) or not np.isfinite(x).all():
            return np.inf
        sums, size = self.by_scipy @ x, self._sizes @ np.abs(x)
        rows = np.maximum(self.row_lower - sums, sums - self.row_upper) / np.maximum(unit, size)
        columns = np.maximum(self.lower - x, x - self.upper) / np.maximum(unit, np.abs(x))
        return max(float(rows.max(initial=0.0)), float(columns.max(initial=0.0)))

    @cached_property
    def by_scipy(self) -> sparse.csr_array | sparse.csc_array:
        """The matrix as scipy has it."""
        m = self.matrix
        return sparse.csc_array((m.value, m.index, m.start), shape=self.size) if isinstance(m, Columns) else m

    @cached_property
    def _sizes(self) -> sparse.csr_array | sparse.csc_array:
        return abs(self.by_scipy)

    def whole(self, x: Floats) -> Integers | None:
        """The whole numbers next to a point of a program in whole numbers, if they fulfil everything exactly."""
        if len(x) != len(self.cost) or not bool((np.abs(x) < 2.0**62).all()):
            return None
        point: Integers = np.rint(x).astype(np.int64)
        sums = np.asarray(self.by_scipy.astype(np.int64) @ point)
        inside = (point >= self.lower) & (point <= self.upper)
        return point if bool(inside.all() and ((sums >= self.row_lower) & (sums <= self.row_upper)).all()) else None

    def bound(self, dual: Floats, *, noise: float = 0.0) -> float:
        """What no point costs less than, by prices of the rows: right for any prices, best for the solver's.

        A reduced cost that an endless column would make an endless bound counts as rounding up to `noise`.
        """
        dual = np.where((dual > 0) & np.isinf(self.row_lower) | (dual < 0) & np.isinf(self.row_upper), 0.0, dual)
        reduced = self.cost - np.asarray(self.by_scipy.T @ dual)
        endless = np.where(reduced > 0, np.isinf(self.lower), np.isinf(self.upper))
        reduced = np.where(endless & (np.abs(reduced) <= noise), 0.0, reduced)
        with np.errstate(invalid="ignore"):
            rows = np.where(dual > 0, dual * self.row_lower, np.where(dual < 0, dual * self.row_upper, 0.0))
            columns = np.where(reduced > 0, reduced * self.lower, np.where(reduced < 0, reduced * self.upper, 0.0))
        return self.offset + float(rows.sum()) + float(columns.sum())


@dataclass(frozen=True, slots=True)
class Scale:
    """`step` units of the data are 1 in the solver, and cost 1 is `price` there."""

    step: float = 1.0
    price: float = 1.0

    @classmethod
    def of(cls, program: Program) -> Self:
        """Bounds of a linear program at most about 2**24, and costs about 1.

        Whole numbers stay whole, and so do the whole costs of whole numbers.
        """
        return cls(
            1.0 if program.mixed else cls.bounds(program.row_lower, program.row_upper, program.lower, program.upper),
            cls.costs(program.cost, whole=program.mixed),
        )

    @staticmethod
    def bounds(*bounds: Floats) -> float:
        """The step by which the largest finite bound becomes comfortable."""
        largest = max((float(np.max(np.abs(b[np.isfinite(b)]), initial=1.0)) for b in bounds), default=1.0)
        return float(2.0 ** np.ceil(np.log2(max(largest / COMFORTABLE, 1.0))))

    @staticmethod
    def costs(cost: Floats, *, whole: bool = False) -> float:
        """The price by which the mean cost becomes about 1."""
        some = np.abs(cost[cost != 0])
        if not some.size or (whole and float(some.max()) < LARGE_COST and bool((some == np.rint(some)).all())):
            return 1.0
        return power_of_two(1.0 / float(some.mean()))

    @classmethod
    def middle(cls, cost: Floats, amounts: Floats, *, objective: float | None = None) -> Self:
        """The middle amount becomes about 1, and so does the middle, in orders of magnitude, of the costs.

        With a known `objective` costs are scaled up further where it would be small.
        """
        typical = float(np.median(amounts)) if amounts.size else 1.0
        step = power_of_two(max(typical, 1.0))
        positive = cost[cost > 0]
        middle = float(np.sqrt(positive.min()) * np.sqrt(positive.max())) if positive.size else 1.0
        price = 1.0 / middle
        if objective is not None and objective > 0:
            price = max(price, WORTH * step / objective)
        return cls(step, power_of_two(price))

    def original(self, objective: float) -> float:
        """An objective of the solver in costs and units of the data."""
        return objective * self.step / self.price

    def inside(self, objective: float) -> float:
        """The other way round: an objective in costs and units of the data, as the solver sees it."""
        return objective * self.price / self.step


def _by_row(row: NDArray[np.integer[Any]], terms: Floats, rows: int) -> Floats:
    return np.asarray(np.bincount(row, weights=terms, minlength=rows), dtype=np.float64)


def power_of_two(number: float) -> float:
    """The nearest power of two: scaling by it loses nothing."""
    return math.ldexp(1.0, round(math.log2(number)))


NOTHING: Floats = np.zeros(0)
"""No point, and no prices."""
NOTHING.setflags(write=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What protection from one attacker more adds to an answer."""

    attacker: str
    cells: int
    """How many more cells are withheld; fewer where another choice is cheaper."""
    cost: float
    proved: bool
    """Whether neither with nor without this attacker anything cheaper will do; else it is what the search came to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """How good an answer is: its objective, the best proven bound, and how long it took.

    Of one program also the point, what a unit of each row and column is worth, and whether the user interrupted; of a
    release, which is made of many, none of these.
    """

    status: SolveStatus
    objective: float
    bound: float
    seconds: float
    prices: tuple[Price, ...] = ()
    """What each attacker costs, one after another; empty where that is not known."""

    point: Floats = field(default_factory=lambda: NOTHING, repr=False, compare=False)
    dual: Floats = field(default_factory=lambda: NOTHING, repr=False, compare=False)
    reduced_costs: Floats = field(default_factory=lambda: NOTHING, repr=False, compare=False)
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    """What there was no time for, in sentences for the user."""

    @property
    def found(self) -> bool:
        """Whether there is a point, checked against the equations."""
        return self.status is SolveStatus.OPTIMAL or self.status is SolveStatus.FEASIBLE

    @property
    def priced(self) -> str:
        """What each attacker costs, in words; empty where that is not known."""
        if not self.prices:
            return ""
        first, *others = self.prices
        told = [f"{first.attacker} {first.cells:,} {'cell' if first.cells == 1 else 'cells'} ({first.cost:,.9g})"]
        for price in others:
            more = f"{abs(price.cells):,} {'more' if price.cells >= 0 else 'fewer'} ({price.cost:,.9g} more)"
            told.append(f"{price.attacker} {more if price.cells or price.cost else '0'}")
        proved = "proven to be the least" if all(price.proved for price in self.prices) else "as far as was searched"
        return f"Withheld because of {', '.join(told)}: {proved}."

    @property
    def gap(self) -> float:
        """Distance between objective and bound, relative to the objective."""
        if self.objective == self.bound:
            return 0.0
        return abs(self.objective - self.bound) / max(abs(self.objective), 1e-12)

    @property
    def warning(self) -> str:
        """What everybody who sees the answer must be told about it; empty when it is near its bound, or none is proven.

        Console, report and files say it in these words.
        """
        if not 0 < self.bound < self.objective / FAR < float("inf"):
            return ""
        ratio = self.objective / self.bound
        times = "millions of times" if ratio >= 1e6 else f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.1f} times"
        return (
            f"The answer may be far from the best: it costs {self.objective:.4g}, {times} the {self.bound:.4g} that "
            f"every answer is proven to cost. Look at what it changed, raise time_limit_s, or choose another cost."
        )
