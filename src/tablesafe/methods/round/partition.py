"""Large tables part by part: one part is rounded anew, exactly, while all around it stays, so every total still holds.

A part is a block of codes: some children of one code in every dimension, with all the codes above them. Only steps
that leave the surrounding sums as they are can be taken, so the table adds up at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.methods.round.grid import Grid
from tablesafe.methods.round.models import Model
from tablesafe.solve.program import SolveStatus
from tablesafe.solve.rounding import Answer
from tablesafe.work.budget import Budget

CELLS = 500
"""About how many cells the first part has; parts that are solved at once make the next ones larger."""
FEWEST, MOST = 200, 20_000
PART_S = 1.0
QUICK_S = 0.1
GROWTH = 1.3


def improved(
    grid: Grid,
    whole: Mask,
    best: Integers,
    offer: Callable[[Integers | None], bool],
    budget: Budget,
    heard: Callable[[Answer], Answer],
) -> None:
    """Round parts anew until the time is up, around what lies beyond its neighbours first."""
    random, size = np.random.default_rng(0), float(CELLS)
    for part in _parts(grid, random):
        if budget.over:
            return
        seed = _seed(grid, best, random)
        if seed is None:
            return
        cells = part(seed, size)
        furthest = int(grid.beyond(best).max(initial=0))
        model = Model.of(grid, whole, cells=cells, stay=best, furthest=furthest, dear=_dear(grid, cells))
        begin = process_time()
        found = heard(model.program.solve(budget.child(min(PART_S, budget.left)), model.taken(best)))
        quick = found.status == SolveStatus.OPTIMAL and process_time() - begin < QUICK_S
        size = float(np.clip(size * (GROWTH if quick else 1.0 / GROWTH), FEWEST, MOST))
        steps = model.steps(found.point)
        if steps is not None and offer(steps):
            best = steps


def _seed(grid: Grid, best: Integers, random: np.random.Generator) -> int | None:
    """A cell beyond its neighbours, mostly; otherwise one that is farther than it need be."""
    beyond = np.flatnonzero(grid.beyond(best))
    if beyond.size and random.random() < 0.8:
        return int(random.choice(beyond))
    nearest = np.minimum(grid.distances(grid.low), grid.distances(grid.high))
    far = np.flatnonzero(grid.distances(best) > nearest)
    return int(random.choice(far)) if far.size else None


def _dear(grid: Grid, cells: Mask) -> float:
    """So much that a step beyond the neighbours outweighs the distances of a part."""
    at = np.flatnonzero(cells & grid.free)
    slopes = np.abs(grid.distances(grid.low[at] + 1, at) - grid.distances(grid.low[at], at))
    return 50.0 * float(slopes.max(initial=1.0))


def _parts(grid: Grid, random: np.random.Generator) -> Iterator[Callable[[int, float], Mask]]:
    """Ways to draw a part around a cell: by codes where there are dimensions, else by equations."""
    table = grid.counts.table
    if table.names is not None or not table.dimensions:
        pattern = abs(sparse.csr_array(grid.matrix)).astype(bool).astype(np.int32)
        while True:
            yield lambda seed, size: _ball(pattern, seed, size)
    families = [_families(hierarchy) for hierarchy in table.dimensions.values()]
    while True:
        yield lambda seed, size: _block(table.codes, families, table.codes[seed], size, random)


def _families(hierarchy: Hierarchy) -> sparse.csr_array:
    """Which codes stand together in an equation."""
    rows = abs(sparse.csr_array(hierarchy.equations)).astype(np.int32)
    return sparse.csr_array(rows.T @ rows)


def _block(
    codes: NDArray[np.int32], families: list[sparse.csr_array], seed: NDArray[np.int32], size: float,
    random: np.random.Generator,
) -> Mask:  # fmt: skip
    """The cells whose codes are all near the seed's: its equations', with everything above."""
    inside = np.ones(len(codes), dtype=np.bool_)
    each = max(2.0, size ** (1.0 / len(families)))
    for d, family in enumerate(families):
        near = family.indices[family.indptr[seed[d]] : family.indptr[seed[d] + 1]]
        for _ in range(8):  # upwards and sideways until there are enough
            if len(near) >= each or not len(near):
                break
            wider = np.unique(np.concatenate([family.indices[family.indptr[c] : family.indptr[c + 1]] for c in near]))
            if len(wider) == len(near):
                break
            near = wider
        if len(near) > 2 * each:
            near = random.choice(near, int(2 * each), replace=False)
        kept = np.zeros(family.shape[0], dtype=np.bool_)
        kept[near] = True
        kept[seed[d]] = True
        inside &= kept[codes[:, d]]
    return inside


def _ball(pattern: sparse.csr_array, seed: int, size: float) -> Mask:
    """The cells within a few equations of a cell."""
    inside = np.zeros(pattern.shape[1], dtype=np.bool_)
    inside[seed] = True
    across = sparse.csr_array(pattern.T)
    while inside.sum() < size:
        wider = np.asarray(across @ (np.asarray(pattern @ inside.astype(np.int32)) > 0).astype(np.int32)) > 0
        if wider.sum() == inside.sum() or (wider.sum() > 4 * size and inside.sum() > 1):
            break
        inside = wider
    return inside
