"""The guess that costs no thought: what is published."""

from __future__ import annotations

import numpy as np
import polars as pl

import tablesafe as ts


def test_the_published_value_is_a_guess_where_values_were_changed() -> None:
    cells = pl.DataFrame({"a": ["x", "y", "z", "Total"], "value": [1, 12, 7, 20]})
    table = ts.Table.from_cells(cells, dimensions=["a"])
    problem = ts.Problem(table, [ts.Manual(cells=table.value == 1, range_absolute=1)])
    release = ts.protect(problem, ts.Round(base=5))
    assert ts.attack(problem, release, ts.PublishedValue()).values.tolist() == release.values.tolist()
    withheld = ts.Release.from_suppression(problem, table.value < 10)
    assert np.isnan(ts.attack(problem, withheld, ts.PublishedValue()).values).sum() == 2
