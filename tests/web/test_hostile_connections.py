"""Who opens connections and asks nothing, or asks without end, keeps nobody out and takes no memory."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("nicegui", reason="the web app needs the extra 'web'")

import uvicorn
from serving import Served, served

from tablesafe.web import answers
from tablesafe.web import guard as connections
from tablesafe.web.answers import Answer, Body
from tablesafe.web.guard import Impatient

HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-More: "
OPEN_FILES = 200
FLOOD = 400
PATIENCE_S = 600.0
"""What would hang fails after so long; no test takes a part of it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("app"), open_files=OPEN_FILES) as running:
        yield running


def opened(port: int, said: bytes = HALF) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    made.sendall(said)
    return made


def is_closed(connection: socket.socket, within_s: float = PATIENCE_S) -> bool:
    """Whether the other side ends a connection; what it says before is passed over."""
    connection.settimeout(within_s)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_thousands_of_half_requests_keep_nobody_out(server: Served) -> None:
    """Twice as many as the process could have open files."""
    with server.browser() as before:
        flood = []
        for _ in range(FLOOD):
            with suppress(OSError):
                flood.append(opened(server.port))
        try:
            assert before.get("/job.toml").status_code == 200, "who is in stays in"
            with server.browser() as new:
                assert new.get("/").status_code == 200, "and others can come"
            assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < OPEN_FILES  # noqa: PTH208
            for each in flood:
                with suppress(OSError):
                    each.sendall(b"x")  # a letter now and then
            assert before.get("/job.toml").status_code == 200
        finally:
            for each in flood:
                each.close()
    assert "Traceback" not in server.printed


@pytest.mark.parametrize(
    "said",
    [HALF + b"x" * 200_000, b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000,
     b"\x16\x03\x01" + b"\x00" * 200_000, b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 100_000],
    ids=["header", "address", "headers", "tls", "version", "lines"],
)  # fmt: skip
def test_a_head_without_end_is_broken_off(server: Served, said: bytes) -> None:
    with suppress(OSError), closing(opened(server.port, b"")) as connection:
        connection.sendall(said)
        assert is_closed(connection)
    with server.browser() as browser:
        assert browser.get("/job.toml").status_code == 200


# -- how long is waited ------------------------------------------------------------------------------------------------


SLOW: dict[str, Callable[[], Any]] = {}
"""What a slow answer does when it begins, and what it waits for."""


async def _app(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once, without reading the request; but slowly where that is asked for."""
    if scope["type"] == "lifespan":
        return
    if scope["path"] == "/slow":
        SLOW["later"]()
        while not SLOW["judged"]():
            await asyncio.sleep(0.01)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@contextmanager
def running() -> Iterator[int]:
    """A server of a small app with these connections; its port."""
    server = uvicorn.Server(uvicorn.Config(_app, port=0, http=Impatient, lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "REQUEST_S", 0.3)
    monkeypatch.setattr(Impatient, "most", 8)
    with running() as port:
        yield port


REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
WAITING: dict[str, Callable[[socket.socket], object]] = {
    "nothing": lambda connection: None,
    "half a request": lambda connection: connection.sendall(HALF),
    "half a second request": lambda connection: connection.sendall(REQUEST + HALF),
    "a body that nobody reads": lambda connection: connection.sendall(
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nabc"
    ),
}


@pytest.mark.parametrize("said", WAITING)
def test_a_connection_of_which_nothing_comes_is_closed(hasty: int, said: str) -> None:
    with closing(opened(hasty, b"")) as connection:
        WAITING[said](connection)
        for _ in range(4):  # it goes on slowly, so that it is never silent
            time.sleep(0.05)
            with suppress(OSError):
                connection.sendall(b"" if said == "nothing" else b"x")
        assert is_closed(connection)


def test_a_slow_answer_is_waited_for(hasty: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands until the request is there, and is then long past all patience."""
    now, judged, judge = [0.0], [0], Impatient._judge

    def judging(self: Impatient) -> None:
        judged[0] += now[0] > 0
        judge(self)

    def later() -> None:
        now[0] = 1e6

    monkeypatch.setattr(connections, "monotonic", lambda: now[0])
    monkeypatch.setattr(Impatient, "_judge", judging)
    monkeypatch.setitem(SLOW, "later", later)
    monkeypatch.setitem(SLOW, "judged", lambda: judged[0] >= 2)
    assert httpx.get(f"http://127.0.0.1:{hasty}/slow", timeout=PATIENCE_S).text == "ok"


def test_one_that_waits_makes_room_for_one_that_asks(hasty: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_S", 3600.0)
    waiting = [opened(hasty) for _ in range(8)]
    assert httpx.get(f"http://127.0.0.1:{hasty}/").text == "ok"
    assert is_closed(waiting[0]), "the oldest"
    assert not is_closed(waiting[-1], 0.2)
    for each in waiting:
        each.close()


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PAUSE_S", 0.05)
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.sleep(3600)

    async def send(message: Any) -> None:
        sent.append(message)

    async def main() -> None:
        scope = {"type": "http", "method": "POST", "path": "/upload", "headers": []}
        answer = Answer(scope, send, lambda *args: None)
        heard = await asyncio.wait_for(Body(scope, never, answer, 100).receive(), PATIENCE_S)
        assert heard["type"] == "http.disconnect"
        await answer.finish()

    asyncio.run(main())
    assert sent[0]["status"] == 408


def test_the_end_of_a_connection_may_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an answer does that is sent piece by piece: the request is whole, and nothing more need come."""
    monkeypatch.setattr(answers, "PAUSE_S", 0.05)
    messages = [{"type": "http.request", "body": b"x", "more_body": False}]

    async def receive() -> Any:
        if not messages:
            await asyncio.sleep(0.2)
            return {"type": "http.disconnect"}
        return messages.pop()

    async def main() -> None:
        scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
        answer = Answer(scope, receive, lambda *args: None)  # type: ignore[arg-type]
        body = Body(scope, receive, answer, 100)
        assert (await body.receive())["type"] == "http.request"
        assert (await body.receive())["type"] == "http.disconnect"
        assert answer.refused is None

    asyncio.run(main())


def test_room_is_made_where_the_system_allows_it(tmp_path: Path) -> None:
    import resource

    before, most = resource.getrlimit(resource.RLIMIT_NOFILE), Impatient.most
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        connections.make_room_for_connections()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert soft == min(connections.OPEN_FILES, hard if hard >= 0 else connections.OPEN_FILES)
        assert Impatient.most <= soft // connections.SHARE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        Impatient.most = most
