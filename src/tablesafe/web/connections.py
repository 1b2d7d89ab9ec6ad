"""Connections that cost nothing: whoever opens one and asks nothing, or asks without end, is put out.

A server that waits for every half of a request can be kept from all others by a program that opens connections and
sends a letter now and then. So a connection on which no request is being answered is closed after a while, and when
there are too many the one that has waited longest goes. Whoever has the right to be here asks at once, and is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
from time import monotonic
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 15.0
"""Seconds in which the head of a request must be there, and the rest of one that was refused."""
MOST = 1024
"""Connections at a time; pages that stay connected count elsewhere (`guard.MOST_SOCKETS`)."""
OPEN_FILES = 8192
"""Files and connections that the process may have open, where the system lets it choose."""
SHARE = 4
"""Of the files that may be open, one in so many may be such a connection."""


class Impatient(H11Protocol):
    """A connection that is closed when nothing comes of it."""

    most = MOST

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; if too many do, no longer for the one that has taken longest."""
        super().connection_made(transport)
        self._since = monotonic()
        self._timer = self.loop.call_later(REQUEST_S, self._judge)
        there = [each for each in self.connections if isinstance(each, Impatient) and not each.transport.is_closing()]
        if len(there) > self.most:
            idle = [each for each in there if each.idle]
            (min(idle, key=lambda each: each._since) if idle else self).transport.abort()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered: none has come, or only a part of one, or all are answered."""
        return self.cycle is None or self.cycle.response_complete

    def _judge(self) -> None:
        waited = monotonic() - self._since if self.idle else 0.0
        if waited < REQUEST_S:
            self._timer = self.loop.call_later(REQUEST_S - waited, self._judge)
        else:
            self.transport.abort()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._since = monotonic()
        super().on_response_complete()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """From here on it is the connection of a page."""
        self._timer.cancel()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._timer.cancel()
        super().connection_lost(exc)


def make_room_for_connections() -> None:
    """Let this process have as many files open as it may, and as many connections as leave room for others."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < OPEN_FILES:
        wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    Impatient.most = min(MOST, soft // SHARE)
