"""The middles of intervals that a known or guessed p makes narrower."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tablesafe.attack.guess import Guess
from tablesafe.attack.parameters import Few, infer_p_from, shrink_from
from tablesafe.attack.reconstruction import Derived
from tablesafe.attack.view import View
from tablesafe.core.options import require_number
from tablesafe.work.budget import ENDLESS, Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkMidpoint:
    """Guess the middle of what p leaves of each interval, by the cells that are counted with one or two contributors.

    Without a p the largest that the intervals allow is taken: it makes the narrowest of them a point. (Cox,
    "Vulnerability of Complementary Cell Suppression to Intruder Attack".)
    """

    name: ClassVar[str] = "shrunk midpoint"

    p: float | None = field(
        default=None, metadata={"help": "known or guessed p, in percent; by default the largest that can be"}
    )

    def __post_init__(self) -> None:
        if self.p is not None:
            require_number(self, "p", at_least=0, below=100)

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """The middles; where nobody is known to be alone, or p is refuted, those of the intervals as they are."""
        unit = 10.0**view.system.table.decimals
        derived = Derived(view.system, view.lower / unit, view.upper / unit)
        few = Few.of(view.system.table)
        most = infer_p_from(derived, few)
        if most.upper_cell is None and self.p is None:
            return self._plain(view, "no interval tells p")
        p = most.upper if self.p is None else self.p
        budget.check()
        found = shrink_from(derived, few, p)
        if found.refuted:
            return self._plain(view, f"p = {p:.4g}% is refuted")
        middle = found.values[view.system.cells] * unit
        return Guess(np.where(view.free, middle, view.lower), note=f"p = {p:.4g}%")

    def _plain(self, view: View, note: str) -> Guess:
        with np.errstate(invalid="ignore"):
            middle = view.lower + (view.upper - view.lower) / 2
        return Guess(np.where(view.bounded, middle, np.nan), note=note)
