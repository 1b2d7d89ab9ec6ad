"""What all attacks together say: which comes nearest, and which cells are in most danger. Confidential throughout."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self, overload

import numpy as np
import polars as pl

from tablesafe.attack.estimate import Attack, Density, Estimate, Guess
from tablesafe.attack.registry import ATTACKS
from tablesafe.attack.view import View
from tablesafe.core.display import shown
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption, OutOfTime, SolverFailure
from tablesafe.core.language import Text, text
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, require_problem_and_release
from tablesafe.work.budget import Budget


@shown
@dataclass(frozen=True, eq=False)
class Scores:
    """Estimates of the same release, those at the peak of a density among them."""

    estimates: tuple[Estimate, ...]

    @classmethod
    def of(cls, estimates: Iterable[Estimate]) -> Self:
        """Score estimates together; each density also guesses by its peak."""
        every: list[Estimate] = []
        for estimate in estimates:
            peak = estimate.at_peak()
            same = peak is None or np.array_equal(peak.values, estimate.values, equal_nan=True)
            every += [estimate] if same or peak is None else [estimate, peak]
        if not every:
            raise InvalidOption("There is no estimate to score.")
        return cls(tuple(every))

    @property
    def worst(self) -> Estimate:
        """The attack that lands inside most protection intervals."""
        return max(self.estimates, key=lambda estimate: int(estimate.disclosed.sum()))

    @property
    def with_density(self) -> Estimate | None:
        """The first estimate that comes from many solutions, so that their density can be drawn."""
        return next((estimate for estimate in self.estimates if estimate.density is not None), None)

    @property
    def headline(self) -> str:
        """The sentence for the report."""
        return str(self.sentence)

    @property
    def sentence(self) -> Text:
        """The same, to be said in any language."""
        return self.worst.sentence if len(self.worst.cells) else text("There are no sensitive cells to guess.")

    def frame(self) -> pl.DataFrame:
        """One row per attack, in the order in which they were tried."""
        return pl.DataFrame([_row(estimate) for estimate in self.estimates], infer_schema_length=None)

    def ranking(self) -> pl.DataFrame:
        """One row per sensitive cell, the one in most danger first.

        Danger is being known exactly, then being guessed by many attacks, then by how near the nearest guess comes.
        """
        first = self.estimates[0]
        table, cells = first.problem.table, first.cells
        codes = {name: column.gather(cells.astype(np.uint32)) for name, column in table.code_columns().items()}
        disclosed = np.array([estimate.disclosed for estimate in self.estimates]).sum(axis=0)
        distance = np.array([np.nan_to_num(estimate.distance, nan=np.inf) for estimate in self.estimates])
        variation = np.array([np.nan_to_num(estimate.variation, nan=np.inf) for estimate in self.estimates])
        nearest = np.argmin(distance, axis=0) if len(cells) else np.zeros(0, np.intp)
        guesses = np.array([estimate.values[cells] for estimate in self.estimates])
        names = np.array([estimate.attack for estimate in self.estimates])
        order = np.lexsort((distance.min(axis=0), -disclosed, ~first.exactly))
        columns: dict[str, Any] = codes | {
            "true value": table.value[cells],
            "known exactly": first.exactly,
            "disclosed by": disclosed,
            "attacks": np.full(len(cells), len(self.estimates)),
            "nearest guess": pl.Series(guesses[nearest, np.arange(len(cells))], nan_to_null=True),
            "nearest attack": pl.Series(names[nearest], dtype=pl.String),
            "distance": distance.min(axis=0),
            "coefficient of variation": _finite(variation.min(axis=0)),
        }
        return pl.DataFrame(columns)[order.astype(np.uint32)]


def _finite(values: Any) -> pl.Series:
    return pl.Series(np.where(np.isfinite(values), values, np.nan), nan_to_null=True)


def _row(estimate: Estimate) -> dict[str, Any]:
    guessed = ~np.isnan(estimate.error)
    errors, variation = estimate.relative_error[guessed], estimate.variation[~np.isnan(estimate.variation)]
    return {
        "attack": estimate.attack,
        "disclosed": int(estimate.disclosed.sum()),
        "sensitive": len(estimate.cells),
        "share": round(estimate.share, 4),
        "exactly": int(estimate.exactly.sum()),
        "guessed": int(guessed.sum()),
        "median relative error": round(float(np.median(errors)), 4) if errors.size else None,
        "median coefficient of variation": round(float(np.median(variation)), 4) if variation.size else None,
        "seconds": round(estimate.seconds, 3),
        "note": estimate.note,
    }


# Estimates in the layout of the literature: Tables 4 and 5 of Dandekar's "Myth & Reality". Confidential throughout.


def attack_table(vertex: Estimate, interior: Estimate, programs: Estimate) -> pl.DataFrame:
    """Table 4: per hidden sensitive cell its audit range, two null-objective guesses, and the mean over many programs.

    `vertex` and `interior` are guesses with nothing to minimise, by the simplex and by an interior-point method.
    """
    cells, density = _shown(programs)
    problem, count = programs.problem, int(density.solutions.max(initial=0))
    value = problem.table.value[cells]
    columns: dict[str, Any] = _codes(programs, cells) | {
        "value": value,
        "protection": problem.sensitivity.upper[cells],
        "lp_lower": density.lower,
        "lp_upper": density.upper,
        "simplex_null_objective": vertex.values[cells],
        "pcx_null_objective": interior.values[cells],
        f"mean_{count}_lp": density.mean,
        f"stddev_{count}_lp": density.deviation,
        f"cv_percent_{count}_lp": 100 * density.variation,
    }
    return pl.DataFrame(columns)


def density_table(programs: Estimate) -> pl.DataFrame:
    """Table 5: per hidden sensitive cell how many solutions fall into each tenth of its audit range."""
    cells, density = _shown(programs)
    return pl.DataFrame(
        _codes(programs, cells)
        | {
            "counts_in_10_equal_intervals": [" ".join(map(str, row)) for row in density.counts.tolist()],
            "interval_edges": [_edges(row) for row in density.edges],
        }
    )


def _shown(programs: Estimate) -> tuple[Any, Density]:
    """The sensitive cells that the release does not tell, and their density."""
    if programs.density is None:
        raise InvalidOption(
            f"The attack {programs.attack!r} has one solution only, and no density.",
            hint="take VertexMean(), InteriorMean(), RandomCentroid() or HitAndRun().",
        )
    cells = np.intersect1d(programs.cells, programs.unknown)
    return cells, programs.density.take(np.searchsorted(programs.unknown, cells))


def _codes(estimate: Estimate, cells: Any) -> dict[str, pl.Series]:
    columns = estimate.problem.table.code_columns()
    return {name: column.gather(cells.astype(np.uint32)) for name, column in columns.items()}


def _edges(row: Floats) -> str:
    """Whole numbers as in print, cut off and not rounded."""
    return " ".join(f"{int(np.floor(edge + 1e-9))}" if np.isfinite(edge) else "" for edge in row)


# Attack a release as an intruder would, and score the guesses against the truth.


@overload
def attack(problem: Problem, release: Release, one: Attack, /, *, time_limit_s: float | None = None) -> Estimate: ...


@overload
def attack(
    problem: Problem, release: Release, /, *attacks: Attack, time_limit_s: float | None = None
) -> tuple[Estimate, ...]: ...


def attack(
    problem: Problem, release: Release, /, *attacks: Attack, time_limit_s: float | None = None
) -> Estimate | tuple[Estimate, ...]:
    """Guess every cell that the release does not show, by one attack or by several; all of them when none is named.

    One attack gives its estimate, several a tuple in the same order. Each may take `time_limit_s` seconds: what guesses
    from many solutions then guesses from fewer, the others have no answer, and the estimate's note says so. A release
    without any freedom is no error: its cells are known exactly.
    """
    for given in attacks:
        if not callable(getattr(given, "guess", None)) or isinstance(given, type):
            raise InvalidOption(
                f"attack takes attacks such as AnalyticCentre(), got {given!r}.",
                hint=f"there are {', '.join(kind.__name__ for kind in ATTACKS.values())}; write the brackets.",
            )
    if time_limit_s is not None and not time_limit_s > 0:
        raise InvalidOption(f"'time_limit_s' must be above 0, got {time_limit_s}.")
    require_problem_and_release("attack", problem, release)
    view = View.of(problem, release)
    chosen = attacks or tuple(kind() for kind in ATTACKS.values())
    estimates = tuple(estimate_by(each, problem, view, time_limit_s) for each in chosen)
    return estimates[0] if len(attacks) == 1 else estimates


def estimate_by(attack: Attack, problem: Problem, view: View, time_limit_s: float | None = None) -> Estimate:
    """The attack's guess in the table's own unit, with what the release says exactly."""
    system, unit = view.system, 10.0**problem.table.decimals
    begin = perf_counter()
    try:
        guess = attack.guess(view, Budget(time_limit_s))
    except OutOfTime:
        guess = _none(view, f"no answer within {time_limit_s:g} seconds")
    except (SolverFailure, np.linalg.LinAlgError) as failure:  # the other attacks go on
        guess = _none(view, f"no answer: {failure}")
    values = problem.table.value.copy()  # a cell that is not unknown is known, and the release tells the truth
    values[system.cells] = guess.values / unit
    known = np.ones(len(values), dtype=np.bool_)
    known[system.cells] = ~view.free
    density = None if guess.density is None else guess.density.over(unit)
    seconds = perf_counter() - begin
    return Estimate(problem, attack.name, values, known, system.cells, density, guess.note, seconds)


def _none(view: View, note: str) -> Guess:
    return Guess(np.where(view.free, np.nan, view.lower), note=note)
