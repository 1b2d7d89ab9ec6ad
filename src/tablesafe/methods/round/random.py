"""Rounding of each count on its own: by chance without bias, or to the nearest multiple.

Random rounding goes up with probability residue ÷ base, so that the expected value of a rounded count is the count
(Fellegi, "Controlled random rounding", Survey Methodology 1, 1975, starts from it). The rounded table does not add up;
totals that are sums of the rounded inner cells do, at the price of wider windows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption, InvalidProblem, Setting
from tablesafe.core.mechanism import Mechanism, Transition
from tablesafe.core.table import Table
from tablesafe.methods.round.counts import Counts, parts_of_totals, summed_up


@dataclass(frozen=True, eq=False)
class Single:
    """Counts rounded one by one, how far below and above each the true count may lie, and the chances."""

    values: Integers = field(repr=False)
    below: Integers = field(repr=False)
    above: Integers = field(repr=False)
    mechanism: Mechanism = field(repr=False)
    judged: tuple[Floats, Floats] | None = field(default=None, repr=False)
    """Where inner cells are not shown and totals are their sums: the bounds for one who sees them all."""


def round_singly(counts: Counts, method: Literal["random", "conventional"], *, additive: bool, seed: int) -> Single:
    """Round every count that may change; with `additive` only the inner ones, and add them up."""
    if seed < 0:
        raise InvalidOption(f"Round.seed must be 0 or more, got {seed!r}.", about=("option", "Round", "seed"))
    n = len(counts.value)
    bases, which = np.unique(counts.base, return_inverse=True)
    make = Transition.random_rounding if method == "random" else Transition.conventional_rounding
    transitions = tuple(make(int(b)) for b in bases)
    chance = np.random.default_rng(seed).random(n)
    values, below, above = counts.value.copy(), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for number, transition in enumerate(transitions):
        own = (which == number) & ~counts.frozen
        values[own] = transition.draw(counts.value[own], chance[own])
        below[own], above[own] = transition.reach()
    if counts.occupied:  # a reader who sees no true zero takes no published zero for one
        below = np.minimum(below, values - 1)
    through = ~counts.frozen & ~counts.hidden
    judged = None
    if additive:
        if (counts.hidden & ~counts.table.is_total).any():
            sums, less, more = _added_up(replace(counts, hidden=np.zeros(n, np.bool_)), values, below, above)
            judged = np.maximum(sums - less, 0).astype(np.float64), (sums + more).astype(np.float64)
        values, below, above = _added_up(counts, values, below, above)
        through &= ~counts.table.is_total
    return Single(values, below, above, Mechanism(transitions, np.where(through, which, -1)), judged)


def _added_up(
    counts: Counts, values: Integers, below: Integers, above: Integers
) -> tuple[Integers, Integers, Integers]:
    """Totals as sums of the rounded inner cells; what the inner cells may be adds up to what the totals may be.

    No count is negative, and a reader who sees the parts takes that into account; of parts that are not shown, only the
    sum of the errors is known. That may be less than a clever reader finds out, so the audit judges such releases as if
    all rounded inner cells were shown: every table of counts within their windows could then be the true one.
    """
    sums = summed_up(counts.table, values)
    wrong = None if sums is None else np.flatnonzero(counts.frozen & (sums != counts.value))
    if sums is None or wrong is None or wrong.size:
        which = "the inner cells do not determine them" if wrong is None else "some totals are frozen"
        raise InvalidProblem(
            f"The totals cannot be replaced by sums of rounded inner cells: {which}.",
            hint=(
                "use ",
                Setting("method", "controlled"),
                ", or ",
                Setting("additive", False),
                ".",
            ),
        )
    low = np.where(counts.hidden, sums - below, np.maximum(sums - below, 0))
    low, high = _summed_windows(counts, low, sums + above)
    unseen = counts.hidden & ~counts.frozen & ~counts.table.is_total
    if unseen.any():
        low = np.maximum(low, _least_with_unseen(counts, sums, low, below, unseen))
    return sums, sums - low, high - sums


def _least_with_unseen(counts: Counts, sums: Integers, low: Integers, below: Integers, unseen: Mask) -> Integers:
    """The least that totals can be whose parts are not all shown: a part that shows 0 is not below it.

    The parts not shown add up to so much that only so many of them can show anything at all.
    """
    inner = ~counts.table.is_total

    def added(values: Integers) -> Integers:
        found = summed_up(counts.table, np.where(inner, values, 0), absolute=True)
        assert found is not None
        return found

    held = added(np.where(unseen, sums, 0))
    raised = np.minimum(added(unseen.astype(np.int64)), held // int(counts.base[unseen].min()))
    least = added(np.where(unseen, 0, low)) + held - int(below[unseen].max()) * raised
    return np.where(inner | _subtracts(counts.table), low, least)


def _subtracts(table: Table) -> bool:
    """Whether some total is a difference."""
    entries = sparse.coo_array(table.equations)
    return bool((entries.data[entries.col != table.totals[entries.row]] < 0).any())


def _summed_windows(counts: Counts, low: Integers, high: Integers) -> tuple[Integers, Integers]:
    """The windows of the totals from those of their parts, from the inner cells up."""
    table = counts.table
    totals, parts = parts_of_totals(table)
    added, subtracted = parts.maximum(0), (-parts).maximum(0)
    low, high = low.copy(), high.copy()
    for _ in range(len(table)):
        least, most = added @ low - subtracted @ high, added @ high - subtracted @ low
        least = np.where(counts.hidden[totals], least, np.maximum(least, 0))
        if (least == low[totals]).all() and (most == high[totals]).all():
            break
        low[totals], high[totals] = least, most
    return low, high
