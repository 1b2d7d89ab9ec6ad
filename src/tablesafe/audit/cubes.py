"""Large cubes: witnesses for linked tables with very many unseen cells.

No elimination and no program takes a million unknowns that all hang together. Most of them need not move: a witness in
which they stay at their true values is a witness all the same. So boxes are looked for in the whole system first, which
takes no program; and for what has no box, only some unseen cells may move: under each withheld cell those that are
largest, and those whose other codes are the largest everywhere, so that cells side by side can move together. What is
proved so is proved; what is not is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.exact import Move
from tablesafe.audit.protection import Protection
from tablesafe.audit.system import MOST_FREE, System
from tablesafe.core.equations import Floats, Mask
from tablesafe.solve.boxes import Space, cheapest_box
from tablesafe.solve.boxes import System as Boxes

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
    for size in (system.truth.astype(np.float64), _weight(system)):
        order = np.lexsort((column, -size[column], row))
        rank = np.arange(len(order)) - np.searchsorted(row[order], row[order])
        free[column[order[rank < each]]] = True
    return free


def _weight(system: System) -> Floats:
    """How large all unseen cells with the same codes are together, over all dimensions."""
    codes = system.table.codes[system.cells]
    out = np.zeros(len(system))
    for d in range(codes.shape[1]):
        out += np.log1p(np.bincount(codes[:, d], system.truth)[codes[:, d]])
    return out


def boxed(system: System, wanted: NDArray[np.intp], down: Floats, up: Floats) -> Iterator[Move]:
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
                yield Move(found[0].astype(np.intp), np.rint(found[1]).astype(np.int64))


def over_all(seen: Protection, keep: NDArray[np.intp]) -> Protection:
    """What was found in a narrowed system, with its cells numbered among all unknown ones."""
    components = tuple(
        replace(
            part,
            cells=keep[part.cells],
            moves=tuple(Move(keep[move.cells], move.numerators, move.denominator) for move in part.moves),
        )
        for part in seen.components
    )
    return replace(seen, components=components)
