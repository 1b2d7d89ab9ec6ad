"""A part of the page Compare: the same job with several values of one option of its method, each a run of its own."""

from __future__ import annotations

import copy
from typing import Any

from nicegui import ui

from tablesafe.core.errors import TablesafeError
from tablesafe.web.forms import Entry, method_forms, read, written
from tablesafe.web.pages.method import STAGES, WORDS
from tablesafe.web.pages.screen import Screen, named, show_error
from tablesafe.web.runs import Run

MOST = 8
"""Values that are tried at a time."""
SWEPT = ("number", "whole", "amount", "choice", "switch")
"""Kinds of options that have values to try."""
LIKELY: tuple[str, ...] = ("base", "capacity_percent", "cost")
"""Options that are tried first, where a method has them."""


class Sweep:
    """Choose an option and its values, start the runs, and see how far they are."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.entries = {entry.name: entry for entry in _options(screen)}
        with ui.element("section").classes("ts-card").props('aria-label="Try several values"'):
            ui.html("Try several values", tag="h2")
            if not self.entries:
                ui.label("Choose a method that has options first.").classes("ts-note")
                return
            method = screen.get(("method", "name")) or "suppress"
            ui.label(
                f"Runs the job as it is now once for each value of one option of the method {method}. The job itself "
                "stays as it is; each run keeps a job file of its own."
            ).classes("ts-note")
            self._form()
            self.problem = ui.element("div").props("role=alert")

    def _form(self) -> None:
        first = next((name for name in LIKELY if name in self.entries), next(iter(self.entries)))
        with ui.element("div").classes("ts-row pt-2"):
            self.option = ui.select(
                list(self.entries), value=first, label="Option", on_change=lambda e: self._chosen(str(e.value))
            )
            self.option.props("outlined dense").classes("min-w-52")
            self.values = ui.input("Values, separated by commas").props("outlined dense stack-label")
            self.values.classes("grow min-w-64").on("keydown.enter", self.start)
            ui.button("Run them", icon="playlist_play", on_click=self.start).props("color=primary")
        self.help = ui.label().classes("ts-note")
        self._chosen(first)

    def _chosen(self, name: str) -> None:
        entry = self.entries[name]
        self.values.set_value(", ".join(_suggested(entry, self.screen.get(("method", name)))))
        self.help.set_text(entry.help[:1].upper() + entry.help[1:] + ".")

    def start(self) -> None:
        """Start a run for each value, or none if one of them is wrong: the message is the command line's."""
        screen, entry = self.screen, self.entries[str(self.option.value)]
        texts = list(dict.fromkeys(part.strip() for part in str(self.values.value or "").split(",") if part.strip()))
        self.problem.clear()
        screen.forget()
        try:
            drafts = {text: _varied(screen.draft, entry, text) for text in texts[:MOST]}
            for draft in drafts.values():
                screen.workspace.job(draft)
            started = [screen.runs.start(draft, f"{entry.name} = {text}") for text, draft in drafts.items()]
        except TablesafeError as error:
            with self.problem:
                show_error(error)
            screen.say("These values cannot be tried.")
            return
        if not started:
            with self.problem:
                ui.label("Write at least one value.").classes("ts-fault")
            return
        more = f" Only {MOST} values are tried at a time." if len(texts) > MOST else ""
        screen.say(f"{', '.join(run.id for run in started)} are waiting their turn.{more}")
        for listener in screen.on_page:
            listener()


def _options(screen: Screen) -> list[Entry]:
    """The options of the job's method that have values to try; none as long as there is no job."""
    form = method_forms().get(str(screen.get(("method", "name")) or "suppress")) if screen.draft else None
    return [] if form is None else [entry for entry in form.entries if entry.widget in SWEPT]


def _varied(draft: dict[str, Any], entry: Entry, text: str) -> dict[str, Any]:
    """The draft with another value of one option."""
    varied = copy.deepcopy(draft)
    value = text in {"yes", "true"} if entry.widget == "switch" else read(entry, text)
    varied.setdefault("method", {"name": "suppress"})[entry.name] = value
    return varied


def _suggested(entry: Entry, now: Any) -> list[str]:
    """Values to begin with: all choices, or half, once and twice what holds now."""
    if entry.widget == "switch":
        return ["no", "yes"]
    if entry.choices:
        return list(entry.choices)[:MOST]
    usual = now if isinstance(now, int | float) and not isinstance(now, bool) else entry.default
    if not isinstance(usual, int | float) or isinstance(usual, bool):
        return []
    some = [usual / 2, usual, usual * 2] if usual else [0, 1, 2]
    if entry.widget == "whole":
        some = sorted({max(round(number), 0) for number in some})
    return [written(entry, number) for number in some]


class UnderWay:
    """The runs that wait or go on, each with its stop; they vanish when they end."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.box = ui.element("section").classes("ts-card").props('aria-label="Runs under way"')
        self.lines: dict[str, _Line] = {}
        self.tick()

    def tick(self) -> None:
        """Show where the runs are."""
        going = {run.id: run for run in self.screen.runs.runs.values() if not run.state.ended}
        self.box.set_visibility(bool(going))
        if set(going) != set(self.lines):
            with self.box.clear():
                ui.html("Runs under way", tag="h2")
                self.lines = {name: _Line(self.screen, run) for name, run in going.items()}
        for line in self.lines.values():
            line.tick()


class _Line:
    def __init__(self, screen: Screen, run: Run) -> None:
        self.run = run
        with ui.element("div").classes("ts-row"):
            ui.label(run.id + (f": {run.note}" if run.note else f": {run.title}")).classes("font-medium min-w-40")
            self.state = ui.label().classes("ts-note grow")
            named(ui.button("Stop", on_click=run.stop).props("flat dense color=negative"), f"Stop {run.id}")

    def tick(self) -> None:
        """Show where the run is."""
        run = self.run
        doing = f": {STAGES.get(run.stage, run.stage)}{run.detail}" if run.stage else ""
        self.state.set_text(f"{WORDS[run.state]}, {run.seconds:,.0f} s{doing}")
