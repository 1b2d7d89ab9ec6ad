"""Tables with a pattern: what audits and attacks work on. No sum withholds one cell alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.instances.files import read
from benchmarks.instances.trees import Shape, grid, leaves, size, trees
from benchmarks.registry import Made, instance
from tablesafe.core.equations import Mask, cell_keys, roll_up
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table

SHAPES: dict[str, Shape] = {
    "pattern_3d_200": ((2, 2), (2, 3), (4,)),
    "pattern_3d_1k": ((3, 2), (3, 2), (2, 3)),
    "pattern_3d_3k": ((3, 3), (3, 3), (3, 4)),
    "pattern_3d_10k": ((4, 4), (3, 5), (4, 5)),
    "pattern_3d_30k": ((4, 6), (4, 6), (5, 6)),
    "pattern_3d_100k": ((5, 8), (5, 8), (5, 8)),
    "pattern_3d_300k": ((6, 10), (6, 10), (6, 9)),
    "pattern_3d_1m": ((6, 14), (8, 12), (8, 12)),
}
SEED, WITHHELD, SENSITIVE, BOUND = 1, 0.14, 0.1, 1.5
SCATTERED = {"scattered_3d_20": ("bench/3d_20", 0.18), "scattered_h_2k": ("bench/h_2k", 0.18)}


def corners(shape: Shape, folder: Path) -> Made:
    """A seventh of the cells withheld, a tenth of these sensitive: the corners of random cubes of leaf cells."""
    random = np.random.default_rng(SEED)
    dimensions = trees(shape)
    codes = grid(leaves(dimensions))
    values = np.ceil(random.lognormal(5, 2, len(codes))).astype(np.int64)
    codes, sums = roll_up(codes, list(dimensions.values()), {"value": values})
    table = Table.from_codes(codes, sums["value"].astype(float), dimensions)
    hidden = _cubes(codes, dimensions, random, max(1, int(WITHHELD * len(table) / 2 ** len(shape))))
    chosen = hidden & (np.random.default_rng(SEED).random(len(table)) < SENSITIVE)
    most = BOUND * float(table.value.max())  # other programs cannot do without a bound
    return Made(Problem(table, sensitivity=Sensitivity.of(chosen, 0.1 * table.value), upper=most), hidden)


def _cubes(codes: np.ndarray, dimensions: dict[str, Hierarchy], random: np.random.Generator, count: int) -> Mask:
    """Two leaves of one parent in every dimension, all combinations: no cell is alone."""
    picked = []
    for hierarchy in dimensions.values():
        low = [parts for _, parts, _ in hierarchy._members() if not hierarchy.is_total[parts].any()]
        picked.append(np.array([random.choice(low[i], 2, replace=False) for i in random.integers(0, len(low), count)]))
    sides = np.indices((2,) * len(picked)).reshape(len(picked), -1).T
    corner = [np.column_stack([two[:, i] for two, i in zip(picked, side, strict=True)]) for side in sides]
    sizes = [len(hierarchy) for hierarchy in dimensions.values()]
    return np.isin(cell_keys(codes, sizes), cell_keys(np.concatenate(corner).astype(np.int32), sizes))


def scattered(name: str, share: float, folder: Path) -> Made:
    """An instance of a file with its sensitive cells withheld, and a share of the others: one large component."""
    problem = read(name, folder).table_problem
    random = np.random.default_rng(SEED)
    return Made(problem, (problem.sensitivity.mask | (random.random(len(problem.table)) < share)) & ~problem.frozen)


for _name, _shape in SHAPES.items():
    instance(_name, "three hierarchies, a seventh of the cells withheld", size(_shape), partial(corners, _shape))
for _name, (_file, _share) in SCATTERED.items():
    _cells = 9_261 if _file == "bench/3d_20" else 2_535
    instance(_name, f"{_file} with {_share:.0%} withheld at random", _cells, partial(scattered, _file, _share))
