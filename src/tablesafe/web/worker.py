"""The server's side of a process that computes for it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablesafe.core.errors import Setting, TablesafeError
from tablesafe.core.language import Text, thawed
from tablesafe.core.machine import ASK, GROUPS, TEMPORARY, apart, end_group, was_ended
from tablesafe.web.child import HEADER, STOP

TOKEN = "TABLESAFE_TOKEN"
"""The variable that may hold the token; it is no business of processes that read files."""
Tell = Callable[[dict[str, Any]], None]


class TaskFailed(TablesafeError):
    """A task ended with an error; its message is that of the command line.

    `kind` names the error, `hint` says what to do, `about` what it is about, `settings` which options would help.
    """

    def __init__(
        self, kind: str, message: Text | str, hint: Text | str = "", about: Sequence[str | int] = (),
        settings: Sequence[Sequence[Any]] = (),
    ) -> None:  # fmt: skip
        super().__init__(message, hint=hint, about=tuple(about))
        self.kind = kind
        self.settings = tuple(Setting(str(name), value, str(of)) for name, value, of in settings)


class WorkerGone(TaskFailed):
    """The process was ended before it began with a task: another may do it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process may read: in a workspace, and in the folder that the user allowed."""

    workspace: Path
    allowed: Path | None = None


def _surroundings(place: Place) -> dict[str, str]:
    """The environment of a process: its temporary files in the workspace, and no program text from where it works."""
    temporary = place.workspace / "tmp"
    temporary.mkdir(mode=0o700, exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if name != TOKEN}
    return {**inherited, **dict.fromkeys(TEMPORARY, str(temporary)), "PYTHONSAFEPATH": "1"}


BROKEN = "The process that did this broke down.", "run the job file from the shell to see why."
ENDED = "The process that did this was ended.", "perhaps there was not enough memory: try a smaller table."
NOTHING = -1
"""In the place of an end of a pipe, where processes are not watched by one."""


def _close(handle: int) -> None:
    if handle != NOTHING:
        os.close(handle)


class Worker:
    """One process; it does one task at a time, in the order in which they are asked for."""

    def __init__(self, process: asyncio.subprocess.Process, life: int) -> None:
        self._process, self._life, self._killed = process, life, False
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, folder: Path, place: Place) -> Worker:
        """Start a process that works in a folder. It ends with this one, whatever ends it."""
        theirs, ours = os.pipe() if GROUPS else (NOTHING, NOTHING)
        allowed = "" if place.allowed is None else str(place.allowed)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tablesafe.web.child", str(theirs) if GROUPS else "", str(folder),
                str(place.workspace), allowed,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs,) if GROUPS else (), env=_surroundings(place), **apart(),
            )  # fmt: skip
        except BaseException:
            _close(ours)
            raise
        finally:
            _close(theirs)
        return cls(process, ours)

    @property
    def pid(self) -> int:
        """The number of the process, which is also that of its group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return not self._killed and self._process.returncode is None

    @property
    def busy(self) -> bool:
        """Whether it has something to do."""
        return self._turn.locked()

    async def call(
        self, task: Callable[..., Any], *arguments: Any, tell: Tell | None = None, language: str = "en"
    ) -> Any:
        """What a function of this package gives for plain arguments, called there with the desk before them.

        What it says is said in a language, by its code. `tell` hears of its events. Errors come back as `TaskFailed`;
        where somebody gave up the task before this one, and the process ended with it, as `WorkerGone`.
        """
        async with self._turn:
            if self._killed:
                raise WorkerGone("Ended", *ENDED)
            name = f"{task.__module__}:{task.__qualname__}"
            request = {"task": name, "arguments": arguments, "language": language}
            try:
                await self._send(request).drain()
                return await self._answer(tell)
            except (OSError, asyncio.IncompleteReadError):
                raise TaskFailed("Ended", *await self._post_mortem()) from None
            except asyncio.CancelledError:
                self.kill()  # the answer would be taken for that of the next task
                raise

    def _send(self, message: Any) -> asyncio.StreamWriter:
        body = json.dumps(message, ensure_ascii=False).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(HEADER.pack(len(body)) + body)
        return self._process.stdin

    async def _answer(self, tell: Tell | None) -> Any:
        assert self._process.stdout is not None
        while True:
            head = await self._process.stdout.readexactly(HEADER.size)
            message = json.loads(await self._process.stdout.readexactly(HEADER.unpack(head)[0]))
            if "event" in message:
                if tell is not None:
                    tell(message["event"])
            elif "error" in message:
                error = message["error"]
                raise TaskFailed(**{**error, "message": thawed(error["message"]), "hint": thawed(error["hint"])})
            else:
                return message["value"]

    async def _post_mortem(self) -> tuple[str, str]:
        code = await self._process.wait()
        if was_ended(code):
            return ENDED
        return BROKEN

    def interrupt(self) -> None:
        """Ask the process to keep the best answer that it has; only a task that listens for it may be asked."""
        if self.alive:
            with suppress(ProcessLookupError, OSError):
                if GROUPS:
                    self._process.send_signal(ASK)
                else:
                    self._send(STOP)

    def kill(self) -> None:
        """End the process and all that it started, now."""
        if self._killed:
            return
        self._killed = True
        if GROUPS:
            end_group(self._process.pid)
            _close(self._life)
        else:  # what it started ends with it
            with suppress(ProcessLookupError, PermissionError):
                self._process.kill()

    async def close(self) -> None:
        """End the process and wait until it is gone."""
        self.kill()
        await self._process.wait()
