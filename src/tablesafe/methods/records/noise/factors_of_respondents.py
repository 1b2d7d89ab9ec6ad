"""What records add to the cells before and after the noise, in whole units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, cell_keys, to_integers
from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.problem import Problem
from tablesafe.methods.records.areas import ancestors
from tablesafe.methods.records.behind import Edited, Microdata
from tablesafe.methods.records.noise.factors import Secret, Shape, balanced, draw_directions, draw_sizes, respondents


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
            raise InvalidOption("Noise needs to know which columns to change.", hint="Noise(columns=('turnover',))")
        return extra, dict.fromkeys(extra)
    plan = microdata.origin.plan
    if not plan.listed:
        raise InvalidOption(
            "Noise changes amounts, but this table counts records.",
            hint=(
                "name a column of amounts (",
                Setting("value"),
                "); for counts use CellKey, SmallCounts, Round or Swap.",
            ),
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


# Noise on the records: one factor per respondent, one direction per company.


@dataclass(frozen=True, eq=False)
class Noised:
    """The changed records, what they add to the cells, and the factors behind them."""

    edited: Edited = field(repr=False)
    adding: pl.DataFrame = field(repr=False)
    """The records with what they add to the totals: weights have been multiplied in already."""
    factor: Floats = field(repr=False)
    """Per record."""


def balancing_cells(microdata: Microdata, levels: Mapping[str, int], problem: Problem | None) -> Integers:
    """The cell of each record within which noise is to cancel; −1 where it must not.

    `levels` says per dimension how far below the total; −1 is the finest code. In a sensitive cell noise must not
    cancel: its few contributors could take their own amounts off a total that is nearly right.
    """
    table, origin = microdata.table, microdata.origin
    if table is None or origin is None:
        raise InvalidOption("Balanced noise needs a table.", hint="give a problem or a table, not a frame of records.")
    codes = np.zeros((len(microdata), len(table.dimensions)), dtype=np.int32)
    gone = np.zeros(len(microdata), dtype=np.bool_)
    unknown = sorted(set(levels) - set(origin.plan.dimensions))
    if unknown:
        names = ", ".join(origin.plan.dimensions)
        raise InvalidOption(
            f"Noise.balance names {unknown[0]!r}, which is no dimension: there are {names}.",
            about=("option", "Noise", "balance"),
        )
    for d, (name, hierarchy) in enumerate(table.dimensions.items()):
        if name in levels:
            at = microdata.positions(name)
            gone |= at < 0
            codes[:, d] = _above(ancestors(hierarchy), np.maximum(at, 0), levels[name])
        else:
            codes[:, d] = 0 if hierarchy.total is None else hierarchy.position(hierarchy.total)
    sizes = [len(hierarchy) for hierarchy in table.dimensions.values()]
    keys = cell_keys(np.concatenate([codes, table.codes]), sizes)
    cell = np.unique(keys[: len(codes)], return_inverse=True)[1]
    sensitive = np.zeros(len(table), dtype=np.bool_) if problem is None else problem.sensitivity.mask
    bare = np.isin(keys[: len(codes)], keys[len(codes) :][sensitive])
    return np.where(gone | bare, -1, cell)


def _above(paths: NDArray[np.int32], at: NDArray[np.int32], level: int) -> NDArray[np.int32]:
    if level < -1 or level == 0:
        raise InvalidOption(
            f"The levels of Noise.balance are 1, 2, … below the total, or -1 for the finest; got {level}."
        )
    return at if level == -1 or level > len(paths) else paths[level - 1][at]


@dataclass(frozen=True, slots=True)
class Drawing:
    """What the noise is drawn from."""

    least: float
    most: float
    shape: Shape
    seed: int | None
    respondent: str | None
    holding: str | None
    columns: tuple[str, ...]
    balance: Mapping[str, int]


def noise_records(microdata: Microdata, drawing: Drawing, problem: Problem | None) -> Noised:
    """Draw a factor for every respondent and apply it to all that it reported."""
    columns, decimals = noised_columns(microdata, drawing.columns)
    respondent, company = respondents(microdata, drawing.respondent, drawing.holding)
    plan = None if microdata.origin is None else microdata.origin.plan
    weight = None if plan is None or plan.weight is None else microdata.numbers(plan.weight)
    amounts = {column: Amounts.of(microdata, column, weight, decimals[column]) for column in columns}
    secret = Secret.of(drawing.seed, [found.added for found in amounts.values()])
    size = draw_sizes(secret.numbers(respondent.names, "size"), drawing.least, drawing.most, drawing.shape)
    size = size[respondent.of_record]
    direction = draw_directions(secret.numbers(company.names, "direction"))
    if drawing.balance:
        cell = balancing_cells(microdata, drawing.balance, problem)
        there, pull = cell >= 0, amounts[columns[0]].reported * size
        direction = balanced(company.of_record[there], cell[there], pull[there], direction)
    way = direction[company.of_record]
    moved = {name: found.noised(way, size) for name, found in amounts.items()}
    adding = _with(microdata, {name: amounts[name].series(name, y) for name, y in moved.items()})
    records = adding
    if weight is not None:
        share = np.where(weight > 0, weight, 1.0)
        records = _with(
            microdata,
            {name: pl.Series(name, y / 10.0 ** amounts[name].decimals / share) for name, y in moved.items()},
        )
    changed = np.any([moved[name] != found.added for name, found in amounts.items()], axis=0)
    factor = 1 + way * size
    facts: dict[str, float] = {
        "records": len(microdata),
        "records changed": int(changed.sum()),
        "respondents": len(respondent),
        "companies": len(company),
        "companies moved up": int((direction > 0).sum()),
        "mean factor": float(factor.mean()) if len(factor) else 1.0,
    }
    for name, found in amounts.items():
        unit = 10.0**found.decimals
        facts[f"{name} before"] = float(found.added.sum() / unit)
        facts[f"{name} after"] = float(moved[name].sum() / unit)
    edited = Edited(with_totals(microdata, records), changed, facts, table=microdata.table)
    return Noised(edited, with_totals(microdata, adding), factor)


def _with(microdata: Microdata, columns: Mapping[str, pl.Series]) -> pl.DataFrame:
    """The records with other amounts; what was missing stays missing."""
    return microdata.frame.with_columns(
        series.set(microdata.text(name).is_null(), None) for name, series in columns.items()
    )
