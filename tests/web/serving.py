"""A real server in a process of its own, as a user starts it, and browsers that talk to it without drawing."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

START_S = 600.0
"""How long a server may take to start on a busy machine."""


@dataclass(frozen=True)
class Served:
    """A running server."""

    process: subprocess.Popen[bytes]
    address: str
    """With its token."""
    temporary: Path
    """Where its private folder is."""
    folder: Path
    """Where it was started."""
    out: Path
    err: Path

    @property
    def home(self) -> str:
        return self.address.partition("/?")[0]

    @property
    def port(self) -> int:
        return int(self.home.rpartition(":")[2])

    @property
    def token(self) -> str:
        return self.address.partition("token=")[2]

    @property
    def printed(self) -> str:
        return self.out.read_text() + self.err.read_text()

    @contextmanager
    def browser(self) -> Iterator[httpx.Client]:
        """A browser that has opened the address."""
        with httpx.Client(base_url=self.home, timeout=START_S) as client:
            assert client.get(f"/?token={self.token}").status_code == 303
            yield client

    def stop(self, number: int = signal.SIGINT) -> int:
        """End the server as a user does; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(START_S)

    def left(self) -> list[Path]:
        """What is left of its private folder."""
        return sorted(self.temporary.glob("tablesafe-serve-*"))


@contextmanager
def served(place: Path, *arguments: str, open_files: int | None = None, program: str = "") -> Iterator[Served]:
    """Start `tablesafe serve` on a free port, with its temporary files below `place`; perhaps with few open files.

    `program` is what is run in its place, where a test needs it otherwise.
    """

    def limit() -> None:
        if open_files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))

    temporary, folder = place / "tmp", place / "here"
    temporary.mkdir(exist_ok=True)
    folder.mkdir(exist_ok=True)
    out, err = place / "out.txt", place / "err.txt"
    port = [] if "--port" in arguments else ["--port", "0"]
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}  # as users have it
    command = [
        sys.executable,
        *(["-c", program] if program else ["-m", "tablesafe"]),
        "serve",
        *arguments,
        *port,
        "--no-browser",
    ]
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            command, cwd=folder, stdout=stdout, stderr=stderr, env={**known, "TMPDIR": str(temporary)},
            preexec_fn=limit,
        )  # fmt: skip
    try:
        yield Served(process, _address(process, out, err), temporary, folder, out, err)
    finally:
        process.kill()
        process.wait()


def _address(process: subprocess.Popen[bytes], out: Path, err: Path) -> str:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        found = re.search(r"http://\S+token=\S+", out.read_text())
        if found:
            return found[0]
        assert process.poll() is None, err.read_text()
        time.sleep(0.05)
    raise AssertionError(f"the server did not start: {err.read_text()}")


def processes_of(group: int) -> list[int]:
    """The processes of a session of processes, by what the system tells of them."""
    return _living(3, group)


async def gone(*groups: int) -> None:
    """Wait until nothing is left of sessions of processes, however busy the machine is."""
    end = time.monotonic() + START_S
    while any(processes_of(group) for group in groups):
        assert time.monotonic() < end, [processes_of(group) for group in groups]
        await asyncio.sleep(0.02)


def children_of(parent: int) -> list[int]:
    """The processes that another one started itself."""
    return _living(1, parent)


def _living(field: int, number: int) -> list[int]:
    """The living processes that have a number in one field of what the system tells of them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[field]) == number and fields[0] != "Z":
                found.append(int(entry.name))
    return found
