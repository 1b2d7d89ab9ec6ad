"""Small changes that keep every equation: the steps of the search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Integers
from tablesafe.methods.adjust.instance import Instance
from tablesafe.solve.exact.nullspace import null_space

LARGEST = 64
"""The largest coefficient of a cycle."""
GENERATIONS = 3
"""Times that cycles are joined in pairs to make further ones."""
POOL = 8
"""Cycles beside each member of the basis."""


@dataclass(frozen=True, eq=False)
class Cycles:
    """Whole vectors x with `matrix @ x = 0`, one after the other: cell numbers and coefficients."""

    start: Integers = field(repr=False)
    cell: Integers = field(repr=False)
    coefficient: Integers = field(repr=False)

    def __len__(self) -> int:
        return len(self.start) - 1

    @classmethod
    def of(cls, instance: Instance, random: np.random.Generator, pool: int = POOL) -> Self | None:
        """A basis of all changes, and differences of its members that touch few cells; None where there is no basis."""
        basis = basis_of(instance)
        return None if basis is None else cls.beside(basis, random, pool)

    @classmethod
    def beside(cls, basis: sparse.csc_array, random: np.random.Generator, times: int) -> Self:
        """A basis and up to so many times as many differences of its members."""
        pool = _combined(basis, random, times * basis.shape[1])
        return cls(pool.indptr.astype(np.int64), pool.indices.astype(np.int64), pool.data.astype(np.int64))


def basis_of(instance: Instance) -> sparse.csc_array | None:
    """A whole basis of the changes of the cells that have room, a column each."""
    free = np.flatnonzero((instance.up > 0) | (instance.down > 0))
    matrix = sparse.csr_array(instance.matrix[:, free])
    rows = np.flatnonzero(np.diff(matrix.indptr))
    if not rows.size:
        within = sparse.eye_array(len(free), dtype=np.int64, format="coo")
    else:
        space = null_space(sparse.csr_array(matrix[rows].astype(np.int64)))
        if space is None:
            return None
        moving = np.flatnonzero(space.form >= 0)
        part = sparse.coo_array(space.forms[space.form[moving]])
        within = _whole_columns(
            sparse.coo_array((part.data, (moving[part.row], part.col)), shape=(len(free), space.dimension)),
            space.divisor[moving[part.row]],
        )
    whole = sparse.coo_array((within.data, (free[within.row], within.col)), (len(instance.cells), within.shape[1]))
    return _small(sparse.csc_array(whole.tocsc()))


def _whole_columns(part: sparse.coo_array, divisor: Integers) -> sparse.coo_array:
    """Columns of fractions `data / divisor`, each multiplied by its common denominator."""
    data = part.data.astype(np.int64)
    common = np.gcd(data, divisor)
    top, bottom = data // common, divisor // common
    top, bottom = np.where(bottom < 0, -top, top), np.abs(bottom)
    scale = np.ones(part.shape[1], dtype=np.int64)
    np.lcm.at(scale, part.col, bottom)
    return sparse.coo_array((top * (scale[part.col] // bottom), (part.row, part.col)), shape=part.shape)


def _small(columns: sparse.csc_array) -> sparse.csc_array:
    """The columns whose coefficients are small, without those that are empty."""
    sizes = np.maximum.reduceat(np.abs(columns.data), columns.indptr[:-1][np.diff(columns.indptr) > 0])
    there = np.flatnonzero(np.diff(columns.indptr) > 0)
    return sparse.csc_array(columns[:, there[sizes <= LARGEST]])


def _combined(basis: sparse.csc_array, random: np.random.Generator, most: int) -> sparse.csc_array:
    """The basis, and sums and differences of pairs that cancel somewhere: in two ways these are the rectangles."""
    pool = basis
    for _ in range(GENERATIONS):
        count = pool.shape[1]
        if count >= most or count < 2:
            break
        want = min(4 * count, 2 * (most - count))
        one, other = random.integers(count, size=(2, want))
        near = _neighbour(pool, one, random)
        other = np.where(random.random(want) < 0.7, near, other)
        sign = np.where(random.random(want) < 0.5, 1, -1)
        mixed = sparse.csc_array(pool[:, one] + pool[:, other] @ sparse.diags_array(sign, dtype=np.int64))
        mixed.eliminate_zeros()
        length = np.diff(pool.indptr)
        shorter = np.diff(mixed.indptr)
        good = (shorter > 0) & (shorter < length[one] + length[other] - 1) & (one != other)
        pool = _distinct(sparse.csc_array(sparse.hstack([pool, _small_or_none(mixed[:, np.flatnonzero(good)])])))
    return sparse.csc_array(pool[:, :most]) if pool.shape[1] > most else pool


def _small_or_none(columns: sparse.csc_array) -> sparse.csc_array:
    return _small(sparse.csc_array(columns)) if columns.nnz else sparse.csc_array(columns)


def _neighbour(pool: sparse.csc_array, one: Integers, random: np.random.Generator) -> Integers:
    """For each column another that shares one of its cells."""
    rows = pool.tocsr()
    length = np.diff(pool.indptr)[one]
    cell = pool.indices[pool.indptr[one] + (random.random(len(one)) * length).astype(np.int64)]
    width = np.diff(rows.indptr)[cell]
    return np.asarray(rows.indices[rows.indptr[cell] + (random.random(len(one)) * width).astype(np.int64)])


def _distinct(columns: sparse.csc_array) -> sparse.csc_array:
    """Every column once, whatever its sign."""
    weight = np.random.default_rng(1).integers(1, 2**40, size=columns.shape[0], dtype=np.int64)
    with np.errstate(over="ignore"):
        key = np.abs(np.asarray(columns.T.astype(np.int64) @ weight))
    _, first = np.unique(key, return_index=True)
    return sparse.csc_array(columns[:, np.sort(first)])
