"""Least changes of a table under further linear limits: forms of the moves that must stay, or nearly stay, in a range.

As in `least_change` every cell has a column for its rise and one for its fall, and a binary where its direction is
open. A form may overstep its range by an excess, which has a price of its own: with a price on the excess and none on
the change, the program asks how well a statistic can be kept; with the excess capped, how little has to change for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Mask
from tablesafe.solve.highs import PRECISE, Model
from tablesafe.solve.least_change import Box, Switches
from tablesafe.solve.program import Program, Scale, Solution, SolveStatus
from tablesafe.work.budget import Budget

TOLERANCE, GAP = 1e-9, 1e-6
"""How far the solver may be from a whole number, and from its bound, relative."""


@dataclass(frozen=True, eq=False)
class Forms:
    """`lower − excess ≤ matrix @ moves ≤ upper + excess`; `excess` numbers a row's column of excess, −1 for none."""

    matrix: sparse.csr_array = field(repr=False)
    lower: Floats
    upper: Floats
    excess: NDArray[np.intp]

    @classmethod
    def none(cls, cells: int) -> Forms:
        """No forms at all."""
        return cls(sparse.csr_array((0, cells)), np.zeros(0), np.zeros(0), np.zeros(0, np.intp))


@dataclass(frozen=True, eq=False)
class Excess:
    """Per column of excess: its bounds, and what a unit of it costs."""

    lower: Floats
    upper: Floats
    price: Floats


@dataclass(frozen=True, eq=False)
class Kept:
    """What was found: moves and directions or none, the excess, and an objective that nothing undercuts."""

    status: SolveStatus
    bound: float = 0.0
    moves: Floats | None = None
    rise: Mask | None = None
    excess: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class KeptChange:
    """The least change, or the least excess, in a table whose sensitive cells must move."""

    matrix: sparse.csc_array = field(repr=False)
    cost: Floats = field(repr=False)
    box: Box = field(repr=False)
    switches: Switches = field(repr=False)
    scale: Scale
    forms: Forms = field(repr=False)
    excess: Excess = field(repr=False)
    share: float = 1.0
    """What the change itself counts beside the excess."""
    budget: float | None = None
    """The most that the change may cost."""

    def solve(self, *, time_limit_s: float, start: tuple[Floats, Mask] | None = None, whole: bool = False) -> Kept:
        """The best found in the time; `start` is an answer known already, as moves and rises of the switches."""
        step = 1.0 if whole else self.scale.step
        columns, lower, upper = self._columns(step)
        rows, row_lower, row_upper = self._rows(step)
        cells, switched = len(self.cost), len(self.switches.cells)
        kinds = np.zeros(len(columns), np.bool_)
        kinds[: 2 * cells] = whole
        kinds[2 * cells : 2 * cells + switched] = True
        model = Model(
            Program(columns, rows, row_lower, row_upper, lower, upper, kinds), scale=Scale(),
            mip_rel_gap=GAP, mip_feasibility_tolerance=TOLERANCE, **PRECISE,
        )  # fmt: skip
        if start is not None and kinds.any():
            model.start(self._point(start, step, lower, upper))
        model.run(Budget(time_limit_s))
        return self._kept(model.solution(), step)

    def _kept(self, solution: Solution, step: float) -> Kept:
        cells, switched, x = len(self.cost), len(self.switches.cells), solution.point
        if solution.status in {SolveStatus.INFEASIBLE, SolveStatus.UNBOUNDED}:
            return Kept(SolveStatus.INFEASIBLE)
        if not solution.found:
            return Kept(SolveStatus.FAILED)
        moves = (x[:cells] - x[cells : 2 * cells]) * step
        rise = x[2 * cells : 2 * cells + switched] > 0.5
        return Kept(solution.status, solution.bound, moves, rise, x[2 * cells + switched :])

    def _columns(self, step: float) -> tuple[Floats, Floats, Floats]:
        """Costs and bounds: rises, falls, switches, excess."""
        count = len(self.switches.cells)
        price = self.cost * self.scale.price * step / self.scale.step * self.share
        return (
            np.concatenate([price, price, np.zeros(count), self.excess.price]),
            np.concatenate([self.box.least / step, np.zeros(count), self.excess.lower]),
            np.concatenate([self.box.most / step, np.ones(count), self.excess.upper]),
        )

    def _rows(self, step: float) -> tuple[sparse.csc_array, Floats, Floats]:
        """The equations, four rows per switch, the forms, the budget."""
        cells, wide = len(self.cost), len(self.excess.price)
        count = len(self.switches.cells)
        equations = sparse.hstack(
            [self.matrix, -self.matrix, sparse.csc_array((self.matrix.shape[0], count + wide))], format="csr"
        )
        zero = np.zeros(self.matrix.shape[0])
        parts = [(equations, zero, zero)]
        if count:
            parts.append(self._switch_rows(step))
        parts += list(self._form_rows(step))
        if self.budget is not None:
            spent = np.concatenate([self.cost, self.cost]) * step / self.budget
            row = sparse.csr_array(np.concatenate([spent, np.zeros(count + wide)])[None, :])
            parts.append((row, np.array([-np.inf]), np.ones(1)))
        matrix = sparse.vstack([part[0] for part in parts], format="csc")
        lower, upper = (np.concatenate([part[side] for part in parts]) for side in (1, 2))
        assert matrix.shape[1] == 2 * cells + count + wide
        return sparse.csc_array(matrix), lower, upper

    def _switch_rows(self, step: float) -> tuple[sparse.csr_array, Floats, Floats]:
        """Either up by `above` or more, or down by `below` or more: the convex hull of each cell alone."""
        s, cells, wide = self.switches, len(self.cost), len(self.excess.price)
        count = len(s.cells)
        pick = sparse.csr_array((np.ones(count), (np.arange(count), s.cells)), shape=(count, cells))
        none, tail = sparse.csr_array((count, cells)), sparse.csr_array((count, wide))
        most_rise, most_fall = self.box.rise_most[s.cells] / step, self.box.fall_most[s.cells] / step
        above, below = s.above / step, s.below / step
        zero, free = np.zeros(count), np.full(count, np.inf)
        rows = sparse.vstack(
            [
                sparse.hstack([pick, none, -sparse.diags_array(most_rise), tail]),
                sparse.hstack([pick, none, -sparse.diags_array(above), tail]),
                sparse.hstack([none, pick, sparse.diags_array(most_fall), tail]),
                sparse.hstack([none, pick, sparse.diags_array(below), tail]),
            ],
            format="csr",
        )
        return (
            sparse.csr_array(rows),
            np.concatenate([-free, zero, -free, below]),
            np.concatenate([zero, free, most_fall, free]),
        )

    def _form_rows(self, step: float) -> list[tuple[sparse.csr_array, Floats, Floats]]:
        """Both sides of each form; the excess lets the upper side rise and the lower side fall."""
        f, count, wide = self.forms, len(self.switches.cells), len(self.excess.price)
        parts = []
        for side, sign in ((f.upper, -1.0), (f.lower, 1.0)):
            at = np.flatnonzero(np.isfinite(side))
            if not at.size:
                continue
            body = f.matrix[at] * step
            widened = np.flatnonzero(f.excess[at] >= 0)
            give = sparse.csr_array(
                (np.full(len(widened), sign), (widened, f.excess[at][widened])), shape=(len(at), wide)
            )
            row = sparse.hstack([body, -body, sparse.csr_array((len(at), count)), give], format="csr")
            free = np.full(len(at), np.inf)
            parts.append((sparse.csr_array(row), *((-free, side[at]) if sign < 0 else (side[at], free))))
        return parts

    def _point(self, start: tuple[Floats, Mask], step: float, lower: Floats, upper: Floats) -> Floats:
        """A known answer as columns; each excess as large as its forms need."""
        moves, rise = start
        form = self.forms.matrix @ moves
        need = np.maximum(form - self.forms.upper, self.forms.lower - form)
        excess = np.where(np.isfinite(self.excess.lower), self.excess.lower, -1e6)
        wide = self.forms.excess >= 0
        np.maximum.at(excess, self.forms.excess[wide], need[wide])
        sides = np.concatenate([np.maximum(moves, 0.0), np.maximum(-moves, 0.0)]) / step
        return np.asarray(np.clip(np.concatenate([sides, rise.astype(np.float64), excess]), lower, upper))
