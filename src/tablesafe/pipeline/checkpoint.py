"""What a run has worked out so far, on disk, so that a run that was stopped goes on where it stood.

It holds true values, and is as confidential as the records: files that only their owner can read, in a folder that only
it can enter, removed when the run ends well. It is known by the job and by what is in its files: after a change of
either, nothing in it counts. It is read without running anything that is in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import tablesafe
from tablesafe.core.errors import InvalidFile, InvalidOption
from tablesafe.core.machine import open_private
from tablesafe.files.private import locked_file, require_own
from tablesafe.files.serialization import CannotKeep, freeze, thaw
from tablesafe.job import Job, dump_job
from tablesafe.job.checks import internal_folder
from tablesafe.job.model import Output, RunOptions
from tablesafe.pipeline.inputs import Inputs

ABOUT, ANSWERS, LOCK = "about.json", "answers", "lock"
STAGES = ("problem", "release")
NAME = "checkpoint"
DIGEST = 32
"""Bytes of a SHA-256."""
HEAD = DIGEST + 8 + DIGEST
"""Bytes before an answer: what it is known by, its length, and its own hash."""
"""A file of a checkpoint is never a link: what is written would lie where the link points."""

Value = TypeVar("Value")


def checkpoint_folder(job: Job) -> Path:
    """Where the checkpoint of a job is kept."""
    return internal_folder(job) / NAME if job.run.checkpoint is None else job.resolve(job.run.checkpoint)


def left_by(job: Job) -> Path | None:
    """The folder in which a run of a job that was stopped has left what it had; None if it has left nothing."""
    folder = checkpoint_folder(job)
    return folder if (folder / ABOUT).exists() else None


@contextmanager
def checkpoint(job: Job, inputs: Inputs, *, resume: bool) -> Iterator[Checkpoint]:
    """The checkpoint of a run: empty, or as the run left it that is to be resumed. Gone when the run ends well."""
    kept = Checkpoint(checkpoint_folder(job), job.run.checkpoint_after_s, _about(job, inputs))
    try:
        kept.open(resume=resume)
        yield kept
    finally:
        kept.close()


def _about(job: Job, inputs: Inputs) -> dict[str, Any]:
    """What the answer depends on; where the work is done and where files go makes no difference to it."""
    asked = replace(job, run=RunOptions(), output=Output())
    return {
        "note": "confidential: this folder holds true values of a table, kept by a run that was stopped",
        "tablesafe": tablesafe.__version__,
        "job": hashlib.sha256(dump_job(asked).encode()).hexdigest(),
        "inputs": inputs.hashes,
    }


class Checkpoint:
    """Stages that are finished, and answers to single questions of the one that is not."""

    def __init__(self, folder: Path, after_s: float, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self._about = about
        self._begin = time.monotonic() + after_s
        self._lock: int | None = None
        self._active = after_s != float("inf")
        self._answers: dict[str, tuple[int, int]] = {}

    @property
    def wanted(self) -> bool:
        """Whether anything is kept at all."""
        return self._active

    # -- to begin and to end ---------------------------------------------------------------------------------------

    def open(self, *, resume: bool) -> None:
        """Find what an earlier run left: to go on from there, or to remove it."""
        if not (self.folder / ABOUT).exists():
            if resume:
                warnings.warn("There is no checkpoint to resume: the run starts at its beginning.", stacklevel=3)
            return
        try:
            require_own(self.folder)
            self._lock = locked_file(self.folder / LOCK)
        except OSError as error:
            if resume:
                raise InvalidOption(
                    f"The checkpoint in {str(self.folder)!r} cannot be resumed: {error.strerror}.",
                    hint="resume only what you kept yourself; run without --resume to begin anew.",
                ) from error
            self._give_up(error)
            return
        if self._lock is None:
            self._active = False
            if resume:
                raise InvalidOption(
                    f"Another run is working with the checkpoint in {str(self.folder)!r}.", hint="wait until it ends."
                )
        elif resume:
            self._require_same()
            self._read_answers()
        else:
            self._remove()

    def _require_same(self) -> None:
        """Check that the checkpoint belongs to this job on these files."""
        try:
            found = json.loads((self.folder / ABOUT).read_text(encoding="utf-8"))
            inputs = dict(found["inputs"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidFile(f"{str(self.folder / ABOUT)!r} is not that of a checkpoint.") from error
        changed = [repr(name) for name, sha256 in self._about["inputs"].items() if inputs.get(name) != sha256]
        if found.get("job") != self._about["job"]:
            changed.append("the job file")
        if found.get("tablesafe") != self._about["tablesafe"]:
            changed.append("the version of tablesafe")
        if changed:
            verb = "has" if len(changed) == 1 else "have"
            raise InvalidOption(
                f"The checkpoint in {str(self.folder)!r} cannot be resumed: {' and '.join(changed)} {verb} changed "
                f"since.",
                hint="run without --resume to begin anew; the checkpoint is then removed.",
            )

    def finish(self) -> None:
        """The run has ended well: nothing of it is needed any more."""
        if self._lock is not None:
            self._remove()

    def close(self) -> None:
        """Let go of the checkpoint, and leave it as it is."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _remove(self) -> None:
        """Remove what a checkpoint consists of; a folder that holds anything else stays."""
        for name in (ABOUT, ANSWERS, *STAGES, LOCK):
            for path in (self.folder / name, self.folder / f"{name}.part"):
                with suppress(OSError):
                    path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()
        self.close()
        self._answers.clear()

    def _ready(self) -> bool:
        """Whether to write: not before the run has taken some time, and not where it cannot be done."""
        if not self._active or time.monotonic() < self._begin:
            return False
        if self._lock is None:
            for folder in (self.folder.parent, self.folder):  # the first may be the internal one, as private
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_own(self.folder)
            self._lock = locked_file(self.folder / LOCK)
            if self._lock is None:
                self._active = False
                return False
        if not (self.folder / ABOUT).exists():
            self._write(ABOUT, json.dumps(self._about).encode())
        return True

    def _write(self, name: str, data: bytes) -> None:
        part = self.folder / f"{name}.part"
        with os.fdopen(open_private(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(data)
        part.replace(self.folder / name)

    def _give_up(self, error: OSError) -> None:
        """A run does not fail because what is kept for another one cannot be written."""
        self._active = False
        with suppress(OSError):
            for name in (*STAGES, ANSWERS):
                (self.folder / f"{name}.part").unlink(missing_ok=True)
        warnings.warn(f"The run keeps no checkpoint from here on: {error.strerror}.", RuntimeWarning, stacklevel=4)

    # -- stages ----------------------------------------------------------------------------------------------------

    def stage(self, name: str, make: Callable[[], Value], known: Mapping[str, Any] | None = None) -> Value:
        """What was made in a stage before, or else now; objects in `known` are not kept again."""
        found = self._stage(name, known)
        if found is not None:
            return found[0]  # type: ignore[no-any-return]
        made = make()
        try:
            if self._ready():
                data = freeze((made,), known)
                self._write(name, hashlib.sha256(data).digest() + data)
        except CannotKeep:
            pass
        except OSError as error:
            self._give_up(error)
        return made

    def _stage(self, name: str, known: Mapping[str, Any] | None) -> Any:
        if self._lock is None:
            return None
        try:
            data = (self.folder / name).read_bytes()
            return thaw(data[DIGEST:], known) if hashlib.sha256(data[DIGEST:]).digest() == data[:DIGEST] else None
        except (OSError, ValueError):
            return None

    # -- answers ---------------------------------------------------------------------------------------------------

    def get(self, key: str) -> bytes | None:
        """The answer to a question; None when it is not known."""
        if key not in self._answers:
            return None
        start, length = self._answers[key]
        try:
            with (self.folder / ANSWERS).open("rb") as file:
                file.seek(start)
                data = file.read(length)
        except OSError:
            return None
        return data[DIGEST:] if hashlib.sha256(data[DIGEST:]).digest() == data[:DIGEST] else None

    def put(self, key: str, data: bytes) -> None:
        """Keep the answer to a question, behind those that are there."""
        try:
            if not self._ready():
                return
            path = self.folder / ANSWERS
            head = bytes.fromhex(key) + (DIGEST + len(data)).to_bytes(8, "little")
            with os.fdopen(open_private(path, os.O_RDWR | os.O_CREAT), "r+b") as file:
                start = max((begin + length for begin, length in self._answers.values()), default=0)
                file.truncate(start)
                file.seek(start)
                file.write(head + hashlib.sha256(data).digest() + data)
            self._answers[key] = (start + len(head), DIGEST + len(data))
        except OSError as error:
            self._give_up(error)

    def _read_answers(self) -> None:
        """Find the answers that are there; one that was being written when the run was stopped ends the list."""
        path = self.folder / ANSWERS
        if not path.exists():
            return
        size, start = path.stat().st_size, 0
        with path.open("rb") as file:
            while start + HEAD <= size:
                file.seek(start)
                head = file.read(DIGEST + 8)
                length = int.from_bytes(head[DIGEST:], "little")
                if length < DIGEST or start + len(head) + length > size:
                    return
                self._answers[head[:DIGEST].hex()] = (start + len(head), length)
                start += len(head) + length
