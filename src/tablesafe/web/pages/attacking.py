"""The part Attacks of the page Result: guesses of an intruder, their scores, and how their solutions spread."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from tablesafe.attack.registry import ATTACKS
from tablesafe.core.errors import TablesafeError
from tablesafe.web.pages.screen import Screen, named, show_error
from tablesafe.web.pages.tables import shown, table
from tablesafe.web.pages.waiting import Watched, computed
from tablesafe.web.runs import Run
from tablesafe.web.speech import aria, numeral, say
from tablesafe.web.tasks import results as outcomes

USUAL = ["interior point", "analytic centre", "midpoint", "hit-and-run"]
MANY = "mean of vertices, mean of interior solutions, random centroids or hit-and-run"
"""Attacks that guess from many solutions, so that there is a density to draw."""
HEADS = {
    "median relative error": "median error", "median coefficient of variation": "variation", "known exactly": "exactly",
    "coefficient of variation": "variation",
}  # fmt: skip
"""Shorter words for long ones."""
FIRST, MOST = 4, 12
"""Densities that are drawn at first, and at most."""


async def attacks(screen: Screen, run: Run, holder: ui.element) -> None:
    """Draw the part."""
    with holder.clear():
        ui.label(say("Guess, as an intruder would, at what the release hides, and compare with the truth.")).classes(
            "ts-note"
        )
        with ui.element("div").classes("ts-row py-2"):
            names = ui.select([*ATTACKS, "all"], value=USUAL, multiple=True, label=say("Attacks"))
            names.props("outlined dense use-chips").classes("w-full max-w-3xl")
            seconds = ui.number(say("most seconds for each"), value=30, min=1).props("outlined dense").classes("w-44")
            ui.button(say("Attack"), icon="bolt", on_click=lambda: start()).props("color=primary")
        problem = ui.element("div")
        listed = ui.element("div").classes("w-full")

    def start() -> None:
        chosen = tuple(str(name) for name in names.value or ())
        if not chosen:
            screen.say(say("Choose an attack first."))
            return
        problem.clear()
        try:
            screen.runs.attack(run, chosen, time_limit_s=float(seconds.value or 30))
        except TablesafeError as error:
            with problem:
                show_error(error)
            return
        draw()

    def draw() -> None:
        with listed.clear():
            for attack in reversed(run.attacks):
                Watched(screen, attack, lambda found: _found(screen, found))

    draw()


def _found(screen: Screen, found: dict[str, Any]) -> None:
    """Scores on the left, densities on the right; below each other on a narrow screen."""
    with ui.element("div").classes("ts-cols scores"):
        with ui.element("section").props(aria("Scores")):
            _scores(found)
        with ui.element("section").props(aria("Densities")):
            _Densities(screen, found.get("densities", []))


def _scores(found: dict[str, Any]) -> None:
    rows = found["attacks"]
    if rows:
        ui.html(say("Scores"), tag="h3")
        heads = {key: HEADS.get(key, key) for key in rows[0] if key != "note" or any(row["note"] for row in rows)}
        right = [i for i, key in enumerate(heads) if key not in {"attack", "note"}]
        table(list(heads.values()), [[shown(row[key]) for key in heads] for row in rows], numbers=right)
    if found["ranking"]:
        ui.html(say("Cells by risk"), tag="h3").classes("pt-3")
        heads = {key: HEADS.get(key, key) for key in found["ranking"][0]}
        table(list(heads.values()), [[shown(row[key]) for key in heads] for row in found["ranking"][:50]])


class _Densities:
    """How the solutions of an attack spread over what a cell can be: a picture for each cell that is chosen."""

    def __init__(self, screen: Screen, found: list[dict[str, Any]]) -> None:
        self.screen, self.found = screen, {each["attack"]: each for each in found if each["cells"]}
        ui.html(say("How solutions spread"), tag="h3")
        if not self.found:
            ui.label(say("These attacks have one solution each. For densities, try {many}.", many=MANY)).classes(
                "ts-note"
            )
            return
        attack = next(iter(self.found))
        with ui.element("div").classes("ts-row py-2"):
            if len(self.found) > 1:
                ui.select(
                    list(self.found), value=attack, label=say("Attack"), on_change=lambda e: self.choose(str(e.value))
                ).props("outlined dense").classes("min-w-48")
            self.cells = ui.select(
                {}, multiple=True, label=say("Cells"), with_input=True, on_change=lambda: self.draw()
            )
            self.cells.props(f"outlined dense use-chips max-values={MOST}").classes("grow min-w-64")
        self.note = ui.label().classes("ts-note")
        self.holder = ui.element("div").classes("w-full")
        self.choose(attack)

    def choose(self, attack: str) -> None:
        """Offer the cells of an attack, and draw those in most danger."""
        self.attack, every = attack, self.found[attack]
        more = (
            f"; the {len(every['cells']):,} in most danger can be chosen" if every["all"] > len(every["cells"]) else ""
        )
        self.note.set_text(
            say(
                "{all:,} sensitive cells have a range, those that guesses come nearest to first{more}.",
                all=every["all"],
                more=more,
            )
        )
        options = {i: f"{i + 1}. {cell['cell']}" for i, cell in enumerate(every["cells"])}
        before = list(self.cells.value or [])
        self.cells.set_options(options, value=list(options)[:FIRST])
        if before == list(options)[:FIRST]:  # nobody tells that it changed
            ui.timer(0.01, self.draw, once=True)

    async def draw(self) -> None:
        """Draw the cells that are chosen."""
        chosen = [self.found[self.attack]["cells"][i] for i in list(self.cells.value or [])[:MOST]]
        self.holder.clear()
        pictures = await computed(self.screen, self.holder, outcomes.density_plots, chosen) if chosen else []
        if pictures is None or self.holder.is_deleted:
            return
        with self.holder.clear():
            for svg, cell in zip(pictures, chosen, strict=True):
                _picture(svg, cell)
        self.screen.say(say("{chosen:,} densities are drawn.", chosen=len(chosen)))


def _picture(svg: str, cell: dict[str, Any]) -> None:
    """One density, and the same in numbers."""
    with named(ui.element("figure").classes("m-0 pb-3"), say("Density of {cell}", cell=cell["cell"])):
        ui.html(svg, sanitize=False).classes("ts-plot")
        with ui.element("details").classes("ts-note"):
            with ui.element("summary"):
                ui.label(say("In numbers: {cell}", cell=cell["cell"])).classes("inline")
            total, step = sum(cell["counts"]), (cell["upper"] - cell["lower"]) / len(cell["counts"])
            rows = [
                [
                    shown(cell["lower"] + i * step),
                    shown(cell["lower"] + (i + 1) * step),
                    numeral(n),
                    f"{n / max(total, 1):.0%}",
                ]
                for i, n in enumerate(cell["counts"])
            ]
            table(["from", "to", "solutions", "share"], rows, numbers=range(4))
            low, high = cell["band"]
            ui.label(
                say(
                    "True value {truth}, to be hidden from {low} to {high}, guess {guess}.",
                    truth=shown(cell["truth"]),
                    low=shown(low),
                    high=shown(high),
                    guess=shown(cell["guess"]),
                )
            )
