"""Cheaper patterns: up to which p would an office that spares cost have withheld something else?

An office that withholds as little as it can pays for every percent of p. So an intruder looks for patterns that cost
less than the one in the release and still protect everybody by some smaller p: the office's p is larger than that, or
it would have taken one of them. The patterns come from the classic sequence of linear programs, one for each sensitive
cell and direction, in which what is withheld already costs nothing (Kelly, Golden & Assad 1992), from scratch and from
the release's own pattern with one cell published; then whatever is not needed is published again. Whatever is found
holds: a better search can only raise the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.attack.parameters import PRange
from tablesafe.attack.reconstruction import Derived, seen
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.sums import components
from tablesafe.audit.system import System, snapped
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption, TablesafeError
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.solve.highs import Model
from tablesafe.solve.program import Columns

FINEST_IN_PERCENT = 0.25
"""Percentage points between a p for which a cheaper pattern is known and one for which none was found."""
SCRATCH = 16
"""Patterns made from scratch for each p, with the sensitive cells in another order and costs a little different."""
SPREAD = 0.6
"""By what share costs are changed to find other patterns."""


@dataclass(eq=False)
class Cheaper:
    """The search for cheaper patterns of one table."""

    table: Table = field(repr=False)
    primary: NDArray[np.intp] = field(repr=False)
    pattern: Mask = field(repr=False)
    cost: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    """What everybody knows about each cell if it is withheld, in units."""
    upper: Floats = field(repr=False)
    most: int
    """Linear programs after which the bound found so far must do."""
    seed: int = 0
    programs: int = 0

    @cached_property
    def value(self) -> Floats:
        """The values, in units."""
        return self.table.integers.astype(np.float64)

    @cached_property
    def eligible(self) -> Mask:
        """Cells that the office may withhold: those that it does, and inner ones that hold something."""
        return self.pattern | (~self.table.is_total & (self.table.integers > 0))

    @cached_property
    def paid(self) -> float:
        """What the release's pattern costs."""
        return float(self.cost[self.pattern].sum())

    @cached_property
    def _columns(self) -> Columns:
        both = sparse.csc_array(sparse.hstack([self.table.equations, -self.table.equations]).astype(np.float64))
        return Columns.of(both)

    @cached_property
    def _solver(self) -> Model:
        return Model.small()

    def largest_p(self, upper: float) -> float:
        """The largest p, in percent and below `upper`, for which a cheaper pattern was found; 0 if none was."""
        random, low, high = np.random.default_rng(self.seed), 0.0, upper
        while high - low > FINEST_IN_PERCENT and self.programs < self.most:
            middle = (low + high) / 2
            reached = max((self._reaches(each) for each in self._found(middle, random)), default=0.0)
            low, high = (max(low, min(reached, upper)), high) if reached >= middle * (1 - 1e-9) else (low, middle)
        return low

    def _found(self, p: float, random: np.random.Generator) -> Iterator[Mask]:
        """The first cheaper pattern for a p."""
        for allowed, start, noise in self._starts(random):
            if self.programs >= self.most:
                return
            made = self._pattern(p, allowed, start, noise)
            if made is not None and float(self.cost[made].sum()) < self.paid * (1 - 1e-9):
                yield made
                return

    def _starts(self, random: np.random.Generator) -> Iterator[tuple[Mask, Mask, Floats]]:
        """What may be withheld, what is at first, and by how much costs are changed."""
        only = np.zeros(len(self.table), np.bool_)
        only[self.primary] = True
        even = np.ones(len(self.table))
        yield self.eligible, only, even
        for cell in np.flatnonzero(self.pattern & ~only)[np.argsort(-self.cost[self.pattern & ~only])].tolist():
            allowed, start = self.eligible.copy(), self.pattern.copy()
            allowed[cell] = start[cell] = False
            yield allowed, start, even
        for _ in range(SCRATCH):
            yield self.eligible, only, random.uniform(1 - SPREAD, 1 + SPREAD, len(even))

    def _pattern(self, p: float, allowed: Mask, start: Mask, noise: Floats) -> Mask | None:
        """Withhold what each sensitive cell needs in turn, then publish again what none of them does."""
        made = start.copy()
        order = np.argsort(-self.value[self.primary] * noise[self.primary])
        for cell in self.primary[order].tolist():
            for sign in (1, -1):
                moved = self._move(p, cell, sign, allowed, np.where(made, 0.0, self.cost * noise))
                if moved is None:
                    return None
                made |= moved
        others = np.setdiff1d(np.flatnonzero(made), self.primary)
        for cell in others[np.argsort(-self.cost[others])].tolist():
            if self._protects(p, made, without=cell):
                made[cell] = False
        return made

    def _move(self, p: float, cell: int, sign: int, allowed: Mask, cost: Floats) -> Mask | None:
        """The cells that move when one moves by p of its value, at least cost; None if it cannot."""
        self.programs += 1
        n, need = len(self.table), p / 100 * self.value[cell]
        if need > (self.upper[cell] - self.value[cell] if sign > 0 else self.value[cell] - self.lower[cell]) + 1e-9:
            return None
        up = np.where(allowed, self.upper - self.value, 0.0)
        down = np.where(allowed, self.value - self.lower, 0.0)
        least, most = np.zeros(2 * n), np.concatenate([up, down])
        own, other = (cell, n + cell) if sign > 0 else (n + cell, cell)
        least[own] = most[own] = need
        most[other] = 0.0
        price = np.concatenate([cost, cost]) / max(float(cost.max(initial=0.0)), 1e-12)
        answer = self._solver.minimise(price, least, most, self._columns)
        if answer is None:
            return None
        return np.asarray(np.abs(answer.point[:n] - answer.point[n:]) > 1e-7 * max(need, 1.0))

    def _protects(self, p: float, made: Mask, *, without: int) -> bool:
        """Whether a pattern without one cell still lets every sensitive cell move by p of its value, either way."""
        allowed, free = made.copy(), np.zeros(len(self.table))
        allowed[without] = False
        return all(
            self._move(p, cell, sign, allowed, free) is not None for cell in self.primary.tolist() for sign in (1, -1)
        )

    def _reaches(self, made: Mask) -> float:
        """Up to which p a pattern protects, exactly, in percent."""
        cells = np.flatnonzero(made)
        system = System.over(self.table, cells, self.lower[cells], self.upper[cells])
        found = exact_intervals(system, np.searchsorted(cells, self.primary))
        own = self.value[self.primary]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(own > 0, np.minimum(own - found.lower, found.upper - own) / own, np.inf)
        return 100 * float(share.min(initial=np.inf))


# Trial protection: with a smaller p, would the office have withheld so much?
#
# A withheld cell that is not sensitive itself is there because without it some sensitive cell would not be protected.
# An intruder publishes each of them in turn, in a table that it thinks possible, and sees up to which p the rest
# would still protect everybody: the office's p is larger than that, or the cell would not have been withheld. Where
# every withheld cell is needed for any protection at all, as in a cycle, that says nothing; then patterns do that
# cost less and protect by a smaller p: an office that spares cost would have taken them. With the p up to which the
# whole pattern protects, this brackets p, and refutes tables for which the bracket is empty.


FINEST = 1e-3
"""Percentage points to which p is found by halving."""
SAME = 1e-9
"""Relative difference below which two costs are the same."""
PROGRAMS = 20_000
"""Linear programs in search of cheaper patterns, for all tables together."""
Cost = Literal["value", "unit"]


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
    cheaper: Floats = field(repr=False)
    """Per table, in percent: a cheaper pattern protects up to this; 0 where none was found."""

    @property
    def bound(self) -> Floats:
        """Per table the better of the two lower ends.

        A cheaper pattern that protects as far as the one in the release shows only that the office does not spare this
        cost, and tells nothing about p.
        """
        return np.maximum(self.lower, np.where(self.cheaper < self.upper, self.cheaper, 0.0))

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
        low, high = int(at[np.argmin(self.bound[at])]), int(at[np.argmax(self.upper[at])])
        own = int(self.lower_cell[low]) if self.bound[low] == self.lower[low] else -1
        cells = [own, int(self.upper_cell[high])]
        lower_cell, upper_cell = (cell if cell >= 0 else None for cell in cells)
        return PRange(float(self.bound[low]), float(self.upper[high]), self.table, lower_cell, upper_cell)


def trial_p(
    release: Release,
    primary: NDArray[Any],
    tables: NDArray[Any] | None = None,
    *,
    cost: Cost | Floats | None = "value",
    most: int = 200,
    seed: int = 0,
) -> Trials:
    """Bracket p by publishing each complementary cell in turn, in tables that the intruder thinks possible.

    `primary` marks the sensitive cells, whose levels are p percent of their value. `tables` holds one table per row,
    one value per cell of the table, additive and in agreement with the release; without any, the true table is tried:
    the strongest intruder there is. At most `most` complementary cells are tried, drawn by `seed`: fewer give a weaker
    lower bound, never a wrong one.

    `cost` is what the office spares (`"value"`, `"unit"`, or a number per cell): then cheaper patterns are looked for
    too that protect by a smaller p. That holds for an office that finds the cheapest pattern, or nearly; of one that
    does not, `trial_p_by_method` tells more. With None the intruder knows only that nothing is withheld in vain.
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
    cheaper = np.zeros(len(candidates))
    if cost is not None:
        for i, row in enumerate(candidates):
            search = _search(release, given, row, costs_for(cost, table, row), PROGRAMS // len(candidates), seed)
            cheaper[i] = 0.0 if search is None else search.largest_p(columns[1][i])
    return Trials(table, columns[0], columns[1], columns[2].astype(np.intp), columns[3].astype(np.intp), cheaper)


def _search(
    release: Release, primary: Mask, values: Integers, cost: Floats, programs: int, seed: int
) -> Cheaper | None:
    """The search for cheaper patterns of one table; none where nothing sensitive is withheld, or not all of it."""
    pattern, unit = release.suppressed, 10.0**release.table.decimals
    if not primary.any() or bool((primary & ~pattern).any()):
        return None
    low = np.where(pattern, snapped(release.lower * unit), np.minimum(values, 0)).astype(np.float64)
    high = np.where(pattern, snapped(release.upper * unit), np.inf)
    table = replace(release.table, integers=values)
    return Cheaper(table, np.flatnonzero(primary), pattern, cost, low, high, programs, seed)


def costs_for(cost: Cost | Floats, table: Table, values: Integers) -> Floats:
    """What withholding each cell costs, in a table with these values."""
    if isinstance(cost, str):
        if cost not in get_args(Cost):
            raise InvalidOption(f"The office spares 'value', 'unit', or a number per cell, got {cost!r}.")
        return np.abs(values).astype(np.float64) if cost == "value" else np.ones(len(table))
    given = np.asarray(cost, dtype=np.float64)
    if given.shape != (len(table),) or not bool((given >= 0).all()):
        raise InvalidOption(f"Costs are {len(table):,} numbers of 0 or more, one per cell.")
    return given


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
            "A candidate table does not add up, or contradicts the release.", hint="candidate_tables makes some."
        )
    return integers


OfficeByP = Callable[[Table, float], Mask]
"""What an office would withhold of a table with a p, in percent. `known_office` makes one."""


def trial_p_by_method(
    release: Release, office: OfficeByP, table: Table, *, cost: Cost | Floats = "value", highest: float = 50.0
) -> PRange:
    """Bracket p by protecting a table on trial with the office's own method, which is known, for one p after another.

    A larger p costs more. The office's p is at least the largest for which the method finds a cheaper pattern than the
    one in the release, and at most the largest for which it finds none that is dearer. `table` is what the intruder
    takes for the truth: the nearer it is, the better the bracket. `cost` is what the office spares: `"value"`,
    `"unit"`, or a number per cell.
    """
    _require_p(office)
    costs = costs_for(cost, table, table.integers)
    paid = float(costs[seen(release).cells].sum())
    prices: dict[float, float] = {}

    def price(p: float) -> float:
        if p not in prices:
            try:
                prices[p] = float(costs[np.asarray(office(table, p))].sum())
            except TablesafeError:  # nothing protects so far
                prices[p] = np.inf
        return prices[p]

    lower = _turn(lambda p: price(p) < paid * (1 - SAME), highest)
    upper = _turn(lambda p: price(p) <= paid * (1 + SAME), highest)
    return PRange(lower[0], upper[1], table)


def _require_p(office: OfficeByP) -> None:
    """An office that knows its p alone cannot be asked what it would do with another."""
    try:
        signature(office).bind(None, 10.0)
    except TypeError as error:
        raise InvalidOption(
            "trial_p_by_method asks an office what it would withhold with one p after another, but this one takes a "
            "table only.",
            hint="give a function of a table and a p in percent, or one of ts.known_office.",
        ) from error
    except ValueError:  # no signature to look at
        return


def _turn(holds: Callable[[float], bool], highest: float) -> tuple[float, float]:
    """Between which two p, `FINEST` apart, something that holds for small ones ceases to hold; by halving."""
    if holds(highest):
        return highest, highest
    low, high = 0.0, highest
    while high - low > FINEST:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
