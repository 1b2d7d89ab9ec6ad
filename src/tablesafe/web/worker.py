"""The server's side of a process that computes for it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablesafe.core.errors import TablesafeError
from tablesafe.web.child import HEADER

TOKEN = "TABLESAFE_TOKEN"
"""The variable that may hold the token; it is no business of processes that read files."""
Tell = Callable[[dict[str, Any]], None]


class TaskFailed(TablesafeError):
    """A task ended with an error; its message is that of the command line.

    `kind` names the error, `hint` says what to do, `about` what it is about.
    """

    def __init__(self, kind: str, message: str, hint: str = "", about: Sequence[str | int] = ()) -> None:
        super().__init__(message, hint=hint, about=tuple(about))
        self.kind = kind


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
    return {**inherited, "TMPDIR": str(temporary), "PYTHONSAFEPATH": "1"}


class Worker:
    """One process; it does one task at a time, in the order in which they are asked for."""

    def __init__(self, process: asyncio.subprocess.Process, life: int) -> None:
        self._process, self._life = process, life
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, folder: Path, place: Place) -> Worker:
        """Start a process that works in a folder. It ends with this one, whatever ends it."""
        theirs, ours = os.pipe()
        allowed = "" if place.allowed is None else str(place.allowed)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tablesafe.web.child", str(theirs), str(folder), str(place.workspace), allowed,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs,), start_new_session=True, env=_surroundings(place),
            )  # fmt: skip
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return cls(process, ours)

    @property
    def pid(self) -> int:
        """The number of the process, which is also that of its group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self._life >= 0 and self._process.returncode is None

    @property
    def busy(self) -> bool:
        """Whether it has something to do."""
        return self._turn.locked()

    async def call(self, task: Callable[..., Any], *arguments: Any, tell: Tell | None = None) -> Any:
        """What a function of this package gives for plain arguments, called there with the desk before them.

        `tell` hears of its events. Errors come back as `TaskFailed`.
        """
        async with self._turn:
            request = {"task": f"{task.__module__}:{task.__qualname__}", "arguments": arguments}
            body = json.dumps(request, ensure_ascii=False).encode()
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(HEADER.pack(len(body)) + body)
                await self._process.stdin.drain()
                return await self._answer(tell)
            except (OSError, asyncio.IncompleteReadError):
                raise TaskFailed("Ended", *await self._post_mortem()) from None
            except asyncio.CancelledError:
                self.kill()  # the answer would be taken for that of the next task
                raise

    async def _answer(self, tell: Tell | None) -> Any:
        assert self._process.stdout is not None
        while True:
            head = await self._process.stdout.readexactly(HEADER.size)
            message = json.loads(await self._process.stdout.readexactly(HEADER.unpack(head)[0]))
            if "event" in message:
                if tell is not None:
                    tell(message["event"])
            elif "error" in message:
                raise TaskFailed(**message["error"])
            else:
                return message["value"]

    async def _post_mortem(self) -> tuple[str, str]:
        code = await self._process.wait()
        if code == -signal.SIGKILL:
            return "The process that did this was ended.", "perhaps there was not enough memory: try a smaller table."
        return "The process that did this broke down.", "run the job file from the shell to see why."

    def interrupt(self) -> None:
        """Ask the process to keep the best answer that it has; only a task that listens for it may be asked."""
        if self.alive:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """End the process and all that it started, now."""
        if self._life >= 0:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            os.close(self._life)
            self._life = -1

    async def close(self) -> None:
        """End the process and wait until it is gone."""
        self.kill()
        await self._process.wait()
