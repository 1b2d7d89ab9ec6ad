"""The page Compare: several values of an option, releases as points of risk and loss, tables side by side."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from tablesafe.core.errors import TablesafeError
from tablesafe.web.pages import outcomes
from tablesafe.web.pages.frontier import FrontierCard
from tablesafe.web.pages.lists import table
from tablesafe.web.pages.screen import Screen, heading, show_error
from tablesafe.web.pages.sweep import Sweep, UnderWay
from tablesafe.web.pages.tableview import TableView
from tablesafe.web.runs import Run

TICK_S = 0.5
MOST = 4
"""Tables that fit side by side."""


def page(screen: Screen) -> None:
    """Build the page."""
    heading(
        "Compare",
        "Try several values of an option, see what each release costs and leaves open, and look at releases of the "
        "same table side by side.",
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
        with ui.element("section").classes("ts-card").props('aria-label="Side by side"'):
            ui.html("Side by side", tag="h2")
            self.few = ui.label("Two finished runs are needed: change the rules or the method, and run again.")
            self.few.classes("ts-note")
            self.picked = ui.select({}, multiple=True, label="Runs", on_change=lambda e: self._draw(list(e.value)))
            self.picked.props("outlined dense use-chips").classes("mb-4 min-w-96")
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
        titles = {name: f"{name}: {run.facts['words']}, {run.facts['status']}" for name, run in finished.items()}
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
            ui.label("Choose two runs or more.").classes("ts-note")
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
        with ui.element("section").classes("w-full pb-4").props('aria-label="Loss and risk"'):
            ui.html("Loss and risk", tag="h3")
            _measures(rows)
        with ui.element("section").classes("w-full").props('aria-label="Tables side by side"'):
            ui.html("Tables side by side", tag="h3")
            if not same:
                ui.label("These runs are not of the same table: their cells differ.").classes("ts-fault").props(
                    "role=alert"
                )
                return
            views: dict[str, dict[str, Any]] = {
                f"{name}: {runs[name].facts['words']}": {
                    "of": {"run": name}, "against": [other for other in names if other != name],
                }
                for name in names
            }  # fmt: skip
            inside = ui.element("div").classes("w-full")
    await TableView(screen, inside).show(views)
    screen.say(f"{len(names)} releases side by side.")


def _measures(rows: list[dict[str, Any]]) -> None:
    """A column per release, a line per measure; lines in which all are empty are left out."""
    keys = [key for key in rows[0] if key != "run" and any(row[key] for row in rows)]
    table(
        ["", *(str(row["run"]) for row in rows)], [[key, *(str(row[key]) for row in rows)] for key in keys], tall=True
    )
