"""How an optimisation came along: the cost of the best answer so far and the proven bound, over time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeAlias

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats
from tablesafe.core.language import Text
from tablesafe.files.limits import visible


@dataclass(slots=True)
class Trace:
    """Notes cost and bound as a method reports them: `ts.protect(…, ts.Run(progress=trace))`; the clock starts here.

    It names no cell and no value, and may be read while the method goes on in another thread.
    """

    steps: list[tuple[float, float, float]] = field(default_factory=list, repr=False)
    """Seconds since the start, cost, bound; not a number where there is none yet."""
    start: float = field(default_factory=monotonic, repr=False)

    def __call__(self, cost: float, bound: float) -> None:
        """Note what is known now."""
        known = cost if np.isfinite(cost) else np.nan
        self.steps.append((monotonic() - self.start, known, bound if np.isfinite(bound) else np.nan))

    def listen(self, event: Event) -> None:
        """Note what an event of a run says about cost and bound, if anything."""
        if event.incumbent is not None or event.bound is not None:
            self(*(np.nan if known is None else known for known in (event.incumbent, event.bound)))

    def columns(self) -> tuple[Floats, Floats, Floats]:
        """Seconds, the cost of the answer as it was told, and the best bound until then."""
        steps = np.array(list(self.steps), dtype=np.float64).reshape(-1, 3)
        return steps[:, 0], steps[:, 1], np.fmax.accumulate(steps[:, 2])

    def frame(self) -> pl.DataFrame:
        """One row per report: seconds, cost, proven bound, and the gap between them in percent."""
        seconds, cost, bound = self.columns()
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = 100 * (cost - bound) / np.where(cost == 0, np.nan, np.abs(cost))
        data = {"seconds": seconds, "cost": cost, "bound": bound, "gap in percent": np.maximum(gap, 0.0)}
        return pl.DataFrame({name: pl.Series(column, nan_to_null=True) for name, column in data.items()})


# What a run is doing, as events; and a progress bar on the terminal that shows them.


@dataclass(frozen=True, slots=True)
class Event:
    """A step of a run: which stage, in words, and how far it is when that is known. It names no cell and no value."""

    stage: str
    message: Text | str
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
            message = str(event.message)
            if message not in tasks:
                for done in tasks.values():
                    progress.remove_task(done)
                tasks.clear()
                tasks[message] = progress.add_task(message, total=event.total)
            text = visible(f"{message}{event.detail}")
            progress.update(tasks[message], description=text, completed=event.done or 0, total=event.total)

        yield listen
