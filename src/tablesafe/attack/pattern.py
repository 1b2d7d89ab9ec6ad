"""Tables that an intruder thinks possible: whole numbers that add up and agree with the release, drawn at random.

A walk from table to table: the directions are differences of tables at which some cell is as small or as large as can
be, divided by their common factor, and each step lands on any of the whole tables along its line, all equally likely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.attack.estimate import Estimate
from tablesafe.attack.optima import vertex
from tablesafe.attack.reconstruction import seen
from tablesafe.attack.trial import whole_tables
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption, SolverFailure, TablesafeError
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.solve.program import Program

CORNERS = 200
"""Tables at the ends of some cell that are looked for at most."""
STEPS = 25
"""Steps between two tables that are kept."""


def candidate_tables(release: Release, count: int, *, seed: int = 0) -> Floats:
    """Draw `count` additive tables in whole units that agree with a release: one row per table, one column per cell.

    The walk needs no truth. Where its corners leave no direction there is one table only.
    """
    system, random = seen(release), np.random.default_rng(seed)
    corners = _corners(system, random)
    unit = 10.0**release.table.decimals
    out = np.tile(release.table.value, (count, 1))
    if len(corners):
        out[:, system.cells] = _walk(system, corners, count, random) / unit
    return out


def _corners(system: System, random: np.random.Generator) -> Integers:
    """Whole tables in which a weighted sum of some cells is as small as can be, with random weights."""
    matrix, rhs = sparse.csr_array(system.matrix), system.rhs.astype(np.float64)
    found: list[Integers] = []
    for _ in range(min(CORNERS, 4 * len(system))):
        cost = random.standard_normal(len(system))
        cost[np.isinf(system.upper) & (cost < 0)] *= -1.0  # a sum that falls for ever has no least
        cost[np.isinf(system.lower)] = 0.0
        try:
            point = vertex(Program.equations(matrix, rhs, system.lower, system.upper, cost=cost))
        except SolverFailure:
            continue
        whole = np.rint(point).astype(np.int64)
        inside = bool(((whole >= system.lower) & (whole <= system.upper)).all())
        if inside and not (np.asarray(system.matrix.astype(np.int64) @ whole) - system.rhs).any():
            found.append(whole)
    return np.unique(np.array(found, dtype=np.int64).reshape(-1, len(system)), axis=0)


def _walk(system: System, corners: Integers, count: int, random: np.random.Generator) -> Integers:
    """Tables met on a walk that starts at a corner."""
    at = corners[random.integers(len(corners))].copy()
    kept = np.empty((count, len(system)), dtype=np.int64)
    for number in range(count * STEPS):
        one, other = random.integers(len(corners), size=2)
        step = corners[one] - corners[other]
        factor = int(np.gcd.reduce(step)) if len(step) else 0
        if factor:
            at = at + _length(system, at, step // factor, random) * (step // factor)
        if (number + 1) % STEPS == 0:
            kept[number // STEPS] = at
    return kept


def _length(system: System, at: Integers, step: Integers, random: np.random.Generator) -> int:
    """How many steps to go along a line, back or forth: any number that stays within the bounds, equally likely."""
    moves = step != 0
    to_upper, to_lower = (system.upper - at)[moves] / step[moves], (system.lower - at)[moves] / step[moves]
    forth = np.floor(np.maximum(to_upper, to_lower).min() + 1e-9)
    back = np.ceil(np.minimum(to_upper, to_lower).max() - 1e-9)
    if not np.isfinite(forth - back):
        return 0
    return int(random.integers(int(back), int(forth) + 1))


# The matching attack: which values would have led to this pattern?
#
# An intruder who knows how the office works (its method, its rule, which cells are sensitive) protects every table that
# it thinks possible in the office's own way, and keeps those that lead to the pattern it sees. What they have in common
# is disclosed by the pattern itself, not by any value in the release.


Office = Callable[[Table], Mask]
"""What the office would withhold of a table: its rule, its p and its method in one function."""


@dataclass(frozen=True, eq=False)
class Match:
    """The tables that were tried, and those that lead to the pattern."""

    release: Release = field(repr=False)
    tables: Floats = field(repr=False)
    """One row per table, one column per cell."""
    matching: Mask = field(repr=False)
    """Which of the tables lead to this pattern."""

    @property
    def share(self) -> float:
        """The share of the tables tried that lead to the pattern."""
        return float(self.matching.mean()) if len(self.matching) else 0.0

    @cached_property
    def lower(self) -> Floats:
        """All cells: the least value among the matching tables; NaN when none matches."""
        return self._over_matching(np.min)

    @cached_property
    def upper(self) -> Floats:
        """All cells: the largest value among the matching tables."""
        return self._over_matching(np.max)

    @cached_property
    def values(self) -> Floats:
        """All cells: the mean of the matching tables, which adds up as they do."""
        return self._over_matching(np.mean)

    def _over_matching(self, summary: Callable[..., Any]) -> Floats:
        if not self.matching.any():
            nothing = np.full(len(self.release.table), np.nan)
            return np.where(self.release.suppressed, nothing, self.release.table.value)
        return np.asarray(summary(self.tables[self.matching], axis=0), dtype=np.float64)

    def estimate(self, problem: Problem) -> Estimate:
        """The mean as the intruder's guess, scored against the truth."""
        known = np.ones(len(problem.table), np.bool_)
        known[seen(self.release).cells] = False
        return Estimate(problem, "pattern match", self.values, known)

    def __str__(self) -> str:
        return (
            f"{int(self.matching.sum()):,} of {len(self.matching):,} tables that agree with the release would have led "
            f"to its pattern."
        )


def match_pattern(
    release: Release,
    office: Office,
    *,
    tables: NDArray[Any] | None = None,
    count: int = 200,
    seed: int = 0,
) -> Match:
    """Protect tables that agree with the release in the office's own way, and keep those that lead to its pattern.

    `office` is what the intruder knows: it returns what would be withheld of a table. `tables` holds those to be
    tried, one per row; without any, `count` are drawn by `seed`. A table that the office could not protect at all
    cannot have led to a pattern.
    """
    table = release.table
    tried = candidate_tables(release, count, seed=seed) if tables is None else np.asarray(tables, dtype=np.float64)
    integers = whole_tables(table, seen(release), tried)
    distinct, back = np.unique(integers, axis=0, return_inverse=True)
    pattern = release.suppressed
    same = np.array([_leads_to(office, replace(table, integers=row), pattern) for row in distinct], dtype=np.bool_)
    return Match(release, integers / 10.0**table.decimals, same[back.reshape(-1)] if len(same) else same)


@dataclass(frozen=True, eq=False)
class KnownOffice:
    """An office whose method is known: it says what it would withhold of a table, with its own p or with another."""

    problem: Problem = field(repr=False)
    primary: Mask = field(repr=False)
    p: float | None
    protect: Callable[[Problem], Release] = field(repr=False)

    def __call__(self, table: Table, p: float | None = None) -> Mask:
        """What would be withheld of a table; `p` in percent, unless it is the office's own."""
        percent = self.p if p is None else p
        if percent is None:
            raise InvalidOption("This office has no p of its own.", hint="ts.known_office(..., p=20, ...).")
        level = np.where(self.primary, percent / 100 * np.abs(table.value), 0.0)
        sensitivity = Sensitivity.of(self.primary, level)
        tried = self.problem.replace(table=table, sensitivity=sensitivity, cost=np.abs(table.value))
        return self.protect(tried).suppressed


def known_office(
    problem: Problem, primary: NDArray[Any], p: float | None, protect: Callable[[Problem], Release]
) -> KnownOffice:
    """An office that protects known sensitive cells by p percent of their value, at a cost of each cell's value.

    What stays secret are only the values: bounds, frozen cells and the method are known. `problem` gives those. For
    `match_pattern` it protects by its own p; `trial_p_by_method` asks for one p after another, so that p may be None.
    """
    mask = np.asarray(primary)
    if mask.shape != (len(problem.table),) or mask.dtype != np.bool_:
        raise InvalidOption(f"Sensitive cells are marked by {len(problem.table):,} booleans, one per cell.")
    return KnownOffice(problem, mask, p, protect)


def _leads_to(office: Office, table: Table, pattern: Mask) -> bool:
    try:
        return bool((np.asarray(office(table)) == pattern).all())
    except TablesafeError:
        return False
