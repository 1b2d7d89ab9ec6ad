"""Hierarchies of any size, and the leaf cells of their product."""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Floats
from tablesafe.core.hierarchy import Hierarchy

Shape = tuple[tuple[int, ...], ...]
"""How many parts a code of each level has, for each dimension."""
NAMES = "abcdefgh"


def tree(name: str, fans: tuple[int, ...]) -> Hierarchy:
    """A regular tree: every code of level i has `fans[i]` parts."""
    pairs, level = [], [name]
    for fan in fans:
        pairs += [(parent, f"{parent}.{i}") for parent in level for i in range(fan)]
        level = [f"{parent}.{i}" for parent in level for i in range(fan)]
    return Hierarchy.from_pairs(pairs)


def trees(shape: Shape) -> dict[str, Hierarchy]:
    """A hierarchy per dimension."""
    return {name: tree(name, fans) for name, fans in zip(NAMES, shape, strict=False)}


def leaves(dimensions: dict[str, Hierarchy]) -> list[np.ndarray]:
    """The leaf codes of each dimension."""
    return [np.flatnonzero(~hierarchy.is_total) for hierarchy in dimensions.values()]


def grid(axes: list[np.ndarray]) -> np.ndarray:
    """Every combination of leaf codes, a row each."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1).astype(np.int32)


def popularity(axes: list[np.ndarray], random: np.random.Generator, spread: float) -> Floats:
    """How much there is in each leaf cell relative to the mean: some codes are popular in every dimension."""
    weight = np.ones(1)
    for own in axes:
        weight = np.multiply.outer(weight, random.lognormal(0.0, spread, len(own)))
    flat = weight.ravel()
    return np.asarray(flat / flat.mean(), dtype=np.float64)


def size(shape: Shape) -> int:
    """How many cells a table of this shape has at most, all totals included."""
    cells = 1
    for fans in shape:
        level, codes = 1, 1
        for fan in fans:
            level *= fan
            codes += level
        cells *= codes
    return cells
