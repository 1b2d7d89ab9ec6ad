"""The page Data: bring a file, see its columns, say what each of them is."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from nicegui import events, ui

from tablesafe.errors import TablesafeError
from tablesafe.job.model import Response, Source
from tablesafe.web.forms import Entry, form_of
from tablesafe.web.pages.columns import role_of, roles_of, set_role
from tablesafe.web.pages.fields import field, fields, folded
from tablesafe.web.pages.screen import Screen, heading, named, show_error

TITLE = Entry("title", "title of the table, for the report", "text", False, None, "Turnover by activity and region")


def page(screen: Screen) -> None:
    """Build the page."""
    heading("Data", "Bring microdata, or a finished table, and say what its columns are. Nothing leaves this machine.")
    screen.fault_list()
    _bring(screen)

    @ui.refreshable
    def below() -> None:
        _source(screen)

    screen.redraw = below.refresh
    below()


def _bring(screen: Screen) -> None:
    with (
        ui.element("section").classes("ts-card").props('aria-label="Bring data"'),
        ui.element("div").classes("ts-cols"),
    ):
        with ui.element("div"):
            ui.html("Upload", tag="h2")
            box = ui.element("q-uploader").classes("w-full")
            box.props('url=/upload label="Choose files or drop them here" multiple auto-upload')
            box.props("flat bordered color=grey-3 text-color=dark")
            box.props(f"max-file-size={screen.workspace.limits.upload_bytes}")
            box.on("uploaded", lambda e: _uploaded(screen, str(e.args)), js_handler="(i) => emit(i.xhr.responseText)")
            box.on("failed", lambda e: _failed(screen, str(e.args)), js_handler="(i) => emit(i.xhr.responseText)")
            box.on("rejected", lambda _: _rejected(screen), js_handler="() => emit()")
            ui.label(
                "CSV, Parquet, Excel, JJ, τ-ARGUS .asc and .tab; hierarchies; a job file (.toml) fills the app."
            ).classes("ts-note pt-1")
        with ui.element("div"):
            if screen.workspace.folder.root is not None:
                ui.html("From the folder", tag="h2")
                _folder(screen)
            ui.html("Example", tag="h2").classes("pt-2")
            ui.button("Use the demo data", icon="bolt", on_click=lambda: _demo(screen)).props("outline color=primary")
            ui.label("Revenue of 259 US electric utilities by state, month and sector, with a finished job.").classes(
                "ts-note pt-1"
            )
            _error_place(screen)


def _error_place(screen: Screen) -> None:
    screen.place = ui.element("div")


def _folder(screen: Screen) -> None:
    """Files of the allowed folder, one folder at a time."""
    state = {"at": ""}

    @ui.refreshable
    def entries() -> None:
        try:
            found = screen.workspace.folder.entries(state["at"])
        except TablesafeError as error:
            show_error(error)
            return
        options = {entry.name: ("▸ " if entry.folder else "") + entry.name for entry in found}
        if state["at"]:
            options = {"..": "↑ back", **options}
        folders = {entry.name for entry in found if entry.folder} | {".."}

        async def choose(event: events.ValueChangeEventArguments[Any]) -> None:
            if event.value in folders:
                state["at"] = state["at"].rpartition("/")[0] if event.value == ".." else str(event.value)
                entries.refresh()
            elif event.value:
                await take(screen, screen.workspace.use(str(event.value)))

        ui.select(
            options, label=f"File in {state['at'] or 'the allowed folder'}", with_input=True, on_change=choose
        ).props("outlined dense").classes("w-full")

    entries()


async def _uploaded(screen: Screen, answer: str) -> None:
    for name in json.loads(answer)["files"]:
        await take(screen, str(name))


def _failed(screen: Screen, answer: str) -> None:
    """Show what the app said about an upload that it refused."""
    try:
        said = json.loads(answer)
        hint = f"\n\nHint: {said['hint']}" if said.get("hint") else ""
        _tell_error(screen, TablesafeError(f"{said['message']}{hint}"))
    except (ValueError, KeyError, TypeError):
        _tell_error(screen, TablesafeError("The upload was refused: the file may be too large."))


def _rejected(screen: Screen) -> None:
    most = screen.workspace.limits.upload_bytes / 1e6
    _tell_error(screen, TablesafeError(f"The file is too large: {most:,.0f} MB may be uploaded."))


def _tell_error(screen: Screen, error: Exception) -> None:
    with screen.place.clear():
        show_error(error)
    screen.say(str(error).partition("\n")[0])


async def take(screen: Screen, name: str) -> None:
    """Use a file that was brought: a job file fills the app, the first data file becomes the source."""
    screen.place.clear()
    try:
        if name.lower().endswith(".toml"):
            _take_job(screen, name)
            screen.say(f"The job file {name} fills the app.")
        elif screen.get(("source", "file")) is None and not name.lower().endswith((".hrc", ".rda", ".hst", ".grc")):
            screen.say(f"Looking at {name} …")
            screen.replace_draft(_with_sheet(await screen.workspace.suggest(name)))
            screen.say(f"{name} is here. What its columns are is a guess: check it.")
        else:
            screen.changed()
            screen.say(f"{name} is here.")
    except TablesafeError as error:
        _tell_error(screen, error)
        if screen.get(("source", "file")) is None:
            screen.replace_draft({"source": {"file": name}})
    screen.redraw()


def _with_sheet(draft: dict[str, Any]) -> dict[str, Any]:
    """A suggested job that writes its release as a spreadsheet too."""
    output = draft.get("output", {})
    for name in list(output.get("release", [])):
        sheet = str(Path(name).with_suffix(".xlsx"))
        if sheet not in output["release"]:
            output["release"].append(sheet)
    return draft


def _take_job(screen: Screen, name: str) -> None:
    text = (screen.workspace.path / name).read_text(encoding="utf-8-sig", errors="replace")
    screen.workspace.remove(name)
    try:
        draft = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        from tablesafe.job import parse_job

        parse_job(text)  # says what is wrong in our own words
        raise
    screen.replace_draft(draft)


async def _demo(screen: Screen) -> None:
    """Copy the packaged example into the workspace."""

    async def once(data: bytes) -> Any:
        yield data

    for item in files("tablesafe").joinpath("demo").iterdir():
        if item.is_file() and item.name.endswith(".csv"):
            await screen.workspace.receive(item.name, once(item.read_bytes()))
    text = files("tablesafe").joinpath("demo", "job.toml").read_text(encoding="utf-8")
    screen.replace_draft(tomllib.loads(text))
    screen.say("The demo data is here, with its job.")
    screen.redraw()


def _source(screen: Screen) -> None:
    """What the source is, and its columns."""
    _files(screen)
    if not screen.draft:
        return
    with ui.element("section").classes("ts-card").props('aria-label="Source"'):
        ui.html("Source", tag="h2")
        forms = {entry.name: entry for entry in form_of(Source).entries}
        field(screen, TITLE, ("title",))
        field(screen, forms["file"], ("source", "file"))
        field(screen, forms["kind"], ("source", "kind"))
    with ui.element("section").classes("ts-card").props('aria-label="Columns"'):
        ui.html("Columns", tag="h2")
        holder = ui.element("div").classes("w-full")
        with holder:
            ui.spinner()
    ui.timer(0.01, lambda: _columns(screen, holder), once=True)
    folded(
        "Every option of the source",
        lambda: fields(screen, form_of(Source), ("source",), skip=("file", "kind")),
    )
    folded("What is added up", lambda: fields(screen, form_of(Response), ("response",)))
    screen.show_faults()


def _files(screen: Screen) -> None:
    if not screen.files:
        return
    with ui.element("section").classes("ts-card").props('aria-label="Files"'):
        ui.html("Files of this workspace", tag="h2")
        with ui.element("ul").classes("ts-row"):
            for name in screen.files:
                with ui.element("li").classes("ts-row border border-gray-300 rounded px-2"):
                    ui.label(name)
                    button = ui.button("Remove", on_click=lambda name=name: _remove(screen, name))
                    named(button.props("flat dense size=sm color=primary"), f"Remove {name}")


def _remove(screen: Screen, name: str) -> None:
    screen.workspace.remove(name)
    screen.changed()
    screen.say(f"{name} is removed.")
    screen.redraw()


async def _columns(screen: Screen, holder: ui.element) -> None:
    """The columns of the source, each with what it is used for."""
    try:
        found = await screen.workspace.columns()
    except TablesafeError as error:
        found = []
        if not holder.is_deleted:
            with holder.clear():
                show_error(error)
            return
    if holder.is_deleted:
        return
    screen.columns = [column["name"] for column in found]
    with holder.clear():
        if not found:
            ui.label("This file describes its cells itself: there are no columns to assign.").classes("ts-note")
            return
        rows = max((column["rows"] for column in found), default=0)
        ui.label(f"{rows:,} rows, {len(found):,} columns").classes("ts-note pb-2")
        with ui.element("div").classes("ts-scroll tall"), ui.element("table").classes("ts-list"):
            with ui.element("thead"), ui.element("tr"):
                for head in ("Column", "Holds", "Distinct", "Empty", "Examples", "It is"):
                    ui.html(head, tag="th").props("scope=col").classes("num" if head in {"Distinct", "Empty"} else "")
            with ui.element("tbody"):
                for column in found:
                    _column(screen, column)


def _column(screen: Screen, column: dict[str, Any]) -> None:
    name = column["name"]
    with ui.element("tr"):
        with ui.element("th").props("scope=row"):
            ui.label(name)
        for text, number in (
            (column["kind"], False),
            (f"{column['distinct']:,}", True),
            (f"{column['empty']:,}", True),
        ):
            with ui.element("td").classes("num" if number else "tight"):
                ui.label(text)
        with ui.element("td"):
            ui.label(", ".join(column["examples"][:5])).classes("ts-note")
        with ui.element("td"):
            roles = ui.select(
                roles_of(screen.draft), value=role_of(screen.draft, name),
                on_change=lambda e: _assign(screen, name, str(e.value)),
            ).props("outlined dense options-dense").classes("min-w-52")  # fmt: skip
            named(roles, f"What {name} is")


def _assign(screen: Screen, name: str, role: str) -> None:
    set_role(screen.draft, name, role)
    screen.changed()
    screen.say(f"{name}: {role}.")
