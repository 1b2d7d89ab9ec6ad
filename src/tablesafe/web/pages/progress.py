"""The progress of a run: its stages with what each costs, how far it is, and the best answer as a small picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tablesafe.web.runs import Point, Run, State
from tablesafe.web.speech import aria, numeral, say

WORDS = {
    State.QUEUED: "waiting", State.RUNNING: "running", State.STOPPING: "stopping: keeping the best answer",
    State.DONE: "done", State.OPEN: "finished, but open", State.FAILED: "failed", State.STOPPED: "stopped",
}  # fmt: skip
"""How it stands with a run, in words."""
WIDE, HIGH, LEFT, RIGHT, TOP, LOW = 460, 170, 8, 84, 30, 24
"""Size of the picture of costs and bounds, and its margins."""
BLUE, ORANGE, SOFT = "#0072B2", "#D55E00", "#55606e"
MOST_DOTS = 40
"""Answers that get a mark each; of more, only the last."""
ENDLESS = 1e300
"""A bound beyond it is none."""
LABEL = 13.0
"""How far apart the two numbers at the right must be to be read."""
Places = list[tuple[float, float]]


def curve(history: Sequence[Point], now: float | None = None, since: float = 0.0, *, beyond: str = "") -> str:
    """An `<svg>` of incumbent (solid, ●) and bound (dashed, ▲) over time; empty when there is no answer yet.

    A single answer is a mark and a line up to `now`, by default up to the last report. Both are in seconds of the run;
    the picture begins at `since`, when the search did. `beyond` names whom an answer must withstand besides outsiders
    while that is still being looked for.
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
    first, final = _rise(history)
    words = _words(cost, proven, beyond) if first is None or final is None else _risen(first, final, proven)
    proof = f"┅▲ {say('proven bound')}" if bound else say("no bound is proven")
    met = min(_met(best, bound), end)
    before, later = ([point for point in best if (point[0] <= met) is early] for early in (True, False))
    # When the bound has passed the best, an answer is looked for that withstands more: until there is one, dots go on.
    turns = [x for x, _ in at([(met, low), (later[0][0] if later else end, low)])]
    lines = _line(at(bound), ORANGE, "6 4", "▲") + _line(at(before), BLUE, "", "●", until=turns[0])
    if turns[0] < turns[1]:
        lines += _line(at([(met, before[-1][1])]), BLUE, "1 5", "", until=turns[1])
    lines += _line(at(later), BLUE, "", "●")
    name = aria("Progress after {end:.0f} seconds: {words}", end=end, words=words)
    return (
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" {name} '
        f'font-size="12" font-family="system-ui, sans-serif">'
        f'<line x1="{LEFT}" y1="{HIGH - LOW}" x2="{WIDE - RIGHT}" y2="{HIGH - LOW}" stroke="#8a94a0"/>'
        f"{lines}{_labels(at(best), at(bound), cost, proven)}"
        f'<text x="{LEFT}" y="12" fill="{BLUE}">━● {say("best answer")}</text>'
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


def _met(best: Places, bound: Places) -> float:
    """When the bound passes the best answer, which then is none against the attackers that the bound is about."""
    for x, proven in bound:
        so_far = [cost for when, cost in best if when <= x]
        if so_far and proven > min(so_far) * (1 + RISE):
            return x
    return math.inf


def _range(low: float, high: float) -> tuple[float, float]:
    """From a little below the lowest to a little above the highest; around a single number, some room."""
    space = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return low - space, high + space


def _line(places: Places, colour: str, dash: str, mark: str, until: float = WIDE - RIGHT) -> str:
    """Stairs that go on until now, or as far as `until` across, with a mark wherever something better came."""
    if not places:
        return ""
    path, last = [places[0]], places[0][1]
    for x, y in places[1:]:
        path += [(x, last), (x, y)]
        last = y
    path.append((until, last))
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


def _words(cost: float, proven: float | None, beyond: str) -> str:
    if proven is None:
        return say("best {cost}", cost=_shown(cost))
    if _is_least(cost, proven) and beyond:
        return say(
            "{cost} hide the cells from outsiders, proven to be the least; what it takes against {beyond} is being "
            "looked for",
            cost=_shown(cost), beyond=say(beyond),
        )  # fmt: skip
    if _is_least(cost, proven):
        return say("best {cost}, proven to be the least", cost=_shown(cost))
    return say(
        "best {cost}, no less than {proven}, gap {gap:.1%}",
        cost=_shown(cost), proven=_shown(proven), gap=(cost - proven) / cost,
    )  # fmt: skip


def _is_least(cost: float, proven: float) -> bool:
    """Whether nothing costs less."""
    return proven >= cost * (1 - RISE)


def _risen(first: float, final: float, proven: float | None) -> str:
    """What an answer costs that hides from more attackers than the search did, so that nobody takes it for worse."""
    least = proven is not None and _is_least(first, proven)
    return say(
        "{first} hide the cells from outsiders, proven to be the least; hiding them from respondents and in sums as "
        "well costs {more} more: {final}"
        if least
        else "{first} hide the cells from outsiders; hiding them from respondents and in sums as well costs {more} "
        "more: {final}",
        first=_shown(first), more=_shown(final - first), final=_shown(final),
    )  # fmt: skip


def _shown(number: float) -> str:
    return numeral(number, ",.0f" if abs(number) >= 1000 else ".4g")


def _seconds(number: float) -> str:
    return numeral(number, ",.0f" if number >= 10 else ".1f")


# -- stages: what is done, what goes on, and what each attacker costs -------------------------------------------------


Mark = Literal["done", "now", "later"]
STAGES = {"read": "Read", "tabulate": "Tabulate", "rules": "Rules", "protect": "Protect", "audit": "Audit",
          "attack": "Attack", "write": "Write"}  # fmt: skip
REACHED = {"start": 0.0, "read": 0.02, "tabulate": 0.05, "rules": 0.1, "protect": 0.12, "audit": 0.8, "attack": 0.92,
           "write": 0.97}  # fmt: skip
"""Which share of a run is behind it when a stage begins; the search takes most of the time that there is."""
OUTSIDERS, EVERYBODY = "outsiders", "outsiders and all others"
ATTACKERS = (OUTSIDERS, EVERYBODY, "respondents", "sums", "respondents and sums", "coalitions")
"""Against whom a pattern hides."""
RISE = 1e-9
"""How much dearer an answer must be than the best before it to be one that hides from more than the search did."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A line of what a run does."""

    mark: Mark
    words: str


def share_done(run: Run) -> float | None:
    """How far a run is, from 0 to 1; None while nobody can tell."""
    if run.state.ended:
        return 1.0
    if run.stage not in REACHED:
        return None
    begin = REACHED[run.stage]
    after = next((share for share in REACHED.values() if share > begin), 1.0)
    inside = run.done / run.total if run.done is not None and run.total else 0.0
    if run.stage == "protect" and run.limit_s:
        inside = min((run.seconds - run.search_began) / run.limit_s, 1.0)
    return begin + inside * (after - begin)


def time_left(run: Run) -> str:
    """How long a run may still take, by its own limit; empty where it has none, has not begun to search, or stops."""
    goes_on = run.state in {State.QUEUED, State.RUNNING}
    if not goes_on or run.limit_s is None or run.stage not in {"protect", "audit"}:
        return ""
    left = run.limit_s - (run.seconds - run.search_began)
    over = "the time limit is over: what is left is finished"
    return say("at most {seconds} s left", seconds=_seconds(left)) if left > 0 else say(over)


def stopping(run: Run) -> str:
    """What becomes of a run that was told to stop: which answer is kept, if there is one."""
    best = _rise(run.history)
    if best[0] is None:
        return say(
            "stopping: the best safe pattern so far is kept; if there is none yet, nothing is published but zeros"
        )
    kept = best[0] if best[1] is None else best[1]
    return say("stopping: the answer that costs {cost} is made safe and kept", cost=_shown(kept))


def stages(run: Run) -> list[Stage]:
    """What a run has done and does, in order; what hiding from each attacker costs as far as it is known."""
    order = list(STAGES)
    if not run.state.ended and run.stage not in order:
        return []
    at = len(order) if run.facts else order.index(run.stage) if run.stage in order else -1
    lines = [Stage(_mark(at, 2), say("Table and rules")), *_protecting(run, at)]
    proof = say("Audit and certificate") + (f": {say(run.facts['verdict'])}" if at > 4 and run.facts else "")
    return [*lines, Stage(_mark(at, 4), proof), Stage(_mark(at, 6), say("Files"))]


def _mark(at: int, stage: int) -> Mark:
    return "done" if at > stage else "now" if at == stage or (stage == 2 and 0 <= at < 2) else "later"


def _protecting(run: Run, at: int) -> list[Stage]:
    """Against whom cells are withheld, and what each adds: as the method says in the end, until then as far as seen."""
    told = (run.facts.get("solution") or {}).get("attackers") or []
    if told:
        first, *others = told
        lines = [Stage("done", _against(first["attacker"], _amount(first)))]
        return [*lines, *(Stage("done", _against(each["attacker"], _more(each))) for each in others)]
    first_cost, final = _rise(run.history)
    if first_cost is None:
        return [Stage(_mark(at, 3), say("Protect"))]
    if final is None and at > 3 and run.beyond:  # the first answer was found with all of them in mind
        return [Stage("done", _against(EVERYBODY, _shown(first_cost)))]
    if final is None:
        bounds = [float(p.bound) for p in run.history if p.bound is not None and _proves(p.bound)]
        least = bool(run.beyond) and _is_least(first_cost, max(bounds, default=0.0))
        lines = [Stage("done" if at > 3 or least else "now", _against(OUTSIDERS, _shown(first_cost)))]
        if run.beyond and at <= 3:
            then = say("Against {attacker}", attacker=say(run.beyond))
            lines.append(Stage("now" if least and not run.state.ended else "later", then))
        return lines
    more = say("{more} more, {final} in all", more=_shown(final - first_cost), final=_shown(final))
    other = Stage("done" if at > 3 else "now", _against("respondents and sums", more))
    return [Stage("done", _against(OUTSIDERS, _shown(first_cost))), other]


def _against(attacker: str, cost: str) -> str:
    return say("Against {attacker}: {cost}", attacker=say(attacker), cost=cost)


def _rise(history: Sequence[Point]) -> tuple[float | None, float | None]:
    """The best answer of the search, and the last one where it costs more: it hides from more attackers."""
    costs = [float(p.incumbent) for p in history if p.incumbent is not None and math.isfinite(p.incumbent)]
    if not costs:
        return None, None
    best = min(costs)
    return best, costs[-1] if costs[-1] > best * (1 + RISE) else None


def _amount(price: dict[str, Any]) -> str:
    return f"{_shown(price['cost'])} ({_cells(price['cells'])})"


def _more(price: dict[str, Any]) -> str:
    if not price["cells"] and not price["cost"]:
        return say("nothing more")
    told = "{cost} more ({cells} more)" if price["cells"] >= 0 else "{cost} more ({cells} fewer)"
    return say(told, cost=_shown(price["cost"]), cells=_cells(abs(price["cells"])))


def _cells(number: int) -> str:
    return say("1 cell") if number == 1 else say("{number:,} cells", number=number)
