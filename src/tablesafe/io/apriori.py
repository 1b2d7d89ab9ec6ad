"""What is known beforehand about single cells: statuses, costs, protection levels, bounds.

From a table (CSV, Parquet, a frame): the dimensions, and any of the columns `status`, `cost`, `lower_level`,
`upper_level`, `sliding_level`, `lower_bound`, `upper_bound`, `frozen`, `suppressed`. An empty entry changes nothing.
`who`, `why` and `decided` are for people: who decided so, for what reason, and when.
`tablesafe.tauargus.apriori` reads the same from a-priori files of τ-ARGUS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidInput, InvalidOption, InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.statuses import FLAGS, NO_DECISION, Meaning, Scheme, read_statuses, recognised_scheme
from tablesafe.core.table import Table
from tablesafe.files.read import Source, did_you_mean, read_source
from tablesafe.io.frames import read_frame
from tablesafe.io.matching import key_columns, match_cells, refuse_absent, refuse_repeats

MANUAL_RANGE = 20.0
"""Percent of its value by which a cell is hidden that is sensitive by hand: the default of τ-ARGUS."""
UNCHANGED = 255
"""No `Meaning`, and no switch: nothing was said of the cell."""
NUMBERS = ("cost", "lower_level", "upper_level", "sliding_level", "lower_bound", "upper_bound")
SWITCHES = ("frozen", "suppressed")


@dataclass(frozen=True, eq=False)
class Information:
    """Per cell what is asked for: a `Meaning` or UNCHANGED, numbers or NaN, and the row that said it last."""

    source: Source
    row: Integers
    status: Any
    numbers: dict[str, Floats]
    switches: dict[str, Any]

    @classmethod
    def none(cls, n: int, source: Source) -> Information:
        return cls(
            source,
            np.full(n, -1, dtype=np.int64),
            np.full(n, UNCHANGED, dtype=np.uint8),
            {name: np.full(n, np.nan) for name in NUMBERS},
            {name: np.full(n, UNCHANGED, dtype=np.uint8) for name in SWITCHES},
        )

    def refuse(self, bad: Mask, table: Table, what: str, hint: str) -> None:
        if bad.any():
            cell = int(np.argmax(bad))
            where = self.source.where(int(self.row[cell]))
            raise InvalidProblem(f"{where}: cell {table.describe(cell)} {what}.", hint=hint)


def apply_cells(
    problem: Problem,
    source: Any,
    *,
    scheme: Scheme | None = None,
    manual_range: float = MANUAL_RANGE,
    waive: bool = True,
) -> Problem:
    """The problem with what a CSV, Parquet or Excel file, or a frame, says about its cells.

    `scheme` is the vocabulary of the column `status`; without it the column must leave no doubt. A cell that is called
    safe there is not sensitive any more, whatever a rule said; not so with `waive=False`, nor in vocabularies that only
    describe what is shown (`0/1`, `obs-status`).
    """
    if isinstance(source, (str, Path)):
        read = read_frame(source)
    else:
        read = read_source(source, name="the a-priori information")
    columns = _recognised_columns(read, problem.table)
    cells = match_cells(problem.table, read)
    refuse_absent(problem.table, read, cells)
    refuse_repeats(problem.table, read, cells)
    information = Information.none(len(problem.table), read)
    information.row[cells] = np.arange(len(cells))
    for name, column in columns.items():
        if name in NUMBERS:
            information.numbers[name][cells] = _numbers_or_nan(read, column, infinite="bound" in name)
        else:
            filled = (read.text(column).fill_null("") != "").to_numpy()
            used: Scheme = "0/1" if name != "status" else scheme or recognised_scheme(read, column)
            meanings = read_statuses(read, column, scheme=used)
            if name == "status" and (used in NO_DECISION or not waive):
                filled &= meanings != Meaning.PUBLISHED
            target = information.status if name == "status" else information.switches[name]
            target[cells] = np.where(filled, meanings, UNCHANGED)
    return informed(problem, information, manual_range)


# -- reading -----------------------------------------------------------------------------------------------------------


def _recognised_columns(source: Source, table: Table) -> dict[str, str]:
    """Which column holds what; a column that means nothing is an error, so that no typing mistake goes unseen."""
    harmless = {table.response, "value", "count", "holdings", *table.columns}
    harmless |= {f"{name} label" for name in table.dimensions} | {"who", "why", "decided"}
    known = {"status", *NUMBERS, *SWITCHES}
    found: dict[str, str] = {}
    for column in source.frame.columns:
        name = column.strip().lower().replace(" ", "_")
        if name in known:
            found[name] = column
        elif column not in key_columns(table) and column not in harmless:
            hint = did_you_mean(name, sorted(known)) or f"columns can be {', '.join(sorted(known))}."
            raise InvalidInput(f"{source.name} has a column {column!r}, which means nothing here.", hint=hint)
    if not found:
        raise InvalidInput(f"{source.name} says nothing about its cells.", hint=f"add {', '.join(sorted(known))}.")
    return found


def _numbers_or_nan(source: Source, column: str, *, infinite: bool) -> Floats:
    """A column of numbers, NaN where it is empty; only bounds may be infinite."""
    text = source.text(column).fill_null("").str.to_lowercase()
    below, above = (text.is_in(words) for words in (["-inf", "-infinity"], ["inf", "+inf", "infinity"]))
    blank = text == ""
    skipped = blank | below | above if infinite else blank
    bare = source.frame.with_columns(source.frame[column].set(skipped, None))
    numbers = Source(bare, source.name, source.first_line).numbers(column, missing=0.0)
    return np.select([blank, skipped & below, skipped & above], [np.nan, -np.inf, np.inf], numbers)


# -- applying ----------------------------------------------------------------------------------------------------------


def informed(problem: Problem, information: Information, manual_range: float) -> Problem:
    """The problem with the information about its cells."""
    if not 0 <= manual_range <= 100:
        raise InvalidOption(f"manual_range is a percentage from 0 to 100, got {manual_range:g}.")
    table, status, numbers = problem.table, information.status, information.numbers
    changed = status != UNCHANGED
    sensitive = status == Meaning.SENSITIVE
    information.refuse(
        (status == Meaning.EMPTY) & (table.integers != 0), table, "is called empty, but has a value", "correct it."
    )
    frozen = np.where(changed, (status == Meaning.FROZEN) | (status == Meaning.EMPTY), problem.frozen)
    suppressed = np.where(changed, status == Meaning.SUPPRESSED, problem.suppressed)
    frozen = _switched(information.switches["frozen"], frozen)
    suppressed = _switched(information.switches["suppressed"], suppressed)
    sensitivity = problem.sensitivity.where(status != Meaning.PUBLISHED)
    by_hand = Sensitivity.of(sensitive & ~sensitivity.mask, np.abs(table.value) * manual_range / 100, reason="manual")
    sensitivity = _with_levels(sensitivity | by_hand if sensitive.any() else sensitivity, information, table)
    information.refuse(
        frozen & sensitivity.mask & (information.row >= 0), table, "is to be published, but is sensitive",
        "say 's' first if it may be published.",
    )  # fmt: skip
    cost = _replaced(problem.cost, numbers["cost"])
    information.refuse(cost < 0, table, "has a negative cost", "costs must be 0 or more.")
    lower, upper = _replaced(problem.lower, numbers["lower_bound"]), _replaced(problem.upper, numbers["upper_bound"])
    outside = ((table.value < lower) | (table.value > upper)) & (information.row >= 0)
    information.refuse(outside, table, "lies outside its bounds", "the bounds must contain the true value.")
    return problem.replace(
        sensitivity=sensitivity, frozen=frozen, suppressed=suppressed, cost=cost, lower=lower, upper=upper
    )


def _with_levels(sensitivity: Sensitivity, information: Information, table: Table) -> Sensitivity:
    levels: dict[str, Floats] = {}
    for name in ("lower", "upper", "sliding"):
        given = information.numbers[f"{name}_level"]
        there = ~np.isnan(given)
        information.refuse(there & (given < 0), table, "has a negative protection level", "it must be 0 or more.")
        information.refuse(
            there & (given > 0) & ~sensitivity.mask, table, "gets protection levels, but is not sensitive",
            "mark it as sensitive ('u'), or leave the levels out.",
        )  # fmt: skip
        levels[name] = np.where(sensitivity.mask, _replaced(getattr(sensitivity, name), given), 0.0)
    return replace(sensitivity, lower=levels["lower"], upper=levels["upper"], sliding=levels["sliding"])


def _replaced(old: Floats, new: Floats) -> Floats:
    return np.where(np.isnan(new), old, new)


def _switched(switch: Any, old: Mask) -> Mask:
    on = int(FLAGS["true"])
    return np.where(switch == UNCHANGED, old, switch == on)
