"""The real server, as a user starts it: what it gives away, what it leaves behind, who can reach whom."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from tablesafe.web.answers import FIXED

pytest.importorskip("nicegui", reason="the web app needs the extra 'web'")
pytest.importorskip("websockets", reason="connections are tried with websockets")

from serving import Served, served
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

SECRET = "73519.24680"
"""A value that must turn up nowhere but in what its owner asked for."""


@pytest.fixture(scope="module")
def allowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("allowed")
    (folder / "firms.csv").write_text(f"region,firm,turnover\nnorth,a,{SECRET}\nsouth,b,2\n")
    (folder.parent / "outside.csv").write_text(f"secret\n{SECRET}\n")
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, allowed: Path) -> Iterator[Served]:
    with served(
        tmp_path_factory.mktemp("server"),
        str(allowed),
        "--upload-limit-mb",
        "1",
        "--log-requests",
        "--most-sessions",
        "99",
    ) as found:
        yield found


@pytest.fixture
def browser(server: Served) -> Iterator[httpx.Client]:
    with server.browser() as client:
        yield client


def raw(server: Served, cookie: str, *paths: str) -> Iterator[tuple[str, int, bytes]]:
    """The answers to paths exactly as they are, which a browser would tidy up first."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)) as connection:
        for path in paths:
            connection.putrequest("GET", path, skip_accept_encoding=True)
            connection.putheader("cookie", cookie)
            connection.endheaders()
            answer = connection.getresponse()
            yield path, answer.status, answer.read()


def cookie_of(browser: httpx.Client) -> str:
    [(name, value)] = browser.cookies.items()
    return f"{name}={value}"


# -- files -------------------------------------------------------------------------------------------------------------

UPS = [
    "..", "%2e%2e", "%2E%2E", ".%2e", "%252e%252e", "%c0%ae%c0%ae", "..%00", "%2e%2e%00", "....//..", "..;",
]  # fmt: skip
SLASHES = ["/", "%2f", "%5c", "\\", "%252f", "//"]
ENDS = ["etc/passwd", "outside.csv", "lock", "job.toml"]


@pytest.mark.parametrize("under", ["/files", "/files/run-1", "/assets", "/_nicegui/3.18.0/static", "/job.toml", ""])
def test_no_path_leads_out(server: Served, browser: httpx.Client, under: str) -> None:
    """Path traversal, in many spellings."""
    depths = (1, 6)
    paths = [
        f"{under}/{slash.join([up] * depth)}{slash}{end}"
        for up, slash, end, depth in product(UPS, SLASHES, ENDS, depths)
    ]
    for path, status, body in raw(server, cookie_of(browser), *paths):
        assert status in {400, 403, 404}, path
        assert SECRET.encode() not in body
        assert b"root:" not in body


@pytest.mark.parametrize("path", ["/files//etc/passwd", "/files/run-1//etc/passwd", "/assets//etc/passwd"])
def test_absolute_paths_lead_nowhere(server: Served, browser: httpx.Client, path: str) -> None:
    assert [status for _, status, _ in raw(server, cookie_of(browser), path)] == [404]


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/firms.csv", "/_nicegui/auto/static/x/y"])
def test_the_framework_tells_nothing_of_itself(browser: httpx.Client, path: str) -> None:
    answer = browser.get(path)
    assert answer.status_code == 404
    assert "x-nicegui-content" not in answer.headers
    assert "nicegui" not in answer.text.lower()


# -- headers -----------------------------------------------------------------------------------------------------------


def assets_of(page: str) -> set[str]:
    """The files that a page of the framework loads."""
    return set(re.findall(r'["(]((?:/_nicegui|/assets)/[^"()]+\.(?:js|css|mjs)(?:\?\w+)?)["\\)]', page))


def test_every_answer_has_strict_headers(browser: httpx.Client) -> None:
    page = browser.get("/")
    assets = assets_of(page.text)
    assert len(assets) > 5
    answers = [page, *(browser.get(path) for path in sorted(assets)), browser.get("/nothing"),
               browser.get("/files/run-1/x"), browser.get("/job.toml"), browser.request("PUT", "/"),
               browser.post("/upload", content=b"x"), httpx.get(browser.base_url)]  # fmt: skip
    assert {answer.status_code for answer in answers} >= {200, 400, 403, 404, 405}
    for answer in answers:
        assert {name: answer.headers[name] for name in FIXED} == FIXED
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "server" not in answer.headers
        static = "/_nicegui/" in str(answer.url) or "/assets/" in str(answer.url)
        assert static or answer.headers["cache-control"] == "no-store"


def test_pages_name_no_other_host_and_mark_their_scripts(browser: httpx.Client) -> None:
    page = browser.get("/")
    nonce = re.search(r"'nonce-([\w-]+)'", page.headers["content-security-policy"])
    assert nonce is not None
    scripts = re.findall(r"<script[^>]*>", page.text)
    assert any("connection.js" in script for script in scripts)
    assert not [script for script in scripts if f'nonce="{nonce[1]}"' not in script]
    loaded = re.findall(r"""(?:src|href)=["'](https?:)?//""", page.text)
    assert not loaded


# -- connections -------------------------------------------------------------------------------------------------------


def open_socket(
    server: Served, cookie: str | None, origin: str | None, client: str = "", host: str = ""
) -> ClientConnection:
    headers = {} if cookie is None else {"cookie": cookie}
    where = f"ws://127.0.0.1:{server.port}/_nicegui_ws/socket.io/?EIO=4&transport=websocket&client_id={client}"
    if client:
        where += "&next_message_id=0&implicit_handshake=true&tab_id=t&document_id=d"
    if host:
        headers["host"] = host
    return connect(where, additional_headers=headers, origin=origin, open_timeout=600, legacy=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("with_cookie", "origin"),
    [(False, "home"), (True, None), (True, "http://evil.example"), (True, "null"), (True, "http://127.0.0.1:1")],
)
def test_connections_need_the_cookie_and_our_own_origin(
    server: Served, browser: httpx.Client, with_cookie: bool, origin: str | None
) -> None:
    cookie = cookie_of(browser) if with_cookie else None
    with pytest.raises(InvalidStatus) as refused:
        open_socket(server, cookie, server.home if origin == "home" else origin)
    assert refused.value.response.status_code == 403


def test_polling_in_place_of_a_connection_is_guarded_too(server: Served, browser: httpx.Client) -> None:
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    assert httpx.get(server.home + path).status_code == 403
    assert browser.get(path, headers={"origin": "http://evil.example"}).status_code == 403
    assert "access-control-allow-origin" not in browser.get(path).headers


class Page:
    """A page that a browser has open: its elements, and a connection over which it can be used."""

    def __init__(self, server: Served, browser: httpx.Client, path: str = "/") -> None:
        text = browser.get(path).text
        found = re.search(r"'client_id': '([\w-]+)'|\"client_id\": ?\"([\w-]+)\"", text)
        assert found is not None
        self.client = found[1] or found[2]
        self.text = text
        self.socket = open_socket(server, cookie_of(browser), server.home, self.client)
        assert self.socket.recv(30).startswith("0")  # type: ignore[arg-type]
        self.socket.send("40")
        self.heard: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for message in self.socket:
            text = message if isinstance(message, str) else message.decode("utf-8", "replace")
            if text == "2":
                self.socket.send("3")
            else:
                self.heard.append(text)

    def press(self, label: str, client: str, elements: str) -> None:
        """Press a button of a page, over this page's connection."""
        unescaped = elements.replace("&lt;", "<").replace("&gt;", ">").replace("&#96;", "`").replace("&amp;", "&")
        text = re.search(r"String\.raw`(.*?)`", unescaped, re.S)
        assert text is not None
        for number, element in json.loads(text[1]).items():
            if element.get("props", {}).get("label") == label:
                listener = element["events"][0]["listener_id"]
                message = {"id": int(number), "client_id": client, "listener_id": listener, "args": []}
                self.socket.send("42" + json.dumps(["event", message]))
                return
        raise AssertionError(f"there is no button {label!r}")

    def hears(self, seconds: float) -> bool:
        """Whether the server sends anything new within a time."""
        before = len(self.heard)
        waiting = threading.Event()
        for _ in range(int(seconds / 0.05)):
            if len(self.heard) > before:
                return True
            waiting.wait(0.05)
        return False


def settled(page: Page) -> None:
    """Wait until a page has heard all there is to hear at first."""
    while page.hears(1.0):
        pass


def test_nobody_can_press_a_button_of_another(server: Served) -> None:
    """Even with the number of the other's page, which nobody but its owner ever sees."""
    with server.browser() as one, server.browser() as other:
        mine, theirs = Page(server, one), Page(server, other)
        settled(mine)
        theirs.press("Job file", mine.client, mine.text)
        assert not mine.hears(2.0)
        mine.press("Job file", mine.client, mine.text)
        assert mine.hears(10.0)
        with pytest.raises(InvalidStatus):
            open_socket(server, cookie_of(other), server.home, mine.client)
        mine.socket.close()
        theirs.socket.close()


def test_uploads_of_one_are_not_there_for_another(server: Served) -> None:
    with server.browser() as one, server.browser() as other:
        assert one.post("/upload", files={"file": ("mine.csv", SECRET)}).json() == {"files": ["mine.csv"]}
        assert "mine.csv" in one.get("/").text
        assert "mine.csv" not in other.get("/").text


# -- uploads -----------------------------------------------------------------------------------------------------------


def stored(server: Served) -> list[Path]:
    return [path for path in server.temporary.rglob("*") if path.is_file() and path.name != "lock"]


@pytest.mark.parametrize("announced", [True, False])
def test_an_upload_that_is_too_large_is_refused_and_leaves_nothing(
    server: Served, browser: httpx.Client, announced: bool
) -> None:
    before = stored(server)
    head = b'--x\r\ncontent-disposition: form-data; name="f"; filename="big.csv"\r\n\r\n'
    pieces = [head, *[b"1,2,3,4\n" * 8192] * 60, b"\r\n--x--\r\n"]
    headers = {"content-type": "multipart/form-data; boundary=x"}
    content: Any = b"".join(pieces) if announced else iter(pieces)
    try:
        status = browser.post("/upload", content=content, headers=headers).status_code
    except (httpx.WriteError, httpx.RemoteProtocolError):  # the server hung up while more was being sent
        status = 413
    assert status == 413
    assert stored(server) == before
    assert browser.get("/").status_code == 200


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"", "multipart/form-data; boundary=x"), (b"--x\r\n", "multipart/form-data; boundary=x"), (b"abc", "text/plain"),
     (b"abc", ""), (b"--x\r\n" + b"a" * 20000 + b": b\r\n\r\nc\r\n--x--", "multipart/form-data; boundary=x"),
     (b'--x\r\ncontent-disposition: form-data; name="f"; filename="a.csv"\r\n\r\ncut off',
      "multipart/form-data; boundary=x"), (b"\x00\xff" * 100, "multipart/form-data; boundary=x")],
)  # fmt: skip
def test_a_form_that_is_none_is_refused(server: Served, browser: httpx.Client, content: bytes, kind: str) -> None:
    before = stored(server)
    answer = browser.post("/upload", content=content, headers={"content-type": kind})
    assert answer.status_code in {200, 400}
    assert answer.status_code == 400 or answer.json() == {"files": []}
    assert stored(server) == before


# -- what it leaves behind ---------------------------------------------------------------------------------------------


def test_nothing_confidential_is_printed(server: Served, browser: httpx.Client) -> None:
    browser.post("/upload", files={"file": (f"name-{SECRET}.csv", f"a,b\n{SECRET},x\n")})
    for path in (f"/{SECRET}", f"/?q={SECRET}", f"/?token={SECRET}", f"/files/{SECRET}/{SECRET}", f"/a%0Ab{SECRET}"):
        browser.get(path)
    text = server.printed
    assert SECRET not in text
    assert text.count(server.token) == 1
    assert "?" not in server.err.read_text()
    assert "Traceback" not in text
    assert "GET /… 404" in text
    assert not any(
        line and not re.match(r"(info|warning|error): ", line) for line in server.err.read_text().splitlines()
    )


def test_it_listens_on_this_machine_only(server: Served) -> None:
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = [fields[1] for fields in listening if fields[1].endswith(f":{server.port:04X}") and fields[3] == "0A"]
    assert ours == [f"{int.from_bytes(socket.inet_aton('127.0.0.1'), 'little'):08X}:{server.port:04X}"]


def test_our_own_files_travel_compressed(browser: httpx.Client) -> None:
    page = browser.get("/").text
    asset = re.search(r"/assets/app\.css\?\w+", page)
    assert asset is not None
    sheet = browser.get(asset[0])
    assert sheet.headers["content-encoding"] == "gzip"
    assert ".ts-app" in sheet.text
    assert "favicon.ico" not in page  # the icon is in the page
