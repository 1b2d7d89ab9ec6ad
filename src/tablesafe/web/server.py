"""The server: options, the app around NiceGUI, its start and its end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tablesafe.core.errors import InvalidOption, MissingExtra, Terminated
from tablesafe.web.background import Queue
from tablesafe.web.folders import Folder, private_folder
from tablesafe.web.options import SHORTEST_TOKEN, ServeOptions, is_loopback
from tablesafe.web.sessions import Sessions
from tablesafe.web.worker import TOKEN
from tablesafe.web.workspace import Quota

DEFAULT_PORT, PORTS_TRIED = 8080, 20
"""The first port, and how many after it are tried when it is taken and none was asked for."""
SWEEP_S = 60.0
"""Seconds between two looks for sessions that have ended."""
BACKLOG = 128
"""Connections that are taken in one go, before any of them is heard."""
DEFAULTS = ServeOptions()


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is ready to run: where it listens, and what it answers with."""

    options: ServeOptions
    token: str
    socket: socket.socket
    sessions: Sessions
    app: Any

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.socket.getsockname()[1])

    @property
    def address(self) -> str:
        """The address with its token."""
        return f"http://{_in_address(self.options.host)}:{self.port}/?token={self.token}"


def serve(
    folder: str | Path | None = None, options: ServeOptions = DEFAULTS, *, announce: Callable[[str], None] = print
) -> None:
    """Serve the app until it is interrupted; files may be chosen in `folder`, and nowhere else.

    `announce` is told the address with its token, once, when it can be opened.
    """
    allowed = Folder.at(folder)
    listening = listen(options)
    with private_folder() as private, contextlib.closing(listening):
        sessions = Sessions(
            private,
            allowed,
            Quota(options.upload_limit_mb << 20, 4 * (options.upload_limit_mb << 20)),
            options.most_sessions,
            options.expire_hours * 3600,
            Queue(options.most_runs),
        )
        server = build(options, listening, sessions)
        run(server, announce)


def build(options: ServeOptions, listening: socket.socket, sessions: Sessions) -> Server:
    """Put the app together: pages, files, and the guard in front of all of it."""
    if find_spec("nicegui") is None:
        raise MissingExtra("The web app", "web")
    from tablesafe.web.framework import build_app
    from tablesafe.web.guard import Gate, Guard
    from tablesafe.web.logs import note_request
    from tablesafe.web.pages.addresses import STEPS
    from tablesafe.web.shell import build as build_page

    token = options.token or os.environ.get(TOKEN) or secrets.token_urlsafe(32)
    if len(token) < SHORTEST_TOKEN:
        raise InvalidOption(f"{TOKEN} must have {SHORTEST_TOKEN} letters or more: it is all that keeps others out.")
    port = int(listening.getsockname()[1])
    known_as = frozenset(name.lower() for name in options.known_as)
    app, owner_of = build_app(sessions, STEPS, build_page)
    gate = Gate(
        token=token,
        hosts=hosts_of(options.host, port) | known_as,
        known_as=known_as,
        sessions=sessions,
        port=port,
        upload_bytes=options.upload_limit_mb << 20,
        owner_of=owner_of,
        note=note_request if options.log_requests else _note_nothing,
    )
    return Server(options, token, listening, sessions, Guard(app, gate))


def run(server: Server, announce: Callable[[str], None]) -> None:
    """Run until a signal ends it; then stop what runs and remove what was stored."""
    import uvicorn

    from tablesafe.web.guard import Impatient, make_room_for_connections
    from tablesafe.web.logs import quiet_logging

    quiet_logging()
    make_room_for_connections()
    config = uvicorn.Config(
        server.app, log_config=None, access_log=False, server_header=False, date_header=True, loop="asyncio",
        ws="wsproto", ws_max_size=1 << 20, proxy_headers=False, timeout_graceful_shutdown=2, lifespan="on",
        h11_max_incomplete_event_size=1 << 16, http=Impatient, limit_concurrency=None, backlog=BACKLOG,
    )  # fmt: skip
    running = uvicorn.Server(config)

    async def main() -> None:
        async with _swept(server.sessions):
            task = asyncio.create_task(running.serve(sockets=[server.socket]))
            while not running.started and not task.done():
                await asyncio.sleep(0.01)
            if running.started:
                announce(server.address)
                if not server.options.no_browser:
                    open_browser(server.sessions.path, server.address)
            await task

    gc.collect()
    gc.freeze()  # what the libraries loaded stays: no page need wait while it is looked through for garbage
    try:
        with contextlib.suppress(KeyboardInterrupt, Terminated):
            asyncio.run(main())
    finally:
        gc.unfreeze()


@contextlib.asynccontextmanager
async def _swept(sessions: Sessions) -> AsyncIterator[None]:
    """End old sessions now and then, and all of them at the end."""

    async def sweep() -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            await sessions.expire()

    sweeping = asyncio.create_task(sweep())
    try:
        yield
    finally:
        sweeping.cancel()
        await sessions.close()


def open_browser(private: Path, address: str) -> None:
    """Open the browser without waiting for it; where there is none, the address was printed.

    The list of processes is open to all users of a machine, so the browser is not started with the token but with a
    private file that leads there.
    """
    import threading
    import webbrowser

    page = private / "open.html"
    with open(page, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><title>tablesafe</title>')
    threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()


def _note_nothing(method: str, path: str, status: int, seconds: float) -> None:
    """Keep no log of requests."""


def listen(options: ServeOptions) -> socket.socket:
    """A socket that listens where the options say; by default on the first free port from 8080 on."""
    wanted = [options.port] if options.port is not None else [*range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED), 0]
    for number, port in enumerate(wanted):
        try:
            return _bound(options.host, port)
        except OSError as error:
            if number == len(wanted) - 1:
                raise InvalidOption(
                    f"Cannot listen on {options.host}, port {port}: {error.strerror}.",
                    hint="is another program using it? --port 0 takes one that is free.",
                ) from error
    raise AssertionError("port 0 is always tried last")


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(BACKLOG)
    except OSError:
        found.close()
        raise
    found.set_inheritable(False)
    return found


def hosts_of(host: str, port: int) -> frozenset[str]:
    """The names under which the app may be asked for; any other in a Host header is an attack by a foreign name."""
    names = {_in_address(host.lower())}
    if is_loopback(host):
        names |= {"127.0.0.1", "localhost", "[::1]"}
    elif host in {"0.0.0.0", "::"}:
        names = {
            "127.0.0.1",
            "localhost",
            "[::1]",
            socket.gethostname().lower(),
            socket.getfqdn().lower(),
            *_own_addresses(),
        }
    return frozenset({f"{name}:{port}" for name in names} | (names if port == 80 else set()))


def _own_addresses() -> set[str]:
    """The names and addresses of this machine."""
    with contextlib.suppress(OSError):
        found = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
        names = {socket.gethostname().lower(), socket.getfqdn().lower()}
        return names | {_in_address(str(item[4][0])) for item in found}
    return set()


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host
