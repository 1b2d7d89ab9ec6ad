"""Waiting for what a process computes: a spinner for what is soon there, progress and a stop for what takes long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import ui

from tablesafe.core.errors import TablesafeError
from tablesafe.web.pages.screen import Screen, show_error
from tablesafe.web.runs import Background
from tablesafe.web.speech import aria, say

TICK_S = 0.5
"""Seconds between two looks at what is under way."""


async def computed(
    screen: Screen,
    holder: ui.element,
    task: Any,
    *arguments: Any,
    so_far: Callable[[dict[str, Any]], object] | None = None,
) -> Any:
    """What a task gives, with a spinner in the place until it does; None when there is an error, which is shown.

    `so_far` draws what the task tells while it goes on, above the spinner.
    """

    def draw(event: dict[str, Any]) -> None:
        if so_far is not None and not holder.is_deleted:
            with holder.clear():
                so_far(event)
                ui.spinner()

    with holder:  # it may hold the timer that this goes on in: it is not emptied here
        ui.spinner()
    try:
        found = await screen.compute(task, *arguments, tell=draw)
    except TablesafeError as error:
        if not holder.is_deleted:
            with holder.clear():
                show_error(error, screen)
        return None
    if holder.is_deleted:
        return None
    holder.clear()
    return found


class Watched:
    """Work in the background as it goes on, with a stop, and what it has found so far."""

    def __init__(self, screen: Screen, work: Background, draw: Callable[[dict[str, Any]], object]) -> None:
        self.screen, self.work, self.draw = screen, work, draw
        self.live = not work.state.ended  # news only for those who saw it go on
        self.drawn: dict[str, Any] | None = None
        with ui.element("div").classes("ts-row pt-3"):
            self.state = ui.label().classes("font-medium").props("role=status aria-live=polite")
            self.stop = ui.button(say("Stop"), icon="stop", on_click=work.stop).props("outline dense color=negative")
        self.bar = ui.element("div").classes("ts-bar my-1").props("role=progressbar " + aria("Progress"))
        with self.bar:
            self.fill = ui.element("div")
        self.fault = ui.element("div")
        self.box = ui.element("div").classes("w-full")
        self.timer = ui.timer(TICK_S, self.tick)
        screen.timers.append(self.timer)
        self.tick()

    def tick(self) -> None:
        """Show where it is."""
        work = self.work
        if self.state.is_deleted:
            self.timer.cancel()
            return
        self.state.set_text(say(work.message))
        self.stop.set_visibility(not work.state.ended)
        self.bar.set_visibility(not work.state.ended)
        share = work.done / work.total if work.done is not None and work.total else None
        self.fill.style(replace="" if share is None else f"width: {share:.0%}")
        self.bar.classes(add="unknown" if not share else "", remove="" if not share else "unknown")
        if work.found and work.found is not self.drawn:
            self.drawn = work.found
            with self.box.clear():
                self.draw(work.found)
        if work.state.ended:
            self.timer.deactivate()
            if work.error is not None:
                with self.fault.clear():
                    show_error(work.error)
            if self.live:
                self.screen.say(say(work.message))
