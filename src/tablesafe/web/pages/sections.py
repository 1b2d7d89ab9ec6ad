"""Parts of the page Result, each drawn when it is first looked at: table, sensitive cells, plots, attacks, loss."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from tablesafe.attack.registry import ATTACKS
from tablesafe.errors import TablesafeError
from tablesafe.web.pages import outcomes
from tablesafe.web.pages.screen import Screen, show_error
from tablesafe.web.pages.tableview import TableView
from tablesafe.web.runs import Attack, Run, State

TICK_S = 0.5
PLOTS = {
    "intervals": "How far is each sensitive cell hidden?",
    "changes": "Changes of published values",
    "heat": "The table at a glance",
}


async def _table(screen: Screen, run: Run, holder: ui.element) -> None:
    await TableView(screen, holder).show({run.id: {"of": {"run": run.id}}})


async def _sensitive(screen: Screen, run: Run, holder: ui.element) -> None:
    found = await _computed(screen, holder, outcomes.sensitive_cells, run.id)
    if found is None:
        return
    with holder.clear():
        more = f"; the first {len(found['rows']):,} are shown" if found["all"] > len(found["rows"]) else ""
        ui.label(f"{found['all']:,} sensitive cells, open ones first, then the largest{more}.").classes("ts-note pb-2")
        heads = {"cell": "Cell", "value": "True value", "why": "Sensitive by", "hide": "To be hidden from",
                 "derives": "An attacker derives"}  # fmt: skip
        rows = [[("✓ " if row["protected"] else "! open ") + row["cell"], *(row[key] for key in heads if key != "cell")]
                for row in found["rows"]]  # fmt: skip
        table(list(heads.values()), rows, numbers=(1,))


async def _plots(screen: Screen, run: Run, holder: ui.element) -> None:
    with holder:
        for name, title in PLOTS.items():
            svg = await _computed(screen, ui.element("div"), outcomes.plot, run.id, name)
            if svg and not holder.is_deleted:
                with holder, ui.element("section").classes("pb-6").props(f'aria-label="{title}"'):
                    ui.html(svg, sanitize=False).classes("ts-plot")


async def _attacks(screen: Screen, run: Run, holder: ui.element) -> None:
    with holder.clear():
        ui.label("Guess, as an intruder would, at what the release hides, and compare with the truth.").classes(
            "ts-note"
        )
        with ui.element("div").classes("ts-row py-2"):
            names = (
                ui.select(
                    [*ATTACKS, "all"],
                    value=["interior point", "analytic centre", "midpoint"],
                    multiple=True,
                    label="Attacks",
                )
                .props("outlined dense use-chips")
                .classes("min-w-96")
            )
            seconds = ui.number("most seconds for each", value=30, min=1).props("outlined dense").classes("w-44")
            ui.button("Attack", icon="bolt", on_click=lambda: start()).props("color=primary")
        screen.redraw = lambda: None
        listed = ui.element("div").classes("w-full")

    def start() -> None:
        chosen = tuple(str(name) for name in names.value or ())
        if not chosen:
            screen.say("Choose an attack first.")
            return
        screen.runs.attack(run, chosen, time_limit_s=float(seconds.value or 30))
        draw()

    def draw() -> None:
        with listed.clear():
            for attack in reversed(run.attacks):
                _Attacked(screen, attack)

    draw()


class _Attacked:
    """Attacks as they go on, then their scores."""

    def __init__(self, screen: Screen, attack: Attack) -> None:
        self.screen, self.attack = screen, attack
        self.state = ui.label().classes("font-medium pt-3").props("role=status aria-live=polite")
        self.stop = ui.button("Stop", on_click=attack.stop).props("outline dense color=negative")
        self.box = ui.element("div").classes("w-full")
        self.timer = ui.timer(TICK_S, self.tick)
        screen.timers.append(self.timer)
        self.tick()

    def tick(self) -> None:
        """Show where they are."""
        attack = self.attack
        if self.state.is_deleted:
            self.timer.cancel()
            return
        self.state.set_text(attack.message)
        self.stop.set_visibility(not attack.state.ended)
        if attack.state.ended:
            self.timer.deactivate()
            with self.box.clear():
                if attack.error is not None:
                    show_error(attack.error)
                elif attack.state is State.DONE:
                    _scores(attack.found)
            self.screen.say(attack.message)


def _scores(found: dict[str, Any]) -> None:
    rows = found["attacks"]
    if rows:
        heads = list(rows[0])
        table(heads, [[_shown(row[key]) for key in heads] for row in rows], numbers=range(1, len(heads)))
    if found["ranking"]:
        ui.html("Cells by risk", tag="h3").classes("pt-3")
        heads = list(found["ranking"][0])
        table(heads, [[_shown(row[key]) for key in heads] for row in found["ranking"][:50]])


async def _loss(screen: Screen, run: Run, holder: ui.element) -> None:
    found = await _computed(screen, holder, outcomes.loss_of, run.id)
    if found is None:
        return
    with holder.clear():
        ui.label(found["text"]).classes("whitespace-pre-line pb-3")
        for title, part in (("By level", found["levels"]), ("By size of the change", found["changes"])):
            if part:
                ui.html(title, tag="h3")
                table(
                    part["columns"],
                    part["rows"],
                    numbers=[i for i, is_number in enumerate(part["numbers"]) if is_number],
                )


async def _computed(screen: Screen, holder: ui.element, task: Any, *arguments: Any) -> Any:
    with holder:
        ui.spinner()
    try:
        found = await screen.compute(task, *arguments)
    except TablesafeError as error:
        if not holder.is_deleted:
            with holder.clear():
                show_error(error)
        return None
    if holder.is_deleted:
        return None
    holder.clear()
    return found


def table(heads: list[str], rows: list[list[str]], numbers: Any = (), *, tall: bool = False) -> None:
    """A small table."""
    right = set(numbers)
    box = ui.element("div").classes("ts-scroll" + (" tall" if tall else "")).props("tabindex=0")
    with box, ui.element("table").classes("ts-list"):
        with ui.element("thead"), ui.element("tr"):
            for i, head in enumerate(heads):
                with ui.element("th").props("scope=col").classes("num" if i in right else ""):
                    ui.label(head)
        with ui.element("tbody"):
            for row in rows:
                with ui.element("tr"):
                    for i, text in enumerate(row):
                        with ui.element("td").classes("num" if i in right else ""):
                            ui.label(text)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


SECTIONS = {
    "Table": _table,
    "Sensitive cells": _sensitive,
    "Plots": _plots,
    "Attacks": _attacks,
    "Loss": _loss,
}
"""The parts by their titles."""
