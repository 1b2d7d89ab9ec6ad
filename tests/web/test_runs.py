"""Runs: a process each, live progress, a stop that keeps the best safe answer, the shell's release to the byte."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from running import DRAFT, FIRMS, give, in_session

from tablesafe.web.drafts import JOB_FILE
from tablesafe.web.runs import Queue, State
from tablesafe.web.sessions import Session, Sessions


def from_the_shell(folder: Path, job: str, data: str) -> bytes:
    """The release that `tablesafe run` makes of the same job file beside the same data."""
    folder.mkdir()
    (folder / JOB_FILE).write_text(job)
    (folder / "firms.csv").write_text(data)
    subprocess.run([sys.executable, "-m", "tablesafe", "run", JOB_FILE, "--quiet"], cwd=folder, check=True)
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
        leave = asyncio.Event()

        async def wait(who: str) -> None:
            async with queue.place(who):
                got.append(who)
                await leave.wait()

        tasks = [asyncio.create_task(wait(who)) for who in "abcd"]
        while not got:
            await asyncio.sleep(0)
        tasks[1].cancel()  # while it waits
        tasks[0].cancel()  # and one that has the place
        while len(got) < 2:
            await asyncio.sleep(0)
        tasks[2].cancel()
        leave.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert got == ["a", "c", "d"]
        assert queue.free == 1

    asyncio.run(main())
