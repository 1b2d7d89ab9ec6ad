"""Noise: the method and its options."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.options import is_number
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss.frames import quality_tables
from tablesafe.loss.records import distances
from tablesafe.methods.records.behind import Data, Edited, Microdata, Outcome
from tablesafe.methods.records.checks import require_column, require_columns, require_seed
from tablesafe.methods.records.noise.cells import adjust_cells
from tablesafe.methods.records.noise.factors import SHAPES, Secret, Shape, draw_sizes
from tablesafe.methods.records.noise.factors_of_respondents import Drawing, Noised, noise_records
from tablesafe.methods.records.noise.reading import announced, insiders
from tablesafe.methods.records.tabulated import published, tabulated
from tablesafe.work.run import Run

LEVELS = ("record", "cell")
ANNOUNCE = ("nothing", "maximum", "range")
MOST_NAMED = 3
"""Cells named in a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Multiply what every respondent reported by a factor near 1, and tabulate that.

    Every respondent has one factor, at least `least_percent` and at most `most_percent` away from 1; all respondents of
    a holding go the same way, up or down with equal chance. A cell of one company moves by at least `least_percent`;
    in a cell of many the noise cancels. Everything tabulated from the changed records adds up and agrees. With weights
    only the part that a respondent stands for itself is noised. `balance` chooses the directions so that noise cancels
    within the cells of a level, except in sensitive ones. Amounts are rounded away from the truth to the last digit of
    the table, so that none stays as it was. With `level = "cell"` noise is put on the sensitive cells alone, as much as
    their protection asks for, and totals are added up anew.

    The release says what the public may conclude: nothing beyond what it knew before, or, if the office announces the
    limits, that the truth lies within `most_percent` of each value. Where it announces `least_percent` too, the truth
    of a cell with a single contributor cannot be nearer than that: a hole that an interval does not show, but that the
    internal tables do. A respondent does not know its own factor, unless it sees itself alone in another cell: then the
    others are hidden by their own factors only.
    """

    name: ClassVar[str] = "noise"
    needs_records: ClassVar[bool] = True

    least_percent: float = field(default=5.0, metadata={"help": "how far from 1 every factor is at least, in percent"})
    most_percent: float = field(default=15.0, metadata={"help": "how far from 1 every factor is at most, in percent"})
    shape: Shape = field(
        default="uniform",
        metadata={
            "help": "how sizes spread between the two: uniform, triangular (most near the least) or normal (most in "
            "the middle)"
        },
    )
    level: Literal["record", "cell"] = field(
        default="record",
        metadata={"help": "record: noise on what respondents reported; cell: noise on sensitive cells, totals follow"},
    )
    balance: Mapping[str, int] = field(
        default_factory=dict,
        metadata={
            "help": "record: cells within which noise cancels: per dimension its level below the total, -1 for the "
            "finest; dimensions not named are taken at their total",
            "example": {"region": 1},
        },
    )
    announce: Literal["nothing", "maximum", "range"] = field(
        default="nothing",
        metadata={"help": "what users are told: nothing, the maximum (most_percent), or the range (both limits)"},
    )
    respondent: str | None = field(
        default=None,
        metadata={"help": "column that says who a record is from; the table's own when not given", "example": "firm"},
    )
    holding: str | None = field(
        default=None,
        metadata={"help": "column that says who goes the same way; the table's own when not given", "example": "group"},
    )
    columns: tuple[str, ...] = field(
        default=(), metadata={"help": "further columns of amounts to change alike", "example": ("employees",)}
    )
    seed: int | None = field(
        default=None,
        repr=False,
        metadata={
            "help": "secret number to draw with; with the same one a respondent has the same factor in every table; "
            "without one the amounts take its place",
            "example": 1,
        },
    )

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        require_column(self, "respondent", "holding")
        require_seed(self, optional=True)
        limits = (self.least_percent, self.most_percent)
        if not all(map(is_number, limits)) or not 0 < self.least_percent <= self.most_percent < 100:
            raise InvalidOption(
                f"Noise.least_percent must be above 0 and at most most_percent, and that below 100; got "
                f"{self.least_percent!r} and {self.most_percent!r}.",
                about=("option", "Noise", "least_percent"),
            )
        for option, value, allowed in (
            ("shape", self.shape, SHAPES), ("level", self.level, LEVELS), ("announce", self.announce, ANNOUNCE),
        ):  # fmt: skip
            if value not in allowed:
                raise InvalidOption(f"Noise.{option} must be one of {', '.join(allowed)}, got {value!r}.")
        if self.level == "cell" and (self.balance or self.columns or self.announce != "nothing"):
            raise InvalidOption(
                "Noise.level = 'cell' moves sensitive cells as far as their protection asks for: it knows no balance, "
                "no columns, and no limit that could be announced.",
                hint=(
                    "leave these out, or use ",
                    Setting("level", "record"),
                    ".",
                ),
                about=("option", "Noise", "level"),
            )

    def edit(self, data: Data) -> Edited:
        """The changed records of a problem, a table or a frame. Further tables made of them agree with the release."""
        return self._noised(data).edited

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Publish the table of the changed records, or that of the changed cells."""
        return self.outcome(problem, run).release

    def outcome(self, problem: Problem, run: Run | None = None) -> Outcome:
        """The release with the changed records and the measures of what changed."""
        if self.level == "cell":
            release = self._cells(problem)
            tables = {"distances.csv": distances(problem, release), **quality_tables(problem, release)}
            return Outcome(release, None, tables)
        noised = self._noised(problem)
        integers = tabulated(problem.table, noised.adding, "Noise", weight=None)
        release = self._release(problem, integers)
        tables = {
            **quality_tables(problem, release),
            "edit_measures.csv": noised.edited.measures,
            "distances.csv": distances(problem, release),
            "noise_insiders.csv": insiders(problem, release, self._least if self.announce == "range" else None),
        }
        return Outcome(release, noised.edited, tables)

    @property
    def for_every_cell(self) -> bool:
        """Whether it protects without any rule: noise on cells is for sensitive ones."""
        return self.level == "record"

    @property
    def _least(self) -> float:
        return self.least_percent / 100

    @property
    def _most(self) -> float:
        return self.most_percent / 100

    def _noised(self, data: Data) -> Noised:
        if self.level == "cell":
            raise InvalidOption(
                "Noise.level = 'cell' changes no records.",
                hint=(
                    "use ",
                    Setting("level", "record"),
                    ".",
                ),
                about=("option", "Noise", "level"),
            )
        drawing = Drawing(
            self._least, self._most, self.shape, self.seed, self.respondent, self.holding, self.columns, self.balance
        )
        return noise_records(Microdata.of(data, "Noise"), drawing, data if isinstance(data, Problem) else None)

    def _release(self, problem: Problem, integers: Integers) -> Release:
        lower, upper = problem.lower, problem.upper
        if self.announce != "nothing":
            lower, upper = announced(problem, integers, self._most)
        return published(problem, integers, lower, upper, _none(problem), method=self.name)

    def _cells(self, problem: Problem) -> Release:
        random = Secret.of(self.seed, [problem.table.integers]).generator()
        sizes: Floats = draw_sizes(random.random(len(problem.table)), self._least, self._most, self.shape)
        adjusted = adjust_cells(problem, sizes, self._least, random)
        if adjusted.short.size:
            names = problem.table.describe_some(adjusted.short, MOST_NAMED)
            warnings.warn(
                f"Noise moved {names} by less than their protection asks for: the noise of their parts cancels, "
                "or their parts are frozen.",
                stacklevel=3,
            )
        return published(problem, adjusted.integers, problem.lower, problem.upper, ~adjusted.touched, method=self.name)


def _none(problem: Problem) -> Mask:
    return np.zeros(len(problem.table), dtype=np.bool_)
