"""Tables of counts of many shapes, and what rounding makes of them."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.equations import roll_up
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.methods.round import Round


def cube(inner: np.ndarray[Any, Any]) -> Table:
    """A flat table of any number of dimensions with all its totals."""
    names = [f"d{i}" for i in range(inner.ndim)]
    rows = list(product(*(map(str, range(1, size + 1)) for size in inner.shape)))
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    frame = pl.DataFrame(columns | {"value": inner.ravel().astype(float)})
    return Table.from_cells(frame, dimensions=names, missing_totals="compute")


def one_in_every_other() -> Table:
    """2 × 2 × 2 with one unit in every other cell: base 2 admits no zero-restricted rounding.

    Each plane holds two of the four units and must stay 2, so exactly one of any two becomes 2: but there are four.
    """
    inner = np.zeros((2, 2, 2))
    for cell in ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)):
        inner[cell] = 1
    return cube(inner)


def tree(name: str, fans: tuple[int, ...]) -> Hierarchy:
    """A regular tree: every code of level i has `fans[i]` parts."""
    pairs, level = [], [name]
    for fan in fans:
        pairs += [(parent, f"{parent}.{i}") for parent in level for i in range(fan)]
        level = [f"{parent}.{i}" for parent in level for i in range(fan)]
    return Hierarchy.from_pairs(pairs)


def hierarchy(groups: list[int]) -> Hierarchy:
    """A tree with one group per number: groups of one leaf hang under the total itself."""
    pairs = []
    for g, leaves in enumerate(groups):
        pairs.append(("T", f"g{g}"))
        if leaves > 1:
            pairs += [(f"g{g}", f"g{g}.{leaf}") for leaf in range(leaves)]
    return Hierarchy.from_pairs(pairs)


def hierarchical(shapes: tuple[tuple[int, ...], ...], mean: float, seed: int) -> Table:
    """Random counts in a product of regular trees."""
    random = np.random.default_rng(seed)
    dimensions = {d: tree(d, fans) for d, fans in zip("abcdef", shapes, strict=False)}
    leaves = [np.flatnonzero(~h.is_total) for h in dimensions.values()]
    codes = np.stack([axis.ravel() for axis in np.meshgrid(*leaves, indexing="ij")], axis=1).astype(np.int32)
    codes, columns = roll_up(codes, list(dimensions.values()), {"value": random.poisson(mean, len(codes))})
    return Table.from_codes(codes, columns["value"].astype(float), dimensions)


def rounded(problem: Problem, **options: Any) -> tuple[Release, list[str]]:
    """The release, and what was said about it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        release = Round(**options).protect(problem)
    return release, [str(warning.message) for warning in said]
