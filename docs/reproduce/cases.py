"""The tables of the papers, as problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts

DATA = Path(__file__).resolve().parents[2] / "tests" / "papers" / "data"


def loaded(name: str) -> Any:
    """A JSON file of printed results."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def printed(paper: str, *names: str) -> float:
    """A single figure of a print, from the transcript."""
    found = loaded("printed.json")[paper]
    for name in names:
        found = found[name]
    return float(found["figure"])


def dandekar() -> ts.Problem:
    """Dandekar & Cox (2002), Table 1: 10 × 6 × 4 with totals, 24 sensitive cells."""
    frame = pl.read_csv(DATA / "dandekar_10x6x4" / "cells.csv").with_columns(
        pl.col("col", "row", "level").cast(pl.String), pl.col("protection").fill_null(0)
    )
    sizes = {"col": 10, "row": 6, "level": 4}
    dimensions = {d: ts.Hierarchy.from_pairs([(str(n), str(i)) for i in range(1, n)]) for d, n in sizes.items()}
    table = ts.Table.from_cells(
        frame, dimensions=dimensions, columns=["sensitive", "protection", "synthetic_value_2002"]
    )
    mask = np.asarray(table.columns["sensitive"]) > 0
    return ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.asarray(table.columns["protection"])))


def dandekar_pattern(problem: ts.Problem, column: str) -> np.ndarray[Any, Any]:
    """A printed pattern of withheld cells: `suppression_44` or `suppression_39`."""
    return pl.read_csv(DATA / "dandekar_10x6x4" / "cells.csv")[column].is_not_null().to_numpy()


def cox_kelly() -> ts.Problem:
    """Cox & Kelly (2003), Table 1: four rows, nine columns, seven sensitive cells."""
    frame = pl.read_csv(DATA / "cox_kelly_4x9" / "cells.csv").with_columns(
        pl.col("row", "col").cast(pl.String), pl.col("protection").fill_null(0)
    )
    sizes = {"row": 5, "col": 10}
    dimensions = {d: ts.Hierarchy.from_pairs([(str(n), str(i)) for i in range(1, n)]) for d, n in sizes.items()}
    columns = [name for name in frame.columns if name not in {"row", "col", "value"}]
    table = ts.Table.from_cells(frame, dimensions=dimensions, columns=columns)
    mask = np.asarray(table.columns["sensitive"]) > 0
    return ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.asarray(table.columns["protection"])))


def square(inner: Any) -> ts.Table:
    """A flat two-way table with its totals."""
    full = np.pad(np.asarray(inner, dtype=float), ((0, 1), (0, 1)))
    full[-1, :] = full.sum(axis=0)
    full[:, -1] = full.sum(axis=1)
    codes = [[*map(str, range(1, size)), "Total"] for size in full.shape]
    rows = [
        {"row": r, "column": c, "value": float(full[i, j])}
        for i, r in enumerate(codes[0])
        for j, c in enumerate(codes[1])
    ]
    return ts.Table.from_cells(pl.DataFrame(rows), dimensions=["row", "column"])
