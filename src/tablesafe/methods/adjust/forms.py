"""Statistics of a group of cells as linear forms of the moves: what Cox & Kelly's programs are made of.

With true values `a` (centred: `d`), moves `y` and published values `u = a + y`, let `L(y) = d·y / d·d`. The slope of
`u` on `a` is exactly `1 + L(y)`. The ratio of standard deviations is `N(y) = |u − ū| / |d|`, which is convex: each unit
vector `g` gives a form `g·u / |d| ≤ N(y)`, exact where `u` points along `g`. At the true values `g` is `d / |d|` and
the form is `1 + L(y)` again, the linear formulation of the paper; later points add sharper ones. The correlation of `a`
and `u` is `(1 + L) / N`, so "at least ρ" is the convex `ρ N ≤ 1 + L`. Relations between two responses are linearised.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats
from tablesafe.loss.statistics import Relation

FREE = -10.0
"""How far below its range the excess of a form that is to be as small as possible may fall."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Forms `lower ≤ constant + coefficient · moves[cells] ≤ upper`, up to an excess; `length` entries in each."""

    length: NDArray[np.intp]
    cells: NDArray[np.intp]
    coefficient: Floats
    constant: Floats
    lower: Floats
    upper: Floats

    @classmethod
    def one(
        cls, cells: NDArray[np.intp], coefficient: Floats, constant: float, lower: float = -np.inf,
        upper: float = np.inf,
    ) -> Self:  # fmt: skip
        """A single form."""
        sides = (np.array([number]) for number in (constant, lower, upper))
        return cls(np.array([len(cells)]), cells, coefficient, *sides)

    @classmethod
    def each(cls, cells: NDArray[np.intp], coefficient: Floats, lower: float, upper: float) -> Self:
        """A form a cell."""
        count = len(cells)
        ones = np.ones(count, np.intp)
        return cls(ones, cells, coefficient, np.zeros(count), np.full(count, lower), np.full(count, upper))


class Statistic(Protocol):
    """One number to be kept, in one group: its deviation from what it was, and forms that bound it near a point."""

    name: str
    within: float | None
    """The deviation that is allowed; None for as little as possible."""
    price: float
    """What its excess costs beside that of others."""

    @property
    def group(self) -> str: ...

    @property
    def unit(self) -> float: ...

    def deviation(self, moves: Floats) -> float: ...

    def note(self, moves: Floats) -> None: ...

    def rows(self, moves: Floats | None) -> list[Rows]: ...  # without a point: only what holds everywhere


@dataclass(frozen=True, eq=False)
class Column:
    """The true values of a group's cells, and which of them may move."""

    name: str
    values: Floats = field(repr=False)
    movable: NDArray[np.intp] = field(repr=False)
    """Places within the group."""
    cells: NDArray[np.intp] = field(repr=False)
    """Numbers, among all moves, of those that may."""

    @property
    def centred(self) -> Floats:
        """True values less their mean."""
        return np.asarray(self.values - self.values.mean())

    @property
    def unit(self) -> float:
        """By how much a statistic may change when every value is rounded to a unit."""
        d = self.centred
        return 4.0 * float(np.sqrt(len(d) / (d @ d)))

    def published(self, moves: Floats) -> Floats:
        """The values after the moves."""
        values = self.values.copy()
        values[self.movable] += moves[self.cells]
        return values

    def row(self, weights: Floats, constant: float, *, lower: float = -np.inf, upper: float = np.inf) -> Rows:
        """The form `constant + weights · y` of this group's moves."""
        return Rows.one(self.cells, weights[self.movable], constant, lower, upper)


@dataclass(eq=False)
class Curved:
    """The `variance` or the `correlation` of one group: curved, so its forms are exact only at the points seen."""

    column: Column
    within: float | None
    name: str
    price: float = 2.0
    """Forms of the variance are about standard deviations, half as far from 1; 1 − ρ² falls twice as fast as 1 − ρ."""
    seen: list[Floats] = field(default_factory=list, repr=False)

    @property
    def group(self) -> str:
        """The cells it is about."""
        return self.column.name

    @property
    def unit(self) -> float:
        """What rounding may do to it."""
        return self.column.unit

    @property
    def two_sided(self) -> bool:
        """Whether it may miss in either direction, so that some forms hold near one point only."""
        return self.name == "variance"

    def deviation(self, moves: Floats) -> float:
        """How far the ratio of variances is from 1, or the correlation of published and true values below it."""
        relation = Relation.of(self.column.values, self.column.published(moves))
        return abs(relation.variance_ratio - 1.0) if self.two_sided else 1.0 - relation.correlation

    def note(self, moves: Floats) -> None:
        """Remember a point: its form is exact there."""
        self.seen.append(_along(self.column, moves))

    def rows(self, moves: Floats | None) -> list[Rows]:
        """The forms of all points so far, and those of this point."""
        return self._variance_rows(moves) if self.two_sided else self._correlation_rows(moves)

    def _variance_rows(self, moves: Floats | None) -> list[Rows]:
        """The upper forms of all points so far, and the lower one of this point: it can only err on the safe side."""
        room = self.within or 0.0
        top, bottom = np.sqrt(1.0 + room), np.sqrt(max(1.0 - room, 0.0))
        rows = [_spread(self.column, g, upper=top) for g in self.seen]
        if moves is None:
            return rows
        return [*rows, _spread(self.column, _along(self.column, moves), lower=bottom)]

    def _correlation_rows(self, moves: Floats | None) -> list[Rows]:
        """`ρ g·u / |d| − (1 + L) ≤ 0` for all points so far; without a limit, ρ is what this point reaches.

        Then making the form as small as possible is a step of Dinkelbach's method for the ratio of the two.
        """
        d = self.column.centred
        size = float(np.sqrt(d @ d))
        reached = 0.0 if moves is None else self.deviation(moves)
        wanted = 1.0 - (reached if self.within is None else self.within)
        rows = []
        for g in self.seen:
            weights = wanted * g / size - d / (d @ d)
            rows.append(self.column.row(weights, wanted * float(g @ self.column.values) / size - 1.0, upper=0.0))
        return rows


@dataclass(eq=False)
class Linear:
    """The slope of the published values on the true ones is `1 + L(y)`: |L| small, or L as large as possible."""

    column: Column
    within: float | None = None
    largest: bool = False
    name: str = "slope"
    price: float = 1.0

    @property
    def group(self) -> str:
        """The cells it is about."""
        return self.column.name

    @property
    def unit(self) -> float:
        """What rounding may do to it."""
        return self.column.unit

    def deviation(self, moves: Floats) -> float:
        """|L(y)|, or −L(y) where it is to be large."""
        change = Relation.of(self.column.values, self.column.published(moves)).slope - 1.0
        return -change if self.largest else abs(change)

    def note(self, moves: Floats) -> None:
        """Nothing to learn: the form is exact."""

    def rows(self, moves: Floats | None) -> list[Rows]:
        """One form."""
        d, room = self.column.centred, self.within or 0.0
        return [self.column.row(d / (d @ d), 0.0, lower=-room, upper=np.inf if self.largest else room)]


@dataclass(eq=False)
class Between:
    """The relation between two responses, before and after: its slope (relative) or its correlation (absolute)."""

    first: Column
    second: Column
    name: str
    within: float | None
    group: str
    price: float = 1.0

    @property
    def unit(self) -> float:
        """What rounding may do to it."""
        return self.first.unit + self.second.unit

    def deviation(self, moves: Floats) -> float:
        """How far the relation is from what it was."""
        return abs(self._signed(moves))

    def note(self, moves: Floats) -> None:
        """Nothing to remember: the tangent is that of the last point."""

    def rows(self, moves: Floats | None) -> list[Rows]:
        """The tangent at this point."""
        cells = np.concatenate([self.first.cells, self.second.cells])
        if moves is None:
            return []
        room, (du, dv) = self.within or 0.0, self._gradient(moves)
        weights = np.concatenate([du[self.first.movable], dv[self.second.movable]])
        constant = self._signed(moves) - float(weights @ moves[cells])
        return [Rows.one(cells, weights, constant, -room, room)]

    def _signed(self, moves: Floats) -> float:
        truth = Relation.of(self.first.values, self.second.values)
        after = Relation.of(self.first.published(moves), self.second.published(moves))
        if self.name == "slope":
            return (after.slope - truth.slope) / self._unit(truth)
        return after.correlation - truth.correlation

    def _unit(self, truth: Relation) -> float:
        """Slopes are compared relative to what they were, unless that is next to nothing."""
        return max(abs(truth.slope), 1e-3 * float(np.sqrt(truth.variance_ratio)))

    def _gradient(self, moves: Floats) -> tuple[Floats, Floats]:
        u, v = self.first.published(moves), self.second.published(moves)
        u, v = u - u.mean(), v - v.mean()
        uu, vv, uv = float(u @ u), float(v @ v), float(u @ v)
        if self.name == "slope":
            unit = self._unit(Relation.of(self.first.values, self.second.values))
            return (v / uu - 2 * uv / uu**2 * u) / unit, u / uu / unit
        size = float(np.sqrt(uu * vv))
        return v / size - uv / size / uu * u, u / size - uv / size / vv * v


@dataclass(eq=False)
class Capacity:
    """The largest change of any cell, as a share of its value, where that share is chosen and not given.

    Cox & Kelly (2003), paragraph 35: `|y| ≤ q a` in every cell that is not sensitive, `q` a variable beside the
    statistics. The excess of these forms is that variable.
    """

    cells: NDArray[np.intp] = field(repr=False)
    size: Floats = field(repr=False)
    """What each cell's change is a share of, in whole units: its value without its sign."""
    price: float = 1.0
    within: float | None = None
    name: str = "capacity"
    group: str = "cells that are not sensitive"
    unit: float = 0.0

    def deviation(self, moves: Floats) -> float:
        """The largest share."""
        return float((np.abs(moves[self.cells]) / self.size).max(initial=0.0))

    def note(self, moves: Floats) -> None:
        """Nothing to learn: the forms are exact."""

    def rows(self, moves: Floats | None) -> list[Rows]:
        """A form a cell."""
        room = self.within or 0.0
        return [Rows.each(self.cells, 1.0 / self.size, -room, room)]


def _along(column: Column, moves: Floats) -> Floats:
    """The unit vector along the centred published values."""
    u = column.published(moves)
    u = u - u.mean()
    size = float(np.sqrt(u @ u))
    if size == 0.0:
        d = column.centred
        return np.asarray(d / np.sqrt(d @ d))
    return np.asarray(u / size)


def _spread(column: Column, g: Floats, *, lower: float = -np.inf, upper: float = np.inf) -> Rows:
    """The form `g·u / |d|`: at most the ratio of standard deviations."""
    d = column.centred
    size = float(np.sqrt(d @ d))
    return column.row(g / size, float(g @ column.values) / size, lower=lower, upper=upper)
