"""A session as one file: what comes back is what was there, and files of others change nothing."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from running import DRAFT, FIRMS, give, in_session

from tablesafe.core.errors import TablesafeError
from tablesafe.io.decisions import Decision
from tablesafe.web.saved import open_saved, save
from tablesafe.web.sessions import Session, Sessions

STATE: dict[str, Any] = {"who": "", "guessed": False, "accepted": [], "decisions": []}
JOB = '[source]\nfile = "firms.csv"\n'


def packed(**files: str) -> bytes:
    """A zip file of texts; `__` in a name stands for a point."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "."), text)
    return target.getvalue()


async def bring(session: Session, data: bytes) -> str:
    async def chunks() -> Any:
        yield data

    return await session.workspace.receive("s.tablesafe", chunks())


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    decision = Decision({"region": "r1", "size": "s2"}, "safe", 12.0, "ann", "known", "2026-01-01 10:00")

    async def scenario(sessions: Sessions, session: Session) -> None:
        workspace = session.workspace
        await give(session, FIRMS, {**DRAFT})
        workspace.decide([decision])
        workspace.who = "ann"
        before, data = workspace.job_text(), (await save(workspace)).read_bytes()
        workspace.clear()
        assert not workspace.files
        workspace.draft = await open_saved(workspace, await bring(session, data))
        assert workspace.job_text() == before
        assert workspace.decisions == [(decision,)]
        assert workspace.who == "ann"
        assert sorted(workspace.files) == ["decisions.csv", "firms.csv"]
        assert (workspace.path / "firms.csv").read_text() == FIRMS
        assert not workspace.check()

    in_session(tmp_path, scenario)


def refused(data: bytes, most: int | None = None) -> Callable[[Sessions, Session], Awaitable[None]]:
    """A file that is no session: it is said so, and what was there is still there."""

    async def scenario(sessions: Sessions, session: Session) -> None:
        workspace = session.workspace
        await give(session, FIRMS, {**DRAFT})
        before = workspace.job_text()
        name = await bring(session, data)
        if most is not None:
            workspace.limits = type(workspace.limits)(upload_bytes=most, total_bytes=most)
        with pytest.raises(TablesafeError):
            await open_saved(workspace, name)
        assert workspace.job_text() == before
        assert list(workspace.files) == ["firms.csv"]

    return scenario


@pytest.mark.parametrize(
    "data",
    [
        b"PK\x03\x04 cut off",
        packed(job__toml=JOB),
        packed(job__toml=JOB, session__json="[]"),
        packed(job__toml="no toml", session__json=json.dumps(STATE)),
        packed(**{"job.toml": JOB, "session.json": json.dumps(STATE), "../evil.csv": "a"}),
        packed(**{"job.toml": JOB, "session.json": json.dumps(STATE), "/tmp/evil.csv": "a"}),
        packed(**{"job.toml": JOB, "session.json": json.dumps(STATE), "runs/evil.csv": "a"}),
        packed(**{"job.toml": JOB, "session.json": json.dumps({**STATE, "decisions": [[{"what": "x"}]]})}),
    ],
    ids=["cut off", "no state", "another state", "no job", "above", "elsewhere", "reserved", "no decision"],
)
def test_a_file_that_is_no_session_changes_nothing(tmp_path: Path, data: bytes) -> None:
    in_session(tmp_path, refused(data))
    assert not list(tmp_path.rglob("evil*"))


def test_a_session_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    bomb = packed(job__toml=JOB, session__json=json.dumps(STATE), firms__csv="0" * 3_000_000)
    in_session(tmp_path, refused(bomb, most=1_000_000))
