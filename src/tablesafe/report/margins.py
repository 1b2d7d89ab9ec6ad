"""How much room an attacker leaves around each sensitive cell, beside how much it must leave. For the office only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Mask
from tablesafe.report.cells import OfficeCells, interval, numbers
from tablesafe.report.verdict import cell_codes

if TYPE_CHECKING:
    from tablesafe.audit.findings import Findings


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


# Sensitive cells: what an attacker derives of each, against what the rules ask. Confidential.


MOST = 25
"""How many cells the page lists, those with the least room first; the findings file has them all."""
SPREAD = 3.0
"""How many times the protection interval the small plots are wide, to each side of the value."""


@dataclass(frozen=True, slots=True)
class MarginLine:
    """One sensitive cell."""

    cell: str
    reason: str
    value: str
    required: str
    """The protection interval."""
    derived: str
    """What an attacker derives."""
    reach: float | None
    """How far the derived interval reaches, where 1 is just as far as asked; None when nothing bounds it."""
    protected: bool
    band: tuple[float, float]
    """Where the protection interval begins and ends in the small plot, from 0 to 100."""
    bar: tuple[float, float]
    """The same of the derived interval, cut off at the edges."""


@dataclass(frozen=True, slots=True)
class Margins:
    """All sensitive cells together, and those with least room."""

    cells: int
    protected: int
    exact: bool
    """Whether the derived intervals are exact; otherwise they reach at least so far."""
    lines: tuple[MarginLine, ...]


def margins(findings: Findings) -> Margins:
    """Rank the sensitive cells by how little further than asked an attacker must look."""
    sensitive = np.flatnonzero(findings.problem.sensitivity.mask[findings.cells])
    reach = _reach(findings)[sensitive]
    order = sensitive[np.argsort(reach, kind="stable")][:MOST]
    least = np.sort(reach, kind="stable")[:MOST]
    return Margins(
        len(sensitive),
        int(findings.protected[sensitive].sum()),
        findings.exact,
        tuple(_line(findings, at, far) for at, far in zip(order.tolist(), least.tolist(), strict=True)),
    )


def _reach(findings: Findings) -> Floats:
    """How far each interval reaches in units of what is asked: the least of its lower side, upper side and width."""
    levels, cells, value = findings.problem.sensitivity, findings.cells, findings.value
    low, high, wide = levels.lower[cells], levels.upper[cells], levels.sliding[cells]
    known = np.where(findings.known, 0.0, np.inf)  # without any level a cell must only not be known exactly
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = [
            np.where(low > 0, (value - findings.lower) / low, known),
            np.where(high > 0, (findings.upper - value) / high, known),
            np.where(wide > 0, (findings.upper - findings.lower) / wide, known),
        ]
    least: Floats = np.minimum.reduce(sides)
    return np.maximum(least, 0.0)


def _line(findings: Findings, at: int, reach: float) -> MarginLine:
    problem, cell = findings.problem, int(findings.cells[at])
    levels, view = problem.sensitivity, OfficeCells(problem)
    value, low, high = float(problem.table.value[cell]), float(findings.lower[at]), float(findings.upper[at])
    needs = value - float(levels.lower[cell]), value + float(levels.upper[cell])
    half = max(value - needs[0], needs[1] - value) or max(min(value - low, high - value) / 2, 10.0**-view.decimals)
    half = half if np.isfinite(half) else max(abs(value), 1.0)

    def place(number: float) -> float:
        return (
            float(np.clip(50 + 50 * (number - value) / (SPREAD * half), 0, 100))
            if np.isfinite(number)
            else (100.0 if number > 0 else 0.0)
        )

    return MarginLine(
        cell_codes(problem.table, cell),
        ", ".join(levels.why(cell)),
        numbers(np.array([value]), view.decimals)[0],
        interval(*needs, view.decimals),
        interval(low, high, view.decimals),
        reach if np.isfinite(reach) else None,
        bool(findings.protected[at]),
        (place(needs[0]), place(needs[1])),
        (place(low), place(high)),
    )
