"""The page Dimensions: build hierarchies by looking at them."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from tablesafe.core.errors import InvalidTable, TablesafeError
from tablesafe.core.language import text
from tablesafe.job.model import Dimension, TableOptions
from tablesafe.web.forms import form_of
from tablesafe.web.pages.fields import field
from tablesafe.web.pages.screen import Screen, heading, named, show_error
from tablesafe.web.speech import aria, say
from tablesafe.web.tasks import data as looking
from tablesafe.web.tasks import designs
from tablesafe.web.worker import TaskFailed

LACKS = (
    "1 code of the data is not in the hierarchy of {name}: {codes}",
    "{many:,} codes of the data are not in the hierarchy of {name}: {codes}",
)
"""What a hierarchy lacks: one code, or several."""
KINDS = {
    "flat": "one total over all codes",
    "prefixes": "by the beginnings of codes",
    "hrc": "from a hierarchy file (.hrc)",
    "levels": "from columns, one per level",
    "pairs": "from pairs of parent and child",
    "equations": "from equations",
    "auto": "as the other keys say",
}
KEYS: dict[str, tuple[str, ...]] = {
    "flat": (),
    "prefixes": ("lengths", "filler", "hierarchy", "columns"),
    "hrc": ("hierarchy", "indent"),
    "levels": ("hierarchy", "columns"),
    "pairs": ("hierarchy", "columns"),
    "equations": ("equations",),
    "auto": ("hierarchy", "columns"),
}
"""Which keys matter for which way of writing a hierarchy."""
SHAPING = ("hierarchy", "columns", "lengths", "filler", "equations", "indent")
ALWAYS = ("total", "labels", "missing", "column")
WAIT_S = 0.25
"""Seconds before a tree is drawn anew: what is changed meanwhile is drawn with it."""
MOST_LENGTH = 8
"""Letters of a code that can be clicked on as a level."""
NONE_YET = "There are no dimensions yet: on the page Data, say which columns are dimensions."
NOTHING_TO_DO = "The file lists its cells and the sums between them itself: there is nothing to do here."
FEW = 3
"""Codes that a message names."""
SMALL = 80
"""Trees of no more codes are unfolded whole."""


def page(screen: Screen) -> None:
    """Build the page."""
    heading(say("Dimensions"), say("Say how the codes of each dimension add up, and look at the tree while you do."))
    screen.fault_list()
    names = list(screen.draft.get("dimensions", {}))
    if not names:
        ui.label(say(NOTHING_TO_DO) if screen.holds_problem else say(NONE_YET)).classes("ts-card")
        return
    with ui.tabs().props("align=left no-caps dense active-color=primary indicator-color=primary") as tabs:
        for name in names:
            ui.tab(name)
    with ui.tab_panels(tabs, value=names[0], animated=False).classes("w-full bg-transparent").props("keep-alive"):
        for name in names:
            with ui.tab_panel(name).classes("p-0 pt-3"):
                _dimension(screen, name)
    _linked(screen)


def _dimension(screen: Screen, name: str) -> None:
    path = ("dimensions", name)
    entries = {entry.name: entry for entry in form_of(Dimension).entries}
    with ui.element("div").classes("ts-cols"):
        with named(ui.element("section").classes("ts-card"), say("How {name} is built", name=name)):
            ui.html(say("How it is built"), tag="h2")

            @ui.refreshable
            def keys() -> None:
                for key in KEYS[_kind(screen, path)]:
                    control = field(screen, entries[key], (*path, key))
                    if key == "lengths" and isinstance(control, ui.input):
                        _Lengths(screen, path, control)

            now = _kind(screen, path)
            ui.select(
                {kind: say(words) for kind, words in KINDS.items()},
                value=now,
                label="kind",
                on_change=lambda e: _choose(screen, path, str(e.value), keys),
            ).props("outlined dense").classes("w-full")
            told = say(entries["kind"].help)
            ui.label(f"{told[:1].upper()}{told[1:]}.").classes("ts-note pt-1")
            screen.fault_line((*path, "kind"))
            keys()
            ui.separator().classes("my-2")
            for key in ALWAYS:
                field(screen, entries[key], (*path, key))
            screen.fault_line(path)
        with named(ui.element("section").classes("ts-card"), say("Tree of {name}", name=name)):
            ui.html(say("What it looks like"), tag="h2")
            _Tree(screen, name)


def _kind(screen: Screen, path: tuple[str, str]) -> str:
    given = screen.get((*path, "kind"))
    if isinstance(given, str) and given in KINDS:
        return given
    said = screen.get(path) or {}
    if str(said.get("hierarchy", "")).lower().endswith(".hrc"):
        return "hrc"
    if "lengths" in said or "filler" in said:
        return "prefixes"
    return "equations" if "equations" in said else "auto" if "hierarchy" in said else "flat"


def _choose(screen: Screen, path: tuple[str, str], kind: str, keys: Any) -> None:
    """Another way to build it; what only the way before this one needed is taken out."""
    for key in SHAPING:
        if key not in KEYS[kind]:
            screen.get(path).pop(key, None)
    screen.get(path)["kind"] = kind
    screen.changed()
    keys.refresh()


class _Lengths:
    """Lengths of codes to click on, beside the field to write them in: the tree changes with each."""

    def __init__(self, screen: Screen, path: tuple[str, str], control: ui.input) -> None:
        self.screen, self.path, self.control = screen, (*path, "lengths"), control
        self.boxes: dict[int, ui.checkbox] = {}
        with ui.element("fieldset").classes("ts-row"):
            ui.html(say("Levels are the first … letters of a code"), tag="legend").classes("ts-note")
            for length in range(1, MOST_LENGTH + 1):
                self.boxes[length] = ui.checkbox(
                    str(length), value=length in self.now, on_change=lambda e, n=length: self._turn(n, bool(e.value))
                ).props("dense")
        screen.on_page.append(self._follow)

    @property
    def now(self) -> set[int]:
        """The lengths that are set."""
        given = self.screen.get(self.path)
        return {length for length in given if isinstance(length, int)} if isinstance(given, list) else set()

    def _turn(self, length: int, on: bool) -> None:
        wanted = sorted(self.now | {length} if on else self.now - {length})
        if set(wanted) != self.now:
            self.control.set_value(", ".join(map(str, wanted)))

    def _follow(self) -> None:
        """Tick what was written."""
        for length, box in self.boxes.items():
            if not box.is_deleted and box.value != (length in self.now):
                box.set_value(length in self.now)


class _Tree:
    """The tree of a dimension, drawn anew a moment after the draft changed."""

    def __init__(self, screen: Screen, name: str) -> None:
        self.screen, self.name, self.shown = screen, name, ""
        self.search = ui.input(say("Find a code"), on_change=lambda e: self._filter(str(e.value or "")))
        self.search.props("outlined dense clearable debounce=200").classes("w-full")
        self.box = ui.element("div").classes("w-full")
        self.waiting = ui.element("div")  # timers live outside the box, which is cleared
        self.tree: ui.tree | None = None
        self.busy = self.again = self.drawn = False
        screen.on_page.append(self.later)
        ui.timer(0.01, self.draw, once=True)

    def later(self) -> None:
        """Draw it anew in a moment, if what it is made from has changed."""
        if repr(self._made_from()) != self.shown and not self.box.is_deleted:
            with self.waiting:
                ui.timer(WAIT_S, self.draw, once=True)

    def _made_from(self) -> Any:
        draft = self.screen.draft
        tables = [table for table in draft.get("tables", []) if self.name in (table.get("dimensions") or [])]
        return draft.get("source"), draft.get("dimensions", {}).get(self.name), tables, self.screen.files

    async def draw(self) -> None:
        """Have the tree built, and show it; of several changes only the last counts."""
        if self.busy:
            self.again = True
            return
        made_from = repr(self._made_from())
        if made_from == self.shown:
            return
        self.busy, self.shown, job = True, made_from, self.screen.workspace.job_text()
        source, dimension, tables, _ = self._made_from()
        part = {"source": source, "dimensions": {self.name: dimension}, "tables": tables}
        try:
            found = await self.screen.compute(looking.tree, part, self.name)
            if self._is_of_now(made_from):
                self._show(found)
                self._ask(found, job)
        except TablesafeError as error:
            if self._is_of_now(made_from):
                self._fail(error, job)
        finally:
            self.busy = False
        if self.again:
            self.again = False
            await self.draw()

    def _is_of_now(self, made_from: str) -> bool:
        """Whether the page still shows what was asked about: the answer to an earlier question says nothing now."""
        return not self.box.is_deleted and made_from == repr(self._made_from())

    def _fail(self, error: TablesafeError, job: str) -> None:
        with self.box.clear():
            show_error(error, self.screen)
        if isinstance(error, TaskFailed) and not self.screen.faults:
            self.screen.blame(job, error, ("dimensions", self.name))

    def _ask(self, found: dict[str, Any], job: str) -> None:
        """A run would stop at codes that the hierarchy does not have: the page is not done before they have a place."""
        if found.get("many") and not self.screen.faults:
            first = [code for code, _ in found["strange"][:FEW]]
            codes = ", ".join(first) + (" …" if found["many"] > len(first) else ".")
            lack = text(LACKS[found["many"] > 1], many=found["many"], name=self.name, codes=codes)
            error = TaskFailed(InvalidTable.__name__, lack, "say beside the tree where they count.")
            self.screen.blame(job, error, ("dimensions", self.name))

    def _show(self, found: dict[str, Any]) -> None:
        if not found["codes"]:
            return
        with self.box.clear():
            ui.label(
                say(
                    "{codes:,} codes, {leaves:,} of them at the bottom, {levels} levels, sums: {sums:,}",
                    codes=found["codes"],
                    leaves=found["leaves"],
                    levels=found["levels"],
                    sums=found["sums"],
                )
            ).classes("ts-note py-1").props("role=status")
            for note in found["notes"]:
                ui.label(note).classes("ts-note")
            if found["none"]:
                _of_something_else(self.screen, self.name, found)
            elif found["strange"]:
                _Mapping(self.screen, self.name, found)
            for equation in found["equations"]:
                ui.label(equation).classes("font-mono text-sm")
            with ui.element("div").classes("ts-scroll").props("tabindex=0"):
                self.tree = ui.tree(found["nodes"], label_key="label").props("dense")
                self.tree.expand(None if found["codes"] <= SMALL else [node["id"] for node in found["nodes"]])
        if self.drawn:  # what was there before is no news
            self.screen.say(
                say(
                    "{name}: {codes:,} codes in {levels} levels.",
                    name=self.name,
                    codes=found["codes"],
                    levels=found["levels"],
                )
            )
        self.drawn = True

    def _filter(self, text: str) -> None:
        if self.tree is not None:
            self.tree.set_filter(text)
            if text:
                self.tree.expand()


def _of_something_else(screen: Screen, name: str, found: dict[str, Any]) -> None:
    """A hierarchy that has no code of the data: do without it, take another file, or map the codes nevertheless."""
    path = ("dimensions", name)

    def other(file: str) -> None:
        screen.put((*path, "hierarchy"), file)
        ui.navigate.reload()  # the fields show another file

    def without() -> None:
        for key in SHAPING:
            screen.get(path).pop(key, None)
        screen.put((*path, "kind"), "flat")
        ui.navigate.reload()

    with named(ui.element("section").classes("ts-card ts-ask"), say("Codes that {name} does not have", name=name)):
        told = "None of the codes of {name} is in this hierarchy: it seems to be of something else."
        ui.label("? " + say(told, name=name)).classes("font-medium")
        with ui.element("div").classes("ts-row py-1"):
            ui.button(say("Do without it: one total over all codes"), on_click=without).props("color=primary dense")
            for file in screen.files:
                if file.lower().endswith(".hrc") and file != screen.get((*path, "hierarchy")):
                    words = say("Use the hierarchy file {file} for {name}", file=file, name=name)
                    ui.button(words, on_click=lambda file=file: other(file)).props("outline dense color=primary")
    with ui.element("details"):
        with ui.element("summary"):
            ui.label(say("Say of each code where it counts")).classes("inline")
        _Mapping(screen, name, found)


class _Mapping:
    """Codes of the data that the hierarchy does not have: each can count in another code, or stand by itself."""

    def __init__(self, screen: Screen, name: str, found: dict[str, Any]) -> None:
        self.screen, self.name = screen, name
        self.chosen: dict[str, ui.select] = {}
        options = {
            designs.ALONE: say("a code of its own, below the total"),
            **{designs.BELOW + code: say("a code of its own, below {code}", code=code) for code in found["above"]},
            **{designs.IN + code: code for code in found["offered"]},
        }
        with named(ui.element("section").classes("ts-card ts-ask"), say("Codes that {name} does not have", name=name)):
            ui.label(
                "? "
                + say(
                    "1 code of the data is not in this hierarchy."
                    if found["many"] == 1
                    else "{many:,} codes of the data are not in this hierarchy.",
                    many=found["many"],
                )
            ).classes("font-medium")
            for code, near in found["strange"]:
                select = ui.select(options, value=near, label=say("{code} counts in", code=code), with_input=True)
                self.chosen[code] = select.props("outlined dense options-dense").classes("w-full pt-1")
            if found["many"] > len(found["strange"]):
                ui.label(say("and {many:,} more, after these.", many=found["many"] - len(found["strange"]))).classes(
                    "ts-note"
                )
            ui.button(say("Count them so"), on_click=self._use).props("color=primary dense").classes("mt-2")
            self.problem = ui.element("div")

    async def _use(self) -> None:
        where = {code: str(select.value or designs.ALONE) for code, select in self.chosen.items()}
        draft = self.screen.draft
        part = {"source": draft.get("source"), "dimensions": {self.name: draft["dimensions"][self.name]}}
        try:
            found = await self.screen.compute(designs.mapped, part, self.name, where)
            self.screen.workspace.recode(self.name, found["text"], found["total"], found["words"], merged=False)
        except TablesafeError as error:
            if not self.problem.is_deleted:
                with self.problem.clear():
                    show_error(error)
            return
        self.screen.decided()
        self.screen.say(f"{found['words']}.")
        ui.navigate.reload()  # the fields show another file


def _linked(screen: Screen) -> None:
    """Several linked tables over some of the dimensions, for those who publish no full cube."""
    entries = {entry.name: entry for entry in form_of(TableOptions).entries}

    def add() -> None:
        screen.put(
            ("tables",), [*(screen.get(("tables",)) or []), {"dimensions": list(screen.draft["dimensions"])[:2]}]
        )
        tables.refresh()

    def remove(at: int) -> None:
        rest = [table for number, table in enumerate(screen.get(("tables",)) or []) if number != at]
        screen.put(("tables",), rest or None)
        tables.refresh()

    with ui.element("details").classes("ts-card mt-4"):
        with ui.element("summary"):
            ui.html(say("Linked tables"), tag="h2").classes("inline")
        ui.label(say("Without any, one table over all dimensions is made.")).classes("ts-note")
        screen.fault_line(("tables",))

        @ui.refreshable
        def tables() -> None:
            columns, screen.columns = screen.columns, list(screen.draft.get("dimensions", {}))
            for at, _ in enumerate(screen.get(("tables",)) or []):
                with (
                    ui.element("div").classes("ts-inside").props(f"role=group {aria('Table {number}', number=at + 1)}")
                ):
                    for entry in entries.values():
                        field(screen, entry, ("tables", at, entry.name))
                    ui.button(say("Remove"), on_click=lambda at=at: remove(at)).props("flat dense color=primary")
            screen.columns = columns
            ui.button(say("Add a table"), icon="add", on_click=add).props("outline color=primary")

        tables()
        _further(screen)


def _further(screen: Screen) -> None:
    """A dimension that is no column of the source, but of the file of another table."""

    def add() -> None:
        wanted = str(name.value or "").strip()
        if wanted and wanted not in screen.draft["dimensions"]:
            screen.put(("dimensions", wanted), {})
            ui.navigate.reload()

    with ui.element("div").classes("ts-row pt-4"):
        name = ui.input(say("Column of another table's file")).props("outlined dense").classes("min-w-72")
        ui.button(say("Add as a dimension"), on_click=add).props("flat color=primary")
