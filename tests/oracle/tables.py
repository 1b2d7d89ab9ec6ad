"""Small tables of many structures, as plain matrices: what the oracle and tablesafe are both asked about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from tablesafe.audit.system import System
from tablesafe.core.table import Table


def cube(sizes: Sequence[int]) -> np.ndarray:
    """The equations of an inner cube: every line adds up to a margin; inner cells first, then the margins."""
    inner = np.arange(int(np.prod(sizes))).reshape(sizes)
    lines = [line for axis in range(len(sizes)) for line in np.moveaxis(inner, axis, -1).reshape(-1, sizes[axis])]
    matrix = np.zeros((len(lines), inner.size + len(lines)), dtype=np.int8)
    for row, line in enumerate(lines):
        matrix[row, line] = 1
        matrix[row, inner.size + row] = -1
    return matrix


def sums(members: Sequence[Sequence[int]], leaves: int) -> np.ndarray:
    """The equations of any structure: each total is the sum of some cells before it."""
    matrix = np.zeros((len(members), leaves + len(members)), dtype=np.int8)
    for row, parts in enumerate(members):
        matrix[row, list(parts)] = 1
        matrix[row, leaves + row] = -1
    return matrix


def filled(matrix: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """The values of all cells, from those of the cells that are no total."""
    values = np.concatenate([leaves, np.zeros(matrix.shape[1] - len(leaves), dtype=np.int64)])
    for row in matrix.astype(np.int64):
        total = int(np.flatnonzero(row == -1)[0])
        values[total] = row @ values - row[total] * values[total]
    return values


def system_of(
    matrix: np.ndarray, values: np.ndarray, unknown: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> System:
    """The attacker's system in which some cells are unknown within bounds."""
    table = Table.from_equations(sparse.csr_array(matrix), values.astype(np.float64))
    return System.over(table, np.asarray(unknown, dtype=np.intp), lower.astype(np.float64), upper.astype(np.float64))


def open_system(matrix: np.ndarray, values: np.ndarray, unknown: Sequence[int]) -> System:
    """The same with the usual prior: nothing is negative, nothing has an upper bound."""
    n = len(unknown)
    return system_of(matrix, values, np.array(unknown, dtype=np.intp), np.zeros(n), np.full(n, np.inf))
