"""A reader under watch: it must end within seconds, within bounded memory, and with an error of ours or none."""

from __future__ import annotations

import os
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from seeds import TIMES
from tablesafe.core.errors import TablesafeError

EXAMPLES = int(os.environ.get("TABLESAFE_FUZZ", "0"))
"""How many examples for each reader; a few where the variable is not set, and many times that with --times."""
SECONDS = 120
"""Patience with one file: a machine may be busy, and the first one compiles what reads it."""
MEMORY = 1 << 30
"""Bytes by which the process may grow over one small file."""


class Hangs(BaseException):
    """A reader took too long; no reader can swallow this."""


def examples(few: int) -> int:
    """How many examples a test draws within itself: `few`, times what a soak asks for, or what the environment says."""
    return EXAMPLES or few * int(os.environ.get(TIMES, "1"))


@contextmanager
def watched(seconds: float = SECONDS) -> Iterator[None]:
    """Stop what takes too long, and complain of what takes too much memory."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hangs(f"no end after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) * 1024
    assert grown < MEMORY, f"the process grew by {grown:,} bytes"


def refusal(read: Callable[[Path], object], path: Path) -> str | None:
    """What a reader says against a file; None where it is read. Anything but an error of ours is passed on."""
    with watched(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            read(path)
        except TablesafeError as error:
            return str(error)
    return None
