"""Tables of a few unconnected cells, given by their contributors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import polars as pl
import pytest

from tablesafe.core.table import Table

MakeTable: TypeAlias = Callable[..., Table]


@pytest.fixture
def make() -> MakeTable:
    """Make a table from rows of contributions (the largest first); the value is their sum and what `rest` adds."""

    def table(
        largest: Sequence[Sequence[float]],
        *,
        rest: Sequence[float] | None = None,
        value: Sequence[float] | None = None,
        names: Sequence[Sequence[str]] | None = None,
        **columns: Any,
    ) -> Table:
        depth = max((len(row) for row in largest), default=0)
        padded = [[*row, *[0.0] * (depth - len(row))] for row in largest]
        sums = [sum(row) for row in padded]
        others = rest if rest is not None else [0.0] * len(sums)
        data: dict[str, Any] = {
            "cell": [f"c{i}" for i in range(len(padded))],
            "value": [float(v) for v in (value or [a + b for a, b in zip(sums, others, strict=True)])],
            **{f"max{j}": [float(row[j]) for row in padded] for j in range(depth)},
            **columns,
        }
        if names is not None:
            who = [[*row, *[None] * (depth - len(row))] for row in names]
            data |= {f"who{j}": pl.Series([row[j] for row in who], dtype=pl.String) for j in range(depth)}
        given: dict[str, Any] = {n: n for n in ("count", "holdings", "structural_zero") if n in columns}
        return Table.from_cells(
            pl.DataFrame(data),
            dimensions=["cell"],
            largest=[f"max{j}" for j in range(depth)],
            identity=[f"who{j}" for j in range(depth)] if names is not None else (),
            columns=[name for name in columns if name not in given],
            missing_totals="none",
            **given,
        )

    return table
