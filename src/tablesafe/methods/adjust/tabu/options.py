"""What a tabu search minimises, and how long it searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption
from tablesafe.core.options import require_number, require_whole
from tablesafe.loss.statistics import Over

Function = Callable[[Floats, Floats], float]
"""A user's measure: of the true and the published values of all cells; small is good."""


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
