"""From a solver's floating-point tables to exact ones: whole numbers or fractions that add up without a tolerance.

A witness is held as its *move*: the difference from the true table, over one common denominator. A move solves the
homogeneous equations, `matrix @ move = 0`, and the true table is exactly additive, so a move that is checked in whole
numbers proves that the witness is additive too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats
from tablesafe.files.read import LARGEST_EXACT
from tablesafe.solve.exact.elimination import echelon
from tablesafe.solve.exact.nullspace import MOST_ENTRIES, NullSpace

SMALL_DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 10, 12)
"""Vertices of tables are whole or have denominators like these, with few exceptions."""
FEW_VALUES, LARGEST_PART, LARGEST_COMMON = 2_000, 120, 50_000
"""For so few values other denominators are tried as well: of one value, and of all together."""
NEAR = 1e-3
"""A value is tried as a whole number when it is this near to one, or as near as floats get; the check is exact."""
AT_LIMIT = (1e-12, 1e-9, 1e-6)
"""How near to its limit, relative to the move, a cell counts as at it: tried in turn."""
ROOM = 2**62
"""Whole numbers up to here are held in 64 bits, larger ones as Python's own."""
FINE_DENOMINATORS = (1, 10**3, 10**9)
"""What coordinates are rounded to where a table is no vertex."""
FINE, A_LITTLE_MORE = 2**30, 1 + 1e-6
"""What cells are rounded to that all others follow from, and how many times as far these are moved before."""
STEP_BITS = 24
"""Precision gained by one step of refinement."""
STEPS = 24
"""After so many steps a vertex has a denominator too large to be worth proving."""

Wholes = NDArray[Any]
"""Whole numbers: int64 where they fit, otherwise objects."""

DIGITS = 1e15
"""Whole numbers below this are exactly what a float holds."""


def exact(number: float) -> Fraction:
    """The decimal number behind a float: 71.4, not the binary fraction nearest to it, nor 71.40000000000001.

    Fifteen significant digits are what a float holds of any decimal number; what follows is the noise of arithmetic.
    """
    return Fraction(f"{number:.15g}")


def denominators(values: Floats) -> Iterator[int]:
    """Denominators over which a solver's values may be whole: the usual small ones, then what they look like."""
    yield from SMALL_DENOMINATORS
    if len(values) <= FEW_VALUES:
        least = lcm(*(Fraction(value).limit_denominator(LARGEST_PART).denominator for value in values.tolist()))
        if SMALL_DENOMINATORS[-1] < least <= LARGEST_COMMON:
            yield least


def exact_in_units(numbers: Floats, decimals: int) -> NDArray[Any]:
    """Finite numbers of the table's own unit as exact fractions of `10**-decimals`, each distinct one once."""
    distinct, where = np.unique(numbers, return_inverse=True)
    unit = 10**decimals
    whole = (distinct == np.rint(distinct)) & (np.abs(distinct) < DIGITS)
    fractions = [int(number) if is_whole else exact(number) for number, is_whole in zip(distinct, whole, strict=True)]
    return _objects([number * unit for number in fractions])[where]


@dataclass(frozen=True, eq=False)
class ExactLimits:
    """How far each unknown cell may move from its true value: `low <= scale * move <= high`, in whole numbers."""

    low: Wholes = field(repr=False)
    """Not above 0; meaningless where `low_free`."""
    high: Wholes = field(repr=False)
    low_free: NDArray[np.bool_] = field(repr=False)
    """No bound at all on this side."""
    high_free: NDArray[np.bool_] = field(repr=False)
    scale: int = 1

    @classmethod
    def of(cls, lower: NDArray[Any], upper: NDArray[Any], truth: NDArray[np.int64]) -> Self:
        """Limits from bounds in units: floats that are whole or infinite, or objects that are fractions or infinite."""
        low_free, high_free = lower == -np.inf, upper == np.inf
        below, above = np.where(low_free, truth, lower), np.where(high_free, truth, upper)
        scale = lcm(_common_denominator(below), _common_denominator(above))
        start = times(truth, scale)
        return cls(
            whole_multiples(below, scale) - start, whole_multiples(above, scale) - start, low_free, high_free, scale
        )

    @classmethod
    def within(cls, down: Floats, up: Floats) -> Self:
        """Limits from whole rooms below and above the truth: floats; what is beyond 64 bits is no bound."""
        low, high = (np.floor(np.minimum(room, ROOM / 2)).astype(np.int64) for room in (down, up))
        return cls(-low, high, down >= ROOM / 2, up >= ROOM / 2)

    def take(self, cells: NDArray[np.intp]) -> ExactLimits:
        """The limits of some cells."""
        return ExactLimits(self.low[cells], self.high[cells], self.low_free[cells], self.high_free[cells], self.scale)

    def allow_both(self, by: int) -> bool:
        """Whether every cell may move by so many units, down and up."""
        far = by * self.scale
        return bool(((self.low_free | (self.low <= -far)) & (self.high_free | (self.high >= far))).all())

    def allow(self, numerators: Wholes, denominator: int) -> bool:
        """Whether a move stays within the limits."""
        moved = times(numerators, self.scale)
        above_low = self.low_free | (moved >= times(self.low, denominator))
        below_high = self.high_free | (moved <= times(self.high, denominator))
        return bool((above_low & below_high).all())


@dataclass(frozen=True, eq=False)
class ExactMove:
    """An exact move: the cells that differ from the truth, and by how many `1/denominator` units."""

    cells: NDArray[np.intp] = field(repr=False)
    numerators: Wholes = field(repr=False)
    denominator: int = 1

    def whole(self, n: int) -> Wholes:
        """The numerators of all of so many cells."""
        out = np.zeros(n, dtype=self.numerators.dtype)
        out[self.cells] = self.numerators
        return out

    def at(self, cells: NDArray[np.intp]) -> Wholes:
        """The numerators of some cells; `self.cells` is in ascending order."""
        out = np.zeros(len(cells), dtype=self.numerators.dtype)
        if len(self.cells):
            where = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
            there = self.cells[where] == cells
            out[there] = self.numerators[where[there]]
        return out


def exact_moves(matrix: sparse.csr_array, moves: Floats, limits: ExactLimits) -> list[ExactMove | None]:
    """Each row of `moves` as an exact move near it, or None where none was found.

    `matrix` holds the equations over the moving cells. Tried in turn: rounding to whole numbers and to small fractions,
    and solving for the vertex in exact arithmetic. What comes back satisfies every equation and limit, exactly.
    """
    found: list[ExactMove | None] = [None] * len(moves)
    todo = np.flatnonzero((np.abs(moves) < LARGEST_EXACT).all(axis=1))
    for denominator in sorted({limits.scale * small for small in SMALL_DENOMINATORS}):
        if not todo.size:
            break
        left = []
        for at in todo.tolist():
            found[at] = _rounded(matrix, moves[at], denominator, limits)
            if found[at] is None:
                left.append(at)
        todo = np.array(left, dtype=np.intp)
    for at in todo.tolist():
        found[at] = exact_vertex(matrix, moves[at], limits)
    return found


def _rounded(matrix: sparse.csr_array, move: Floats, denominator: int, limits: ExactLimits) -> ExactMove | None:
    scaled = move * denominator
    nearest, largest = np.rint(scaled), float(np.abs(scaled).max(initial=0.0))
    near = min(NEAR + 8 * np.spacing(largest), 0.25)
    if float(np.abs(scaled - nearest).max(initial=0.0)) > near or largest > LARGEST_EXACT:
        return None
    numerators = nearest.astype(np.int64)
    return checked(matrix, numerators, denominator, limits)


def checked(matrix: sparse.csr_array, numerators: Wholes, denominator: int, limits: ExactLimits) -> ExactMove | None:
    """The move, if it satisfies every equation, or the part of it that stays within every limit, in whole numbers."""
    return None if row_sums(matrix, numerators).any() else within(numerators, denominator, limits)


def within(numerators: Wholes, denominator: int, limits: ExactLimits) -> ExactMove | None:
    """A move that satisfies the equations, as far as the limits allow; None where that is not at all."""
    if not limits.allow(numerators, denominator):
        return _shortened(numerators, denominator, limits)
    return _move(numerators, denominator)


def _move(numerators: Wholes, denominator: int) -> ExactMove:
    cells = np.flatnonzero(numerators)
    kept = numerators[cells]
    common = gcd(denominator, *(int(n) for n in kept.tolist())) if denominator > 1 else 1
    return ExactMove(cells, kept // common if common > 1 else kept, denominator // common)


def _shortened(numerators: Wholes, denominator: int, limits: ExactLimits) -> ExactMove | None:
    """The longest part of a move that stays within the limits: the truth does, and so does all between."""
    step = Fraction(1)
    moved, base = times(numerators, limits.scale), denominator
    for bound, free, side in ((limits.low, limits.low_free, -1), (limits.high, limits.high_free, 1)):
        beyond = np.flatnonzero(~free & (side * moved > side * times(bound, base)))
        for cell in beyond.tolist():
            step = min(step, Fraction(int(bound[cell]) * base, int(moved[cell])))
    if step <= 0:
        return None
    shorter = times(numerators, step.numerator)
    return _move(shorter, denominator * step.denominator)


def exact_vertex(matrix: sparse.csr_array, move: Floats, limits: ExactLimits) -> ExactMove | None:
    """Solve for the vertex near a solver's answer: cells at a limit stay there, the others follow from the equations.

    The columns of cells strictly between their limits are independent at a vertex, so they have one solution. It comes
    from one sparse factorisation and iterative refinement with exact residuals, until its fractions show themselves.
    """
    for nearness in AT_LIMIT:
        found = _vertex(matrix, move, limits, nearness)
        if found is not None:
            return found
    return None


def _vertex(matrix: sparse.csr_array, move: Floats, limits: ExactLimits, nearness: float) -> ExactMove | None:
    at_low, at_high = _at_limit(move, limits, nearness)
    fixed = np.where(at_low, limits.low, np.where(at_high, limits.high, 0))
    between = np.flatnonzero(~(at_low | at_high))
    if between.size > matrix.shape[0]:  # more than the equations can determine: no vertex
        return None
    target = -row_sums(matrix, fixed)
    if not between.size:
        return None if target.any() else checked(matrix, fixed, limits.scale, limits)
    part = sparse.csr_array(matrix[:, between])
    solved = _solve_exactly(part, target)
    if solved is None:
        return None
    numerators, denominator = solved
    whole = times(fixed, denominator).astype(object)
    whole[between] = numerators
    return checked(matrix, narrowed(whole), denominator * limits.scale, limits)


def exact_inside(space: NullSpace, matrix: sparse.csr_array, move: Floats, limits: ExactLimits) -> Iterator[ExactMove]:
    """Exact moves near any solver's answer, vertex or not, coarse ones first: only its coordinates are rounded.

    `space` describes all solutions of the equations by coordinates, so whatever these are, the equations hold. What
    rounding takes beyond a limit is shortened.
    """
    moves = np.flatnonzero(space.form >= 0)
    _, first = np.unique(space.form[moves], return_index=True)
    own = moves[first[: space.dimension]]  # the first forms are the coordinates, each with a cell of its own
    coordinates = move[own] * space.divisor[own]
    common = lcm(1, *np.unique(np.abs(space.divisor[moves])).tolist())
    for fine in FINE_DENOMINATORS:
        denominator = fine * limits.scale
        if not float(np.abs(coordinates).max(initial=0.0)) * denominator < 1e300:
            return
        rounded = narrowed(_objects([int(c) for c in np.rint(coordinates * denominator).tolist()]))
        forms = row_sums(space.forms, rounded)
        numerators = np.zeros(len(move), dtype=forms.dtype)
        numerators[moves] = forms[space.form[moves]]
        if common > 1:
            numerators = narrowed(
                _objects([int(n) * (common // int(d)) for n, d in zip(numerators, space.divisor, strict=True)])
            )
        found = checked(matrix, numerators, denominator * common, limits)
        if found is not None:
            yield found


def exact_nearby(matrix: sparse.csr_array, move: Floats, limits: ExactLimits) -> ExactMove | None:
    """An exact move near any solver's answer, where few cells determine all others but by no simple fractions.

    Cells that do not depend on each other modulo a prime follow from the rest, which are rounded (hier16: 2,778 of
    2,786, with a determinant of 13 digits). A little is added first, for what rounding takes off.
    """
    cells = np.flatnonzero(np.abs(move) > NEAR * NEAR)
    own, inside = limits.take(cells), sparse.csr_array(matrix[:, cells]).astype(np.int64)
    reduced = echelon(inside, MOST_ENTRIES)
    if not reduced.fits:
        return None
    following = np.sort(reduced.pivot_column)
    given = np.setdiff1d(np.arange(len(cells)), following)
    part = sparse.csr_array(inside[np.sort(reduced.pivot_row)])
    numerators = np.zeros(len(cells), dtype=object)
    numerators[given] = [int(by) for by in np.rint(move[cells[given]] * (A_LITTLE_MORE * FINE)).tolist()]
    solved = _solve_exactly(sparse.csr_array(part[:, following]), -row_sums(part, numerators))
    if solved is None:
        return None
    numerators *= solved[1]
    numerators[following] = solved[0]
    found = checked(inside, narrowed(numerators), solved[1] * FINE, own)
    return None if found is None else ExactMove(cells[found.cells], found.numerators, found.denominator)


def _at_limit(move: Floats, limits: ExactLimits, nearness: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    low = np.where(limits.low_free, -np.inf, limits.low.astype(np.float64) / limits.scale)
    high = np.where(limits.high_free, np.inf, limits.high.astype(np.float64) / limits.scale)
    near = 1e-6 + nearness * np.minimum(np.abs(move), high - low)
    at_low = move - low <= near
    return at_low, (high - move <= near) & ~at_low


def _solve_exactly(matrix: sparse.csr_array, target: Wholes) -> tuple[Wholes, int] | None:
    """The solution of `matrix @ x = target`, as numerators over one denominator; None if there is none, or many."""
    rows, columns = matrix.shape
    identity = sparse.eye_array(rows, format="csr")
    augmented = sparse.block_array([[identity, matrix], [matrix.T, None]], format="csc", dtype=np.float64)
    from scipy.sparse.linalg import splu

    try:
        factors = splu(augmented)
    except RuntimeError:  # singular: the columns are not independent, so this is no vertex
        return None
    so_far, bits = np.zeros(columns, dtype=object), 0
    residual = target.astype(object)
    for _ in range(STEPS):
        size = max((int(abs(r)).bit_length() for r in residual.tolist()), default=0)
        shift = max(0, size - 900)
        near = np.array([float(r >> shift) for r in residual.tolist()])
        step = factors.solve(np.concatenate([near, np.zeros(columns)]))[rows:]
        if not np.isfinite(step).all():
            return None
        gained = _objects([int(s) << shift for s in np.rint(step * 2.0**STEP_BITS).tolist()])
        so_far = so_far * 2**STEP_BITS + gained
        bits += STEP_BITS
        residual = residual * 2**STEP_BITS - row_sums(matrix, gained)
        answer = _reconstructed(matrix, target, so_far, bits)
        if answer is not None:
            return answer
    return None


def _reconstructed(matrix: sparse.csr_array, target: Wholes, so_far: Wholes, bits: int) -> tuple[Wholes, int] | None:
    """Fractions with one small denominator that the digits so far point to, if they solve the equations exactly."""
    one, largest = 2**bits, 2 ** max(bits // 3, 1)
    denominator = 1
    for value in so_far.tolist():
        scaled = value * denominator
        off = abs(scaled - _nearest(scaled, one) * one)
        if off * largest > one:  # not whole over the denominator so far: it needs a factor more
            factor = Fraction(scaled, one).limit_denominator(largest).denominator
            denominator *= factor
            if denominator > largest:
                return None
    numerators = _objects([_nearest(value * denominator, one) for value in so_far.tolist()])
    if (row_sums(matrix, numerators) != times(target, denominator)).any():
        return None
    return numerators, denominator


def _nearest(value: int, one: int) -> int:
    return (2 * value + one) // (2 * one)


def row_sums(matrix: sparse.csr_array, values: Wholes) -> Wholes:
    """`matrix @ values` in whole numbers, with objects where 64 bits could overflow."""
    if not matrix.nnz:
        return np.zeros(matrix.shape[0], dtype=np.int64)
    widest = int(np.diff(matrix.indptr).max())
    if values.dtype != object and fits(values, matrix.data, widest):
        return np.asarray(matrix.astype(np.int64) @ values)
    terms = matrix.data.astype(object) * values.astype(object)[matrix.indices]
    there = np.flatnonzero(np.diff(matrix.indptr))
    out = np.zeros(matrix.shape[0], dtype=object)
    out[there] = np.add.reduceat(terms, matrix.indptr[there])
    return out


def fits(values: Wholes, factors: NDArray[Any], many: int) -> bool:
    """Whether a sum of so many products of values (of 64 bits) and factors has no more than 64 bits."""
    largest = int(np.abs(values).max(initial=0)) * int(np.abs(factors).max(initial=0))
    return largest * max(many, 1) < ROOM


def narrowed(values: Wholes) -> Wholes:
    """Whole numbers in 64 bits where they all fit."""
    if values.dtype == object and all(-ROOM < v < ROOM for v in values.tolist()):
        return values.astype(np.int64)
    return values


def times(values: Wholes, factor: int) -> Wholes:
    """A product that cannot overflow."""
    if factor == 1:
        return values
    if values.dtype != object and abs(factor) * int(np.abs(values).max(initial=0)) < ROOM:
        return values * np.int64(factor) if abs(factor) < ROOM else values  # all of them are 0
    return values.astype(object) * factor


def _common_denominator(values: NDArray[Any]) -> int:
    if values.dtype != object:
        if not (values == np.rint(values)).all():
            raise AssertionError("bounds that are not whole must be given as fractions")
        return 1
    return lcm(1, *(Fraction(value).denominator for value in set(values.tolist())))


def whole_multiples(values: NDArray[Any], scale: int) -> Wholes:
    """Numbers times a scale that makes them whole."""
    if values.dtype != object:
        if float(np.abs(values).max(initial=0.0)) < 2**61:
            return times(values.astype(np.int64), scale)
        values = _objects([int(value) for value in values.tolist()])
    return narrowed(_objects([int(value * scale) for value in values.tolist()]))


def _objects(values: list[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
