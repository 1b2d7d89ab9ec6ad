"""The progress of a run as a small picture: the best answer so far, and what no answer can be below."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tablesafe.web.runs import Point

WIDE, HIGH, LEFT, LOW = 460, 170, 8, 24
BLUE, ORANGE = "#0072B2", "#D55E00"


def curve(history: Sequence[Point]) -> str:
    """An `<svg>` of incumbent (solid, ●) and bound (dashed, ▲) over time; empty when there is nothing yet."""
    best = [(point.seconds, point.incumbent) for point in history if _is_number(point.incumbent)]
    bound = [(point.seconds, point.bound) for point in history if _is_number(point.bound)]
    if not best:
        return ""
    now = max(point.seconds for point in history) or 1.0
    numbers = [float(y) for _, y in (*best, *bound) if y is not None]
    low, high = min(numbers), max(numbers)
    low, high = (low - 1, high + 1) if low == high else (low, high)

    def at(seconds: float, value: float) -> tuple[float, float]:
        x = LEFT + (WIDE - 2 * LEFT) * seconds / now
        return x, 22 + (HIGH - LOW - 34) * (high - value) / (high - low)

    def stairs(points: list[tuple[float, float | None]], colour: str, dash: str) -> str:
        places = [at(x, float(y)) for x, y in points if y is not None]
        path, last = [], None
        for x, y in places:
            path += [(x, last), (x, y)] if last is not None else [(x, y)]
            last = y
        if last is not None:
            path.append((WIDE - LEFT, last))
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in path)
        return f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'

    cost, proven = float(best[-1][1] or 0), float(bound[-1][1] or 0) if bound else None
    gap = f", gap {(cost - proven) / cost:.1%}" if proven is not None and 0 < proven <= cost else ""
    words = f"best {_shown(cost)}" + (f", no less than {_shown(proven)}" if proven is not None else "") + gap
    return (
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="Progress after {now:.0f} seconds: {words}" '
        f'font-size="12" font-family="system-ui, sans-serif">'
        f'<line x1="{LEFT}" y1="{HIGH - LOW}" x2="{WIDE - LEFT}" y2="{HIGH - LOW}" stroke="#8a94a0"/>'
        f"{stairs(bound, ORANGE, '6 4')}{stairs(best, BLUE, '')}"
        f'<text x="{LEFT}" y="12" fill="{BLUE}">━ best answer</text>'
        f'<text x="{LEFT + 130}" y="12" fill="{ORANGE}">┅ proven bound</text>'
        f'<text x="{LEFT}" y="{HIGH - 8}" fill="#55606e">0 s</text>'
        f'<text x="{WIDE - LEFT}" y="{HIGH - 8}" text-anchor="end" fill="#55606e">{now:.0f} s</text>'
        f"</svg><div>{words}</div>"
    )


def _shown(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
