"""The ways in which a cell can be open, and to whom."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

OUTSIDER = "anyone who sees the release"


class How(StrEnum):
    """In which way a cell is open."""

    PUBLISHED = "published"
    """The release shows it."""
    EXACT = "exact"
    """The release does not show it, but gives it away."""
    LOWER = "lower"
    """It can be bounded from below too closely."""
    UPPER = "upper"
    """It can be bounded from above too closely."""
    WIDTH = "width"
    """The whole interval is too narrow."""
    UNPROVED = "unproved"
    """A solver says it is protected, but no exact table was found that proves it."""
    SUM = "sum"
    """A sum of withheld cells can be derived, and fails a rule itself."""


@dataclass(frozen=True, slots=True)
class Opening:
    """One way in which one sensitive cell, or a sum of withheld cells, is open."""

    cell: int
    """The cell; of a sum, its first."""
    name: str
    how: How
    short: float
    """How much further the interval would have to reach, in the table's unit."""
    lower: float
    """What the attacker derives."""
    upper: float
    attacker: str = OUTSIDER
    certain: bool = True
    """False when it takes contributions that the table does not list, but that are possible."""
    because: str = ""
    """How it follows, where that was found along the way."""

    def __str__(self) -> str:
        return f"{self.name}: {self.how}, open to {self.attacker}"
