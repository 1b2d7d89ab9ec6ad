"""Areas: the levels of a geography, from the coarsest to the finest; and how many records to change in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.methods.records.behind import Microdata, dense, paired
from tablesafe.methods.records.checks import Steps


@dataclass(frozen=True, eq=False)
class Areas:
    """Every record's area at each level; areas of one level have the numbers 0, 1, …"""

    columns: tuple[str, ...]
    levels: tuple[Integers, ...] = field(repr=False)
    """The coarsest first."""
    missing: Mask = field(repr=False)
    """Records without an area."""

    @classmethod
    def of(cls, microdata: Microdata, names: Sequence[str], option: str) -> Areas:
        """The levels that columns make, or the hierarchy of a dimension of the table.

        Several columns go from the coarsest to the finest. A single one that is a dimension with a tree takes the
        levels of the tree. No column at all: one area.
        """
        columns = microdata.columns(names, option)
        missing = microdata.missing(columns)
        tree = _tree(microdata, columns) if len(columns) == 1 else None
        if tree is not None:
            name, hierarchy = tree
            at = microdata.positions(name)
            paths = ancestors(hierarchy)[:, np.maximum(at, 0)]
            levels = tuple(dense(path.astype(np.int64)) for path in paths)
            return cls(columns, levels, missing | (at < 0))
        levels = tuple(microdata.classes(columns[: n + 1]) for n in range(len(columns)))
        _refuse_turned(microdata, columns, levels, option)
        return cls(columns, levels or (microdata.classes(()),), missing)

    @property
    def finest(self) -> Integers:
        """The area of each record at the finest level."""
        return self.levels[-1]

    @property
    def bordered(self) -> Areas:
        """The same areas without the levels that have a single one, and so no border to cross; the finest stays."""
        many = [level for level in self.levels[:-1] if len(np.unique(level[~self.missing])) > 1]
        return Areas(self.columns, (*many, self.finest), self.missing)

    def names(self, microdata: Microdata) -> pl.DataFrame:
        """The finest areas in the user's codes, a row per area, by their numbers."""
        count = int(self.finest.max(initial=-1)) + 1
        if not self.columns:
            return pl.DataFrame({"area": ["all"] * count})
        first = np.full(count, -1, dtype=np.int64)
        first[self.finest[::-1]] = np.arange(len(self.finest))[::-1]
        return pl.DataFrame([microdata.text(column).gather(first).alias(column) for column in self.columns])


def beside(names: pl.DataFrame, measures: Mapping[str, NDArray[Any]]) -> pl.DataFrame:
    """Codes and what is told about them, in one frame: a column of codes that is called like a measure is renamed."""
    own = names.rename({name: f"{name} (column)" for name in names.columns if name in measures})
    return own.with_columns(pl.Series(name, values) for name, values in measures.items())


def _refuse_turned(microdata: Microdata, columns: Sequence[str], levels: Sequence[Integers], option: str) -> None:
    """Refuse areas that are named the finest first: each has then one area only of the level that should lie in it."""
    for n in range(1, len(columns)):
        own = microdata.classes([columns[n]])
        counted = [int(level.max(initial=-1)) + 1 for level in (own, levels[n - 1], levels[n])]
        if counted[0] < counted[1] == counted[2]:
            raise InvalidOption(
                f"{option} names {columns[n - 1]!r} before {columns[n]!r}, but every {columns[n - 1]!r} lies in a "
                f"single {columns[n]!r}: that is the larger one.",
                hint=f"name the coarsest level first: {columns[n]!r}, then {columns[n - 1]!r}.",
            )


def _tree(microdata: Microdata, columns: Sequence[str]) -> tuple[str, Hierarchy] | None:
    """The dimension that a column makes, if it has several levels."""
    origin, table = microdata.origin, microdata.table
    if origin is None or table is None:
        return None
    for name, column in origin.plan.column_of.items():
        hierarchy = table.dimensions[name]
        if column == columns[0] and int(hierarchy.depth.max(initial=0)) > 1:
            if not hierarchy.is_tree:
                raise InvalidOption(
                    f"The hierarchy of {name!r} is no tree: an area may lie in several others.",
                    hint="name columns of the records instead, from the coarsest level to the finest.",
                )
            return name, hierarchy
    return None


def ancestors(hierarchy: Hierarchy) -> NDArray[np.int32]:
    """Per level below the total (rows) and code: the code at that level above it, or itself where it is no deeper."""
    parent = np.arange(len(hierarchy), dtype=np.int32)
    entries = hierarchy.equations.tocoo()
    parts = entries.col != hierarchy.totals[entries.row]
    parent[entries.col[parts]] = hierarchy.totals[entries.row[parts]]
    depth, rows = hierarchy.depth, []
    above = np.arange(len(hierarchy), dtype=np.int32)
    for level in range(int(depth.max(initial=0)), 0, -1):
        above = np.where(depth[above] > level, parent[above], above)
        rows.append(above)
    return np.stack(rows[::-1]) if rows else above[None, :]


# Who is at risk, and how many are to be changed in each area: higher rates where few live, in whole numbers.


CLOSE = 1e-9
"""Rates times units that are whole up to the noise of floating point are whole."""


@dataclass(frozen=True, eq=False)
class Targets:
    """How many units of each area are to be changed: floor or ceiling of rate × units, by chance."""

    units: Integers = field(repr=False)
    rate: Floats = field(repr=False)
    floor: Integers = field(repr=False)
    ceiling: Integers = field(repr=False)
    drawn: Integers = field(repr=False)

    @classmethod
    def of(cls, area: Integers, usable: Mask, rate: float, steps: Steps, random: np.random.Generator) -> Targets:
        """The targets of areas 0, 1, …, by their usable units."""
        units = np.bincount(area[usable], minlength=int(area.max(initial=-1)) + 1)
        rates = np.full(len(units), float(rate))
        for limit, higher in sorted(steps, reverse=True):
            rates[units < limit] = higher
        wanted = rates * units
        near = np.rint(wanted)
        wanted = np.where(np.abs(wanted - near) <= CLOSE * np.maximum(near, 1.0), near, wanted)
        floor = np.floor(wanted).astype(np.int64)
        up = random.random(len(units)) < wanted - floor
        return cls(units, rates, floor, np.ceil(wanted).astype(np.int64), floor + up)


def alike(key: Integers, areas: Areas) -> list[Integers]:
    """Per level and record: how many records of its area have its key, itself included."""
    out = []
    for area in areas.levels:
        pair = paired(area, key)
        out.append(np.bincount(pair)[pair])
    return out


def risky_level(counts: Sequence[Integers], k: int) -> tuple[Integers, Integers]:
    """The coarsest level at which fewer than `k` records are alike (the number of levels where none is), and how many.

    The count is that at the finest level: the fewer, the greater the risk.
    """
    levels = len(counts)
    level = np.full(len(counts[0]), levels, dtype=np.int64)
    for n in range(levels - 1, -1, -1):
        level[counts[n] < k] = n
    return level, counts[-1]
