"""The cell panel: all that is known of a cell, what if it were published, and decisions on it or on several."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self, get_args

from nicegui import ui

from tablesafe.core.errors import TablesafeError
from tablesafe.io.decisions import MEANINGS, Choice, Decision
from tablesafe.web.pages.screen import Screen, named, repair_button, show_error
from tablesafe.web.pages.tables import TableView, table
from tablesafe.web.pages.waiting import computed
from tablesafe.web.speech import aria, numeral, say
from tablesafe.web.tasks import cells as asking
from tablesafe.web.tasks import windows

FACTS = ("published as", "contributors", "sensitive by", "an attacker derives")
UNPROVED = (
    "? {word}: the time was too short to show that all stay hidden; of {many:,} cells it is not known. Ask again: what "
    "was found is kept."
)
OPENED = (
    "! {word}: were it published, cells would be open that are not now ({many:,}):",
    "! {word}: were it withheld, cells would be open that are not now ({many:,}):",
)
POSSIBLY = (
    "? {word}: were it published, the table would not tell enough to say that these cells stay hidden ({many:,}):",
    "? {word}: were it withheld, the table would not tell enough to say that these cells stay hidden ({many:,}):",
)
NO_OTHERS = "{word}, as it is now: no cell would be open that is not open already."
SO_FAR = "So far cells would be open that are not now ({many:,}):"
IN_SIGHT = """(() => {
  const at = [...document.querySelectorAll('.ts-cell.ts-at')].find((each) => each.offsetParent);
  if (!at) return;
  if (window.tsAt !== undefined) scrollBy(0, at.getBoundingClientRect().top - window.tsAt);
  window.tsAt = undefined;
  at.scrollIntoView({ block: 'nearest', inline: 'nearest' });
})()"""
"""The panel takes room from the page: the cell that it speaks of stays where it was, and in sight."""
READY_S = 0.3
"""Seconds after which what somebody may ask next is made ready."""
HEADS = ("Cell", "Decision", "Why", "Who", "When", "Take back")
MOST_LISTED = 500
"""Decisions that are listed."""
WIDE, HIGH = 460, 74
"""Size of the picture of an interval."""
BLUE, ORANGE = "#0072B2", "#9A3E00"


class CellPanel:
    """The panel beside a table; there is one on a page."""

    def __init__(self, screen: Screen, of: Mapping[str, str]) -> None:
        self.screen, self.of_what = screen, dict(of)
        self.table: TableView | None = None
        self.box = ui.element("aside").classes("ts-job ts-cellpanel").props("tabindex=-1 " + aria("Cell"))
        self.box.set_visibility(False)
        self.box.on("keydown.escape", self.close)

    @classmethod
    def of(cls, screen: Screen, of: Mapping[str, str]) -> Self:
        """The panel of the page that is shown now, for what it shows now."""
        kept = screen.panel
        if isinstance(kept, cls) and not kept.box.is_deleted:
            kept.of_what = dict(of)
            return kept
        screen.panel = made = cls(screen, of)
        return made

    def close(self) -> None:
        """Put it away."""
        self.box.set_visibility(False)

    async def open(self, cells: list[int]) -> None:
        """Show a cell, or how many are chosen; with none, put the panel away."""
        if not cells:
            self.close()
            return
        self.box.set_visibility(True)
        ui.run_javascript(IN_SIGHT)
        with self.box.clear():
            with ui.element("div").classes("ts-row justify-between w-full"):
                title = ui.label(say("Cell")).classes("font-medium text-lg").props("role=heading aria-level=2")
                ui.button(say("Close"), on_click=self.close).props("flat dense color=primary")
            inside = ui.element("div").classes("w-full ts-scroll tall").props("tabindex=0 " + aria("About the cell"))
        if len(cells) == 1:
            known = await computed(self.screen, inside, asking.panel, self.of_what, cells[0])
            if known:
                title.set_text(known["name"])
                with inside.clear():
                    self._about(known, cells[0])
        else:
            title.set_text(say("{many:,} cells are chosen", many=len(cells)))
        if not inside.is_deleted:
            with inside:
                self._decide(cells)
        self.screen.say(title.text)
        ui.run_javascript(IN_SIGHT)

    # -- one cell ----------------------------------------------------------------------------------------------------

    def _about(self, known: dict[str, Any], cell: int) -> None:
        word, sign, css, meaning = known["kind"]
        with ui.element("div").classes("ts-key"):
            ui.html(sign, tag="span").classes(css)
            ui.label(f"{say(word)}: {say(meaning)}")
        count = "" if known["count"] is None else numeral(known["count"])
        facts = dict(zip(FACTS, (known["public"], count, known["why"], known["derives"]), strict=True))
        with ui.element("dl").classes("ts-facts small py-2"):
            for name, text in facts.items():
                if text:
                    with ui.element("div"):
                        ui.html(say(name), tag="dt")
                        with ui.element("dd"):
                            ui.label(text)
        if known["bar"]:
            ui.html(bar(known["bar"]), sanitize=False).classes("ts-plot")
        self._secret(known, cell)
        if "run" in self.of_what:
            self._ask(known, cell)
        self._neighbours(known)
        if self.table is not None:
            ui.button(say("Show it in the table"), on_click=lambda: self._show(cell)).props("flat dense color=primary")

    def _secret(self, known: dict[str, Any], cell: int) -> None:
        """The true value and the largest contributors, only for those who ask."""
        place = ui.element("div").classes("w-full py-1")

        async def show() -> None:
            rows = await self.screen.compute(asking.contributors, self.of_what, cell) if known["listed"] else []
            if place.is_deleted:
                return
            with place.clear():
                ui.label(say("Confidential")).classes("ts-secret")
                told = "True value {value}, to be hidden from {hide}." if known["hide"] else "True value {value}."
                ui.label(say(told, value=known["value"], hide=known["hide"]))
                if rows:
                    table(
                        [say("contributor"), say("amount"), say("share")],
                        [[row["who"], row["amount"], row["share"]] for row in rows],
                        numbers=(1, 2),
                    )

        with place:
            ui.button(say("Show true value and largest contributors"), icon="visibility", on_click=show).props(
                "outline dense color=primary"
            )

    def _ask(self, known: dict[str, Any], cell: int) -> None:
        """What an attacker derives, and what if it were otherwise: the audit is asked again."""
        publish = bool(known["withheld"])

        async def derive() -> None:
            told = await computed(self.screen, place, windows.derived, self.of_what["run"], cell)
            if told and not place.is_deleted:
                with place.clear():
                    ui.label(str(told).splitlines()[-1] + ".")

        async def get_ready() -> None:
            with suppress(TablesafeError):  # whoever asks is told
                await self.screen.compute(asking.ready, self.of_what["run"])

        async def what_if() -> None:
            place.clear()
            found = await computed(
                self.screen, place, asking.what_if, self.of_what["run"], cell, publish, so_far=_so_far
            )
            if found is None or place.is_deleted:
                return
            with place.clear():
                _answer(found, publish=publish)

        with ui.element("div").classes("ts-row"):
            if known["may_ask"]:
                ui.button(say("What does an attacker derive?"), on_click=derive).props("outline dense color=primary")
            ui.button(
                say("What if it were published?") if publish else say("What if it were withheld?"), on_click=what_if
            ).props("outline dense color=primary")
            ui.timer(READY_S, get_ready, once=True)
        place = ui.element("div").classes("w-full py-1").props("role=status " + aria("Answer"))

    def _neighbours(self, known: dict[str, Any]) -> None:
        if not known["many"]:
            return
        ui.html(say("Protected by") if known["how"] == "protectors" else say("It protects"), tag="h3").classes("pt-2")
        with ui.element("ul").classes("ts-plain"):
            for cell, name, sign in known["neighbours"]:
                with ui.element("li"):
                    ui.button(f"{sign} {name}".strip(), on_click=lambda cell=cell: self.open([cell])).props(
                        "flat dense color=primary align=left"
                    )
        if known["many"] > len(known["neighbours"]):
            ui.label(
                say(
                    "and {many:,} more: all move in the tables that prove it.",
                    many=known["many"] - len(known["neighbours"]),
                )
            ).classes("ts-note")

    async def _show(self, cell: int) -> None:
        if self.table is not None:
            await self.table.go(cell)

    # -- decisions ---------------------------------------------------------------------------------------------------

    def _decide(self, cells: list[int]) -> None:
        ui.html(say("Decide"), tag="h3").classes("pt-3")
        options = {what: f"{say(what)}: {say(MEANINGS[what])}" for what in get_args(Choice)}
        what = ui.select(options, value="sensitive", label=say("It is")).props("outlined dense").classes("w-full")
        why = ui.input(say("Reason")).props("outlined dense").classes("w-full pt-2")
        who = (
            ui.input(say("Who decides"), value=self.screen.workspace.who).props("outlined dense").classes("w-full pt-2")
        )
        problem = ui.element("div")

        async def decide() -> None:
            problem.clear()
            try:
                rows = await self.screen.compute(asking.codes_and_costs, self.of_what, cells)
                decide_on(self.screen, rows, str(what.value), str(why.value or ""), str(who.value or ""))
            except TablesafeError as error:
                with problem:
                    show_error(error)
                return
            with problem:
                ui.label(say("Noted in the job: run it to see what follows.")).classes("ts-note")
                run = self.screen.runs.runs.get(self.of_what.get("run", ""))
                if run is not None and run.facts.get("method") == "suppress":
                    repair_button(self.screen, run, ui.element("div"))

        words = say("Decide") if len(cells) == 1 else say("Decide on {many:,} cells", many=len(cells))
        with ui.element("div").classes("ts-row pt-2"):
            ui.button(words, on_click=decide).props("color=primary")


def decide_about(screen: Screen, job: str, cells: list[int]) -> None:
    """Buttons for the cells of a job's table that an error speaks of: decide otherwise, or take a decision back."""
    of, place = {"job": job}, ui.element("div").classes("ts-row py-1")

    def take_back(decision: Decision) -> None:
        screen.workspace.forget_decision(decision)
        screen.decided()
        screen.say(say("The decision on {cell} is taken back.", cell=decision.cell))

    async def draw() -> None:
        rows = await computed(screen, place, asking.codes_and_costs, of, cells)
        if rows is None or len(rows) != len(cells) or place.is_deleted:  # unseen cells are nobody's to decide on
            return
        frozen = {each.cell: each for each in screen.workspace.decided if each.what == "protected"}
        with place.clear():
            for cell, row in zip(cells, rows, strict=True):
                name = " · ".join(row["codes"].values())
                words = "Take back: {cell}" if name in frozen else "Decide on {cell}"
                opens = partial(CellPanel.of(screen, of).open, [cell])
                act = partial(take_back, frozen[name]) if name in frozen else opens
                ui.button(say(words, cell=name), on_click=act).props("outline dense color=primary")

    with place:
        ui.timer(0.01, draw, once=True)


def decide_on(screen: Screen, rows: list[dict[str, Any]], what: str, why: str, who: str) -> None:
    """Write a decision on some cells into the job."""
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    chosen: Any = what
    screen.workspace.who = who
    screen.workspace.decide([Decision(row["codes"], chosen, row["cost"], who, why, when) for row in rows])
    screen.decided()
    screen.say(say("{many:,} decided: {choice}.", many=len(rows), choice=say(what)))


def _so_far(found: dict[str, Any]) -> None:
    """What the audit has found of some of the attackers."""
    if found["many"]:
        ui.label(say(SO_FAR, many=found["many"]))
        _named(found)
    else:
        ui.label(say("So far no cell would be open that is not open already."))
    asked = ", ".join(map(say, found["asked"]))
    ui.label(say("Looked at: {asked}; now: {others} …", asked=asked, others=say(found["next"]))).classes("ts-note")


def _named(found: dict[str, Any]) -> None:
    """The cells that would be open, or the first of them."""
    with ui.element("ul").classes("m-0 text-sm"):
        for _, name in found["opened"]:
            with ui.element("li"):
                ui.label(name)


def _answer(found: dict[str, Any], *, publish: bool) -> None:
    """What the audit said of the change."""
    if found["safe"]:
        ui.label(
            say(
                "✓ {word}: it could be published, and every sensitive cell would still be hidden."
                if publish
                else "✓ {word}: it could be withheld, and every sensitive cell would still be hidden.",
                word=say(found["word"]),
            )
        )
        return
    if found["unproved"]:
        ui.label(say(UNPROVED, word=say(found["word"]), many=found["many"]))
        return
    word, many = say(found["word"]), found["many"]
    if not many:
        ui.label(say(NO_OTHERS, word=word))
        return
    told = (POSSIBLY if found["possibly"] else OPENED)[0 if publish else 1]
    ui.label(say(told, word=word, many=many))
    _named(found)


def bar(shares: list[float | None]) -> str:
    """The required interval and the attacker's, one above the other; an arrow where there is no end."""
    need_low, need_high, low, high, _ = shares
    across = WIDE - 20

    def line(one: float | None, other: float | None, y: int, colour: str) -> str:
        begin, end = 10 + across * (one or 0.0), 10 + across * (1.0 if other is None else other)
        ends = f'<text x="2" y="{y + 4}" fill="{colour}">◂</text>' if one is None else ""
        ends += f'<text x="{WIDE - 10}" y="{y + 4}" fill="{colour}">▸</text>' if other is None else ""
        right = max(end, begin + 2)
        drawn = f'<line x1="{begin:.1f}" y1="{y}" x2="{right:.1f}" y2="{y}" stroke="{colour}" stroke-width="8"/>'
        return drawn + ends

    return (
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" font-size="12" font-family="system-ui, sans-serif" '
        f"{aria('The interval that must be hidden, and the one that an attacker derives')}>"
        f'<text x="10" y="12" fill="{ORANGE}">{say("must be hidden")}</text>{line(need_low, need_high, 22, ORANGE)}'
        f'<text x="10" y="48" fill="{BLUE}">{say("an attacker derives")}</text>{line(low, high, 58, BLUE)}</svg>'
    )


def decision_list(screen: Screen) -> None:
    """All decisions, with who and why; each can be taken back, and the last ones undone."""

    def take_back(decision: Decision) -> None:
        screen.workspace.forget_decision(decision)
        screen.decided()

    def undo() -> None:
        screen.workspace.undo()
        screen.decided()
        screen.say(say("The last decision is undone."))

    @ui.refreshable
    def lines() -> None:
        found = screen.workspace.decided
        if not found:
            ui.label(say("None yet. Click on a cell of a table, and decide: it is written into the job.")).classes(
                "ts-note"
            )
            return
        with ui.element("div").classes("ts-row pb-2"):
            file = screen.get(("problem", "apriori"))
            ui.label(say("Cells: {many:,}, in {file} of the job.", many=len(found), file=file)).classes("ts-note")
            ui.button(say("Undo the last"), icon="undo", on_click=undo).props("outline dense color=primary")
        box = ui.element("div").classes("ts-scroll").props("tabindex=0 " + aria("Decisions"))
        with box, ui.element("table").classes("ts-list"):
            with ui.element("thead"), ui.element("tr"):
                for head in HEADS:
                    ui.html(say(head), tag="th").props("scope=col")
            with ui.element("tbody"):
                for each in found[:MOST_LISTED]:
                    _line(each)
        if len(found) > MOST_LISTED:
            ui.label(say("The first {many:,} are listed; the file has all.", many=MOST_LISTED)).classes("ts-note")

    def _line(decision: Decision) -> None:
        with ui.element("tr"):
            for text in (decision.cell, say(decision.what), decision.why, decision.who, decision.when):
                with ui.element("td"):
                    ui.label(text)
            with ui.element("td"):
                button = ui.button(say("Take back"), on_click=lambda: take_back(decision)).props(
                    "flat dense color=primary"
                )
                named(button, say("Take back: {cell}", cell=decision.cell))

    lines()
    screen.on_page.append(lines.refresh)
