"""Adjustments true to the statistics: mean, variance, correlation and slope, by linear programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption, InvalidProblem, Setting
from tablesafe.core.problem import Problem
from tablesafe.loss.statistics import Group, Pair, groups_of, pairs_of
from tablesafe.methods.adjust.aims import Keep, Limit
from tablesafe.methods.adjust.forms import Between, Capacity, Column, Curved, Linear, Statistic
from tablesafe.methods.adjust.instance import Instance
from tablesafe.methods.adjust.means import Means


def with_means(keep: Keep, problem: Problem, instance: Instance) -> Means:
    """The same problem with an equation per group: its changes add up to zero."""
    if not keep.mean:
        return Means.none(instance)
    place = np.full(len(problem.table), -1)
    place[instance.cells] = np.arange(len(instance.cells))
    columns = [place[cells][place[cells] >= 0] for cells in _averaged(keep, problem)]
    columns = [cells for cells in columns if cells.size]
    if not columns:
        return Means.none(instance)
    rows = np.repeat(np.arange(len(columns)), [len(cells) for cells in columns])
    where = np.concatenate(columns)
    shape = (len(columns), len(instance.cells))
    sums = sparse.csr_array((np.ones(len(where), np.int64), (rows, where)), shape=shape)
    matrix = sparse.csc_array(sparse.vstack([instance.matrix, sums.astype(instance.matrix.dtype)]))
    bound = replace(instance, matrix=matrix).narrowed()
    stuck = ~(bound.can_rise | bound.can_fall) & (instance.can_rise | instance.can_fall)
    if stuck.any():
        raise mean_in_the_way(problem, instance.cells[instance.targets[stuck]])
    return Means(bound, sums)


def mean_in_the_way(problem: Problem, cells: NDArray[np.intp], *, proved: bool = True) -> InvalidProblem:
    """The error that says which sensitive cells cannot move while the means stay, or were not seen to."""
    more = f" and {len(cells) - 1:,} more" if len(cells) > 1 else ""
    if not proved:
        return InvalidProblem(
            f"No change was found, in the time given, that moves sensitive cell "
            f"{problem.table.describe(int(cells[0]))}{more} far enough and keeps the mean of each group.",
            hint=(
                "raise time_limit_s, keep means over more cells (",
                Setting("over", "all"),
                "), or not at all (",
                Setting("mean", False),
                ").",
            ),
        )
    return InvalidProblem(
        f"Sensitive cell {problem.table.describe(int(cells[0]))}{more} cannot be moved far enough while the mean "
        f"of each group stays: too few other cells of its group can make up for it.",
        hint=(
            "keep means over more cells (",
            Setting("over", "all"),
            "), or not at all (",
            Setting("mean", False),
            "), or give cells more room (capacity_percent, zeros).",
        ),
    )


def _averaged(keep: Keep, problem: Problem) -> list[NDArray[np.intp]]:
    """The cells of each mean that is kept."""
    groups = groups_of(problem, keep.over)
    if not keep.responses:
        return [group.cells for group in groups]
    pairs = pairs_of(problem, keep.responses, groups)
    return [cells for pair in pairs for cells in (pair.first, pair.second)]


def wanted(keep: Keep, problem: Problem, instance: Instance) -> list[Statistic]:
    """Every statistic of every group; groups whose values do not vary have none."""
    groups = groups_of(problem, keep.over)
    if not keep.relations:
        found = []
    elif keep.responses:
        found = [
            s for pair in pairs_of(problem, keep.responses, groups) for s in _of_pair(keep, problem, instance, pair)
        ]
    else:
        found = [s for group in groups for s in _of_group(keep, _column(problem, instance, group))]
    if keep.capacity is not None:
        return [*found, _capacity(keep, problem, instance)]
    if not found:
        raise InvalidOption(
            f"Keep.over {keep.over if isinstance(keep.over, str) else list(keep.over)!r} holds no group of at "
            f"least two cells with different values.",
            hint=(
                "choose other cells, for example ",
                Setting("over", "all"),
                ".",
            ),
            about=("option", "Keep", "over"),
        )
    return found


def _capacity(keep: Keep, problem: Problem, instance: Instance) -> Capacity:
    """The changes that a capacity limits: of a cell of value zero no share is anything."""
    size = np.abs(problem.table.integers[instance.cells]).astype(np.float64)
    free = problem.sensitivity.mask | problem.withheld | problem.suppressed
    cells = np.flatnonzero(~free[instance.cells] & (size > 0))
    return Capacity(cells, size[cells], price=keep.capacity_weight)


def _of_group(keep: Keep, column: Column) -> list[Statistic]:
    if not _varies(column.values):
        return []
    if keep.formulation == "linear":
        least = keep.variance is not None or keep.slope is not None
        either: list[Statistic] = [Linear(column, name="L")] if least else []
        return [*either, Linear(column, largest=True, name="L")] if keep.correlation is not None else either
    found: list[Statistic] = []
    if keep.variance is not None:
        found.append(Curved(column, _number(keep.variance), "variance"))
    if keep.slope is not None:
        found.append(Linear(column, _number(keep.slope)))
    if keep.correlation is not None:
        found.append(Curved(column, _number(keep.correlation), "correlation"))
    return found


def _of_pair(keep: Keep, problem: Problem, instance: Instance, pair: Pair) -> list[Statistic]:
    first = _column(problem, instance, Group(f"{pair.name} ({keep.responses[0]})", pair.first))
    second = _column(problem, instance, Group(f"{pair.name} ({keep.responses[1]})", pair.second))
    if not (_varies(first.values) and _varies(second.values)):
        return []
    found: list[Statistic] = []
    if keep.variance is not None:
        found += [Curved(column, _number(keep.variance), "variance") for column in (first, second)]
    if keep.slope is not None:
        found.append(Between(first, second, "slope", _number(keep.slope), pair.name))
    if keep.correlation is not None:
        found.append(Between(first, second, "correlation", _number(keep.correlation), pair.name))
    return found


def _column(problem: Problem, instance: Instance, group: Group) -> Column:
    place = np.full(len(problem.table), -1)
    place[instance.cells] = np.arange(len(instance.cells))
    movable = np.flatnonzero(place[group.cells] >= 0)
    values = problem.table.integers[group.cells].astype(np.float64)
    return Column(group.name, values, movable, place[group.cells[movable]])


def _varies(values: Floats) -> bool:
    return len(values) > 1 and bool((values != values[0]).any())


def _number(limit: Limit) -> float | None:
    return None if limit is None or limit == "best" else float(limit)


def missed(statistics: Sequence[Statistic], moves: Floats, tolerance: float = 1e-9) -> list[tuple[Statistic, float]]:
    """The statistics that are outside their limits, and where they are."""
    found = [(s, s.deviation(moves)) for s in statistics if s.within is not None]
    return [(s, deviation) for s, deviation in found if not deviation <= (s.within or 0.0) + tolerance]
