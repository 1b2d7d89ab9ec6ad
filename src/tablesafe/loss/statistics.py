"""Statistics that users of a table compute, before and after an adjustment, over chosen groups of cells. Confidential.

The relation between the true values `a` and the published ones `u` of a group is summed up as Cox & Kelly do
("Balancing Data Quality and Confidentiality for Tabular Data", 2003): their correlation, the slope of `u` on `a`, and
the ratio of their variances; all are 1 when nothing changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption, InvalidRelease
from tablesafe.core.linking import RESPONSE
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.files.read import did_you_mean

WORDS = ("sensitive", "all", "inner", "totals")

Over = str | Mapping[str, NDArray[Any]]
"""Which cells belong together: a word, a dimension, a column, or named masks or cell numbers."""


@dataclass(frozen=True, eq=False)
class Group:
    """Cells that a statistic is computed over."""

    name: str
    cells: NDArray[np.intp] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Pair:
    """Cells of two response variables, matched by their codes: the first is the one that explains."""

    name: str
    first: NDArray[np.intp] = field(repr=False)
    second: NDArray[np.intp] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Relation:
    """How one column of numbers follows another: NaN where one of them does not vary."""

    correlation: float
    slope: float
    variance_ratio: float
    """Variance of the second over that of the first."""
    mean_difference: float
    """Mean of the second less that of the first."""

    @classmethod
    def of(cls, first: Floats, second: Floats) -> Self:
        """The relation of two equally long columns."""
        if not len(first):
            return cls(np.nan, np.nan, np.nan, np.nan)
        x, y = first - first.mean(), second - second.mean()
        xx, yy, xy = float(x @ x), float(y @ y), float(x @ y)
        if xx <= 0:
            return cls(np.nan, np.nan, np.nan, float(second.mean() - first.mean()))
        correlation = xy / np.sqrt(xx * yy) if yy > 0 else np.nan
        return cls(float(correlation), xy / xx, yy / xx, float(second.mean() - first.mean()))


def groups_of(problem: Problem, over: Over) -> list[Group]:
    """The groups that `over` names; cells that nobody is to see belong to none."""
    seen = ~(problem.withheld | problem.suppressed)
    if not isinstance(over, str):
        groups = [Group(name, _cells(problem.table, name, given)) for name, given in over.items()]
    elif over in WORDS:
        groups = [Group(over, np.flatnonzero(_worded(problem, over)))]
    elif over in problem.table.dimensions:
        groups = _by_code(problem.table, over)
    elif over in problem.table.columns:
        column = np.asarray(problem.table.columns[over])
        labels = [label for label in np.unique(column).tolist() if label and label == label]
        groups = [Group(f"{over}={label:g}", np.flatnonzero(column == label)) for label in labels]
    else:
        names = [*WORDS, *problem.table.dimensions, *problem.table.columns]
        hint = did_you_mean(over, names) or f"the choices are {', '.join(map(repr, names))}."
        raise InvalidOption(f"'over' is {over!r}: neither a group of cells, a dimension nor a column.", hint=hint)
    kept = [Group(group.name, group.cells[seen[group.cells]]) for group in groups]
    return [group for group in kept if group.cells.size]


def _worded(problem: Problem, over: str) -> NDArray[np.bool_]:
    if over == "sensitive":
        return problem.sensitivity.mask
    if over == "all":
        return np.ones(len(problem.table), np.bool_)
    return problem.table.is_total if over == "totals" else ~problem.table.is_total


def _by_code(table: Table, dimension: str) -> list[Group]:
    """A group for each code of a dimension."""
    codes = table.codes[:, list(table.dimensions).index(dimension)]
    order = np.argsort(codes, kind="stable")
    present, start = np.unique(codes[order], return_index=True)
    parts = np.split(order, start[1:])
    names = table.dimensions[dimension].codes
    return [Group(f"{dimension}={names[code]}", part) for code, part in zip(present.tolist(), parts, strict=True)]


def _cells(table: Table, name: str, given: NDArray[Any]) -> NDArray[np.intp]:
    """Cell numbers from a mask or from cell numbers."""
    array = np.asarray(given)
    if array.dtype == np.bool_ and array.shape == (len(table),):
        return np.flatnonzero(array)
    whole = array.ndim == 1 and np.issubdtype(array.dtype, np.integer)
    if whole and bool(((array >= 0) & (array < len(table))).all()):
        return np.unique(array).astype(np.intp)
    raise InvalidOption(
        f"Group {name!r} must be a mask of {len(table):,} cells or a list of cell numbers, "
        f"got {array.dtype} of shape {array.shape}."
    )


def pairs_of(problem: Problem, responses: tuple[str, ...], groups: list[Group]) -> list[Pair]:
    """The cells of two responses in each group, matched by all their other codes.

    A cell of one response belongs to a group when itself or its match does: the relation is between the two.
    """
    table = problem.table
    if RESPONSE not in table.dimensions:
        raise InvalidOption(
            "'responses' needs a table with several response variables.",
            hint="link the tables of both: ts.link([table_a, table_b]).",
        )
    hierarchy, names = table.dimensions[RESPONSE], list(table.dimensions)
    unknown = [name for name in responses if name not in hierarchy.codes]
    if unknown:
        raise InvalidOption(
            f"'responses' names {unknown[0]!r}, but the table has {', '.join(map(repr, hierarchy.codes))}."
        )
    at = names.index(RESPONSE)
    others = np.delete(table.codes, at, axis=1)
    _, key = np.unique(others, axis=0, return_inverse=True)
    match = []
    for name in responses:
        own = np.flatnonzero(table.codes[:, at] == hierarchy.position(name))
        cell = np.full(int(key.max(initial=-1)) + 1, -1, dtype=np.intp)
        cell[key.ravel()[own]] = own
        match.append(cell)
    both = (match[0] >= 0) & (match[1] >= 0)
    first, second = match[0][both], match[1][both]
    hidden = problem.withheld | problem.suppressed
    pairs = []
    for group in groups:
        inside = np.zeros(len(table), np.bool_)
        inside[group.cells] = True
        chosen = (inside[first] | inside[second]) & ~(hidden[first] | hidden[second])
        if chosen.any():
            pairs.append(Pair(f"{group.name}: {responses[1]} on {responses[0]}", first[chosen], second[chosen]))
    return pairs


def chi_square(before: Floats, after: Floats) -> float:
    """Σ (after − before)² / before, over the cells that are not zero."""
    there = before != 0
    return float((np.square(after - before)[there] / np.abs(before[there])).sum())


def statistics(
    problem: Problem, release: Release, *, over: Over = "sensitive", responses: tuple[str, ...] = ()
) -> pl.DataFrame:
    """Compare the statistics of true and published values: a row per group of cells. Confidential.

    With two `responses` of a linked table, the rows show the relation between those before and after instead.
    """
    if len(release.values) != len(problem.table):
        raise InvalidRelease(f"The release has {len(release.values):,} cells, the table {len(problem.table):,}.")
    before, after = problem.table.value, release.values
    groups = groups_of(problem, over)
    if responses:
        return pl.DataFrame(
            [_pair_row(pair, before, after) for pair in pairs_of(problem, responses, groups)], schema=_PAIR_SCHEMA
        )
    shown = ~np.isnan(after)
    rows = [_group_row(group, before[group.cells], after[group.cells], shown[group.cells]) for group in groups]
    return pl.DataFrame(rows, schema=_GROUP_SCHEMA)


_GROUP_SCHEMA = {
    "group": pl.String, "cells": pl.Int64, "mean": pl.Float64, "published mean": pl.Float64, "variance": pl.Float64,
    "published variance": pl.Float64, "variance ratio": pl.Float64, "correlation": pl.Float64, "slope": pl.Float64,
    "chi-square": pl.Float64, "quantity changed": pl.Float64,
}  # fmt: skip
_PAIR_SCHEMA = {
    "relation": pl.String, "cells": pl.Int64, "correlation": pl.Float64, "published correlation": pl.Float64,
    "slope": pl.Float64, "published slope": pl.Float64, "variance ratio of the first": pl.Float64,
    "variance ratio of the second": pl.Float64,
}  # fmt: skip


def _group_row(group: Group, before: Floats, after: Floats, shown: NDArray[np.bool_]) -> dict[str, Any]:
    a, u = before[shown], after[shown]
    relation = Relation.of(a, u)
    values = (
        group.name, len(a), _mean(a), _mean(u), _variance(a), _variance(u), relation.variance_ratio,
        relation.correlation, relation.slope, chi_square(a, u), float(np.abs(u - a).sum()),
    )  # fmt: skip
    return dict(zip(_GROUP_SCHEMA, values, strict=True))


def _pair_row(pair: Pair, before: Floats, after: Floats) -> dict[str, Any]:
    shown = ~(np.isnan(after[pair.first]) | np.isnan(after[pair.second]))
    a, b = before[pair.first][shown], before[pair.second][shown]
    u, v = after[pair.first][shown], after[pair.second][shown]
    truth, public = Relation.of(a, b), Relation.of(u, v)
    values = (
        pair.name, len(a), truth.correlation, public.correlation, truth.slope, public.slope,
        Relation.of(a, u).variance_ratio, Relation.of(b, v).variance_ratio,
    )  # fmt: skip
    return dict(zip(_PAIR_SCHEMA, values, strict=True))


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else np.nan


def _variance(values: Floats) -> float:
    return float(values.var()) if values.size else np.nan
