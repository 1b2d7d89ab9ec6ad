"""Risk against loss: several releases of one problem, measured alike, and which of them are worth looking at."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import polars as pl

from tablesafe.attack.registry import choose
from tablesafe.attack.suite import Scores, attack
from tablesafe.audit.audit import audit
from tablesafe.audit.findings import Findings
from tablesafe.core.display import shown
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss import loss
from tablesafe.methods import Method, protect
from tablesafe.report.margins import Ends

LossMeasure = Literal["value", "cells"]
RiskMeasure = Literal["guessed", "open", "room"]
ATTACKS = ("published value", "interior point", "analytic centre", "midpoint")
SAME = 1e-9
"""Losses and risks, as shares, that differ by less are equal."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One release with what it costs and what it hides."""

    name: str
    release: Release = field(repr=False)
    findings: Findings = field(repr=False)
    scores: Scores | None = field(repr=False)
    """None when there is nothing to guess."""

    @classmethod
    def of(
        cls, name: str, problem: Problem, release: Release, attacks: Sequence[str], seed: int, time_limit_s: float
    ) -> Self:
        """Audit and attack a release."""
        findings = audit(problem, release, insiders=False, unions=False, certify=False)
        if not len(problem.sensitive):
            return cls(name, release, findings, None)
        estimates = [attack(problem, release, each, time_limit_s=time_limit_s) for each in choose(attacks, seed=seed)]
        return cls(name, release, findings, Scores.of(estimates))

    def row(self) -> dict[str, Any]:
        """Its measures by name."""
        lost = loss(self.findings.problem, self.release)
        room = Ends.of(self.findings, "level").least
        sensitive, solution = len(self.findings.problem.sensitive), self.release.solution
        return {
            "name": self.name,
            "method": self.release.method,
            "safe": bool(self.findings.safe),
            "cells withheld": lost.withheld,
            "cells changed": lost.changed,
            "average percent change": lost.average_percent,
            "percent of cells lost": lost.whole.percent_of_cells,
            "percent of value lost": lost.whole.percent_of_value,
            "percent of cells lost at the finest level": lost.finest.percent_of_cells,
            "percent of value lost at the finest level": lost.finest.percent_of_value,
            "sensitive cells": sensitive,
            "percent open": 100 * float((~self.findings.protected).mean()) if sensitive else 0.0,
            "percent guessed": 100 * float(self._guessed().mean()) if sensitive else 0.0,
            "least room": room,
            "seconds": None if solution is None else round(solution.seconds, 3),
        }

    def _guessed(self) -> Mask:
        """Which sensitive cells at least one attack guesses within their protection interval."""
        every = () if self.scores is None else self.scores.estimates
        hit = np.zeros(len(self.findings.problem.sensitive), dtype=np.bool_)
        for estimate in every:
            hit |= estimate.disclosed
        return hit


@dataclass(frozen=True, eq=False)
class Measures:
    """What releases of one problem cost and leave open, as numbers alone. Confidential: they compare with the truth."""

    rows: tuple[Mapping[str, Any], ...]
    """One per release, as `Measured.row` gives them."""
    by_loss: LossMeasure = "value"
    by_risk: RiskMeasure = "guessed"

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> list[str]:
        """What the releases are called."""
        return [str(row["name"]) for row in self.rows]

    @property
    def loss(self) -> Floats:
        """What each release costs its users, in percent of the table's value or cells: withheld, or changed."""
        return self._column(f"percent of {'value' if self.by_loss == 'value' else 'cells'} lost")

    @property
    def risk(self) -> Floats:
        """What each release leaves open, in percent of the sensitive cells; or the least room that it gives."""
        return self._column("least room" if self.by_risk == "room" else f"percent {self.by_risk}")

    @property
    def efficient(self) -> Mask:
        """Which releases no other beats: none costs less at no more risk, or risks less at no more loss."""
        loss, risk = self.loss, -self.risk if self.by_risk == "room" else self.risk
        no_worse = (loss[:, None] <= loss + SAME) & (risk[:, None] <= risk + SAME)
        better = (loss[:, None] < loss - SAME) | (risk[:, None] < risk - SAME)
        return np.asarray(~(no_worse & better).any(axis=0))

    def frame(self) -> pl.DataFrame:
        """One row per release: loss, risk, whether it is efficient, and what it took."""
        return pl.DataFrame(list(self.rows), infer_schema_length=None).with_columns(
            pl.Series("efficient", self.efficient)
        )

    def _column(self, name: str) -> Floats:
        return np.array([row[name] for row in self.rows], dtype=np.float64)


@shown
@dataclass(frozen=True, eq=False)
class Frontier:
    """Several releases of one problem with their measures. Confidential: it compares with the truth."""

    measured: tuple[Measured, ...]
    by_loss: LossMeasure = "value"
    by_risk: RiskMeasure = "guessed"

    @cached_property
    def measures(self) -> Measures:
        """The numbers alone."""
        return Measures(tuple(each.row() for each in self.measured), self.by_loss, self.by_risk)

    @property
    def loss(self) -> Floats:
        """What each release costs its users, in percent of the table's value or cells: withheld, or changed."""
        return self.measures.loss

    @property
    def risk(self) -> Floats:
        """What each release leaves open, in percent of the sensitive cells; or the least room that it gives."""
        return self.measures.risk

    @property
    def efficient(self) -> Mask:
        """Which releases no other beats: none costs less at no more risk, or risks less at no more loss."""
        return self.measures.efficient

    def frame(self) -> pl.DataFrame:
        """One row per release: loss, risk, whether it is efficient, and what it took."""
        return self.measures.frame()


def frontier(
    problem: Problem,
    releases: Mapping[str, Release | Method] | Sequence[Release | Method],
    *,
    loss: LossMeasure = "value",
    risk: RiskMeasure = "guessed",
    attacks: Sequence[str] = ATTACKS,
    seed: int = 1,
    time_limit_s: float = 30.0,
) -> Frontier:
    """Measure several releases of one problem, or what several methods make of it, by loss and by risk.

    Loss is the share of the table's value (or cells) that users miss: withheld values count in full, changed ones by
    how far they moved. Risk is the share of the sensitive cells that one of the attacks guesses within their
    protection interval, or that the audit finds open; or, as protection, the least room of any sensitive cell in
    protection levels. Each attack may take `time_limit_s` seconds. What comes back compares with the truth: internal.
    """
    if loss not in {"value", "cells"}:
        raise InvalidOption(f"frontier's loss must be 'value' or 'cells', got {loss!r}.")
    if risk not in {"guessed", "open", "room"}:
        raise InvalidOption(f"frontier's risk must be 'guessed', 'open' or 'room', got {risk!r}.")
    named = dict(releases) if isinstance(releases, Mapping) else _named(releases)
    if not named:
        raise InvalidOption("There is no release to compare.", hint="frontier(problem, [Suppress(), Adjust()]).")
    made = {name: each if isinstance(each, Release) else protect(problem, each) for name, each in named.items()}
    measured = [Measured.of(name, problem, release, attacks, seed, time_limit_s) for name, release in made.items()]
    return Frontier(tuple(measured), loss, risk)


def _named(given: Sequence[Release | Method]) -> dict[str, Release | Method]:
    """A name for each: the method with the options that are not as usual; numbered where that is not enough."""
    named: dict[str, Release | Method] = {}
    for each in given:
        name = plain = each.method if isinstance(each, Release) else method_words(each)
        while name in named:
            name = f"{plain} ({sum(other.startswith(plain) for other in named) + 1})"
        named[name] = each
    return named


def method_words(method: Any) -> str:
    """A method by its name and the options that are not as usual."""
    changed = []
    for spec in dataclasses.fields(method) if dataclasses.is_dataclass(method) else ():
        value = getattr(method, spec.name)
        usual = spec.default_factory() if spec.default_factory is not dataclasses.MISSING else spec.default
        if spec.repr and isinstance(value, (str, int, float)) and value != usual:
            changed.append(f"{spec.name}={value}")
    return " ".join([str(method.name), *changed])
