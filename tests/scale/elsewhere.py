"""Tasks that other processes can import, and that show where and how often they were done."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def marked(task: tuple[str, int]) -> int:
    """Write down that a task was done, and answer it."""
    folder, number = task
    (Path(folder) / f"{number}.{time.monotonic_ns()}").touch()
    time.sleep(0.05)
    return number * number


def gated(task: tuple[str, int]) -> int:
    """Answer the first task at once, and the others when somebody opens the gate."""
    folder, number = task
    while number and not (Path(folder) / "open").exists():
        time.sleep(0.05)
    return marked(task)


def fatal_once(task: tuple[str, int]) -> int:
    """Kill the worker in the middle of the fourth task, the first time."""
    folder, number = task
    if number == 3:
        try:
            (Path(folder) / "killed").touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return marked(task)


def divide(number: int) -> float:
    """Fail for zero."""
    return 1 / number
