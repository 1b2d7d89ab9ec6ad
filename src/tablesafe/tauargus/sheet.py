"""Which cell stands on which line of a file that τ-ARGUS would write, and with which codes.

τ-ARGUS holds a table as a full product of its code lists and walks through it with the last dimension fastest: every
combination has a line, and one without a contributor is empty. A code with a single part is there under both names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask, cell_keys, roll_up
from tablesafe.core.errors import InvalidOption, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table
from tablesafe.files.read import did_you_mean
from tablesafe.io.text import as_text, with_decimals
from tablesafe.loss import SAME
from tablesafe.tabulate.plan import RECORDS
from tablesafe.tauargus.statuses import Argus, argus_statuses

# -- lines -------------------------------------------------------------------------------------------------------------


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
                "A table without dimensions cannot be written in this format.", hint="write it as JJ (type 6)."
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
            f"Code {names.filter(bad)[0]!r} of {dimension!r} cannot be written in this format.",
            hint=f"remove the line break{'' if quotes else ', comma, semicolon or quote'} from it"
            f"{'' if quotes else ', or write codes in quotes (QU+)'}.",
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
            f"The full table has {lines:,} combinations of codes, more than can be written.",
            hint="SE+ leaves out the empty ones.",
        )
    full = np.full(lines, -1, dtype=np.int64)
    full[np.ravel_multi_index(code, sizes)] = cell
    return full, tuple(np.asarray(place) for place in np.unravel_index(np.arange(lines), sizes))


def _told_levels(tree: Hierarchy, entries: CodeList) -> NDArray[np.int32]:
    return entries.level if len(tree.totals) > 1 or tree.aliases else np.zeros_like(entries.level)


# -- options -----------------------------------------------------------------------------------------------------------


class Kind(IntEnum):
    """The types of file."""

    CSV = 1
    """Rows and columns, one block per combination of the other dimensions."""
    PIVOT = 2
    """One line per cell, with a line of names, for a pivot table."""
    CODE_VALUE = 3
    """One line per cell."""
    SBS = 4
    """For a transmission to Eurostat: every value, with a flag. Confidential."""
    INTERMEDIATE = 5
    """`.tab` and `.rda`: all that is known of the cells. Confidential."""
    JJ = 6
    """Cells, bounds, levels and equations. Confidential."""
    CELL_KEY = 7
    """Perturbed values, and what they were before if asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Each option by its two letters, as `+` or `-`; None where nothing was said."""

    AS: bool = False
    """Add the status. As in τ-ARGUS the file then holds every true value too."""
    SE: bool = False
    """Leave out empty cells."""
    FL: bool = False
    """Names of the variables on the first line; a pivot table always has them."""
    QU: bool = True
    """Codes in double quotes."""
    HL: bool = False
    """SBS: the level of each code."""
    SO: bool = False
    """Intermediate: neither shadow values nor largest contributions."""
    AR: bool = False
    """Intermediate: the interval that an attacker can derive for each withheld cell."""
    HI: bool = False
    """Intermediate: counts of holdings in the place of respondents."""
    TR: bool = False
    """JJ: without trivial levels. Here a level with a single part never is a cell of its own."""
    AO: bool = False
    """Cell key: the original value."""
    AD: bool = False
    """Cell key: what the perturbation added."""
    AC: bool = False
    """Cell key: the key of the cell."""


USED = {
    Kind.CSV: {"QU"},
    Kind.PIVOT: {"AS", "SE", "FL", "QU"},
    Kind.CODE_VALUE: {"AS", "SE", "FL", "QU"},
    Kind.SBS: {"HL", "QU"},
    Kind.INTERMEDIATE: {"SO", "AR", "HI", "SE", "QU"},
    Kind.JJ: {"TR"},
    Kind.CELL_KEY: {"AO", "AD", "AC", "SE", "QU"},
}
"""The options that each type of file looks at."""
NAMES = tuple(option.name for option in fields(WriteOptions))


def parse_options(text: str) -> WriteOptions:
    """Read options such as `AS+FL+`, in upper or lower case, with or without spaces."""
    given: dict[str, Any] = {}
    rest = re.sub(r"\s", "", text).upper()
    while rest:
        letters, sign, rest = rest[:2], rest[2:3], rest[3:]
        if letters not in NAMES:
            hint = did_you_mean(letters, list(NAMES)) or f"options are {', '.join(NAMES)}."
            raise InvalidOption(f"WRITETABLE has no option {letters!r} (in {text.strip()!r}).", hint=hint)
        if sign not in {"+", "-"}:
            raise InvalidOption(f"Option {letters} of WRITETABLE is followed by {sign!r}.", hint=f"{letters}+ or -.")
        given[letters] = sign == "+"
    return WriteOptions(**given)


def parse_kind(kind: int | str) -> Kind:
    """Read the type of a file."""
    try:
        return Kind(int(kind))
    except ValueError:
        listed = ", ".join(f"{known.value} {known.name.lower().replace('_', ' ')}" for known in Kind)
        raise InvalidOption(f"WRITETABLE has no type {kind}.", hint=f"types are {listed}.") from None


def unused(kind: Kind, text: str) -> tuple[str, ...]:
    """Options that were asked for and that the type of file has no use for."""
    asked = re.findall(r"([A-Z]{2})\+", re.sub(r"\s", "", text).upper())
    return tuple(letters for letters in dict.fromkeys(asked) if letters not in USED[kind])


# -- what is shown -----------------------------------------------------------------------------------------------------


WITHHELD = "x"
Protected = Literal["suppressed", "rounded", "adjusted", "perturbed"]


def protected_how(release: Release) -> Protected:
    """In which of τ-ARGUS's ways a release protects the table."""
    known: dict[str, Protected] = {"round": "rounded", "adjust": "adjusted", "cell_key": "perturbed"}
    if release.method in known:
        return known[release.method]
    return "perturbed" if bool((release.status == Status.CHANGED).any()) else "suppressed"


@dataclass(frozen=True, eq=False)
class Sheet:
    """A problem and its release as a file is to show them."""

    problem: Problem = field(repr=False)
    release: Release = field(repr=False)
    options: WriteOptions
    decimals: int | None = None
    widths: Mapping[str, int] | None = None
    counts_tell: bool = True
    """Whether a cell that nobody contributes to is empty; otherwise only structural zeros are."""

    @cached_property
    def how(self) -> Protected:
        """In which way the release protects the table."""
        return protected_how(self.release)

    @property
    def tells_the_truth(self) -> bool:
        """Whether statuses and true values are asked for."""
        return self.options.AS and self.how != "perturbed"

    @cached_property
    def status(self) -> NDArray[np.uint8]:
        """The τ-ARGUS status of each cell; a safe one that was changed counts as secondary."""
        if self.how == "suppressed":
            status = argus_statuses(self.problem, self.release)
        else:
            status = argus_statuses(self.problem)
            moved = np.abs(self.release.values - self.problem.table.value)
            changed = moved > SAME * 10.0**-self.problem.table.decimals
            status = np.where(changed & (status == Argus.SAFE), Argus.SECONDARY, status).astype(np.uint8)
        status[self.empty] = Argus.EMPTY
        return status

    @cached_property
    def empty(self) -> Mask:
        """Cells without any contributor, unless the release hides that or publishes something else."""
        table = self.problem.table
        nobody = np.zeros(len(table), np.bool_) if table.structural_zero is None else table.structural_zero
        if table.count is not None and self.counts_tell:
            nobody = nobody | (table.count == 0)
        quiet: Mask = nobody & (table.integers == 0) & (self.release.values == 0) & ~self.problem.sensitivity.mask
        return quiet

    @cached_property
    def by_design(self) -> Mask:
        """Cells that nobody was ever to see."""
        return np.equal(self.release.status, Status.BY_DESIGN)

    def number(self, values: Floats) -> pl.Series:
        """Values as text, with the decimals asked for, unless a protected value has more."""
        return self.exact_number(values) if self.decimals is None else with_decimals(values, self.decimals)

    def exact_number(self, values: Floats) -> pl.Series:
        """Values as text with the decimals of the table and those asked for, or as many as they have."""
        places = max(self.problem.table.decimals, self.decimals or 0)
        fits = bool((np.abs(values - np.round(values, places)) <= 1e-15 * np.abs(values)).all())
        return with_decimals(values, places) if fits else as_text(values)

    def published(self) -> pl.Series:
        """What the public sees of each cell."""
        text = self.number(np.nan_to_num(self.release.values))
        return text.set(pl.Series(self.release.suppressed), WITHHELD).set(pl.Series(self.empty), EMPTY)

    def true(self) -> pl.Series:
        """What each cell really is."""
        return self.number(self.problem.table.value).set(pl.Series(self.empty), EMPTY)

    def layout(self) -> Layout:
        """The lines of a file with one line per cell."""
        lines: Literal["cells", "combinations"] = "cells" if self.options.SE else "combinations"
        layout = Layout.of(self.problem.table, lines=lines, widths=self.widths)
        hidden = self.by_design | (self.empty & self.options.SE)
        return layout.keep(~(layout.there & hidden[np.maximum(layout.cell, 0)])) if hidden.any() else layout


def response_name(problem: Problem) -> str:
    """What τ-ARGUS calls the response: a table that only counts has the name `Freq`."""
    return "Freq" if problem.table.response == RECORDS else problem.table.response
