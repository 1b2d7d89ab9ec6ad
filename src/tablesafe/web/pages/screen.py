"""What one open page works with: the user's workspace, what is wrong with the job, and whom to tell of changes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nicegui import ui

from tablesafe.attack.registry import ATTACKS
from tablesafe.errors import InvalidInput
from tablesafe.job.decode import Fault
from tablesafe.job.words import brief
from tablesafe.web.forms import get, put
from tablesafe.web.pages.blame import culprit
from tablesafe.web.worker import TaskFailed

if TYPE_CHECKING:
    from tablesafe.web.runs import Runs
    from tablesafe.web.workspace import Workspace

Path = tuple[str | int, ...]
USER_ERRORS = {kind.__name__ for kind in InvalidInput.__subclasses__()}
"""Errors that something in the job caused."""
STEP_OF = {
    "title": "Data", "source": "Data", "response": "Data", "dimensions": "Dimensions", "tables": "Dimensions",
    "rules": "Rules", "problem": "Rules",
}  # fmt: skip
"""On which page each part of a job is edited; all others on the page of the method."""


def step_of(fault: Fault) -> str:
    """The page on which a fault can be mended."""
    return STEP_OF.get(str(fault.path[0]) if fault.path else "source", "Method")


class Screen:
    """One page of one user in one browser tab."""

    def __init__(self, workspace: Workspace, runs: Runs) -> None:
        self.workspace, self.runs = workspace, runs
        self.columns: list[str] = []
        """The columns of the source, to choose from."""
        self.faults: list[Fault] = []
        self.after_change: list[Callable[[], object]] = []
        """What is done after the job has changed, besides checking it."""
        self.on_page: list[Callable[[], object]] = []
        """The same, of the page that is shown now."""
        self.timers: list[ui.timer] = []
        """Timers of the page that is shown now."""
        self.step, self.here = "", "/"
        self.place: ui.element = ui.element("div").classes("ts-hidden")
        """Where the page that is shown now tells of errors that no field caused."""
        self.shown_run = ""
        """The run that the page Result shows."""
        self.redraw: Callable[[], object] = lambda: None
        """Draw the page that is shown now anew."""
        self._found: tuple[str, Fault] | None = None
        """What only the work itself found wrong, and with which job."""
        self._lines: dict[Path, ui.label] = {}
        self._others: ui.element | None = None
        self._status: ui.label | None = None

    def start_page(self) -> None:
        """Forget what the page before this one wanted to know."""
        self._lines.clear()
        self._others = None
        self.on_page.clear()
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()

    # -- the job -----------------------------------------------------------------------------------------------------

    @property
    def draft(self) -> dict[str, Any]:
        """The job as plain data."""
        return self.workspace.draft

    @property
    def files(self) -> list[str]:
        """The files that the job may read."""
        return list(self.workspace.files)

    def get(self, path: Path) -> Any:
        """A value of the job; None where nothing is set."""
        return get(self.draft, path)

    def put(self, path: Path, value: Any) -> None:
        """Set a value of the job, or take it out; empty tables go with it."""
        if get(self.draft, path) == value:
            return
        put(self.draft, path, value)
        if value is None and len(path) == 2 and self.draft.get(str(path[0])) == {}:
            self.draft.pop(str(path[0]))
        self.changed()

    def changed(self) -> None:
        """Check the job again and tell everybody who wants to know."""
        self.check()
        for listener in [*self.after_change, *self.on_page]:
            listener()

    def replace_draft(self, draft: Mapping[str, Any]) -> None:
        """Take another job."""
        self.workspace.draft = copy.deepcopy(dict(draft))
        self.changed()

    def offers(self, name: str) -> list[str]:
        """What a list of texts may hold: the attacks for attacks, the columns of the source for anything else."""
        return [*ATTACKS, "all"] if name == "attacks" else self.columns

    # -- what is wrong -----------------------------------------------------------------------------------------------

    def fault_line(self, path: Path) -> ui.label:
        """A place, beside the field at `path`, for what is wrong with it."""
        line = ui.label().classes("ts-fault").props("role=alert")
        line.set_visibility(False)
        self._lines[path] = line
        return line

    def show_faults(self) -> None:
        """Say again what is wrong: fields were drawn."""
        self._show(self.faults)

    def fault_list(self) -> None:
        """A place for what is wrong but has no field on this page."""
        self._others = ui.element("div").classes("ts-faults").props('role=alert aria-label="What is wrong"')
        self._others.set_visibility(False)

    def check(self) -> None:
        """Look the job over, and say beside each field what is wrong with it."""
        self.faults = self.workspace.check() if self.draft else []
        if self._found is not None and not self.faults and self._found[0] == self.workspace.job_text():
            self.faults = [self._found[1]]
        self._show(self.faults)

    def forget(self) -> None:
        """Try anew what failed: files may have changed."""
        self._found = None
        self.check()

    def blame(self, job: str, error: TaskFailed) -> None:
        """Note what the work on a job found wrong, beside the field that it is about, until the job is changed."""
        if error.kind in USER_ERRORS:
            self._found = (job, Fault(culprit(self.draft, str(error)), brief(error)))
            self.check()

    def _show(self, faults: list[Fault]) -> None:
        self._lines = {path: line for path, line in self._lines.items() if not line.is_deleted}
        found: dict[Path, list[str]] = {}
        rest: list[str] = []
        for fault in faults:
            where = self._nearest(tuple(fault.path))
            if where is not None:
                found.setdefault(where, []).append(fault.message)
            elif step_of(fault) == self.step:
                rest.append(fault.message)
        for path, line in self._lines.items():
            line.set_text("\n".join(found.get(path, ())))
            line.set_visibility(path in found)
        if self._others is not None and not self._others.is_deleted:
            self._others.set_visibility(bool(rest))
            with self._others.clear():
                for message in rest:
                    ui.label(message).classes("ts-fault")

    def _nearest(self, path: Path) -> Path | None:
        while path:
            if path in self._lines:
                return path
            path = path[:-1]
        return None

    # -- telling -----------------------------------------------------------------------------------------------------

    def status_line(self) -> None:
        """The line in which everything that happens is told, also to those who cannot see."""
        self._status = ui.label().classes("ts-state").props("role=status aria-live=polite")

    def say(self, text: str) -> None:
        """Tell what happened."""
        if self._status is not None and not self._status.is_deleted:
            self._status.set_text(text)

    async def compute(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Have something computed in the user's worker process."""
        return await self.workspace.compute(task, *arguments)


def show_error(error: TaskFailed | Exception) -> None:
    """An error as the command line words it, with its hint."""
    message, _, hint = str(error).partition("\n\nHint: ")
    with ui.element("div").props("role=alert"):
        ui.label(message).classes("ts-fault")
        if hint:
            ui.label(f"Hint: {hint}").classes("ts-note whitespace-pre-line")


def named(element: ui.element, name: str) -> ui.element:
    """An element with a name for those who cannot see it. The name may hold anything: it never becomes code."""
    element.props["aria-label"] = name
    return element


def heading(title: str, lead: str) -> None:
    """The heading of a page and what it is for."""
    ui.html(title, tag="h1").props("tabindex=-1")
    ui.label(lead).classes("ts-lead")
