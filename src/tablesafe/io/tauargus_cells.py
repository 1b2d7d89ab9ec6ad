"""From the lines of a τ-ARGUS table to its cells: hierarchies, sums, and where the sums do not hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from tablesafe.core.errors import InvalidFile, InvalidHierarchy, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table
from tablesafe.files.read import Source
from tablesafe.io.matching import match_cells
from tablesafe.io.tauargus_codes import add_the_line, hierarchy_of
from tablesafe.io.tauargus_meta import Metadata, Role, Variable
from tablesafe.rules.contributions import SHADOW

EMPTY = "\x00empty"
"""The column that marks empty cells while a table is read; no variable can have this name."""


def build_table(
    source: Source, metadata: Metadata, value: str, shadow: str | None, totals: str, tolerance: float
) -> Table:
    """The table of a file's lines, in which every sum holds; `shadow` is what the largest contributions are of."""
    hierarchies = {variable.name: _hierarchy(source, variable, metadata) for variable in metadata.dimensions}
    count = metadata.having(Role.COUNT)
    counted = bool(count) and count[0].name == value
    largest = [] if counted else [variable.name for variable in metadata.having(Role.LARGEST)]
    others = metadata.having(Role.RESPONSE, Role.SHADOW)
    if largest:
        _refuse_large_contributions(source, shadow or value, largest)
    columns = dict.fromkeys([*(variable.name for variable in others), *([] if shadow is None else [shadow])])

    def build(missing: Literal["error", "compute"], tolerance: float, largest: Sequence[str] = largest) -> Table:
        return Table.from_cells(
            source,
            dimensions=hierarchies,
            value=value,
            count=count[0].name if count else None,
            largest=largest,
            structural_zero=EMPTY,
            columns=[name for name in columns if name != value],
            missing_totals=missing,
            tolerance=tolerance,
        )

    try:
        table = build("error", tolerance) if totals == "check" else _computed(source.name, build, largest)
    except InvalidHierarchy as error:
        raise add_the_line(error, hierarchies.values()) from None
    except InvalidTable as error:
        raise InvalidTable(_located(str(error), source, value, lambda: build("compute", np.inf, ()))) from None
    if shadow is not None:
        table = replace(table, columns={**table.columns, SHADOW: table.columns[shadow]})
    zero = table.structural_zero
    return table if zero is None else replace(table, structural_zero=zero & (table.integers == 0))


def _computed(name: str, build: Callable[..., Table], largest: Sequence[str]) -> Table:
    """The table with its totals computed; nobody can say who the largest are of a total that was not there."""
    try:
        return build("compute", np.inf)
    except InvalidTable as error:
        if not largest or "largest contributors of missing totals" not in str(error):
            raise
    warnings.warn(
        f"{name}: totals are missing and were computed. Their largest contributions are not known, so that none are "
        f"used ({', '.join(largest)}).",
        stacklevel=5,
    )
    return build("compute", np.inf, ())


def _located(message: str, source: Source, value: str, added_up: Callable[[], Table]) -> str:
    """What is wrong with the sums, with the line of the first total that is off, and the remedy in τ-ARGUS's words."""
    remedy = 'or have totals computed from the innermost cells: <READTABLE> 1, or totals="compute".'
    what, _, _ = message.partition("\n\nHint: ")
    if "has no row for that total" in what:
        return f"{what}\n\nHint: add the row, {remedy}"
    if "its parts add up to" not in what:
        return message
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = added_up()
    given = source.numbers(value, missing=0.0)
    rows = rows_of(table, source)
    values = np.where(rows >= 0, given[rows], table.value)
    off = np.asarray(table.equations @ values)
    wrong = np.flatnonzero((np.abs(off) > 0.5 * 10.0**-table.decimals) & (rows[table.totals] >= 0))
    if not wrong.size:
        return f"{source.name} does not add up. {what}\n\nHint: correct it, {remedy}"
    first = int(wrong[np.argmin(rows[table.totals[wrong]])])
    total = int(table.totals[first])
    more = f" (and {wrong.size - 1:,} more sums)" if wrong.size > 1 else ""
    shown = f",.{table.decimals}f"
    return (
        f"{source.where(int(rows[total]))}: cell {table.describe(total)} is {values[total]:{shown}}, but its parts add "
        f"up to {values[total] + off[first]:{shown}}: the table is not additive{more}.\n\n"
        f"Hint: correct {source.name} or the hierarchy, {remedy}"
    )


def _hierarchy(source: Source, variable: Variable, metadata: Metadata) -> Hierarchy:
    found = source.text(variable.name, strip=not variable.levels).drop_nulls().unique(maintain_order=True)
    return hierarchy_of(variable, metadata, [code.rstrip() for code in found.to_list()])


def _refuse_large_contributions(source: Source, value: str, largest: Sequence[str]) -> None:
    """What the largest contribute cannot be more than the cell, unless something negative is in it."""
    amounts = np.column_stack([source.numbers(name, missing=0.0) for name in largest])
    values = source.numbers(value)
    bad = (amounts >= 0).all(axis=1) & (values >= 0) & (amounts.sum(axis=1) > values * (1 + 1e-9) + 1e-9)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidFile(
            f"The largest contributions at {source.where(row)} add up to {amounts[row].sum():,.12g}, more than the "
            f"cell's {values[row]:,.12g}.\n\nHint: check the columns {', '.join(map(repr, largest))}."
        )


def rows_of(table: Table, source: Source) -> Any:
    """The row that each cell was read from, −1 for a total that was computed."""
    cells = match_cells(table, source)
    rows = np.full(len(table), -1, dtype=np.int64)
    order = np.arange(len(cells))[::-1]
    known = cells[order] >= 0
    rows[cells[order][known]] = order[known]
    return rows
