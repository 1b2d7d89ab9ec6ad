"""How the solutions of `matrix @ x = 0` can move: every unknown as a sum of a few coordinates.

Sparse elimination modulo a prime is fast and free of rounding. Its result is turned into fractions that are checked
in integers against the matrix, so the answer is exact. In tables it stays nearly as sparse as the matrix, and it shows

* which unknowns cannot move at all: the equations alone give them away;
* which unknowns only move together, one a fixed multiple of the other: they share a *form*;
* into which independent parts the rest falls: more than the equations as they are written have components.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Integers
from tablesafe.solve.exact.elimination import PRIME, ROOM, echelon, substitute
from tablesafe.work.compiled import compiled

LARGEST = 32_000
"""Fractions with numerator and denominator up to this are recognised: twice its square is less than the prime."""
MOST_ENTRIES, FEW_ENTRIES = 60_000_000, 1_000_000
"""Beyond so many entries the elimination is given up, to keep memory bounded; so many are no matter."""
SPARSE = 30
"""Beyond so many times the entries of the matrix it is no simpler than the matrix is."""


@dataclass(frozen=True, eq=False)
class NullSpace:
    """The solutions of `matrix @ x = 0`: `x[i] = (forms @ t)[form[i]] / divisor[i]` for any coordinates `t`.

    Forms have whole coefficients; the first `dimension` forms are the coordinates themselves.
    """

    forms: sparse.csr_array = field(repr=False)
    form: Integers = field(repr=False)
    """The form behind each unknown; −1 for one that cannot move."""
    divisor: Integers = field(repr=False)
    """Negative where the unknown falls as the form rises."""

    @property
    def dimension(self) -> int:
        """How many coordinates there are."""
        return int(self.forms.shape[1])


def null_space(matrix: sparse.csr_array) -> NullSpace | None:
    """The solutions of `matrix @ x = 0`; None when they have no sparse description in small whole numbers."""
    rows = sparse.csr_array(matrix)
    most = min(MOST_ENTRIES, max(FEW_ENTRIES, SPARSE * rows.nnz))
    reduced = echelon(rows, most)
    residues = substitute(reduced, rows.shape[1], most) if reduced.fits else None
    if residues is None:
        return None
    distinct, which = np.unique(residues.data, return_inverse=True)
    fractions = _recognised(distinct)
    if fractions is None:
        return None
    start, column = residues.indptr.astype(np.int64), residues.indices.astype(np.int64)
    numerator, denominator = fractions[0][which], fractions[1][which]
    if not _solves(rows, start, column, numerator, denominator):
        return None
    return _shared_forms(start, column, numerator, denominator)


def every_unknown(n: int) -> NullSpace:
    """Every unknown as its own coordinate: right only where the equations are kept as well."""
    return NullSpace(sparse.eye_array(n, dtype=np.int64, format="csr"), np.arange(n), np.ones(n, np.int64))


def _recognised(residues: Integers) -> tuple[Integers, Integers] | None:
    """The small fraction behind each residue modulo the prime; None when one of them has none."""
    numerator, denominator = np.zeros_like(residues), np.ones_like(residues)
    return (numerator, denominator) if _recognise(residues, numerator, denominator) else None


def _solves(
    matrix: sparse.csr_array, start: Integers, column: Integers, numerator: Integers, denominator: Integers
) -> bool:
    """Whether the fractions solve the equations, in integers: each is multiplied by the common denominator."""
    common = 1
    for q in np.unique(denominator).tolist():
        common = int(np.lcm(common, q))
        if common > 2**40:
            return False
    n = matrix.shape[1]
    widest = float(np.diff(matrix.indptr).max(initial=1))
    if float(np.abs(numerator).max(initial=0)) * common * widest >= ROOM:
        return False
    solution = sparse.csr_array((numerator * (common // denominator), column, start), shape=(n, n))
    return not (matrix.astype(np.int64) @ solution).data.any()


def _shared_forms(start: Integers, column: Integers, numerator: Integers, denominator: Integers) -> NullSpace | None:
    """Reduce every unknown to a multiple of a form with coprime coefficients, and give equal forms one number."""
    n = len(start) - 1
    free = np.unique(column)
    column = np.searchsorted(free, column)
    coefficient, top, bottom = _coprime(start, numerator, denominator)
    moves = np.diff(start) > 0
    key = _row_keys(start, column, coefficient, len(free))
    _, first, group = np.unique(key[moves], return_index=True, return_inverse=True)
    leader = np.flatnonzero(moves)[first]
    if not _equal_rows(start, column, coefficient, np.flatnonzero(moves), leader[group]):
        return None
    form = np.full(n, -1)
    form[moves] = group
    return _numbered(start, column, coefficient, form, leader, top, bottom, len(free))


def _row_keys(start: Integers, column: Integers, coefficient: Integers, k: int) -> Integers:
    """A 64-bit hash per row."""
    weights = np.random.default_rng(20240229).integers(1, 2**62, size=k, dtype=np.int64)
    with np.errstate(over="ignore"):
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(coefficient * weights[column])])
        return np.asarray(sums[start[1:]] - sums[start[:-1]])


def _numbered(
    start: Integers, column: Integers, coefficient: Integers, form: Integers, leader: Integers,
    top: Integers, bottom: Integers, k: int,
) -> NullSpace:  # fmt: skip
    """Put the forms that are coordinates first, and scale the others so that every unknown is a form over a divisor.

    An unknown is `top / bottom` times its form. Where several unknowns share a form, the least common multiple of their
    tops makes all of them the form over a whole number; if that is not 1 for a coordinate, it gets a form of its own.
    """
    scale = np.ones(len(leader), dtype=np.int64)
    moves = form >= 0
    for size in np.unique(np.abs(top[moves])).tolist():
        has = np.unique(form[moves & (np.abs(top) == size)])
        scale[has] = np.lcm(scale[has], size)
    unit = (np.diff(start)[leader] == 1) & (scale == 1)
    number = np.empty(len(leader), dtype=np.int64)
    number[unit] = column[start[leader[unit]]]
    number[~unit] = k + np.arange(int((~unit).sum()))
    rows = sparse.csr_array((coefficient, column, start), shape=(len(form), k))[leader[~unit]]
    rows = sparse.diags_array(scale[~unit], dtype=np.int64) @ rows
    forms = sparse.vstack([sparse.eye_array(k, dtype=np.int64, format="csr"), rows], format="csr")
    divisor = np.ones(len(form), dtype=np.int64)
    divisor[moves] = bottom[moves] * scale[form[moves]] // top[moves]
    shared = np.full(len(form), -1)
    shared[moves] = number[form[moves]]
    return NullSpace(sparse.csr_array(forms), shared, divisor)


@compiled
def _recognise(residues: Integers, numerator: Integers, denominator: Integers) -> bool:
    """Fill in the fractions, by Euclid's algorithm stopped half-way (Wang); false at the first residue without one."""
    for i in range(len(residues)):
        before, now, last, factor = PRIME, int(residues[i]) % PRIME, 0, 1
        while now > LARGEST:
            times = before // now
            before, now = now, before - times * now
            last, factor = factor, last - times * factor
        if abs(factor) > LARGEST:
            return False
        numerator[i], denominator[i] = (now, factor) if factor > 0 else (-now, -factor)
    return True


@compiled
def _coprime(start: Integers, numerator: Integers, denominator: Integers) -> tuple[Integers, Integers, Integers]:
    """Each row as `top / bottom` times a row of coprime whole numbers whose first is positive."""
    n = len(start) - 1
    out, top, bottom = np.empty(len(numerator), np.int64), np.ones(n, np.int64), np.ones(n, np.int64)
    for i in range(n):
        common, shared = 1, 0
        for z in range(start[i], start[i + 1]):
            common = common // _gcd(common, int(denominator[z])) * int(denominator[z])
        for z in range(start[i], start[i + 1]):
            out[z] = numerator[z] * (common // denominator[z])
            shared = _gcd(shared, int(abs(out[z])))
        if start[i] < start[i + 1] and out[start[i]] < 0:
            shared = -shared
        for z in range(start[i], start[i + 1]):
            out[z] //= shared
        if shared != 0:
            divide = _gcd(abs(shared), common)
            top[i], bottom[i] = shared // divide, common // divide
    return out, top, bottom


@compiled
def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


@compiled
def _equal_rows(start: Integers, column: Integers, coefficient: Integers, rows: Integers, others: Integers) -> bool:
    """Whether each row equals the other one, entry by entry: hashes only suggest it."""
    for i in range(len(rows)):
        a, b = start[rows[i]], start[others[i]]
        if start[rows[i] + 1] - a != start[others[i] + 1] - b:
            return False
        for z in range(start[rows[i] + 1] - a):
            if column[a + z] != column[b + z] or coefficient[a + z] != coefficient[b + z]:
                return False
    return True
