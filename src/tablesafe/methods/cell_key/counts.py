"""What the cell key method takes for counts and for magnitudes, and what it refuses."""

from __future__ import annotations

import warnings

import numpy as np

from tablesafe.core.equations import Integers
from tablesafe.core.errors import InvalidTable
from tablesafe.core.problem import Problem
from tablesafe.methods.cell_key.keys import origin_of
from tablesafe.methods.counting import whole_counts


def counts_of(problem: Problem, maximum_change: float) -> Integers:
    """The counts of a problem; refuses negative numbers, fractions and weights, and warns of magnitudes."""
    magnitudes = "for magnitudes, set the options of magnitude (ts.Magnitude)."
    value = whole_counts(
        problem.table,
        "The cell key method",
        if_negative=magnitudes,
        if_fraction=f"take the unweighted counts; {magnitudes}",
    )
    _refuse_weights(problem)
    _warn_of_magnitudes(problem, maximum_change)
    return value


def refuse_counts(problem: Problem) -> None:
    """Noise in proportion to contributions hides nothing where everybody knows that each of them is 1."""
    table = problem.table
    if table.count is not None and table.decimals == 0 and bool((table.count == table.integers).all()):
        raise InvalidTable(
            "The table counts its contributors, so noise in proportion to the largest contributions is too small to "
            "hide them.\n\nHint: leave out magnitude: the cell key method for counts is made for them."
        )


def _refuse_weights(problem: Problem) -> None:
    origin = origin_of(problem.table)
    if origin is not None and origin.plan.weight is not None:
        raise InvalidTable(
            f"The cell key method changes counts of records, but these are weighted by {origin.plan.weight!r}.\n\n"
            f"Hint: tabulate without the weight."
        )


def _warn_of_magnitudes(problem: Problem, maximum_change: float) -> None:
    """Say so when what looks like counts is made of contributions that such noise cannot hide."""
    kept, origin = problem.table.contributors, origin_of(problem.table)
    counts_records = origin is not None and not origin.plan.listed
    if kept is not None and not counts_records and float(np.abs(kept.amount).max(initial=0.0)) > maximum_change:
        warnings.warn(
            f"{problem.table.response!r} is perturbed as a count, but single contributions are larger than the maximum "
            f"change of {maximum_change:g}: such noise does not hide them. For magnitudes there is ts.Magnitude.",
            stacklevel=5,
        )
