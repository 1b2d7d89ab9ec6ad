"""Magnitude tables of skewed firms, tabulated from records, sensitive by a threshold and the p% rule."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.instances.trees import Shape, leaves, popularity, size, trees
from benchmarks.registry import Made, instance
from tablesafe.core.problem import Problem
from tablesafe.rules import PPercent, Threshold
from tablesafe.tabulate import tabulate

SHAPES: dict[str, Shape] = {
    "firms_2d_100": ((3, 2), (3, 3)),
    "firms_2d_300": ((3, 4), (4, 3)),
    "firms_2d_1k": ((4, 6), (4, 8)),
    "firms_2d_5k": ((3, 4, 5), (3, 4, 5)),
    "firms_2d_20k": ((4, 5, 6), (4, 5, 6)),
    "firms_2d_60k": ((6, 6, 6), (6, 6, 6)),
    "firms_2d_250k": ((7, 8, 8), (7, 8, 8)),
    "firms_3d_1k": ((3, 2), (3, 2), (2, 3)),
    "firms_3d_5k": ((3, 4), (3, 4), (3, 5)),
    "firms_4d_5k": ((3, 2), (3, 2), (3, 2), (5,)),
    "firms_4d_20k": ((3, 3), (3, 3), (4, 2), (11,)),
    "firms_4d_100k": ((4, 4), (4, 4), (4, 4), (11,)),
    "firms_4d_1m": ((5, 5), (5, 5), (5, 5), (7, 4)),
    "firms_5d_10k": ((3,), (3, 2), (4,), (3,), (5, 2)),
    "firms_6d_10k": ((3,), (2,), (3, 2), (2,), (4,), (3,)),
}
SEED = 1


def made(shape: Shape, folder: Path, *, firms: float = 12.0) -> Made:
    """Cells with a few firms, some of them dominated by one; a few cells are empty."""
    random = np.random.default_rng(SEED)
    dimensions = trees(shape)
    axes = leaves(dimensions)
    mean = firms * popularity(axes, random, 0.5)
    count = random.poisson(random.gamma(1.5, mean / 1.5)) + (random.random(mean.size) < 0.6)
    cell = np.repeat(np.arange(mean.size), count)
    place = np.unravel_index(cell, tuple(len(own) for own in axes))
    codes = {
        name: pl.Series(tree.codes, dtype=pl.String).gather(own[at].astype(np.uint32))
        for (name, tree), own, at in zip(dimensions.items(), axes, place, strict=True)
    }
    amounts = {"firm": np.arange(len(cell)), "turnover": np.ceil(random.lognormal(4.0, 1.2, len(cell)))}
    table = tabulate(
        pl.DataFrame(codes | amounts), dimensions=dimensions, value="turnover", respondent="firm", largest=3
    )
    return Made(Problem(table, rules=[Threshold(n=3), PPercent(p=10)]))


for _name, _shape in SHAPES.items():
    _words = f"{len(_shape)} hierarchical dimensions of skewed firms, threshold and p%"
    instance(_name, _words, size(_shape), partial(made, _shape))
