"""How the statuses of cells are spelled for τ-ARGUS and for Eurostat; `tablesafe.core.statuses` reads them.

As in τ-ARGUS, the rule of a status decides its SBS flag: too few contributors alone is A, and a cell that is sensitive
by hand, on request or because it is zero is B.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Mask
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.io.dataset import dominated_by_two


class Argus(IntEnum):
    """The statuses of τ-ARGUS."""

    SAFE = 1
    SAFE_BY_HAND = 2
    UNSAFE = 3
    UNSAFE_REQUEST = 4
    UNSAFE_FREQUENCY = 5
    UNSAFE_ZERO = 6
    UNSAFE_SINGLETON = 7
    UNSAFE_SINGLETON_BY_HAND = 8
    UNSAFE_BY_HAND = 9
    PROTECTED = 10
    SECONDARY = 11
    SECONDARY_BY_HAND = 12
    EMPTY_NOT_STRUCTURAL = 13
    EMPTY = 14


def argus_statuses(problem: Problem, release: Release | None = None) -> NDArray[np.uint8]:
    """The τ-ARGUS status of each cell, before protection or of a release. Only for use inside the office."""
    status = np.full(len(problem.table), Argus.SAFE, dtype=np.uint8)
    status[problem.frozen] = Argus.PROTECTED
    if problem.table.structural_zero is not None:
        status[problem.table.structural_zero] = Argus.EMPTY
    hidden = problem.suppressed | problem.withheld
    status[hidden if release is None else release.suppressed] = Argus.SECONDARY
    sensitive = problem.sensitivity.mask if release is None else problem.sensitivity.mask & release.suppressed
    return np.where(sensitive, _by_reason(problem, _ARGUS_REASONS, Argus.UNSAFE), status).astype(np.uint8)


def sbs_flags(problem: Problem, release: Release | None = None) -> NDArray[np.str_]:
    """The SBS flag of each cell, before protection or of a release. Only for use inside the office."""
    status = argus_statuses(problem, release)
    flag = np.full(len(problem.table), "V")
    flag[(status >= Argus.UNSAFE) & (status <= Argus.UNSAFE_BY_HAND)] = "B"
    flag[status == Argus.UNSAFE_FREQUENCY] = "A"
    flag[(status == Argus.SECONDARY) | (status == Argus.SECONDARY_BY_HAND)] = "D"
    by_rule = status == Argus.UNSAFE
    flag[by_rule & _flagged_by(problem, "dominance") & dominated_by_two(problem)] = "C"
    flag[by_rule & _flagged_by(problem, "p%", "pq", "linear")] = "F"
    return flag


def _flagged_by(problem: Problem, *reasons: str) -> Mask:
    bits = np.uint32(sum(1 << j for j, name in enumerate(problem.sensitivity.reasons) if name in reasons))
    flagged: Mask = np.not_equal(problem.sensitivity.reason & bits, 0)
    return flagged


_ARGUS_REASONS = (
    ("given", Argus.UNSAFE_BY_HAND),
    ("manual", Argus.UNSAFE_BY_HAND),
    ("zero", Argus.UNSAFE_ZERO),
    ("threshold", Argus.UNSAFE_FREQUENCY),
    ("request", Argus.UNSAFE_REQUEST),
)
"""What the reasons of our rules are in τ-ARGUS; any other reason is its 3, a rule on shares."""


def _by_reason(problem: Problem, table: tuple[tuple[str, int], ...], other: int) -> NDArray[np.int64]:
    """A number per cell from the rules that flagged it: those later in the table win, and `other` over all of them."""
    sensitivity = problem.sensitivity
    found = np.full(len(problem.table), other, dtype=np.int64)
    known = dict(table)
    numbers = [known.get(name, other) for name in sensitivity.reasons]
    order = [*known.values(), other]
    for j in sorted(range(len(numbers)), key=lambda j: order.index(numbers[j])):
        found[(sensitivity.reason >> np.uint32(j)) & np.uint32(1) == 1] = numbers[j]
    return found
