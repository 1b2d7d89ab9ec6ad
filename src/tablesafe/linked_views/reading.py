"""Cubes and views as the user has them (frames, files, arrays, tables) into dense arrays with codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidTable, Setting, SolverFailure
from tablesafe.core.table import Table
from tablesafe.files.read import Source, did_you_mean, read_source
from tablesafe.solve.highs import whole_point
from tablesafe.solve.program import SolveStatus
from tablesafe.work.budget import Budget

View = tuple[str, ...]
"""The dimensions that a view shows; it adds up over all others."""


@dataclass(frozen=True, eq=False)
class Dense:
    """Arrays over the codes of named dimensions: one per view, or one for the whole cube."""

    codes: dict[str, list[str]]
    arrays: dict[View, Floats] = field(repr=False)

    def sizes(self, view: Sequence[str]) -> tuple[int, ...]:
        """The number of codes of each dimension of a view."""
        return tuple(len(self.codes[name]) for name in view)


def named(view: Any) -> View:
    """A view as a tuple of names; a single name is a view of one dimension."""
    names = (view,) if isinstance(view, str) else tuple(view)
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InvalidTable(
            f"A view is named by its dimensions, each once; got {view!r}.", hint="('bank', 'loan'), for example."
        )
    return names


def words(view: Sequence[str]) -> str:
    """A view as people call it."""
    return repr(" × ".join(view)) if view else "the grand total"


def read_views(
    sources: Mapping[Any, Any],
    *,
    dimensions: Mapping[str, Sequence[str] | None],
    value: str | None,
    total: str,
    empty: float = 0.0,
) -> Dense:
    """Every view as an array; codes in the order in which they are given or first appear.

    Cells of a frame that have no row are `empty`; where that is NaN, arrays may hold NaN too.
    """
    given = {named(view): source for view, source in sources.items()}
    codes: dict[str, list[str]] = {name: list(map(str, known)) for name, known in dimensions.items() if known}
    reads: dict[View, Source] = {}
    for view, source in given.items():
        if _is_array(source):
            _codes_of_array(view, np.asarray(source), codes)
        else:
            reads[view] = read_source(source, name=f"view {words(view)}")
            _codes_of_frame(view, reads[view], codes, dimensions, total)
    dense = Dense(codes, {})
    for view, source in given.items():
        if view in reads:
            array = _spread(dense, view, reads[view], _value_column(reads[view], view, value), empty)
        else:
            array = _array(view, source)
        told = words(view) if view not in reads else f"{words(view)} ({reads[view].name})"
        dense.arrays[view] = _checked(dense, view, array, told, missing=bool(np.isnan(empty)))
    return dense


def read_cube(
    source: Any, *, dimensions: Mapping[str, Sequence[str] | None], value: str | None, total: str
) -> tuple[Dense, View]:
    """The cube itself: a frame or file of its cells, an array, or the inner cells of a table."""
    if isinstance(source, Table):
        source, dimensions, value = _leaves(source, dimensions)
    if not dimensions:
        raise InvalidTable(
            "The dimensions of the cube are not named.", hint="dimensions=['bank', 'loan', 'status'], for example."
        )
    view = tuple(dimensions)
    return read_views({view: source}, dimensions=dimensions, value=value, total=total), view


def _leaves(
    table: Table, dimensions: Mapping[str, Sequence[str] | None]
) -> tuple[pl.DataFrame, dict[str, Sequence[str] | None], str]:
    """The inner cells of a table, as a frame."""
    if table.names is not None:
        raise InvalidTable("A table with named cells has no dimensions, so it is no cube.")
    inner = np.ones(len(table), dtype=np.bool_)
    for d, hierarchy in enumerate(table.dimensions.values()):
        inner &= ~hierarchy.is_total[table.codes[:, d]]
    columns = {name: series.filter(pl.Series(inner)) for name, series in table.code_columns().items()}
    names = list(dimensions) or list(columns)
    lost = [name for name in names if name not in columns]
    if lost:
        raise InvalidTable(f"The table has no dimension {lost[0]!r}; it has {', '.join(map(repr, columns))}.")
    column = next(name for name in ("value", "value of the cell") if name not in columns)
    frame = pl.DataFrame({**columns, column: table.value[inner]})
    frame = frame.group_by(names, maintain_order=True).agg(pl.col(column).sum())
    return frame, {name: list(table.dimensions[name].leaves) for name in names}, column


def _is_array(source: Any) -> bool:
    return isinstance(source, np.ndarray | list | tuple)


def _codes_of_array(view: View, array: Floats, codes: dict[str, list[str]]) -> None:
    if array.ndim != len(view):
        raise InvalidTable(f"View {words(view)} has {len(view)} dimensions, but its array is of shape {array.shape}.")
    for name, size in zip(view, array.shape, strict=True):
        have = codes.setdefault(name, [str(i + 1) for i in range(size)])
        if len(have) != size:
            raise InvalidTable(
                f"Dimension {name!r} has {len(have)} codes, but the array of view {words(view)} has {size} along it."
            )


def _codes_of_frame(
    view: View,
    source: Source,
    codes: dict[str, list[str]],
    dimensions: Mapping[str, Sequence[str] | None],
    total: str,
) -> None:
    for name in view:
        text = source.text(name)
        if text.null_count():
            row = int(text.is_null().arg_max() or 0)
            raise InvalidTable(f"The code of {name!r} is missing at {source.where(row)}.", hint="fill it in.")
        if (text == total).any():
            row = int((text == total).arg_max() or 0)
            raise InvalidTable(
                f"{source.where(row)} is a total ({name}={total}); a view is given by its inner cells.",
                hint=(
                    "leave such rows out; ",
                    Setting("totals", True),
                    " publishes the totals too.",
                ),
            )
        found = text.unique(maintain_order=True).to_list()
        fixed = dimensions.get(name)
        if not fixed:
            codes[name] = list(dict.fromkeys([*codes.get(name, []), *found]))
            continue
        lost = [code for code in found if code not in set(map(str, fixed))]
        if lost:
            row = int((text == lost[0]).arg_max() or 0)
            hint = did_you_mean(lost[0], list(map(str, fixed))) or f"add it to the codes of {name!r}."
            raise InvalidTable(f"{source.where(row)} has code {lost[0]!r}, which {name!r} has not.", hint=hint)


def _value_column(source: Source, view: View, value: str | None) -> str:
    if value is not None:
        return value
    others = [column for column in source.frame.columns if column not in view]
    if "value" in others or len(others) != 1:
        return "value"
    return others[0]


def _spread(dense: Dense, view: View, source: Source, value: str, empty: float) -> Floats:
    """The cells of a frame at their places; those without a row are empty."""
    numbers = source.numbers(value)
    sizes = dense.sizes(view)
    at = np.ravel_multi_index(tuple(_places(source.text(name), dense.codes[name]) for name in view), sizes)
    order = np.argsort(at, kind="stable")
    again = np.flatnonzero(at[order][1:] == at[order][:-1])
    if again.size:
        one, two = sorted((int(order[again[0]]), int(order[again[0] + 1])))
        raise InvalidTable(
            f"{source.where(one)} and {source.where(two)} are the same cell.", hint="add the rows up first."
        )
    array = np.full(int(np.prod(sizes)), empty)
    array[at] = numbers
    return array.reshape(sizes)


def _places(text: pl.Series, codes: list[str]) -> Any:
    known = pl.DataFrame({"code": pl.Series(codes, dtype=pl.String), "place": np.arange(len(codes))})
    return text.to_frame("code").join(known, on="code", how="left", maintain_order="left")["place"].to_numpy()


def _array(view: View, source: Any) -> Floats:
    try:
        return np.asarray(source, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTable(f"The array of view {words(view)} holds something that is no number.") from error


def _checked(dense: Dense, view: View, array: Floats, told: str, *, missing: bool) -> Floats:
    """Views add up parts that cannot be negative: so neither can they."""
    bad = np.argwhere((~(array >= 0) & ~(missing & np.isnan(array))) | np.isinf(array))
    if bad.size:
        where = ", ".join(f"{name}={dense.codes[name][i]}" for name, i in zip(view, bad[0].tolist(), strict=True))
        raise InvalidTable(
            f"Cell ({where}) of view {told} is {array[tuple(bad[0])]:g}, but must be a number of 0 or more.",
            hint="split gains and losses into two tables.",
        )
    return array


# Do views of one cube agree, and what cube could they come from?


Margins = Mapping[View, Integers]


def refuse_contradictions(margins: Margins, codes: Mapping[str, Sequence[str]], decimals: int) -> None:
    """Two views must have the same sums over the dimensions that they share."""
    for (one, first), (two, second) in combinations(margins.items(), 2):
        shared = [name for name in one if name in two]
        left, right = added_up(first, one, shared), added_up(second, two, shared)
        bad = np.argwhere(left != right)
        if bad.size:
            at = tuple(bad[0].tolist())
            where = ", ".join(f"{name}={codes[name][i]}" for name, i in zip(shared, at, strict=True))
            sums = [f"{int(x[at]) / 10**decimals:,.{decimals}f}" for x in (left, right)]
            more = f" ({len(bad) - 1:,} more such sums differ.)" if len(bad) > 1 else ""
            raise InvalidTable(
                f"The views {words(one)} and {words(two)} contradict each other: {f'for {where} ' if where else ''}"
                f"the first adds up to {sums[0]}, the second to {sums[1]}.{more}",
                hint="were both made from the same records? Correct one of them.",
            )


def added_up(array: NDArray[np.int64], view: Sequence[str], keep: Sequence[str]) -> Integers:
    """The sums over all dimensions but some, in the order of these."""
    left = [name for name in view if name in keep]
    sums = array.sum(axis=tuple(d for d, name in enumerate(view) if name not in keep))
    return np.asarray(np.transpose(sums, [left.index(name) for name in keep]), dtype=np.int64)


def consistent_cube(
    margins: Margins, sizes: Mapping[str, int], *, more: Margins, limit: int, time_limit_s: float
) -> Integers:
    """Some cube of whole numbers that has all these margins, in the order of `sizes`.

    Views of which each new one meets the earlier ones inside one of them are joined slice by slice, in closed form.
    Others, and further margins `more` as long as the cube has at most `limit` cells, need an integer program.
    """
    joined = _joined(margins, sizes)
    cells = int(np.prod(list(sizes.values())))
    fits = joined is not None and all(
        np.array_equal(added_up(joined, tuple(sizes), view), array) for view, array in more.items()
    )
    if joined is not None and (fits or cells > limit):
        return joined
    matrix, right = margin_sums({**margins, **more}, sizes)
    status, found = whole_point(matrix, right, np.full(matrix.shape[1], np.inf), budget=Budget(time_limit_s))
    if found is not None:
        return found.reshape(tuple(sizes.values()))
    if status is SolveStatus.INFEASIBLE:
        raise InvalidTable(
            "The views contradict each other: no table without negative values has all of them as margins, though any "
            "two of them agree.",
            hint="were they made from the same records?",
        )
    if joined is None:
        raise SolverFailure(
            "No whole table that agrees with all views was found in time.",
            hint="give the cube itself instead of its views.",
        )
    return joined


def margin_sums(margins: Margins, sizes: Mapping[str, int]) -> tuple[sparse.csr_array, Integers]:
    """One row per margin cell over the cells of the cube, and what the rows add up to."""
    shape = tuple(sizes.values())
    cells = np.arange(int(np.prod(shape)))
    blocks, right = [], []
    for view, array in margins.items():
        row = places_in(view, sizes)
        blocks.append(sparse.csr_array((np.ones(len(cells)), (row, cells)), shape=(array.size, len(cells))))
        right.append(array.ravel())
    return sparse.csr_array(sparse.vstack(blocks, format="csr")), np.concatenate(right)


def places_in(view: Sequence[str], sizes: Mapping[str, int]) -> Integers:
    """For each cell of the cube its place among the cells of a view."""
    place = np.zeros((1,) * len(sizes), dtype=np.int64)
    names = list(sizes)
    for name in view:
        d = names.index(name)
        own = np.arange(sizes[name]).reshape([-1 if e == d else 1 for e in range(len(names))])
        place = place * sizes[name] + own
    return np.broadcast_to(place, tuple(sizes.values())).ravel()


def _joined(margins: Margins, sizes: Mapping[str, int]) -> Integers | None:
    """The views joined one after another; None when some view meets several others at once."""
    rest = dict(margins)
    first = next(iter(rest))
    have, cube = first, rest.pop(first)
    used = [set(first)]
    while rest:
        ready = [v for v in rest if any(set(v) & set(have) <= earlier for earlier in used)]
        if not ready:
            return None
        view = ready[0]
        cube, have = _join(cube, have, rest.pop(view), view)
        used.append(set(view))
    for name in sizes:
        if name not in have:  # nobody says how it is split: all in the first code
            cube = np.concatenate([cube[..., None], np.zeros((*cube.shape, sizes[name] - 1), np.int64)], axis=-1)
            have = (*have, name)
    return added_up(cube, have, tuple(sizes))


def _join(one: Integers, first: View, two: Integers, second: View) -> tuple[Integers, View]:
    """A table over the dimensions of both, with both as margins.

    In every slice of the shared codes the parts of either side are laid end to end along the same total; how much two
    parts overlap is what their common cell gets.
    """
    shared = tuple(name for name in first if name in second)
    rows = tuple(name for name in first if name not in second)
    columns = tuple(name for name in second if name not in first)
    size = {**dict(zip(first, one.shape, strict=True)), **dict(zip(second, two.shape, strict=True))}
    slices = int(np.prod([size[name] for name in shared], dtype=np.int64))
    a = np.cumsum(added_up(one, first, (*shared, *rows)).reshape(slices, -1), axis=1)
    b = np.cumsum(added_up(two, second, (*shared, *columns)).reshape(slices, -1), axis=1)
    before_a, before_b = (np.concatenate([np.zeros((slices, 1), np.int64), x[:, :-1]], axis=1) for x in (a, b))
    overlap = np.minimum(a[:, :, None], b[:, None, :]) - np.maximum(before_a[:, :, None], before_b[:, None, :])
    order = (*shared, *rows, *columns)
    return np.maximum(overlap, 0).reshape([size[name] for name in order]), order
