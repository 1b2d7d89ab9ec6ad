"""How much time is left for something that may be stopped."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Self

from tablesafe.core.errors import OutOfTime

GENEROUS = 4.0
"""How many times its share of the time a part of the work may take."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A moment at which to stop."""

    end: float = inf

    @classmethod
    def start(cls, seconds: float | None) -> Self:
        """A clock that stops so many seconds from now; never, when none are given."""
        return cls(inf if seconds is None else monotonic() + seconds)

    @property
    def left(self) -> float:
        """The seconds that are left; 0 when time is up."""
        return max(0.0, self.end - monotonic())

    @property
    def up(self) -> bool:
        """Whether time is up."""
        return monotonic() >= self.end

    def share(self, part: float) -> Clock:
        """A clock for a part of the work left: it may take several times its part of the time, for parts differ."""
        return self if self.end == inf else Clock(monotonic() + min(1.0, GENEROUS * part) * self.left)

    def check(self) -> None:
        """Stop by an error when time is up: for work that has no answer before its end."""
        if self.up:
            raise OutOfTime("The time given was too short for an answer.")


ENDLESS = Clock()
"""A clock that never stops."""
