"""Few tables for many witnesses: moves that do not disturb each other are added up.

A point found for one cell moves a few cells and leaves the rest at the truth. Added to another point it gives a table
that serves both, as long as every bound holds and everybody served so far still is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit
from scipy import sparse

from tablesafe.audit.pieces import Shape
from tablesafe.core.equations import Floats, Integers
from tablesafe.solve.exact.witnesses import NOBODY, Store

MOST_NUMBERS = 30_000_000
"""Numbers that tables under construction may take up; beyond, they are finished and new ones begun."""
FREE = 2**62


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of one piece, as the numerators of its forms."""

    values: sparse.csr_array = field(repr=False)
    denominator: Integers = field(repr=False)
    part: Integers = field(repr=False)
    """The part that each table belongs to."""
    of_side: Integers = field(repr=False)
    """For each side the table that serves it; −1 for none."""

    @property
    def parts(self) -> Integers:
        """The parts that have tables, ascending."""
        return np.unique(self.part)

    def reached(self, sides: Integers, tables: Integers) -> tuple[Integers, Integers]:
        """How far each table takes a side, as a fraction; 0 where there is no table."""
        top, bottom = np.zeros(len(sides), np.int64), np.ones(len(sides), np.int64)
        there = tables >= 0
        top[there] = np.abs(pairs(self.values, tables[there], sides[there] // 2))
        bottom[there] = self.denominator[tables[there]]
        return top, bottom


def form_values(shape: Shape, store: Store) -> sparse.csr_array:
    """The numerators of every form at every point."""
    points = store.rows(shape.polytope.columns)
    rows = points @ shape.polytope.rows.astype(np.int64).T.tocsr()
    values = sparse.csr_array(sparse.hstack([points, rows], format="csr"))
    values.eliminate_zeros()
    values.sort_indices()
    return values


def pairs(matrix: sparse.csr_array, rows: Integers, columns: Integers) -> Integers:
    """The entries at some pairs of row and column."""
    if not len(rows):
        return np.zeros(0, np.int64)
    return np.asarray(matrix[rows, columns]).ravel().astype(np.int64)


def share(shape: Shape, store: Store, sides: Integers) -> Tables:
    """Tables in which every one of these sides goes as far as it needs, or as its own point takes it."""
    values, polytope = form_values(shape, store), shape.polytope
    start, index = values.indptr.astype(np.int64), values.indices.astype(np.int64)
    sides = sides[np.argsort(shape.part[sides // 2], kind="stable")]
    parts, starts = np.unique(shape.part[sides // 2], return_index=True)
    forms_by_part = np.argsort(shape.part, kind="stable")
    ends = np.searchsorted(shape.part[forms_by_part], np.stack([parts, parts + 1]))
    of_side, place = np.full(2 * polytope.forms, NOBODY), np.zeros(polytope.forms, np.int64)
    rows, bottoms, owners, count = [], [], [], 0
    for i, part in enumerate(parts.tolist()):
        forms = np.sort(forms_by_part[ends[0, i] : ends[1, i]])
        place[forms] = np.arange(len(forms))
        left = sides[starts[i] : starts[i + 1] if i + 1 < len(parts) else None]
        while left.size:
            most = min(len(left), max(1, MOST_NUMBERS // len(forms)))
            done, used, table, taken, bottom = _fill(
                polytope.lower, polytope.upper, start, index, values.data, store.denominator, store.by, store.need,
                forms, place, left, most,
            )  # fmt: skip
            of_side[left[:done]] = count + table[:done]
            own = sparse.csr_array(taken[:used])
            rows.append(sparse.csr_array((own.data, forms[own.indices], own.indptr), shape=(used, polytope.forms)))
            bottoms.append(bottom[:used])
            owners.append(np.full(used, part))
            count, left = count + used, left[done:]
    if not rows:
        none = np.zeros(0, np.int64)
        return Tables(sparse.csr_array((0, polytope.forms), dtype=np.int64), none, none, of_side)
    joined = sparse.csr_array(sparse.vstack(rows, format="csr"))
    return Tables(joined, np.concatenate(bottoms), np.concatenate(owners), of_side)


@njit(cache=True)
def _fill(
    lower: Floats, upper: Floats, start: Integers, index: Integers, data: Integers, denominator: Integers,
    by: Integers, need: Floats, forms: Integers, place: Integers, sides: Integers, most: int,
) -> tuple[int, int, Integers, Integers, Integers]:  # fmt: skip
    """Serve sides of one part with at most so many tables: by one that does already, by adding to one, by a new one.

    Returns how many sides are served, the number of tables, the table of each side, the tables and their denominators.
    """
    n, used = len(forms), 0
    table, bottom = np.zeros(len(sides), np.int64), np.zeros(most, np.int64)
    values, least, greatest = (
        np.zeros((most, n), np.int64),
        np.zeros((most, n), np.int64),
        np.zeros((most, n), np.int64),
    )
    for i in range(len(sides)):
        form, sign, point = sides[i] // 2, 1 - 2 * (sides[i] % 2), by[sides[i]]
        d, at = denominator[point], place[form]
        gain = 0
        for z in range(start[point], start[point + 1]):
            if index[z] == form:
                gain = sign * data[z]
        goal = int(need[sides[i]]) * d if need[sides[i]] * d < gain else gain
        b = 0
        while b < used and not (bottom[b] == d and sign * values[b, at] >= goal):
            b += 1
        if b == used:
            b = 0
            while b < used and not (
                bottom[b] == d
                and sign * values[b, at] + gain >= goal
                and _fits(start, index, data, place, values[b], least[b], greatest[b], point)
            ):
                b += 1
            if b == used:
                if used == most:
                    return i, used, table, values, bottom
                bottom[b] = d
                for j in range(n):
                    least[b, j] = _times(lower[forms[j]], d)
                    greatest[b, j] = _times(upper[forms[j]], d)
                used += 1
            for z in range(start[point], start[point + 1]):
                values[b, place[index[z]]] += data[z]
        table[i] = b
        if sign > 0:
            least[b, at] = max(least[b, at], goal)
        else:
            greatest[b, at] = min(greatest[b, at], -goal)
    return len(sides), used, table, values, bottom


@njit(cache=True)
def _fits(
    start: Integers, index: Integers, data: Integers, place: Integers, values: Integers, least: Integers,
    greatest: Integers, point: int,
) -> bool:  # fmt: skip
    """Whether a point can be added to a table without breaking a bound or a promise."""
    for z in range(start[point], start[point + 1]):
        at = place[index[z]]
        x = values[at] + data[z]
        if x < least[at] or x > greatest[at]:
            return False
    return True


@njit(cache=True)
def _times(bound: float, denominator: int) -> int:
    """A bound in numerators; beyond 64 bits as good as none."""
    if abs(bound) * denominator >= FREE:
        return int(FREE) if bound > 0 else int(-FREE)
    return int(bound) * denominator
