"""The columns that are blanked: as codes, or as amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask, to_integers
from tablesafe.methods.microdata.records import Microdata

BINS = 10
"""Classes of amounts whose shares are kept."""


@dataclass(frozen=True, eq=False)
class Variable:
    """One column to be blanked. Its values are numbers: those of its codes, or the amounts themselves."""

    name: str
    values: Floats = field(repr=False)
    codes: pl.Series | None = field(default=None, repr=False)
    """The codes by number; None for amounts."""
    edges: Floats | None = field(default=None, repr=False)
    """Where amounts are cut into classes: between their deciles."""
    decimals: int = 0

    @classmethod
    def of(cls, microdata: Microdata, column: str, *, amount: bool) -> Variable:
        """A column of the records; missing entries are a code of their own."""
        if amount:
            values = microdata.numbers(column)
            _, decimals, _ = to_integers(values)
            there = values[~microdata.missing([column])]
            edges = np.unique(np.quantile(there, np.arange(1, BINS) / BINS)) if len(there) else np.zeros(0)
            return cls(column, values, None, edges, decimals)
        text = microdata.text(column).fill_null("")
        codes = text.unique().sort()
        return cls(column, text.cast(pl.Enum(codes)).to_physical().to_numpy().astype(np.float64), codes)

    def classes(self, values: Floats) -> Integers:
        """The class that each value counts in: its code, or its tenth of the amounts."""
        if self.edges is None:
            return values.astype(np.int64)
        return np.searchsorted(self.edges, values, side="left").astype(np.int64)

    @property
    def names(self) -> list[str]:
        """What the classes are called."""
        if self.codes is not None:
            return [str(code) for code in self.codes.to_list()]
        assert self.edges is not None
        if not self.edges.size:
            return ["all"]
        inner = [f"over {low:g} to {high:g}" for low, high in zip(self.edges[:-1], self.edges[1:], strict=True)]
        return [f"up to {self.edges[0]:g}", *inner, f"over {self.edges[-1]:g}"]

    def written(self, frame: pl.DataFrame, rows: NDArray[np.intp], values: Floats) -> pl.Series:
        """The column with other values in some rows, of the type that it had."""
        column = frame[self.name]
        if self.codes is None:
            new = pl.Series(np.round(values, self.decimals), dtype=pl.Float64)
            whole = self.decimals == 0 and (column.dtype.is_integer() or column.dtype == pl.String)
            new = new.cast(pl.Int64) if whole else new
        else:  # a record that has the code says how it is written
            example = np.zeros(len(self.codes), dtype=np.int64)
            example[self.values.astype(np.int64)[::-1]] = np.arange(len(column))[::-1]
            return _replaced(column, rows, column.gather(example[values.astype(np.int64)]))
        return _replaced(column, rows, new.cast(column.dtype))


def _replaced(column: pl.Series, rows: NDArray[np.intp], new: pl.Series) -> pl.Series:
    at = np.full(len(column), -1, dtype=np.int64)
    at[rows] = np.arange(len(rows))
    both = pl.concat([column, new])
    return both.gather(np.where(at >= 0, len(column) + at, np.arange(len(column))))


def variables(microdata: Microdata, columns: Sequence[str], amounts: Sequence[str]) -> tuple[Variable, ...]:
    """The columns to blank. Amounts are those named so, the table's own values, and numbers with a decimal point.

    The columns of a CSV file are text: there "10.5" may be a code, as those of industries are.
    """
    plan = None if microdata.origin is None else microdata.origin.plan
    known = {*amounts, *(() if plan is None else plan.numbers)}
    schema = microdata.frame.schema
    return tuple(
        Variable.of(microdata, column, amount=column in known or schema[column].is_float()) for column in columns
    )


def without_amount(microdata: Microdata, found: Sequence[Variable]) -> Mask:
    """The records that have no entry in one of the amounts: there is nothing to blank, nor to give."""
    return microdata.missing([variable.name for variable in found if variable.codes is None])
