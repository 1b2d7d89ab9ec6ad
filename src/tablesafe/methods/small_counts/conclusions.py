"""Every table that small-count rounding could have turned into what is published: as one integer program.

Where cells are not shown, what a published count says depends on all the others. The reader knows the limit b and the
method, and nothing of how it chooses between 0 and b. With units u and published counts S, a table t fits when

- each unit is what it was, or was 1 to b − 1 and became 0 or b, and the published counts are the sums of that;
- a unit is changed only with a published count that was small, all of whose units were then 0, changed before (and 0
  for the moment), or add up to less than b;
- every published count that is small in t has all its units changed.

Changes come in rounds: a count becomes small after the first only if a unit of it was changed before. The last of the
rounds told apart stands for all later ones: there a count need only consist of 0s and bs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import SolverFailure
from tablesafe.methods.small_counts.rounding import Places, Rounded
from tablesafe.methods.small_counts.units import Units
from tablesafe.solve.highs import Model
from tablesafe.solve.program import Program
from tablesafe.solve.propagate import propagate

NODES = 2_000
"""Branching stops here; the bound is then valid, but perhaps not reached. A count is the same on every machine."""
ROUNDS = 3
"""Rounds of changes that are told apart; the last stands for all later ones, loosely."""


@dataclass(frozen=True, eq=False)
class Histories:
    """What is published, and of which units; all tables that could have become it."""

    parts: sparse.csr_array = field(repr=False)
    """A row per published count, a column per unit."""
    shown: Integers = field(repr=False)
    known: Mask = field(repr=False)
    """Published counts announced to be the true ones."""
    limit: int
    occupied: bool

    def ends(
        self, whole: sparse.csr_array, touched: sparse.csr_array, outer: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """The least sum of each row of `whole`, and the largest of each row of `touched`, over all the tables.

        `outer` holds bounds that are known to be wide enough. Every table found shows how far all the sums can go, so
        that a bound which some table reaches is not asked for.
        """
        program, found = self._program(), np.zeros((0, self._units))
        ends = []
        for forms, bound, sign in ((whole.toarray(), outer[0], -1.0), (touched.toarray(), outer[1], 1.0)):
            end = bound.copy()
            for cell, form in enumerate(forms):
                reached = (found @ form * sign).max(initial=-np.inf)
                if reached < sign * end[cell]:
                    most, table = _most(program, sign * self._form(form))
                    end[cell] = sign * min(most, sign * end[cell])
                    if table is not None:
                        found = np.vstack([found, self._true(table)])
            ends.append(end)
        return ends[0], ends[1]

    def _true(self, point: Integers) -> Integers:
        """The true counts of the units in a point of the program."""
        n = self._units
        return np.asarray(point[:n] + point[2 * n : (2 + ROUNDS) * n].reshape(ROUNDS, n).sum(axis=0))

    def _form(self, units: Floats) -> Floats:
        """The true count of a set of units, over the program's columns: unchanged parts and changed ones."""
        return np.concatenate([units, np.zeros(len(units)), np.tile(units, ROUNDS), np.zeros(self._others)])

    @property
    def _others(self) -> int:
        return ROUNDS * self._units + (ROUNDS + 1) * len(self.shown)

    @property
    def _units(self) -> int:
        return int(self.parts.shape[1])

    @cached_property
    def _most(self) -> Integers:
        """The most that each unit can be, rounded: the least published count that it is part of."""
        columns = sparse.csc_array(self.parts)
        return np.minimum.reduceat(self.shown[columns.indices], columns.indptr[:-1])

    def _program(self) -> Model:
        """Columns: unchanged part x, up p; per round what changed w, whether c, and for which count s; not small z."""
        n, m, b = self._units, len(self.shown), self.limit
        size, parts = np.asarray(self.parts.sum(axis=1), dtype=np.float64).ravel(), self.parts
        unit, cell = sparse.identity(n, format="csr"), sparse.identity(m, format="csr")
        reason = (self.shown % b == 0) & (self.shown <= b * size)
        rows: list[list[sparse.csr_array | None]] = []
        low: list[Floats] = []
        high: list[Floats] = []
        free, none = np.inf, np.zeros

        def add(blocks: dict[str, sparse.csr_array], least: NDArray[Any], most: NDArray[Any]) -> None:
            rows.append([blocks.get(name) for name in self._columns])
            low.append(least)
            high.append(most)

        every = range(ROUNDS)
        anywhere = sparse.csr_array(np.ones((m, n)))
        changed = {f"c{k}": unit for k in every}
        add({"x": parts, "p": b * parts}, self.shown * 1.0, self.shown * 1.0)
        add(changed, none(n), np.ones(n))
        add({"p": unit} | {f"c{k}": -unit for k in every}, np.full(n, -free), none(n))
        reach = sparse.diags_array(self._most * 1.0, format="csr")
        add({"x": unit} | {f"c{k}": reach for k in every}, np.full(n, -free), self._most * 1.0)
        for k in every:
            add({f"w{k}": unit, f"c{k}": -unit}, none(n), np.full(n, free))
            add({f"w{k}": unit, f"c{k}": (1 - b) * unit}, np.full(n, -free), none(n))
            add({f"s{k}": parts.T.tocsr(), f"c{k}": -unit}, none(n), np.full(n, free))
            if k + 1 < ROUNDS:
                room = sparse.diags_array((b - 1.0) * size, format="csr")
                later = {f"w{j}": parts for j in every if j >= k}
                add({f"s{k}": room} | later, np.full(m, -free), (b - 1.0) * (1 + size))
            if k > 0:
                last = k + 1 == ROUNDS
                before = {f"c{k - 1}": anywhere} if last else {f"c{j}": parts for j in range(k)}
                add({f"s{k}": -cell} | before, none(m), np.full(m, free))
        content = sparse.diags_array(self.shown * 1.0, format="csr")
        add({"x": parts} | {f"s{k}": content for k in every}, np.full(m, -free), self.shown * 1.0)
        add({f"s{k}": cell for k in every}, none(m), reason * 1.0)
        true = {"x": parts} | {f"w{k}": parts for k in every}
        least = np.where(self.known, self.shown, 1 if self.occupied else 0)
        add(true, least * 1.0, np.where(self.known, self.shown, free))
        add(true | {"z": -b * cell}, none(m), np.full(m, free))
        top = sparse.diags_array(self.shown + (b - 1.0) * size, format="csr")
        add({"z": top, "s0": top} | {name: -block for name, block in true.items()}, none(m), np.full(m, free))
        widths = {name: n if name[0] in "xpwc" else m for name in self._columns}
        matrix = sparse.csr_array(sparse.block_array(self._filled(rows, low, widths), format="csr"))
        upper = np.concatenate(
            [self._most, np.ones(n), np.full(ROUNDS * n, b - 1), np.ones(ROUNDS * n + (ROUNDS + 1) * m)]
        )
        zero, whole = np.zeros(len(upper)), np.ones(len(upper), np.bool_)
        program = Program(
            zero, sparse.csr_array(matrix), np.concatenate(low), np.concatenate(high), zero, upper * 1.0, whole
        )
        return Model(program, mip_rel_gap=0.0, mip_abs_gap=0.999, mip_max_nodes=NODES)

    @property
    def _columns(self) -> list[str]:
        return ["x", "p", *(f"{kind}{k}" for kind in "wcs" for k in range(ROUNDS)), "z"]

    def _filled(
        self, rows: list[list[sparse.csr_array | None]], low: list[Floats], widths: dict[str, int]
    ) -> list[list[sparse.csr_array]]:
        """Blocks of zeros where a condition says nothing."""
        return [
            [
                sparse.csr_array((len(side), width)) if block is None else block
                for block, width in zip(row, widths.values(), strict=True)
            ]
            for row, side in zip(rows, low, strict=True)
        ]


# What a reader may conclude about the true counts from a table in which small counts were rounded.
#
# The reader knows the limit b, and the method: a unit of 1 to b − 1 that is part of a small published count became 0 or
# b, every other unit stayed as it is, and published counts are sums of units. So
#
# - a unit that shows 0 is at most b − 1, one that shows b is at least 1, and any other is what it shows; - a unit was
# changed only if some published count with it consists of changed units and zeros, hence is a multiple of b; - the
# rounded counts themselves add up exactly: that bounds those which are not shown.


def _most(model: Model, form: Floats) -> tuple[float, Integers | None]:
    """A number that `form @ x` cannot exceed (form in whole numbers), and the best point found, if any."""
    model.set_costs(np.arange(len(form)), -form)
    solution = model.solve(anytime=True)
    if solution.interrupted:
        raise KeyboardInterrupt
    if not np.isfinite(solution.bound):
        raise SolverFailure("An integer program that must have an answer was given none.")
    return float(np.floor(NOISE - solution.bound)), model.program.whole(solution.point)


FEW = 150
"""Units times cells up to which all tables that could have become a table with cells not shown are gone through."""
MANY = 2_000
"""Cells not shown up to which the bounds on their rounded counts are exact; beyond, only each equation is used."""
NOISE = 1e-6
"""Of a solver's bound, in counts: bounds are rounded outwards by it."""


@dataclass(frozen=True, eq=False)
class Reader:
    """What the public sees: the rounded counts of the published cells, and which of these are known to be true."""

    units: Units = field(repr=False)
    values: Integers = field(repr=False)
    """The rounded counts of all cells; only those of published cells are used."""
    known: Mask = field(repr=False)
    """Cells that are announced to be published as they are."""
    limit: int
    occupied: bool
    """Whether it is known that no published cell is empty, because empty ones are left out."""

    def concludes(self) -> tuple[Floats, Floats]:
        """The least and the most that each cell can be; 0 and infinity where nothing can be concluded."""
        return self._by_counts() if self._all_shown or not self.is_exact else self._by_all_histories()

    @property
    def is_exact(self) -> bool:
        """Whether some table that could have become this one reaches every bound."""
        return self._all_shown or int(self.units.first.sum()) * len(self.values) <= FEW

    @property
    def _all_shown(self) -> bool:
        return bool(self.units.published[self.units.structure.inner].all())

    def _by_all_histories(self) -> tuple[Floats, Floats]:
        """By all the tables that could have become this one."""
        units = self.units
        shown = np.flatnonzero(units.published)
        whole, touched = units.of_cells()
        of_shown = np.asarray(whole[shown].sum(axis=0)).ravel() > 0
        if not of_shown.any():
            return self._by_counts()
        histories = Histories(
            whole[shown][:, of_shown], self.values[shown], self.known[shown], self.limit, self.occupied
        )
        lower, upper = histories.ends(whole[:, of_shown], touched[:, of_shown], self._by_counts())
        anything = np.asarray(touched[:, ~of_shown].sum(axis=1)).ravel() > 0
        return lower + 0.0, np.where(anything, np.inf, upper)  # no negative zero

    def _by_counts(self) -> tuple[Floats, Floats]:
        """By numbers of units: exact where all inner cells are shown, elsewhere perhaps wider than what can be."""
        low, high = self.rounded()
        whole = self.units.whole()
        lower, upper = self._true(low, high, *self._of_units(low, high, whole))
        if self.occupied:
            lower = np.where(self.units.published, np.maximum(lower, 1.0), lower)
        exact = self.units.published & self.known
        lower = np.where(exact, self.values, np.where(whole, lower, 0.0)) + 0.0  # no negative zero
        upper = np.where(exact, self.values, np.where(whole, upper, np.inf))
        if self._all_shown:
            up = self.units.structure.up
            lower, upper = np.maximum(lower, up(lower)), np.minimum(upper, up(upper))
        return lower, upper

    def rounded(self) -> tuple[Floats, Floats]:
        """The least and the most that the rounded count of each cell can be: those shown are what they are."""
        table, hidden = self.units.structure.table, ~self.units.published
        low = np.where(hidden, 0.0, self.values)
        high = np.where(hidden, np.inf, self.values)
        if not hidden.any():
            return low, high
        low, high = propagate(table.equations, low, high)
        unknown = np.flatnonzero(low < high)
        if 0 < len(unknown) <= MANY:
            system = System.over(replace(table, integers=self.values), unknown, low[unknown], high[unknown])
            found = exact_intervals(system)
            low[unknown] = np.maximum(low[unknown], np.ceil(found.lower - NOISE))
            high[unknown] = np.minimum(high[unknown], np.floor(found.upper + NOISE))
        return low, high

    def _of_units(self, low: Floats, high: Floats, whole: Mask) -> tuple[Floats, Floats]:
        """The same for the units, at their representatives: by the cells that are a single unit."""
        first, up = self.units.first, self.units.structure.up
        least, most = np.zeros(len(low)), high.copy()
        single = whole & (up(first.astype(np.int64)) == 1)
        unit = up(np.where(first, np.arange(len(low)), 0))[single]
        np.maximum.at(least, unit, low[single])
        np.minimum.at(most, unit, high[single])
        return least, most

    def _true(self, low: Floats, high: Floats, least: Floats, most: Floats) -> tuple[Floats, Floats]:
        """The bounds on the true counts of cells, from those on the rounded counts of cells and of units."""
        b, first, up = self.limit, self.units.first, self.units.structure.up
        parts = up(first.astype(np.int64))
        changeable = self._changeable(parts, least, most)
        fixed = up(np.where(first, least, 0.0))
        raised = changeable & (least <= b) & (b <= most)
        sure, free = up((raised & (least > 0)).astype(np.int64)), up((raised & (least == 0)).astype(np.int64))
        zeros = up((changeable & (least == 0)).astype(np.int64))

        def lowered(rounded: Floats) -> Floats:
            """The least true count behind a rounded one: as many units as possible went up from 1."""
            ups = sure + np.minimum(free, np.floor((rounded - fixed) / b))
            ups -= (ups == parts) & (rounded != b * parts) & (low == high)
            return np.asarray(rounded - (b - 1) * ups)

        step = fixed + b * np.ceil((low - fixed) / b)
        lower = np.where(step <= high, np.minimum(lowered(low), lowered(step)), lowered(low))
        raisable = np.minimum(sure + free, (low > 0) & (low <= b) & (b <= high))
        lower = np.where(parts == 1, np.where(raisable > 0, 1.0, low), lower)
        upper = high + (b - 1) * (zeros - ((zeros == parts) & (high > 0)))
        return lower, np.where(low == 0, np.maximum(upper, (b - 1) * zeros), upper)

    def _changeable(self, parts: Integers, least: Floats, most: Floats) -> Mask:
        """Units that may have been changed: part of a published count all of whose units can be 0 or the limit."""
        b, structure, first = self.limit, self.units.structure, self.units.first
        able = first & ((least == 0) | ((least <= b) & (b <= most)))
        shown = self.units.published & (self.values % b == 0) & (self.values <= b * parts)
        trigger = shown & (structure.up(able.astype(np.int64)) == parts)
        return first & ~self.known & (structure.down(trigger.astype(np.int64)) > 0)


# What a reader could conclude who knows too much: which units were changed, which way, and why.
#
# In large tables with cells not shown, the bounds that a release states may be wider than what a clever reader can
# conclude. So the audit judges by these instead: they are no wider. Confidential, as they tell what was changed.


def informed(reader: Reader, rounded: Rounded, stated: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The bounds of each cell, inside those stated.

    The rounded table may be the true one. Or the units that went up were 1 each and the others 0, or those changed for
    the same reason had together as much as a small count can have. What is part of a unit may be all of it.
    """
    b, units = reader.limit, reader.units
    whole, structure = units.whole(), units.structure
    single = whole & (structure.up(units.first.astype(np.int64)) == 1)
    own = structure.up(np.where(units.first & rounded.changed, 1, 0)) > 0
    low, high = replace(reader, units=replace(units, published=units.published | (single & own))).rounded()
    unit, start, cell = replace(units, published=whole).members(rounded.changed)
    at = np.repeat(unit, np.diff(start))
    ups, most = _changed(rounded, unit, at, cell, b)
    least, less = _least(units, rounded, ups, b)
    further = np.zeros(len(ups), np.int64)
    np.maximum.at(further, cell, less[at])
    lower = low - b * ups + structure.up(least) - further
    upper = np.maximum(high, high - b * ups + most)
    parted = _parted(units, rounded, b)
    lower, upper = np.where(whole, lower, parted[0]), np.where(whole, upper, parted[1])
    exact = units.published & reader.known
    lower, upper = np.where(exact, reader.values, lower), np.where(exact, reader.values, upper)
    return np.maximum(stated[0], lower), np.minimum(stated[1], upper)


def _least(units: Units, rounded: Rounded, ups: Integers, limit: int) -> tuple[Integers, Integers]:
    """The least of each changed unit: 1 if it went up, else 0; and by how much one of those not so low can go further.

    Where a count that was not small would then have been, its units are what they are, but for one at a time.
    """
    unchanged, true = rounded.values - limit * ups, units.structure.up(rounded.true)
    close = units.published & (unchanged > 0) & (unchanged + ups < limit)
    spare = units.structure.least_above(np.where(close, true - limit, np.iinfo(np.int64).max))
    tied = rounded.changed & (units.structure.down(close.astype(np.int64)) > 0)
    low = np.where(rounded.changed, rounded.up, 0)
    return np.where(tied, rounded.true, low), np.where(tied, np.minimum(rounded.true - low, spare), 0)


def _parted(units: Units, rounded: Rounded, limit: int) -> tuple[Floats, Floats]:
    """Bounds of cells that are not made of whole units: from units that are as they were, or as they became."""
    n, whole = len(rounded.values), units.whole()
    if whole.all():
        return np.zeros(n), np.zeros(n)
    became = np.where(rounded.changed, limit * rounded.up, rounded.true)
    inner, start, cell = replace(units, published=~whole).members(units.structure.inner)
    pair, held = np.unique(cell.astype(np.int64) * n + units.representative[np.repeat(inner, np.diff(start))],
                           return_counts=True)  # fmt: skip
    place, unit = pair // n, pair % n
    size = np.bincount(units.representative[units.structure.inner], minlength=n)
    full = held == size[unit]
    least = np.bincount(place, weights=full * np.minimum(became, rounded.true)[unit], minlength=n)
    most = np.bincount(place, weights=np.maximum(became, rounded.true)[unit], minlength=n)
    return least.astype(np.float64), most.astype(np.float64)


def _changed(rounded: Rounded, unit: Integers, at: Integers, cell: Places, limit: int) -> tuple[Integers, Integers]:
    """Per cell how many of its units went up, and the most that its changed units can have been together.

    `unit` lists the changed units; `at` and `cell` all pairs of such a unit and a cell with it.
    """
    n = len(rounded.values)
    went = rounded.up[at]
    ups = np.bincount(cell, weights=went, minlength=n)
    key, pair = np.unique(cell.astype(np.int64) * n + rounded.reason[at], return_inverse=True)
    inside = np.bincount(pair.ravel(), weights=went, minlength=len(key))
    every = np.bincount(rounded.reason[unit], weights=rounded.up[unit], minlength=n)
    room = limit - 1 - (every[key % n] - inside)
    return ups.astype(np.int64), np.bincount(key // n, weights=room, minlength=n).astype(np.int64)
