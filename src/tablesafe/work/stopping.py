"""Who hears that the user wants it to stop: Ctrl-C, or the button of the app, stops the budget that is heeded.

A stop does not tear the work apart as an exception would, at a place where nothing can be kept: the budget is over, the
loops that look at it end, and whoever began them goes on with the best that there is. Ctrl-C a second time ends it by a
KeyboardInterrupt, as anywhere. On the command line the wish that the process may end (SIGTERM) is heard the same way.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tablesafe.work.budget import Budget

_heeded: list[tuple[Budget, Budget]] = []
"""The budgets that a stop is for, the innermost last, and those of the work under way."""
_waiting: list[bool] = []
"""A stop that came before there was anything to stop."""


@contextmanager
def heed(budget: Budget, working: Budget | None = None) -> Iterator[Budget]:
    """Let the user stop a budget, from here to the end of the block; other threads than the first hear no Ctrl-C.

    `working` is the budget of what is done meanwhile, where that must go on for a while even so.
    """
    first = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, _interrupted) if first else None
    entry = budget, budget if working is None else working
    early = bool(_waiting) or any(outer.stopped for outer, _ in _heeded)
    _waiting.clear()
    _heeded.append(entry)
    if early:
        budget.stop()
    try:
        yield budget
    finally:
        _heeded.remove(entry)
        if first:
            signal.signal(signal.SIGINT, before or signal.default_int_handler)


def ask() -> None:
    """Stop what is heeded; if that is nothing yet, what is heeded next."""
    for budget, _ in _heeded:
        budget.stop()
    if not _heeded:
        _waiting.append(True)


def ask_once() -> bool:
    """Stop what is heeded; False where nothing is, or it was asked before: whoever asks again wants an end at once."""
    if not heeding() or _heeded[-1][0].stopped:
        return False
    ask()
    return True


def forget() -> None:
    """Ask for nothing any more."""
    _waiting.clear()


def asked() -> bool:
    """Whether the work under way is to stop."""
    return bool(_heeded) and _heeded[-1][1].stopped


def overdue() -> bool:
    """Whether the work under way is to be broken off, wherever it is: it was given some seconds after a stop."""
    return bool(_heeded) and _heeded[-1][1].overdue


def heeding() -> bool:
    """Whether somebody hears Ctrl-C, or another wish to stop."""
    return bool(_heeded) and threading.current_thread() is threading.main_thread()


def _interrupted(number: int, frame: FrameType | None) -> None:
    if not ask_once():
        raise KeyboardInterrupt
