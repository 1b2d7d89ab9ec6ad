"""Proofs by hypercubes: two tables that agree with the release, seen at once where the dimensions are trees.

Before anything is solved, each cell is looked for a hypercube of withheld cells that moves it as far as it must get,
up and down. What it finds is proved like any other witness, in whole numbers; what it does not find is asked of the
linear programs. In a table of which much is withheld that is a small rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tablesafe.audit.exact import Move
from tablesafe.audit.proofs import Group, Needs, Place
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats
from tablesafe.solve.hypercubes import Hypercubes

FEW = 2_000
"""Unknown cells up to which programs are as fast."""
LOOKS = 60_000
"""Cells looked at for one cell of the release."""
MOST = 2.0**50


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
    for cell in needs.at[np.argsort(-need[needs.at], kind="stable")].tolist():
        found = cubes.cheapest(cell, need[cell], free, room, looks=LOOKS) if left[cell] else None
        if found is None:
            continue
        cells, signs = found
        by = float(room[cells].min())
        served = np.sort(cells[left[cells] & (need[cells] <= by)])
        by = float(need[served].max())
        order = np.argsort(cells)
        up = Move(cells[order], (signs[order] * int(by)).astype(np.int64), 1)
        if not _holds(place, up):
            continue
        left[served] = False
        sign = np.sign(up.at(served).astype(np.int64))
        down = Move(up.cells, -up.numerators, 1)
        yield Group((up, down), served, np.where(sign > 0, 2, 1), np.where(sign > 0, 1, 2))


def _holds(place: Place, move: Move) -> bool:
    """Whether a move and its opposite satisfy every equation and limit, in whole numbers."""
    for one in (move, Move(move.cells, -move.numerators, 1)):
        kept = place.checked(one)
        if kept is None or len(kept.cells) != len(one.cells) or kept.denominator != 1:
            return False
        if not (kept.numerators == one.numerators).all():
            return False
    return True


def _whole_needs(n: int, needs: Needs) -> Floats:
    """How far each cell must move both ways, in whole units: its levels, half its sliding level, a unit at least."""
    out = np.full(n, np.inf)
    each = [-(-level // parts) for level, parts in (
        (needs.lower, needs.scale), (needs.upper, needs.scale), (needs.sliding, 2 * needs.scale)
    )]  # fmt: skip
    out[needs.at] = np.maximum(np.maximum(np.maximum(each[0], each[1]), each[2]).astype(np.float64), 1.0)
    return out
