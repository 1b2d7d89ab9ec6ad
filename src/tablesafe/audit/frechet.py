"""Fréchet bounds: what the margins of a cube say about its cells, in closed form.

A fast first answer, all in arrays. The bounds are exact for margins that form a decomposable model (two margins that
share a third, chains of them), and valid, if not sharp, for all others (Dobra & Fienberg, PNAS 97 (2000), 11885–11892).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.system import System
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidInput
from tablesafe.core.hierarchy import Hierarchy

_LARGEST_CUBE = 16
"""Places of the cube per cell of the table, beyond which a sparse table is not spread out into a cube."""

Axes = tuple[int, ...]

Sums = dict[Axes, Floats]
"""Per set of kept axes one array, with length 1 along the axes that are summed out."""


def frechet(margins: Mapping[Sequence[int], NDArray[np.generic]], shape: Sequence[int]) -> tuple[Floats, Floats]:
    """Lower and upper bounds of the inner cells of a non-negative cube, given some of its margins.

    A margin is keyed by the axes it keeps: `{(0, 1): rows_by_columns, (2,): planes}`. Entries that are not known are
    NaN. For any two sets of axes A and B a cell is at most its margin over A, and at least
    margin(A) + margin(B) − margin(A ∩ B).
    """
    axes = tuple(range(len(shape)))
    lower, upper = _nothing_known(shape)
    for keep, values in margins.items():
        kept = tuple(sorted(keep))
        array = np.asarray(values, dtype=np.float64)
        if len(set(kept)) != len(kept) or not set(kept) <= set(axes) or array.shape != tuple(shape[a] for a in keep):
            raise InvalidInput(
                f"A margin over axes {tuple(keep)} of a cube of shape {tuple(shape)} cannot have shape {array.shape}."
            )
        array = np.transpose(array, [list(keep).index(a) for a in kept]).reshape(lower[kept].shape)
        lower[kept] = np.where(np.isnan(array), 0.0, array)
        upper[kept] = np.where(np.isnan(array), np.inf, array)
    _sharpen(lower, upper, axes)
    return lower[axes], upper[axes]


def cube_bounds(system: System) -> tuple[Floats, Floats] | None:
    """Bounds of every unknown cell of a flat table, unknown margins too; None where the closed form does not apply.

    It needs a product of dimensions with one level each and values that cannot be negative, and a cube that is not much
    larger than the cells it holds.
    """
    table = system.table
    hierarchies = list(table.dimensions.values())
    sizes = [len(h) for h in hierarchies]
    if not hierarchies or not all(map(_is_flat, hierarchies)) or bool((system.lower < 0).any()):
        return None
    if np.prod([float(n) for n in sizes]) > _LARGEST_CUBE * len(table) or bool(table.may_be_negative.any()):
        return None
    low, high = table.integers.astype(np.float64), table.integers.astype(np.float64)
    low[system.cells], high[system.cells] = system.lower, system.upper
    totals = np.column_stack([h.is_total[table.codes[:, d]] for d, h in enumerate(hierarchies)])
    inner = np.column_stack([_rank_of_part(h)[table.codes[:, d]] for d, h in enumerate(hierarchies)])
    lower, upper = _nothing_known([n - 1 for n in sizes])
    axes = tuple(range(len(sizes)))
    upper[axes][...] = 0.0  # a part without a cell is empty
    where: dict[Axes, tuple[NDArray[np.intp], tuple[NDArray[np.intp], ...]]] = {}
    for kept in lower:
        here = np.flatnonzero((totals != np.isin(axes, kept)).all(axis=1))
        where[kept] = here, tuple(np.where(totals[here], 0, inner[here]).T)
        lower[kept][where[kept][1]], upper[kept][where[kept][1]] = low[here], high[here]
    _sharpen(lower, upper, axes)
    for kept, (here, at) in where.items():
        low[here], high[here] = lower[kept][at], upper[kept][at]
    return np.maximum(low[system.cells], system.lower), np.minimum(high[system.cells], system.upper)


def _is_flat(hierarchy: Hierarchy) -> bool:
    """Whether all codes but one are the parts of that one."""
    equations = hierarchy.equations
    return equations.shape[0] == 1 and equations.nnz == len(hierarchy) and int((equations.data < 0).sum()) == 1


def _rank_of_part(hierarchy: Hierarchy) -> NDArray[np.intp]:
    return np.cumsum(~hierarchy.is_total) - 1


def _nothing_known(shape: Sequence[int]) -> tuple[Sums, Sums]:
    lower, upper = {}, {}
    for kept in _subsets(tuple(range(len(shape)))):
        size = [n if a in kept else 1 for a, n in enumerate(shape)]
        lower[kept], upper[kept] = np.zeros(size), np.full(size, np.inf)
    return lower, upper


def _sharpen(lower: Sums, upper: Sums, axes: Axes) -> None:
    """Bound the sums from their parts, then the parts from the sums."""
    for kept in sorted(lower, key=len, reverse=True):
        for axis in set(axes) - set(kept):
            finer = tuple(sorted((*kept, axis)))
            np.maximum(lower[kept], lower[finer].sum(axis=axis, keepdims=True), out=lower[kept])
            np.minimum(upper[kept], upper[finer].sum(axis=axis, keepdims=True), out=upper[kept])
    for kept in sorted(lower, key=len):
        smaller = [part for part in _subsets(kept) if part != kept]
        for part in smaller:
            np.minimum(upper[kept], upper[part], out=upper[kept])
        for one, other in combinations(smaller, 2):
            if set(one) | set(other) == set(kept):
                common = upper[tuple(sorted(set(one) & set(other)))]
                with np.errstate(invalid="ignore"):
                    bound = lower[one] + lower[other] - common
                np.fmax(lower[kept], bound, out=lower[kept])


def _subsets(axes: Axes) -> list[Axes]:
    return [subset for size in range(len(axes) + 1) for subset in combinations(axes, size)]
