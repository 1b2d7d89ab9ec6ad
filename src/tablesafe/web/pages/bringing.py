"""Bringing data into a workspace: uploads, files of the allowed folder, the demo, and job files that fill the app."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from nicegui import events, ui
from nicegui.element import Element

from tablesafe.core.errors import TablesafeError
from tablesafe.core.language import text
from tablesafe.web.pages.screen import Screen, in_words, show_error
from tablesafe.web.roles import DIMENSION, set_role, used_columns
from tablesafe.web.runs import Run
from tablesafe.web.saved import open_saved
from tablesafe.web.speech import aria, say
from tablesafe.web.tasks import data as looking
from tablesafe.web.tasks.saving import SUFFIX

FATES = ("here", "refused", "broken off")
"""What becomes of an upload."""


class Upload(Element, component="upload.js"):
    """A place to choose files, or to drop them: they are sent to `/upload`, and what the app answered is told."""

    def __init__(self, label: str, most: int) -> None:
        super().__init__()
        words = {state: say(state) for state in FATES}
        self._props.update({"label": label, "most": most, "words": words})


class Arrivals:
    """Uploads that were chosen together: they come in side by side, and are handed on in the order of the choice.

    Else the smallest file would come first and be taken for the source. Nothing is handed on before all have ended:
    the first source draws the page anew, which would break off the others.
    """

    def __init__(self) -> None:
        self._chosen: list[str] = []
        self._ended: list[tuple[str, list[str]]] = []

    def chosen(self, names: list[str]) -> None:
        """Expect these files too."""
        self._chosen += names

    def ended(self, name: str, stored: list[str]) -> list[str]:
        """Note under which names a file was stored, none if it was refused; all that may be taken now, in order."""
        self._ended.append((name, stored))
        if len(self._ended) < len(self._chosen):
            return []
        order = {name: place for place, name in reversed(list(enumerate(self._chosen)))}
        ready = sorted(self._ended, key=lambda one: order.get(one[0], len(order)))
        self._chosen, self._ended = [], []
        return [name for _, names in ready for name in names]


def bring(screen: Screen) -> None:
    """All ways to bring data."""
    with (
        ui.element("section").classes("ts-card").props(aria("Bring data")),
        ui.element("div").classes("ts-cols"),
    ):
        with ui.element("div"):
            ui.html(say("Upload"), tag="h2")
            coming = Arrivals()
            box = Upload(say("Choose files or drop them here"), screen.workspace.limits.upload_bytes)
            box.on("added", lambda e: coming.chosen([str(name) for name in e.args]))
            box.on("uploaded", lambda e: _uploaded(screen, coming, *e.args))
            box.on("failed", lambda e: _failed(screen, coming, *e.args))
            box.on("rejected", lambda _: _rejected(screen))
            ui.label(
                say(
                    "CSV, Parquet, Excel, Stata, SPSS, SAS, SDMX, PX, JSON-stat, JJ, τ-ARGUS .asc and .tab; "
                    "hierarchies; a job file (.toml) or a saved session (.tablesafe) fills the app."
                )
            ).classes("ts-note pt-1")
        with ui.element("div"):
            with_folder = screen.workspace.folder.root is not None
            if with_folder:
                ui.html(say("From the folder"), tag="h2")
                _folder(screen)
            ui.html(say("Example"), tag="h2").classes("pt-2" if with_folder else "")
            ui.button(say("Use the demo data"), icon="bolt", on_click=lambda: _demo(screen)).props(
                "outline color=primary"
            )
            ui.label(
                say("Revenue of 258 US electric utilities by state, month and sector, with a finished job.")
            ).classes("ts-note pt-1")
            _session(screen)
            _error_place(screen)


def _session(screen: Screen) -> None:
    """What can be done with all of it; drawn anew when there is a job, or none any more."""
    shown = {"job": bool(screen.draft)}

    @ui.refreshable
    def inside() -> None:
        _jobs(screen)

    def follow() -> None:
        if bool(screen.draft) != shown["job"]:
            shown["job"] = bool(screen.draft)
            inside.refresh()

    inside()
    screen.on_page.append(follow)


def _jobs(screen: Screen) -> None:
    """Save what there is, begin anew, or go back to a job that was run."""
    if screen.draft:
        ui.html(say("This session"), tag="h2").classes("pt-2")
        with ui.element("div").classes("ts-row"):
            ui.button(say("Save the session"), icon="save", on_click=lambda: _save(screen)).props(
                "outline color=primary"
            )
            ui.button(say("New job"), icon="restart_alt", on_click=lambda: _anew(screen)).props("outline color=primary")
        ui.label(
            say(
                "One file with the data, the job and all decisions, as confidential as the data: upload it to go on. "
                "A new job begins with nothing; finished runs stay."
            )
        ).classes("ts-note pt-1")
    recent = screen.runs.recent()
    if recent:
        ui.html(say("Recent jobs"), tag="h2").classes("pt-2")
        with ui.element("ul").classes("ts-plain").props(aria("Recent jobs")):
            for run in recent:
                with ui.element("li"):
                    words = f"{run.title}, {run.id}" + (f": {run.facts['verdict']}" if run.facts else "")
                    ui.button(words, on_click=lambda run=run: _back(screen, run)).props(
                        "flat dense color=primary align=left"
                    )


def _back(screen: Screen, run: Run) -> None:
    screen.replace_draft(screen.runs.go_back(run))
    screen.say(say("The job is that of {run} again.", run=run.id))
    ui.navigate.reload()


def _save(screen: Screen) -> None:
    ui.download.from_url("/session")
    screen.say(say("The session is being saved: keep the file as you keep the data."))


def _anew(screen: Screen) -> None:
    """Begin with nothing; the runs stay to be compared, and any of them can be gone back to."""
    screen.workspace.clear()
    screen.changed()
    screen.say(say("A new job."))
    ui.navigate.reload()


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
                try:
                    name = screen.workspace.use(str(event.value))
                except TablesafeError as error:
                    tell_error(screen, error)
                    return
                await take(screen, name)

        ui.select(
            options,
            label=say("File in {folder}", folder=state["at"] or say("the allowed folder")),
            with_input=True,
            on_change=choose,
        ).props("outlined dense").classes("w-full")

    entries()


async def _uploaded(screen: Screen, coming: Arrivals, name: str, answer: str) -> None:
    for stored in coming.ended(name, [str(file) for file in json.loads(answer)["files"]]):
        await take(screen, stored)


async def _failed(screen: Screen, coming: Arrivals, name: str, answer: str) -> None:
    """Take the files that came with an upload that the app refused, and show what it said."""
    for stored in coming.ended(name, []):
        await take(screen, stored)
    _show_refusal(screen, answer)


def _show_refusal(screen: Screen, answer: str) -> None:
    try:
        said = json.loads(answer)
        tell_error(screen, TablesafeError(str(said["message"]), hint=str(said.get("hint") or "")))
    except (ValueError, KeyError, TypeError):
        tell_error(screen, TablesafeError(text("The upload was refused: the file may be too large.")))


def _rejected(screen: Screen) -> None:
    most = screen.workspace.limits.upload_bytes / 1e6
    tell_error(screen, TablesafeError(text("The file is too large: {most:,.0f} MB may be uploaded.", most=most)))


def tell_error(screen: Screen, error: Exception) -> None:
    """Say what went wrong with a file."""
    if not screen.place.is_deleted:
        with screen.place.clear():
            show_error(error)
    screen.say(in_words(error)[0])


async def take(screen: Screen, name: str) -> None:
    """Use a file that was brought: a job file fills the app, the first data file becomes the source.

    Several may come at once. They are taken one after the other, or each would think itself the first.
    """
    async with screen.taking:
        _wait(screen, name)
        await _take(screen, name)


def _wait(screen: Screen, name: str) -> None:
    if not screen.place.is_deleted:
        with screen.place.clear(), ui.element("div").classes("ts-row pt-2"):
            ui.spinner()
            ui.label(say("Looking at {name} …", name=name)).classes("ts-note")


async def _take(screen: Screen, name: str) -> None:
    error: TablesafeError | None = None
    try:
        if name.lower().endswith(SUFFIX):
            screen.replace_draft(await open_saved(screen.workspace, name))
            screen.say(say("The session {name} is open: run the job for its result.", name=name))
        elif name.lower().endswith(".toml"):
            screen.replace_draft(screen.workspace.take_job(name))
            screen.say(say("The job file {name} fills the app.", name=name))
        elif _waits_for_data(screen) and not name.lower().endswith((".hrc", ".rda", ".hst", ".grc")):
            screen.say(say("Looking at {name} …", name=name))
            screen.replace_draft(with_sheet(await screen.workspace.suggest(name)), guessed=True)
            screen.say(say("{name} is here. What its columns are is a guess: check it.", name=name))
        else:
            screen.changed()
            screen.say(say("{name} is here.", name=name))
            if name.lower().endswith(".hrc"):
                await _matched(screen, name)
    except TablesafeError as caught:
        error = caught
        if screen.get(("source", "file")) is None and name in screen.files:
            screen.replace_draft({"source": {"file": name}}, guessed=True)
    if screen.place.is_deleted:  # the user went on to another page
        return
    screen.place.clear()
    if error is not None:
        tell_error(screen, error)
    screen.redraw()


def _waits_for_data(screen: Screen) -> bool:
    """Whether the next data file is the one that is meant: there is none yet, or only one that could not be read."""
    return screen.get(("source", "file")) is None or (
        set(screen.draft) == {"source"} and set(screen.draft["source"]) == {"file"}
    )


async def _matched(screen: Screen, name: str) -> None:
    """Use a hierarchy for the one dimension whose codes it holds; the page Dimensions shows the tree."""
    found = await screen.compute(looking.fits, screen.draft, name, used_columns(screen.draft))
    if len(found) == 1:
        dimension, lacking = next(iter(found.items()))
        if dimension not in screen.draft.get("dimensions", {}):  # codes of digits look like amounts
            set_role(screen.draft, dimension, DIMENSION)
        screen.put(("dimensions", dimension, "hierarchy"), name)
        told = "{name} is here and used: it holds the codes of {dimension}."
        if lacking:
            told = "{name} is here and used: it lacks {lacking:,} codes of {dimension}, see the page Dimensions."
            if lacking == 1:
                told = "{name} is here and used: it lacks a code of {dimension}, see the page Dimensions."
        screen.say(say(told, name=name, dimension=dimension, lacking=lacking))
    elif found:
        screen.say(
            say("{name} is here: it fits {found}; choose on the page Dimensions.", name=name, found=", ".join(found))
        )


def with_sheet(draft: dict[str, Any]) -> dict[str, Any]:
    """A suggested job that writes its release as a spreadsheet too."""
    output = draft.get("output", {})
    for name in list(output.get("release", [])):
        sheet = str(Path(name).with_suffix(".xlsx"))
        if sheet not in output["release"]:
            output["release"].append(sheet)
    return draft


async def _demo(screen: Screen) -> None:
    """Copy the packaged example into the workspace."""

    async def once(data: bytes) -> Any:
        yield data

    for item in files("tablesafe").joinpath("demo").iterdir():
        if item.is_file() and item.name.endswith(".csv"):
            await screen.workspace.receive(item.name, once(item.read_bytes()))
    job = files("tablesafe").joinpath("demo", "job.toml").read_text(encoding="utf-8")
    screen.replace_draft(tomllib.loads(job))
    screen.say(say("The demo data is here, with its job."))
    screen.redraw()
