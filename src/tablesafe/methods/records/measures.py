"""What the office is told about a release of changed records; the measures themselves stand in `loss.records`."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from tablesafe.core.equations import Integers
from tablesafe.core.posterior import posterior
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.loss.frames import quality_tables
from tablesafe.loss.records import distances, worth_of_counts
from tablesafe.methods.counting import is_count
from tablesafe.methods.records.behind import Edited, Microdata, Outcome
from tablesafe.methods.records.tabulated import tabulated


def outcome_of(
    problem: Problem,
    method: str,
    edit: Callable[[Microdata], Edited],
    publish: Callable[[Problem, Microdata, Integers], Release],
) -> Outcome:
    """Change the records, tabulate them, publish that table, and measure what changed."""
    microdata = Microdata.of(problem, method)
    edited = edit(microdata)
    release = publish(problem, microdata, tabulated(problem.table, edited.records, method))
    return Outcome(release, edited, {**told(problem, release, edited), **quality_tables(problem, release)})


def told(problem: Problem, release: Release, edited: Edited) -> dict[str, pl.DataFrame]:
    """All that the office is told about a release of changed records, by the name of the file that a job writes."""
    tables = {"edit_measures.csv": edited.measures, **edited.tables, "distances.csv": distances(problem, release)}
    worth = chances(problem, release, edited)
    if worth is not None:
        tables["chances.csv"] = worth
    if release.mechanism is not None:
        tables["posterior.csv"] = posterior(problem, release).frame()
    return tables


def still_there(table: Table, edited: Edited) -> Integers | None:
    """How many of the records that each cell shows were in it before too; None where cells do not count records."""
    if not is_count(table):
        return None
    return tabulated(table, edited.records.filter(pl.Series(~edited.changed)), "The count")


def chances(problem: Problem, release: Release, edited: Edited) -> pl.DataFrame | None:
    """What a small count is worth to an intruder: a row per published count.

    `share of records that are there` is the chance that somebody seen in such a cell is really in it, `share of cells
    that are right` the chance that the count is the true one. Both come from the records themselves. None where cells
    do not count records.
    """
    there = still_there(problem.table, edited)
    return None if there is None else worth_of_counts(problem, release, there)
