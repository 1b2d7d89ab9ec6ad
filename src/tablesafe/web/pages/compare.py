"""The page Compare: two or more releases of the same table side by side, with what they cost and how safe they are."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from tablesafe.errors import TablesafeError
from tablesafe.web.pages import outcomes
from tablesafe.web.pages.screen import Screen, heading, show_error
from tablesafe.web.pages.sections import table
from tablesafe.web.pages.tableview import TableView
from tablesafe.web.runs import Run

MOST = 4
"""Tables that fit side by side."""


def page(screen: Screen) -> None:
    """Build the page."""
    heading("Compare", "Look at several releases of the same table side by side. Cells that differ have a frame.")
    finished = {run.id: run for run in screen.runs.runs.values() if run.facts}
    if len(finished) < 2:
        ui.label("Two finished runs are needed: change the rules or the method, and run again.").classes("ts-card")
        return
    titles = {name: f"{name}: {run.facts['method']}, {run.facts['status']}" for name, run in finished.items()}

    async def draw(names: list[str]) -> None:
        await _side_by_side(screen, finished, names[:MOST], holder)

    start = list(finished)[-2:]
    picked = ui.select(titles, value=start, multiple=True, label="Runs", on_change=lambda e: draw(list(e.value)))
    picked.props("outlined dense use-chips").classes("mb-4 min-w-96")
    holder = ui.element("div").classes("w-full")
    ui.timer(0.01, lambda: draw(start), once=True)


async def _side_by_side(screen: Screen, runs: dict[str, Run], names: list[str], holder: ui.element) -> None:
    if len(names) < 2:
        with holder.clear():
            ui.label("Choose two runs or more.").classes("ts-note")
        return
    try:
        same = await screen.compute(outcomes.comparable, names)
        rows = await screen.compute(outcomes.measures, names)
    except TablesafeError as error:
        with holder.clear():
            show_error(error)
        return
    if holder.is_deleted:
        return
    with holder.clear():
        with ui.element("section").classes("ts-card").props('aria-label="Loss and risk"'):
            ui.html("Loss and risk", tag="h2")
            _measures(rows)
        with ui.element("section").classes("ts-card").props('aria-label="Tables side by side"'):
            ui.html("Tables side by side", tag="h2")
            if not same:
                ui.label("These runs are not of the same table: their cells differ.").classes("ts-fault").props(
                    "role=alert"
                )
                return
            views: dict[str, dict[str, Any]] = {
                f"{name}: {runs[name].facts['method']}": {
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
