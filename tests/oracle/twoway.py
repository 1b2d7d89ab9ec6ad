"""Small two-way tables, and every table of whole numbers that agrees with a release of one: by trying all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts


def square(inner: Any) -> ts.Table:
    """A flat two-way table with its totals."""
    values = np.asarray(inner, dtype=float)
    full = np.pad(values, ((0, 1), (0, 1)))
    full[-1, :] = full.sum(axis=0)
    full[:, -1] = full.sum(axis=1)
    codes = [[*map(str, range(1, size + 1)), "Total"] for size in values.shape]
    rows = [
        {"row": codes[0][i], "column": codes[1][j], "value": float(full[i, j])}
        for i in range(full.shape[0])
        for j in range(full.shape[1])
    ]
    return ts.Table.from_cells(pl.DataFrame(rows), dimensions=["row", "column"])


def inner(table: ts.Table) -> np.ndarray[Any, Any]:
    """Which cells are no totals."""
    return np.asarray(~table.is_total)


def possible(release: ts.Release) -> np.ndarray[Any, Any]:
    """Every table of whole numbers that agrees with a release of a two-way table whose totals are all published."""
    width = int(release.table.codes[:, 1].max()) + 1
    shown = np.where(release.suppressed, -1, release.table.integers).reshape(-1, width)
    assert (shown[-1] >= 0).all()
    assert (shown[:, -1] >= 0).all()
    return np.array([grid.ravel() for grid in _fillings(shown)], dtype=float)


def _fillings(grid: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Cell by cell, with every value that its row and its column leave; −1 marks a cell that is still empty."""
    empty = np.argwhere(grid < 0)
    if not len(empty):
        if (grid[:, :-1].sum(axis=1) == grid[:, -1]).all() and (grid[:-1].sum(axis=0) == grid[-1]).all():
            yield grid
        return
    i, j = empty[0]
    left = [line[-1] - line[:-1][line[:-1] >= 0].sum() for line in (grid[i], grid[:, j])]
    last = [(line[:-1] < 0).sum() == 1 for line in (grid[i], grid[:, j])]
    forced = {int(rest) for rest, only in zip(left, last, strict=True) if only}
    for value in forced or range(min(left) + 1):
        if len(forced) < 2 and 0 <= value <= min(left):
            filled = grid.copy()
            filled[i, j] = value
            yield from _fillings(filled)
