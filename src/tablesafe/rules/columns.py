"""What a rule may be told about cells and contributors: by a column of the table, an array, or names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidTable, Setting
from tablesafe.core.table import Contributors, Table
from tablesafe.files.read import did_you_mean

RECORDS = "records"
"""The column in which a table of records has how many of them fall into each cell."""

Column = str | NDArray[Any]
"""A column of the table by its name, or an array with one entry per cell."""


def column(table: Table, given: Column) -> NDArray[Any]:
    """A column of the table by name, or an array with one entry per cell."""
    if isinstance(given, str):
        if given not in table.columns:
            have = ", ".join(map(repr, table.columns)) or "none"
            raise InvalidTable(
                f"The table has no further column {given!r}; it has: {have}.",
                hint=f"{did_you_mean(given, list(table.columns)) or f'read it with columns=[{given!r}].'}",
            )
        return np.asarray(table.columns[given])
    array = table.whole_mask(np.asarray(given))
    if array.shape != (len(table),):
        raise InvalidTable(f"A rule was given {array.size:,} entries, but the table has {len(table):,} cells.")
    return array


def marked(table: Table, cells: Column) -> Mask:
    """The cells meant."""
    values = column(table, cells)
    if values.dtype == np.bool_:
        return values
    return np.asarray(_numbers(values, cells) != 0)


def amounts(table: Table, given: Column) -> Floats:
    """One number per cell."""
    return _numbers(column(table, given), given)


def asked_for(table: Table, given: Column, code: float) -> Mask:
    """Cells whose column is a code, or minus a sum of 2^(c − 1) over several codes c of which it is one."""
    values = amounts(table, given)
    several = values < 0
    if several.any() and code >= 1 and float(code).is_integer():
        bits = np.where(several, -values, 0.0).astype(np.int64)
        several &= ((bits & (bits - 1)) != 0) & ((bits >> min(int(code) - 1, 62)) & 1 == 1)  # −1 is a mark like any
        return np.asarray(several | (values == code))
    return np.asarray(values == code)


def waived(table: Table, cells: Column) -> Mask:
    """The cells that are waived; a total that was added up from the cells given is where all its parts are.

    A column of records is added up as well: a cell is waived where all of its records are marked by 1.
    """
    mask, records = marked(table, cells), table.columns.get(RECORDS)
    if records is None and table.origin is not None:
        records = table.count
    if isinstance(cells, str) and records is not None and cells != RECORDS:
        marks = amounts(table, cells)
        if "unweighted" in table.columns or bool(((marks < 0) | (marks > records)).any()):
            raise InvalidTable(
                f"The column {cells!r} of the records was added up, so nobody can say which cells it waives: that "
                f"takes records marked by 1 or 0, without weights.",
                about=("column", cells),
                hint="name the respondents who agreed, or the cells by their codes.",
            )
        mask = marks == records
    return _by_parts(table, mask, every=True)


def requested(table: Table, given: Column, code: float) -> Mask:
    """The cells for which protection was asked; for a total that was added up, where it was for one of its parts."""
    if column(table, given).dtype == np.bool_:
        return marked(table, given)
    heard = given if table.origin is None else table.origin.options.get("request")
    if isinstance(given, str) and heard != given:
        raise InvalidTable(
            f"The column {given!r} of the records was added up, so it no longer says who asked for protection.",
            about=("column", given),
            hint=("tabulate the records with ", Setting("request", given), "."),
        )
    return _by_parts(table, asked_for(table, given, code), every=False)


def _by_parts(table: Table, mask: Mask, *, every: bool) -> Mask:
    """What holds of cells; of a total whose column is a mere sum of marks, where it holds of every part, or of one."""
    computed = table.computed
    if computed is None or not computed.any():
        return mask
    entries = table.equations.tocoo()
    total, part = table.totals[entries.row], entries.col
    below = computed[total] & (part != total)
    total, part, mask = total[below], part[below], np.where(computed, every, mask)
    while True:
        new = mask.copy()
        new[total[mask[part] != every]] = not every
        if (new == mask).all():
            return mask
        mask = new


def _numbers(values: NDArray[Any], given: Column) -> Floats:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        what = repr(given) if isinstance(given, str) else "given to a rule"
        raise InvalidTable(f"The column {what} should hold numbers (1 for yes, 0 for no).") from None
    return np.nan_to_num(numbers, nan=0.0)


def listed(contributors: Contributors | None, respondents: Collection[str | int]) -> Mask:
    """Which of the kept contributors are among the respondents named (per cell and place)."""
    if contributors is None or not bool((contributors.identity >= 0).any()):
        raise InvalidTable(
            "Respondents are named, but the table does not say who its contributors are.",
            hint="tabulate from microdata with respondent=, or name the columns with identity=[...].",
        )
    identity = contributors.identity
    if contributors.names is None:
        return np.isin(identity, [int(r) for r in respondents if not isinstance(r, str)]) & (identity >= 0)
    known = np.isin(np.asarray(contributors.names).astype(str), [str(r) for r in respondents])
    return np.where(identity >= 0, known[identity], False)
