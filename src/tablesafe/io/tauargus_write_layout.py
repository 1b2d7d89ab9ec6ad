"""Which cell stands on which line of a file that τ-ARGUS would write, and with which codes.

τ-ARGUS holds a table as a full product of its code lists and walks through it with the last dimension fastest: every
combination has a line, and one without a contributor is empty. A code with a single part is there under both names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, Mask, cell_keys, roll_up
from tablesafe.core.errors import InvalidOption, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table

EMPTY = "-"
"""How an empty cell is shown."""
MOST_LINES = 10_000_000
"""Lines beyond which the full product of the code lists is refused: then only its cells can be written."""


@dataclass(frozen=True, eq=False)
class CodeList:
    """The names of one dimension in the order of the file, the code each stands for, and its level (0 for a total)."""

    names: pl.Series = field(repr=False)
    position: NDArray[np.int32] = field(repr=False)
    level: NDArray[np.int32] = field(repr=False)

    @classmethod
    def of(cls, tree: Hierarchy, width: int = 0) -> CodeList:
        """Codes in the hierarchy's order, each with its second names after it: they are one level deeper each.

        With a width, codes other than the total get spaces before them until they are that wide.
        """
        second: dict[str, list[str]] = {}
        for alias, code in tree.aliases.items():
            second.setdefault(code, []).append(alias)
        names, position, deeper = [], [], []
        for at, code in enumerate(tree.codes):
            for step, name in enumerate((code, *second.get(code, ()))):
                names.append(name)
                position.append(at)
                deeper.append(step)
        inherited = _extra_levels(tree, {code: len(others) for code, others in second.items()})
        level: NDArray[np.int32] = tree.depth[position] + inherited[position] + np.array(deeper, dtype=np.int32)
        shown = pl.Series(names, dtype=pl.String)
        inner = pl.Series(level > 0, dtype=pl.Boolean)
        return cls(shown.zip_with(~inner, shown.str.pad_start(width)), np.array(position, dtype=np.int32), level)


def _extra_levels(tree: Hierarchy, second: dict[str, int]) -> NDArray[np.int32]:
    """Levels that second names of the codes above add to each code."""
    extra = np.zeros(len(tree), dtype=np.int32)
    if not second:
        return extra
    at = {code: i for i, code in enumerate(tree.codes)}
    for equation in sorted(tree.as_equations(), key=lambda equation: int(tree.depth[at[equation.total]])):
        above = extra[at[equation.total]] + second.get(equation.total, 0)
        for part in equation.parts:
            extra[at[part]] = max(int(extra[at[part]]), int(above))
    return extra


@dataclass(frozen=True, eq=False)
class Layout:
    """The lines of a file: the cell of each (−1 where the table has none), and its code in each dimension."""

    table: Table = field(repr=False)
    lists: tuple[CodeList, ...] = field(repr=False)
    cell: Integers = field(repr=False)
    code: tuple[Integers, ...] = field(repr=False)
    """Per dimension the place of each line's code in its list."""
    absent: str = EMPTY
    """What a line without a cell shows."""

    @classmethod
    def of(
        cls,
        table: Table,
        *,
        lines: Literal["cells", "combinations", "grid"],
        widths: Mapping[str, int] | None = None,
    ) -> Layout:
        """The lines of the table's cells, or those of all combinations of codes, where what lacks a cell is empty.

        Tables of which a combination without a cell is not empty, but simply not part of them (linked ones, cubes of
        which only margins are shown), have lines for their cells only, and blanks in a grid.
        """
        if not table.dimensions:
            raise InvalidTable(
                "A table without dimensions cannot be written in this format.\n\nHint: write it as JJ (type 6)."
            )
        lists = tuple(CodeList.of(tree, (widths or {}).get(name, 0)) for name, tree in table.dimensions.items())
        cell, code = _lines(table, lists)
        whole = lines != "cells" and is_whole(table)
        if lines == "grid" or (lines == "combinations" and whole):
            cell, code = _filled(cell, code, [len(entries.names) for entries in lists])
        return cls(table, lists, cell, code, EMPTY if whole else "")

    @cached_property
    def there(self) -> Mask:
        """Lines of which the table has the cell."""
        return self.cell >= 0

    def codes(self, *, quotes: bool) -> list[pl.Series]:
        """The codes of each line, one column per dimension."""
        shown = []
        for name, entries, place in zip(self.table.dimensions, self.lists, self.code, strict=True):
            names = quoted(entries.names, name, quotes=quotes)
            shown.append(names.gather(place.astype(np.uint32)))
        return shown

    def levels(self) -> list[pl.Series]:
        """The level of each line's code, one column per dimension; 0 for totals and where there is only one level."""
        return [
            pl.Series(_told_levels(tree, entries)).cast(pl.String).gather(place.astype(np.uint32))
            for tree, entries, place in zip(self.table.dimensions.values(), self.lists, self.code, strict=True)
        ]

    def keep(self, lines: Mask) -> Layout:
        """Some of the lines."""
        return replace(self, cell=self.cell[lines], code=tuple(place[lines] for place in self.code))

    def spread(self, text: pl.Series, *, absent: str | None = None) -> pl.Series:
        """A column of the cells as a column of the lines."""
        if not len(text):
            return pl.Series([self.absent if absent is None else absent] * len(self.cell), dtype=pl.String)
        lines = text.gather(np.maximum(self.cell, 0).astype(np.uint32))
        return lines.set(pl.Series(~self.there), self.absent if absent is None else absent)


def quoted(names: pl.Series, dimension: str, *, quotes: bool) -> pl.Series:
    """Codes in double quotes, or bare where nothing in them can be mistaken for a separator."""
    bad = names.str.contains("[\n\r]" if quotes else '[\n\r,;"]')
    if bad.any():
        raise InvalidTable(
            f"Code {names.filter(bad)[0]!r} of {dimension!r} cannot be written in this format.\n\n"
            f"Hint: remove the line break{'' if quotes else ', comma, semicolon or quote'} from it"
            f"{'' if quotes else ', or write codes in quotes (QU+)'}."
        )
    return '"' + names.str.replace_all('"', '""', literal=True) + '"' if quotes else names


def is_whole(table: Table) -> bool:
    """Whether every cell is the sum of the innermost cells below it, so that combinations without a cell are empty."""
    trees = list(table.dimensions.values())
    codes, sums = roll_up(table.codes, trees, {"value": table.integers})
    sizes = [len(tree) for tree in trees]
    keys = cell_keys(np.concatenate([table.codes, codes]), sizes)
    own, found = keys[: len(table)], keys[len(table) :]
    order = np.argsort(found)
    at = np.minimum(np.searchsorted(found[order], own), max(len(found) - 1, 0))
    known = found[order][at] == own if len(found) else np.zeros(len(own), np.bool_)
    total = np.where(known, sums["value"][order][at], 0) if len(found) else np.zeros(len(own), np.int64)
    return bool((total == table.integers).all()) and bool(np.isin(found[sums["value"] != 0], own).all())


def _lines(table: Table, lists: Sequence[CodeList]) -> tuple[Integers, tuple[Integers, ...]]:
    """One line per cell and combination of its names, in the order of the file."""
    cell = np.arange(len(table), dtype=np.int64)
    code: list[Integers] = []
    for d, entries in enumerate(lists):
        size = len(list(table.dimensions.values())[d])
        times = np.bincount(entries.position, minlength=size)
        first = np.cumsum(times) - times
        at = table.codes[cell, d]
        repeat = times[at]
        step = np.arange(int(repeat.sum())) - np.repeat(np.cumsum(repeat) - repeat, repeat)
        code = [np.repeat(place, repeat) for place in code]
        code.append(np.repeat(first[at], repeat) + step)
        cell = np.repeat(cell, repeat)
    order = np.lexsort(code[::-1])
    return cell[order], tuple(place[order] for place in code)


def _filled(cell: Integers, code: tuple[Integers, ...], sizes: Sequence[int]) -> tuple[Integers, tuple[Integers, ...]]:
    """Lines for all combinations."""
    lines = int(np.prod([float(size) for size in sizes]))
    if lines > MOST_LINES:
        raise InvalidOption(
            f"The full table has {lines:,} combinations of codes, more than can be written.\n\n"
            f"Hint: SE+ leaves out the empty ones."
        )
    full = np.full(lines, -1, dtype=np.int64)
    full[np.ravel_multi_index(code, sizes)] = cell
    return full, tuple(np.asarray(place) for place in np.unravel_index(np.arange(lines), sizes))


def _told_levels(tree: Hierarchy, entries: CodeList) -> NDArray[np.int32]:
    return entries.level if len(tree.totals) > 1 or tree.aliases else np.zeros_like(entries.level)
