"""A bound on large step programs without solving them: prices of the rows, raised step by step.

Any prices give a bound (Lagrange). The best ones maximise a concave function with kinks; smoothed by entropy, it rises
by Nesterov's accelerated gradient (Nesterov, "Smooth minimization of non-smooth functions", Math. Program. 103, 2005).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import SolverFailure
from tablesafe.methods.round.annealing import added_up
from tablesafe.methods.round.grid import Grid
from tablesafe.methods.round.partition import RoundingProgram, improved, whole_cells
from tablesafe.solve.program import Program, Solution, SolveStatus
from tablesafe.work.budget import Budget

STAGES, STEPS, FINER = 7, 120, 2.5
"""Stages of the dual ascent, gradient steps of each, and how many times finer the smoothing of the next stage is: the
last one smooths by 1/244 of the largest distance."""


def raised_prices(model: RoundingProgram, budget: Budget) -> Floats:
    """Prices of the rows whose bound comes within about a thousandth of the linear program's."""
    program = model.program
    matrix = sparse.csr_array(program.matrix).astype(np.float64)
    across, size = sparse.csr_array(matrix.T), abs(matrix)
    width = np.maximum(np.asarray(size @ np.asarray(size.sum(axis=0))), 1.0)
    smooth = max(float(np.abs(program.cost).max(initial=0.0)), 1e-9)
    best, prices = np.zeros(len(program.row_lower)), np.zeros(len(program.row_lower))
    for _ in range(STAGES):
        prices = _risen(program, matrix, across, width, smooth, prices, budget)
        if model.bound(prices) > model.bound(best):
            best = prices
        if budget.over:
            break
        smooth /= FINER
    return best


def _risen(
    program: Program, matrix: sparse.csr_array, across: sparse.csr_array, width: Floats, smooth: float,
    prices: Floats, budget: Budget,
) -> Floats:  # fmt: skip
    """Accelerated steps at one smoothing; begins anew whenever it overshoots."""
    ahead, before, momentum = prices, prices, 1.0
    for _ in range(STEPS):
        if budget.over:
            break
        point = 1.0 / (1.0 + np.exp(np.clip((program.cost - across @ ahead) / smooth, -50.0, 50.0)))
        missing = program.row_lower - matrix @ point
        new = ahead + 4.0 * smooth * missing / width
        after = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        if (new - before) @ missing < 0:
            momentum = after = 1.0
        ahead, before, momentum = new + (momentum - 1.0) / after * (new - before), new, after
    return before


# Controlled rounding: every value one of its two neighbours, every sum kept, as near to the truth as can be.
#
# A zero-restricted rounding leaves multiples of the base unchanged. In two dimensions there always is one (Cox & Ernst,
# "Controlled Rounding", INFOR 20, 1982); in three there may be none (Causey, Cox & Ernst, "Applications of
# Transportation Theory to Statistical Problems", JASA 80, 1985): then no cell goes further beyond its neighbours than
# must be, as few steps as possible in all, and the distance comes third.


Report = Callable[[float, float], None]
FURTHEST = 6
"""Steps beyond the neighbours up to which the least is looked for."""
LARGE, NEAR = 20_000, 1e-3
"""Cells from which on an answer this near to the bound is enough, and nothing is asked of the whole table at once."""
CROWDED = 40_000
"""Cells in three and more dimensions from which on the linear program takes too long: prices bound it instead."""
WHOLE_TABLE = 0.5
"""The part of the time for the integer program of the whole table; the rest is for improving it part by part."""
RINGS = 3
"""How far around what is fractional the program is opened, ring by ring."""


@dataclass(frozen=True, eq=False)
class Rounded:
    """The rounded values, how many steps each lies beyond its neighbours, and how good the answer is."""

    values: Integers = field(repr=False)
    beyond: Integers = field(repr=False)
    solution: Solution | None
    proven: bool
    """Whether the steps beyond the neighbours are proven to be needed."""
    by_chance: bool = False
    """Whether chance alone rounded every cell, up with just the part of a step that its count is above a multiple."""


def round_controlled(grid: Grid, time_limit_s: float, report: Report | None = None) -> Rounded:
    """Round to neighbours; where that is impossible, find the least widening first, then the distance.

    `report` is told the distance of the best rounding and the proven bound whenever one of them gets better.
    """
    begin = monotonic()
    grid.counts.require_multiples_where_frozen()
    search = _Search(grid, Budget(time_limit_s), report)
    try:
        search.run()
    except KeyboardInterrupt:
        if search.best is None:
            raise
        warnings.warn("Interrupted: the best rounding so far is kept.", stacklevel=3)
    found = search.rounded(monotonic() - begin)
    search.tell()
    return found


class _Search:
    """The best rounding so far, what is proven about it, and the budget."""

    def __init__(self, grid: Grid, budget: Budget, report: Report | None) -> None:
        self.grid, self.budget, self.report = grid, budget, report
        self.best: Integers | None = None
        self.bound = grid.least
        """A distance that no rounding is below that goes no further than the best one."""
        self.optimal = self.impossible = False
        """Whether nothing is better; whether no rounding to the neighbours adds up."""
        table = grid.counts.table
        self.whole = whole_cells(grid)
        inner = np.diff(table.equations.tocsc().indptr) - np.bincount(table.totals, minlength=len(table))
        self.crowded = int((grid.high > grid.low).sum()) > CROWDED and int(inner.max(initial=0)) > 2

    def rounded(self, seconds: float) -> Rounded:
        """What was found."""
        if self.best is None:
            raise SolverFailure(
                "No rounding that adds up was found in time.", hint="raise time_limit_s, or unfreeze some cells."
            )
        beyond = self.grid.beyond(self.best)
        objective, bound = self._standing()
        closed = self.optimal or (bound >= objective and not beyond.any())
        status = SolveStatus.OPTIMAL if closed else SolveStatus.FEASIBLE
        solution = Solution(status=status, objective=objective, bound=bound, seconds=seconds)
        return Rounded(self.best * self.grid.step, beyond, solution, self.impossible)

    def _standing(self) -> tuple[float, float]:
        """The distance of the best rounding, and what is proven about it."""
        assert self.best is not None
        objective = float(self.grid.distances(self.best).sum())
        return objective, objective if self.optimal else min(self._raised(self.bound), objective)

    def tell(self, cost: float = np.inf, bound: float = -np.inf) -> None:
        """Report what is known now, or a little more that a program under way has found.

        Before there is a rounding nothing is told: what bounds the neighbours may not bound what goes further.
        """
        if self.report is None:
            return
        if self.best is not None:
            objective, proven = self._standing()
            cost, bound = min(cost, objective), max(bound, proven)
        if cost < np.inf:
            self.report(cost, min(self._raised(bound), cost))

    def run(self) -> None:
        """The neighbours by the linear program; then what is fractional; then beyond the neighbours."""
        if self.crowded:
            self._by_prices()
        else:
            self._by_program()
        if not self.optimal and self._open():
            self._improve()

    def _open(self) -> bool:
        """Whether there is something left to gain, and time for it."""
        if self.budget.over:
            return False
        return self.best is None or bool(self.grid.beyond(self.best).any()) or self._gap() > NEAR

    def _gap(self) -> float:
        if self.best is None:
            return np.inf
        objective = float(self.grid.distances(self.best).sum())
        return (objective - self._raised(self.bound)) / max(objective, 1e-12)

    def _raised(self, bound: float) -> float:
        """Distances that are whole numbers bound each other by whole numbers."""
        return float(np.ceil(bound - 1e-6)) if self.grid.whole_costs else bound

    def offer(self, steps: Integers | None) -> bool:
        """Keep what goes less far, with fewer steps beyond, or is nearer."""
        if steps is None:
            return False
        if self.best is not None and self._rank(steps) >= self._rank(self.best):
            return False
        self.best = steps
        self.tell()
        return True

    def _rank(self, steps: Integers) -> tuple[int, int, float]:
        beyond = self.grid.beyond(steps)
        return int(beyond.max(initial=0)), int(beyond.sum()), float(self.grid.distances(steps).sum())

    # -- within the neighbours -------------------------------------------------------------------------------------

    def _by_program(self) -> None:
        """Solve the linear program; open the cells around what is fractional until that is whole."""
        model = RoundingProgram.of(self.grid, self.whole)
        relaxed = model.relax(self.budget)
        self.bound = max(self.bound, relaxed.bound)
        if relaxed.status == SolveStatus.INFEASIBLE:  # hidden cells cannot make up for what is frozen
            self._widened()
            return
        if not relaxed.found:
            self._fall_back()
            return
        steps = model.steps(relaxed)
        if steps is not None:
            self.best, self.optimal = steps, True
            return
        self._around(model, relaxed.point)
        if self._open() or (not self.optimal and self._small() and not self.budget.over):
            self._exactly()
        self._fall_back()

    def _small(self) -> bool:
        return int((self.grid.high > self.grid.low).sum()) <= LARGE

    def _around(self, model: RoundingProgram, point: Floats) -> None:
        """Whole columns stay, those around fractional ones are free: ring by ring, until there is an answer."""
        if self._small():
            return
        taken = np.rint(point[: len(model.columns.cell)]).astype(np.int64)
        stay = model.start.copy()
        np.add.at(stay, model.columns.cell, taken * model.columns.direction)
        stay[model.hidden] = model.start[model.hidden] + np.rint(point[len(taken) :]).astype(np.int64)
        loose = np.zeros(len(stay), dtype=np.bool_)
        cell = np.concatenate([model.columns.cell, model.hidden])
        loose[cell[model.fractional(point)]] = True
        pattern = abs(self.grid.matrix)
        for _ in range(RINGS):
            loose = np.asarray(pattern.T @ (np.asarray(pattern @ loose.astype(np.int64)) > 0).astype(np.int64)) > 0
            part = RoundingProgram.of(self.grid, self.whole, cells=loose, stay=stay)
            found = part.solve(self.budget.share(0.1), gap=NEAR / 10)
            if self.offer(part.steps(found)) or self.budget.over:
                return

    def _exactly(self) -> None:
        """The integer program of the whole table; if it has no answer, there is none, and the windows widen."""
        model = RoundingProgram.of(self.grid, self.whole)
        start = None if self.best is None or self.grid.beyond(self.best).any() else model.taken(self.best)
        part = WHOLE_TABLE if self._small() else WHOLE_TABLE / 2
        found = model.solve(self.budget.child(part * self.budget.left), start, report=self.tell)
        if found.status == SolveStatus.INFEASIBLE:
            self._widened()
            return
        self.bound = max(self.bound, found.bound)
        self.offer(model.steps(found))
        self.optimal = found.status == SolveStatus.OPTIMAL and self.best is not None
        if self.best is None:
            self._fall_back()

    # -- beyond the neighbours -------------------------------------------------------------------------------------

    def _widened(self) -> None:
        """It is proven that the neighbours do not do: what bounded them does not bound what goes further."""
        self.impossible, self.bound = True, self.grid.least
        self._fall_back()
        self._widen()

    def _widen(self) -> None:
        """Step by step: as little as must be, in as few steps as possible, and then as near as can be."""
        proven = True
        for furthest in range(1, FURTHEST + 1):
            if self.budget.over:
                return
            model = RoundingProgram.of(self.grid, self.whole, furthest=furthest, fewest=True)
            begin = None
            if self.best is not None and self.grid.beyond(self.best).max(initial=0) <= furthest:
                begin = model.taken(self.best)
            found = model.solve(self.budget.child(0.6 * self.budget.left), begin)
            if found.status == SolveStatus.INFEASIBLE:
                continue
            self.offer(model.steps(found))
            if not found.found:
                return
            proven &= found.status == SolveStatus.OPTIMAL
            self._nearest_beyond(furthest, proven)
            return

    def _nearest_beyond(self, furthest: int, proven: bool) -> None:
        """The least distance with no more steps beyond the neighbours than the best rounding has."""
        assert self.best is not None
        spent = int(self.grid.beyond(self.best).sum())
        model = RoundingProgram.of(self.grid, self.whole, furthest=furthest, most_beyond=spent)
        found = model.solve(self.budget, model.taken(self.best), report=self.tell)
        self.offer(model.steps(found))
        self.bound = max(self.bound, found.bound)
        self.optimal = proven and found.status == SolveStatus.OPTIMAL

    def _by_prices(self) -> None:
        """Too much for one program: a bound by prices, and a rounding that is improved part by part."""
        model = RoundingProgram.of(self.grid, self.whole)
        prices = np.zeros(self.grid.matrix.shape[0])
        prices[model.rows] = raised_prices(model, self.budget.share(0.05))
        self._fall_back()
        if self.best is not None:  # any prices bound any program: that of the windows as wide as they had to be
            furthest = int(self.grid.beyond(self.best).max(initial=0))
            wide = RoundingProgram.of(self.grid, self.whole, furthest=furthest)
            self.bound = max(self.bound, wide.bound(prices[wide.rows]))

    def _fall_back(self) -> None:
        """Any rounding that adds up."""
        if self.best is None:
            self.offer(added_up(self.grid, self.budget.child(0.4 * self.budget.left)))

    def _improve(self) -> None:
        """Part by part, until the time is up."""
        if self.best is not None:
            improved(self.grid, self.whole, self.best, self.offer, self.budget)
