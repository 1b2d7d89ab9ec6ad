"""An attacker of linked views that shares no code with tablesafe: fresh linear programs over the whole cube."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf

import numpy as np
from scipy.optimize import linprog

Known = Sequence[tuple[tuple[int, ...], tuple[int, ...], float]]
"""What is published: the axes of a margin, a place in it, and the value there."""


def published(cube: np.ndarray, axes: tuple[int, ...], withheld: np.ndarray | None = None) -> Known:
    """The cells of a margin of a cube that are not withheld."""
    summed = tuple(d for d in range(cube.ndim) if d not in axes)
    margin = cube.sum(axis=summed)
    return [(axes, at, float(margin[at])) for at in np.ndindex(margin.shape) if withheld is None or not withheld[at]]


def interval(shape: Sequence[int], known: Known, axes: tuple[int, ...], at: tuple[int, ...]) -> tuple[float, float]:
    """What the attacker can derive about one cell of a margin, when no cell of the cube is negative."""
    cells = list(product(*map(range, shape)))
    row = _row(cells, axes, at)
    if not known:
        return 0.0, inf
    left = np.array([_row(cells, a, p) for a, p, _ in known])
    right = np.array([value for _, _, value in known])
    ends = []
    for sign in (1.0, -1.0):
        found = linprog(sign * row, A_eq=left, b_eq=right, bounds=(0, None), method="highs")
        if found.status == 3:
            ends.append(-sign * inf)
        else:
            assert found.status == 0, found.message
            ends.append(sign * found.fun)
    return ends[0], ends[1]


def _row(cells: list[tuple[int, ...]], axes: tuple[int, ...], at: tuple[int, ...]) -> np.ndarray:
    return np.array([all(cell[d] == p for d, p in zip(axes, at, strict=True)) for cell in cells], dtype=float)
