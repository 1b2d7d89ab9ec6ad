"""The page Result: the verdict, the table, the sensitive cells, plots, attacks, loss, and files to download."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from nicegui import ui

from tablesafe.attack.registry import ATTACKS
from tablesafe.errors import TablesafeError
from tablesafe.web.pages import outcomes
from tablesafe.web.pages.screen import Screen, heading, show_error
from tablesafe.web.pages.tableview import TableView
from tablesafe.web.runs import Attack, Run, State

TICK_S = 0.5
PLOTS = {"intervals": "How far is each sensitive cell hidden?", "changes": "Changes of published values",
         "heat": "The table at a glance"}  # fmt: skip
MORE = 9
SHOWN = 2
"""Lines of the verdict that are always shown."""
NAMES = {".csv": "Release (CSV)", ".xlsx": "Release (Excel)", ".parquet": "Release (Parquet)"}


def page(screen: Screen) -> None:
    """Build the page."""
    heading("Result", "What came out of a run. All of this page is for the office only.")
    finished = {run.id: run for run in screen.runs.runs.values() if run.facts}
    if not finished:
        ui.label("There is no finished run yet: start one on the page Method.").classes("ts-card")
        return
    shown = screen.shown_run if screen.shown_run in finished else next(reversed(finished))
    titles = {name: f"{name}: {run.facts['method']}, {run.facts['status']}" for name, run in finished.items()}

    @ui.refreshable
    def content(name: str) -> None:
        screen.shown_run = name
        _run(screen, finished[name])

    if len(finished) > 1:
        ui.select(titles, value=shown, label="Run", on_change=lambda e: content.refresh(str(e.value))).props(
            "outlined dense"
        ).classes("mb-4 min-w-80")
    content(shown)


def _run(screen: Screen, run: Run) -> None:
    _verdict(run)
    with ui.element("div").classes("ts-cols wide"):
        _facts(run)
        _downloads(run)
    sections = (
        ("Table", _table),
        ("Sensitive cells", _sensitive),
        ("Plots", _plots),
        ("Attacks", _attacks),
        ("Loss", _loss),
    )
    with ui.tabs().props("align=left no-caps active-color=primary indicator-color=primary") as tabs:
        for name, _ in sections:
            ui.tab(name)
    drawn: set[str] = set()
    with ui.tab_panels(tabs, value="Table", animated=False).classes("w-full").props("keep-alive"):
        holders = {}
        for name, _ in sections:
            with ui.tab_panel(name):
                holders[name] = ui.element("div").classes("w-full")

    async def draw(name: str) -> None:
        if name not in drawn:
            drawn.add(name)
            with holders[name]:
                await dict(sections)[name](screen, run, holders[name])

    tabs.on_value_change(lambda e: draw(str(e.value)))
    ui.timer(0.01, lambda: draw("Table"), once=True)


def _verdict(run: Run) -> None:
    safe = run.safe
    with (
        ui.element("section")
        .classes(f"ts-verdict {'safe' if safe else 'open'}")
        .props('role=status aria-label="Verdict"')
    ):
        ui.html("✓ Safe" if safe else "! Open", tag="strong")
        lines = str(run.facts.get("findings", "")).splitlines()
        ui.label("\n".join(lines[:SHOWN]))
        if len(lines) > SHOWN:
            with ui.element("details"):
                with ui.element("summary"):
                    ui.label("More of what was found").classes("inline")
                ui.label("\n".join(lines[SHOWN:])).classes("text-sm")
        if not run.facts["release_written"]:
            ui.label("The release was not written.").classes("font-medium")
        elif not safe:
            ui.label("The release was written because you insisted: do not publish it.").classes("font-medium")


def _facts(run: Run) -> None:
    facts, solution = run.facts, run.facts.get("solution") or {}
    rows = {
        "cells": f"{facts['cells']:,}", "sensitive": f"{facts['sensitive']:,}", "withheld": f"{facts['withheld']:,}",
        "open": f"{facts['open']:,}", "method": facts["method"], "answer": str(solution.get("status", "")),
        "gap": "" if solution.get("gap") is None else f"{solution['gap']:.1%}",
        "seconds": f"{sum(facts['seconds'].values()):,.1f}",
    }  # fmt: skip
    with ui.element("section").classes("ts-card").props('aria-label="In numbers"'):
        ui.html("In numbers", tag="h2")
        with ui.element("dl").classes("ts-facts"):
            for name, text in rows.items():
                if text:
                    with ui.element("div"):
                        ui.html(name, tag="dt")
                        with ui.element("dd"):
                            ui.label(text)


def _downloads(run: Run) -> None:
    with ui.element("section").classes("ts-card").props('aria-label="Download"'):
        ui.html("Download", tag="h2")
        names = sorted(run.files(), key=lambda name: _rank(run, name))
        main = [name for name in names if _rank(run, name) < MORE]
        with ui.element("ul").classes("list-none p-0 m-0"):
            for name in main:
                _file(run, name)
        if len(main) < len(names):
            with ui.element("details"):
                with ui.element("summary").classes("ts-note"):
                    ui.label("More internal files").classes("inline")
                with ui.element("ul").classes("list-none p-0 m-0"):
                    for name in names[len(main) :]:
                        _file(run, name)


def _file(run: Run, name: str) -> None:
    address = f"/files/{quote(run.id)}/{quote(name)}"
    with ui.element("li").classes("py-0.5"):
        ui.link(_title(run, name), address).props["download"] = Path(name).name
        if name.endswith(".html"):
            ui.link("look", f"{address}?show", new_tab=True).classes("ml-3 text-sm")
        if _is_internal(run, name):
            ui.label("internal").classes("ts-note inline ml-2")


def _is_internal(run: Run, name: str) -> bool:
    return name == "job.toml" or name.startswith(f"{run.facts['internal']}/")


def _rank(run: Run, name: str) -> int:
    """Where a file stands in the list: the release, the public report, job, certificate, internal report, the rest."""
    if not _is_internal(run, name):
        return int(name.endswith(".html"))
    return {"job.toml": 2, "certificate.json.gz": 3, "report.html": 4}.get(Path(name).name, MORE)


def _title(run: Run, name: str) -> str:
    file = Path(name)
    if name == "job.toml":
        return "Job file"
    if _is_internal(run, name):
        return {"report.html": "Internal report", "certificate.json.gz": "Certificate"}.get(file.name, file.name)
    return "Public report" if file.suffix == ".html" else NAMES.get(file.suffix, file.name)


# -- sections, each drawn when it is first looked at ------------------------------------------------------------------


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
