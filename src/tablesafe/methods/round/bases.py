"""Different bases in one table: coarser ones for the upper levels, as offices state them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Integers
from tablesafe.core.errors import InvalidOption
from tablesafe.core.table import Table
from tablesafe.files.read import did_you_mean

Bases = Mapping[str, tuple[int, ...] | Mapping[str, int]] | NDArray[np.int64]
"""Per dimension the base of each level from the top (the last one holds below, too) or of some codes; or per cell."""


def require_bases(bases: Bases, base: int) -> None:
    """Refuse bases that no table could have: not whole, below 2, or not dividing each other."""
    if isinstance(bases, np.ndarray):
        if not np.issubdtype(bases.dtype, np.integer):
            raise InvalidOption(
                f"Round.bases must be whole numbers, one per cell; got {bases.dtype}.",
                about=("option", "Round", "bases"),
            )
        _require_chain([base, *np.unique(bases).tolist()])
        return
    if not isinstance(bases, Mapping):
        raise InvalidOption(
            f"Round.bases must name dimensions, as in {{'region': (100, 10)}}, or hold a base per cell; got {bases!r}.",
            about=("option", "Round", "bases"),
        )
    for dimension, given in bases.items():
        listed = list(given.values()) if isinstance(given, Mapping) else list(given)
        _require_chain([base, *listed])
        if not isinstance(given, Mapping) and (not listed or listed != sorted(listed, reverse=True)):
            raise InvalidOption(
                f"Round.bases of {dimension!r} must go from the top level down, never growing; got {given!r}.",
                hint="(100, 10) rounds the total to 100 and the level below it, and all further ones, to 10.",
                about=("option", "Round", "bases"),
            )
    _require_chain([base, *(b for g in bases.values() for b in (g.values() if isinstance(g, Mapping) else g))])


def bases_of(table: Table, base: int, bases: Bases | None) -> Integers:
    """The base of every cell: the largest that its codes ask for, and `base` where none does.

    A total whose base is no multiple of its parts' could not be their sum.
    """
    if bases is None:
        return np.full(len(table), base, dtype=np.int64)
    if isinstance(bases, np.ndarray):
        if bases.shape != (len(table),):
            raise InvalidOption(
                f"Round.bases has {bases.size:,} entries, but the table has {len(table):,} cells.",
                about=("option", "Round", "bases"),
            )
        found: Integers = bases.astype(np.int64)
    else:
        found = np.full(len(table), base, dtype=np.int64)
        for dimension, given in bases.items():
            np.maximum(found, _of_dimension(table, base, dimension, given), out=found)
    _require_coarser_totals(table, found)
    return found


def _of_dimension(table: Table, base: int, dimension: str, given: tuple[int, ...] | Mapping[str, int]) -> Integers:
    names = list(table.dimensions)
    if dimension not in table.dimensions:
        hint = did_you_mean(dimension, names) or f"its dimensions are {', '.join(map(repr, names)) or 'none'}."
        raise InvalidOption(
            f"Round.bases names {dimension!r}, which is no dimension of the table.",
            hint=hint,
            about=("option", "Round", "bases"),
        )
    hierarchy = table.dimensions[dimension]
    if isinstance(given, Mapping):
        by_code = np.full(len(hierarchy), base, dtype=np.int64)
        for code, own in given.items():
            by_code[hierarchy.position(code)] = own
    else:
        by_code = np.array(given, dtype=np.int64)[np.minimum(hierarchy.depth, len(given) - 1)]
    return by_code[table.codes[:, names.index(dimension)]]


def _require_chain(bases: list[int]) -> None:
    for base in bases:
        if isinstance(base, bool) or not isinstance(base, int | np.integer) or base <= 1:
            raise InvalidOption(
                f"Round.bases must be whole numbers of 2 or more, got {base!r}.", about=("option", "Round", "bases")
            )
    distinct = sorted({int(base) for base in bases})
    for fine, coarse in pairwise(distinct):
        if coarse % fine:
            raise InvalidOption(
                f"Round.bases must divide each other, but {coarse} is no multiple of {fine}: "
                f"parts rounded to {fine} could not add up to totals rounded to {coarse}.",
                hint="5, 10 and 100 go together, 3 and 10 do not.",
                about=("option", "Round", "bases"),
            )


def _require_coarser_totals(table: Table, bases: Integers) -> None:
    entries = table.equations.tocoo()
    total = table.totals[entries.row]
    wrong = np.flatnonzero(bases[total] % bases[entries.col])
    if wrong.size:
        part, above = int(entries.col[wrong[0]]), int(total[wrong[0]])
        raise InvalidOption(
            f"Round.bases rounds cell {table.describe(part)} to {bases[part]}, but its total {table.describe(above)} "
            f"to {bases[above]}, more finely than its parts.",
            hint=f"give the total a base of {bases[part]} or more.",
            about=("option", "Round", "bases"),
        )
