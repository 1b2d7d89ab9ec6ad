"""The page Method: choose how to protect, run it in the background, watch it, stop it."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import ui

from tablesafe.core.errors import TablesafeError
from tablesafe.job.model import AttackOptions, AuditOptions, Output, RunOptions
from tablesafe.web.forms import form_of
from tablesafe.web.pages.fields import chosen, fields, folded, plain
from tablesafe.web.pages.merging import offer
from tablesafe.web.pages.progress import STAGES, WORDS, Stage, curve, share_done, stages, stopping, time_left
from tablesafe.web.pages.screen import Screen, heading, say_error, show_error
from tablesafe.web.pages.waiting import TICK_S
from tablesafe.web.runs import Run, State
from tablesafe.web.speech import aria, say
from tablesafe.web.steps import note_look

SECTIONS = (("Audit", AuditOptions, "audit"), ("Attack", AttackOptions, "attack"), ("Output", Output, "output"),
            ("Where the work is done", RunOptions, "run"))  # fmt: skip
KEEPING = "Stop and keep the best answer"
STOPS = {State.QUEUED: "Do not run it", State.STOPPING: "End now, keep nothing"}
"""What the button does that stops a run, where it does not keep an answer."""
AGAIN = " Interrupt again to stop."
"""What a method says to those at a terminal; here the run is over when it is read."""
SIGNS = {"done": "✓", "now": "▸", "later": "○"}
"""How a stage of a run is marked."""


def page(screen: Screen) -> None:
    """Build the page."""
    heading(
        say("Method"),
        say("Choose how to protect the sensitive cells, then run. The release is audited before it is written."),
    )
    screen.fault_list()
    with ui.element("div").classes("ts-cols wide"):
        with ui.element("div"):
            with ui.element("section").classes("ts-card").props(aria("Method")):
                ui.html(say("Method"), tag="h2")
                if screen.get(("method",)) is None and screen.draft:
                    screen.draft["method"] = {"name": "suppress"}
                chosen(screen, "method", ("method",))
                screen.fault_line(("method",))
            for title, kind, at in SECTIONS:
                folded(say(title), partial(_section, screen, kind, at))
        with ui.element("div").classes("sticky top-16"):
            _runs(screen)


def _section(screen: Screen, kind: type[Any], at: str) -> None:
    form = form_of(kind)
    ui.label(say(plain(form.summary))).classes("ts-note")
    fields(screen, form, (at,))


def _runs(screen: Screen) -> None:
    shown: list[str] = []

    @ui.refreshable
    def listed() -> None:
        shown[:] = screen.runs.runs
        for number, run in enumerate(reversed(screen.runs.runs.values())):
            _Watched(screen, run, newest=number == 0)

    def follow() -> None:
        """Show what was started or removed in another window."""
        if shown != list(screen.runs.runs):
            listed.refresh()

    def start() -> None:
        problem.clear()
        screen.forget()
        if not screen.draft or screen.faults:
            with problem:
                wrong = "Something is wrong with the job:" if screen.draft else "Choose data first."
                ui.label(say(wrong)).classes("ts-fault")
                for fault in screen.faults:
                    ui.label(say_error(fault.message)).classes("ts-fault")
            screen.say(say("The job cannot run yet."))
            return
        try:
            run = screen.runs.start()
        except TablesafeError as error:
            with problem:
                show_error(error)
            return
        note_look(screen.workspace, "Method")
        screen.say(say("{run} has started.", run=run.id))
        listed.refresh()
        screen.refresh()

    with ui.element("section").classes("ts-card").props(aria("Run")):
        ui.html(say("Run"), tag="h2")
        ui.button(say("Run the job"), icon="play_arrow", on_click=start).props("color=primary size=lg").classes(
            "w-full"
        )
        problem = ui.element("div").props("role=alert")
    screen.redraw = listed.refresh
    screen.timers.append(ui.timer(2 * TICK_S, follow))
    listed()


class _Watched:
    """One run, as it goes on."""

    def __init__(self, screen: Screen, run: Run, *, newest: bool) -> None:
        self.screen, self.run, self.points, self.newest = screen, run, -1, newest
        self.live = not run.state.ended  # news only for those who saw it go on
        self.told_stages: list[Stage] = []
        with ui.element("section").classes("ts-card").props(f'aria-label="{run.id}"'):
            with ui.element("div").classes("ts-row justify-between"):
                note = f", {say(run.note)}" if run.note else ""
                ui.label(f"{run.id}: {run.title}{note}").classes("font-medium").props("role=heading aria-level=3")
                self.state = ui.label().classes("ts-note").props("role=status aria-live=polite")
            self.bar = (
                ui.element("div")
                .classes("ts-bar")
                .props("role=progressbar aria-valuemin=0 aria-valuemax=100 " + aria("Progress"))
            )
            with self.bar:
                self.fill = ui.element("div")
            self.stage = ui.label().classes("text-sm pt-1")
            with ui.element("div" if newest or self.live else "details"):
                if not newest and not self.live:  # of earlier runs only how they ended
                    with ui.element("summary").classes("ts-note"):
                        ui.label(say("How it went")).classes("inline")
                self.lines = ui.element("ol").classes("ts-stages").props(aria("Stages"))
                self.plot = ui.html("", sanitize=False).classes("ts-plot")
            self.told = ui.element("div")
            with ui.element("div").classes("ts-row pt-2"):
                self.stop = ui.button(say(KEEPING), icon="stop", on_click=self._stop)
                self.stop.props("color=negative outline")
                self.look = ui.button(say("Look at the result"), icon="arrow_forward", on_click=self._look)
                self.look.props("color=primary")
                self.gone = ui.button(say("Remove"), on_click=self._remove).props(
                    "flat color=primary " + aria("Remove {name}", name=run.id)
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
        words = stopping(run) if run.state is State.STOPPING else say(WORDS[run.state])
        self.state.set_text(
            say("{state}, {seconds:,.0f} s", state=words, seconds=run.seconds) if not run.state.ended else _ended(run)
        )
        share = share_done(run)
        self.bar.set_visibility(not run.state.ended or bool(run.facts))
        self.fill.style(replace="" if share is None else f"width: {share:.0%}")
        self.bar.classes(add="unknown" if share is None else "", remove="" if share is None else "unknown")
        self.bar.props["aria-valuenow"] = None if share is None else round(100 * share)
        self.stage.set_text("" if run.state.ended else ", ".join(filter(None, (_where(run), time_left(run)))))
        self._stages()
        if (
            len(run.history) != self.points
            or (run.history and run.state.ended)
            or (run.history and run.stage == "protect" and not run.state.ended)
        ):
            self.points = len(run.history)
            beyond = "" if run.state.ended else run.beyond
            self.plot.set_content(curve(run.history, run.search_seconds, run.search_began, beyond=beyond))
        self._buttons()
        if run.state.ended:
            self.timer.deactivate()
            self._end()

    def _stages(self) -> None:
        """The stages, drawn anew when one of them says something else."""
        now = stages(self.run)
        if now == self.told_stages:
            return
        self.told_stages = now
        with self.lines.clear():
            for each in now:
                with ui.element("li").classes(each.mark):
                    ui.label(SIGNS[each.mark]).props("aria-hidden=true")
                    ui.label(each.words)

    def _buttons(self) -> None:
        run = self.run
        self.stop.set_visibility(not run.state.ended)
        self.stop.set_text(say(STOPS.get(run.state, KEEPING)))
        self.look.set_visibility(run.state.ended and bool(run.facts))
        self.gone.set_visibility(run.state.ended)

    def _end(self) -> None:
        run = self.run
        with self.told.clear():
            if run.error is not None:
                if self.screen.runs.outdated(run):  # what would have helped then may harm now
                    show_error(run.error)
                    ui.label(say("The job has changed since.")).classes("ts-note")
                else:
                    show_error(run.error, self.screen, (run.asked or run.job_text) if self.newest else "")
                self.screen.blame(run.job_text, run.error)
            elif run.state is State.OPEN and self.newest:
                ui.label(say("A coarser table may be easier to hide:")).classes("ts-note")
                offer(self.screen)
            for warning in run.facts.get("warnings", []):
                ui.label(warning.removesuffix(AGAIN)).classes("ts-note")
        if self.live:
            if run.facts:
                self.screen.shown_run = run.id
            self.screen.say(f"{run.id}: {_ended(run)}.")
            for listener in self.screen.after_change:
                listener()

    def _stop(self) -> None:
        self.run.stop()
        self.screen.say(say("{run}: stopping.", run=self.run.id))
        self.tick()

    def _look(self) -> None:
        self.screen.shown_run = self.run.id
        ui.navigate.to("/result")

    async def _remove(self) -> None:
        await self.screen.runs.remove(self.run.id)
        self.screen.say(say("{run} is removed.", run=self.run.id))
        self.screen.redraw()


def _where(run: Run) -> str:
    """What a run is doing now."""
    told = say(run.message)
    return f"{say(STAGES[run.stage])}: {told}" if run.stage in STAGES else told


def _ended(run: Run) -> str:
    """How a run ended, in a few words."""
    safe = "safe, but nothing is published" if run.facts.get("nothing") else "safe"
    words = say(WORDS[run.state]) + (f": {say(safe)}" if run.safe else "")
    return say("{state}, after {seconds:,.1f} s", state=words, seconds=run.seconds)
