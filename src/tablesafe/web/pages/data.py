"""The page Data: bring a file, see its columns, say what each of them is."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from tablesafe.core.errors import TablesafeError
from tablesafe.io.layout import EXCEL_ENDINGS
from tablesafe.job.model import Response, Source
from tablesafe.job.questions import Question
from tablesafe.web.desk import CROSSTAB, READING
from tablesafe.web.forms import Entry, form_of
from tablesafe.web.pages.bringing import bring, tell_error, with_sheet
from tablesafe.web.pages.fields import field, fields, folded
from tablesafe.web.pages.screen import Screen, heading, named, show_error
from tablesafe.web.roles import role_of, roles_of, set_role
from tablesafe.web.speech import aria, numeral, say
from tablesafe.web.worker import TaskFailed

ROLES = ("heading", "label", "number", "note")
"""What cells of a sheet can be taken for."""
HEADS = ("Column", "Holds", "Distinct", "Empty", "Negative", "Examples", "It is")
HOLDS = ("text", "numbers", "whole numbers")
COUNTED = {"Distinct", "Empty", "Negative"}
TITLE = Entry("title", "title of the table, for the report", "text", False, None, "Turnover by activity and region")


def page(screen: Screen) -> None:
    """Build the page."""
    heading(
        say("Data"),
        say("Bring microdata, or a finished table, and say what its columns are. Nothing leaves this machine."),
    )
    screen.fault_list()
    bring(screen)

    @ui.refreshable
    def below() -> None:
        _source(screen)

    screen.redraw = below.refresh
    below()


def _source(screen: Screen) -> None:
    """What the source is, and its columns."""
    _files(screen)
    if not screen.draft:
        return
    with ui.element("section").classes("ts-card").props(aria("Source")):
        ui.html(say("Source"), tag="h2")
        forms = {entry.name: entry for entry in form_of(Source).entries}
        _title(screen)
        field(screen, forms["file"], ("source", "file"))
        reading = _reading_keys(screen)
        for key in (*reading, "kind"):
            field(screen, forms[key], ("source", key))
        ui.button(say("Guess anew from this file"), icon="refresh", on_click=lambda: _guess(screen)).props(
            "flat dense color=primary"
        )
    _questions(screen)
    with ui.element("section").classes("ts-card").props(aria("Columns")):
        ui.html(say("Columns"), tag="h2")
        holder = ui.element("div").classes("w-full")
        with holder:
            ui.spinner()
    _follow(screen, holder)
    folded(
        say("Every option of the source"),
        lambda: fields(screen, form_of(Source), ("source",), skip=("file", "kind", *reading)),
    )
    folded(say("What is added up"), lambda: fields(screen, form_of(Response), ("response",)))
    screen.show_faults()


def _title(screen: Screen) -> None:
    """The field of the title, which follows what the columns are as long as nobody wrote another."""
    box = field(screen, TITLE, ("title",))

    def follow() -> None:
        now = str(screen.get(("title",)) or "")
        if isinstance(box, ui.input) and not box.is_deleted and box.value != now:
            box.set_value(now)

    screen.on_page.append(follow)


def _questions(screen: Screen) -> None:
    """What the data leave to decide, each with its answers as buttons; those that nobody answered stand out."""

    @ui.refreshable
    def asked() -> None:
        found = screen.workspace.questions()
        if not found:
            return
        still = screen.workspace.open_questions()
        with ui.element("section").classes("ts-card" + (" ts-ask" if still else "")).props(aria("To decide")):
            ui.html(say("To decide"), tag="h2")
            for question in found:
                _question(screen, question, still=question in still)

    asked()
    screen.on_page.append(asked.refresh)


def _question(screen: Screen, question: Question, *, still: bool) -> None:
    def answer(path: tuple[str | int, ...], value: Any) -> None:
        screen.workspace.accepted.add(str(question.found))
        if path:
            screen.put(path, value)
        screen.refresh()
        screen.say(say("{column}: decided.", column=question.column))

    with ui.element("div").classes("py-2"):
        ui.label(f"{'?' if still else '✓'} {say(question.found)}: {say(question.now)}.").classes(
            "font-medium" if still else ""
        )
        with ui.element("div").classes("ts-row pt-1"):
            if still and not question.stops:
                leave = ui.button(say("Leave it so"), on_click=lambda: answer((), None)).props("color=primary dense")
                named(leave, say("Leave it so: {found}", found=say(question.found)))
            for each in question.answers:
                if screen.get(each.path) != each.value:
                    ui.button(say(each.words), on_click=lambda each=each: answer(each.path, each.value)).props(
                        "outline dense color=primary"
                    )


def _reading_keys(screen: Screen) -> tuple[str, ...]:
    """What must be said before a file can be read at all: which sheet of a workbook, and how it is laid out."""
    printed = screen.get(("source", "layout")) == CROSSTAB
    sheet = str(screen.get(("source", "file"))).lower().endswith(EXCEL_ENDINGS)
    how = ("layout", *(("area", "header_rows", "label_columns") if printed else ()))
    return (*(("sheet",) if sheet else ()), *(how if sheet or printed else ()))


def _follow(screen: Screen, holder: ui.element) -> None:
    """Show the columns, and again whenever another file is named or it is read otherwise."""
    waiting, shown, first = ui.element("div"), {"read": ""}, _reading_keys(screen)

    def again() -> None:
        now = _read_as(screen)
        if now != shown["read"] and not waiting.is_deleted:
            asked_before, shown["read"] = bool(shown["read"]), now
            if asked_before and _reading_keys(screen) != first:
                screen.redraw()
            elif asked_before and first and set(screen.draft) <= {"source", "title"}:  # it could not be read till now
                with waiting:
                    ui.timer(0.01, lambda: _guess(screen), once=True)
            else:
                with waiting:
                    ui.timer(0.01, lambda: _columns(screen, holder), once=True)

    screen.on_page.append(again)
    again()


def _read_as(screen: Screen) -> str:
    """How the source is read: what its columns depend on."""
    source = screen.draft.get("source", {})
    return repr([source.get(key) for key in ("file", "kind", *READING)])


async def _guess(screen: Screen) -> None:
    """Start a new job from a look at the file that is named."""
    name = screen.get(("source", "file"))
    if name not in screen.files:
        screen.say(say("Choose a file first."))
        return
    try:
        screen.replace_draft(with_sheet(await screen.workspace.suggest(str(name))), guessed=True)
        screen.place.clear()
        screen.say(say("What the columns of {name} are is a guess: check it.", name=name))
    except TablesafeError as error:
        tell_error(screen, error)
    screen.redraw()


def _files(screen: Screen) -> None:
    if not screen.files:
        return
    with ui.element("section").classes("ts-card").props(aria("Files")):
        ui.html(say("Files of this workspace"), tag="h2")
        with ui.element("ul").classes("ts-row"):
            for name in screen.files:
                with ui.element("li").classes("ts-row border border-gray-300 rounded px-2"):
                    ui.label(name)
                    button = ui.button(say("Remove"), on_click=lambda name=name: _remove(screen, name))
                    named(button.props("flat dense size=sm color=primary"), say("Remove {name}", name=name))


def _remove(screen: Screen, name: str) -> None:
    screen.workspace.remove(name)
    screen.changed()
    screen.say(say("{name} is removed.", name=name))
    screen.redraw()


async def _columns(screen: Screen, holder: ui.element) -> None:
    """The columns of the source, each with what it is used for."""
    read, job = _read_as(screen), screen.workspace.job_text()
    try:
        found = await screen.workspace.columns()
    except TablesafeError as error:
        if not holder.is_deleted and read == _read_as(screen):
            _unread(screen, holder, error, job)
        return
    if holder.is_deleted or read != _read_as(screen):  # it is read otherwise by now, and asked about again
        return
    screen.columns = [column["name"] for column in found]
    screen.check()  # now it is known which columns there are
    screen.refresh()  # and what they leave to decide
    with holder.clear():
        if not found:
            ui.label(say("This file describes its cells itself: there are no columns to assign.")).classes("ts-note")
            return
        rows = max((column["rows"] for column in found), default=0)
        ui.label(say("{rows:,} rows, {columns:,} columns", rows=rows, columns=len(found))).classes("ts-note pb-2")
        box = ui.element("div").classes("ts-scroll tall").props("tabindex=0 " + aria("Columns"))
        with box, ui.element("table").classes("ts-list ts-cards"):
            with ui.element("thead"), ui.element("tr"):
                for head in HEADS:
                    ui.html(say(head), tag="th").props("scope=col").classes("num" if head in COUNTED else "")
            with ui.element("tbody"):
                for column in found:
                    _column(screen, column)
    screen.show_faults()
    if screen.get(("source", "layout")) == CROSSTAB:
        await _understood(screen, holder)


async def _understood(screen: Screen, holder: ui.element) -> None:
    """What was made of a printed table, to be checked before anything is done with it."""
    read = _read_as(screen)
    try:
        found = await screen.workspace.understood()
    except TablesafeError:
        return  # the columns tell
    if holder.is_deleted or read != _read_as(screen):
        return
    with holder, named(ui.element("section").classes("pt-4"), say("What was understood")):
        ui.html(say("What was understood"), tag="h3")
        ui.label("\n".join(found["lines"])).classes("ts-note whitespace-pre-wrap")
        box = ui.element("div").classes("ts-scroll").props("tabindex=0 " + aria("The beginning of the sheet"))
        with box, ui.element("table").classes("ts-sheet"):
            for row in found["excerpt"]:
                with ui.element("tr"):
                    for text, role in row:
                        with ui.element("th" if role in {"heading", "label"} else "td").classes(role):
                            ui.label(text)
        with ui.element("div").props("role=list " + aria("What the cells were taken for")):
            for role in ROLES:
                ui.label(say(role)).classes(f"ts-sheet-key {role}").props("role=listitem")
        ui.label(say("If that is wrong, say above where the table is, and how many rows are headings.")).classes(
            "ts-note"
        )


def _unread(screen: Screen, holder: ui.element, error: TablesafeError, job: str) -> None:
    """Say why there are no columns: beside the field that is to blame, or here."""
    blamed = isinstance(error, TaskFailed) and screen.blame(job, error)
    with holder.clear():
        if blamed:
            ui.label(say("They cannot be read yet.")).classes("ts-note")
        else:
            show_error(error, screen)


def _column(screen: Screen, column: dict[str, Any]) -> None:
    name = column["name"]
    with ui.element("tr"):
        with ui.element("th").props("scope=row"):
            ui.label(name)
        told = {
            "Holds": say(column["kind"]),
            "Distinct": numeral(column["distinct"]),
            "Empty": numeral(column["empty"]),
            "Negative": numeral(column["negative"]) if column["kind"] != "text" else "",
        }
        for head, text in told.items():
            cell = ui.element("td").classes("num" if head in COUNTED else "tight").classes("" if text else "blank")
            cell.props["data-head"] = say(head)
            with cell:
                ui.label(text)
        cell = ui.element("td")
        cell.props["data-head"] = say("Examples")
        with cell:
            ui.label("; ".join(column["examples"][:5])).classes("ts-note")
        with ui.element("td").classes("whole"):
            roles = ui.select(
                {role: say(role) for role in roles_of(screen.draft)}, value=role_of(screen.draft, name),
                on_change=lambda e: _assign(screen, name, str(e.value)),
            ).props("outlined dense options-dense").classes("ts-role")  # fmt: skip
            named(roles, say("What {name} is", name=name))
            screen.column_line(name)


def _assign(screen: Screen, name: str, role: str) -> None:
    set_role(screen.draft, name, role)
    made = screen.workspace.recoded  # of dimensions that are none any more nothing is merged
    made[:] = [each for each in made if each.dimension in screen.draft.get("dimensions", {})]
    screen.changed()
    screen.say(f"{name}: {say(role)}.")
