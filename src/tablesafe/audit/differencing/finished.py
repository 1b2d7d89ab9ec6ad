"""Differencing without records: finished tables and releases, with what is known about how their codes overlap.

Finished tables as one system: parts that nobody publishes, and every published cell a sum of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from tablesafe.audit.differencing.disclosures import Differences, Disclosure, Kind
from tablesafe.audit.differencing.overlap import Overlap, hashes, overlap_of
from tablesafe.audit.differencing.subtractions import Contributing, Subtractions, subtractions
from tablesafe.audit.differencing.sums import EXPLAIN_S, Sums, new_sets
from tablesafe.audit.integers import integer_intervals
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System, snapped
from tablesafe.core.equations import Floats, Integers, Mask, rescaled
from tablesafe.core.errors import InvalidOption, InvalidTable, OutOfTime
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Rule, Sensitivity
from tablesafe.core.table import Table
from tablesafe.solve.highs import whole_point
from tablesafe.solve.program import SolveStatus
from tablesafe.tabulate.origin import Origin
from tablesafe.work.budget import Budget

SECONDS = 60.0
"""Time for a first table of parts that agrees with all that is published."""


@dataclass(frozen=True, eq=False)
class Linked:
    """The system over parts and cells, numbered in this order, and the interval of each of its unknown numbers."""

    system: System = field(repr=False)
    parts: Integers = field(repr=False)
    """Parts that agree with all that is published. They need not be the true ones."""
    intervals: tuple[Floats, Floats] = field(repr=False)

    @property
    def at(self) -> Integers:
        """The number of each part and cell in the system's table."""
        return np.arange(len(self.system.table))

    @classmethod
    def of(cls, members: sparse.csr_array, lower: Floats, upper: Floats, decimals: int, *, whole: bool) -> Linked:
        """Build the system from the bounds of all cells, in units; with `whole`, attackers know that values are."""
        start = _some_parts(members, lower, upper)
        cells, parts = members.shape
        matrix = sparse.csr_array(sparse.hstack([members, -sparse.eye_array(cells, dtype=np.int8)])).astype(np.int8)
        values = np.concatenate([start, np.asarray(members.astype(np.int64) @ start)])
        names = [*(f"part {i}" for i in range(parts)), *(f"set {i}" for i in range(cells))]
        table = Table(
            values, decimals, matrix, np.arange(parts, parts + cells), names=np.array(names, dtype=object),
            codes=np.zeros((len(values), 0), np.int32),
        )  # fmt: skip
        open_cells = np.flatnonzero(lower < upper)
        unknown = np.concatenate([np.arange(parts), parts + open_cells])
        system = System.over(
            table, unknown, np.concatenate([np.zeros(parts), np.maximum(lower[open_cells], 0.0)]),
            np.concatenate([np.full(parts, np.inf), upper[open_cells]]),
        )  # fmt: skip
        found = exact_intervals(system)
        intervals = (found.lower, found.upper)
        if whole:
            sharper = integer_intervals(system, start=intervals, time_limit_s=SECONDS)
            intervals = (sharper.lower, sharper.upper)
        return cls(system, start, intervals)


def _some_parts(members: sparse.csr_array, lower: Floats, upper: Floats) -> Integers:
    """Whole parts that agree with everything published; any will do, as intervals do not depend on it."""
    cells, parts = members.shape
    open_cells = np.flatnonzero(lower < upper)
    slack = sparse.csr_array(
        (-np.ones(len(open_cells), np.int8), (open_cells, np.arange(len(open_cells)))), shape=(cells, len(open_cells))
    )
    floor = np.maximum(np.where(np.isfinite(lower), np.ceil(lower), 0.0), 0.0)
    most = np.concatenate([np.full(parts, np.inf), np.floor(upper[open_cells]) - floor[open_cells]])
    matrix = sparse.csr_array(sparse.hstack([members, slack]))
    status, answer = whole_point(matrix, floor.astype(np.int64), most, budget=Budget(SECONDS))
    if status is SolveStatus.INFEASIBLE:
        raise InvalidTable(
            "The tables contradict each other: no units can be counted as all of them say.",
            hint="were they made from the same records, and does the correspondence hold?",
        )
    if answer is None:
        raise OutOfTime(f"No units that all tables count as they do were found in {SECONDS:g} s.")
    return answer[:parts]


# -- without records ---------------------------------------------------------------------------------------------------


def from_tables(
    source: Mapping[str, Table | Release],
    rules: Sequence[Rule],
    dimensions: Mapping[str, Hierarchy],
    correspondence: Mapping[str, Any],
    integers: bool | None,
) -> Differences:
    """Put finished tables into one system of equations over the parts that they tell apart, and judge what follows."""
    if len(source) < 2:
        raise InvalidOption("Differencing takes at least two tables.", hint="{'districts': table, 'squares': other}")
    shown = _Shown.of(source, integers)
    _require_counting(rules, shown)
    if not dimensions and not correspondence:
        _refuse_filters(shown.tables)
    overlap = overlap_of(shown.tables, dimensions, correspondence)
    _refuse_unequal(overlap, shown)
    given = subtractions(overlap, shown.exact)
    _refuse_contradiction(given, overlap, shown)
    linked = Linked.of(overlap.members, shown.lower, shown.upper, shown.decimals, whole=shown.whole)
    judge = _Judge(overlap, shown, rules, linked, Contributing.of(overlap, shown.count, additive=shown.counts))
    found = judge.differences(given)
    known = sparse.csr_array(sparse.vstack([given.sets, overlap.members[shown.exact]]))
    found += judge.bounded(known)
    sums = Sums.of(linked.system, overlap, linked.at, known, linked.intervals)
    found += judge.sums(sums)
    found += judge.published()
    searched = (
        f"{overlap.members.shape[0]:,} cells of {len(source)} tables are sums of {overlap.members.shape[1]:,} parts; "
        f"{len(given):,} differences were judged, the interval of every part and withheld cell, and {sums.words}. "
        "Respondents were not looked at: the tables do not tell who contributes."
    )
    return Differences(tuple(found), overlap, searched)


@dataclass(frozen=True, eq=False)
class _Shown:
    """What is published: per cell, over all tables, the bounds of its value in units, and how many contribute."""

    tables: dict[str, Table]
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    decimals: int
    count: Integers = field(repr=False)
    counts: bool
    """Whether the values are the counts."""
    whole: bool
    """Whether attackers know that they are whole numbers."""

    @classmethod
    def of(cls, source: Mapping[str, Table | Release], integers: bool | None) -> _Shown:
        tables = {name: each.table if isinstance(each, Release) else each for name, each in source.items()}
        _refuse_strange(tables)
        decimals = max(table.decimals for table in tables.values())
        unit = 10.0**decimals
        sides = []
        for side in ("lower", "upper"):
            arrays = [
                getattr(each.as_judged, side) if isinstance(each, Release) else each.value for each in source.values()
            ]
            sides.append(snapped(np.concatenate(arrays) * unit))
        own = [table.count for table in tables.values()]
        count = None if any(each is None for each in own) else np.concatenate([c for c in own if c is not None])
        values = np.concatenate([rescaled(table.integers, decimals - table.decimals) for table in tables.values()])
        counts = decimals == 0 and (bool((count == values).all()) if count is not None else bool(integers))
        if count is None and not counts:
            raise InvalidTable(
                "The tables do not say how many contributors each cell has.",
                hint="if their values are counts, pass integers=True; otherwise give the column with count=.",
            )
        count = values if count is None else count
        if counts and integers is not False:
            told = [
                isinstance(each, Release) and each.tells_what_is_zero and each.suppressed & (each.table.integers > 0)
                for each in source.values()
            ]
            some = [np.broadcast_to(each, len(table)) for each, table in zip(told, tables.values(), strict=True)]
            sides[0] = np.where(np.concatenate(some), np.maximum(sides[0], 1.0), sides[0])
        return cls(tables, sides[0], sides[1], decimals, count, counts, counts and integers is not False, values)

    true: Integers = field(repr=False)
    """The value of each cell in units, published or not: the office knows it."""

    @property
    def exact(self) -> Mask:
        """Which cells are published exactly."""
        return np.asarray(self.lower == self.upper)


def _require_counting(rules: Sequence[Rule], shown: _Shown) -> None:
    try:
        _found(rules, np.ones(1, np.int64), np.ones(1, np.int64), shown)
    except InvalidTable as error:
        raise InvalidOption(
            "Without records nobody knows who the contributors of a difference are, so rules can only count them: "
            + str(error).partition("\n")[0],
            hint="use ts.Threshold, or give the records and tables=[ts.Published(...), ...].",
        ) from error


def _refuse_strange(tables: Mapping[str, Table]) -> None:
    for name, table in tables.items():
        if not table.dimensions:
            raise InvalidTable(
                f"Table {name!r} has named cells instead of dimensions, so nothing says how it overlaps."
            )
        if bool((table.integers < 0).any()):
            cell = int(np.flatnonzero(table.integers < 0)[0])
            raise InvalidTable(
                f"Cell {table.describe(cell)} of {name!r} is negative: differencing is for counts and sums."
            )
    responses = {table.response for table in tables.values()}
    if len(responses) > 1:
        one, other = sorted(responses)[:2]
        raise InvalidTable(
            f"The tables are of different responses, {one!r} and {other!r}, which cannot be subtracted.",
            hint="read them with the same response=.",
        )


def _refuse_filters(tables: Mapping[str, Table]) -> None:
    """Equal codes stand for equal units only where the tables count the same records."""
    filters = {name: table.origin.plan.where for name, table in tables.items() if isinstance(table.origin, Origin)}
    for (first, one), (name, other) in pairwise(filters.items()):
        if str(other) != str(one):
            raise InvalidTable(
                f"Tables {first!r} and {name!r} count different records ({one or 'all'}; {other or 'all'}), but use "
                f"the same codes.",
                hint="give the records, and tables=[ts.Published(...), ...]; or say how the "
                "codes overlap (dimensions=, correspondence=).",
            )


def _refuse_unequal(overlap: Overlap, shown: _Shown) -> None:
    """Cells of the same units have the same value."""
    cells = np.flatnonzero(shown.exact)
    _, first, same = np.unique(hashes(overlap.members[cells]), axis=0, return_index=True, return_inverse=True)
    other = cells[first[same.ravel()]]
    bad = np.flatnonzero(shown.lower[cells] != shown.lower[other])
    if bad.size:
        one, two = overlap.describe(int(other[bad[0]])), overlap.describe(int(cells[bad[0]]))
        raise InvalidTable(
            f"The tables contradict each other: {one} and {two} count the same units, but their values differ.",
            hint="were they made from the same records, and does the correspondence hold?",
        )


def _refuse_contradiction(given: Subtractions, overlap: Overlap, shown: _Shown) -> None:
    value = given.terms.astype(np.int64) @ np.where(shown.exact, shown.lower, 0.0).astype(np.int64)
    bad = np.flatnonzero(value < 0)
    if bad.size:
        raise InvalidTable(
            f"The tables contradict each other: {given.text(int(bad[0]), overlap)} is negative.",
            hint="were they made from the same records, and does the correspondence hold?",
        )


def _found(rules: Sequence[Rule], value: Integers, count: Integers, shown: _Shown) -> Sensitivity:
    """What the rules say about values that are known."""
    table = Table(
        value, shown.decimals, sparse.csr_array((0, len(value)), dtype=np.int8), np.zeros(0, np.int64),
        names=np.array([f"difference {i + 1}" for i in range(len(value))], dtype=object),
        codes=np.zeros((len(value), 0), np.int32), count=count,
    )  # fmt: skip
    return reduce(lambda one, other: one | other, [rule(table) for rule in rules], Sensitivity.none(len(value)))


@dataclass(frozen=True, eq=False)
class _Judge:
    """The rules, applied to sets of parts of which at best the number of contributors is known."""

    overlap: Overlap
    shown: _Shown
    rules: Sequence[Rule]
    linked: Linked
    people: Contributing

    def differences(self, given: Subtractions) -> list[Disclosure]:
        """Differences of published cells."""
        cells = [given.terms.indices[given.terms.indptr[i] : given.terms.indptr[i + 1]] for i in range(len(given))]
        names = [tuple(self.overlap.names[j] for j in np.unique(self.overlap.owner[each])) for each in cells]
        return self._known(Kind.DIFFERENCE, given, given.terms, lambda i: (given.text(i, self.overlap), names[i]))

    def sums(self, sums: Sums) -> list[Disclosure]:
        """Sums of parts that several equations give away."""
        deadline = perf_counter() + EXPLAIN_S
        return self._known(
            Kind.SUM, sums.given, None,
            lambda i: (sums.because(sums.given, i, self.overlap, deadline), self.overlap.names),
        )  # fmt: skip

    def _known(
        self,
        kind: Kind,
        given: Subtractions,
        terms: sparse.csr_array | None,
        told: Callable[[int], tuple[str, tuple[str, ...]]],
    ) -> list[Disclosure]:
        """Sets whose value is known exactly."""
        value = np.asarray(given.sets.astype(np.int64) @ self.linked.parts)
        fewest, most = self.people.bounds(given.sets, value, terms)
        possible, certain = (_found(self.rules, value, count, self.shown) for count in (fewest, most))
        out = []
        for i in np.flatnonzero(possible.mask | certain.mask).tolist():
            amount, (because, names) = float(value[i]) / 10.0**self.shown.decimals, told(i)
            sure = bool(certain.mask[i])
            out.append(
                Disclosure(
                    kind, given.what(i, self.overlap), because, amount, amount, int(fewest[i]),
                    (certain if sure else possible).why(i), names, given.parts(i), sure,
                )
            )  # fmt: skip
        return out

    def bounded(self, known: sparse.csr_array) -> list[Disclosure]:
        """Parts and withheld cells whose interval, from all equations together, is too narrow."""
        parts, (lower, upper) = self.overlap.members.shape[1], self.linked.intervals
        which = self.linked.system.cells
        every = sparse.csr_array(sparse.vstack([sparse.eye_array(parts, dtype=np.int8), self.overlap.members]))
        sets = sparse.csr_array(every[which])
        value = self.linked.system.truth.copy()
        value[which >= parts] = self.shown.true[which[which >= parts] - parts]
        open_, certain, fewest, why = self._too_narrow(sets, value, lower, upper)
        some = np.flatnonzero(open_)
        some = some[new_sets(sets[some], known)]
        unit = 10.0**self.shown.decimals
        return [
            Disclosure(
                Kind.PART, self._name(int(which[i])), "all equations together", float(lower[i]) / unit,
                float(upper[i]) / unit, int(fewest[i]) if lower[i] == upper[i] or not self.shown.counts else None,
                why(i), self.overlap.names, tuple(sets.indices[sets.indptr[i] : sets.indptr[i + 1]].tolist()),
                bool(certain[i]),
            )
            for i in some.tolist()
        ]  # fmt: skip

    def _name(self, number: int) -> str:
        parts = self.overlap.members.shape[1]
        return self.overlap.part(number) if number < parts else self.overlap.describe(number - parts)

    def _too_narrow(
        self, sets: sparse.csr_array, value: Integers, lower: Floats, upper: Floats
    ) -> tuple[Mask, Mask, Integers, Callable[[int], tuple[str, ...]]]:
        """Which intervals are; whether for certain; the fewest contributors; and the rules that say so."""
        if self.shown.counts:  # sensitive from end to end
            finite = np.where(np.isfinite(upper), np.floor(upper), 0.0).astype(np.int64)
            least = np.ceil(lower).astype(np.int64)
            ends = [_found(self.rules, end, end, self.shown) for end in (least, finite)]
            both = ends[0].mask & ends[1].mask & np.isfinite(upper)
            return both, both, least, ends[1].why
        fewest, most = self.people.bounds(sets, value)
        judged = [_found(self.rules, value, count, self.shown) for count in (fewest, most)]
        narrow = []
        for each in judged:
            unit = 10.0**self.shown.decimals
            down, up, wide = each.lower * unit, each.upper * unit, each.sliding * unit
            fails = (upper - lower < np.maximum(wide, down + up)) | (lower > value - down) | (upper < value + up)
            point = upper - lower <= 1e-9 * np.maximum(1.0, np.abs(lower))
            narrow.append(each.mask & (point | fails))
        return narrow[0] | narrow[1], narrow[1], fewest, judged[0].why

    def published(self) -> list[Disclosure]:
        """Published cells that fail a rule themselves."""
        value = np.where(self.shown.exact, self.shown.lower, 0.0)
        judged = _found(self.rules, value.astype(np.int64), self.shown.count, self.shown)
        out, members = [], self.overlap.members
        for i in np.flatnonzero(judged.mask & self.shown.exact).tolist():
            amount, own = float(value[i]) / 10.0**self.shown.decimals, (self.overlap.names[int(self.overlap.owner[i])],)
            parts = tuple(members.indices[members.indptr[i] : members.indptr[i + 1]].tolist())
            out.append(
                Disclosure(
                    Kind.PUBLISHED, self.overlap.describe(i), "it is published", amount, amount,
                    int(self.shown.count[i]), judged.why(i), own, parts,
                )
            )  # fmt: skip
        return out
