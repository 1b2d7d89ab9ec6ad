"""Magnitude tables made cell by cell, of any size up to ten million: a fifth empty, a tenth sensitive."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.instances.trees import Shape, grid, leaves, size, trees
from benchmarks.registry import Made, instance
from tablesafe.core.equations import roll_up
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table

SHAPES: dict[str, Shape] = {
    "values_2d_100": ((2, 4), (3, 3)),
    "values_2d_1k": ((5, 5), (5, 6)),
    "values_2d_3k": ((7, 7), (7, 7)),
    "values_2d_10k": ((4, 5, 4), (4, 5, 4)),
    "values_2d_30k": ((6, 6, 4), (6, 6, 4)),
    "values_2d_100k": ((6, 6, 8), (6, 6, 8)),
    "values_3d_1k": ((3, 2), (3, 2), (2, 3)),
    "values_3d_10k": ((4, 4), (4, 4), (4, 5)),
    "values_3d_100k": ((5, 8), (5, 8), (5, 8)),
    "values_3d_1m": ((10, 10), (10, 10), (8, 10)),
    "values_4d_1m": ((5, 5), (5, 5), (5, 5), (7, 4)),
    "values_4d_10m": ((6, 6), (6, 6), (7, 6), (10, 10)),
}
SEED = 0
EMPTY, SENSITIVE, LEVEL = 0.2, 0.1, 0.1


def made(shape: Shape, folder: Path) -> Made:
    """Skewed values; a sensitive cell must be hidden by a tenth of its value."""
    random = np.random.default_rng(SEED)
    dimensions = trees(shape)
    codes = grid(leaves(dimensions))
    value = np.where(random.random(len(codes)) < EMPTY, 0, np.rint(np.exp(random.normal(4, 2, len(codes)))))
    codes, sums = roll_up(codes, list(dimensions.values()), {"value": value.astype(np.int64)})
    table = Table.from_codes(codes, sums["value"].astype(float), dimensions)
    inner = (~table.is_total & (table.value > 0)).astype(np.float64)
    mask = random.random(len(table)) < inner / inner.sum() * SENSITIVE * len(table)
    level = np.ceil(LEVEL * table.value)
    return Made(Problem(table, sensitivity=Sensitivity.of(mask, np.minimum(level, table.value), level)))


for _name, _shape in SHAPES.items():
    _words = f"{len(_shape)} hierarchical dimensions, values cell by cell, a tenth of them sensitive"
    instance(_name, _words, size(_shape), partial(made, _shape))
