"""Read back what was released: a pattern of withheld values, or values with the intervals announced for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidFile, InvalidRelease
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.statuses import Scheme
from tablesafe.files.read import Source
from tablesafe.io.frames import read_frame
from tablesafe.io.matching import match_cells, refuse_absent, refuse_repeats
from tablesafe.io.patterns import read_pattern

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
        raise InvalidFile(f"None of the cells of {source.name} is in the table.\n\nHint: are the codes the same?")
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
            f"without an interval.\n\nHint: write the release with its intervals: intervals = true in [output]."
        )
    lower, upper = np.where(exact, values, lower), np.where(exact, values, upper)
    lower, upper = np.where(np.isnan(lower), problem.lower, lower), np.where(np.isnan(upper), problem.upper, upper)
    status = np.full(n, Status.PUBLISHED, np.uint8)
    status[told & ~exact] = Status.CHANGED
    status[~told] = Status.COMPLEMENTARY
    status[~told & problem.sensitivity.mask] = Status.SENSITIVE
    return Release(table, values, lower, upper, status, name)
