"""What records add to the cells before and after the noise, in whole units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Integers, to_integers
from tablesafe.core.errors import InvalidOption
from tablesafe.methods.microdata.records import Microdata


@dataclass(frozen=True, eq=False)
class Amounts:
    """One column of amounts: what each record reported, and what it adds to a total, as whole units."""

    reported: Floats = field(repr=False)
    """The part that a respondent reported for itself, and that is noised: all of it, where there is no weight."""
    added: Integers = field(repr=False)
    """The weighted amount in units of `10**-decimals`."""
    decimals: int

    @classmethod
    def of(cls, microdata: Microdata, column: str, weight: Floats | None, decimals: int | None) -> Amounts:
        """A column of the records. The weight beyond 1 stands for others, who are not in the sample."""
        amount = microdata.numbers(column)
        if weight is None:
            added, decimals, _ = to_integers(amount, decimals)
            return cls(amount, added, decimals)
        added, decimals, _ = to_integers(amount * weight, decimals)
        return cls(amount * np.minimum(weight, 1.0), added, decimals)

    def noised(self, direction: Floats, size: Floats) -> Integers:
        """The amounts moved by `size` of what was reported, rounded away from the truth.

        Rounding so, no amount but zero stays as it was, none moves by less than its size asks for, and up and down are
        as far: on average nothing changes. No amount changes its sign.
        """
        moved = np.ceil(np.abs(self.reported) * size * 10.0**self.decimals * (1 - 1e-12))
        moved = np.minimum(moved, np.abs(self.added))
        return np.asarray(self.added + (np.sign(self.reported) * direction * moved).astype(np.int64))

    def series(self, column: str, integers: Integers) -> pl.Series:
        """Whole units as a column of the records."""
        if not self.decimals:
            return pl.Series(column, integers)
        return pl.Series(column, np.round(integers / 10.0**self.decimals, self.decimals))


def noised_columns(microdata: Microdata, given: Sequence[str]) -> tuple[tuple[str, ...], dict[str, int | None]]:
    """The columns that get noise, with their decimals where the table says: its responses, or those given."""
    extra = microdata.columns(given, "Noise.columns")
    if microdata.origin is None or microdata.table is None:
        if not extra:
            raise InvalidOption("Noise needs to know which columns to change.\n\nHint: Noise(columns=('turnover',))")
        return extra, dict.fromkeys(extra)
    plan = microdata.origin.plan
    if not plan.listed:
        raise InvalidOption(
            "Noise changes amounts, but this table counts records.\n\n"
            "Hint: name a column of amounts (value=…); for counts use CellKey, SmallCounts, Round or Swap."
        )
    own = tuple(dict.fromkeys(column for response in plan.responses for column, _ in response.value.terms))
    known: dict[str, int | None] = dict.fromkeys(own, microdata.table.decimals)
    return tuple(dict.fromkeys([*own, *extra])), {**dict.fromkeys(extra), **known}


def with_totals(microdata: Microdata, frame: pl.DataFrame) -> pl.DataFrame:
    """Columns that an equation makes the sum of others are that sum of the changed ones too."""
    if microdata.origin is None:
        return frame
    sums = []
    for response in microdata.origin.plan.responses:
        terms = response.value.terms
        if response.name in frame.columns and terms and terms != ((response.name, 1),):
            total = pl.sum_horizontal([sign * pl.col(column) for column, sign in terms])
            sums.append(total.alias(response.name))
    return frame.with_columns(sums)
