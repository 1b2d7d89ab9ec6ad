"""A pool of processes that replaces those which die, and that dies with the process it works for."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import connection, get_context, parent_process
from types import TracebackType
from typing import Any, Literal

from tablesafe.core.machine import die_with

RESTARTS = 3
"""How often a pool that lost a process is begun anew; a task that kills its process each time must be done here."""


class Processes(Executor):
    """Processes of this machine. They end with the block, and with this process, however it ends."""

    def __init__(self, workers: int | None = None, *, method: Literal["spawn", "fork"] = "spawn") -> None:
        self._workers, self._method = workers, method
        self._pool: ProcessPoolExecutor | None = None
        self._restarts = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called in one of the processes."""
        if self._pool is None:
            context = get_context(self._method)
            self._pool = ProcessPoolExecutor(self._workers, mp_context=context, initializer=belong)
        return self._pool.submit(function, *args, **kwargs)

    def answers(self) -> bool:
        """Processes that die are noticed at once."""
        return True

    def revive(self) -> bool:
        """Begin anew with other processes, unless that was done often enough."""
        self.shutdown(wait=False, cancel_futures=True)
        self._restarts += 1
        return self._restarts <= RESTARTS

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; without `wait`, in the middle of what they do."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        processes = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=wait, cancel_futures=cancel_futures)
        if not wait:
            for process in processes:
                with suppress(OSError, ValueError):
                    process.kill()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End with the block; whoever leaves it by an error does not wait."""
        self.shutdown(wait=kind is None, cancel_futures=True)


def belong() -> None:
    """Make this process end with the one that started it. Whether to stop is decided there: Ctrl-C is for it alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = parent_process()
    if parent is None:
        return
    die_with(parent.pid or 0)
    threading.Thread(target=_outlive, args=(parent.sentinel,), daemon=True).start()


def _outlive(sentinel: int) -> None:
    """Wait for the end of the parent, where the system does not tell of it."""
    connection.wait([sentinel])
    os._exit(1)
