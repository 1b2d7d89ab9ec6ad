"""Frames of the user's own library: which one it is, our frames in it, and crosstabs as it makes them.

Inside everything is polars. What came from pandas or Arrow goes back there when it is asked for, codes as ordered
categories, so that sorting and grouping keep the order of the hierarchy instead of the alphabet's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from tablesafe.core.errors import InvalidOption, InvalidTable, MissingExtra

Library = Literal["polars", "pandas", "pyarrow"]


def library_of(source: Any) -> Library:
    """The library that a frame is of; polars for files and for everything else."""
    root = type(source).__module__.partition(".")[0]
    return next((name for name in get_args(Library) if name == root), "polars")


def require_arrow(what: str) -> None:
    """Ask for the library of Arrow by its extra where it is needed."""
    if find_spec("pyarrow") is None:
        raise MissingExtra(what, "arrow")


def to_library(frame: pl.DataFrame, library: Library, orders: Mapping[str, Sequence[str]]) -> Any:
    """The frame in a library; `orders` has the codes of its columns in the order of their hierarchies."""
    ordered = frame.with_columns(
        pl.col(name).cast(pl.Enum(list(codes))) for name, codes in orders.items() if name in frame.columns
    )
    if library == "polars":
        return ordered
    if library == "pyarrow":
        require_arrow("A frame of Arrow")
        return ordered.to_arrow()
    try:
        import pandas as pd
    except ImportError as error:
        raise InvalidOption("pandas is not installed.", hint="install it, or take frame(), which is polars.") from error
    kinds = {
        name: pd.CategoricalDtype(list(codes), ordered=True) for name, codes in orders.items() if name in frame.columns
    }
    return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns}).astype(kinds)


def long_form(
    frame: Any, *, rows: Sequence[str], columns: Sequence[str], value: str
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A crosstab as one row per cell, and its dimensions: those of its rows, then those of its columns.

    In pandas the index holds the codes of the rows, and labels the codes of the columns, both with their names; several
    dimensions are several levels. Elsewhere the columns named by `rows` hold the codes of the rows, and what the other
    columns are called are codes of the one dimension in `columns`.
    """
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        frame, labels, rows, columns = _of_pandas(frame, tuple(rows), tuple(columns))
    else:
        frame = frame.collect() if isinstance(frame, pl.LazyFrame) else pl.DataFrame(frame)
        if not rows or len(columns) != 1:
            raise InvalidOption(
                "A crosstab needs the columns that hold the codes of its rows, and one name for those across its top.",
                hint='rows="region", columns="sector".',
            )
        if missing := [name for name in rows if name not in frame.columns]:
            raise InvalidTable(f"The crosstab has no column {missing[0]!r}.", about=("column", missing[0]))
        labels = [(name,) for name in frame.columns if name not in rows]
    _require_dimensions(rows, columns, value)
    numbers = [name for name in frame.columns if name not in rows]
    height = frame.height
    data: dict[str, Any] = {name: pl.concat([frame[name].cast(pl.String)] * len(labels)) for name in rows}
    for level, name in enumerate(columns):
        data[name] = pl.Series(np.repeat([str(label[level]) for label in labels], height), dtype=pl.String)
    data[value] = pl.concat([frame[name].cast(pl.Float64) for name in numbers])
    return pl.DataFrame(data).drop_nulls(value), (*rows, *columns)


def _of_pandas(
    frame: Any, rows: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[pl.DataFrame, list[tuple[Any, ...]], tuple[str, ...], tuple[str, ...]]:
    """The same with plain columns: codes of rows by name, then a column per label."""
    if not rows:
        rows = tuple(str(name) for name in frame.index.names if name is not None)
        if len(rows) != frame.index.nlevels:
            raise InvalidOption("The index of the crosstab has no name.", hint='name it: rows="region".')
    elif not set(rows) <= set(frame.columns):  # the index has these codes, under another name or none
        if len(rows) != frame.index.nlevels:
            raise InvalidOption(f"rows names {len(rows)} dimensions, but the index has {frame.index.nlevels} levels.")
        frame = frame.set_axis(frame.index.set_names(list(rows)))
    if set(rows) <= set(frame.columns):
        frame = frame.set_index(list(rows))
    columns = columns or tuple(str(name) for name in frame.columns.names if name is not None)
    if len(columns) != frame.columns.nlevels:
        raise InvalidOption(
            f"The labels of the crosstab have {frame.columns.nlevels} levels, and {len(columns)} names.",
            hint='say which dimensions they are: columns="sector".',
        )
    labels = [label if isinstance(label, tuple) else (label,) for label in frame.columns]
    data: dict[str, Any] = {
        name: pl.Series([str(code) for code in frame.index.get_level_values(level)], dtype=pl.String)
        for level, name in enumerate(rows)
    }
    data |= {f"\0{at}": frame.iloc[:, at].to_numpy(dtype=np.float64) for at in range(len(labels))}
    return pl.DataFrame(data, nan_to_null=True), labels, rows, columns


def _require_dimensions(rows: Sequence[str], columns: Sequence[str], value: str) -> None:
    names = [*rows, *columns, value]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidOption(f"{twice[0]!r} is named twice among rows, columns and value.", hint="use another name.")
