"""Sessions: one per browser, each with a workspace and runs of its own. Nobody sees another's."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tablesafe.core.errors import TablesafeError
from tablesafe.web.answers import SCOPE
from tablesafe.web.folders import Folder
from tablesafe.web.runs import Queue, Runs
from tablesafe.web.workspace import Quota, Workspace

REST_S = 900.0
"""Seconds without a question after which the worker of a session is ended; the next one starts another."""


class Full(TablesafeError):
    """There are as many sessions as the app allows, and all of them are in use."""


@dataclass(slots=True, eq=False)
class Session:
    """What belongs to one browser. `state` is for pages: plain values that live as long as the session."""

    key: str
    """What the session is found by: a digest, so that the cookie itself is kept nowhere."""
    workspace: Workspace
    runs: Runs
    state: dict[str, Any] = field(default_factory=dict)
    seen: float = field(default_factory=time.monotonic)
    sockets: int = 0
    """Open connections of its pages."""
    requests: int = 0
    """Requests of it that are being answered."""

    @property
    def busy(self) -> bool:
        """Whether a page of it is open or something runs."""
        return self.sockets > 0 or any(not run.state.ended for run in self.runs.runs.values())


@dataclass(slots=True)
class Sessions:
    """All sessions of a server."""

    path: Path
    """The private folder of the server."""
    folder: Folder = field(default_factory=Folder)
    limits: Quota = field(default_factory=Quota)
    most: int = 16
    expire_s: float = 12 * 3600.0
    queue: Queue = field(default_factory=lambda: Queue(2))
    forget: Callable[[Session], None] = lambda session: None
    """What else is to be removed when a session ends: its pages."""
    _sessions: dict[str, Session] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._sessions)

    def create(self) -> str:
        """Open a session; the value of its cookie. If there are too many, one that is not in use makes room."""
        if len(self._sessions) >= self.most:
            self._make_room()
        cookie = secrets.token_urlsafe(32)
        key = _digest(cookie)
        workspace = Workspace.make(self.path / f"session-{secrets.token_hex(8)}", self.folder, self.limits)
        self._sessions[key] = Session(key, workspace, Runs(workspace, self.queue, key))
        return cookie

    def find(self, cookie: str | None) -> Session | None:
        """The session of a cookie, if it is one of ours and has not expired."""
        session = None if cookie is None else self._sessions.get(_digest(cookie))
        if session is None or self._is_over(session):
            return None
        session.seen = time.monotonic()
        return session

    def _is_over(self, session: Session) -> bool:
        return not session.busy and time.monotonic() - session.seen > self.expire_s

    def _make_room(self) -> None:
        idle = [session for session in self._sessions.values() if not session.busy]
        if not idle:
            raise Full(f"{self.most} sessions are in use.", hint="close one, or start the app with more.")
        self._forget(min(idle, key=lambda session: session.seen))

    def _forget(self, session: Session) -> None:
        del self._sessions[session.key]
        self.forget(session)
        task = asyncio.ensure_future(_close(session))
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)

    async def expire(self) -> None:
        """End the sessions that have not been used for long, and the workers of those that pause."""
        for session in [each for each in self._sessions.values() if self._is_over(each)]:
            await self.end(session)
        for session in list(self._sessions.values()):
            await session.workspace.rest(REST_S)

    async def end(self, session: Session) -> None:
        """End a session: its runs are stopped, its files removed."""
        self._sessions.pop(session.key, None)
        self.forget(session)
        await _close(session)

    async def close(self) -> None:
        """End all sessions."""
        await asyncio.gather(*(self.end(session) for session in list(self._sessions.values())))


_CLOSING: set[asyncio.Future[None]] = set()
"""Ends that are under way: the loop itself would forget them."""


async def _close(session: Session) -> None:
    await session.runs.close()
    await session.workspace.close()


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


def current_session() -> Session:
    """The session of the page that is being built, or whose event is being handled."""
    from nicegui import context

    session = context.client.request.scope[SCOPE]
    assert isinstance(session, Session)
    return session
