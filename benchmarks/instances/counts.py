"""Tables of counts: persons in hierarchies of two to six dimensions, and cubes with many small counts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.instances.trees import Shape, grid, leaves, popularity, size, trees
from benchmarks.registry import Made, instance
from tablesafe.core.equations import roll_up
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.rules.counts import Threshold

SHAPES: dict[str, Shape] = {
    "counts_2d_100": ((9,), (9,)),
    "counts_2d_1k": ((4, 6), (4, 8)),
    "counts_2d_10k": ((4, 5, 4), (4, 5, 4)),
    "counts_2d_flat_10k": ((100,), (100,)),
    "counts_2d_flat_150k": ((390,), (390,)),
    "counts_2d_one_tree_150k": ((350,), (35, 12)),
    "counts_2d_30k": ((6, 6, 4), (6, 6, 4)),
    "counts_2d_150k": ((6, 8, 7), (6, 8, 7)),
    "counts_2d_500k": ((20, 20, 20), (10, 5)),
    "counts_3d_100": ((4,), (4,), (3,)),
    "counts_3d_1k": ((9,), (9,), (9,)),
    "counts_3d_5k": ((16,), (16,), (16,)),
    "counts_3d_120k": ((6, 7), (6, 7), (6, 7)),
    "counts_4d_1m": ((5, 5), (5, 5), (5, 5), (7, 4)),
    "counts_5d_10k": ((3,), (3, 2), (4,), (3,), (5, 2)),
    "counts_6d_10k": ((3,), (2,), (3, 2), (2,), (4,), (3,)),
    "counts_4d_10m": ((6, 6), (6, 6), (7, 6), (10, 10)),
}
CUBES: dict[str, tuple[int, ...]] = {
    "cube_3d_200": (5, 5, 4),
    "cube_5d_5k": (6, 5, 4, 4, 3),
    "cube_8d_1m": (10, 8, 6, 5, 4, 4, 3, 2),
}
SEED, SMALL = 0, 3


def persons(shape: Shape, folder: Path, *, mean: float = 3.0) -> Made:
    """A few persons in most cells, none in many, hundreds in some."""
    random = np.random.default_rng(SEED)
    axes = leaves(trees(shape))
    rate = mean * popularity(axes, random, 0.7)
    return _table(shape, random.poisson(random.gamma(1.5, rate / 1.5)))


def cube(sides: tuple[int, ...], folder: Path, *, mean: float = 3.0) -> Made:
    """A hypercube without hierarchies: negative binomial counts, many small ones and a few large."""
    random = np.random.default_rng(SEED)
    return _table(tuple((side,) for side in sides), random.poisson(random.gamma(0.5, 2 * mean, int(np.prod(sides)))))


def _table(shape: Shape, inner: np.ndarray) -> Made:
    """Inner counts with all their totals; those below three are sensitive."""
    dimensions = trees(shape)
    codes, sums = roll_up(grid(leaves(dimensions)), list(dimensions.values()), {"value": inner})
    table = Table.from_codes(codes, sums["value"].astype(float), dimensions)
    table = replace(table, count=table.integers)
    return Made(Problem(table, rules=[Threshold(n=SMALL)]))


for _name, _shape in SHAPES.items():
    instance(_name, f"{len(_shape)} dimensions of persons", size(_shape), partial(persons, _shape))
for _name, _sides in CUBES.items():
    _cells = size(tuple((side,) for side in _sides))
    instance(_name, f"a cube of {len(_sides)} dimensions with small counts", _cells, partial(cube, _sides))
