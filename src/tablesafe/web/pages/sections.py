"""Parts of the page Result, each drawn when it is first looked at: table, sensitive cells, plots, attacks, loss."""

from __future__ import annotations

from nicegui import ui

from tablesafe.web.pages import outcomes
from tablesafe.web.pages.attacking import attacks
from tablesafe.web.pages.lists import table
from tablesafe.web.pages.screen import Screen
from tablesafe.web.pages.tableview import TableView
from tablesafe.web.pages.waiting import computed
from tablesafe.web.runs import Run

PLOTS = {
    "intervals": "How far is each sensitive cell hidden?",
    "changes": "Changes of published values",
    "heat": "The table at a glance",
}


async def _table(screen: Screen, run: Run, holder: ui.element) -> None:
    await TableView(screen, holder).show({run.id: {"of": {"run": run.id}}})


async def _sensitive(screen: Screen, run: Run, holder: ui.element) -> None:
    found = await computed(screen, holder, outcomes.sensitive_cells, run.id)
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
            svg = await computed(screen, ui.element("div"), outcomes.plot, run.id, name)
            if svg and not holder.is_deleted:
                with holder, ui.element("section").classes("pb-6").props(f'aria-label="{title}"'):
                    ui.html(svg, sanitize=False).classes("ts-plot")


async def _loss(screen: Screen, run: Run, holder: ui.element) -> None:
    found = await computed(screen, holder, outcomes.loss_of, run.id)
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


SECTIONS = {
    "Table": _table,
    "Sensitive cells": _sensitive,
    "Plots": _plots,
    "Attacks": attacks,
    "Loss": _loss,
}
"""The parts by their titles."""
