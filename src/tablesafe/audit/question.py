"""What the audit asks: which cells, how far each must be hidden, and what is known about it so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.proofs import TIE, Group, Needs
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.problem import Problem


@dataclass(frozen=True, eq=False)
class Question:
    """The cells asked about and what is known of them so far, in the system's units."""

    cells: NDArray[np.intp] = field(repr=False)
    at: NDArray[np.intp] = field(repr=False)
    """Position of each among the unknown cells; −1 for a cell that the attacker knows."""
    sensitive: Mask = field(repr=False)
    value: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    """The least an attacker can make it, as far as known."""
    upper: Floats = field(repr=False)
    needs: Needs = field(repr=False)
    """Of all the cells; zero where not sensitive."""

    @classmethod
    def of(cls, problem: Problem, system: System, *, everything: bool) -> Self:
        """Ask about the sensitive cells, or about all that are unknown as well."""
        table, levels = problem.table, problem.sensitivity
        cells = np.union1d(problem.sensitive, system.cells) if everything else problem.sensitive
        position = np.full(len(table), -1, dtype=np.intp)
        position[system.cells] = np.arange(len(system))
        at = position[cells]
        value = table.integers[cells].astype(np.float64)
        needs = Needs.of(at, levels.lower[cells], levels.upper[cells], levels.sliding[cells], table.decimals)
        return cls(cells, at, levels.mask[cells], value, value.copy(), value.copy(), needs)

    @property
    def hidden(self) -> NDArray[np.intp]:
        """Which of the cells the attacker does not know from the start."""
        return np.flatnonzero(self.at >= 0)

    def answered(self, which: NDArray[np.intp], lower: Floats, upper: Floats) -> Self:
        """With intervals for some of the cells."""
        low, high = self.lower.copy(), self.upper.copy()
        low[which], high[which] = np.minimum(low[which], lower), np.maximum(high[which], upper)
        return type(self)(self.cells, self.at, self.sensitive, self.value, low, high, self.needs)

    def forgotten(self, which: NDArray[np.intp]) -> Self:
        """With nothing known of some cells."""
        low, high = self.lower.copy(), self.upper.copy()
        low[which], high[which] = self.value[which], self.value[which]
        return type(self)(self.cells, self.at, self.sensitive, self.value, low, high, self.needs)

    @property
    def sure(self) -> Mask:
        """Sensitive cells that are protected beyond any doubt of floating point."""
        return self.sensitive & (self.at >= 0) & self._reaches(-1.0)

    def undecided(self, *, exact: bool, certify: bool) -> NDArray[np.intp]:
        """Sensitive cells that need witnesses: those that may be protected, if that must be proved or is too close."""
        wanted = self.sensitive & (self.at >= 0)
        if exact:
            wanted &= self._reaches(1.0)
            if not certify:
                wanted &= ~self.sure
        return np.flatnonzero(wanted)

    def proved_by(self, groups: Sequence[Group]) -> Mask:
        """The cells that some group proves."""
        return np.isin(self.at, np.concatenate([np.zeros(0, np.intp), *(group.at for group in groups)]))

    @property
    def too_narrow(self) -> NDArray[np.intp]:
        """Sensitive cells seen to reach far enough on both sides, but not far enough apart for their sliding level."""
        covers, wide = self._covers(1.0)
        return np.flatnonzero(self.sensitive & (self.at >= 0) & covers & ~wide)

    def _reaches(self, sign: float) -> Mask:
        """Whether each interval reaches as far as needed, give or take what only exact arithmetic can tell."""
        covers, wide = self._covers(sign)
        bare = (self.needs.lower == 0) & (self.needs.upper == 0) & (self.needs.sliding == 0)
        apart = self.upper - self.lower > (1e-9 if sign > 0 else 1e-3)
        return np.asarray(np.where(bare, apart, covers & wide), np.bool_)

    def _covers(self, sign: float) -> tuple[Mask, Mask]:
        """Whether each interval covers what it must, and whether it is wide enough."""
        slack = sign * TIE * np.maximum(1.0, np.abs(self.value))
        lower, upper, sliding = self.needs.floats()
        covers = (self.lower - slack <= self.value - lower) & (self.upper + slack >= self.value + upper)
        return covers, self.upper - self.lower + 2 * slack >= sliding
