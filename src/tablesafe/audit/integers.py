"""Integers: what an attacker derives who knows that the values are whole numbers, as counts are.

The exact intervals of the linear program, rounded inwards, are a start. The generalised shuttle narrows them: bounds
go to and fro between the cells of every equation, and of equations combined, until nothing changes (Buzzigoli &
Giusti 1999; Dobra & Fienberg 2000). In components that are networks the linear program has whole vertices, so its
intervals are exact already. Elsewhere an integer program decides, side by side; every whole table that it finds shows
how far all the cells of the component can go.

Fréchet bounds: what the margins of a cube say about its cells, in closed form.

A fast first answer, all in arrays. The bounds are exact for margins that form a decomposable model (two margins that
share a third, chains of them), and valid, if not sharp, for all others (Dobra & Fienberg, PNAS 97 (2000),
11885–11892).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tablesafe.audit.furthest import FurthestWholeMove
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.sums import SumSearch, combined_equations, components
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidInput
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.solve.propagate import are_points, propagate
from tablesafe.work.budget import Budget

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


# -- whole numbers -----------------------------------------------------------------------------------------------------


FEW = 8
"""Open ends that are asked for one by one."""
TOGETHER = 3
"""Tables looked for that take many open ends at once, on each side."""
LOOK_S = 3.0
"""Seconds for each of them."""


@dataclass(frozen=True, eq=False)
class IntegerIntervals:
    """Per cell the least and the most that it can be in any whole table that agrees with the release, in units."""

    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    lower_proven: Mask = field(repr=False)
    """Whether a whole table reaches the bound, so that it is exact; otherwise it is only valid."""
    upper_proven: Mask = field(repr=False)

    @property
    def proven(self) -> Mask:
        """Whether both ends are exact."""
        return np.asarray(self.lower_proven & self.upper_proven)


def integer_intervals(
    system: System,
    wanted: NDArray[np.intp] | None = None,
    *,
    start: tuple[Floats, Floats] | None = None,
    time_limit_s: float | None = None,
) -> IntegerIntervals:
    """The intervals of some unknown cells (by default all) for an attacker who knows that all values are whole.

    `start` holds their exact intervals over the linear program, if these are known already. When the time is out, the
    bounds that are left are valid, but perhaps not the narrowest.
    """
    wanted = np.arange(len(system)) if wanted is None else np.asarray(wanted)
    low, high = propagate(system.matrix, np.ceil(system.lower) - system.truth, np.floor(system.upper) - system.truth)
    if are_points(system.matrix, low, high):
        every = np.ones(len(wanted), dtype=np.bool_)
        return IntegerIntervals((low + system.truth)[wanted], (high + system.truth)[wanted], every, every)
    network = True
    if start is None:
        system = system.within(np.ceil(system.lower), np.floor(system.upper))
        found = exact_intervals(system, wanted)
        start = found.lower, found.upper
    else:
        bounds = np.concatenate([system.lower, system.upper])
        network = bool((bounds == np.rint(bounds)).all())
    deadline = perf_counter() + (np.inf if time_limit_s is None else time_limit_s)
    lower, upper = shuttle(system, *_whole_start(system, wanted, start))
    exact_low, exact_high = lower == system.truth, upper == system.truth
    component = components(system.matrix)
    asked = np.zeros(len(system), dtype=np.bool_)
    asked[wanted] = True
    order = np.argsort(component, kind="stable")
    starts = np.searchsorted(component[order], np.arange(component.max(initial=-1) + 2))
    for number in np.unique(component[wanted]).tolist():
        cells = np.sort(order[starts[number] : starts[number + 1]])
        search = _Component(system, cells, lower[cells], upper[cells], asked[cells], network)
        search.close(deadline)
        lower[cells], upper[cells] = search.lower + system.truth[cells], search.upper + system.truth[cells]
        exact_low[cells], exact_high[cells] = search.proven(-1), search.proven(+1)
    return IntegerIntervals(lower[wanted], upper[wanted], exact_low[wanted], exact_high[wanted])


def shuttle(system: System, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Narrow whole bounds over the equations, and over sums and differences of two of them, until they settle."""
    cube = cube_bounds(system)
    if cube is not None:
        lower, upper = np.maximum(lower, np.ceil(cube[0])), np.minimum(upper, np.floor(cube[1]))
    pairs = combined_equations(system.matrix, SumSearch(max_chain=2))
    every = sparse.vstack([system.matrix.astype(np.int32), pairs], format="csr")
    low, high = propagate(every, lower - system.truth, upper - system.truth)
    return low + system.truth, high + system.truth


def _whole_start(system: System, wanted: NDArray[np.intp], start: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The system's bounds and the intervals known, rounded inwards."""
    lower, upper = system.lower.copy(), system.upper.copy()
    lower[wanted], upper[wanted] = np.maximum(lower[wanted], start[0]), np.minimum(upper[wanted], start[1])
    with np.errstate(invalid="ignore"):
        slack_low = np.where(np.isfinite(lower), 1e-9 * np.maximum(1.0, np.abs(lower)), 0.0)
        slack_high = np.where(np.isfinite(upper), 1e-9 * np.maximum(1.0, np.abs(upper)), 0.0)
    return np.minimum(np.ceil(lower - slack_low), system.truth), np.maximum(np.floor(upper + slack_high), system.truth)


class _Component:
    """The whole tables of one component, as moves from the truth."""

    def __init__(
        self, system: System, cells: NDArray[np.intp], lower: Floats, upper: Floats, asked: Mask, network: bool
    ) -> None:
        columns = system.matrix.tocsc()[:, cells].tocsr()
        self.matrix = sparse.csr_array(columns[np.flatnonzero(np.diff(columns.indptr))])
        self.lower, self.upper = lower - system.truth[cells], upper - system.truth[cells]
        self.asked = asked
        self.least, self.most = np.zeros(len(cells)), np.zeros(len(cells))
        """The furthest moves that some whole table shows."""
        self.network = network and is_network(self.matrix)
        self.left = {+1: asked.copy(), -1: asked.copy()}
        """Ends that the integer program has not been asked for."""

    def proven(self, sign: int) -> Mask:
        """Which ends are exact: shown by a table, without end, or the vertex of a network."""
        bound, seen = (self.upper, self.most) if sign > 0 else (self.lower, self.least)
        return np.asarray((bound == seen) | np.isinf(bound) | (self.asked & self.network))

    def close(self, deadline: float) -> None:
        """Ask the integer program for every end that is not proven, the nearest first."""
        if self.network:
            return
        if self._next() is None:
            return
        program = FurthestWholeMove(self.matrix, self.lower, self.upper)
        self._see_many(program, deadline)
        while (side := self._next()) is not None and perf_counter() < deadline:
            cell, sign = side
            self.left[sign][cell] = False
            found = program.of(cell, sign, Budget(deadline - perf_counter()))
            self._see(found.point)
            if self._learn(cell, sign, found.bound):
                everything = np.arange(len(self.lower))
                program.narrow(everything, self.lower, self.upper)

    def _see_many(self, program: FurthestWholeMove, deadline: float) -> None:
        """Look for tables that take many open ends at once: where values were changed, often all of them."""
        for sign in (+1, -1):
            for _ in range(TOGETHER):
                open_ends = np.flatnonzero(self.left[sign] & ~self.proven(sign))
                left = deadline - perf_counter()
                if len(open_ends) < FEW or left <= 0:
                    break
                self._see(program.together(open_ends, sign, Budget(min(left, LOOK_S))))

    def _see(self, table: Integers | None) -> None:
        """Take note of how far a whole table reaches."""
        if table is not None:
            np.minimum(self.least, table, out=self.least)
            np.maximum(self.most, table, out=self.most)

    def _next(self) -> tuple[int, int] | None:
        """The open end nearest to its bound."""
        best: list[tuple[float, int, int]] = []
        for sign, gap in ((+1, self.upper - self.most), (-1, self.least - self.lower)):
            self.left[sign] &= ~self.proven(sign)
            if self.left[sign].any():
                cell = int(np.where(self.left[sign], gap, np.inf).argmin())
                best.append((float(gap[cell]), cell, sign))
        return min(best)[1:] if best else None

    def _learn(self, cell: int, sign: int, bound: float) -> bool:
        """Take a new bound, and pass it on along the equations; whether anything changed."""
        old = self.upper[cell] if sign > 0 else -self.lower[cell]
        if not bound < old:
            return False
        if sign > 0:
            self.upper[cell] = bound
        else:
            self.lower[cell] = -bound
        self.lower, self.upper = propagate(self.matrix, self.lower, self.upper)
        return True


def is_network(matrix: sparse.csr_array) -> bool:
    """Whether the equations are those of a network, so that whole bounds have whole vertices.

    At most two entries per column, and rows that can be coloured with two colours so that entries of equal sign are in
    rows of different colours, and entries of opposite sign in rows of the same (Heller & Tompkins 1956).
    """
    columns = sparse.csc_array(matrix)
    entries = np.diff(columns.indptr)
    if bool((np.abs(columns.data) != 1).any() or (entries > 2).any()):
        return False
    first = columns.indptr[:-1][entries == 2]
    one, other = columns.indices[first], columns.indices[first + 1]
    differ = (columns.data[first] == columns.data[first + 1]).astype(np.int64)
    rows = matrix.shape[0]
    edges = np.concatenate([one, one + rows]), np.concatenate([other + rows * differ, other + rows * (1 - differ)])
    graph = sparse.coo_array((np.ones(len(edges[0])), edges), shape=(2 * rows, 2 * rows))
    _, colour = connected_components(graph, directed=False)
    return not bool((colour[:rows] == colour[rows:]).any())
