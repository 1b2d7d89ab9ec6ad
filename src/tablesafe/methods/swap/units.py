"""What is swapped: records, or households as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.methods.microdata.areas import Areas
from tablesafe.methods.microdata.numbering import dense, in_order, rank_within
from tablesafe.methods.microdata.records import Microdata


@dataclass(frozen=True, eq=False)
class Units:
    """Records, or households of records, numbered in an order that does not depend on that of the records."""

    of_record: Integers = field(repr=False)
    """The unit of each record."""
    first: NDArray[np.intp] = field(repr=False)
    """A record of each unit."""
    size: Integers = field(repr=False)
    """Records of each unit."""
    single: bool
    """Whether every record is a unit."""

    @classmethod
    def of(cls, microdata: Microdata, household: str | None) -> Units:
        """The households of a column, or the records themselves; a record without a household stands alone."""
        n = len(microdata)
        if household is None:
            return cls(microdata.rank, microdata.order, np.ones(n, dtype=np.int64), single=True)
        column = microdata.column(household, "Swap.household")
        held = microdata.classes([column])
        lone = microdata.missing([column])
        held = np.where(lone, held.max(initial=0) + 1 + microdata.rank, held) if lone.any() else held
        own = dense(held)
        size = np.bincount(own)
        first = np.empty(len(size), dtype=np.intp)
        first[own[microdata.order[::-1]]] = microdata.order[::-1]
        return cls(own, first, size.astype(np.int64), single=False)

    def __len__(self) -> int:
        return len(self.first)

    def areas(self, microdata: Microdata, areas: Areas) -> tuple[Integers, ...]:
        """The area of each unit at each level; a household in two areas is an error."""
        split = self._split(areas.finest)
        if split.size:
            row = microdata.frame.row(int(split[0]), named=True)
            places = ", ".join(f"{column} = {row[column]!r}" for column in areas.columns)
            raise InvalidOption(
                f"The household of record {int(split[0]) + 1:,} ({places}) has records in other areas too.\n\n"
                f"Hint: is Swap.household the right column? All records of a household live in one area."
            )
        return tuple(level[self.first] for level in areas.levels)

    def most_records(self, area: Integers, most: Integers) -> Integers:
        """The records of so many units of each area, at most: of its largest ones. Partners are as large."""
        order = np.argsort(-self.size, kind="stable")
        order = order[in_order(area[order])]
        taken = order[rank_within(area[order]) < most[area[order]]]
        out = np.zeros(len(most), dtype=np.int64)
        np.add.at(out, area[taken], self.size[taken])
        return out

    def refuse_mixed(self, microdata: Microdata, columns: Sequence[str]) -> None:
        """Refuse columns that go with the area but differ within a household: all its members get those of another."""
        for column in columns:
            split = self._split(microdata.classes([column]))
            if split.size:
                raise InvalidOption(
                    f"Swap.carry names {column!r}, but the household of record {int(split[0]) + 1:,} has several "
                    f"entries in it.\n\nHint: carry only what belongs to the place where all of a household live."
                )

    def _split(self, number: Integers) -> NDArray[np.intp]:
        """The records whose number is not that of the others of their unit."""
        return np.flatnonzero(number != number[self.first][self.of_record])

    def classes(self, of_record: Integers) -> Integers:
        """A number per unit, equal where the units hold the same records by their classes: as many of each.

        Swapping such units leaves the number of records of each class in each area as it was.
        """
        if self.single:
            return of_record[self.first]
        frame = pl.DataFrame({"unit": self.of_record, "class": of_record}).sort("unit", "class")
        joined = frame.group_by("unit", maintain_order=True).agg(pl.col("class").cast(pl.String).str.join(" "))
        text = joined["class"]
        return text.cast(pl.Enum(text.unique().sort())).to_physical().to_numpy().astype(np.int64)

    def least(self, of_record: Integers) -> Integers:
        """The smallest of a number over the records of each unit."""
        out = np.full(len(self), np.iinfo(np.int64).max)
        np.minimum.at(out, self.of_record, of_record)
        return out

    def some(self, of_record: Mask) -> Mask:
        """The units with a record that is marked."""
        out = np.zeros(len(self), dtype=np.bool_)
        out[self.of_record[of_record]] = True
        return out
