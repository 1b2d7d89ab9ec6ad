"""One user's workspace: a private folder with uploads and runs, and the job that is being made.

The folder holds the files under the names by which the job knows them, so that the job file in it, or beside the same
files anywhere else, is the job that the app runs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from tablesafe.core.errors import InvalidFile, InvalidJob, joined
from tablesafe.core.language import text as sentence
from tablesafe.core.machine import open_private, stand_in
from tablesafe.io.decisions import FILE as DECISIONS
from tablesafe.io.decisions import Decision, latest, write_decisions
from tablesafe.job import Job, dump_job
from tablesafe.job.decode import Fault
from tablesafe.job.questions import Question, questions
from tablesafe.pipeline.columns import PARQUET, missing_columns
from tablesafe.web import desk
from tablesafe.web.drafts import Draft, draft_of, look_over, toml_of, with_outputs
from tablesafe.web.folders import Folder, Stamp, stamp_of
from tablesafe.web.uploads import RESERVED, TooLarge, other_name, plain_name
from tablesafe.web.worker import Place, Tell, Worker, WorkerGone

MOST_FILES = 50
"""Files that a session may hold."""
MOST_FAULTS = 100
"""Faults of a job that are told at a time."""
MOST_JOB = 1 << 20
"""Bytes of a job file: it is read in the server itself."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How much one user may bring."""

    upload_bytes: int = 1 << 30
    """Most bytes of one upload."""
    total_bytes: int = 4 << 30
    """Most bytes of all uploads of one workspace."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What was seen of a column."""

    name: str
    empty: int
    negative: int


@dataclass(frozen=True, slots=True)
class Recoded:
    """A hierarchy that was made coarser, or got further codes, and how to go back."""

    dimension: str
    words: str
    """What was done."""
    file: str
    before: Draft
    """What the job said of the dimension."""
    job: str
    """The whole job before it."""
    merged: bool
    """Whether the table has fewer codes since, not only other names for them."""


@dataclass(slots=True)
class Workspace:
    """What one user works on. The draft is plain data, as a job file holds it: `draft["source"]["file"]`, …"""

    path: Path
    folder: Folder = field(default_factory=Folder)
    """The folder of the machine that files may be chosen from."""
    limits: Quota = field(default_factory=Quota)
    draft: Draft = field(default_factory=dict)
    version: int = 0
    """How often the draft was changed: whoever has it open in another window can tell."""
    files: dict[str, Path] = field(default_factory=dict)
    """Every file that the job may read: its name in the job, and where it is."""
    looked_at: dict[str, str] = field(default_factory=dict)
    """The pages that somebody looked at, and what they showed."""
    decisions: list[tuple[Decision, ...]] = field(default_factory=list)
    """What was decided about single cells; those that were decided on together stand, and are undone, together."""
    recoded: list[Recoded] = field(default_factory=list)
    """Codes that were merged or mapped, the last at the end."""
    who: str = ""
    """Who decides: the name that was given last."""
    guessed: bool = False
    """Whether the draft began as a guess, and not as somebody's job."""
    accepted: set[str] = field(default_factory=set)
    """What was found in the data and somebody decided on."""
    _coming: dict[str, int] = field(default_factory=dict)
    """Uploads that are coming in: the file that each is written to, and its bytes so far."""
    _headers: dict[str, tuple[Stamp | None, tuple[str, ...]]] = field(default_factory=dict)
    """The columns of files as their reader told them, with the state that the file was in."""
    _surveyed: dict[str, tuple[Stamp | None, tuple[Surveyed, ...]]] = field(default_factory=dict)
    """What was seen of the columns of a file, with the state that it was in."""
    _looked: tuple[str, Job | None, list[Fault]] | None = None
    _worker: Worker | None = None
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _closed: bool = False
    _used: float = 0.0

    @classmethod
    def make(cls, path: Path, folder: Folder, limits: Quota) -> Workspace:
        """A new workspace in a folder of its own that only this user can enter."""
        path.mkdir(mode=0o700)
        (path / "runs").mkdir(mode=0o700)
        return cls(path, folder, limits)

    # -- files -----------------------------------------------------------------------------------------------------

    async def receive(self, name: str, chunks: AsyncIterator[bytes]) -> str:
        """Store an upload as it comes in; the name under which the job may use it. Too large a file is refused."""
        name = plain_name(name)
        if name in self.files and not self._is_upload(name):
            name = other_name(name, self.files)
        if name not in self.files and len(self.files) + len(self._coming) >= MOST_FILES:
            raise InvalidFile(sentence("There are {many} files already.", many=MOST_FILES), hint="remove one first.")
        room = min(self.limits.upload_bytes, self.limits.total_bytes - self._uploaded(besides=name))
        part = self.path / f".{os.urandom(8).hex()}.part"
        self._coming[part.name] = size = 0
        try:
            with os.fdopen(open_private(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    self._coming[part.name] = size
                    if size > room or sum(self._coming.values()) > self.limits.total_bytes - self._uploaded(name):
                        raise TooLarge(name, room)
                    file.write(chunk)
            part.replace(self.path / name)
        except OSError as error:
            raise InvalidFile(sentence("{name} cannot be stored: {why}.", name=name, why=error.strerror)) from error
        finally:
            part.unlink(missing_ok=True)
            del self._coming[part.name]
        self.files[name] = self.path / name
        return name

    def store(self, name: str, text: str) -> None:
        """Write a file of the job that the app itself makes; whoever has an earlier one open keeps that."""
        (self.path / name).unlink(missing_ok=True)
        with os.fdopen(open_private(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(text.encode())
        self.files[name] = self.path / name

    def bring_back(self, name: str, kept: Path) -> None:
        """Let the job read a file again that a run has kept."""
        if kept.is_symlink():  # it lies in the allowed folder
            self.use(name)
            return
        (self.path / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.path / name).unlink(missing_ok=True)
        (self.path / name).hardlink_to(kept)
        self.files[name] = self.path / name

    def use(self, name: str) -> str:
        """Let the job read a file of the allowed folder, under its path there."""
        target = self.folder.resolve(name)
        name = PurePosixPath(name).as_posix()
        if name in self.files and self._is_upload(name):
            raise InvalidFile(
                sentence("An uploaded file is called {name!r} already.", name=name), hint="remove it first."
            )
        if name not in self.files and len(self.files) >= MOST_FILES:
            raise InvalidFile(sentence("There are {many} files already.", many=MOST_FILES), hint="remove one first.")
        link = self.path / name
        if Path(name).parts[0] in RESERVED:
            raise InvalidFile(
                sentence("{name!r} has a name that the app itself uses.", name=name),
                hint="move the file, or upload it.",
            )
        try:
            link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            stand_in(link, target)
        except OSError:
            taken = Path(name).parts[0]
            raise InvalidFile(
                sentence("An uploaded file is called {name!r} already.", name=taken), hint="remove it first."
            ) from None
        self.files[name] = target
        return name

    def take_job(self, name: str) -> Draft:
        """The draft that a job file among the files describes; the file itself is then of no more use."""
        if name not in self.files:
            raise InvalidFile(sentence("{name!r} is no file of this workspace.", name=name[:200]), hint="upload it.")
        path = self.path / name if self._is_upload(name) else self.folder.resolve(name)
        try:
            if path.stat().st_size > MOST_JOB:
                raise InvalidJob(f"{name} is too large for a job file.", hint="is it data?")
            return draft_of(path.read_text(encoding="utf-8-sig", errors="replace"))
        except OSError as error:
            raise InvalidFile(f"{name} cannot be read: {error.strerror}.") from error
        finally:
            self.remove(name)

    def remove(self, name: str) -> None:
        """Take a file out of the workspace; a file of the allowed folder stays where it is."""
        if name in self.files:
            del self.files[name]
            (self.path / name).unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget the job, its files and all decisions; runs keep what they read."""
        for name in list(self.files):
            self.remove(name)
        self.draft = {}
        self.decisions.clear()
        self.recoded.clear()
        self.looked_at.clear()
        self.accepted.clear()

    def _is_upload(self, name: str) -> bool:
        return self.files[name] == self.path / name

    def _uploaded(self, besides: str) -> int:
        """Bytes of the uploads that are there, without the one that is replaced."""
        return sum(
            path.stat().st_size for name, path in self.files.items() if name != besides and self._is_upload(name)
        )

    # -- the job ---------------------------------------------------------------------------------------------------

    def check(self) -> list[Fault]:
        """Everything that is wrong with the draft: per fault the path of its key and the command line's message."""
        return self._looked_over()[1]

    def job(self, draft: Draft | None = None) -> Job:
        """The job of the draft, or of another one, with its outputs; raises what the command line would."""
        job, faults = self._looked_over() if draft is None else self._looked_at(draft)
        if faults or job is None:
            raise InvalidJob(joined("\n", [fault.message for fault in faults]))
        return with_outputs(job)

    def job_text(self) -> str:
        """The job file: what the app runs, and what `tablesafe run` makes the same release of."""
        job, faults = self._looked_over()
        return toml_of(self.draft) if faults or job is None else dump_job(with_outputs(job))

    def _looked_over(self) -> tuple[Job | None, list[Fault]]:
        """The job and its faults; pages ask again and again, so the last answer is kept as long as nothing changes."""
        stamps = [(name, stamp_of(path)) for name, path in self.files.items()]
        key = repr((self.draft, stamps, list(self._headers.items())))
        if self._looked is None or self._looked[0] != key:
            self._looked = key, *self._looked_at(self.draft)
        return self._looked[1], list(self._looked[2])

    def _looked_at(self, draft: Draft) -> tuple[Job | None, list[Fault]]:
        job, faults = look_over(draft, self.path, self.files)
        if job is not None and not any(fault.path[:2] == ("source", "file") for fault in faults):
            faults = [*faults, *missing_columns(job, self._header(job.source.file))]
        return job, _first(faults)

    def _header(self, name: str) -> Sequence[str] | None:
        """The columns of a file that only a process of its own may read, as far as that has told them.

        Of text the first line is read here: there is nothing in it that could break a reader.
        """
        if not name.lower().endswith(PARQUET):
            return None
        stamp, columns = self._headers.get(name, (None, ()))
        return columns if stamp == stamp_of(self.files[name]) else ()

    # -- decisions on single cells ---------------------------------------------------------------------------------

    @property
    def decided(self) -> list[Decision]:
        """The decisions that count, one for each cell."""
        return latest([each for together in self.decisions for each in together])

    def decide(self, decisions: Sequence[Decision]) -> None:
        """Decide on cells; the decisions are a file of the job from now on."""
        given = self.draft.get("problem", {}).get("apriori")
        if given not in (None, DECISIONS) or (given == DECISIONS and not self.decisions):  # made elsewhere
            files = ", ".join(given) if isinstance(given, list) else given
            raise InvalidJob(
                sentence("The job has a-priori information in {files} already.", files=files),
                hint="say it all there, or take that file out on the page Rules.",
            )
        self.decisions.append(tuple(decisions))
        self._write_decisions()

    def undo(self) -> None:
        """Take back what was decided last."""
        if self.decisions:
            self.decisions.pop()
            self._write_decisions()

    def forget_decision(self, decision: Decision) -> None:
        """Take back what was decided about one cell."""
        rest = [tuple(each for each in together if each.codes != decision.codes) for together in self.decisions]
        self.decisions = [together for together in rest if together]
        self._write_decisions()

    def _write_decisions(self) -> None:
        if self.decided:
            (self.path / DECISIONS).unlink(missing_ok=True)  # runs keep the file that they began with
            write_decisions(self.decided, self.path / DECISIONS)
            self.files[DECISIONS] = self.path / DECISIONS
            self.draft.setdefault("problem", {})["apriori"] = DECISIONS
        else:
            self.remove(DECISIONS)
            problem = self.draft.get("problem", {})
            problem.pop("apriori", None)
            if not problem:
                self.draft.pop("problem", None)
        self.version += 1

    # -- hierarchies that were made here -----------------------------------------------------------------------------

    def recode(self, dimension: str, text: str, total: str, words: str, *, merged: bool) -> None:
        """Use another hierarchy for a dimension: it becomes a file of the job, and says all about its codes."""
        if len(self.files) >= MOST_FILES:
            raise InvalidFile(sentence("There are {many} files already.", many=MOST_FILES), hint="remove one first.")
        before, job = dict(self.draft["dimensions"][dimension]), self.job_text()
        taken = {name.casefold(): name for name in self.files}  # some machines know no capitals
        file = plain_name(f"{dimension}.hrc")
        file = other_name(file.casefold(), taken) if file.casefold() in taken else file
        self.store(file, text)
        kept = {key: before[key] for key in ("column", "labels", "missing") if key in before}
        self.draft["dimensions"][dimension] = {**kept, "hierarchy": file, "kind": "hrc", "total": total}
        self.recoded.append(Recoded(dimension, words, file, before, job, merged))
        self.version += 1

    def undo_recode(self) -> None:
        """Go back to the hierarchy before the last one that was made here, unless somebody chose another since."""
        last = self.recoded.pop()
        now = self.draft.get("dimensions", {})
        if now.get(last.dimension, {}).get("hierarchy") == last.file:
            now[last.dimension] = dict(last.before)
        self.remove(last.file)
        self.version += 1

    # -- looking at data, in a process of its own ------------------------------------------------------------------

    async def compute(
        self, task: Callable[..., Any], *arguments: Any, tell: Tell | None = None, language: str = "en"
    ) -> Any:
        """Call a function of this package in the worker process of this workspace: `task(desk, *arguments)`.

        Arguments and answer are plain data. `desk.problem_of(d, job_text)` and `desk.result_of(d, run_id)` give the
        function what it needs, from memory where it was loaded before. `tell` hears what it says while it goes on.
        Errors come back as `TaskFailed`.
        """
        while True:
            worker = await self._living()
            self._used = time.monotonic()
            try:
                return await worker.call(task, *arguments, tell=tell, language=language)
            except WorkerGone:  # with a question before this one, which somebody gave up
                if self._closed:
                    raise
            finally:
                self._used = time.monotonic()

    async def _living(self) -> Worker:
        """The worker process; a new one where there is none, and only one whoever asks at the same time."""
        async with self._starting:
            if self._worker is None or not self._worker.alive:
                self._worker = await Worker.start(self.path, self.place)
            return self._worker

    @property
    def place(self) -> Place:
        """Where processes of this workspace may read."""
        return Place(self.path, self.folder.root)

    async def rest(self, idle_s: float) -> None:
        """End the worker if it has had nothing to do for a while; the next question starts another."""
        if self._worker is not None and not self._worker.busy and time.monotonic() - self._used > idle_s:
            worker, self._worker = self._worker, None
            await worker.close()

    async def columns(self, name: str | None = None) -> list[dict[str, Any]]:
        """The columns of a file, by default the source: name, kind, rows, distinct, empty, examples."""
        name = self._known(name)
        stamp = stamp_of(self.files[name])
        found: list[dict[str, Any]] = await self.compute(desk.columns, name, self._reading())
        self._headers[name] = stamp, tuple(column["name"] for column in found)
        self._surveyed[name] = stamp, tuple(Surveyed(each["name"], each["empty"], each["negative"]) for each in found)
        return found

    def questions(self) -> tuple[Question, ...]:
        """What the data leave to decide, as far as they were looked at."""
        name = self.draft.get("source", {}).get("file")
        stamp, seen = self._surveyed.get(str(name), (None, ()))
        if name not in self.files or stamp != stamp_of(self.files[name]):
            return ()
        return questions(self.draft, {column.name: column for column in seen})

    def open_questions(self) -> tuple[Question, ...]:
        """Those that nobody has answered yet; where a run would stop, none is answered."""
        return tuple(
            each for each in self.questions() if each.stops or (self.guessed and str(each.found) not in self.accepted)
        )

    async def understood(self) -> dict[str, Any]:
        """What is understood of a source that is a printed table."""
        found: dict[str, Any] = await self.compute(desk.understood, self._known(None), self._reading())
        return found

    async def suggest(self, name: str) -> Draft:
        """A first draft for a file, as `tablesafe init` makes one; the draft itself is not changed."""
        found: Draft = await self.compute(desk.suggest, self._known(name), self._reading())
        return found

    async def table(self) -> dict[str, Any]:
        """Read the table of the draft and tell its numbers: cells, equations, dimensions, sensitive, …"""
        found: dict[str, Any] = await self.compute(desk.table, dump_job(self.job()))
        return found

    async def sensitivity(self, rules: list[Mapping[str, Any]]) -> dict[str, Any]:
        """What other rules would call sensitive, while a slider moves; the draft is not changed."""
        draft = {**self.draft, "rules": [dict(rule) for rule in rules]}
        job, faults = look_over(draft, self.path, self.files)
        if faults or job is None:
            raise InvalidJob(joined("\n", [fault.message for fault in faults]))
        found: dict[str, Any] = await self.compute(desk.sensitivity, dump_job(with_outputs(job)))
        return found

    def _known(self, name: str | None) -> str:
        name = self.draft.get("source", {}).get("file") if name is None else name
        if not isinstance(name, str) or name not in self.files:
            raise InvalidFile("No file is chosen yet.", hint="upload one, or choose one in the folder.")
        return name

    def _reading(self) -> dict[str, Any]:
        source = self.draft.get("source", {})
        return {key: source[key] for key in desk.READING if isinstance(source.get(key), str | int | list)}

    async def close(self) -> None:
        """End the worker and remove the folder."""
        self._closed = True
        if self._worker is not None:
            await self._worker.close()
        shutil.rmtree(self.path, ignore_errors=True)


def _first(faults: list[Fault]) -> list[Fault]:
    """As many faults as somebody reads; pages would show every one of a job that is made of nothing else."""
    more = len(faults) - MOST_FAULTS
    return faults if more <= 0 else [*faults[:MOST_FAULTS], Fault((), f"And {more:,} more faults like these.")]
