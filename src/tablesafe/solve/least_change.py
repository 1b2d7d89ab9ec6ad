"""Least changes of a table that keep it adding up: programs over the rise and the fall of each cell.

Every program has two columns per cell, how far it rises and how far it falls; the equations hold for the difference.
Amounts are in units of the table, costs per unit. Inside, both are scaled to about 1: a solver's tolerances are
absolute, and costs such as 1/value would drown in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import OutOfTime, SolverFailure
from tablesafe.solve.exact.elimination import echelon
from tablesafe.solve.highs import DUAL, INTERIOR, UNLIMITED, Model
from tablesafe.solve.program import WORTH, Program, Scale, Solution, SolveStatus
from tablesafe.work.budget import Budget

TIGHT = 1e-10
"""The smallest tolerance that HiGHS takes: costs five orders below the middle one still count."""
GAP = 1e-7
"""Relative gap at which a choice of directions counts as proved."""
ELIMINATION = 60
"""Dependent equations are looked for while that takes no more than this many times the entries there are."""
LONG = 2_000
"""Equations from which on an interior point is quicker than the simplex method from nothing or from far away."""
NEAR = 64
"""Bounds that may differ from those of the last answer for it to be near."""
PIVOTS = 3_000
"""Simplex iterations after which an answer that seemed near is looked for by an interior point."""


@dataclass(frozen=True, eq=False)
class Box:
    """How far each cell may, and must, rise and fall."""

    rise_least: Floats
    rise_most: Floats
    fall_least: Floats
    fall_most: Floats

    @classmethod
    def free(cls, up: Floats, down: Floats) -> Self:
        """Nothing must move; everything may, this far."""
        return cls(np.zeros(len(up)), up.copy(), np.zeros(len(down)), down.copy())

    @property
    def least(self) -> Floats:
        """Lower bounds of the columns: rises, then falls."""
        return np.concatenate([self.rise_least, self.fall_least])

    @property
    def most(self) -> Floats:
        """Upper bounds of the columns: rises, then falls."""
        return np.concatenate([self.rise_most, self.fall_most])


@dataclass(frozen=True, slots=True)
class Change:
    """How every cell moves at least cost, what that costs, and what each equation's last unit is worth."""

    moves: Floats
    cost: float
    prices: Floats


class LeastChange:
    """The least change within a box; only the box varies from call to call, so each starts from the last answer.

    Where there is none, or the box is far from the last one, a large program is solved by an interior point and a
    crossover: from linked tables with costs over many orders of magnitude the dual simplex method took twenty times as
    long, which was mistaken for a table too large to be solved at all.
    """

    def __init__(self, matrix: sparse.csc_array, rise_cost: Floats, fall_cost: Floats, scale: Scale) -> None:
        self._scale, self._cells = scale, matrix.shape[1]
        self._matrix = matrix
        self._cost = np.concatenate([rise_cost, fall_cost])
        self._model = Model(simplex_strategy=DUAL, **TOLERANCES)
        self._least = self._most = np.zeros(0)

    def solve(self, box: Box, *, better_than: float | None = None, seconds: float = np.inf) -> Change | None:
        """The least change, or None when there is none, or none `better_than` a cost; OutOfTime after so long."""
        least, most, near = box.least, box.most, False
        if self._least.size:
            changed = np.flatnonzero((least != self._least) | (most != self._most))
            self._model.set_bounds(changed, least[changed], most[changed])
            near = len(changed) <= NEAR
        else:
            both = sparse.csc_array(sparse.hstack([self._matrix, -self._matrix], format="csc"))
            rows = np.zeros(both.shape[0])
            self._model.load(Program.equations(both, rows, least, most, cost=self._cost), scale=self._scale)
        self._least, self._most = least, most
        worth = np.inf if better_than is None else better_than
        return self._answer(Budget(seconds), worth, near=near or self._matrix.shape[0] < LONG)

    def _answer(self, budget: Budget, worth: float, *, near: bool) -> Change | None:
        status = self._near(budget, worth) if near else SolveStatus.FAILED
        if status is SolveStatus.FAILED:
            status = self._far(budget)
        if status in _NO_ANSWER:
            return None
        solution = self._model.solution()
        if not solution.found or not np.isfinite(solution.dual).all():
            raise SolverFailure(f"The solver stopped without an answer ({solution.status}).")
        moves = solution.point[: self._cells] - solution.point[self._cells :]
        return Change(moves, solution.objective, solution.dual)

    def _near(self, budget: Budget, worth: float) -> SolveStatus:
        """Run from the last answer where there is one; a large program not beyond what an interior point would take."""
        long = self._matrix.shape[0] >= LONG
        self._model.set(solver="simplex", simplex_iteration_limit=PIVOTS if long else UNLIMITED)
        return self._run(budget, worth)

    def _far(self, budget: Budget) -> SolveStatus:
        """Run from nothing; what an interior point leaves undecided the simplex method decides."""
        status = SolveStatus.FAILED
        for solver in ("ipm", "simplex") if self._matrix.shape[0] >= LONG else ("simplex",):
            self._model.forget()
            self._model.set(solver=solver, presolve="on", simplex_iteration_limit=UNLIMITED)
            status = self._run(budget, np.inf)
            if status is not SolveStatus.FAILED:
                break
        return status

    def _run(self, budget: Budget, worth: float) -> SolveStatus:
        status = self._model.run(budget, better_than=worth)
        self._model.set(presolve="off")
        if status is SolveStatus.STOPPED:
            raise OutOfTime("The time given was too short for an answer.", hint="raise time_limit_s.")
        return status


@dataclass(frozen=True, eq=False)
class Switches:
    """Cells that must either rise by `above` or fall by `below`, or more."""

    cells: NDArray[np.intp]
    above: Floats
    below: Floats


@dataclass(frozen=True, eq=False)
class Choice:
    """What a mixed-integer program found: a point or none, and a cost that no point undercuts."""

    status: SolveStatus
    bound: float
    moves: Floats | None = None
    rise: Mask | None = None
    """Per switch, whether the cell rises."""
    interrupted: bool = False
    """Whether the user stopped it."""


@dataclass(frozen=True, eq=False)
class Directions:
    """The least change when the direction of some cells is open: a binary per switch.

    `rise ≤ most · b`, `rise ≥ above · b`, and the same for the fall with 1 − b: for one cell this is the convex hull,
    and it is the tighter the smaller `most` is. So the box should hold proven bounds.
    """

    matrix: sparse.csc_array = field(repr=False)
    cost: Floats = field(repr=False)
    box: Box = field(repr=False)
    switches: Switches = field(repr=False)
    scale: Scale
    sums: Floats | None = field(default=None, repr=False)
    """What the moves add up to in each equation, where that is not 0: other cells, not part of this, have moved."""

    def relaxed(self, *, time_limit_s: float = np.inf) -> tuple[float, Floats]:
        """A proven bound on the cost of every choice, and how much each switch leans to rising (0 to 1)."""
        long = self.matrix.shape[0] >= LONG
        model = Model(self._program(), scale=Scale(), **(INTERIOR if long else {"solver": "simplex"}), **TOLERANCES)
        model.run(Budget(time_limit_s))
        solution = model.solution()
        if not solution.found:
            return 0.0, np.full(len(self.switches.cells), 0.5)
        return self.scale.original(max(solution.bound, 0.0)), solution.point[2 * len(self.cost) :]

    def choose(
        self,
        *,
        time_limit_s: float,
        start: tuple[Floats, Mask] | None = None,
        whole: bool = False,
        first: bool = False,
        gap: float = GAP,
        report: Callable[[float, float], None] | None = None,
    ) -> Choice:
        """The best directions found in the time; `start` is an answer known already, as moves and rises.

        With `whole` every move is a whole number; with `first` the first answer will do; `gap` says how near to the
        best is near enough. `report` hears of the cost and the proven bound while it goes on.
        """
        own = self if not whole else replace(self, scale=replace(self.scale, step=1.0))
        program, cells = own._program(), len(self.cost)
        kinds = np.ones(len(program.cost), np.bool_)
        kinds[: 2 * cells] = whole
        model = Model(
            replace(program, integer=kinds), scale=Scale(),
            mip_rel_gap=gap, mip_abs_gap=0.0, mip_feasibility_tolerance=1e-9,
            mip_max_improving_sols=1 if first else UNLIMITED,
        )  # fmt: skip
        if start is not None:
            model.start(np.concatenate([_sides(start[0]) / own.scale.step, start[1].astype(np.float64)]))
        original = own.scale.original
        told = None if report is None else lambda cost, bound: report(original(cost), original(bound))
        return own._choice(model.solve(Budget(time_limit_s), anytime=True, report=told))

    def _choice(self, solution: Solution) -> Choice:
        cells, x = len(self.cost), solution.point
        if solution.status in _NO_ANSWER:
            return Choice(SolveStatus.INFEASIBLE, np.inf)
        bound = self.scale.original(max(solution.bound, 0.0))
        if not solution.found:
            return Choice(SolveStatus.FAILED, bound, interrupted=solution.interrupted)
        moves = (x[:cells] - x[cells : 2 * cells]) * self.scale.step
        return Choice(solution.status, bound, moves, x[2 * cells :] > 0.5, solution.interrupted)

    def _program(self) -> Program:
        """Columns: rises, falls, switches. Rows: the equations, then four per switch. In units of the solver."""
        step, cells, s = self.scale.step, len(self.cost), self.switches
        count, box = len(s.cells), self.box
        pick = sparse.csc_array((np.ones(count), (np.arange(count), s.cells)), shape=(count, cells))
        most_rise, most_fall = box.rise_most[s.cells] / step, box.fall_most[s.cells] / step
        above, below = s.above / step, s.below / step
        matrix = sparse.block_array(
            [
                [self.matrix, -self.matrix, None],
                [pick, None, -sparse.diags_array(most_rise)],
                [pick, None, -sparse.diags_array(above)],
                [None, pick, sparse.diags_array(most_fall)],
                [None, pick, sparse.diags_array(below)],
            ],
            format="csc",
        ) if count else sparse.hstack([self.matrix, -self.matrix], format="csc")  # fmt: skip
        zero, free = np.zeros(count), np.full(count, np.inf)
        equations = np.zeros(self.matrix.shape[0]) if self.sums is None else self.sums / step
        return Program(
            np.concatenate([self.cost, self.cost, zero]) * np.r_[np.full(2 * cells, self.scale.price), zero],
            sparse.csc_array(matrix),
            np.concatenate([equations, -free, zero, -free, below]),
            np.concatenate([equations, zero, free, most_fall, free]),
            np.concatenate([box.least / step, zero]),
            np.concatenate([box.most / step, np.ones(count)]),
        )


def independent_rows(matrix: sparse.csc_array) -> sparse.csc_array:
    """The same equations without those that follow from others: smaller programs, and far better mixed-integer ones.

    Found modulo a prime, so that none is kept in vain; one lost by bad luck would show in the check of every answer.
    """
    rows = sparse.csr_array(matrix)
    if not rows.nnz or (rows.data != np.rint(rows.data)).any():
        return matrix
    found = echelon(rows, ELIMINATION * rows.nnz)
    return sparse.csc_array(rows[np.sort(found.pivot_row)]) if found.fits else matrix


def whole_moves(
    matrix: sparse.csc_array, target: Integers, cost: Floats, lower: Floats, upper: Floats, *, time_limit_s: float
) -> Integers | None:
    """Whole numbers x of little cost with `matrix @ x = target` and `lower ≤ x ≤ upper`, checked; None without any."""
    largest = float(np.abs(cost).max(initial=0.0))
    program = Program.equations(matrix, target, lower, upper, cost=cost, integer=np.ones(len(cost), np.bool_))
    scale = Scale(1.0, WORTH / largest if largest > 0 else 1.0)
    model = Model(program, scale=scale, mip_rel_gap=1e-4, mip_feasibility_tolerance=1e-9)
    model.run(Budget(time_limit_s))
    return program.whole(model.solution().point)


TOLERANCES: dict[str, Any] = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": TIGHT}
_NO_ANSWER = {SolveStatus.INFEASIBLE, SolveStatus.UNBOUNDED, SolveStatus.CUT_OFF}
"""No cost is negative: what a solver calls unbounded has no point."""


def _sides(moves: Floats) -> Floats:
    return np.concatenate([np.maximum(moves, 0.0), np.maximum(-moves, 0.0)])
