"""Noise on the records: one factor per respondent, one direction per company."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, cell_keys
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.methods.microdata.areas import ancestors
from tablesafe.methods.microdata.edited import Edited
from tablesafe.methods.microdata.records import Microdata
from tablesafe.methods.noise.amounts import Amounts, noised_columns, with_totals
from tablesafe.methods.noise.drawing import Secret, respondents
from tablesafe.methods.noise.factors import Shape, balanced, draw_directions, draw_sizes


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
        raise InvalidOption("Balanced noise needs a table.\n\nHint: give a problem or a table, not a frame of records.")
    codes = np.zeros((len(microdata), len(table.dimensions)), dtype=np.int32)
    gone = np.zeros(len(microdata), dtype=np.bool_)
    unknown = sorted(set(levels) - set(origin.plan.dimensions))
    if unknown:
        names = ", ".join(origin.plan.dimensions)
        raise InvalidOption(f"Noise.balance names {unknown[0]!r}, which is no dimension: there are {names}.")
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
