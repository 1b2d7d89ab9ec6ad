"""The range of every unknown cell within bounds of which nobody knows whether the truth lies in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.attack.estimate import Guess
from tablesafe.attack.optima import vertex
from tablesafe.attack.reconstruction import Derived
from tablesafe.attack.view import View
from tablesafe.audit.furthest import FurthestMove
from tablesafe.audit.intervals import Intervals, exact_intervals
from tablesafe.audit.system import System, snapped
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, SolverFailure
from tablesafe.core.options import require_number
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.solve.program import Program
from tablesafe.work.budget import ENDLESS, Budget

NOISE = 1e-9
"""By how much bounds may cross, relative to their size, before they contradict each other: both were divided."""


class Empty(Exception):
    """No table lies within the bounds."""


def ranges(system: System, lower: Floats, upper: Floats) -> Intervals:
    """The least and the greatest value of each unknown within other bounds, in units; `Empty` if there is none.

    Where the truth lies within the bounds the exact search is used. Otherwise the intruder's guess was wrong, and two
    linear programs per cell tell what it would believe.
    """
    lower, upper = np.maximum(snapped(lower), system.lower), np.minimum(snapped(upper), system.upper)
    crossed = np.flatnonzero(lower > upper)
    if bool((lower[crossed] - upper[crossed] > NOISE * np.maximum(1.0, np.abs(upper[crossed]))).any()):
        raise Empty
    lower[crossed] = upper[crossed]
    if bool(((lower <= system.truth) & (system.truth <= upper)).all()):
        return exact_intervals(system.within(lower, upper))
    return _by_programs(system, lower, upper)


def _by_programs(system: System, lower: Floats, upper: Floats) -> Intervals:
    """From one table within the bounds, as far as each cell can go."""
    matrix, rhs = sparse.csr_array(system.matrix), system.rhs.astype(np.float64)
    try:
        start = vertex(Program.equations(matrix, rhs, lower, upper))
    except SolverFailure:
        raise Empty from None
    below, above = np.minimum(lower - start, 0.0), np.maximum(upper - start, 0.0)
    finite = np.abs(np.concatenate([below, above]))
    scale = max(float(np.max(finite[np.isfinite(finite)], initial=1.0)) / 2.0**20, 1.0)
    program = FurthestMove(matrix, below, above, scale=scale)
    ends = np.empty((2, len(system)))
    for cell in range(len(system)):
        for side, sign in enumerate((-1, 1)):
            found = program.of(cell, sign)
            ends[side, cell] = sign * np.inf if found is None else start[cell] + found[cell]
    return Intervals(ends[0], ends[1])


# What a release tells about the secret parameter p of the p% rule, and what a known p tells about the values.
#
# A cell with one contributor is protected when its exact interval [l, u] reaches from x(1 − p) to x(1 + p). Turned
# round, for whoever knows l and u: `l/(1 − p) ≤ x ≤ u/(1 + p)`, so `p ≤ (u − l)/(u + l)`. (Cox, "Vulnerability of
# Complementary Cell Suppression to Intruder Attack".) In a cell with two contributors the level is p of the larger
# one, which is at least half of the cell: the same holds with p/2 in place of p. Where an office takes p of the whole
# cell, as the paper does, it holds with p itself: `of="value"`.
#
# Percentages are in percent here, as in the rules; nothing looks at the true values.


Base = Literal["largest", "value"]


@dataclass(frozen=True, eq=False)
class PRange:
    """What an intruder knows about p, in percent, and the cells that tell it."""

    lower: float
    """No less than this: with less, the pattern would have been smaller."""
    upper: float
    """No more than this: with more, some cell would not be protected."""
    table: Table = field(repr=False)
    lower_cell: int | None = None
    """The withheld cell that would have been published with a smaller p."""
    upper_cell: int | None = None
    """The cell whose interval is too narrow for a larger p."""

    @property
    def width(self) -> float:
        """How much is still open, in percentage points."""
        return self.upper - self.lower

    def __contains__(self, p: float) -> bool:
        return self.lower <= p * (1 + 1e-9) and p <= self.upper * (1 + 1e-9)

    def __str__(self) -> str:
        by = "" if self.upper_cell is None else f" (by cell {self.table.describe(self.upper_cell)})"
        return f"p is between {self.lower:.4g}% and {self.upper:.4g}%{by}."


@dataclass(frozen=True, eq=False)
class Few:
    """The cells of which an intruder knows that one or two contributors are in them."""

    one: Mask = field(repr=False)
    two: Mask = field(repr=False)

    @classmethod
    def of(cls, table: Table, one: NDArray[Any] | None = None, two: NDArray[Any] | None = None) -> Few:
        """As told; otherwise from the counts of the table, which offices publish more often than not."""
        none = np.zeros(len(table), np.bool_)
        counts = table.count if table.holdings is None else table.holdings
        if one is None and two is None and counts is not None:
            return cls(counts == 1, counts == 2)
        return cls(*(none if mask is None else _mask(mask, len(table)) for mask in (one, two)))

    def share(self, of: Base) -> Floats:
        """How much of p each cell shows on either side: 1 or ½, and nothing with more contributors."""
        return np.where(self.one, 1.0, np.where(self.two, 1.0 if of == "value" else 0.5, 0.0))


def infer_p(
    release: Release, *, one: NDArray[Any] | None = None, two: NDArray[Any] | None = None, of: Base = "largest"
) -> PRange:
    """Bound p from above by the intervals of cells with one or two contributors; `one` and `two` mark them.

    Without marks they are those that the table counts so. `trial_p` bounds p from below.
    """
    return infer_p_from(Derived.of(release), Few.of(release.table, one, two), of)


def infer_p_from(derived: Derived, few: Few, of: Base = "largest") -> PRange:
    """The same from intervals that are known already."""
    _require_base(of)
    share = few.share(of)[derived.cells]
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = (derived.upper - derived.lower) / (derived.upper + derived.lower) / share
    told = (share > 0) & np.isfinite(bound) & (derived.lower >= 0) & derived.free
    if not told.any():
        return PRange(0.0, 100.0, derived.table)
    at = int(np.argmin(np.where(told, bound, np.inf)))
    most = 100 * float(bound[at])
    return PRange(0.0, min(most, 100.0), derived.table, upper_cell=int(derived.cells[at]) if most < 100 else None)


@dataclass(frozen=True, eq=False)
class Shrunk:
    """The intervals of all unknown cells for an intruder who knows p, or guesses it."""

    derived: Derived = field(repr=False)
    """The intervals without p."""
    p: float
    lower: Floats = field(repr=False)
    """Per unknown cell, in the table's own unit; NaN when p is refuted."""
    upper: Floats = field(repr=False)
    refuted: bool
    """Whether no table agrees with the release and this p: the guess was too large."""

    @property
    def cells(self) -> NDArray[np.intp]:
        """The table's cells that the intervals are about."""
        return self.derived.cells

    @property
    def narrowed(self) -> Floats:
        """By which share each interval became narrower; 0 for one that was a point, or endless."""
        before, after = self.derived.upper - self.derived.lower, self.upper - self.lower
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.isfinite(before) & (before > 0), 1 - after / before, 0.0)

    @property
    def values(self) -> Floats:
        """All cells: as shown, or the middle of what is left of the interval."""
        with np.errstate(invalid="ignore"):
            middle = self.lower + (self.upper - self.lower) / 2
        return self.derived.everywhere(np.where(np.isfinite(middle), middle, np.nan))


def shrink(
    release: Release,
    p: float,
    *,
    one: NDArray[Any] | None = None,
    two: NDArray[Any] | None = None,
    of: Base = "largest",
) -> Shrunk:
    """Narrow every interval by a known or guessed p (in percent): `l/(1 − p) ≤ x ≤ u/(1 + p)`, then over all equations.

    The cells with few contributors become narrower by themselves, all others through what they add up to.
    """
    if not 0 <= p < 100:
        raise InvalidOption(f"shrink takes a p of 0 or more and below 100 percent, got {p!r}.")
    return shrink_from(Derived.of(release), Few.of(release.table, one, two), p, of)


def shrink_from(derived: Derived, few: Few, p: float, of: Base = "largest") -> Shrunk:
    """The same from intervals that are known already."""
    _require_base(of)
    lower, upper = own_limits(derived, few, p, of)
    unit = 10.0**derived.table.decimals
    try:
        found = ranges(derived.system, lower * unit, upper * unit)
    except Empty:
        nothing = np.full(len(lower), np.nan)
        return Shrunk(derived, p, nothing, nothing, refuted=True)
    return Shrunk(derived, p, found.lower / unit, found.upper / unit, refuted=False)


def own_limits(derived: Derived, few: Few, p: float, of: Base = "largest") -> tuple[Floats, Floats]:
    """What p says about each cell by itself; intervals below zero are left as they are."""
    share = np.where(derived.lower >= 0, few.share(of)[derived.cells] * p / 100, 0.0)
    return derived.lower / (1 - share), derived.upper / (1 + share)


def _mask(given: NDArray[Any], n: int) -> Mask:
    mask = np.asarray(given)
    if mask.shape != (n,) or mask.dtype != np.bool_:
        raise InvalidOption(
            f"Cells with few contributors are marked by {n:,} booleans, one per cell; "
            f"got {mask.dtype} of shape {mask.shape}."
        )
    return mask


def _require_base(of: str) -> None:
    if of not in {"largest", "value"}:
        raise InvalidOption(f"p is a percentage of the 'largest' contribution or of the cell's 'value', got {of!r}.")


# The middles of intervals that a known or guessed p makes narrower.


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkMidpoint:
    """Guess the middle of what p leaves of each interval, by the cells that are counted with one or two contributors.

    Without a p the largest that the intervals allow is taken: it makes the narrowest of them a point. (Cox,
    "Vulnerability of Complementary Cell Suppression to Intruder Attack".)
    """

    name: ClassVar[str] = "shrunk midpoint"

    p: float | None = field(
        default=None, metadata={"help": "known or guessed p, in percent; by default the largest that can be"}
    )

    def __post_init__(self) -> None:
        if self.p is not None:
            require_number(self, "p", at_least=0, below=100)

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """The middles; where nobody is known to be alone, or p is refuted, those of the intervals as they are."""
        unit = 10.0**view.system.table.decimals
        derived = Derived(view.system, view.lower / unit, view.upper / unit)
        few = Few.of(view.system.table)
        most = infer_p_from(derived, few)
        if most.upper_cell is None and self.p is None:
            return self._plain(view, "no interval tells p")
        p = most.upper if self.p is None else self.p
        budget.check()
        found = shrink_from(derived, few, p)
        if found.refuted:
            return self._plain(view, f"p = {p:.4g}% is refuted")
        middle = found.values[view.system.cells] * unit
        return Guess(np.where(view.free, middle, view.lower), note=f"p = {p:.4g}%")

    def _plain(self, view: View, note: str) -> Guess:
        with np.errstate(invalid="ignore"):
            middle = view.lower + (view.upper - view.lower) / 2
        return Guess(np.where(view.bounded, middle, np.nan), note=note)
