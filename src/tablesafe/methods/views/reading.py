"""Cubes and views as the user has them (frames, files, arrays, tables) into dense arrays with codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidTable
from tablesafe.core.table import Table
from tablesafe.files.read import Source, did_you_mean, read_source

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
            f"A view is named by its dimensions, each once; got {view!r}.\n\nHint: ('bank', 'loan'), for example."
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
        dense.arrays[view] = _checked(dense, view, array, missing=bool(np.isnan(empty)))
    return dense


def read_cube(
    source: Any, *, dimensions: Mapping[str, Sequence[str] | None], value: str | None, total: str
) -> tuple[Dense, View]:
    """The cube itself: a frame or file of its cells, an array, or the inner cells of a table."""
    if isinstance(source, Table):
        source, dimensions, value = _leaves(source, dimensions)
    if not dimensions:
        raise InvalidTable(
            "The dimensions of the cube are not named.\n\nHint: dimensions=['bank', 'loan', 'status'], for example."
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
            raise InvalidTable(f"The code of {name!r} is missing at {source.where(row)}.\n\nHint: fill it in.")
        if (text == total).any():
            row = int((text == total).arg_max() or 0)
            raise InvalidTable(
                f"{source.where(row)} is a total ({name}={total}); a view is given by its inner cells.\n\n"
                f"Hint: leave such rows out; totals=True publishes the totals too."
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
            raise InvalidTable(f"{source.where(row)} has code {lost[0]!r}, which {name!r} has not.\n\nHint: {hint}")


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
            f"{source.where(one)} and {source.where(two)} are the same cell.\n\nHint: add the rows up first."
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


def _checked(dense: Dense, view: View, array: Floats, *, missing: bool) -> Floats:
    """Views add up parts that cannot be negative: so neither can they."""
    bad = np.argwhere((~(array >= 0) & ~(missing & np.isnan(array))) | np.isinf(array))
    if bad.size:
        where = ", ".join(f"{name}={dense.codes[name][i]}" for name, i in zip(view, bad[0].tolist(), strict=True))
        raise InvalidTable(
            f"Cell ({where}) of view {words(view)} is {array[tuple(bad[0])]:g}, but must be a number of 0 or more."
            "\n\nHint: split gains and losses into two tables."
        )
    return array
