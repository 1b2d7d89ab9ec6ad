"""Who protects whom: the cells that move together in the witnesses of a certificate.

A witness is another table that agrees with all that is published, in which a sensitive cell lies far enough from its
true value. The withheld cells that move along in it are what hides the cell: publish one of them, and this witness is
no proof any more. Another may be; whether there is one, `Audit.publish` tells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.findings import Findings
from tablesafe.audit.proofs import Group
from tablesafe.core.equations import Integers

NOBODY: Integers = np.zeros(0, dtype=np.int64)


def protectors_of(findings: Findings, cell: int) -> Integers:
    """The cells that move in the witnesses that prove a sensitive cell, those that share a sum with it first."""
    place = _place(findings, cell)
    moved = [_moved(group, int(at)) for group in _groups(findings) for at in np.flatnonzero(group.at == place)]
    return _near_first(findings, cell, moved)


def protected_by(findings: Findings, cell: int) -> Integers:
    """The sensitive cells in whose witnesses a withheld cell moves, those that share a sum with it first."""
    place = _place(findings, cell)
    served = []
    for group in _groups(findings):
        uses = np.array([False, *(bool((move.cells == place).any()) for move in group.moves)])
        served.append(group.at[uses[group.low] | uses[group.high]])
    return _near_first(findings, cell, served)


def _groups(findings: Findings) -> tuple[Group, ...]:
    return () if findings.certificate is None else findings.certificate.groups


def _place(findings: Findings, cell: int) -> int:
    """Where a cell stands among the unknown; −1 for one that is published."""
    return int(findings.system.positions(np.array([cell]))[0])


def _moved(group: Group, at: int) -> NDArray[np.intp]:
    """The unknown cells that move in the two witnesses of a proof."""
    used = {int(group.low[at]), int(group.high[at])} - {0}
    return np.unique(np.concatenate([group.moves[number - 1].cells for number in used] or [np.zeros(0, np.intp)]))


def _near_first(findings: Findings, cell: int, places: list[NDArray[np.intp]]) -> Integers:
    if not places:
        return NOBODY
    cells = np.unique(findings.system.cells[np.unique(np.concatenate(places))])
    cells = cells[(cells != cell) & (cells < findings.problem.table.seen)]
    equations = findings.problem.table.equations
    sums = equations[equations[:, [cell]].nonzero()[0]]
    near = np.isin(cells, np.unique(sums.indices))
    order = np.lexsort((-np.abs(findings.problem.table.value[cells]), ~near))
    found: Integers = cells[order].astype(np.int64)
    return found
