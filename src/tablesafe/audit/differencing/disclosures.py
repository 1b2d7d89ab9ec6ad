"""What several tables give away together: how it is told. Confidential throughout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import polars as pl

from tablesafe.audit.differencing.overlap import Overlap
from tablesafe.audit.findings import MOST_SHOWN, Findings
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.tabulate.records_and_columns import Where

SETTLE = (
    "What is possibly open follows from the tables, but not who contributes to it: numbers of contributors cannot be "
    "subtracted. The records settle it: ts.difference(records, [ts.Published(...), ...], rules=...)."
)

SETTLE_LISTED = (
    "What is possibly open turns on contributors that are not listed: a larger largest= of ts.difference settles it."
)


class Kind(StrEnum):
    """How something is given away."""

    PUBLISHED = "published"
    """A table shows it: no differencing needed."""
    DIFFERENCE = "difference"
    """Cells of one table taken from a cell of another."""
    PART = "part"
    """Units that the tables tell apart can be bounded too closely by all equations together."""
    SUM = "sum"
    """A sum of such units follows from several equations."""
    RESPONDENT = "respondent"
    """A respondent that knows its own contributions can bound the others too closely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One of several tables over the same records: what spans it, and which records it counts."""

    name: str
    dimensions: Mapping[str, Hierarchy | None] | Sequence[str]
    where: Where = None
    margins: Sequence[Sequence[str]] | None = None
    column_of: Mapping[str, str] | None = None
    missing: str | Mapping[str, str] = "error"
    total: str | Mapping[str, str] = "Total"
    withheld: Any = None
    """The cells that are not published: a frame with the dimensions as columns and one row for each of them; or the
    release of this table, which says what it withholds, and within which bounds it leaves what it changed."""


@dataclass(frozen=True, slots=True)
class Disclosure:
    """One thing that the tables give away together."""

    kind: Kind
    what: str
    """The units in question, in the user's codes."""
    because: str
    """How it follows."""
    lower: float
    upper: float
    count: int | None
    """How many contributors there are, where that is known; at least so many, where it is not certain."""
    rules: tuple[str, ...]
    tables: tuple[str, ...]
    parts: tuple[int, ...] = ()
    """The parts in question, by their numbers in the overlap."""
    certain: bool = True
    """False when nobody knows who the contributors are, and there may be few enough to fail a rule."""

    @property
    def exact(self) -> bool:
        """Whether the value is known exactly."""
        return self.lower == self.upper


@dataclass(frozen=True, eq=False)
class Differences:
    """What several tables give away together. Confidential: it holds what should not be known."""

    found: tuple[Disclosure, ...]
    overlap: Overlap = field(repr=False)
    searched: str
    """What was looked at, in words."""
    findings: Findings | None = field(default=None, repr=False)
    """The audit of the linked system, where the records were there to judge it."""
    late: int = 0
    """Parts and cells for which there was no time to look at every respondent."""

    @property
    def safe(self) -> bool:
        """Whether nothing is given away, and nothing can be that was not excluded."""
        return not self.found and not self.late

    @property
    def possibly(self) -> tuple[Disclosure, ...]:
        """What is given away if its contributors, of whom only numbers are known, are as few as they can be."""
        return tuple(each for each in self.found if not each.certain)

    def frame(self) -> pl.DataFrame:
        """One row per disclosure: what, how it follows, the interval derived, how many units, and why it is a risk."""
        return pl.DataFrame(
            {
                "kind": pl.Series([str(each.kind) for each in self.found], dtype=pl.String),
                "what": pl.Series([each.what for each in self.found], dtype=pl.String),
                "because": pl.Series([each.because for each in self.found], dtype=pl.String),
                "from": pl.Series([each.lower for each in self.found], dtype=pl.Float64),
                "to": pl.Series([each.upper for each in self.found], dtype=pl.Float64),
                "contributors": pl.Series([each.count for each in self.found], dtype=pl.Int64),
                "rules": pl.Series([", ".join(each.rules) for each in self.found], dtype=pl.String),
                "tables": pl.Series([", ".join(each.tables) for each in self.found], dtype=pl.String),
                "certain": pl.Series([each.certain for each in self.found], dtype=pl.Boolean),
            }
        )

    def text(self, *, shown: int = MOST_SHOWN) -> str:
        """A summary for the terminal."""
        if self.safe:
            whom = "" if self.findings is not None else " to outsiders"
            return f"SAFE: the tables give nothing away together{whom}.\n{self.searched}"
        lines = [self._headline(), self.searched]
        for each in self.found[:shown]:
            interval = f"{each.lower:,.12g}" if each.exact else f"from {each.lower:,.12g} to {each.upper:,.12g}"
            least = "" if each.certain else "possibly only "
            who = "" if each.count is None else f", {least}{each.count:,} contributor{'' if each.count == 1 else 's'}"
            lines += [f"  {each.what}: {interval}{who} ({', '.join(each.rules)})", f"    because {each.because}"]
        if len(self.found) > shown:
            lines.append(f"  ... and {len(self.found) - shown:,} more.")
        if self.possibly:
            lines.append(SETTLE if self.findings is None else SETTLE_LISTED)
        return "\n".join(lines)

    def _headline(self) -> str:
        """The verdict in one line."""
        if not self.found:
            return "NOT PROVED: nothing was found, but not every respondent was looked at."
        own = sum(each.kind is Kind.PUBLISHED for each in self.found)
        possibly = sum(each.kind is not Kind.PUBLISHED for each in self.possibly)
        derived = len(self.found) - own - possibly
        words = []
        if derived or not possibly:
            words.append(
                f"{'1 thing is' if derived == 1 else f'{derived:,} things are'} given away by the tables together."
            )
        if possibly:
            words.append(f"{'1 thing is' if possibly == 1 else f'{possibly:,} things are'} possibly open.")
        if own:
            words.append(
                f"{'1 published cell fails' if own == 1 else f'{own:,} published cells fail'} a rule by itself."
            )
        return "NOT SAFE: " + " ".join(words)

    def __str__(self) -> str:
        return self.text()
