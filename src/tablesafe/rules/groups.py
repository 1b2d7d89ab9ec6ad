"""Group disclosure: a table of counts in which all units of a group fall into one category.

Nobody need be found in such a table: whoever belongs to the group has the attribute. If all 12 persons of a village are
ill, the 12 is no small count, and yet it says of each of them what it should not. So do the zeros beside it.

A group is the total of an equation, its categories are the parts: a village and its persons by status. In a hierarchy
every level counts: if nearly all units fall into one part of one part, then they do so at both levels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidTable, Setting
from tablesafe.core.options import exactly, require_choice, require_number, require_whole
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.files.read import did_you_mean

Hidden = Literal["one", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDisclosure:
    """Flag groups of which all units, or nearly all, are in one category: whoever belongs to it is known to be so.

    A group is a total with its parts along the dimensions `over` (the attributes); the rule is for counts. A group is
    open when one category holds at least `percent` of its units, or, with `codes`, when these categories do together.
    The full category must then be able to fall so far that the group is no longer open, and of the other categories
    one (the largest, and among empty ones the most frequent elsewhere), or all, must be able to rise as far: otherwise
    the zeros give away what the full cell hides. With `nobody`, a zero in a category of `codes` (in any, without them)
    must not be known to be zero either. Structural zeros are known to all and hide nothing; a group all of whose other
    categories are structural zeros discloses nothing new.

    The table needs its empty cells: a cell that is not there is known to be zero.
    """

    over: tuple[str, ...] = field(
        default=(), metadata={"help": "dimensions whose codes are attributes; all of them without it"}
    )
    codes: tuple[str, ...] = field(
        default=(), metadata={"help": "codes that nobody may be known to have; any single code without it"}
    )
    percent: float = field(
        default=100.0,
        metadata={"help": "share of a group from which it is open, in percent", "slider": (50.5, 100.0, 0.5)},
    )
    least: int = field(default=1, metadata={"help": "fewest units that make a group", "slider": (1, 50, 1)})
    most: int | None = field(default=None, metadata={"help": "larger groups are no secret", "example": 1000})
    hide: Hidden = field(
        default="one", metadata={"help": "how many of the other categories must be hidden: one or all"}
    )
    nobody: bool = field(default=False, metadata={"help": "also flag zeros: nobody of the group is in the category"})

    def __post_init__(self) -> None:
        for name in ("over", "codes"):
            given = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))
        require_number(self, "percent", above=0 if self.codes else 50, at_most=100)
        require_whole(self, "least", at_least=1)
        if self.most is not None:
            require_whole(self, "most", at_least=self.least)
        require_choice(self, "hide", get_args(Hidden))

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        found = self._search(table)
        n = len(table)
        lower, upper = np.zeros(n, np.int64), np.zeros(n, np.int64)
        np.maximum.at(lower, found.full, found.fall)
        np.maximum.at(upper, found.others, found.rise)
        mask = (lower > 0) | (upper > 0)
        return Sensitivity.of(mask, lower.astype(np.float64), upper.astype(np.float64), reason="group")

    def groups(self, table: Table) -> pl.DataFrame:
        """The open groups, one row for each: who they are, what is known of them, and of how many. Confidential."""
        found = self._search(table)
        groups, units = len(found.whole), table.integers[found.whole]
        held = np.bincount(found.member, weights=table.integers[found.inside], minlength=groups).astype(np.int64)
        names: list[list[str]] = [[] for _ in range(groups)]
        for group, cell in zip(found.member.tolist(), found.inside.tolist(), strict=True):
            names[group].append(table.describe(cell))
        word = np.where(held == 0, "nobody", np.where(held == units, "everybody", "nearly everybody"))
        return pl.DataFrame(
            {
                "group": pl.Series([table.describe(cell) for cell in found.whole.tolist()], dtype=pl.String),
                "category": pl.Series([" + ".join(inside) for inside in names], dtype=pl.String),
                "units": units,
                "in the category": held,
                "percent": 100.0 * held / np.maximum(units, 1),
                "disclosure": pl.Series(word, dtype=pl.String),
            }
        )

    def _search(self, table: Table) -> _Found:
        if not table.equations.shape[0]:
            return _Found.nothing()
        _require_counts(table)
        parts = _Parts.of(table, self._rows(table))
        size = table.integers[table.totals]
        there = (size >= self.least) & (size <= (self.most or size.max(initial=0)))
        parts = parts.where(there[parts.row])
        return self._everybody(table, parts).joined(self._nobody(table, parts)) if len(parts.row) else _Found.nothing()

    def _rows(self, table: Table) -> Mask:
        """The equations that break a group down by an attribute."""
        rows = np.ones(table.equations.shape[0], dtype=np.bool_)
        negative = np.bincount(_row_of_entry(table)[table.equations.data < 0], minlength=len(rows))
        rows &= negative == 1
        if not self.over:
            return rows
        names = list(table.dimensions)
        for name in self.over:
            if name not in names:
                hint = did_you_mean(name, names) or f"the dimensions are {', '.join(map(repr, names)) or 'none'}."
                raise InvalidTable(f"GroupDisclosure.over names {name!r}, which is no dimension.", hint=hint)
        along = np.zeros(len(rows), dtype=np.bool_)
        for name in self.over:
            code = table.codes[:, names.index(name)]
            differ = code[table.equations.indices] != code[table.totals[_row_of_entry(table)]]
            along |= np.bincount(_row_of_entry(table)[differ], minlength=len(rows)) > 0
        return rows & along

    def _everybody(self, table: Table, parts: _Parts) -> _Found:
        """Groups of which enough units are in the categories that count."""
        value, void = table.integers, _structural(table)
        chosen = self._chosen(table, parts)
        held = np.bincount(parts.row[chosen], weights=value[parts.cell[chosen]], minlength=parts.rows)
        total = value[table.totals]
        share = (exactly(self.percent) / 100).limit_denominator(1_000_000)
        # the most that keeps a group closed: the largest whole number below the share
        closed = -(-(total * share.numerator) // share.denominator) - 1
        free = ~chosen & ~void[parts.cell]
        can_hide = np.bincount(parts.row[free], minlength=parts.rows) > 0
        whole = np.bincount(parts.row, minlength=parts.rows)
        listed = np.bincount(parts.row[~chosen], minlength=parts.rows)
        is_open = (held > closed) & (held > 0) & (whole > 0)
        _refuse_absent(table, is_open & (listed == 0))
        is_open &= can_hide
        need = np.where(is_open, held.astype(np.int64) - closed, 0)
        full = np.flatnonzero(chosen & is_open[parts.row] & (value[parts.cell] > 0))
        full = full[np.lexsort((-value[parts.cell[full]], parts.row[full]))]
        before = _before(parts.row[full], value[parts.cell[full]])
        fall = np.clip(need[parts.row[full]] - before, 0, value[parts.cell[full]])
        others = np.flatnonzero(free & is_open[parts.row])
        if self.hide == "one":
            others = _best(parts.row[others], others, value[parts.cell[others]], _frequency(table, parts.cell[others]))
        rows = np.flatnonzero(is_open)
        return _Found(
            parts.cell[full][fall > 0], fall[fall > 0], parts.cell[others], need[parts.row[others]],
            table.totals[rows], np.searchsorted(rows, parts.row[full]), parts.cell[full],
        )  # fmt: skip

    def _chosen(self, table: Table, parts: _Parts) -> Mask:
        """The parts that count: the largest of each group, or those with the given codes."""
        if not self.codes:
            chosen = np.zeros(len(parts.row), dtype=np.bool_)
            chosen[_best(parts.row, np.arange(len(parts.row)), table.integers[parts.cell])] = True
            return chosen
        return self._named(table, parts)

    def _named(self, table: Table, parts: _Parts) -> Mask:
        """The parts whose code is one of the given ones, or lies below one of them."""
        if table.names is not None:
            wanted = np.isin(table.names.astype(str), self.codes)
            return np.asarray(wanted[parts.cell] & ~wanted[table.totals[parts.row]])
        chosen = np.zeros(len(parts.row), dtype=np.bool_)
        known: set[str] = set()
        for d, (name, hierarchy) in enumerate(table.dimensions.items()):
            if self.over and name not in self.over:
                continue
            here = [code for code in self.codes if code in hierarchy.codes or code in hierarchy.aliases]
            known.update(here)
            leaves = abs(hierarchy.leaf_matrix)
            covered = np.zeros(leaves.shape[1], dtype=np.int64)
            for code in here:
                covered[leaves[[hierarchy.position(code)]].indices] = 1
            inside = np.asarray(leaves @ covered) == np.diff(leaves.indptr)
            at = table.codes[:, d]
            whole = at[table.totals[parts.row]]
            chosen |= inside[at[parts.cell]] & (at[parts.cell] != whole) & ~inside[whole]
        lost = [code for code in self.codes if code not in known]
        if lost:
            every = [code for h in table.dimensions.values() for code in h.codes]
            hint = (
                did_you_mean(lost[0], every) or f"check {', '.join(map(repr, self.over or tuple(table.dimensions)))}."
            )
            raise InvalidTable(f"GroupDisclosure.codes names {lost[0]!r}, which is no code.", hint=hint)
        return chosen

    def _nobody(self, table: Table, parts: _Parts) -> _Found:
        """Zeros in the categories that count: known of everybody in the group."""
        if not self.nobody:
            return _Found.nothing()
        counted = self._named(table, parts) if self.codes else np.ones(len(parts.row), dtype=np.bool_)
        zero = counted & (table.integers[parts.cell] == 0) & ~_structural(table)[parts.cell]
        at = np.flatnonzero(zero)
        none = np.zeros(0, np.int64)
        rise = np.ones(len(at), np.int64)
        return _Found(none, none, parts.cell[at], rise, table.totals[parts.row[at]], np.arange(len(at)), parts.cell[at])


@dataclass(frozen=True, eq=False, slots=True)
class _Parts:
    """The parts of some equations, one entry each."""

    row: NDArray[np.intp]
    cell: Integers
    rows: int

    @classmethod
    def of(cls, table: Table, rows: Mask) -> _Parts:
        row = _row_of_entry(table)
        keep = rows[row] & (table.equations.indices != table.totals[row])
        return cls(row[keep], table.equations.indices[keep].astype(np.int64), len(rows))

    def where(self, keep: Mask) -> _Parts:
        return _Parts(self.row[keep], self.cell[keep], self.rows)


@dataclass(frozen=True, eq=False, slots=True)
class _Found:
    """Cells that must be able to fall, cells that must be able to rise, by how much, and the groups they belong to."""

    full: Integers
    fall: Integers
    others: Integers
    rise: Integers
    whole: Integers
    """The total of each group."""
    member: NDArray[np.intp]
    inside: Integers
    """The cells of the categories that the units are in, and the number of the group of each."""

    @classmethod
    def nothing(cls) -> _Found:
        none = np.zeros(0, np.int64)
        return cls(none, none, none, none, none, none, none)

    def joined(self, other: _Found) -> _Found:
        def both(name: str) -> Integers:
            return np.concatenate([getattr(self, name), getattr(other, name)])

        member = np.concatenate([self.member, other.member + len(self.whole)])
        return _Found(both("full"), both("fall"), both("others"), both("rise"), both("whole"), member, both("inside"))


def _row_of_entry(table: Table) -> NDArray[np.intp]:
    return np.repeat(np.arange(table.equations.shape[0]), np.diff(table.equations.indptr))


def _structural(table: Table) -> Mask:
    return np.zeros(len(table), dtype=np.bool_) if table.structural_zero is None else table.structural_zero


def _require_counts(table: Table) -> None:
    bad = np.flatnonzero(table.integers < 0) if table.decimals == 0 else np.arange(1)
    if bad.size:
        what = "negative" if table.decimals == 0 else "no whole number everywhere"
        raise InvalidTable(
            f"GroupDisclosure is for counts, but {table.response!r} is {what}"
            + (f" in cell {table.describe(int(bad[0]))}" if table.decimals == 0 else "")
            + ".",
            hint="tabulate without value= to count records.",
        )


def _refuse_absent(table: Table, rows: Mask) -> None:
    """A full group without any other category in the table cannot be hidden: absent cells are known to be zero."""
    if rows.any():
        cell = int(table.totals[np.flatnonzero(rows)[0]])
        more = f" (and {int(rows.sum()) - 1:,} more groups)" if rows.sum() > 1 else ""
        raise InvalidTable(
            f"All units of {table.describe(cell)} are in one category, and the table does not list the others{more}: "
            f"everybody knows that they are empty.",
            hint=(
                "tabulate with ",
                Setting("zeros", True),
                " (in a job, zeros = true in [source]), or add the empty cells with value 0.",
            ),
        )


def _best(row: NDArray[np.intp], entry: NDArray[np.intp], *keys: Integers) -> NDArray[np.intp]:
    """The entry of each row with the largest first key, then the largest second; ties by position."""
    order = np.lexsort((*[-key for key in reversed(keys)], row))
    first = np.flatnonzero(np.diff(row[order], prepend=-1))
    return entry[order[first]]


def _before(row: NDArray[np.intp], value: Integers) -> Integers:
    """What the entries before each one in its row add up to; rows stand together."""
    if not len(row):
        return value
    total = np.cumsum(value) - value
    start = np.flatnonzero(np.diff(row, prepend=-1))
    return total - np.repeat(total[start], np.diff(np.append(start, len(row))))


def _frequency(table: Table, cells: Integers) -> Integers:
    """How many units have the codes of a cell, code by code, elsewhere in the table."""
    out = np.zeros(len(cells), dtype=np.int64)
    for d in range(table.codes.shape[1]):
        units = np.bincount(table.codes[:, d], weights=table.integers)
        out += units[table.codes[cells, d]].astype(np.int64)
    return out
