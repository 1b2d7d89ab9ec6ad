"""Does the web app hold its memory? `python -m benchmarks.soak --seconds 3600`

A server with its pages runs here; users come one after another: each opens a session, uploads data, opens every page,
looks at columns and table, runs a job, downloads the release, and goes. Memory, open files, processes and private files
of the server are noted after each; the slope over the second half says whether anything is left behind. Growth before
that is what the pages load once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from tablesafe.web import server as serving
from tablesafe.web.background import Queue
from tablesafe.web.folders import Folder, private_folder
from tablesafe.web.options import ServeOptions
from tablesafe.web.sessions import Sessions

PAGES = ("/", "/dimensions", "/rules", "/method", "/result", "/compare", "/job.toml")
DRAFT: dict[str, Any] = {
    "title": "Soak",
    "source": {"file": "firms.csv", "respondent": "firm"},
    "dimensions": {"region": {}, "size": {}},
    "response": {"value": ["turnover"]},
    "rules": [{"rule": "threshold", "n": 3}, {"rule": "p_percent", "p": 20}],
    "output": {"release": ["public/table.csv"]},
    "attack": {"attacks": []},
}


@dataclass(frozen=True)
class Sample:
    """What the server holds after some users."""

    seconds: float
    users: int
    memory_mb: float
    open_files: int
    children: int
    private_files: int


def data(number: int) -> bytes:
    """Records of one user."""
    lines = (f"r{i % 8},f{i % 37},s{i % 5},{100 + (i * (7919 + 2 * number)) % 997}\n" for i in range(2000))
    return ("region,firm,size,turnover\n" + "".join(lines)).encode()


async def visit(server: serving.Server, number: int, *, with_run: bool) -> None:
    """One user, from the address to the download."""
    async with httpx.AsyncClient(base_url=server.address.partition("/?")[0], timeout=120) as browser:
        answer = await browser.get(f"/?token={server.token}")
        cookie = answer.cookies[f"tablesafe-{server.port}"]
        session = server.sessions.find(cookie)
        assert session is not None
        await browser.post("/upload", files={"file": ("firms.csv", data(number))})
        session.workspace.draft = json.loads(json.dumps(DRAFT))
        for page in PAGES:
            (await browser.get(page)).raise_for_status()
        if with_run:
            await session.workspace.columns()
            await session.workspace.table()
            run = session.runs.start()
            await run.finished()
            assert run.safe, run.message
            (await browser.get(f"/files/{run.id}/public/table.csv")).raise_for_status()
        await server.sessions.end(session)


def sample(begin: float, users: int, private: Path) -> Sample:
    """Look at this process."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    opened = sum(1 for _ in Path("/proc/self/fd").iterdir())
    files = sum(path.is_file() for path in private.rglob("*"))
    return Sample(time.monotonic() - begin, users, resident / 2**20, opened, len(children), files)


def slope(samples: list[Sample]) -> float:
    """Megabytes an hour over the second half."""
    half = [each for each in samples if each.seconds >= samples[-1].seconds / 2]
    if len(half) < 3:
        return float("nan")
    return float(np.polyfit([each.seconds / 3600 for each in half], [each.memory_mb for each in half], 1)[0])


async def users(server: serving.Server, private: Path, seconds: float, every: int) -> AsyncIterator[Sample]:
    """User after user, until the time is up."""
    begin, number = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        await visit(server, number, with_run=number % every == 0)
        number += 1
        yield sample(begin, number, private)


def soak(seconds: float, every: int) -> list[Sample]:
    """Serve, and let users come."""
    options = ServeOptions(port=0, no_browser=True)
    samples: list[Sample] = []
    with private_folder() as private:
        sessions = Sessions(private, Folder(), queue=Queue(2))
        server = serving.build(options, serving.listen(options), sessions)

        async def drive() -> None:
            try:
                async for found in users(server, private, seconds, every):
                    samples.append(found)
                    if len(samples) % 20 == 1:
                        print(json.dumps(asdict(found)), flush=True)
            finally:
                os.kill(os.getpid(), signal.SIGINT)

        tasks: list[asyncio.Task[None]] = []
        serving.run(server, lambda address: tasks.append(asyncio.get_running_loop().create_task(drive())))
        for task in tasks:
            task.result()
    return samples


def main() -> None:
    """Soak, and say how much is left behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long")
    parser.add_argument(
        "--every", type=int, default=1, help="every how many users one runs a job; the others only look"
    )
    parser.add_argument("--output", type=Path, help="write all samples here, as JSON")
    arguments = parser.parse_args()
    samples = soak(arguments.seconds, arguments.every)
    first, last = samples[len(samples) // 2], samples[-1]
    print(
        f"{last.users} users in {last.seconds:,.0f} s; memory {first.memory_mb:.0f} → {last.memory_mb:.0f} MB over the "
        f"second half, {slope(samples):+.1f} MB an hour; files open {first.open_files} → {last.open_files}, "
        f"processes {first.children} → {last.children}, private files {first.private_files} → {last.private_files}"
    )
    if arguments.output is not None:
        arguments.output.write_text(json.dumps([asdict(each) for each in samples]), encoding="utf-8")


if __name__ == "__main__":
    main()
