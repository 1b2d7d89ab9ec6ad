"""The attack on an adjusted table: solve the office's own program backwards. (Castro, "On assessing the disclosure risk
of controlled adjustment methods for statistical tabular data", 2012.)

The office published the nearest table to the truth in which every sensitive cell is far enough away from its true
value. So the truth is a table near the published one in which every sensitive cell is far enough away from its
published value: an intruder who knows the method, what a change costs and the bounds looks for the nearest such table.
With the same directions and bounds that are nowhere reached, both programs are mirror images of each other, and the
truth is among the intruder's best answers; whatever the intruder does not know keeps it away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.attack.estimate import Estimate, Guess
from tablesafe.attack.optima import vertex
from tablesafe.attack.view import View
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, InvalidRelease, SolverFailure
from tablesafe.core.options import require_choice, require_number
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.solve.least_change import Box, Directions, LeastChange, Switches
from tablesafe.solve.program import Program, Scale, SolveStatus
from tablesafe.solve.propagate import propagate
from tablesafe.work.budget import ENDLESS, Budget

Levels = Literal["exact", "percent", "none"]
Ways = Literal["known", "unknown"]

MEASURES: dict[str, Callable[[Floats], Floats]] = {
    "constant": np.ones_like,
    "log": np.log1p,
    "value": lambda value: value,
    "inverse": lambda value: 1.0 / (1.0 + value),
    "log_over_value": lambda value: np.log1p(value) / (1.0 + value),
}
"""What a change by 1 costs, by the absolute published value: the intruder does not know the true one."""
FREE = 1e-3
"""What a cell costs that costs nothing, beside the cheapest that does."""
FARTHEST = 4.0
"""No cell is taken to have moved further than this many times the largest published value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReverseAdjustment:
    """What the intruder knows of an adjustment. By default nearly everything: all but the directions."""

    name: ClassVar[str] = "reverse adjustment"

    cost: str | Floats = field(
        default="value",
        metadata={"help": "what the office's changes cost: constant, log, value, inverse, log_over_value, an array"},
    )
    levels: Levels = field(
        default="exact",
        metadata={"help": "how far sensitive cells moved at least: exact levels, percent of the truth, or none known"},
    )
    p: float = field(default=10.0, metadata={"help": "percent of the truth, where levels are known so"})
    directions: Ways = field(
        default="unknown", metadata={"help": "whether it is known which sensitive cells rose: known or unknown"}
    )
    capacity_percent: float | None = field(
        default=None,
        metadata={"help": "known largest change of cells that are not sensitive, in percent of the truth"},
    )
    time_limit_s: float = field(default=30.0, metadata={"help": "stop after this many seconds"})

    def __post_init__(self) -> None:
        require_choice(self, "levels", get_args(Levels))
        require_choice(self, "directions", get_args(Ways))
        require_number(self, "p", above=0, below=100)
        require_number(self, "time_limit_s", above=0)
        if self.capacity_percent is not None:
            require_number(self, "capacity_percent", at_least=0)
        if isinstance(self.cost, str) and self.cost not in MEASURES:
            raise InvalidOption(
                f"ReverseAdjustment.cost must be one of {', '.join(MEASURES)} or an array, got {self.cost!r}.",
                about=("option", "ReverseAdjustment", "cost"),
            )

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """The nearest table; of a release in which nothing is adjusted, any table will do."""
        if view.source is None:
            return Guess(np.full(len(view.system), np.nan), note="no release to turn back")
        try:
            back = _Back.of(*view.source, self)
        except InvalidRelease:
            return Guess(np.where(view.free, np.nan, view.lower), note="the published values do not add up")
        moves, optimal = back.solve(self, min(self.time_limit_s, budget.left))
        if moves is None:
            return Guess(np.where(view.free, np.nan, view.lower), note="what is known contradicts the release")
        return Guess(
            np.where(view.free, back.shown + moves, view.lower), note="nearest" if optimal else "nearest found"
        )


@dataclass(frozen=True, eq=False)
class Reversal:
    """What the attack found, beside what anyone sees: the published values taken for the truth."""

    estimate: Estimate
    published: Estimate
    optimal: bool
    """Whether the answer is the nearest table, or only the nearest that was found in the time."""
    cost: float
    """The cost of going back from the published table to the estimate; NaN without an answer."""

    @property
    def nearer(self) -> float:
        """The share of the sensitive cells to which the attack comes nearer than the published value does."""
        if not len(self.estimate.cells):
            return 0.0
        return float((np.abs(self.estimate.error) < np.abs(self.published.error) * (1 - 1e-9)).mean())

    @property
    def exact(self) -> float:
        """The share of the sensitive cells that the attack finds exactly."""
        return float((self.estimate.distance == 0).mean()) if len(self.estimate.cells) else 0.0

    def __str__(self) -> str:
        return (
            f"{self.estimate} It finds {self.exact:.0%} of them exactly, and comes nearer than the published value to "
            f"{self.nearer:.0%}."
        )


def reverse_adjustment(problem: Problem, release: Release, known: ReverseAdjustment | None = None, /) -> Reversal:
    """Look for the table nearest to a published one from which the office would have had to move this far.

    The answer has no value (NaN) when what the intruder believes to know contradicts the release.
    """
    known = ReverseAdjustment() if known is None else known
    back = _Back.of(problem, release, known)
    moves, optimal = back.solve(known, known.time_limit_s)
    unit = 10.0**problem.table.decimals
    values = problem.table.value.copy()
    certain = np.ones(len(values), np.bool_)
    certain[back.system.cells] = False
    found = np.full(len(back.shown), np.nan) if moves is None else back.shown + moves
    guesses = []
    for name, guess in ((known.name, found), ("published value", np.where(back.hidden, np.nan, back.shown))):
        guessed = values.copy()
        guessed[back.system.cells] = guess / unit
        guesses.append(Estimate(problem, name, guessed, certain))
    cost = np.nan if moves is None else float(back.cost @ np.abs(moves))
    return Reversal(guesses[0], guesses[1], optimal and moves is not None, cost)


@dataclass(frozen=True, eq=False)
class _Back:
    """The way back from the published table, in units: moves of the cells that may have been changed."""

    system: System
    shown: Floats
    """The published value of each unknown cell; any that adds up where none is published."""
    hidden: Mask
    cost: Floats
    rise: Floats
    """How far above its published value the truth can be."""
    fall: Floats
    targets: NDArray[np.intp]
    """The sensitive cells whose levels the intruder knows, among the unknown ones."""
    above: Floats
    """How far the truth of each target lies above its published value, if it lies above."""
    below: Floats
    rose: Mask
    """Whether the truth of each target lies above: what only some intruders know."""

    @classmethod
    def of(cls, problem: Problem, release: Release, known: ReverseAdjustment) -> _Back:
        system = System.of(problem, release)
        table, unit = problem.table, 10.0**problem.table.decimals
        shown, hidden = _completed(system, release.values[system.cells] * unit)
        sensitive = problem.sensitivity.mask[system.cells] & ~hidden
        lower, upper = system.lower, system.upper
        if known.capacity_percent is not None:
            share = known.capacity_percent / 100
            far = np.where(share < 1, np.abs(shown) * share / max(1 - share, 1e-300), np.inf)
            open = sensitive | hidden
            lower, upper = (
                np.where(open, lower, np.maximum(lower, shown - far)),
                np.where(open, upper, np.minimum(upper, shown + far)),
            )
        targets = np.flatnonzero(sensitive) if known.levels != "none" else np.zeros(0, np.intp)
        cells = system.cells[targets]
        if known.levels == "percent":
            p, size = known.p / 100, np.abs(shown[targets])
            above, below = size * p / (1 - p), size * p / (1 + p)
        else:
            above, below = problem.sensitivity.lower[cells] * unit, problem.sensitivity.upper[cells] * unit
        return cls(
            system, shown, hidden, _costs(known.cost, table.integers.size, system, shown / unit, hidden) / unit,
            upper - shown, shown - lower, targets, above, below, table.integers[cells] > shown[targets],
        )  # fmt: skip

    def solve(self, known: ReverseAdjustment, time_limit_s: float) -> tuple[Floats | None, bool]:
        """The nearest table as moves, and whether it is the nearest."""
        matrix = sparse.csc_array(self.system.matrix)
        scale = Scale.middle(self.cost, np.concatenate([self.above, self.below, np.ones(1)]))
        program = LeastChange(matrix, self.cost, self.cost, scale)
        if known.directions == "known" or not self.targets.size:
            found = program.solve(self._box(self.rose))
            return (None, True) if found is None else (found.moves, True)
        return self._choose(matrix, program, scale, time_limit_s)

    def _choose(
        self, matrix: sparse.csc_array, program: LeastChange, scale: Scale, time_limit_s: float
    ) -> tuple[Floats | None, bool]:
        """All directions together: first as they lean, then by a program that starts from there."""
        rise, fall = self._reach()
        switches = Switches(self.targets, self.above, self.below)
        can_rise, can_fall = rise[self.targets] >= self.above, fall[self.targets] >= self.below
        if not (can_rise | can_fall).all():
            return None, True
        choice = Directions(matrix, self.cost, Box.free(rise, fall), switches, scale)
        _, lean = choice.relaxed()
        ways = np.where(can_rise & can_fall, lean > 0.5, can_rise)
        first = program.solve(self._box(ways))
        start = None if first is None else (first.moves, ways)
        if first is not None:
            far = first.cost * (1 + 1e-9) / self.cost
            box = Box.free(np.minimum(rise, far), np.minimum(fall, far))
            choice = Directions(matrix, self.cost, box, switches, scale)
        found = choice.choose(time_limit_s=time_limit_s, start=start)
        if found.moves is None or (first is not None and self.cost @ np.abs(found.moves) > first.cost):
            return (None, found.status is SolveStatus.INFEASIBLE) if first is None else (first.moves, False)
        return found.moves, found.status is SolveStatus.OPTIMAL

    def _box(self, rose: Mask) -> Box:
        box = Box.free(self.rise, self.fall)
        up, down = self.targets[rose], self.targets[~rose]
        box.rise_least[up], box.fall_most[up] = self.above[rose], 0.0
        box.fall_least[down], box.rise_most[down] = self.below[~rose], 0.0
        return box

    def _reach(self) -> tuple[Floats, Floats]:
        """Finite limits of all moves: what the equations imply, and no further than anybody would believe."""
        lower, upper = propagate(sparse.csr_array(self.system.matrix), -np.ceil(self.fall), np.ceil(self.rise))
        most = FARTHEST * max(float(np.abs(self.shown).max(initial=1.0)), float(self.above.max(initial=0.0)))
        return np.minimum(np.minimum(upper, self.rise), most), np.minimum(np.minimum(-lower, self.fall), most)


def _completed(system: System, shown: Floats) -> tuple[Floats, Mask]:
    """The published values, with any that add up in the place of those that are not published."""
    hidden = np.isnan(shown)
    matrix = sparse.csr_array(system.matrix).astype(np.float64)
    missing = system.rhs - np.asarray(matrix @ np.where(hidden, 0.0, shown))
    if hidden.any():
        columns = matrix.tocsc()[:, np.flatnonzero(hidden)].tocsr()
        try:
            shown = shown.copy()
            shown[hidden] = vertex(Program.equations(columns, missing, system.lower[hidden], system.upper[hidden]))
        except SolverFailure:
            shown[hidden] = system.truth[hidden]
        missing = system.rhs - np.asarray(matrix @ shown)
    if bool((np.abs(missing) > 1e-6 * np.maximum(1.0, np.abs(system.rhs))).any()):
        raise InvalidRelease(
            "The published values do not add up: this attack is for adjusted tables.",
            hint="attack a rounded or suppressed table with ts.attack.",
        )
    return np.clip(shown, system.lower, system.upper), hidden


def _costs(cost: str | Floats, n: int, system: System, shown: Floats, hidden: Mask) -> Floats:
    if isinstance(cost, str):
        own = MEASURES[cost](np.abs(shown))
    else:
        if np.shape(cost) != (n,):
            raise InvalidOption(f"There are {np.size(cost):,} costs, but the table has {n:,} cells.")
        own = np.asarray(cost, dtype=np.float64)[system.cells]
    own = np.where(hidden, 0.0, own)
    positive = own[own > 0]
    return np.maximum(own, float(positive.min()) * FREE if positive.size else 1.0)
