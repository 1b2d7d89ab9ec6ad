"""Eight runs at once, of four users: none disturbs another, and each release is the shell's to the byte."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from tablesafe.web.drafts import JOB_FILE
from tablesafe.web.folders import Folder
from tablesafe.web.runs import Queue, Run, State
from tablesafe.web.sessions import Session, Sessions

USERS, RUNS = 4, 2
EIGHT_IN_THE_SHELL = """
import sys
from tablesafe.pipeline import run
for job in sys.argv[1:]:
    run(job)
"""


def data(number: int) -> str:
    """Records that differ from run to run."""
    lines = [f"r{i % 5},f{i % 17},s{i % 4},{100 + (i * (7919 + 2 * number)) % 997}\n" for i in range(120)]
    return "region,firm,size,turnover\n" + "".join(lines)


def draft(number: int) -> dict[str, Any]:
    return {
        "title": f"Run {number}",
        "source": {"file": "firms.csv", "respondent": "firm"},
        "dimensions": {"region": {}, "size": {}},
        "response": {"value": ["turnover"]},
        "rules": [{"rule": "threshold", "n": 3}, {"rule": "p_percent", "p": 20 + number}],
        "output": {"release": ["public/table.csv"]},
    }


async def start(session: Session, number: int) -> Run:
    async def chunks() -> Any:
        yield data(number).encode()

    await session.workspace.receive("firms.csv", chunks())
    session.workspace.draft = draft(number)
    return session.runs.start()


def test_eight_runs_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    async def at_once() -> list[tuple[str, bytes]]:
        sessions = Sessions(tmp_path, Folder(), queue=Queue(USERS * RUNS))
        try:
            found = [sessions.find(sessions.create()) for _ in range(USERS)]
            runs = [await start(session, USERS * k + i) for i, session in enumerate(found) if session
                    for k in range(RUNS)]  # fmt: skip
            while any(run.state is State.QUEUED for run in runs):
                await asyncio.sleep(0.01)
            assert all(run.state is State.RUNNING for run in runs)
            await asyncio.gather(*(run.finished() for run in runs))
            assert [run.state for run in runs] == [State.DONE] * USERS * RUNS
            return [(run.job_text, run.file("public/table.csv").read_bytes()) for run in runs]
        finally:
            await sessions.close()

    ours = asyncio.run(at_once())
    assert len({release for _, release in ours}) == USERS * RUNS
    jobs = []
    for job, _ in ours:
        number = int(job.partition("Run ")[2].partition('"')[0])
        folder = tmp_path / f"shell-{number}"
        folder.mkdir()
        (folder / "firms.csv").write_text(data(number))
        (folder / JOB_FILE).write_text(job)
        jobs.append(folder / JOB_FILE)
    subprocess.run([sys.executable, "-c", EIGHT_IN_THE_SHELL, *map(str, jobs)], check=True)
    for (_, release), path in zip(ours, jobs, strict=True):
        assert (path.parent / "public" / "table.csv").read_bytes() == release
