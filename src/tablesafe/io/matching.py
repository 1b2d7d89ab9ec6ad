"""Which cell of a table each row of a file speaks of."""

from __future__ import annotations

import numpy as np
import polars as pl

from tablesafe.core.equations import Integers, Mask, cell_keys
from tablesafe.core.errors import InvalidTable
from tablesafe.core.table import Table
from tablesafe.files.read import Source, did_you_mean

CELL = "cell"
"""The column with the names of the cells of a table without dimensions."""


def key_columns(table: Table) -> list[str]:
    """The columns that say which cell is meant."""
    return [CELL] if table.names is not None else list(table.dimensions)


def match_cells(table: Table, source: Source, *, needed: Mask | None = None) -> Integers:
    """The cell of each row, −1 where its codes are known but the table has no such cell.

    An empty code means the total of its dimension. An unknown code is an error that names its line; where `needed` says
    that the row does not matter, it is −1 too.
    """
    source.require(*key_columns(table))
    needed = np.ones(source.frame.height, np.bool_) if needed is None else needed
    if table.names is not None:
        return _match_names(table, source, needed)
    codes = np.empty((source.frame.height, len(table.dimensions)), dtype=np.int32)
    for d, (dimension, hierarchy) in enumerate(table.dimensions.items()):
        text = source.text(dimension, strip=False)
        if hierarchy.total is not None:
            text = text.set(text.is_null() | (text.str.strip_chars() == ""), hierarchy.total)
        codes[:, d] = hierarchy.positions(text)
        if (codes[:, d] < 0).any():  # perhaps written with an apostrophe before what a spreadsheet would run
            bare = hierarchy.positions(text.str.replace(r"^'('*[=+\-@\t\r])", "${1}"))
            codes[:, d] = np.where(codes[:, d] < 0, bare, codes[:, d])
        unknown = np.flatnonzero((codes[:, d] < 0) & needed)
        if unknown.size:
            row = int(unknown[0])
            raise hierarchy.unknown(text[row], source.where(row), dimension)
    sizes = [len(hierarchy) for hierarchy in table.dimensions.values()]
    keys = cell_keys(np.concatenate([table.codes, np.maximum(codes, 0)]), sizes)
    return np.where((codes < 0).any(axis=1), -1, _find(keys[: len(table)], keys[len(table) :]))


def refuse_absent(table: Table, source: Source, cells: Integers) -> None:
    """Fail at the first row whose cell is not in the table."""
    absent = np.flatnonzero(cells < 0)
    if absent.size:
        row = int(absent[0])
        raise InvalidTable(
            f"{source.where(row)} names {_spelled(table, source, row)}, but the table has no such cell.",
            hint="it is empty or was left out of the table; remove the row.",
        )


def refuse_repeats(table: Table, source: Source, cells: Integers) -> None:
    """Fail where two rows speak of one cell."""
    order = np.argsort(cells, kind="stable")
    same = np.flatnonzero((cells[order][1:] == cells[order][:-1]) & (cells[order][1:] >= 0))
    if same.size:
        first, second = int(order[same[0]]), int(order[same[0] + 1])
        raise InvalidTable(
            f"{source.where(first)} and {source.where(second)} both speak of cell "
            f"{table.describe(int(cells[second]))}.",
            hint="remove one of the two.",
        )


def _match_names(table: Table, source: Source, needed: Mask) -> Integers:
    names = pl.Series("name", table.names, dtype=pl.String)
    known = pl.DataFrame({"name": names, "cell": np.arange(len(table))}).unique("name", keep="first")
    wanted = source.text(CELL).alias("name").to_frame()
    found = wanted.join(known, on="name", how="left", maintain_order="left")["cell"]
    unknown = found.is_null().to_numpy() & needed
    if unknown.any():
        row = int(np.argmax(unknown))
        name = wanted["name"][row]
        hint = did_you_mean(str(name), names.head(1000).to_list()) or f"its cells are named {names[0]!r}, …"
        raise InvalidTable(f"{source.where(row)} names cell {name!r}, which the table does not have.", hint=hint)
    return found.fill_null(-1).to_numpy().astype(np.int64)


def _find(keys: Integers, wanted: Integers) -> Integers:
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    found = order[at]
    return np.where(keys[found] == wanted, found, -1).astype(np.int64)


def _spelled(table: Table, source: Source, row: int) -> str:
    return "(" + ", ".join(f"{column}={source.frame[column][row]}" for column in key_columns(table)) + ")"
