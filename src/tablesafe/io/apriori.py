"""What is known beforehand about single cells: statuses, costs, protection levels, bounds.

From a τ-ARGUS a-priori file (`.hst`), one instruction per line, after the codes of the cell:

| instruction | meaning |
|---|---|
| `s` | safe: whatever a rule says, the cell may be published |
| `u` | sensitive; hidden by `manual_range` percent of its value unless levels follow |
| `p` | frozen: must be published |
| `m`, `ml` | suppressed already |
| `c;100` or `w;100` | the cost of suppressing it |
| `pl;10;20` | its lower and upper protection level, if it is sensitive; `pl;10` is both |
| `ab;0;500` | the attacker's bounds; nothing instead of a number is no bound |

Later lines win over earlier ones. An empty code means the total. τ-ARGUS can expand a code to the levels above and
below it that hold the same cell; here they are one cell anyway.

From a table (CSV, Parquet, a frame): the dimensions, and any of the columns `status`, `cost`, `lower_level`,
`upper_level`, `sliding_level`, `lower_bound`, `upper_bound`, `frozen`, `suppressed`. An empty entry changes nothing.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidInput, InvalidOption, InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.statuses import FLAGS, LETTERS, NO_DECISION, Meaning, Scheme, read_statuses, recognised_scheme
from tablesafe.core.table import Table
from tablesafe.files.read import Source, did_you_mean, read_source
from tablesafe.files.write import write_text
from tablesafe.io.apriori_lines import WHAT, instruction_numbers, read_hst, without_contradictions
from tablesafe.io.frames import read_frame
from tablesafe.io.matching import key_columns, match_cells, refuse_absent, refuse_repeats
from tablesafe.io.tauargus_table import MANUAL_RANGE
from tablesafe.io.text import as_text

UNCHANGED = 255
NUMBERS = ("cost", "lower_level", "upper_level", "sliding_level", "lower_bound", "upper_bound")
SWITCHES = ("frozen", "suppressed")


@dataclass(frozen=True, eq=False)
class _Information:
    """Per cell what is asked for: a `Meaning` or UNCHANGED, numbers or NaN, and the row that said it last."""

    source: Source
    row: Integers
    status: Any
    numbers: dict[str, Floats]
    switches: dict[str, Any]

    @classmethod
    def none(cls, n: int, source: Source) -> _Information:
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
            raise InvalidProblem(f"{where}: cell {table.describe(cell)} {what}.\n\nHint: {hint}")


def apply_hst(
    problem: Problem,
    path: str | Path,
    *,
    separator: str | None = None,
    manual_range: float = MANUAL_RANGE,
    ignore_unknown: bool = False,
    ignore_errors: bool = False,
) -> Problem:
    """The problem with what a τ-ARGUS a-priori file says about its cells.

    Without `separator` the first lines tell it. With `ignore_unknown` lines about cells that are not there are left
    out, with a warning; with `ignore_errors` so is every line that cannot be followed, as τ-ARGUS does; lines about
    structural zeros always are.
    """
    source, line = read_hst(Path(path), problem.table, separator, ignore=ignore_errors)
    ignore_unknown |= ignore_errors
    needed = np.full(source.frame.height, not ignore_unknown)
    cells = match_cells(problem.table, source, needed=needed)
    if not ignore_unknown:
        refuse_absent(problem.table, source, cells)
    cells = _without_zeros(problem.table, source, cells)
    if ignore_errors:
        cells = without_contradictions(problem, source, cells, line)
    information = _Information.none(len(problem.table), source)
    what = source.frame[WHAT]
    first, second = instruction_numbers(source)
    rows = np.flatnonzero(cells >= 0)
    information.row[cells[rows]] = rows
    letters = what.replace_strict(
        list(LETTERS), [int(meaning) for meaning in LETTERS.values()], default=UNCHANGED, return_dtype=pl.UInt8
    ).to_numpy()
    status_rows = rows[letters[rows] != UNCHANGED]
    information.status[cells[status_rows]] = letters[status_rows]
    targets = {
        "c": ("cost",),
        "w": ("cost",),
        "pl": ("lower_level", "upper_level"),
        "ab": ("lower_bound", "upper_bound"),
    }
    for instruction, names in targets.items():
        chosen = rows[(what == instruction).to_numpy()[rows]]
        for name, numbers in zip(names, (first, second), strict=False):
            information.numbers[name][cells[chosen]] = numbers[chosen]
    return _informed(problem, information, manual_range)


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
    information = _Information.none(len(problem.table), read)
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
    return _informed(problem, information, manual_range)


def write_hst(problem: Problem, path: str | Path, *, separator: str = ";") -> None:
    """Write what distinguishes the cells of a problem from those of a bare table, as an a-priori file. Confidential.

    Cells withheld by design are written as suppressed; sliding levels have no place in this format.
    """
    table, sensitivity = problem.table, problem.sensitivity
    if len(separator) != 1 or separator in '"\r\n.-+' or separator.isalnum():
        raise InvalidOption(f"The separator {separator!r} cannot be told from codes and numbers.\n\nHint: ';' can.")
    if (sensitivity.sliding > 0).any():
        raise InvalidProblem(
            "Sliding protection levels have no place in a .hst file.\n\nHint: write the problem as JJ."
        )
    bare = Problem(table)
    cells = _codes_as_text(table, separator)
    zero = np.zeros(len(table), np.bool_) if table.structural_zero is None else table.structural_zero
    lines: list[str] = []

    def add(where: Mask, instruction: str, *numbers: Floats) -> None:
        chosen = np.flatnonzero(where & ~zero).astype(np.uint32)
        parts = [cells.gather(chosen), pl.Series([instruction] * len(chosen), dtype=pl.String)]
        parts += [_bounded_text(number[chosen]) for number in numbers]
        frame = pl.DataFrame([part.alias(str(i)) for i, part in enumerate(parts)])
        lines.extend(frame.select(pl.concat_str(pl.all(), separator=separator)).to_series().to_list())

    add(sensitivity.mask, "u")
    add(problem.frozen, "p")
    add((problem.suppressed | problem.withheld) & ~sensitivity.mask, "m")
    add(sensitivity.mask, "pl", sensitivity.lower, sensitivity.upper)
    add(problem.cost != bare.cost, "c", problem.cost)
    add((problem.lower != bare.lower) | (problem.upper != bare.upper), "ab", problem.lower, problem.upper)
    write_text(path, "".join(line + "\n" for line in lines))


# -- reading -----------------------------------------------------------------------------------------------------------


def _without_zeros(table: Table, source: Source, cells: Integers) -> Integers:
    """The cells of the rows, −1 for those that are structural zeros: nothing can be asked of them."""
    zero = np.zeros(len(table) + 1, np.bool_)
    if table.structural_zero is not None:
        zero[:-1] = table.structural_zero
    lost = int((cells < 0).sum())
    empty = int(zero[cells].sum())
    if lost or empty:
        first = source.where(int(np.argmax((cells < 0) | zero[cells])))
        many = "1 line was" if lost + empty == 1 else f"{lost + empty:,} lines were"
        kinds = ((lost, "not in the table"), (empty, "structural zeros"))
        why = ", ".join(f"{n:,} of cells that are {what}" for n, what in kinds if n)
        warnings.warn(f"{source.name}: {many} left out: {why}; the first is {first}.", stacklevel=3)
    return np.where(zero[cells], -1, cells)


def _recognised_columns(source: Source, table: Table) -> dict[str, str]:
    """Which column holds what; a column that means nothing is an error, so that no typing mistake goes unseen."""
    harmless = {table.response, "value", "count", "holdings", *table.columns}
    harmless |= {f"{name} label" for name in table.dimensions}
    known = {"status", *NUMBERS, *SWITCHES}
    found: dict[str, str] = {}
    for column in source.frame.columns:
        name = column.strip().lower().replace(" ", "_")
        if name in known:
            found[name] = column
        elif column not in key_columns(table) and column not in harmless:
            hint = did_you_mean(name, sorted(known)) or f"columns can be {', '.join(sorted(known))}."
            raise InvalidInput(f"{source.name} has a column {column!r}, which means nothing here.\n\nHint: {hint}")
    if not found:
        raise InvalidInput(f"{source.name} says nothing about its cells.\n\nHint: add {', '.join(sorted(known))}.")
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


def _informed(problem: Problem, information: _Information, manual_range: float) -> Problem:
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


def _with_levels(sensitivity: Sensitivity, information: _Information, table: Table) -> Sensitivity:
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


def _codes_as_text(table: Table, separator: str) -> pl.Series:
    columns = []
    for name, codes in table.code_columns().items():
        bad = codes.str.contains(r'[\n\r"]') | (codes.str.strip_chars() == "")
        if bad.any():
            raise InvalidProblem(
                f"Code {codes.filter(bad)[0]!r} of {name!r} cannot be written to a .hst file.\n\n"
                f"Hint: codes there hold no quotes and no line breaks."
            )
        special = codes.str.contains(separator, literal=True)
        columns.append(codes.zip_with(~special, '"' + codes + '"').alias(name))
    return pl.DataFrame(columns).select(pl.concat_str(pl.all(), separator=separator)).to_series()


def _bounded_text(numbers: Floats) -> pl.Series:
    return as_text(numbers).set(pl.Series(np.isinf(numbers)), "")
