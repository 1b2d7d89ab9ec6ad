"""What a method made of the records: the changed ones, and what changed. Confidential."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask, cell_keys
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.files.read import Source, did_you_mean, read_source
from tablesafe.tabulate.origin import Origin
from tablesafe.tabulate.plan import DROP, ERROR

# Numbers for groups of records, and records in the order of such numbers: fast where the numbers are small.


ROOMY = 4
"""Numbers up to so many times as many as there are entries are counted instead of sorted."""


def dense(keys: Integers) -> Integers:
    """The same groups with the numbers 0, 1, … in the order of the keys, which are 0 or more."""
    top = int(keys.max(initial=-1)) + 1
    if top > ROOMY * len(keys) + 2**16:
        return np.unique(keys, return_inverse=True)[1].astype(np.int64)
    there = np.zeros(top, dtype=np.bool_)
    there[keys] = True
    return np.asarray((np.cumsum(there) - 1)[keys], dtype=np.int64)


def paired(one: Integers, other: Integers) -> Integers:
    """A number per combination of two numbers."""
    return dense(one * (int(other.max(initial=0)) + 1) + other)


def in_order(keys: Integers) -> NDArray[np.intp]:
    """The places of the keys, which are 0 or more, from the smallest up; equals stay in their order."""
    small = int(keys.max(initial=0)) < 2**16
    return np.argsort(keys.astype(np.uint16) if small else keys, kind="stable")  # numbers of 16 bits are not compared


def shuffled(random: np.random.Generator, keys: Integers) -> NDArray[np.intp]:
    """The places of the keys, which are 0 or more, from the smallest up; equals in random order."""
    mixed = random.permutation(len(keys))
    return np.asarray(mixed[in_order(keys[mixed])])


def rank_within(groups: Integers) -> Integers:
    """The place of each entry within its group: 0 for the first."""
    order = in_order(groups)
    ordered = groups[order]
    first = np.searchsorted(ordered, ordered)
    out = np.empty(len(groups), dtype=np.int64)
    out[order] = np.arange(len(groups)) - first
    return out


# What a method made of the records.


@dataclass(frozen=True, eq=False)
class Edited:
    """Changed records in the order of the true ones, and the measures of what changed."""

    records: pl.DataFrame = field(repr=False)
    changed: Mask = field(repr=False)
    """The records that differ from the true ones."""
    facts: Mapping[str, float]
    """The measures of the whole file, by name."""
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict, repr=False)
    """Further measures as frames: by area, by variable."""
    table: Table | None = field(default=None, repr=False)
    """The table that the true records make."""

    @property
    def measures(self) -> pl.DataFrame:
        """The measures of the whole file: a row each."""
        return pl.DataFrame({"measure": list(self.facts), "value": [float(v) for v in self.facts.values()]})

    def tabulate(self, **changes: Any) -> Table:
        """Tabulate the changed records as the table was, or with other options of `ts.tabulate`.

        Every table made so comes from the same changed records, so that all of them agree.
        """
        if self.table is None or self.table.origin is None:
            raise InvalidOption(
                "These records did not come from a table.", hint="tabulate them: ts.tabulate(edited.records, …)"
            )
        return self.table.origin.table(self.records, **changes)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A release, the changed records behind it, and the tables that help the office to judge both. Confidential."""

    release: Release = field(repr=False)
    edited: Edited | None = field(repr=False)
    """None where no record was changed, but cells."""
    tables: Mapping[str, pl.DataFrame] = field(repr=False)
    """By the name of the file that a job writes."""


# Records that changed into a combination that the table has no cell for.


def novel(microdata: Microdata, changed: pl.DataFrame) -> Mask:
    """The changed records whose combination of codes no true record has, in one of the tables that are shown.

    A table with its empty cells has a place for every combination: there, nothing is novel.
    """
    out = np.zeros(len(microdata), dtype=np.bool_)
    table, origin = microdata.table, microdata.origin
    if table is None or origin is None or origin.plan.zeros:
        return out
    after = Microdata(changed, table)
    plan = origin.plan
    same = {d: microdata.frame[c].equals(changed[c], null_equal=True) for d, c in plan.column_of.items()}
    before = {d: microdata.positions(d) for d in plan.dimensions}
    now = {d: before[d] if same[d] else after.positions(d) for d in plan.dimensions}
    margins: Iterable[Iterable[str]] = [tuple(plan.dimensions)] if plan.margins is None else plan.margins
    for margin in margins:
        shown = [d for d in plan.dimensions if d in margin]
        if all(same[d] for d in shown):
            continue
        codes = np.stack([np.concatenate([before[d], now[d]]) for d in shown], axis=1)
        keys = cell_keys(codes + 1, [len(table.dimensions[d]) + 1 for d in shown])
        out |= ~np.isin(keys[len(microdata) :], keys[: len(microdata)])
    return out


# The records behind a table, with the columns that an option names; any frame of records will do as well.


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
                raise InvalidOption(
                    f"{option} names {name!r}, which holds lists or structures: codes are needed.",
                    about=("option", *option.split(".")),
                )
            return name
        named = {} if self.origin is None else self.origin.plan.column_of
        if name in named:
            return named[name]
        near = did_you_mean(name, [*self.frame.columns, *named]) or f"there are {', '.join(self.frame.columns)}."
        raise InvalidOption(
            f"{option} names {name!r}, which is no column of the records.",
            hint=near,
            about=("option", *option.split(".")),
        )

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
            f"{method} changes records, but this table was read as cells, or linked from several: it has no records.",
            hint="tabulate it from microdata (ts.tabulate, with margins= for linked tables).",
        )
    return origin
