"""What the server leaves behind when it ends, well or badly: nothing. And what it does not start with."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nicegui", reason="the web app needs the extra 'web'")

from serving import served

SECRET = "73519.24680"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_after_a_stop(tmp_path: Path, number: int) -> None:
    with served(tmp_path) as server:
        with server.browser() as browser:
            browser.post("/upload", files={"file": ("mine.csv", SECRET)})
            browser.get("/")
        [private] = server.left()
        assert private.stat().st_mode & 0o777 == 0o700
        assert all(path.stat().st_mode & 0o077 == 0 for path in private.rglob("*"))
        assert server.stop(number) == 0
        assert list(server.temporary.iterdir()) == []
        assert list(server.folder.iterdir()) == []  # no .nicegui either


def test_what_a_killed_server_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    with served(tmp_path) as killed:
        with killed.browser() as browser:
            browser.post("/upload", files={"file": ("mine.csv", SECRET)})
        [stale] = killed.left()
        killed.process.kill()
        killed.process.wait()
        assert killed.left() == [stale]
    with served(tmp_path) as server:
        [own] = server.left()
        assert own != stale
        server.stop()
    assert server.left() == []


def test_other_machines_are_let_in_only_on_demand() -> None:
    command = [sys.executable, "-m", "tablesafe", "serve", "--host", "0.0.0.0", "--no-browser"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert answer.returncode == 2
    assert "other machines" in answer.stderr
    assert "--allow-remote" in answer.stderr
