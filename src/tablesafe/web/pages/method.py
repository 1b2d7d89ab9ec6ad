"""The progress of a run as a small picture: the best answer so far, and what no answer can be below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from nicegui import ui

from tablesafe.core.errors import TablesafeError
from tablesafe.job.model import AttackOptions, AuditOptions, Output, RunOptions
from tablesafe.web.forms import form_of
from tablesafe.web.pages.fields import chosen, fields, folded, plain
from tablesafe.web.pages.screen import Screen, heading, show_error
from tablesafe.web.runs import Point, Run, State

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


# The page Method: choose how to protect, run it in the background, watch it, stop it.


TICK_S = 0.5
SECTIONS = (("Audit", AuditOptions, "audit"), ("Attack", AttackOptions, "attack"), ("Output", Output, "output"),
            ("Where the work is done", RunOptions, "run"))  # fmt: skip
WORDS = {
    State.QUEUED: "waiting", State.RUNNING: "running", State.STOPPING: "stopping: keeping the best answer",
    State.DONE: "done", State.OPEN: "finished, but open", State.FAILED: "failed", State.STOPPED: "stopped",
}  # fmt: skip
STOPS = {State.QUEUED: "Do not run it", State.STOPPING: "End now, keep nothing"}
"""What the button does that stops a run, where it does not keep an answer."""
AGAIN = " Interrupt again to stop."
"""What a method says to those at a terminal; here the run is over when it is read."""
STAGES = {"read": "Read", "tabulate": "Tabulate", "rules": "Rules", "protect": "Protect", "audit": "Audit",
          "attack": "Attack", "write": "Write"}  # fmt: skip


def page(screen: Screen) -> None:
    """Build the page."""
    heading(
        "Method", "Choose how to protect the sensitive cells, then run. The release is audited before it is written."
    )
    screen.fault_list()
    with ui.element("div").classes("ts-cols wide"):
        with ui.element("div"):
            with ui.element("section").classes("ts-card").props('aria-label="Method"'):
                ui.html("Method", tag="h2")
                if screen.get(("method",)) is None and screen.draft:
                    screen.draft["method"] = {"name": "suppress"}
                chosen(screen, "method", ("method",))
                screen.fault_line(("method",))
            for title, kind, at in SECTIONS:
                folded(title, partial(_section, screen, kind, at))
        with ui.element("div").classes("sticky top-16"):
            _runs(screen)


def _section(screen: Screen, kind: type[Any], at: str) -> None:
    form = form_of(kind)
    ui.label(plain(form.summary)).classes("ts-note")
    fields(screen, form, (at,))


def _runs(screen: Screen) -> None:
    shown: list[str] = []

    @ui.refreshable
    def listed() -> None:
        shown[:] = screen.runs.runs
        for run in reversed(screen.runs.runs.values()):
            _Watched(screen, run)

    def follow() -> None:
        """Show what was started or removed in another window."""
        if shown != list(screen.runs.runs):
            listed.refresh()

    def start() -> None:
        problem.clear()
        screen.forget()
        if not screen.draft or screen.faults:
            with problem:
                many = f"{len(screen.faults)} things are wrong" if len(screen.faults) != 1 else "Something is wrong"
                words = f"{many} with the job:" if screen.draft else "Choose data first."
                ui.label(words).classes("ts-fault")
                for fault in screen.faults:
                    ui.label(fault.message).classes("ts-fault")
            screen.say("The job cannot run yet.")
            return
        try:
            run = screen.runs.start()
        except TablesafeError as error:
            with problem:
                show_error(error)
            return
        screen.say(f"{run.id} has started.")
        listed.refresh()

    with ui.element("section").classes("ts-card").props('aria-label="Run"'):
        ui.html("Run", tag="h2")
        ui.button("Run the job", icon="play_arrow", on_click=start).props("color=primary size=lg").classes("w-full")
        problem = ui.element("div").props("role=alert")
    screen.redraw = listed.refresh
    screen.timers.append(ui.timer(2 * TICK_S, follow))
    listed()


class _Watched:
    """One run, as it goes on."""

    def __init__(self, screen: Screen, run: Run) -> None:
        self.screen, self.run, self.points = screen, run, -1
        self.live = not run.state.ended  # news only for those who saw it go on
        with ui.element("section").classes("ts-card").props(f'aria-label="{run.id}"'):
            with ui.element("div").classes("ts-row justify-between"):
                note = f", {run.note}" if run.note else ""
                ui.label(f"{run.id}: {run.title}{note}").classes("font-medium").props("role=heading aria-level=3")
                self.state = ui.label().classes("ts-note").props("role=status aria-live=polite")
            self.bar = ui.element("div").classes("ts-bar").props("role=progressbar aria-label=Progress")
            with self.bar:
                self.fill = ui.element("div")
            self.stage = ui.label().classes("text-sm pt-1")
            self.plot = ui.html("", sanitize=False).classes("ts-plot")
            self.told = ui.element("div")
            with ui.element("div").classes("ts-row pt-2"):
                self.stop = ui.button("Stop and keep the best answer", icon="stop", on_click=self._stop)
                self.stop.props("color=negative outline")
                self.look = ui.button("Look at the result", icon="arrow_forward", on_click=self._look)
                self.look.props("color=primary")
                self.gone = ui.button("Remove", on_click=self._remove).props(
                    f'flat color=primary aria-label="Remove {run.id}"'
                )
        self.timer = ui.timer(TICK_S, self.tick)
        screen.timers.append(self.timer)
        self.tick()

    def tick(self) -> None:
        """Show where the run is."""
        run = self.run
        if self.state.is_deleted:
            self.timer.cancel()
            return
        self.state.set_text(f"{WORDS[run.state]}, {run.seconds:,.0f} s" if not run.state.ended else _ended(run))
        share = run.done / run.total if run.done is not None and run.total else None
        if run.state.ended:
            share = 1.0
        self.fill.style(replace="" if share is None else f"width: {share:.0%}")
        self.bar.classes(add="unknown" if share is None else "", remove="" if share is None else "unknown")
        self.stage.set_text("" if run.state.ended else _where(run))
        if len(run.history) != self.points or (run.history and run.stage == "protect" and not run.state.ended):
            self.points = len(run.history)
            self.plot.set_content(curve(run.history, run.search_seconds, run.search_began))
        self._buttons()
        if run.state.ended:
            self.timer.deactivate()
            self._end()

    def _buttons(self) -> None:
        run = self.run
        self.stop.set_visibility(not run.state.ended)
        self.stop.set_text(STOPS.get(run.state, "Stop and keep the best answer"))
        self.look.set_visibility(run.state.ended and bool(run.facts))
        self.gone.set_visibility(run.state.ended)

    def _end(self) -> None:
        run = self.run
        with self.told.clear():
            if run.error is not None:
                show_error(run.error)
                self.screen.blame(run.job_text, run.error)
            for warning in run.facts.get("warnings", []):
                ui.label(warning.removesuffix(AGAIN)).classes("ts-note")
        if self.live:
            self.screen.say(f"{run.id}: {_ended(run)}.")
            for listener in self.screen.after_change:
                listener()

    def _stop(self) -> None:
        self.run.stop()
        self.screen.say(f"{self.run.id}: stopping.")
        self.tick()

    def _look(self) -> None:
        self.screen.shown_run = self.run.id
        ui.navigate.to("/result")

    async def _remove(self) -> None:
        await self.screen.runs.remove(self.run.id)
        self.screen.say(f"{self.run.id} is removed.")
        self.screen.redraw()


def _where(run: Run) -> str:
    """What a run is doing now."""
    told = f"{run.message}{run.detail}"
    return f"{STAGES[run.stage]}: {told}" if run.stage in STAGES else told


def _ended(run: Run) -> str:
    """How a run ended, in a few words."""
    words = WORDS[run.state] + (": safe" if run.safe else "")
    return f"{words}, after {run.seconds:,.1f} s"
