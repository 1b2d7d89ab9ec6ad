"""Runs of jobs: each in a process of its own, a few at a time, with live progress, a stop and their files.

queued ──► running ──► done            the audit was passed, or the user insisted: the release is written
   │          │  └───► open            finished, but the audit found the release open: it is not written
   │          ├──────► failed          an error; the message is the command line's
   │          └─► stopping ─► done, open, stopped
   └────────────────────────► stopped  ended by the user with nothing to keep
"""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tablesafe.core.errors import InvalidFile, InvalidOption, TablesafeError
from tablesafe.core.language import Text, text, thawed
from tablesafe.core.machine import stand_in
from tablesafe.io.decisions import FILE as DECISIONS
from tablesafe.io.decisions import Decision, latest
from tablesafe.job.checks import input_files
from tablesafe.job.dump import changes, dump_job
from tablesafe.job.model import Job
from tablesafe.methods.abilities import time_limit_of
from tablesafe.methods.suppress import Suppress
from tablesafe.web.background import BEGUN, ENDED, Background, Queue, State
from tablesafe.web.desk import kept_at
from tablesafe.web.drafts import JOB_FILE, Draft, draft_of
from tablesafe.web.folders import Stamp, stamp_of
from tablesafe.web.logs import note_error
from tablesafe.web.long_tasks import attack_run, measure_runs, run_job
from tablesafe.web.tasks.results import pattern_for
from tablesafe.web.worker import Place, TaskFailed, Worker
from tablesafe.web.workspace import Workspace

__all__ = ["Background", "Point", "Queue", "Run", "Runs", "State"]

MOST_RUNS = 20
"""Runs that a workspace keeps; to start another, remove one."""
MOST_RECENT = 8
"""Jobs that are offered to go back to."""
REPAIR_S = 10.0
"""Seconds for what follows from a few decisions."""
APRIORI = ("problem", "apriori")
"""The key that names the file of decisions."""
UNDECIDED = "not decided"
MOST_POINTS = 2_000
"""Points of the curve of bound and incumbent that are kept; then every other one goes."""


@dataclass(slots=True)
class Point:
    """The best answer and the bound at a moment of a run."""

    seconds: float
    incumbent: float | None
    bound: float | None


@dataclass(slots=True, eq=False)
class Run:
    """One run of a job, and what is known of it. Pages look at it, or wait with `changed()`."""

    id: str
    path: Path
    title: str
    job_text: str
    note: Text | str = ""
    """What is special about it: the option that was varied, and its value."""
    asked: str = ""
    """The job that it answers, where what was run says more: from which pattern it began."""
    decisions: tuple[tuple[Decision, ...], ...] = ()
    """What had been decided when it was started."""
    beyond: str = ""
    """From whom its cells are hidden besides outsiders, where its method looks for that in turn."""
    limit_s: float | None = None
    """How long its method may take, where it has a limit."""
    read: dict[str, Stamp | None] = field(default_factory=dict)
    """The files that it reads, and the state that each was in when it was started."""
    state: State = State.QUEUED
    stage: str = ""
    message: Text | str = BEGUN[0]
    done: int | None = None
    total: int | None = None
    history: list[Point] = field(default_factory=list)
    """Bound and incumbent over time."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What came out, in numbers: `Result.facts()`, with file names relative to the run's folder."""
    error: TaskFailed | None = None
    asked_to_stop: bool = False
    """Whether the user ended the search for a better answer."""
    started: float | None = None
    ended: float | None = None
    search_began: float = 0.0
    """After how many seconds the search for a release began."""
    searched: float | None = None
    """After how many seconds the search for a release was over; None as long as it goes on."""
    attacks: list[Background] = field(default_factory=list)
    _worker: Worker | None = None
    _task: asyncio.Task[None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def seconds(self) -> float:
        """How long it has been running, or ran."""
        if self.started is None:
            return 0.0
        return (time.monotonic() if self.ended is None else self.ended) - self.started

    @property
    def search_seconds(self) -> float:
        """After how many seconds the search for a release was over; until then, how long the run takes so far."""
        return self.seconds if self.searched is None else self.searched

    @property
    def safe(self) -> bool:
        """Whether it ended with a release that passed its audit."""
        return self.facts.get("status") == "safe"

    def stop(self) -> None:
        """Ask the method for the best answer that it has, or for its first; audit, report and files follow.

        A run that waits ends at once, and a second stop ends any run with nothing.
        """
        if self.state is not State.RUNNING:
            self.kill()
            return
        self.asked_to_stop = True
        self._move(State.STOPPING)
        if self.stage and self._worker is not None:
            self._worker.interrupt()

    def kill(self) -> None:
        """End the run now; nothing is kept."""
        if not self.state.ended and self._task is not None:
            self._task.cancel()

    async def changed(self) -> None:
        """Wait until something about the run changes."""
        await self._changed.wait()

    async def finished(self) -> None:
        """Wait for the end of the run."""
        while not self.state.ended:
            await self.changed()

    def files(self) -> list[str]:
        """The files that can be downloaded, relative to the run's folder: the job, what was written."""
        named = [JOB_FILE, DECISIONS, pattern_file(self.id), *self.facts.get("files", [])]
        return [name for name in named if (self.path / name).is_file()]

    def file(self, name: str) -> Path:
        """A file to download; only those that the run wrote, by exactly the names in `files()`."""
        if name not in self.files():
            raise InvalidFile(f"The run has no file {name[:200]!r}.")
        return self.path / name

    # -- what happens to it ----------------------------------------------------------------------------------------

    def _move(self, state: State) -> None:
        self.state = state
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _hear(self, event: dict[str, Any]) -> None:
        if self.asked_to_stop and not self.stage and self._worker is not None:  # it can be told only now
            self._worker.interrupt()
        if self.stage != "protect" and event["stage"] == "protect":
            self.search_began = self.seconds
        if self.stage == "protect" and event["stage"] != "protect":
            self.searched = self.seconds
        self.stage, self.message = event["stage"], thawed(event["message"])
        self.done, self.total = event.get("done"), event.get("total")
        if event.get("incumbent") is not None or event.get("bound") is not None:
            self.history.append(Point(self.seconds, event.get("incumbent"), event.get("bound")))
            if len(self.history) > MOST_POINTS:
                del self.history[1:-1:2]
        self._notify()

    async def _live(self, queue: Queue, who: str, place: Place) -> None:
        try:
            async with queue.place(who):
                self.started = time.monotonic()
                self.state, self.message = State.RUNNING, BEGUN[1]
                self._notify()
                self._worker = await Worker.start(self.path, place)
                self.facts = await self._worker.call(run_job, tell=self._hear)
                end = State.DONE if self.facts["release_written"] else State.OPEN
        except TaskFailed as error:
            stopped = error.kind == "Interrupted"
            self.error = error
            end, self.message = (State.STOPPED if stopped else State.FAILED), error.words[0]
        except asyncio.CancelledError:
            end, self.message = State.STOPPED, ENDED
        except Exception as error:
            note_error(error)
            self.error = TaskFailed(type(error).__name__, "The process for this run could not be started.")
            end, self.message = State.FAILED, self.error.words[0]
        finally:
            if self._worker is not None:
                await self._worker.close()
                self._worker = None
        self.ended = time.monotonic()
        self._move(end)


@dataclass(slots=True)
class Runs:
    """The runs of one workspace, the newest last."""

    workspace: Workspace
    queue: Queue
    who: str
    runs: dict[str, Run] = field(default_factory=dict)
    measuring: Background | None = None
    """The last time that several runs were measured alike, or the one that goes on."""
    _started: int = 0

    def start(self, draft: Draft | None = None, note: Text | str = "", asked: str = "") -> Run:
        """Start a run of the workspace's job as it is now, or of another draft of it.

        Later changes of the draft or the files do not touch it. `asked` is the job that it answers, where it is not
        the one that is run.
        """
        if len(self.runs) >= MOST_RUNS:
            raise InvalidOption(text("{many} runs are kept already.", many=MOST_RUNS), hint="remove one first.")
        job = self.workspace.job(draft)
        made = dump_job(job)
        self._started += 1
        name = f"run-{self._started}"
        path = self.workspace.path / "runs" / name
        path.mkdir(mode=0o700)
        for _, file in input_files(job):
            _bring(self.workspace, file, path)
        (path / JOB_FILE).write_text(made, encoding="utf-8", newline="\n")
        read = {file: stamp_of(self.workspace.files[file]) for _, file in input_files(job)}
        limit = time_limit_of(job.method)
        run = Run(
            name, path, job.title or Path(job.source.file).name, made, note, asked=asked, limit_s=limit, read=read,
            decisions=tuple(self.workspace.decisions), beyond=_beyond(job),
        )  # fmt: skip
        self.runs[name] = run
        run._task = asyncio.create_task(run._live(self.queue, self.who, self.workspace.place), name=name)
        return run

    async def repair(self, run: Run) -> Run:
        """Start a run that begins with the pattern of another, and changes only what the job asks otherwise now.

        The pattern is a file of the job that is run (`keep`, with `clean_up`): from the shell the same comes out.
        """
        asked = self.workspace.job_text()
        pattern = await self.workspace.compute(pattern_for, run.id, asked)
        file = pattern_file(f"run-{self._started + 1}")
        self.workspace.store(file, pattern)
        try:
            return self.start(repairing(self.workspace.draft, file), text("repaired from {run}", run=run.id), asked)
        except TablesafeError:
            self.workspace.remove(file)
            raise

    def recent(self) -> list[Run]:
        """The runs of other jobs than the one that is edited, the newest first, one for each job."""
        now = self.workspace.job_text() if self.workspace.draft else ""
        jobs = {run.asked or run.job_text: run for run in self.runs.values()}
        return [run for text, run in reversed(jobs.items()) if text != now][:MOST_RECENT]

    def go_back(self, run: Run) -> Draft:
        """The job that a run answered, with its files and decisions, whatever was removed since."""
        for name in run.read:
            if (name not in self.workspace.files or name == DECISIONS) and (run.path / name).exists():
                self.workspace.bring_back(name, run.path / name)
        if DECISIONS not in run.read:
            self.workspace.remove(DECISIONS)
        self.workspace.decisions[:] = run.decisions
        return draft_of(run.asked or run.job_text)

    def outdated(self, run: Run) -> tuple[Text, ...]:
        """What has changed since a run was started, a line each; empty while its result is that of the job.

        A result belongs to the job and to the files that it was made of: whoever edits these has no verdict yet.
        """
        files = self.workspace.files
        own = pattern_file(run.id)
        decided = self._decided_since(run)
        read = [name for name in run.read if not (decided and name == DECISIONS)]  # which cells says more
        gone = [text("{name} was removed", name=name) for name in read if name not in files and name != own]
        there = [name for name in read if name in files]
        other = [text("{name} was replaced", name=name) for name in there if stamp_of(files[name]) != run.read[name]]
        if self.workspace.check():
            return (*gone, *other, *decided, text("the job has errors now"))
        told = changes(run.asked or run.job_text, self.workspace.job_text())
        return (*gone, *other, *decided, *(each.words for each in told if not (decided and each.path == APRIORI)))

    def _decided_since(self, run: Run) -> list[Text]:
        """The cells about which something else is decided now than when a run was started."""
        then = latest([each for together in run.decisions for each in together])
        before, now = ({each.cell: str(each.what) for each in found} for found in (then, self.workspace.decided))
        cells = [cell for cell in {**before, **now} if before.get(cell) != now.get(cell)]
        return [
            text(
                "{place}: {one} → {other}", place=cell,
                one=text(before.get(cell, UNDECIDED)), other=text(now.get(cell, UNDECIDED)),
            )
            for cell in cells
        ]  # fmt: skip

    def get(self, name: str) -> Run:
        """The run of a name."""
        if name not in self.runs:
            raise InvalidFile(text("There is no run {name!r}.", name=name[:200]))
        return self.runs[name]

    def attack(
        self, run: Run, names: tuple[str, ...] = ("all",), *, seed: int = 1, time_limit_s: float = 30.0
    ) -> Background:
        """Attack a finished run in the background; the answer stands in `run.attacks` too."""
        if run.state not in {State.DONE, State.OPEN}:
            raise InvalidOption("Only a finished run can be attacked.", hint="wait for its end.")
        attack = Background(attack_run, (run.id, list(names), seed, time_limit_s))
        run.attacks.append(attack)
        attack.start(self.workspace, self.queue, self.who)
        return attack

    def measure(self, names: dict[str, str], yardstick: str, *, time_limit_s: float = 10.0) -> Background:
        """Measure finished runs alike in the background, by the rules of one of them; `names` says what each is called.

        The answer stands in `measuring` too, until there is another.
        """
        for each in (*names, yardstick):
            if self.get(each).state not in {State.DONE, State.OPEN}:
                raise InvalidOption("Only finished runs can be measured.", hint="wait for their end.")
        if self.measuring is not None:
            self.measuring.stop()
        self.measuring = Background(measure_runs, (list(names), list(names.values()), yardstick, time_limit_s))
        self.measuring.start(self.workspace, self.queue, self.who)
        return self.measuring

    async def remove(self, name: str) -> None:
        """End a run if it goes on, and remove all that it wrote."""
        run = self.get(name)
        await _ended(run)
        del self.runs[name]
        self.workspace.remove(pattern_file(name))
        shutil.rmtree(run.path, ignore_errors=True)
        kept_at(run.path).unlink(missing_ok=True)

    async def close(self) -> None:
        """End every run."""
        await asyncio.gather(*(_ended(run) for run in self.runs.values()))
        if self.measuring is not None:
            await self.measuring.close()


def _beyond(job: Job) -> str:
    """From whom cells are hidden besides outsiders, where withholding is looked for from one attacker to the next."""
    others = ["respondents"] * job.audit.insiders + ["sums"] * job.audit.unions
    return " and ".join(others) if isinstance(job.method, Suppress) else ""


def pattern_file(run: str) -> str:
    """The name of the pattern that a run began with, where it did with one."""
    return f"pattern-{run}.csv"


def repairing(draft: Draft, pattern: str) -> Draft:
    """The job that begins with a pattern, makes it safe, and publishes again what is not needed any more."""
    method = draft.get("method") or {"name": "suppress"}
    if method.get("name", "suppress") != "suppress":
        raise InvalidOption("Only a release that withholds cells can be repaired.", hint="run the job again.")
    limit = min(float(method.get("time_limit_s", REPAIR_S)), REPAIR_S)
    return {**draft, "method": {**method, "keep": pattern, "clean_up": True, "time_limit_s": limit}}


async def _ended(run: Run) -> None:
    if run._task is not None and not run._task.done():
        run._task.cancel()
        await asyncio.gather(run._task, return_exceptions=True)
    await asyncio.gather(*(attack.close() for attack in run.attacks))


def _bring(workspace: Workspace, name: str, target: Path) -> None:
    """Put an input beside the job: an upload as a second name of the same file, a file of the folder as a link."""
    place = target / name
    if place.exists() or place.is_symlink():
        return
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    original = workspace.files[name]
    if original.is_relative_to(workspace.path):
        place.hardlink_to(original)
    else:
        stand_in(place, workspace.folder.resolve(name))
