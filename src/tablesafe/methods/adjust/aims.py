"""What an adjustment can be asked for beside the least change: options, each with its help, and no algorithm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.options import is_number, require_choice, require_number, require_whole
from tablesafe.core.problem import Problem
from tablesafe.loss.statistics import Over

if TYPE_CHECKING:
    from tablesafe.methods.adjust.forms import Statistic
    from tablesafe.methods.adjust.instance import Instance
    from tablesafe.methods.adjust.means import Means

DirectionsName = Literal["optimal", "search", "blocks", "alternating", "random", "up", "down"]
Limit = Literal["best"] | float | None
OrderName = Literal["first", "last", "alone"]
FormulationName = Literal["true", "linear"]
PickName = Literal["quantity", "cells", "percent", "chi_square", "correlation", "slope", "variance"]
Function = Callable[[Floats, Floats], float]
"""A user's measure: of the true and the published values of all cells; small is good."""


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
        from tablesafe.methods.adjust.statistics import with_means

        return with_means(self, problem, instance)

    def mean_in_the_way(self, problem: Problem, cells: NDArray[np.intp], *, proved: bool = True) -> InvalidProblem:
        """The error that says which sensitive cells cannot move while the means stay, or were not seen to."""
        from tablesafe.methods.adjust.statistics import mean_in_the_way

        return mean_in_the_way(problem, cells, proved=proved)

    def wanted(self, problem: Problem, instance: Instance) -> list[Statistic]:
        """Every statistic of every group; groups whose values do not vary have none."""
        from tablesafe.methods.adjust.statistics import wanted

        return wanted(self, problem, instance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabu:
    """Search for the change with the smallest measure, linear or not.

    The measure is `distance·D + chi_square·X + correlation·(1 − corr²) + slope·|1 − slope| + variance·|ratio − 1|`, the
    last three as means over the groups of `over`, plus `function(true values, published values)` if there is one. `D`
    and `X` are relative to those of the change that the search begins with, so that weights of about 1 suit any table.

    First any feasible change, then steps that improve it, then a search that turns sensitive cells round and does not
    turn them back for a while. Steps are whole vectors that keep every equation, so every table on the way adds up.
    """

    distance: float = field(default=0.01, metadata={"help": "weight of the sum of all changes, each at its cost"})
    chi_square: float = field(default=0.0, metadata={"help": "weight of chi-square: squared changes over values"})
    correlation: float = field(default=1.0, metadata={"help": "weight of 1 − squared correlation, true to published"})
    slope: float = field(default=1.0, metadata={"help": "weight of |1 − slope| of published on true values"})
    variance: float = field(default=1.0, metadata={"help": "weight of |ratio of variances − 1|"})
    over: Over = field(
        default="sensitive",
        metadata={
            "help": "which cells the statistics are about: sensitive, all, inner, totals, a dimension or a column"
        },
    )
    function: Function | None = field(
        default=None, metadata={"help": "a measure of your own, in Python", "hidden": True}
    )
    iterations: int = field(default=200, metadata={"help": "how often sensitive cells are turned round"})
    tenure: int = field(default=7, metadata={"help": "for how many iterations a cell is not turned back"})
    width: int = field(default=6, metadata={"help": "how many cells are tried per iteration"})
    patience: int = field(default=60, metadata={"help": "stop after so many iterations without a better change"})

    def __post_init__(self) -> None:
        for name in ("distance", "chi_square", "correlation", "slope", "variance"):
            require_number(self, name, at_least=0)
        require_whole(self, "iterations", at_least=0)
        require_whole(self, "tenure", at_least=1)
        require_whole(self, "width", at_least=1)
        require_whole(self, "patience", at_least=1)
        if self.function is None and not any(self.weights):
            raise InvalidOption("Tabu minimises nothing: all weights are 0.", hint="give a weight or a function.")
        if self.function is not None and not callable(self.function):
            raise InvalidOption(
                f"Tabu.function must be a function of two arrays, got {self.function!r}.",
                about=("option", "Tabu", "function"),
            )

    @property
    def weights(self) -> tuple[float, float, float, float, float]:
        """Distance, chi-square, correlation, slope, variance."""
        return self.distance, self.chi_square, self.correlation, self.slope, self.variance


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """Let each sensitive cell move by a random amount between a share of its level and the level.

    Less is changed, and an intruder who knows the levels still does not know by how much. A cell then may be published
    inside its protection interval: look at the column `least share` before choosing a release.
    """

    share_percent: float = field(
        default=50.0, metadata={"help": "the least that a sensitive cell moves, in percent of its protection level"}
    )
    releases: int = field(default=20, metadata={"help": "how many releases are drawn and compared"})
    pick: PickName = field(
        default="quantity",
        metadata={"help": "by which measure one is chosen: the smallest change, or the statistic nearest to 1"},
    )
    number: int | None = field(
        default=None,
        metadata={"help": "the release to take, by its number in the comparison, whatever its measures", "example": 7},
    )
    over: Over = field(
        default="sensitive",
        metadata={
            "help": "which cells the statistics are about: sensitive, all, inner, totals, a dimension or a column"
        },
    )

    def __post_init__(self) -> None:
        require_number(self, "share_percent", above=0, at_most=100)
        require_whole(self, "releases", at_least=1)
        require_choice(self, "pick", get_args(PickName))
        if self.number is not None:
            require_whole(self, "number", at_least=1)
            if self.number > self.releases:
                raise InvalidOption(
                    f"Relaxed.number is {self.number}, but only {self.releases} releases are drawn.",
                    about=("option", "Relaxed", "number"),
                )

    def loosened(self, instance: Instance, random: np.random.Generator, *, capped: bool = True) -> Instance:
        """The same problem with drawn levels; when `capped` no cell moves further than its full level."""
        from tablesafe.methods.adjust.relaxed import loosened

        return loosened(instance, self.share_percent / 100, random, capped=capped)
