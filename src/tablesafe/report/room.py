"""How much room an attacker leaves around each sensitive cell, beside how much it must leave. For the office only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.findings import Findings
from tablesafe.core.equations import Floats, Mask

Unit = Literal["auto", "level", "percent"]


@dataclass(frozen=True, eq=False)
class Ends:
    """Per sensitive cell how far its interval reaches from the true value and must reach, in one unit."""

    cells: NDArray[np.intp]
    """In the order in which they are drawn: the least room first."""
    below: Floats
    """How far the interval reaches downwards: 0 or more, infinite without an end."""
    above: Floats
    required_below: Floats
    required_above: Floats
    protected: Mask
    unit: Literal["level", "percent"]

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def room(self) -> Floats:
        """The shorter of the two sides, each in the parts of what it must reach; infinite where nothing is required."""
        return np.minimum(_ratio(self.below, self.required_below), _ratio(self.above, self.required_above))

    @property
    def least(self) -> float:
        """The least room of any cell; infinite where nothing is required."""
        return float(np.min(self.room, initial=np.inf))

    @classmethod
    def of(cls, findings: Findings, unit: Unit) -> Self:
        """Measure every sensitive cell in protection levels, or in percent of its value."""
        sensitivity = findings.problem.sensitivity
        own = np.flatnonzero(sensitivity.mask[findings.cells])
        cells, value = findings.cells[own], findings.value[own]
        lower, upper, sliding = (level[cells] for level in (sensitivity.lower, sensitivity.upper, sensitivity.sliding))
        below, above = np.maximum(value - findings.lower[own], 0.0), np.maximum(findings.upper[own] - value, 0.0)
        chosen = _chosen(unit, lower, upper)
        if chosen == "level":
            need = (lower > 0).astype(np.float64), (upper > 0).astype(np.float64)
            spare = np.maximum(np.maximum(lower, upper), np.maximum(sliding, 10.0**-findings.problem.table.decimals))
            below, above = below / np.where(lower > 0, lower, spare), above / np.where(upper > 0, upper, spare)
        else:
            size = np.where(value == 0, 10.0**-findings.problem.table.decimals, np.abs(value)) / 100
            below, above, need = below / size, above / size, (lower / size, upper / size)
        found = cls(cells, below, above, *need, findings.protected[own], chosen)
        return found._in_order()

    def _in_order(self) -> Self:
        """Open cells first, then by room; where nothing is required, by the shorter side itself."""
        shorter = np.minimum(self.below, self.above)
        order = np.lexsort((np.maximum(self.below, self.above), shorter, self.room, self.protected))
        return type(self)(
            self.cells[order], self.below[order], self.above[order], self.required_below[order],
            self.required_above[order], self.protected[order], self.unit,
        )  # fmt: skip


def _ratio(reach: Floats, required: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(required > 0, reach / required, np.inf)


def _chosen(unit: Unit, lower: Floats, upper: Floats) -> Literal["level", "percent"]:
    if unit != "auto":
        return unit
    return "level" if bool(((lower > 0) | (upper > 0)).mean() > 0.5 if len(lower) else True) else "percent"
