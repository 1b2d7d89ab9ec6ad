"""A solver that stops: when its time is up, and when the user interrupts.

The solver alone goes on past its time in places, and would hear of Ctrl-C only at its end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from tablesafe.solve.solver import set_options
from tablesafe.work.stopping import asked, heeding

LEAST_S = 0.05
WATCH_S = 0.5
"""Seconds between two looks at a program that runs."""


class Stoppable:
    """One model of HiGHS, to be run again and again, each time for some seconds at most."""

    def __init__(self, solver: Any) -> None:
        self.solver = solver
        self._end = float("inf")
        self._caught: list[int] = []
        solver.cbMipInterrupt += self._judge
        solver.cbSimplexInterrupt += self._judge
        solver.cbIpmInterrupt += self._judge

    def _judge(self, event: Any) -> None:
        if self._caught or asked() or monotonic() > self._end:
            event.interrupt()

    def run(self, seconds: float = float("inf")) -> bool:
        """Solve until the time is up or the user interrupts; whether the user did."""
        seconds = max(seconds, LEAST_S)
        self._end = monotonic() + seconds
        self.set(time_limit=self.solver.getRunTime() + seconds)
        with interrupts() as self._caught:
            self.solver.run()
            return bool(self._caught) or asked()

    def run_or_stop(self, seconds: float = float("inf")) -> None:
        """The same for answers that are of no use before their end: an interrupt goes on as one."""
        if self.run(seconds):
            raise KeyboardInterrupt

    def set(self, **options: Any) -> None:
        """Set options of the solver."""
        set_options(self.solver, **options)


def watch(solver: Any, tell: Callable[[float, float], None]) -> None:
    """Tell the objective and the proven bound of an integer program now and then while it runs."""
    last = monotonic()

    def look(event: Any) -> None:
        nonlocal last
        if monotonic() - last >= WATCH_S:
            last = monotonic()
            tell(float(event.data_out.mip_primal_bound), float(event.data_out.mip_dual_bound))

    solver.cbMipInterrupt += look


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Interrupts that arrive meanwhile; other threads than the first hear of none.

    A wish to end the process stops the solver too, and goes on to whoever deals with it afterwards. Where a budget is
    heeded (see `tablesafe.work.stopping`), an interrupt stops that.
    """
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return
    numbers = (signal.SIGTERM,) if heeding() else (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda got, _: caught.append(got)) for number in numbers}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        if signal.SIGTERM in caught:
            signal.raise_signal(signal.SIGTERM)
