"""A coarser table: merge codes from proposals or by choosing them, and see what stays sensitive and what is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicegui import events, ui
from nicegui.element import Element

from tablesafe.core.errors import TablesafeError
from tablesafe.web.pages.screen import Screen, show_error
from tablesafe.web.pages.waiting import computed
from tablesafe.web.speech import aria, say
from tablesafe.web.tasks import designs

LEAD = (
    "Codes that are too fine make most cells sensitive. Merge some, and the number above and the table follow at once; "
    "the job reads the new hierarchy from a file of its own."
)
DRAG = (
    "Drag a code onto another to merge the two. Or choose several, here by a click or by Enter, or above by their "
    "names, and merge them."
)
MOST_DRAWN = 600
"""Codes of a dimension that are drawn to be dragged; of more, those above are chosen by their names."""
NONE = "No merge would make fewer cells sensitive."


class Codes(Element, component="codes.js"):
    """The codes of a dimension to be dragged onto one another, or chosen."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self._props.update({"label": label, "groups": [], "picked": []})

    def show(self, codes: list[tuple[str, str, int, str]]) -> None:
        """Show these codes, those below the same one together."""
        groups: dict[str, list[dict[str, str]]] = {}
        for code, text, _, above in codes[:MOST_DRAWN]:
            groups.setdefault(above, []).append({"code": code, "text": text})
        self._props["groups"] = [{"above": above, "codes": each} for above, each in groups.items()]
        self.pick([])

    def pick(self, codes: list[str]) -> None:
        """Mark the codes that are chosen."""
        self._props["picked"] = codes
        self.update()


def merging(screen: Screen) -> None:
    """The section of a page."""
    with ui.element("section").classes("ts-card").props(aria("A coarser table")):
        ui.html(say("A coarser table"), tag="h2")
        ui.label(say(LEAD)).classes("ts-note")
        if screen.holds_problem:
            ui.label(say("This file has no codes that could be merged.")).classes("ts-note")
            return
        _done(screen)
        offer(screen)
        _choosing(screen)


def offer(screen: Screen) -> None:
    """A button that looks for merges that would help, and offers each as a button."""

    async def propose() -> None:
        text = _text(screen, place)
        found = None if text is None else await computed(screen, place, designs.proposals, text)
        if found is None or place.is_deleted:
            return
        with place.clear():
            if not found:
                ui.label(say(NONE)).classes("ts-note").props("role=status")
                return
            with ui.element("ul").classes("ts-plain").props(aria("Proposals")):
                for each in found:
                    _proposal(screen, place, each)
        screen.say(say("{many:,} proposals.", many=len(found)))

    with ui.element("div").classes("ts-row py-1"):
        ui.button(say("Propose codes to merge"), icon="auto_fix_high", on_click=propose).props("outline color=primary")
    place = ui.element("div").classes("w-full")


def _proposal(screen: Screen, place: ui.element, each: Mapping[str, Any]) -> None:
    async def take() -> None:
        if await merge(screen, each["step"], place):
            place.clear()

    with ui.element("li").classes("ts-row py-0.5"):
        ui.button(each["words"], on_click=take).props("outline dense color=primary")
        ui.label(
            say(
                "{removed:,} fewer sensitive cells, {loss:.1%} of the table is lost",
                removed=each["removed"],
                loss=each["loss"],
            )
        ).classes("ts-note")


def _choosing(screen: Screen) -> None:
    """Choose a dimension and some of its codes that stand side by side."""
    with ui.element("details").classes("pt-2") as fold:
        with ui.element("summary"):
            ui.label(say("Choose the codes yourself")).classes("inline")
        inside = ui.element("div").classes("w-full")

    state = {"open": False, "drawn": "", "at": ""}

    async def draw() -> None:
        state["drawn"] = repr(screen.draft.get("dimensions"))
        text = _text(screen, inside)
        known = None if text is None else await computed(screen, inside, designs.codes, text)
        if known is None or inside.is_deleted:
            return
        with inside.clear():
            _form(screen, known, state)

    async def turned() -> None:
        state["open"] = not state["open"]
        if state["open"]:
            await draw()

    def follow() -> None:
        """Other codes, by a merge here or back: show them."""
        if state["open"] and repr(screen.draft.get("dimensions")) != state["drawn"] and not inside.is_deleted:
            state["drawn"] = repr(screen.draft.get("dimensions"))
            with waiting:
                ui.timer(0.01, draw, once=True)

    waiting = ui.element("div")
    fold.on("toggle", turned, args=[])
    screen.on_page.append(follow)


def _form(screen: Screen, known: Mapping[str, list[tuple[str, str, int, str]]], state: dict[str, Any]) -> None:
    """The codes of one dimension after another; `state` remembers which."""

    def codes_of(name: str) -> dict[str, str]:
        return {code: "  " * level + text for code, text, level, _ in known[name]}

    if not known:
        ui.label(say("No dimension is a tree of codes.")).classes("ts-note")
        return
    first = state["at"] if state["at"] in known else next(iter(known))
    with ui.element("div").classes("ts-row py-2"):
        name = ui.select(list(known), value=first, label=say("Dimension"))
        name.props("outlined dense options-dense").classes("min-w-36")
        codes = ui.select(codes_of(first), value=[], multiple=True, label=say("Codes to merge"), with_input=True)
        codes.props("outlined dense options-dense use-chips").classes("min-w-64 grow")
        into = ui.input(say("Name of the new code")).props("outlined dense").classes("min-w-44")
        ui.button(say("Merge"), icon="merge", on_click=lambda: take(list(codes.value or ()))).props("color=primary")
    told = ui.element("div").classes("w-full")
    ui.label(say(DRAG)).classes("ts-note")
    with ui.element("div").classes("ts-scroll").props("tabindex=0"):
        drawn = Codes(say("Codes that can be dragged onto one another"))
    drawn.show(known[first])

    def other(event: events.ValueChangeEventArguments[Any]) -> None:
        state["at"] = str(event.value)
        codes.set_options(codes_of(str(event.value)), value=[])
        drawn.show(known[str(event.value)])

    def turn(code: str) -> None:
        now = list(codes.value or ())
        codes.set_value([each for each in now if each != code] if code in now else [*now, code])

    async def take(chosen: list[str]) -> None:
        step = {"kind": "join", "dimension": str(name.value), "codes": chosen, "into": str(into.value or "").strip()}
        await merge(screen, step, told)

    name.on_value_change(other)
    codes.on_value_change(lambda e: drawn.pick(list(e.value or ())))
    drawn.on("turn", lambda e: turn(str(e.args)))
    drawn.on("merge", lambda e: take([str(code) for code in e.args]))


async def merge(screen: Screen, step: Mapping[str, Any], place: ui.element) -> bool:
    """Take a step: the job reads another hierarchy from now on. Whether it could be taken."""
    try:
        found = await screen.compute(designs.coarser, screen.workspace.job_text(), dict(step))
        screen.workspace.recode(str(step["dimension"]), found["text"], found["total"], found["words"], merged=True)
    except TablesafeError as error:
        if not place.is_deleted:
            with place.clear():
                show_error(error)
        return False
    screen.decided()
    screen.say(say("{words}: done.", words=found["words"]))
    return True


def _text(screen: Screen, place: ui.element) -> str | None:
    """The job, if it can be read; else a word on what is missing."""
    if screen.readable:
        place.clear()
        return screen.workspace.job_text()
    with place.clear():
        ui.label(say("There is something wrong with the job: see the fields marked ✕.")).classes("ts-fault")
    return None


def _done(screen: Screen) -> None:
    """What was merged so far, what it gained and cost, and a way back."""
    shown = {"job": ""}

    def undo() -> None:
        last = screen.workspace.recoded[-1]
        screen.workspace.undo_recode()
        screen.decided()
        screen.say(say("{words}: undone.", words=last.words))

    @ui.refreshable
    def lines() -> None:
        done = screen.workspace.recoded
        if not done:
            return
        with ui.element("ul").classes("m-0").props(aria("Merged")):
            for each in done:
                with ui.element("li"):
                    ui.label(f"{each.words} ({each.file})")
        told = ui.label("…").classes("font-medium").props("role=status " + aria("Compared"))
        ui.button(say("Undo the last"), icon="undo", on_click=undo).props("outline dense color=primary")
        ui.timer(0.01, lambda: measure(told), once=True)

    async def measure(told: ui.label) -> None:
        before = next((each.job for each in screen.workspace.recoded if each.merged), None)
        words = ""
        if before is not None and screen.readable:
            try:
                found = await screen.compute(designs.compared, before, screen.workspace.job_text())
                words = compared_words(found)
            except TablesafeError:
                words = ""  # the number above tells what is wrong
        if not told.is_deleted:
            told.set_text(words)

    def follow() -> None:
        text = screen.workspace.job_text() if screen.draft else ""
        if text != shown["job"]:
            shown["job"] = text
            lines.refresh()

    lines()
    screen.on_page.append(follow)


def compared_words(found: Mapping[str, Any]) -> str:
    """What merging gained and what it lost."""
    (sensitive, left), (cells, kept) = found["sensitive"], found["cells"]
    return say(
        "{sensitive:,} sensitive cells became {left:,}; {cells:,} cells became {kept:,}: {loss:.1%} of the table is "
        "lost.",
        sensitive=sensitive, left=left, cells=cells, kept=kept, loss=found["loss"],
    )  # fmt: skip
