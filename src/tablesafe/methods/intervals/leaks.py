"""Do published intervals give away what they stand for: values, or the parameters p and q of the rule?

The audit says whether every sensitive cell keeps its protection when all intervals and all equations are put together.
But an intruder also reads between the lines: from symmetric intervals it takes the middles, from their widths the
parameters. This check runs those attacks, and compares what they find with what the office wants to keep. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.attack.parameters import Base, Few, PRange, infer_p_from
from tablesafe.attack.reconstruction import Derived, Reconstruction, reconstruct_from
from tablesafe.audit.audit import audit
from tablesafe.audit.findings import Findings
from tablesafe.core.equations import Mask
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release

CLOSE = 1e-9
"""Relative distance at which a reconstructed value is the truth."""
HALF = 0.5
"""The share of right middles from which on they are no coincidence."""


@dataclass(frozen=True, eq=False)
class Leaks:
    """What the intervals of a release give away."""

    findings: Findings = field(repr=False)
    """The audit: all intervals and all equations together."""
    reconstruction: Reconstruction = field(repr=False)
    exact: Mask = field(repr=False)
    """Per unknown cell, whether the middle of its interval is the truth."""
    sensitive: Mask = field(repr=False)
    """Per unknown cell, whether it is sensitive and not known anyway."""
    p_range: PRange
    p: float | None
    """The office's p, in percent: of the cells with one contributor; None when there are none."""
    q: float | None
    """To within what percentage the prior bounds say that values are known; None when they are no such bounds."""
    tolerance: float

    @property
    def values_leak(self) -> bool:
        """Whether middles are the truth in a way that an intruder can see, or too often for a coincidence."""
        if self.reconstruction.betrayed:
            return bool(self.exact.any())
        return bool(self.sensitive.any()) and float(self.exact[self.sensitive].mean()) >= HALF

    @property
    def p_leaks(self) -> bool:
        """Whether the bound on p that the intervals give comes near to p itself."""
        return self.p is not None and self.p_range.upper <= self.p * (1 + self.tolerance)

    @property
    def q_leaks(self) -> bool:
        """Whether the intervals betray the prior knowledge that they were computed from."""
        if self.q is None or not self.reconstruction.betrayed:
            return False
        return abs(self.reconstruction.q - self.q) <= self.tolerance * self.q

    @property
    def safe(self) -> bool:
        """Whether the release passes its audit and its intervals leak neither values nor p nor q."""
        return self.findings.safe and not self.leaking

    @property
    def leaking(self) -> bool:
        """Whether the intervals themselves leak values, p or q."""
        return self.values_leak or self.p_leaks or self.q_leaks

    def __str__(self) -> str:
        told = [
            "the values" if self.values_leak else "",
            "p" if self.p_leaks else "",
            "q" if self.q_leaks else "",
        ]
        leaks = " and ".join(filter(None, told))
        audited = "" if self.findings.safe else " The release does not pass its audit."
        return (f"The intervals leak {leaks}." if leaks else "The intervals leak neither values nor p nor q.") + audited


def check_intervals(
    problem: Problem,
    release: Release,
    *,
    one: NDArray[Any] | None = None,
    two: NDArray[Any] | None = None,
    of: Base = "largest",
    tolerance: float = 0.05,
    findings: Findings | None = None,
) -> Leaks:
    """Attack the intervals of a release: reconstruct values, infer p and q, and audit them all together.

    `one` and `two` mark the cells of which an intruder knows that they have one or two contributors; by default those
    that the table counts so, and without counts every sensitive cell is taken for one with a single contributor. What
    comes within `tolerance` of a parameter has found it. `findings` are those of an audit done before.
    """
    table, derived = problem.table, Derived.of(release)
    if one is None and two is None and table.count is None and table.holdings is None:
        one = problem.sensitivity.mask
    few = Few.of(table, one, two)
    found = reconstruct_from(derived)
    truth = table.value[derived.cells]
    with np.errstate(invalid="ignore"):
        exact = np.abs(derived.middle - truth) <= CLOSE * np.maximum(1.0, np.abs(truth))
    return Leaks(
        audit(problem, release, certify=False) if findings is None else findings,
        found,
        exact & derived.free,
        problem.sensitivity.mask[derived.cells] & derived.free,
        infer_p_from(derived, few, of),
        _own_p(problem, few),
        _own_q(problem, derived),
        tolerance,
    )


def _own_p(problem: Problem, few: Few) -> float | None:
    """The least share of its value to which any cell with one contributor is protected, in percent."""
    levels, value = problem.sensitivity, np.abs(problem.table.value)
    cells = few.one & levels.mask & (value > 0) & (levels.upper > 0)
    return 100 * float((levels.upper[cells] / value[cells]).min()) if cells.any() else None


def _own_q(problem: Problem, derived: Derived) -> float | None:
    """The percentage of the prior bounds, if they are one: the same for all unknown cells, on both sides."""
    cells = derived.cells[problem.table.value[derived.cells] > 0]
    value = problem.table.value[cells]
    if not cells.size or not np.isfinite(problem.upper[cells] - problem.lower[cells]).all():
        return None
    shares = np.concatenate([value - problem.lower[cells], problem.upper[cells] - value]) / np.tile(value, 2)
    share = float(np.median(shares))
    return 100 * share if bool((np.abs(shares - share) <= 1e-6 * max(share, 1e-12)).all()) else None
