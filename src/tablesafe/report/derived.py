"""What an attacker derives of cells that the audit was not asked about: those withheld to protect others. Confidential.

The audit judges sensitive cells. What stands around them is computed here, for eyes: few cells at once, and not for
long; `[audit] cells = "all"` computes all of it, however long that takes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.audit import knows_whole_numbers
from tablesafe.audit.findings import Findings
from tablesafe.audit.integers import integer_intervals
from tablesafe.audit.intervals import exact_intervals
from tablesafe.core.equations import Floats
from tablesafe.core.release import Status
from tablesafe.work.budget import Budget

MOST = 2_000
"""Cells that a page may ask about without anybody having asked for it."""
SECONDS = 5.0
"""How long that may take."""


class _TooLong(Exception):
    """The time is up."""


def withheld_unasked(findings: Findings) -> NDArray[np.intp]:
    """The cells that the release withholds and the audit did not look at; those never published are left out."""
    hidden = findings.release.suppressed & (findings.release.status != Status.BY_DESIGN)
    hidden[findings.cells] = False
    found: NDArray[np.intp] = findings.system.cells[hidden[findings.system.cells]]
    return found


def derive(findings: Findings, cells: NDArray[np.intp], seconds: float) -> tuple[Floats, Floats] | None:
    """The least and the most that each of some unknown cells can be, for the outsider of the audit; None if too long.

    Cells must be unknown to the attacker: those of `withheld_unasked`, for example.
    """
    system, unit, budget = findings.system, 10.0**findings.problem.table.decimals, Budget(seconds)

    def watch(share: float) -> None:
        if budget.over:
            raise _TooLong

    at = np.searchsorted(system.cells, cells)
    try:
        found = exact_intervals(system, at, progress=watch)
    except _TooLong:
        return None
    lower, upper = found.lower, found.upper
    if _whole(findings):
        sharper = integer_intervals(system, at, start=(lower, upper), time_limit_s=max(budget.left, 0.1))
        lower, upper = sharper.lower, sharper.upper
    return lower / unit, upper / unit


def with_withheld(findings: Findings, *, most: int = MOST, seconds: float = SECONDS) -> Findings:
    """The findings with the interval of every withheld cell, if they are few and quickly found; else as they are."""
    cells = withheld_unasked(findings)
    found = derive(findings, cells, seconds) if 0 < len(cells) <= most else None
    if found is None:
        return findings
    every = np.concatenate([findings.cells, cells])
    order = np.argsort(every, kind="stable")
    return replace(
        findings,
        cells=every[order],
        lower=np.concatenate([findings.lower, found[0]])[order],
        upper=np.concatenate([findings.upper, found[1]])[order],
        protected=np.concatenate([findings.protected, np.ones(len(cells), np.bool_)])[order],
    )


def _whole(findings: Findings) -> bool:
    """Whether the attacker of the audit knows that values are whole numbers."""
    if findings.certificate is not None:
        return findings.certificate.whole
    return knows_whole_numbers(findings.problem.table, None)
