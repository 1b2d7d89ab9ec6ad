"""The integer program of two views: which entries to withhold at least cost, with big-M taken from the operators.

Seen from a hidden cell (i, k), a slice has four sums: row i, the other rows, column k, the other columns. Withholding
an entry frees one of them. The slice's part in the lower bound vanishes when two freed sums can make up for each other:
one of {row i, other columns} and one of {column k, other rows}; otherwise it stays. Its part in the upper bound is
min(row, column), where a withheld row i can rise by what the other withheld rows hold, and without limit when a column
is withheld too. So one 0/1 variable per entry is enough. An entry withheld alone in its slice follows from the other
view's sum: it has no effect in the program, and no cheapest pattern holds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.methods.views.fitting import fitted, view_costs
from tablesafe.methods.views.instance import Targets, TwoViews
from tablesafe.solve.highs import Model, Report
from tablesafe.solve.program import Program, Solution, SolveStatus
from tablesafe.work.budget import Budget

NEAR = 1e-6
"""How near two costs, relative to their size, are taken for equal."""
COMFORTABLE = 2.0**20
"""The largest number that a program should hold: solvers have absolute tolerances."""


@dataclass(frozen=True, eq=False)
class BigM:
    """Per slice, by how much withholding in it can lower a lower bound, and raise an upper bound as far as needed."""

    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class Terms:
    """The parts that slices have in the bounds of targets: target, slice, row, column, and the part itself."""

    target: Integers = field(repr=False)
    slice: Integers = field(repr=False)
    row: Integers = field(repr=False)
    column: Integers = field(repr=False)
    part: Floats = field(repr=False)

    def __len__(self) -> int:
        return len(self.target)

    def take(self, which: Mask) -> Terms:
        """Some of the terms."""
        return Terms(self.target[which], self.slice[which], self.row[which], self.column[which], self.part[which])


def refined_big_m(views: TwoViews) -> BigM:
    """The smallest M that is safe in each slice.

    A lower bound falls by no more than the slice's own part in it; an upper bound need not rise by more than what the
    open cells lack.
    """
    slices = len(views.a)
    low, up = lower_terms(views), upper_terms(views)
    lower, upper = np.zeros(slices), np.zeros(slices)
    np.maximum.at(lower, low.slice, low.part)
    lacking = _lacking(views.up, up)
    np.maximum.at(upper, up.slice, lacking[up.target])
    return BigM(lower, upper)


def lower_terms(views: TwoViews) -> Terms:
    """The parts of the slices in the lower bounds of the targets, where they are not zero."""
    target, slices, row, column = _pairs(views, views.low)
    part = views.a[slices, row] + views.b[slices, column] - views.total[slices]
    keep = part > 0
    return Terms(target[keep], slices[keep], row[keep], column[keep], part[keep])


def upper_terms(views: TwoViews) -> Terms:
    """The parts of the slices in the upper bounds of the targets."""
    target, slices, row, column = _pairs(views, views.up)
    return Terms(target, slices, row, column, np.minimum(views.a[slices, row], views.b[slices, column]))


def _pairs(views: TwoViews, targets: Targets) -> tuple[Integers, Integers, Integers, Integers]:
    """Every target with every slice of its group."""
    flat = views.groups.ravel()
    order = np.argsort(flat, kind="stable")
    slices = order // views.groups.shape[1]
    start = np.searchsorted(flat[order], np.arange(len(targets.start)))
    group = targets.group
    width = np.diff(start)[group]
    target = np.repeat(np.arange(len(targets)), width)
    offset = np.arange(len(target)) - np.repeat(np.cumsum(width) - width, width)
    at = slices[np.repeat(start[group], width) + offset]
    return target, at, targets.row[target], targets.column[target]


def _lacking(targets: Targets, terms: Terms) -> Floats:
    reached = np.bincount(terms.target, weights=terms.part, minlength=len(targets))
    return np.maximum(targets.need - reached, 0.0)


@dataclass(eq=False)
class _Rows:
    """Rows of the program as they are written down."""

    columns: int = 0
    rows: int = 0
    entries: list[tuple[Integers, Integers, Floats]] = field(default_factory=list)
    lower: list[Floats] = field(default_factory=list)
    upper: list[Floats] = field(default_factory=list)

    def new_columns(self, count: int) -> Integers:
        """Numbers of `count` new columns."""
        first, self.columns = self.columns, self.columns + count
        return np.arange(first, self.columns)

    def at_least(self, right: Floats, *terms: tuple[Integers, Integers, Floats | float]) -> None:
        """Rows `Σ coefficient · x[column] >= right`; a term is row (from 0 in this block), column, coefficient."""
        for row, column, coefficient in terms:
            value = np.broadcast_to(np.asarray(coefficient, np.float64), row.shape)
            self.entries.append((row + self.rows, column, value))
        self.rows += len(right)
        self.lower.append(right)
        self.upper.append(np.full(len(right), np.inf))

    def matrix(self) -> sparse.csr_array:
        """All rows."""
        row, column, value = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        return sparse.csr_array((value, (row, column)), shape=(self.rows, self.columns))


@dataclass(frozen=True, eq=False)
class Pattern:
    """The program, and where the entries of the two views stand among its columns."""

    program: Program
    a: NDArray[np.int64] = field(repr=False)
    b: NDArray[np.int64] = field(repr=False)
    most: int | None = None
    """The column of the larger number of entries withheld from one view, where that has a cost."""

    def read(self, x: Floats) -> tuple[Mask, Mask]:
        """The pattern in a point of the program."""
        return x[self.a] > 0.5, x[self.b] > 0.5

    def start(self, a: Mask, b: Mask) -> Floats:
        """The part of a point with this pattern that has a cost."""
        x = np.zeros(self.program.size[1])
        x[self.a], x[self.b] = a, b
        if self.most is not None:
            free = self.program.lower == 0
            x[self.most] = max((a & free[self.a]).sum(), (b & free[self.b]).sum())
        return x


def suppression_program(views: TwoViews, big_m: float | None = None) -> Pattern:
    """Write the program down; `big_m` is refined from the operators unless a number says otherwise."""
    slices = len(views.a)
    views, unit = _comfortable(views)
    refined = big_m is None
    m = refined_big_m(views) if big_m is None else BigM(*2 * [np.full(slices, big_m / unit)])
    rows = _Rows()
    a = rows.new_columns(views.a.size).reshape(views.a.shape)
    b = rows.new_columns(views.b.size).reshape(views.b.shape)
    whole = rows.columns
    _lower_rows(rows, views, a, b, m.lower, refined=refined)
    largest = _upper_rows(rows, views, a, b, m.upper)
    cost = np.zeros(rows.columns)
    cost[a], cost[b] = np.where(views.forced_a, 0.0, views.cost_a), np.where(views.forced_b, 0.0, views.cost_b)
    if views.balance > 0:
        cost = np.append(cost, views.balance)
        _balance_rows(rows, a[~views.forced_a], b[~views.forced_b])
    lower, upper = np.zeros(rows.columns), np.full(rows.columns, np.inf)
    upper[:whole] = 1.0
    upper[a], upper[b] = views.live_a | views.forced_a, views.live_b | views.forced_b
    lower[a], lower[b] = views.forced_a, views.forced_b
    upper[largest[0]] = largest[1]
    return Pattern(
        Program(
            cost, rows.matrix(), np.concatenate(rows.lower), np.concatenate(rows.upper), lower, upper,
            np.arange(rows.columns) < whole,
        ),
        a,
        b,
        rows.columns - 1 if views.balance > 0 else None,
    )  # fmt: skip


def cheapest(
    program: Program, *, budget: Budget, start: Floats | None = None, report: Report | None = None
) -> Solution:
    """The cheapest point within a budget; `start` is a point known already, of which the whole part is used.

    A tight program is often done with its linear relaxation: when that costs as much as the start, nothing is cheaper.
    An interrupt ends the search; the answer is what was found until then, and says so.
    """
    bound = -np.inf
    model = Model(
        program, mip_rel_gap=1e-9, mip_abs_gap=1e-9, mip_feasibility_tolerance=1e-8, primal_feasibility_tolerance=1e-9
    )
    if start is not None:
        cost, typical = float(program.cost @ start), float(np.abs(program.cost).mean())
        bound = _relaxed_bound(program, budget)
        if bound >= cost - NEAR * typical:
            return Solution(status=SolveStatus.OPTIMAL, objective=cost, bound=bound, seconds=0.0, point=start)
        if report is not None and np.isfinite(bound):
            report(cost, bound)
        model.start(start, np.flatnonzero(program.integer))  # type: ignore[arg-type]
    told = None if report is None else lambda cost, least: report(cost, max(least, bound))
    solution = model.solve(budget, anytime=True, report=told)
    return replace(solution, bound=max(bound, solution.bound))


def _relaxed_bound(program: Program, budget: Budget) -> float:
    """What no point costs less than, by the linear relaxation; rounded up to the next cost that a point can have."""
    model = Model(replace(program, integer=None), presolve="off", primal_feasibility_tolerance=1e-9)
    model.run(budget.child(budget.left / 4))
    found = model.solution().bound
    whole = np.zeros(len(program.cost), np.bool_) if program.integer is None else program.integer
    if not np.isfinite(found) or program.cost[~whole].any() or (program.cost != np.rint(program.cost)).any():
        return found
    step = float(np.gcd.reduce(program.cost.astype(np.int64)))
    return float(np.ceil(found / step - NEAR) * step) if step else 0.0


def _comfortable(views: TwoViews) -> tuple[TwoViews, float]:
    """The views in a unit in which no total is above a million, for the solver; a power of two, so all is exact."""
    unit = 2.0 ** np.ceil(np.log2(max(float(views.total.max(initial=1.0)) / COMFORTABLE, 1.0)))
    return replace(
        views,
        a=views.a / unit,
        b=views.b / unit,
        low=replace(views.low, need=views.low.need / unit),
        up=replace(views.up, need=views.up.need / unit),
    ), unit


def _lower_rows(rows: _Rows, views: TwoViews, a: Integers, b: Integers, m: Floats, *, refined: bool) -> None:
    """What is left of each part: all of it, unless two sums that make up for each other are free.

    With the refined M a part that is larger than what may be left must vanish: then `part − M · entries <= left` says
    no more and no less than that at least one of the entries is withheld, and nothing need be left over.
    """
    terms = lower_terms(views)
    need = views.low.need[terms.target]
    must = refined & (terms.part > need)
    for which in (must, ~must):
        some = terms.take(which)
        if not len(some):
            continue
        here, j = np.arange(len(some)), some.slice
        left = rows.new_columns(0 if which is must else len(some))
        large = np.ones(len(some)) if which is must else m[j]
        for side, other, place, beside in ((a, b, some.row, some.column), (b, a, some.column, some.row)):
            wide, others = _other_entries(other, j, beside)
            rows.at_least(
                np.ones(len(some)) if which is must else some.part,
                (here[: len(left)], left, 1.0),
                (here, side[j, place], large),
                (wide, others, large[wide]),
            )
        if len(left):
            rows.at_least(-views.low.need, (some.target, left, -1.0))


def _other_entries(side: Integers, slices: Integers, place: Integers) -> tuple[Integers, Integers]:
    """For each entry the columns of the other entries of its slice, and which entry they belong to."""
    n = side.shape[1]
    here = np.repeat(np.arange(len(slices)), n)
    keep = np.tile(np.arange(n), len(slices)) != np.repeat(place, n)
    return here[keep], side[slices].ravel()[keep]


def _upper_rows(rows: _Rows, views: TwoViews, a: Integers, b: Integers, m: Floats) -> tuple[Integers, Floats]:
    """The part of each slice: no more than either view allows. Returns the parts' columns and their upper bounds."""
    terms = upper_terms(views)
    if not len(terms):
        return np.zeros(0, np.int64), np.zeros(0)
    part = rows.new_columns(len(terms))
    here, j = np.arange(len(terms)), terms.slice
    large = m[j]
    for side, other, shown, place in ((a, b, views.a, terms.row), (b, a, views.b, terms.column)):
        value = shown[j, place]
        rows.at_least(-value, (here, part, -1.0), (here, side[j, place], large))
        wide, others = _other_entries(side, j, place)
        worth = np.minimum(shown.ravel()[others - side.flat[0]], large[wide])
        across = np.repeat(here, other.shape[1])
        rows.at_least(-value, (here, part, -1.0), (wide, others, worth), (across, other[j].ravel(), large[across]))
    rows.at_least(views.up.need, (terms.target, part, 1.0))
    return part, terms.part + large


def _balance_rows(rows: _Rows, a: Integers, b: Integers) -> None:
    """One more column: the larger of the numbers of entries withheld from the two views."""
    most = rows.new_columns(1)
    for side in (a, b):
        rows.at_least(np.zeros(1), (np.zeros(1, np.int64), most, 1.0), (np.zeros(len(side), np.int64), side, -1.0))


# The big-M of the integer program of two views, slice by slice, for whoever wants to see how tight it is.


def view_big_m(problem: Problem) -> pl.DataFrame:
    """The smallest M that is safe in each slice of two views: a row per slice, by the codes that the views share.

    `lower` is the most by which withholding in the slice can lower a lower bound that is too high, `upper` the most by
    which it need raise an upper bound that is too low; in the table's own unit. They are made from the values, and as
    confidential. (Roehrig, Padman, Krishnan & Duncan; `SuppressViews(algorithm="optimal")` takes these.)
    """
    fit = fitted(problem, view_costs(problem, "unit", ()), balance=0.0)
    if fit is None:
        raise InvalidProblem(
            "Only two published views of one cube, without hierarchies or prior bounds, lead to the program whose M is "
            "asked for.",
            hint="ts.views makes such problems.",
        )
    refined, table, unit = refined_big_m(fit.views), problem.table, 10.0**problem.table.decimals
    shared = {}
    for d, (name, codes) in enumerate(table.code_columns().items()):
        within = [table.codes[cells, d] for cells in (fit.cells_a, fit.cells_b)]
        if all(bool((each == within[0][:, :1]).all()) for each in within):
            shared[name] = codes.gather(fit.cells_a[:, 0].astype(np.uint32))
    return pl.DataFrame({**shared, "lower": refined.lower / unit, "upper": refined.upper / unit})
