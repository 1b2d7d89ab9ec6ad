"""What several tables give away together: how it is told. Confidential throughout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import polars as pl

from tablesafe.audit.findings import Findings
from tablesafe.audit.overlap import Overlap
from tablesafe.hierarchy import Hierarchy
from tablesafe.tabulate.plan import Where

MOST_SHOWN = 20


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
    """The cells that are not published: a frame with the dimensions as columns, one row per cell."""


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
    """How many contributors there are, where that is known."""
    rules: tuple[str, ...]
    tables: tuple[str, ...]
    parts: tuple[int, ...] = ()
    """The parts in question, by their numbers in the overlap."""

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

    @property
    def safe(self) -> bool:
        """Whether nothing is given away."""
        return not self.found

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
            }
        )

    def text(self, *, shown: int = MOST_SHOWN) -> str:
        """A summary for the terminal."""
        if self.safe:
            return f"SAFE: the tables give nothing away together.\n{self.searched}"
        shown_anyway = sum(each.kind is Kind.PUBLISHED for each in self.found)
        derived = len(self.found) - shown_anyway
        things = "1 thing is" if derived == 1 else f"{derived:,} things are"
        own = f" {shown_anyway:,} published cells fail a rule themselves." if shown_anyway else ""
        lines = [f"NOT SAFE: {things} given away by the tables together.{own}", self.searched]
        for each in self.found[:shown]:
            interval = f"{each.lower:,.12g}" if each.exact else f"from {each.lower:,.12g} to {each.upper:,.12g}"
            who = "" if each.count is None else f", {each.count:,} contributors"
            lines += [f"  {each.what}: {interval}{who} ({', '.join(each.rules)})", f"    because {each.because}"]
        if len(self.found) > shown:
            lines.append(f"  ... and {len(self.found) - shown:,} more.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()
