"""The progress of a run as a small picture: the best answer so far, and what no answer can be below."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tablesafe.web.runs import Point

WIDE, HIGH, LEFT, RIGHT, TOP, LOW = 460, 170, 8, 84, 30, 24
BLUE, ORANGE, SOFT = "#0072B2", "#D55E00", "#55606e"
MOST_DOTS = 40
"""Answers that get a mark each; of more, only the last."""
ENDLESS = 1e300
LABEL = 13.0
"""How far apart the two numbers at the right must be to be read."""
Places = list[tuple[float, float]]


def curve(history: Sequence[Point], now: float | None = None, since: float = 0.0) -> str:
    """An `<svg>` of incumbent (solid, ●) and bound (dashed, ▲) over time; empty when there is no answer yet.

    A single answer is a mark and a line up to `now`, by default up to the last report. Both are in seconds of the run;
    the picture begins at `since`, when the search did.
    """
    timed = [(max(p.seconds - since, 0.0), p.incumbent, p.bound) for p in history]
    best = [(x, float(cost)) for x, cost, _ in timed if cost is not None and math.isfinite(cost)]
    if not best:
        return ""
    bound = _rising([(x, float(proof)) for x, _, proof in timed if proof is not None and _proves(proof)])
    end = max((now or 0.0) - since, *(x for x, _, _ in timed)) or 1.0
    numbers = [y for _, y in (*best, *bound)]
    low, high = _range(min(numbers), max(numbers))

    def at(points: Places) -> Places:
        across, down = WIDE - LEFT - RIGHT, HIGH - LOW - TOP - 8
        return [(LEFT + across * x / end, TOP + down * ((high - y) / (high - low))) for x, y in points]

    cost, proven = best[-1][1], bound[-1][1] if bound else None
    words, proof = _words(cost, proven), "┅▲ proven bound" if bound else "no bound is proven"
    lines = _line(at(bound), ORANGE, "6 4", "▲") + _line(at(best), BLUE, "", "●")
    return (
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="Progress after {end:.0f} seconds: {words}" '
        f'font-size="12" font-family="system-ui, sans-serif">'
        f'<line x1="{LEFT}" y1="{HIGH - LOW}" x2="{WIDE - RIGHT}" y2="{HIGH - LOW}" stroke="#8a94a0"/>'
        f"{lines}{_labels(at(best), at(bound), cost, proven)}"
        f'<text x="{LEFT}" y="12" fill="{BLUE}">━● best answer</text>'
        f'<text x="{LEFT + 120}" y="12" fill="{ORANGE}">{proof}</text>'
        f'<text x="{LEFT}" y="{HIGH - 8}" fill="{SOFT}">0 s</text>'
        f'<text x="{WIDE - RIGHT}" y="{HIGH - 8}" text-anchor="end" fill="{SOFT}">{_seconds(end)} s</text>'
        f"</svg><div>{words}</div>"
    )


def _proves(bound: float) -> bool:
    """Whether a bound says anything: that nothing costs less than nothing is no proof, nor is a number without end."""
    return 0 < bound < ENDLESS


def _rising(points: Places) -> Places:
    """What was proven once stays proven."""
    most = -math.inf
    return [(x, most := max(most, y)) for x, y in points]


def _range(low: float, high: float) -> tuple[float, float]:
    """From a little below the lowest to a little above the highest; around a single number, some room."""
    space = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return low - space, high + space


def _line(places: Places, colour: str, dash: str, mark: str) -> str:
    """Stairs that go on until now, with a mark wherever something better came."""
    if not places:
        return ""
    path, last = [places[0]], places[0][1]
    for x, y in places[1:]:
        path += [(x, last), (x, y)]
        last = y
    path.append((float(WIDE - RIGHT), last))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in path)
    steps = [
        place for place, before in zip(places, [None, *places], strict=False) if not before or place[1] != before[1]
    ]
    shown = steps if len(steps) <= MOST_DOTS else steps[-1:]
    marks = "".join(
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" font-size="11" fill="{colour}">{mark}</text>'
        for x, y in shown
    )
    drawn = f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
    return drawn + marks


def _labels(best: Places, bound: Places, cost: float, proven: float | None) -> str:
    """The two numbers at the end of their lines, never one upon the other."""
    x, top = WIDE - RIGHT + 6, best[-1][1]
    said = f'<text x="{x}" y="{top + 4:.1f}" fill="{BLUE}">{_shown(cost)}</text>'
    if proven is None or not bound or _shown(proven) == _shown(cost):
        return said
    y = max(bound[-1][1], top + LABEL)
    return said + f'<text x="{x}" y="{y + 4:.1f}" fill="{ORANGE}">{_shown(proven)}</text>'


def _words(cost: float, proven: float | None) -> str:
    if proven is None:
        return f"best {_shown(cost)}"
    if proven >= cost * (1 - 1e-9):
        return f"best {_shown(cost)}, proven to be the least"
    return f"best {_shown(cost)}, no less than {_shown(proven)}, gap {(cost - proven) / cost:.1%}"


def _shown(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def _seconds(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"
