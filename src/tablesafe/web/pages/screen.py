"""What one open page works with: the user's workspace, what is wrong with the job, and whom to tell of changes."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nicegui import ui

from tablesafe.attack.registry import ATTACKS
from tablesafe.core.errors import InvalidInput, InvalidProblem, SolverFailure, TablesafeError, readable
from tablesafe.core.language import Text
from tablesafe.job.decode import Fault
from tablesafe.job.questions import Answer
from tablesafe.job.remedies import remedies
from tablesafe.job.words import brief, key_of
from tablesafe.web.desk import lacks_only_rules
from tablesafe.web.forms import get, put
from tablesafe.web.speech import aria, say, spoken_here
from tablesafe.web.steps import address_of, holds_problem, note_job, step_of
from tablesafe.web.worker import TaskFailed, Tell

if TYPE_CHECKING:
    from tablesafe.web.runs import Run, Runs
    from tablesafe.web.workspace import Workspace

Path = tuple[str | int, ...]
USER_ERRORS = {kind.__name__ for kind in InvalidInput.__subclasses__()}
"""Errors that something in the job caused."""
UNPROTECTABLE = {InvalidProblem.__name__, SolverFailure.__name__}
"""Errors of a table that cannot be protected as it is: a coarser one perhaps can."""
CHANGED_ELSEWHERE = "The job was changed in another window."


class Screen:
    """One page of one user in one browser tab."""

    def __init__(self, workspace: Workspace, runs: Runs) -> None:
        self.workspace, self.runs = workspace, runs
        self.language = spoken_here().code
        """The language of this page, by its code."""
        self.version = workspace.version
        """The draft that this page shows; it stays behind when another window changes it."""
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
        self.taking = asyncio.Lock()
        """Held while a file that was brought is looked at: they are taken one after the other, as they came."""
        self.panel: object = None
        """The panel beside the table of the page that is shown now."""
        self.shown_run = ""
        """The run that the page Result shows."""
        self.redraw: Callable[[], object] = lambda: None
        """Draw the page that is shown now anew."""
        self._found: tuple[str, Fault] | None = None
        """What only the work itself found wrong, and with which job."""
        self._lines: dict[Path, ui.label] = {}
        self._column_lines: dict[str, ui.label] = {}
        """Beside each column that is listed, a place for what is wrong with it."""
        self._others: ui.element | None = None
        self._status: ui.label | None = None

    def start_page(self) -> None:
        """Forget what the page before this one wanted to know."""
        self._lines.clear()
        self._column_lines.clear()
        self._others = None
        self.say("")
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
    def outdated(self) -> bool:
        """Whether another window has changed the job since it was drawn here."""
        return self.version != self.workspace.version

    @property
    def readable(self) -> bool:
        """Whether there is a job whose table can be looked at, also while it does not say yet what is sensitive.

        Work on it may have failed nevertheless.
        """
        faults = self.workspace.check() if self.draft else []
        return bool(self.draft) and (not faults or lacks_only_rules(faults))

    @property
    def holds_problem(self) -> bool:
        """Whether the source describes its cells and what is sensitive itself, as JJ files do."""
        return holds_problem(self.draft)

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
        try:
            put(self.draft, path, value)
        except (IndexError, KeyError, TypeError):  # a rule or table that is not there any more
            self.say(say(CHANGED_ELSEWHERE))
            return
        if value is None and len(path) == 2 and self.draft.get(str(path[0])) == {}:
            self.draft.pop(str(path[0]))
        self.changed()

    def decided(self) -> None:
        """Decisions on cells have changed the job."""
        if self.workspace.version - self.version <= 1:  # nobody else did in between
            self.version = self.workspace.version
        self.check()
        self.refresh()

    def changed(self) -> None:
        """Check the job again and tell everybody who wants to know."""
        if not self.outdated:
            self.version += 1
        self.workspace.version += 1
        self.check()
        self.refresh()

    def refresh(self) -> None:
        """Tell everybody who wants to know: the job, or what is known of its data, is another."""
        for listener in [*self.after_change, *self.on_page]:
            listener()

    def replace_draft(self, draft: Mapping[str, Any], *, guessed: bool = False) -> None:
        """Take another job. What is guessed must be looked at; what somebody made says everything."""
        self.workspace.draft = copy.deepcopy(dict(draft))
        self.workspace.looked_at.clear()
        self.workspace.recoded.clear()
        self.workspace.guessed = guessed
        if not guessed:
            note_job(self.workspace)
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

    def column_line(self, column: str) -> None:
        """A place, beside a column in a list of them, for what is wrong with the key that names it."""
        line = ui.label().classes("ts-fault").props("role=alert")
        line.set_visibility(False)
        self._column_lines[column] = line

    def show_faults(self) -> None:
        """Say again what is wrong: fields were drawn."""
        self._show(self.faults)

    def fault_list(self) -> None:
        """A place for what is wrong but has no field on this page."""
        self._others = ui.element("div").classes("ts-faults").props("role=alert " + aria("What is wrong"))
        self._others.set_visibility(False)

    def check(self) -> None:
        """Look the job over, and say beside each field what is wrong with it."""
        self.faults = self.workspace.check() if self.draft else []
        if self._found is not None and self._found[0] == self.workspace.job_text():
            self.faults = [*self.faults, self._found[1]]
        self._show(self.faults)

    def forget(self) -> None:
        """Try anew what failed: files may have changed."""
        self._found = None
        self.check()

    def blame(self, job: str, error: TaskFailed, otherwise: Path = ("source", "file")) -> bool:
        """Note what the work on a job found wrong, beside the field that it is about, until the job is changed.

        Whether it is something in the job at all.
        """
        if error.kind not in USER_ERRORS:
            return False
        self._found = (job, Fault(key_of(self.draft, error.about, otherwise), brief(error)))
        self.check()
        for listener in self.after_change:
            listener()
        return True

    def _show(self, faults: list[Fault]) -> None:
        self._lines = {path: line for path, line in self._lines.items() if not line.is_deleted}
        self._column_lines = {name: line for name, line in self._column_lines.items() if not line.is_deleted}
        found: dict[ui.label, list[str]] = {line: [] for line in (*self._lines.values(), *self._column_lines.values())}
        rest: list[str] = []
        for fault in faults:
            line = self._line_of(tuple(fault.path))
            if line is not None:
                found[line].append(say_error(fault.message))
            elif step_of(fault) == self.step:
                rest.append(say_error(fault.message))
        for line, messages in found.items():
            line.set_text("\n".join(messages))
            line.set_visibility(bool(messages))
        if self._others is not None and not self._others.is_deleted:
            self._others.set_visibility(bool(rest))
            with self._others.clear():
                for message in rest:
                    ui.label(message).classes("ts-fault")

    def _line_of(self, path: Path) -> ui.label | None:
        """The place nearest to a key: beside its field, beside the column that it names, or beside what it is in."""
        named = self.get(path)
        if path not in self._lines and isinstance(named, str) and named in self._column_lines:
            return self._column_lines[named]
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path)

    # -- telling -----------------------------------------------------------------------------------------------------

    def status_line(self) -> None:
        """The line in which everything that happens is told, also to those who cannot see."""
        self._status = ui.label().classes("ts-state").props("role=status aria-live=polite")

    def say(self, text: str) -> None:
        """Tell what happened."""
        if self._status is not None and not self._status.is_deleted:
            self._status.set_text(text)

    async def compute(self, task: Callable[..., Any], *arguments: Any, tell: Tell | None = None) -> Any:
        """Have something computed in the user's worker process; `tell` hears what it says while it goes on."""
        return await self.workspace.compute(task, *arguments, tell=tell, language=self.language)


def show_error(error: TaskFailed | Exception, screen: Screen | None = None, job: str = "") -> None:
    """An error with its hint; on the page of a job with buttons that do what would help.

    `job` is the one that it is about, where it may speak of cells of its table.
    """
    message, hint = in_words(error)
    with ui.element("div").props("role=alert"):
        ui.label(message).classes("ts-fault")
        if hint:
            ui.label(say("Hint: {hint}", hint=hint)).classes("ts-note whitespace-pre-line")
        if screen is not None and isinstance(error, TaskFailed):
            with ui.element("div").classes("ts-row py-1"):
                for each in remedies(screen.draft, error.about, error.settings, screen.files):
                    _remedy(screen, each)
                _lead_to(screen, error)
            if job and error.about[:1] == ("cells",):
                from tablesafe.web.pages.panel import decide_about

                decide_about(screen, job, [int(cell) for cell in error.about[1:]])
            if error.kind in UNPROTECTABLE:
                from tablesafe.web.pages.merging import offer

                offer(screen)


def in_words(error: Exception) -> tuple[str, str]:
    """What an error says in the language of the page, and its hint."""
    if not isinstance(error, TablesafeError):
        return readable(str(error)), ""
    message, hint = error.words
    return say_error(message), say_error(hint)


def say_error(words: Text | str) -> str:
    """What is wrong, in the language of the page; what quotes half a file is cut."""
    return readable(say(words))


def _lead_to(screen: Screen, error: TaskFailed) -> None:
    """A way to the page on which the job can be mended, where that is another one."""
    step = step_of(Fault(key_of(screen.draft, error.about), ""))
    if error.kind in USER_ERRORS and step != screen.step:
        words = say("Go to the page {page}", page=say(step))
        ui.button(words, on_click=lambda: ui.navigate.to(address_of(step))).props("outline dense color=primary")


def _remedy(screen: Screen, answer: Answer) -> None:
    def use() -> None:
        screen.put(answer.path, answer.value)
        screen.say(say("{words}: done.", words=say(answer.words)))
        button.disable()
        if answer.path == ("rules",):
            ui.navigate.reload()  # their fields are others

    button = ui.button(say(answer.words), on_click=use).props("outline dense color=primary")


def repair_button(screen: Screen, run: Run, place: ui.element) -> None:
    """A button that starts a run from the pattern of another, to change only what follows from the job as it is now."""

    async def repair() -> None:
        place.clear()
        button.disable()
        try:
            started = await screen.runs.repair(run)
        except TablesafeError as error:
            button.enable()
            if not place.is_deleted:
                with place:
                    show_error(error)
            return
        screen.say(say("{run} has started: it repairs the release of {earlier}.", run=started.id, earlier=run.id))
        ui.navigate.to("/method")

    button = ui.button(say("Repair only what changed"), icon="healing", on_click=repair).props("outline color=primary")


def named(element: ui.element, name: str) -> ui.element:
    """An element with a name for those who cannot see it. The name may hold anything: it never becomes code."""
    element.props["aria-label"] = name
    return element


def heading(title: str, lead: str) -> None:
    """The heading of a page and what it is for."""
    ui.html(title, tag="h1").props("tabindex=-1")
    ui.label(lead).classes("ts-lead")
