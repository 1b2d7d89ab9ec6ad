"""Which cells a record belongs to: from leaf cells to all their totals, one dimension at a time.

The records' own cells are the nodes of stage 0. Stage d has the cells in which the first d dimensions may stand at any
total, and the others still at leaves; the last stage has the cells of the table.

The codes of a dimension are put in layers, so that a leaf counts in no more than one code of each: the levels of a
tree, or as many as are needed where several trees share their leaves. So each node has, per layer, one total in the
next stage or none. A cell of three dimensions with four levels each has 64 totals, but only 4 + 4 + 4 steps are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, cell_keys
from tablesafe.tabulate.axes import Axis

Steps = NDArray[np.int32]
"""One row per layer, one column per node (and one more, for no node): the total in the next stage, or −1."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """The leaf cells that occur, the steps to their totals, and the cells of the table."""

    keys: Integers = field(repr=False)
    """The leaf cells, as numbered combinations of used leaves, in ascending order: the nodes of stage 0."""
    steps: tuple[Steps, ...] = field(repr=False)
    """From each stage to the next."""
    codes: NDArray[np.int32] = field(repr=False)
    """The codes of the cells of the table, as positions in the hierarchies."""


def make_lattice(
    axes: Sequence[Axis],
    keys: Integers,
    margins: Sequence[frozenset[str]] | None,
    crossed: Sequence[frozenset[str]] = (),
) -> Lattice:
    """All totals of the leaf cells, or those of the wanted margins; of those `crossed` only what has no parts."""
    sizes = [len(axis.hierarchy) for axis in axes]
    codes = _leaf_codes(axes, keys)
    steps = []
    for d, axis in enumerate(axes):
        layers = _layers(axis)
        above = layers[:, codes[:, d]]
        layer, node = np.nonzero(above >= 0)
        wide = codes[node]
        wide[:, d] = above[layer, node]
        wanted = _wanted(wide, axes, d, margins) | _finest(wide, axes, d, crossed)
        layer, node, wide = layer[wanted], node[wanted], wide[wanted]
        _, first, target = np.unique(cell_keys(wide, sizes), return_index=True, return_inverse=True)
        step = np.full((len(layers), len(codes) + 1), -1, dtype=np.int32)
        step[layer, node] = target
        steps.append(step)
        codes = wide[first]
    return Lattice(keys, tuple(steps), codes)


def _leaf_codes(axes: Sequence[Axis], keys: Integers) -> NDArray[np.int32]:
    codes = np.empty((len(keys), len(axes)), dtype=np.int32)
    rest = keys
    for d in range(len(axes) - 1, -1, -1):
        rest, digit = np.divmod(rest, len(axes[d].used))
        codes[:, d] = axes[d].used[digit]
    return codes


def _layers(axis: Axis) -> NDArray[np.int32]:
    """Per layer the code that each leaf in use counts in, or −1; every code is in one layer."""
    leaf_of = np.flatnonzero(~axis.hierarchy.is_total)
    matrix = axis.hierarchy.leaf_matrix[:, np.searchsorted(leaf_of, axis.used)]
    layers: list[NDArray[np.int32]] = []
    for code in np.argsort(-np.diff(matrix.indptr), kind="stable").tolist():
        leaves = axis.used[matrix.indices[matrix.indptr[code] : matrix.indptr[code + 1]]]
        free = next((layer for layer in layers if (layer[leaves] < 0).all()), None)
        if free is None and len(leaves):
            free = np.full(len(axis.hierarchy), -1, dtype=np.int32)
            layers.append(free)
        if free is not None:
            free[leaves] = code
    return np.stack(layers)


def _wanted(
    codes: NDArray[np.int32], axes: Sequence[Axis], d: int, margins: Sequence[frozenset[str]] | None
) -> NDArray[np.bool_]:
    """Nodes that can still lead to a cell of a wanted margin: where the first dimensions outside it are at totals."""
    if margins is None:
        return np.ones(len(codes), dtype=np.bool_)
    at_total = np.column_stack([codes[:, j] == _top(axes[j]) for j in range(d + 1)])
    out = np.zeros(len(codes), dtype=np.bool_)
    for margin in margins:
        outside = [j for j in range(d + 1) if axes[j].name not in margin]
        out |= at_total[:, outside].all(axis=1)
    return out


def _finest(
    codes: NDArray[np.int32], axes: Sequence[Axis], d: int, crossed: Sequence[frozenset[str]]
) -> NDArray[np.bool_]:
    """Nodes that can still lead to a cell that is at leaves of some dimensions and at the totals of the others."""
    out = np.zeros(len(codes), dtype=np.bool_)
    for names in crossed:
        fits = np.ones(len(codes), dtype=np.bool_)
        for j in range(d + 1):
            leaf = ~axes[j].hierarchy.is_total[codes[:, j]]
            fits &= leaf if axes[j].name in names else codes[:, j] == _top(axes[j])
        out |= fits
    return out


def of_margins(
    codes: NDArray[np.int32], axes: Sequence[Axis], margins: Sequence[frozenset[str]] | None
) -> NDArray[np.bool_]:
    """Which cells belong to a wanted margin."""
    return _wanted(codes, axes, len(axes) - 1, margins)


def _top(axis: Axis) -> int:
    total = axis.hierarchy.total
    return -1 if total is None else axis.hierarchy.position(total)


def every_cell(axes: Sequence[Axis], margins: Sequence[frozenset[str]] | None) -> NDArray[np.int32]:
    """Every combination of codes in the wanted margins, empty or not, in ascending order."""
    chosen = [frozenset(axis.name for axis in axes)] if margins is None else margins
    blocks = []
    for margin in chosen:
        spans = [
            np.arange(len(a.hierarchy), dtype=np.int32) if a.name in margin else np.array([_top(a)], np.int32)
            for a in axes
        ]
        blocks.append(np.stack(np.meshgrid(*spans, indexing="ij"), axis=-1).reshape(-1, len(axes)))
    codes = np.concatenate(blocks)
    _, first = np.unique(cell_keys(codes, [len(axis.hierarchy) for axis in axes]), return_index=True)
    return codes[first]
