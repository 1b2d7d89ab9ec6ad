"""Tables printed in papers, from the data of the tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.registry import Made, instance
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table

DATA = Path(__file__).resolve().parent.parent.parent / "tests" / "papers" / "data"
COX_KELLY = (
    "min_sum_abs", "lp_variance", "lp_correlation", "lp_regression", "tabu_variance", "tabu_correlation", "tabu_slope",
)  # fmt: skip
"""The adjusted tables that Cox & Kelly print."""
SYNTHETIC = "synthetic_value_2002"
"""The adjusted table that Dandekar & Cox print."""


def dandekar(folder: Path) -> Made:
    """Table 1 of Dandekar & Cox (2002)."""
    return _made("dandekar_10x6x4", {"col": 10, "row": 6, "level": 4}, (SYNTHETIC,))


def cox_kelly(folder: Path) -> Made:
    """The 4 × 9 table of Cox & Kelly (2003)."""
    return _made("cox_kelly_4x9", {"row": 5, "col": 10}, COX_KELLY)


def _made(name: str, sizes: dict[str, int], printed: tuple[str, ...]) -> Made:
    """A printed table, with the adjusted tables printed beside it as columns."""
    frame = pl.read_csv(DATA / name / "cells.csv").with_columns(
        pl.col(*sizes).cast(pl.String), pl.col("protection").fill_null(0)
    )
    dimensions = {d: Hierarchy.from_pairs([(str(n), str(i)) for i in range(1, n)]) for d, n in sizes.items()}
    table = Table.from_cells(frame, dimensions=dimensions, columns=["sensitive", "protection", *printed])
    mask = np.asarray(table.columns["sensitive"]) > 0
    return Made(Problem(table, sensitivity=Sensitivity.of(mask, np.asarray(table.columns["protection"]))))


instance("dandekar_10x6x4", "Dandekar & Cox (2002), Table 1", 240, dandekar)
instance("cox_kelly_4x9", "Cox & Kelly (2003), the 4 × 9 table", 50, cox_kelly)
