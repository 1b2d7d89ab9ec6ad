"""What a rule may be told about cells and contributors: by a column of the table, an array, or names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidTable
from tablesafe.core.table import Contributors, Table
from tablesafe.files.read import did_you_mean

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
