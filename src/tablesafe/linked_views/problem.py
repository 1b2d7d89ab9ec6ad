"""The problem of linked views: margins of a cube are published, others are confidential, the cube never appears."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, to_integers
from tablesafe.core.errors import InvalidOption, InvalidProblem, InvalidTable
from tablesafe.core.hierarchy import TOTAL, Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.linked_views.reading import (
    View,
    added_up,
    consistent_cube,
    named,
    places_in,
    read_cube,
    read_views,
    refuse_contradictions,
    words,
)

FITTED = 4_000
"""Cells of a cube up to which one is sought that has the confidential values too, when only views are given."""
FIT_S = 10.0
"""Seconds for that search."""
REASON = "confidential view"


@dataclass(frozen=True, eq=False)
class _Cube:
    """A cube of whole numbers, and the values of confidential views that the user gave or that it implies."""

    codes: Mapping[str, Sequence[str]]
    cells: Integers = field(repr=False)
    decimals: int
    confidential: Mapping[View, Floats] = field(repr=False)

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(self.codes, self.cells.shape, strict=True))

    def margin(self, view: Sequence[str]) -> Integers:
        return added_up(self.cells, tuple(self.codes), view)


def views(
    source: Any,
    *,
    confidential: Any,
    published: Sequence[Any] | None = None,
    dimensions: Mapping[str, Sequence[str] | None] | Sequence[str] = (),
    value: str | None = None,
    percent: float = 20.0,
    tolerable: Mapping[Any, Any] | None = None,
    totals: bool = False,
    total: str = TOTAL,
    response: str = "value",
) -> Problem:
    """State the problem of a confidential margin that nobody publishes, but that published margins may give away.

    `source` is the cube (a frame or file with one row per cell, an array, a table), with `published` naming the views
    that appear, such as `[("bank", "loan"), ("loan", "status")]`; or a mapping from such names to the published views
    themselves, when there is no cube. `confidential` names the views that must not become known; without a cube it may
    map them to their values.

    An attacker may learn that a confidential value c lies between 0 and (1 + percent/100) · c, but no more; or between
    the bounds in `tolerable`, which maps a view to a pair of arrays or to a frame with columns `lower` and `upper`.
    With `totals` every total of the published views is published too, and stays so.

    Without a cube the table holds some cube that agrees with all views; what an attacker can derive does not depend on
    which. If none is found in time that has the confidential values too, or the cube has more than 4,000 cells, the
    values that were given only set the bounds.
    """
    if not 0 <= percent < np.inf:
        raise InvalidOption(f"'percent' must be 0 or more, got {percent!r}.")
    known = dict(dimensions) if isinstance(dimensions, Mapping) else dict.fromkeys(dimensions)
    secret = _named_all(confidential, "confidential")
    if isinstance(source, Mapping) and not any(isinstance(key, str) and key in known for key in source):
        if published is not None:
            raise InvalidOption("The views given are those that are published: leave 'published' out.")
        shown = _named_all(source, "published")
        values = {named(v): x for v, x in confidential.items()} if isinstance(confidential, Mapping) else {}
        cube = _from_views(source, values, known, value, total, [*shown, *secret])
    else:
        if published is None:
            raise InvalidOption("'published' must name the views that appear: published=[('bank', 'loan'), …].")
        shown = _named_all(published, "published")
        cube = _from_cube(source, known, value, total, shown, secret)
    _refuse_overlap(shown, secret, cube)
    bounds = {view: _tolerable(cube, view, tolerable or {}, percent, total) for view in secret}
    return _problem(cube, shown, bounds, totals=totals, total=total, response=response)


def _named_all(given: Any, what: str) -> list[View]:
    if isinstance(given, str) or (isinstance(given, tuple) and given and all(isinstance(x, str) for x in given)):
        given = [given]
    listed = [named(view) for view in given]
    if not listed:
        raise InvalidOption(f"'{what}' names no view.", hint=f"{what}=[('bank', 'status')], for example.")
    if len({frozenset(view) for view in listed}) < len(listed):
        raise InvalidOption(f"'{what}' names the same view twice.")
    return listed


def _refuse_overlap(shown: Sequence[View], secret: Sequence[View], cube: _Cube) -> None:
    for view in secret:
        if set(view) in [set(other) for other in shown]:
            raise InvalidProblem(f"View {words(view)} is both published and confidential.")
    for view in (*shown, *secret):
        if set(view) == set(cube.codes):
            raise InvalidProblem(
                f"View {words(view)} has all the dimensions, so it is the cube itself, and no margin of it.",
                hint="a table that is published whole is protected by Suppress.",
            )
    for name, size in cube.sizes.items():
        if size < 2:
            raise InvalidTable(
                f"Dimension {name!r} has only the code {cube.codes[name][0]!r}, so a view with it is the same as one "
                "without.",
                hint="leave the dimension out.",
            )


def _from_cube(
    source: Any,
    known: Mapping[str, Sequence[str] | None],
    value: str | None,
    total: str,
    shown: Sequence[View],
    secret: Sequence[View],
) -> _Cube:
    dense, whole = read_cube(source, dimensions=known, value=value, total=total)
    used = {name for view in (*shown, *secret) for name in view}
    lost = sorted(used - set(whole))
    if lost:
        raise InvalidTable(f"The cube has no dimension {lost[0]!r}; it has {', '.join(map(repr, whole))}.")
    keep = tuple(name for name in whole if name in used)
    integers, decimals = _whole_numbers([dense.arrays[whole]])
    cells = added_up(integers[0], whole, keep)
    unit = 10.0**decimals
    return _Cube(
        {name: dense.codes[name] for name in keep},
        cells,
        decimals,
        {view: added_up(cells, keep, view) / unit for view in secret},
    )


def _from_views(
    source: Mapping[Any, Any],
    values: Mapping[View, Any],
    known: Mapping[str, Sequence[str] | None],
    value: str | None,
    total: str,
    views: Sequence[View],
) -> _Cube:
    dense = read_views({**source, **values}, dimensions=known, value=value, total=total)
    names = list(dict.fromkeys(name for view in views for name in view))
    lost = [name for name in names if name not in dense.codes]
    if lost:
        raise InvalidTable(
            f"The codes of {lost[0]!r} are not known: no view that is given has them.",
            hint=f"dimensions={{{lost[0]!r}: [codes]}}, or give the values of the confidential view.",
        )
    arrays, decimals = _whole_numbers(list(dense.arrays.values()))
    margins = dict(zip(dense.arrays, arrays, strict=True))
    refuse_contradictions(margins, dense.codes, decimals)
    sizes = {name: len(dense.codes[name]) for name in names}
    more = {view: margins.pop(view) for view in values}
    cells = consistent_cube(margins, sizes, more=more, limit=FITTED, time_limit_s=FIT_S)
    return _Cube(
        {name: dense.codes[name] for name in names}, cells, decimals, {view: dense.arrays[view] for view in values}
    )


def _whole_numbers(arrays: Sequence[Floats]) -> tuple[list[Integers], int]:
    integers, decimals, exact = to_integers(np.concatenate([array.ravel() for array in arrays]))
    if not exact:
        raise InvalidTable("The values have too many decimals to be added exactly.", hint="round them first.")
    cuts = np.cumsum([array.size for array in arrays])[:-1]
    parts = np.split(integers, cuts)
    return [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)], decimals


def _tolerable(
    cube: _Cube, view: View, tolerable: Mapping[Any, Any], percent: float, total: str
) -> tuple[Floats, Floats]:
    """What an attacker may learn about each cell of a confidential view; NaN where nothing is asked."""
    wished = {frozenset(named(key)): bounds for key, bounds in tolerable.items()}
    if frozenset(view) not in wished:
        if view not in cube.confidential:
            raise InvalidProblem(
                f"Confidential view {words(view)} has neither values nor tolerable bounds.",
                hint="confidential={view: values}, or tolerable={view: (lower, upper)}.",
            )
        values = cube.confidential[view]
        return np.zeros(values.shape), np.round((1 + percent / 100) * values, 9)
    bounds = wished[frozenset(view)]
    pair = isinstance(bounds, tuple | list) and len(bounds) == 2
    low, high = (
        read_views({view: part}, dimensions=cube.codes, value=column, total=total, empty=np.nan).arrays[view]
        for part, column in zip(bounds if pair else (bounds, bounds), ("lower", "upper"), strict=True)
    )
    bad = np.argwhere(low > high)
    if bad.size:
        where = ", ".join(f"{name}={cube.codes[name][i]}" for name, i in zip(view, bad[0].tolist(), strict=True))
        raise InvalidProblem(
            f"The tolerable bounds of ({where}) in view {words(view)} are {low[tuple(bad[0])]:g} and "
            f"{high[tuple(bad[0])]:g}: the lower is above the upper."
        )
    return low, high


def _totals(shown: Sequence[View], secret: Sequence[View]) -> list[View]:
    """Every margin of the published views that is no view itself."""
    taken = {frozenset(view) for view in (*shown, *secret)}
    found: dict[frozenset[str], View] = {}
    for view in shown:
        for size in range(len(view)):
            for part in combinations(view, size):
                if frozenset(part) not in taken:
                    found.setdefault(frozenset(part), part)
    return list(found.values())


def _problem(
    cube: _Cube, shown: Sequence[View], bounds: Mapping[View, tuple[Floats, Floats]], *, totals: bool, total: str,
    response: str,
) -> Problem:  # fmt: skip
    """Cells in this order: the published views, their totals, the confidential views, the cube."""
    sums = _totals(shown, list(bounds)) if totals else []
    everything = tuple(cube.codes)
    blocks = [*shown, *sums, *bounds, everything]
    counts = [_size(cube, view) for view in blocks]
    first = dict(zip(blocks, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
    integers = np.concatenate([cube.margin(view).ravel() for view in blocks])
    dimensions = {
        name: Hierarchy.flat(codes, total=total, name=f"dimension {name!r}") for name, codes in cube.codes.items()
    }
    equations, whole = _equations(cube, shown, sums, list(bounds), first, len(integers))
    table = Table(
        integers, cube.decimals, equations, whole, dimensions,
        np.concatenate([_codes(cube, view, dimensions, total) for view in blocks]), response=response,
    )  # fmt: skip
    kind = np.repeat(np.arange(len(blocks)), counts)
    levels = [_levels(cube, view, low, high) for view, (low, high) in bounds.items()]
    lower, upper = np.zeros(len(integers)), np.zeros(len(integers))
    secret = slice(first[next(iter(bounds))], first[everything])
    lower[secret], upper[secret] = np.concatenate([x for x, _ in levels]), np.concatenate([y for _, y in levels])
    sensitivity = Sensitivity.of((lower > 0) | (upper > 0), lower, upper, reason=REASON)
    return Problem(
        table,
        sensitivity=sensitivity,
        frozen=(kind >= len(shown)) & (kind < len(shown) + len(sums)),
        withheld=kind >= len(shown) + len(sums),
    )


def _size(cube: _Cube, view: Sequence[str]) -> int:
    return int(np.prod([cube.sizes[name] for name in view], dtype=np.int64))


def _levels(cube: _Cube, view: View, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """How far each cell must be able to fall and rise; seen from the table's own value, whatever that is."""
    value = cube.margin(view) / 10.0**cube.decimals
    asked = ~(np.isnan(low) | np.isnan(high))
    down: Floats = np.where(asked, np.maximum(value - low, 0.0), 0.0)
    up: Floats = np.where(asked, np.maximum(high - value, 0.0), 0.0)
    return np.asarray(np.round(down, 9).ravel(), np.float64), np.asarray(np.round(up, 9).ravel(), np.float64)


def _codes(cube: _Cube, view: Sequence[str], dimensions: Mapping[str, Hierarchy], total: str) -> Any:
    """The positions of the codes of a view's cells in every dimension."""
    positions = {
        name: np.array([dimensions[name].position(code) for code in codes], dtype=np.int32)
        for name, codes in cube.codes.items()
    }
    grid = np.meshgrid(*(positions[name] for name in view), indexing="ij") if view else []
    n = _size(cube, view)
    own = {name: axis.ravel() for name, axis in zip(view, grid, strict=True)}
    columns = [own.get(name, np.full(n, dimensions[name].position(total), np.int32)) for name in cube.codes]
    return np.column_stack(columns).astype(np.int32)


def _equations(
    cube: _Cube, shown: Sequence[View], sums: Sequence[View], secret: Sequence[View], first: Mapping[View, int], n: int
) -> tuple[sparse.csr_array, Integers]:
    """Every view adds up the cube; every total adds up the smallest view that has it."""
    rows, columns, totals, begin = [], [], [], 0
    for view in (*shown, *sums, *secret):
        holders = [v for v in shown if set(view) < set(v)] if view in sums else []
        of = (
            min(holders, key=lambda v: int(np.prod([cube.sizes[name] for name in v]))) if holders else tuple(cube.codes)
        )
        row = places_in(view, {name: cube.sizes[name] for name in of})
        count = _size(cube, view)
        rows += [begin + np.arange(count), begin + row]
        columns += [first[view] + np.arange(count), first[of] + np.arange(len(row))]
        totals.append(first[view] + np.arange(count))
        begin += count
    data = np.concatenate([np.full(len(r), 1 if at % 2 else -1, np.int8) for at, r in enumerate(rows)])
    matrix = sparse.csr_array((data, (np.concatenate(rows), np.concatenate(columns))), shape=(begin, n), dtype=np.int8)
    return matrix, np.concatenate(totals)
