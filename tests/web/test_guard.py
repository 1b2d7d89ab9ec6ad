"""The guard lets in whoever has shown the token, from the app's own pages, for the app's own name; and nobody else."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tablesafe.web import guard as guard_module
from tablesafe.web.answers import FIXED, SCOPE
from tablesafe.web.guard import MOST_BODY, WRONG_TOKENS, Gate, Guard
from tablesafe.web.server import hosts_of
from tablesafe.web.sessions import Session, Sessions

PORT = 4711
HOME = f"http://127.0.0.1:{PORT}"
TOKEN = "a-token-of-sixteen-letters-or-more"
SECRET = "98765.4321"
UPLOAD = 1 << 20


class Inside:
    """What the guard protects: it notes what reaches it, and answers in ways that a framework might."""

    def __init__(self) -> None:
        self.reached: list[tuple[str, str]] = []
        self.sessions: list[Any] = []
        self.received = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached.append((scope["type"], scope["path"]))
        self.sessions.append(scope[SCOPE])
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            return
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            self.received += len(message.get("body", b""))
            more = message.get("more_body", False)
        if scope["path"] == "/raises":
            raise ValueError(f"the value {SECRET} is wrong")
        status = 500 if scope["path"] == "/answers-500" else 404 if scope["path"] == "/nothing" else 200
        headers = [(b"access-control-allow-origin", b"*"), (b"server", b"framework"), (b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": f"inside {SECRET}".encode()})


@pytest.fixture
def inside() -> Inside:
    return Inside()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(
        token=TOKEN, hosts=hosts_of("127.0.0.1", PORT), sessions=Sessions(tmp_path), port=PORT, upload_bytes=UPLOAD
    )


@pytest.fixture
def guard(inside: Inside, gate: Gate) -> Guard:
    return Guard(inside, gate)


def ask(guard: Guard, *requests: httpx.Request) -> list[httpx.Response]:
    """The answers of the guard, without a network."""

    async def answers() -> list[httpx.Response]:
        transport = httpx.ASGITransport(guard, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport) as client:
            return [await client.send(request) for request in requests]

    return asyncio.run(answers())


def get(path: str = "/", *, method: str = "GET", cookie: str | None = None, host: str | None = None,
        content: Any = None, **headers: str) -> httpx.Request:  # fmt: skip
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if cookie is not None:
        given["cookie"] = f"tablesafe-{PORT}={cookie}"
    if host is not None:
        given["host"] = host
    return httpx.Request(method, f"{HOME}{path}", headers=given, content=content)


def entered(guard: Guard) -> str:
    """The cookie of a new session."""
    [answer] = ask(guard, get(f"/?token={TOKEN}"))
    assert answer.status_code == 303
    return answer.cookies[f"tablesafe-{PORT}"]


# -- the token and the cookie ------------------------------------------------------------------------------------------


def test_nothing_is_reached_without_the_token(guard: Guard, inside: Inside) -> None:
    paths = ["/", "/files/run-1/job.toml", "/_nicegui/3.0/static/nicegui.js", "/_nicegui_ws/socket.io/", "/upload"]
    requests = [get(path, method=method) for path in paths for method in ("GET", "HEAD", "POST")]
    assert {answer.status_code for answer in ask(guard, *requests)} == {403}
    assert not inside.reached


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(guard: Guard) -> None:
    [answer] = ask(guard, get(f"/?token={TOKEN}"))
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    attributes = answer.headers["set-cookie"].split("; ")[1:]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)
    assert TOKEN not in str(answer.headers)


def test_the_cookie_opens_the_app(guard: Guard, inside: Inside) -> None:
    [answer] = ask(guard, get(cookie=entered(guard)))
    assert answer.status_code == 200
    assert inside.reached == [("http", "/")]


def test_a_browser_that_is_in_keeps_its_session(guard: Guard, gate: Gate) -> None:
    cookie = entered(guard)
    [answer] = ask(guard, get(f"/?token={TOKEN}", cookie=cookie))
    assert answer.cookies[f"tablesafe-{PORT}"] == cookie
    assert len(gate.sessions) == 1


def test_two_browsers_have_two_sessions(guard: Guard, inside: Inside) -> None:
    ask(guard, get(cookie=entered(guard)), get(cookie=entered(guard)))
    one, other = inside.sessions
    assert isinstance(one, Session)
    assert one is not other
    assert one.workspace.path != other.workspace.path


@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "%00", "é", TOKEN + "%20"])
def test_a_wrong_token_opens_nothing(guard: Guard, inside: Inside, gate: Gate, token: str) -> None:
    [answer] = ask(guard, get(f"/?token={token}"))
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert len(gate.sessions) == 0
    assert not inside.reached


@pytest.mark.parametrize("cookie", ["", "x", "x" * 43, TOKEN, '"', "é", "../../x", "a;b"])
def test_a_made_up_cookie_opens_nothing(guard: Guard, inside: Inside, cookie: str) -> None:
    entered(guard)
    request = get()
    made_up = (b"cookie", f"tablesafe-{PORT}={cookie}".encode())
    request.headers = httpx.Headers([*request.headers.raw, made_up])
    assert ask(guard, request)[0].status_code == 403
    assert not inside.reached


def test_wrong_tokens_are_not_looked_at_for_ever(guard: Guard, gate: Gate) -> None:
    wrong = ask(guard, *(get(f"/?token=guess-{i}") for i in range(WRONG_TOKENS + 5)))
    assert [answer.status_code for answer in wrong] == [403] * WRONG_TOKENS + [429] * 5
    assert int(wrong[-1].headers["retry-after"]) > 0
    [right] = ask(guard, get(f"/?token={TOKEN}"))
    assert right.status_code == 429  # else guessing goes on, and the right guess is told apart
    assert len(gate.sessions) == 0


def test_guessing_locks_nobody_out_who_is_in(guard: Guard) -> None:
    cookie = entered(guard)
    ask(guard, *(get(f"/?token=guess-{i}") for i in range(WRONG_TOKENS + 5)))
    assert ask(guard, get(cookie=cookie))[0].status_code == 200


def test_guessing_may_go_on_after_a_while(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(guard, *(get(f"/?token=guess-{i}") for i in range(WRONG_TOKENS + 1)))
    monkeypatch.setattr(guard_module, "WRONG_S", -1.0)
    assert ask(guard, get(f"/?token={TOKEN}"))[0].status_code == 303


def test_an_expired_session_is_closed(guard: Guard, gate: Gate, inside: Inside) -> None:
    cookie = entered(guard)
    gate.sessions.expire_s = -1.0
    assert ask(guard, get(cookie=cookie))[0].status_code == 403
    assert not inside.reached


# -- where a request comes from ----------------------------------------------------------------------------------------

FOREIGN_HOSTS = [
    "evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"127.0.0.1.evil.example:{PORT}",
    f"localhost.evil.example:{PORT}", f"192.168.0.1:{PORT}", f"127.0.0.1:{PORT}@evil.example", f"0.0.0.0:{PORT}", "",
]  # fmt: skip


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_name_is_refused(guard: Guard, inside: Inside, host: str) -> None:
    """DNS rebinding: a page of evil.example whose name suddenly means 127.0.0.1."""
    cookie = entered(guard)
    answers = ask(guard, get(cookie=cookie, host=host), get(f"/?token={TOKEN}", host=host))
    assert [answer.status_code for answer in answers] == [421, 421]
    assert not inside.reached


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_our_own_names_are_not(guard: Guard, host: str) -> None:
    assert ask(guard, get(cookie=entered(guard), host=host))[0].status_code == 200


def test_a_name_that_the_user_gave_is_ours_too(inside: Inside, gate: Gate) -> None:
    """Behind a proxy that encrypts, or a tunnel."""
    name = "app.example.org"
    guard = Guard(inside, replace(gate, hosts=gate.hosts | {name}, known_as=frozenset({name})))
    cookie = entered(guard)
    answers = ask(guard, *(get(cookie=cookie, host=name, origin=o) for o in (f"https://{name}", f"https://x.{name}")))
    assert [answer.status_code for answer in answers] == [200, 403]


def test_two_host_headers_are_refused(guard: Guard, inside: Inside) -> None:
    request = get(cookie=entered(guard))
    request.headers = httpx.Headers([*request.headers.raw, (b"host", b"evil.example")])
    assert ask(guard, request)[0].status_code == 421
    assert not inside.reached


FOREIGN_ORIGINS = [
    "http://evil.example", "https://evil.example", "null", f"http://127.0.0.1:{PORT + 1}", f"https://127.0.0.1:{PORT}",
    f"http://127.0.0.1:{PORT}.evil.example", "", f"http://localhost:{PORT}, http://evil.example", "file://",
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_request_of_another_site_is_refused(guard: Guard, inside: Inside, method: str, origin: str) -> None:
    [answer] = ask(guard, get("/upload", method=method, cookie=entered(guard), origin=origin))
    assert answer.status_code == 403
    assert not inside.reached


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("method", "mode", "dest"),
    [("GET", "no-cors", "script"), ("GET", "no-cors", "image"), ("GET", "cors", "empty"), ("POST", "cors", "empty"),
     ("POST", "navigate", "document"), ("GET", "navigate", "iframe"), ("GET", "navigate", "embed"),
     ("GET", "websocket", "websocket")],
)  # fmt: skip
def test_what_another_site_embeds_or_sends_is_refused(
    guard: Guard, inside: Inside, site: str, method: str, mode: str, dest: str
) -> None:
    told = {"sec_fetch_site": site, "sec_fetch_mode": mode, "sec_fetch_dest": dest}
    [answer] = ask(guard, get("/", method=method, cookie=entered(guard), **told))
    assert answer.status_code == 403
    assert not inside.reached


def test_a_link_on_another_site_may_lead_to_the_app(guard: Guard) -> None:
    """Such as a terminal in the browser; the cookie goes along only from a page of our own."""
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    [answer] = ask(guard, get(f"/?token={TOKEN}", **link))
    assert answer.status_code == 200
    assert 'http-equiv="refresh"' in answer.text
    assert TOKEN not in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(guard: Guard, inside: Inside, method: str) -> None:
    assert ask(guard, get(cookie=entered(guard), method=method))[0].status_code == 405
    assert not inside.reached


# -- connections -------------------------------------------------------------------------------------------------------


def connect(guard: Guard, *, cookie: str | None, origin: str | None, host: str = f"127.0.0.1:{PORT}",
            query: str = "") -> bool:  # fmt: skip
    """Whether a websocket is let in."""
    headers = [(b"host", host.encode())]
    if cookie is not None:
        headers.append((b"cookie", f"tablesafe-{PORT}={cookie}".encode()))
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/_nicegui_ws/socket.io/", "query_string": query.encode(), "headers": headers}
    asyncio.run(guard(scope, receive, send))
    return bool(sent[0]["type"] == "websocket.accept")


def test_a_connection_of_our_own_page_is_let_in(guard: Guard) -> None:
    assert connect(guard, cookie=entered(guard), origin=HOME)


@pytest.mark.parametrize("origin", [*FOREIGN_ORIGINS, None])
def test_a_connection_from_elsewhere_is_not(guard: Guard, inside: Inside, origin: str | None) -> None:
    """Cross-site websocket hijacking: no cookie rule of the browser stops it, so the origin has to."""
    assert not connect(guard, cookie=entered(guard), origin=origin)
    assert not inside.reached


@pytest.mark.parametrize("cookie", [None, "", "x" * 43])
def test_a_connection_without_a_session_is_not(guard: Guard, inside: Inside, cookie: str | None) -> None:
    assert not connect(guard, cookie=cookie, origin=HOME)
    assert not inside.reached


def test_a_connection_for_a_foreign_name_is_not(guard: Guard, inside: Inside) -> None:
    assert not connect(guard, cookie=entered(guard), origin="http://evil.example", host="evil.example")
    assert not connect(guard, cookie=entered(guard), origin=HOME, host="evil.example")
    assert not inside.reached


def test_open_connections_keep_a_session_alive_and_closed_ones_do_not(guard: Guard, gate: Gate) -> None:
    cookie = entered(guard)
    connect(guard, cookie=cookie, origin=HOME)
    session = gate.sessions.find(cookie)
    assert session is not None
    assert session.sockets == 0


def test_tokens_are_compared_in_constant_time(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long it takes to refuse one must not tell how much of it was right."""
    seen: list[tuple[bytes, bytes]] = []

    def compared(one: bytes, other: bytes) -> bool:
        seen.append((one, other))
        return one == other

    monkeypatch.setattr(guard_module.hmac, "compare_digest", compared)
    ask(guard, get("/?token=wrong"), get(f"/?token={TOKEN}"))
    assert seen == [(b"wrong", TOKEN.encode()), (TOKEN.encode(), TOKEN.encode())]


def test_a_session_has_so_many_pages_and_requests_at_a_time(guard: Guard, gate: Gate, inside: Inside) -> None:
    one, other = entered(guard), entered(guard)
    session = gate.sessions.find(one)
    assert session is not None
    session.sockets, session.requests = guard_module.MOST_SOCKETS, guard_module.MOST_REQUESTS
    assert not connect(guard, cookie=one, origin=HOME)
    assert connect(guard, cookie=other, origin=HOME)
    assert [answer.status_code for answer in ask(guard, get(cookie=one), get(cookie=other))] == [429, 200]
    session.sockets -= 1
    session.requests -= 1
    assert connect(guard, cookie=one, origin=HOME)
    answers = ask(guard, *[get("/raises", cookie=one), get(cookie=one)] * 2)
    assert [answer.status_code for answer in answers] == [500, 200, 500, 200], "what is over is not counted"


# -- what belongs to another session -----------------------------------------------------------------------------------


@pytest.fixture
def two(inside: Inside, gate: Gate) -> tuple[Guard, str, str]:
    """A guard, the cookie of the owner of page "p1", and that of somebody else."""
    owners: dict[str, Session] = {}
    guard = Guard(inside, replace(gate, owner_of=owners.get))
    one, other = entered(guard), entered(guard)
    found = gate.sessions.find(one)
    assert found is not None
    owners["p1"] = found
    return guard, one, other


def test_pages_of_others_cannot_be_used(two: tuple[Guard, str, str], inside: Inside) -> None:
    guard, one, other = two
    path = "/_nicegui/client/p1/upload/3"
    answers = ask(guard, get(path, method="POST", cookie=one), get(path, method="POST", cookie=other))
    assert [answer.status_code for answer in answers] == [200, 404]
    assert connect(guard, cookie=one, origin=HOME, query="client_id=p1")
    assert not connect(guard, cookie=other, origin=HOME, query="client_id=p1")
    assert not connect(guard, cookie=other, origin=HOME, query="client_id=p2&client_id=p1")


def test_files_that_the_framework_would_show_to_all_are_refused(guard: Guard, inside: Inside) -> None:
    assert ask(guard, get("/_nicegui/auto/static/abc/table.csv", cookie=entered(guard)))[0].status_code == 404
    assert not inside.reached


# -- size --------------------------------------------------------------------------------------------------------------


def chunks(total: int) -> Any:
    """A body whose length is not announced."""

    async def pieces() -> Any:
        for _ in range(total // 65536):
            yield b"x" * 65536

    return pieces()


@pytest.mark.parametrize("path", ["/upload", "/_nicegui/client/p1/upload/3"])
def test_an_upload_up_to_the_limit_is_taken(two: tuple[Guard, str, str], inside: Inside, path: str) -> None:
    guard, one, _ = two
    answers = ask(guard, get(path, method="POST", cookie=one, content=b"x" * UPLOAD),
                  get(path, method="POST", cookie=one, content=chunks(UPLOAD)))  # fmt: skip
    assert [answer.status_code for answer in answers] == [200, 200]
    assert inside.received == 2 * UPLOAD


@pytest.mark.parametrize("path", ["/upload", "/_nicegui/client/p1/upload/3"])
def test_an_announced_upload_beyond_it_is_not_even_read(two: tuple[Guard, str, str], inside: Inside, path: str) -> None:
    guard, one, _ = two
    [answer] = ask(guard, get(path, method="POST", cookie=one, content=b"x" * (UPLOAD + 2 * MOST_BODY)))
    assert answer.status_code == 413
    assert not inside.reached


def test_an_upload_without_a_length_is_cut_off(two: tuple[Guard, str, str], inside: Inside) -> None:
    guard, one, _ = two
    [answer] = ask(guard, get("/upload", method="POST", cookie=one, content=chunks(20 * UPLOAD)))
    assert answer.status_code == 413
    assert inside.received <= UPLOAD + MOST_BODY


@pytest.mark.parametrize("length", ["-1", "1e9", "٣", "x", " "])
def test_a_length_that_is_none_is_refused(guard: Guard, inside: Inside, length: str) -> None:
    request = get("/upload", method="POST", cookie=entered(guard))
    request.headers = httpx.Headers([*request.headers.raw, (b"content-length", length.encode())])
    assert ask(guard, request)[0].status_code == 413
    assert not inside.reached


def test_other_requests_are_small(guard: Guard, inside: Inside) -> None:
    cookie = entered(guard)
    answers = ask(guard, get("/", method="POST", cookie=cookie, content=b"x" * (MOST_BODY + 1)),
                  get("/", method="POST", cookie=cookie, content=chunks(2 * MOST_BODY)))  # fmt: skip
    assert [answer.status_code for answer in answers] == [413, 413]
    assert inside.received <= MOST_BODY


# -- headers and errors ------------------------------------------------------------------------------------------------


def test_strict_headers_are_on_every_answer(guard: Guard) -> None:
    cookie = entered(guard)
    answers = ask(
        guard, get(), get(f"/?token={TOKEN}"), get("/?token=wrong"), get(host="evil.example"), get(cookie=cookie),
        get("/nothing", cookie=cookie), get("/raises", cookie=cookie), get("/answers-500", cookie=cookie),
        get(cookie=cookie, method="PUT"), get("/_nicegui/3.0/static/x.js", cookie=cookie),
        get("/", method="POST", cookie=cookie, content=b"x" * (MOST_BODY + 1)),
    )  # fmt: skip
    assert {answer.status_code for answer in answers} == {200, 303, 403, 404, 405, 413, 421, 500}
    for answer in answers:
        assert {name: answer.headers[name] for name in FIXED} == FIXED
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "http:" not in policy.replace(f"ws://127.0.0.1:{PORT}", "")
        assert not any(name.startswith("access-control") or name == "server" for name in answer.headers)
        cached = "immutable" in answer.headers["cache-control"]
        assert cached == ("/static/" in str(answer.request.url))
        assert cached or answer.headers["cache-control"] == "no-store"


def test_scripts_need_the_number_of_their_answer(guard: Guard) -> None:
    cookie = entered(guard)
    one, other = (answer.headers["content-security-policy"] for answer in ask(guard, *[get(cookie=cookie)] * 2))
    assert one != other
    scripts = next(part for part in one.split("; ") if part.startswith("script-src "))
    assert "'unsafe-inline'" not in scripts
    assert "'nonce-" in scripts


@pytest.mark.parametrize("path", ["/raises", "/answers-500"])
def test_errors_tell_nothing(guard: Guard, caplog: pytest.LogCaptureFixture, path: str) -> None:
    logging.getLogger("httpx").setLevel(logging.CRITICAL)  # it is the browser here
    with caplog.at_level(logging.DEBUG):
        [answer] = ask(guard, get(path, cookie=entered(guard)))
    assert answer.status_code == 500
    assert SECRET not in answer.text
    assert "Traceback" not in answer.text
    assert SECRET not in caplog.text
    assert TOKEN not in caplog.text
