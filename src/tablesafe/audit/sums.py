"""Sums of unknown cells that the release gives away: constant over all tables that agree with it.

Once the cells are set aside that have only one possible value, a sum is constant exactly when it is a combination of
the equations, that is, when it vanishes on the null space of each component. Three searches, each bounded:

- every equation whose unknown cells stand on one side: its remainder;
- chains: equations added to and subtracted from each other where they share cells, up to `max_chain` of them;
- the null space: all pairs, and in components of up to `max_component` cells all triples, whatever the chain.

Only sums count, no differences: a sum has contributors, a difference has none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers, Mask, distinct_rows
from tablesafe.core.errors import Interrupted, InvalidOption
from tablesafe.solve.highs import Model
from tablesafe.solve.program import Columns
from tablesafe.solve.propagate import are_points, propagate
from tablesafe.work.budget import ENDLESS, Budget
from tablesafe.work.stopping import overdue

_PROJECTIONS, _SPARE = 3, 3
"""Random null vectors: a chance agreement of all three to twelve digits does not happen. And further ones: of these are
made the vectors that are left when cells are published."""
_SURE, _NOTHING = 1e-4, 1e-10
"""Singular values that count, and those that are rounding; between them nobody can tell."""
_LARGEST_DENOMINATOR = 60
"""Coefficients of a sum that can be derived are fractions with denominators up to this; checked in whole numbers."""
FACTORED = 20_000
"""Equations beyond which null vectors are found without a factorisation."""
SETTLED, STEPS, AGAIN = 1e-11, 20_000, 3
"""By how much these may break an equation, steps at most, and how often the search for them begins anew."""
LOOK, TINY = 50, 1e-300
"""Steps between two looks at whether the user waits, and what stands for zero below a fraction."""
STRIDE = 2_000
"""Combinations that are extended between two looks at the time."""
_EQUAL = 1e-8
"""Null vectors have entries around 1, computed to about 1e-14."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumSearch:
    """How far to look for sums that the release gives away."""

    max_terms: int = field(default=12, metadata={"help": "cells in a sum found by a chain or in the null space"})
    max_chain: int = field(default=4, metadata={"help": "equations combined in a chain"})
    max_sums: int = field(default=100_000, metadata={"help": "combinations kept at each step of the chains"})
    max_component: int = field(default=600, metadata={"help": "cells of a component in which all triples are tried"})

    def __post_init__(self) -> None:
        for name in ("max_terms", "max_chain", "max_sums", "max_component"):
            if getattr(self, name) < 1:
                raise InvalidOption(f"SumSearch.{name} must be at least 1, got {getattr(self, name)!r}.")


@dataclass(frozen=True, eq=False)
class ConstantSums:
    """Sums that are constant over all feasible tables, one per row, and how each follows."""

    cells: sparse.csr_array = field(repr=False)
    """Ones at the unknown cells of each sum."""
    combination: sparse.csr_array = field(repr=False)
    """The multiple of each of the system's equations that gives the sum; all zero where only the null space told."""
    matrix: sparse.csr_array = field(repr=False)
    """The system's equations over the cells that are not fixed."""
    fixed: Mask = field(repr=False)
    """Unknown cells that have one possible value only, and are therefore no part of any sum."""
    cut: bool = False
    """Whether the search met a limit, so that there may be more."""
    late: bool = False
    """Whether the time was over before its end."""
    known: KnownSums | None = field(default=None, repr=False)
    """What it takes to find those that another system adds."""
    beyond: bool = False
    """Whether these are only those that were not known before."""

    def __len__(self) -> int:
        return int(self.cells.shape[0])

    @property
    def rows(self) -> NDArray[np.intp]:
        """The equation of which each sum is the remainder; −1 for the others."""
        entries = np.diff(self.combination.indptr)
        out = np.full(len(self), -1, dtype=np.intp)
        alone = entries == 1
        out[alone] = self.combination.indices[self.combination.indptr[:-1][alone]]
        return out

    def combination_of(self, number: int, budget: Budget = ENDLESS) -> dict[int, Fraction]:
        """The multiples of the system's equations that add up to a sum, fixed cells apart; empty if none was found.

        What the null space told needs a search: as little of as few equations as possible, in growing neighbourhoods,
        while there is time.
        """
        span = slice(self.combination.indptr[number], self.combination.indptr[number + 1])
        if span.start < span.stop:
            used = zip(self.combination.indices[span].tolist(), self.combination.data[span].tolist(), strict=True)
            return {row: Fraction(size) for row, size in used}
        cells = self.cells.indices[self.cells.indptr[number] : self.cells.indptr[number + 1]]
        by_cell = self.matrix.tocsc()
        near, before = np.unique(by_cell[:, cells].indices), 0
        while len(near) > before and not budget.over:
            found = _lightest(self.matrix[near], cells, budget)
            if found is not None:
                return {int(near[row]): size for row, size in found.items()}
            before = len(near)
            near = np.unique(by_cell[:, np.unique(self.matrix[near].indices)].indices)
        return {}


@dataclass(frozen=True, eq=False)
class KnownSums:
    """A system whose sums were searched for: of one in which less is unknown, only what that adds is looked for."""

    system: System = field(repr=False)
    vectors: Floats = field(repr=False)
    """Random vectors of the null space, one column each."""
    fixed: Mask = field(repr=False)
    cut: bool
    """Whether the search met a limit."""

    def changed(self, system: System, fixed: Mask) -> Mask | None:
        """Which rows of a system lack a cell that they had here; None where more is unknown than here."""
        at = self.system.positions(system.cells)
        if (at < 0).any() or (self.fixed[at] & ~fixed).any():
            return None
        gone = ~self.fixed
        gone[at[~fixed]] = False
        rows = self.system.rows[np.unique(self.system.matrix.tocsc()[:, np.flatnonzero(gone)].indices)]
        return np.isin(system.rows, rows)

    def left(self, system: System, fixed: Mask) -> Floats | None:
        """Random null vectors of a system in which less is unknown; None where these are too few to make them of."""
        at = self.system.positions(system.cells)
        if (at < 0).any():
            return None
        gone = np.any(self.vectors, axis=1)
        gone[at[~fixed]] = False
        values, turn = np.linalg.svd(np.linalg.qr(self.vectors[gone], mode="r"))[1:]
        zero = np.append(values, np.zeros(len(turn) - len(values))) <= _SURE
        if int(zero.sum()) < _PROJECTIONS or (values[zero[: len(values)]] > _NOTHING * np.sqrt(gone.sum())).any():
            return None
        return np.asarray(self.vectors[at] @ turn[zero].T * ~fixed[:, None])

    def has(self, cells: sparse.csr_array, at: NDArray[np.intp], search: SumSearch) -> Mask:
        """Which pairs and triples of cells, as columns that stand here at `at`, were found here already."""
        size = np.diff(cells.indptr)
        still = (np.abs(cells.astype(np.float64) @ self.vectors[at]) <= 2 * _EQUAL).all(axis=1)
        label = components(_without(self.system.matrix, self.fixed))
        small = np.bincount(label[~self.fixed], minlength=int(label.max(initial=-1)) + 1) <= search.max_component
        first = at[cells.indices[cells.indptr[:-1]]]
        return np.asarray(still & ((size == 2) | small[label[first]]))


def constant_sums(
    system: System,
    *,
    lower: Floats | None = None,
    upper: Floats | None = None,
    search: SumSearch | None = None,
    budget: Budget = ENDLESS,
    known: KnownSums | None = None,
) -> ConstantSums:
    """Find the sums of two or more unknown cells that have one value in all tables that agree with the release.

    `lower` and `upper` are what the attacker can derive for each unknown cell (the exact intervals). Without them the
    cells are set aside that the equations determine, alone or one after the other with the bounds. When the budget is
    over, it is what was found until then. Where the sums of a system are `known` in which more is unknown, those are
    told that this one adds.
    """
    search, own = search or SumSearch(), lower is None or upper is None
    if lower is None or upper is None:
        room = (np.floor(system.lower) - system.truth, np.ceil(system.upper) - system.truth)
        below, above = propagate(system.matrix, *(np.asarray(side, dtype=np.float64) for side in room))
        lower, upper = system.truth + below, system.truth + above
    with np.errstate(invalid="ignore"):
        fixed = np.isfinite(lower) & (upper - lower <= 1e-9 * np.maximum(1.0, np.abs(lower)))
    matrix = _without(system.matrix, fixed)
    if are_points(system.matrix, lower - system.truth, upper - system.truth):  # all cells rise from one to the other
        nothing = sparse.csr_array((0, matrix.shape[1]), dtype=np.int64), sparse.csr_array((0, matrix.shape[0]))
        return ConstantSums(*nothing, matrix, fixed, False)
    if budget.over:
        return ConstantSums(*_empty(matrix), matrix, fixed, False, late=True)
    left = None if known is None else known.left(system, fixed)
    cells = matrix.shape[1]
    vectors = null_vectors(matrix, cells, _PROJECTIONS + _SPARE, free=~fixed) if left is None else left
    marks = vectors[:, :_PROJECTIONS]
    fixed = fixed | (np.abs(marks) <= _EQUAL).all(axis=1)
    matrix = _without(matrix, fixed)
    changed = None if known is None else known.changed(system, fixed)
    remainders = _remainders(matrix)
    looked_at = matrix if changed is None else _around(matrix, changed, search)
    chains, cut, ended = _chains(looked_at, search, budget)
    told, all_told = _null_space_sums(matrix, marks, fixed, search, budget)
    cut |= bool(_sizes_of_components(matrix, fixed).max(initial=0) > search.max_component)
    cells, used = _stacked([remainders, chains, told])
    if known is not None and changed is not None:
        new = np.asarray(abs(used) @ changed.astype(np.int64)) > 0
        bare = np.flatnonzero(np.diff(used.indptr) == 0)
        new[bare] = ~known.has(cells[bare], known.system.positions(system.cells), search)
        cells, used, cut = cells[new], used[new], cut or known.cut
    kept = KnownSums(system, vectors, fixed, cut) if own else None
    return ConstantSums(cells, used, matrix, fixed, cut, not (ended and all_told), kept, changed is not None)


Found = tuple[sparse.csr_array, sparse.csr_array]
"""Sums and the combinations that give them."""


def _lightest(rows: sparse.csr_array, cells: NDArray[Any], budget: Budget) -> dict[int, Fraction] | None:
    """Multiples of the rows that add up to the sum of the cells, with the least total size; None if there are none."""
    touched, where = np.unique(np.concatenate([rows.indices, cells]), return_inverse=True)
    own = sparse.csr_array((rows.data, where[: rows.nnz], rows.indptr), shape=(rows.shape[0], len(touched)))
    goal = sparse.coo_array((-np.ones(len(cells)), (where[rows.nnz :], np.zeros(len(cells), int))), (len(touched), 1))
    balance = sparse.csc_array(sparse.hstack([own.T, -own.T, goal]))
    count = rows.shape[0]
    cost, lower, upper = np.ones(2 * count + 1), np.zeros(2 * count + 1), np.full(2 * count + 1, np.inf)
    cost[-1], lower[-1], upper[-1] = 0.0, 1.0, 1.0
    columns = Columns.of(balance)
    answer = Model.small().minimise(cost, lower, upper, columns, budget=budget)
    if answer is None:
        return None
    found = answer.point[:count] - answer.point[count:-1]
    sizes = [Fraction(float(size)).limit_denominator(_LARGEST_DENOMINATOR) for size in found]
    weights = np.array(sizes, dtype=object)
    common = lcm(1, *(size.denominator for size in sizes))
    total = own.T.astype(np.int64) @ (weights * common).astype(np.int64)
    wanted = np.zeros(len(touched), dtype=np.int64)
    wanted[where[rows.nnz :]] = common
    return {row: size for row, size in enumerate(sizes) if size} if bool((total == wanted).all()) else None


def _without(matrix: sparse.csr_array, fixed: Mask) -> sparse.csr_array:
    """The matrix with the columns of fixed cells emptied."""
    kept = sparse.csr_array(matrix @ sparse.diags_array((~fixed).astype(np.int8), dtype=np.int8))
    kept.eliminate_zeros()
    return kept


def _around(matrix: sparse.csr_array, changed: Mask, search: SumSearch) -> sparse.csr_array:
    """The matrix with all rows emptied but those that a chain can join with one that changed."""
    link, near = np.diff(matrix.indptr) <= 2 * search.max_terms, changed
    pattern = abs(matrix).astype(np.int64)
    for _ in range(search.max_chain - 1):
        reached = pattern.T @ (near & link).astype(np.int64)
        near = near | (np.asarray(pattern @ reached) > 0)
    kept = sparse.csr_array(sparse.diags_array(near.astype(np.int8), dtype=np.int8) @ matrix)
    kept.eliminate_zeros()
    return kept


def null_vectors(matrix: sparse.csr_array, cells: int, count: int, *, free: Mask | None = None) -> Floats:
    """Random vectors of the null space of a matrix over so many cells, one column each; zero where not free.

    The projection of a random vector: one quasi-definite factorisation, and the same projection again until the small
    regularisation, which dependent equations make necessary, is gone. Of very many equations that takes gigabytes, and
    time by their square: there by conjugate gradients.
    """
    start = np.random.default_rng(20011).standard_normal((cells, count))
    if free is not None:
        start *= free[:, None]
    if not matrix.nnz:
        return start
    there = np.flatnonzero(np.diff(matrix.indptr))
    entries = matrix[there].astype(np.float64)
    if len(there) > FACTORED:
        found = projected(entries, start)
        if found is not None:
            return found
    unit, small = sparse.eye_array(cells), sparse.eye_array(len(there)) * -1e-9
    augmented = sparse.block_array([[unit, entries.T], [entries, small]], format="csc")
    from scipy.sparse.linalg import splu

    factors = splu(augmented, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    vectors = start
    for _ in range(4):
        padded = np.vstack([vectors, np.zeros((len(there), count))])
        vectors = np.asarray(factors.solve(padded))[:cells]
    return vectors


def projected(equations: sparse.csr_array, vectors: Floats) -> Floats | None:
    """The vectors without what breaks the equations, by conjugate gradients; None where that does not settle.

    What counts is that they satisfy the equations, which is looked at, not that they are the nearest ones that do.
    """
    size = np.sqrt(np.asarray(abs(equations).power(2).sum(axis=1)).ravel())
    rows = sparse.csr_array(sparse.diags_array(1 / np.maximum(size, SETTLED)) @ equations)
    columns = sparse.csr_array(rows.T)
    for _ in range(AGAIN):
        left = rows @ vectors
        dual, way = np.zeros_like(left), left.copy()
        before = np.einsum("ij,ij->j", left, left)
        for step in range(STEPS):
            if float(np.abs(left).max(initial=0.0)) <= SETTLED / 10:
                break
            if step % LOOK == 0 and overdue():
                raise Interrupted("The audit was interrupted; nothing was written.")
            moved = rows @ (columns @ way)
            far = before / np.maximum(np.einsum("ij,ij->j", way, moved), TINY)
            dual += far * way
            left -= far * moved
            now = np.einsum("ij,ij->j", left, left)
            way *= now / np.maximum(before, TINY)
            way += left
            before = now
        vectors = vectors - columns @ dual
        if float(np.abs(equations @ vectors).max(initial=0.0)) <= SETTLED:
            return vectors
    return None


def combined_equations(matrix: sparse.csr_array, search: SumSearch) -> sparse.csr_array:
    """Sums and differences of up to `max_chain` equations that share cells, with coefficients −1, 0 and 1."""
    links, names = _links(matrix, search)
    front, by, seen = links, names, _hashes(links)
    found = [sparse.csr_array((0, matrix.shape[1]), dtype=np.int32)]
    for _ in range(search.max_chain - 1):
        if not front.shape[0]:
            break
        front, by, _, _ = _extended(front, by, links, names, search, ENDLESS)
        new = _first_seen(front, seen)
        front, by = front[new], by[new]
        seen = np.union1d(seen, _hashes(front))
        found.append(front)
    return sparse.csr_array(sparse.vstack(found, format="csr"))


def _links(matrix: sparse.csr_array, search: SumSearch) -> Found:
    """The equations, each once, that are not too long to be combined, and their own numbers."""
    rows = np.flatnonzero(np.diff(matrix.indptr))
    rows = rows[distinct_rows(matrix[rows])] if rows.size else rows
    rows = rows[np.diff(matrix.indptr)[rows] <= 2 * search.max_terms]
    links = sparse.csr_array(matrix[rows].astype(np.int32))
    return links, _selection(rows, np.ones(len(rows), np.int64), matrix.shape[0])


def _remainders(matrix: sparse.csr_array) -> Found:
    """Every equation with two or more unknown cells, all on one side."""
    terms = np.diff(matrix.indptr)
    balance = np.asarray(matrix.astype(np.int64).sum(axis=1))
    one_sided = np.flatnonzero((terms >= 2) & (np.abs(balance) == terms))
    if one_sided.size:
        one_sided = one_sided[distinct_rows(abs(matrix[one_sided]))]
    sign = np.sign(balance[one_sided])
    combination = _selection(one_sided, sign, matrix.shape[0])
    return sparse.csr_array(abs(matrix[one_sided])).astype(np.int8), combination


def _chains(matrix: sparse.csr_array, search: SumSearch, budget: Budget) -> tuple[Found, bool, bool]:
    """Sums of two to `max_chain` equations, each next one cancelling a cell of the combination before it.

    With them comes whether a limit was met, and whether there was time for all of it.
    """
    links, names = _links(matrix, search)
    front, by = links, names
    found: list[Found] = []
    seen = _hashes(front)
    cut = bool((np.diff(matrix.indptr) > 2 * search.max_terms).any())  # too long to be combined with others
    ended = True
    for _ in range(search.max_chain - 1):
        if not front.shape[0] or not ended:
            break
        front, by, more, ended = _extended(front, by, links, names, search, budget)
        new = _first_seen(front, seen)
        front, by, cut = front[new], by[new], cut or more
        seen = np.union1d(seen, _hashes(front))
        found.append(_sums_among(front, by))
    return _stacked([*found, _empty(matrix)]), cut, ended


def _extended(
    front: sparse.csr_array, by: sparse.csr_array, links: sparse.csr_array, names: sparse.csr_array, search: SumSearch,
    budget: Budget,
) -> tuple[sparse.csr_array, sparse.csr_array, bool, bool]:  # fmt: skip
    """Every combination ± an equation in which all shared cells cancel, so that coefficients stay −1, 0 and 1.

    With them comes whether there were too many, and whether there was time for all of them.
    """
    pairs, ended = [np.zeros((4, 0), dtype=np.int64)], True
    for first in range(0, front.shape[0], STRIDE):
        if budget.over:
            ended = False
            break
        some = front[first : first + STRIDE]
        alike, against, one, other = _overlaps(some, links)
        sizes = np.diff(some.indptr)[one] + np.diff(links.indptr)[other] - 2 * (alike + against)
        good = ((alike == 0) | (against == 0)) & (sizes >= 1) & (sizes <= search.max_terms)
        pairs.append(np.stack([alike, sizes, first + one, other])[:, good])
    alike, sizes, one, other = np.concatenate(pairs, axis=1)
    cut = len(sizes) > search.max_sums
    pick = np.argsort(sizes, kind="stable")[: search.max_sums] if cut else np.arange(len(sizes))
    sign = sparse.diags_array(np.where(alike[pick] > 0, -1, 1).astype(np.int32), dtype=np.int32)
    combined = sparse.csr_array(front[one[pick]] + sign @ links[other[pick]])
    combined.eliminate_zeros()
    used = sparse.csr_array(by[one[pick]] + sign @ names[other[pick]])
    used.eliminate_zeros()
    return combined, used, cut, ended


def _overlaps(
    front: sparse.csr_array, links: sparse.csr_array
) -> tuple[Integers, Integers, NDArray[np.intp], NDArray[np.intp]]:
    """For each combination and equation that share cells: how many with the same sign, how many with the opposite."""
    far = 1 << 20
    plus, minus = (front > 0).astype(np.int64), (front < 0).astype(np.int64)
    link_plus, link_minus = (links > 0).astype(np.int64), (links < 0).astype(np.int64)
    left = sparse.hstack([plus, minus], format="csr")
    right = sparse.hstack([link_plus + far * link_minus, link_minus + far * link_plus], format="csr")
    both = sparse.coo_array(left @ right.T)
    return both.data % far, both.data // far, both.row, both.col


def _sums_among(combined: sparse.csr_array, used: sparse.csr_array) -> Found:
    """Those combinations whose coefficients all have one sign, turned to +1."""
    terms = np.diff(combined.indptr)
    balance = np.asarray(combined.sum(axis=1))
    one_sided = np.flatnonzero((terms >= 2) & (np.abs(balance) == terms))
    sign = sparse.diags_array(np.sign(balance[one_sided]), dtype=np.int32)
    return sparse.csr_array(abs(combined[one_sided])).astype(np.int8), sparse.csr_array(sign @ used[one_sided])


def _null_space_sums(
    matrix: sparse.csr_array, marks: Floats, fixed: Mask, search: SumSearch, budget: Budget
) -> tuple[Found, bool]:
    """All pairs, and the triples of components that are not too large, whose entries in every null vector cancel.

    With them comes whether there was time for all of them.
    """
    free = np.flatnonzero(~fixed & (np.diff(matrix.tocsc().indptr) > 0))
    if not free.size:
        return _empty(matrix), True
    members = [_pairs(marks, free)]
    component = components(matrix)
    order = free[np.argsort(component[free], kind="stable")]
    starts = np.flatnonzero(np.diff(component[order], prepend=-1))
    ended = True
    for cells in np.split(order, starts[1:]):
        if 3 <= len(cells) <= search.max_component:
            if budget.over:
                ended = False
                break
            members.append(_triples(marks, cells))
    sums = [m for m in members if len(m)]
    if not sums:
        return _empty(matrix), ended
    size = np.concatenate([np.full(len(m), m.shape[1]) for m in sums])
    cells = np.concatenate([m.ravel() for m in sums])
    indptr = np.concatenate([[0], np.cumsum(size)])
    matrix_of_sums = sparse.csr_array((np.ones(len(cells), np.int8), cells, indptr), shape=(len(size), matrix.shape[1]))
    matrix_of_sums.sort_indices()
    return (matrix_of_sums, sparse.csr_array((len(size), matrix.shape[0]), dtype=np.int32)), ended


def _pairs(marks: Floats, cells: NDArray[np.intp]) -> NDArray[np.intp]:
    one, other = _meeting(marks[cells], -marks[cells])
    keep = one < other
    return np.column_stack([cells[one[keep]], cells[other[keep]]])


def _triples(marks: Floats, cells: NDArray[np.intp]) -> NDArray[np.intp]:
    first, second = np.triu_indices(len(cells), k=1)
    pair, third = _meeting(marks[cells[first]] + marks[cells[second]], -marks[cells])
    keep = second[pair] < third
    pair, third = pair[keep], third[keep]
    return np.column_stack([cells[first[pair]], cells[second[pair]], cells[third]])


def _meeting(one: Floats, other: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The pairs of rows of two arrays that are equal up to rounding."""
    order = np.argsort(other[:, 0], kind="stable")
    key = other[order, 0]
    begin = np.searchsorted(key, one[:, 0] - _EQUAL)
    length = np.searchsorted(key, one[:, 0] + _EQUAL) - begin
    left = np.repeat(np.arange(len(one)), length)
    offset = np.arange(len(left)) - np.repeat(np.cumsum(length) - length, length)
    right = order[begin[left] + offset]
    same = (np.abs(one[left] - other[right]) <= _EQUAL).all(axis=1)
    return left[same], right[same]


def components(matrix: sparse.csr_array) -> NDArray[np.intp]:
    """The number of the component of each cell; cells of one equation are together."""
    rows = matrix.shape[0]
    graph = sparse.block_array([[None, abs(matrix)], [abs(matrix).T, None]], format="csr")
    _, labels = connected_components(graph, directed=False)
    return np.asarray(labels[rows:], dtype=np.intp)


def _sizes_of_components(matrix: sparse.csr_array, fixed: Mask) -> Integers:
    return np.bincount(components(matrix)[~fixed])


def _selection(rows: NDArray[np.intp], sign: Integers, n: int) -> sparse.csr_array:
    return sparse.csr_array((sign.astype(np.int32), (np.arange(len(rows)), rows)), shape=(len(rows), n))


def _empty(matrix: sparse.csr_array) -> Found:
    rows, cells = matrix.shape
    return sparse.csr_array((0, cells), dtype=np.int8), sparse.csr_array((0, rows), dtype=np.int32)


def _stacked(parts: list[Found]) -> Found:
    """All sums in one, each once: the first way to find it is the simplest."""
    cells = sparse.csr_array(sparse.vstack([cells for cells, _ in parts], format="csr"))
    used = sparse.csr_array(sparse.vstack([used for _, used in parts], format="csr"))
    first = distinct_rows(cells) if cells.shape[0] else np.zeros(0, np.intp)
    return cells[first], used[first]


def _hashes(matrix: sparse.csr_array) -> Integers:
    """One number per combination, the same for a combination and its negative."""
    weights = np.random.default_rng(577).integers(1, 2**62, size=matrix.shape[1], dtype=np.int64)
    with np.errstate(over="ignore"):
        hashed = matrix.astype(np.int64) @ weights
        return np.asarray(np.maximum(hashed, -hashed))


def _first_seen(matrix: sparse.csr_array, seen: Integers) -> NDArray[np.intp]:
    hashed = _hashes(matrix)
    _, first = np.unique(hashed, return_index=True)
    return np.sort(first[~np.isin(hashed[first], seen)])
