"""A part of the page Compare: releases of one table as points, what they cost against what they leave open."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from tablesafe.core.errors import TablesafeError
from tablesafe.web.drafts import draft_of
from tablesafe.web.pages import outcomes
from tablesafe.web.pages.lists import shown
from tablesafe.web.pages.screen import Screen, named, show_error
from tablesafe.web.pages.waiting import Watched, computed
from tablesafe.web.runs import Run

LOSS = {"value": "value withheld or moved", "cells": "cells withheld or changed"}
RISK = {"guessed": "guessed by an attack", "open": "open to the audit", "room": "least room, in protection levels"}
COLUMNS = {
    "percent of value lost": "value lost, %", "percent of cells lost": "cells lost, %", "cells withheld": "withheld",
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
        self.box = ui.element("section").classes("ts-card").props('aria-label="Risk against loss"')
        self.refresh()

    def refresh(self) -> None:
        """Draw the card anew: there are other finished runs."""
        finished = [run for run in self.screen.runs.runs.values() if run.facts]
        self.box.set_visibility(len(finished) > 1)
        with self.box.clear():
            ui.html("Risk against loss", tag="h2")
            ui.label(
                "Every release of the same table as a point: what it costs its users, and what it leaves to an "
                "intruder. All are audited and attacked alike, by the rules of one run."
            ).classes("ts-note")
            if len(finished) < 2:
                return
            self._choices(finished)
            self.problem = ui.element("div").props("role=alert")
            self.going = ui.element("div").classes("w-full")
        self._watch()

    def _choices(self, finished: list[Run]) -> None:
        problems = {run.facts["problem"]: run for run in finished}  # the last run of each
        rules = {run.id: f"those of {run.id}" for run in problems.values()}
        self.by = finished[-1].id
        with ui.element("div").classes("ts-row pt-2"):
            if len(rules) > 1:
                ui.select(rules, value=self.by, label="Rules", on_change=lambda e: self._judged_by(str(e.value))).props(
                    "outlined dense"
                ).classes("min-w-44")
            self.measure_button = ui.button("Measure", icon="scatter_plot", on_click=self.measure)
            self.measure_button.props("color=primary")
            self.which = ui.label().classes("ts-note grow")
        self._judged_by(self.by)

    def _judged_by(self, run: str) -> None:
        self.by, names = run, self._names(run)
        self.which.set_text(f"{len(names)} releases of the table of {run}: {', '.join(names)}.")
        self.measure_button.set_enabled(len(names) > 1)

    def _names(self, yardstick: str) -> dict[str, str]:
        """The runs of the same table, and what they are called in the picture."""
        table = self.screen.runs.get(yardstick).facts["table"]
        every = [run for run in self.screen.runs.runs.values() if run.facts and run.facts["table"] == table]
        return {run.id: f"{run.id}: {run.facts['words']}" for run in every}

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
            ui.select(LOSS, value=self.loss, label="Loss", on_change=lambda e: self._by(loss=str(e.value))).props(
                "outlined dense"
            ).classes("min-w-52")
            ui.select(RISK, value=self.risk, label="Risk", on_change=lambda e: self._by(risk=str(e.value))).props(
                "outlined dense"
            ).classes("min-w-60")
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
        self.screen.say(f"{len(rows)} releases are drawn; efficient: {', '.join(best)}.")

    def _table(self, efficient: list[bool]) -> None:
        box = ui.element("div").classes("ts-scroll").props('tabindex=0 aria-label="Measures of the releases"')
        with box, ui.element("table").classes("ts-list"):
            with ui.element("thead"), ui.element("tr"):
                for head in ("release", "efficient", *COLUMNS.values(), "job"):
                    with ui.element("th").props("scope=col").classes("num" if head in COLUMNS.values() else ""):
                        ui.label(head)
            with ui.element("tbody"):
                for (run, row), good in zip(self.rows.items(), efficient, strict=True):
                    with ui.element("tr"):
                        self._line(run, row, good)

    def _line(self, run: str, row: dict[str, Any], good: bool) -> None:
        with ui.element("th").props("scope=row"):
            ui.label(str(row["name"]))
        with ui.element("td"):
            ui.label("✓ yes" if good else "no")
        for key in COLUMNS:
            with ui.element("td").classes("num"):
                ui.label("∞" if row[key] == float("inf") else shown(row[key]))
        with ui.element("td"):
            take = ui.button("Take", on_click=lambda: self._take(run)).props("flat dense color=primary")
            named(take, f"Make the job of {run} the one that is edited")

    def _take(self, run: str) -> None:
        """Go on from a run: its job becomes the one that is edited."""
        self.screen.replace_draft(draft_of(self.screen.runs.get(run).job_text))
        self.screen.say(f"The job is now that of {run}.")
