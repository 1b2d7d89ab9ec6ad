"""Where a run is, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum

from tablesafe.core.errors import InvalidOption


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
