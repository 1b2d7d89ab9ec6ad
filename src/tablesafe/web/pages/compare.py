"""A part of the page Compare: releases of one table as points, what they cost against what they leave open."""

from __future__ import annotations

import copy
from typing import Any

from nicegui import ui

from tablesafe.core.errors import TablesafeError
from tablesafe.web.drafts import draft_of
from tablesafe.web.forms import Entry, method_forms, read, written
from tablesafe.web.pages.progress import STAGES, WORDS
from tablesafe.web.pages.screen import Screen, heading, named, show_error
from tablesafe.web.pages.tables import TableView, shown, table
from tablesafe.web.pages.waiting import TICK_S, Watched, computed
from tablesafe.web.runs import Run
from tablesafe.web.speech import aria, numeral, say
from tablesafe.web.tasks import results as outcomes

LOSS = {"value": "value withheld or moved, all levels", "cells": "cells withheld or changed, all levels"}
RISK = {"guessed": "guessed by an attack", "open": "open to the audit", "room": "least room, in protection levels"}
COLUMNS = {
    "percent of value lost at the finest level": "value lost, finest level, %",
    "percent of cells lost at the finest level": "cells lost, finest level, %",
    "percent of value lost": "value lost, all levels, %", "percent of cells lost": "cells lost, all levels, %",
    "cells withheld": "withheld",
    "cells changed": "changed", "percent guessed": "guessed, %", "percent open": "open, %", "least room": "least room",
    "seconds": "seconds",
}  # fmt: skip
"""Measures that are listed below the picture."""


class FrontierCard:
    """Measure the finished runs of one table alike, by the rules of one of them, and draw them."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.loss, self.risk = "value", "guessed"
        self.rows: dict[str, Any] = {}
        self.told: ui.element | None = None
        self.box = ui.element("section").classes("ts-card").props(aria("Risk against loss"))
        self.refresh()

    def refresh(self) -> None:
        """Draw the card anew: there are other finished runs."""
        finished = [run for run in self.screen.runs.runs.values() if run.facts]
        self.box.set_visibility(len(finished) > 1)
        with self.box.clear():
            ui.html(say("Risk against loss"), tag="h2")
            ui.label(
                say(
                    "Every release of the same table as a point: what it costs its users, and what it leaves to an "
                    "intruder. All are audited and attacked alike, by the rules of one run."
                )
            ).classes("ts-note")
            if len(finished) < 2:
                return
            self._choices(finished)
            self.problem = ui.element("div").props("role=alert")
            self.going = ui.element("div").classes("w-full")
        self._watch()

    def _choices(self, finished: list[Run]) -> None:
        problems = {run.facts["problem"]: run for run in finished}  # the last run of each
        rules = {run.id: say("those of {run}", run=run.id) for run in problems.values()}
        self.by = finished[-1].id
        with ui.element("div").classes("ts-row pt-2"):
            if len(rules) > 1:
                ui.select(
                    rules, value=self.by, label=say("Rules"), on_change=lambda e: self._judged_by(str(e.value))
                ).props("outlined dense").classes("min-w-44")
            self.measure_button = ui.button(say("Measure"), icon="scatter_plot", on_click=self.measure)
            self.measure_button.props("color=primary")
            self.which = ui.label().classes("ts-note grow")
        self._judged_by(self.by)

    def _judged_by(self, run: str) -> None:
        self.by, names = run, self._names(run)
        self.which.set_text(
            say("{many} releases of the table of {run}: {names}.", many=len(names), run=run, names=", ".join(names))
        )
        self.measure_button.set_enabled(len(names) > 1)

    def _names(self, yardstick: str) -> dict[str, str]:
        """The runs of the same table, and what they are called in the picture."""
        table = self.screen.runs.get(yardstick).facts["table"]
        every = [run for run in self.screen.runs.runs.values() if run.facts and run.facts["table"] == table]
        return {run.id: _called(run) for run in every}

    def measure(self) -> None:
        """Begin, in the background."""
        self.problem.clear()
        try:
            self.screen.runs.measure(self._names(self.by), self.by)
        except TablesafeError as error:
            with self.problem:
                show_error(error)
            return
        self._watch()

    def _watch(self) -> None:
        work = self.screen.runs.measuring
        if work is not None:
            with self.going.clear():
                Watched(self.screen, work, self._found)

    def _found(self, found: dict[str, Any]) -> None:
        """What is known so far: measures to choose, the picture, the numbers."""
        kept = {run: row for run, row in found.get("rows", {}).items() if run in self.screen.runs.runs}
        if not kept:
            return
        self.rows = kept
        with ui.element("div").classes("ts-row py-2"):
            ui.select(
                {key: say(words) for key, words in LOSS.items()},
                value=self.loss,
                label=say("Loss"),
                on_change=lambda e: self._by(loss=str(e.value)),
            ).props("outlined dense").classes("min-w-52")
            ui.select(
                {key: say(words) for key, words in RISK.items()},
                value=self.risk,
                label=say("Risk"),
                on_change=lambda e: self._by(risk=str(e.value)),
            ).props("outlined dense").classes("min-w-60")
        self.told = ui.element("div").classes("w-full")
        ui.timer(0.01, self._draw, once=True)

    async def _by(self, *, loss: str | None = None, risk: str | None = None) -> None:
        self.loss, self.risk = loss or self.loss, risk or self.risk
        await self._draw()

    async def _draw(self) -> None:
        holder = self.told
        if holder is None or holder.is_deleted:
            return
        rows = list(self.rows.values())
        holder.clear()
        found = await computed(self.screen, holder, outcomes.frontier_plot, rows, self.loss, self.risk)
        if found is None:
            return
        with holder.clear():
            ui.html(found["svg"], sanitize=False).classes("ts-plot")
            self._table(found["efficient"])
        best = [run for run, good in zip(self.rows, found["efficient"], strict=True) if good]
        self.screen.say(say("{rows} releases are drawn; efficient: {best}.", rows=len(rows), best=", ".join(best)))

    def _table(self, efficient: list[bool]) -> None:
        box = ui.element("div").classes("ts-scroll").props("tabindex=0 " + aria("Measures of the releases"))
        with box, ui.element("table").classes("ts-list"):
            with ui.element("thead"), ui.element("tr"):
                for head in ("release", "efficient", *COLUMNS.values(), "job"):
                    with ui.element("th").props("scope=col").classes("num" if head in COLUMNS.values() else ""):
                        ui.label(say(head))
            with ui.element("tbody"):
                for (run, row), good in zip(self.rows.items(), efficient, strict=True):
                    with ui.element("tr"):
                        self._line(run, row, good)

    def _line(self, run: str, row: dict[str, Any], good: bool) -> None:
        with ui.element("th").props("scope=row"):
            ui.label(str(row["name"]))
        with ui.element("td"):
            ui.label(say("✓ yes") if good else say("no"))
        for key in COLUMNS:
            with ui.element("td").classes("num"):
                ui.label("∞" if row[key] == float("inf") else shown(row[key]))
        with ui.element("td"):
            take = ui.button(say("Take"), on_click=lambda: self._take(run)).props("flat dense color=primary")
            named(take, say("Make the job of {run} the one that is edited", run=run))

    def _take(self, run: str) -> None:
        """Go on from a run: its job becomes the one that is edited."""
        self.screen.replace_draft(draft_of(self.screen.runs.get(run).job_text))
        self.screen.say(say("The job is now that of {run}.", run=run))


def _called(run: Run) -> str:
    """A run in a few words: what is special about it, or its method."""
    return f"{run.id}: {say(run.note) if run.note else run.facts['words']}"


# A part of the page Compare: the same job with several values of one option of its method, each a run of its own.


MOST_VALUES = 8
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
        with ui.element("section").classes("ts-card").props(aria("Try several values")):
            ui.html(say("Try several values"), tag="h2")
            if not self.entries:
                ui.label(say("Choose a method that has options first.")).classes("ts-note")
                return
            method = screen.get(("method", "name")) or "suppress"
            ui.label(
                say(
                    "Runs the job as it is now once for each value of one option of the method {method}. The job "
                    "itself stays as it is; each run keeps a job file of its own.",
                    method=method,
                )
            ).classes("ts-note")
            self._form()
            self.problem = ui.element("div").props("role=alert")

    def _form(self) -> None:
        first = next((name for name in LIKELY if name in self.entries), next(iter(self.entries)))
        with ui.element("div").classes("ts-row pt-2"):
            self.option = ui.select(
                list(self.entries), value=first, label=say("Option"), on_change=lambda e: self._chosen(str(e.value))
            )
            self.option.props("outlined dense").classes("min-w-52")
            self.values = ui.input(say("Values, separated by commas")).props("outlined dense stack-label")
            self.values.classes("grow min-w-64").on("keydown.enter", self.start)
            ui.button(say("Run them"), icon="playlist_play", on_click=self.start).props("color=primary")
        self.help = ui.label().classes("ts-note")
        self._chosen(first)

    def _chosen(self, name: str) -> None:
        entry = self.entries[name]
        self.values.set_value(", ".join(_suggested(entry, self.screen.get(("method", name)))))
        told = say(entry.help)
        self.help.set_text(told[:1].upper() + told[1:] + ".")

    def start(self) -> None:
        """Start a run for each value, or none if one of them is wrong: the message is the command line's."""
        screen, entry = self.screen, self.entries[str(self.option.value)]
        texts = list(dict.fromkeys(part.strip() for part in str(self.values.value or "").split(",") if part.strip()))
        self.problem.clear()
        screen.forget()
        try:
            drafts = {text: _varied(screen.draft, entry, text) for text in texts[:MOST_VALUES]}
            for draft in drafts.values():
                screen.workspace.job(draft)
            started = [screen.runs.start(draft, f"{entry.name} = {text}") for text, draft in drafts.items()]
        except TablesafeError as error:
            with self.problem:
                show_error(error)
            screen.say(say("These values cannot be tried."))
            return
        if not started:
            with self.problem:
                ui.label(say("Write at least one value.")).classes("ts-fault")
            return
        more = f" Only {MOST_VALUES} values are tried at a time." if len(texts) > MOST_VALUES else ""
        screen.say(say("{runs} wait for their turn.{more}", runs=", ".join(run.id for run in started), more=more))
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
        return list(entry.choices)[:MOST_VALUES]
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
        self.box = ui.element("section").classes("ts-card").props(aria("Runs under way"))
        self.lines: dict[str, _Line] = {}
        self.tick()

    def tick(self) -> None:
        """Show where the runs are."""
        going = {run.id: run for run in self.screen.runs.runs.values() if not run.state.ended}
        self.box.set_visibility(bool(going))
        if set(going) != set(self.lines):
            with self.box.clear():
                ui.html(say("Runs under way"), tag="h2")
                self.lines = {name: _Line(self.screen, run) for name, run in going.items()}
        for line in self.lines.values():
            line.tick()


class _Line:
    def __init__(self, screen: Screen, run: Run) -> None:
        self.run = run
        with ui.element("div").classes("ts-row"):
            ui.label(run.id + (f": {say(run.note)}" if run.note else f": {run.title}")).classes("font-medium min-w-40")
            self.state = ui.label().classes("ts-note grow")
            named(
                ui.button(say("Stop"), on_click=run.stop).props("flat dense color=negative"),
                say("Stop {run}", run=run.id),
            )

    def tick(self) -> None:
        """Show where the run is."""
        run = self.run
        best = [point.incumbent for point in run.history if point.incumbent is not None]
        cost = f", {say('best {cost}', cost=numeral(best[-1], ',.6g'))}" if best else ""
        doing = f": {say(STAGES.get(run.stage, run.stage))}{cost}" if run.stage else ""
        told = say("{state}, {seconds:,.0f} s", state=say(WORDS[run.state]), seconds=run.seconds)
        self.state.set_text(f"{told}{doing}")


# The page Compare: several values of an option, releases as points of risk and loss, tables side by side.


MOST = 4
"""Tables that fit side by side."""


def page(screen: Screen) -> None:
    """Build the page."""
    heading(
        say("Compare"),
        say(
            "Try several values of an option, see what each release costs and leaves open, and look at releases of the "
            "same table side by side."
        ),
    )
    Sweep(screen)
    under_way, card = UnderWay(screen), FrontierCard(screen)
    pairs = _Pairs(screen)

    def tick() -> None:
        if under_way.box.is_deleted:
            timer.cancel()
            return
        under_way.tick()
        if pairs.changed():
            card.refresh()

    timer = ui.timer(TICK_S, tick)
    screen.timers.append(timer)
    screen.on_page.append(under_way.tick)


class _Pairs:
    """The runs that are shown side by side, to be chosen from those that are finished."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        with ui.element("section").classes("ts-card").props(aria("Side by side")):
            ui.html(say("Side by side"), tag="h2")
            self.few = ui.label(say("Two finished runs are needed: change the rules or the method, and run again."))
            self.few.classes("ts-note")
            self.picked = ui.select({}, multiple=True, label=say("Runs"), on_change=lambda e: self._draw(list(e.value)))
            self.picked.props("outlined dense use-chips").classes("mb-4 w-full max-w-3xl")
            self.holder = ui.element("div").classes("w-full")
        self.known: list[str] = []
        self.changed()

    def changed(self) -> bool:
        """Offer the runs that have finished since; whether there are any others than before."""
        finished = self._finished()
        if list(finished) == self.known:
            return False
        first, self.known = not self.picked.value, list(finished)
        self.few.set_visibility(len(finished) < 2)
        self.picked.set_visibility(len(finished) > 1)
        titles = {name: f"{_called(run)}, {say(run.facts['status'])}" for name, run in finished.items()}
        kept = [name for name in self.picked.value or [] if name in titles]
        start = list(titles)[-2:] if first and len(titles) > 1 else kept
        self.picked.set_options(titles, value=start)
        return True

    def _finished(self) -> dict[str, Run]:
        return {run.id: run for run in self.screen.runs.runs.values() if run.facts and run.state.ended}

    async def _draw(self, names: list[str]) -> None:
        finished = self._finished()
        await _side_by_side(self.screen, finished, [name for name in names if name in finished][:MOST], self.holder)


async def _side_by_side(screen: Screen, runs: dict[str, Run], names: list[str], holder: ui.element) -> None:
    if len(names) < 2:
        with holder.clear():
            ui.label(say("Choose two runs or more.")).classes("ts-note")
        return
    same = len({runs[name].facts["table"] for name in names}) == 1
    try:
        rows = await screen.compute(outcomes.measures, names)
    except TablesafeError as error:
        with holder.clear():
            show_error(error)
        return
    if holder.is_deleted:
        return
    with holder.clear():
        with ui.element("section").classes("w-full pb-4").props(aria("Loss and risk")):
            ui.html(say("Loss and risk"), tag="h3")
            _measures(rows)
        with ui.element("section").classes("w-full").props(aria("Tables side by side")):
            ui.html(say("Tables side by side"), tag="h3")
            if not same:
                ui.label(say("These runs are not of the same table: their cells differ.")).classes("ts-fault").props(
                    "role=alert"
                )
                return
            views: dict[str, dict[str, Any]] = {
                _called(runs[name]): {
                    "of": {"run": name}, "against": [other for other in names if other != name],
                }
                for name in names
            }  # fmt: skip
            inside = ui.element("div").classes("w-full")
    await TableView(screen, inside).show(views)
    screen.say(say("{names} releases side by side.", names=len(names)))


def _measures(rows: list[dict[str, Any]]) -> None:
    """A column per release, a line per measure; lines in which all are empty are left out."""
    keys = [key for key in rows[0] if key != "run" and any(row[key] for row in rows)]
    lines = [[say(key), *(say(str(row[key])) for row in rows)] for key in keys]
    with ui.element("div").classes("ts-whole"):
        table(["", *(str(row["run"]) for row in rows)], lines)
