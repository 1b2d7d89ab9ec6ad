"""Loops compiled for this machine when they are first called, and a line that says so while the user waits.

What was compiled is kept on disk: a later process loads it at once and says nothing. The line goes to standard error of
a terminal or a notebook, never to standard output, and elsewhere to the log `tablesafe`.
"""

from __future__ import annotations

import logging
import multiprocessing
import sys
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core import event

__all__ = ["njit"]

EVENT = "numba:compile"
LINE = "tablesafe: compiling {module} for this machine, once; this can take some seconds …"


class Told(event.Listener):
    """Says once per module that its loops are being compiled; what they call is compiled with them."""

    def __init__(self) -> None:
        self.depth = 0
        self.modules: set[str] = set()

    def on_start(self, event: Any) -> None:
        """Tell what is compiled, when it is ours and nothing around it was told already."""
        self.depth += 1
        module = getattr(getattr(event.data.get("dispatcher"), "py_func", None), "__module__", "") or ""
        if self.depth == 1 and module.partition(".")[0] == "tablesafe" and module not in self.modules:
            self.modules.add(module)
            tell(LINE.format(module=module.removeprefix("tablesafe.")))

    def on_end(self, event: Any) -> None:
        """The outermost is done when all are."""
        self.depth -= 1


def tell(line: str) -> None:
    """To whoever is looking; workers leave it to the process that started them."""
    if multiprocessing.parent_process() is not None:
        return
    stream = sys.stderr
    with suppress(AttributeError, OSError, ValueError):  # none, or closed
        if stream.isatty() or "ipykernel" in sys.modules:
            print(line, file=stream, flush=True)
            return
    logging.getLogger("tablesafe").info(line)


event.register(EVENT, Told())  # type: ignore[no-untyped-call]
