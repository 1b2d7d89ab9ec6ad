"""Uploads and downloads: into and out of one's own session, by exact names, and reports shut off from the app."""

from __future__ import annotations

import asyncio
import stat
import webbrowser
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

pytest.importorskip("nicegui", reason="the web app needs the extra 'web'")

from fastapi import FastAPI

from tablesafe.web.guard import Gate, Guard
from tablesafe.web.routes import add_routes
from tablesafe.web.runs import Run, State
from tablesafe.web.server import hosts_of, open_browser
from tablesafe.web.sessions import Session, Sessions

PORT = 4712
HOME = f"http://127.0.0.1:{PORT}"
TOKEN = "a-token-of-sixteen-letters-or-more"
Scenario = Callable[[httpx.AsyncClient, httpx.AsyncClient, Session], Awaitable[None]]


def with_two(tmp_path: Path, scenario: Scenario) -> None:
    """Two browsers, and the session of the first, which has a finished run."""

    async def main() -> None:
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        add_routes(app)
        sessions = Sessions(tmp_path / "private")
        (tmp_path / "private").mkdir()
        guard = Guard(app, Gate(token=TOKEN, hosts=hosts_of("127.0.0.1", PORT), sessions=sessions, port=PORT))
        transport = httpx.ASGITransport(guard)
        async with (
            httpx.AsyncClient(transport=transport, base_url=HOME) as one,
            httpx.AsyncClient(transport=transport, base_url=HOME) as other,
        ):
            for browser in (one, other):
                assert (await browser.get(f"/?token={TOKEN}")).status_code == 303
            session = sessions.find(one.cookies[f"tablesafe-{PORT}"])
            assert session is not None
            session.runs.runs["run-1"] = finished(session.workspace.path / "runs" / "run-1")
            await scenario(one, other, session)
        await sessions.close()

    asyncio.run(main())


def finished(path: Path) -> Run:
    """A run that has ended."""
    for name, text in {
        "job.toml": "title = 'x'", "public/table.csv": "a,b", "internal/report.html": "<script>1</script>",
        "result.pickle": "secret", "firms.csv": "secret",
    }.items():  # fmt: skip
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    facts = {"files": ["public/table.csv", "internal/report.html"], "status": "safe"}
    return Run("run-1", path, "x", "title = 'x'", State.DONE, facts=facts)


def test_files_of_a_run_can_be_downloaded_by_their_owner(tmp_path: Path) -> None:
    async def scenario(one: httpx.AsyncClient, other: httpx.AsyncClient, session: Session) -> None:
        for name, text in {"job.toml": "title = 'x'", "public/table.csv": "a,b"}.items():
            answer = await one.get(f"/files/run-1/{name}")
            assert answer.text == text
            assert answer.headers["content-disposition"].startswith("attachment")
            assert answer.headers["cache-control"] == "no-store"
            assert "etag" not in answer.headers
            assert (await other.get(f"/files/run-1/{name}")).status_code == 404

    with_two(tmp_path, scenario)


@pytest.mark.parametrize(
    "name",
    ["result.pickle", "firms.csv", "public", "public/", "", "%2e%2e/run-1/job.toml", "JOB.TOML",
     "public%2f..%2fjob.toml", "/etc/passwd", "job.toml%00", "internal/x"],
)  # fmt: skip
def test_nothing_else_can(tmp_path: Path, name: str) -> None:
    async def scenario(one: httpx.AsyncClient, other: httpx.AsyncClient, session: Session) -> None:
        assert (await one.get(f"/files/run-1/{name}")).status_code == 404
        assert (await one.get(f"/files/run-2/{name}")).status_code == 404

    with_two(tmp_path, scenario)


def test_a_report_in_the_browser_is_shut_off_from_the_app(tmp_path: Path) -> None:
    """What it might hold cannot act as the app, nor reach any host."""

    async def scenario(one: httpx.AsyncClient, other: httpx.AsyncClient, session: Session) -> None:
        answer = await one.get("/files/run-1/internal/report.html?show")
        policy = answer.headers["content-security-policy"]
        assert answer.headers["content-type"].startswith("text/html")
        assert "sandbox" in policy
        assert "allow-same-origin" not in policy
        assert "default-src 'none'" in policy
        table = await one.get("/files/run-1/public/table.csv?show")
        assert table.headers["content-disposition"].startswith("attachment")

    with_two(tmp_path, scenario)


def test_uploads_go_into_the_session_of_whoever_sends_them(tmp_path: Path) -> None:
    async def scenario(one: httpx.AsyncClient, other: httpx.AsyncClient, session: Session) -> None:
        files = [("f", ("a.csv", b"1\r\n--2" * 50_000)), ("f", ("../b.csv", b"2")), ("g", ("", b""))]
        answer = await one.post("/upload", files=files)
        assert answer.json()["files"][:2] == ["a.csv", "b.csv"]
        assert (session.workspace.path / "a.csv").read_bytes() == b"1\r\n--2" * 50_000
        text = await one.post("/upload", data={"field": "no file"}, files={"f": ("c.csv", b"3")})
        assert text.json() == {"files": ["c.csv"]}
        assert (await one.get("/upload")).status_code == 405
        assert (await other.get("/job.toml")).text.strip() == ""
        session.workspace.draft = {"title": "mine"}
        assert "mine" in (await one.get("/job.toml")).text
        assert "mine" not in (await other.get("/job.toml")).text

    with_two(tmp_path, scenario)


def test_the_browser_is_not_started_with_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody on a machine can see what programs were started with."""
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    open_browser(tmp_path, f"{HOME}/?token={TOKEN}")
    page = tmp_path / "open.html"
    assert TOKEN in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert all(TOKEN not in address for address in opened)
