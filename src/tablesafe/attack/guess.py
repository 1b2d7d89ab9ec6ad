"""What every attack is, and what it comes up with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from tablesafe.attack.density import Density
from tablesafe.attack.view import View
from tablesafe.core.equations import Floats
from tablesafe.work.budget import ENDLESS, Budget


@dataclass(frozen=True, eq=False)
class Guess:
    """A value for every unknown cell, in the system's units, and where it came from."""

    values: Floats = field(repr=False)
    """NaN where the attack has no answer."""
    density: Density | None = field(default=None, repr=False)
    note: str = ""
    """What was done, where that is not always the same: how many programs, how many draws."""


class Attack(Protocol):
    """A way to guess: its options are its fields."""

    name: ClassVar[str]

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """Guess every unknown cell; stop, with what there is, when the budget is up."""
        ...
