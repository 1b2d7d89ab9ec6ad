"""Where a run is, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tablesafe.core.errors import InvalidOption
from tablesafe.core.language import Text, thawed
from tablesafe.web.logs import note_error
from tablesafe.web.worker import TaskFailed, Worker
from tablesafe.web.workspace import Workspace

ENDED = "Ended by the user."
KEPT = "Ended by the user. What was found until then is kept."
BEGUN = ("Waiting for a place", "Starting")
"""What is said of work before it says anything itself."""


class State(StrEnum):
    """Where a run is."""

    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    DONE = "done"
    OPEN = "open"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self in {State.DONE, State.OPEN, State.FAILED, State.STOPPED}


class Queue:
    """Room for some runs at a time; the others wait, and users take turns, so that many runs of one hold up nobody."""

    def __init__(self, places: int) -> None:
        if places < 1:
            raise InvalidOption(f"At least 1 run must be possible at a time, got {places}.")
        self.free = places
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        """Wait for a place, and give it back at the end."""
        await self._take(who)
        try:
            yield
        finally:
            self.free += 1
            self._call_next()

    async def _take(self, who: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(turn)
        self._call_next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # called, but no longer there
                self.free += 1
                self._call_next()
            raise

    def _call_next(self) -> None:
        while self.free and self._waiting:
            who = next(iter(self._waiting))
            line = self._waiting.pop(who)  # to the end: the next place is somebody else's
            turn = line.popleft()
            if line:
                self._waiting[who] = line
            if not turn.done():
                self.free -= 1
                turn.set_result(None)


# Work on finished runs in the background: attacks on one, or several measured alike.


@dataclass(slots=True, eq=False)
class Background:
    """A task on finished runs, in a process of its own, with progress and a stop."""

    task: Callable[..., Any]
    """A task of the app; its answer has a `headline`. It may tell what it has found so far: an event with `found`."""
    arguments: tuple[Any, ...]
    state: State = State.QUEUED
    message: Text | str = BEGUN[0]
    done: int | None = None
    total: int | None = None
    found: dict[str, Any] = field(default_factory=dict)
    """What the task found, or has found so far. Internal."""
    error: TaskFailed | None = None
    _task: asyncio.Task[None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def finished(self) -> None:
        """Wait for the end."""
        while not self.state.ended:
            await self._changed.wait()

    def start(self, workspace: Workspace, queue: Queue, who: str) -> None:
        """Begin, as soon as there is a place."""
        self._task = asyncio.create_task(self._live(workspace, queue, who))

    def stop(self) -> None:
        """End the task; what it has told until now is kept."""
        if not self.state.ended and self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """End the task, and wait until it is gone."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _hear(self, event: dict[str, Any]) -> None:
        self.message, self.done, self.total = thawed(event["message"]), event["done"], event["total"]
        self.found = event.get("found") or self.found
        self._notify()

    async def _live(self, workspace: Workspace, queue: Queue, who: str) -> None:
        worker = None
        try:
            async with queue.place(who):
                self.state, self.message = State.RUNNING, BEGUN[1]
                self._notify()
                worker = await Worker.start(workspace.path, workspace.place)
                self.found = await worker.call(self.task, *self.arguments, tell=self._hear)
                self.state, self.message = State.DONE, thawed(self.found["headline"])
        except TaskFailed as error:
            self.state, self.error, self.message = State.FAILED, error, error.words[0]
        except asyncio.CancelledError:
            self.state, self.message = State.STOPPED, KEPT if self.found else ENDED
        except Exception as error:
            note_error(error)
            self.error = TaskFailed(type(error).__name__, "The process for this could not be started.")
            self.state, self.message = State.FAILED, self.error.words[0]
        finally:
            if worker is not None:
                await worker.close()
            self._notify()
