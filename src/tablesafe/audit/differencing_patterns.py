"""What a table of records shows of its cells: everything, all but a list of cells, or what a release says of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.audit.disclosures import Published
from tablesafe.core.equations import Floats, Mask, cell_keys
from tablesafe.core.errors import InvalidOption
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table
from tablesafe.files.read import read_source


@dataclass(frozen=True, eq=False)
class Visible:
    """Per cell of a table what everybody knows about it, in the table's own unit."""

    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    changed: Mask = field(repr=False)
    """Which cells show another value than the true one."""

    @property
    def exact(self) -> Mask:
        """Which cells are published as they are."""
        return np.asarray(self.lower == self.upper)

    @classmethod
    def of(cls, table: Table, each: Published) -> Visible:
        """What a published table shows of its cells."""
        if isinstance(each.withheld, Release):
            return cls._of_release(table, each.withheld, each.name)
        if isinstance(each.withheld, Table):
            raise InvalidOption(
                f"withheld= of {each.name!r} is a table, which does not say what it withholds.\n\n"
                f"Hint: give the release, or a frame with one row for each withheld cell."
            )
        hidden = np.zeros(len(table), dtype=np.bool_) if each.withheld is None else _listed(table, each)
        nothing = np.zeros(len(table), dtype=np.bool_)
        return cls(np.where(hidden, -np.inf, table.value), np.where(hidden, np.inf, table.value), nothing)

    @classmethod
    def _of_release(cls, table: Table, release: Release, name: str) -> Visible:
        """The pattern and the intervals of a release of the same cells of the same records."""
        at = _cells_of(table, release.table, name)
        lower, upper = table.value.copy(), table.value.copy()  # a cell that the release does not have is shown
        judged, there = release.as_judged, np.flatnonzero(at >= 0)
        wrong = there[~np.isclose(release.table.value[at[there]], table.value[there], rtol=1e-9, atol=0.0)]
        if wrong.size:
            raise InvalidOption(
                f"The release in withheld= of {name!r} was not made from these records: cell "
                f"{table.describe(int(wrong[0]))} has another value there.\n\n"
                f"Hint: give the records that it was made from, and the same where= and value=."
            )
        lower[there], upper[there] = judged.lower[at[there]], judged.upper[at[there]]
        changed = np.zeros(len(table), dtype=np.bool_)
        changed[there] = release.status[at[there]] == Status.CHANGED
        return cls(lower, upper, changed)


def _cells_of(table: Table, other: Table, name: str) -> NDArray[np.intp]:
    """For each cell of a table the same cell of another one, −1 where there is none."""
    if set(table.dimensions) != set(other.dimensions):
        mine, theirs = (", ".join(map(repr, each.dimensions)) or "named cells" for each in (table, other))
        raise InvalidOption(
            f"The release in withheld= of {name!r} is spanned by {theirs}, but {name!r} by {mine}.\n\n"
            f"Hint: give the release of this table."
        )
    sizes = [len(hierarchy) for hierarchy in table.dimensions.values()]
    columns = []
    for dimension, hierarchy in table.dimensions.items():
        to = hierarchy.positions(pl.Series(other.dimensions[dimension].codes, dtype=pl.String))
        columns.append(to[other.codes[:, list(other.dimensions).index(dimension)]])
    theirs_at = np.column_stack(columns)
    known = np.flatnonzero((theirs_at >= 0).all(axis=1))
    keys = cell_keys(np.concatenate([table.codes, theirs_at[known]]), sizes)
    mine_keys, their_keys = keys[: len(table)], keys[len(table) :]
    order = np.argsort(their_keys)
    if not order.size:
        return np.full(len(table), -1, dtype=np.intp)
    place = np.minimum(np.searchsorted(their_keys[order], mine_keys), len(order) - 1)
    same = their_keys[order][place] == mine_keys
    return np.where(same, known[order[place]], -1)


def _listed(table: Table, each: Published) -> Mask:
    """The cells that a frame lists."""
    source = read_source(each.withheld, name=f"the withheld cells of {each.name!r}")
    strange = [column for column in source.frame.columns if column not in table.dimensions]
    if strange:
        raise InvalidOption(
            f"The withheld cells of {each.name!r} have the column {strange[0]!r}, which is no dimension: is this a "
            f"table with all its cells?\n\nHint: a list has one row for each withheld cell, and the columns "
            f"{', '.join(map(repr, table.dimensions))}; or give the release itself."
        )
    wanted = np.column_stack([h.locate(source, name, dimension=name) for name, h in table.dimensions.items()])
    keys = cell_keys(np.concatenate([table.codes, wanted]), [len(h) for h in table.dimensions.values()])
    mask = np.asarray(np.isin(keys[: len(table)], keys[len(table) :]))
    if mask.all():
        raise InvalidOption(
            f"Every cell of {each.name!r} is listed as withheld, so it shows nothing.\n\n"
            f"Hint: list only the cells that are not published, or leave {each.name!r} out."
        )
    return mask
