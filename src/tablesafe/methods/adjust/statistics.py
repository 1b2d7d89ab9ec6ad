"""Adjustments true to the statistics: mean, variance, correlation and slope, by linear programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption, InvalidProblem, Setting
from tablesafe.core.options import is_number, require_choice, require_number
from tablesafe.core.problem import Problem
from tablesafe.loss.statistics import Group, Over, Pair, groups_of, pairs_of
from tablesafe.methods.adjust.forms import Between, Capacity, Column, Curved, Linear, Statistic
from tablesafe.methods.adjust.instance import Instance
from tablesafe.methods.adjust.means import Means

Limit = Literal["best"] | float | None
OrderName = Literal["first", "last", "alone"]
FormulationName = Literal["true", "linear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Statistics that an adjusted table shall keep, over groups of cells.

    The mean is kept exactly. The others are kept within a limit (`variance=0.06`: the ratio of variances stays between
    0.94 and 1.06; `correlation=0.05`: true and published values correlate by at least 0.95), or as well as possible
    (`"best"`); `capacity="best"` adds the largest relative change of the other cells to what is made small. With two
    `responses` of a linked table the slope and the correlation are those between the two, compared before and after.
    """

    mean: bool = field(default=True, metadata={"help": "the changes of each group add up to zero"})
    variance: Limit = field(
        default=None,
        metadata={"help": '"best", or how far the ratio of variances may be from 1', "example": 0.05},
    )
    correlation: Limit = field(
        default=None,
        metadata={
            "help": '"best", or how far the correlation of true and published values may be below 1 '
            "(of two responses: from what it was)",
            "example": 0.05,
        },
    )
    slope: Limit = field(
        default=None,
        metadata={
            "help": '"best", or how far the slope of published on true values may be from 1 '
            "(of two responses: from what it was, as a share)",
            "example": 0.05,
        },
    )
    capacity: Literal["best"] | None = field(
        default=None,
        metadata={
            "help": '"best": the capacity, which is the largest change of a cell that is not sensitive, as a share of '
            "its value, is made as small as possible together with the statistics",
            "example": "best",
        },
    )
    capacity_weight: float = field(
        default=1.0, metadata={"help": "what a capacity of 1, which is 100%, counts beside a statistic that is 1 off"}
    )
    over: Over = field(
        default="sensitive",
        metadata={
            "help": "which cells: sensitive, all, inner, totals; a dimension (a group per code) or a column (a group "
            "per number in it, 0 for none)"
        },
    )
    responses: tuple[str, ...] = field(
        default=(),
        metadata={
            "help": "two response variables of a linked table whose relation is kept, the explaining one first",
            "example": ("employees", "turnover"),
        },
    )
    order: OrderName = field(
        default="first",
        metadata={
            "help": "first: the statistics, then the least change that keeps them so; last: the least change, then the "
            "statistics; alone: the statistics, at any change"
        },
    )
    slack_percent: float = field(
        default=0.0, metadata={"help": "by how much the first goal may miss its best so that the second gains"}
    )
    formulation: FormulationName = field(
        default="true",
        metadata={
            "help": "true: the statistics themselves; linear: Cox & Kelly's objectives, |L(y)| for variance and slope, "
            "the largest L(y) for correlation"
        },
    )

    def __post_init__(self) -> None:
        for name in ("variance", "correlation", "slope"):
            value = getattr(self, name)
            if value is not None and value != "best" and not (is_number(value) and value >= 0):
                raise InvalidOption(f"Keep.{name} must be 'best' or a number at least 0, got {value!r}.")
        if self.capacity not in (None, "best"):
            raise InvalidOption(
                f"Keep.capacity must be 'best', got {self.capacity!r}.",
                hint="a capacity that you know is Adjust.capacity_percent.",
                about=("option", "Keep", "capacity"),
            )
        require_number(self, "capacity_weight", above=0)
        require_choice(self, "order", get_args(OrderName))
        require_choice(self, "formulation", get_args(FormulationName))
        require_number(self, "slack_percent", at_least=0)
        if self.responses and len(set(self.responses)) != 2:
            raise InvalidOption(
                f"Keep.responses must name two response variables, got {list(self.responses)!r}.",
                about=("option", "Keep", "responses"),
            )
        if self.formulation == "linear" and (self.responses or self.limited):
            raise InvalidOption(
                "Keep.formulation 'linear' is for one response, with 'best' statistics only.",
                hint="leave 'formulation' out.",
                about=("option", "Keep", "formulation"),
            )

    @property
    def limited(self) -> bool:
        """Whether some statistic has a limit."""
        return any(is_number(getattr(self, name)) for name in ("variance", "correlation", "slope"))

    @property
    def relations(self) -> bool:
        """Whether statistics beside the mean are kept."""
        return any(getattr(self, name) is not None for name in ("variance", "correlation", "slope"))

    @property
    def beyond_mean(self) -> bool:
        """Whether anything but the mean is kept."""
        return self.relations or self.capacity is not None

    def with_means(self, problem: Problem, instance: Instance) -> Means:
        """The same problem with an equation per group: its changes add up to zero."""
        if not self.mean:
            return Means.none(instance)
        place = np.full(len(problem.table), -1)
        place[instance.cells] = np.arange(len(instance.cells))
        columns = [place[cells][place[cells] >= 0] for cells in self._averaged(problem)]
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
            raise self.mean_in_the_way(problem, instance.cells[instance.targets[stuck]])
        return Means(bound, sums)

    def mean_in_the_way(self, problem: Problem, cells: NDArray[np.intp], *, proved: bool = True) -> InvalidProblem:
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

    def _averaged(self, problem: Problem) -> list[NDArray[np.intp]]:
        """The cells of each mean that is kept."""
        groups = groups_of(problem, self.over)
        if not self.responses:
            return [group.cells for group in groups]
        pairs = pairs_of(problem, self.responses, groups)
        return [cells for pair in pairs for cells in (pair.first, pair.second)]

    def wanted(self, problem: Problem, instance: Instance) -> list[Statistic]:
        """Every statistic of every group; groups whose values do not vary have none."""
        groups = groups_of(problem, self.over)
        if not self.relations:
            found = []
        elif self.responses:
            found = [
                s for pair in pairs_of(problem, self.responses, groups) for s in self._of_pair(problem, instance, pair)
            ]
        else:
            found = [s for group in groups for s in self._of_group(_column(problem, instance, group))]
        if self.capacity is not None:
            return [*found, self._capacity(problem, instance)]
        if not found:
            raise InvalidOption(
                f"Keep.over {self.over if isinstance(self.over, str) else list(self.over)!r} holds no group of at "
                f"least two cells with different values.",
                hint=(
                    "choose other cells, for example ",
                    Setting("over", "all"),
                    ".",
                ),
                about=("option", "Keep", "over"),
            )
        return found

    def _capacity(self, problem: Problem, instance: Instance) -> Capacity:
        """The changes that a capacity limits: of a cell of value zero no share is anything."""
        size = np.abs(problem.table.integers[instance.cells]).astype(np.float64)
        free = problem.sensitivity.mask | problem.withheld | problem.suppressed
        cells = np.flatnonzero(~free[instance.cells] & (size > 0))
        return Capacity(cells, size[cells], price=self.capacity_weight)

    def _of_group(self, column: Column) -> list[Statistic]:
        if not _varies(column.values):
            return []
        if self.formulation == "linear":
            least = self.variance is not None or self.slope is not None
            either: list[Statistic] = [Linear(column, name="L")] if least else []
            return [*either, Linear(column, largest=True, name="L")] if self.correlation is not None else either
        found: list[Statistic] = []
        if self.variance is not None:
            found.append(Curved(column, _number(self.variance), "variance"))
        if self.slope is not None:
            found.append(Linear(column, _number(self.slope)))
        if self.correlation is not None:
            found.append(Curved(column, _number(self.correlation), "correlation"))
        return found

    def _of_pair(self, problem: Problem, instance: Instance, pair: Pair) -> list[Statistic]:
        first = _column(problem, instance, Group(f"{pair.name} ({self.responses[0]})", pair.first))
        second = _column(problem, instance, Group(f"{pair.name} ({self.responses[1]})", pair.second))
        if not (_varies(first.values) and _varies(second.values)):
            return []
        found: list[Statistic] = []
        if self.variance is not None:
            found += [Curved(column, _number(self.variance), "variance") for column in (first, second)]
        if self.slope is not None:
            found.append(Between(first, second, "slope", _number(self.slope), pair.name))
        if self.correlation is not None:
            found.append(Between(first, second, "correlation", _number(self.correlation), pair.name))
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
