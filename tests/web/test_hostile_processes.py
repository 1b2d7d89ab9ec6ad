"""Processes that compute end with all that they started, also with what takes no notice of their end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("nicegui", reason="the web app needs the extra 'web'")

from serving import processes_of

from tablesafe.web.worker import Worker

WATCHED = """
import os, subprocess, sys
from tablesafe.core.machine import watch
watch(int(sys.argv[1]))
subprocess.Popen(["sleep", "3600"])
print("ready", flush=True)
os.read(int(sys.argv[2]), 1)
"""
"""A process with a watcher, and one that it has started: both wait for ever."""
PATIENCE_S = 600.0


def gone(group: int) -> bool:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and processes_of(group):
        time.sleep(0.05)
    return not processes_of(group)


def test_when_the_server_is_gone_the_whole_group_is() -> None:
    """However it ended: the pipe that it held is closed then, and the watcher kills more than its own parent."""
    theirs, ours = os.pipe()
    never, held = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", WATCHED, str(theirs), str(never)],
        pass_fds=(theirs, never), stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert len(processes_of(process.pid)) == 3, "the process, its watcher, and what it has started"
        os.close(ours)  # as the system does when the server dies
        process.wait(PATIENCE_S)
        assert gone(process.pid)
    finally:
        os.close(never)
        os.close(held)
        if process.stdout is not None:
            process.stdout.close()
        for pid in processes_of(process.pid):
            os.kill(pid, 9)


def test_a_worker_that_is_ended_takes_along_what_it_has_started() -> None:
    async def main() -> int:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", "sleep 3600 & sleep 3600 & echo; wait", stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        assert process.stdout is not None
        await process.stdout.readline()
        assert len(processes_of(process.pid)) == 3
        worker = Worker(process, os.open(os.devnull, os.O_RDONLY))
        await asyncio.wait_for(worker.close(), PATIENCE_S)
        assert not worker.alive
        return process.pid

    group = asyncio.run(main())
    try:
        assert gone(group)
    finally:
        for pid in processes_of(group):
            os.kill(pid, 9)


def test_a_process_that_computes_knows_no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tablesafe.web.worker import TOKEN, Place, _surroundings

    monkeypatch.setenv(TOKEN, "hunter2-hunter2-hunter2")
    given = _surroundings(Place(tmp_path))
    assert "hunter2" not in str(given)
    assert given["TMPDIR"] == str(tmp_path / "tmp")
    assert given["PYTHONSAFEPATH"] == "1"
