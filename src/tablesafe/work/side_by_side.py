"""Two things at once in one process, for solvers that let go of Python's lock while they work.

What is done at once is the same on every machine, however many cores it has, so that answers are too; and it counts as
long as the longest of it takes. A pool of processes would need every program sent to it, which takes as long as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread
from time import thread_time
from typing import Generic, TypeVar

from tablesafe.core.machine import cores
from tablesafe.work.budget import Budget, beside

Result = TypeVar("Result")

AT_ONCE = 2
"""Programs that are solved at once."""


class _Part(Generic[Result]):
    """One of the things that are done at once, by the clock of its own thread."""

    def __init__(self, do: Callable[[Budget], Result], budget: Budget) -> None:
        self._do, self._now, self._begin = do, budget.processor(), 0.0
        self.budget = budget.apart(self._clock)
        self.together: Sequence[_Part[Result]] = ()
        self.result: Result
        self.error: BaseException | None = None
        self.cpu = 0.0

    def _clock(self) -> float:
        return self._now + thread_time() - self._begin

    def run(self) -> None:
        """Do it; an error is kept for whoever waits, and ends the others."""
        self._begin = thread_time()
        try:
            self.result = self._do(self.budget)
        except BaseException as error:
            self.error = error
            for other in self.together:
                other.budget.stop()
        self.cpu = thread_time() - self._begin


def side_by_side(tasks: Sequence[Callable[[Budget], Result]], budget: Budget) -> list[Result]:
    """What each of some tasks gives, which is told the budget that it may spend; the first is done in this thread.

    An error in one ends all of them. Tasks call no compiled loops: these are compiled for one thread.
    """
    if not tasks:
        return []
    parts = [_Part(do, budget) for do in tasks]
    others = [Thread(target=part.run, daemon=True) for part in parts[1:]] if cores() > 1 else []
    try:
        for part in parts:
            part.together = parts
        for other in others:
            other.start()
        for part in parts[: 1 if others else len(parts)]:
            part.run()
            if part.error is not None:
                break
    except BaseException:
        for part in parts:
            part.budget.stop()
        raise
    finally:
        for other in others:
            if other.ident is not None:
                other.join()
        took = [part.cpu for part in parts]
        beside(sum(took) - max(took) if others else 0.0)
        budget.count(max(part.budget.spent for part in parts))
    for part in parts:
        if part.error is not None:
            raise part.error
    return [part.result for part in parts]
