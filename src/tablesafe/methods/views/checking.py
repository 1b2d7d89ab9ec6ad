"""Every pattern is audited before it leaves; and a baseline that needs nothing but audits."""

from __future__ import annotations

import numpy as np

from tablesafe.audit.audit import audit
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.equations import Mask
from tablesafe.core.errors import InvalidProblem, SolverFailure
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.methods.views.bounds import view_bounds

AUDITED = 20_000
"""Cells up to which the general audit judges a pattern; beyond that the operators do, where they are exact."""


def random_release(problem: Problem, seed: int, name: str) -> Release:
    """The baseline for any problem: the shortest safe part of a random order of cells, then less where less will do."""
    random = np.random.default_rng(seed)
    free = np.flatnonzero(~(problem.frozen | problem.withheld | problem.suppressed))
    order = random.permutation(free)

    def release(cells: Mask) -> Release:
        return Release.from_suppression(problem, cells | problem.suppressed, method=name)

    def pattern(count: int) -> Mask:
        mask = np.zeros(len(problem.table), dtype=np.bool_)
        mask[order[:count]] = True
        return mask

    if not is_safe(problem, release(pattern(len(order)))):
        raise InvalidProblem(
            "Some confidential cell cannot be protected, even if every cell that may be withheld is.\n\n"
            "Hint: unfreeze cells of the published views, or widen the tolerable bounds."
        )
    few, many = 0, len(order)
    while few < many:
        middle = (few + many) // 2
        few, many = (few, middle) if is_safe(problem, release(pattern(middle))) else (middle + 1, many)
    mask = pattern(many)
    width = max(1, many // 2)
    while width:
        for first in range(0, many, width):
            part = order[first : min(first + width, many)]
            less = mask.copy()
            less[part] = False
            if mask[part].any() and is_safe(problem, release(less)):
                mask = less
        width //= 2
    return release(mask)


def is_safe(problem: Problem, release: Release) -> bool:
    if len(problem.table) > AUDITED:
        return bool(view_bounds(problem, release).protected.all())
    return not audit(problem, release, exact=False, certify=False, insiders=False, unions=False).open


def checked(problem: Problem, release: Release) -> Release:
    """A release whose pattern was audited: by the operators where they are exact, else by the general audit."""
    if not is_safe(problem, release):
        raise SolverFailure("A pattern was found that the audit does not accept. This is a defect: please report it.")
    return release


def without_given_away(problem: Problem, release: Release) -> Release:
    """Publish every complementary cell whose value the release gives away anyway: an attacker learns nothing new."""
    cells = np.flatnonzero(release.status == Status.COMPLEMENTARY)
    system = System.of(problem, release)
    position = np.full(len(problem.table), -1, dtype=np.intp)
    position[system.cells] = np.arange(len(system))
    found = exact_intervals(system, position[cells[position[cells] >= 0]])
    known = cells[position[cells] >= 0][found.lower == found.upper]
    if not known.size:
        return release
    mask = release.suppressed & ~problem.withheld
    mask[known] = False
    return Release.from_suppression(problem, mask, method=release.method, solution=release.solution)
