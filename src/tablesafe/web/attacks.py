"""Work on finished runs in the background: attacks on one, or several measured alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tablesafe.web.logs import note_error
from tablesafe.web.queue import Queue, State
from tablesafe.web.worker import TaskFailed, Worker
from tablesafe.web.workspace import Workspace


@dataclass(slots=True, eq=False)
class Background:
    """A task on finished runs, in a process of its own, with progress and a stop."""

    task: Callable[..., Any]
    """A task of the app; its answer has a `headline`. It may tell what it has found so far: an event with `found`."""
    arguments: tuple[Any, ...]
    state: State = State.QUEUED
    message: str = "Waiting for a place"
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
        self.message, self.done, self.total = event["message"], event["done"], event["total"]
        self.found = event.get("found") or self.found
        self._notify()

    async def _live(self, workspace: Workspace, queue: Queue, who: str) -> None:
        worker = None
        try:
            async with queue.place(who):
                self.state, self.message = State.RUNNING, "Starting"
                self._notify()
                worker = await Worker.start(workspace.path, workspace.place)
                self.found = await worker.call(self.task, *self.arguments, tell=self._hear)
                self.state, self.message = State.DONE, self.found["headline"]
        except TaskFailed as error:
            self.state, self.error, self.message = State.FAILED, error, error.message
        except asyncio.CancelledError:
            kept = " What was found until then is kept." if self.found else ""
            self.state, self.message = State.STOPPED, f"Ended by the user.{kept}"
        except Exception as error:
            note_error(error)
            self.error = TaskFailed(type(error).__name__, "The process for this could not be started.")
            self.state, self.message = State.FAILED, self.error.message
        finally:
            if worker is not None:
                await worker.close()
            self._notify()
