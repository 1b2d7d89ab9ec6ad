"""Equations between cells as arrays: products of hierarchies, sums over them, and values as exact integers.

Nothing here loops over cells in Python: ten million cells must fit and be fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.errors import InvalidTable
from tablesafe.files.read import LARGEST_EXACT

if TYPE_CHECKING:
    from scipy import sparse

    from tablesafe.core.hierarchy import Hierarchy

Floats = NDArray[np.float64]

Integers = NDArray[np.int64]

Mask = NDArray[np.bool_]

MOST_DECIMALS = 9
"""Decimals that are looked for in numbers which do not say how many they have."""


@dataclass(frozen=True, slots=True)
class ProductEquations:
    """The equations of cells in a product of hierarchies, and the first cell whose total is missing."""

    equations: sparse.csr_array
    totals: Integers
    orphan_cell: int | None = None
    orphan_total: str = ""
    orphan_dimension: int = 0


def product_equations(codes: NDArray[np.int32], hierarchies: Sequence[Hierarchy]) -> ProductEquations:
    """Every equation of every hierarchy, at every combination of codes of the other dimensions that has cells.

    A part without a cell is empty and left out; a total without any part is simply not broken down there.
    """
    from scipy import sparse

    n, sizes = len(codes), [len(h) for h in hierarchies]
    blocks: list[sparse.csr_array] = []
    totals: list[Integers] = []
    orphan: tuple[int, str, int] | None = None
    for d, hierarchy in enumerate(hierarchies):
        if hierarchy.equations.shape[0] == 0:
            continue
        by_code = hierarchy.equations.tocsc()
        per_cell = np.diff(by_code.indptr)[codes[:, d]]
        cell = np.repeat(np.arange(n, dtype=np.int64), per_cell)
        start = np.repeat(by_code.indptr[codes[:, d]] - (np.cumsum(per_cell) - per_cell), per_cell)
        entry = start + np.arange(len(cell))
        equation, sign = by_code.indices[entry], by_code.data[entry]
        rest = cell_keys(np.delete(codes, d, axis=1), sizes[:d] + sizes[d + 1 :])
        if rest.size and int(rest.max()) > (2**62) // hierarchy.equations.shape[0]:
            rest = np.unique(rest, return_inverse=True)[1]
        key = rest[cell] * hierarchy.equations.shape[0] + equation
        _, row = np.unique(key, return_inverse=True)
        rows = int(row.max(initial=-1)) + 1
        is_total = hierarchy.totals[equation] == codes[cell, d]
        total = np.full(rows, -1, dtype=np.int64)
        total[row[is_total]] = cell[is_total]
        parts = np.bincount(row[~is_total], minlength=rows)
        lost = np.flatnonzero((total < 0) & (parts > 0))
        if lost.size and orphan is None:
            at = int(np.flatnonzero(row == lost[0])[0])
            orphan = (int(cell[at]), hierarchy.codes[int(hierarchy.totals[equation[at]])], d)
        keep = (total >= 0) & (parts > 0)
        renumber = np.cumsum(keep) - 1
        used = keep[row]
        blocks.append(
            sparse.csr_array(
                (sign[used].astype(np.int8), (renumber[row[used]], cell[used])),
                shape=(int(keep.sum()), n),
                dtype=np.int8,
            )
        )
        totals.append(total[keep])
    if not blocks:
        return ProductEquations(sparse.csr_array((0, n), dtype=np.int8), np.zeros(0, np.int64))
    matrix = sparse.vstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]
    return ProductEquations(sparse.csr_array(matrix), np.concatenate(totals), *(orphan or ()))


def equations_across_gaps(codes: NDArray[np.int32], hierarchies: Sequence[Hierarchy]) -> ProductEquations:
    """The equations of the cells that are there, also those that pass over totals that are not.

    Where regions and the whole are published, but not the parts of the country between them, the whole is still the
    sum of the regions: everybody who knows the hierarchy can add them up. Each absent total that lies between cells is
    replaced by its parts in every equation that it is in.
    """
    product = product_equations(codes, hierarchies)
    absent = codes[:0] if product.orphan_cell is None else _absent_between(codes, hierarchies)
    if not len(absent):
        return product
    from scipy import sparse

    n = len(codes)
    whole = product_equations(np.concatenate([codes, absent]), hierarchies)
    matrix = whole.equations.astype(np.int64)
    defining = np.full(len(absent), -1, dtype=np.int64)
    rows = np.flatnonzero(whole.totals >= n)[::-1]
    defining[whole.totals[rows] - n] = rows
    own, parts = matrix[defining][:, :n], matrix[defining][:, n:] + sparse.eye_array(len(absent), dtype=np.int64)
    sums, done = own, False
    while not done:  # once a level
        deeper = sparse.csr_array(own + parts @ sums)
        sums, done = deeper, (deeper != sums).nnz == 0
    closed = sparse.csr_array(matrix[:, :n] + matrix[:, n:] @ sums)
    closed.eliminate_zeros()
    closed = closed[np.flatnonzero(np.diff(closed.indptr))]
    closed = closed[distinct_rows(closed)]
    totals = _negative_members(closed)
    turned = totals < 0
    closed.data *= np.repeat(np.where(turned, -1, 1), np.diff(closed.indptr))
    totals[turned] = _negative_members(closed[turned])
    return ProductEquations(
        closed.astype(np.int8), totals, product.orphan_cell, product.orphan_total, product.orphan_dimension
    )


def _negative_members(matrix: sparse.csr_array) -> Integers:
    """The first cell with −1 in each row, one that is a total of several cells if there is such; −1 without any."""
    coo = matrix.tocoo()
    total = np.full(matrix.shape[0], -1, dtype=np.int64)
    alone = np.bincount(coo.row, coo.data == -1, minlength=matrix.shape[0]) == 1
    usual = np.zeros(matrix.shape[1], dtype=np.bool_)
    usual[coo.col[(coo.data == -1) & alone[coo.row]]] = True
    for some in ((coo.data == -1), (coo.data == -1) & usual[coo.col]):
        total[coo.row[some][::-1]] = coo.col[some][::-1]
    return total


def _absent_between(codes: NDArray[np.int32], hierarchies: Sequence[Hierarchy]) -> NDArray[np.int32]:
    """The cells that are not there, but have a part that is there and are part of a cell that is."""
    sizes = [len(tree) for tree in hierarchies]
    every = codes
    for d, tree in enumerate(hierarchies):
        cell, above = _with_totals(every[:, d], tree)
        wide = every[cell]
        wide[:, d] = above
        _, first = np.unique(cell_keys(wide, sizes), return_index=True)
        every = wide[np.sort(first)]
    keys = cell_keys(np.concatenate([every, codes]), sizes)
    own = np.isin(keys[: len(every)], keys[len(every) :])
    below = own.copy()
    for d, tree in enumerate(hierarchies):
        cell, above = _with_totals(every[:, d], tree)
        wide = every[cell]
        wide[:, d] = above
        keys = cell_keys(np.concatenate([every, wide]), sizes)
        order = np.argsort(keys[: len(every)], kind="stable")
        place = order[np.searchsorted(keys[: len(every)][order], keys[len(every) :])]
        reached = below.copy()
        np.logical_or.at(reached, cell, below[place])
        below = reached
    return np.ascontiguousarray(every[below & ~own])


def _with_totals(codes: NDArray[np.int32], tree: Hierarchy) -> tuple[Integers, NDArray[np.int32]]:
    """Each code with itself and every code that it is part of: which of the codes it was, and the other one."""
    from scipy import sparse

    rows = np.repeat(np.arange(tree.equations.shape[0]), np.diff(tree.equations.indptr))
    total, part = tree.totals[rows], tree.equations.indices
    one_up = sparse.csr_array((np.ones(len(part), np.bool_), (part, total)), shape=(len(tree), len(tree)))
    up = sparse.csr_array(sparse.eye_array(len(tree), dtype=np.bool_) + one_up).astype(np.bool_)
    while True:  # paths twice as long each time
        longer = sparse.csr_array(up @ up).astype(np.bool_)
        if longer.nnz == up.nnz:
            break
        up = longer
    times = np.diff(up.indptr)[codes]
    cell = np.repeat(np.arange(len(codes)), times)
    start = np.repeat(up.indptr[codes] - (np.cumsum(times) - times), times)
    return cell, up.indices[start + np.arange(len(cell))].astype(np.int32)


def cell_keys(codes: NDArray[np.int32], sizes: Sequence[int]) -> Integers:
    """One number per combination of codes, equal exactly when the codes are."""
    key = np.zeros(len(codes), dtype=np.int64)
    span = 1
    for d, size in enumerate(sizes):
        if span * size >= 2**62:
            _, key = np.unique(key, return_inverse=True)
            span = int(key.max(initial=0)) + 1
        key = key * size + codes[:, d]
        span *= size
    return key


def roll_up(
    codes: NDArray[np.int32], hierarchies: Sequence[Hierarchy], columns: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.int32], dict[str, NDArray[Any]]]:
    """Add up the leaf cells into every cell that has any: dimension by dimension, all in arrays."""
    leaf = np.ones(len(codes), dtype=np.bool_)
    for d, hierarchy in enumerate(hierarchies):
        leaf &= ~hierarchy.is_total[codes[:, d]]
    codes, sums = codes[leaf], {name: column[leaf] for name, column in columns.items()}
    sizes = [len(h) for h in hierarchies]
    for d, hierarchy in enumerate(hierarchies):
        up = hierarchy.leaf_matrix.T.tocsr()
        column_of_leaf = np.full(len(hierarchy), -1, dtype=np.int64)
        column_of_leaf[~hierarchy.is_total] = np.arange(up.shape[0])
        leaves = column_of_leaf[codes[:, d]]
        per_cell = np.diff(up.indptr)[leaves]
        cell = np.repeat(np.arange(len(codes)), per_cell)
        start = np.repeat(up.indptr[leaves] - (np.cumsum(per_cell) - per_cell), per_cell)
        entry = start + np.arange(len(cell))
        wide = codes[cell]
        wide[:, d] = up.indices[entry]
        times = up.data[entry]
        _, first, group = np.unique(cell_keys(wide, sizes), return_index=True, return_inverse=True)
        sums = {name: _grouped_sum(column[cell] * times, group, len(first)) for name, column in sums.items()}
        codes = wide[first]
    return codes, sums


def distinct_rows(matrix: sparse.csr_array) -> NDArray[np.intp]:
    """The first of each set of equal rows, in order; by two independent 64-bit hashes."""
    random = np.random.default_rng(20240229)
    weights = random.integers(1, 2**62, size=(matrix.shape[1], 2), dtype=np.int64)
    with np.errstate(over="ignore"):
        hashes = np.column_stack([matrix.astype(np.int64) @ weights[:, 0], matrix.astype(np.int64) @ weights[:, 1]])
    _, first = np.unique(hashes, axis=0, return_index=True)
    return np.sort(first)


def _grouped_sum(values: NDArray[Any], group: Integers, n: int) -> NDArray[Any]:
    if np.issubdtype(values.dtype, np.integer):
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(n))
        return np.add.reduceat(values[order], starts) if n else values[:0]
    return np.bincount(group, weights=values, minlength=n)


def to_integers(values: Floats, decimals: int | None = None) -> tuple[Integers, int, bool]:
    """Scale values to whole numbers: as few decimals as hold them all, or as many as floats can add exactly.

    Returns the integers, the decimals, and whether nothing was rounded beyond the noise of floating point.
    """
    values = np.asarray(values, dtype=np.float64)
    largest = float(np.abs(values).max(initial=0.0))
    room = 15 if largest == 0 else int(np.floor(np.log10(LARGEST_EXACT / 8 / max(largest, 1e-300))))
    if decimals is None:
        for d in range(min(room, 9) + 1):
            rounded = np.round(values, d)
            if bool((np.abs(values - rounded) <= 3.6e-15 * np.abs(values)).all()):
                return np.rint(rounded * 10.0**d).astype(np.int64), d, True
        decimals = max(0, min(room, 15))
    if decimals > room:
        raise InvalidTable(
            f"Values up to {largest:,.0f} with {decimals} decimals are too large to add exactly.",
            hint="use a larger unit (thousands, millions).",
        )
    integers = np.rint(values * 10.0**decimals)
    exact = bool((np.abs(values * 10.0**decimals - integers) <= 1e-6).all())
    return integers.astype(np.int64), decimals, exact


def rescaled(integers: Integers, more: int) -> Integers:
    """The same values with so many decimals more; refuses what floats do not hold exactly, and 64 bits not at all."""
    largest = int(np.abs(integers).max(initial=0))
    if largest * 10**more > LARGEST_EXACT:
        raise InvalidTable(
            f"Some values are too large to be put beside others with {more} decimals more: they cannot be added "
            f"exactly.",
            hint="use a larger unit (thousands, millions), or fewer decimals in the other table.",
        )
    return integers * np.int64(10**more) if largest else integers
