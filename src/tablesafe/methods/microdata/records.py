"""The records behind a table, with the columns that an option names; any frame of records will do as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, cell_keys
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.files.read import Source, did_you_mean, read_source
from tablesafe.methods.microdata.numbering import dense
from tablesafe.tabulate.origin import Origin
from tablesafe.tabulate.plan import DROP, ERROR

Data: TypeAlias = Any
"""What records are taken from: a problem or a table that was tabulated from them, or the records themselves (a polars,
pandas or Arrow frame, a CSV or Parquet file)."""


@dataclass(frozen=True, eq=False)
class Microdata:
    """Records, and the table that they were tabulated into, if any."""

    frame: pl.DataFrame = field(repr=False)
    table: Table | None = field(default=None, repr=False)

    @classmethod
    def of(cls, data: Data, method: str) -> Self:
        """The records of a problem, a table or a frame; a table that was read as cells has none."""
        if not isinstance(data, Problem | Table):
            return cls(read_source(data).frame)
        table = data.table if isinstance(data, Problem) else data
        return cls(origin_of(table, method).records(), table)

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def origin(self) -> Origin | None:
        """How the table was made."""
        return None if self.table is None else made_from(self.table)

    @cached_property
    def _source(self) -> Source:
        return Source(self.frame, "the records")

    def column(self, name: str, option: str) -> str:
        """The column that an option names: by its own name, or by that of the dimension it stands for."""
        if name in self.frame.columns:
            if self.frame.schema[name].is_nested():
                raise InvalidOption(f"{option} names {name!r}, which holds lists or structures: codes are needed.")
            return name
        named = {} if self.origin is None else self.origin.plan.column_of
        if name in named:
            return named[name]
        near = did_you_mean(name, [*self.frame.columns, *named]) or f"there are {', '.join(self.frame.columns)}."
        raise InvalidOption(f"{option} names {name!r}, which is no column of the records.\n\nHint: {near}")

    def columns(self, names: Sequence[str], option: str) -> tuple[str, ...]:
        """The columns that an option names, each once."""
        return tuple(dict.fromkeys(self.column(name, option) for name in names))

    def text(self, column: str) -> pl.Series:
        """A column as codes; blank entries, and texts that stand for nothing, are missing."""
        text = self._source.text(column)
        marks = ["", *(() if self.origin is None else self.origin.plan.empty)]
        return text.set(text.is_in(marks), None)

    def numbers(self, column: str) -> Floats:
        """A column as numbers; missing ones count 0, as in a tabulation."""
        marks = () if self.origin is None else self.origin.plan.empty
        series = self.frame[column]
        if marks and series.dtype == pl.String:
            series = series.set(series.str.strip_chars().is_in(list(marks)), None)
        return Source(series.to_frame(column), "the records").numbers(column, missing=0.0)

    def missing(self, columns: Sequence[str]) -> NDArray[np.bool_]:
        """The records without an entry in one of the columns."""
        out = np.zeros(len(self), dtype=np.bool_)
        for column in columns:
            out |= self.text(column).is_null().to_numpy()
        return out

    def classes(self, columns: Sequence[str]) -> Integers:
        """A number per record, equal where the columns are; numbered by the codes, whatever the order of the records.

        Missing entries are equal to each other.
        """
        codes = [self._codes(column) for column in columns]
        if not codes:
            return np.zeros(len(self), dtype=np.int64)
        sizes = [int(code.max(initial=0)) + 1 for code in codes]
        keys = cell_keys(np.column_stack(codes), sizes)
        return dense(keys)

    def _codes(self, column: str) -> NDArray[np.int32]:
        text = self.text(column).fill_null("")
        kinds = pl.Enum(text.unique().sort())
        return text.cast(kinds).to_physical().to_numpy().astype(np.int32)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The records in an order that depends on what they say alone: equal ones may stand for each other.

        Draws go by this order, so that the order of the source changes nothing.
        """
        plain = [name for name, kind in self.frame.schema.items() if not kind.is_nested() and kind != pl.Object]
        return self.frame.select(pl.arg_sort_by(plain, nulls_last=True)).to_series().to_numpy().astype(np.intp)

    @cached_property
    def rank(self) -> Integers:
        """The place of each record in that order."""
        out = np.empty(len(self), dtype=np.int64)
        out[self.order] = np.arange(len(self))
        return out

    def draw(self, random: np.random.Generator) -> Floats:
        """A random number per record."""
        out = np.empty(len(self))
        out[self.order] = random.random(len(self))
        return out

    def positions(self, dimension: str) -> NDArray[np.int32]:
        """The code of each record in a dimension of the table; −1 where the record is left out for want of one."""
        assert self.table is not None
        assert self.origin is not None
        plan = self.origin.plan
        text = self._source.text(plan.column_of[dimension], strip=False)
        text = text.set(self.text(plan.column_of[dimension]).is_null(), None)
        word = plan.missing[dimension]
        if word not in {ERROR, DROP}:
            text = text.fill_null(word)
        return self.table.dimensions[dimension].positions(text)


def made_from(table: Table) -> Origin | None:
    """How a table was tabulated, if it was."""
    return table.origin if isinstance(table.origin, Origin) else None


def origin_of(table: Table, method: str) -> Origin:
    """How a table was tabulated; refuses one that was not."""
    origin = made_from(table)
    if origin is None:
        raise InvalidOption(
            f"{method} changes records, but this table was read as cells, or linked from several: it has no records."
            f"\n\nHint: tabulate it from microdata (ts.tabulate, with margins= for linked tables)."
        )
    return origin
