"""What a run is doing, as events; and a progress bar on the terminal that shows them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from tablesafe.files.limits import visible


@dataclass(frozen=True, slots=True)
class Event:
    """A step of a run: which stage, in words, and how far it is when that is known. It names no cell and no value."""

    stage: str
    message: str
    done: int | None = None
    total: int | None = None
    detail: str = ""
    """What changes while the step goes on."""
    incumbent: float | None = None
    """The cost of the best answer so far, where a method looks for a better one."""
    bound: float | None = None
    """What no answer can cost less than."""


Listener: TypeAlias = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Listen to nothing."""


@contextmanager
def progress_bar(*, enabled: bool = True) -> Iterator[Listener]:
    """Show events as a bar on standard error; say nothing when that is no terminal."""
    if not (enabled and sys.stderr.isatty()):
        yield ignore
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskID,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def listen(event: Event) -> None:
            if event.message not in tasks:
                for done in tasks.values():
                    progress.remove_task(done)
                tasks.clear()
                tasks[event.message] = progress.add_task(event.message, total=event.total)
            text = visible(f"{event.message}{event.detail}")
            progress.update(tasks[event.message], description=text, completed=event.done or 0, total=event.total)

        yield listen
