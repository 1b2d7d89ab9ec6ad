"""Tables as they arrive: published values, and marks such as `c` or `..` where a value is withheld."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidTable
from tablesafe.core.problem import Problem
from tablesafe.files.read import Source
from tablesafe.io.matching import key_columns, match_cells

WITHHELD = ("", "c", "(c)", "[c]", "x", "..", "...", "…", ":", ":c", ". .", "*", "**", "/", "•", "suppressed", "conf")
"""What offices print, in lower case, where they withhold a value. A dash is not among them: it is a zero to most."""
ROUNDING = 1e-9


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
            f"withheld cell (blank, c, x, .., :).\n\nHint: replace it by one of these, or add a column 'status'."
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
            f"{read.where(int(differ[0]))}: the {column!r} of cell {cell} is not that of the table.\n\n"
            f"Hint: is it the pattern of another table? Values that were changed or rounded are no pattern."
        )
