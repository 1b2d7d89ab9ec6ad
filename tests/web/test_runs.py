"""Runs: a process each, live progress, a stop that keeps the best safe answer, the shell's release to the byte."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from serving import processes_of

from tablesafe.web.drafts import JOB_FILE
from tablesafe.web.folders import Folder
from tablesafe.web.runs import Queue, Run, State
from tablesafe.web.sessions import Session, Sessions
from tablesafe.web.stops import KEEPERS

HERE = Path(__file__).parent
FIRMS = "region,firm,size,turnover\n" + "".join(
    f"r{i % 5},f{i % 17},s{i % 4},{100 + (i * 7919) % 997}\n" for i in range(120)
)
DRAFT: dict[str, Any] = {
    "title": "Turnover",
    "source": {"file": "firms.csv", "respondent": "firm"},
    "dimensions": {"region": {}, "size": {}},
    "response": {"value": ["turnover"]},
    "rules": [{"rule": "threshold", "n": 3}, {"rule": "p_percent", "p": 20}],
    "output": {"release": ["public/table.csv"]},
}


def hard(size: int = 9) -> tuple[str, dict[str, Any]]:
    """Data and a job whose best answer takes far longer than a test: three dimensions, every seventh cell sensitive."""
    lines = []
    for cell in range(size**3):
        codes = f"a{cell % size},b{cell // size % size},c{cell // size**2}"
        for k in range(6):
            large = 900 if k == 0 and (cell * 7919) % 7 == 0 else 30
            lines.append(f"{codes},f{(cell * 31 + k) % 997},{large + (cell * 104729 + k * 1299709) % 97}\n")
    method = {"name": "suppress", "algorithm": "optimal", "time_limit_s": 600.0}
    draft = {
        **DRAFT,
        "dimensions": {"a": {}, "b": {}, "c": {}},
        "rules": [{"rule": "p_percent", "p": 20}],
        "method": method,
        "audit": {"unions": False, "insiders": False},
    }
    return "a,b,c,firm,turnover\n" + "".join(lines), draft


def in_session(tmp_path: Path, scenario: Callable[[Sessions, Session], Awaitable[None]], places: int = 2) -> None:
    """Run a scenario with a session, and end all of it."""

    async def main() -> None:
        sessions = Sessions(tmp_path / "private", Folder(), queue=Queue(places))
        (tmp_path / "private").mkdir(mode=0o700)
        session = sessions.find(sessions.create())
        assert session is not None
        try:
            await scenario(sessions, session)
        finally:
            await sessions.close()
        assert list((tmp_path / "private").iterdir()) == []

    asyncio.run(main())


async def give(session: Session, text: str, draft: dict[str, Any]) -> None:
    async def chunks() -> Any:
        yield text.encode()

    await session.workspace.receive("firms.csv", chunks())
    session.workspace.draft = draft


async def until(run: Run, condition: Callable[[], bool]) -> None:
    while not condition():
        assert not run.state.ended, (run.state, run.message)
        await run.changed()


def from_the_shell(folder: Path, job: str, data: str) -> bytes:
    """The release that `tablesafe run` makes of the same job file beside the same data."""
    folder.mkdir()
    (folder / JOB_FILE).write_text(job)
    (folder / "firms.csv").write_text(data)
    subprocess.run([sys.executable, "-m", "tablesafe", "run", JOB_FILE, "--quiet"], cwd=folder, check=True, timeout=300)
    return (folder / "public" / "table.csv").read_bytes()


def test_a_run_gives_the_release_of_the_shell(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        await give(session, FIRMS, DRAFT)
        run = session.runs.start()
        stages = []
        while not run.state.ended:
            await run.changed()
            stages.append(run.stage)
        assert run.state is State.DONE
        assert run.safe
        told = ["", "start", "tabulate", "rules", "protect", "audit", "attack", "write"]
        assert sorted(set(stages), key=told.index) == list(dict.fromkeys(stages))
        assert {"protect", "audit"} <= set(stages)
        assert set(run.files()) >= {JOB_FILE, "public/table.csv", "public/report.html", "internal/report.html"}
        assert "internal/certificate.json.gz" in run.files()
        assert run.history
        release = run.file("public/table.csv").read_bytes()
        assert release == from_the_shell(tmp_path / "shell", run.job_text, FIRMS)
        for name in (
            "../run-2/job.toml",
            "result.pickle",
            "/etc/passwd",
            "internal",
            "public/../job.toml",
            "firms.csv",
        ):
            with pytest.raises(Exception, match="The run has no file"):
                run.file(name)
        attack = session.runs.attack(run, ("midpoint",))
        await attack.finished()
        assert attack.state is State.DONE
        assert [row["attack"] for row in attack.found["attacks"]] == ["midpoint"]

    in_session(tmp_path, scenario)


def test_a_failing_job_says_what_the_shell_says(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        await give(session, "region,firm,size,turnover\nr1,f1,s1,12x\nr2,f2,s2,3\n", DRAFT)
        run = session.runs.start()
        await run.finished()
        assert run.state is State.FAILED
        assert run.error is not None
        assert "12x" in run.error.message
        assert "line 2" in run.error.message
        assert run.error.hint
        assert run.files() == [JOB_FILE]

    in_session(tmp_path, scenario)


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
        await asyncio.sleep(0.3)
        assert not processes_of(group)
        assert session.runs.queue.free == 1
        await session.runs.remove(first.id)
        assert not first.path.exists()

    in_session(tmp_path, scenario, places=1)


SERVER = f"""
import asyncio, json, sys
sys.path.insert(0, {str(HERE)!r})
from pathlib import Path
from tablesafe.web.private import private_folder
from tablesafe.web.sessions import Sessions
import test_runs

async def main(private):
    sessions = Sessions(private)
    session = sessions.find(sessions.create())
    text, draft = test_runs.hard()
    draft = {{**draft, "run": {{"executor": "processes", "workers": 2}}}}
    await test_runs.give(session, text, draft)
    await session.workspace.columns()
    run = session.runs.start()
    await test_runs.until(run, lambda: run.stage == "protect")
    print(json.dumps([session.workspace._worker.pid, run._worker.pid]), flush=True)
    await asyncio.sleep(600)

if __name__ == "__main__":
    with private_folder() as private:
        asyncio.run(main(private))
"""


def test_nothing_runs_on_when_the_server_is_killed(tmp_path: Path) -> None:
    """kill -9 of the server: its workers, its runs and their own workers end too."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdout is not None
        groups = json.loads(server.stdout.readline())
        assert all(processes_of(group) for group in groups)
        server.send_signal(signal.SIGKILL)
    end = time.monotonic() + 20
    while any(processes_of(group) for group in groups) and time.monotonic() < end:
        time.sleep(0.05)
    assert [processes_of(group) for group in groups] == [[], []]


def test_the_queue_is_fair() -> None:
    """Whoever asks for many runs at once holds up only themselves."""
    order: list[str] = []

    async def one(queue: Queue, who: str, number: int) -> None:
        async with queue.place(who):
            order.append(f"{who}{number}")
            await asyncio.sleep(0)

    async def main() -> None:
        queue = Queue(1)
        await asyncio.gather(*(one(queue, "a", i) for i in range(4)), one(queue, "b", 0), one(queue, "c", 0))
        assert queue.free == 1

    asyncio.run(main())
    assert order == ["a0", "a1", "b0", "c0", "a2", "a3"]


def test_a_cancelled_place_goes_to_the_next() -> None:
    async def main() -> None:
        queue = Queue(1)
        got: list[str] = []

        async def wait(who: str) -> None:
            async with queue.place(who):
                got.append(who)
                await asyncio.sleep(0.01)

        tasks = [asyncio.create_task(wait(who)) for who in "abcd"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0.012)
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert got[0] == "a"
        assert "d" in got
        assert queue.free == 1

    asyncio.run(main())


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
    """The functions that it looks for are there, and are, or are called in, a `try` that waits for the interrupt."""
    tree = ast.parse(Path(import_module(module).__file__ or "").read_text(encoding="utf-8"))
    assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    waiting = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and any(ast.unparse(h.type or h) == "KeyboardInterrupt" for h in node.handlers)
    ]
    own = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    inside = any(node in list(ast.walk(own[0])) for node in waiting)
    called = any(f"{function}(" in ast.unparse(statement) for node in waiting for statement in node.body)
    assert inside or called
