"""Attacks on a finished run, in the background."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tablesafe.web.logs import note_error
from tablesafe.web.queue import Queue, State
from tablesafe.web.tasks import attack_run
from tablesafe.web.worker import TaskFailed, Worker
from tablesafe.web.workspace import Workspace


@dataclass(slots=True, eq=False)
class Attack:
    """Attacks on a finished run, in a process of their own."""

    names: tuple[str, ...]
    state: State = State.QUEUED
    message: str = "Waiting for a place"
    done: int | None = None
    total: int | None = None
    found: dict[str, Any] = field(default_factory=dict)
    """`headline`, `attacks` (one row each) and `ranking` (cells by risk, the first 200). Internal."""
    error: TaskFailed | None = None
    _task: asyncio.Task[None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def finished(self) -> None:
        """Wait for the end."""
        while not self.state.ended:
            await self._changed.wait()

    def stop(self) -> None:
        """End the attacks; nothing is kept."""
        if not self.state.ended and self._task is not None:
            self._task.cancel()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _hear(self, event: dict[str, Any]) -> None:
        self.message, self.done, self.total = event["message"], event["done"], event["total"]
        self._notify()

    async def _live(self, workspace: Workspace, run: str, queue: Queue, who: str, options: tuple[int, float]) -> None:
        worker = None
        try:
            async with queue.place(who):
                self.state = State.RUNNING
                worker = await Worker.start(workspace.path, workspace.place)
                arguments = (run, list(self.names), *options)
                self.found = await worker.call(attack_run, *arguments, tell=self._hear)
                self.state, self.message = State.DONE, self.found["headline"]
        except TaskFailed as error:
            self.state, self.error, self.message = State.FAILED, error, error.message
        except asyncio.CancelledError:
            self.state, self.message = State.STOPPED, "Ended by the user."
        except Exception as error:
            note_error(error)
            self.error = TaskFailed(type(error).__name__, "The process for these attacks could not be started.")
            self.state, self.message = State.FAILED, self.error.message
        finally:
            if worker is not None:
                await worker.close()
            self._notify()
