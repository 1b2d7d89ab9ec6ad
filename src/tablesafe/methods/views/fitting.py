"""From a problem to the two views that the search works on, and back to a pattern over all cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tablesafe.audit.audit import audit
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption, InvalidProblem, SolverFailure
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.methods.views.bounds import sliced, view_bounds
from tablesafe.methods.views.instance import Axes, Hidden, Structure, TwoViews, targets_of


@dataclass(frozen=True, eq=False)
class Fitted:
    """Two views, and which cells of the table they are."""

    views: TwoViews
    cells_a: Integers = field(repr=False)
    cells_b: Integers = field(repr=False)

    def pattern(self, a: Mask, b: Mask, n: int) -> Mask:
        """The pattern over all cells of the table."""
        mask = np.zeros(n, dtype=np.bool_)
        mask[self.cells_a[a]] = True
        mask[self.cells_b[b]] = True
        return mask


def view_costs(problem: Problem, cost: str, weights: Sequence[float]) -> Floats:
    """What it costs to withhold each cell: by number, by value, or as the problem says; times the weight of its view.

    Views come in the order of their first cells. Cells that are withheld anyway cost nothing.
    """
    table = problem.table
    costs = {"value": np.abs(table.value), "weighted": problem.cost}.get(cost, np.ones(len(table)))
    if weights:
        view = _view_numbers(problem)
        if view.max(initial=-1) + 1 != len(weights):
            raise InvalidOption(
                f"SuppressViews.weights must be one per published view ({view.max(initial=-1) + 1}), "
                f"got {len(weights)}.",
                about=("option", "SuppressViews", "weights"),
            )
        costs = costs * np.append(np.asarray(weights, dtype=np.float64), 0.0)[view]
    return np.where(problem.withheld | problem.suppressed, 0.0, costs)


def _view_numbers(problem: Problem) -> Integers:
    """The number of the published view that each cell belongs to; −1 for cells that cannot be withheld anew."""
    table = problem.table
    totals = np.column_stack([h.is_total[table.codes[:, d]] for d, h in enumerate(table.dimensions.values())])
    kind = totals @ (1 << np.arange(totals.shape[1]))
    free = ~problem.withheld & ~problem.frozen
    kinds = list(dict.fromkeys(kind[free].tolist()))
    number = np.full(len(table), -1, dtype=np.int64)
    for at, wanted in enumerate(kinds):
        number[free & (kind == wanted)] = at
    return number


def fitted(problem: Problem, cost: Floats, *, balance: float) -> Fitted | None:
    """The two views of a problem; None when it is not of that kind, and only the general method can answer."""
    structure = Structure.of(problem)
    if structure is None or not _plain(problem):
        return None
    shown = structure.published(problem.withheld)
    if len(shown) != 2 or set(shown[0]) | set(shown[1]) != set(range(len(structure.shape))):
        return None
    one, two = sorted(shown, key=lambda axes: int(structure.margins[axes].min()))
    shared = [d for d in one if d in two]
    apart = [d for d in one if d not in two] + [d for d in two if d not in one]
    secret = [axes for axes, at in structure.margins.items() if problem.sensitivity.mask[at].any()]
    if not secret or any(not set(apart) <= set(axes) or axes in shown for axes in secret):
        return None
    cells_a, cells_b = (sliced(structure, face, shared) for face in (one, two))
    a, b = (problem.table.integers[cells].astype(np.float64) for cells in (cells_a, cells_b))
    forced = problem.suppressed | problem.withheld
    hidden = [_hidden(problem, structure, axes, shared, apart, a.shape[1]) for axes in secret]
    groups, low, up = targets_of(a, b, hidden, (forced[cells_a], forced[cells_b]))
    views = TwoViews(
        a, b, cost[cells_a], cost[cells_b], ~problem.frozen[cells_a], ~problem.frozen[cells_b],
        forced[cells_a], forced[cells_b], groups, low, up, balance,
    )  # fmt: skip
    return Fitted(views, cells_a, cells_b)


def _plain(problem: Problem) -> bool:
    """Whether an attacker knows only that nothing is negative, and every sensitive cell has plain levels."""
    levels, mask = problem.sensitivity, problem.sensitivity.mask
    bare = mask & (levels.lower == 0) & (levels.upper == 0)
    known = (problem.lower != 0) | np.isfinite(problem.upper)
    return not bool(bare.any() or (levels.sliding[mask] > 0).any() or (known & ~problem.frozen).any())


def _hidden(
    problem: Problem, structure: Structure, axes: Axes, shared: list[int], apart: list[int], rows: int
) -> Hidden:
    """A confidential view with its cells by group, row and column."""
    kept = [d for d in shared if d in axes]
    sizes = [structure.shape[d] for d in shared]
    index = np.indices(sizes).reshape(len(sizes), int(np.prod(sizes, dtype=np.int64)))
    group = np.zeros(index.shape[1], dtype=np.int64)
    for d in kept:
        group = group * structure.shape[d] + index[shared.index(d)]
    count = int(np.prod([structure.shape[d] for d in kept], dtype=np.int64))
    cells = structure.margins[axes].transpose([axes.index(d) for d in (*kept, *apart)]).reshape(count, rows, -1)
    return Hidden(group, *_ends(problem, cells), cells)


def _ends(problem: Problem, cells: Integers) -> tuple[Floats, Floats]:
    """What the ends of each interval must reach, in units; NaN where they reach it in any case."""
    unit = 10.0**problem.table.decimals
    value = problem.table.integers[cells].astype(np.float64)
    down, up = problem.sensitivity.lower[cells] * unit, problem.sensitivity.upper[cells] * unit
    return np.where(down > 0, value - down, np.nan), np.where(up > 0, value + up, np.nan)


# Every pattern is audited before it leaves; and a baseline that needs nothing but audits.


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
            "Some confidential cell cannot be protected, even if every cell that may be withheld is.",
            hint="unfreeze cells of the published views, or widen the tolerable bounds.",
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
