"""Sessions are apart, limited in number, and gone when they end; private folders are removed, and only our own."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tablesafe.web import folders as private_module
from tablesafe.web.child import may_open
from tablesafe.web.folders import LOCK, PREFIX, private_folder, remove_stale
from tablesafe.web.sessions import Full, Sessions
from tablesafe.web.worker import Place, Worker
from tablesafe.web.workspace import Quota


async def chunks(text: bytes) -> AsyncIterator[bytes]:
    yield text


def test_each_session_has_its_own_workspace(tmp_path: Path) -> None:
    async def main() -> None:
        sessions = Sessions(tmp_path)
        one, other = sessions.find(sessions.create()), sessions.find(sessions.create())
        assert one is not None
        assert other is not None
        await one.workspace.receive("a.csv", chunks(b"mine"))
        assert not other.workspace.files
        assert [path.name for path in other.workspace.path.iterdir()] == ["runs"]
        one.workspace.draft["title"] = "mine"
        one.state["x"] = 1
        assert other.workspace.draft == {}
        assert other.state == {}
        await sessions.close()
        assert list(tmp_path.iterdir()) == []

    asyncio.run(main())


def test_every_letter_of_a_cookie_counts(tmp_path: Path) -> None:
    """A cookie that is like another's in all but one letter opens nothing."""
    sessions = Sessions(tmp_path)
    cookie = sessions.create()
    near = [cookie[:i] + ("A" if cookie[i] != "A" else "B") + cookie[i + 1 :] for i in range(len(cookie))]
    for other in (*near, cookie[:-1], cookie + "A", cookie.swapcase(), ""):
        assert sessions.find(other) is None
    assert sessions.find(cookie) is not None


def test_cookies_are_unguessable_and_kept_nowhere(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path)
    cookies = {sessions.create() for _ in range(8)}
    assert len(cookies) == 8
    assert all(len(cookie) >= 43 for cookie in cookies)
    assert not any(cookie in repr(sessions) for cookie in cookies)
    assert sessions.find(None) is None
    assert sessions.find("") is None
    assert sessions.find(next(iter(sessions._sessions))) is None  # not even the digest opens it


def test_the_number_of_sessions_is_limited_and_the_idle_make_room(tmp_path: Path) -> None:
    async def main() -> None:
        sessions = Sessions(tmp_path, most=2)
        first, second = sessions.create(), sessions.create()
        kept = sessions.find(first)
        assert kept is not None
        kept.sockets = 1
        third = sessions.create()  # in place of the second, which nobody looks at
        assert sessions.find(second) is None
        assert sessions.find(first) is kept
        last = sessions.find(third)
        assert last is not None
        last.sockets = 1
        with pytest.raises(Full, match="2 sessions"):
            sessions.create()
        while len(list(tmp_path.iterdir())) > 2:
            await asyncio.sleep(0.01)
        assert len(list(tmp_path.iterdir())) == 2
        await sessions.close()

    asyncio.run(main())


def test_old_sessions_end_with_their_files_but_not_those_in_use(tmp_path: Path) -> None:
    async def main() -> None:
        sessions = Sessions(tmp_path, limits=Quota(), expire_s=-1.0)
        sessions.create()
        used = sessions._sessions[next(iter(sessions._sessions))]
        used.sockets = 1
        sessions.create()
        await sessions.expire()
        assert list(sessions._sessions.values()) == [used]
        assert list(tmp_path.iterdir()) == [used.workspace.path]
        await sessions.close()

    asyncio.run(main())


# -- private folders ---------------------------------------------------------------------------------------------------


def test_a_private_folder_is_for_its_owner_and_gone_at_the_end(tmp_path: Path) -> None:
    with private_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert Path(tempfile.gettempdir()) == folder / "tmp"
        assert os.environ["TMPDIR"] == str(folder / "tmp")
        (folder / "x").write_text("secret")
    assert list(tmp_path.iterdir()) == []
    assert Path(tempfile.gettempdir()) != folder / "tmp"


def test_a_folder_in_use_is_not_stale(tmp_path: Path) -> None:
    with private_folder(tmp_path) as folder:
        assert remove_stale(tmp_path) == 0
        with private_folder(tmp_path) as other:
            assert folder.exists()
            assert other != folder
        assert folder.exists()


def stale(folder: Path) -> Path:
    """What a killed server leaves."""
    folder.mkdir(mode=0o700)
    (folder / LOCK).touch(mode=0o600)
    (folder / "upload.csv").write_text("secret")
    return folder


def test_stale_folders_are_removed_and_foreign_ones_are_not(tmp_path: Path) -> None:
    gone = stale(tmp_path / f"{PREFIX}killed")
    open_to_all = stale(tmp_path / f"{PREFIX}open")
    open_to_all.chmod(0o755)
    elsewhere = stale(tmp_path / "precious")
    link = tmp_path / f"{PREFIX}link"
    link.symlink_to(elsewhere)
    unlocked = tmp_path / f"{PREFIX}new"
    unlocked.mkdir(mode=0o700)
    locked_by_link = stale(tmp_path / f"{PREFIX}trap")
    (locked_by_link / LOCK).unlink()
    (locked_by_link / LOCK).symlink_to(elsewhere / LOCK)
    assert remove_stale(tmp_path) == 1
    assert not gone.exists()
    for folder in (open_to_all, elsewhere, unlocked, locked_by_link):
        assert folder.exists()
    assert (elsewhere / "upload.csv").read_text() == "secret"


def test_a_folder_of_another_user_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stale(tmp_path / f"{PREFIX}theirs")
    monkeypatch.setattr(private_module.os, "getuid", lambda: 4711)
    assert remove_stale(tmp_path) == 0
    assert folder.exists()


# -- processes ---------------------------------------------------------------------------------------------------------


def test_a_process_opens_only_its_own_files(tmp_path: Path) -> None:
    workspace, allowed = tmp_path / "workspace", tmp_path / "allowed"
    roots, program = [workspace, allowed], ("/opt/program/",)
    for good in (workspace / "a.csv", workspace / ".part", allowed / "sub" / "b.csv", Path("/opt/program/x.json")):
        assert may_open(str(good), roots, program)
    for bad in (tmp_path / "other" / "a.csv", allowed / ".env", Path("/etc/passwd"), Path("/root/.ssh/id_rsa"),
                tmp_path / "workspace-2" / "a.csv", Path("/var/lib/x")):  # fmt: skip
        assert not may_open(str(bad), roots, program)


def test_uploads_are_never_run_as_programs(tmp_path: Path) -> None:
    """A file called json.py in the folder where a process works is data, also for the processes that it starts."""
    from tablesafe.web.desk import columns

    mark = tmp_path / "was-run"
    for name in ("json", "random", "tablesafe", "multiprocessing", "numpy", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")

    async def main() -> None:
        worker = await Worker.start(tmp_path, Place(tmp_path))
        try:
            found = await worker.call(columns, "a.csv", {})
            assert [column["name"] for column in found] == ["x", "y"]
        finally:
            await worker.close()

    before = Path.cwd()
    try:
        os.chdir(tmp_path)  # where a server might be started
        asyncio.run(main())
    finally:
        os.chdir(before)
    assert not mark.exists()


def test_only_tasks_of_the_app_can_be_asked_for() -> None:
    from tablesafe.web.child import task_of

    assert callable(task_of("tablesafe.web.desk:columns"))
    for name in ("os:system", "tablesafe.cli.app:main", "builtins:eval", "subprocess:run", ":"):
        with pytest.raises(ValueError, match="not a task"):
            task_of(name)
