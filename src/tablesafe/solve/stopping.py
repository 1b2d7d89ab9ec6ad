"""A solver that stops: when its time is up, and when the user interrupts.

The solver alone goes on past its time in places, and would hear of Ctrl-C only at its end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from tablesafe.errors import SolverFailure

LEAST_S = 0.05


class Stoppable:
    """One model of HiGHS, to be run again and again, each time for some seconds at most."""

    def __init__(self, solver: Any) -> None:
        self.solver = solver
        self._end = float("inf")
        self._caught: list[int] = []
        solver.cbMipInterrupt += self._judge
        solver.cbSimplexInterrupt += self._judge

    def _judge(self, event: Any) -> None:
        if self._caught or monotonic() > self._end:
            event.interrupt()

    def run(self, seconds: float = float("inf")) -> bool:
        """Solve until the time is up or the user interrupts; whether the user did."""
        seconds = max(seconds, LEAST_S)
        self._end = monotonic() + seconds
        self.solver.setOptionValue("time_limit", self.solver.getRunTime() + seconds)
        with interrupts() as self._caught:
            self.solver.run()
            return bool(self._caught)

    def run_or_stop(self, seconds: float = float("inf")) -> None:
        """The same for answers that are of no use before their end: an interrupt goes on as one."""
        if self.run(seconds):
            raise KeyboardInterrupt

    def set(self, **options: Any) -> None:
        """Set options of the solver."""
        for option, value in options.items():
            if str(self.solver.setOptionValue(option, value)) != "HighsStatus.kOk":
                raise SolverFailure(f"HiGHS does not accept {option}={value!r}.")


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Interrupts that arrive meanwhile; other threads than the first hear of none."""
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return
    before = signal.signal(signal.SIGINT, lambda got, _: caught.append(got))
    try:
        yield caught
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
