"""What readers may conclude from a noised table: the public, and respondents who know what they reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.methods.records.areas import beside
from tablesafe.methods.records.behind import origin_of
from tablesafe.tabulate.plan import RECORDS


def announced(problem: Problem, integers: Integers, most: float) -> tuple[Floats, Floats]:
    """The interval of the truth when `most` is announced: within that share of the value, and a unit per record.

    Each record was moved by at most `most` of itself, and rounded away from itself to the next unit. Where amounts may
    be negative a sum can be anything beside its value, and nothing follows.
    """
    table = problem.table
    if bool(table.may_be_negative.any()) or _subtracts(table):
        return problem.lower, problem.upper
    unit = 10.0**table.decimals
    slack = _records(table).astype(np.float64)
    lower = (integers - slack) / (1 + most) / unit
    upper = (integers + slack) / (1 - most) / unit
    return np.maximum(lower, 0.0), upper


def _records(table: Table) -> Integers:
    """How many amounts each cell adds up, at most."""
    assert table.count is not None
    several = max(len(response.value.terms) for response in origin_of(table, "Noise").plan.responses)
    return np.asarray(table.columns.get(RECORDS, table.count), dtype=np.int64) * several


def _subtracts(table: Table) -> bool:
    """Whether a response variable is a difference: what moved its terms may have moved it further than itself."""
    responses = origin_of(table, "Noise").plan.responses
    return any(sign < 0 for response in responses for _, sign in response.value.terms)


def insiders(problem: Problem, release: Release, least: float | None) -> pl.DataFrame:
    """A row per sensitive cell that is published: how near readers come to its largest contributor.

    An outsider takes the published value for the largest contribution; the second largest contributor first takes its
    own off. If it is alone in another published cell it can read its own factor there, and takes off what it became.
    All in percent of the truth. `not from` and `not to` are, for cells of a single contributor, where the truth cannot
    lie when `least` is announced.
    """
    table = problem.table
    cells = np.flatnonzero(problem.sensitivity.mask & ~release.suppressed)
    codes = {name: series.gather(cells.astype(np.uint32)) for name, series in table.code_columns().items()}
    value, truth = release.values[cells], table.value[cells]
    alone = _contributors(table)[cells] == 1
    columns: dict[str, NDArray[Any]] = {"true": truth, "published": value, "contributors": _contributors(table)[cells]}
    with np.errstate(divide="ignore", invalid="ignore"):
        columns["percent change"] = 100 * np.abs(value - truth) / np.abs(truth)
        kept = table.contributors
        if kept is not None and kept.certain >= 2:
            added = kept.amount if kept.weighted is None else kept.weighted
            first, second = added[cells, 0], np.where(alone, np.nan, added[cells, 1])
            read = _own_factors(table, release, kept.identity[cells, 1])
            for name, taken_off in (
                ("outsider within percent", 0.0),
                ("insider within percent", second),
                ("insider who reads its factor within percent", second * read),
            ):
                columns[name] = 100 * np.abs(value - taken_off - first) / np.abs(first)
    if least is not None:
        columns["not from"] = np.where(alone, value / (1 + least), np.nan)
        columns["not to"] = np.where(alone, value / (1 - least), np.nan)
    frame = beside(pl.DataFrame(codes), columns)
    numbers = [name for name, kind in frame.schema.items() if kind.is_float()]
    return frame.with_columns(pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in numbers)


def _own_factors(table: Table, release: Release, who: Integers) -> Floats:
    """The factor that a contributor reads off the largest published cell in which it is alone; NaN without one."""
    kept = table.contributors
    assert kept is not None
    bare = np.flatnonzero((_contributors(table) == 1) & ~release.suppressed & (table.integers != 0))
    bare = bare[np.argsort(np.abs(table.integers[bare]), kind="stable")]
    factor = np.full(int(kept.identity.max(initial=-1)) + 2, np.nan)  # the last entry is for nobody: −1
    factor[kept.identity[bare, 0]] = release.values[bare] / table.value[bare]
    factor[-1] = np.nan
    return factor[who]


def _contributors(table: Table) -> Integers:
    found = table.count if table.holdings is None else table.holdings
    return np.zeros(len(table), dtype=np.int64) if found is None else found
