"""Tables as they arrive: published values, and marks such as `c` or `..` where a value is withheld."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidFile, InvalidInput, InvalidRelease, InvalidTable, Setting, and_more
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.statuses import NAMED, VOCABULARIES, Meaning, Scheme, read_statuses
from tablesafe.core.table import Table
from tablesafe.files.read import Source, did_you_mean, guess_delimiter, parse_csv, read_source, read_text
from tablesafe.io.frames import read_excel, read_frame, unguarded
from tablesafe.io.jj import RIGHT_HAND_SIDE, read_jj
from tablesafe.io.layout import EXCEL_ENDINGS
from tablesafe.io.matching import key_columns, match_cells, refuse_absent, refuse_repeats
from tablesafe.io.text import count_entries, read_lines, split_lines

WITHHELD = ("", "c", "(c)", "[c]", "x", "..", "...", "…", ":", ":c", ". .", "*", "**", "/", "•", "suppressed", "conf")
"""What offices print, in lower case, where they withhold a value. A dash is not among them: it is a zero to most."""
ROUNDING = 1e-9
"""Relative difference of a published value from the true one that comes from writing it as text."""


def marked_rows(read: Source, problem: Problem, statuses: Sequence[str]) -> Mask | None:
    """Which rows show a mark instead of a value; None where there is a column of statuses, or no mark at all.

    Values that are shown must be those of the table: a mark says something only about the table that it stands in.
    """
    keys = key_columns(problem.table)
    columns = [column for column in read.frame.columns if column not in keys]
    if any(column.lower() in statuses for column in columns):
        return None
    known = [column for column in columns if column in (problem.table.response, "value")]
    if not known and len(columns) != 1:
        return None
    column = (known or columns)[0]
    text = read.text(column).fill_null("")
    hidden = text.str.to_lowercase().is_in(WITHHELD)
    number = text.cast(pl.Float64, strict=False)
    commas = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    number = number if number.null_count() <= commas.null_count() else commas
    strange = (number.is_null() & ~hidden).to_numpy()
    if strange.all() or not hidden.any():
        return None
    if strange.any():
        row = int(strange.argmax())
        raise InvalidTable(
            f"Column {column!r} has {text[row]!r} at {read.where(row)}, which is neither a number nor a mark of a "
            f"withheld cell (blank, c, x, .., :).",
            hint="replace it by one of these, or add a column 'status'.",
        )
    mask = hidden.to_numpy()
    _refuse_other_values(read, problem, column, number.to_numpy(), mask)
    return mask


def _refuse_other_values(read: Source, problem: Problem, column: str, shown: Floats, hidden: Mask) -> None:
    cells = match_cells(problem.table, read, needed=hidden)
    there = ~hidden & (cells >= 0)
    truth = problem.table.value[np.maximum(cells, 0)]
    differ = np.flatnonzero(there & (np.abs(np.nan_to_num(shown) - truth) > ROUNDING * (1 + np.abs(truth))))
    if differ.size:
        cell = problem.table.describe(int(cells[differ[0]]))
        raise InvalidTable(
            f"{read.where(int(differ[0]))}: the {column!r} of cell {cell} is not that of the table.",
            hint="is it the pattern of another table? Values that were changed or rounded are no pattern.",
        )


# Suppression patterns made by other software, as a mask over the cells of a problem.
#
# A pattern is a CSV or Parquet file (or a frame) with the codes of each cell and a column that says whether it is
# suppressed, in one of the vocabularies of `core.statuses`; what τ-ARGUS writes, `code,code,value,status` without a
# line of names; a JJ file, in which cells of status `u` and `m` are suppressed; or the table as it was published,
# with a mark such as `c` or `..`, or nothing, in place of a withheld value.


STATUS_COLUMNS = ("suppressed", "status", "sdcstatus", "flag", "confidential", "suppress", *NAMED, "primary")
"""What the column of statuses is called, if nobody says, in any case; `primary` only where there is no other."""

STATUSES = {word for spellings in VOCABULARIES.values() for words in spellings for word in words}


def read_pattern(
    source: Any,
    problem: Problem,
    *,
    column: str | None = None,
    scheme: Scheme | None = None,
    complete: bool = True,
    ignore_unknown: bool = False,
) -> Mask:
    """Which cells of a problem a file or frame suppresses, matched on the codes (or the names) of the cells.

    A cell that the table does not have is an error unless the pattern publishes it; a cell named twice always is. With
    `complete` every cell that is not a structural zero must be there; otherwise cells left out are published. With
    `ignore_unknown` withheld cells that the table does not have are left out, with a warning: those of another period.
    `scheme` is the vocabulary of the statuses; without it the column must leave no doubt.
    """
    if isinstance(source, (str, Path)) and _is_jj(Path(source)):
        return _from_jj(Path(source), problem)
    read = _read(source, problem, column)
    read.require(*key_columns(problem.table))
    hidden = None if column is not None or scheme is not None else marked_rows(read, problem, STATUS_COLUMNS)
    if hidden is None:
        column = _status_column(read, problem, column)
        meaning = read_statuses(read, column, scheme=scheme, pattern=True)
        hidden = (meaning == Meaning.SENSITIVE) | (meaning == Meaning.SUPPRESSED)
    if ignore_unknown:
        hidden = _known(problem, read, hidden)
    cells = match_cells(problem.table, read, needed=hidden)
    refuse_absent(problem.table, read, np.where(hidden, cells, np.maximum(cells, 0)))
    refuse_repeats(problem.table, read, _under_one_name(problem.table, read, cells, hidden))
    if complete:
        _refuse_gaps(problem, cells, read.name)
    mask = np.zeros(len(problem.table), dtype=np.bool_)
    mask[cells[hidden]] = True
    return mask


def _under_one_name(table: Table, source: Source, cells: Integers, hidden: Mask) -> Integers:
    """The cell of each row, −1 for a row that says the same of a cell under a second name (a total with one part)."""
    if not any(tree.aliases for tree in table.dimensions.values()):
        return cells
    order = np.argsort(cells, kind="stable")
    new = np.concatenate([[True], cells[order][1:] != cells[order][:-1]])
    first = np.empty(len(cells), dtype=np.int64)
    first[order] = order[np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    renamed = np.zeros(len(cells), dtype=np.bool_)
    for dimension in table.dimensions:
        text = source.text(dimension).fill_null("")
        renamed |= (text != text.gather(first.astype(np.uint32))).to_numpy()
    return np.where(renamed & (hidden == hidden[first]), -1, cells)


def _known(problem: Problem, read: Source, hidden: Any) -> Any:
    """Of the withheld cells, those that the table has; a pattern with none of them is the wrong file."""
    there = match_cells(problem.table, read, needed=np.zeros_like(hidden)) >= 0
    lost = int((hidden & ~there).sum())
    if lost and lost == int(hidden.sum()):
        raise InvalidTable(
            f"None of the {lost:,} cells that {read.name} withholds is in the table.",
            hint="is it the pattern of another table?",
        )
    if lost:
        warnings.warn(
            f"{read.name}: {lost:,} of the {int(hidden.sum()):,} cells that it withholds are not in the table.",
            stacklevel=3,
        )
    return hidden & there


def _is_jj(path: Path) -> bool:
    return ".jj" in [ending.lower() for ending in path.suffixes[-2:]]


def _from_jj(path: Path, problem: Problem) -> Mask:
    """Suppressed cells of a JJ file of the same table: by id where the cells are named so, otherwise in their order."""
    other, table = read_jj(path), problem.table
    names = pl.Series("cell", other.table.names, dtype=pl.String)
    own = ~names.str.starts_with(RIGHT_HAND_SIDE).to_numpy()
    hidden, value = (other.sensitivity.mask | other.suppressed)[own], other.table.value[own]
    if table.names is not None:
        cells = match_cells(table, Source(names.to_frame().filter(own), path.name))
    elif len(hidden) == table.seen:
        cells = np.arange(table.seen)
    else:
        raise InvalidTable(f"{path.name} has {len(hidden):,} cells, but the table has {table.seen:,}.")
    differ = np.flatnonzero(value != table.value[cells])
    if differ.size:
        cell = int(cells[differ[0]])
        raise InvalidTable(
            f"The value of cell {table.describe(cell)} in {path.name} is not that of the table.",
            hint="is it the pattern of another table?",
        )
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[cells[hidden]] = True
    _refuse_gaps(problem, cells, path.name)
    return mask


def _read(source: Any, problem: Problem, column: str | None) -> Source:
    """The file with named columns; one without names has the codes first and the status last."""
    if not isinstance(source, (str, Path)):
        return read_source(source, name="the pattern")
    path = Path(source)
    if path.suffix.lower() in EXCEL_ENDINGS:
        return read_excel(path)
    if path.suffix.lower() in {".parquet", ".pq"}:
        return read_source(path)
    text = read_text(path)
    if not text.strip():
        raise InvalidFile(f"{path.name} is empty.", hint="is it the right file, and complete?")
    keys = key_columns(problem.table)
    if column is not None or _has_names(text, keys):
        read = parse_csv(text, path.name)
        return _in_spelling_of(Source(unguarded(read.frame), read.name, read.first_line), keys)
    lines = read_lines(path)
    separator = guess_delimiter("\n".join(lines.head(20).to_list()))
    width = int(count_entries(lines.head(1), separator)[0])
    if width <= len(keys):
        raise InvalidFile(
            f"{path.name} has {width} columns, but {len(keys)} dimensions ({', '.join(keys)}) and a status are needed.",
            hint="the first line should name the columns.",
        )
    between = [f"column {i + 1}" for i in range(len(keys), width - 1)]
    return split_lines(lines, path.name, separator, [*keys, *between, "status"])


def _has_names(text: str, keys: list[str]) -> bool:
    """Whether the first line names columns: its last entry is no status, or all that is needed is named in it."""
    first = text.lstrip().splitlines()[0].split(guess_delimiter(text))
    entries = [entry.strip().strip('"').strip().lower() for entry in first]
    named = {key.lower() for key in keys} <= set(entries) and not set(entries).isdisjoint(STATUS_COLUMNS)
    return named or entries[-1] not in STATUSES


def _in_spelling_of(source: Source, keys: list[str]) -> Source:
    """The columns of the dimensions under their own names, where they differ only in upper and lower case."""
    lowered = {column.lower(): column for column in source.frame.columns}
    renames = {lowered[key.lower()]: key for key in keys if key not in source.frame.columns and key.lower() in lowered}
    return Source(source.frame.rename(renames), source.name, source.first_line)


def _status_column(source: Source, problem: Problem, wanted: str | None) -> str:
    keys = key_columns(problem.table)
    columns = {column.lower(): column for column in source.frame.columns if column not in keys}
    if wanted is not None:
        source.require(wanted)
        return wanted
    found = [columns[name] for name in STATUS_COLUMNS if name in columns and name != "primary"]
    if len(found) > 1:
        raise InvalidInput(
            f"{source.name} has several columns that may say what is suppressed: {', '.join(map(repr, found))}.",
            hint=(
                "say which: ",
                Setting("column", found[0]),
                " (--column on the command line), or leave the others out.",
            ),
        )
    if found or "primary" in columns:
        return found[0] if found else columns["primary"]
    hint = did_you_mean("status", list(columns)) or ("name it 'status', or pass ", Setting("column"))
    raise InvalidInput(
        f"{source.name} has no column that says what is suppressed; it has "
        f"{', '.join(map(repr, source.frame.columns))}.",
        hint=hint,
    )


def _refuse_gaps(problem: Problem, cells: Any, name: str) -> None:
    table = problem.table
    there = np.zeros(len(table), dtype=np.bool_)
    there[cells[cells >= 0]] = True
    if table.structural_zero is not None:
        there |= table.structural_zero
    there |= problem.withheld
    if table.names is not None:
        there |= pl.Series(table.names, dtype=pl.String).str.starts_with(RIGHT_HAND_SIDE).to_numpy()
    gaps = np.flatnonzero(~there)
    if gaps.size:
        raise InvalidTable(
            f"{name} says nothing about cell {table.describe(int(gaps[0]))}{and_more(gaps.size)}.",
            hint=(
                "add the row, or pass ",
                Setting("complete", False),
                " if cells left out are published.",
            ),
        )


# Read back what was released: a pattern of withheld values, or values with the intervals announced for them.


FROM, TO = "from", "to"
ENDLESS = ("inf", "-inf")


def read_release(path: str | Path, problem: Problem, *, scheme: Scheme | None = None) -> Release:
    """The release in a file: with the columns 'from' and 'to' as announced there, otherwise as a pattern.

    A value that is published without an interval is taken for true. Cells left out are withheld. `scheme` is the
    vocabulary of the statuses of a pattern.
    """
    path = Path(path)
    source = _with_intervals(path)
    if source is None:
        return Release.from_suppression(problem, read_pattern(path, problem, scheme=scheme), method=path.name)
    cells = match_cells(problem.table, source)
    refuse_absent(problem.table, source, cells)
    refuse_repeats(problem.table, source, cells)
    return _released(problem, source, cells.astype(np.intp), path.name)


def read_values(path: str | Path, problem: Problem) -> Floats:
    """A value per cell from a file with the codes of the same table, such as last period's; NaN where it has none."""
    source = read_frame(path)
    column = _value_column(problem, source)
    codes = match_cells(problem.table, source, needed=np.zeros(source.frame.height, np.bool_))
    refuse_repeats(problem.table, source, codes)
    values, own = np.full(len(problem.table), np.nan), codes >= 0
    values[codes[own]] = _numbers(source, column)[own]
    if not own.any():
        raise InvalidFile(f"None of the cells of {source.name} is in the table.", hint="are the codes the same?")
    return values


def _with_intervals(path: Path) -> Source | None:
    """The file, if it announces intervals."""
    if ".jj" in [ending.lower() for ending in path.suffixes[-2:]]:
        return None
    source = read_frame(path)
    return source if {FROM, TO} <= set(source.frame.columns) else None


def _value_column(problem: Problem, source: Source) -> str:
    named = [name for name in (problem.table.response, "value") if name in source.frame.columns]
    if not named:
        source.require("value")
    return named[0]


def _numbers(source: Source, column: str) -> Floats:
    """A column of numbers, NaN where it is empty."""
    empty = source.text(column).fill_null("").to_numpy() == ""
    return np.where(empty, np.nan, source.numbers(column, missing=0.0))


def _bounds(source: Source, column: str) -> Floats:
    """A column of bounds: `inf` and `-inf` stand where there is none on that side, NaN where it is empty."""
    text = source.text(column).fill_null("")
    endless = text.is_in(list(ENDLESS))
    bounded = source.frame.with_columns(text.set(endless, "").alias(column))
    signed = np.where(text.str.starts_with("-").to_numpy(), -np.inf, np.inf)
    return np.where(endless.to_numpy(), signed, _numbers(replace(source, frame=bounded), column))


def _released(
    problem: Problem, source: Source, cells: np.ndarray[tuple[int, ...], np.dtype[np.intp]], name: str
) -> Release:
    table, n = problem.table, len(problem.table)
    values, lower, upper = (np.full(n, np.nan) for _ in range(3))
    values[cells] = _numbers(source, _value_column(problem, source))
    lower[cells], upper[cells] = _bounds(source, FROM), _bounds(source, TO)
    told = ~np.isnan(values)
    exact = told & np.isnan(lower) & np.isnan(upper)
    wrong = np.flatnonzero(exact & (np.abs(values - table.value) > 0.5 * 10.0**-table.decimals))
    if wrong.size:
        raise InvalidRelease(
            f"Cell {table.describe(int(wrong[0]))} is published in {name} with a value that is not its own, and "
            f"without an interval.",
            hint="write the release with its intervals: intervals = true in [output].",
        )
    lower, upper = np.where(exact, values, lower), np.where(exact, values, upper)
    lower, upper = np.where(np.isnan(lower), problem.lower, lower), np.where(np.isnan(upper), problem.upper, upper)
    status = np.full(n, Status.PUBLISHED, np.uint8)
    status[told & ~exact] = Status.CHANGED
    status[~told] = Status.COMPLEMENTARY
    status[~told & problem.sensitivity.mask] = Status.SENSITIVE
    return Release(table, values, lower, upper, status, name)
