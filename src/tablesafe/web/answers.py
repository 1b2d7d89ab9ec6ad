"""Strict headers for every answer: what a browser may do with it, which is as little as the pages need."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

NONCE = "tablesafe.nonce"
"""Where the guard leaves the number that marks our own scripts."""
SCOPE = "tablesafe.session"
"""Where the guard leaves the session of a request."""
STATIC = re.compile(r"/_nicegui/[^/]+/(static|libraries|components|esm|resources)/|/assets/")
"""Files of the program itself, the same for everybody: they may be kept for a while."""
DROPPED = re.compile(rb"access-control-.*|server|x-powered-by|x-nicegui-content|cache-control|etag|last-modified")

FIXED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "x-permitted-cross-domain-policies": "none",
    "x-dns-prefetch-control": "off",
    "permissions-policy": (
        "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), "
        "microphone=(), midi=(), payment=(), screen-wake-lock=(), serial=(), usb=(), browsing-topics=()"
    ),
}

REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:; frame-ancestors 'none'"
)
"""For a report that is looked at in the browser: it is alone in there, and reaches nothing of the app."""


def page_policy(nonce: str, host: str) -> str:
    """What a page may load: only from this app. Scripts must carry the number of this answer or be files of the app.

    The framework builds its elements from templates in the browser ('unsafe-eval') and sets styles there
    ('unsafe-inline' for styles only).
    """
    return "; ".join([
        "default-src 'none'",
        f"script-src 'self' 'nonce-{nonce}' 'unsafe-eval'",
        "script-src-attr 'none'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        f"connect-src 'self' ws://{host}",
        "worker-src 'none'",
        "manifest-src 'none'",
        "object-src 'none'",
        "frame-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ])  # fmt: skip


def strict_headers(scope: MutableMapping[str, Any], headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, with ours in place of whatever the framework says about the same."""
    given = {name.lower() for name, _ in headers}
    kept = [(name.lower(), value) for name, value in headers if not DROPPED.fullmatch(name.lower())]
    ours = dict(FIXED)
    if b"content-security-policy" not in given:
        host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        ours["content-security-policy"] = page_policy(scope[NONCE], host if _is_plain(host) else "localhost")
    static = STATIC.match(scope["path"]) is not None
    ours["cache-control"] = "private, max-age=86400, immutable" if static else "no-store"
    return [*((n, v) for n, v in kept if n.decode() not in ours), *((n.encode(), v.encode()) for n, v in ours.items())]


def _is_plain(host: str) -> bool:
    return re.fullmatch(r"[\w.:\[\]-]+", host) is not None


# Answers on their way out, with strict headers and nothing of an error in them; bodies on their way in, counted.


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Note = Callable[[str, str, int, float], None]
"""Writes a line of the access log: method, path, status, seconds."""

PAUSE_S = 60.0
"""Seconds between two pieces of a request; then it is broken off."""


class Refusal(Exception):
    """A request that is not let in."""

    def __init__(self, status: HTTPStatus, text: str, **headers: str) -> None:
        super().__init__(text)
        self.status, self.text, self.headers = status, text, headers


class Broken(Exception):
    """An answer that ended in the middle."""


@dataclass(slots=True)
class Body:
    """A request's body, counted as it comes in: what is too long is cut off, whatever length was announced.

    So is what does not come: nobody waits without end for the rest.
    """

    scope: Scope
    inner: Receive
    answer: Answer
    limit: int
    size: int = 0
    whole: bool = False

    def __post_init__(self) -> None:
        announced = header_of(self.scope, "content-length")
        if announced is not None and (not announced.isdecimal() or int(announced) > self.limit):
            raise _too_large()

    async def receive(self) -> Message:
        if self.answer.refused is not None:
            return {"type": "http.disconnect"}
        try:
            message = await asyncio.wait_for(self.inner(), None if self.whole else PAUSE_S)
        except TimeoutError:
            self.answer.refused = Refusal(HTTPStatus.REQUEST_TIMEOUT, "Nothing more came.", connection="close")
            return {"type": "http.disconnect"}
        self.whole = not message.get("more_body", False)
        self.size += len(message.get("body", b""))
        if self.size > self.limit:
            self.answer.refused = _too_large()
            return {"type": "http.disconnect"}
        return message


def _too_large() -> Refusal:
    return Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "This is larger than the app accepts.", connection="close")


class Answer:
    """The answer to a request: strict headers on all of it, nothing of an error's inside."""

    def __init__(self, scope: Scope, send: Send, note: Note) -> None:
        self.scope, self.inner, self.note = scope, send, note
        self.refused: Refusal | None = None
        self.started = False
        self.replaced = False
        self.begun = time.monotonic()
        scope[NONCE] = secrets.token_urlsafe(16)

    async def send(self, message: Message) -> None:
        """Pass on what the app says, unless it has been refused or tells of an error of its own."""
        if self.refused is not None or self.replaced:
            return
        if message["type"] == "http.response.start":
            if message["status"] >= HTTPStatus.INTERNAL_SERVER_ERROR:
                self.replaced = True
                await self.fail()
                return
            await self._start(message["status"], message["headers"])
        else:
            await self.inner(message)

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.started = True
        self.note(self.scope["method"], self.scope["path"], status, time.monotonic() - self.begun)
        strict = strict_headers(self.scope, headers)
        await self.inner({"type": "http.response.start", "status": status, "headers": strict})

    async def enter(self, cookie: str, *, cross_site: bool) -> None:
        """Give the browser its cookie and send it on to the address without the token.

        After a link on another site the cookie would not go along with a redirect, but it does from a page of ours.
        """
        set_cookie = f"{cookie}; HttpOnly; SameSite=Strict; Path=/"
        headers = [(b"set-cookie", set_cookie.encode())]
        if cross_site:
            page = '<!doctype html><meta http-equiv="refresh" content="0; url=/"><title>tablesafe</title>'
            await self._write(HTTPStatus.OK, page, headers)
        else:
            await self._write(HTTPStatus.SEE_OTHER, "", [*headers, (b"location", b"/")])

    async def refuse(self, refusal: Refusal) -> None:
        """Say no, and why, in one sentence."""
        headers = [(name.encode(), value.encode()) for name, value in refusal.headers.items()]
        await self._write(refusal.status, _page(refusal.status, refusal.text), headers)

    async def fail(self) -> None:
        """Say that something went wrong, and nothing else."""
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        if not self.started:
            await self._write(status, _page(status, "Something went wrong in the app."), [])

    async def finish(self) -> None:
        """Say no, if the request turned out to be too large and nothing was said yet."""
        if self.refused is not None and not self.started:
            await self.refuse(self.refused)

    async def _write(self, status: HTTPStatus, text: str, headers: list[tuple[bytes, bytes]]) -> None:
        body = text.encode()
        kind = (b"content-type", b"text/html; charset=utf-8")
        await self._start(status, [kind, (b"content-length", str(len(body)).encode()), *headers])
        await self.inner({"type": "http.response.body", "body": b"" if self.scope["method"] == "HEAD" else body})


def _page(status: HTTPStatus, text: str) -> str:
    return f"<!doctype html><html lang=en><title>{status.phrase}</title><h1>{status.phrase}</h1><p>{text}</p></html>"


def header_of(scope: Scope, name: str) -> str | None:
    """A header of a request; several of one name count as none that is right."""
    found = [value.decode("latin-1") for key, value in scope["headers"] if key == name.encode()]
    return None if not found else found[0] if len(found) == 1 else ", ".join(found)
