"""Connections that cost nothing: whoever opens one and asks nothing, or asks without end, is put out.

A server that waits for every half of a request can be kept from all others by a program that opens connections and
sends a letter now and then. So a connection on which no request is being answered is closed after a while, and when
there are too many the one that has waited longest goes. Whoever has the right to be here asks at once, and is answered.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from time import monotonic
from typing import Any
from urllib.parse import parse_qs

from uvicorn.protocols.http.h11_impl import H11Protocol

from tablesafe.core.machine import open_files
from tablesafe.web.answers import SCOPE, Answer, App, Body, Broken, Note, Receive, Refusal, Scope, Send, header_of
from tablesafe.web.logs import note_error
from tablesafe.web.sessions import Full, Session, Sessions

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
    Impatient.most = min(MOST, open_files(OPEN_FILES) // SHARE)


# Who may talk to the app: the one gate in front of every request and every connection.
#
# It stands outside the framework, so that no route, page, file or socket can be reached around it. What it asks, in
# this order: is the request meant for this app (Host)? Does it come from the app's own pages (Origin, Sec-Fetch-
# Site)? Has the browser shown the token once (cookie)? Does it ask only for what belongs to its own session? And it
# puts strict headers on every answer, errors too.


METHODS = {"GET", "HEAD", "POST"}
UPLOADS = re.compile(r"/upload(/[^/]*)?|/_nicegui/client/[^/]+/upload/\d+")
CLIENT = re.compile(r"/_nicegui/client/([^/]+)/")
REFUSED = ("/_nicegui/auto/",)
"""Paths under which the framework would show files to every session alike."""
MOST_BODY = 1 << 20
"""Bytes of a request that is no upload."""
MOST_SOCKETS, MOST_REQUESTS = 64, 32
"""Open pages, and requests at a time, of one session: others need room too."""
WRONG_TOKENS, WRONG_S = 10, 60.0
"""So many wrong tokens in so many seconds; then none is looked at for a while."""


@dataclass(slots=True)
class Attempts:
    """Wrong tokens of late."""

    times: deque[float] = field(default_factory=deque)

    def too_many(self) -> bool:
        """Whether to look at no more tokens for now."""
        now = time.monotonic()
        while self.times and now - self.times[0] > WRONG_S:
            self.times.popleft()
        return len(self.times) >= WRONG_TOKENS

    def note(self) -> None:
        """A wrong one."""
        self.times.append(time.monotonic())


@dataclass(frozen=True, slots=True)
class Gate:
    """What the guard knows: its secrets and its limits."""

    token: str
    hosts: frozenset[str]
    """Values of the Host header under which the app may be reached: `127.0.0.1:8080`, `localhost:8080`, …"""
    sessions: Sessions
    port: int
    known_as: frozenset[str] = frozenset()
    """Those of them that a proxy or a tunnel goes by."""
    upload_bytes: int = 1 << 30
    owner_of: Callable[[str], Session | None] = lambda client: None
    """The session for which the framework made a page, by the page's number."""
    note: Note = lambda method, path, status, seconds: None
    """Write a line of the access log."""
    attempts: Attempts = field(default_factory=Attempts)

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers share cookies between ports, so it names the port."""
        return f"tablesafe-{self.port}"

    @property
    def origins(self) -> frozenset[str]:
        """Where the app's own pages come from; behind a proxy they may come encrypted."""
        plain, proxied = (f"http://{host}" for host in self.hosts), (f"https://{name}" for name in self.known_as)
        return frozenset([*plain, *proxied])


class Guard:
    """The gate as an ASGI application around another."""

    def __init__(self, app: App, gate: Gate) -> None:
        self.app, self.gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)

    # -- requests --------------------------------------------------------------------------------------------------

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = Answer(scope, send, self.gate.note)
        try:
            found = self._admitted(scope)
            if isinstance(found, str):
                await answer.enter(
                    f"{self.gate.cookie}={found}", cross_site=header_of(scope, "sec-fetch-site") == "cross-site"
                )
                return
            scope[SCOPE] = found
            body = Body(scope, receive, answer, self._limit(scope))
            with self._counted(found):
                await self._pass_on(scope, body, answer)
        except Refusal as refusal:
            await answer.refuse(refusal)

    @contextmanager
    def _counted(self, session: Session) -> Iterator[None]:
        """Let a session ask for so much at a time, and no more."""
        if session.requests >= MOST_REQUESTS:
            raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, "Too many requests at a time.", **{"retry-after": "1"})
        session.requests += 1
        try:
            yield
        finally:
            session.requests -= 1

    async def _pass_on(self, scope: Scope, body: Body, answer: Answer) -> None:
        """Let the app answer; if it fails, or the request turns out to be too large, nothing of that is shown."""
        try:
            await self.app(scope, body.receive, answer.send)
        except Exception as error:
            if answer.refused is None:
                note_error(error)
                if answer.started and not answer.replaced:  # half of it is sent: break the connection
                    raise Broken from None
                await answer.fail()
        await answer.finish()

    def _limit(self, scope: Scope) -> int:
        return self.gate.upload_bytes + MOST_BODY if UPLOADS.fullmatch(scope["path"]) else MOST_BODY

    def _admitted(self, scope: Scope) -> Session | str:
        """The session of a request; or the cookie of a new one, when the address holds the token."""
        self._check_host(scope)
        if scope["method"] not in METHODS:
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "This is not allowed here.", allow=", ".join(sorted(METHODS)))
        self._check_origin(scope)
        session = self._session(scope)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if given is not None and scope["path"] == "/":
            self._check_token(given[-1])
            return self._kept(scope, session) if session is not None else self._open()
        if session is None:
            raise Refusal(
                HTTPStatus.FORBIDDEN,
                "This app needs the address that was printed when it was started, with its token. "
                "If the app was started again, use the new address.",
            )
        self._check_path(scope["path"], session)
        return session

    def _kept(self, scope: Scope, session: Session) -> str:
        """The cookie of the session that the browser has already."""
        return next(cookie for cookie in self._cookies(scope) if self.gate.sessions.find(cookie) is session)

    def _open(self) -> str:
        try:
            return self.gate.sessions.create()
        except Full as error:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None

    def _check_host(self, scope: Scope) -> None:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or hosts[0].lower() not in self.gate.hosts:
            raise Refusal(HTTPStatus.MISDIRECTED_REQUEST, "This app is not reached under that name.")

    def _check_origin(self, scope: Scope) -> None:
        """Only the app's own pages may ask; typing the address, or following a link to it, is allowed as well."""
        origin, site = header_of(scope, "origin"), header_of(scope, "sec-fetch-site")
        if origin is not None and origin not in self.gate.origins:
            raise Refusal(HTTPStatus.FORBIDDEN, "Requests from other sites are refused.")
        if site in {None, "same-origin", "none"}:
            return
        navigates = (
            header_of(scope, "sec-fetch-mode") == "navigate" and header_of(scope, "sec-fetch-dest") == "document"
        )
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"} or not navigates:
            raise Refusal(HTTPStatus.FORBIDDEN, "Requests from other sites are refused.")

    def _check_token(self, given: str) -> None:
        if self.gate.attempts.too_many():
            later = {"retry-after": str(int(WRONG_S))}
            raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, "Too many wrong tokens: wait a minute.", **later)
        if not hmac.compare_digest(given.encode(), self.gate.token.encode()):
            self.gate.attempts.note()
            raise Refusal(HTTPStatus.FORBIDDEN, "The token in the address is not that of this app.")

    def _check_path(self, path: str, session: Session) -> None:
        """Pages, uploads and files of another session are as if they were not there."""
        client = CLIENT.match(path)
        if path.startswith(REFUSED) or (client and self.gate.owner_of(client[1]) is not session):
            raise Refusal(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _session(self, scope: Scope) -> Session | None:
        found = (self.gate.sessions.find(cookie) for cookie in self._cookies(scope))
        return next((session for session in found if session is not None), None)

    def _cookies(self, scope: Scope) -> list[str]:
        """What the browser has under our name; other programs at other ports of this machine may add to it.

        They may also have cookies that are no proper ones, which must not hide ours.
        """
        pairs = (pair.strip().partition("=") for pair in (header_of(scope, "cookie") or "").split(";"))
        return [value for name, _, value in pairs if name == self.gate.cookie]

    # -- connections -----------------------------------------------------------------------------------------------

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check_host(scope)
            if header_of(scope, "origin") not in self.gate.origins:
                raise Refusal(HTTPStatus.FORBIDDEN, "Connections from other sites are refused.")
            self._check_origin(scope)
            session = self._session(scope)
            if session is None:
                raise Refusal(HTTPStatus.FORBIDDEN, "Connections need the cookie of a session.")
            if session.sockets >= MOST_SOCKETS:
                raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, "Too many pages are open.")
            query = parse_qs(scope["query_string"].decode("latin-1"))
            for client in query.get("client_id", []):
                owner = self.gate.owner_of(client)
                if owner is not None and owner is not session:
                    raise Refusal(HTTPStatus.FORBIDDEN, "That page belongs to another session.")
        except Refusal:
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        scope[SCOPE] = session
        session.sockets += 1
        try:
            await self.app(scope, receive, send)
        finally:
            session.sockets -= 1
