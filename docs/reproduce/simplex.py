"""A primal simplex method as textbooks of the time have it, in all its ordinary variants, on Dandekar's table.

Dandekar's paper names its interior-point solver, but not how its simplex method chose a column or broke a tie, nor in
which order it was given the cells. `python docs/reproduce/simplex.py` tries them all: a full tableau, five rules for
the column, three for the row, two phases or a big M, each program from the first basis or from the last one's, cells in
twelve orders, their bounds as rows or none. What comes out is kept in `simplexes.csv`, for the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts
from tablesafe.work.compiled import compiled

Array = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int64]]
KEPT = Path(__file__).with_name("simplexes.csv")
CODES = ("col", "row", "level")
RULES = ("most negative", "most negative, last", "first negative", "greatest improvement", "steepest edge")
"""Dantzig's rule, with the first or the last of equals; Bland's; the largest step times price; price by length."""
TIES = ("first row", "last row", "least variable")
STARTS = ("two phases", "big M")
AGAIN = ("first basis", "last basis")
BOUNDS = ("none", "grand total")
BIG_M = 1e7
EPSILON = 1e-9
PIVOTS = 5_000


@dataclass(frozen=True)
class Variant:
    """One way to solve the programs, as words of the lists above; `order` sorts the cells, `turned` the other way."""

    rule: str = RULES[0]
    tie: str = TIES[0]
    start: str = STARTS[0]
    again: str = AGAIN[0]
    bounds: str = BOUNDS[0]
    order: tuple[str, ...] = CODES
    turned: bool = False

    @classmethod
    def all(cls) -> Iterator[Variant]:
        """Every combination."""
        for order, turned in product(permutations(CODES), (False, True)):
            for words in product(RULES, TIES, STARTS, AGAIN, BOUNDS):
                yield cls(*words, order=order, turned=turned)


@dataclass(frozen=True, eq=False)
class Solved:
    """The withheld cells in a variant's order, the table it finds with nothing to minimise, and the 138 others."""

    cells: Places
    first: Array
    found: Array


class Tableau:
    """A feasible basis of `matrix @ x = rhs`, `x ≥ 0`; where there is none, an AssertionError."""

    def __init__(self, matrix: Array, rhs: Array, variant: Variant) -> None:
        rows, self.columns = matrix.shape
        self._rule, self._tie = RULES.index(variant.rule), TIES.index(variant.tie)
        sign = np.where(rhs < 0, -1.0, 1.0)
        self.body = np.hstack([matrix * sign[:, None], np.eye(rows), (rhs * sign)[:, None]])
        self.basis = np.arange(self.columns, self.columns + rows)
        if variant.start == STARTS[0]:
            price = self._minimised(np.append(np.zeros(self.columns), np.ones(rows)))
            assert abs(price[-1]) < 1e-5, "no table is possible"
            self._without_artificials()

    def least(self, cost: Array) -> Array:
        """A vertex of least cost; the artificial columns of a big M, if any, are the dearest."""
        self._minimised(np.append(cost, np.full(self.body.shape[1] - 1 - self.columns, BIG_M)))
        return self.point()

    def point(self) -> Array:
        """The vertex of the basis."""
        x = np.zeros(self.body.shape[1] - 1)
        x[self.basis] = self.body[:, -1]
        return x[: self.columns]

    def _minimised(self, cost: Array) -> Array:
        price = np.append(cost, 0.0)
        for row, column in enumerate(self.basis):
            if price[column]:
                price -= price[column] * self.body[row]
        done = _pivoted(self.body, self.basis, price, self.columns, self._rule, self._tie)
        assert done, "no least"
        return price

    def _without_artificials(self) -> None:
        """Leave out what only the first phase needs: its columns, and the rows that say nothing new."""
        kept = []
        for row, column in enumerate(self.basis):
            if column >= self.columns:
                own = np.flatnonzero(np.abs(self.body[row, : self.columns]) > EPSILON)
                if not own.size:
                    continue
                _pivot(self.body, row, int(own[0]))
                self.basis[row] = own[0]
            kept.append(row)
        self.body = np.ascontiguousarray(np.hstack([self.body[kept, : self.columns], self.body[kept, -1:]]))
        self.basis = self.basis[kept]


@compiled
def _pivot(body: Array, row: int, column: int) -> None:
    body[row] /= body[row, column]
    for i in range(body.shape[0]):
        if i != row and body[i, column] != 0.0:
            body[i] -= body[i, column] * body[row]


@compiled
def _entering(body: Array, price: Array, columns: int, rule: int) -> int:
    """The column to enter, or −1: those that cost less than nothing, the smallest by the rule."""
    chosen, least = -1, 0.0
    for j in range(columns):
        if price[j] >= -EPSILON:
            continue
        worth = price[j]
        if rule == 3:
            step = np.inf
            for i in range(body.shape[0]):
                if body[i, j] > EPSILON:
                    step = min(step, body[i, -1] / body[i, j])
            worth = price[j] * step
        elif rule == 4:
            worth = price[j] / np.sqrt(1.0 + (body[:, j] ** 2).sum())
        if chosen < 0 or worth < least or (rule == 1 and worth == least):
            chosen, least = j, worth
        if rule == 2:
            break
    return chosen


@compiled
def _pivoted(body: Array, basis: Places, price: Array, columns: int, rule: int, tie: int) -> bool:
    """Pivot until nothing costs less than nothing; whether that came to an end."""
    for _ in range(PIVOTS):
        column = _entering(body, price, columns, rule)
        if column < 0:
            return True
        row, least = -1, np.inf
        for i in range(body.shape[0]):
            if body[i, column] <= EPSILON:
                continue
            ratio = body[i, -1] / body[i, column]
            equal = abs(ratio - least) <= EPSILON
            if (ratio < least and not equal) or (equal and (tie == 1 or (tie == 2 and basis[i] < basis[row]))):
                row, least = i, ratio
        if row < 0:
            return False
        _pivot(body, row, column)
        price -= price[column] * body[row]
        basis[row] = column
    return False


def solved(problem: ts.Problem, withheld: Any, variant: Variant) -> Solved:
    """Each withheld cell's least and largest, and those of their sum, by one variant."""
    table, codes = problem.table, problem.table.code_columns()
    hidden = np.flatnonzero(withheld)
    keys = [codes[name].gather(hidden.astype(np.uint32)).cast(pl.Int64).to_numpy() for name in reversed(variant.order)]
    cells = hidden[np.lexsort(keys)][:: -1 if variant.turned else 1]
    equations = table.equations.toarray().astype(np.float64)
    used = np.flatnonzero(np.abs(equations[:, cells]).sum(axis=1))
    rhs = -np.delete(equations[used], cells, axis=1) @ np.delete(table.value, cells)
    matrix, count = equations[np.ix_(used, cells)], len(cells)
    if variant.bounds == BOUNDS[1]:
        matrix = np.block([[matrix, np.zeros((len(matrix), count))], [np.eye(count), np.eye(count)]])
        rhs = np.append(rhs, np.full(count, table.value.max()))
    tableau = Tableau(matrix, rhs, variant)
    body, basis = tableau.body.copy(), tableau.basis.copy()
    first = tableau.least(np.zeros(matrix.shape[1]))[:count]
    found = []
    for aim, sign in product(np.vstack([np.eye(count), np.ones(count)]), (1.0, -1.0)):
        if variant.again == AGAIN[0] or not found:
            tableau.body, tableau.basis = body.copy(), basis.copy()
        found.append(tableau.least(np.append(sign * aim, np.zeros(matrix.shape[1] - count)))[:count])
    return Solved(cells, first, np.array(found))


def measured(problem: ts.Problem, withheld: Any, printed: pl.DataFrame, variant: Variant) -> dict[str, Any]:
    """How near the print one variant comes: the vertex, the means within protection, the deviations."""
    ours = solved(problem, withheld, variant)
    codes = problem.table.code_columns()
    place = {tuple(int(codes[name][int(cell)]) for name in CODES): at for at, cell in enumerate(ours.cells)}
    at = [place[row] for row in printed.select(CODES).iter_rows()]
    value, level = problem.table.value[ours.cells[at]], problem.sensitivity.upper[ours.cells[at]]
    vertex, mean, deviation = ours.first[at], ours.found[:, at].mean(axis=0), ours.found[:, at].std(axis=0, ddof=1)
    return {
        "rule": variant.rule, "tie": variant.tie, "start": variant.start, "again": variant.again,
        "bounds": variant.bounds, "order": ", ".join(variant.order) + (", turned" if variant.turned else ""),
        "vertex as printed": int((np.abs(vertex - printed["simplex_null_objective"].to_numpy()) <= 0.5).sum()),
        "vertex within protection": int((np.abs(vertex - value) < level).sum()),
        "mean within protection": int((np.abs(mean - value) < level).sum()),
        "deviations": round(float(np.median(deviation / printed["stddev_138_lp"].to_numpy())), 3),
    }  # fmt: skip


def main() -> None:
    """Every variant, and keep what comes out; those that turn in a circle are left out."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from reproduce.cases import DATA, dandekar, dandekar_pattern

    problem = dandekar()
    withheld = dandekar_pattern(problem, "suppression_44")
    printed, rows = pl.read_csv(DATA / "dandekar_10x6x4" / "expected_attack_44.csv"), []
    for variant in Variant.all():
        try:
            rows.append(measured(problem, withheld, printed, variant))
        except AssertionError:
            print("no end:", variant)
    pl.DataFrame(rows).write_csv(KEPT)


if __name__ == "__main__":
    main()
