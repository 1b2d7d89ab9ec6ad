"""The suppression problem as plain arrays: what may be withheld, what it costs, and how far each cell must move."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.problem import Problem

UNBOUNDED = 1e15
"""A deviation without limit, in units of the table; larger than anything that can be added exactly."""
NOISE = 1e-9
"""A level and the room for it are often products of the same numbers: what they differ by less is rounding."""


@dataclass(frozen=True, eq=False)
class Instance:
    """Deviations from the true table that an attacker cannot rule out, and what it costs to allow them.

    A pattern protects target t when a deviation y exists with `rows @ y = 0`, `−down ≤ y ≤ up`, y zero outside the
    pattern, and `sign[t] · y[cell[t]] ≥ level[t]`. All in units of the table.
    """

    rows: sparse.csr_array = field(repr=False)
    columns: sparse.csc_array = field(repr=False)
    cost: Floats = field(repr=False)
    forced: Mask = field(repr=False)
    """Withheld in any case: the sensitive cells, and what was withheld before or by design."""
    live: Mask = field(repr=False)
    """May be withheld."""
    up: Floats = field(repr=False)
    down: Floats = field(repr=False)
    cell: Integers = field(repr=False)
    sign: NDArray[np.int8] = field(repr=False)
    level: Floats = field(repr=False)

    @classmethod
    def of(cls, problem: Problem, cost: Floats, *, margin: float = 0.0, zeros: bool | Mask = True) -> Self:
        """Read a problem; `margin` asks for that share more protection, `zeros` allows cells of value 0, or some."""
        table, sensitivity = problem.table, problem.sensitivity
        unit = 10.0**table.decimals
        value = table.integers.astype(np.float64)
        up = np.minimum(problem.upper * unit - value, UNBOUNDED)
        down = np.minimum(value - problem.lower * unit, UNBOUNDED)
        forced = sensitivity.mask | problem.suppressed | problem.withheld
        live = ~problem.frozen & (up + down > 0)
        live &= (table.integers != 0) | forced | zeros
        up, down = np.where(live, up, 0.0), np.where(live, down, 0.0)
        cell, sign, level = _targets(problem, up, down, unit * (1 + margin))
        matrix = table.equations.astype(np.float64)
        return cls(
            sparse.csr_array(matrix),
            sparse.csc_array(matrix),
            np.where(forced, 0.0, cost),
            forced,
            live,
            up,
            down,
            cell,
            sign,
            level,
        )

    def __len__(self) -> int:
        return len(self.cost)

    def only(self, cells: Integers, *, targets: Integers | None = None, forced: Mask | None = None) -> Self:
        """The instance on some (ascending) cells, as if every other one stood still, with all targets or some of them.

        These are among the cells. `forced` says what is withheld in any case, of the cells of the whole.
        """
        columns = sparse.csc_array(self.columns[:, cells])
        used = np.flatnonzero(np.bincount(columns.indices, minlength=columns.shape[0]))
        rows = sparse.csr_array(sparse.csr_array(columns)[used])
        part = self if targets is None else self.asking(targets)
        return replace(
            part,
            rows=rows,
            columns=sparse.csc_array(rows),
            cost=self.cost[cells],
            forced=(self.forced if forced is None else forced)[cells],
            live=self.live[cells],
            up=self.up[cells],
            down=self.down[cells],
            cell=np.searchsorted(cells, part.cell),
        )

    def asking(self, targets: Integers | Mask) -> Self:
        """The instance with some of its targets."""
        return replace(self, cell=self.cell[targets], sign=self.sign[targets], level=self.level[targets])

    def withholding(self, pattern: Mask) -> Self:
        """The instance in which a pattern is withheld already, and costs nothing."""
        return replace(self, forced=pattern, cost=np.where(pattern, 0.0, self.cost))

    def pattern_cost(self, pattern: Mask) -> float:
        """What a pattern costs: its complementary cells."""
        return float(self.cost[pattern].sum())


def reported_zeros(problem: Problem) -> Mask:
    """Cells of value zero that have contributors, each of whom has reported nothing: they are not empty."""
    table = problem.table
    zero = (table.integers == 0) & ~problem.frozen
    return np.zeros_like(zero) if table.count is None else np.asarray(zero & (table.count > 0))


def zeros_kept(problem: Problem, instance: Instance) -> bool:
    """Whether cells of value zero are published that might be withheld if that were allowed."""
    return bool(((problem.table.integers == 0) & ~instance.live & ~problem.frozen).any())


def _targets(problem: Problem, up: Floats, down: Floats, unit: float) -> tuple[Integers, NDArray[np.int8], Floats]:
    """How far each sensitive cell must be able to rise and to fall.

    A sliding level, and the mere wish that a cell be not known exactly, become a demand on the side with more room.
    """
    sensitivity = problem.sensitivity
    cells = problem.sensitive
    above, below = sensitivity.upper[cells] * unit, sensitivity.lower[cells] * unit
    width = np.maximum(sensitivity.sliding[cells] * unit, np.where((above == 0) & (below == 0), 1.0, 0.0))
    missing = np.maximum(width - above - below, 0.0)
    rise = up[cells] - above >= down[cells] - below
    above = above + np.where(rise, missing, 0.0)
    below = below + np.where(rise, 0.0, missing)
    cell = np.concatenate([cells, cells])
    sign = np.concatenate([np.ones(len(cells), np.int8), -np.ones(len(cells), np.int8)])
    level = np.concatenate([above, below])
    room = np.concatenate([up[cells], down[cells]])
    level = np.where(level <= room + NOISE * np.maximum(room, 1.0), np.minimum(level, room), level)
    demanded = level > 0
    order = np.argsort(-level[demanded], kind="stable")
    return cell[demanded][order].astype(np.int64), sign[demanded][order], level[demanded][order]
