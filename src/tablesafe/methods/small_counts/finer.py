"""Linked tables: the counts below all of them, from the records that they were made of.

Margins that share totals can only be changed together where they are sums of the same finer counts. These are the
cells of the table of all dimensions, none of which is published unless a margin shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask, cell_keys
from tablesafe.core.errors import InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table

MOST = 300_000
"""Cells of the table of all dimensions up to which the empty ones are among them."""


@dataclass(frozen=True, eq=False)
class Finer:
    """The problem of the finer table, and where each cell of the linked one is in it; −1 for empty ones."""

    given: Problem = field(repr=False)
    problem: Problem = field(repr=False)
    place: Integers = field(repr=False)

    @classmethod
    def of(cls, given: Problem, *, zeros: bool) -> Self:
        """Tabulate all dimensions together; refuses tables that were not made from records here.

        With `zeros` empty cells are among them, as a reader does not know which they are; in tables of many
        dimensions there is no room for them.
        """
        origin = given.table.origin
        if origin is None or origin.options.get("margins") is None:
            raise InvalidProblem(
                "Small-count rounding changes inner cells and adds them up, but the inner cells of this table do not "
                "determine all of its totals: it is linked from several tables.\n\n"
                "Hint: make the linked table by tabulate with margins=, or tabulate all its dimensions as one table "
                "and withhold by design what is not published."
            )
        every = float(np.prod([float(len(hierarchy)) for hierarchy in given.table.dimensions.values()]))
        finer = origin.table(margins=None, zeros=zeros and every <= MOST)
        place = _place(given.table, finer)

        def carried(mask: Mask, elsewhere: bool) -> Mask:
            out = np.full(len(finer), elsewhere)
            out[place[place >= 0]] = mask[place >= 0]
            return out

        problem = Problem(
            finer,
            frozen=carried(given.frozen, False),
            suppressed=carried(given.suppressed, False),
            withheld=carried(given.withheld, True),
        )
        return cls(given, problem, place)

    def back(self, release: Release, limit: int) -> Release:
        """The release of the linked table; an empty cell shows 0 like others that became 0."""
        there, given = self.place >= 0, self.given
        hidden = given.suppressed | given.withheld
        status = np.where(there, release.status[self.place], Status.PUBLISHED).astype(np.uint8)
        status[hidden] = Status.GIVEN
        status[given.withheld] = Status.BY_DESIGN
        values = np.where(there, release.values[self.place], 0.0)
        lower, upper = self._bounds(release.lower, release.upper, limit)
        return Release(
            given.table,
            np.where(hidden, np.nan, values),
            lower,
            upper,
            status,
            release.method,
            judged=None if release.judged is None else self._bounds(*release.judged, limit),
        )

    def _bounds(self, lower: Floats, upper: Floats, limit: int) -> tuple[Floats, Floats]:
        """The bounds of the linked table's cells; an empty cell may be anything below the limit for all one sees."""
        there = self.place >= 0
        empty = np.where(self.given.frozen, 0.0, limit - 1.0)
        return np.where(there, lower[self.place], 0.0), np.where(there, upper[self.place], empty)


def _place(table: Table, finer: Table) -> Integers:
    """Where each cell of a table is in a finer one with the same dimensions; −1 where it is not."""
    columns = []
    for d, (name, hierarchy) in enumerate(table.dimensions.items()):
        other = finer.dimensions[name]
        position = {code: at for at, code in enumerate(other.codes)}
        known = np.array([position.get(code, -1) for code in hierarchy.codes], dtype=np.int32)
        columns.append(known[table.codes[:, d]])
    codes = np.column_stack(columns).astype(np.int32)
    order = [list(finer.dimensions).index(name) for name in table.dimensions]
    sizes = [len(hierarchy) for hierarchy in finer.dimensions.values()]
    both = cell_keys(np.concatenate([finer.codes, codes[:, np.argsort(order)]]), sizes)
    keys, wanted = both[: len(finer)], both[len(finer) :]
    sort = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys[sort], wanted), len(keys) - 1)
    found = sort[at]
    return np.where((keys[found] == wanted) & (codes >= 0).all(axis=1), found, -1)
