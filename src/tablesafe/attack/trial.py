"""Trial protection: with a smaller p, would the office have withheld so much?

A withheld cell that is not sensitive itself is there because without it some sensitive cell would not be protected. An
intruder publishes each of them in turn, in a table that it thinks possible, and sees up to which p the rest would still
protect everybody: the office's p is larger than that, or the cell would not have been withheld. With the p up to which
the whole pattern protects, this brackets p, and refutes tables for which the bracket is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.attack.parameters import PRange
from tablesafe.attack.reconstruction import Derived, seen
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.sums import components
from tablesafe.audit.system import System
from tablesafe.equations import Floats, Integers, Mask
from tablesafe.errors import InvalidOption
from tablesafe.release import Release
from tablesafe.table import Table

FINEST = 1e-3
"""Percentage points to which p is found by halving."""
SAME = 1e-9
"""Relative difference below which two costs are the same."""


@dataclass(frozen=True, eq=False)
class Trials:
    """For each table that the intruder thinks possible, the bracket of p in which it leads to this pattern."""

    table: Table = field(repr=False)
    lower: Floats = field(repr=False)
    """Per table, in percent: some withheld cell could be published with a p up to this."""
    upper: Floats = field(repr=False)
    """Per table, in percent: the pattern protects up to this."""
    lower_cell: NDArray[np.intp] = field(repr=False)
    upper_cell: NDArray[np.intp] = field(repr=False)

    @property
    def possible(self) -> Mask:
        """Which of the tables can have led to the pattern, with some p."""
        return np.asarray(self.lower < self.upper)

    @property
    def range(self) -> PRange:
        """What all possible tables together leave open."""
        at = np.flatnonzero(self.possible)
        if not at.size:
            return PRange(0.0, 100.0, self.table)
        low, high = int(at[np.argmin(self.lower[at])]), int(at[np.argmax(self.upper[at])])
        cells = [int(self.lower_cell[low]), int(self.upper_cell[high])]
        lower_cell, upper_cell = (cell if cell >= 0 else None for cell in cells)
        return PRange(float(self.lower[low]), float(self.upper[high]), self.table, lower_cell, upper_cell)


def trial_p(
    release: Release,
    primary: NDArray[Any],
    tables: NDArray[Any] | None = None,
    *,
    most: int = 200,
    seed: int = 0,
) -> Trials:
    """Bracket p by publishing each complementary cell in turn, in tables that the intruder thinks possible.

    `primary` marks the sensitive cells, whose levels are p percent of their value. `tables` holds one table per row,
    one value per cell of the table, additive and in agreement with the release; without any, the true table is tried:
    the strongest intruder there is. At most `most` complementary cells are tried, drawn by `seed`: fewer give a weaker
    lower bound, never a wrong one.
    """
    table = release.table
    given = np.asarray(primary)
    if given.shape != (len(table),) or given.dtype != np.bool_:
        raise InvalidOption(f"Sensitive cells are marked by {len(table):,} booleans, one per cell.")
    derived = Derived.of(release)
    setting = _Setting.of(derived, given)
    chosen = _chosen(setting, most, seed)
    candidates = table.integers[None, :] if tables is None else whole_tables(table, derived.system, np.asarray(tables))
    found = [_bracket(setting, chosen, row[derived.cells]) for row in candidates]
    columns = [np.array(column) for column in zip(*found, strict=True)]
    return Trials(table, columns[0], columns[1], columns[2].astype(np.intp), columns[3].astype(np.intp))


@dataclass(frozen=True, eq=False)
class _Setting:
    """What stays the same from table to table: the unknown cells, who is sensitive, and the exact intervals."""

    system: System
    primary: NDArray[np.intp]
    """Positions of the sensitive cells among the unknown ones."""
    lower: Floats
    upper: Floats
    component: NDArray[np.intp]

    @classmethod
    def of(cls, derived: Derived, primary: Mask) -> Self:
        unit = 10.0**derived.table.decimals
        return cls(
            derived.system,
            np.flatnonzero(primary[derived.cells]),
            derived.lower * unit,
            derived.upper * unit,
            components(derived.system.matrix),
        )

    def largest_p(self, value: Floats, at: NDArray[np.intp], lower: Floats, upper: Floats) -> tuple[float, int]:
        """Up to which p the intervals of some sensitive cells protect them, in percent, and which cell ends it."""
        own = value[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(own != 0, np.minimum(own - lower, upper - own) / np.abs(own), np.inf)
        if not share.size:
            return np.inf, -1
        worst = int(np.argmin(share))
        return 100 * float(share[worst]), int(self.system.cells[at[worst]])


def _chosen(setting: _Setting, most: int, seed: int) -> NDArray[np.intp]:
    """The complementary cells to be published on trial: those that share a component with a sensitive cell."""
    near = np.isin(setting.component, setting.component[setting.primary])
    near[setting.primary] = False
    cells = np.flatnonzero(near & (setting.upper > setting.lower))
    if len(cells) <= most:
        return cells
    return np.sort(np.random.default_rng(seed).choice(cells, most, replace=False))


def _bracket(setting: _Setting, chosen: NDArray[np.intp], value: Integers) -> tuple[float, float, int, int]:
    """Lower and upper end of p for one table, and the cells that tell them."""
    numbers = value.astype(np.float64)
    at = setting.primary
    upper, upper_cell = setting.largest_p(numbers, at, setting.lower[at], setting.upper[at])
    lower, lower_cell = 0.0, -1
    for cell in chosen.tolist():
        without, _ = _published(setting, value, cell, upper)
        if without > lower:
            lower, lower_cell = without, int(setting.system.cells[cell])
    return min(lower, 100.0), min(upper, 100.0), lower_cell, upper_cell


def _published(setting: _Setting, value: Integers, cell: int, most: float) -> tuple[float, int]:
    """Up to which p the pattern protects without one cell: only the component of that cell can suffer."""
    system = setting.system
    own = np.flatnonzero(setting.component == setting.component[cell])
    own = own[own != cell]
    part = System.over(
        _with_values(system.table, system.cells, value), system.cells[own], system.lower[own], system.upper[own]
    )
    wanted = np.flatnonzero(np.isin(own, setting.primary))
    found = exact_intervals(part, wanted)
    share, who = setting.largest_p(value.astype(np.float64), own[wanted], found.lower, found.upper)
    return min(share, most), who


def _with_values(table: Table, cells: NDArray[np.intp], value: Integers) -> Table:
    integers = table.integers.copy()
    integers[cells] = value
    return replace(table, integers=integers)


def whole_tables(table: Table, system: System, tables: NDArray[Any]) -> Integers:
    """Tables in whole units, checked against the equations and the release."""
    if tables.ndim != 2 or tables.shape[1] != len(table):
        raise InvalidOption(f"Candidate tables hold {len(table):,} values each, one table per row.")
    integers = np.rint(tables * 10.0**table.decimals).astype(np.int64)
    unknown = integers[:, system.cells]
    added = np.asarray(system.matrix.astype(np.int64) @ unknown.T) - system.rhs[:, None]
    within = (unknown >= system.lower) & (unknown <= system.upper)
    if added.any() or not within.all():
        raise InvalidOption(
            "A candidate table does not add up, or contradicts the release.\n\nHint: candidate_tables makes some."
        )
    return integers


Office = Callable[[Table, float], Mask]
"""What an office would withhold: from a table and a p, in percent."""


def trial_p_by_method(release: Release, office: Office, table: Table, *, cost: Floats, highest: float = 50.0) -> PRange:
    """Bracket p by protecting a table on trial with the office's own method, which is known, for one p after another.

    A larger p costs more. The office's p is at least the largest for which the method finds a cheaper pattern than the
    one in the release, and at most the largest for which it finds none that is dearer. `table` is what the intruder
    takes for the truth: the nearer it is, the better the bracket.
    """
    paid = float(cost[seen(release).cells].sum())

    def price(p: float) -> float:
        return float(cost[np.asarray(office(table, p))].sum())

    lower = _turn(lambda p: price(p) < paid * (1 - SAME), highest)
    upper = _turn(lambda p: price(p) <= paid * (1 + SAME), highest)
    return PRange(lower[0], upper[1], table)


def _turn(holds: Callable[[float], bool], highest: float) -> tuple[float, float]:
    """Between which two p, `FINEST` apart, something that holds for small ones ceases to hold; by halving."""
    if holds(highest):
        return highest, highest
    low, high = 0.0, highest
    while high - low > FINEST:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
