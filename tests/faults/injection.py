"""Faults at a chosen moment: the n-th time that a run touches the disk, asks a solver, or looks at a clock.

A kill is played in this process: from that moment on nothing can change on the disk any more, whatever the program does
to clean up, and at the end what the system would have closed is closed. So the disk is as a real kill would leave it,
and hundreds of moments cost no more than as many runs.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.link", "os.truncate"}


class Killed(BaseException):
    """The process is gone; all that follows happens to nobody."""


@dataclass(slots=True)
class Moment:
    """What happens at the n-th change below a folder, counted from 0; never, when n is −1."""

    folder: str
    n: int
    fault: Callable[[], BaseException]
    lasting: bool
    seen: int = 0
    happened: bool = False
    names: list[str] = field(default_factory=list)

    def touch(self, event: str) -> None:
        """Count a change, and let the fault happen when its time has come."""
        number, self.seen = self.seen, self.seen + 1
        self.names.append(event)
        if number == self.n or (self.happened and self.lasting):
            self.happened = True
            raise self.fault()


_now: list[Moment] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _now or (event != "open" and event not in CHANGES):
        return
    if event == "open" and not (isinstance(args[2], int) and args[2] & WRITING):
        return
    relative = event in {"os.remove", "os.rmdir"} and args[-1] not in (-1, None)  # while a folder is removed
    if relative or str(args[0]).startswith(_now[0].folder):
        _now[0].touch(event)


sys.addaudithook(_hook)


@contextmanager
def _at(moment: Moment) -> Iterator[Moment]:
    synced = os.fsync

    def fsync(handle: int) -> None:
        moment.touch("os.fsync")
        synced(handle)

    _now.append(moment)
    os.fsync = fsync
    try:
        yield moment
    finally:
        _now.clear()
        os.fsync = synced


def count(folder: Path, run: Callable[[], object]) -> list[str]:
    """The changes that a run makes below a folder, when nothing happens."""
    with _at(Moment(str(folder), -1, Killed, lasting=False)) as moment:
        run()
    return moment.names


def kill_at(n: int, folder: Path, run: Callable[[], object]) -> bool:
    """Run until the n-th change, and no further; whether it came so far."""
    with _at(Moment(str(folder), n, Killed, lasting=True)) as moment, suppress(Killed):
        run()
    for handle in _open_files():
        with suppress(OSError):
            if str(folder) in os.readlink(f"/proc/self/fd/{handle}"):  # noqa: PTH115
                os.close(handle)
    return moment.happened


def fail_at(n: int, folder: Path, run: Callable[[], object], fault: Callable[[], BaseException]) -> bool:
    """Let the n-th change fail; whether it came so far. What `run` raises is the caller's to look at."""
    with _at(Moment(str(folder), n, fault, lasting=False)) as moment:
        run()
    return moment.happened


def disk_full() -> OSError:
    """What the system says when a disk is full."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _open_files() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/fd")}  # noqa: PTH208
