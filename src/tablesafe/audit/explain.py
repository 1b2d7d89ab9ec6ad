"""How a cell is given away: the few equations that fix or narrow it, in the user's own codes.

Any bound that an attacker can derive is a combination of equations: multiply each by some number, add them up, and all
unknown cells drop out but the one asked for and those whose prior bounds are then used. So an explanation is a set of
multipliers, found as the shortest chain of equations that each have one unknown left, or else by a linear program that
wants as little of as few equations as possible. It is checked in exact arithmetic before anyone is told.

And who protects whom: a witness is another table that agrees with all that is published, in which a sensitive cell lies
far enough from its true value. The withheld cells that move along in it are what hides the cell: publish one of them,
and this witness is no proof any more. Another may be; whether there is one, `Audit.publish` tells.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.exact import ExactLimits
from tablesafe.audit.system import System
from tablesafe.core.equations import Integers
from tablesafe.core.errors import SolverFailure
from tablesafe.core.table import Table
from tablesafe.solve.highs import Model
from tablesafe.solve.program import Program
from tablesafe.work.budget import Budget

if TYPE_CHECKING:
    from tablesafe.audit.findings import Findings
    from tablesafe.audit.proofs import Group

Side = Literal["lower", "upper"]

MOST_TERMS = 12
"""Terms spelled out before the rest is only counted."""
NEIGHBOURHOODS = (1, 2, 3, 5)
"""Equations within so many steps of the cell are tried before all."""
PATIENCE_S = 60.0
"""Seconds for one program: an explanation is a service."""
LARGEST_DENOMINATOR = 720
"""Prices of equations are read as fractions with denominators up to this; whether they prove it is then checked."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why an attacker knows that a cell is at most, at least, or exactly so much."""

    table: Table = field(repr=False)
    cell: int
    relation: Literal["=", "≤", "≥"]
    bound: Fraction
    """In units of `10**-decimals`."""
    equations: tuple[int, ...]
    """The table's equations that are combined, in the order in which they are used."""
    known: Mapping[int, Fraction] = field(repr=False)
    """Cells that the attacker knows, with their coefficient in the combination."""
    limited: Mapping[int, tuple[Fraction, Fraction]] = field(repr=False)
    """Unknown cells of which only a prior bound is used: their coefficient and that bound, in units."""

    @property
    def text(self) -> str:
        """The combination spelled out, such as `x = total − a − b` or `x ≤ total − a, since b ≥ 0`."""
        describe, unit = self.table.describe, 10**self.table.decimals
        terms = [_term(coefficient, describe(cell)) for cell, coefficient in self.known.items()]
        terms.sort(key=lambda term: term.startswith("−"))
        constant = sum((weight * bound for weight, bound in self.limited.values()), Fraction(0)) / unit
        if constant:
            terms.append(f"{'−' if constant < 0 else '+'} {_shown(abs(constant))}")
        more = f" … ({len(terms) - MOST_TERMS:,} terms more)" if len(terms) > MOST_TERMS else ""
        right = " ".join(terms[:MOST_TERMS]).removeprefix("+ ") or "0"
        return f"{describe(self.cell)} {self.relation} {right}{more}{self._since(unit)}"

    def _since(self, unit: int) -> str:
        downwards = self.relation == "≥"
        reasons = [
            f"{self.table.describe(cell)} {'≤' if (weight > 0) != downwards else '≥'} {_shown(bound / unit)}"
            for cell, (weight, bound) in list(self.limited.items())[:MOST_TERMS]
        ]
        more = f" … ({len(self.limited) - MOST_TERMS:,} more)" if len(self.limited) > MOST_TERMS else ""
        return f", since {' and '.join(reasons)}{more}" if reasons else ""

    @property
    def steps(self) -> tuple[str, ...]:
        """The equations that are combined, each spelled out."""
        return tuple(self.table.describe_equation(row) for row in self.equations)


def _term(coefficient: Fraction, name: str) -> str:
    size = abs(coefficient)
    return f"{'−' if coefficient < 0 else '+'} {'' if size == 1 else f'{size}·'}{name}"


def _shown(number: Fraction) -> str:
    return f"{number.numerator:,}" if number.denominator == 1 else f"{float(number):,.6g}"


def explain(system: System, limits: ExactLimits, at: int, *, side: Side, bound: float) -> Explanation | None:
    """Explain the bound of the unknown cell at position `at`; None if no combination of equations was found.

    `limits` holds how far each unknown cell may move from the truth; `bound` is the bound to explain, in units.
    """
    chain = _chain(system, at)
    if chain is not None:
        return _checked(system, limits, at, side, *chain)
    target = abs(bound - float(system.truth[at]))
    before = -1
    for steps in (*NEIGHBOURHOODS, None):
        rows = _near(system, at, steps)
        if len(rows) == before:
            break
        before = len(rows)
        weights = _lightest(system, limits, at, side, target, rows)
        if weights is not None:
            found = _checked(system, limits, at, side, weights, tuple(weights))
            if found is not None and abs(found.bound - system.truth[at]) <= _reach(target):
                return found
    return None


def _reach(target: float) -> float:
    """A move that counts as no further than the target."""
    return target + 1e-6 * max(1.0, target) if target > 1e-6 else 1e-9


def _checked(
    system: System, limits: ExactLimits, at: int, side: Side, weights: Mapping[int, Fraction], rows: tuple[int, ...]
) -> Explanation | None:
    """The bound that a combination of equations really proves, in exact arithmetic; None if it proves none."""
    table, sign = system.table, 1 if side == "upper" else -1
    position = {int(cell): k for k, cell in enumerate(system.cells)}
    known: dict[int, Fraction] = {}
    rest: dict[int, Fraction] = {at: Fraction(1)}
    for row, weight in weights.items():
        for cell, entry in _entries(table.equations, int(system.rows[row])):
            place = position.get(cell)
            into, key = (known, cell) if place is None else (rest, place)
            into[key] = into.get(key, Fraction(0)) - weight * entry
    bound = Fraction(int(system.truth[at]))
    limited: dict[int, tuple[Fraction, Fraction]] = {}
    for place, weight in rest.items():
        if weight:
            upwards = (weight > 0) == (sign > 0)
            free, ends = (limits.high_free, limits.high) if upwards else (limits.low_free, limits.low)
            if free[place]:
                return None
            move = Fraction(int(ends[place]), limits.scale)
            bound += weight * move
            limited[int(system.cells[place])] = (weight, int(system.truth[place]) + move)
    relation: Literal["=", "≤", "≥"] = "=" if not limited else "≤" if sign > 0 else "≥"
    used = tuple(int(system.rows[row]) for row in rows)
    return Explanation(
        table, int(system.cells[at]), relation, bound, used, {c: w for c, w in known.items() if w}, limited
    )


# -- chains of equations with one unknown each -----------------------------------------------------------------------


def _chain(system: System, at: int) -> tuple[dict[int, Fraction], tuple[int, ...]] | None:
    """Multipliers of the fewest equations that, one after the other, have a single unknown left, up to the cell.

    Knuth's generalisation of Dijkstra's algorithm: a cell costs one equation plus the cost of its other cells.
    """
    by_row, by_cell = system.matrix, system.matrix.tocsc()
    cost: dict[int, int] = {}
    via: dict[int, int] = {}
    left = np.diff(by_row.indptr).tolist()
    queue = [(1, int(by_row.indices[by_row.indptr[row]]), row) for row in np.flatnonzero(np.diff(by_row.indptr) == 1)]
    heapq.heapify(queue)
    while queue:
        price, cell, row = heapq.heappop(queue)
        if cell in cost:
            continue
        cost[cell], via[cell] = price, int(row)
        if cell == at:
            return _unrolled(system, at, via)
        for other in by_cell.indices[by_cell.indptr[cell] : by_cell.indptr[cell + 1]].tolist():
            left[other] -= 1
            if left[other] == 1:
                members = by_row.indices[by_row.indptr[other] : by_row.indptr[other + 1]].tolist()
                last = [member for member in members if member not in cost]
                price_there = 1 + sum(cost[member] for member in members if member in cost)
                for member in last:
                    heapq.heappush(queue, (price_there, member, other))
    return None


def _unrolled(system: System, at: int, via: Mapping[int, int]) -> tuple[dict[int, Fraction], tuple[int, ...]]:
    """Multipliers of the equations of a chain such that all derived cells but the last cancel."""
    order: list[int] = []
    seen: set[int] = set()

    def visit(start: int) -> None:
        stack = [(start, False)]
        while stack:
            cell, done = stack.pop()
            if done:
                order.append(cell)
            elif cell not in seen:
                seen.add(cell)
                stack.append((cell, True))
                stack.extend((other, False) for other, _ in _entries(system.matrix, via[cell]) if other != cell)

    visit(at)
    need: dict[int, Fraction] = {at: Fraction(1)}
    weights: dict[int, Fraction] = {}
    for cell in reversed(order):
        amount = need.pop(cell, Fraction(0))
        row = via[cell]
        entries = dict(_entries(system.matrix, row))
        weight = amount / entries[cell]
        weights[row] = weights.get(row, Fraction(0)) + weight
        for other, sign in entries.items():
            if other != cell:
                need[other] = need.get(other, Fraction(0)) - weight * sign
    rows = tuple(dict.fromkeys(via[cell] for cell in order))
    return {row: weight for row, weight in weights.items() if weight}, rows


def _entries(matrix: sparse.csr_array, row: int) -> Iterator[tuple[int, int]]:
    span = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True)


# -- combinations by linear programming ------------------------------------------------------------------------------


def _near(system: System, at: int, steps: int | None) -> NDArray[np.intp]:
    """The system's rows within some steps of a cell, nearest first; all of its component without a number."""
    by_row, by_cell = system.matrix, system.matrix.tocsc()
    rows: list[NDArray[np.intp]] = []
    seen = np.zeros(by_row.shape[0], dtype=np.bool_)
    cells, seen_cells = np.array([at]), np.zeros(by_row.shape[1], dtype=np.bool_)
    while cells.size and (steps is None or len(rows) < steps):
        seen_cells[cells] = True
        found = np.unique(by_cell[:, cells].indices)
        found = found[~seen[found]]
        seen[found] = True
        rows.append(found)
        cells = np.unique(by_row[found].indices)
        cells = cells[~seen_cells[cells]]
    return np.concatenate(rows) if rows else np.zeros(0, np.intp)


def _lightest(
    system: System, limits: ExactLimits, at: int, side: Side, target: float, rows: NDArray[np.intp]
) -> dict[int, Fraction] | None:
    """Multipliers of as few of the rows as possible that prove the cell moves by no more than `target`.

    In moves from the truth the equations are homogeneous, so only the limits used have a price: with multipliers y and
    w = e − Mᵀy, the cell moves by at most Σ w⁺·high + w⁻·|low|.
    """
    part = system.matrix[rows]
    cells = np.union1d(np.unique(part.indices), [at])
    columns = part[:, cells].T.astype(np.float64)
    own = limits.take(cells)
    high = np.where(own.high_free, np.inf, own.high.astype(np.float64) / own.scale)
    low = np.where(own.low_free, np.inf, -own.low.astype(np.float64) / own.scale)
    if side == "lower":
        high, low = low, high
    most = target * LARGEST_DENOMINATOR if target > 1e-6 else 1e-9  # a limit further off could not be used at all
    use_high, use_low = np.flatnonzero(high <= most), np.flatnonzero(low <= most)
    identity = sparse.eye_array(len(cells), format="csc")
    balance = sparse.hstack([columns, -columns, identity[:, use_high], -identity[:, use_low]], format="csr")
    scale = target if target > 1e-6 else 1.0
    price = np.concatenate([np.zeros(2 * len(rows)), high[use_high], low[use_low]]) / scale
    goal = (cells == at).astype(np.float64)
    weight = np.concatenate([np.ones(2 * len(rows)), np.full(len(use_high) + len(use_low), 0.1)])
    constraints = sparse.vstack([balance, sparse.csr_array(price[None])], format="csr")
    budget = target / scale + 1e-7
    try:
        answer = Model(
            Program(
                weight, constraints, np.append(goal, -np.inf), np.append(goal, budget), np.zeros(len(weight)),
                np.full(len(weight), np.inf),
            )
        ).solve(Budget(PATIENCE_S))  # fmt: skip
    except SolverFailure:  # better none than no findings
        return None
    if not answer.found:
        return None
    multipliers = answer.point[: len(rows)] - answer.point[len(rows) : 2 * len(rows)]
    return {
        int(row): Fraction(float(value)).limit_denominator(LARGEST_DENOMINATOR)
        for row, value in zip(rows, multipliers, strict=True)
        if abs(value) > 1e-7
    }


# -- who protects whom -----------------------------------------------------------------------------------------------


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
        return np.zeros(0, dtype=np.int64)
    cells = np.unique(findings.system.cells[np.unique(np.concatenate(places))])
    cells = cells[(cells != cell) & (cells < findings.problem.table.seen)]
    equations = findings.problem.table.equations
    sums = equations[equations[:, [cell]].nonzero()[0]]
    near = np.isin(cells, np.unique(sums.indices))
    order = np.lexsort((-np.abs(findings.problem.table.value[cells]), ~near))
    found: Integers = cells[order].astype(np.int64)
    return found
