"""The page Rules: choose rules and watch the sensitive cells change as the sliders move."""

from __future__ import annotations

import asyncio
from typing import Any

from nicegui import ui

from tablesafe.job.model import ProblemOptions
from tablesafe.web.forms import form_of
from tablesafe.web.pages.fields import fields, folded, rule_list
from tablesafe.web.pages.merging import merging
from tablesafe.web.pages.panel import CellPanel, decision_list
from tablesafe.web.pages.screen import Screen, heading, show_error
from tablesafe.web.pages.tables import CellList, TableView
from tablesafe.web.pages.waiting import computed
from tablesafe.web.speech import aria, numeral, say
from tablesafe.web.tasks import data as looking
from tablesafe.web.tasks import windows
from tablesafe.web.worker import TaskFailed

WAIT_S = 0.15
"""Seconds before what the rules find is computed anew: what is changed meanwhile is computed with it."""
HEADS = {"cell": "Cell", "value": "Value", "contributors": "From", "why": "By", "hide": "Hide within"}
LOOK = {"cell": "tight", "value": "num", "contributors": "num", "why": "tight"}
"""How the columns of the sensitive cells look; what is not named here may take two lines."""


def page(screen: Screen) -> None:
    """Build the page."""
    heading(
        say("Rules"), say("Say which cells are sensitive. The number and the list on the right change while you do.")
    )
    screen.fault_list()
    with ui.element("div").classes("ts-cols wide"):
        with ui.element("div"):
            if screen.holds_problem:
                ui.label(
                    say("The file says itself which cells are sensitive and how far each must be hidden.")
                ).classes("ts-card")
            screen.fault_line(("rules",))
            rule_list(screen, ("rules",))
            with ui.element("div").classes("pt-4"):
                folded(
                    say("What an attacker knows, and what must stay as it is"),
                    lambda: fields(screen, form_of(ProblemOptions), ("problem",)),
                )
        with ui.element("div").classes("sticky top-16"):
            live = _Live(screen)
    with ui.element("section").classes("ts-card mt-4").props(aria("The table")):
        ui.html(say("The table"), tag="h2")
        ui.label(say("With its sensitive cells, as the rules stand. Nothing is protected yet.")).classes("ts-note")
        holder = ui.element("div").classes("w-full")
        with ui.element("div").classes("ts-row"):
            ui.button(say("Look at the table"), icon="table_view", on_click=lambda: _look(screen, live, holder)).props(
                "outline color=primary"
            )
            ui.button(
                say("Look at a list of its cells"), icon="list", on_click=lambda: _list(screen, live, holder)
            ).props("outline color=primary")
    merging(screen)
    with ui.element("section").classes("ts-card").props(aria("Decisions")):
        ui.html(say("Decisions on single cells"), tag="h2")
        decision_list(screen)


async def _look(screen: Screen, live: _Live, holder: ui.element) -> None:
    """Show the table of the job; it follows the rules as they change."""
    if await live.counted(holder):
        live.view = TableView(screen, holder, lambda cells: CellPanel.of(screen, {"job": live.shown}).open(cells))
        await live.view.show({"job": {"of": {"job": live.shown}}}, truths=False)


async def _list(screen: Screen, live: _Live, holder: ui.element) -> None:
    """All cells of the job, to be searched and sorted; the sensitive ones first."""
    of = {"job": live.shown} if await live.counted(holder) else {}
    about = await computed(screen, holder.clear(), windows.about, {"of": of}) if of else None
    if about is not None:
        live.view = None
        with holder:
            kinds = {word: number for word, _, _, _, number in about["kinds"]}
            CellList(screen, of, kinds, lambda cells: CellPanel.of(screen, {"job": live.shown}).open(cells))


class _Live:
    """The sensitive cells of the rules as they stand; of several changes only the last is computed."""

    def __init__(self, screen: Screen) -> None:
        self.screen, self.shown, self.before, self.cells = screen, "", -1, -1
        self.view: TableView | None = None
        self.busy = self.again = False
        self.rest = asyncio.Event()
        """Set while nothing is counted, once something was."""
        with ui.element("section").classes("ts-card").props(aria("Sensitive cells")):
            ui.html(say("Sensitive cells"), tag="h2")
            self.number = ui.label("–").classes("ts-big")
            self.of = ui.label(say("Counting …")).classes("ts-note").props("role=status aria-live=polite")
            self.error = ui.element("div")
            self.rows = ui.element("div").classes("ts-scroll ts-few").props("tabindex=0")
            self.waiting = ui.element("div")  # timers live outside what is cleared
        self.regions = ui.element("section").classes("ts-card").props(aria("Where the rules draw the line"))
        self.regions.set_visibility(False)  # until there is something to draw
        with self.regions:
            ui.html(say("Where the rules draw the line"), tag="h2")
            self.plot = ui.html("", sanitize=False).classes("ts-plot")
        screen.on_page.append(self.later)
        ui.timer(0.01, self.draw, once=True)

    def later(self) -> None:
        """Compute in a moment."""
        if not self.rows.is_deleted:
            with self.waiting:
                ui.timer(WAIT_S, self.draw, once=True)

    async def counted(self, holder: ui.element) -> bool:
        """Wait for the count that goes on, if one does; whether there is a table to show in the place."""
        with holder.clear():
            ui.spinner()
        await self.rest.wait()
        if holder.is_deleted:
            return False
        with holder.clear():
            if not self.shown:
                ui.label(self.of.text).classes("ts-note")
        return bool(self.shown)

    async def draw(self) -> None:
        """Compute and show."""
        if self.busy:
            self.again = True
            return
        self.busy = True
        self.rest.clear()
        try:
            text = self._text()
            if text is not None and text != self.shown:
                self.shown = text
                found = await self.screen.compute(looking.sensitive, text)
                self._show(found)
                if self.view is not None:
                    same = found["cells"] == self.cells
                    self.view.change(of={"job": text}, **({} if same else {"turned": {}, "filters": {}}))
                self.cells = found["cells"]
                svg = await self.screen.compute(looking.regions, text)
                if not self.plot.is_deleted:
                    self.plot.set_content(svg or say("These rules do not weigh contributors."))
                    self.regions.set_visibility(True)
        except TaskFailed as error:
            if not self.error.is_deleted:
                with self.error.clear():
                    show_error(error, self.screen)
                self.number.set_text("–")
                self.of.set_text(say("They cannot be counted yet."))
                self.screen.blame(self.shown, error)
        finally:
            self.busy = False
            self.rest.set()
        if self.again:
            self.again = False
            await self.draw()

    def _text(self) -> str | None:
        """The job file, when there is nothing wrong with it."""
        if not self.screen.draft:
            self.of.set_text(say("Choose data first."))
            return None
        if not self.screen.readable:
            self.of.set_text(say("There is something wrong with the job: see the fields marked ✕."))
            return None
        return self.screen.workspace.job_text()

    def _show(self, found: dict[str, Any]) -> None:
        if self.rows.is_deleted:
            return
        self.error.clear()
        number, cells = found["sensitive"], found["cells"]
        change = number - self.before if self.before >= 0 else 0
        self.before = number
        self.number.set_text(numeral(number))
        moved = say("{change:,} more than before" if change > 0 else "{change:,} fewer than before", change=abs(change))
        by = "; ".join(f"{name}: {numeral(count)}" for name, count in found["by_rule"].items())
        self.of.set_text(
            say(
                "of {cells:,} cells ({share:.1%}), {moved}. {by}"
                if change
                else "of {cells:,} cells ({share:.1%}). {by}",
                cells=cells,
                share=number / max(cells, 1),
                moved=moved,
                by=by,
            )
        )
        with self.rows.clear():
            _cells(found["rows"], number)


def _cells(rows: list[dict[str, Any]], number: int) -> None:
    if not rows:
        ui.label(say("No cell is sensitive.")).classes("ts-note")
        return
    counted = rows[0]["contributors"] is not None
    heads = {key: say(head) for key, head in HEADS.items() if counted or key != "contributors"}
    with ui.element("table").classes("ts-list small"):
        with ui.element("thead"), ui.element("tr"):
            for key, head in heads.items():
                ui.html(head, tag="th").props("scope=col").classes("num" if key in {"value", "contributors"} else "")
        with ui.element("tbody"):
            for row in rows:
                with ui.element("tr"):
                    for key in heads:
                        cell = ui.element("td").classes(LOOK.get(key, ""))
                        cell.props["data-head"] = heads[key]
                        with cell:
                            ui.label(str(row[key]))
    if number > len(rows):
        ui.label(say("The {many} largest of {number:,}.", many=len(rows), number=number)).classes("ts-note pt-1")
