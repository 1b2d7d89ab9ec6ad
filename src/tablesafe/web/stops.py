"""The stop button: an interrupt, as Ctrl-C in a shell, but only at a moment when a method keeps what it has.

At any other moment Ctrl-C ends a run with nothing, which is not what the button says. So a stop waits, if it must,
until a search has its first answer; and once the search is over, there is nothing left to stop.
"""

from __future__ import annotations

import signal
from types import FrameType

RETRY_S = 0.2
KEEPERS = {
    "tablesafe.methods.suppress.method": "_found",
    "tablesafe.methods.suppress.modular": "clean_up",
    "tablesafe.methods.adjust.method": "_moves",
    "tablesafe.methods.round.controlled": "round_controlled",
    "tablesafe.methods.views.method": "_improved",
}
"""Where a search goes on that keeps its best answer when it is interrupted: a function of each module."""


def listen() -> None:
    """Hear stops from now on."""
    for number in (signal.SIGUSR1, signal.SIGALRM):
        signal.signal(number, _asked)
        signal.siginterrupt(number, False)


def finish() -> None:
    """Hear neither stops nor interrupts any more: what is left ends by itself."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (signal.SIGUSR1, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # it came just before
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _asked(number: int, frame: FrameType | None) -> None:
    if keeps(frame):
        signal.raise_signal(signal.SIGINT)
    else:
        signal.setitimer(signal.ITIMER_REAL, RETRY_S)


def keeps(frame: FrameType | None) -> bool:
    """Whether a search is under way, somewhere below, that has an answer to keep."""
    while frame is not None:
        if KEEPERS.get(frame.f_globals.get("__name__", "")) == frame.f_code.co_name:
            search = frame.f_locals.get("search")
            return search is None or getattr(search, "best", None) is not None
        frame = frame.f_back
    return False
