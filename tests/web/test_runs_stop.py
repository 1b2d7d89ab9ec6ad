"""Ends of runs: a stop that keeps the best safe answer, a kill that leaves nothing, a server that is gone."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from running import give, hard, in_session, until
from serving import gone, processes_of

from tablesafe.web.long_tasks import KEEPERS
from tablesafe.web.runs import State
from tablesafe.web.sessions import Session, Sessions

HERE = Path(__file__).parent


def test_a_stop_keeps_the_best_safe_answer(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        await give(session, *hard())
        run = session.runs.start()
        await until(run, lambda: bool(run.history))
        run.stop()
        assert run.state is State.STOPPING
        await asyncio.wait_for(run.finished(), 120)
        assert run.state is State.DONE, run.message
        assert run.safe
        assert run.asked_to_stop
        assert run.facts["solution"]["status"] == "feasible"
        assert run.file("public/table.csv").stat().st_size

    in_session(tmp_path, scenario)


def test_a_stop_before_the_search_waits_for_its_first_answer(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        await give(session, *hard(6))
        run = session.runs.start()
        await until(run, lambda: run.state is State.RUNNING)
        run.stop()  # the process is not even there yet
        await asyncio.wait_for(run.finished(), 120)
        assert run.state is State.DONE, run.message
        assert run.safe

    in_session(tmp_path, scenario)


@pytest.mark.parametrize(("module", "function"), KEEPERS.items())
def test_a_stop_knows_where_a_search_keeps_its_answer(module: str, function: str) -> None:
    """The functions that it looks for are there, and wait for the interrupt, or are called where it is waited for."""
    tree = ast.parse(Path(import_module(module).__file__ or "").read_text(encoding="utf-8"))
    assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    waiting = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.Try) and any(ast.unparse(h.type or h) == "KeyboardInterrupt" for h in node.handlers))
        or (isinstance(node, ast.With) and "until_interrupted(" in ast.unparse(node.items[0]))
    ]
    own = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    inside = any(node in list(ast.walk(own[0])) for node in waiting)
    called = any(f"{function}(" in ast.unparse(statement) for node in waiting for statement in node.body)
    assert inside or called


def test_a_killed_run_leaves_no_process_and_frees_its_place(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        await give(session, *hard())
        first, second = session.runs.start(), session.runs.start()
        await until(first, lambda: first.stage == "protect")
        assert second.state is State.QUEUED
        assert first._worker is not None
        group = first._worker.pid
        assert processes_of(group)
        second.stop()
        await second.finished()
        assert second.state is State.STOPPED
        first.kill()
        await first.finished()
        assert first.state is State.STOPPED
        await gone(group)
        assert session.runs.queue.free == 1
        await session.runs.remove(first.id)
        assert not first.path.exists()

    in_session(tmp_path, scenario, places=1)


SERVER = f"""
import asyncio, json, sys
sys.path.insert(0, {str(HERE)!r})
from pathlib import Path
from tablesafe.web.folders import private_folder
from tablesafe.web.sessions import Sessions
import running

async def main(private):
    sessions = Sessions(private)
    session = sessions.find(sessions.create())
    text, draft = running.hard()
    draft = {{**draft, "run": {{"executor": "processes", "workers": 2}}}}
    await running.give(session, text, draft)
    await session.workspace.columns()
    run = session.runs.start()
    await running.until(run, lambda: run.stage == "protect")
    print(json.dumps([session.workspace._worker.pid, run._worker.pid]), flush=True)
    await asyncio.sleep(600)

if __name__ == "__main__":
    with private_folder() as private:
        asyncio.run(main(private))
"""


def still(group: int) -> None:
    """Make the processes of a group unable to notice anything themselves; all but the watcher, which has no streams."""
    for process in processes_of(group):
        if os.path.lexists(f"/proc/{process}/fd/0"):
            os.kill(process, signal.SIGSTOP)


def test_nothing_runs_on_when_the_server_is_killed(tmp_path: Path) -> None:
    """kill -9 of the server: its workers, its runs and their own workers end too, whatever they are doing."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdout is not None
        groups = json.loads(server.stdout.readline())
        assert all(processes_of(group) for group in groups)
        for group in groups:
            still(group)
        server.send_signal(signal.SIGKILL)
    try:
        asyncio.run(gone(*groups))
    finally:
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
