"""Proofs by hypercubes: two tables that agree with the release, seen at once where the dimensions are trees.

Before anything is solved, each cell is looked for a hypercube of withheld cells that moves it as far as it must get,
up and down. What it finds is proved like any other witness, in whole numbers; what it does not find is asked of the
linear programs. In a table of which much is withheld that is a small rest.

Large cubes: witnesses for linked tables with very many unseen cells.

No elimination and no program takes a million unknowns that all hang together. Most of them need not move: a witness
in which they stay at their true values is a witness all the same. So boxes are looked for in the whole system first,
which takes no program; and for what has no box, only some unseen cells may move: under each withheld cell those that
are largest, and those whose other codes are the largest everywhere, so that cells side by side can move together.
What is proved so is proved; what is not is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.exact import ExactMove
from tablesafe.audit.proofs import Group, Needs, Place
from tablesafe.audit.protection import Protection
from tablesafe.audit.system import MOST_FREE, System
from tablesafe.core.equations import Floats, Mask
from tablesafe.solve.boxes import Space, cheapest_box
from tablesafe.solve.boxes import System as Boxes
from tablesafe.solve.hypercubes import Hypercubes, adds_up

FEW = 200
"""Unknown cells up to which programs are as fast."""
LOOKS = 60_000
"""Cells looked at for one cell of the release."""
MOST = 2.0**50
"""Room of a cell without a bound, in whole units: sums of a few stay exact."""


def hypercubes_of(system: System) -> Hypercubes | None:
    """The hypercubes of a system's unknown cells; None where the table is no product of trees, or small."""
    table = system.table
    if len(system) <= FEW or table.names is not None or not table.dimensions:
        return None
    return Hypercubes.of(list(table.dimensions.values()), table.codes[system.cells])


def by_hypercubes(system: System, needs: Needs, place: Place) -> Iterator[Group]:
    """Groups of two witnesses, each with the cells that they prove."""
    cubes = hypercubes_of(system)
    if cubes is None or not len(needs):
        return
    room = np.minimum(np.minimum(system.truth - system.lower, system.upper - system.truth), MOST)
    room = np.floor(np.maximum(room, 0.0))
    free = np.zeros(len(system))
    need = _whole_needs(len(system), needs)
    left = np.zeros(len(system), dtype=np.bool_)
    left[needs.at] = True
    columns = place.columns.astype(np.int64)
    sums = np.zeros(columns.shape[0], dtype=np.int64)
    for cell in needs.at[np.argsort(-need[needs.at], kind="stable")].tolist():
        found = cubes.cheapest(cell, need[cell], free, room, looks=LOOKS) if left[cell] else None
        if found is None:
            continue
        order = np.argsort(found[0])
        cells, signs = found[0][order], found[1][order]
        far = float(room[cells].min())
        served = cells[left[cells] & (need[cells] <= far)]
        by = int(need[served].max())
        if not adds_up(columns.indptr, columns.indices, columns.data, cells, signs, sums):
            continue
        if not place.limits.take(cells).allow_both(by):
            continue
        up = ExactMove(cells, signs * by, 1)
        left[served] = False
        sign = np.sign(up.at(served).astype(np.int64))
        down = ExactMove(up.cells, -up.numerators, 1)
        yield Group((up, down), served, np.where(sign > 0, 2, 1), np.where(sign > 0, 1, 2))


def _whole_needs(n: int, needs: Needs) -> Floats:
    """How far each cell must move both ways, in whole units: its levels, half its sliding level, a unit at least."""
    out = np.full(n, np.inf)
    each = [-(-level // parts) for level, parts in (
        (needs.lower, needs.scale), (needs.upper, needs.scale), (needs.sliding, 2 * needs.scale)
    )]  # fmt: skip
    out[needs.at] = np.maximum(np.maximum(np.maximum(each[0], each[1]), each[2]).astype(np.float64), 1.0)
    return out


# -- large cubes -------------------------------------------------------------------------------------------------------


EACH = 64
"""Unseen cells under each withheld one that may move, as long as there is room for them: at most so many of the
largest, and as many of those with the largest codes."""


def without_unseen(system: System) -> System:
    """The system of the shown cells alone, with the equations between them."""
    assert system.table.unseen is not None
    unseen = system.table.unseen[system.cells]
    inner = np.asarray(abs(system.table.equations[system.rows]).astype(np.int64) @ system.table.unseen.astype(np.int64))
    kept = np.flatnonzero(~unseen)
    matrix = sparse.csr_array(sparse.csr_array(system.matrix[inner == 0]).tocsc()[:, kept])
    return replace(
        system, cells=system.cells[kept], rows=system.rows[inner == 0], matrix=matrix, rhs=system.rhs[inner == 0],
        lower=system.lower[kept], upper=system.upper[kept], truth=system.truth[kept],
    )  # fmt: skip


def narrowed(system: System, wanted: NDArray[np.intp]) -> tuple[System, NDArray[np.intp]]:
    """The system in which most unseen cells are known, and where its unknown cells stand among all."""
    keep = np.flatnonzero(_free(system, wanted))
    return System.over(system.table, system.cells[keep], system.lower[keep], system.upper[keep]), keep


def _free(system: System, wanted: NDArray[np.intp]) -> Mask:
    unseen = system.table.unseen
    assert unseen is not None
    inner = unseen[system.cells]
    free = ~inner
    free[wanted] = True
    entries = system.matrix.tocoo()
    held = np.zeros(system.matrix.shape[0], dtype=np.bool_)
    held[entries.row[~inner[entries.col]]] = True
    some = inner[entries.col] & held[entries.row]
    row, column = entries.row[some], entries.col[some]
    each = max(2, min(EACH, MOST_FREE // max(2 * int(held.sum()), 1)))
    for size in (np.abs(system.truth).astype(np.float64), _weight(system)):
        order = np.lexsort((column, -size[column], row))
        rank = np.arange(len(order)) - np.searchsorted(row[order], row[order])
        free[column[order[rank < each]]] = True
    return free


def _weight(system: System) -> Floats:
    """How large all unseen cells with the same codes are together, over all dimensions."""
    codes = system.table.codes[system.cells]
    out = np.zeros(len(system))
    for d in range(codes.shape[1]):
        out += np.log1p(np.bincount(codes[:, d], np.abs(system.truth))[codes[:, d]])
    return out


def boxed(system: System, wanted: NDArray[np.intp], down: Floats, up: Floats) -> Iterator[ExactMove]:
    """Boxes that move wanted cells as far down and up as they must, where there are any; whole, and not yet checked."""
    room = (
        np.floor(np.maximum(system.upper - system.truth, 0.0)),
        np.floor(np.maximum(system.truth - system.lower, 0.0)),
    )
    place = Boxes.of(sparse.csr_array(system.matrix.astype(np.float64)), *room)
    space, price = Space.over(place), np.ones(len(system))
    for cell, below, above in zip(wanted.tolist(), np.ceil(down).tolist(), np.ceil(up).tolist(), strict=True):
        for sign, level in ((-1, below), (1, above)):
            found = cheapest_box(place, space, cell, sign, level, price) if level > 0 else None
            if found is not None:
                yield ExactMove(found[0].astype(np.intp), np.rint(found[1]).astype(np.int64))


def over_all(seen: Protection, keep: NDArray[np.intp]) -> Protection:
    """What was found in a narrowed system, with its cells numbered among all unknown ones."""
    components = tuple(
        replace(
            part,
            cells=keep[part.cells],
            moves=tuple(ExactMove(keep[move.cells], move.numerators, move.denominator) for move in part.moves),
        )
        for part in seen.components
    )
    return replace(seen, components=components)
