"""What the server writes about itself: never a value, a name, a query or a traceback."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

LOG = logging.getLogger("tablesafe.web")


class Terse(logging.Formatter):
    """Messages of our own as they are; of all others only who speaks and where, since what they say may hold values."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        if record.name.startswith("tablesafe.web"):
            return f"{record.levelname.lower()}: {record.getMessage()}"
        error = record.msg if isinstance(record.msg, BaseException) else record.exc_info[1] if record.exc_info else None
        kind = f" {type(error).__name__}{_place(error)}" if error is not None else ""
        return f"{record.levelname.lower()}: {record.name}, {record.filename} line {record.lineno}:{kind}"


def _place(error: BaseException) -> str:
    """Where an error was raised: a file of the program and a line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" in {Path(trace.tb_frame.f_code.co_filename).name} line {trace.tb_lineno}"


def quiet_logging() -> None:
    """Send all logs to standard error, tersely."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Terse())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in list(logging.root.manager.loggerDict):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    LOG.setLevel(logging.INFO)


def note_error(error: BaseException) -> None:
    """A line for an error: its kind and where it was raised; what it says may hold values."""
    LOG.error("%s%s", type(error).__name__, _place(error))


def note_request(method: str, path: str, status: int, seconds: float) -> None:
    """A line for a request: of its path only the first part, for the rest may name files; of a wrong one nothing."""
    head = path.split("/")[1] if status < 400 and path.startswith("/") else "…"
    LOG.info("%s /%s %d %.0f ms", method, head, status, 1000 * seconds)
