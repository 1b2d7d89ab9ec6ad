"""Tables of what protection cost, by the names of the files that a job writes. For the office only."""

from __future__ import annotations

import polars as pl

from tablesafe.core.posterior import posterior
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss import loss
from tablesafe.loss.noise import noise_measures
from tablesafe.loss.quality import quality


def quality_tables(problem: Problem, release: Release) -> dict[str, pl.DataFrame]:
    """How far the published values are from the true ones, and which of them users should rely on."""
    found = quality(problem, release)
    totals = found.totals()
    return {
        "quality.csv": pl.DataFrame({"measure": list(totals), "value": [float(v) for v in totals.values()]}),
        "percent_changes.csv": found.distribution(),
        "accuracy_by_size.csv": found.by_size(),
        "quality_flags.csv": found.cells(),
    }


def rounding_tables(problem: Problem, release: Release) -> dict[str, pl.DataFrame]:
    """How far rounded counts are from the true ones by level, and what chance leaves to believe about them."""
    tables = {"changes_by_level.csv": loss(problem, release).frame()}
    if release.mechanism is not None:
        tables["posterior.csv"] = posterior(problem, release).frame()
    return tables


def noise_tables(problem: Problem, release: Release) -> dict[str, pl.DataFrame]:
    """What noise did to the values."""
    found = noise_measures(problem, release)
    totals = found.totals()
    tables = {"noise.csv": pl.DataFrame({"measure": list(totals), "value": list(totals.values())})}
    tables["noise_distances.csv"] = found.distances()
    if release.mechanism is not None:
        tables["noise_changes.csv"] = found.distribution()
        tables["posterior.csv"] = posterior(problem, release).frame()
    return tables
