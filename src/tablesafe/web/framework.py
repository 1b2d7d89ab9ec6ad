"""NiceGUI, tamed: no storage on disk, no scripts but its own, no events across sessions, no errors on pages."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response
from jinja2 import BaseLoader, Environment
from nicegui import app as nicegui_app
from nicegui import context, core, ui
from nicegui.client import Client, templates
from nicegui.persistence.pseudo_persistent_dict import PseudoPersistentDict

from tablesafe.web.answers import NONCE, SCOPE
from tablesafe.web.routes import add_routes
from tablesafe.web.sessions import Session, Sessions, current_session
from tablesafe.web.speech import spoken_here

FRAMEWORK: dict[str, Any] = {"en": "en-US", "de": "de", "fr": "fr", "es": "es"}
"""Our languages as the framework calls them: what it says itself is said in the same."""
OwnerOf = Callable[[str], Session | None]


def build_app(sessions: Sessions, paths: Iterable[str], build: Callable[[Session], None]) -> tuple[FastAPI, OwnerOf]:
    """The application without its guard, and whose page a page is; `build` draws the pages at these paths."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_routes(app)
    for path in paths:
        ui.page(path)(_page_of(build))
    _keep_storage_in_memory()
    _mark_scripts()
    _check_senders()
    core.app.config.socket_io_js_transports = ["websocket"]
    core.sio.eio.cors_allowed_origins = []  # the guard asks where a connection comes from
    nicegui_app.on_page_exception(_show_error)
    core.app.add_exception_handler(404, _nothing_here)
    ui.run_with(
        app,
        title="tablesafe",
        favicon=ICON,
        language="en-US",
        dark=None,
        tailwind=False,
        show_welcome_message=False,
        cache_control_directives="private, max-age=86400, immutable",
        reconnect_timeout=10.0,
        message_history_length=200,
    )
    sessions.forget = _forget_pages
    return app, owner_of


def _page_of(build: Callable[[Session], None]) -> Callable[[], None]:
    """A page that is built for the session of whoever asks for it."""

    def page() -> None:
        client = context.client
        client.page = copy.copy(client.page)  # else it would be that of all who ask for this path
        client.page.language = FRAMEWORK[spoken_here().code]
        build(current_session())

    return page


def owner_of(client: str) -> Session | None:
    """The session for which a page was made."""
    page = Client.instances.get(client)
    if page is None or page._request is None:
        return None
    found = page._request.scope.get(SCOPE)
    return found if isinstance(found, Session) else None


def _forget_pages(session: Session) -> None:
    """Delete the pages that were made for a session; they hold on to it."""
    for page in list(Client.instances.values()):
        if owner_of(page.id) is session:
            page.delete()


def _keep_storage_in_memory() -> None:
    """Nothing of the framework's storage reaches the disk; without a secret, it keeps none per user at all."""
    core.app.storage._general = PseudoPersistentDict()


ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#12344d"/>'
    '<path d="M5 5l6 6M11 5l-6 6" stroke="#fff" stroke-width="2"/></svg>'
)
"""A cell that is withheld; it comes with the page."""


def asset(name: str) -> str:
    """The address of a file of ours, which changes with it: browsers keep such files, but not beyond an upgrade."""
    digest = hashlib.sha256((Path(__file__).parent / "static" / name).read_bytes()).hexdigest()
    return f"/assets/{name}?{digest[:12]}"


OURS = "".join(f'<script defer src="{asset(name)}"></script>' for name in ("connection.js", "keys.js"))
"""What every page loads of ours beside the framework."""


class _Marked(BaseLoader):
    """The framework's own templates, their scripts marked with the number that the headers of the answer name."""

    def __init__(self, inner: BaseLoader) -> None:
        self.inner = inner

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        """The template; what is filled into it later is not touched, so a script in there stays unmarked."""
        source, filename, current = self.inner.get_source(environment, template)
        source = source.replace("</head>", f"{OURS}</head>")
        mark = f"<script nonce=\"{{{{ request.scope['{NONCE}'] }}}}\""
        return source.replace("<script", mark), filename, current


def _mark_scripts() -> None:
    loader = templates.env.loader
    if loader is not None and not isinstance(loader, _Marked):
        templates.env.loader = _Marked(loader)


def _check_senders() -> None:
    """Let a connection speak only for the page that it belongs to, and join only pages of its own session."""
    handlers: dict[str, Callable[..., Any]] = core.sio.handlers["/"]
    core.sio.on("handshake", _only_of_session(handlers["handshake"]))
    for name in ("event", "javascript_response", "ack", "log"):
        core.sio.on(name, _only_own(handlers[name]))


def _only_own(handler: Callable[..., Any]) -> Callable[..., Any]:
    def checked(sid: str, message: dict[str, Any]) -> Any:
        if isinstance(message, dict) and message.get("client_id") in core.sio.rooms(sid):
            return handler(sid, message)
        return None

    return checked


def _only_of_session(handler: Callable[..., Any]) -> Callable[..., Any]:
    async def checked(sid: str, message: dict[str, Any]) -> Any:
        session = core.sio.get_environ(sid)["asgi.scope"].get(SCOPE)
        if isinstance(message, dict) and session is not None and owner_of(str(message.get("client_id"))) is session:
            return await handler(sid, message)
        return False

    return checked


async def _nothing_here(request: Request, error: Exception) -> Response:
    """What the framework would make a page for, and log with its address."""
    return PlainTextResponse("There is nothing here.", status_code=404)


def _show_error() -> None:
    """A page that could not be built: say so, and nothing of why."""
    ui.label("Something went wrong in the app.")
