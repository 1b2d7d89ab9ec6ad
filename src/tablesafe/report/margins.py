"""Sensitive cells: what an attacker derives of each, against what the rules ask. Confidential."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tablesafe.core.equations import Floats
from tablesafe.report.cells import OfficeCells, interval, numbers
from tablesafe.report.verdict import cell_codes

if TYPE_CHECKING:
    from tablesafe.audit.findings import Findings

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
