"""What eyes see of each cell: for the public what the release says and nothing else, for the office everything.

`PublicCells` is made from a release alone and reads only what a release file holds: published values, which cells show
none, which are not part of the publication, and intervals where they are published. It never reads a true value, and
does not tell cells withheld for their own sake from those withheld to protect others. `OfficeCells` reads it all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.language import ENGLISH, Language
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status

if TYPE_CHECKING:
    from tablesafe.audit.findings import Findings

WITHHELD_TEXT = "×"
"""What stands in the place of a withheld value."""
MOST_DECIMALS = 6
"""Decimals that a page shows; files have all of them."""
NO_FACTS: tuple[str, ...] = ()


class Kind(Enum):
    """How a cell is shown: its word, its sign (never colour alone), what it means, its colour and that of its mark.

    Colours are tints of those of Okabe and Ito, which readers with any kind of colour vision tell apart.
    """

    PUBLISHED = ("published", "", "the value is shown as it is", "#FFFFFF", "#5B6B7B")
    CHANGED = ("changed", "≈", "the value shown is another than the true one", "#FBE8C4", "#8A5A00")
    MAY_DIFFER = ("may differ", "≈", "the value shown can differ from the true one", "#FBE8C4", "#8A5A00")
    INTERVAL = ("interval", "↔", "an interval is shown in the place of the value", "#CFEDE3", "#00664B")
    WITHHELD = ("withheld", WITHHELD_TEXT, "no value is shown", "#DCE3EA", "#3D4C5A")
    SENSITIVE = ("sensitive", "S", "sensitive by a rule, and withheld", "#F6C9B0", "#9A3E00")
    SENSITIVE_SHOWN = ("sensitive, shown", "S≈", "sensitive by a rule; a value is shown", "#F8D9C6", "#9A3E00")
    COMPLEMENTARY = ("complementary", "C", "withheld to protect another cell", "#CFE6F7", "#00507D")
    GIVEN = ("given", "G", "withheld because somebody asked for it before", "#E9D3E2", "#7A3160")
    BY_DESIGN = ("by design", "D", "never published", "#E6E6E6", "#555555")
    POSSIBLY = (
        "possibly open", "?", "open if contributors that the table does not list are large", "#F7D774", "#5C3B00"
    )  # fmt: skip
    OPEN = ("open", "!", "can be derived too closely", "#C1121F", "#FFFFFF")
    ABSENT = ("", "", "not part of the table", "#F7F8F9", "#5B6B7B")

    def __init__(self, word: str, sign: str, meaning: str, colour: str, ink: str) -> None:
        self.word, self.sign, self.meaning, self.colour, self.ink = word, sign, meaning, colour, ink

    @property
    def css(self) -> str:
        """The class of the cell in a page: `k-` and the word."""
        return "k-" + (self.word.replace(",", "").replace(" ", "-") or "absent")


KINDS = tuple(Kind)
NUMBER = {kind: number for number, kind in enumerate(KINDS)}
"""Arrays of kinds hold these numbers."""


class Cells(Protocol):
    """What a layout needs to know of its cells. Arrays are indexed by cell."""

    @property
    def internal(self) -> bool: ...

    @property
    def kind(self) -> NDArray[np.uint8]:
        """The number of each cell's `Kind`."""
        ...

    def texts(self, cells: Integers) -> list[str]:
        """What the public sees of some cells (or the true values, before there is a release)."""
        ...

    def truths(self, cells: Integers) -> list[str]:
        """The true values of some cells; empty texts for the public."""
        ...

    def facts(self, cell: int, *, truth: bool = True) -> tuple[str, ...]:
        """What to say of a cell when somebody points at it, a line each; without `truth` nothing that gives it away."""
        ...


@dataclass(frozen=True, eq=False)
class PublicCells:
    """What a release says."""

    release: Release = field(repr=False)
    intervals: bool = False
    """Whether the office publishes the interval that it announces for each changed value."""
    language: Language = ENGLISH

    @property
    def internal(self) -> bool:
        """Nothing here is confidential."""
        return False

    @cached_property
    def shown_interval(self) -> Mask:
        """Cells for which an interval is published, as in the release's frame."""
        release = self.release
        told = release.announced(intervals=self.intervals)
        return told if release.intervals is not None else told & (release.lower < release.upper)

    @cached_property
    def kind(self) -> NDArray[np.uint8]:
        """Published, withheld, an interval, or a value that can differ from the truth."""
        release, hidden = self.release, self.release.suppressed
        kind = np.where(hidden, NUMBER[Kind.WITHHELD], NUMBER[Kind.PUBLISHED]).astype(np.uint8)
        kind[~hidden & (release.lower < release.upper)] = NUMBER[Kind.MAY_DIFFER]
        kind[hidden & self.shown_interval] = NUMBER[Kind.INTERVAL]
        kind[release.status == Status.BY_DESIGN] = NUMBER[Kind.ABSENT]
        return kind

    @cached_property
    def decimals(self) -> int:
        """As many as the published values have."""
        return decimals_of(self.release.values)

    def texts(self, cells: Integers) -> list[str]:
        """The value, the interval, or the sign for withheld."""
        return _texts(self.release, cells, self.kind[cells], self.decimals, self.language)

    def truths(self, cells: Integers) -> list[str]:
        """Nothing: the public does not see them."""
        return [""] * len(cells)

    def facts(self, cell: int, *, truth: bool = True) -> tuple[str, ...]:
        """The status, and the interval where one is published."""
        kind = KINDS[self.kind[cell]]
        if kind is Kind.ABSENT:
            return NO_FACTS
        say = self.language.say
        told = [_status(kind, self.language)]
        if self.shown_interval[cell]:
            lower, upper = float(self.release.lower[cell]), float(self.release.upper[cell])
            ends = interval(lower, upper, self.decimals, self.language)
            exactly = lower == upper
            told.append(
                say(
                    "The true value is {interval} exactly" if exactly else "The true value is {interval}", interval=ends
                )
            )
        return tuple(told)


@dataclass(frozen=True, eq=False)
class OfficeCells:
    """What the office knows: true values, reasons, what an attacker derives. Confidential.

    Without a release it shows the table with its sensitive cells; without findings no intervals.
    """

    problem: Problem = field(repr=False)
    release: Release | None = field(default=None, repr=False)
    findings: Findings | None = field(default=None, repr=False)
    language: Language = ENGLISH

    @property
    def internal(self) -> bool:
        """All of it is confidential."""
        return True

    @cached_property
    def kind(self) -> NDArray[np.uint8]:
        """The office's status, with sensitive cells that are shown and open ones marked as such."""
        sensitive = self.problem.sensitivity.mask
        if self.release is None:
            kind = np.where(sensitive, NUMBER[Kind.SENSITIVE], NUMBER[Kind.PUBLISHED]).astype(np.uint8)
            kind[self.problem.withheld] = NUMBER[Kind.BY_DESIGN]
        else:
            kind = OF_STATUS[self.release.status]
            kind[sensitive & ~self.release.suppressed] = NUMBER[Kind.SENSITIVE_SHOWN]
        kind[self.possibly_open_cells] = NUMBER[Kind.POSSIBLY]
        kind[self.open_cells] = NUMBER[Kind.OPEN]
        return kind

    @cached_property
    def open_cells(self) -> Integers:
        """Cells that somebody can come too close to."""
        found = () if self.findings is None else self.findings.open
        return np.array(sorted({opening.cell for opening in found}), dtype=np.int64)

    @cached_property
    def possibly_open_cells(self) -> Integers:
        """Cells that the table does not tell enough about to say whether somebody comes too close."""
        found = () if self.findings is None else self.findings.possible
        return np.array(sorted({opening.cell for opening in found}), dtype=np.int64)

    @cached_property
    def decimals(self) -> int:
        """As many as the table has, and the published values."""
        published = 0 if self.release is None else decimals_of(self.release.values)
        return min(MOST_DECIMALS, max(self.problem.table.decimals, published))

    def texts(self, cells: Integers) -> list[str]:
        """What the public sees; without a release the true values."""
        if self.release is None:
            return self.truths(cells)
        return _texts(self.release, cells, self._public[cells], self.decimals, self.language)

    def truths(self, cells: Integers) -> list[str]:
        """The true values."""
        return [self.language.number(each) for each in numbers(self.problem.table.value[cells], self.decimals)]

    @cached_property
    def _public(self) -> NDArray[np.uint8]:
        """What the public sees each cell as."""
        return np.zeros(0, np.uint8) if self.release is None else PublicCells(self.release).kind

    @cached_property
    def place(self) -> Integers:
        """Where the audit has each cell, −1 for those that it did not look at."""
        place = np.full(len(self.problem.table), -1, dtype=np.int64)
        if self.findings is not None:
            place[self.findings.cells] = np.arange(len(self.findings.cells))
        return place

    def facts(self, cell: int, *, truth: bool = True) -> tuple[str, ...]:
        """True value, contributors, what is published, why it is sensitive, and how well it is hidden.

        Without `truth` neither the value is told nor what it lies in the middle of, for those who look over a shoulder.
        """
        table, kind, say = self.problem.table, KINDS[self.kind[cell]], self.language.say
        told = [_status(kind, self.language)]
        if truth:
            told.append(say("True value {value}", value=self.truths(np.array([cell]))[0]))
        if table.count is not None:
            number = int(table.count[cell])
            told.append(say("1 contributor") if number == 1 else say("{number:,} contributors", number=number))
        if self.release is not None and not self.release.suppressed[cell]:
            told.append(say("Published {value}", value=self.texts(np.array([cell]))[0]))
        if self.problem.sensitivity.mask[cell]:
            told += self._protection(cell, truth=truth)
        else:
            told += self._derived(cell)
        return tuple(told)

    def may_be_asked(self, cells: Integers) -> Mask:
        """Which cells are withheld to protect others, so that an attacker's interval exists, and were not audited."""
        if self.findings is None or self.release is None:
            return np.zeros(len(cells), dtype=np.bool_)
        withheld = self.release.suppressed[cells] & (self.release.status[cells] != Status.BY_DESIGN)
        asked: Mask = withheld & (self.place[cells] < 0)
        return asked

    def _protection(self, cell: int, *, truth: bool) -> list[str]:
        levels, value = self.problem.sensitivity, float(self.problem.table.value[cell])
        say = self.language.say
        told = [say("Sensitive by {why}", why=", ".join(levels.why(cell)) or say("a status given"))]
        low, high = value - float(levels.lower[cell]), value + float(levels.upper[cell])
        if truth:
            ends = interval(low, high, self.decimals, self.language)
            told.append(say("To be hidden from {interval}", interval=ends))
        if levels.sliding[cell] > 0:
            wide = self.language.number(numbers(levels.sliding[[cell]], self.decimals)[0])
            told.append(say("in an interval at least {width} wide", width=wide))
        told += self._derived(cell)
        if self.findings is not None and self.place[cell] >= 0:
            told.append(say("Protected") if self.findings.protected[self.place[cell]] else say("Not protected"))
        return told

    def _derived(self, cell: int) -> list[str]:
        """What an attacker derives, where the audit computed it."""
        at = int(self.place[cell])
        if at < 0 or self.findings is None:
            return []
        ends = float(self.findings.lower[at]), float(self.findings.upper[at])
        return [derives(*ends, self.decimals, self.language)]


OF_STATUS = np.array(
    [
        NUMBER[kind]
        for kind in (Kind.PUBLISHED, Kind.SENSITIVE, Kind.COMPLEMENTARY, Kind.GIVEN, Kind.BY_DESIGN, Kind.CHANGED)
    ],
    dtype=np.uint8,
)
"""The kind of each `Status`, in its order."""


def _texts(
    release: Release, cells: Integers, kind: NDArray[np.uint8], decimals: int, language: Language = ENGLISH
) -> list[str]:
    """What the public sees of some cells, given their public kinds."""
    shown = [language.number(each) for each in numbers(release.values[cells], decimals)]
    for i in np.flatnonzero(np.isnan(release.values[cells])).tolist():
        which = KINDS[kind[i]]
        if which is Kind.INTERVAL:
            lower, upper = float(release.lower[cells[i]]), float(release.upper[cells[i]])
            shown[i] = interval(lower, upper, decimals, language)
        else:
            shown[i] = "" if which is Kind.ABSENT else WITHHELD_TEXT
    return shown


def decimals_of(values: Floats) -> int:
    """How many decimals published numbers have, at most six."""
    known = values[np.isfinite(values)]
    for decimals in range(MOST_DECIMALS):
        if bool((np.abs(known - np.round(known, decimals)) <= 1e-9 * np.maximum(1.0, np.abs(known))).all()):
            return decimals
    return MOST_DECIMALS


def numbers(values: Floats, decimals: int) -> list[str]:
    """Numbers for eyes, with separators of thousands."""
    return [_number(value, decimals) for value in values.tolist()]


def _number(value: float, decimals: int) -> str:
    if not np.isfinite(value):
        return "" if np.isnan(value) else "∞" if value > 0 else "−∞"
    text = f"{value:,.{decimals}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text


def derives(lower: float, upper: float, decimals: int, language: Language = ENGLISH) -> str:
    """What an attacker derives of a cell, in words."""
    told = "An attacker derives {interval} exactly" if lower == upper else "An attacker derives {interval}"
    return language.say(told, interval=interval(lower, upper, decimals, language))


def _status(kind: Kind, language: Language) -> str:
    """What became of a cell, in words."""
    word = language.say(kind.word)
    return f"{word[:1].upper()}{word[1:]}: {language.say(kind.meaning)}"


def interval(lower: float, upper: float, decimals: int, language: Language = ENGLISH) -> str:
    """An interval in words: its ends, or what bounds it on one side only."""
    low, high = (language.number(_number(end, decimals)) for end in (lower, upper))
    if lower == upper:
        return low
    if np.isinf(lower) and np.isinf(upper):
        return language.say("any number")
    if np.isinf(upper):
        return language.say("{low} or more", low=low)
    return language.say("{high} or less" if np.isinf(lower) else "{low} to {high}", low=low, high=high)
