"""Differencing without records: finished tables and releases, with what is known about how their codes overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from tablesafe.audit.differencing_codes import overlap_of
from tablesafe.audit.disclosures import Differences, Disclosure, Kind
from tablesafe.audit.integers import integer_intervals
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.overlap import Overlap, hashes
from tablesafe.audit.subtracting import Subtractions, subtractions
from tablesafe.audit.system import System, snapped
from tablesafe.equations import Floats, Integers, Mask
from tablesafe.errors import InvalidOption, InvalidTable
from tablesafe.hierarchy import Hierarchy
from tablesafe.release import Release
from tablesafe.rules.sensitivity import Rule, Sensitivity
from tablesafe.solve.agreeing import whole_answer
from tablesafe.table import Table
from tablesafe.tabulate.origin import Origin

SECONDS = 60.0
"""Time for a first table of parts that agrees with all that is published."""


def from_tables(
    source: Mapping[str, Table | Release],
    rules: Sequence[Rule],
    dimensions: Mapping[str, Hierarchy],
    correspondence: Mapping[str, Any],
    integers: bool | None,
) -> Differences:
    """Put finished tables into one system of equations over the parts that they tell apart, and judge what follows."""
    if len(source) < 2:
        raise InvalidOption("Differencing takes at least two tables.\n\nHint: {'districts': table, 'squares': other}")
    shown = _Shown.of(source, integers)
    _require_counting(rules, shown)
    if not dimensions and not correspondence:
        _refuse_filters(shown.tables)
    overlap = overlap_of(shown.tables, dimensions, correspondence)
    _refuse_unequal(overlap, shown)
    given = subtractions(overlap, shown.exact)
    found = _judged(given, overlap, shown, rules)
    if shown.counts:
        found += _parts(overlap, shown, rules, given)
    found += _published(overlap, shown, rules)
    searched = (
        f"{overlap.members.shape[0]:,} cells of {len(source)} tables are sums of {overlap.members.shape[1]:,} parts; "
        f"{len(given):,} differences were judged"
        + (", and the interval of every part." if shown.counts else "; parts were not, as the values are no counts.")
    )
    return Differences(tuple(found), overlap, searched)


@dataclass(frozen=True, eq=False)
class _Shown:
    """What is published: per cell, over all tables, the bounds of its value in units, and how many contribute."""

    tables: dict[str, Table]
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    decimals: int
    count: Integers | None = field(repr=False)
    counts: bool
    """Whether the values are the counts."""

    @classmethod
    def of(cls, source: Mapping[str, Table | Release], integers: bool | None) -> _Shown:
        tables = {name: each.table if isinstance(each, Release) else each for name, each in source.items()}
        _refuse_strange(tables)
        decimals = max(table.decimals for table in tables.values())
        unit = 10.0**decimals
        sides = []
        for side in ("lower", "upper"):
            arrays = [getattr(each, side) if isinstance(each, Release) else each.value for each in source.values()]
            sides.append(snapped(np.concatenate(arrays) * unit))
        own = [table.count for table in tables.values()]
        count = None if any(each is None for each in own) else np.concatenate([c for c in own if c is not None])
        values = np.concatenate([table.integers for table in tables.values()])
        counts = decimals == 0 and (bool((count == values).all()) if count is not None else bool(integers))
        if count is None and not counts:
            raise InvalidTable(
                "The tables do not say how many contributors each cell has.\n\n"
                "Hint: if their values are counts, pass integers=True; otherwise give the column with count=."
            )
        if counts and count is None:
            count = values
        return cls(tables, sides[0], sides[1], decimals, count, counts and integers is not False)

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
            + str(error).partition("\n")[0]
            + "\n\nHint: use ts.Threshold, or give the records and tables=[ts.Published(...), ...]."
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
            f"The tables are of different responses, {one!r} and {other!r}, which cannot be subtracted.\n\n"
            f"Hint: read them with the same response=."
        )


def _refuse_filters(tables: Mapping[str, Table]) -> None:
    """Equal codes stand for equal units only where the tables count the same records."""
    filters = {name: table.origin.plan.where for name, table in tables.items() if isinstance(table.origin, Origin)}
    for (first, one), (name, other) in pairwise(filters.items()):
        if str(other) != str(one):
            raise InvalidTable(
                f"Tables {first!r} and {name!r} count different records ({one or 'all'}; {other or 'all'}), but use "
                f"the same codes.\n\nHint: give the records, and tables=[ts.Published(...), ...]; or say how the "
                f"codes overlap (dimensions=, correspondence=)."
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
            f"The tables contradict each other: {one} and {two} count the same units, but their values differ.\n\n"
            f"Hint: were they made from the same records, and does the correspondence hold?"
        )


def _judged(given: Subtractions, overlap: Overlap, shown: _Shown, rules: Sequence[Rule]) -> list[Disclosure]:
    """Differences of published cells, by their values and counts."""
    assert shown.count is not None
    terms = given.terms.astype(np.int64)
    value = np.asarray(terms @ np.where(shown.exact, shown.lower, 0.0).astype(np.int64))
    count = np.asarray(terms @ shown.count)
    _refuse_contradiction(given, overlap, value)
    judged = _found(rules, value, np.maximum(count, 0), shown)
    out = []
    for i in np.flatnonzero(judged.mask).tolist():
        cells = given.terms.indices[given.terms.indptr[i] : given.terms.indptr[i + 1]]
        names = tuple(overlap.names[j] for j in np.unique(overlap.owner[cells]))
        amount = float(value[i]) / 10.0**shown.decimals
        out.append(
            Disclosure(
                Kind.DIFFERENCE, given.what(i, overlap), given.text(i, overlap), amount, amount, int(count[i]),
                judged.why(i), names, given.parts(i),
            )
        )  # fmt: skip
    return out


def _published(overlap: Overlap, shown: _Shown, rules: Sequence[Rule]) -> list[Disclosure]:
    """Published cells that fail a rule themselves."""
    assert shown.count is not None
    value = np.where(shown.exact, shown.lower, 0.0)
    judged = _found(rules, value.astype(np.int64), shown.count, shown)
    out = []
    for i in np.flatnonzero(judged.mask & shown.exact).tolist():
        amount, own = float(value[i]) / 10.0**shown.decimals, (overlap.names[int(overlap.owner[i])],)
        parts = tuple(overlap.members.indices[overlap.members.indptr[i] : overlap.members.indptr[i + 1]].tolist())
        name, why = overlap.describe(i), judged.why(i)
        out.append(
            Disclosure(Kind.PUBLISHED, name, "it is published", amount, amount, int(shown.count[i]), why, own, parts)
        )
    return out


def _refuse_contradiction(given: Subtractions, overlap: Overlap, value: Integers) -> None:
    bad = np.flatnonzero(value < 0)
    if bad.size:
        raise InvalidTable(
            f"The tables contradict each other: {given.text(int(bad[0]), overlap)} is negative.\n\n"
            f"Hint: were they made from the same records, and does the correspondence hold?"
        )


def _found(rules: Sequence[Rule], value: Integers, count: Integers, shown: _Shown) -> Sensitivity:
    """What the rules say about values that are known."""
    table = Table(
        value, shown.decimals, sparse.csr_array((0, len(value)), dtype=np.int8), np.zeros(0, np.int64),
        names=np.array([f"difference {i + 1}" for i in range(len(value))], dtype=object),
        codes=np.zeros((len(value), 0), np.int32), count=count,
    )  # fmt: skip
    return reduce(lambda one, other: one | other, [rule(table) for rule in rules], Sensitivity.none(len(value)))


def _parts(overlap: Overlap, shown: _Shown, rules: Sequence[Rule], given: Subtractions) -> list[Disclosure]:
    """Parts whose interval, from all equations together, is sensitive from end to end."""
    lower, upper = part_intervals(overlap.members, shown.lower, shown.upper)
    finite = np.where(np.isfinite(upper), upper, 0.0).astype(np.int64)
    ends = [_found(rules, end, end, shown) for end in (lower.astype(np.int64), finite)]
    open_ = ends[0].mask & ends[1].mask & np.isfinite(upper)
    alone = np.flatnonzero(np.diff(given.sets.indptr) == 1)
    known = set(given.sets.indices[given.sets.indptr[alone]].tolist())
    single = np.flatnonzero(shown.exact & (overlap.size == 1))
    known |= set(overlap.members.indices[overlap.members.indptr[single]].tolist())
    return [
        Disclosure(
            Kind.PART, overlap.part(i), "all equations together", float(lower[i]), float(upper[i]),
            int(lower[i]) if lower[i] == upper[i] else None, ends[1].why(i), overlap.names, (i,),
        )
        for i in np.flatnonzero(open_).tolist()
        if i not in known
    ]  # fmt: skip


def part_intervals(members: sparse.csr_array, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The least and the most that each part can count, given the bounds of all published cells."""
    start = _some_parts(members, lower, upper)
    cells, parts = members.shape
    matrix = sparse.csr_array(sparse.hstack([members, -sparse.eye_array(cells, dtype=np.int8)])).astype(np.int8)
    values = np.concatenate([start, np.asarray(members.astype(np.int64) @ start)])
    table = Table.from_equations(matrix, values.astype(np.float64), totals=np.arange(parts, parts + cells))
    open_cells = np.flatnonzero(lower < upper)
    unknown = np.concatenate([np.arange(parts), parts + open_cells])
    system = System.over(
        table, unknown, np.concatenate([np.zeros(parts), np.maximum(lower[open_cells], 0.0)]),
        np.concatenate([np.full(parts, np.inf), upper[open_cells]]),
    )  # fmt: skip
    wanted = np.arange(parts)
    found = exact_intervals(system, wanted)
    whole = integer_intervals(system, wanted, start=(found.lower, found.upper), time_limit_s=SECONDS)
    return whole.lower, whole.upper


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
    answer = whole_answer(matrix, floor.astype(np.int64), most, SECONDS)
    if answer is None:
        raise InvalidTable(
            "The tables contradict each other: no units can be counted as all of them say.\n\n"
            "Hint: were they made from the same records, and does the correspondence hold?"
        )
    return answer[:parts]
