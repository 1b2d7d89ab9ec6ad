"""What a redesign proposes: a path of steps with what each leaves of risk and of the table; and the steps apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from tablesafe.core.display import shown
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.methods.redesign.collapse import take
from tablesafe.methods.redesign.measure import Design, Scale, front
from tablesafe.methods.redesign.steps import Step


@dataclass(frozen=True, eq=False)
class Point:
    """One design on the way."""

    step: Step | None
    """What led to it; None for the first."""
    problem: Problem = field(repr=False)
    design: Design
    exact: bool
    """False where contributors that the table does not list may make a joined cell safer than it is taken to be."""
    complementary: int | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One step taken alone from the first design: what it removes, and its share of loss."""

    step: Step
    risk: float
    cells: int
    bits: float
    loss: float


@shown
@dataclass(frozen=True, eq=False)
class Proposals:
    """A path of steps, each the best after those before it, and all steps that were looked at first. Confidential."""

    problem: Problem = field(repr=False)
    scale: Scale = field(repr=False)
    path: tuple[Point, ...]
    """The designs from the first to the last."""
    first: tuple[Proposal, ...] = field(repr=False)
    """Every single step from the first design that removes some risk, the best first."""

    def __len__(self) -> int:
        return len(self.path) - 1

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the path."""
        return tuple(point.step for point in self.path if point.step is not None)

    def frame(self) -> pl.DataFrame:
        """The path: a row per design, the first without a step, with what is left of risk and of the table."""
        designs = [point.design for point in self.path]
        bits = self.scale.start.information
        columns = {
            "number": list(range(len(self.path))),
            "step": ["as it is", *map(str, self.steps)],
            "sensitive": [design.sensitive for design in designs],
            "risk": [design.risk for design in designs],
            "cells": [design.cells for design in designs],
            "information percent": [round(100 * d.information / bits, 3) if bits > 0 else 100.0 for d in designs],
            "loss percent": [round(100 * self.scale.loss(design), 3) for design in designs],
            "exact": [point.exact for point in self.path],
        }
        if any(point.complementary is not None for point in self.path):
            columns["complementary"] = [point.complementary for point in self.path]
        return pl.DataFrame(columns, schema_overrides={"complementary": pl.Int64} if "complementary" in columns else {})

    def singles(self) -> pl.DataFrame:
        """Every step that was looked at, taken alone: what it removes and what it costs, the best first.

        `best` marks those that no other step beats: none removes as much risk for less loss.
        """
        risk, loss = [each.risk for each in self.first], [each.loss for each in self.first]
        return pl.DataFrame(
            {
                "step": pl.Series([str(each.step) for each in self.first], dtype=pl.String),
                "risk removed": pl.Series(risk, dtype=pl.Float64),
                "cells lost": pl.Series([each.cells for each in self.first], dtype=pl.Int64),
                "bits lost": pl.Series([each.bits for each in self.first], dtype=pl.Float64),
                "loss percent": pl.Series([100 * each for each in loss], dtype=pl.Float64),
                "best": pl.Series(front([-each for each in risk], loss), dtype=pl.Boolean),
            }
        )

    def apply(self, steps: int | Sequence[Step] | None = None, *, names: Mapping[str, str] | None = None) -> Problem:
        """The problem in the new design: after so many steps of the path (all, without a number), or after these steps.

        `names` gives joined codes other names than `A+B`.
        """
        if steps is None or (isinstance(steps, int) and not isinstance(steps, bool)):
            upto = len(self) if steps is None else steps
            if not 0 <= upto <= len(self):
                raise InvalidOption(f"The path has {len(self)} steps, so {upto} of them cannot be applied.")
            if not names:
                return self.path[upto].problem
            steps = self.steps[:upto]
        if isinstance(steps, bool) or not all(isinstance(step, Step) for step in steps):
            raise InvalidOption(f"apply takes a number of steps or a list of steps, got {steps!r}.")
        problem = self.problem
        for step in steps:
            problem = take(problem, _renamed(step, names or {})).problem
        return problem

    def recodes(self, steps: int | None = None) -> pl.DataFrame:
        """Where the codes of each dimension went: one row per code that is gone, with the code that counts it now."""
        new = self.apply(steps).table.dimensions
        rows = [
            (name, code, new[name].codes[new[name].position(code)])
            for name, hierarchy in self.problem.table.dimensions.items()
            for code in hierarchy.codes
            if new[name].codes[new[name].position(code)] != code
        ]
        return pl.DataFrame(rows, schema=["dimension", "code", "new code"], orient="row")

    def __str__(self) -> str:
        first, last = self.path[0].design, self.path[-1].design
        steps = "1 step" if len(self) == 1 else f"{len(self)} steps"
        return (
            f"{steps}: {first.sensitive:,} sensitive cells become {last.sensitive:,}, {first.cells:,} cells "
            f"become {last.cells:,}, {100 * self.scale.loss(last):.1f}% of the table is lost."
        )


def _renamed(step: Step, names: Mapping[str, str]) -> Step:
    codes = tuple(names.get(code, code) for code in step.codes)
    return replace(step, codes=codes, into=names.get(step.into, step.into))
