"""The adjustment problem as plain arrays: what may move, how far, at what cost, and what must."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.files.read import LARGEST_EXACT
from tablesafe.solve.least_change import Box, Switches, independent_rows
from tablesafe.solve.program import Scale
from tablesafe.solve.propagate import propagate

Way = NDArray[np.int8]
"""Per target +1 where it rises, −1 where it falls."""
LARGE = 8_000
"""Cells from which on the shape of the equations decides how linear programs are solved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What the office allows: shares of the value, and which cells stay."""

    zeros: bool = False
    """Cells of value zero may move."""
    capacity: float | None = None
    """No cell that is not sensitive moves by more than this share of its value."""
    window: float | None = None
    """No cell at all moves by more than this share of its published value."""
    fixed: str = "none"
    """Which totals stay: none, top or totals."""
    amounts: Floats | None = None
    """No cell that is not sensitive moves by more than this amount of its own; NaN where it may."""
    times: float | None = None
    """No sensitive cell moves by more than this many times its level: 1 is exactly at it."""
    chosen: Mask | None = None
    """Other cells that stay."""
    raised: Floats | None = None
    """Capacities in whole units that were raised, because nothing was feasible without."""

    @property
    def capped(self) -> bool:
        """Whether cells that are not sensitive have a capacity."""
        return self.capacity is not None or self.amounts is not None


@dataclass(frozen=True, eq=False)
class Instance:
    """Moves y of the cells that may move: `matrix @ y = 0`, `−down ≤ y ≤ up`, and targets far enough from 0.

    All in whole units of the table; costs are per unit. A target is a sensitive cell: it rises by at least `above`
    or falls by at least `below`.
    """

    cells: NDArray[np.intp] = field(repr=False)
    """The table's cells that may move; everything below is numbered by them."""
    matrix: sparse.csc_array = field(repr=False)
    cost: Floats = field(repr=False)
    up: Floats = field(repr=False)
    down: Floats = field(repr=False)
    targets: NDArray[np.intp] = field(repr=False)
    above: Floats = field(repr=False)
    below: Floats = field(repr=False)

    @classmethod
    def of(cls, problem: Problem, cost: Floats, limits: Allowance) -> Self:
        """Read a problem; a target without room on either side shows as one that can neither rise nor fall."""
        table = problem.table
        up, down = room(problem, limits)
        cells = np.flatnonzero((up > 0) | (down > 0) | problem.sensitivity.mask)
        columns = table.equations.tocsc()[:, cells].tocsr()
        matrix = sparse.csc_array(columns[np.flatnonzero(np.diff(columns.indptr))])
        above, below = levels(problem)
        targets = np.flatnonzero(problem.sensitivity.mask[cells])
        wanted = cells[targets]
        return cls(
            cells, matrix, cost[cells] / 10.0**table.decimals, up[cells], down[cells], targets,
            above[wanted], below[wanted],
        ).narrowed()  # fmt: skip

    def narrowed(self) -> Self:
        """The same with the bounds that the equations imply: proven, and often much smaller."""
        lower, upper = propagate(sparse.csr_array(self.matrix), -self.down, self.up)
        return replace(self, up=np.maximum(upper, 0.0), down=np.maximum(-lower, 0.0))

    @property
    def base(self) -> Floats:
        """The least by which each cell moves whatever is chosen: a target's nearer level."""
        base = np.zeros(len(self.cells))
        base[self.targets] = np.minimum(
            np.where(self.can_rise, self.above, np.inf), np.where(self.can_fall, self.below, np.inf)
        )
        return base

    def cheaper_than(self, cost: float) -> Self:
        """The same, without what cannot be part of any change that costs less.

        The targets' own levels are the least that any change costs; what is left of the cost bounds every move.
        """
        base = self.base
        spare = max(cost * (1 + 1e-9) - float(self.cost @ base), 0.0)
        most = np.floor(base + spare / self.cost + 1e-6) + 1.0
        return replace(self, up=np.minimum(self.up, most), down=np.minimum(self.down, most)).narrowed()

    @cached_property
    def rows(self) -> sparse.csc_array:
        """The equations that do not follow from others: what a solver needs."""
        return independent_rows(self.matrix)

    @property
    def deep(self) -> bool:
        """Whether the simplex method would take long: many cells, each in three equations or more, much freedom."""
        cells = len(self.cells)
        if cells <= 2 * LARGE:
            return False
        return bool(self.matrix.nnz > 2.9 * cells and cells - self.rows.shape[0] > cells // 4)

    @property
    def can_rise(self) -> Mask:
        """Which targets have room to rise far enough."""
        return self.up[self.targets] >= self.above

    @property
    def can_fall(self) -> Mask:
        """Which targets have room to fall far enough."""
        return self.down[self.targets] >= self.below

    def allowed(self, way: Way) -> Way:
        """The same directions, turned round where there is no room."""
        return np.where(self.can_rise & self.can_fall, way, np.where(self.can_rise, 1, -1)).astype(np.int8)

    def box(self, way: Way, *, open: Mask | None = None) -> Box:
        """The bounds of every move when the targets go these ways; those in `open` go either way, or stay."""
        box = Box.free(self.up, self.down)
        shut = np.ones(len(way), np.bool_) if open is None else ~open
        rising, falling = shut & (way > 0), shut & (way < 0)
        up, down = self.targets[rising], self.targets[falling]
        box.rise_least[up], box.fall_most[up] = self.above[rising], 0.0
        box.fall_least[down], box.rise_most[down] = self.below[falling], 0.0
        return box

    def switches(self, open: Mask) -> Switches:
        """The targets whose direction is still to be chosen."""
        return Switches(self.targets[open], self.above[open], self.below[open])

    def scale(self, objective: float | None = None) -> Scale:
        """How to show these numbers to a solver."""
        return Scale.middle(self.cost, np.concatenate([self.above, self.below]), objective=objective)

    def price(self, moves: Floats | Integers) -> float:
        """What a change costs."""
        return float(self.cost @ np.abs(moves))

    def holds(self, moves: Integers) -> bool:
        """Whether a change keeps every equation, every bound and every distance: in whole numbers, without a solver."""
        added = not np.asarray(self.matrix.astype(np.int64) @ moves).any()
        within = bool(((moves <= self.up) & (-moves <= self.down)).all())
        moved = moves[self.targets]
        return added and within and bool(((moved >= self.above) | (-moved >= self.below)).all())


def finer(problem: Problem, decimals: int | None) -> Problem:
    """The same problem in smaller units: published values may then have more decimals than the true ones."""
    table = problem.table
    more = 0 if decimals is None else decimals - table.decimals
    if more < 0:
        raise InvalidOption(
            f"Adjust.decimals is {decimals}, but the table's values have {table.decimals}.",
            hint=f"leave it out, or give {table.decimals} or more.",
            about=("option", "Adjust", "decimals"),
        )
    if more and float(np.abs(table.value).max(initial=0.0)) * 10.0 ** (table.decimals + more) > LARGEST_EXACT / 8:
        raise InvalidOption(
            f"Adjust.decimals is {decimals}: values of this size cannot be added exactly with so many.",
            hint="give fewer decimals, or use a larger unit (thousands, millions).",
            about=("option", "Adjust", "decimals"),
        )
    if more == 0:
        return problem
    return problem.replace(table=replace(table, integers=table.integers * 10**more, decimals=table.decimals + more))


def levels(problem: Problem) -> tuple[Floats, Floats]:
    """How far each sensitive cell must rise, or fall, in whole units: at least one, or it would be published as it is.

    A sliding level wider than the two others together is asked for on either side.
    """
    sensitivity, unit = problem.sensitivity, 10.0**problem.table.decimals
    missing = np.maximum(sensitivity.sliding - sensitivity.upper - sensitivity.lower, 0.0)
    above, below = whole_up((sensitivity.upper + missing) * unit), whole_up((sensitivity.lower + missing) * unit)
    return np.maximum(above, 1.0), np.maximum(below, 1.0)


def room(problem: Problem, limits: Allowance) -> tuple[Floats, Floats]:
    """How far each cell may rise and fall, in whole units; 0 for a cell that stays."""
    table, sensitive = problem.table, problem.sensitivity.mask
    unit, value = 10.0**table.decimals, table.integers.astype(np.float64)
    up, down = whole_down(problem.upper * unit - value), whole_down(value - problem.lower * unit)
    seen = ~(problem.withheld | problem.suppressed)
    above, below = levels(problem)
    if limits.capped:
        share = capacity(problem, limits)
        most_up, most_down = (np.where(sensitive, np.maximum(share, level), share) for level in (above, below))
        up, down = np.where(seen, np.minimum(up, most_up), up), np.where(seen, np.minimum(down, most_down), down)
    if limits.times is not None:
        far_up, far_down = (np.maximum(whole_down(limits.times * level), level) for level in (above, below))
        up, down = (
            np.where(sensitive, np.minimum(up, far_up), up),
            np.where(sensitive, np.minimum(down, far_down), down),
        )
    if limits.window is not None:
        out, back = announced(value, limits.window)
        up, down = np.where(seen, np.minimum(up, out), up), np.where(seen, np.minimum(down, back), down)
    stays = problem.frozen | _fixed(problem, limits)
    return np.where(stays, 0.0, up), np.where(stays, 0.0, down)


def capacity(problem: Problem, limits: Allowance) -> Floats:
    """How far each cell that is not sensitive may move by the office's own limits, in whole units."""
    table = problem.table
    most = np.full(len(table), np.inf)
    if limits.capacity is not None:
        most = whole_down(limits.capacity * np.abs(table.integers.astype(np.float64)))
    if limits.amounts is not None:
        given = whole_down(limits.amounts * 10.0**table.decimals)
        most = np.minimum(most, np.where(np.isnan(given), np.inf, given))
    return most if limits.raised is None else np.maximum(most, limits.raised)


def announced(value: Floats, window: float) -> tuple[Floats, Floats]:
    """How far a value may rise and fall so that the truth is within `window` of the published value, as a share of it.

    Away from zero by `w·a/(1−w)`, towards zero by `w·a/(1+w)`: the share is one of the published value.
    """
    size = np.abs(value)
    away = whole_down(size * window / (1.0 - window)) if window < 1 else np.where(size > 0, np.inf, 0.0)
    towards = whole_down(size * window / (1.0 + window))
    return np.where(value >= 0, away, towards), np.where(value >= 0, towards, away)


def _fixed(problem: Problem, limits: Allowance) -> Mask:
    """What stays besides the frozen cells: zeros, and totals that are not sensitive themselves."""
    table, stays = problem.table, np.zeros(len(problem.table), np.bool_)
    if not limits.zeros:
        stays |= (table.integers == 0) & ~problem.withheld & ~problem.suppressed
    if limits.fixed == "totals":
        stays |= table.is_total
    if limits.fixed == "top":
        terms = np.bincount(table.equations.indices, minlength=len(table))
        stays |= table.is_total & (terms == np.bincount(table.totals, minlength=len(table)))
    if limits.chosen is not None:
        stays |= limits.chosen
    return stays & ~problem.sensitivity.mask


def whole_up(amounts: Floats) -> Floats:
    """The next whole number, unless it is whole already up to the noise of floats."""
    return np.ceil(amounts - _noise(amounts))


def whole_down(amounts: Floats) -> Floats:
    """The whole number below, unless it is whole already up to the noise of floats; infinity stays."""
    return np.floor(amounts + _noise(amounts))


def _noise(amounts: Floats) -> Floats:
    return np.where(np.isinf(amounts), 0.0, np.maximum(1e-9, 4e-15 * np.abs(amounts)))
